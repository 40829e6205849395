//! Calls between two entities on owners that crash, while either entity may be handed over.
//!
//! Entity `e` calls entity `f`; the call bodies are x, y, z, each requested once. The owners are P and Q; `e` begins on
//! P and `f` on Q, and either may move to the other owner and back. Each owner has a state in its log and one in memory
//! that is ahead of it: a commit brings the log up to date, a crash resets the memory to the log. That a log keeps what
//! it acknowledged is covered by the log model; that a hand-over arrives once, by the hand-over model. The rules are C1
//! to C9.
//!
//! The bus is the set of all messages ever sent. Each may arrive anywhere, at any time and any number of times, so
//! repeats, delays and reordering are unbounded; a dropped message is one that never arrives. Only a *lost* message
//! leaves the set, and must be resent.

pub mod exhibits;
mod message;
mod owner;
mod words;

use crate::explorer::Model;
use crate::faults::{Faults, spend};
use crate::invariant::Invariant;
use crate::rule::{Rule, Rules};
use message::{Bus, Message, ToReceiver};
use owner::{Entity, Owner, Said};

/// P and Q.
const OWNERS: u8 = 2;
/// The caller's index among the entities.
const E: u8 = 0;
/// The receiver's index.
const F: u8 = 1;
const ENTITIES: [u8; 2] = [E, F];

/// Bounds of a schedule.
#[derive(Debug, Clone, Copy)]
pub struct CallsBounds {
    /// Calls requested: at most 3.
    pub calls: u8,
    /// Hand-overs of the caller.
    pub moves_of_caller: u8,
    /// Hand-overs of the receiver.
    pub moves_of_receiver: u8,
    /// Whether the receiver answers each call.
    pub answers: bool,
    /// Whether the caller may be destroyed.
    pub caller_dies: bool,
    /// Whether the receiver may be destroyed.
    pub receiver_dies: bool,
    /// Further parts that the caller may have after it was destroyed, each on the other owner.
    pub further_callers: u8,
    /// Further parts that the receiver may have. Calls to it wait for the last one.
    pub further_receivers: u8,
    /// Faults; crashes and drops count here.
    pub faults: Faults,
}

/// The model of calls.
#[derive(Debug, Clone, Copy)]
pub struct CallsModel {
    /// The rules in force.
    pub rules: Rules,
    /// Bounds of a schedule.
    pub bounds: CallsBounds,
}

/// The state of the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CallsState {
    /// The owners' states according to their logs.
    logged: [Owner; 2],
    /// The owners' states in memory.
    memory: [Owner; 2],
    bus: Bus,
    /// By entity: remaining hand-overs.
    moves: [u8; 2],
    /// By entity: remaining further parts.
    further: [u8; 2],
    left: Faults,
}

/// A step. Owners and entities are named by index.
#[derive(Debug, Clone, Copy)]
pub enum CallsStep {
    /// The caller, on this owner, makes the call with this body.
    Ask(u8, u8),
    /// The log acknowledges the owner's state in memory.
    Commit(u8),
    /// The owner's process crashes; its successor reads the log.
    Crash(u8),
    /// The owner sends an unconfirmed call of an entity: entity, number.
    Send(u8, u8, u8),
    /// The owner confirms the calls that an entity has taken.
    SendTook(u8, u8),
    /// A message arrives at an owner.
    Arrive(Message, u8),
    /// A message is lost.
    Lose(Message),
    /// An entity takes the next call from the other entity on the same owner.
    TakeHere(u8, u8),
    /// Without the first half of C2: a call is recorded as taken after its effects.
    Note(u8),
    /// The owner hands an entity over to the other owner.
    Offload(u8, u8),
    /// The owner takes over an entity.
    Onload(u8, u8),
    /// The owner deletes an entity that has arrived at the other owner.
    Depart(u8, u8),
    /// An entity is destroyed.
    Destroy(u8, u8),
    /// The state of a destroyed entity returns to its home, and its next part begins on the other owner.
    Return(u8, u8),
    /// The receiver's home reports that it is gone.
    AnswerGone,
    /// Without C6: an owner that does not have the receiver reports it as gone.
    AnswerGoneToo,
}

impl Model for CallsModel {
    type State = CallsState;
    type Step = CallsStep;

    fn start(&self) -> CallsState {
        let mut owners = [Owner::default(); 2];
        owners[0].here[usize::from(E)] = Some(Entity::default());
        owners[1].here[usize::from(F)] = Some(Entity::default());
        CallsState {
            logged: owners,
            memory: owners,
            bus: Bus::default(),
            moves: [self.bounds.moves_of_caller, self.bounds.moves_of_receiver],
            further: [self.bounds.further_callers, self.bounds.further_receivers],
            left: self.bounds.faults,
        }
    }

    fn steps(&self, state: &CallsState, steps: &mut Vec<CallsStep>) {
        for owner in 0..OWNERS {
            self.owner_steps(state, owner, steps);
            self.entity_steps(state, owner, steps);
            for message in state.bus.messages() {
                if self.means_something(state, message, owner) {
                    steps.push(CallsStep::Arrive(message, owner));
                }
            }
        }
        if state.left.drops > 0 {
            steps.extend(state.bus.messages().map(CallsStep::Lose));
        }
        let is_last = state.further[usize::from(F)] == 0
            && CallsState::entity(&state.memory, F).is_some_and(|receiver| receiver.is_dead);
        if is_last && state.receiver_is_destroyed() && !state.bus.has(Message::Gone) {
            steps.push(CallsStep::AnswerGone);
        }
        let absent = state.memory.iter().any(|owner| owner.here[usize::from(F)].is_none());
        if absent && !self.rules.has(Rule::C6GoneFromHome) && !state.bus.has(Message::Gone) {
            steps.push(CallsStep::AnswerGoneToo);
        }
    }

    fn take(&self, state: &CallsState, step: CallsStep) -> CallsState {
        let mut after = *state;
        self.happen(&mut after, step);
        after
    }

    /// What took permanent effect is a prefix of what the current caller asked for; and the caller never gives up a
    /// call to a receiver that exists.
    fn broken(&self, state: &CallsState) -> Option<Invariant> {
        let caller = CallsState::entity(&state.memory, E)?;
        let receiver = CallsState::entity(&state.logged, F)?;
        let once = caller.asked.begins_with(receiver.did);
        let lost = caller.gave_up && !state.receiver_is_destroyed();
        (!once || lost).then_some(Invariant::CallsTakeEffectOnce)
    }

    fn words(&self, state: &CallsState, step: CallsStep, _: &CallsState) -> String {
        words::words(state, step)
    }

    /// Every call made has taken effect, or its receiver is gone; every answer has arrived; nothing is outstanding.
    fn settled(&self, state: &CallsState) -> bool {
        let find = |entity| CallsState::entity(&state.logged, entity);
        let (Some(caller), Some(receiver)) = (find(E), find(F)) else {
            return false;
        };
        let quiet = state.logged == state.memory && caller.unconfirmed().is_none() && receiver.unconfirmed().is_none();
        let done = receiver.is_dead || caller.asked == receiver.did;
        let all_answered =
            !self.bounds.answers || caller.is_dead || receiver.is_dead || caller.answered == caller.asked;
        quiet && done && all_answered
    }

    fn is_fault(&self, step: CallsStep) -> bool {
        matches!(
            step,
            CallsStep::Ask(..)
                | CallsStep::Crash(_)
                | CallsStep::Lose(_)
                | CallsStep::Offload(..)
                | CallsStep::Destroy(..)
                | CallsStep::AnswerGoneToo
        )
    }
}

impl CallsModel {
    fn owner_steps(&self, state: &CallsState, owner: u8, steps: &mut Vec<CallsStep>) {
        let at = usize::from(owner);
        let (logged, memory) = (&state.logged[at], &state.memory[at]);
        if logged != memory {
            steps.push(CallsStep::Commit(owner));
        }
        let all_is_logged = self.rules.has(Rule::C2WithEffects) && self.rules.has(Rule::C7Awaiting);
        if state.left.crashes > 0 && (logged != memory || !all_is_logged) {
            steps.push(CallsStep::Crash(owner));
        }
        let source = &state.logged[1 - at];
        for entity in ENTITIES {
            let index = usize::from(entity);
            if memory.here[index].is_some_and(|found| !found.is_dead) && state.moves[index] > 0 {
                steps.push(CallsStep::Offload(owner, entity));
            }
            let settled = memory.here[index].is_some_and(|found| found.is_dead && found.unconfirmed().is_none());
            let has_ended = memory.here[index].is_some_and(|found| found.is_dead);
            let may_return = settled || (has_ended && !self.rules.has(Rule::C17Confirmed));
            if may_return && state.further[index] > 0 {
                steps.push(CallsStep::Return(owner, entity));
            }
            if source.leaving[index].is_some_and(|leaving| leaving.number > memory.arrived[index]) {
                steps.push(CallsStep::Onload(owner, entity));
            }
            if memory.leaving[index].is_some_and(|leaving| leaving.number <= source.arrived[index]) {
                steps.push(CallsStep::Depart(owner, entity));
            }
        }
        if !self.rules.has(Rule::C2WithEffects) && memory.here[usize::from(F)].is_some_and(|found| found.unnoted > 0) {
            steps.push(CallsStep::Note(owner));
        }
    }

    fn entity_steps(&self, state: &CallsState, owner: u8, steps: &mut Vec<CallsStep>) {
        let (logged, memory) = (&state.logged[usize::from(owner)], &state.memory[usize::from(owner)]);
        if let Some(caller) = memory.here[usize::from(E)].filter(|caller| !caller.is_dead) {
            let free = (0..self.bounds.calls).filter(|body| !caller.asked.contains(*body));
            steps.extend(free.map(|body| CallsStep::Ask(owner, body)));
            if self.bounds.caller_dies {
                steps.push(CallsStep::Destroy(owner, E));
            }
        }
        if self.bounds.receiver_dies && memory.here[usize::from(F)].is_some_and(|receiver| !receiver.is_dead) {
            steps.push(CallsStep::Destroy(owner, F));
        }
        for entity in ENTITIES {
            let index = usize::from(entity);
            let Some(found) = memory.here[index] else { continue };
            let in_log = logged.here[index].unwrap_or_default();
            if self.rules.has(Rule::C4Resent) {
                for (number, body) in found.unconfirmed() {
                    let may_leave = in_log.said.at(number) == Some(body) || !self.rules.has(Rule::C1LoggedFirst);
                    if may_leave
                        && !state.bus.has(Message::Call {
                            from: entity,
                            number,
                            body,
                        })
                    {
                        steps.push(CallsStep::Send(owner, entity, number));
                    }
                }
            }
            let taken = if self.rules.has(Rule::C3ThroughGate) {
                found.taken.min(in_log.taken)
            } else {
                found.taken
            };
            if taken > 0
                && !state.bus.has(Message::Took {
                    by: entity,
                    upto: taken,
                })
            {
                steps.push(CallsStep::SendTook(owner, entity));
            }
            let other = memory.here[1 - index];
            if other.is_some_and(|other| found.next_of(&other).is_some()) {
                steps.push(CallsStep::TakeHere(owner, entity));
            }
        }
    }

    fn happen(&self, state: &mut CallsState, step: CallsStep) {
        match step {
            CallsStep::Ask(owner, body) => self.ask(state, owner, body),
            CallsStep::Commit(owner) => self.commit(state, owner),
            CallsStep::Crash(owner) => {
                spend(&mut state.left.crashes);
                let logged = &mut state.logged[usize::from(owner)];
                logged.forget_what_no_log_has(!self.rules.has(Rule::C7Awaiting));
                state.memory[usize::from(owner)] = *logged;
            }
            CallsStep::Send(owner, entity, number) => {
                if let Some(body) = state.real(owner, entity).and_then(|found| found.said.at(number)) {
                    state.bus.add(Message::Call {
                        from: entity,
                        number,
                        body,
                    });
                }
            }
            CallsStep::SendTook(owner, entity) => {
                let at = usize::from(owner);
                let gate = self.rules.has(Rule::C3ThroughGate);
                let owners = if gate { &state.logged } else { &state.memory };
                if let Some(found) = owners[at].here[usize::from(entity)] {
                    state.bus.add(Message::Took {
                        by: entity,
                        upto: found.taken,
                    });
                }
            }
            CallsStep::Arrive(message, owner) => self.arrive(state, message, owner),
            CallsStep::Lose(message) => {
                spend(&mut state.left.drops);
                state.bus.remove(message);
            }
            CallsStep::TakeHere(owner, entity) => self.take_here(state, owner, entity),
            CallsStep::Note(owner) => {
                if let Some(found) = state.real_mut(owner, F) {
                    found.taken += found.unnoted;
                    found.unnoted = 0;
                }
            }
            CallsStep::Offload(owner, entity) => self.offload(state, owner, entity),
            CallsStep::Onload(owner, entity) => self.onload(state, owner, entity),
            CallsStep::Depart(owner, entity) => state.memory[usize::from(owner)].leaving[usize::from(entity)] = None,
            CallsStep::Destroy(owner, entity) => self.destroy(state, owner, entity),
            CallsStep::Return(owner, entity) => self.return_ended(state, owner, entity),
            CallsStep::AnswerGone | CallsStep::AnswerGoneToo => state.bus.add(Message::Gone),
        }
    }

    /// C5: a call within the owner is made at once, unless calls on the link are unconfirmed; else it is logged and
    /// numbered.
    fn ask(&self, state: &mut CallsState, owner: u8, body: u8) {
        let receiver_is_here = state.real(owner, F).is_some_and(|receiver| !receiver.is_dead);
        let answers = self.bounds.answers;
        let Some(caller) = state.real_mut(owner, E) else { return };
        caller.asked.push(body);
        let behind = caller.unconfirmed().is_some() && self.rules.has(Rule::C5Queued);
        if answers || behind || !receiver_is_here {
            caller.awaiting |= 1 << body;
            caller.said.push(body);
        } else if let Some(receiver) = state.real_mut(owner, F) {
            receiver.did.push(body);
        }
    }

    /// The log acknowledges the whole state; outputs that waited in the gate may leave.
    fn commit(&self, state: &mut CallsState, owner: u8) {
        let at = usize::from(owner);
        let before = state.logged[at];
        state.logged[at] = state.memory[at];
        if !self.rules.has(Rule::C4Resent) {
            for entity in ENTITIES {
                let (Some(now), then) = (
                    state.logged[at].here[usize::from(entity)],
                    before.here[usize::from(entity)],
                ) else {
                    continue;
                };
                for (number, body) in now.unconfirmed() {
                    if then.is_none_or(|then| then.said.at(number).is_none()) {
                        state.bus.add(Message::Call {
                            from: entity,
                            number,
                            body,
                        });
                    }
                }
            }
        }
    }

    fn means_something(&self, state: &CallsState, message: Message, owner: u8) -> bool {
        match message.receiver() {
            ToReceiver::Call { to, number, body } => state
                .real(owner, to)
                .is_some_and(|found| !found.is_dead && self.takes(&found, number, body)),
            ToReceiver::Took { caller, upto } => state
                .real(owner, caller)
                .is_some_and(|found| found.confirmed < upto && found.said.len() >= upto),
            ToReceiver::Gone => state.real(owner, E).is_some_and(|found| found.unconfirmed().is_some()),
        }
    }

    /// C2: only the next number is taken.
    fn takes(&self, receiver: &Entity, number: u8, body: u8) -> bool {
        let next = receiver.taken + receiver.unnoted + 1;
        let room = !receiver.did.is_full();
        let repeated = number < next && !self.rules.has(Rule::C2Once) && receiver.did.contains(body);
        let early = number > next && !self.rules.has(Rule::C2InOrder);
        room && (number == next || repeated || early)
    }

    fn arrive(&self, state: &mut CallsState, message: Message, owner: u8) {
        match message.receiver() {
            ToReceiver::Call { to, number, body } => self.take_call(state, owner, to, number, body),
            ToReceiver::Took { caller, upto } => {
                if let Some(found) = state.real_mut(owner, caller) {
                    found.confirmed = found.confirmed.max(upto);
                }
            }
            ToReceiver::Gone => {
                if let Some(found) = state.real_mut(owner, E) {
                    found.confirmed = found.said.len();
                    found.gave_up = true;
                }
            }
        }
    }

    fn take_call(&self, state: &mut CallsState, owner: u8, to: u8, number: u8, body: u8) {
        let answers = self.bounds.answers;
        let with_effects = self.rules.has(Rule::C2WithEffects);
        let Some(found) = state.real_mut(owner, to) else { return };
        if to == F && !with_effects {
            found.unnoted += 1;
        } else {
            found.taken = found.taken.max(number);
        }
        if to == F {
            found.did.push(body);
            if answers {
                found.said.push(body);
            }
        } else if found.awaiting & 1 << body != 0 {
            found.awaiting &= !(1 << body);
            found.answered.push(body);
        }
    }

    fn take_here(&self, state: &mut CallsState, owner: u8, entity: u8) {
        let Some(other) = state.real(owner, 1 - entity) else {
            return;
        };
        let Some((number, body)) = state.real(owner, entity).and_then(|found| found.next_of(&other)) else {
            return;
        };
        self.take_call(state, owner, entity, number, body);
        if let Some(other) = state.real_mut(owner, 1 - entity) {
            other.confirmed = other.confirmed.max(number);
        }
    }

    /// H1, for links: the image contains both ends.
    fn offload(&self, state: &mut CallsState, owner: u8, entity: u8) {
        let index = usize::from(entity);
        state.moves[index] -= 1;
        let memory = &mut state.memory[usize::from(owner)];
        let Some(mut image) = memory.here[index].take() else {
            return;
        };
        if !self.rules.has(Rule::C1SenderMoves) {
            image.said = Said::default();
            image.confirmed = 0;
        }
        if !self.rules.has(Rule::C2ReceiverMoves) {
            image.taken = 0;
        }
        memory.leave(entity, image);
    }

    fn onload(&self, state: &mut CallsState, owner: u8, entity: u8) {
        let index = usize::from(entity);
        if let Some(leaving) = state.logged[usize::from(1 - owner)].leaving[index] {
            let memory = &mut state.memory[usize::from(owner)];
            memory.arrived[index] = leaving.number;
            memory.here[index] = Some(leaving.image);
        }
    }

    /// C9: its calls stay until they are confirmed.
    fn destroy(&self, state: &mut CallsState, owner: u8, entity: u8) {
        let keeps = self.rules.has(Rule::C9CallsOutlive);
        if let Some(found) = state.real_mut(owner, entity) {
            found.is_dead = true;
            if !keeps {
                found.confirmed = found.said.len();
            }
        }
    }

    /// C17: by numbered calls, the state goes to the entity's home and from there to the next part. Its former calls are
    /// not part of it.
    fn return_ended(&self, state: &mut CallsState, owner: u8, entity: u8) {
        let index = usize::from(entity);
        state.further[index] -= 1;
        let memory = &mut state.memory[usize::from(owner)];
        let Some(mut next) = memory.here[index].take() else {
            return;
        };
        next.is_dead = false;
        next.confirmed = next.said.len();
        if !self.rules.has(Rule::C17Continued) {
            (next.said, next.confirmed, next.taken) = (Said::default(), 0, 0);
        }
        memory.leave(entity, next);
    }
}

impl CallsState {
    /// The entity on that owner, according to the owner's memory.
    fn real(&self, owner: u8, entity: u8) -> Option<Entity> {
        self.memory[usize::from(owner)].here[usize::from(entity)]
    }

    fn real_mut(&mut self, owner: u8, entity: u8) -> Option<&mut Entity> {
        self.memory[usize::from(owner)].here[usize::from(entity)].as_mut()
    }

    /// The entity according to `owners`: where it is real, or else where it is leaving.
    fn entity(owners: &[Owner; 2], entity: u8) -> Option<Entity> {
        let index = usize::from(entity);
        let here = owners.iter().find_map(|owner| owner.here[index]);
        here.or_else(|| {
            let leaving = owners.iter().filter_map(|owner| owner.leaving[index]);
            leaving
                .max_by_key(|leaving| leaving.number)
                .map(|leaving| leaving.image)
        })
    }

    fn receiver_is_destroyed(&self) -> bool {
        Self::entity(&self.logged, F).is_some_and(|receiver| receiver.is_dead)
    }
}
