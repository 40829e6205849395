//! Locates the first event that differs from the original, from the remains of an archive.

use annals_ids::{Hash, LeafIndex, LogPosition};
use annals_proof::{Frontier, TreeHead};

use super::{First, Kept, MANY, Traced, What, logs::Logs, originals::restore, reading::Reading};

pub(super) fn trace(reading: &Reading, kept: &Kept) -> Traced {
    let (holds, broken) = compare(reading, kept.heads());
    let originals = match broken {
        Some(_) if !kept.leaves.is_empty() => Some(kept.leaves.clone()),
        Some(head) => restore(reading, head),
        None => None,
    };
    let search = Search {
        reading,
        logs: Logs::of(reading),
        originals: originals.as_deref(),
        certain: originals.as_ref().map_or(holds, |known| known.len() as u64),
        holds,
    };
    let mut first = search.first(kept.size());
    if let (Some(head), None) = (broken, &originals) {
        first = Some(search.anew(head, first));
    }
    Traced {
        first,
        tile: search.tile(),
        kept: kept.size(),
        leaves: reading.size,
    }
}

/// Size of the largest checkpoint that matches the archive, and the first checkpoint that does not.
fn compare(reading: &Reading, heads: &[TreeHead]) -> (u64, Option<TreeHead>) {
    let mut tree = Frontier::new();
    let mut holds = 0;
    for head in heads {
        while tree.size() < head.size
            && let Some(seen) = reading.seen.get(&tree.size())
        {
            tree.push(seen.hash);
        }
        if (tree.size(), tree.root()) != (head.size, head.root) || reading.size < head.size {
            return (holds, Some(*head));
        }
        holds = head.size;
    }
    (holds, None)
}

struct Search<'a> {
    reading: &'a Reading,
    logs: Logs<'a>,
    /// The original hashes of the first leaves, if these are proven and differ from the present ones.
    originals: Option<&'a [Hash]>,
    /// Number of leaves whose original hashes are proven.
    certain: u64,
    /// Number of leaves that are proven to be original.
    holds: u64,
}

impl Search<'_> {
    fn first(&self, kept: u64) -> Option<First> {
        let seen = &self.reading.seen;
        let events = seen.iter().find_map(|(&leaf, seen)| {
            let (what, first, last) = seen.wrong?;
            let events = (seen.events > 0 || what == What::PutIn).then_some((first, last));
            Some(self.at(leaf, Some(seen.at), events, what))
        });
        let header = self.originals.and_then(|originals| {
            let other = |(leaf, hash): &(u64, &Hash)| seen.get(leaf).is_none_or(|seen| seen.hash != **hash);
            let (leaf, &hash) = (0..).zip(originals).find(other)?;
            Some(self.other(leaf, hash, originals))
        });
        let fault = self.logs.first_fault(self.certain);
        // If the original of each leaf is known, the logs add nothing.
        let fault = fault.filter(|fault| fault.leaves.0.0 >= self.certain);
        let size = self.reading.size.max(kept);
        let lacking = (self.certain..size).find(|leaf| !seen.contains_key(leaf));
        let lacking = lacking.map(|leaf| self.at(leaf, None, None, What::Gone));
        // The most specific finding about a leaf comes first.
        let found = [header, events, fault, lacking].into_iter().flatten();
        found.min_by_key(|first| first.leaves)
    }

    /// A leaf that differs from its original, which had this hash.
    fn other(&self, leaf: u64, hash: Hash, originals: &[Hash]) -> First {
        let there = self.reading.seen.get(&leaf);
        let was = self.logs.batch_of(hash);
        let is_elsewhere = self.reading.seen.values().any(|seen| seen.hash == hash);
        if let Some(there) = there.filter(|there| is_elsewhere && !originals.contains(&there.hash)) {
            let events = Some((there.first_event, there.first_event));
            return self.at(leaf, Some(there.at), events, What::Inserted);
        }
        let events = was.and_then(|was| self.logs.events_of(was));
        let begin = events.map(|(first, _)| (first, first));
        if is_elsewhere {
            self.at(leaf, was, begin, What::Moved)
        } else if there.is_some_and(|there| Some(there.at) == was) {
            // If its log continues after the original, that gives the number of its events.
            let last = self.logs.last_event_behind(hash).unwrap_or(MANY);
            let events = was
                .and_then(|was| self.logs.first_event_of(was))
                .map(|first| (first, last));
            self.at(leaf, was, events.filter(|(first, last)| first <= last), What::Changed)
        } else {
            self.at(leaf, was, begin, What::Gone)
        }
    }

    fn at(
        &self,
        leaf: u64,
        batch: Option<LogPosition>,
        events: Option<(annals_ids::EventNumber, annals_ids::EventNumber)>,
        what: What,
    ) -> First {
        First {
            leaves: (LeafIndex(leaf), LeafIndex(leaf)),
            batch,
            events,
            what,
            signed: 0,
            is_proven: leaf < self.certain,
        }
    }

    /// A kept checkpoint does not match, and the original leaves are unknown: the change lies after the last checkpoint
    /// that matches, and no later than any other fault.
    fn anew(&self, head: TreeHead, first: Option<First>) -> First {
        let (from, last) = (LeafIndex(self.holds), LeafIndex(head.size - 1));
        let until = first.as_ref().map_or(last, |first| first.leaves.1.min(last));
        let is_cut = until.0 == self.reading.size;
        let known = first.filter(|first| first.leaves.1 == from && !is_cut);
        First {
            leaves: (from, until),
            batch: known.as_ref().and_then(|first| first.batch),
            events: known.as_ref().and_then(|first| first.events),
            what: match known {
                Some(first) => first.what,
                None if is_cut => What::Cut,
                None => What::Rewritten,
            },
            signed: self.signed(head.size),
            is_proven: true,
        }
    }

    /// Number of first batches covered by a signed checkpoint in the store that has their root; none if one contradicts
    /// what was kept of `size` batches.
    fn signed(&self, size: u64) -> u64 {
        let mut holds = 0;
        let mut tree = Frontier::new();
        for head in &self.reading.signed {
            while tree.size() < head.size
                && let Some(seen) = self.reading.seen.get(&tree.size())
            {
                tree.push(seen.hash);
            }
            if (tree.size(), tree.root()) == (head.size, head.root) {
                holds = head.size;
            }
        }
        if holds < size { holds } else { 0 }
    }

    /// The first hash in a stored tile that is not that of the batch archived there.
    fn tile(&self) -> Option<LeafIndex> {
        let original = |leaf: &u64| {
            let known = self.originals.and_then(|known| known.get(usize::try_from(*leaf).ok()?));
            known.copied().or(self.reading.seen.get(leaf).map(|seen| seen.hash))
        };
        // If the batch is in doubt, its tile is not.
        let is_proven = |leaf: &u64| *leaf < self.certain || self.logs_agree(*leaf);
        let tiles = self.reading.tiles.iter();
        let mut wrong =
            tiles.filter(|(leaf, hash)| is_proven(leaf) && original(leaf).is_some_and(|known| known != **hash));
        wrong.next().map(|(leaf, _)| LeafIndex(*leaf))
    }

    fn logs_agree(&self, leaf: u64) -> bool {
        let seen = self.reading.seen.get(&leaf);
        seen.is_some_and(|seen| self.logs.is_named(seen.hash))
    }
}
