//! A client that an entity gives to an entity at another owner.
//!
//! X has the client, and Y the entity that gets it. Behaviour requests the change: X calls Y, Y expects the client or
//! refuses it, and X sends the client away when it has the answer. As in the call model, each owner has a log and a
//! memory ahead of it, which a crash resets to the log. Calls and answers leave once they are logged, are taken once and
//! in order, and are resent until then (C1 to C4, which have a model of their own). The rule is C20.

pub mod exhibits;

use crate::explorer::Model;
use crate::faults::{Faults, spend};
use crate::invariant::Invariant;
use crate::rule::{Rule, Rules};

/// Maximum calls within the bounds: the first one, and one after each reconnection and each pause.
const MOST_CALLS: usize = 5;

/// Bounds of a schedule.
#[derive(Debug, Clone, Copy)]
pub struct GivingBounds {
    /// Number of times that the client connects to X again, with a new token. With `pauses` at most 4.
    pub renewals: u8,
    /// Number of times that nothing happens for so long that Y gives up a client that it expects.
    pub pauses: u8,
    /// Clients refused by Y.
    pub refusals: u8,
    /// Faults; crashes count here.
    pub faults: Faults,
}

/// The model of clients that are given away.
#[derive(Debug, Clone, Copy)]
pub struct GivingModel {
    /// The rules in force.
    pub rules: Rules,
    /// Bounds of a schedule.
    pub bounds: GivingBounds,
}

/// A token of the session, by its number.
type Token = u8;

/// The answer to a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Answer {
    /// Y expects the client with this token.
    Expected(Token),
    Refused,
}

/// An owner, in memory or according to its log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
struct Owner {
    /// The newest token of the session, if that is here.
    session: Option<Token>,
    /// X: whether it waits for an answer, and whether it has waited for long.
    waits: bool,
    is_late: bool,
    /// Y: whether the client has come.
    has_come: bool,
    /// X's calls, each with a token; Y's answers.
    calls: [Option<Token>; MOST_CALLS],
    answers: [Option<Answer>; MOST_CALLS],
    /// Number of calls or answers taken from the other owner.
    taken: usize,
}

/// Where the client is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum At {
    X,
    /// X has sent it to Y.
    OnItsWay,
    Y,
    /// Y does not know its session.
    Rejected,
}

/// The state of the model: X, Y and the client with its token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct GivingState {
    memory: [Owner; 2],
    log: [Owner; 2],
    client: (At, Token),
    gives: u8,
    renewals: u8,
    pauses: u8,
    refusals: u8,
    left: Faults,
}

/// A step. Owners are named by index.
#[derive(Debug, Clone, Copy)]
pub enum GivingStep {
    /// Behaviour at X requests that the client is given to Y's entity.
    Give,
    /// The client connects to X again.
    Renew,
    /// Y receives the next call and expects the client.
    Take,
    /// Y receives the next call and refuses the client.
    Refuse,
    /// X receives the next answer.
    Receive,
    /// The client connects to Y.
    Arrive,
    /// Nothing happens for a long time.
    Pause,
    /// The log acknowledges the owner's state in memory.
    Log(usize),
    /// The owner's process crashes; its successor continues from the log.
    Crash(usize),
}

const X: usize = 0;
const Y: usize = 1;

impl Model for GivingModel {
    type State = GivingState;
    type Step = GivingStep;

    fn start(&self) -> GivingState {
        let mut owners = [Owner::default(); 2];
        owners[X].session = Some(0);
        GivingState {
            memory: owners,
            log: owners,
            client: (At::X, 0),
            gives: 1,
            renewals: self.bounds.renewals,
            pauses: self.bounds.pauses,
            refusals: self.bounds.refusals,
            left: self.bounds.faults,
        }
    }

    fn steps(&self, state: &GivingState, steps: &mut Vec<GivingStep>) {
        let [x, y] = &state.memory;
        let called = state.log[X].calls.get(y.taken).copied().flatten().is_some();
        // What X has decided is logged, and the client comes, before Y gives it up.
        let is_sent = x.session.is_none() && state.client.0 != At::Y;
        let is_at_x = state.client.0 == At::X && x.session.is_some();
        let ways = [
            (state.gives > 0 && is_at_x, GivingStep::Give),
            (state.renewals > 0 && is_at_x, GivingStep::Renew),
            (called, GivingStep::Take),
            (called && state.refusals > 0 && y.session.is_none(), GivingStep::Refuse),
            (state.next_answer().is_some(), GivingStep::Receive),
            (state.client.0 == At::OnItsWay && !y.has_come, GivingStep::Arrive),
            (state.pauses > 0 && !is_sent, GivingStep::Pause),
        ];
        steps.extend(ways.into_iter().filter(|(is_open, _)| *is_open).map(|(_, step)| step));
        for owner in [X, Y] {
            if state.memory[owner] != state.log[owner] {
                steps.push(GivingStep::Log(owner));
                if state.left.crashes > 0 {
                    steps.push(GivingStep::Crash(owner));
                }
            }
        }
    }

    fn take(&self, state: &GivingState, step: GivingStep) -> GivingState {
        let mut after = *state;
        self.happen(&mut after, step);
        after
    }

    fn broken(&self, state: &GivingState) -> Option<Invariant> {
        (state.client.0 == At::Rejected).then_some(Invariant::ClientIsAdmitted)
    }

    fn words(&self, state: &GivingState, step: GivingStep, after: &GivingState) -> String {
        let name = |owner: usize| if owner == X { "X" } else { "Y" };
        let calls = |state: &GivingState| state.memory[X].calls.iter().flatten().count();
        let is_sent = after.client.0 == At::OnItsWay && state.client.0 == At::X;
        match step {
            GivingStep::Give if after.memory[X].session.is_none() => {
                "behaviour gives the client away; X calls Y and gives up the session".into()
            }
            GivingStep::Give => format!(
                "behaviour gives the client away; X calls Y, with token {}",
                after.memory[X].session.unwrap_or_default()
            ),
            GivingStep::Renew => format!(
                "the client connects to X again, which has token {} for it",
                after.memory[X].session.unwrap_or_default()
            ),
            GivingStep::Take => match after.memory[Y].session {
                Some(token) => format!("Y receives the call and expects the client with token {token}"),
                None => "Y receives the call".into(),
            },
            GivingStep::Refuse => "Y receives the call, and refuses".into(),
            GivingStep::Receive if calls(after) > calls(state) => "X receives the answer, and calls Y again".into(),
            GivingStep::Receive if after.memory[X].session.is_none() && state.memory[X].session.is_some() => {
                "X receives the answer, and gives up the session".into()
            }
            GivingStep::Receive => "X receives the answer".into(),
            GivingStep::Arrive if after.client.0 == At::Rejected => {
                format!(
                    "the client connects to Y with token {}, and is rejected",
                    state.client.1
                )
            }
            GivingStep::Arrive => "the client connects to Y with its token".into(),
            GivingStep::Pause => "nothing happens for a long time: Y gives up a client that has not come".into(),
            GivingStep::Log(X) if is_sent => "X's log stores all its events; the client is sent to Y".into(),
            GivingStep::Log(Y) if after.client.0 == At::Y && state.client.0 != At::Y => {
                "Y's log stores all its events; the client is admitted".into()
            }
            GivingStep::Log(owner) => format!("{}'s log stores all its events", name(owner)),
            GivingStep::Crash(owner) => format!("{} crashes; its successor continues from the log", name(owner)),
        }
    }

    /// The client is at one owner, which has its session, and nothing is in flight.
    fn settled(&self, state: &GivingState) -> bool {
        let [x, y] = &state.log;
        let made = x.calls.iter().flatten().count();
        let quiet = state.log == state.memory && (x.taken, y.taken) == (made, made) && !x.waits;
        let is_at_one = match state.client.0 {
            At::X => x.session.is_some() && y.session.is_none(),
            At::Y => x.session.is_none() && y.session.is_some(),
            At::OnItsWay | At::Rejected => false,
        };
        quiet && is_at_one
    }

    fn is_fault(&self, step: GivingStep) -> bool {
        matches!(
            step,
            GivingStep::Give | GivingStep::Renew | GivingStep::Refuse | GivingStep::Pause | GivingStep::Crash(_)
        )
    }
}

impl GivingModel {
    fn happen(&self, state: &mut GivingState, step: GivingStep) {
        match step {
            GivingStep::Give => {
                state.gives -= 1;
                let x = &mut state.memory[X];
                x.offer();
                if !self.rules.has(Rule::C20Keeps) {
                    (x.session, x.waits) = (None, false);
                }
            }
            GivingStep::Renew => {
                state.renewals -= 1;
                let x = &mut state.memory[X];
                x.session = x.session.map(|token| token + 1);
            }
            GivingStep::Take => {
                let token = state.log[X].calls[state.memory[Y].taken];
                let y = &mut state.memory[Y];
                if !y.has_come {
                    y.session = token;
                }
                y.answer(Answer::Expected(token.unwrap_or_default()));
            }
            GivingStep::Refuse => {
                state.refusals -= 1;
                state.memory[Y].answer(Answer::Refused);
            }
            GivingStep::Receive => {
                if let Some(answer) = state.next_answer() {
                    self.receive(&mut state.memory[X], answer);
                }
            }
            GivingStep::Arrive => {
                let y = &mut state.memory[Y];
                if y.session == Some(state.client.1) {
                    y.has_come = true;
                } else {
                    state.client.0 = At::Rejected;
                }
            }
            GivingStep::Pause => {
                state.pauses -= 1;
                for x in [&mut state.memory[X], &mut state.log[X]] {
                    x.is_late |= x.waits;
                }
                let y = &mut state.memory[Y];
                if !y.has_come {
                    y.session = None;
                }
            }
            GivingStep::Log(owner) => state.log(owner),
            GivingStep::Crash(owner) => {
                spend(&mut state.left.crashes);
                state.memory[owner] = state.log[owner];
            }
        }
    }

    fn receive(&self, x: &mut Owner, answer: Answer) {
        x.taken += 1;
        if !x.waits {
            return;
        }
        match answer {
            Answer::Expected(token) => {
                let is_current = x.session == Some(token) || !self.rules.has(Rule::C20Token);
                let is_in_time = !x.is_late || !self.rules.has(Rule::C20InTime);
                if is_current && is_in_time {
                    (x.session, x.waits, x.is_late) = (None, false, false);
                } else {
                    x.offer();
                }
            }
            Answer::Refused => (x.waits, x.is_late) = (false, false),
        }
    }
}

impl GivingState {
    /// The next answer in Y's log that X has not received.
    fn next_answer(&self) -> Option<Answer> {
        self.log[Y].answers.get(self.memory[X].taken).copied().flatten()
    }

    /// The log has the state in memory. What waited for it leaves: the client has its new token, is sent to Y, or is
    /// welcomed there.
    fn log(&mut self, owner: usize) {
        self.log[owner] = self.memory[owner];
        if self.client.0 == At::OnItsWay && self.log[Y].has_come {
            self.client.0 = At::Y;
        }
        if owner == X && self.client.0 == At::X {
            match self.log[X].session {
                Some(token) => self.client.1 = token,
                None => self.client.0 = At::OnItsWay,
            }
        }
    }
}

impl Owner {
    /// Calls Y with the newest token.
    fn offer(&mut self) {
        (self.waits, self.is_late) = (true, false);
        if let Some(free) = self.calls.iter_mut().find(|call| call.is_none()) {
            *free = self.session;
        }
    }

    fn answer(&mut self, answer: Answer) {
        self.answers[self.taken] = Some(answer);
        self.taken += 1;
    }
}
