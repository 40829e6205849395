//! The view of an account, from the ledger's news to the client of the entity that holds it.
//!
//! A base part hears again and again that what it holds is another number, its log has it, and a client of its own is shown
//! it. The process may crash, which brings its memory back to its log, and frames may be lost; the client then names what it
//! has. The value is in no event: it is what the part has heard. The rule is V5.

pub mod exhibits;

use crate::explorer::Model;
use crate::faults::{Faults, spend};
use crate::invariant::Invariant;
use crate::rule::{Rule, Rules};

/// Most news within the bounds.
const MOST_NEWS: usize = 3;

/// How far a schedule may go.
#[derive(Debug, Clone, Copy)]
pub struct AccountBounds {
    /// How often the part hears of another value: at most 3.
    pub news: u8,
    /// Faults; crashes and drops count here.
    pub faults: Faults,
}

/// The model of views of accounts.
#[derive(Debug, Clone, Copy)]
pub struct AccountModel {
    /// The rules in force.
    pub rules: Rules,
    /// How far a schedule may go.
    pub bounds: AccountBounds,
}

/// The base part, in memory or as its log has it. The n-th news say that the value is n.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
struct Part {
    value: u8,
    history: u8,
    /// Without V5: the value is another, and its history does not say so yet.
    owes: bool,
}

/// What a client has, or is to have once a frame arrives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
struct Sight {
    upto: u8,
    value: u8,
}

/// Everything that decides what happens next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct AccountState {
    memory: Part,
    log: Part,
    /// By history number: the value from there on.
    values: [u8; MOST_NEWS + 1],
    client: Option<Sight>,
    /// The client has begun a view; and up to where it has everything, if every frame arrives.
    begun: bool,
    believes: Option<u8>,
    frame: Option<Sight>,
    left: Faults,
}

/// One thing that happens.
#[derive(Debug, Clone, Copy)]
pub enum AccountStep {
    /// The part hears of the next value.
    Hear,
    /// Without V5: it goes into the history that the value is another.
    Restate,
    /// What is in memory is logged.
    Log,
    /// The process is gone, and another goes on from the log.
    Crash,
    /// The client names what it has.
    Begin,
    /// The client is sent what is missing.
    Show,
    /// It arrives.
    Arrive,
    /// It is lost, which the client notices.
    Lose,
}

impl Model for AccountModel {
    type State = AccountState;
    type Step = AccountStep;

    fn start(&self) -> AccountState {
        AccountState {
            memory: Part::default(),
            log: Part::default(),
            values: [0; MOST_NEWS + 1],
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
                state.memory.value < self.bounds.news && !state.memory.owes,
                AccountStep::Hear,
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
        let told = |sight: Option<Sight>| {
            sight.map_or_else(String::new, |Sight { upto, value }| {
                format!("{value} at history number {upto}")
            })
        };
        match step {
            AccountStep::Hear => format!("the part hears that the value is {}", after.memory.value),
            AccountStep::Restate => format!("that takes history number {}", after.memory.history),
            AccountStep::Log => format!("its log has the value {}", after.log.value),
            AccountStep::Crash => "the process crashes, and another goes on from the log".to_owned(),
            AccountStep::Begin => match state.client {
                Some(sight) => format!("the client begins a view; it has {}", told(Some(sight))),
                None => "the client begins a view, and has nothing".to_owned(),
            },
            AccountStep::Show => format!("the client is sent {}", told(after.frame)),
            AccountStep::Arrive => format!("the client sees {}", told(after.client)),
            AccountStep::Lose => "that is lost".to_owned(),
        }
    }

    /// The client sees the newest value, which is logged.
    fn settled(&self, state: &AccountState) -> bool {
        let newest = self.bounds.news;
        state.log.value == newest && state.client.is_some_and(|sight| sight.value == newest)
    }

    fn is_fault(&self, step: AccountStep) -> bool {
        matches!(step, AccountStep::Crash | AccountStep::Lose)
    }
}

impl AccountModel {
    /// What the client is sent next: only what is logged (G1), and of that only what it lacks (V3, V4).
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
            AccountStep::Hear => {
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
