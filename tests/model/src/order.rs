//! Two owners in one stream, and db that folds it: is every prefix of the archive a consistent cut (F5)?
//!
//! S and R append batches; a batch may consume outputs of acknowledged batches of the other owner. db reads the stream
//! in order and folds each log by its numbers, so a batch after a hole waits. The log may lose its tail, or one
//! message; writers do not crash, keep what is not archived, and resend it. If a batch is folded before one that it
//! consumed from, that prefix of the archive is a state that never existed.

pub mod exhibits;

use crate::explorer::Model;
use crate::faults::{Faults, spend};
use crate::invariant::Invariant;
use crate::rule::{Rule, Rules};

/// S and R.
const OWNERS: u8 = 2;
/// More messages than any schedule within the bounds leaves in the stream.
const MOST_MESSAGES: usize = 8;
/// Maximum batches of one owner.
const MOST_BATCHES: usize = 2;

/// Bounds of a schedule.
#[derive(Debug, Clone, Copy)]
pub struct OrderBounds {
    /// Batches of each owner: at most 2.
    pub batches: u8,
    /// Whether a resent batch that comes too late is excused: the exception of F5 for losses.
    pub losses_excuse: bool,
    /// Faults; tails and holes count here.
    pub faults: Faults,
}

/// The model of the order in the archive.
#[derive(Debug, Clone, Copy)]
pub struct OrderModel {
    /// The rules in force.
    pub rules: Rules,
    /// Bounds of a schedule.
    pub bounds: OrderBounds,
}

/// A batch: its owner, its number, and up to which batch of the other owner it has consumed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
struct Batch {
    owner: u8,
    number: u8,
    after: u8,
}

/// The state of the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct OrderState {
    stream: [Batch; MOST_MESSAGES],
    length: u8,
    /// Messages of the stream that db has read.
    read: u8,
    /// By owner and batch number: the other owner's batches consumed.
    after: [[u8; MOST_BATCHES]; 2],
    /// By owner: batches made, acknowledged, archived.
    made: [u8; 2],
    acknowledged: [u8; 2],
    folded: [u8; 2],
    /// By owner: bit set of the numbers that wait in db after a hole.
    waiting: [u8; 2],
    lost_any: bool,
    left: Faults,
    wrong: Option<Invariant>,
}

/// A step.
#[derive(Debug, Clone, Copy)]
pub enum OrderStep {
    /// The owner makes a batch that consumes the outputs of the other owner's acknowledged batches.
    Make(u8),
    /// The stream stores the owner's first batch that it lacks; the batch is now acknowledged, if it was not before.
    Append(u8),
    /// db reads the next message and folds everything that can be folded.
    Read,
    /// Without F1: db first reads a message further on.
    ReadAhead(u8),
    /// A writer fills the hole that db has found in its log (F4).
    Fill(u8),
    /// The stream loses its newest messages.
    LoseTail(u8),
    /// The stream loses one message.
    LoseAt(u8),
}

impl Model for OrderModel {
    type State = OrderState;
    type Step = OrderStep;

    fn start(&self) -> OrderState {
        OrderState {
            stream: [Batch::default(); MOST_MESSAGES],
            length: 0,
            read: 0,
            after: [[0; MOST_BATCHES]; 2],
            made: [0; 2],
            acknowledged: [0; 2],
            folded: [0; 2],
            waiting: [0; 2],
            lost_any: false,
            left: self.bounds.faults,
            wrong: None,
        }
    }

    fn steps(&self, state: &OrderState, steps: &mut Vec<OrderStep>) {
        for owner in 0..OWNERS {
            let at = usize::from(owner);
            let missing = state.first_missing(owner);
            if missing.is_none() && state.made[at] < self.bounds.batches {
                steps.push(OrderStep::Make(owner));
            }
            if missing.is_some() && usize::from(state.length) < MOST_MESSAGES {
                steps.push(OrderStep::Append(owner));
            }
            if state.waiting[at] != 0 && state.made[at] > state.folded[at] {
                steps.push(OrderStep::Fill(owner));
            }
        }
        if state.read < state.length {
            steps.push(OrderStep::Read);
            if !self.rules.has(Rule::F1InOrder) {
                steps.extend((state.read + 1..state.length).map(OrderStep::ReadAhead));
            }
        }
        if state.left.tails > 0 {
            steps.extend((1..=state.length.min(2)).map(OrderStep::LoseTail));
        }
        if state.left.holes > 0 {
            steps.extend((0..state.length).map(OrderStep::LoseAt));
        }
    }

    fn take(&self, state: &OrderState, step: OrderStep) -> OrderState {
        let mut after = *state;
        self.happen(&mut after, step);
        after
    }

    fn broken(&self, state: &OrderState) -> Option<Invariant> {
        state.wrong
    }

    fn words(&self, state: &OrderState, step: OrderStep, after: &OrderState) -> String {
        let folded = |owner: usize| {
            let (from, to) = (state.folded[owner] + 1, after.folded[owner]);
            (from..=to).map(|number| name(owner as u8, number)).collect::<Vec<_>>()
        };
        let folds = [folded(0), folded(1)].concat();
        let folds = if folds.is_empty() {
            String::new()
        } else {
            format!(", and folds {}", folds.join(", "))
        };
        let message = |index: u8| {
            let batch = state.stream[usize::from(index)];
            name(batch.owner, batch.number)
        };
        match step {
            OrderStep::Make(owner) => {
                let number = after.made[usize::from(owner)];
                match after.after[usize::from(owner)][usize::from(number) - 1] {
                    0 => format!("{} is made", name(owner, number)),
                    other => format!(
                        "{} is made; it consumes an output of {}",
                        name(owner, number),
                        name(1 - owner, other)
                    ),
                }
            }
            OrderStep::Append(owner) => {
                let number = state.first_missing(owner).unwrap_or_default();
                let again = number <= state.acknowledged[usize::from(owner)];
                format!(
                    "{} is {}",
                    name(owner, number),
                    if again {
                        "appended again"
                    } else {
                        "stored and acknowledged"
                    }
                )
            }
            OrderStep::Read => format!("db reads {}{folds}", message(state.read)),
            OrderStep::ReadAhead(index) => format!("db reads {} out of order{folds}", message(index)),
            OrderStep::Fill(owner) => {
                format!(
                    "{} fills the hole in its log{folds}",
                    name(owner, state.folded[usize::from(owner)] + 1)
                )
            }
            OrderStep::LoseTail(count) => {
                let lost: Vec<String> = (state.length - count..state.length).map(message).collect();
                format!("the stream loses its tail: {}", lost.join(", "))
            }
            OrderStep::LoseAt(index) => format!("the stream loses {}", message(index)),
        }
    }

    fn settled(&self, state: &OrderState) -> bool {
        state.folded == state.made
    }

    fn is_fault(&self, step: OrderStep) -> bool {
        matches!(step, OrderStep::Make(_) | OrderStep::LoseTail(_) | OrderStep::LoseAt(_))
    }
}

impl OrderModel {
    fn happen(&self, state: &mut OrderState, step: OrderStep) {
        match step {
            OrderStep::Make(owner) => {
                let at = usize::from(owner);
                state.after[at][usize::from(state.made[at])] = state.acknowledged[1 - at];
                state.made[at] += 1;
            }
            OrderStep::Append(owner) => {
                if let Some(number) = state.first_missing(owner) {
                    state.append(owner, number);
                }
            }
            OrderStep::Read => {
                let batch = state.stream[usize::from(state.read)];
                state.read += 1;
                self.receive(state, batch);
            }
            OrderStep::ReadAhead(index) => self.receive(state, state.stream[usize::from(index)]),
            OrderStep::Fill(owner) => {
                let number = state.folded[usize::from(owner)] + 1;
                let after = state.after[usize::from(owner)][usize::from(number) - 1];
                self.receive(state, Batch { owner, number, after });
            }
            OrderStep::LoseTail(count) => {
                spend(&mut state.left.tails);
                let from = state.length - count;
                state.lose(|index| index >= from);
            }
            OrderStep::LoseAt(lost) => {
                spend(&mut state.left.holes);
                state.lose(|index| index == lost);
            }
        }
    }

    /// F2 and F4: folds the batch if it is the next of its log, with those that waited for it; a later batch waits.
    fn receive(&self, state: &mut OrderState, batch: Batch) {
        let at = usize::from(batch.owner);
        if batch.number <= state.folded[at] {
            return;
        }
        state.waiting[at] |= 1 << batch.number;
        while state.waiting[at] & 1 << (state.folded[at] + 1) != 0 {
            let number = state.folded[at] + 1;
            state.waiting[at] &= !(1 << number);
            state.folded[at] = number;
            let after = state.after[at][usize::from(number) - 1];
            let named_hole = state.waiting[1 - at] != 0;
            let excused = named_hole || self.bounds.losses_excuse && state.lost_any;
            if after > state.folded[1 - at] && !excused {
                state.wrong = Some(Invariant::ArchiveIsACut);
            }
        }
    }
}

impl OrderState {
    /// The owner's first batch that is neither archived nor in the stream, if all batches before it are.
    fn first_missing(&self, owner: u8) -> Option<u8> {
        let at = usize::from(owner);
        let stream = &self.stream[..usize::from(self.length)];
        (self.folded[at] + 1..=self.made[at]).find(|number| {
            !stream
                .iter()
                .any(|batch| batch.owner == owner && batch.number == *number)
        })
    }

    fn append(&mut self, owner: u8, number: u8) {
        let at = usize::from(owner);
        let after = self.after[at][usize::from(number) - 1];
        self.stream[usize::from(self.length)] = Batch { owner, number, after };
        self.length += 1;
        self.acknowledged[at] = self.acknowledged[at].max(number);
    }

    /// Removes messages from the stream. Of the remaining ones, those that db has read stay read.
    fn lose(&mut self, lost: impl Fn(u8) -> bool) {
        let before = *self;
        self.lost_any = true;
        self.stream = [Batch::default(); MOST_MESSAGES];
        self.length = 0;
        self.read = 0;
        for index in (0..before.length).filter(|index| !lost(*index)) {
            self.stream[usize::from(self.length)] = before.stream[usize::from(index)];
            self.length += 1;
            if index < before.read {
                self.read = self.length;
            }
        }
    }
}

fn name(owner: u8, number: u8) -> String {
    format!("{}{number}", if owner == 0 { 'S' } else { 'R' })
}
