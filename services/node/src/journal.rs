//! The journal: the one way in which a core changes its state.
//!
//! What is recorded is applied to the state and put into the gathering batch at once, so that the state never holds what
//! the log will not.

use annals_event::{
    Body, Cause, Consumed, Event, FrozenBatch, Gathering, Imprint, Link, OwnerState, Subject, Tail, Trace,
};
use annals_ids::{Address, BatchNumber, CallNumber, EntityId, HistoryNumber, Part, Tick, WallTime};

/// Gathers what happens.
#[derive(Debug)]
pub struct Journal {
    state: OwnerState,
    gathering: Gathering,
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
            gathering: Gathering::default(),
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
        self.gathering.is_empty()
    }

    /// The bytes gathered so far.
    #[must_use]
    pub fn length(&self) -> usize {
        self.gathering.length()
    }

    /// The newest batch that holds anything: what an output that is made now depends on (rule G1).
    #[must_use]
    pub fn label(&self) -> BatchNumber {
        if self.gathering.is_empty() {
            self.tail.batch
        } else {
            self.tail.batch.next()
        }
    }

    /// Begins a new input: what is recorded from here on has no consumed call as its cause.
    pub fn begin(&mut self) {
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

    /// Records an event. `shown` gives it the next number in the subject's history.
    ///
    /// # Panics
    /// When the event cannot happen in this state: the caller checks that.
    pub fn record(&mut self, subject: Subject, shown: bool, body: Body) {
        let history = if shown { self.next_history(subject) } else { None };
        let event = Event {
            subject,
            cause: self.cause,
            history,
            body,
        };
        self.state
            .apply(&event)
            .unwrap_or_else(|impossible| panic!("invariant: {impossible}"));
        self.gathering.record(&event);
        self.recorded.push(event);
    }

    /// What was recorded since this was last asked, for whoever shows it to others.
    pub fn take_recorded(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.recorded)
    }

    /// Closes the gathering batch.
    pub fn freeze(&mut self, tick: Tick, wall: WallTime, opens: bool) -> FrozenBatch {
        // A cause is an index into the batch's consumed calls; the next batch begins with none.
        self.cause = Cause(0);
        self.state.epoch = self.imprint.epoch;
        self.state.tick = tick;
        let frozen = self.gathering.freeze(&self.imprint, &mut self.tail, tick, wall, opens);
        self.state.tail = self.tail;
        frozen
    }

    /// The part of an entity that is real here.
    #[must_use]
    pub fn subject(&self, entity: EntityId) -> Subject {
        Subject::Entity(entity, self.state.part)
    }

    /// The address of an entity part that this owner may hold.
    #[must_use]
    pub fn address(&self, entity: EntityId) -> Address {
        Address::of(entity, self.state.part)
    }

    /// Which parts this owner holds.
    #[must_use]
    pub fn part(&self) -> Part {
        self.state.part
    }

    fn next_history(&self, subject: Subject) -> Option<HistoryNumber> {
        match subject {
            Subject::Owner => None,
            Subject::Entity(entity, _) => self.state.entities.get(&entity).map(|image| image.history.next()),
        }
    }
}
