//! Calls on a link while the logs of its ends are cut at accepted holes.
//!
//! A sender makes calls to a receiver; each has its own log. A commit brings the log up to date with the memory. A cut
//! sets a log back by one commit and voids that commit, and a successor continues from there: what the void batches
//! made, took or confirmed never happened for this end, but the other end and the messages in transit still know of it.
//! Hand-overs are left out: the model of calls has them. The rules are C2 and C13.
//!
//! Numbers have generations: generation g has the numbers above 3g, of which a schedule uses at most three.

pub mod exhibits;
mod words;

use crate::explorer::Model;
use crate::faults::{Faults, spend};
use crate::invariant::Invariant;
use crate::rule::{Rule, Rules};

/// Maximum calls of a schedule, and so of a generation.
const MAX_CALLS: u8 = 3;

/// Bounds of a schedule.
#[derive(Debug, Clone, Copy)]
pub struct CutBounds {
    /// Calls: at most 3.
    pub calls: u8,
    /// Cuts of the sender's log: at most 2.
    pub cuts_of_sender: u8,
    /// Cuts of the receiver's log.
    pub cuts_of_receiver: u8,
    /// Crashes and lost messages.
    pub faults: Faults,
}

/// The model of cut logs.
#[derive(Debug, Clone, Copy)]
pub struct CutModel {
    /// The rules in force.
    pub rules: Rules,
    /// Bounds of a schedule.
    pub bounds: CutBounds,
}

/// A call: its number on the link, and its body, which no other call has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Call {
    number: u8,
    body: u8,
}

/// The sending end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
struct Sender {
    generation: u8,
    last: u8,
    /// Unconfirmed calls, oldest first.
    unconfirmed: [Option<Call>; MAX_CALLS as usize],
    /// Bodies of the calls made: a bit set.
    made: u8,
}

/// The receiving end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
struct Receiver {
    /// The highest number taken or skipped.
    taken: u8,
    /// Bodies of the calls taken, in this order.
    did: [Option<u8>; MAX_CALLS as usize],
}

/// An end of the link: in memory, in its log, and in its log before the newest commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
struct End<T> {
    memory: T,
    logged: T,
    before: T,
}

/// The messages ever sent: bit sets. Each may arrive at any time and any number of times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
struct Bus {
    /// By number, body, and whether all earlier calls are confirmed.
    calls: u64,
    /// By number.
    took: u16,
}

/// The state of the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct CutState {
    sender: End<Sender>,
    receiver: End<Receiver>,
    bus: Bus,
    /// The generation in the store: the number of cuts of the sender's log.
    generation: u8,
    /// Calls made so far, void ones included.
    calls: u8,
    /// Bodies of the calls that were taken in void batches: a bit set.
    voided: u8,
    cuts_of_receiver: u8,
    left: Faults,
}

/// A step.
#[derive(Debug, Clone, Copy)]
pub enum CutStep {
    /// The sender makes a call.
    Make,
    /// The sender's log acknowledges its memory.
    CommitSender,
    /// The receiver's log acknowledges its memory.
    CommitReceiver,
    /// The sender sends an unconfirmed call; the flag says that all earlier ones are confirmed.
    Send(Call, bool),
    /// A call is lost: it arrives no more, unless it is sent again.
    Lose(Call, bool),
    /// A call arrives.
    Arrive(Call, bool),
    /// The receiver confirms what it has taken.
    SendTook,
    /// A confirmation up to this number arrives.
    ArriveTook(u8),
    /// The sender's process crashes.
    CrashSender,
    /// The receiver's process crashes.
    CrashReceiver,
    /// The newest commit of the sender's log becomes void.
    CutSender,
    /// The newest commit of the receiver's log becomes void.
    CutReceiver,
}

impl Model for CutModel {
    type State = CutState;
    type Step = CutStep;

    fn start(&self) -> CutState {
        CutState {
            left: self.bounds.faults,
            ..CutState::default()
        }
    }

    fn steps(&self, state: &CutState, steps: &mut Vec<CutStep>) {
        let (sender, receiver) = (&state.sender, &state.receiver);
        if state.calls < self.bounds.calls {
            steps.push(CutStep::Make);
        }
        if sender.memory != sender.logged {
            steps.push(CutStep::CommitSender);
        }
        if receiver.memory != receiver.logged {
            steps.push(CutStep::CommitReceiver);
        }
        for (call, is_oldest) in sender.memory.unconfirmed() {
            let is_logged = sender.logged.unconfirmed().any(|(logged, _)| logged == call);
            if is_logged && !state.bus.has_call(call, is_oldest) {
                steps.push(CutStep::Send(call, is_oldest));
            }
        }
        for (call, is_oldest) in state.bus.calls() {
            if self.takes(&receiver.memory, call, is_oldest) {
                steps.push(CutStep::Arrive(call, is_oldest));
            }
            if state.left.drops > 0 {
                steps.push(CutStep::Lose(call, is_oldest));
            }
        }
        let taken = receiver.logged.taken.min(receiver.memory.taken);
        if taken > 0 && !state.bus.has_took(taken) {
            steps.push(CutStep::SendTook);
        }
        let oldest = sender.memory.unconfirmed().next();
        if let Some((oldest, _)) = oldest {
            let confirming = (oldest.number..16).filter(|upto| state.bus.has_took(*upto));
            steps.extend(confirming.map(CutStep::ArriveTook));
        }
        if state.left.crashes > 0 {
            steps.extend([CutStep::CrashSender, CutStep::CrashReceiver]);
        }
        if state.generation < self.bounds.cuts_of_sender {
            steps.push(CutStep::CutSender);
        }
        if state.cuts_of_receiver < self.bounds.cuts_of_receiver {
            steps.push(CutStep::CutReceiver);
        }
    }

    fn take(&self, state: &CutState, step: CutStep) -> CutState {
        let mut after = *state;
        match step {
            CutStep::Make => {
                after.sender.memory.make(after.calls);
                after.calls += 1;
            }
            CutStep::CommitSender => after.sender.commit(),
            CutStep::CommitReceiver => after.receiver.commit(),
            CutStep::Send(call, is_oldest) => after.bus.calls |= call_bit(call, is_oldest),
            CutStep::Lose(call, is_oldest) => {
                spend(&mut after.left.drops);
                after.bus.calls &= !call_bit(call, is_oldest);
            }
            CutStep::Arrive(call, _) => after.receiver.memory.take(call),
            CutStep::SendTook => {
                after.bus.took |= 1 << after.receiver.logged.taken.min(after.receiver.memory.taken);
            }
            CutStep::ArriveTook(upto) => after.sender.memory.confirm(upto),
            CutStep::CrashSender => {
                spend(&mut after.left.crashes);
                after.sender.memory = after.sender.logged;
                self.renumber(&mut after);
            }
            CutStep::CrashReceiver => {
                spend(&mut after.left.crashes);
                after.receiver.memory = after.receiver.logged;
            }
            CutStep::CutSender => {
                after.generation += 1;
                after.sender.cut();
                self.renumber(&mut after);
            }
            CutStep::CutReceiver => {
                after.cuts_of_receiver += 1;
                let lost = after.receiver.logged.bodies() | after.receiver.memory.bodies();
                after.receiver.cut();
                after.voided |= lost & !after.receiver.memory.bodies();
            }
        }
        after
    }

    /// What stays in the receiver's log is what the sender's log has made, once and in order; nothing is skipped that
    /// was not taken in a void batch. Void calls may be among it.
    fn broken(&self, state: &CutState) -> Option<Invariant> {
        let made = state.sender.logged.made;
        let did = state.receiver.logged.did;
        let valid: Vec<u8> = did
            .iter()
            .flatten()
            .copied()
            .filter(|body| made & 1 << body != 0)
            .collect();
        let in_order = valid.is_sorted_by(|one, next| one < next);
        let last = valid.last().copied().unwrap_or_default();
        let before = made & ((1_u8 << last) - 1);
        let skipped = before & !state.receiver.logged.bodies() & !state.voided;
        (!in_order || skipped != 0).then_some(Invariant::CallsTakeEffectOnce)
    }

    fn words(&self, state: &CutState, step: CutStep, after: &CutState) -> String {
        words::words(state, step, after)
    }

    /// Every call in the sender's log has taken effect, except in void batches, and is confirmed.
    fn settled(&self, state: &CutState) -> bool {
        let (sender, receiver) = (&state.sender, &state.receiver);
        let is_logged = sender.memory == sender.logged && receiver.memory == receiver.logged;
        let missing = sender.logged.made & !receiver.logged.bodies() & !state.voided;
        is_logged && sender.logged.unconfirmed().next().is_none() && missing == 0
    }

    fn is_fault(&self, step: CutStep) -> bool {
        matches!(
            step,
            CutStep::Make
                | CutStep::Lose(..)
                | CutStep::CrashSender
                | CutStep::CrashReceiver
                | CutStep::CutSender
                | CutStep::CutReceiver
        )
    }
}

impl CutModel {
    /// C2: the next number is taken; and a later one, if all earlier calls are confirmed.
    fn takes(&self, receiver: &Receiver, call: Call, is_oldest: bool) -> bool {
        let next = receiver.taken + 1;
        let may_skip = is_oldest && self.rules.has(Rule::C2OldestSkips);
        call.number == next || call.number > next && may_skip
    }

    /// C13: the successor on a log that was cut continues in the generation that the store assigned.
    fn renumber(&self, state: &mut CutState) {
        if self.rules.has(Rule::C13Renumbered) {
            state.sender.memory.generation = state.generation;
        }
    }
}

impl Sender {
    fn make(&mut self, body: u8) {
        let number = self.last.max(self.generation * MAX_CALLS) + 1;
        self.last = number;
        self.made |= 1 << body;
        let free = self.unconfirmed.iter_mut().find(|call| call.is_none());
        *free.expect("a schedule has no more calls than fit") = Some(Call { number, body });
    }

    /// The unconfirmed calls, and whether each is the oldest.
    fn unconfirmed(&self) -> impl Iterator<Item = (Call, bool)> {
        let calls = self.unconfirmed.into_iter().flatten();
        calls.enumerate().map(|(place, call)| (call, place == 0))
    }

    fn confirm(&mut self, upto: u8) {
        let mut left = self.unconfirmed.into_iter().flatten().filter(|call| call.number > upto);
        self.unconfirmed = std::array::from_fn(|_| left.next());
    }
}

impl Receiver {
    fn take(&mut self, call: Call) {
        self.taken = call.number;
        let free = self.did.iter_mut().find(|body| body.is_none());
        *free.expect("each body is taken once") = Some(call.body);
    }

    fn bodies(&self) -> u8 {
        self.did.iter().flatten().fold(0, |bodies, body| bodies | 1 << body)
    }
}

impl<T: Copy> End<T> {
    fn commit(&mut self) {
        self.before = self.logged;
        self.logged = self.memory;
    }

    fn cut(&mut self) {
        self.logged = self.before;
        self.memory = self.before;
    }
}

impl Bus {
    fn has_call(self, call: Call, is_oldest: bool) -> bool {
        self.calls & call_bit(call, is_oldest) != 0
    }

    fn calls(self) -> impl Iterator<Item = (Call, bool)> {
        (0..u64::BITS).filter(move |bit| self.calls & 1 << bit != 0).map(|bit| {
            let (number, rest) = (bit / 6 + 1, bit % 6);
            let narrow = |number: u32| u8::try_from(number).expect("a bit of 64");
            let call = Call {
                number: narrow(number),
                body: narrow(rest / 2),
            };
            (call, rest % 2 == 1)
        })
    }

    fn has_took(self, upto: u8) -> bool {
        self.took & 1 << upto != 0
    }
}

/// The bit of a call on the bus: numbers go up to 9, bodies to 2.
fn call_bit(call: Call, is_oldest: bool) -> u64 {
    1 << ((call.number - 1) * 6 + call.body * 2 + u8::from(is_oldest))
}
