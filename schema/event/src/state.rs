//! What a log folds into: the state of its owner.
//!
//! The cores run on this state, db folds the log into it, recovery and replay rebuild it. All of them change it only
//! through [`OwnerState::apply`] and [`OwnerState::consume`], so replay equals live execution by construction.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
};

use annals_ids::{
    Address, CallNumber, DatabaseId, EntityId, EntryNumber, Epoch, EventNumber, Hash, NoticeNumber, OwnerId, OwnerKind,
    Part, SpaceId, Tick,
};
use sha2::{Digest, Sha256};
use thiserror::Error;

use crate::{
    encoding::{Malformed, Reader, put_number},
    latest::{
        batch::{Batch, Consumed, Tail},
        call::Call,
        event::{Body, Event, Subject},
        global_data::{GlobalData, GlobalScope},
        image::{BaseImage, CellImage, HISTORY_KEPT, Image, Links, PartImage, take_generation_or_none},
        space_data::SpaceData,
    },
};

/// Maximum number of ended check-outs that are remembered: far more than the activations that end while the fold lags
/// behind. Check-out numbers are realm-wide, so the lowest are the oldest.
pub const ENDED_KEPT: usize = 100_000;

/// An event that cannot have happened in this state: the log was not written by one run of one core.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("owner {owner}: \"{event}\" of {subject} cannot follow event {after}: {why}")]
pub struct Impossible {
    /// The owner of the log.
    pub owner: OwnerId,
    /// The preceding event.
    pub after: EventNumber,
    /// The subject of the event.
    pub subject: String,
    /// The name of the event.
    pub event: &'static str,
    /// Why it is impossible.
    pub why: Cow<'static, str>,
}

/// Progress of an owner of kind [`OwnerKind::Ledger`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LedgerTail {
    /// The newest notice taken from the outbox.
    pub notice: NoticeNumber,
    /// The newest entry among those notices.
    pub entry: EntryNumber,
}

/// The state of one owner.
#[derive(Clone, Debug, PartialEq)]
pub struct OwnerState {
    pub owner: OwnerId,
    /// The kind of owner.
    pub kind: OwnerKind,
    /// The epoch of the newest batch.
    pub epoch: Epoch,
    /// The newest batch and event.
    pub tail: Tail,
    /// The tick of the newest batch.
    pub tick: Tick,
    /// The fingerprint of the definitions by whose numbers the state refers to types and members: those of the newest
    /// batch, or those to which it was [converted](crate::Migration::convert) since.
    pub schema: Hash,
    /// The real parts on this owner.
    pub entities: BTreeMap<EntityId, Image>,
    /// The parts in hand-over to another owner, by the call that carries them.
    pub departing: BTreeMap<(OwnerId, CallNumber), (EntityId, Image)>,
    /// The owner's own calls.
    pub links: Links,
    /// The unconfirmed calls of parts that were destroyed (rule C9).
    pub estates: BTreeMap<EntityId, Links>,
    /// Cell parts that have ended and whose state returns to their base parts once their calls are confirmed (rule C17):
    /// what is left of them.
    pub ending: BTreeMap<EntityId, Image>,
    /// The owner that has the cell part of each entity without a base whose home this owner is.
    pub placed: BTreeMap<EntityId, OwnerId>,
    /// The live entity of each stored entity.
    pub databases: BTreeMap<DatabaseId, EntityId>,
    /// The check-outs of activations that ended since the snapshot that this state was built from, at most
    /// [`ENDED_KEPT`]. The database may not have folded those ends yet, so it may still return these check-outs.
    pub ended: BTreeSet<u64>,
    /// The space data held here.
    pub spaces: BTreeMap<SpaceId, SpaceData>,
    /// The global data held here, of each scope in which anything was ever written.
    pub globals: BTreeMap<GlobalScope, GlobalData>,
    /// The first entity of the realm, if it was created here. Remembered after that entity is destroyed.
    pub bootstrap: Option<EntityId>,
    /// Progress of ledger delivery, if this is the ledger's owner.
    pub ledger: LedgerTail,
}

impl OwnerState {
    /// An owner before its first batch.
    #[must_use]
    pub fn new(owner: OwnerId, kind: impl Into<OwnerKind>) -> Self {
        Self {
            owner,
            kind: kind.into(),
            epoch: Epoch(0),
            tail: Tail::default(),
            tick: Tick(0),
            schema: Hash::ZERO,
            entities: BTreeMap::new(),
            departing: BTreeMap::new(),
            links: Links::default(),
            estates: BTreeMap::new(),
            ending: BTreeMap::new(),
            placed: BTreeMap::new(),
            databases: BTreeMap::new(),
            ended: BTreeSet::new(),
            spaces: BTreeMap::new(),
            globals: BTreeMap::new(),
            bootstrap: None,
            ledger: LedgerTail::default(),
        }
    }

    /// Folds a batch that [follows](Batch::follows) the tail.
    ///
    /// # Errors
    /// When the batch does not follow, or contains an impossible event; the state must then be discarded.
    pub fn fold(&mut self, batch: &Batch) -> Result<(), Impossible> {
        self.fold_with(batch, |_, _| {})
    }

    /// As [`OwnerState::fold`]; `before` receives each event and the state before it is applied.
    ///
    /// # Errors
    /// As [`OwnerState::fold`].
    pub fn fold_with(&mut self, batch: &Batch, mut before: impl FnMut(&Self, &Event)) -> Result<(), Impossible> {
        if batch.header.owner != self.owner || !batch.follows(&self.tail) {
            return Err(self.impossible(Subject::Owner, "batch", "it does not follow the previous batch"));
        }
        if self.tail.batch.0 > 0 && batch.header.schema != self.schema {
            let why = "its definitions differ from those of the previous batch, and no migration leads to them";
            return Err(self.impossible(Subject::Owner, "batch", why));
        }
        let mut consumed = batch.header.consumed.iter().peekable();
        for (at, event) in (0u32..).zip(&batch.events) {
            while let Some(call) = consumed.next_if(|call| call.at <= at) {
                self.consume(call)?;
            }
            before(self, event);
            self.apply(event)?;
        }
        consumed.try_for_each(|call| self.consume(call))?;
        self.epoch = batch.header.epoch;
        self.tick = batch.header.tick;
        self.schema = batch.header.schema;
        self.tail = batch.tail();
        Ok(())
    }

    /// Records that a call was taken.
    ///
    /// # Errors
    /// When its receiver is not here, or the call is not the next on its link.
    pub fn consume(&mut self, call: &Consumed) -> Result<(), Impossible> {
        let unknown = |state: &Self| state.impossible(subject_of(call.to), "consumed", "its receiver is not here");
        let skipped = self.impossible(subject_of(call.to), "consumed", "it is not the next call on its link");
        let Some(links) = self.links_mut(call.to) else {
            return Err(unknown(self));
        };
        let taken = links.taken.entry(call.from).or_default();
        if call.number != taken.next() {
            return Err(skipped);
        }
        *taken = call.number;
        Ok(())
    }

    /// Applies the event to the state.
    ///
    /// # Errors
    /// When the event is impossible in this state; the state must then be discarded.
    pub fn apply(&mut self, event: &Event) -> Result<(), Impossible> {
        let why = match event.subject {
            Subject::Owner => self.apply_to_owner(&event.body),
            Subject::Entity(entity, part) => self.apply_to_entity(entity, part, event),
        };
        why.map_err(|why| self.impossible(event.subject, event.body.name(), why))
    }

    /// The entity parts that this owner holds, if any.
    #[must_use]
    pub fn part(&self) -> Option<Part> {
        self.kind.part()
    }

    /// The links of an address, if that end is kept here.
    #[must_use]
    pub fn links(&self, address: Address) -> Option<&Links> {
        match address {
            Address::Owner(owner) => (owner == self.owner).then_some(&self.links),
            Address::Client(_) => None,
            Address::Base(entity) | Address::Cell(entity) => {
                let part = self.entities.get(&entity).or_else(|| self.ending.get(&entity));
                part.map(|image| &image.links)
                    .or_else(|| self.estates.get(&entity))
                    .filter(|_| self.holds(address))
            }
        }
    }

    /// A digest of everything that replay must reproduce: all but positions and directions.
    #[must_use]
    pub fn hash(&self) -> Hash {
        let mut bytes = Vec::new();
        self.write_own(&mut bytes);
        let mut digest = Sha256::new();
        digest.update(&bytes);
        for (entity, image) in &self.entities {
            bytes.clear();
            put_number(&mut bytes, entity.0);
            image.write_stable(&mut bytes);
            digest.update(&bytes);
        }
        Hash(digest.finalize().into())
    }

    /// Appends everything except the entities, which a snapshot stores one by one.
    pub fn write_own(&self, out: &mut Vec<u8>) {
        put_number(out, u64::from(self.owner.0));
        out.push(self.kind.number());
        for number in [self.epoch.0, self.tail.batch.0, self.tail.event.0, self.tick.0] {
            put_number(out, number);
        }
        out.extend(self.tail.hash.0);
        out.extend(self.schema.0);
        self.links.write(out);
        put_number(out, self.departing.len() as u64);
        for ((to, number), (entity, image)) in &self.departing {
            for number in [u64::from(to.0), number.0, entity.0] {
                put_number(out, number);
            }
            image.write(out);
        }
        put_number(out, self.estates.len() as u64);
        for (entity, links) in &self.estates {
            put_number(out, entity.0);
            links.write(out);
        }
        put_number(out, self.placed.len() as u64);
        for (entity, owner) in &self.placed {
            put_number(out, entity.0);
            put_number(out, u64::from(owner.0));
        }
        put_number(out, self.spaces.len() as u64);
        for (space, data) in &self.spaces {
            put_number(out, u64::from(space.0));
            data.write(out);
        }
        put_number(out, self.bootstrap.map_or(0, |entity| entity.0));
        put_number(out, self.ledger.notice.0);
        put_number(out, self.ledger.entry.0);
        // States written before there were generations, global data, or ending cell parts, end earlier.
        let (has_globals, has_ending) = (!self.globals.is_empty(), !self.ending.is_empty());
        if self.links.generation > 0 || has_globals || has_ending {
            put_number(out, self.links.generation);
        }
        if has_globals || has_ending {
            put_number(out, self.globals.len() as u64);
            for (scope, data) in &self.globals {
                out.push(scope.number());
                data.write(out);
            }
        }
        if has_ending {
            put_number(out, self.ending.len() as u64);
            for (entity, image) in &self.ending {
                put_number(out, entity.0);
                image.write(out);
            }
        }
    }

    /// Takes what [`OwnerState::write_own`] wrote; the entities must be [added](OwnerState::restore) afterwards.
    ///
    /// # Errors
    /// When the bytes are not in their one encoding.
    pub fn read_own(bytes: &[u8]) -> Result<Self, Malformed> {
        let reader = &mut Reader::new(bytes);
        let owner = OwnerId(reader.narrow("owner")?);
        let wrong = reader.malformed("kind of owner");
        let kind = OwnerKind::of_number(reader.byte("kind of owner")?).ok_or(wrong)?;
        let mut state = Self::new(owner, kind);
        state.epoch = Epoch(reader.number("epoch")?);
        state.tail.batch.0 = reader.number("batch number")?;
        state.tail.event.0 = reader.number("event number")?;
        state.tick.0 = reader.number("tick")?;
        state.tail.hash = reader.hash("batch hash")?;
        state.schema = reader.hash("schema fingerprint")?;
        state.links = Links::read(reader)?;
        let entity = |reader: &mut Reader<'_>| Ok(EntityId(reader.number("entity")?));
        let departure = |reader: &mut Reader<'_>| {
            let owner = OwnerId(reader.narrow("owner")?);
            Ok((owner, CallNumber(reader.number("call number")?)))
        };
        state.departing = reader.map(4, "departing", departure, |reader| {
            Ok((entity(reader)?, Image::read(reader)?))
        })?;
        state.estates = reader.map(4, "estates", entity, Links::read)?;
        state.placed = reader.map(2, "places", entity, |reader| Ok(OwnerId(reader.narrow("owner")?)))?;
        let space = |reader: &mut Reader<'_>| Ok(SpaceId(reader.narrow("space")?));
        state.spaces = reader.map(2, "spaces", space, SpaceData::read)?;
        state.bootstrap = Some(EntityId(reader.number("bootstrap")?)).filter(|entity| entity.0 > 0);
        state.ledger = LedgerTail {
            notice: NoticeNumber(reader.ordinal("notice number")?),
            entry: EntryNumber(reader.ordinal("entry number")?),
        };
        if reader.remaining() > 0 {
            let wrong = reader.malformed("end of owner state");
            state.links.generation = take_generation_or_none(reader)?;
            if reader.remaining() > 0 {
                state.globals = reader.map(2, "global data", GlobalScope::read, GlobalData::read)?;
                if reader.remaining() > 0 {
                    state.ending = reader.map(4, "ending cell parts", entity, Image::read)?;
                }
                if state.globals.is_empty() && state.ending.is_empty() {
                    return Err(wrong);
                }
            } else if state.links.generation == 0 {
                return Err(wrong);
            }
        }
        reader.finish("end of owner state")?;
        Ok(state)
    }

    /// Adds an entity from a snapshot.
    pub fn restore(&mut self, entity: EntityId, image: Image) {
        if let Some(database) = database_of(&image) {
            self.databases.insert(database, entity);
        }
        self.entities.insert(entity, image);
    }

    fn holds(&self, address: Address) -> bool {
        address.entity().is_some_and(|(_, part)| self.part() == Some(part))
    }

    fn links_mut(&mut self, address: Address) -> Option<&mut Links> {
        match address {
            Address::Owner(owner) => (owner == self.owner).then_some(&mut self.links),
            Address::Client(_) => None,
            Address::Base(entity) | Address::Cell(entity) => {
                if !self.holds(address) {
                    return None;
                }
                let part = self.entities.get_mut(&entity).or_else(|| self.ending.get_mut(&entity));
                match part {
                    Some(image) => Some(&mut image.links),
                    None => self.estates.get_mut(&entity),
                }
            }
        }
    }

    fn apply_to_owner(&mut self, body: &Body) -> Result<(), &'static str> {
        match body {
            Body::SpaceData { space, entry } => {
                self.spaces.entry(*space).or_default().take(entry.clone());
                Ok(())
            }
            Body::GlobalData { scope, .. } if !scope.includes(self.kind) => {
                Err("owners of this kind have no such data")
            }
            Body::GlobalData { scope, entry } => {
                self.globals.entry(*scope).or_default().take(entry.clone());
                Ok(())
            }
            Body::Refused { .. } => Ok(()),
            Body::Adopted(_) if self.kind != OwnerKind::Ledger => Err("this is not the ledger's owner"),
            Body::Adopted(_) => Ok(()),
            Body::Bootstrapped { .. } if self.bootstrap.is_some() => Err("the realm has begun already"),
            Body::Bootstrapped { entity } if !self.entities.contains_key(entity) => Err("there is no such entity"),
            Body::Bootstrapped { entity } => {
                self.bootstrap = Some(*entity);
                Ok(())
            }
            Body::CallsRenumbered { generation } if *generation <= self.links.generation => {
                Err("call numbers are of this generation already")
            }
            Body::CallsRenumbered { generation } => {
                self.renumber_calls(*generation);
                Ok(())
            }
            Body::Entered { .. } if self.kind != OwnerKind::Ledger => Err("this is not the ledger's owner"),
            Body::Entered { notice, .. } if *notice != self.ledger.notice.next() => Err("it is not the next notice"),
            Body::Entered { notice, entry } => {
                if let Some(entry) = entry {
                    if entry.number != self.ledger.entry.next() {
                        return Err("it is not the next entry");
                    }
                    self.ledger.entry = entry.number;
                }
                self.ledger.notice = *notice;
                Ok(())
            }
            Body::Called {
                call: Call::CellEnded { entity, former, .. },
                ..
            } => {
                let is_former = |image: &Image| image.links == former.links && image.history == former.history;
                if !self.ending.remove(entity).is_some_and(|image| is_former(&image)) {
                    return Err("no such cell part has ended here");
                }
                apply_to_links(&mut self.links, body).unwrap_or(Ok(()))
            }
            _ => apply_to_links(&mut self.links, body).unwrap_or(Err("the event does not concern an owner")),
        }
    }

    fn apply_to_entity(&mut self, entity: EntityId, part: Part, event: &Event) -> Result<(), &'static str> {
        match &event.body {
            Body::Placed(at) if part == Part::Cell => {
                match at {
                    Some(owner) => self.placed.insert(entity, *owner),
                    None => self.placed.remove(&entity),
                };
                return Ok(());
            }
            _ if self.part() != Some(part) => return Err("this owner does not hold such parts"),
            Body::Confirmed { .. } | Body::Resumed { .. } if !self.entities.contains_key(&entity) => {
                return self.apply_to_ended(entity, event);
            }
            Body::BaseCreated(_) | Body::CellCreated(_) | Body::Onloaded { .. } => self.begin(entity, event)?,
            Body::Returned { to, number } => {
                let (returned, image) = self
                    .departing
                    .remove(&(*to, *number))
                    .ok_or("the entity is not in hand-over")?;
                if returned != entity || self.entities.insert(entity, image).is_some() {
                    return Err("another entity is in hand-over");
                }
                return Ok(());
            }
            Body::Departed { to, number } => {
                return self
                    .departing
                    .remove(&(*to, *number))
                    .map(drop)
                    .ok_or("the entity is not in hand-over");
            }
            _ => {}
        }
        let life = match &event.body {
            Body::Moved(place) => Some(self.life(place.space)),
            _ => None,
        };
        let image = self.entities.get_mut(&entity).ok_or("there is no such entity")?;
        remember(image, event)?;
        match &event.body {
            Body::BaseCreated(_) | Body::CellCreated(_) | Body::Onloaded { .. } => Ok(()),
            Body::Destroyed => {
                self.end(entity);
                Ok(())
            }
            Body::CellEnding => {
                let ended = image.ended().ok_or("the part is no cell part with a base part")?;
                self.ending.insert(entity, ended);
                Ok(())
            }
            Body::Offloaded { to, number } => {
                let image = self.entities.remove(&entity).ok_or("there is no such entity")?;
                self.departing.insert((*to, *number), (entity, image));
                Ok(())
            }
            body => {
                let before = image.cell().map(|cell| cell.place.space);
                apply_to_image(entity, image, body)?;
                if let PartImage::Cell(cell) = &mut image.part
                    && before != Some(cell.place.space)
                {
                    cell.life = life;
                }
                if let Body::Stored { database } = body {
                    self.databases.insert(*database, entity);
                }
                Ok(())
            }
        }
    }

    fn begin(&mut self, entity: EntityId, event: &Event) -> Result<(), &'static str> {
        let mut image = match &event.body {
            Body::BaseCreated(creation) => {
                let base = BaseImage {
                    database: creation.database,
                    checkout: creation.checkout,
                    cell_properties: creation.cell_properties.iter().cloned().collect(),
                    ..BaseImage::default()
                };
                let part = PartImage::Base(base);
                let mut image = Image::new(creation.type_id, self.owner, &creation.properties, part);
                // A fragment of a service that was removed and added again continues the links of the former one.
                if let Some(links) = self.estates.remove(&entity) {
                    image.links = links;
                }
                image
            }
            Body::CellCreated(creation) => {
                let cell = CellImage {
                    based: creation.based,
                    place: creation.place,
                    life: Some(self.life(creation.place.space)),
                    ..CellImage::default()
                };
                let part = PartImage::Cell(cell);
                let mut image = Image::new(creation.type_id, creation.home, &creation.properties, part);
                image.client = creation.client;
                if let Some(former) = &creation.former {
                    // Of a former part whose return was lost with a cut log.
                    self.ending.remove(&entity);
                    (image.history, image.links) = (former.history, former.links.clone());
                }
                image
            }
            Body::Onloaded { image, .. } => {
                let mut image = Image::clone(image);
                if let PartImage::Cell(cell) = &mut image.part {
                    cell.life = cell.life.or(Some(self.life(cell.place.space)));
                }
                image
            }
            _ => return Err("nothing begins with this event"),
        };
        if let Body::CellCreated(creation) = &event.body
            && creation.former.is_some() != event.history.is_some()
        {
            return Err("only a further cell part takes a history number");
        }
        if self.entities.contains_key(&entity) {
            return Err("the entity exists already");
        }
        image.links.generation = image.links.generation.max(self.links.generation);
        self.restore(entity, image);
        Ok(())
    }

    /// Calls get numbers of a further generation. Parts that arrive later get it on arrival; the calls of destroyed
    /// parts are all numbered.
    fn renumber_calls(&mut self, generation: u64) {
        let departing = self.departing.values_mut().map(|(_, image)| image);
        let parts = self.entities.values_mut().chain(departing);
        for image in parts.chain(self.ending.values_mut()) {
            image.links.generation = image.links.generation.max(generation);
            if let PartImage::Base(base) = &mut image.part
                && let Some(links) = &mut base.cell_links
            {
                links.generation = links.generation.max(generation);
            }
        }
        self.links.generation = self.links.generation.max(generation);
    }

    /// The current life of a space, as far as this owner knows.
    #[must_use]
    pub fn life(&self, space: SpaceId) -> u64 {
        self.spaces.get(&space).map_or(0, SpaceData::life)
    }

    fn end(&mut self, entity: EntityId) {
        let Some(image) = self.entities.remove(&entity) else {
            return;
        };
        if let Some(database) = database_of(&image) {
            self.databases.remove(&database);
            self.ended
                .extend(image.base().map(|base| base.checkout).filter(|&life| life != 0));
            if self.ended.len() > ENDED_KEPT {
                self.ended.pop_first();
            }
        }
        if !image.links.is_settled() && !self.ending.contains_key(&entity) {
            let mut links = image.links;
            links.awaiting.clear();
            links.generation = 0;
            self.estates.insert(entity, links);
        }
    }

    fn apply_to_ended(&mut self, entity: EntityId, event: &Event) -> Result<(), &'static str> {
        if let Some(image) = self.ending.get_mut(&entity) {
            return apply_to_links(&mut image.links, &event.body).unwrap_or(Ok(()));
        }
        let links = self.estates.get_mut(&entity).ok_or("there is no such entity")?;
        apply_to_links(links, &event.body).unwrap_or(Ok(()))?;
        if links.is_settled() && entity.fragment().is_none() {
            self.estates.remove(&entity);
        }
        Ok(())
    }

    pub(crate) fn impossible(
        &self,
        subject: Subject,
        event: &'static str,
        why: impl Into<Cow<'static, str>>,
    ) -> Impossible {
        let subject = match subject {
            Subject::Owner => Address::Owner(self.owner).to_string(),
            Subject::Entity(entity, part) => Address::of(entity, part).to_string(),
        };
        Impossible {
            owner: self.owner,
            after: self.tail.event,
            subject,
            event,
            why: why.into(),
        }
    }
}

fn subject_of(address: Address) -> Subject {
    address
        .entity()
        .map_or(Subject::Owner, |(entity, part)| Subject::Entity(entity, part))
}

fn database_of(image: &Image) -> Option<DatabaseId> {
    image
        .base()
        .map(|base| base.database)
        .filter(|database| database.0 != 0)
}

/// Appends an event that others may see to the entity's history.
fn remember(image: &mut Image, event: &Event) -> Result<(), &'static str> {
    let Some(number) = event.history else { return Ok(()) };
    if number != image.history.next() {
        return Err("its history number is not the next");
    }
    image.history = number;
    if matches!(event.body, Body::CellCreated(_)) {
        // No event leads from the state of the former part to this one, so observers of that get the whole state.
        return Ok(());
    }
    if image.recent.len() == HISTORY_KEPT {
        image.recent.pop_front();
    }
    image.recent.push_back(event.clone());
    Ok(())
}

fn apply_to_image(entity: EntityId, image: &mut Image, body: &Body) -> Result<(), &'static str> {
    match body {
        Body::Changed { member, change } => {
            let held = image
                .properties
                .get_mut(member)
                .ok_or("the part does not hold this property")?;
            change
                .make(held)
                .map(drop)
                .map_err(|_| "the property differs in shape from the changed value")
        }
        Body::Invoked { .. } | Body::Replied { .. } => Ok(()),
        Body::Admitted { .. } => match &image.part {
            PartImage::Base(_) => Ok(()),
            PartImage::Cell(_) => Err("only a base part has a client"),
        },
        Body::Moved(place) => match &mut image.part {
            PartImage::Cell(cell) => {
                cell.place = *place;
                Ok(())
            }
            PartImage::Base(_) => Err("a base part has no position"),
        },
        Body::TimerSet { timer, at } => {
            image.timers.insert(*timer, *at);
            image.last_timer = image.last_timer.max(*timer);
            Ok(())
        }
        Body::TimerGone { timer } => image.timers.remove(timer).map(drop).ok_or("there is no such timer"),
        Body::Controlled { controller, what } => match &mut image.part {
            PartImage::Cell(cell) => cell.controllers.apply(*controller, what),
            PartImage::Base(_) => Err("a base part has no controllers"),
        },
        Body::ControlChanged(movement_control) => match &mut image.part {
            PartImage::Cell(cell) => {
                cell.movement_control = *movement_control;
                Ok(())
            }
            PartImage::Base(_) => Err("a base part does not move"),
        },
        Body::Sighted(change) => match &mut image.part {
            PartImage::Cell(cell) => cell.sight.apply(change),
            PartImage::Base(_) => Err("a base part has no view"),
        },
        Body::ClientSet(client) => {
            image.client = *client;
            Ok(())
        }
        Body::TokenSet(_)
        | Body::Placed(_)
        | Body::CellReturned { .. }
        | Body::Stored { .. }
        | Body::Ordered { .. }
        | Body::Booked(_)
        | Body::Restated { .. } => match &mut image.part {
            PartImage::Base(base) => apply_to_base(entity, base, body),
            PartImage::Cell(_) => Err("the event concerns a base part"),
        },
        _ => apply_to_links(&mut image.links, body).unwrap_or(Err("the event does not concern an entity")),
    }
}

fn apply_to_base(entity: EntityId, base: &mut BaseImage, body: &Body) -> Result<(), &'static str> {
    match body {
        Body::Stored { database } => base.database = *database,
        Body::TokenSet(digest) => base.token = Some(*digest),
        Body::Placed(at) => {
            base.cell = *at;
            if at.is_some() {
                // From here on the cell part holds them.
                base.cell_properties.clear();
                base.cell_links = None;
            }
        }
        Body::CellReturned { .. } if base.cell.is_some() => return Err("the entity has a cell part"),
        Body::CellReturned { former, properties } => {
            base.cell_properties.clone_from(properties);
            base.cell_history = Some(former.history);
            base.cell_links = Some(former.links.clone());
        }
        Body::Ordered { number, order } => base.ledger.order(*number, order)?,
        Body::Booked(update) => base.ledger.book(entity, update)?,
        // The value is derived from the booking.
        Body::Restated { .. } => {}
        _ => return Err("the event does not concern a base part"),
    }
    Ok(())
}

/// `None` if the event is not about links.
fn apply_to_links(links: &mut Links, body: &Body) -> Option<Result<(), &'static str>> {
    Some(match body {
        Body::Called { to, home, number, call } => {
            if *number != links.next_call(*to) {
                return Some(Err("it is not the next call on its link"));
            }
            let sent = links.sent.entry(*to).or_default();
            sent.home = *home;
            sent.last = *number;
            sent.unconfirmed.insert(*number, call.clone());
            Ok(())
        }
        Body::Confirmed { to, upto, .. } => match links.sent.get_mut(to) {
            Some(sent) => {
                sent.unconfirmed = sent.unconfirmed.split_off(&upto.next());
                Ok(())
            }
            None => Err("there is no such call link"),
        },
        Body::Awaits { to, number, awaiting } => {
            links.awaiting.insert((*to, *number), awaiting.clone());
            Ok(())
        }
        Body::CallsSkipped { from, upto } => {
            let taken = links.taken.entry(*from).or_default();
            if upto <= taken {
                return Some(Err("these calls were taken"));
            }
            *taken = *upto;
            Ok(())
        }
        Body::Resumed { to, number } => links
            .awaiting
            .remove(&(*to, *number))
            .map(drop)
            .ok_or("no reply is expected"),
        _ => return None,
    })
}
