//! Batches, events and history numbers are dense, through every epoch and hand-over; the archive is a consistent cut, except
//! where the stream lost its tail and several writers put theirs back in another order (rule F5).

use annals_event::{Body, Link};
use annals_ids::{BatchNumber, LeafIndex};

use crate::{archive::Archive, plan::Fault, world::World};

/// See the module.
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
    for (expected, leaf) in (0..).zip(archive.leaves.keys()) {
        if *leaf != LeafIndex(expected) {
            wrong.push(format!("leaf {leaf} where {expected} belongs"));
        }
    }
    if !world.faults.contains_key(&Fault::LoseTail) {
        wrong.extend(inconsistent_cuts(archive));
    }
    wrong
}

/// Rule F5: whatever was taken was called before, in the archive's order.
fn inconsistent_cuts(archive: &Archive) -> Vec<String> {
    let mut called = std::collections::BTreeSet::new();
    let mut wrong = Vec::new();
    for (owner, number) in archive.leaves.values() {
        let batch = archive.logs[owner].iter().find(|batch| batch.header.number == *number);
        let Some(batch) = batch else { continue };
        // A call may be made and taken in one batch: then it comes first in it.
        for event in &batch.events {
            if let Body::Called { to, number, .. } = &event.body {
                let from = match event.subject {
                    annals_event::Subject::Owner => annals_ids::Address::Owner(*owner),
                    annals_event::Subject::Entity(entity, part) => annals_ids::Address::of(entity, part),
                };
                called.insert((Link { from, to: *to }, *number));
            }
        }
        for taken in &batch.header.consumed {
            let link = Link {
                from: taken.from,
                to: taken.to,
            };
            let by_client = matches!(taken.from, annals_ids::Address::Client(_));
            if !by_client && !called.contains(&(link, taken.number)) {
                let BatchNumber(number) = number;
                wrong.push(format!(
                    "batch {number} of owner {owner} took call {} on {link} before it was archived as made",
                    taken.number
                ));
            }
        }
    }
    wrong
}
