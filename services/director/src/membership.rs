//! Membership: which processes are alive and which owners they hold (rule D2). Pure: time is an input.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use annals_ids::{OwnerId, OwnerKind, ProcessId};
use annals_wire::SpaceMap;

mod moves;
mod staging;

pub use staging::Unready;

/// A process that is silent for this long counts as dead.
pub const SILENCE: Duration = Duration::from_secs(3);

/// A process whose connection was closed counts as dead unless a beat arrives over another one within this time. A client
/// of NATS reconnects to another server within some tens of milliseconds.
pub const RECONNECTION: Duration = Duration::from_millis(100);

/// Maximum number of closed connections that are remembered: more than the processes of a realm. Forgetting one only
/// delays the detection of its process's death.
const CLOSED_LIMIT: usize = 4_096;

/// Beats over an already replaced connection that prove that two processes have one number. A process never returns to
/// a connection; one beat may be overtaken by its sender's reconnection.
const MOST_RETURNS: u32 = 2;

/// A process reports under the number of another one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "two processes report as process {process}, over connections {present} and {refused}: a machine with a running \
     process was probably copied or restored from a snapshot; the process on connection {refused} must end. Start \
     processes of a realm on each machine, and do not copy machines while they run"
)]
pub struct Duplicate {
    pub process: ProcessId,
    /// The connection of the process that keeps the number.
    pub present: String,
    /// That of the other one.
    pub refused: String,
}

/// Which of the realm's definitions a process was started with (rule M7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Definitions {
    /// The realm's.
    Present,
    /// Those that the realm is to change to.
    Next,
    /// Any other definitions: the process cannot hold owners.
    Former,
}

/// A process's report of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Beat {
    pub process: ProcessId,
    pub definitions: Definitions,
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
    /// The owners that it follows, and could take over in a moment.
    pub follows: BTreeSet<OwnerId>,
    /// The owners that it follows, and is not at the end of the logs of.
    pub behind: BTreeSet<OwnerId>,
    /// The owners that it was granted and has released.
    pub released: BTreeSet<OwnerId>,
}

/// A live process.
#[derive(Clone, Debug)]
struct Member {
    beat: Beat,
    last_beat: Duration,
    /// Since when its connection is closed, as long as no beat arrives over another one.
    closed: Option<Duration>,
    /// The connection before the present one, and how often a beat arrived over it again since.
    former: Option<String>,
    returns: u32,
}

impl Member {
    /// Whether it can be granted owners of this kind.
    fn takes(&self, kind: OwnerKind) -> bool {
        self.takes_any() && self.beat.holds == Some(kind)
    }

    /// Whether it can be granted owners.
    fn takes_any(&self) -> bool {
        self.beat.definitions == Definitions::Present && !self.beat.draining
    }

    /// Whether it follows this owner and can take it over, even if it drains.
    fn follows(&self, owner: OwnerId, kind: OwnerKind) -> bool {
        let is_of_kind = self.beat.holds == Some(kind) && self.beat.definitions == Definitions::Present;
        is_of_kind && (self.beat.follows.contains(&owner) || self.beat.behind.contains(&owner))
    }
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
    /// whose beats it has not received.
    learns_until: Duration,
    /// When the last report arrived, or something was decided.
    now: Duration,
    closed: ClosedConnections,
    /// The owners of draining processes, and the process that is to follow each (rule D9).
    moves: BTreeMap<OwnerId, ProcessId>,
    /// While a change of definitions is prepared: the process of the next definitions that follows each owner.
    staged: Option<BTreeMap<OwnerId, ProcessId>>,
    /// The connections of the holders: as in the store when this director began to listen, or as reported since; empty
    /// for one that has released the owner, or has left.
    connections: BTreeMap<OwnerId, String>,
}

impl Membership {
    /// Begins to listen, at `now` of the director's monotonic clock, with the grants that are in the store.
    #[must_use]
    pub fn new(now: Duration, owners: BTreeMap<OwnerId, (OwnerKind, ProcessId)>) -> Self {
        Self {
            members: BTreeMap::new(),
            entities: BTreeMap::new(),
            learns_until: if owners.is_empty() { now } else { now + SILENCE },
            now,
            owners,
            closed: ClosedConnections::default(),
            moves: BTreeMap::new(),
            staged: None,
            connections: BTreeMap::new(),
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
            now: Duration::ZERO,
            owners,
            closed: ClosedConnections::default(),
            moves: BTreeMap::new(),
            staged: None,
            connections: BTreeMap::new(),
        }
    }

    /// Sets the connections that were reported as closed before, and those of the last holders as in the store: a holder
    /// whose connection is closed need not be listened for.
    #[must_use]
    pub fn knowing(self, closed: ClosedConnections, connections: BTreeMap<OwnerId, String>) -> Self {
        Self {
            closed,
            connections,
            ..self
        }
    }

    /// Checks that no other process reports under the number of the one that sends this heartbeat.
    ///
    /// # Errors
    /// When one does: the heartbeat is not applied, and its sender is to end.
    pub fn check(&self, beat: &Beat) -> Result<(), Duplicate> {
        self.track(beat).map(drop)
    }

    /// Applies a process's heartbeat, unless [`Self::check`] refuses it.
    pub fn receive(&mut self, now: Duration, beat: Beat) {
        let Ok((former, returns)) = self.track(&beat) else {
            return;
        };
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
        // It goes on to report what other processes hold by now.
        let of_it = |owner: &&OwnerId| {
            self.owners
                .get(owner)
                .is_some_and(|(_, holder)| *holder == beat.process)
        };
        let released = beat.released.iter().filter(of_it);
        self.connections.extend(released.map(|owner| (*owner, String::new())));
        self.now = now;
        let last_beat = now;
        self.members.insert(
            beat.process,
            Member {
                beat,
                last_beat,
                closed,
                former,
                returns,
            },
        );
        self.plan_moves();
        self.plan_staging();
    }

    /// The connection before that of this beat, and how often beats arrived over a connection that had been replaced.
    fn track(&self, beat: &Beat) -> Result<(Option<String>, u32), Duplicate> {
        let Some(known) = self.members.get(&beat.process) else {
            return Ok((None, 0));
        };
        if known.beat.connection == beat.connection {
            return Ok((known.former.clone(), known.returns));
        }
        let present = known.beat.connection.clone();
        let is_return = known.former.as_ref() == Some(&beat.connection);
        let returns = if is_return { known.returns + 1 } else { 0 };
        if returns < MOST_RETURNS {
            return Ok((Some(present), returns));
        }
        Err(Duplicate {
            process: beat.process,
            present,
            refused: beat.connection.clone(),
        })
    }

    /// The owners that are granted to a process.
    pub fn owned(&self, process: ProcessId) -> impl Iterator<Item = OwnerId> {
        let of_it = self.owners.iter().filter(move |(_, (_, holder))| *holder == process);
        of_it.map(|(owner, _)| *owner)
    }

    /// Whether this director has listened for so long that every live process has sent a beat.
    #[must_use]
    pub fn has_listened(&self, now: Duration) -> bool {
        now >= self.learns_until
    }

    /// Whether a process counts as alive.
    #[must_use]
    pub fn is_alive(&self, process: ProcessId) -> bool {
        self.members.contains_key(&process)
    }

    /// The kind of owner that a live process can hold; `None` if there is no such process, or it holds none.
    #[must_use]
    pub fn kind_of(&self, process: ProcessId) -> Option<OwnerKind> {
        self.members.get(&process)?.beat.holds
    }

    /// Whether another process that does not drain can hold owners of this kind.
    #[must_use]
    pub fn has_other(&self, kind: OwnerKind, process: ProcessId) -> bool {
        let mut others = self.members.values().filter(|member| member.beat.process != process);
        others.any(|member| member.takes(kind))
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

    /// Takes a pause of this director that has ended at `now` off every silence: it could receive nothing.
    pub fn skip(&mut self, now: Duration, pause: Duration) {
        if self.learns_until > now.saturating_sub(pause) {
            self.learns_until += pause;
        }
        for member in self.members.values_mut() {
            // Its report may have arrived after the pause.
            member.last_beat = now.min(member.last_beat + pause);
            member.closed = member.closed.map(|since| now.min(since + pause));
        }
    }

    /// Removes the processes that count as dead at `now`.
    pub fn expire(&mut self, now: Duration) {
        self.members.retain(|_, member| {
            let reconnects = member.closed.is_none_or(|since| now < since + RECONNECTION);
            reconnects && now.saturating_sub(member.last_beat) < SILENCE
        });
    }

    /// When a process whose connection is closed will count as dead; `None` if there is none.
    #[must_use]
    pub fn deadline(&self) -> Option<Duration> {
        let closed = self.members.values().filter_map(|member| member.closed);
        closed.min().map(|since| since + RECONNECTION)
    }

    /// Applies a process's notice that it stops. A process that has not reported to this director may be planned to
    /// hold its owners.
    pub fn leave(&mut self, process: ProcessId) {
        let owned: Vec<OwnerId> = self.owned(process).collect();
        self.connections
            .extend(owned.into_iter().map(|owner| (owner, String::new())));
        self.members.remove(&process);
    }

    /// Applies a grant that the store has recorded.
    pub fn granted(&mut self, owner: OwnerId, kind: OwnerKind, process: ProcessId) {
        // The reported release belonged to an earlier epoch.
        if let Some(member) = self.members.get_mut(&process) {
            member.beat.released.remove(&owner);
        }
        self.owners.insert(owner, (kind, process));
        match self.members.get(&process) {
            Some(member) => self.connections.insert(owner, member.beat.connection.clone()),
            None => self.connections.remove(&owner),
        };
        // A process that drains hands over at once what it has just been granted.
        self.plan_moves();
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

    /// All owners of this kind, whether or not their holders are alive.
    pub fn owners(&self, kind: OwnerKind) -> impl Iterator<Item = OwnerId> {
        let of_kind = self.owners.iter().filter(move |(_, (held, _))| *held == kind);
        of_kind.map(|(owner, _)| *owner)
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
        self.owners(kind).next()
    }

    /// Names all owners in a map, and the base owner on which the realm begins. What the map has stays: a new leader may
    /// not have reports of all owners yet. Returns whether anything was added.
    pub fn name_owners(&self, map: &mut SpaceMap) -> bool {
        let before = (map.bootstrap, map.bases.len(), map.cells.len());
        map.bootstrap = map.bootstrap.or_else(|| self.first_owner(OwnerKind::Base));
        map.bases.extend(self.owners(OwnerKind::Base));
        map.cells.extend(self.owners(OwnerKind::Cell));
        before != (map.bootstrap, map.bases.len(), map.cells.len())
    }

    /// Decides what to do at `now`: each owner without a live holder goes to the process of its kind with the fewest
    /// entities; processes without an owner get one of their own. The caller executes the decisions in the store and
    /// reports each by [`Membership::granted`]; those that fail are made again.
    pub fn decide(&mut self, now: Duration) -> Vec<Decision> {
        self.now = now;
        self.expire(now);
        self.plan_moves();
        self.plan_staging();
        let listened = self.has_listened(now);
        let mut load = self.loads();
        let mut orphans = Vec::new();
        let mut decisions = Vec::new();
        for (owner, (kind, holder)) in &self.owners {
            match self.members.get(holder) {
                None => orphans.push((*owner, *kind)),
                Some(member) if member.beat.released.contains(owner) => {
                    // If nothing is to take it, a change of definitions was abandoned after the release.
                    let process = self.moves.get(owner).copied();
                    let process = process.or_else(|| member.takes(*kind).then_some(*holder));
                    if let Some(process) = process {
                        load.entry(process).or_default().add(self.entities_of(*owner));
                        decisions.push(Decision::Grant { owner: *owner, process });
                    }
                }
                Some(_) => {}
            }
        }
        for (owner, kind) in orphans {
            let connection = self.connections.get(&owner);
            let has_ended = connection.is_some_and(|name| name.is_empty() || self.closed.contains(name));
            let is_released = connection.is_some_and(String::is_empty);
            // A planned process may not be ready at this moment, but clients connect to it. One that has not reported
            // may be planned to hold a released owner.
            let next = self.moves.get(&owner).copied();
            let may_choose = self.may_choose(kind) || !is_released;
            let free = || self.least_loaded(kind, &load).filter(|_| may_choose);
            if (listened || has_ended)
                && let Some(process) = next.or_else(free)
            {
                load.entry(process).or_default().add(self.entities_of(owner));
                decisions.push(Decision::Grant { owner, process });
            }
        }
        let mut founded = BTreeSet::new();
        for member in self.members.values().filter(|member| member.takes_any()) {
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

    /// The load of each process.
    fn loads(&self) -> BTreeMap<ProcessId, Load> {
        let mut load: BTreeMap<ProcessId, Load> = self.members.keys().map(|id| (*id, Load::default())).collect();
        for (owner, (_, process)) in &self.owners {
            if let Some(load) = load.get_mut(process) {
                load.add(self.entities_of(*owner));
            }
        }
        load
    }

    /// Whether a process takes no new owners, because it is being drained.
    #[must_use]
    pub fn is_draining(&self, process: ProcessId) -> bool {
        self.members.get(&process).is_some_and(|member| member.beat.draining)
    }

    /// The number of entities of an owner, at its holder's last heartbeat.
    #[must_use]
    pub fn entities_of(&self, owner: OwnerId) -> u64 {
        self.entities.get(&owner).copied().unwrap_or(0)
    }

    /// The process with the fewest entities, then with the fewest owners. Ties go to the newest: when processes are
    /// replaced one by one, an older one is the next to leave.
    fn least_loaded(&self, kind: OwnerKind, load: &BTreeMap<ProcessId, Load>) -> Option<ProcessId> {
        self.least_loaded_of(load, |member| member.takes(kind))
    }

    /// The least loaded of some processes.
    fn least_loaded_of(
        &self,
        load: &BTreeMap<ProcessId, Load>,
        is_able: impl Fn(&Member) -> bool,
    ) -> Option<ProcessId> {
        let able = self.members.values().filter(|member| is_able(member));
        able.map(|member| member.beat.process)
            .min_by_key(|process| (load[process], Reverse(*process)))
    }
}

#[cfg(test)]
mod tests;
