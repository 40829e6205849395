//! The leaves of a merge behind its last cut, and which of them belong to the last cut of all (rule T6).
//!
//! A shard that is behind executes an order after orders of other shards that were logged later. In the merge, which has
//! the changes of the ledger in their order, its leaf follows theirs, and theirs depend on batches that it has not archived
//! yet. So the merge may have no cut for as long as the shard is behind. But a change of which nobody has taken a notice
//! is not known to any log: it is in the cut with what its own batch depends on, and is made again there, after the
//! changes that keep their numbers.

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
    /// Whether it is from before the realm had several shards.
    is_alone: bool,
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
    /// Something that no leaf in the archives has done.
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
            is_alone: passing.is_alone,
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
        let mut search = Search::of(self, cuts);
        search.leave_out_all(changes);
        search.is_in
    }

    /// Which leaves belong to the smallest cut that has this one; none if no cut has it.
    pub(super) fn in_cut_with(&self, wanted: usize, cuts: &Cuts, changes: &[NoticeNumber]) -> Vec<bool> {
        let mut search = Search::of(self, cuts);
        search.leave_out_all(changes);
        let mut closure = Closure::of(&search, changes);
        if search.is_in.get(wanted) == Some(&true) {
            closure.add(wanted);
        }
        closure.is_in
    }
}

/// The smallest cut that has some leaves.
struct Closure<'a> {
    search: &'a Search<'a>,
    /// The last notices of the ledger's changes.
    changes: &'a [NoticeNumber],
    is_in: Vec<bool>,
    added: Vec<usize>,
    /// The leaves that changed the ledger, in the order of the changes, and how many were added.
    changed: Vec<(usize, usize)>,
    added_changes: usize,
    /// All leaves under definitions before these were added.
    generation: u32,
    /// Whether all leaves were added from before the realm had several shards.
    has_alone: bool,
}

impl<'a> Closure<'a> {
    fn of(search: &'a Search<'a>, changes: &'a [NoticeNumber]) -> Self {
        let changed = search.leaves.iter().enumerate();
        Self {
            search,
            changes,
            is_in: vec![false; search.leaves.len()],
            added: Vec::new(),
            changed: changed
                .filter_map(|(place, leaf)| Some((leaf.change?, place)))
                .collect(),
            added_changes: 0,
            generation: 0,
            has_alone: false,
        }
    }

    fn add(&mut self, place: usize) {
        self.added.push(place);
        while let Some(place) = self.added.pop() {
            if !std::mem::replace(&mut self.is_in[place], true) {
                self.added.extend_from_slice(&self.search.needs[place]);
                self.add_earlier(&self.search.leaves[place]);
            }
        }
    }

    /// Adds the leaves without which [`Search::leave_out_later`] would leave out this one.
    fn add_earlier(&mut self, leaf: &TailLeaf) {
        if let Some(notice) = leaf.takes {
            let upto = self.changes.partition_point(|last| *last < notice);
            while let Some((_, place)) = self
                .changed
                .get(self.added_changes)
                .filter(|(change, _)| *change <= upto)
            {
                self.added.push(*place);
                self.added_changes += 1;
            }
        }
        let leaves = self.search.leaves.iter().enumerate();
        if leaf.generation > self.generation {
            let earlier = leaves.clone().filter(|(_, other)| other.generation < leaf.generation);
            self.added.extend(earlier.map(|(place, _)| place));
            self.generation = leaf.generation;
        }
        if leaf.change.is_some() && !leaf.is_alone && !std::mem::replace(&mut self.has_alone, true) {
            let alone = leaves.filter(|(_, other)| other.is_alone);
            self.added.extend(alone.map(|(place, _)| place));
        }
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

/// The search for a cut, by leaving out what depends on something outside of it.
struct Search<'a> {
    leaves: &'a [TailLeaf],
    is_in: Vec<bool>,
    /// The leaves that each leaf depends on by calls, by an activation, and by the order in its shard.
    needs: Vec<Vec<usize>>,
    /// The leaves that depend on each leaf so.
    dependents: Vec<Vec<usize>>,
    /// Leaves that were left out, and whose dependents may still be in.
    left: Vec<usize>,
}

impl<'a> Search<'a> {
    fn of(tail: &'a Tail, cuts: &Cuts) -> Self {
        let calls = Calls::of(tail, cuts);
        let count = tail.leaves.len();
        let mut search = Self {
            leaves: &tail.leaves,
            is_in: vec![true; count],
            needs: Vec::with_capacity(count),
            dependents: vec![Vec::new(); count],
            left: Vec::new(),
        };
        let mut last: BTreeMap<Shard, usize> = BTreeMap::new();
        for (place, leaf) in tail.leaves.iter().enumerate() {
            let mut needs: Vec<usize> = leaf.after.into_iter().chain(last.insert(leaf.shard, place)).collect();
            let mut is_possible = leaf.is_wanted;
            calls.needs_of(&leaf.head, |need| match need {
                Need::Met => {}
                // A batch may consume a call that it makes.
                Need::Leaf(needed) if needed == place => {}
                Need::Leaf(needed) => needs.push(needed),
                Need::Unmet => is_possible = false,
            });
            for needed in &needs {
                search.dependents[*needed].push(place);
            }
            search.needs.push(needs);
            if !is_possible {
                search.leave_out(place);
            }
        }
        search
    }

    fn leave_out(&mut self, place: usize) {
        if std::mem::replace(&mut self.is_in[place], false) {
            self.left.push(place);
        }
    }

    fn leave_out_all(&mut self, changes: &[NoticeNumber]) {
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

    /// Leaves out what took a notice of a change that does not keep its number; what was written under definitions that
    /// came after leaves that are left out; and changes of the ledger that came after leaves from before the realm had
    /// several shards.
    fn leave_out_later(&mut self, changes: &[NoticeNumber]) {
        let out = self.leaves.iter().zip(&self.is_in).filter(|(_, is_in)| !**is_in);
        let out = out.map(|(leaf, _)| leaf);
        let generation = out.clone().map(|leaf| leaf.generation).min();
        let lacks_alone = out.clone().any(|leaf| leaf.is_alone);
        let renumbered = out.filter_map(|leaf| leaf.change).min();
        let kept = renumbered.map(|first| first.checked_sub(1).map(|last| changes[last]).unwrap_or_default());
        for place in 0..self.leaves.len() {
            let leaf = &self.leaves[place];
            let is_later = generation.is_some_and(|generation| leaf.generation > generation);
            let is_after_alone = lacks_alone && !leaf.is_alone && leaf.change.is_some();
            if is_later || is_after_alone || kept.is_some_and(|kept| leaf.takes > Some(kept)) {
                self.leave_out(place);
            }
        }
    }
}
