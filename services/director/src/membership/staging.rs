//! A change of definitions: which process of the next definitions follows each owner, and whether all owners can be
//! released and have been (rule M7).

use std::collections::BTreeMap;
use std::time::Duration;

use annals_ids::{OwnerId, OwnerKind, ProcessId};
use thiserror::Error;

use super::{Definitions, Member, Membership};

/// What keeps the owners from being released for a change of definitions.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Unready {
    /// This director does not have reports from all processes yet.
    #[error("the director has just begun to lead and does not have reports from all processes")]
    Listening,
    /// No process with the next definitions can hold owners of this kind.
    #[error("no {0} process with the new definitions is running: start one")]
    NoProcess(OwnerKind),
    /// The owner has no holder that is alive.
    #[error("owner {0} is not held: it is being taken over")]
    NotHeld(OwnerId),
    /// The process drains.
    #[error("process {0} drains: wait until it has ended")]
    Drains(ProcessId),
    /// No process with the next definitions has read the owner's log to its end.
    #[error("owner {0} is not followed to the end of its log yet")]
    NotFollowed(OwnerId),
}

/// Whether processes of the next definitions follow owners of this kind. The ledger's owner is held by db, which changes
/// definitions itself.
fn is_followed(kind: OwnerKind) -> bool {
    match kind {
        OwnerKind::Base | OwnerKind::Cell => true,
        OwnerKind::Ledger => false,
    }
}

impl Membership {
    /// Begins or ends planning which process of the next definitions follows each owner.
    pub fn stage(&mut self, is_staged: bool) {
        self.staged = is_staged.then(BTreeMap::new);
        self.plan_staging();
    }

    pub(super) fn plan_staging(&mut self) {
        let Some(former) = self.staged.take() else { return };
        let mut load = self.loads();
        let mut staged = BTreeMap::new();
        for (owner, (kind, _)) in self.owners.iter().filter(|(_, (kind, _))| is_followed(*kind)) {
            let is_able = |member: &Member| could_take(member, *kind);
            let planned = former.get(owner).copied();
            let planned = planned.filter(|process| self.members.get(process).is_some_and(is_able));
            if let Some(process) = planned.or_else(|| self.least_loaded_of(&load, is_able)) {
                load.entry(process).or_default().add(self.entities_of(*owner));
                staged.insert(*owner, process);
            }
        }
        self.staged = Some(staged);
    }

    /// What keeps the owners from being released now; nothing if they can be.
    #[must_use]
    pub fn unready(&self, now: Duration) -> Vec<Unready> {
        let mut unready = Vec::new();
        if !self.has_listened(now) {
            unready.push(Unready::Listening);
        }
        for kind in OwnerKind::ALL.into_iter().filter(|kind| is_followed(*kind)) {
            if !self.members.values().any(|member| could_take(member, kind)) {
                unready.push(Unready::NoProcess(kind));
            }
        }
        for (owner, (kind, holder)) in &self.owners {
            let Some(member) = self.members.get(holder) else {
                unready.push(Unready::NotHeld(*owner));
                continue;
            };
            if member.beat.draining {
                unready.push(Unready::Drains(*holder));
            } else if !member.beat.owners.contains_key(owner) {
                unready.push(Unready::NotHeld(*owner));
            } else if is_followed(*kind) && self.staged_follower(*owner).is_none() {
                unready.push(Unready::NotFollowed(*owner));
            }
        }
        unready.dedup();
        unready
    }

    /// The owners that no process of the next definitions is ready to take over.
    pub fn unfollowed(&self) -> impl Iterator<Item = OwnerId> {
        let followed = self.owners.iter().filter(|(_, (kind, _))| is_followed(*kind));
        let unfollowed = followed.filter(|(owner, _)| self.staged_follower(**owner).is_none());
        unfollowed.map(|(owner, _)| *owner)
    }

    /// The process of the next definitions that is ready to take the owner over.
    fn staged_follower(&self, owner: OwnerId) -> Option<&Member> {
        let process = self.staged.as_ref()?.get(&owner)?;
        self.members
            .get(process)
            .filter(|member| member.beat.follows.contains(&owner))
    }

    /// The owners that a process is to release for a change of definitions, each with the client address of the process
    /// that follows it; empty if there is none.
    pub fn to_release(&self, process: ProcessId) -> impl Iterator<Item = (OwnerId, &str)> {
        self.owned(process).map(|owner| {
            let address = self
                .staged_follower(owner)
                .and_then(|member| member.beat.address.as_deref());
            (owner, address.unwrap_or_default())
        })
    }

    /// The owners that their holders have not released, or whose holders are not alive.
    pub fn unreleased(&self) -> impl Iterator<Item = (OwnerId, ProcessId)> {
        let unreleased = self.owners.iter().filter(|(owner, (_, holder))| {
            let member = self.members.get(holder);
            !member.is_some_and(|member| member.beat.released.contains(owner))
        });
        unreleased.map(|(owner, (_, holder))| (*owner, *holder))
    }

    /// The live processes that hold owners or have released them.
    pub fn holding(&self) -> impl Iterator<Item = ProcessId> {
        self.members
            .keys()
            .copied()
            .filter(|process| self.owned(*process).next().is_some())
    }

    /// Whether a process was started with definitions that the realm neither has nor is to change to.
    #[must_use]
    pub fn is_former(&self, process: ProcessId) -> bool {
        let member = self.members.get(&process);
        member.is_some_and(|member| member.beat.definitions == Definitions::Former)
    }

    /// Whether a process was started with the definitions to which the realm is to change.
    #[must_use]
    pub fn is_next(&self, process: ProcessId) -> bool {
        let member = self.members.get(&process);
        member.is_some_and(|member| member.beat.definitions == Definitions::Next)
    }

    /// Applies the change: the next definitions are the present ones now, and the owners that were released for it go to
    /// their followers.
    pub fn definitions_changed(&mut self) {
        for member in self.members.values_mut() {
            member.beat.definitions = match member.beat.definitions {
                Definitions::Next => Definitions::Present,
                Definitions::Present | Definitions::Former => Definitions::Former,
            };
        }
        self.moves = self.staged.take().unwrap_or_default();
        self.plan_moves();
    }

    /// Forgets what was released for a change that was abandoned, until the holders report it again.
    pub fn change_abandoned(&mut self) {
        self.staged = None;
        for member in self.members.values_mut().filter(|member| !member.beat.draining) {
            member.beat.released.clear();
        }
    }
}

/// Whether a process could take over owners of this kind after the change.
fn could_take(member: &Member, kind: OwnerKind) -> bool {
    member.beat.definitions == Definitions::Next && member.beat.holds == Some(kind) && !member.beat.draining
}
