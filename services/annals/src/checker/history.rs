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
use crate::archive::{LogWalk, read_tree};

/// How much of an archive is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extent {
    /// All of it.
    Whole,
    /// As far as it reaches at the beginning: logs are read one after the other, and in a realm that runs those that are read
    /// last would hold what builds upon more of the first.
    SoFar,
}

/// All that others may see of every entity part there ever was.
#[derive(Debug, Default)]
pub(super) struct Histories {
    parts: BTreeMap<(EntityId, Part), History>,
    pub(super) batches: u64,
    deeds: Deeds,
}

/// What others may see of one entity part.
#[derive(Debug, Default)]
pub(super) struct History {
    type_id: Option<TypeId>,
    /// What a base part has heard from the ledger, as far as its log was read and follows.
    ledger: Option<LedgerView>,
    first: BTreeMap<MemberId, Value>,
    gathered: BTreeMap<HistoryNumber, Archived>,
    /// What clients are shown of each event.
    hashes: BTreeMap<HistoryNumber, Result<Hash, Unreadable>>,
    /// By property, the hash of the whole value from each history number on; 0 is the creation.
    values: BTreeMap<MemberId, Vec<(HistoryNumber, Hash)>>,
}

/// An event and where it lies.
#[derive(Debug)]
struct Archived {
    owner: OwnerId,
    batch: BatchNumber,
    body: Body,
}

/// An archived event that cannot be what a client was shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Unreadable(pub(super) &'static str);

impl Histories {
    /// Reads the archive of all owners. What is wrong with it goes into the report.
    pub(super) async fn read(
        store: &Store,
        schema: &Schema,
        extent: Extent,
        report: &mut CheckReport,
    ) -> Result<Self, StoreError> {
        let mut histories = Self::default();
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
            let end = ends[&record.shard];
            histories
                .read_log(store, schema, (record.shard, owner), end, report)
                .await?;
        }
        for ((entity, part), history) in &mut histories.parts {
            history.finish(schema);
            report.events += history.hashes.len() as u64;
            for (expected, number) in (1..).zip(history.hashes.keys()) {
                if number.0 != expected {
                    report.hole(*entity, *part, HistoryNumber(expected), *number);
                    break;
                }
            }
        }
        report.batches = histories.batches;
        report.parts = histories.parts.len() as u64;
        report.driven = histories.deeds.finish(schema);
        Ok(histories)
    }

    pub(super) fn get(&self, entity: EntityId, part: Part) -> Option<&History> {
        self.parts.get(&(entity, part))
    }

    async fn read_log(
        &mut self,
        store: &Store,
        schema: &Schema,
        (shard, owner): (Shard, OwnerId),
        end: LeafIndex,
        report: &mut CheckReport,
    ) -> Result<(), StoreError> {
        let mut walk = LogWalk::begin(store, shard, owner).await?;
        while let Some(step) = walk.next().await? {
            if step.leaf.is_some_and(|leaf| leaf >= end) {
                break;
            }
            if let Some(fault) = step.fault {
                report.fault(owner, step.number, fault);
            }
            let Some(batch) = step.batch else { continue };
            self.batches += 1;
            for event in batch.events {
                self.take(schema, (owner, step.number), event, report);
            }
        }
        Ok(())
    }

    fn take(
        &mut self,
        schema: &Schema,
        (owner, batch): (OwnerId, BatchNumber),
        event: Event,
        report: &mut CheckReport,
    ) {
        let Subject::Entity(entity, part) = event.subject else {
            return;
        };
        self.deeds.take(entity, part, &event.body);
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
        let archived = Archived {
            owner,
            batch,
            body: history.as_shown(schema, event.body),
        };
        if let Some(before) = history.gathered.insert(number, archived) {
            let places = [(before.owner, before.batch), (owner, batch)];
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
    pub(super) fn shown(&self, number: HistoryNumber) -> Option<&Result<Hash, Unreadable>> {
        self.hashes.get(&number)
    }

    /// The newest number.
    pub(super) fn newest(&self) -> HistoryNumber {
        self.hashes.keys().next_back().copied().unwrap_or_default()
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
        self.type_id = Some(type_id);
        self.first = properties.iter().cloned().collect();
        self.ledger = Some(LedgerView::default());
    }

    /// Goes through what was gathered in the order of its numbers.
    fn finish(&mut self, schema: &Schema) {
        let mut held = std::mem::take(&mut self.first);
        let entity_type = self.type_id.and_then(|type_id| schema.entity_type(type_id));
        for (&member, value) in &held {
            self.values.extend(
                entity_type
                    .and_then(|entity_type| whole(entity_type, member, value))
                    .map(|hash| (member, vec![(HistoryNumber(0), hash)])),
            );
        }
        for (number, archived) in std::mem::take(&mut self.gathered) {
            let hash = entity_type
                .ok_or(Unreadable("how its entity was created is not in the archive"))
                .and_then(|entity_type| shown_hash(entity_type, &archived.body));
            self.hashes.insert(number, hash);
            let (Some(entity_type), Body::Changed { member, change }) = (entity_type, archived.body) else {
                continue;
            };
            if make(entity_type, &mut held, member, &change).is_none() {
                continue;
            }
            if let Some(hash) = whole(entity_type, member, &held[&member]) {
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
