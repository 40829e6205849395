//! A client that checks the realm against `docs/client-protocol.md`.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

use annals_def::{EntityType, Schema, Value, apply};
use annals_event::SpaceData;
use annals_ids::{EntityId, HistoryNumber, MemberId, Part, Position, SessionId, SpaceId, Tick, TypeId};
use annals_node::{Member, time::Mono};
use annals_wire::client::{
    ClientMember, Known, MAX_KEPT, Movements, Shown, ShownReader, ShownWriter, Stamp, ToClient, ToClientDatagram,
    ViewFrame, ViewItem, read_properties,
    volatile::{KIND, Motion, MovementAck, Placing, Unreadable, VolatileReader},
};

/// How long a client waits for the first frame of a view before it restarts it, microseconds.
const WAIT: u64 = 2_000_000;

/// One client: its views and everything that it received.
pub(crate) struct Client {
    pub(crate) session: SessionId,
    pub(crate) entity: EntityId,
    schema: Arc<Schema>,
    pub(crate) view: u64,
    sequence: u64,
    /// When the view was begun.
    begun: Mono,
    pub(crate) known: BTreeMap<EntityId, Seen>,
    /// Whether it moves an entity, as the server has sent. Of others it moves its own.
    drives: BTreeMap<EntityId, bool>,
    /// What it keeps of entities that left, oldest first.
    kept: VecDeque<(EntityId, Seen)>,
    /// Everything that it was ever shown, for comparison with the log.
    pub(crate) shown: Vec<(EntityId, HistoryNumber, Shown)>,
    /// Every item of every frame that it accepted, in order.
    pub(crate) items: Vec<ViewItem>,
    /// How often it received the whole state of an entity.
    pub(crate) refreshes: usize,
    /// How many properties it received because it came closer.
    pub(crate) detailed: usize,
    /// Bytes of all frames and datagrams, and of the largest.
    pub(crate) bytes: usize,
    pub(crate) largest: usize,
    /// Bytes received per member, of its own entity and of others.
    pub(crate) costs: BTreeMap<(bool, TypeId, Member), usize>,
    /// Frames that it did not accept.
    pub(crate) dropped: usize,
    /// Number of movements received per entity.
    pub(crate) moves: BTreeMap<EntityId, usize>,
    /// Reads predicted movements.
    reader: Option<VolatileReader>,
    /// The tick of the newest frame.
    tick: Tick,
    /// Predicted movements that it received, with their ticks.
    pub(crate) motions: Vec<(Tick, Motion)>,
    /// Bytes of datagrams.
    pub(crate) datagram_bytes: usize,
    /// Sequence number of its newest movement.
    pub(crate) moved: u64,
    /// The space of its entity, as received.
    pub(crate) space: Option<SpaceId>,
    /// What it has of that space's data, and how many entries it received.
    pub(crate) data: SpaceData,
    pub(crate) entries: usize,
}

/// What it has of one entity.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) type_id: TypeId,
    pub(crate) history: HistoryNumber,
    /// For each level of detail finer than the current one, the history number of its properties.
    pub(crate) finer: Vec<HistoryNumber>,
    pub(crate) properties: BTreeMap<MemberId, Value>,
    pub(crate) position: Position,
    tick: Tick,
}

impl Client {
    pub(crate) fn new(session: SessionId, entity: EntityId, schema: Arc<Schema>) -> Self {
        Self {
            session,
            entity,
            schema,
            view: 0,
            sequence: 0,
            begun: Mono(0),
            known: BTreeMap::new(),
            drives: BTreeMap::new(),
            kept: VecDeque::new(),
            shown: Vec::new(),
            items: Vec::new(),
            refreshes: 0,
            detailed: 0,
            bytes: 0,
            largest: 0,
            costs: BTreeMap::new(),
            dropped: 0,
            moves: BTreeMap::new(),
            reader: None,
            tick: Tick(0),
            motions: Vec::new(),
            datagram_bytes: 0,
            moved: 0,
            space: None,
            data: SpaceData::default(),
            entries: 0,
        }
    }

    /// Restarts the view with this format of movements, and returns what it has.
    pub(crate) fn begin(&mut self, now: Mono, movements: Movements) -> Known {
        self.view += 1;
        self.reader = match movements {
            Movements::Plain => None,
            Movements::Predicted(packing) => Some(VolatileReader::new(self.view, packing)),
        };
        (self.sequence, self.begun) = (0, now);
        let stamp = |entity: EntityId, seen: &Seen| Stamp {
            entity,
            upto: seen.history,
            finer: seen.finer.clone(),
        };
        Known {
            seen: self.known.iter().map(|(entity, seen)| stamp(*entity, seen)).collect(),
            kept: self.kept.iter().map(|(entity, seen)| stamp(*entity, seen)).collect(),
            space: self.space.map(|space| (space, self.data.versions())),
            unusual_drivers: self.unusual_drivers(),
        }
    }

    /// Whether it has waited for a view for too long.
    pub(crate) fn is_impatient(&self, now: Mono) -> bool {
        self.sequence == 0 && now.0 >= self.begun.0 + WAIT
    }

    /// Handles a frame. Returns whether it must restart its view.
    pub(crate) fn frame(&mut self, bytes: &[u8]) -> bool {
        self.weigh(bytes);
        match ToClient::read(bytes).expect("frames have their encoding") {
            ToClient::StampsWanted { source: Part::Cell } => true,
            ToClient::View(frame) => self.view_frame(frame),
            other => panic!("no cell sends {other:?}"),
        }
    }

    fn view_frame(&mut self, frame: ViewFrame) -> bool {
        assert_eq!(frame.source, Part::Cell);
        // A frame after a gap is dropped: the view must restart.
        if frame.view < self.view {
            // It has begun another view since.
            return false;
        }
        if frame.view != self.view || self.sequence == u64::MAX {
            self.dropped += 1;
            return false;
        }
        if frame.sequence != self.sequence + 1 {
            self.dropped += 1;
            self.sequence = u64::MAX;
            return true;
        }
        (self.sequence, self.tick) = (frame.sequence, frame.tick);
        for item in frame.items {
            self.items.push(item.clone());
            self.item(frame.tick, item);
        }
        false
    }

    fn item(&mut self, tick: Tick, item: ViewItem) {
        match item {
            ViewItem::Enter { entity, type_id, place } => {
                let (position, _) = place.expect("a cell part is somewhere");
                let history = HistoryNumber(0);
                let properties = BTreeMap::new();
                let seen = Seen {
                    type_id,
                    history,
                    finer: Vec::new(),
                    properties,
                    position,
                    tick,
                };
                assert!(self.kept.iter().all(|(kept, _)| *kept != entity), "it returns");
                self.known.insert(entity, seen);
            }
            ViewItem::Space { entity, space } => {
                assert_eq!(
                    entity, self.entity,
                    "the client receives the space of its own entity only"
                );
                assert!(self.known.contains_key(&entity), "it is there");
                if self.space.replace(space) != Some(space) {
                    self.data = SpaceData::default();
                }
            }
            ViewItem::SpaceData { entity, entry } => {
                assert_eq!(entity, self.entity, "its own space is meant");
                assert!(self.space.is_some(), "its space was sent");
                assert!(self.data.take(entry.clone()), "only newer entries are sent: {entry:?}");
                self.entries += 1;
            }
            ViewItem::Placed { entity, position, .. } => {
                let seen = self.known.get_mut(&entity).expect("what is placed is there");
                (seen.position, seen.tick) = (position, tick);
            }
            ViewItem::Leave { entity } => {
                let seen = self.known.remove(&entity).expect("only what is there leaves");
                self.drives.remove(&entity);
                self.kept.push_back((entity, seen));
                if self.kept.len() > MAX_KEPT {
                    self.kept.pop_front();
                }
            }
            ViewItem::Return { entity, position, .. } => {
                let at = self.kept.iter().position(|(kept, _)| *kept == entity);
                let (_, seen) = self
                    .kept
                    .remove(at.expect("only what was kept returns"))
                    .expect("it is there");
                self.known.insert(entity, Seen { position, tick, ..seen });
            }
            ViewItem::Drives { entity, drives } => {
                assert!(self.known.contains_key(&entity), "it is there");
                assert_ne!(self.drives(entity), drives, "it changes");
                self.drives.insert(entity, drives);
            }
            held => self.held_item(held),
        }
    }

    fn unusual_drivers(&self) -> Vec<EntityId> {
        let unusual = self
            .drives
            .iter()
            .filter(|(entity, drives)| **drives != (**entity == self.entity));
        unusual.map(|(entity, _)| *entity).collect()
    }

    /// Whether it moves an entity, as far as it knows.
    pub(crate) fn drives(&self, entity: EntityId) -> bool {
        self.drives.get(&entity).copied().unwrap_or(entity == self.entity)
    }

    /// It moves an entity.
    pub(crate) fn drive(&mut self, entity: EntityId, position: Position) {
        let drives = self.drives(entity);
        if let Some(seen) = self.known.get_mut(&entity).filter(|_| drives) {
            seen.position = position;
        }
    }

    /// Applies an item about an entity.
    fn held_item(&mut self, item: ViewItem) {
        match item {
            ViewItem::Level {
                entity,
                level,
                properties,
            } => {
                let entity_type = self.type_of(entity).clone();
                self.weigh_properties(entity, &entity_type, &properties);
                let seen = self.known.get_mut(&entity).expect("what changes its level is there");
                assert_ne!(usize::from(level), seen.finer.len(), "it changes");
                seen.finer.resize(level.into(), seen.history);
                self.detailed += seen.update(&entity_type, &properties);
            }
            ViewItem::Refresh {
                entity,
                upto,
                level,
                properties,
            } => {
                self.refreshes += 1;
                let entity_type = self.type_of(entity).clone();
                self.weigh_properties(entity, &entity_type, &properties);
                let seen = self.known.get_mut(&entity).expect("what is refreshed is there");
                (seen.history, seen.finer) = (upto, vec![HistoryNumber(0); level.into()]);
                seen.properties.clear();
                seen.update(&entity_type, &properties);
            }
            ViewItem::Update {
                entity,
                from,
                upto,
                events,
            } => {
                let entity_type = self.type_of(entity).clone();
                let seen = self.known.get_mut(&entity).expect("what is updated is there");
                assert_eq!(seen.history, from, "entity {entity}: ranges are contiguous");
                seen.history = upto;
                let mut reader = ShownReader::new(&entity_type, (from, upto), &events);
                let mut before = reader.remaining();
                while let Some((number, event)) = reader.next_event(&seen.held(&entity_type)).expect("it can be read") {
                    seen.change(&entity_type, &event);
                    let member = member_of(&entity_type, &event);
                    let cost = (entity == self.entity, entity_type.id, member);
                    *self.costs.entry(cost).or_default() += before - reader.remaining();
                    before = reader.remaining();
                    self.shown.push((entity, number, event));
                }
            }
            other => panic!("{other:?} does not apply"),
        }
    }

    /// Counts the size of each of these properties.
    fn weigh_properties(&mut self, entity: EntityId, entity_type: &EntityType, properties: &[u8]) {
        let mut all = 0;
        for (id, value) in read_properties(entity_type, properties).expect("properties have their encoding") {
            let mut writer = ShownWriter::new(entity_type, HistoryNumber(0));
            writer.property(id, &value).expect("it was written before");
            let member = Member::Property(entity_type.client_properties()[usize::from(id.0)]);
            let cost = (entity == self.entity, entity_type.id, member);
            *self.costs.entry(cost).or_default() += writer.len();
            all += writer.len();
        }
        assert_eq!(all, properties.len(), "there are no other properties");
    }

    fn weigh(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len();
        self.largest = self.largest.max(bytes.len());
    }

    /// Handles a datagram, and returns the acknowledgement.
    pub(crate) fn datagram(&mut self, bytes: &[u8]) -> Option<MovementAck> {
        self.weigh(bytes);
        self.datagram_bytes += bytes.len();
        assert!(bytes.len() <= annals_wire::client::MAX_DATAGRAM);
        if bytes[0] == KIND {
            return self.predicted(bytes);
        }
        self.plain(bytes);
        None
    }

    fn predicted(&mut self, bytes: &[u8]) -> Option<MovementAck> {
        if self.sequence == 0 || self.sequence == u64::MAX {
            return None;
        }
        // A client that does not read them would not be sent any.
        let reader = self.reader.as_mut()?;
        let update = match reader.read(bytes, self.tick) {
            Ok(update) => update,
            Err(Unreadable::Malformed(error)) => panic!("client {}: {error}", self.session),
            Err(Unreadable::OtherView | Unreadable::Late) => return None,
        };
        for motion in update.motions {
            self.motions.push((update.tick, motion));
            *self.moves.entry(motion.entity).or_default() += 1;
            let (Placing::Full(position) | Placing::Exact(position)) = motion.placing else {
                continue;
            };
            if let Some(seen) = self.known.get_mut(&motion.entity)
                && seen.tick < update.tick
            {
                (seen.position, seen.tick) = (position, update.tick);
            }
        }
        self.reader.as_ref()?.ack()
    }

    fn plain(&mut self, bytes: &[u8]) {
        let ToClientDatagram::Moves(moves) = ToClientDatagram::read(bytes).expect("datagrams have their encoding");
        if moves.view != self.view {
            return;
        }
        for movement in moves.moves {
            *self.moves.entry(movement.entity).or_default() += 1;
            if let Some(seen) = self.known.get_mut(&movement.entity)
                && seen.tick < moves.tick
            {
                (seen.position, seen.tick) = (movement.position, moves.tick);
            }
        }
    }

    fn type_of(&self, entity: EntityId) -> &EntityType {
        let type_id = self.known[&entity].type_id;
        self.schema.entity_type(type_id).expect("the schema has it")
    }
}

/// The member that an event concerns.
fn member_of(entity_type: &EntityType, event: &Shown) -> Member {
    match event {
        Shown::Property { member, .. } => Member::Property(entity_type.client_properties()[usize::from(member.0)]),
        Shown::Method {
            member: ClientMember(id),
            ..
        } => {
            let method = entity_type
                .client_methods
                .iter()
                .find(|method| method.client_id == Some(*id));
            Member::ClientMethod(method.expect("it was read").index)
        }
        Shown::Reply(reply) => Member::CellMethod(entity_type.exposed_cell_methods()[usize::from(reply.member.0)]),
    }
}

impl Seen {
    /// Its value of a property: the default of the definition unless it received another.
    pub(crate) fn property(&self, entity_type: &EntityType, member: MemberId) -> Value {
        let default = || entity_type.property(member).expect("it exists").default.clone();
        self.properties.get(&member).cloned().unwrap_or_else(default)
    }

    /// Applies encoded properties, and returns how many.
    fn update(&mut self, entity_type: &EntityType, properties: &[u8]) -> usize {
        let updates = read_properties(entity_type, properties).expect("properties have their encoding");
        let count = updates.len();
        for (id, value) in updates {
            self.properties
                .insert(entity_type.client_properties()[usize::from(id.0)], value);
        }
        count
    }

    /// In order of client numbers, as its reader needs them.
    fn held(&self, entity_type: &EntityType) -> Vec<Value> {
        let members = entity_type.client_properties().iter();
        members.map(|member| self.property(entity_type, *member)).collect()
    }

    fn change(&mut self, entity_type: &EntityType, event: &Shown) {
        let Shown::Property { member, change } = event else {
            return;
        };
        let member = entity_type.client_properties()[usize::from(member.0)];
        let property = entity_type.property(member).expect("it exists");
        let mut held = self.property(entity_type, member);
        apply(&property.data_type, &mut held, change).expect("the change fits what is held");
        self.properties.insert(member, held);
    }
}
