//! The visible events in the archive, by entity part and history number.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Bound,
};

use annals_audit::archive::{Fault, LogWalk, Step, read_tree};
use annals_def::{EntityType, Located, Schema, Value};
use annals_director::read_owners;
use annals_event::{Body, Event, Subject, Tail, Thinned, ledger::LedgerView};
use annals_ids::{BatchNumber, EntityId, Hash, HistoryNumber, LeafIndex, MemberId, OwnerId, Part, Shard, TypeId};
use annals_store::{Store, StoreError, layout::owners::OwnerRecord};
use annals_wire::client::{args_hash, change_hash, property_hash, reply_hash};

use super::driven::Deeds;
use super::floors::{Floor, Floors};
use super::report::{CheckReport, Why, Wrong};
use super::traces::Traces;

/// How much of an archive is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extent {
    /// The whole archive in one reading.
    Whole,
    /// The archive so far, to be continued later.
    SoFar,
}

/// All visible events of every entity part, as far as the archive was read. Reading continues where it ended; each
/// fault is reported once.
#[derive(Clone, Default)]
pub(super) struct Histories {
    parts: BTreeMap<(EntityId, Part), History>,
    logs: BTreeMap<OwnerId, Followed>,
    /// Parts with events that were read and not processed yet.
    touched: BTreeSet<(EntityId, Part)>,
    pub(super) batches: u64,
    deeds: Deeds,
    /// Where the logs of cells begin after retention.
    floors: Floors,
    /// Traces of cell parts whose events are all gone.
    traces: Traces,
}

/// A log, as far as it was read.
#[derive(Clone)]
struct Followed {
    walk: LogWalk,
    /// A step that was read beyond the end of this reading.
    ahead: Option<Step>,
}

/// The visible history of one entity part.
#[derive(Clone, Debug, Default)]
pub(super) struct History {
    type_id: Option<TypeId>,
    /// Whether its creation was read.
    is_created: bool,
    /// Whether only creations of further cell parts were read: the first one ended before.
    is_further: bool,
    /// The leaf of its last event that was read.
    latest: Option<(Shard, LeafIndex)>,
    /// A base part's view of the ledger, as far as its log was read without a gap.
    ledger: Option<LedgerView>,
    /// Its properties at its creation or at the horizon, until they are processed.
    first: Option<BTreeMap<MemberId, Value>>,
    /// The number up to which its events may have been deleted by retention; 0 if none were. From there on its
    /// properties are known.
    floor: HistoryNumber,
    gathered: BTreeMap<HistoryNumber, Archived>,
    /// Its properties after the processed events.
    held: BTreeMap<MemberId, Value>,
    /// What clients are shown of each event.
    shown: BTreeMap<HistoryNumber, Shown>,
    /// By property, the hash of the whole value from each history number on; the entry at the floor is that of the
    /// creation, if the floor is 0.
    values: BTreeMap<MemberId, Vec<(HistoryNumber, Hash)>>,
}

/// An event and its place.
#[derive(Clone, Debug)]
struct Archived {
    at: (OwnerId, BatchNumber),
    body: Body,
}

/// What clients are shown of an event, and its place.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Shown {
    at: (OwnerId, BatchNumber),
    hash: Result<Hash, Unreadable>,
}

/// An archived event that cannot have been shown to a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Unreadable(pub(super) &'static str);

/// An event of an entity of unknown type.
const UNTYPED: Unreadable = Unreadable("the creation of its entity is not in the archive");

impl Histories {
    /// Continues reading the archive of all owners. Faults go into the report. If the horizon passes what is being
    /// read, the error is [`StoreError::Conflict`], and what was read must be discarded.
    pub(super) async fn read(
        &mut self,
        store: &Store,
        schema: &Schema,
        extent: Extent,
        report: &mut CheckReport,
    ) -> Result<(), StoreError> {
        let owners = read_owners(store).await?;
        self.floors = Floors::read(store, &owners).await?;
        self.begin_at_floors();
        let ends = read_ends(store, &owners).await?;
        for (owner, record) in owners {
            let mut log = match self.logs.remove(&owner) {
                Some(mut log) => {
                    log.walk.extend().await?;
                    log
                }
                None => Followed {
                    walk: LogWalk::begin(store, record.shard, owner).await?,
                    ahead: None,
                },
            };
            log.walk.begin_at(self.floors.tail(owner).map(|floor| floor.batch));
            let end = ends[&record.shard];
            self.read_log(store, schema, (owner, record.shard, end), &mut log, report)
                .await?;
            self.logs.insert(owner, log);
        }
        for touched in std::mem::take(&mut self.touched) {
            if let Some(history) = self.parts.get_mut(&touched) {
                history.go_through(schema, touched.1, extent);
            }
        }
        for ((entity, part), history) in &self.parts {
            report.events += history.events();
            if let Some((first, until)) = history.first_gap() {
                report.hole(*entity, *part, first, until);
            }
        }
        report.batches = self.batches;
        report.parts = self.parts.len() as u64;
        report.driven = self.deeds.finish(schema);
        Ok(())
    }

    pub(super) fn get(&self, entity: EntityId, part: Part) -> Option<&History> {
        self.parts.get(&(entity, part))
    }

    /// Whether all events of a part were deleted by retention: it ended before the horizon, and its cell's log shows
    /// that it existed.
    pub(super) fn is_deleted(&self, entity: EntityId, part: Part) -> bool {
        let latest = self.get(entity, part).and_then(|history| history.latest);
        let lives_on =
            self.floors.cells().contains_key(&entity) || latest.is_some_and(|at| !self.floors.have_passed(at));
        part == Part::Cell && !lives_on && self.traces.show_an_end(entity, self.floors.has_ended(entity))
    }

    /// Whether the finding means that something was not read, rather than that it differs from what was shown.
    pub(super) fn lack(&self, entity: EntityId, part: Part, why: &Why) -> bool {
        match why {
            Why::UnknownEntity | Why::Absent { .. } => true,
            Why::Unreadable(what) => *what == UNTYPED.0,
            Why::Different => false,
            // Its properties are known from its creation or its floor on.
            Why::Property { .. } => self.get(entity, part).is_none_or(|history| !history.is_created),
        }
    }

    /// Moves the histories of cell parts to the current floors.
    fn begin_at_floors(&mut self) {
        for (entity, floor) in self.floors.cells() {
            let key = (*entity, Part::Cell);
            self.deeds.begin(key, floor.type_id);
            self.touched.insert(key);
            self.parts.entry(key).or_default().begin_at(floor);
        }
    }

    /// Number of parts that differ from those in `whole`, which may have read more.
    pub(super) fn otherwise_than(&self, whole: &Self) -> u64 {
        let is_otherwise = |(key, history): &(&(EntityId, Part), &History)| {
            let is_same = whole.parts.get(key).is_some_and(|whole| history.is_beginning_of(whole));
            !is_same && !whole.is_deleted(key.0, key.1)
        };
        self.parts.iter().filter(is_otherwise).count() as u64
    }

    async fn read_log(
        &mut self,
        store: &Store,
        schema: &Schema,
        (owner, shard, end): (OwnerId, Shard, LeafIndex),
        log: &mut Followed,
        report: &mut CheckReport,
    ) -> Result<(), StoreError> {
        loop {
            let before = log.walk.place();
            let step = match log.ahead.take() {
                Some(step) => step,
                None => match log.walk.next().await? {
                    Some(step) => step,
                    None => break,
                },
            };
            if step.leaf.is_some_and(|leaf| leaf >= end) {
                // A fault may only mean that the horizon has passed it since the floors were read.
                if step.fault.is_some() {
                    log.walk.return_to(before);
                } else {
                    log.ahead = Some(step);
                }
                return Ok(());
            }
            let is_whole = step.batch.is_some();
            self.batches += u64::from(is_whole || step.deleted.is_some());
            if step.fault == Some(Fault::Deleted) && self.floors.have_moved(store).await? {
                return Err(StoreError::Conflict);
            }
            let tail = step.deleted.as_ref().map(Thinned::tail);
            let is_other = |tail: Tail| {
                self.floors
                    .tail(owner)
                    .is_some_and(|floor| floor.batch == tail.batch && floor != tail)
            };
            let fault = step
                .fault
                .or_else(|| tail.filter(|tail| is_other(*tail)).map(|_| Fault::Floor));
            if let Some(fault) = &fault {
                report.fault(owner, step.number, fault.clone());
            }
            if let Some(thinned) = step.deleted.filter(|_| fault.is_none()) {
                self.traces.take_thinned(&thinned);
            }
            let (Some(batch), Some(leaf)) = (step.batch, step.leaf) else {
                continue;
            };
            self.traces.take(&batch.header);
            for event in batch.events {
                self.take(schema, (owner, step.number), (shard, leaf), event, report);
            }
        }
        if let Some(floor) = self
            .floors
            .tail(owner)
            .filter(|floor| floor.batch > log.walk.cursor().batch)
        {
            report.fault(owner, floor.batch, Fault::Missing);
        }
        Ok(())
    }

    fn take(
        &mut self,
        schema: &Schema,
        at: (OwnerId, BatchNumber),
        leaf: (Shard, LeafIndex),
        event: Event,
        report: &mut CheckReport,
    ) {
        let Subject::Entity(entity, part) = event.subject else {
            return;
        };
        self.deeds.take(entity, part, &event.body);
        if part == Part::Base {
            self.traces.take_of_base(entity, &event.body);
        }
        self.touched.insert((entity, part));
        let history = self.parts.entry((entity, part)).or_default();
        match &event.body {
            Body::BaseCreated(creation) => history.created(creation.type_id, &creation.properties),
            Body::CellCreated(creation) if creation.former.is_some() => {
                history.created_again(creation.type_id, self.floors.are_any());
            }
            Body::CellCreated(creation) => history.created(creation.type_id, &creation.properties),
            Body::Onloaded { image, .. } => history.type_id = history.type_id.or(Some(image.type_id)),
            Body::Booked(update) => {
                let known = history.ledger.take();
                history.ledger = known.and_then(|mut known| known.book(entity, update).ok().map(|()| known));
            }
            _ => {}
        }
        let is_its_own = event.history.is_some() || matches!(event.body, Body::CellCreated(_) | Body::Onloaded { .. });
        if is_its_own {
            history.latest = history.latest.max(Some(leaf));
        }
        let Some(number) = event.history else { return };
        let body = history.as_shown(schema, event.body);
        let before = history.shown.get(&number).map(|shown| shown.at);
        let gathered = history.gathered.insert(number, Archived { at, body });
        if let Some(before) = gathered.map(|gathered| gathered.at).or(before) {
            let places = [before, at];
            report.wrong(Wrong::Twice {
                entity,
                part,
                number,
                places,
            });
        }
    }
}

/// The current ends of the shards: reading stops there. Logs are read one after the other, and in a running realm those
/// read last would otherwise contain effects of events in the first that were not read.
async fn read_ends(
    store: &Store,
    owners: &BTreeMap<OwnerId, OwnerRecord>,
) -> Result<BTreeMap<Shard, LeafIndex>, StoreError> {
    let shards: BTreeSet<Shard> = owners.values().map(|record| record.shard).collect();
    let mut ends = BTreeMap::new();
    for shard in shards {
        let size = read_tree(store, shard).await?.size;
        ends.insert(shard, LeafIndex(size));
    }
    Ok(ends)
}

impl History {
    /// What clients are shown of the event with this number.
    pub(super) fn shown(&self, number: HistoryNumber) -> Option<Result<Hash, Unreadable>> {
        let untyped = || self.gathered.contains_key(&number).then_some(Err(UNTYPED));
        self.shown.get(&number).map(|shown| shown.hash).or_else(untyped)
    }

    /// The number up to which its events may have been deleted by retention.
    pub(super) fn floor(&self) -> HistoryNumber {
        if !self.is_further || self.floor != HistoryNumber(0) {
            return self.floor;
        }
        // A cell part that ended before the horizon has no floor. The creation of the next one has its properties.
        let first = self.shown.keys().next().into_iter().chain(self.gathered.keys().next());
        first.min().copied().unwrap_or(self.floor)
    }

    /// The newest number.
    pub(super) fn newest(&self) -> HistoryNumber {
        let last = |number: Option<&HistoryNumber>| number.copied().unwrap_or_default();
        let read = last(self.shown.keys().next_back()).max(last(self.gathered.keys().next_back()));
        read.max(self.floor)
    }

    /// Number of events.
    fn events(&self) -> u64 {
        (self.shown.len() + self.gathered.len()) as u64
    }

    /// The first missing number, and the first number after the gap.
    fn first_gap(&self) -> Option<(HistoryNumber, HistoryNumber)> {
        let floor = self.floor();
        let behind = (Bound::Excluded(floor), Bound::Unbounded);
        let count = self.shown.range(behind).count() + self.gathered.range(behind).count();
        if self.newest().0 - floor.0 == count as u64 {
            return None;
        }
        let keys = self.shown.range(behind).map(|(number, _)| *number);
        let numbers: BTreeSet<HistoryNumber> = keys
            .chain(self.gathered.range(behind).map(|(number, _)| *number))
            .collect();
        let mut expected = (floor.0 + 1..).map(HistoryNumber).zip(numbers);
        expected.find(|(expected, number)| expected != number)
    }

    /// Whether the processed history agrees with `whole`, which may have read more, and of which more may have been
    /// deleted.
    fn is_beginning_of(&self, whole: &Self) -> bool {
        let floor = whole.floor();
        let behind = (Bound::Excluded(floor), Bound::Unbounded);
        let has_value = |(member, values): (&MemberId, &Vec<(HistoryNumber, Hash)>)| {
            let values = &values[values.partition_point(|(number, _)| *number <= floor)..];
            let all = whole.values.get(member).map_or(&[][..], Vec::as_slice);
            let begin = all.partition_point(|(number, _)| *number <= floor);
            all[begin..].starts_with(values)
        };
        self.shown
            .range(behind)
            .all(|(number, shown)| whole.shown.get(number) == Some(shown))
            && self.values.iter().all(has_value)
    }

    /// The hash of a property's full value at a history number, as clients number and receive properties; `None` if the
    /// archive does not have it.
    pub(super) fn value(&self, schema: &Schema, member: MemberId, at: HistoryNumber) -> Option<Hash> {
        let entity_type = schema.entity_type(self.type_id?)?;
        let known_as = schema.entity_type(entity_type.client_type.unwrap_or(entity_type.id))?;
        let property = entity_type.property_named(&known_as.property(member)?.name)?;
        let values = self.values.get(&property.index)?;
        let place = values.partition_point(|(number, _)| *number <= at);
        values[..place].last().map(|(_, hash)| *hash)
    }

    /// The name of a property by its client number, for messages.
    pub(super) fn property_name<'s>(&self, schema: &'s Schema, member: MemberId) -> Option<&'s str> {
        let entity_type = schema.entity_type(self.type_id?)?;
        let known_as = schema.entity_type(entity_type.client_type.unwrap_or(entity_type.id))?;
        known_as.property(member).map(|property| property.name.as_str())
    }

    /// An event as clients receive it: where the ledger view of an account was restated, with the ledger's statements
    /// so far.
    fn as_shown(&self, schema: &Schema, body: Body) -> Body {
        let value = |member| {
            let property = schema.entity_type(self.type_id?)?.property(member)?;
            Some(self.ledger.as_ref()?.value(property.account?))
        };
        match body {
            Body::Restated { member } => value(member).map_or(body, |value| Body::Changed {
                member,
                change: Located::whole(value),
            }),
            body => body,
        }
    }

    fn created(&mut self, type_id: TypeId, properties: &[(MemberId, Value)]) {
        // In a log that was filled in late, a creation may be present though later events of the history are not (rule
        // F5).
        let is_behind = self.floor == HistoryNumber(0);
        (self.type_id, self.is_created, self.is_further) = (Some(type_id), true, false);
        if is_behind {
            self.first = Some(properties.iter().cloned().collect());
        }
        self.ledger = Some(LedgerView::default());
    }

    /// A further cell part: its event has its properties. If events were deleted, those of the first part may be among
    /// them.
    fn created_again(&mut self, type_id: TypeId, has_deleted: bool) {
        self.type_id = Some(type_id);
        if has_deleted && !self.is_created {
            (self.is_created, self.is_further) = (true, true);
        }
    }

    /// Starts its history at the horizon, unless it was read up to there.
    fn begin_at(&mut self, floor: &Floor) {
        if self.is_created && floor.number <= self.newest() {
            return;
        }
        (self.type_id, self.is_created) = (Some(floor.type_id), true);
        self.first = Some(floor.properties.clone());
        self.floor = floor.number;
        self.values.clear();
    }

    /// Processes the collected events in the order of their numbers, once the entity's type is known.
    fn go_through(&mut self, schema: &Schema, part: Part, extent: Extent) {
        let Some(entity_type) = self.type_id.and_then(|type_id| schema.entity_type(type_id)) else {
            return;
        };
        // After a loss by the log a creation may be archived behind its successors (rule F5).
        if !self.is_created && extent == Extent::SoFar {
            return;
        }
        if let Some(first) = self.first.take() {
            for (&member, value) in &first {
                let begin = whole(entity_type, member, value).map(|hash| vec![(self.floor, hash)]);
                self.values.extend(begin.map(|begin| (member, begin)));
            }
            self.held = first;
        }
        for (number, Archived { at, body }) in std::mem::take(&mut self.gathered) {
            let hash = shown_hash(entity_type, part, &body);
            self.shown.insert(number, Shown { at, hash });
            if let Body::CellCreated(creation) = body {
                for (member, value) in &creation.properties {
                    if let Some(hash) = whole(entity_type, *member, value) {
                        self.values.entry(*member).or_default().push((number, hash));
                    }
                }
                self.held = creation.properties.into_iter().collect();
                continue;
            }
            let Body::Changed { member, change } = body else {
                continue;
            };
            if number <= self.floor {
                continue;
            }
            if make(entity_type, &mut self.held, member, &change).is_none() {
                continue;
            }
            if let Some(hash) = whole(entity_type, member, &self.held[&member]) {
                self.values.entry(member).or_default().push((number, hash));
            }
        }
    }
}

/// The hash of an event as a client sees it that may see all of it.
fn shown_hash(entity_type: &EntityType, part: Part, body: &Body) -> Result<Hash, Unreadable> {
    const UNFIT: Unreadable = Unreadable("its value does not match the schema");
    match body {
        Body::Changed { member, change } => {
            let property = entity_type.property(*member).ok_or(UNFIT)?;
            change_hash(&property.data_type, change.change()).ok_or(UNFIT)
        }
        Body::Invoked { method, args, .. } => {
            let method = entity_type.client_methods.get(usize::from(method.0)).ok_or(UNFIT)?;
            args_hash(method, args).ok_or(UNFIT)
        }
        Body::Replied {
            number,
            method,
            outcome,
            ..
        } => {
            let found = entity_type.method_of(part, *method).ok_or(UNFIT)?;
            reply_hash(found, (*number, *method), outcome).ok_or(UNFIT)
        }
        _ => Err(Unreadable("the archived event there is not visible to clients")),
    }
}

fn whole(entity_type: &EntityType, member: MemberId, value: &Value) -> Option<Hash> {
    property_hash(&entity_type.property(member)?.data_type, value)
}

/// Applies a change; `None` if it does not fit the value.
fn make(
    entity_type: &EntityType,
    held: &mut BTreeMap<MemberId, Value>,
    member: MemberId,
    change: &Located,
) -> Option<()> {
    let property = entity_type.property(member)?;
    let before = held.entry(member).or_insert_with(|| property.default.clone());
    change.change().check(&property.data_type, before).ok()?;
    change.make(before).ok().map(drop)
}
