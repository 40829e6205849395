//! One log-in, from its credentials to its ticket.

use std::time::Duration;

use annals_ids::{DatabaseId, Hash, OwnerId};
use annals_node::{ConnectionId, time::Mono};
use annals_wire::client::{Located, Secret};

use crate::{
    input::{AskId, Checkout, RoomId},
    places::PlaceNumber,
    turns::Host,
};

/// Time limit of a whole log-in: a second less than the client waits, so that the client gets the reason for a failure.
pub const LOGIN_WITHIN: Duration = Duration::from_secs(9);

/// Time to wait for an answer before a request is repeated. All requests are idempotent but the first: it costs a
/// password hash, and is sent once.
pub const TIMEOUT: Duration = Duration::from_secs(1);

/// Pause before a failed step is retried; doubled each time. The database folds the end of an activation within tens of
/// milliseconds.
const FIRST_PAUSE: Duration = Duration::from_millis(50);

/// Maximum of that pause.
const LAST_PAUSE: Duration = Duration::from_secs(1);

/// A log-in in progress.
#[derive(Debug)]
pub(crate) struct Attempt {
    /// The connection to answer.
    pub(crate) connection: ConnectionId,
    /// The client's host.
    pub(crate) host: Host,
    /// The client's request.
    pub(crate) kind: Kind,
    /// Current step.
    pub(crate) step: Step,
    /// Id of the latest request sent for it.
    pub(crate) asked: AskId,
    /// When the request is repeated, or a pause ends; `None` while the password waits or is verified.
    pub(crate) again: Option<Mono>,
    /// When the attempt expires.
    pub(crate) until: Mono,
    /// Its way into a realm that may be full.
    pub(crate) entry: Entry,
    pauses: u32,
}

/// What a log-in has of the realm's room.
#[derive(Debug)]
pub(crate) struct Entry {
    /// Its place in the queue, or the one that it would take.
    pub(crate) number: PlaceNumber,
    /// Whether it is in the queue.
    pub(crate) is_queued: bool,
    /// Whether it waits like others when the realm is full.
    pub(crate) waits: bool,
    /// When the client was authenticated.
    pub(crate) since: Mono,
    /// The room that it has asked for, until the director answers.
    pub(crate) wish: Option<RoomId>,
    /// The room that it was given, in a realm with a limit.
    pub(crate) room: Option<RoomId>,
    /// Whether it was looked up whether the account is active: only then it may have a session.
    pub(crate) is_looked_up: bool,
    /// Whether it is to take the place of a session that its account has, and needs no room.
    pub(crate) replaces: bool,
    /// Whether a base was asked to use the room, and may still do so.
    pub(crate) may_open: bool,
}

/// A client's request.
#[derive(Debug)]
pub(crate) enum Kind {
    /// A session.
    LogIn {
        /// Name of the account; `None` until a token is verified.
        name: Option<String>,
        /// Keyed hash of the name that the client gave.
        name_hash: Option<Hash>,
        /// Whether the account is to be created.
        registers: bool,
        /// The secret of the ticket.
        ticket: Secret,
    },
    /// The place of a session's base.
    Locate,
}

/// A step of a log-in.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Step {
    /// Waits in the queue for its password to be verified.
    Queued,
    /// Waits for the verdict on its password.
    Verifying,
    /// Waits for the director to name a base, for an account that may have none.
    Placing { account: DatabaseId },
    /// The realm is full: waits for db to say whether the account is active, and may have a session.
    LookingUp { account: DatabaseId },
    /// Waits in the queue for its turn to ask for room.
    Waiting { account: DatabaseId },
    /// Waits for the director to locate an owner. Without an account, the client itself asked.
    Locating {
        /// The account whose session is to be opened there.
        account: Option<DatabaseId>,
        owner: OwnerId,
    },
    /// Waits for db to check the account out to this base, or to the owner that it is activated on.
    CheckingOut {
        account: DatabaseId,
        /// The base, as the director named it **before** the check-out is read: so the base knows whether the
        /// activation that the check-out stands for has ended.
        base: Located,
    },
    /// Waits for the base to open a session.
    Opening {
        account: DatabaseId,
        base: Located,
        /// The check-out.
        checkout: Checkout,
    },
    /// Waits until [`Attempt::again`], then takes this step.
    Pausing(Box<Step>),
}

impl Attempt {
    pub(crate) fn new(now: Mono, (connection, host): (ConnectionId, Host), kind: Kind, step: Step) -> Self {
        Self {
            connection,
            host,
            kind,
            step,
            asked: AskId(0),
            again: None,
            until: now.after(LOGIN_WITHIN),
            entry: Entry {
                number: PlaceNumber(0),
                is_queued: false,
                waits: true,
                since: now,
                wish: None,
                room: None,
                is_looked_up: false,
                replaces: false,
                may_open: false,
            },
            pauses: 0,
        }
    }

    /// Records that the request of its step is sent.
    pub(crate) fn asks(&mut self, now: Mono, id: AskId) {
        self.asked = id;
        self.again = (self.step != Step::Verifying).then(|| now.after(TIMEOUT));
    }

    /// Pauses before step `next`.
    pub(crate) fn pause(&mut self, now: Mono, next: Step) {
        let pause = FIRST_PAUSE.saturating_mul(1 << self.pauses.min(8)).min(LAST_PAUSE);
        self.pauses += 1;
        self.step = Step::Pausing(Box::new(next));
        self.again = Some(now.after(pause));
    }

    /// Waits in the queue, for as long as its client is connected.
    pub(crate) fn wait(&mut self, account: DatabaseId) {
        self.step = Step::Waiting { account };
        (self.again, self.until, self.pauses) = (None, Mono(u64::MAX), 0);
    }

    /// When the attempt is due without an answer.
    pub(crate) fn due(&self) -> Mono {
        self.again.map_or(self.until, |again| again.min(self.until))
    }
}
