//! All log-ins of one process.

mod entering;

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    time::Duration,
};

use annals_ids::Hash;
use annals_node::{ConnectionId, time::Mono};
use annals_wire::client::{
    Ban, Credentials, Located, LoginAnswer, LoginRefusal, LoginRequest, Secret, Ticket, protocol_hash,
};

pub use entering::ROOM_EVERY;

use crate::{
    attempt::{Attempt, Kind, LOGIN_WITHIN, Step},
    counts::{Counted, Counts},
    input::{AskId, Checkout, Input, NotCheckedOut, Opened, Output, Unavailable, Verdict, Wanted},
    places::Places,
    turns::{Host, Turns},
};

/// Maximum log-ins in progress: 32 handshakes at a time, of clients that wait for up to nine seconds.
pub const MAX_ATTEMPTS: usize = 1_024;

/// Maximum log-ins in progress per name: a player who clicks again. The password of each is verified.
pub const MAX_PER_NAME: usize = 3;

/// Maximum passwords looked up or compared at a time. The shell compares fewer at once; meanwhile db looks up the
/// others.
pub const MAX_VERIFYING: usize = 8;

/// Maximum log-ins whose password waits to be verified: two cores take some five seconds for so many, of the nine that
/// a log-in may take. Beyond that, or beyond its host's share of it, a log-in is refused as busy.
pub const MAX_QUEUED: usize = 512;

/// Counters since the process began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Tickets issued.
    pub tickets: u64,
    /// Accounts that clients have registered.
    pub registered: u64,
    /// Log-ins refused because the credentials were wrong.
    pub wrong: u64,
    /// Log-ins refused because a name or an address was tried too often, or has registered too many accounts.
    pub throttled: u64,
    /// Log-ins that had to wait in the queue because the realm was full.
    pub queued: u64,
    /// Log-ins refused because too many passwords waited to be verified, or too many clients in the queue.
    pub crowded: u64,
    /// Log-ins refused because the account is banned.
    pub banned: u64,
    /// Log-ins refused for any other reason.
    pub refused: u64,
    /// Steps repeated because a check-out was outdated.
    pub outdated: u64,
}

/// Log-ins that were refused in some time: a summary, since attackers decide how many there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused {
    /// Wrong credentials.
    pub wrong: u64,
    /// A name or an address was tried too often.
    pub throttled: u64,
    /// The account is banned.
    pub banned: u64,
    /// Too many waited.
    pub crowded: u64,
    /// Any other reason.
    pub other: u64,
}

impl Refused {
    /// What was refused from one time to a later one; `None` if nothing was.
    #[must_use]
    pub fn between(before: &Counters, now: &Counters) -> Option<Self> {
        let refused = Self {
            wrong: now.wrong - before.wrong,
            throttled: now.throttled - before.throttled,
            banned: now.banned - before.banned,
            crowded: now.crowded - before.crowded,
            other: now.refused - before.refused,
        };
        let Self {
            wrong,
            throttled,
            banned,
            crowded,
            other,
        } = refused;
        (wrong + throttled + banned + crowded + other > 0).then_some(refused)
    }
}

/// What the front of the queue does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Front {
    /// Nothing: nobody waits, or log-ins are paused.
    Idle,
    /// The client on this connection has asked for room.
    Asking(ConnectionId),
    /// There was no room; it asks again at this time.
    Pausing(Mono),
}

/// A client that asks: its connection, its host, and the keyed hash of the name that it gives.
type Asking = (ConnectionId, Host, Option<Hash>);

/// The login core of one process: credentials in, a single-use ticket out.
///
/// Driving it: [`handle`](Login::handle) one input, drain [`poll_output`](Login::poll_output), and come back with
/// [`Input::Time`] at [`deadline`](Login::deadline). Answer every request once, or never.
#[derive(Debug)]
pub struct Login {
    attempts: BTreeMap<ConnectionId, Attempt>,
    asked: BTreeMap<AskId, ConnectionId>,
    due: BTreeSet<(Mono, ConnectionId)>,
    /// Passwords that wait to be verified.
    queue: Turns<(ConnectionId, Credentials)>,
    /// Verifications in progress, and until when an answer is expected. Those of log-ins that were given up count too,
    /// since their passwords are compared all the same.
    verifying: BTreeMap<AskId, Mono>,
    counts: Counts,
    /// Clients that wait until the realm has room.
    places: Places,
    front: Front,
    /// Whether the realm has a limit of players, by the director's newest answer.
    is_limited: bool,
    last_number: u64,
    last_room: u64,
    outputs: VecDeque<Output>,
    last_ask: u64,
    is_paused: bool,
    /// Why log-ins are refused, once the process ends.
    ends_for: Option<LoginRefusal>,
    counters: Counters,
}

impl Default for Login {
    fn default() -> Self {
        Self {
            attempts: BTreeMap::new(),
            asked: BTreeMap::new(),
            due: BTreeSet::new(),
            queue: Turns::new(MAX_QUEUED),
            verifying: BTreeMap::new(),
            counts: Counts::default(),
            places: Places::default(),
            front: Front::Idle,
            is_limited: false,
            last_number: 0,
            last_room: 0,
            outputs: VecDeque::new(),
            last_ask: 0,
            is_paused: false,
            ends_for: None,
            counters: Counters::default(),
        }
    }
}

impl Login {
    /// A core with no log-in in progress.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Handles one input.
    pub fn handle(&mut self, now: Mono, input: Input) {
        match input {
            Input::Request {
                connection,
                host,
                request,
                name,
                ticket,
            } => self.begin(now, (connection, host, name), request, ticket),
            Input::Closed(connection) => self.closed(now, connection),
            Input::Verified(ask, verdict) => self.verified(now, ask, verdict),
            Input::Placed(ask, placed) => self.placed(now, ask, placed),
            Input::LookedUp(ask, found) => self.looked_up(now, ask, found),
            Input::Located(ask, place) => self.located(now, ask, place),
            Input::CheckedOut(ask, checkout) => self.checked_out(now, ask, checkout),
            Input::Opened(ask, opened) => self.opened(now, ask, opened),
            Input::Counted(counted) => self.counts.count(now, &counted),
            Input::Forgiven(name) => {
                self.counts.forgive(now, &name);
            }
            Input::Learned(counts) => counts
                .iter()
                .for_each(|(counted, remaining)| self.counts.learn(now, counted, *remaining)),
            Input::Time => self.pass_time(now),
            Input::Pause(is_paused) => {
                self.is_paused = is_paused;
                self.ask_for_room(now);
            }
            Input::ShutDown { with_realm } => {
                let reason = if with_realm {
                    LoginRefusal::ShuttingDown
                } else {
                    LoginRefusal::Busy
                };
                self.ends_for = Some(reason);
                while let Some((&connection, _)) = self.attempts.first_key_value() {
                    self.refuse(connection, reason);
                }
                self.places = Places::default();
            }
        }
    }

    /// The next output.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// When [`Input::Time`] is due.
    #[must_use]
    pub fn deadline(&self) -> Option<Mono> {
        let due = self.due.first().map(|(at, _)| *at).filter(|at| *at < Mono(u64::MAX));
        let front = match self.front {
            Front::Pausing(at) if !self.is_paused && self.places.here() > 0 => Some(at),
            _ => None,
        };
        [due, front, self.places.deadline()].into_iter().flatten().min()
    }

    /// Counters since the process began.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Number of log-ins in progress, without those that wait in the queue.
    #[must_use]
    pub fn attempts(&self) -> usize {
        self.attempts.len() - self.places.here()
    }

    /// Number of places in the queue.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.places.len()
    }

    /// Number of log-ins whose password waits to be verified.
    #[must_use]
    pub fn queued(&self) -> usize {
        self.queue.len()
    }

    /// What this process has counted, for one that starts: each with the time until it is forgiven.
    #[must_use]
    pub fn counts(&self, now: Mono) -> Vec<(Counted, Duration)> {
        self.counts.newest(now)
    }

    fn begin(&mut self, now: Mono, client: Asking, request: LoginRequest, ticket: Secret) {
        let (connection, host, name_hash) = client;
        let client = (connection, host);
        // One request per connection: the shell ensures it, and a second one is ignored.
        if self.attempts.contains_key(&connection) {
            return;
        }
        if let Some(reason) = self.ends_for {
            return self.refuse(connection, reason);
        }
        if self.attempts() >= MAX_ATTEMPTS {
            return self.refuse(connection, LoginRefusal::Busy);
        }
        match request {
            LoginRequest::LogIn { protocol, .. } if protocol != protocol_hash() => {
                self.refuse(connection, LoginRefusal::WrongProtocol);
            }
            LoginRequest::LogIn { .. } if self.is_paused => self.refuse(connection, LoginRefusal::Busy),
            LoginRequest::LogIn { credentials, .. } if !self.admits(now, (host, name_hash), &credentials) => {
                self.counters.throttled += 1;
                self.answer(connection, LoginAnswer::Refused(LoginRefusal::Throttled));
            }
            // Not counted as guessing: while a base is taken over, a player may well have clicked that often.
            LoginRequest::LogIn { credentials, .. } if self.under_way(credentials.name()) >= MAX_PER_NAME => {
                self.refuse(connection, LoginRefusal::Busy);
            }
            LoginRequest::LogIn { credentials, .. } => {
                let name = credentials.name().map(str::to_owned);
                let registers = matches!(credentials, Credentials::Registration { .. });
                if self.queue.wait(host, (connection, credentials)).is_err() {
                    self.counters.crowded += 1;
                    return self.answer(connection, LoginAnswer::Refused(LoginRefusal::Busy));
                }
                let kind = Kind::LogIn {
                    name,
                    name_hash,
                    registers,
                    ticket,
                };
                self.put(Attempt::new(now, client, kind, Step::Queued));
                self.verify_next(now);
            }
            LoginRequest::Locate { owner, .. } => {
                let account = None;
                let attempt = Attempt::new(now, client, Kind::Locate, Step::Locating { account, owner });
                self.ask(now, attempt);
            }
        }
    }

    /// Starts verification of the passwords whose turn it is, as far as there is room.
    fn verify_next(&mut self, now: Mono) {
        self.verifying.retain(|_, until| *until > now);
        while self.verifying.len() < MAX_VERIFYING
            && let Some((_, (connection, credentials))) = self.queue.next(|_| true)
        {
            let Some(mut attempt) = self.take(connection) else {
                continue;
            };
            let ask = self.next_ask();
            attempt.step = Step::Verifying;
            attempt.asks(now, ask);
            self.put(attempt);
            self.verifying.insert(ask, now.after(LOGIN_WITHIN));
            self.outputs.push_back(Output::Verify { ask, credentials });
        }
    }

    /// Whether a client may try these credentials.
    fn admits(&self, now: Mono, (host, name): (Host, Option<Hash>), credentials: &Credentials) -> bool {
        let registers = matches!(credentials, Credentials::Registration { .. });
        let counted = [
            Some(Counted::Host(host)),
            name.map(Counted::Name),
            registers.then_some(Counted::Registration(host)),
        ];
        counted.iter().flatten().all(|counted| self.counts.admits(now, counted))
    }

    /// Counts something, here and in the other processes.
    fn count(&mut self, now: Mono, counted: Counted) {
        self.counts.count(now, &counted);
        self.outputs.push_back(Output::Counted(counted));
    }

    /// Number of log-ins of a name in progress; of an unknown one, none.
    fn under_way(&self, name: Option<&str>) -> usize {
        let Some(name) = name else { return 0 };
        let is_same =
            |attempt: &&Attempt| matches!(&attempt.kind, Kind::LogIn { name: Some(other), .. } if other == name);
        self.attempts.values().filter(is_same).count()
    }

    fn verified(&mut self, now: Mono, ask: AskId, verdict: Result<Verdict, Unavailable>) {
        self.verifying.remove(&ask);
        self.judge(now, ask, verdict);
        self.verify_next(now);
    }

    fn judge(&mut self, now: Mono, ask: AskId, verdict: Result<Verdict, Unavailable>) {
        let Some(mut attempt) = self.take_asked(ask, |step| *step == Step::Verifying) else {
            return;
        };
        let (connection, host) = (attempt.connection, attempt.host);
        let Kind::LogIn {
            name,
            name_hash,
            registers,
            ..
        } = &mut attempt.kind
        else {
            return;
        };
        if let (Ok(Verdict::Good(_) | Verdict::Banned(_)), Some(hash)) = (&verdict, *name_hash)
            && self.counts.forgive(now, &hash)
        {
            self.outputs.push_back(Output::Forgiven(hash));
        }
        match verdict {
            Ok(Verdict::Good(good)) => {
                if *registers {
                    self.count(now, Counted::Registration(host));
                    self.counters.registered += 1;
                }
                *name = Some(good.name);
                attempt.entry.waits = good.waits;
                self.enter(now, attempt, good.account);
            }
            Ok(Verdict::Wrong(wrong)) => {
                let counted = [Some(Counted::Host(host)), name_hash.map(Counted::Name)];
                counted
                    .into_iter()
                    .flatten()
                    .for_each(|counted| self.count(now, counted));
                self.counters.wrong += 1;
                self.answer(connection, LoginAnswer::Refused(wrong.into()));
            }
            Ok(Verdict::Banned(ban)) => self.refuse_banned(connection, ban),
            Ok(Verdict::Refused(refusal)) => self.refuse(connection, refusal),
            Err(Unavailable) => self.refuse(connection, LoginRefusal::Busy),
        }
    }

    fn located(&mut self, now: Mono, ask: AskId, place: Result<Option<Located>, Unavailable>) {
        let is_wanted = |step: &Step| matches!(step, Step::Locating { .. });
        let Some(mut attempt) = self.take_asked(ask, is_wanted) else {
            return;
        };
        let connection = attempt.connection;
        let account = match &attempt.step {
            Step::Locating { account, .. } => *account,
            _ => None,
        };
        match (account, place) {
            (Some(account), Ok(Some(base))) => {
                attempt.step = Step::CheckingOut { account, base };
                self.ask(now, attempt);
            }
            (Some(_), _) => self.take_again(now, attempt),
            (None, Ok(Some(base))) => self.answer(connection, LoginAnswer::Located(base)),
            (None, Ok(None)) => self.refuse(connection, LoginRefusal::NotHeld),
            (None, Err(Unavailable)) => self.refuse(connection, LoginRefusal::Busy),
        }
    }

    fn checked_out(&mut self, now: Mono, ask: AskId, checkout: Result<Checkout, NotCheckedOut>) {
        let is_wanted = |step: &Step| matches!(step, Step::CheckingOut { .. });
        let Some(mut attempt) = self.take_asked(ask, is_wanted) else {
            return;
        };
        let Step::CheckingOut { account, base } = attempt.step.clone() else {
            return;
        };
        attempt.step = match checkout {
            Ok(checkout) if checkout.owner == base.owner => Step::Opening {
                account,
                base,
                checkout,
            },
            // It is activated elsewhere. The check-out is read again once that owner is located.
            Ok(checkout) => Step::Locating {
                account: Some(account),
                owner: checkout.owner,
            },
            Err(NotCheckedOut::Banned(ban)) => {
                self.leave(&attempt, None);
                return self.refuse_banned(attempt.connection, ban);
            }
            Err(NotCheckedOut::Unavailable) => return self.take_again(now, attempt),
        };
        self.ask(now, attempt);
    }

    fn opened(&mut self, now: Mono, ask: AskId, opened: Result<Opened, Unavailable>) {
        let is_wanted = |step: &Step| matches!(step, Step::Opening { .. });
        let Some(mut attempt) = self.take_asked(ask, is_wanted) else {
            return;
        };
        let (connection, Step::Opening { account, base, .. }) = (attempt.connection, attempt.step.clone()) else {
            return;
        };
        match (opened, &attempt.kind) {
            (Ok(Opened::Session { session, epoch }), Kind::LogIn { ticket, .. }) => {
                self.counters.tickets += 1;
                self.leave(&attempt, Some((base.owner, session)));
                let ticket = Ticket {
                    session,
                    secret: ticket.clone(),
                    base: Located { epoch, ..base },
                };
                self.answer(connection, LoginAnswer::Ticket(ticket));
            }
            (Ok(Opened::NoSession), _) if attempt.entry.replaces => self.queue_up(now, attempt, account),
            (Ok(Opened::Refused | Opened::NoSession), _) | (_, Kind::Locate) => {
                attempt.entry.may_open = false;
                self.leave(&attempt, None);
                self.refuse(connection, LoginRefusal::Busy);
            }
            (Ok(Opened::InUse), _) => {
                attempt.entry.may_open = false;
                self.leave(&attempt, None);
                self.refuse(connection, LoginRefusal::LoggedIn);
            }
            // Both the holder of the base and the valid check-out may have changed.
            (outdated, Kind::LogIn { .. }) => {
                self.counters.outdated += u64::from(outdated.is_ok());
                let (account, owner) = (Some(account), base.owner);
                attempt.pause(now, Step::Locating { account, owner });
                self.put(attempt);
            }
        }
    }

    fn pass_time(&mut self, now: Mono) {
        while let Some(&(at, connection)) = self.due.first()
            && at <= now
            && let Some(mut attempt) = self.take(connection)
        {
            if attempt.until <= now {
                self.leave(&attempt, None);
                self.refuse(connection, LoginRefusal::Busy);
                continue;
            }
            attempt.step = match attempt.step {
                Step::Pausing(next) => *next,
                // No answer. The base may have moved.
                Step::Opening { account, base, .. } => Step::Locating {
                    account: Some(account),
                    owner: base.owner,
                },
                step => step,
            };
            self.ask(now, attempt);
        }
        self.verify_next(now);
        self.pass_time_in_queue(now);
    }

    /// Retries a step that a service was not able to answer, after a pause.
    fn take_again(&mut self, now: Mono, mut attempt: Attempt) {
        let step = attempt.step.clone();
        attempt.pause(now, step);
        self.put(attempt);
    }

    /// Sends the request of an attempt's step.
    fn ask(&mut self, now: Mono, mut attempt: Attempt) {
        let ask = self.next_ask();
        let output = match (&attempt.step, &attempt.kind) {
            (Step::Placing { .. }, _) => Output::Place {
                ask,
                wish: self.wish(now, &mut attempt.entry),
            },
            (Step::LookingUp { account }, _) => Output::LookUp { ask, account: *account },
            (Step::Locating { owner, .. }, _) => Output::Locate { ask, owner: *owner },
            (Step::CheckingOut { account, base }, _) => Output::CheckOut {
                ask,
                account: *account,
                preferred: base.owner,
            },
            (
                Step::Opening {
                    account,
                    base,
                    checkout,
                },
                Kind::LogIn { ticket, name, .. },
            ) => {
                attempt.entry.may_open |= !attempt.entry.replaces;
                Output::Open {
                    ask,
                    wanted: Wanted {
                        owner: base.owner,
                        epoch: base.epoch,
                        account: *account,
                        checkout: checkout.clone(),
                        ticket: ticket.digest(),
                        name: name.clone().unwrap_or_default(),
                        replaces_only: attempt.entry.replaces,
                    },
                }
            }
            // A password is verified once, and nothing is requested in a pause.
            (Step::Queued | Step::Verifying | Step::Waiting { .. } | Step::Pausing(_) | Step::Opening { .. }, _) => {
                self.leave(&attempt, None);
                return self.refuse(attempt.connection, LoginRefusal::Busy);
            }
        };
        attempt.asks(now, ask);
        self.put(attempt);
        self.outputs.push_back(output);
    }

    fn refuse(&mut self, connection: ConnectionId, refusal: LoginRefusal) {
        self.counters.refused += 1;
        self.answer(connection, LoginAnswer::Refused(refusal));
    }

    fn refuse_banned(&mut self, connection: ConnectionId, ban: Ban) {
        self.counters.banned += 1;
        self.answer(connection, LoginAnswer::Banned(ban));
    }

    fn answer(&mut self, connection: ConnectionId, answer: LoginAnswer) {
        if let Some(attempt) = self.take(connection) {
            self.leave(&attempt, None);
        }
        self.outputs.push_back(Output::Answer { connection, answer });
    }

    fn next_ask(&mut self) -> AskId {
        self.last_ask += 1;
        AskId(self.last_ask)
    }

    fn put(&mut self, attempt: Attempt) {
        let connection = attempt.connection;
        if !matches!(attempt.step, Step::Queued | Step::Waiting { .. } | Step::Pausing(_)) {
            self.asked.insert(attempt.asked, connection);
        }
        self.due.insert((attempt.due(), connection));
        self.attempts.insert(connection, attempt);
    }

    fn take(&mut self, connection: ConnectionId) -> Option<Attempt> {
        let attempt = self.attempts.remove(&connection)?;
        self.asked.remove(&attempt.asked);
        self.due.remove(&(attempt.due(), connection));
        if attempt.step == Step::Queued {
            self.queue.give_up(attempt.host, |(queued, _)| *queued == connection);
        }
        Some(attempt)
    }

    /// Removes the attempt that waits for the answer to this request, if it is at a step that can take it.
    fn take_asked(&mut self, ask: AskId, is_wanted: impl Fn(&Step) -> bool) -> Option<Attempt> {
        let connection = *self.asked.get(&ask)?;
        let attempt = self.attempts.get(&connection)?;
        if is_wanted(&attempt.step) {
            self.take(connection)
        } else {
            None
        }
    }
}
