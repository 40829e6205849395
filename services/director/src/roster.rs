//! Which processes live, and what they hold (rule D2). Pure: time is an input.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use annals_ids::{OwnerId, OwnerKind, ProcessId};

/// A process that was silent for so long is taken for dead.
pub const SILENCE: Duration = Duration::from_secs(3);

/// What a process says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Beat {
    /// Which process.
    pub process: ProcessId,
    /// What owners it can hold; `None` for a service that holds none.
    pub holds: Option<OwnerKind>,
    /// Where clients reach it, if they do.
    pub address: Option<String>,
    /// The owners it holds.
    pub owners: Vec<OwnerId>,
    /// Whether it takes no new owners, because it is being drained.
    pub draining: bool,
}

/// A process that lives.
#[derive(Clone, Debug)]
struct Member {
    beat: Beat,
    heard: Duration,
}

/// What the director must do about a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// A process that can hold owners has none, or the realm lacks the one of a kind: make it and grant it.
    Found {
        /// Of which kind.
        kind: OwnerKind,
        /// To whom.
        process: ProcessId,
    },
    /// An owner has no live holder: grant it.
    Grant {
        /// Which owner.
        owner: OwnerId,
        /// To whom.
        process: ProcessId,
    },
}

/// The processes of a realm, as the leading director hears them.
#[derive(Clone, Debug, Default)]
pub struct Roster {
    members: BTreeMap<ProcessId, Member>,
    /// Who holds each owner, as the store has it.
    owners: BTreeMap<OwnerId, (OwnerKind, ProcessId)>,
    /// Until when nobody's silence means anything: this director has not listened for [`SILENCE`] yet, and there are owners
    /// whose holders it has not heard.
    learns_until: Duration,
}

impl Roster {
    /// Begins to listen, at `now` of the director's monotonic clock, with the grants that are in the store.
    #[must_use]
    pub fn new(now: Duration, owners: BTreeMap<OwnerId, (OwnerKind, ProcessId)>) -> Self {
        Self {
            members: BTreeMap::new(),
            learns_until: if owners.is_empty() { now } else { now + SILENCE },
            owners,
        }
    }

    /// Begins to listen in a realm that was stopped in order: nobody holds what the store says they held, so that no silence
    /// need be waited for.
    #[must_use]
    pub fn reopened(owners: BTreeMap<OwnerId, (OwnerKind, ProcessId)>) -> Self {
        Self {
            members: BTreeMap::new(),
            learns_until: Duration::ZERO,
            owners,
        }
    }

    /// A process was heard.
    pub fn hear(&mut self, now: Duration, beat: Beat) {
        self.members.insert(beat.process, Member { beat, heard: now });
    }

    /// A process said that it stops.
    pub fn leave(&mut self, process: ProcessId) {
        self.members.remove(&process);
    }

    /// An owner was granted.
    pub fn granted(&mut self, owner: OwnerId, kind: OwnerKind, process: ProcessId) {
        self.owners.insert(owner, (kind, process));
    }

    /// Where clients reach the holder of an owner now.
    #[must_use]
    pub fn address(&self, owner: OwnerId) -> Option<&str> {
        let (_, process) = self.owners.get(&owner)?;
        self.members.get(process)?.beat.address.as_deref()
    }

    /// The live processes that can hold owners of this kind.
    pub fn holders(&self, kind: OwnerKind) -> impl Iterator<Item = ProcessId> {
        let able = self
            .members
            .values()
            .filter(move |member| member.beat.holds == Some(kind));
        able.map(|member| member.beat.process)
    }

    /// The owners of this kind whose holder lives.
    pub fn live_owners(&self, kind: OwnerKind) -> impl Iterator<Item = OwnerId> {
        let held = self
            .owners
            .iter()
            .filter(move |(_, (held, process))| *held == kind && self.members.contains_key(process));
        held.map(|(owner, _)| *owner)
    }

    /// The first owner of this kind that was founded, whether or not its holder lives: the same for ever.
    #[must_use]
    pub fn first_owner(&self, kind: OwnerKind) -> Option<OwnerId> {
        let of_kind = self.owners.iter().find(|(_, (held, _))| *held == kind);
        of_kind.map(|(owner, _)| *owner)
    }

    /// What is to be done at `now`: owners without a live holder go to the least loaded process that can hold them;
    /// processes without an owner get one of their own. The caller carries it out in the store and reports it by
    /// [`Roster::granted`]; what fails is decided again.
    pub fn decide(&mut self, now: Duration) -> Vec<Decision> {
        self.members
            .retain(|_, member| now.saturating_sub(member.heard) < SILENCE);
        let listened = now >= self.learns_until;
        let mut load: BTreeMap<ProcessId, usize> = self.members.keys().map(|process| (*process, 0)).collect();
        let mut orphans = Vec::new();
        for (owner, (kind, process)) in &self.owners {
            match load.get_mut(process) {
                Some(held) => *held += 1,
                None => orphans.push((*owner, *kind)),
            }
        }
        let mut decisions = Vec::new();
        if listened {
            for (owner, kind) in orphans {
                if let Some(process) = self.least_loaded(kind, &load) {
                    *load.entry(process).or_default() += 1;
                    decisions.push(Decision::Grant { owner, process });
                }
            }
        }
        let mut founded = BTreeSet::new();
        for member in self.members.values().filter(|member| !member.beat.draining) {
            let process = member.beat.process;
            if let Some(kind) = member.beat.holds.filter(|_| load[&process] == 0) {
                let exists = self.owners.values().any(|(held, _)| *held == kind);
                // While owners may still turn out to be orphans, nobody gets a new one in their place.
                let waits = exists && (!listened || kind.is_single());
                if !waits && (founded.insert(kind) || !kind.is_single()) {
                    decisions.push(Decision::Found { kind, process });
                }
            }
        }
        decisions
    }

    /// The owner of this kind on which the fewest others of its process stand; ties go to the lowest.
    #[must_use]
    pub fn place(&self, kind: OwnerKind, counts: &BTreeMap<OwnerId, u64>) -> Option<OwnerId> {
        self.live_owners(kind)
            .min_by_key(|owner| (counts.get(owner).copied().unwrap_or(0), *owner))
    }

    /// Owners that a process says it holds although they are granted to another: it has not noticed yet.
    #[must_use]
    pub fn strays(&self) -> BTreeSet<(ProcessId, OwnerId)> {
        let claims = self
            .members
            .values()
            .flat_map(|member| member.beat.owners.iter().map(|owner| (member.beat.process, *owner)));
        claims
            .filter(|(process, owner)| self.owners.get(owner).is_none_or(|(_, holder)| holder != process))
            .collect()
    }

    fn least_loaded(&self, kind: OwnerKind, load: &BTreeMap<ProcessId, usize>) -> Option<ProcessId> {
        let able = self
            .members
            .values()
            .filter(|member| member.beat.holds == Some(kind) && !member.beat.draining);
        able.map(|member| member.beat.process)
            .min_by_key(|process| (load[process], *process))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn beat(process: u64, kind: OwnerKind) -> Beat {
        let process = ProcessId(process);
        Beat {
            process,
            holds: Some(kind),
            address: None,
            owners: Vec::new(),
            draining: false,
        }
    }

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn a_new_process_founds_an_owner_and_a_dead_ones_owner_goes_to_the_least_loaded() {
        let mut roster = Roster::new(seconds(0), BTreeMap::new());
        roster.hear(seconds(1), beat(1, OwnerKind::Cell));
        roster.hear(seconds(1), beat(2, OwnerKind::Cell));
        roster.hear(seconds(1), beat(3, OwnerKind::Base));
        let founds = roster.decide(seconds(1));
        assert_eq!(founds.len(), 3, "{founds:?}");
        for (owner, process) in [(10, 1), (11, 2), (12, 2)] {
            roster.granted(OwnerId(owner), OwnerKind::Cell, ProcessId(process));
        }
        roster.granted(OwnerId(20), OwnerKind::Base, ProcessId(3));
        assert_eq!(roster.decide(seconds(2)), []);

        for process in [1, 3] {
            roster.hear(
                seconds(5),
                beat(process, if process == 3 { OwnerKind::Base } else { OwnerKind::Cell }),
            );
        }
        let grant = |owner| Decision::Grant {
            owner: OwnerId(owner),
            process: ProcessId(1),
        };
        assert_eq!(
            roster.decide(seconds(5)),
            [grant(11), grant(12)],
            "process 2 was silent for four seconds"
        );
    }

    #[test]
    fn a_new_director_does_not_take_those_it_has_not_heard_yet_for_dead() {
        let owners = BTreeMap::from([(OwnerId(10), (OwnerKind::Cell, ProcessId(1)))]);
        let mut roster = Roster::new(seconds(100), owners);
        roster.hear(seconds(101), beat(2, OwnerKind::Cell));
        assert_eq!(roster.decide(seconds(101)), [], "process 1 may be alive");
        roster.hear(seconds(103), beat(2, OwnerKind::Cell));
        let grant = Decision::Grant {
            owner: OwnerId(10),
            process: ProcessId(2),
        };
        assert_eq!(roster.decide(seconds(103)), [grant]);
    }

    #[test]
    fn the_ledger_is_founded_once_and_passes_from_one_holder_to_the_next() {
        let mut roster = Roster::new(seconds(0), BTreeMap::new());
        for process in [1, 2] {
            roster.hear(seconds(1), beat(process, OwnerKind::Ledger));
        }
        let (kind, process) = (OwnerKind::Ledger, ProcessId(1));
        assert_eq!(roster.decide(seconds(1)), [Decision::Found { kind, process }]);
        roster.granted(OwnerId(7), kind, process);
        assert_eq!(roster.decide(seconds(2)), [], "process 2 gets none of its own");
        roster.hear(seconds(5), beat(2, kind));
        let grant = Decision::Grant {
            owner: OwnerId(7),
            process: ProcessId(2),
        };
        assert_eq!(roster.decide(seconds(5)), [grant]);
    }

    #[test]
    fn who_comes_late_to_a_new_realm_waits_for_nobody() {
        let mut roster = Roster::new(seconds(100), BTreeMap::new());
        roster.granted(OwnerId(10), OwnerKind::Cell, ProcessId(1));
        roster.hear(seconds(101), beat(1, OwnerKind::Cell));
        roster.hear(seconds(101), beat(2, OwnerKind::Cell));
        let found = Decision::Found {
            kind: OwnerKind::Cell,
            process: ProcessId(2),
        };
        assert_eq!(roster.decide(seconds(101)), [found]);
    }

    #[test]
    fn the_first_owner_stays_the_first_whoever_dies_and_comes() {
        let cell = (OwnerId(1), (OwnerKind::Cell, ProcessId(1)));
        let base = (OwnerId(2), (OwnerKind::Base, ProcessId(2)));
        let mut roster = Roster::new(seconds(0), BTreeMap::from([cell]));
        assert_eq!(roster.first_owner(OwnerKind::Base), None);
        roster.granted(base.0, OwnerKind::Base, ProcessId(2));
        roster.granted(OwnerId(3), OwnerKind::Base, ProcessId(3));
        roster.leave(ProcessId(2));
        roster.hear(seconds(9), beat(3, OwnerKind::Base));
        roster.decide(seconds(9));
        assert_eq!(roster.first_owner(OwnerKind::Base), Some(base.0));
        let next_director = Roster::new(seconds(20), BTreeMap::from([cell, base]));
        assert_eq!(next_director.first_owner(OwnerKind::Base), Some(base.0));
    }

    fn draining(process: u64, kind: OwnerKind) -> Beat {
        Beat {
            draining: true,
            ..beat(process, kind)
        }
    }

    #[test]
    fn a_draining_process_gets_nothing() {
        let mut roster = Roster::new(seconds(0), BTreeMap::new());
        roster.hear(seconds(1), draining(1, OwnerKind::Cell));
        assert_eq!(roster.decide(seconds(1)), []);
    }

    #[test]
    fn the_owners_of_a_dead_process_are_not_granted_to_a_draining_one() {
        let held = |owner, process| (OwnerId(owner), (OwnerKind::Cell, ProcessId(process)));
        let owners = [held(10, 1), held(11, 1), held(12, 3), held(13, 3), held(14, 3)];
        let mut roster = Roster::reopened(BTreeMap::from(owners));
        // Process 1 is not heard; process 2 holds nothing and drains.
        roster.hear(seconds(1), draining(2, OwnerKind::Cell));
        assert_eq!(
            roster.decide(seconds(1)).len(),
            0,
            "process 2 is alone: nobody takes what the others held"
        );
        roster.hear(seconds(1), beat(3, OwnerKind::Cell));
        let process = ProcessId(3);
        let grant = |owner| Decision::Grant {
            owner: OwnerId(owner),
            process,
        };
        assert_eq!(
            roster.decide(seconds(1)),
            [grant(10), grant(11)],
            "though it holds three"
        );
    }

    #[test]
    fn the_owners_of_a_process_that_leaves_are_granted_at_once() {
        let mut roster = Roster::new(seconds(0), BTreeMap::new());
        for process in [1, 2] {
            roster.hear(seconds(10), beat(process, OwnerKind::Base));
            roster.granted(OwnerId(process as u32), OwnerKind::Base, ProcessId(process));
        }
        assert_eq!(roster.decide(seconds(10)), []);
        roster.leave(ProcessId(1));
        let grant = Decision::Grant {
            owner: OwnerId(1),
            process: ProcessId(2),
        };
        assert_eq!(roster.decide(seconds(10)), [grant]);
    }

    #[test]
    fn a_process_that_claims_what_another_was_granted_is_a_stray() {
        let mut roster = Roster::new(seconds(0), BTreeMap::new());
        let claims = |process, owners: [u32; 2]| Beat {
            owners: owners.map(OwnerId).to_vec(),
            address: Some(format!("address {process}")),
            ..beat(process, OwnerKind::Cell)
        };
        roster.hear(seconds(1), claims(1, [10, 11]));
        roster.hear(seconds(1), claims(2, [11, 12]));
        roster.hear(seconds(1), beat(3, OwnerKind::Base));
        roster.granted(OwnerId(10), OwnerKind::Cell, ProcessId(1));
        roster.granted(OwnerId(11), OwnerKind::Cell, ProcessId(2));
        let strays = [(ProcessId(1), OwnerId(11)), (ProcessId(2), OwnerId(12))];
        assert_eq!(roster.strays(), strays.into(), "owner 12 was granted to nobody");
        assert_eq!(
            roster.address(OwnerId(11)),
            Some("address 2"),
            "where its holder is now"
        );
        assert_eq!(roster.address(OwnerId(12)), None);
        let cells: Vec<ProcessId> = roster.holders(OwnerKind::Cell).collect();
        assert_eq!(cells, [ProcessId(1), ProcessId(2)]);
    }

    #[test]
    fn a_process_is_alive_until_it_was_silent_for_the_whole_time() {
        let tick = Duration::from_nanos(1);
        let mut roster = Roster::new(seconds(0), BTreeMap::new());
        roster.hear(seconds(10), beat(1, OwnerKind::Base));
        roster.granted(OwnerId(7), OwnerKind::Base, ProcessId(1));
        let heard = |roster: &mut Roster, now| {
            roster.hear(now, beat(2, OwnerKind::Base));
            roster.granted(OwnerId(8), OwnerKind::Base, ProcessId(2));
        };
        let limit = seconds(10) + SILENCE;
        heard(&mut roster, limit - tick);
        assert_eq!(roster.decide(limit - tick), [], "it lives");
        assert_eq!(roster.live_owners(OwnerKind::Base).count(), 2);
        let grant = Decision::Grant {
            owner: OwnerId(7),
            process: ProcessId(2),
        };
        assert_eq!(roster.decide(limit), [grant], "it is taken for dead");
        assert_eq!(roster.live_owners(OwnerKind::Base).count(), 1);
        roster.granted(OwnerId(7), OwnerKind::Base, ProcessId(2));

        // A beat at the last moment counts for the whole time again.
        heard(&mut roster, limit);
        heard(&mut roster, limit + SILENCE - tick);
        assert_eq!(roster.decide(limit + SILENCE + SILENCE - tick - tick), []);
        assert_eq!(roster.live_owners(OwnerKind::Base).count(), 2);
    }

    #[test]
    fn a_new_director_listens_for_the_whole_time_before_it_takes_anybody_for_dead() {
        let tick = Duration::from_nanos(1);
        let owners = BTreeMap::from([(OwnerId(10), (OwnerKind::Cell, ProcessId(1)))]);
        let begun = seconds(100);
        let mut roster = Roster::new(begun, owners);
        let limit = begun + SILENCE;
        roster.hear(limit - tick, beat(2, OwnerKind::Cell));
        assert_eq!(roster.decide(limit - tick), []);
        let grant = Decision::Grant {
            owner: OwnerId(10),
            process: ProcessId(2),
        };
        assert_eq!(roster.decide(limit), [grant]);
    }
}
