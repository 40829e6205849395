//! The stream: batches that are logged and not archived yet, changed before db reads them. db reports the changed batch
//! as missing, or the one after it, which does not match; the log waits there. The last batch of a log is vouched for
//! only by the next one, so the next one exists in each case.

use std::{collections::BTreeMap, sync::Arc};

use annals_db::{Folder, Missing, read_cursor};
use annals_def::split_mix;
use annals_event::{Batch, FrozenBatch};
use annals_ids::{BatchNumber, OwnerId, WallTime};
use annals_store::MemoryStore;
use bytes::Bytes;

use crate::tampering::{
    forging::{Draft, before, graft, other},
    realm::{several, write},
    table::{Named, Table},
    world::{SHARD, World},
};

pub(crate) async fn cases(seed: u64, count: usize) -> Table {
    let memory = MemoryStore::new();
    let mut world = World::new(memory.store()).await;
    world.play(seed, 20).await;
    world.archive().await;
    for round in 0..3 {
        world.play(seed * 100 + round, 4).await;
        several(&mut world, seed + round);
    }
    world.record_openings().await;
    let stored = memory.rows();
    let sent: Vec<FrozenBatch> = world.frozen[world.archived..].to_vec();
    let mut dice = split_mix(seed);
    let mut table = Table::default();
    for number in 0..count {
        let place = usize::try_from(dice() % sent.len() as u64).unwrap();
        let batch = &sent[place];
        let is_followed = sent[place + 1..].iter().any(|next| next.owner == batch.owner);
        let changed = is_followed.then(|| change(&sent, place, &mut dice)).flatten();
        let Some((kind, messages)) = changed else { continue };
        let said = format!("seed {seed}, case {number}, {kind}, message {place}");
        let (missing, is_alarmed) = fold(&world, &messages).await;
        let ends = ends(&world).await;
        put_back(&memory, &stored).await;
        let is_missing = missing
            .iter()
            .any(|missing| (missing.owner, missing.first) == (batch.owner, batch.number));
        // After the changed batch an epoch may begin that db does not know yet: then the opening does not match.
        let mut is_archived = false;
        for (owner, end) in &ends {
            let all = world.frozen.iter().filter(|batch| batch.owner == *owner);
            is_archived |= all.clone().any(|frozen| frozen.number == end.0 && frozen.hash != end.1);
            let is_whole = all.map(|frozen| frozen.number).max() == Some(end.0);
            let waits = *owner == batch.owner && (is_missing || is_alarmed);
            assert!(is_whole || waits, "{said}: {owner} waits, and {missing:?}");
        }
        assert!(!is_archived || is_alarmed, "{said}: another batch was archived");
        // Batches added beside the true one, or in another order, change nothing.
        let named = match (is_missing, batch_events(batch)) {
            (false, _) if is_alarmed => Named::Leaves,
            (false, _) if is_archived => Named::Leaves,
            (false, _) => Named::Nothing,
            (true, 0 | 1) => Named::Event,
            (true, _) if kind == "a batch dropped" => Named::Event,
            (true, _) => Named::Batch,
        };
        assert!(
            is_missing || is_alarmed || matches!(kind, "batches reordered" | "a batch inserted"),
            "{said}: {missing:?}, {is_alarmed}"
        );
        table.count("stream", kind, named, true);
    }
    table
}

fn batch_events(batch: &FrozenBatch) -> usize {
    Batch::read(&batch.bytes).unwrap().events.len()
}

type Messages = Vec<(OwnerId, Vec<u8>)>;

fn change(sent: &[FrozenBatch], place: usize, dice: &mut impl FnMut() -> u64) -> Option<(&'static str, Messages)> {
    let mut messages: Messages = sent.iter().map(|batch| (batch.owner, batch.bytes.clone())).collect();
    let batch = Batch::read(&sent[place].bytes).unwrap();
    let mut draft = Draft::of(&batch);
    let frozen = |draft: &Draft| draft.freeze(&mut before(&batch));
    let own = &sent[place].bytes;
    let event = usize::try_from(dice() % batch.events.len().max(1) as u64).unwrap();
    let kind = match dice() % 8 {
        0 => {
            draft.events[..].get(event)?;
            draft.events[event] = other(&batch.events[event], dice());
            messages[place].1 = frozen(&draft);
            "an event edited, and its batch's hashes"
        }
        1 => {
            draft.events[..].get(event)?;
            draft.events[event] = other(&batch.events[event], dice());
            messages[place].1 = graft(own, &frozen(&draft));
            "an event edited"
        }
        2 => {
            messages.remove(place);
            "a batch dropped"
        }
        3 => {
            draft.events[..].get(event)?;
            draft.events.remove(event);
            messages[place].1 = frozen(&draft);
            "an event dropped"
        }
        4 => {
            let behind = messages.remove(place);
            messages.push(behind);
            "batches reordered"
        }
        5 => {
            let forged = frozen(&draft.forged(dice()));
            messages.insert(place + 1, (sent[place].owner, forged));
            "a batch inserted"
        }
        6 => {
            let length = usize::try_from(dice() % own.len() as u64).unwrap();
            messages[place].1.truncate(length);
            "truncated"
        }
        _ => {
            draft.wall = WallTime(draft.wall.0 - 1 - dice() % 900);
            messages[place].1 = frozen(&draft);
            "back-dated"
        }
    };
    Some((kind, messages))
}

/// Lets db fold everything: returns what it reports as missing, and whether it reports a fault.
async fn fold(world: &World, messages: &Messages) -> (Vec<Missing>, bool) {
    let folder = Folder::begin(world.store.clone(), SHARD, Arc::clone(&world.schema));
    let mut folder = folder.await.unwrap();
    for (owner, bytes) in messages {
        folder.offer(*owner, bytes.clone());
    }
    let mut is_alarmed = false;
    while folder.has_work() {
        is_alarmed |= !folder.commit().await.unwrap().alarms.is_empty();
    }
    (folder.missing().collect(), is_alarmed)
}

async fn ends(world: &World) -> BTreeMap<OwnerId, (BatchNumber, annals_ids::Hash)> {
    let mut ends = BTreeMap::new();
    for log in &world.logs {
        let cursor = read_cursor(&world.store, log.owner).await.unwrap();
        ends.insert(log.owner, (cursor.batch, cursor.hash));
    }
    ends
}

async fn put_back(memory: &MemoryStore, stored: &BTreeMap<Bytes, Bytes>) {
    let now = memory.rows();
    let keys = now
        .keys()
        .chain(stored.keys())
        .filter(|key| now.get(*key) != stored.get(*key));
    let edits = keys.map(|key| (key.to_vec(), stored.get(key).map(|value| value.to_vec())));
    write(&memory.store(), &edits.collect()).await;
}
