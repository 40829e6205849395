//! Membership: which processes are alive and which owners they hold (rule D2). Pure: time is an input.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use annals_ids::{OwnerId, OwnerKind, ProcessId};

/// A process that is silent for this long counts as dead.
pub const SILENCE: Duration = Duration::from_secs(3);

/// A process whose connection was closed counts as dead unless it is heard over another one within this time. A client
/// of NATS reconnects to another server within some tens of milliseconds.
pub const RECONNECTION: Duration = Duration::from_millis(100);

/// Maximum number of closed connections that are remembered: more than the processes of a realm. Of a forgotten one,
/// only the time that it saves is lost.
const CLOSED_LIMIT: usize = 4_096;

/// A process's report of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Beat {
    pub process: ProcessId,
    /// Kind of owner that it can hold; `None` for a service that holds none.
    pub holds: Option<OwnerKind>,
    /// Its address for clients, if it serves any.
    pub address: Option<String>,
    /// The owners that it holds, each with the number of its entities.
    pub owners: BTreeMap<OwnerId, u64>,
    /// Whether it takes no new owners, because it is being drained.
    pub draining: bool,
    /// The name of the connection over which it was sent.
    pub connection: String,
}

/// A live process.
#[derive(Clone, Debug)]
struct Member {
    beat: Beat,
    heard: Duration,
    /// Since when its connection is closed, as far as it was not heard over another one.
    closed: Option<Duration>,
}

/// The connections that nats-servers have reported as closed (rule E8).
#[derive(Clone, Debug, Default)]
pub struct ClosedConnections {
    names: BTreeSet<String>,
    order: VecDeque<String>,
}

impl ClosedConnections {
    /// Adds a connection.
    pub fn add(&mut self, connection: String) {
        if self.names.insert(connection.clone()) {
            self.order.push_back(connection);
        }
        if self.order.len() > CLOSED_LIMIT
            && let Some(oldest) = self.order.pop_front()
        {
            self.names.remove(&oldest);
        }
    }

    /// Whether a connection was reported as closed.
    #[must_use]
    pub fn contains(&self, connection: &str) -> bool {
        self.names.contains(connection)
    }
}

/// Load of a process. Entities come first: a process that has joined is granted an owner of its own at once, which is
/// empty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Load {
    entities: u64,
    owners: usize,
}

impl Load {
    fn add(&mut self, entities: u64) {
        self.entities += entities;
        self.owners += 1;
    }
}

/// An action for the director.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// A process that can hold owners has none, or the realm lacks the single owner of a kind: create an owner and
    /// grant it.
    CreateOwner {
        /// Kind of the owner.
        kind: OwnerKind,
        /// The process to grant it to.
        process: ProcessId,
    },
    /// An owner has no live holder: grant it.
    Grant {
        owner: OwnerId,
        /// The process to grant it to.
        process: ProcessId,
    },
}

/// The processes of a realm, from their heartbeats to the leading director.
#[derive(Clone, Debug, Default)]
pub struct Membership {
    members: BTreeMap<ProcessId, Member>,
    /// Kind and holder of each owner, as in the store.
    owners: BTreeMap<OwnerId, (OwnerKind, ProcessId)>,
    /// Entities of each owner at its holder's last heartbeat, plus those placed on it since.
    entities: BTreeMap<OwnerId, u64>,
    /// Until then silence proves nothing: this director has not listened for [`SILENCE`] yet, and there may be holders
    /// that it has not heard from.
    learns_until: Duration,
    closed: ClosedConnections,
}

impl Membership {
    /// Begins to listen, at `now` of the director's monotonic clock, with the grants that are in the store.
    #[must_use]
    pub fn new(now: Duration, owners: BTreeMap<OwnerId, (OwnerKind, ProcessId)>) -> Self {
        Self {
            members: BTreeMap::new(),
            entities: BTreeMap::new(),
            learns_until: if owners.is_empty() { now } else { now + SILENCE },
            owners,
            closed: ClosedConnections::default(),
        }
    }

    /// Begins to listen in a realm that was stopped in order: no process holds the owners that the store says it held,
    /// so there is no silence to wait for.
    #[must_use]
    pub fn reopened(owners: BTreeMap<OwnerId, (OwnerKind, ProcessId)>) -> Self {
        Self {
            members: BTreeMap::new(),
            entities: BTreeMap::new(),
            learns_until: Duration::ZERO,
            owners,
            closed: ClosedConnections::default(),
        }
    }

    /// The same with the connections that were reported as closed before.
    #[must_use]
    pub fn knowing(self, closed: ClosedConnections) -> Self {
        Self { closed, ..self }
    }

    /// Applies a process's heartbeat.
    pub fn hear(&mut self, now: Duration, beat: Beat) {
        let known = self.members.get(&beat.process);
        let closed = self
            .closed
            .contains(&beat.connection)
            .then(|| known.and_then(|member| member.closed));
        let closed = match closed {
            None => None,
            Some(Some(since)) => Some(since),
            // A heartbeat that was overtaken by the report of its sender's end.
            Some(None) => return,
        };
        self.entities.extend(&beat.owners);
        let heard = now;
        self.members.insert(beat.process, Member { beat, heard, closed });
    }

    /// Applies a nats-server's report that it has closed a connection (rule E8).
    pub fn disconnected(&mut self, now: Duration, connection: String) {
        let of_it = |member: &&mut Member| member.beat.connection == connection;
        if let Some(member) = self.members.values_mut().find(of_it) {
            member.closed.get_or_insert(now);
        }
        self.closed.add(connection);
    }

    /// The connections that were reported as closed.
    #[must_use]
    pub fn closed(&self) -> &ClosedConnections {
        &self.closed
    }

    /// Removes the processes that count as dead at `now`.
    pub fn expire(&mut self, now: Duration) {
        self.members.retain(|_, member| {
            let reconnects = member.closed.is_none_or(|since| now < since + RECONNECTION);
            reconnects && now.saturating_sub(member.heard) < SILENCE
        });
    }

    /// When a process whose connection is closed will count as dead; `None` if there is none.
    #[must_use]
    pub fn deadline(&self) -> Option<Duration> {
        let closed = self.members.values().filter_map(|member| member.closed);
        closed.min().map(|since| since + RECONNECTION)
    }

    /// Applies a process's notice that it stops.
    pub fn leave(&mut self, process: ProcessId) {
        self.members.remove(&process);
    }

    /// Applies a grant that the store has recorded.
    pub fn granted(&mut self, owner: OwnerId, kind: OwnerKind, process: ProcessId) {
        self.owners.insert(owner, (kind, process));
    }

    /// Address of the current holder of an owner, for clients.
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

    /// The owners of this kind whose holder is alive.
    pub fn live_owners(&self, kind: OwnerKind) -> impl Iterator<Item = OwnerId> {
        let held = self
            .owners
            .iter()
            .filter(move |(_, (held, process))| *held == kind && self.members.contains_key(process));
        held.map(|(owner, _)| *owner)
    }

    /// The first owner of this kind that was founded, whether or not its holder is alive. It never changes.
    #[must_use]
    pub fn first_owner(&self, kind: OwnerKind) -> Option<OwnerId> {
        let of_kind = self.owners.iter().find(|(_, (held, _))| *held == kind);
        of_kind.map(|(owner, _)| *owner)
    }

    /// Decides what to do at `now`: each owner without a live holder goes to the process of its kind with the fewest
    /// entities; processes without an owner get one of their own. The caller executes the decisions in the store and
    /// reports each by [`Membership::granted`]; those that fail are made again.
    pub fn decide(&mut self, now: Duration) -> Vec<Decision> {
        self.expire(now);
        let listened = now >= self.learns_until;
        let mut load: BTreeMap<ProcessId, Load> = self.members.keys().map(|id| (*id, Load::default())).collect();
        let mut orphans = Vec::new();
        for (owner, (kind, process)) in &self.owners {
            match load.get_mut(process) {
                Some(load) => load.add(self.entities_of(*owner)),
                None => orphans.push((*owner, *kind)),
            }
        }
        let mut decisions = Vec::new();
        if listened {
            for (owner, kind) in orphans {
                if let Some(process) = self.least_loaded(kind, &load) {
                    load.entry(process).or_default().add(self.entities_of(owner));
                    decisions.push(Decision::Grant { owner, process });
                }
            }
        }
        let mut founded = BTreeSet::new();
        for member in self.members.values().filter(|member| !member.beat.draining) {
            let process = member.beat.process;
            if let Some(kind) = member.beat.holds.filter(|_| load[&process].owners == 0) {
                let exists = self.owners.values().any(|(held, _)| *held == kind);
                // While owners may still turn out to be orphans, no process gets a new one in their place.
                let waits = exists && (!listened || kind.is_single());
                if !waits && (founded.insert(kind) || !kind.is_single()) {
                    decisions.push(Decision::CreateOwner { kind, process });
                }
            }
        }
        decisions
    }

    /// The owner of this kind with the fewest entities, on which one more will be created; ties go to the lowest id.
    /// The new entity is counted at once: many more may be placed before the heartbeat that reports it.
    pub fn place(&mut self, kind: OwnerKind) -> Option<OwnerId> {
        let owner = self
            .live_owners(kind)
            .min_by_key(|owner| (self.entities_of(*owner), *owner))?;
        *self.entities.entry(owner).or_default() += 1;
        Some(owner)
    }

    fn entities_of(&self, owner: OwnerId) -> u64 {
        self.entities.get(&owner).copied().unwrap_or(0)
    }

    /// The process with the fewest entities, then with the fewest owners. Ties go to the newest: when processes are
    /// replaced one by one, an older one is the next to leave.
    fn least_loaded(&self, kind: OwnerKind, load: &BTreeMap<ProcessId, Load>) -> Option<ProcessId> {
        let able = self
            .members
            .values()
            .filter(|member| member.beat.holds == Some(kind) && !member.beat.draining);
        able.map(|member| member.beat.process)
            .min_by_key(|process| (load[process], Reverse(*process)))
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
            owners: BTreeMap::new(),
            draining: false,
            connection: format!("server:{}", process.0),
        }
    }

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn a_new_process_founds_an_owner_and_a_dead_ones_owner_goes_to_the_least_loaded() {
        let mut membership = Membership::new(seconds(0), BTreeMap::new());
        membership.hear(seconds(1), beat(1, OwnerKind::Cell));
        membership.hear(seconds(1), beat(2, OwnerKind::Cell));
        membership.hear(seconds(1), beat(3, OwnerKind::Base));
        let founds = membership.decide(seconds(1));
        assert_eq!(founds.len(), 3, "{founds:?}");
        for (owner, process) in [(10, 1), (11, 2), (12, 2)] {
            membership.granted(OwnerId(owner), OwnerKind::Cell, ProcessId(process));
        }
        membership.granted(OwnerId(20), OwnerKind::Base, ProcessId(3));
        assert_eq!(membership.decide(seconds(2)), []);

        for process in [1, 3] {
            membership.hear(
                seconds(5),
                beat(process, if process == 3 { OwnerKind::Base } else { OwnerKind::Cell }),
            );
        }
        let grant = |owner| Decision::Grant {
            owner: OwnerId(owner),
            process: ProcessId(1),
        };
        assert_eq!(
            membership.decide(seconds(5)),
            [grant(11), grant(12)],
            "process 2 was silent for four seconds"
        );
    }

    /// A process with one owner, which has this many entities.
    fn holding(process: u64, owner: u32, entities: u64) -> Beat {
        Beat {
            owners: BTreeMap::from([(OwnerId(owner), entities)]),
            ..beat(process, OwnerKind::Cell)
        }
    }

    /// Processes 1 and 2 with an owner each, and process 3 that has just joined and been granted an empty one.
    fn joined(entities: [u64; 3]) -> Membership {
        let mut membership = Membership::new(seconds(0), BTreeMap::new());
        for ((process, owner), entities) in [(1, 11), (2, 12), (3, 13)].into_iter().zip(entities) {
            membership.granted(OwnerId(owner), OwnerKind::Cell, ProcessId(process));
            membership.hear(seconds(1), holding(process, owner, entities));
        }
        membership
    }

    fn granted_to(process: u64, owners: &[u32]) -> Vec<Decision> {
        let grant = |owner: &u32| Decision::Grant {
            owner: OwnerId(*owner),
            process: ProcessId(process),
        };
        owners.iter().map(grant).collect()
    }

    #[test]
    fn the_owner_of_a_process_that_leaves_or_dies_goes_to_the_one_that_has_just_joined() {
        let mut membership = joined([40, 50, 0]);
        membership.leave(ProcessId(2));
        assert_eq!(membership.decide(seconds(1)), granted_to(3, &[12]), "it left");

        let mut membership = joined([40, 50, 0]);
        membership.hear(seconds(4), holding(1, 11, 40));
        membership.hear(seconds(4), holding(3, 13, 0));
        assert_eq!(
            membership.decide(seconds(4)),
            granted_to(3, &[12]),
            "it was silent for 3 s"
        );
    }

    #[test]
    fn the_owners_of_a_process_are_shared_out_by_what_each_brings() {
        let mut membership = joined([40, 50, 0]);
        membership.granted(OwnerId(14), OwnerKind::Cell, ProcessId(2));
        membership.granted(OwnerId(15), OwnerKind::Cell, ProcessId(2));
        let owners = BTreeMap::from([(OwnerId(12), 50), (OwnerId(14), 5), (OwnerId(15), 20)]);
        membership.hear(
            seconds(1),
            Beat {
                owners,
                ..beat(2, OwnerKind::Cell)
            },
        );
        membership.leave(ProcessId(2));
        let decisions = [granted_to(3, &[12]), granted_to(1, &[14, 15])].concat();
        assert_eq!(membership.decide(seconds(1)), decisions);
    }

    #[test]
    fn a_process_whose_connection_is_closed_counts_as_dead_unless_it_reconnects() {
        let millis = Duration::from_millis;
        let closed_at = millis(1_050);
        let mut membership = joined([40, 50, 0]);
        membership.disconnected(closed_at, "server:2".to_owned());
        assert_eq!(membership.deadline(), Some(closed_at + RECONNECTION));
        assert_eq!(membership.decide(closed_at + millis(99)), []);
        assert_eq!(membership.decide(closed_at + RECONNECTION), granted_to(3, &[12]));
        assert_eq!(membership.deadline(), None);
        assert!(membership.closed().contains("server:2"));
        // A heartbeat that was under way does not bring it back.
        membership.hear(closed_at + RECONNECTION, holding(2, 12, 50));
        membership.granted(OwnerId(12), OwnerKind::Cell, ProcessId(3));
        assert_eq!(membership.live_owners(OwnerKind::Cell).count(), 3);
        membership.granted(OwnerId(12), OwnerKind::Cell, ProcessId(2));
        assert_eq!(membership.live_owners(OwnerKind::Cell).count(), 2, "it is dead");

        let mut membership = joined([40, 50, 0]);
        membership.disconnected(closed_at, "server:2".to_owned());
        // Sent before it was closed.
        membership.hear(closed_at + millis(10), holding(2, 12, 50));
        assert_eq!(membership.deadline(), Some(closed_at + RECONNECTION));
        let over_another = Beat {
            connection: "server:9".to_owned(),
            ..holding(2, 12, 50)
        };
        membership.hear(closed_at + millis(20), over_another);
        assert_eq!(membership.deadline(), None);
        assert_eq!(membership.decide(closed_at + RECONNECTION), []);
    }

    #[test]
    fn among_equals_the_newest_takes_over() {
        let mut membership = joined([0, 0, 0]);
        membership.leave(ProcessId(2));
        assert_eq!(membership.decide(seconds(1)), granted_to(3, &[12]));
    }

    #[test]
    fn log_ins_are_spread_before_the_next_beat() {
        let mut membership = Membership::new(seconds(0), BTreeMap::new());
        for (process, owner, entities) in [(1, OwnerId(11), 3), (2, OwnerId(12), 1)] {
            membership.granted(owner, OwnerKind::Base, ProcessId(process));
            let owners = BTreeMap::from([(owner, entities)]);
            membership.hear(
                seconds(1),
                Beat {
                    owners,
                    ..beat(process, OwnerKind::Base)
                },
            );
        }
        let placed: Vec<_> = (0..4).filter_map(|_| membership.place(OwnerKind::Base)).collect();
        assert_eq!(placed, [12, 12, 11, 12].map(OwnerId));
    }

    #[test]
    fn a_new_director_does_not_presume_unheard_processes_dead() {
        let owners = BTreeMap::from([(OwnerId(10), (OwnerKind::Cell, ProcessId(1)))]);
        let mut membership = Membership::new(seconds(100), owners);
        membership.hear(seconds(101), beat(2, OwnerKind::Cell));
        assert_eq!(membership.decide(seconds(101)), [], "process 1 may be alive");
        membership.hear(seconds(103), beat(2, OwnerKind::Cell));
        let grant = Decision::Grant {
            owner: OwnerId(10),
            process: ProcessId(2),
        };
        assert_eq!(membership.decide(seconds(103)), [grant]);
    }

    #[test]
    fn the_ledger_is_founded_once_and_passes_from_one_holder_to_the_next() {
        let mut membership = Membership::new(seconds(0), BTreeMap::new());
        for process in [1, 2] {
            membership.hear(seconds(1), beat(process, OwnerKind::Ledger));
        }
        let (kind, process) = (OwnerKind::Ledger, ProcessId(1));
        assert_eq!(membership.decide(seconds(1)), [Decision::CreateOwner { kind, process }]);
        membership.granted(OwnerId(7), kind, process);
        assert_eq!(membership.decide(seconds(2)), [], "process 2 gets none of its own");
        membership.hear(seconds(5), beat(2, kind));
        let grant = Decision::Grant {
            owner: OwnerId(7),
            process: ProcessId(2),
        };
        assert_eq!(membership.decide(seconds(5)), [grant]);
    }

    #[test]
    fn a_late_process_of_a_new_realm_founds_an_owner_at_once() {
        let mut membership = Membership::new(seconds(100), BTreeMap::new());
        membership.granted(OwnerId(10), OwnerKind::Cell, ProcessId(1));
        membership.hear(seconds(101), beat(1, OwnerKind::Cell));
        membership.hear(seconds(101), beat(2, OwnerKind::Cell));
        let found = Decision::CreateOwner {
            kind: OwnerKind::Cell,
            process: ProcessId(2),
        };
        assert_eq!(membership.decide(seconds(101)), [found]);
    }

    #[test]
    fn the_first_owner_stays_first_across_failures() {
        let cell = (OwnerId(1), (OwnerKind::Cell, ProcessId(1)));
        let base = (OwnerId(2), (OwnerKind::Base, ProcessId(2)));
        let mut membership = Membership::new(seconds(0), BTreeMap::from([cell]));
        assert_eq!(membership.first_owner(OwnerKind::Base), None);
        membership.granted(base.0, OwnerKind::Base, ProcessId(2));
        membership.granted(OwnerId(3), OwnerKind::Base, ProcessId(3));
        membership.leave(ProcessId(2));
        membership.hear(seconds(9), beat(3, OwnerKind::Base));
        membership.decide(seconds(9));
        assert_eq!(membership.first_owner(OwnerKind::Base), Some(base.0));
        let next_director = Membership::new(seconds(20), BTreeMap::from([cell, base]));
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
        let mut membership = Membership::new(seconds(0), BTreeMap::new());
        membership.hear(seconds(1), draining(1, OwnerKind::Cell));
        assert_eq!(membership.decide(seconds(1)), []);
    }

    #[test]
    fn the_owners_of_a_dead_process_are_not_granted_to_a_draining_one() {
        let held = |owner, process| (OwnerId(owner), (OwnerKind::Cell, ProcessId(process)));
        let owners = [held(10, 1), held(11, 1), held(12, 3), held(13, 3), held(14, 3)];
        let mut membership = Membership::reopened(BTreeMap::from(owners));
        // Process 1 is not heard from; process 2 holds nothing and is draining.
        membership.hear(seconds(1), draining(2, OwnerKind::Cell));
        assert_eq!(
            membership.decide(seconds(1)).len(),
            0,
            "process 2 is alone: no process takes the owners of the others"
        );
        membership.hear(seconds(1), beat(3, OwnerKind::Cell));
        let process = ProcessId(3);
        let grant = |owner| Decision::Grant {
            owner: OwnerId(owner),
            process,
        };
        assert_eq!(
            membership.decide(seconds(1)),
            [grant(10), grant(11)],
            "though it holds three"
        );
    }

    #[test]
    fn the_owners_of_a_process_that_leaves_are_granted_at_once() {
        let mut membership = Membership::new(seconds(0), BTreeMap::new());
        for process in [1, 2] {
            membership.hear(seconds(10), beat(process, OwnerKind::Base));
            membership.granted(OwnerId(process as u32), OwnerKind::Base, ProcessId(process));
        }
        assert_eq!(membership.decide(seconds(10)), []);
        membership.leave(ProcessId(1));
        let grant = Decision::Grant {
            owner: OwnerId(1),
            process: ProcessId(2),
        };
        assert_eq!(membership.decide(seconds(10)), [grant]);
    }

    #[test]
    fn a_process_that_claims_what_another_was_granted_is_a_stray() {
        let mut membership = Membership::new(seconds(0), BTreeMap::new());
        let claims = |process, owners: [u32; 2]| Beat {
            owners: owners.map(|owner| (OwnerId(owner), 0)).into(),
            address: Some(format!("address {process}")),
            ..beat(process, OwnerKind::Cell)
        };
        membership.hear(seconds(1), claims(1, [10, 11]));
        membership.hear(seconds(1), claims(2, [11, 12]));
        membership.hear(seconds(1), beat(3, OwnerKind::Base));
        membership.granted(OwnerId(10), OwnerKind::Cell, ProcessId(1));
        membership.granted(OwnerId(11), OwnerKind::Cell, ProcessId(2));
        assert_eq!(
            membership.address(OwnerId(11)),
            Some("address 2"),
            "where its holder is now"
        );
        assert_eq!(membership.address(OwnerId(12)), None);
        let cells: Vec<ProcessId> = membership.holders(OwnerKind::Cell).collect();
        assert_eq!(cells, [ProcessId(1), ProcessId(2)]);
    }

    #[test]
    fn a_process_is_alive_until_the_silence_limit() {
        let tick = Duration::from_nanos(1);
        let mut membership = Membership::new(seconds(0), BTreeMap::new());
        membership.hear(seconds(10), beat(1, OwnerKind::Base));
        membership.granted(OwnerId(7), OwnerKind::Base, ProcessId(1));
        let heard = |membership: &mut Membership, now| {
            membership.hear(now, beat(2, OwnerKind::Base));
            membership.granted(OwnerId(8), OwnerKind::Base, ProcessId(2));
        };
        let limit = seconds(10) + SILENCE;
        heard(&mut membership, limit - tick);
        assert_eq!(membership.decide(limit - tick), [], "it lives");
        assert_eq!(membership.live_owners(OwnerKind::Base).count(), 2);
        let grant = Decision::Grant {
            owner: OwnerId(7),
            process: ProcessId(2),
        };
        assert_eq!(membership.decide(limit), [grant], "it is taken for dead");
        assert_eq!(membership.live_owners(OwnerKind::Base).count(), 1);
        membership.granted(OwnerId(7), OwnerKind::Base, ProcessId(2));

        // A heartbeat at the last moment counts for the whole time again.
        heard(&mut membership, limit);
        heard(&mut membership, limit + SILENCE - tick);
        assert_eq!(membership.decide(limit + SILENCE + SILENCE - tick - tick), []);
        assert_eq!(membership.live_owners(OwnerKind::Base).count(), 2);
    }

    #[test]
    fn a_new_director_waits_the_full_silence_before_a_process_counts_as_dead() {
        let tick = Duration::from_nanos(1);
        let owners = BTreeMap::from([(OwnerId(10), (OwnerKind::Cell, ProcessId(1)))]);
        let begun = seconds(100);
        let mut membership = Membership::new(begun, owners);
        let limit = begun + SILENCE;
        membership.hear(limit - tick, beat(2, OwnerKind::Cell));
        assert_eq!(membership.decide(limit - tick), []);
        let grant = Decision::Grant {
            owner: OwnerId(10),
            process: ProcessId(2),
        };
        assert_eq!(membership.decide(limit), [grant]);
    }
}
