//! The leaves of a merge behind its last cut, and which of them belong to the last cut of all (rule T6).
//!
//! Where one shard is behind, its changes of the ledger come after later ones of other shards, and those depend on batches
//! that it has not archived yet. So the merge, which has the changes in their order, may have no cut for as long as the
//! shard is behind. But a change whose notices nobody has taken is not known to anyone: it is in the cut with what its
//! own batch depends on, and is made again there, after the changes that keep their numbers.

use std::collections::BTreeMap;

use annals_event::{Consumed, Link};
use annals_ids::{Address, CallNumber, DatabaseId, NoticeNumber, Shard};

use super::{Act, MergedLeaf};
use crate::Cuts;

/// The leaves that were passed since the last cut, in the order of the merge.
#[derive(Debug, Default)]
pub(super) struct Tail {
    leaves: Vec<TailLeaf>,
    /// The newest call consumed on a link before the tail, for links on which the tail consumes.
    consumed_before: BTreeMap<Link, CallNumber>,
    /// The last leaf at which an activation of a stored entity ended.
    ended: BTreeMap<DatabaseId, usize>,
    has_unwanted: bool,
}

/// A leaf of the tail.
#[derive(Debug)]
struct TailLeaf {
    shard: Shard,
    /// With the calls that count.
    head: MergedLeaf,
    is_wanted: bool,
    /// The number of its definitions.
    generation: u32,
    /// If it changed the ledger, the number of changes before it.
    change: Option<usize>,
    /// The leaf at which an earlier activation ended that had to be over before this leaf.
    after: Option<usize>,
    /// The last notice that it took, unless the order of its shard suffices.
    takes: Option<NoticeNumber>,
}

/// What the merge knows of a leaf that it passes.
pub(super) struct Passing {
    pub(super) is_wanted: bool,
    pub(super) generation: u32,
    pub(super) change: Option<usize>,
    /// Whether the leaf is from before the realm had several shards.
    pub(super) is_alone: bool,
    /// Stored entities whose activations end.
    pub(super) ends: Vec<DatabaseId>,
}

/// What a leaf depends on.
enum Need {
    /// Something before the tail.
    Met,
    /// Another leaf of the tail.
    Leaf(usize),
    /// Something that no leaf has done.
    Unmet,
}

impl Tail {
    /// Adds a leaf, before `cuts` takes it.
    pub(super) fn push(&mut self, shard: Shard, head: MergedLeaf, passing: Passing, cuts: &Cuts) {
        for consumed in &head.header.consumed {
            let link = link_of(consumed);
            let before = cuts.consumed(link);
            self.consumed_before.entry(link).or_insert(before);
        }
        let begun = head.acts.iter().filter_map(|act| match act {
            Act::BaseBegins(_, database, _) => self.ended.get(database).copied(),
            _ => None,
        });
        let taken = head.acts.iter().filter_map(|act| match act {
            Act::Takes(notice) => Some(*notice),
            _ => None,
        });
        let (after, takes) = (begun.max(), taken.max());
        let place = self.leaves.len();
        self.ended
            .extend(passing.ends.into_iter().map(|database| (database, place)));
        self.has_unwanted |= !passing.is_wanted;
        self.leaves.push(TailLeaf {
            shard,
            head,
            is_wanted: passing.is_wanted,
            generation: passing.generation,
            change: passing.change,
            after,
            takes: takes.filter(|_| !passing.is_alone),
        });
    }

    /// Whether all leaves were wanted.
    pub(super) fn is_wanted(&self) -> bool {
        !self.has_unwanted
    }

    /// Everything that was passed is a cut.
    pub(super) fn clear(&mut self) {
        self.leaves.clear();
        self.consumed_before.clear();
        self.ended.clear();
    }

    /// Which leaves belong to the largest cut: those that depend on nothing outside of it. `changes` are the last notices
    /// of the ledger's changes, in their order.
    pub(super) fn in_cut(&self, cuts: &Cuts, changes: &[NoticeNumber]) -> Vec<bool> {
        let calls = Calls::of(self, cuts);
        let mut search = Search {
            leaves: &self.leaves,
            is_in: vec![true; self.leaves.len()],
            dependents: vec![Vec::new(); self.leaves.len()],
            left: Vec::new(),
        };
        let mut last: BTreeMap<Shard, usize> = BTreeMap::new();
        for (place, leaf) in self.leaves.iter().enumerate() {
            for needed in leaf.after.into_iter().chain(last.insert(leaf.shard, place)) {
                search.dependents[needed].push(place);
            }
            if !leaf.is_wanted {
                search.leave_out(place);
            }
            calls.needs_of(&leaf.head, |need| match need {
                Need::Met => {}
                Need::Leaf(needed) => search.dependents[needed].push(place),
                Need::Unmet => search.leave_out(place),
            });
        }
        search.close(changes);
        search.is_in
    }
}

/// The calls that the leaves of the tail make and consume.
struct Calls<'a> {
    cuts: &'a Cuts,
    consumed_before: &'a BTreeMap<Link, CallNumber>,
    made: BTreeMap<(Link, CallNumber), usize>,
    consumed: BTreeMap<(Link, CallNumber), usize>,
}

impl<'a> Calls<'a> {
    fn of(tail: &'a Tail, cuts: &'a Cuts) -> Self {
        let (mut made, mut consumed) = (BTreeMap::new(), BTreeMap::new());
        for (place, leaf) in tail.leaves.iter().enumerate() {
            made.extend(leaf.head.named.made.iter().map(|call| (*call, place)));
            let calls = leaf.head.header.consumed.iter();
            consumed.extend(calls.map(|call| ((link_of(call), call.number), place)));
        }
        Self {
            cuts,
            consumed_before: &tail.consumed_before,
            made,
            consumed,
        }
    }

    /// What a leaf depends on: the leaves that made the calls that it consumed, and those that consumed the calls that it
    /// confirmed.
    fn needs_of(&self, head: &MergedLeaf, mut found: impl FnMut(Need)) {
        for call in &head.header.consumed {
            // A call from a client is in no log before it is consumed (rule C8).
            if !matches!(call.from, Address::Client(_)) {
                found(self.maker(link_of(call), call.number));
            }
        }
        for (link, upto) in &head.named.confirmed {
            found(self.consumer(*link, *upto));
        }
    }

    fn maker(&self, link: Link, number: CallNumber) -> Need {
        match self.made.get(&(link, number)) {
            Some(place) => Need::Leaf(*place),
            // What the tail did not make was made before it, or never.
            None if self.cuts.is_made(link, number) => Need::Met,
            None => Need::Unmet,
        }
    }

    fn consumer(&self, link: Link, upto: CallNumber) -> Need {
        let before = self.consumed_before.get(&link).copied();
        let before = before.unwrap_or_else(|| self.cuts.consumed(link));
        if before >= upto || !self.cuts.has_confirmations() {
            return Need::Met;
        }
        let mut later = self
            .consumed
            .range((link, upto)..)
            .take_while(|((of, _), _)| *of == link);
        later.next().map_or(Need::Unmet, |(_, place)| Need::Leaf(*place))
    }
}

fn link_of(call: &Consumed) -> Link {
    Link {
        from: call.from,
        to: call.to,
    }
}

/// The search for the largest cut, by leaving out what depends on something outside of it.
struct Search<'a> {
    leaves: &'a [TailLeaf],
    is_in: Vec<bool>,
    dependents: Vec<Vec<usize>>,
    /// Leaves that were left out, and whose dependents may still be in.
    left: Vec<usize>,
}

impl Search<'_> {
    fn leave_out(&mut self, place: usize) {
        if std::mem::replace(&mut self.is_in[place], false) {
            self.left.push(place);
        }
    }

    fn close(&mut self, changes: &[NoticeNumber]) {
        loop {
            while let Some(place) = self.left.pop() {
                for dependent in std::mem::take(&mut self.dependents[place]) {
                    self.leave_out(dependent);
                }
            }
            self.leave_out_later(changes);
            if self.left.is_empty() {
                return;
            }
        }
    }

    /// Leaves out what took a notice of a change that does not keep its number, and what was written under definitions
    /// that came after leaves that are left out.
    fn leave_out_later(&mut self, changes: &[NoticeNumber]) {
        let out = self.leaves.iter().zip(&self.is_in).filter(|(_, is_in)| !**is_in);
        let generation = out.clone().map(|(leaf, _)| leaf.generation).min();
        let renumbered = out.filter_map(|(leaf, _)| leaf.change).min();
        let kept = renumbered.map(|first| first.checked_sub(1).map(|last| changes[last]).unwrap_or_default());
        for place in 0..self.leaves.len() {
            let leaf = &self.leaves[place];
            let is_later = generation.is_some_and(|generation| leaf.generation > generation);
            if is_later || kept.is_some_and(|kept| leaf.takes > Some(kept)) {
                self.leave_out(place);
            }
        }
    }
}
