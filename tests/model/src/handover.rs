//! One entity that is handed over between owners that crash.
//!
//! The owners are X, Y and Z; the entity begins on X, and its home, which never crashes here, knows its place. A
//! hand-over is a call on the link between two owners, and so is its answer; the model includes these links in full
//! (numbers, confirmations, resending), because the rules H rest on them. As in the call model, each owner has a log
//! and a memory ahead of it, and the bus is the set of everything sent. The rules are H1 to H6.

pub mod exhibits;
mod message;
mod owner;
mod words;

use crate::explorer::Model;
use crate::faults::{Faults, spend};
use crate::invariant::Invariant;
use crate::rule::{Rule, Rules};
use message::{Bus, Kind, Message};
use owner::Owner;

/// X, Y and Z.
const MOST_OWNERS: usize = 3;

/// Bounds of a schedule.
#[derive(Debug, Clone, Copy)]
pub struct HandoverBounds {
    /// Number of owners: 2 or 3.
    pub owners: u8,
    /// Hand-overs begun: at most 3.
    pub moves: u8,
    /// Whether hand-overs go only from X to Y to Z to X, rather than between any two owners.
    pub ring: bool,
    /// Hand-overs refused.
    pub refusals: u8,
    /// Faults; crashes and drops count here.
    pub faults: Faults,
}

/// The model of hand-over.
#[derive(Debug, Clone, Copy)]
pub struct HandoverModel {
    /// The rules in force.
    pub rules: Rules,
    /// Bounds of a schedule.
    pub bounds: HandoverBounds,
}

/// The home's record of the entity's place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Home {
    place: u8,
    /// Number of the call that reported it.
    taken: u8,
}

/// The state of the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct HandoverState {
    logged: [Owner; MOST_OWNERS],
    memory: [Owner; MOST_OWNERS],
    home: Home,
    bus: Bus,
    moves: u8,
    refusals: u8,
    left: Faults,
}

/// A step. Owners are named by index.
#[derive(Debug, Clone, Copy)]
pub enum HandoverStep {
    /// From, to: the entity is handed over.
    Offload(u8, u8),
    /// Without the first half of H1: the change that follows the call is made.
    OffloadLater(u8, u8),
    /// The log acknowledges the owner's state in memory.
    Commit(u8),
    /// The owner's process crashes; its successor reads the log.
    Crash(u8),
    /// From, to, number: an unconfirmed call is sent.
    Send(u8, u8, u8),
    /// By, of: the owner confirms the calls that it has taken from another owner.
    SendTook(u8, u8),
    /// The owner reports to the home that the entity is here.
    SendPlace(u8),
    /// A message arrives.
    Arrive(Message),
    /// A call arrives, and the entity in it is refused.
    ArriveRefused(Message),
    /// A message is lost.
    Lose(Message),
    /// Without H4: an owner that has received no answer takes the entity back.
    TakeBack(u8, u8),
}

impl Model for HandoverModel {
    type State = HandoverState;
    type Step = HandoverStep;

    fn start(&self) -> HandoverState {
        let mut owners = [Owner::default(); MOST_OWNERS];
        owners[0].real = Some(0);
        HandoverState {
            logged: owners,
            memory: owners,
            home: Home { place: 0, taken: 0 },
            bus: Bus::default(),
            moves: self.bounds.moves,
            refusals: self.bounds.refusals,
            left: self.bounds.faults,
        }
    }

    fn steps(&self, state: &HandoverState, steps: &mut Vec<HandoverStep>) {
        for owner in 0..self.bounds.owners {
            self.owner_steps(state, owner, steps);
            for other in (0..self.bounds.owners).filter(|other| *other != owner) {
                self.link_steps(state, owner, other, steps);
            }
        }
        for message in state.bus.messages() {
            if self.means_something(state, message) {
                steps.push(HandoverStep::Arrive(message));
                if state.refusals > 0
                    && matches!(
                        message,
                        Message::Call {
                            kind: Kind::Onload { .. },
                            ..
                        }
                    )
                {
                    steps.push(HandoverStep::ArriveRefused(message));
                }
            }
            if state.left.drops > 0 {
                steps.push(HandoverStep::Lose(message));
            }
        }
    }

    fn take(&self, state: &HandoverState, step: HandoverStep) -> HandoverState {
        let mut after = *state;
        self.happen(&mut after, step);
        after
    }

    /// At most one owner's log has the entity real; if none has, one log has it departing.
    fn broken(&self, state: &HandoverState) -> Option<Invariant> {
        let real = state.logged.iter().filter(|owner| owner.real.is_some()).count();
        let under_way = state.logged.iter().any(Owner::has_departing);
        (real > 1 || real == 0 && !under_way).then_some(Invariant::OneReal)
    }

    fn words(&self, state: &HandoverState, step: HandoverStep, _: &HandoverState) -> String {
        words::words(state, step)
    }

    /// The entity is real on one owner, its home knows, and nothing is outstanding.
    fn settled(&self, state: &HandoverState) -> bool {
        let quiet = state.logged == state.memory && state.logged.iter().all(Owner::is_quiet);
        let mut real = (0u8..)
            .zip(state.logged)
            .filter_map(|(index, owner)| Some((index, owner.real?)));
        match (real.next(), real.next()) {
            (Some((index, moves)), None) => {
                quiet
                    && state.home
                        == Home {
                            place: index,
                            taken: moves,
                        }
            }
            _ => false,
        }
    }

    fn is_fault(&self, step: HandoverStep) -> bool {
        matches!(
            step,
            HandoverStep::Offload(..)
                | HandoverStep::Crash(_)
                | HandoverStep::ArriveRefused(_)
                | HandoverStep::Lose(_)
                | HandoverStep::TakeBack(..)
        )
    }
}

impl HandoverModel {
    fn owner_steps(&self, state: &HandoverState, index: u8, steps: &mut Vec<HandoverStep>) {
        let at = usize::from(index);
        let (logged, memory) = (&state.logged[at], &state.memory[at]);
        if logged != memory {
            steps.push(HandoverStep::Commit(index));
            if state.left.crashes > 0 {
                steps.push(HandoverStep::Crash(index));
            }
        }
        if let Some(moves) = memory.real {
            let next = (index + 1) % self.bounds.owners;
            for to in (0..self.bounds.owners).filter(|to| *to != index && (*to == next || !self.bounds.ring)) {
                let pending = memory.departing[usize::from(to)].is_some() || memory.half_left.is_some();
                if state.moves > 0 && !pending && !memory.out[usize::from(to)].is_full() {
                    steps.push(HandoverStep::Offload(index, to));
                }
            }
            let place = Message::Place {
                owner: index,
                number: moves,
            };
            let in_log = logged.real == memory.real || !self.rules.has(Rule::H1Logged);
            if memory.owes_place && in_log && !state.bus.has(place) {
                steps.push(HandoverStep::SendPlace(index));
            }
        }
        if let Some(to) = memory.half_left {
            steps.push(HandoverStep::OffloadLater(index, to));
        }
    }

    fn link_steps(&self, state: &HandoverState, from: u8, to: u8, steps: &mut Vec<HandoverStep>) {
        let (logged, memory) = (&state.logged[usize::from(from)], &state.memory[usize::from(from)]);
        let (in_log, out) = (&logged.out[usize::from(to)], &memory.out[usize::from(to)]);
        for (number, kind) in out.unconfirmed() {
            let may_leave = in_log.at(number) == Some(kind) || !self.rules.has(Rule::H1Logged);
            if may_leave && !state.bus.has(Message::Call { from, to, number, kind }) {
                steps.push(HandoverStep::Send(from, to, number));
            }
        }
        let taken = logged.taken[usize::from(to)].min(memory.taken[usize::from(to)]);
        if taken > 0
            && !state.bus.has(Message::Took {
                by: from,
                of: to,
                upto: taken,
            })
        {
            steps.push(HandoverStep::SendTook(from, to));
        }
        if !self.rules.has(Rule::H4OnlyRefused) && memory.departing[usize::from(to)].is_some() {
            steps.push(HandoverStep::TakeBack(from, to));
        }
    }

    fn happen(&self, state: &mut HandoverState, step: HandoverStep) {
        match step {
            HandoverStep::Offload(from, to) => {
                state.moves -= 1;
                self.offload(&mut state.memory[usize::from(from)], to);
            }
            HandoverStep::OffloadLater(from, to) => {
                let owner = &mut state.memory[usize::from(from)];
                owner.half_left = None;
                owner.depart(to);
            }
            HandoverStep::Commit(owner) => state.logged[usize::from(owner)] = state.memory[usize::from(owner)],
            HandoverStep::Crash(owner) => {
                spend(&mut state.left.crashes);
                state.logged[usize::from(owner)].half_left = None;
                state.memory[usize::from(owner)] = state.logged[usize::from(owner)];
            }
            HandoverStep::Send(from, to, number) => {
                if let Some(kind) = state.memory[usize::from(from)].out[usize::from(to)].at(number) {
                    state.bus.add(Message::Call { from, to, number, kind });
                    self.sent(state, from, to, number);
                }
            }
            HandoverStep::SendTook(by, of) => {
                let upto = state.logged[usize::from(by)].taken[usize::from(of)];
                state.bus.add(Message::Took { by, of, upto });
            }
            HandoverStep::SendPlace(owner) => {
                if let Some(number) = state.memory[usize::from(owner)].real {
                    state.bus.add(Message::Place { owner, number });
                }
            }
            HandoverStep::Arrive(message) => self.arrive(state, message, false),
            HandoverStep::ArriveRefused(message) => {
                state.refusals -= 1;
                self.arrive(state, message, true);
            }
            HandoverStep::Lose(message) => {
                spend(&mut state.left.drops);
                state.bus.remove(message);
            }
            HandoverStep::TakeBack(owner, to) => state.memory[usize::from(owner)].take_back(to),
        }
    }

    /// H1: `Offloaded`, and the call that carries the image, in one input.
    fn offload(&self, owner: &mut Owner, to: u8) {
        let Some(moves) = owner.real else { return };
        owner.out[usize::from(to)].push(Kind::Onload { moves });
        if self.rules.has(Rule::H1OneInput) {
            owner.depart(to);
        } else {
            owner.half_left = Some(to);
        }
    }

    /// Without H2 or H3, a call that was sent once counts as confirmed.
    fn sent(&self, state: &mut HandoverState, from: u8, to: u8, number: u8) {
        let out = state.logged[usize::from(from)].out[usize::from(to)];
        let resent = match out.at(number) {
            Some(Kind::Onload { .. }) | None => self.rules.has(Rule::H2Resent),
            Some(Kind::Arrived { .. } | Kind::Refused { .. }) => self.rules.has(Rule::H3AnswerIsCall),
        };
        if !resent {
            for owners in [&mut state.logged, &mut state.memory] {
                owners[usize::from(from)].out[usize::from(to)].confirm(number);
            }
        }
    }

    fn means_something(&self, state: &HandoverState, message: Message) -> bool {
        match message {
            Message::Call { from, to, number, kind } => {
                let receiver = &state.memory[usize::from(to)];
                let next = receiver.taken[usize::from(from)] + 1;
                let again = !self.rules.has(Rule::H3Once) && matches!(kind, Kind::Onload { .. }) && number < next;
                let room = !receiver.out[usize::from(from)].is_full();
                (number == next || again && receiver.real.is_none()) && room
            }
            Message::Took { by, of, upto } => state.memory[usize::from(of)].out[usize::from(by)].is_news(upto),
            Message::Place { owner, number } => {
                let other = (owner, number) != (state.home.place, state.home.taken);
                let taken = if self.rules.has(Rule::H6Ordered) {
                    number > state.home.taken
                } else {
                    other
                };
                taken || !state.bus.has(Message::TookPlace { number })
            }
            Message::TookPlace { number } => state
                .memory
                .iter()
                .any(|owner| owner.real == Some(number) && owner.owes_place),
        }
    }

    fn arrive(&self, state: &mut HandoverState, message: Message, refused: bool) {
        match message {
            Message::Call { from, to, number, kind } => {
                let receiver = &mut state.memory[usize::from(to)];
                receiver.taken[usize::from(from)] = receiver.taken[usize::from(from)].max(number);
                match kind {
                    Kind::Onload { moves } if refused => receiver.out[usize::from(from)].push(Kind::Refused { moves }),
                    Kind::Onload { moves } => {
                        receiver.settle(moves + 1);
                        receiver.out[usize::from(from)].push(Kind::Arrived { moves });
                    }
                    Kind::Arrived { moves } => self.arrived(receiver, from, moves),
                    Kind::Refused { moves } => self.refused(receiver, from, moves),
                }
            }
            Message::Took { by, of, upto } => state.memory[usize::from(of)].out[usize::from(by)].confirm(upto),
            Message::Place { owner, number } => {
                if number > state.home.taken || !self.rules.has(Rule::H6Ordered) {
                    state.home = Home {
                        place: owner,
                        taken: number,
                    };
                }
                state.bus.add(Message::TookPlace { number });
            }
            Message::TookPlace { number } => {
                for owner in state.memory.iter_mut().filter(|owner| owner.real == Some(number)) {
                    owner.owes_place = false;
                }
            }
        }
    }

    /// H4: the arrival deletes the entity that departed with that call, and no other.
    fn arrived(&self, owner: &mut Owner, from: u8, moves: u8) {
        if owner.departing[usize::from(from)] == Some(moves) {
            owner.departing[usize::from(from)] = None;
            if !self.rules.has(Rule::H4ThatOne) {
                owner.real = None;
            }
        }
    }

    fn refused(&self, owner: &mut Owner, from: u8, moves: u8) {
        if owner.departing[usize::from(from)] == Some(moves) {
            if self.rules.has(Rule::H4Returned) {
                owner.take_back(from);
            } else {
                owner.departing[usize::from(from)] = None;
            }
        }
    }
}
