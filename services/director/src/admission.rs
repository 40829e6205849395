//! Room for players in a realm with a limit: who may come in, and in which order login processes get room. Pure: time is
//! an input.
//!
//! The realm's players are the sessions that bases report, and the rooms that were given for further ones. A room is
//! counted until its session is in a base's report, or until the login process says that there will be none. So the
//! limit is not exceeded by log-ins that are under way.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;
use std::time::Duration;

use annals_ids::{Epoch, OwnerId, ProcessId, SessionId};

/// How long a room is counted without a further report: more than three times as long as a log-in takes, since a base
/// may still open the session after the login process has died.
pub const ROOM_KEPT: Duration = Duration::from_secs(30);

/// How long a login process that does not ask any more comes before others. The first client of a queue asks four times a
/// second.
pub const FRONT_KEPT: Duration = Duration::from_secs(3);

/// By how much longer a client of one process must have waited to come before one of another process. Without it, two
/// processes with long queues would take turns client by client, each waiting for the other to ask.
pub const SAME_TIME: Duration = Duration::from_secs(2);

/// Time that a director that begins allows for all base owners to be reported, also those whose holders have died and
/// that others take over. After it the sessions of the missing ones do not count.
pub const REPORTED_WITHIN: Duration = Duration::from_secs(60);

/// Maximum rooms counted at a time: log-ins in progress at sixteen login processes. Beyond that the realm counts as full.
pub const MAX_ROOMS: usize = 16_384;

/// A login process's request for room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoomRequest {
    pub process: ProcessId,
    /// Id of the room within the process; the same in a repeated request.
    pub room: u64,
    /// Whether the limit applies.
    pub waits: bool,
    /// For how long the client has waited as the first of its process's queue; `None` if it has just come.
    pub waited: Option<Duration>,
    /// Number of places in the queue of the process.
    pub waiting: u64,
}

/// A room that was given.
#[derive(Clone, Copy, Debug)]
struct Room {
    until: Duration,
    /// The session that was opened with it.
    session: Option<(OwnerId, SessionId)>,
}

/// What a base has reported of an owner.
#[derive(Clone, Copy, Debug)]
struct Report {
    epoch: Epoch,
    sessions: u64,
}

/// The first client in the queue of a login process.
#[derive(Clone, Copy, Debug)]
struct Front {
    /// When it came.
    since: Duration,
    /// When it asked last.
    asked: Duration,
    waiting: u64,
}

/// Who may come into a realm.
#[derive(Clone, Debug)]
pub struct Admission {
    limit: Option<NonZeroU32>,
    /// The base owners of which no holder has reported yet. Nobody is admitted before all have, as their sessions count.
    unreported: BTreeSet<OwnerId>,
    /// When players are admitted all the same.
    opens: Duration,
    reports: BTreeMap<OwnerId, Report>,
    rooms: BTreeMap<(ProcessId, u64), Room>,
    fronts: BTreeMap<ProcessId, Front>,
}

impl Admission {
    /// The admission of a realm with this limit of players, by a director that begins now. `bases` are the base owners
    /// that may have sessions: their holders have to report those first.
    #[must_use]
    pub fn new(now: Duration, limit: Option<NonZeroU32>, bases: BTreeSet<OwnerId>) -> Self {
        Self {
            limit,
            unreported: bases,
            opens: now + REPORTED_WITHIN,
            reports: BTreeMap::new(),
            rooms: BTreeMap::new(),
            fronts: BTreeMap::new(),
        }
    }

    /// The limit of players.
    #[must_use]
    pub fn limit(&self) -> Option<u64> {
        self.limit.map(|limit| u64::from(limit.get()))
    }

    /// Number of players: sessions, and rooms that were given for further ones.
    #[must_use]
    pub fn players(&self) -> u64 {
        let sessions: u64 = self.reports.values().map(|report| report.sessions).sum();
        sessions.saturating_add(self.rooms.len() as u64)
    }

    /// Number of clients that wait, by the newest reports of the login processes.
    #[must_use]
    pub fn waiting(&self) -> u64 {
        self.fronts.values().map(|front| front.waiting).sum()
    }

    /// A base reports the sessions of an owner that it holds in this epoch.
    pub fn reported(&mut self, owner: OwnerId, epoch: Epoch, sessions: u64, newest: SessionId) {
        if self.reports.get(&owner).is_some_and(|report| report.epoch > epoch) {
            return;
        }
        self.reports.insert(owner, Report { epoch, sessions });
        self.unreported.remove(&owner);
        // Session ids of an owner ascend: what was opened up to the newest one is counted, or has ended.
        self.rooms
            .retain(|_, room| room.session.is_none_or(|(on, session)| on != owner || session > newest));
    }

    /// Gives room for a player, or not. Idempotent per room.
    pub fn ask(&mut self, now: Duration, request: &RoomRequest) -> bool {
        let Some(limit) = self.limit() else { return true };
        self.expire(now);
        let key = (request.process, request.room);
        let has_room = self.rooms.contains_key(&key)
            || !request.waits
            || ((self.unreported.is_empty() || now >= self.opens)
                && self.players() < limit
                && self.rooms.len() < MAX_ROOMS
                && !self.has_others_before(now, request));
        if has_room {
            let room = Room {
                until: now + ROOM_KEPT,
                session: None,
            };
            // Exempt ones beyond that are counted once their sessions are reported.
            if self.rooms.len() < MAX_ROOMS {
                self.rooms.entry(key).or_insert(room);
            }
        }
        if let Some(waited) = request.waited {
            let front = Front {
                since: now.saturating_sub(waited),
                asked: now,
                waiting: request.waiting.saturating_sub(u64::from(has_room)),
            };
            // The next one of its queue came later, and asks at once.
            self.fronts.insert(request.process, front);
            self.fronts.retain(|_, front| front.waiting > 0);
        }
        has_room
    }

    /// A room is used by this session, or will not be used.
    pub fn settle(&mut self, process: ProcessId, room: u64, session: Option<(OwnerId, SessionId)>) {
        match (session, self.rooms.get_mut(&(process, room))) {
            (Some(session), Some(room)) => room.session = Some(session),
            (None, Some(_)) => drop(self.rooms.remove(&(process, room))),
            (_, None) => {}
        }
    }

    /// Whether a client in the queue of another process has waited longer; for one that has just come, whether any
    /// client waits.
    fn has_others_before(&self, now: Duration, request: &RoomRequest) -> bool {
        let Some(waited) = request.waited else {
            return !self.fronts.is_empty();
        };
        let since = now.saturating_sub(waited);
        let mut others = self.fronts.iter().filter(|(process, _)| **process != request.process);
        others.any(|(_, front)| front.since + SAME_TIME < since)
    }

    /// Forgets the rooms and queues without recent reports.
    pub fn expire(&mut self, now: Duration) {
        self.rooms.retain(|_, room| room.until > now);
        self.fronts.retain(|_, front| front.asked + FRONT_KEPT > now);
    }
}
