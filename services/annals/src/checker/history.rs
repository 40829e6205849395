//! What the archive holds that others may see, by entity part and history number.

use std::collections::{BTreeMap, BTreeSet};

use annals_def::{EntityType, Located, Schema, Value};
use annals_director::read_owners;
use annals_event::{Body, Event, Subject, ledger::LedgerView};
use annals_ids::{BatchNumber, EntityId, Hash, HistoryNumber, LeafIndex, MemberId, OwnerId, Part, Shard, TypeId};
use annals_store::{Store, StoreError};
use annals_wire::client::{args_hash, change_hash, property_hash};

use super::driven::Deeds;
use super::report::{CheckReport, Wrong};
use crate::archive::{Fault, LogWalk, Step, read_tree};

/// How much of an archive is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extent {
    /// All of it.
    Whole,
    /// As far as it reaches at the beginning: logs are read one after the other, and in a realm that runs those that are read
    /// last would hold what builds upon more of the first.
    SoFar,
}

/// All that others may see of every entity part there ever was, as far as the archive was read. It is read on where it was
/// left; what was found wrong was found once.
#[derive(Clone, Default)]
pub(super) struct Histories {
    parts: BTreeMap<(EntityId, Part), History>,
    logs: BTreeMap<OwnerId, Followed>,
    /// Parts of which something was read that is not gone through yet.
    touched: BTreeSet<(EntityId, Part)>,
    pub(super) batches: u64,
    deeds: Deeds,
}

/// A log, as far as it was read.
#[derive(Clone)]
struct Followed {
    walk: LogWalk,
    /// What was read and lies beyond what was to be read.
    ahead: Option<Step>,
}

/// What others may see of one entity part.
#[derive(Clone, Debug, Default)]
pub(super) struct History {
    type_id: Option<TypeId>,
    /// Whether its creation was read.
    is_created: bool,
    /// What a base part has heard from the ledger, as far as its log was read and follows.
    ledger: Option<LedgerView>,
    /// With what it was created, until that is gone through.
    first: Option<BTreeMap<MemberId, Value>>,
    gathered: BTreeMap<HistoryNumber, Archived>,
    /// What it holds after what was gone through.
    held: BTreeMap<MemberId, Value>,
    /// What clients are shown of each event.
    shown: BTreeMap<HistoryNumber, Shown>,
    /// By property, the hash of the whole value from each history number on; 0 is the creation.
    values: BTreeMap<MemberId, Vec<(HistoryNumber, Hash)>>,
}

/// An event and where it lies.
#[derive(Clone, Debug)]
struct Archived {
    at: (OwnerId, BatchNumber),
    body: Body,
}

/// What clients are shown of an event, and where it lies.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Shown {
    at: (OwnerId, BatchNumber),
    hash: Result<Hash, Unreadable>,
}

/// An archived event that cannot be what a client was shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Unreadable(pub(super) &'static str);

/// Of an event of an entity of which nobody knows what it is.
const UNTYPED: Unreadable = Unreadable("how its entity was created is not in the archive");

impl Histories {
    /// Reads on in the archive of all owners. What is wrong with that goes into the report.
    pub(super) async fn read(
        &mut self,
        store: &Store,
        schema: &Schema,
        extent: Extent,
        report: &mut CheckReport,
    ) -> Result<(), StoreError> {
        let owners = read_owners(store).await?;
        let shards: BTreeSet<Shard> = owners.values().map(|record| record.shard).collect();
        let mut ends = BTreeMap::new();
        for shard in shards {
            let end = match extent {
                Extent::Whole => u64::MAX,
                Extent::SoFar => read_tree(store, shard).await?.size,
            };
            ends.insert(shard, LeafIndex(end));
        }
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
            self.read_log(schema, owner, &mut log, ends[&record.shard], report)
                .await?;
            self.logs.insert(owner, log);
        }
        for touched in std::mem::take(&mut self.touched) {
            if let Some(history) = self.parts.get_mut(&touched) {
                history.go_through(schema, extent);
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

    /// The parts that are not here as they are in `whole`, where more may have been read.
    pub(super) fn otherwise_than(&self, whole: &Self) -> u64 {
        let is_otherwise = |(key, history): &(&(EntityId, Part), &History)| {
            whole.parts.get(key).is_none_or(|whole| !history.is_beginning_of(whole))
        };
        self.parts.iter().filter(is_otherwise).count() as u64
    }

    async fn read_log(
        &mut self,
        schema: &Schema,
        owner: OwnerId,
        log: &mut Followed,
        end: LeafIndex,
        report: &mut CheckReport,
    ) -> Result<(), StoreError> {
        loop {
            let step = match log.ahead.take() {
                Some(step) => step,
                None => match log.walk.next().await? {
                    Some(step) => step,
                    None => return Ok(()),
                },
            };
            if step.leaf.is_some_and(|leaf| leaf >= end) {
                log.ahead = Some(step);
                return Ok(());
            }
            if let Some(fault) = step.fault.filter(|fault| *fault != Fault::LetGo) {
                report.fault(owner, step.number, fault);
            }
            if step.let_go.is_some() {
                // What players saw then cannot be told any more: it is for realms that keep everything.
                report.fault(owner, step.number, Fault::LetGo);
                return Ok(());
            }
            let Some(batch) = step.batch else { continue };
            self.batches += 1;
            for event in batch.events {
                self.take(schema, (owner, step.number), event, report);
            }
        }
    }

    fn take(&mut self, schema: &Schema, at: (OwnerId, BatchNumber), event: Event, report: &mut CheckReport) {
        let Subject::Entity(entity, part) = event.subject else {
            return;
        };
        self.deeds.take(entity, part, &event.body);
        self.touched.insert((entity, part));
        let history = self.parts.entry((entity, part)).or_default();
        match &event.body {
            Body::BaseCreated(creation) => history.created(creation.type_id, &creation.properties),
            Body::CellCreated(creation) => history.created(creation.type_id, &creation.properties),
            Body::Onloaded { image, .. } => history.type_id = history.type_id.or(Some(image.type_id)),
            Body::Booked(news) => {
                let known = history.ledger.take();
                history.ledger = known.and_then(|mut known| known.book(entity, news).ok().map(|()| known));
            }
            _ => {}
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

impl History {
    /// What clients are shown of the event with this number.
    pub(super) fn shown(&self, number: HistoryNumber) -> Option<Result<Hash, Unreadable>> {
        let untyped = || self.gathered.contains_key(&number).then_some(Err(UNTYPED));
        self.shown.get(&number).map(|shown| shown.hash).or_else(untyped)
    }

    /// The newest number.
    pub(super) fn newest(&self) -> HistoryNumber {
        let last = |number: Option<&HistoryNumber>| number.copied().unwrap_or_default();
        last(self.shown.keys().next_back()).max(last(self.gathered.keys().next_back()))
    }

    /// How many events there are.
    fn events(&self) -> u64 {
        (self.shown.len() + self.gathered.len()) as u64
    }

    /// The first number that is missing and the first that is there again.
    fn first_gap(&self) -> Option<(HistoryNumber, HistoryNumber)> {
        if self.newest().0 == self.events() {
            return None;
        }
        let numbers: BTreeSet<HistoryNumber> = self.shown.keys().chain(self.gathered.keys()).copied().collect();
        let mut expected = (1..).map(HistoryNumber).zip(numbers);
        expected.find(|(expected, number)| expected != number)
    }

    /// Whether what was gone through here is what `whole` has, where more may have been read.
    fn is_beginning_of(&self, whole: &Self) -> bool {
        let has_value = |(member, values): (&MemberId, &Vec<(HistoryNumber, Hash)>)| {
            whole.values.get(member).is_some_and(|all| all.starts_with(values))
        };
        self.shown
            .iter()
            .all(|(number, shown)| whole.shown.get(number) == Some(shown))
            && self.values.iter().all(has_value)
    }

    /// The hash of a property's value at a history number, as clients number properties and are told them whole; `None` if
    /// the archive does not tell.
    pub(super) fn value(&self, schema: &Schema, member: MemberId, at: HistoryNumber) -> Option<Hash> {
        let entity_type = schema.entity_type(self.type_id?)?;
        let known_as = schema.entity_type(entity_type.client_type.unwrap_or(entity_type.id))?;
        let property = entity_type.property_named(&known_as.property(member)?.name)?;
        let values = self.values.get(&property.index)?;
        let place = values.partition_point(|(number, _)| *number <= at);
        values[..place].last().map(|(_, hash)| *hash)
    }

    /// The name of a property as clients number them, for messages.
    pub(super) fn property_name<'s>(&self, schema: &'s Schema, member: MemberId) -> Option<&'s str> {
        let entity_type = schema.entity_type(self.type_id?)?;
        let known_as = schema.entity_type(entity_type.client_type.unwrap_or(entity_type.id))?;
        known_as.property(member).map(|property| property.name.as_str())
    }

    /// An event as clients are told it: where the view of an account was restated, what the ledger said by then.
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
        (self.type_id, self.is_created) = (Some(type_id), true);
        self.first = Some(properties.iter().cloned().collect());
        self.ledger = Some(LedgerView::default());
    }

    /// Goes through what was gathered in the order of its numbers, once it is known what the entity is.
    fn go_through(&mut self, schema: &Schema, extent: Extent) {
        let Some(entity_type) = self.type_id.and_then(|type_id| schema.entity_type(type_id)) else {
            return;
        };
        // After a loss by the log a creation may be archived behind what follows it (rule F5).
        if !self.is_created && extent == Extent::SoFar {
            return;
        }
        if let Some(first) = self.first.take() {
            for (&member, value) in &first {
                let begin = whole(entity_type, member, value).map(|hash| vec![(HistoryNumber(0), hash)]);
                self.values.extend(begin.map(|begin| (member, begin)));
            }
            self.held = first;
        }
        for (number, Archived { at, body }) in std::mem::take(&mut self.gathered) {
            let hash = shown_hash(entity_type, &body);
            self.shown.insert(number, Shown { at, hash });
            let Body::Changed { member, change } = body else {
                continue;
            };
            if make(entity_type, &mut self.held, member, &change).is_none() {
                continue;
            }
            if let Some(hash) = whole(entity_type, member, &self.held[&member]) {
                self.values.entry(member).or_default().push((number, hash));
            }
        }
    }
}

/// The hash of what a client that sees all of an event is shown of it.
fn shown_hash(entity_type: &EntityType, body: &Body) -> Result<Hash, Unreadable> {
    const UNFIT: Unreadable = Unreadable("its value does not fit the schema");
    match body {
        Body::Changed { member, change } => {
            let property = entity_type.property(*member).ok_or(UNFIT)?;
            change_hash(&property.data_type, change.change()).ok_or(UNFIT)
        }
        Body::Invoked { method, args, .. } => {
            let method = entity_type.client_methods.get(usize::from(method.0)).ok_or(UNFIT)?;
            args_hash(method, args).ok_or(UNFIT)
        }
        _ => Err(Unreadable("what is archived there is nothing that clients are shown")),
    }
}

fn whole(entity_type: &EntityType, member: MemberId, value: &Value) -> Option<Hash> {
    property_hash(&entity_type.property(member)?.data_type, value)
}

/// Makes a change; `None` if it does not fit what was there.
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
