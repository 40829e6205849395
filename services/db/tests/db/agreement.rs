//! Takers and db read the same history: at any time and in any disorder, what a taker finds beyond the archive is what
//! db folds next, and both find the same holes.

use annals_event::Header;
use annals_ids::{BatchNumber, OwnerId, Part};
use annals_node::{
    chain::assemble,
    writer::{Opening, Tip},
};
use annals_store::{
    ScanOrder, Transaction, immediate,
    layout::owners::{self, Cursor, OpeningRecord},
};

use crate::{
    generated::{Play, disturb},
    realm::Realm,
};

/// Number of realms.
const SEEDS: u64 = 60;

/// Steps of each.
const STEPS: usize = 120;

/// What a taker finds of an owner's log beyond the archive: its hashes, or the first missing batch.
fn taken(realm: &Realm, owner: OwnerId) -> Result<Vec<annals_ids::Hash>, BatchNumber> {
    let read = |transaction: Transaction| async move {
        let cursor = Cursor::decode(transaction.get(&owners::cursor_key(owner)).await?.as_deref())?;
        let page = transaction
            .get_range(&owners::openings(owner), 10_000, ScanOrder::Forward)
            .await?;
        let openings: Result<Vec<OpeningRecord>, _> = page
            .rows
            .iter()
            .map(|(_, value)| OpeningRecord::decode(value))
            .collect();
        openings.map(|openings| (cursor, openings))
    };
    let (cursor, openings) = immediate(realm.store.read(read)).expect("the store answers");
    let archived = Tip {
        number: cursor.batch,
        hash: cursor.hash,
    };
    let opening = |record: &OpeningRecord| Opening {
        epoch: record.epoch,
        number: record.number,
        hash: record.hash,
    };
    let openings: Vec<Opening> = openings.iter().map(opening).collect();
    let messages = realm.stream[..realm.offered].iter().filter(|(of, _)| *of == owner);
    let batches: Vec<Vec<u8>> = messages.map(|(_, bytes)| bytes.clone()).collect();
    let found = assemble(owner, archived, &openings, batches, 0);
    found
        .map(|chain| chain.beyond.iter().map(|batch| batch.hash).collect())
        .map_err(|hole| hole.missing)
}

/// Hashes of a log's archived batches after the first `from`.
fn folded(realm: &Realm, owner: OwnerId, from: usize) -> Vec<annals_ids::Hash> {
    let held = &realm.owners[&owner];
    let archived = held.chain.iter().take(realm.archived_count(owner));
    archived.skip(from).map(|written| written.batch.hash).collect()
}

#[test]
fn a_successor_finds_the_chain_that_db_folds() {
    let (mut chains, mut holes) = (0, 0);
    for seed in 0..SEEDS {
        let mut realm = Realm::new(seed);
        let mut play = Play::default();
        let owners: Vec<OwnerId> = [Part::Base, Part::Cell].map(|part| realm.found(part)).into();
        for _ in 0..STEPS {
            let owner = realm.pick(&owners).expect("there are owners");
            if realm.roll(3) > 0 {
                play.act(&mut realm, owner);
                let lose = realm.roll(8) == 0;
                realm.write(owner, lose);
            } else {
                disturb(&mut realm, owner);
            }
            if realm.roll(6) > 0 {
                continue;
            }
            // A taker may have read all that db reads now, before db folds it.
            let before: Vec<usize> = owners.iter().map(|owner| realm.archived_count(*owner)).collect();
            realm.offered = realm.stream.len();
            let expected: Vec<_> = owners.iter().map(|owner| taken(&realm, *owner)).collect();
            realm.offered = 0;
            drop(realm.begin_db());
            realm.fold(usize::MAX);
            for ((owner, before), expected) in owners.iter().zip(before).zip(expected) {
                let folded = folded(&realm, *owner, before);
                let missing = realm
                    .db
                    .missing()
                    .find(|hole| hole.owner == *owner)
                    .map(|hole| hole.first);
                match expected {
                    Ok(chain) => {
                        assert_eq!(folded, chain, "seed {seed}: owner {owner}");
                        assert_eq!(missing, None, "seed {seed}: owner {owner}");
                        chains += usize::from(!chain.is_empty());
                    }
                    Err(first) => {
                        assert_eq!(missing, Some(first), "seed {seed}: owner {owner}");
                        holes += 1;
                    }
                }
                // And then there is nothing left to take.
                let left = taken(&realm, *owner);
                assert_eq!(left, missing.map_or(Ok(Vec::new()), Err), "seed {seed}: owner {owner}");
            }
        }
    }
    assert!(
        chains > 300 && holes > 100,
        "{chains} chains and {holes} holes were compared"
    );
}

#[test]
fn the_generated_stream_covers_all_disorders() {
    let mut realm = Realm::new(1);
    let owner = realm.found(Part::Base);
    for _ in 0..200 {
        realm.write(owner, false);
        disturb(&mut realm, owner);
    }
    let headers = realm.stream.iter().filter_map(|(_, bytes)| Header::read(bytes).ok());
    let numbers: Vec<u64> = headers.map(|(header, _)| header.number.0).collect();
    assert!(!numbers.is_sorted(), "{numbers:?}");
    let forged = realm.forged.len();
    assert!(forged > 0, "something was forged");
}
