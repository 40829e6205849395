//! Batches, events and history numbers are dense across epochs and hand-overs. Every call taken was made earlier in
//! archive order, unless there are several streams, or one lost a batch that was later put back or filled in (rule F5).

use std::collections::{BTreeMap, BTreeSet};

use annals_event::{Body, Link, Subject};
use annals_ids::{Address, LeafIndex, Shard};

use crate::{
    archive::Archive,
    fault::{Blow, Kind},
    world::World,
};

/// Checks numbering and the order of calls.
pub fn check(world: &World, archive: &Archive) -> Vec<String> {
    let mut wrong = Vec::new();
    for (owner, log) in &archive.logs {
        let mut event = 0;
        for (place, batch) in log.iter().enumerate() {
            let header = &batch.header;
            if header.number.0 != place as u64 + 1 || header.first_event.0 != event + 1 {
                wrong.push(format!(
                    "owner {owner}: batch {} with event {} at place {place}",
                    header.number, header.first_event
                ));
            }
            event += u64::from(header.events);
        }
    }
    for ((entity, part), history) in &archive.histories {
        for (expected, (number, events)) in (1..).zip(history) {
            if number.0 != expected || events.len() != 1 {
                wrong.push(format!(
                    "{part} of entity {entity}: history number {number} {} times, after {}",
                    events.len(),
                    expected - 1
                ));
            }
        }
    }
    let mut expected: BTreeMap<Shard, LeafIndex> = BTreeMap::new();
    for (shard, leaf) in archive.leaves.keys() {
        let next = expected.entry(*shard).or_default();
        if leaf != next {
            wrong.push(format!("leaf {leaf} of shard {shard} where {next} belongs"));
        }
        *next = LeafIndex(leaf.0 + 1);
    }
    if archive.order.len() != archive.leaves.len() {
        wrong.push(format!(
            "{} of {} leaves were seen",
            archive.order.len(),
            archive.leaves.len()
        ));
    }
    let lost = [Blow::LoseTail, Blow::LoseMessage, Blow::TornWrite]
        .iter()
        .any(|blow| world.struck.contains_key(&Kind::Blow(*blow)));
    // Between streams there is no order (rule T3).
    wrong.extend(taken_before_made(archive, lost || world.plan.shards > 1));
    wrong
}

/// Rule F5: every call taken was made in the archive, and earlier in its order, unless batches may come later.
fn taken_before_made(archive: &Archive, late: bool) -> Vec<String> {
    let mut made = BTreeSet::new();
    let mut early = Vec::new();
    let mut wrong = Vec::new();
    for (owner, number) in &archive.order {
        let batch = archive.logs[owner].iter().find(|batch| batch.header.number == *number);
        let Some(batch) = batch else { continue };
        // A call may be made and taken in one batch; it then comes first.
        for event in &batch.events {
            if let Body::Called { to, number, .. } = &event.body {
                let from = match event.subject {
                    Subject::Owner => Address::Owner(*owner),
                    Subject::Entity(entity, part) => Address::of(entity, part),
                };
                made.insert((Link { from, to: *to }, *number));
            }
        }
        for taken in &batch.header.consumed {
            let link = Link {
                from: taken.from,
                to: taken.to,
            };
            let by_client = matches!(taken.from, Address::Client(_));
            if !by_client && !made.contains(&(link, taken.number)) {
                early.push((*owner, *number, link, taken.number));
            }
        }
    }
    for (owner, batch, link, call) in early {
        if !made.contains(&(link, call)) {
            wrong.push(format!(
                "batch {batch} of owner {owner} took call {call} on {link}, which was never sent"
            ));
        } else if !late {
            wrong.push(format!(
                "batch {batch} of owner {owner} took call {call} on {link} before it was archived as made"
            ));
        }
    }
    wrong
}
