//! The auditor's index: rows changed so that an answer would omit something or be about something else.

use std::collections::BTreeMap;

use annals_audit::{Astray, Index};
use annals_event::{Batch, Body, Subject};
use annals_evidence::ShardLeaf;
use annals_ids::{BatchNumber, EntityId, EntryNumber, EventNumber, LeafIndex, LogPosition, OwnerId, Shard};
use annals_store::MemoryStore;

use crate::tampering::{
    game::{Dice, Game, SHARD},
    realm::write,
    table::{Named, Table},
};

/// The first event, or batch, that a row is about, as found by searching the whole archive.
type FirstEntry = (ShardLeaf, Option<LogPosition>, Option<EventNumber>);

pub(crate) async fn cases(seed: u64, count: usize) -> Table {
    let game = Game::play(seed, 60).await;
    let batches: Vec<Batch> = game
        .leaves
        .iter()
        .map(|(_, bytes)| Batch::read(bytes).unwrap())
        .collect();
    let made = MemoryStore::new();
    let mut anew = Index::over(made.store()).await.unwrap();
    anew.catch_up(&game.store, |_| {}).await.unwrap();
    let rows: Vec<(Vec<u8>, Vec<u8>)> = made
        .rows()
        .iter()
        .map(|(key, value)| (key.to_vec(), value.to_vec()))
        .collect();
    let kept = MemoryStore::new();
    let all: BTreeMap<_, _> = rows
        .iter()
        .map(|(key, value)| (key.clone(), Some(value.clone())))
        .collect();
    write(&kept.store(), &all).await;
    let mut dice = Dice(seed);
    let mut table = Table::default();
    for number in 0..count {
        let place = dice.below(rows.len());
        let (kind, edits) = change(&rows, place, &mut dice);
        let before: BTreeMap<_, _> = edits
            .keys()
            .map(|key| (key.clone(), all.get(key).cloned().flatten()))
            .collect();
        if before == edits {
            continue;
        }
        let said = format!("seed {seed}, case {number}, {kind}, row {:?}", rows[place].0);
        write(&kept.store(), &edits).await;
        let found = match Index::over(kept.store()).await {
            Err(_) => None,
            Ok(index) => {
                let found = index.compare(&game.store, &anew).await.unwrap();
                Some(found.unwrap_or_else(|| panic!("{said}: not found")))
            }
        };
        write(&kept.store(), &before).await;
        let named = match &found {
            // It cannot be read at all, and is reported so.
            None => Named::Nothing,
            Some(astray) => {
                let truth = edits.keys().filter_map(|key| about(&batches, key, &all, &edits)).min();
                assert_eq!(
                    (astray.leaf, astray.batch, astray.event),
                    truth.map_or((None, None, None), |(leaf, at, event)| (Some(leaf), at, event)),
                    "{said}: {astray}"
                );
                assert_eq!(astray.rows, edits.len() as u64, "{said}");
                named(astray)
            }
        };
        table.count("index", kind, named, true);
    }
    table
}

fn named(astray: &Astray) -> Named {
    match (astray.event, astray.batch, astray.leaf) {
        (Some(_), ..) => Named::Event,
        (None, Some(_), _) => Named::Batch,
        (None, None, Some(_)) => Named::Leaves,
        (None, None, None) => Named::Nothing,
    }
}

type Edits = BTreeMap<Vec<u8>, Option<Vec<u8>>>;

fn change(rows: &[(Vec<u8>, Vec<u8>)], place: usize, dice: &mut Dice) -> (&'static str, Edits) {
    let (key, value) = &rows[place];
    let mut edits = Edits::new();
    match dice.below(6) {
        0 if !value.is_empty() => {
            let mut other = value.clone();
            let byte = dice.below(other.len());
            other[byte] ^= 1 << dice.below(8);
            edits.insert(key.clone(), Some(other));
            ("edited", edits)
        }
        1 if !value.is_empty() => {
            let length = dice.below(value.len());
            edits.insert(key.clone(), Some(value[..length].to_vec()));
            ("truncated", edits)
        }
        2 => {
            // The value of the next row of its kind.
            let next = rows.get(place + 1).filter(|(next, _)| next[0] == key[0]);
            let Some((next, other)) = next else {
                return change(rows, place, dice);
            };
            edits.insert(key.clone(), Some(other.clone()));
            edits.insert(next.clone(), Some(value.clone()));
            if value == other {
                return change(rows, place, dice);
            }
            ("reordered", edits)
        }
        3 => {
            let mut other = key.clone();
            let last = other.len() - 1;
            other[last] = other[last].wrapping_add(1 + dice.roll().to_le_bytes()[0] % 200);
            if rows.iter().any(|(key, _)| *key == other) || key[0] == 0 {
                return change(rows, place, dice);
            }
            edits.insert(other, Some(value.clone()));
            ("inserted", edits)
        }
        4 if key[0] == 0x08 => {
            let mut earlier = key.clone();
            let last = earlier.len() - 1;
            earlier[last] ^= 1;
            if rows.iter().any(|(key, _)| *key == earlier) {
                return change(rows, place, dice);
            }
            edits.insert(key.clone(), None);
            edits.insert(earlier, Some(value.clone()));
            ("back-dated", edits)
        }
        // Without its first row an index counts as new, and is rebuilt.
        5 if key[0] != 0 => {
            edits.insert(key.clone(), None);
            ("dropped", edits)
        }
        _ => {
            let moments: Vec<usize> = (0..rows.len()).filter(|row| rows[*row].0[0] == 0x08).collect();
            change(rows, moments[dice.below(moments.len())], dice)
        }
    }
}

fn on(shard: Shard, leaf: u64) -> ShardLeaf {
    let leaf = LeafIndex(leaf);
    ShardLeaf { shard, leaf }
}

/// What a row of the index is about, found without the index.
fn about(batches: &[Batch], key: &[u8], all: &Edits, edits: &Edits) -> Option<FirstEntry> {
    let number = |from: usize| u64::from_be_bytes(key[from..from + 8].try_into().unwrap());
    let owner = |from: usize| OwnerId(u32::from_be_bytes(key[from..from + 4].try_into().unwrap()));
    let leaf_of = |leaf: usize| on(SHARD, leaf as u64);
    let at = |batch: &Batch| LogPosition {
        owner: batch.header.owner,
        batch: batch.header.number,
    };
    let batch_of = |owner: OwnerId, batch: BatchNumber| {
        let leaf = batches
            .iter()
            .position(|found| at(found) == LogPosition { owner, batch })?;
        Some((leaf_of(leaf), Some(at(&batches[leaf])), None))
    };
    let event_of = |is_it: &dyn Fn(&Batch, &annals_event::Event) -> bool| {
        batches.iter().enumerate().find_map(|(leaf, batch)| {
            let place = batch.events.iter().position(|event| is_it(batch, event))?;
            let event = EventNumber(batch.header.first_event.0 + place as u64);
            Some((leaf_of(leaf), Some(at(batch)), Some(event)))
        })
    };
    let entry_of = |number: EntryNumber| {
        event_of(&|_, event| matches!(&event.body, Body::Entered { entry: Some(entry), .. } if entry.number == number))
    };
    // An existing row is identified by its true value, an inserted one by its own.
    let value = || {
        let truly = all.get(key).cloned().flatten();
        truly.or_else(|| edits.get(key).cloned().flatten())
    };
    match key[0] {
        0x01 | 0x0c => {
            let last = batches
                .iter()
                .filter(|batch| batch.header.owner == owner(1))
                .map(|batch| batch.header.number);
            batch_of(owner(1), last.max()?)
        }
        0x02 => batch_of(owner(1), BatchNumber(number(5))),
        0x03 => entry_of(EntryNumber(number(1))),
        0x04..=0x06 | 0x0d => entry_of(EntryNumber(number(key.len() - 8))),
        0x07 => {
            let (entity, owner, stretch) = (EntityId(number(1)), owner(9), number(13));
            event_of(&|batch, event| {
                let is_there = batch.header.owner == owner && batch.header.number.0 / 64 == stretch;
                is_there && matches!(event.subject, Subject::Entity(of, _) if of == entity)
            })
        }
        0x08 => {
            let shard = Shard(u16::from_be_bytes(key[1..3].try_into().unwrap()));
            let leaf = u64::from_be_bytes(value()?.try_into().ok()?);
            Some((on(shard, leaf), None, None))
        }
        0x09..=0x0b | 0x0e => {
            let value: [u8; 12] = value()?.try_into().ok()?;
            let (owner, batch) = value.split_at(4);
            let at = LogPosition {
                owner: OwnerId(u32::from_be_bytes(owner.try_into().unwrap())),
                batch: BatchNumber(u64::from_be_bytes(batch.try_into().unwrap())),
            };
            let (leaf, at, _) = batch_of(at.owner, at.batch)?;
            let header = &batches[usize::try_from(leaf.leaf.0).unwrap()].header;
            let place = u32::from_be_bytes(*key.last_chunk().unwrap());
            let event = EventNumber(header.first_event.0 + u64::from(place));
            Some((leaf, at, (place < header.events).then_some(event)))
        }
        _ => None,
    }
}
