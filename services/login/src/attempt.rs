//! One log-in on its way from its credentials to its ticket.

use std::time::Duration;

use annals_ids::{DatabaseId, OwnerId};
use annals_node::{ConnectionId, time::Mono};
use annals_wire::client::{Located, Secret};

use crate::{
    login::{AskId, Checkout},
    turns::Host,
};

/// How long a log-in may take in all: a second less than the client waits, so that it hears why there is none.
pub const LOGIN_WITHIN: Duration = Duration::from_secs(9);

/// How long an answer is waited for before it is asked again. Every question but the first has the effect of once; the
/// first costs somebody a password hash, and is asked once.
pub const PATIENCE: Duration = Duration::from_secs(1);

/// The pause before a step that led nowhere is taken again; doubled each time. The database folds the end of a life
/// within tens of milliseconds.
const FIRST_PAUSE: Duration = Duration::from_millis(50);

/// The longest such pause.
const LAST_PAUSE: Duration = Duration::from_secs(1);

/// A log-in under way.
#[derive(Debug)]
pub(crate) struct Attempt {
    /// Who is to be answered.
    pub(crate) connection: ConnectionId,
    /// The client's host.
    pub(crate) host: Host,
    /// What was asked for.
    pub(crate) kind: Kind,
    /// What it waits for.
    pub(crate) step: Step,
    /// The question that was asked for it.
    pub(crate) asked: AskId,
    /// When that is asked again, or a pause ends; never, while a password waits or is compared.
    pub(crate) again: Option<Mono>,
    /// When it is given up.
    pub(crate) until: Mono,
    pauses: u32,
}

/// What a client wanted.
#[derive(Debug)]
pub(crate) enum Kind {
    /// A session.
    LogIn {
        /// For this account.
        name: String,
        /// What the ticket will hold.
        ticket: Secret,
    },
    /// The place of a session's base.
    Locate,
}

/// What a log-in waits for.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Step {
    /// Others' passwords are compared first.
    Queued,
    /// The password is being compared.
    Verifying,
    /// The director is to name a base for an account that may have none.
    Placing {
        /// Whose.
        account: DatabaseId,
    },
    /// The director is to say where an owner is. Without an account, a client wants to know.
    Locating {
        /// Whose session is to be opened there.
        account: Option<DatabaseId>,
        /// Which owner.
        owner: OwnerId,
    },
    /// The account is being checked out to this base, or to whichever it lives on.
    CheckingOut {
        /// Which account.
        account: DatabaseId,
        /// Which base, as the director named it **before** the check-out is read: so the base can tell whether a life that
        /// the check-out stands for has ended.
        base: Located,
    },
    /// The base is opening a session.
    Opening {
        /// For this account.
        account: DatabaseId,
        /// There.
        base: Located,
        /// Of this check-out.
        checkout: Checkout,
    },
    /// Nothing, until [`Attempt::again`]; then this step is taken.
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
            pauses: 0,
        }
    }

    /// Notes that its step's question is asked.
    pub(crate) fn asks(&mut self, now: Mono, id: AskId) {
        self.asked = id;
        self.again = (self.step != Step::Verifying).then(|| now.after(PATIENCE));
    }

    /// Waits a little before `next`.
    pub(crate) fn pause(&mut self, now: Mono, next: Step) {
        let pause = FIRST_PAUSE.saturating_mul(1 << self.pauses.min(8)).min(LAST_PAUSE);
        self.pauses += 1;
        self.step = Step::Pausing(Box::new(next));
        self.again = Some(now.after(pause));
    }

    /// When something is to be done although nothing comes.
    pub(crate) fn due(&self) -> Mono {
        self.again.map_or(self.until, |again| again.min(self.until))
    }
}
