//! The journal: the only way in which a core changes its state.
//!
//! A recorded event is applied to the state and added to the gathering batch at once, so that the state never holds
//! anything that the log will not.
//!
//! A batch must fit into one bus message, and the events of one input must not be split over batches (rule L1). So the
//! size of one input is limited ([`INPUT_LIMIT`]), and an input that does not fit beside earlier ones
//! ([`GATHERING_LIMIT`]) goes into a batch of its own.

use std::collections::VecDeque;

use annals_event::{
    Body, Cause, Consumed, Event, FrozenBatch, Gathering, HEADER_BYTES, Imprint, Link, OwnerState, Subject, Tail,
    Trace, ledger::STATEMENT_BYTES,
};
use annals_ids::{Address, BatchNumber, CallNumber, DatabaseId, EntityId, HistoryNumber, Part, Tick, WallTime};

/// Maximum bytes in unclosed batches: beyond it a core takes no further input. Anything recorded nevertheless goes into
/// further batches.
pub const GATHERING_LIMIT: usize = 1 << 20;

/// Maximum bytes that one input may record before further requests of behaviour and role are denied. An entity that is
/// handed over is recorded whole, on both sides.
pub const INPUT_LIMIT: usize = 5 << 20;

/// Maximum bytes that the orders and activations in a batch make db write to the ledger. Beyond it the core is full, as
/// with [`GATHERING_LIMIT`]: all of it goes into the transaction that folds the batch.
pub const ORDERS_LIMIT: usize = 2 << 20;

/// Largest batch, bytes: the maximum message of a nats-server that Annals accepts, less the subject and the message's
/// own header.
pub const BATCH_LIMIT: usize = (8 << 20) - (4 << 10);

/// Bytes that an input may record beyond [`INPUT_LIMIT`]: consumed calls, answers, and endings. Each is some tens of
/// bytes, and an owner without room does nothing more in that input.
const AFTERMATH: usize = 1 << 20;
const _: () = assert!(HEADER_BYTES + GATHERING_LIMIT + INPUT_LIMIT + AFTERMATH <= BATCH_LIMIT);

/// Gathers events into batches.
#[derive(Debug)]
pub struct Journal {
    state: OwnerState,
    /// Gathered batches before the current one.
    full: VecDeque<Gathering>,
    gathering: Gathering,
    /// Length of the gathering batch at the start of the present input.
    begun: usize,
    /// Bytes that the orders in the gathering batch make db write, and that number at the start of the present input.
    weight: usize,
    begun_weight: usize,
    /// End of the log up to the last closed batch; the state's own tail is that of the last fold.
    tail: Tail,
    imprint: Imprint,
    cause: Cause,
    recorded: Vec<Event>,
}

impl Journal {
    /// Continues from `state`.
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

    /// The state, including everything recorded so far.
    #[must_use]
    pub fn state(&self) -> &OwnerState {
        &self.state
    }

    /// The header fields that are the same in every batch.
    #[must_use]
    pub fn imprint(&self) -> &Imprint {
        &self.imprint
    }

    /// Whether the next batch would be empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.full.is_empty() && self.gathering.is_empty()
    }

    /// Bytes gathered so far, over all unclosed batches.
    #[must_use]
    pub fn length(&self) -> usize {
        self.full.iter().map(Gathering::length).sum::<usize>() + self.gathering.length()
    }

    /// Whether no more should be recorded until a batch is closed.
    #[must_use]
    pub fn is_full(&self) -> bool {
        !self.full.is_empty() || self.has_enough()
    }

    /// Bytes that the present input may still record.
    #[must_use]
    pub fn room(&self) -> usize {
        let recorded = self.gathering.length() - self.begun + self.weight - self.begun_weight;
        INPUT_LIMIT.saturating_sub(recorded)
    }

    /// Newest batch that holds anything: the one that an output made now depends on (rule G1).
    #[must_use]
    pub fn label(&self) -> BatchNumber {
        let gathered = self.full.len() as u64 + u64::from(!self.gathering.is_empty());
        BatchNumber(self.tail.batch.0.saturating_add(gathered))
    }

    /// Begins a new input: events recorded from here on have no consumed call as their cause, and are in one batch.
    pub fn begin(&mut self) {
        if self.has_enough() {
            self.full.push_back(std::mem::take(&mut self.gathering));
            self.weight = 0;
        }
        self.begun = self.gathering.length();
        self.begun_weight = self.weight;
        self.cause = Cause(0);
    }

    /// Records that a call was consumed; events recorded from here on are its effects.
    ///
    /// # Panics
    /// If it is not the next call on its link or its receiver is not here: the caller checks that.
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

    /// Records an event, and returns its size in the log, bytes. `shown` gives it the next number in the subject's
    /// history.
    ///
    /// # Panics
    /// If the event is impossible in this state: the caller checks that.
    pub fn record(&mut self, subject: Subject, shown: bool, body: Body) -> usize {
        let history = match &body {
            Body::CellCreated(creation) => creation.former.as_ref().map(|former| former.history.next()),
            _ if shown => self.next_history(subject),
            _ => None,
        };
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

    /// Takes the events recorded since the last call, to be shown to others.
    pub fn take_recorded(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.recorded)
    }

    /// Closes the oldest open batch. Call it between two inputs.
    ///
    /// # Panics
    /// If the batch does not fit into a bus message: an input exceeded its limit.
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
            "invariant: batch {} takes {} bytes, above the limit of an input",
            frozen.number,
            frozen.bytes.len()
        );
        self.state.tail = self.tail;
        frozen
    }

    /// The part of an entity that is real on this owner.
    #[must_use]
    pub fn subject(&self, entity: EntityId) -> Subject {
        Subject::Entity(entity, self.part())
    }

    /// The address of an entity part on this owner.
    #[must_use]
    pub fn address(&self, entity: EntityId) -> Address {
        Address::of(entity, self.part())
    }

    /// The part that this owner's role holds.
    ///
    /// # Panics
    /// If the owner holds no entities.
    #[must_use]
    pub fn part(&self) -> Part {
        self.state
            .part()
            .expect("invariant: an owner with entities holds parts")
    }

    /// Whether the next events go into another batch.
    fn has_enough(&self) -> bool {
        self.gathering.length() > GATHERING_LIMIT || self.weight > ORDERS_LIMIT
    }

    /// Bytes that an event makes db write to the ledger.
    fn weight_of(&self, event: &Event) -> usize {
        match (&event.body, event.subject) {
            (Body::Ordered { order, .. }, Subject::Entity(entity, _)) => {
                let base = self.state.entities.get(&entity).and_then(|image| image.base());
                base.map_or(0, |base| base.ledger.weight(order))
            }
            // A stored entity is sent its holdings. An entity that is stored for the first time has none.
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
