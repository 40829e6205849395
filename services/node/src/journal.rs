//! The journal: the one way in which a core changes its state.
//!
//! What is recorded is applied to the state and put into the gathering batch at once, so that the state never holds what
//! the log will not.
//!
//! A batch must fit a message on the bus, and what one input records must not be torn apart (rule L1). So an input may record
//! only so much ([`INPUT_LIMIT`]), and what the next one records goes into a batch of its own where there is no room for it
//! beside what was gathered before ([`GATHERING_LIMIT`]).

use std::collections::VecDeque;

use annals_event::{
    Body, Cause, Consumed, Event, FrozenBatch, Gathering, HEADER_BYTES, Imprint, Link, OwnerState, Subject, Tail,
    Trace, ledger::STATEMENT_BYTES,
};
use annals_ids::{Address, BatchNumber, CallNumber, DatabaseId, EntityId, HistoryNumber, Part, Tick, WallTime};

/// Bytes gathered and not closed, beyond which a core takes no further input, and whatever is recorded nevertheless goes
/// into further batches.
pub const GATHERING_LIMIT: usize = 1 << 20;

/// Bytes that one input may record before behaviour and role are refused more. An entity that is handed over is recorded
/// whole, by either side.
pub const INPUT_LIMIT: usize = 5 << 20;

/// Bytes that the orders and lives in a batch make db write to the ledger, beyond which the core is full as it is with
/// [`GATHERING_LIMIT`]: all of that goes into the transaction that folds the batch.
pub const ORDERS_LIMIT: usize = 2 << 20;

/// Largest batch, bytes: what a nats-server that Annals accepts takes in one message, less what the subject and the
/// message's own header need.
pub const BATCH_LIMIT: usize = (8 << 20) - (4 << 10);

/// What an input may record beyond [`INPUT_LIMIT`]: that it took calls, was answered, and ended things. Each of these is
/// some tens of bytes, and an owner that has no room left does nothing more in that input.
const AFTERMATH: usize = 1 << 20;
const _: () = assert!(HEADER_BYTES + GATHERING_LIMIT + INPUT_LIMIT + AFTERMATH <= BATCH_LIMIT);

/// Gathers what happens.
#[derive(Debug)]
pub struct Journal {
    state: OwnerState,
    /// What was gathered before the gathering batch, one batch each.
    full: VecDeque<Gathering>,
    gathering: Gathering,
    /// Length of the gathering batch when the present input began.
    begun: usize,
    /// What the orders in the gathering batch make db write, and how much of that when the present input began.
    weight: usize,
    begun_weight: usize,
    /// The end of the log as far as it was closed; the state's own tail is that of the last fold.
    tail: Tail,
    imprint: Imprint,
    cause: Cause,
    recorded: Vec<Event>,
}

impl Journal {
    /// Goes on where `state` ends.
    #[must_use]
    pub fn new(state: OwnerState, imprint: Imprint) -> Self {
        let tail = state.tail;
        Self {
            state,
            full: VecDeque::new(),
            gathering: Gathering::default(),
            begun: 0,
            weight: 0,
            begun_weight: 0,
            tail,
            imprint,
            cause: Cause(0),
            recorded: Vec::new(),
        }
    }

    /// The state, with everything recorded so far in it.
    #[must_use]
    pub fn state(&self) -> &OwnerState {
        &self.state
    }

    /// What does not change from batch to batch.
    #[must_use]
    pub fn imprint(&self) -> &Imprint {
        &self.imprint
    }

    /// Whether the next batch would hold nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.full.is_empty() && self.gathering.is_empty()
    }

    /// The bytes gathered so far, of however many batches.
    #[must_use]
    pub fn length(&self) -> usize {
        self.full.iter().map(Gathering::length).sum::<usize>() + self.gathering.length()
    }

    /// Whether no more should be recorded until a batch was closed.
    #[must_use]
    pub fn is_full(&self) -> bool {
        !self.full.is_empty() || self.has_enough()
    }

    /// How many bytes more the present input may record.
    #[must_use]
    pub fn room(&self) -> usize {
        let recorded = self.gathering.length() - self.begun + self.weight - self.begun_weight;
        INPUT_LIMIT.saturating_sub(recorded)
    }

    /// The newest batch that holds anything: what an output that is made now depends on (rule G1).
    #[must_use]
    pub fn label(&self) -> BatchNumber {
        let gathered = self.full.len() as u64 + u64::from(!self.gathering.is_empty());
        BatchNumber(self.tail.batch.0.saturating_add(gathered))
    }

    /// Begins a new input: what is recorded from here on has no consumed call as its cause, and is in one batch.
    pub fn begin(&mut self) {
        if self.has_enough() {
            self.full.push_back(std::mem::take(&mut self.gathering));
            self.weight = 0;
        }
        self.begun = self.gathering.length();
        self.begun_weight = self.weight;
        self.cause = Cause(0);
    }

    /// Records that a call was taken; what is recorded from here on is its effect.
    ///
    /// # Panics
    /// When it is not the next call on its link or its receiver is not here: the caller checks that.
    pub fn consume(&mut self, link: Link, number: CallNumber, trace: Trace) {
        let consumed = Consumed {
            at: 0,
            from: link.from,
            to: link.to,
            number,
            trace,
        };
        self.state
            .consume(&consumed)
            .unwrap_or_else(|impossible| panic!("invariant: {impossible}"));
        self.gathering.consume(link.from, link.to, number, trace);
        self.cause = Cause(self.gathering.consumed());
    }

    /// Records an event, and returns how many bytes it takes in the log. `shown` gives it the next number in the subject's
    /// history.
    ///
    /// # Panics
    /// When the event cannot happen in this state: the caller checks that.
    pub fn record(&mut self, subject: Subject, shown: bool, body: Body) -> usize {
        let history = if shown { self.next_history(subject) } else { None };
        let event = Event {
            subject,
            cause: self.cause,
            history,
            body,
        };
        self.weight += self.weight_of(&event);
        self.state
            .apply(&event)
            .unwrap_or_else(|impossible| panic!("invariant: {impossible}"));
        let before = self.gathering.length();
        self.gathering.record(&event);
        self.recorded.push(event);
        self.gathering.length() - before
    }

    /// What was recorded since this was last asked, for whoever shows it to others.
    pub fn take_recorded(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.recorded)
    }

    /// Closes the oldest batch that is not closed. To be done between two inputs.
    ///
    /// # Panics
    /// When it would not fit a message on the bus: an input recorded more than it may.
    pub fn freeze(&mut self, tick: Tick, wall: WallTime, opens: bool) -> FrozenBatch {
        let mut oldest = self.full.pop_front().unwrap_or_else(|| {
            (self.begun, self.weight, self.begun_weight) = (0, 0, 0);
            // A cause is an index into the batch's consumed calls; the next batch begins with none.
            self.cause = Cause(0);
            std::mem::take(&mut self.gathering)
        });
        self.state.epoch = self.imprint.epoch;
        self.state.tick = tick;
        self.state.schema = self.imprint.schema;
        let frozen = oldest.freeze(&self.imprint, &mut self.tail, tick, wall, opens);
        assert!(
            frozen.bytes.len() <= BATCH_LIMIT,
            "invariant: batch {} takes {} bytes; no input records so much",
            frozen.number,
            frozen.bytes.len()
        );
        self.state.tail = self.tail;
        frozen
    }

    /// The part of an entity that is real here.
    #[must_use]
    pub fn subject(&self, entity: EntityId) -> Subject {
        Subject::Entity(entity, self.part())
    }

    /// The address of an entity part that this owner may hold.
    #[must_use]
    pub fn address(&self, entity: EntityId) -> Address {
        Address::of(entity, self.part())
    }

    /// Which parts this owner holds.
    ///
    /// # Panics
    /// When it holds no entities: then there is none to ask about.
    #[must_use]
    pub fn part(&self) -> Part {
        self.state.part().expect("invariant: whoever has entities holds parts")
    }

    /// Whether what comes next goes into another batch.
    fn has_enough(&self) -> bool {
        self.gathering.length() > GATHERING_LIMIT || self.weight > ORDERS_LIMIT
    }

    /// What an event makes db write to the ledger.
    fn weight_of(&self, event: &Event) -> usize {
        match (&event.body, event.subject) {
            (Body::Ordered { order, .. }, Subject::Entity(entity, _)) => {
                let base = self.state.entities.get(&entity).and_then(|image| image.base());
                base.map_or(0, |base| base.ledger.weight(order))
            }
            // It is told what it has. What is stored for the first time has nothing yet.
            (Body::BaseCreated(creation), _) if creation.database != DatabaseId(0) => STATEMENT_BYTES,
            _ => 0,
        }
    }

    fn next_history(&self, subject: Subject) -> Option<HistoryNumber> {
        match subject {
            Subject::Owner => None,
            Subject::Entity(entity, _) => self.state.entities.get(&entity).map(|image| image.history.next()),
        }
    }
}
