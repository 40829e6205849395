//! What the logs of an archive reveal about each other's batches: each names its predecessor.

use std::collections::{BTreeMap, BTreeSet};

use annals_ids::{BatchNumber, EventNumber, Hash, LeafIndex, LogPosition, OwnerId};

use super::{First, What, batch::LeafContent, reading::Reading};

impl Reading {
    /// The hashes named elsewhere: by each batch that of its predecessor, by the store the end of each log and the
    /// openings of its epochs.
    pub(super) fn named(&self) -> BTreeSet<Hash> {
        let previous = self.seen.values().map(|seen| seen.previous);
        let ends = self.ends.values().map(|end| end.hash);
        previous.chain(ends).chain(self.openings.iter().copied()).collect()
    }
}

/// The batches of all logs, in the order that they claim.
pub(super) struct Logs<'a> {
    reading: &'a Reading,
    named: BTreeSet<Hash>,
    /// By log and number, the leaves whose batches claim to be that one, those named by others first.
    logs: BTreeMap<OwnerId, BTreeMap<BatchNumber, Vec<u64>>>,
}

impl<'a> Logs<'a> {
    pub(super) fn of(reading: &'a Reading) -> Self {
        let named = reading.named();
        let mut logs: BTreeMap<OwnerId, BTreeMap<BatchNumber, Vec<u64>>> = BTreeMap::new();
        for (leaf, seen) in &reading.seen {
            let log = logs.entry(seen.at.owner).or_default();
            log.entry(seen.at.batch).or_default().push(*leaf);
        }
        for leaves in logs.values_mut().flat_map(BTreeMap::values_mut) {
            leaves.sort_by_key(|leaf| !named.contains(&reading.seen[leaf].hash));
        }
        Self { reading, named, logs }
    }

    /// The batch with a hash, wherever it is, or the one that another batch names by it.
    pub(super) fn batch_of(&self, hash: Hash) -> Option<LogPosition> {
        let seen = self.reading.seen.values();
        let own = seen.clone().find(|seen| seen.hash == hash).map(|seen| seen.at);
        let before = |seen: &LeafContent| {
            let (owner, batch) = (seen.at.owner, BatchNumber(seen.at.batch.0 - 1));
            (batch.0 > 0).then_some(LogPosition { owner, batch })
        };
        let named = || seen.clone().find(|seen| seen.previous == hash).and_then(before);
        let end = || {
            let (owner, end) = self.reading.ends.iter().find(|(_, end)| end.hash == hash)?;
            let (owner, batch) = (*owner, end.batch);
            Some(LogPosition { owner, batch })
        };
        own.or_else(named).or_else(end)
    }

    /// The events that a batch has, or had, according to its neighbours; `None` if it has none, or if unknown.
    pub(super) fn events_of(&self, at: LogPosition) -> Option<(EventNumber, EventNumber)> {
        let beside = |batch| self.seen(LogPosition { batch, ..at });
        let own = self.seen(at);
        let first = self.first_event_of(at)?;
        let end = self.reading.ends.get(&at.owner).filter(|end| end.batch == at.batch);
        let next = beside(at.batch.next()).map(|next| next.first_event.0.saturating_sub(1));
        let last = next
            .or(end.map(|end| end.event.0))
            .or(own.map(|own| own.last_event().0));
        let last = last.unwrap_or(first.0);
        (last >= first.0).then_some((first, EventNumber(last)))
    }

    /// The leaves between which a missing batch lay: the first at which it can have been, and the first after it.
    pub(super) fn gap(&self, at: LogPosition) -> (u64, u64) {
        let leaf = |batch: BatchNumber| self.logs.get(&at.owner)?.get(&batch)?.first().copied();
        let before = BatchNumber(at.batch.0.saturating_sub(1));
        (
            leaf(before).map_or(0, |leaf| leaf + 1),
            leaf(at.batch.next()).unwrap_or(u64::MAX),
        )
    }

    /// Whether another batch or the store names this hash.
    pub(super) fn is_named(&self, hash: Hash) -> bool {
        self.named.contains(&hash)
    }

    /// The first event that a batch has, or had, according to its predecessor.
    pub(super) fn first_event_of(&self, at: LogPosition) -> Option<EventNumber> {
        let before = BatchNumber(at.batch.0 - 1);
        match before.0 {
            0 => Some(EventNumber(1)),
            _ => {
                let before = self.seen(LogPosition { batch: before, ..at });
                let before = before.map(|before| before.last_event().next());
                before.or(self.seen(at).map(|own| own.first_event))
            }
        }
    }

    /// The last event of the batch with a hash, according to a batch that names it.
    pub(super) fn last_event_behind(&self, hash: Hash) -> Option<EventNumber> {
        let next = self.reading.seen.values().find(|seen| seen.previous == hash);
        let next = next.map(|next| EventNumber(next.first_event.0.saturating_sub(1)));
        let end = self.reading.ends.values().find(|end| end.hash == hash);
        next.or(end.map(|end| end.event))
    }

    fn seen(&self, at: LogPosition) -> Option<&LeafContent> {
        let leaves = self.logs.get(&at.owner)?.get(&at.batch)?;
        self.reading.seen.get(leaves.first()?)
    }

    /// The first batch from a leaf on that cannot be the original, by the explanation with the fewest changes.
    pub(super) fn first_fault(&self, from: u64) -> Option<First> {
        let mut faults = Vec::new();
        for (owner, log) in &self.logs {
            self.look_through(*owner, log, from, &mut faults);
        }
        for (&owner, end) in &self.reading.ends {
            let last = self.logs.get(&owner).and_then(|log| log.last_key_value());
            let last = last.map_or(BatchNumber(0), |(number, _)| *number);
            if last < end.batch {
                let batch = last.next();
                let at = LogPosition { owner, batch };
                let behind = self
                    .seen(LogPosition { owner, batch: last })
                    .map(|_| self.leaf(owner, last));
                faults.push(self.gone(at, behind.map_or(0, |leaf| leaf + 1), u64::MAX));
            }
        }
        faults.into_iter().min_by_key(|fault| fault.leaves)
    }

    fn leaf(&self, owner: OwnerId, batch: BatchNumber) -> u64 {
        self.logs[&owner][&batch][0]
    }

    fn look_through(&self, owner: OwnerId, log: &BTreeMap<BatchNumber, Vec<u64>>, from: u64, faults: &mut Vec<First>) {
        let mut before: Option<(BatchNumber, u64)> = None;
        for (&batch, leaves) in log {
            let (leaf, others) = (leaves[0], &leaves[1..]);
            let at = LogPosition { owner, batch };
            for &other in others.iter().filter(|other| **other >= from) {
                let events = self.reading.seen[&other].first_event;
                faults.push(fault(other, at, Some((events, events)), What::Inserted));
            }
            let expected = before.map_or(BatchNumber(1), |(number, _)| number.next());
            let behind = before.map_or(0, |(_, leaf)| leaf + 1);
            if batch != expected && leaf >= from {
                faults.push(self.gone(LogPosition { owner, batch: expected }, behind, leaf));
            } else if leaf < behind {
                // Its predecessor comes after it: the original in its place was that one, or one before that.
                let at = LogPosition { owner, batch: expected };
                faults.push(fault(
                    leaf,
                    at,
                    self.events_of(at).map(|(first, _)| (first, first)),
                    What::Moved,
                ));
            } else if let Some(changed) = self
                .unchained(before.map(|(_, leaf)| leaf), leaf)
                .filter(|leaf| *leaf >= from)
            {
                let at = self.reading.seen[&changed].at;
                faults.push(fault(changed, at, self.events_of(at), What::Changed));
            }
            before = Some((batch, leaf));
        }
        let end = self.reading.ends.get(&owner);
        if let Some((batch, leaf)) = before.filter(|(_, leaf)| *leaf >= from) {
            let at = LogPosition { owner, batch };
            if end.is_some_and(|end| end.batch == batch && end.hash != self.reading.seen[&leaf].hash) {
                faults.push(fault(leaf, at, self.events_of(at), What::Changed));
            }
        }
    }

    /// Which of two batches that should be chained and are not was changed: the one that nothing else names, because
    /// then one change explains it.
    fn unchained(&self, before: Option<u64>, leaf: u64) -> Option<u64> {
        let seen = &self.reading.seen[&leaf];
        let previous = before.map(|before| &self.reading.seen[&before]);
        let (hash, event) = previous.map_or((Hash([0; 32]), EventNumber(0)), |previous| {
            (previous.hash, previous.last_event())
        });
        if seen.previous == hash {
            return (seen.first_event != event.next()).then_some(leaf);
        }
        match before {
            Some(before) if self.named.contains(&seen.hash) && !self.named.contains(&hash) => Some(before),
            _ => Some(leaf),
        }
    }

    /// A batch missing from its log that lay in this range of leaves: at an unreadable leaf, if there is one.
    fn gone(&self, at: LogPosition, from: u64, until: u64) -> First {
        let until = until.min(self.reading.size).max(from);
        let lack = (from..until).find(|leaf| !self.reading.seen.contains_key(leaf));
        let leaves = lack.map_or((LeafIndex(from), LeafIndex(until)), |leaf| {
            (LeafIndex(leaf), LeafIndex(leaf))
        });
        First {
            leaves,
            ..fault(
                from,
                at,
                self.events_of(at).map(|(first, _)| (first, first)),
                What::Gone,
            )
        }
    }
}

/// A finding based on the logs, without a checkpoint.
fn fault(leaf: u64, at: LogPosition, events: Option<(EventNumber, EventNumber)>, what: What) -> First {
    First {
        leaves: (LeafIndex(leaf), LeafIndex(leaf)),
        batch: Some(at),
        events,
        what,
        signed: 0,
        is_proven: false,
    }
}
