//! The view of an account, from the ledger's notices to the client of the entity that holds it.
//!
//! A base part repeatedly receives a notice that its holdings have changed, its log acknowledges that, and the part's
//! own client is shown the new value. The process may crash, which resets its memory to its log, and frames may be
//! lost; the client then names what it has. No event contains the value: it is what the part was notified of. The rule
//! is V5.

pub mod exhibits;

use crate::explorer::Model;
use crate::faults::{Faults, spend};
use crate::invariant::Invariant;
use crate::rule::{Rule, Rules};

/// Maximum notices within the bounds.
const MOST_VERSIONS: usize = 3;

/// Bounds of a schedule.
#[derive(Debug, Clone, Copy)]
pub struct AccountBounds {
    /// Notices of another value: at most 3.
    pub versions: u8,
    /// Faults; crashes and drops count here.
    pub faults: Faults,
}

/// The model of views of accounts.
#[derive(Debug, Clone, Copy)]
pub struct AccountModel {
    /// The rules in force.
    pub rules: Rules,
    /// Bounds of a schedule.
    pub bounds: AccountBounds,
}

/// The base part, in memory or according to its log. The n-th notice has the value n.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
struct Part {
    value: u8,
    history: u8,
    /// Without V5: the value has changed, but its history does not record that yet.
    owes: bool,
}

/// A client's state, or its state once a frame arrives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
struct Sight {
    upto: u8,
    value: u8,
}

/// The state of the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct AccountState {
    memory: Part,
    log: Part,
    /// By history number: the value from that number on.
    values: [u8; MOST_VERSIONS + 1],
    client: Option<Sight>,
    /// Whether the client has begun a view; and the history number that it has reached if every frame arrives.
    begun: bool,
    believes: Option<u8>,
    frame: Option<Sight>,
    left: Faults,
}

/// A step.
#[derive(Debug, Clone, Copy)]
pub enum AccountStep {
    /// The part receives the next value.
    Receive,
    /// Without V5: the history records that the value has changed.
    Restate,
    /// The log acknowledges the state in memory.
    Log,
    /// The process crashes, and another continues from the log.
    Crash,
    /// The client names what it has.
    Begin,
    /// The client is sent what it lacks.
    Show,
    /// The frame arrives.
    Arrive,
    /// The frame is lost, and the client detects it.
    Lose,
}

impl Model for AccountModel {
    type State = AccountState;
    type Step = AccountStep;

    fn start(&self) -> AccountState {
        AccountState {
            memory: Part::default(),
            log: Part::default(),
            values: [0; MOST_VERSIONS + 1],
            client: None,
            begun: false,
            believes: None,
            frame: None,
            left: self.bounds.faults,
        }
    }

    fn steps(&self, state: &AccountState, steps: &mut Vec<AccountStep>) {
        let ways = [
            (
                state.memory.value < self.bounds.versions && !state.memory.owes,
                AccountStep::Receive,
            ),
            (state.memory.owes, AccountStep::Restate),
            (state.memory != state.log, AccountStep::Log),
            (state.left.crashes > 0, AccountStep::Crash),
            (!state.begun, AccountStep::Begin),
            (
                state.frame.is_none() && self.next_frame(state).is_some(),
                AccountStep::Show,
            ),
            (state.frame.is_some(), AccountStep::Arrive),
            (state.frame.is_some() && state.left.drops > 0, AccountStep::Lose),
        ];
        steps.extend(ways.into_iter().filter(|(is_open, _)| *is_open).map(|(_, step)| step));
    }

    fn take(&self, state: &AccountState, step: AccountStep) -> AccountState {
        let mut after = *state;
        self.happen(&mut after, step);
        after
    }

    fn broken(&self, state: &AccountState) -> Option<Invariant> {
        let was_so = |sight: Sight| state.values[usize::from(sight.upto)] == sight.value;
        (!state.client.is_none_or(was_so)).then_some(Invariant::SeenIsTrue)
    }

    fn words(&self, state: &AccountState, step: AccountStep, after: &AccountState) -> String {
        let description = |sight: Option<Sight>| {
            sight.map_or_else(String::new, |Sight { upto, value }| {
                format!("{value} at history number {upto}")
            })
        };
        match step {
            AccountStep::Receive => format!("the part receives the value {}", after.memory.value),
            AccountStep::Restate => format!("the change takes history number {}", after.memory.history),
            AccountStep::Log => format!("the log stores the value {}", after.log.value),
            AccountStep::Crash => "the process crashes, and another continues from the log".to_owned(),
            AccountStep::Begin => match state.client {
                Some(sight) => format!("the client begins a view, and names {}", description(Some(sight))),
                None => "the client begins a view, and names nothing".to_owned(),
            },
            AccountStep::Show => format!("the client is sent {}", description(after.frame)),
            AccountStep::Arrive => format!("the client sees {}", description(after.client)),
            AccountStep::Lose => "the frame is lost".to_owned(),
        }
    }

    /// The client sees the newest value, which is logged.
    fn settled(&self, state: &AccountState) -> bool {
        let newest = self.bounds.versions;
        state.log.value == newest && state.client.is_some_and(|sight| sight.value == newest)
    }

    fn is_fault(&self, step: AccountStep) -> bool {
        matches!(step, AccountStep::Crash | AccountStep::Lose)
    }
}

impl AccountModel {
    /// The next frame for the client: only what is logged (G1), and of that only what the client lacks (V3, V4).
    fn next_frame(&self, state: &AccountState) -> Option<Sight> {
        let Part { value, history, .. } = state.log;
        let upto = match state.believes {
            _ if !state.begun => return None,
            Some(upto) if upto >= history => return None,
            Some(upto) if !self.rules.has(Rule::V5Newest) => upto + 1,
            _ => history,
        };
        Some(Sight { upto, value })
    }

    fn happen(&self, state: &mut AccountState, step: AccountStep) {
        match step {
            AccountStep::Receive => {
                state.memory.value += 1;
                match (self.rules.has(Rule::V5Restated), self.rules.has(Rule::V5OneBatch)) {
                    (true, true) => state.restate(),
                    (true, false) => state.memory.owes = true,
                    (false, _) => {}
                }
            }
            AccountStep::Restate => state.restate(),
            AccountStep::Log => state.log = state.memory,
            AccountStep::Crash => {
                spend(&mut state.left.crashes);
                state.memory = Part {
                    owes: false,
                    ..state.log
                };
                state.end_view();
            }
            AccountStep::Begin => {
                state.begun = true;
                state.believes = state.client.map(|sight| sight.upto);
            }
            AccountStep::Show => {
                state.frame = self.next_frame(state);
                state.believes = state.frame.map(|sight| sight.upto);
            }
            AccountStep::Arrive => state.client = state.frame.take(),
            AccountStep::Lose => {
                spend(&mut state.left.drops);
                state.end_view();
            }
        }
    }
}

impl AccountState {
    fn restate(&mut self) {
        let part = &mut self.memory;
        part.history += 1;
        part.owes = false;
        self.values[usize::from(part.history)] = part.value;
    }

    fn end_view(&mut self) {
        (self.begun, self.believes, self.frame) = (false, None, None);
    }
}
