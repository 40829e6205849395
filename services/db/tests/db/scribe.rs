//! Writes the log of one owner: anything that its state allows, as a core would.

use annals_event::{Batch, Body, Cause, Consumed, Event, FrozenBatch, Gathering, Imprint, OwnerState, Subject, Tail};
use annals_ids::{Address, CallNumber, EntityId, Epoch, Hash, HistoryNumber, OwnerId, OwnerKind, Part, Tick, WallTime};

/// The realm's name in every batch.
pub(crate) const REALM: &str = "test";

/// The definitions that every batch names.
pub(crate) const SCHEMA: Hash = Hash([3; 32]);

/// A log that is being written, and the state that it folds into.
pub(crate) struct Scribe {
    pub(crate) state: OwnerState,
    pub(crate) epoch: Epoch,
    gathering: Gathering,
    tail: Tail,
    marks: u64,
    /// Milliseconds between batches.
    pub(crate) pace: u64,
    /// How far its clock is ahead, milliseconds.
    pub(crate) fast: i64,
}

impl Scribe {
    pub(crate) fn new(owner: OwnerId, kind: OwnerKind) -> Self {
        Self {
            state: OwnerState::new(owner, kind),
            epoch: Epoch(0),
            gathering: Gathering::default(),
            tail: Tail::default(),
            marks: 0,
            pace: 1,
            fast: 0,
        }
    }

    pub(crate) fn owner(&self) -> OwnerId {
        self.state.owner
    }

    pub(crate) fn tail(&self) -> Tail {
        self.tail
    }

    /// Whether nothing was recorded since the last batch.
    pub(crate) fn is_idle(&self) -> bool {
        self.gathering.is_empty()
    }

    /// Records an event of an entity part.
    pub(crate) fn record(&mut self, entity: EntityId, seen: bool, body: Body) {
        let history = self
            .state
            .entities
            .get(&entity)
            .map_or(HistoryNumber(1), |image| image.history.next());
        self.record_as(
            Subject::Entity(entity, self.state.part().expect("it holds parts")),
            seen.then_some(history),
            body,
        );
    }

    /// Records the creation of a cell part, which has a history number if it is not the first one.
    pub(crate) fn record_created(&mut self, entity: EntityId, created: Body) {
        let history = match &created {
            Body::CellCreated(creation) => creation.former.as_ref().map(|former| former.history.next()),
            _ => None,
        };
        self.record_as(Subject::Entity(entity, Part::Cell), history, created);
    }

    /// Records an event of the owner itself.
    pub(crate) fn record_own(&mut self, body: Body) {
        self.record_as(Subject::Owner, None, body);
    }

    fn record_as(&mut self, subject: Subject, history: Option<HistoryNumber>, body: Body) {
        let event = Event {
            subject,
            cause: Cause(self.gathering.consumed()),
            history,
            body,
        };
        self.gathering.record(&event);
        self.state.apply(&event).expect("the scribe does what its state allows");
    }

    /// Consumes the next call on a link.
    pub(crate) fn consume(&mut self, from: Address, to: Address) -> CallNumber {
        let taken = self.state.links(to).and_then(|links| links.taken.get(&from));
        let number = taken.map_or(CallNumber(1), |taken| taken.next());
        let call = Consumed {
            at: 0,
            from,
            to,
            number,
            trace: [7; 16],
        };
        self.gathering.consume(from, to, number, call.trace);
        self.state.consume(&call).expect("the next number on its link");
        number
    }

    /// The next number on the link from an address of this owner to another.
    pub(crate) fn next_call(&self, from: Address, to: Address) -> CallNumber {
        let sent = self.state.links(from).and_then(|links| links.sent.get(&to));
        sent.map_or(CallNumber(1), |sent| sent.last.next())
    }

    /// Closes a batch with the recorded events.
    pub(crate) fn close(&mut self) -> FrozenBatch {
        let imprint = imprint(self.owner(), self.epoch);
        let mark = self.mark();
        let wall = self.wall(mark);
        let frozen = self.gathering.freeze(&imprint, &mut self.tail, Tick(mark), wall, false);
        self.follow(&frozen);
        frozen
    }

    /// The `Open` of an epoch after the batches written so far. It is not part of the log until it is taken.
    pub(crate) fn open(&mut self, epoch: Epoch) -> FrozenBatch {
        let mut tail = self.tail;
        empty(self.owner(), epoch, &mut tail, true, self.mark())
    }

    /// Continues after a valid `Open`.
    pub(crate) fn take(&mut self, open: &FrozenBatch) {
        self.tail = Batch::read(&open.bytes).expect("an intact batch").tail();
        self.epoch = open.epoch;
        self.follow(open);
    }

    /// Applies the effects of folding a batch other than its events, which were applied when they were recorded.
    fn follow(&mut self, frozen: &FrozenBatch) {
        let batch = Batch::read(&frozen.bytes).expect("an intact batch");
        self.state.epoch = batch.header.epoch;
        self.state.tick = batch.header.tick;
        self.state.schema = batch.header.schema;
        self.state.tail = batch.tail();
    }

    /// Sets its clock: the next batch is closed at `now`.
    pub(crate) fn set_clock(&mut self, now: WallTime) {
        self.fast = now.0.cast_signed() - ((self.marks + 1) * self.pace).cast_signed();
    }

    /// Its clock's time at the last batch.
    pub(crate) fn now(&self) -> WallTime {
        self.wall(self.marks)
    }

    fn wall(&self, mark: u64) -> WallTime {
        WallTime((mark * self.pace).saturating_add_signed(self.fast))
    }

    fn mark(&mut self) -> u64 {
        self.marks += 1;
        self.marks
    }
}

/// An empty batch after `tail`; `mark` makes it differ from any other.
pub(crate) fn empty(owner: OwnerId, epoch: Epoch, tail: &mut Tail, opens: bool, mark: u64) -> FrozenBatch {
    Gathering::default().freeze(&imprint(owner, epoch), tail, Tick(mark), WallTime(mark), opens)
}

fn imprint(owner: OwnerId, epoch: Epoch) -> Imprint {
    Imprint {
        realm: REALM.into(),
        owner,
        epoch,
        schema: SCHEMA,
    }
}
