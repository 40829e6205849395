//! The archive: its batches, unsealed or sealed, changed alone or with everything that must match, up to an attacker
//! that has the realm's key and signs the forgery.

use std::collections::BTreeMap;

use annals_audit::verify::{Kept, Swept, Traced, UNANCHORED, VerifiedPrefix, find_first, sweep};
use annals_def::split_mix;
use annals_event::Batch;
use annals_ids::{EventNumber, LeafIndex, LogPosition, WallTime};
use annals_store::layout::{archive, segments};

use crate::tampering::{
    forging::{Draft, before, freeze_all, graft, other},
    realm::{Realm, State},
    table::{Named, Table, Truth},
    world::SHARD,
};

/// The kind of change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Edit,
    DropEvent,
    DropBatch,
    ReorderEvents,
    ReorderBatches,
    InsertEvent,
    InsertBatch,
    Truncate,
    BackDate,
}

const KINDS: [Kind; 9] = [
    Kind::Edit,
    Kind::DropEvent,
    Kind::DropBatch,
    Kind::ReorderEvents,
    Kind::ReorderBatches,
    Kind::InsertEvent,
    Kind::InsertBatch,
    Kind::Truncate,
    Kind::BackDate,
];

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Edit => "an event edited",
            Self::DropEvent => "an event dropped",
            Self::DropBatch => "a batch dropped",
            Self::ReorderEvents => "events reordered",
            Self::ReorderBatches => "batches reordered",
            Self::InsertEvent => "an event inserted",
            Self::InsertBatch => "a batch inserted",
            Self::Truncate => "truncated",
            Self::BackDate => "back-dated",
        }
    }
}

/// The depth of a forgery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Depth {
    /// The batch alone; its header is kept where possible.
    Batch,
    /// The batch's own hashes, the tree, tiles and cursors; the chain is not adapted.
    Tree,
    /// All logs rewritten from there on; checkpoints that no longer match are deleted.
    Logs,
    /// As `Logs`, and signed with the realm's own key.
    Key,
}

const DEPTHS: [Depth; 4] = [Depth::Batch, Depth::Tree, Depth::Logs, Depth::Key];

impl Depth {
    fn layer(self, is_sealed: bool) -> &'static str {
        match (self, is_sealed) {
            (Self::Batch, false) => "archive, 1: one batch",
            (Self::Batch, true) => "archive, 2: one batch, in a segment sealed anew",
            (Self::Tree, _) => "archive, 3: with tree, tiles and cursors",
            (Self::Logs, _) => "archive, 4: written anew from there on",
            (Self::Key, _) => "archive, 5: and signed by the key holder",
        }
    }
}

/// A case: the forged archive, and what was changed first.
struct Case {
    state: State,
    truth: Truth,
}

/// Checks an archive: the result of a sweep, and the first change found.
pub(crate) async fn look(realm: &Realm, kept: &Kept) -> (Swept, Traced) {
    let swept = sweep(&realm.store, VerifiedPrefix::begin(SHARD).against(kept), |_, _| Ok(()))
        .await
        .unwrap();
    (swept, find_first(&realm.store, SHARD, kept).await.unwrap())
}

/// All cases of a realm.
pub(crate) async fn cases(seed: u64, steps: usize, is_sealed: bool, count: usize) -> Table {
    let realm = Realm::generate(seed, steps, is_sealed).await;
    let clean = look(&realm, &Kept::new(vec![realm.head(realm.hashes.len() as u64)])).await;
    assert!(
        clean.0.findings.is_empty() && clean.1.first.is_none(),
        "seed {seed}: {} {}",
        clean.0,
        clean.1
    );
    let mut dice = split_mix(seed);
    let mut table = Table::default();
    for number in 0..count {
        let (depth, kind) = (DEPTHS[number / KINDS.len() % DEPTHS.len()], KINDS[number % KINDS.len()]);
        let case = loop {
            if let Some(case) = make(&realm, depth, kind, &mut dice) {
                break case;
            }
        };
        let said = format!("seed {seed}, case {number}, {kind:?}, {depth:?}, sealed {is_sealed}");
        let change = realm.change(&case.state).await;
        try_case(&realm, &case, (depth, kind), (dice(), &said), &mut table).await;
        realm.put_back(change).await;
    }
    table
}

async fn try_case(
    realm: &Realm,
    case: &Case,
    (depth, kind): (Depth, Kind),
    (roll, said): (u64, &str),
    table: &mut Table,
) {
    let all = realm.hashes.len() as u64;
    // One checkpoint was kept, which covers the changed batch.
    let size = case.truth.leaf + 1 + roll % (all - case.truth.leaf);
    let kept = Kept::new(vec![realm.head(size)]);
    let (swept, traced) = look(realm, &kept).await;
    assert!(!swept.findings.is_empty(), "{said}: not found, kept {size}");
    let named = case.truth.named(&traced, said);
    if depth == Depth::Batch {
        assert!(named != Named::Leaves || kind == Kind::Truncate, "{said}: {traced:?}");
    }
    let first = traced.first.as_ref().unwrap();
    assert!(first.is_proven, "{said}: {first:?}");
    assert!(traced.to_string().contains("FIRST: "), "{traced}");
    // With the hashes of the leaves kept beside it, the leaf is always known.
    let hashes = realm.hashes[..usize::try_from(size).unwrap()].to_vec();
    let with_leaves = find_first(&realm.store, SHARD, &kept.with_leaves(hashes).unwrap())
        .await
        .unwrap();
    let exactly = case.truth.named(&with_leaves, said);
    let leaf = LeafIndex(case.truth.leaf);
    assert_eq!(with_leaves.first.as_ref().unwrap().leaves, (leaf, leaf), "{said}");
    assert!(exactly <= named, "{said}: {with_leaves:?}");
    // Without a checkpoint.
    let without = sweep(&realm.store, VerifiedPrefix::begin(SHARD), |_, _| Ok(()))
        .await
        .unwrap();
    table.count(
        depth.layer(realm.state.sealed > 0),
        kind.name(),
        named,
        !without.findings.is_empty(),
    );
}

fn make(realm: &Realm, depth: Depth, kind: Kind, dice: &mut impl FnMut() -> u64) -> Option<Case> {
    let all = realm.batches.len();
    let place = usize::try_from(dice() % all as u64).ok()?;
    let batch = &realm.batches[place];
    let count = batch.events.len();
    let event = if count == 0 {
        0
    } else {
        usize::try_from(dice() % count as u64).ok()?
    };
    let mut drafts: Vec<Draft> = realm.batches.iter().map(Draft::of).collect();
    let mut truth = Truth {
        leaf: place as u64,
        batches: vec![(at(batch), number(batch, event))],
    };
    match kind {
        Kind::Edit => {
            let was = drafts[place].events.get(event)?.clone();
            drafts[place].events[event] = other(&was, dice());
        }
        Kind::DropEvent => {
            drafts[place].events.get(event)?;
            drafts[place].events.remove(event);
        }
        Kind::ReorderEvents => {
            let next = drafts[place].events.get(event + 1)?;
            (*next != drafts[place].events[event]).then_some(())?;
            drafts[place].events.swap(event, event + 1);
        }
        Kind::InsertEvent => {
            let was = drafts[place].events.get(event)?.clone();
            drafts[place].events.insert(event, other(&was, dice()));
        }
        Kind::BackDate => {
            drafts[place].wall = WallTime(batch.header.wall.0 - 1 - dice() % 900);
            truth.batches = vec![(at(batch), number(batch, 0))];
        }
        Kind::Truncate => {
            (place > 0).then_some(())?;
            drafts.truncate(place);
            truth.batches = vec![(at(batch), number(batch, 0))];
        }
        Kind::DropBatch => {
            drafts.remove(place);
            truth.batches = vec![(at(batch), number(batch, 0))];
        }
        Kind::ReorderBatches => {
            let next = realm.batches.get(place + 1)?;
            drafts.swap(place, place + 1);
            truth.batches = vec![(at(batch), number(batch, 0)), (at(next), number(next, 0))];
        }
        Kind::InsertBatch => {
            let forged = drafts[place].forged(dice());
            drafts.insert(place, forged);
            truth.batches = vec![(at(batch), number(batch, 0))];
        }
    }
    // An opening stays an opening, or nothing matches.
    let opens = |place: usize| realm.batches.get(place).is_some_and(|batch| batch.header.opens);
    if depth != Depth::Batch && (opens(place) || opens(place + 1)) {
        return None;
    }
    let state = match depth {
        Depth::Batch => alone(realm, kind, (place, &drafts), &mut truth)?,
        Depth::Tree => State::of(&unchained(realm, kind, (place, &drafts)), &realm.state, None),
        Depth::Logs => State::of(&freeze_all(&drafts), &realm.state, None),
        Depth::Key => State::of(&freeze_all(&drafts), &realm.state, Some(&realm.key)),
    };
    (state != realm.state).then_some(Case { state, truth })
}

fn at(batch: &Batch) -> LogPosition {
    LogPosition {
        owner: batch.header.owner,
        batch: batch.header.number,
    }
}

fn number(batch: &Batch, event: usize) -> Option<EventNumber> {
    (event < batch.events.len()).then(|| EventNumber(batch.header.first_event.0 + event as u64))
}

/// Changes only the content of the leaf.
fn alone(realm: &Realm, kind: Kind, (place, drafts): (usize, &[Draft]), truth: &mut Truth) -> Option<State> {
    let mut state = realm.state.clone();
    let (batch, own) = (&realm.batches[place], realm.state.leaves[place].clone()?);
    let frozen = |draft: &Draft| draft.freeze(&mut before(batch));
    match kind {
        Kind::Edit | Kind::DropEvent | Kind::ReorderEvents | Kind::InsertEvent => {
            state.leaves[place] = Some(graft(&own, &frozen(&drafts[place])));
        }
        Kind::BackDate => state.leaves[place] = Some(frozen(&drafts[place])),
        Kind::DropBatch => {
            (place >= state.sealed).then_some(())?;
            state.leaves[place] = None;
        }
        Kind::Truncate => {
            (place >= state.sealed).then_some(())?;
            state.leaves.truncate(place);
        }
        Kind::ReorderBatches => state.leaves.swap(place, place + 1),
        // Replaces the batch that is there.
        Kind::InsertBatch => {
            state.leaves[place] = Some(frozen(&drafts[place]));
            truth.batches = vec![(at(batch), None)];
        }
    }
    Some(state)
}

/// Changes a batch and adapts the tree; its neighbours stay as they were.
fn unchained(realm: &Realm, kind: Kind, (place, drafts): (usize, &[Draft])) -> Vec<Vec<u8>> {
    let mut leaves = realm.leaves();
    let frozen = || drafts[place].freeze(&mut before(&realm.batches[place]));
    match kind {
        Kind::Edit | Kind::DropEvent | Kind::ReorderEvents | Kind::InsertEvent | Kind::BackDate => {
            leaves[place] = frozen();
        }
        Kind::DropBatch => drop(leaves.remove(place)),
        Kind::Truncate => leaves.truncate(place),
        Kind::ReorderBatches => leaves.swap(place, place + 1),
        Kind::InsertBatch => leaves.insert(place, frozen()),
    }
    leaves
}

/// Rows of the archive with changed bytes, regardless of their meaning.
pub(crate) async fn bytes(seed: u64, steps: usize, is_sealed: bool, count: usize) -> Table {
    let realm = Realm::generate(seed, steps, is_sealed).await;
    let all = realm.hashes.len() as u64;
    let kept = Kept::new(vec![realm.head(all)]);
    let mut dice = split_mix(seed);
    let mut table = Table::default();
    let leaves = archive::leaves(SHARD).begin;
    let (blocks, indexes) = (
        segments::blocks(SHARD, LeafIndex(0)).begin,
        segments::indexes(SHARD).begin,
    );
    let mut rows = realm.rows_below(&leaves);
    rows.extend(realm.rows_below(&blocks[..3]));
    rows.extend(realm.rows_below(&indexes));
    for number in 0..count {
        let (key, value) = &rows[usize::try_from(dice() % rows.len() as u64).unwrap()];
        let mut changed = value.clone();
        let place = usize::try_from(dice() % value.len() as u64).unwrap();
        let kind = match dice() % 3 {
            0 => {
                changed.truncate(place);
                "bytes cut off"
            }
            1 => {
                changed[place] ^= 1 << (dice() % 8);
                "a bit flipped"
            }
            _ => {
                changed.insert(place, dice().to_le_bytes()[0]);
                "a byte put in"
            }
        };
        let said = format!("seed {seed}, case {number}, {kind}, row {key:?}, byte {place}");
        let change = realm.edit(BTreeMap::from([(key.clone(), Some(changed))])).await;
        let (swept, traced) = look(&realm, &kept).await;
        let layer = if key.starts_with(&leaves) {
            let (leaf, _) = archive::leaf_of(key).unwrap();
            let batch = &realm.batches[usize::try_from(leaf.0).unwrap()];
            let truth = Truth {
                leaf: leaf.0,
                batches: vec![(at(batch), None)],
            };
            assert!(!swept.findings.is_empty(), "{said}");
            (truth.named(&traced, &said), "archive, 6: bytes of a batch")
        } else {
            assert!(!swept.findings.is_empty(), "{said}");
            let last = u64::from_be_bytes(key[3..11].try_into().unwrap());
            // What can still be read of the segment may be all of it.
            let named = traced.first.as_ref().map_or(Named::Leaves, |first| {
                assert!(
                    first.leaves.0.0 <= last && first.leaves.1.0 + 24 > last,
                    "{said}: {first:?}"
                );
                Named::Batch
            });
            (named, "archive, 7: bytes of a segment")
        };
        realm.put_back(change).await;
        table.count(layer.1, kind, layer.0, true);
    }
    table
}

/// The archive as it was when an older checkpoint was signed: all of it is consistent.
pub(crate) async fn rollbacks(seed: u64, steps: usize, count: usize) -> Table {
    let realm = Realm::generate(seed, steps, false).await;
    let all = realm.hashes.len() as u64;
    let mut dice = split_mix(seed);
    let mut table = Table::default();
    let sizes: Vec<u64> = realm.state.signed.keys().copied().filter(|size| *size < all).collect();
    for number in 0..count {
        let size = sizes[usize::try_from(dice() % sizes.len() as u64).unwrap()];
        let said = format!("seed {seed}, case {number}, back to {size} of {all}");
        let first = &realm.leaves()[..usize::try_from(size).unwrap()];
        let change = realm.change(&State::of(first, &realm.state, None)).await;
        let next = &realm.batches[usize::try_from(size).unwrap()];
        let truth = Truth {
            leaf: size,
            batches: vec![(at(next), self::number(next, 0))],
        };
        let kept = Kept::new(vec![realm.head(size + 1 + dice() % (all - size))]);
        let (swept, traced) = look(&realm, &kept).await;
        let (without, unanchored) = look(&realm, &Kept::default()).await;
        assert!(!swept.findings.is_empty(), "{said}: not found");
        let named = truth.named(&traced, &said);
        assert_eq!(
            traced.first.as_ref().unwrap().signed,
            size,
            "{said}: the checkpoint that is there"
        );
        assert!(
            without.findings.is_empty() && unanchored.to_string().contains(UNANCHORED),
            "{said}: {without}"
        );
        realm.put_back(change).await;
        table.count(
            "archive, 8: all of it",
            "rolled back to an older signed checkpoint",
            named,
            false,
        );
    }
    table
}
