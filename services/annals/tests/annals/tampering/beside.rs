//! Records besides the batches from which proofs are made: tiles, and signed checkpoints.

use std::collections::BTreeMap;

use annals_audit::verify::{Kept, VerifiedPrefix, sweep};
use annals_def::split_mix;
use annals_ids::{Hash, LeafIndex};
use annals_proof::{KeyKind, KeyName, SignerKey};

use crate::tampering::{
    archive::look,
    realm::{Realm, State, sign},
    table::{Named, Table},
    world::SHARD,
};

type Tiles = BTreeMap<(u8, u64), Vec<Hash>>;

pub(crate) async fn tiles(seed: u64, steps: usize, count: usize) -> Table {
    let realm = Realm::generate(seed, steps, false).await;
    let kept = Kept::new(vec![realm.head(realm.hashes.len() as u64)]);
    let mut dice = split_mix(seed);
    let mut table = Table::default();
    for number in 0..count {
        let mut state = realm.state.clone();
        let (kind, wrong) = loop {
            let changed = change(&mut state.tiles, &realm.state.tiles, &mut dice);
            if state.tiles != realm.state.tiles {
                break changed;
            }
        };
        let said = format!("seed {seed}, case {number}, a tile {kind}");
        let change = realm.change(&state).await;
        let (swept, traced) = look(&realm, &kept).await;
        let without = sweep(&realm.store, VerifiedPrefix::begin(SHARD), |_, _| Ok(()))
            .await
            .unwrap();
        realm.put_back(change).await;
        assert!(!swept.findings.is_empty(), "{said}: not found");
        assert_eq!(traced.first, None, "{said}: no event is another");
        assert_eq!(traced.tile, wrong.map(LeafIndex), "{said}: {traced}");
        let named = if wrong.is_some() { Named::Leaves } else { Named::Nothing };
        table.count("tiles", kind, named, !without.findings.is_empty());
    }
    table
}

/// Changes a tile, and returns the leaf whose hash in it differs, if there is one.
fn change(tiles: &mut Tiles, all: &Tiles, dice: &mut impl FnMut() -> u64) -> (&'static str, Option<u64>) {
    let (level, index) = *all
        .keys()
        .nth(usize::try_from(dice() % all.len() as u64).unwrap())
        .unwrap();
    let tile = tiles.get_mut(&(level, index)).unwrap();
    let mut pick = |length: usize| usize::try_from(dice() % length as u64).unwrap();
    let kind = match pick(6) {
        0 => {
            let place = pick(tile.len());
            tile[place].0[pick(32)] ^= 1;
            "edited"
        }
        // Missing tiles could also mean that none were ever written; the same holds for the highest.
        1 if level == 0 => {
            tiles.remove(&(level, index));
            "dropped"
        }
        2 if tile.len() > 1 => {
            let (place, other) = (pick(tile.len()), pick(tile.len()));
            tile.swap(place, other);
            "reordered"
        }
        3 => {
            let place = pick(tile.len());
            tile.insert(place, Hash([9; 32]));
            "inserted"
        }
        4 if level == 0 => {
            let place = pick(tile.len());
            tile.truncate(place);
            "truncated"
        }
        5 if level == 0 => {
            // As if the batch had been another: the hash of an earlier one.
            let place = 1 + pick(tile.len() - 1);
            tile[place] = tile[place - 1];
            "back-dated"
        }
        _ => "untouched",
    };
    let first = index * 256;
    let of_leaves = tiles.get(&(level, index)).filter(|_| level == 0);
    let differs = of_leaves.and_then(|tile| {
        tile.iter()
            .zip(&all[&(level, index)])
            .position(|(one, other)| one != other)
    });
    // An incomplete tile is no tile, and only its number of hashes is examined.
    (kind, differs.map(|place| first + place as u64))
}

pub(crate) async fn checkpoints(seed: u64, steps: usize, count: usize) -> Table {
    let realm = Realm::generate(seed, steps, false).await;
    let stranger = SignerKey::from_seed(KeyName::new("example.com/test").unwrap(), KeyKind::Note, &[8; 32]);
    let mut dice = split_mix(seed);
    let mut table = Table::default();
    for number in 0..count {
        let sizes: Vec<u64> = realm.state.signed.keys().copied().collect();
        let size = sizes[usize::try_from(dice() % sizes.len() as u64).unwrap()];
        let kept = Kept::new(vec![realm.head(size)]);
        let mut state = realm.state.clone();
        let kind = note(&mut state, &realm, (size, &sizes), &stranger, &mut dice);
        if state == realm.state {
            continue;
        }
        let said = format!("seed {seed}, case {number}, a checkpoint {kind}, of {size}");
        let change = realm.change(&state).await;
        let (swept, traced) = look(&realm, &kept).await;
        let without = sweep(&realm.store, VerifiedPrefix::begin(SHARD), |_, _| Ok(()))
            .await
            .unwrap();
        realm.put_back(change).await;
        let is_said = !swept.findings.is_empty()
            || swept
                .to_string()
                .contains(&format!("NOTE: the kept checkpoint of {size} leaves"));
        assert!(is_said, "{said}: not found: {swept}");
        assert_eq!((traced.first, traced.tile), (None, None), "{said}: no event is another");
        table.count("checkpoint", kind, Named::Nothing, !without.findings.is_empty());
    }
    table
}

fn note(
    state: &mut State,
    realm: &Realm,
    (size, sizes): (u64, &[u64]),
    stranger: &SignerKey,
    dice: &mut impl FnMut() -> u64,
) -> &'static str {
    let mut pick = |length: usize| usize::try_from(dice() % length as u64).unwrap();
    let own = state.signed[&size].clone();
    let other = sizes[pick(sizes.len())];
    match pick(7) {
        0 => {
            let mut bytes = own.into_bytes();
            let place = pick(bytes.len());
            bytes[place] = b"0123456789abcdef"[pick(16)];
            state.signed.insert(size, String::from_utf8_lossy(&bytes).into_owned());
            "edited"
        }
        1 => {
            state.signed.remove(&size);
            "dropped, the one that was kept"
        }
        2 => {
            let note = state.signed.insert(other, own).unwrap();
            state.signed.insert(size, note);
            "reordered"
        }
        3 => {
            let between = size - 1 - pick(9) as u64;
            state
                .signed
                .insert(between, sign(stranger, between, realm.head(between).root));
            "inserted, by another key"
        }
        4 => {
            let length = pick(own.len());
            state
                .signed
                .insert(size, own[..own.floor_char_boundary(length)].to_owned());
            "truncated"
        }
        5 => {
            // An older one in its place.
            state.signed.insert(size, realm.state.signed[&other].clone());
            "back-dated"
        }
        _ => {
            // Signed with the realm's own key, for another history.
            state.signed.insert(size, sign(&realm.key, size, Hash([3; 32])));
            "of another history, by the key holder"
        }
    }
}
