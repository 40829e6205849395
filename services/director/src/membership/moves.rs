//! Planned hand-overs: which process follows each owner of a draining one (rule D9).

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use annals_ids::{OwnerId, OwnerKind, ProcessId};

use super::{Definitions, Membership};

impl Membership {
    /// Plans which process follows each owner of a draining one, or of one with former definitions. A plan is kept as
    /// long as it can be carried out, also after the holder has left, and also by a process that drains itself, if it
    /// follows the owner: clients may have received already that it is the next holder, and it hands the owner over in
    /// turn. For the same reason a new director plans a process that follows the owner already before any other.
    pub(super) fn plan_moves(&mut self) {
        let mut load = self.loads();
        let mut moves = BTreeMap::new();
        for (owner, (kind, holder)) in &self.owners {
            let member = self.members.get(holder);
            let drains =
                member.is_some_and(|member| member.beat.draining || member.beat.definitions == Definitions::Former);
            if member.is_some() && !drains {
                continue;
            }
            let is_able = |process: &ProcessId| {
                let member = self.members.get(process).filter(|_| process != holder);
                member.is_some_and(|member| member.takes(*kind) || member.follows(*owner, *kind))
            };
            let planned = self.moves.get(owner).copied().filter(is_able);
            // A former director may have planned it already.
            let follower = || self.follower(*owner, *kind).filter(|process| process != holder);
            let may_choose = drains && self.may_choose(*kind);
            let free = || {
                let free = self.least_loaded(*kind, &load).filter(|_| may_choose);
                free.filter(|process| process != holder)
            };
            if let Some(process) = planned.or_else(follower).or_else(free) {
                load.entry(process).or_default().add(self.entities_of(*owner));
                moves.insert(*owner, process);
            }
        }
        self.moves = moves;
    }

    /// Whether this director may choose the next holder of an owner that no process with a report follows. Clients of a
    /// base may have been sent to a process without a report; cells and the ledger have no clients.
    pub(super) fn may_choose(&self, kind: OwnerKind) -> bool {
        kind != OwnerKind::Base || self.has_listened(self.now)
    }

    /// A process that follows the owner, before others one that is at the end of its log.
    fn follower(&self, owner: OwnerId, kind: OwnerKind) -> Option<ProcessId> {
        let able = self.members.values().filter(|member| member.follows(owner, kind));
        let first = able.min_by_key(|member| !member.beat.follows.contains(&owner));
        first.map(|member| member.beat.process)
    }

    /// Whether a process reported the last time that it follows all of these.
    #[must_use]
    pub fn has_followed(&self, process: ProcessId, owners: &BTreeSet<OwnerId>) -> bool {
        let member = self.members.get(&process);
        member.is_some_and(|member| owners.is_subset(&member.beat.follows))
    }

    /// The owners that a process is to follow.
    pub fn to_follow(&self, process: ProcessId) -> impl Iterator<Item = OwnerId> {
        let planned = self.moves.iter().chain(self.staged.iter().flatten());
        let to_it = planned.filter(move |(_, to)| **to == process);
        to_it.map(|(owner, _)| *owner)
    }

    /// The owners that a process follows already, while this director has not listened for long enough to plan that again.
    pub fn to_keep_following(&self, now: Duration, process: ProcessId) -> impl Iterator<Item = OwnerId> {
        let member = self.members.get(&process).filter(|_| !self.has_listened(now));
        let follows = member
            .into_iter()
            .flat_map(|member| member.beat.follows.iter().chain(&member.beat.behind));
        follows.copied()
    }

    /// The owners that a draining process is to release, each with the client address of the process that follows it.
    pub fn to_hand_over(&self, process: ProcessId) -> impl Iterator<Item = (OwnerId, &str)> {
        self.moves.iter().filter_map(move |(owner, to)| {
            let (_, holder) = self.owners.get(owner)?;
            let follower = &self.members.get(to)?.beat;
            let is_ready = *holder == process && follower.follows.contains(owner);
            is_ready.then_some((*owner, follower.address.as_deref().unwrap_or_default()))
        })
    }

    /// Whether a draining process holds an owner that no other process can follow, as far as this director knows once it
    /// has all reports.
    #[must_use]
    pub fn is_alone(&self, process: ProcessId) -> bool {
        // The plans are of that time.
        self.has_listened(self.now) && self.owned(process).any(|owner| !self.moves.contains_key(&owner))
    }

    /// The processes that are to follow owners of a draining process, and are not ready.
    pub fn idle_followers(&self, draining: ProcessId) -> impl Iterator<Item = ProcessId> {
        let of_it = self
            .owned(draining)
            .filter_map(|owner| Some((owner, *self.moves.get(&owner)?)));
        let is_idle = |owner: OwnerId, process: &ProcessId| {
            let member = self.members.get(process);
            member.is_some_and(|member| !member.beat.follows.contains(&owner))
        };
        of_it.filter_map(move |(owner, process)| is_idle(owner, &process).then_some(process))
    }

    /// The draining processes that hold an owner which another process is ready to take over.
    pub fn draining_with_followers(&self) -> impl Iterator<Item = ProcessId> {
        let draining = self.members.values().filter(|member| member.beat.draining);
        let process = draining.map(|member| member.beat.process);
        process.filter(|process| self.to_hand_over(*process).next().is_some())
    }
}
