//! Teleport of an entity into a space of another owner.
//!
//! X holds the entity in its space, Y is responsible for another space. Behaviour requests a teleport there: X hands
//! the entity over, Y takes or refuses it, and behaviour is notified of the outcome. As in the call model, each owner
//! has a log and a memory ahead of it, which a crash resets to the log. Calls and answers leave once they are logged,
//! are taken once and in order, and are resent until then (C1 to C4, which have a model of their own; so have
//! hand-overs among more owners). The rule is H9.

pub mod exhibits;

use crate::explorer::Model;
use crate::faults::{Faults, spend};
use crate::invariant::Invariant;
use crate::rule::{Rule, Rules};

/// Maximum requests within the bounds.
const MOST_WISHES: usize = 2;

/// Bounds of a schedule.
#[derive(Debug, Clone, Copy)]
pub struct TeleportBounds {
    /// Number of teleport requests by behaviour: at most 2.
    pub wishes: u8,
    /// Hand-overs refused.
    pub refusals: u8,
    /// Faults; crashes count here.
    pub faults: Faults,
}

/// The model of teleports.
#[derive(Debug, Clone, Copy)]
pub struct TeleportModel {
    /// The rules in force.
    pub rules: Rules,
    /// Bounds of a schedule.
    pub bounds: TeleportBounds,
}

/// The entity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
struct Being {
    /// Whether it is in Y's space.
    is_there: bool,
    /// Whether it waits for the outcome of the call that teleports it.
    waits: bool,
    /// Number of requests, and number of notifications of an outcome, according to the entity's behaviour.
    wished: u8,
    notified: u8,
}

/// The answer to a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Answer {
    Arrived,
    Refused,
}

/// State that a crash deletes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
struct Soft {
    /// Without one input: the entity has yet to leave.
    asked: bool,
    /// Without the wait: the last call teleports the entity.
    puts: bool,
    /// Without the end of the wait in the same input: behaviour has yet to be notified.
    owes: bool,
}

/// An owner, in memory or according to its log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
struct Owner {
    real: Option<Being>,
    departing: Option<Being>,
    /// X's calls, each with its image; Y's answers.
    calls: [Option<Being>; MOST_WISHES],
    answers: [Option<Answer>; MOST_WISHES],
    /// Number of calls or answers taken from the other owner.
    taken: usize,
    soft: Soft,
}

/// The state of the model: X and Y.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TeleportState {
    memory: [Owner; 2],
    log: [Owner; 2],
    wishes: u8,
    refusals: u8,
    left: Faults,
}

/// A step. Owners are named by index.
#[derive(Debug, Clone, Copy)]
pub enum TeleportStep {
    /// Behaviour requests a teleport into Y's space.
    Wish,
    /// Without one input: the entity leaves.
    Leave,
    /// Y receives the next call and takes the entity.
    Take,
    /// Y receives the next call and refuses the entity.
    Refuse,
    /// X receives the next answer.
    Receive,
    /// Without the end of the wait in the same input: behaviour is notified.
    Notify(usize),
    /// The log acknowledges the owner's state in memory.
    Log(usize),
    /// The owner's process crashes; its successor continues from the log.
    Crash(usize),
}

const X: usize = 0;
const Y: usize = 1;

impl Model for TeleportModel {
    type State = TeleportState;
    type Step = TeleportStep;

    fn start(&self) -> TeleportState {
        let mut owners = [Owner::default(); 2];
        owners[X].real = Some(Being::default());
        TeleportState {
            memory: owners,
            log: owners,
            wishes: self.bounds.wishes,
            refusals: self.bounds.refusals,
            left: self.bounds.faults,
        }
    }

    fn steps(&self, state: &TeleportState, steps: &mut Vec<TeleportStep>) {
        let [x, y] = &state.memory;
        let called = state.log[X].calls.get(y.taken).copied().flatten().is_some();
        let ways = [
            (
                state.wishes > 0 && x.real.is_some() && !x.soft.asked && !x.soft.owes,
                TeleportStep::Wish,
            ),
            (x.soft.asked, TeleportStep::Leave),
            (called, TeleportStep::Take),
            (called && state.refusals > 0, TeleportStep::Refuse),
            (state.next_answer().is_some(), TeleportStep::Receive),
        ];
        steps.extend(ways.into_iter().filter(|(is_open, _)| *is_open).map(|(_, step)| step));
        for owner in [X, Y] {
            if state.memory[owner].soft.owes {
                steps.push(TeleportStep::Notify(owner));
            }
            if state.memory[owner] != state.log[owner] {
                steps.push(TeleportStep::Log(owner));
                if state.left.crashes > 0 {
                    steps.push(TeleportStep::Crash(owner));
                }
            }
        }
    }

    fn take(&self, state: &TeleportState, step: TeleportStep) -> TeleportState {
        let mut after = *state;
        self.happen(&mut after, step);
        after
    }

    fn broken(&self, state: &TeleportState) -> Option<Invariant> {
        let real = state.log.iter().filter(|owner| owner.real.is_some()).count();
        if real > 1 || (real == 0 && state.log[X].departing.is_none()) {
            return Some(Invariant::OneReal);
        }
        let stands_at = |owner: usize, is_there: bool| {
            let real = state.log[owner].real;
            real.is_none_or(|being| being.is_there == is_there)
        };
        (!stands_at(X, false) || !stands_at(Y, true)).then_some(Invariant::HeldWhereItStands)
    }

    fn words(&self, state: &TeleportState, step: TeleportStep, after: &TeleportState) -> String {
        let name = |owner: usize| if owner == X { "X" } else { "Y" };
        let notification = |owner: usize| {
            let count = |state: &TeleportState| state.memory[owner].real.map(|being| being.notified);
            let before = count(state).or(state.memory[owner].departing.map(|being| being.notified));
            if count(after) > Some(before.unwrap_or_default()) {
                "behaviour is notified"
            } else {
                "behaviour is not notified"
            }
        };
        match step {
            TeleportStep::Wish if after.memory[X].soft.asked => "behaviour requests a teleport to Y's space".into(),
            TeleportStep::Wish => "behaviour requests a teleport to Y's space, and X hands it over".into(),
            TeleportStep::Leave => "X hands the entity over".into(),
            TeleportStep::Take => format!("Y receives the call and takes the entity; {}", notification(Y)),
            TeleportStep::Refuse => "Y receives the call, and refuses".into(),
            TeleportStep::Receive if after.memory[X].real.is_some() => {
                format!(
                    "X receives the refusal: the entity is real there again; {}",
                    notification(X)
                )
            }
            TeleportStep::Receive => "X receives the arrival of the entity".into(),
            TeleportStep::Notify(owner) => format!("{} notifies behaviour of the outcome", name(owner)),
            TeleportStep::Log(owner) => format!("{}'s log stores all its events", name(owner)),
            TeleportStep::Crash(owner) => format!("{} crashes; its successor continues from the log", name(owner)),
        }
    }

    /// The entity is real, nothing is in flight, and behaviour was notified of the outcome of each request.
    fn settled(&self, state: &TeleportState) -> bool {
        let [x, y] = &state.log;
        let made = x.calls.iter().flatten().count();
        let quiet = state.log == state.memory && x.departing.is_none() && (x.taken, y.taken) == (made, made);
        let real = x.real.or(y.real);
        quiet && real.is_some_and(|being| being.notified == being.wished && !being.waits)
    }

    fn is_fault(&self, step: TeleportStep) -> bool {
        matches!(step, TeleportStep::Wish | TeleportStep::Refuse | TeleportStep::Crash(_))
    }
}

impl TeleportModel {
    fn happen(&self, state: &mut TeleportState, step: TeleportStep) {
        match step {
            TeleportStep::Wish => {
                state.wishes -= 1;
                let x = &mut state.memory[X];
                if let Some(being) = &mut x.real {
                    being.wished += 1;
                }
                if self.rules.has(Rule::H9OneInput) {
                    self.leave(x);
                } else {
                    x.soft.asked = true;
                }
            }
            TeleportStep::Leave => self.leave(&mut state.memory[X]),
            TeleportStep::Take => {
                let call = state.log[X].calls[state.memory[Y].taken];
                let y = &mut state.memory[Y];
                y.real = call;
                // If the image does not say that it was teleported, the call does.
                let was_put = call.is_some_and(|being| being.waits) || !self.rules.has(Rule::H9Wait);
                self.end_wait(y, was_put);
                y.answer(Answer::Arrived);
            }
            TeleportStep::Refuse => {
                state.refusals -= 1;
                state.memory[Y].answer(Answer::Refused);
            }
            TeleportStep::Receive => {
                let Some(answer) = state.next_answer() else { return };
                let x = &mut state.memory[X];
                x.taken += 1;
                let departed = x.departing.take();
                if answer == Answer::Refused {
                    x.real = departed;
                    let was_put = departed.is_some_and(|being| being.waits) || std::mem::take(&mut x.soft.puts);
                    self.end_wait(x, was_put);
                }
            }
            TeleportStep::Notify(owner) => state.memory[owner].notify(),
            TeleportStep::Log(owner) => state.log[owner] = state.memory[owner],
            TeleportStep::Crash(owner) => {
                spend(&mut state.left.crashes);
                state.log[owner].soft = Soft::default();
                state.memory[owner] = state.log[owner];
            }
        }
    }

    /// The departing image has the new place, the kept entity the old one, and both wait.
    fn leave(&self, x: &mut Owner) {
        x.soft.asked = false;
        let Some(mut being) = x.real.take() else { return };
        if self.rules.has(Rule::H9Wait) {
            being.waits = true;
        } else {
            x.soft.puts = true;
        }
        being.is_there = !self.rules.has(Rule::H9OldPlace);
        x.departing = Some(being);
        let image = Being {
            is_there: true,
            ..being
        };
        if let Some(free) = x.calls.iter_mut().find(|call| call.is_none()) {
            *free = Some(image);
        }
    }

    /// The hand-over is over: so is the wait, and behaviour is notified.
    fn end_wait(&self, owner: &mut Owner, was_put: bool) {
        if was_put && self.rules.has(Rule::H9EndsWait) {
            owner.notify();
        } else {
            owner.soft.owes = was_put;
        }
    }
}

impl TeleportState {
    /// The next answer in Y's log that X has not received.
    fn next_answer(&self) -> Option<Answer> {
        self.log[Y].answers.get(self.memory[X].taken).copied().flatten()
    }
}

impl Owner {
    fn answer(&mut self, answer: Answer) {
        self.answers[self.taken] = Some(answer);
        self.taken += 1;
    }

    fn notify(&mut self) {
        self.soft.owes = false;
        if let Some(being) = &mut self.real {
            being.waits = false;
            being.notified += 1;
        }
    }
}
