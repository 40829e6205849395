//! A client's view: the entities of one view, in exactly the state in which they were shown (rules V3 and V4).

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    ops::RangeInclusive,
};

use annals_def::{Change, DataType, EntityType, Schema, Value, apply};
use annals_event::{SpaceData, SpaceEntry, space_data::LIFE};
use annals_ids::{
    Direction, EntityId, Hash, HistoryNumber, MemberId, Part, Position, SpaceId, Tick, TypeId, WorldTime,
};
use annals_wire::client::{
    ClientMember, Known, MAX_KEPT, MAX_STAMPS, Movements, Moves, Reply, Shown, ShownReader, Stamp, Stamps, ViewFrame,
    ViewItem, args_hash, change_hash, exposed_method, property_hash, read_properties, reply_hash,
    volatile::{Facing, Motion, MovementAck, Placing, Unreadable, VolatileReader},
};

use crate::event::{Event, Millis, Showing, What};

/// Milliseconds within which a view that was started must get its first frame; doubled each time it does not.
const FIRST_FRAME_WITHIN: u64 = 2_000;

/// Maximum of that timeout, milliseconds.
const LONGEST_WAIT: u64 = 8_000;

/// Milliseconds without a frame after which the cell's view is restarted: its witness sends at least an empty frame
/// every 8 s, and the base asks for stamps when there is another witness; so this covers the loss of all of these. The
/// base's view comes directly over the connection, and cannot be lost without it.
const QUIET_AFTER: u64 = 20_000;

/// Milliseconds of game time per tick of a cell.
const TICK_MS: u64 = 100;

/// One of the client's two views.
#[derive(Debug)]
pub struct View {
    source: Part,
    /// The number of the view that was started last; 0 before the first.
    number: u64,
    /// The encoding of movements, from the next start of the view on.
    movements: Movements,
    /// Decoder of this view's predicted movements.
    reader: Option<VolatileReader>,
    phase: Phase,
    entities: BTreeMap<EntityId, EntityView>,
    /// Entities that have left, in the state in which they left, in that order; at most [`MAX_KEPT`]. The witness knows
    /// of each.
    kept: VecDeque<(EntityId, EntityView)>,
    /// The space of the client's own entity, if it was sent, and the data of that space.
    space: Option<(SpaceId, SpaceData)>,
    /// The tick of the newest frame, and when it arrived.
    ticked: Option<(Tick, Millis)>,
    /// Whether the client moves an entity, as the server has sent. Of others it moves its own.
    drives: BTreeMap<EntityId, bool>,
}

/// Both views.
#[derive(Debug)]
pub(crate) struct Views {
    pub(crate) base: View,
    pub(crate) cell: View,
}

impl Default for Views {
    fn default() -> Self {
        Self {
            base: View::new(Part::Base),
            cell: View::new(Part::Cell),
        }
    }
}

impl Views {
    pub(crate) fn get(&self, source: Part) -> &View {
        match source {
            Part::Base => &self.base,
            Part::Cell => &self.cell,
        }
    }

    pub(crate) fn get_mut(&mut self, source: Part) -> &mut View {
        match source {
            Part::Base => &mut self.base,
            Part::Cell => &mut self.cell,
        }
    }

    /// The type of an entity that is in either view.
    pub(crate) fn type_of(&self, entity: EntityId) -> Option<TypeId> {
        let seen = self
            .cell
            .entities
            .get(&entity)
            .or_else(|| self.base.entities.get(&entity))?;
        Some(seen.type_id)
    }
}

/// State of a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// There is no connection, or the view was not started on it yet.
    Idle,
    /// It was started; the first frame has not arrived.
    Begun { again_at: Millis, wait: u64 },
    /// Frames arrive; the next has this number, and the last one was of this tick.
    Following {
        next: u64,
        quiet_at: Option<Millis>,
        tick: Tick,
    },
}

/// An entity as one view shows it.
#[derive(Clone, Debug, PartialEq)]
pub struct EntityView {
    pub type_id: TypeId,
    /// Its position and direction; `None` for a base part.
    pub place: Option<(Position, Direction)>,
    /// Its space; known for the client's own entity, and so for all in the cell's view.
    pub space: Option<SpaceId>,
    /// The history number up to which it was shown.
    pub upto: HistoryNumber,
    /// For each level of detail finer than the one on which it is shown, the nearest first, the history number of its
    /// properties of that level.
    finer: Vec<HistoryNumber>,
    /// By client number, all properties of the type that any client is shown; those that this view does not show have
    /// their defaults.
    properties: Vec<Value>,
    placed_at: Tick,
}

impl EntityView {
    fn new(entity_type: &EntityType, place: Option<(Position, Direction)>, tick: Tick) -> Self {
        Self {
            type_id: entity_type.id,
            place,
            space: None,
            upto: HistoryNumber(0),
            finer: Vec::new(),
            properties: defaults(entity_type),
            placed_at: tick,
        }
    }

    /// The level of detail on which it is shown, 0 for the finest. Properties of finer levels are as they were when it
    /// was last shown on those.
    #[must_use]
    pub fn level(&self) -> usize {
        self.finer.len()
    }

    fn stamp(&self, entity: EntityId) -> Stamp {
        let (upto, finer) = (self.upto, self.finer.clone());
        Stamp { entity, upto, finer }
    }

    /// The property with this client number.
    #[must_use]
    pub fn property(&self, member: ClientMember) -> Option<&Value> {
        self.properties.get(usize::from(member.0))
    }
}

/// Something is missing in a view, or contradicts its state: the view must restart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ViewGap;

/// Result of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    /// It belongs to the view and was applied.
    Applied,
    /// It belongs to a view that has ended.
    Stale,
}

impl View {
    fn new(source: Part) -> Self {
        Self {
            source,
            number: 0,
            movements: Movements::Plain,
            reader: None,
            phase: Phase::Idle,
            entities: BTreeMap::new(),
            kept: VecDeque::new(),
            space: None,
            ticked: None,
            drives: BTreeMap::new(),
        }
    }

    /// The space of the client's own entity, and its data, as far as they were sent.
    #[must_use]
    pub fn space(&self) -> Option<(SpaceId, &SpaceData)> {
        self.space.as_ref().map(|(space, data)| (*space, data))
    }

    /// The game time by the newest frame: accurate to about a tenth of a second, plus the time on the network.
    #[must_use]
    pub fn world_time(&self, now: Millis) -> Option<WorldTime> {
        let (tick, came) = self.ticked?;
        let passed = now.0.saturating_sub(came.0);
        Some(WorldTime(tick.0.saturating_mul(TICK_MS).saturating_add(passed)))
    }

    /// The number of the view that was started last.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// The entities in view.
    #[must_use]
    pub fn entities(&self) -> &BTreeMap<EntityId, EntityView> {
        &self.entities
    }

    /// Restarts the view with all known state. `own` is the entity that the client controls, with its position: if there
    /// is more state than can be named, the entities nearest to it are kept.
    pub(crate) fn begin(
        &mut self,
        now: Millis,
        (own, near): (Option<EntityId>, Position),
        events: &mut VecDeque<Event>,
    ) -> Stamps {
        let wait = match self.phase {
            Phase::Begun { wait, .. } => (wait * 2).min(LONGEST_WAIT),
            Phase::Idle | Phase::Following { .. } => FIRST_FRAME_WITHIN,
        };
        self.forget_beyond(MAX_STAMPS, near, events);
        self.number += 1;
        self.reader = match self.movements {
            Movements::Plain => None,
            Movements::Predicted(packing) => Some(VolatileReader::new(self.number, packing)),
        };
        self.phase = Phase::Begun {
            again_at: now.after(wait),
            wait,
        };
        let stamp = |(entity, seen): (&EntityId, &EntityView)| seen.stamp(*entity);
        let known = Known {
            seen: self.entities.iter().map(stamp).collect(),
            kept: self.kept.iter().map(|(entity, seen)| seen.stamp(*entity)).collect(),
            space: self.space().map(|(space, data)| (space, data.versions())),
            unusual_drivers: self.unusual_drivers(own),
        };
        Stamps {
            source: self.source,
            view: self.number,
            known,
        }
    }

    /// Sets the encoding of movements for views that are started from now on.
    pub(crate) fn set_movements(&mut self, movements: Movements) {
        self.movements = movements;
    }

    /// The connection was lost.
    pub(crate) fn pause(&mut self) {
        self.phase = Phase::Idle;
    }

    /// Removes every entity.
    pub(crate) fn clear(&mut self, events: &mut VecDeque<Event>) {
        self.kept.clear();
        self.space = None;
        self.drives.clear();
        for &entity in std::mem::take(&mut self.entities).keys() {
            events.push_back(Event::Left {
                part: self.source,
                entity,
            });
        }
    }

    /// When the view must restart because no frame arrived.
    pub(crate) fn deadline(&self) -> Option<Millis> {
        match self.phase {
            Phase::Begun { again_at, .. } => Some(again_at),
            Phase::Following { quiet_at, .. } => quiet_at,
            Phase::Idle => None,
        }
    }

    /// Applies a frame. On a hole, the items before it have been applied.
    pub(crate) fn apply(
        &mut self,
        now: Millis,
        schema: &Schema,
        frame: ViewFrame,
        events: &mut VecDeque<Event>,
    ) -> Result<Taken, ViewGap> {
        if frame.view != self.number {
            return Ok(Taken::Stale);
        }
        let next = match self.phase {
            Phase::Idle => return Ok(Taken::Stale),
            Phase::Begun { .. } => 1,
            Phase::Following { next, .. } => next,
        };
        if frame.sequence != next {
            return Err(ViewGap);
        }
        let next = next.checked_add(1).ok_or(ViewGap)?;
        let quiet_at = (self.source == Part::Cell).then(|| now.after(QUIET_AFTER));
        let tick = frame.tick;
        self.phase = Phase::Following { next, quiet_at, tick };
        self.ticked = Some((tick, now)).filter(|_| self.source == Part::Cell);
        for item in frame.items {
            self.apply_item(schema, item, frame.tick, events)?;
        }
        Ok(Taken::Applied)
    }

    /// The entities of which the client moves what it usually does not, or does not move what it usually does.
    fn unusual_drivers(&self, own: Option<EntityId>) -> Vec<EntityId> {
        let usual = |entity: EntityId| Some(entity) == own;
        let unusual = self
            .drives
            .iter()
            .filter(|(entity, drives)| **drives != usual(**entity));
        unusual.map(|(entity, _)| *entity).collect()
    }

    /// Whether the client, which controls `own`, moves an entity.
    pub(crate) fn drives(&self, entity: EntityId, own: EntityId) -> bool {
        self.drives.get(&entity).copied().unwrap_or(entity == own)
    }

    /// Applies movements. What the client of `own` moves itself is not moved by these.
    pub(crate) fn apply_moves(&mut self, moves: &Moves, own: EntityId) -> Taken {
        if moves.view != self.number || !matches!(self.phase, Phase::Following { .. }) {
            return Taken::Stale;
        }
        for movement in &moves.moves {
            let place = |_| (movement.position, movement.direction);
            self.follow(movement.entity, own, moves.tick, place);
        }
        Taken::Applied
    }

    /// Applies predicted movements, which only this view's decoder can read. Returns what to acknowledge to the server.
    pub(crate) fn apply_predicted(
        &mut self,
        bytes: &[u8],
        own: EntityId,
    ) -> Result<(Taken, Option<MovementAck>), Unreadable> {
        let Phase::Following { tick, .. } = self.phase else {
            return Ok((Taken::Stale, None));
        };
        let Some(reader) = &mut self.reader else {
            return Ok((Taken::Stale, None));
        };
        let update = match reader.read(bytes, tick) {
            Ok(update) => update,
            Err(Unreadable::OtherView | Unreadable::Late) => return Ok((Taken::Stale, None)),
            Err(error) => return Err(error),
        };
        let ack = reader.ack();
        for motion in &update.motions {
            self.follow(motion.entity, own, update.tick, |place| moved(place, motion));
        }
        Ok((Taken::Applied, ack))
    }

    /// Sets an entity's position at a tick, unless a later one is known or the client moves the entity itself.
    fn follow(
        &mut self,
        entity: EntityId,
        own: EntityId,
        tick: Tick,
        to: impl FnOnce((Position, Direction)) -> (Position, Direction),
    ) {
        if !self.drives(entity, own)
            && let Some(seen) = self.entities.get_mut(&entity)
            && tick > seen.placed_at
        {
            seen.place = Some(to(seen.place.unwrap_or_default()));
            seen.placed_at = tick;
        }
    }

    /// The client has moved an entity. Returns the history number up to which the entity was shown, if it is in view.
    pub(crate) fn set_place(&mut self, entity: EntityId, place: (Position, Direction)) -> Option<HistoryNumber> {
        let seen = self.entities.get_mut(&entity)?;
        seen.place = Some(place);
        Some(seen.upto)
    }

    fn apply_item(
        &mut self,
        schema: &Schema,
        item: ViewItem,
        tick: Tick,
        events: &mut VecDeque<Event>,
    ) -> Result<(), ViewGap> {
        match item {
            ViewItem::Enter { entity, type_id, place } => {
                let entity_type = schema.entity_type(type_id).ok_or(ViewGap)?;
                self.kept.retain(|(known, _)| *known != entity);
                self.enter(entity, EntityView::new(entity_type, place, tick), events);
                Ok(())
            }
            ViewItem::Leave { entity } => {
                let seen = self.leave(entity, events);
                seen.into_iter().for_each(|seen| self.keep(entity, seen));
                Ok(())
            }
            ViewItem::Return {
                entity,
                position,
                direction,
            } => self.take_back(entity, (position, direction), tick, events),
            ViewItem::Placed {
                entity,
                position,
                direction,
            } => {
                let seen = self.entities.get_mut(&entity).ok_or(ViewGap)?;
                (seen.place, seen.placed_at) = (Some((position, direction)), tick);
                events.push_back(Event::Placed {
                    entity,
                    position,
                    direction,
                });
                Ok(())
            }
            ViewItem::Drives { entity, drives } => self.set_driver(entity, drives, events),
            ViewItem::Space { entity, space } => self.enter_space(entity, space, events),
            ViewItem::SpaceData { entity, entry } => self.take_data(entity, entry, events),
            ViewItem::Refresh {
                entity,
                upto,
                level,
                properties,
            } => {
                let refresh =
                    |seen: &mut EntityView, of: &EntityType| seen.refresh(of, (upto, level), &properties).map(Some);
                self.refresh(schema, entity, refresh, events)
            }
            ViewItem::Level {
                entity,
                level,
                properties,
            } => {
                let change = |seen: &mut EntityView, of: &EntityType| seen.change_level(of, level, &properties);
                self.refresh(schema, entity, change, events)
            }
            ViewItem::Update {
                entity,
                from,
                upto,
                events: shown,
            } => self.update(schema, entity, from..=upto, &shown, events),
        }
    }

    /// The client moves an entity from now on, or does not move it any more.
    fn set_driver(&mut self, entity: EntityId, drives: bool, events: &mut VecDeque<Event>) -> Result<(), ViewGap> {
        self.entities.get(&entity).ok_or(ViewGap)?;
        self.drives.insert(entity, drives);
        events.push_back(Event::Drives { entity, drives });
        Ok(())
    }

    /// The client's own entity is in that space.
    fn enter_space(&mut self, entity: EntityId, space: SpaceId, events: &mut VecDeque<Event>) -> Result<(), ViewGap> {
        let seen = self.entities.get_mut(&entity).ok_or(ViewGap)?;
        if seen.space.replace(space) != Some(space) {
            events.push_back(Event::SpaceEntered { entity, space });
        }
        if self.space.as_ref().is_none_or(|(known, _)| *known != space) {
            self.space = Some((space, SpaceData::default()));
        }
        Ok(())
    }

    /// Applies an entry of that space's data, if it is newer than the present one, and reports the keys that it
    /// changes.
    fn take_data(&mut self, entity: EntityId, entry: SpaceEntry, events: &mut VecDeque<Event>) -> Result<(), ViewGap> {
        self.entities.get(&entity).ok_or(ViewGap)?;
        let (space, data) = self.space.as_mut().ok_or(ViewGap)?;
        let (space, before) = (*space, data.versions());
        data.take(entry);
        // Data that a newer life of the space voids changed when that life began.
        let keys: BTreeSet<u16> = before
            .iter()
            .chain(data.versions().iter())
            .map(|(key, _)| key)
            .collect();
        for key in keys {
            let version = data.version(key).or(data.version(LIFE));
            if let Some(version) = version.filter(|version| before.version(key) != Some(*version)) {
                events.push_back(Event::SpaceDataChanged { space, key, version });
            }
        }
        Ok(())
    }

    /// Applies full values of an entity's properties, and reports which were sent, if any.
    fn refresh(
        &mut self,
        schema: &Schema,
        entity: EntityId,
        take_over: impl FnOnce(&mut EntityView, &EntityType) -> Result<Option<Refreshment>, ViewGap>,
        events: &mut VecDeque<Event>,
    ) -> Result<(), ViewGap> {
        let part = self.source;
        let (seen, entity_type) = self.seen(schema, entity)?;
        let Ok(refreshment) = take_over(seen, entity_type) else {
            return self.give_up(entity, events);
        };
        let upto = seen.upto;
        events.extend(refreshment.map(|Refreshment { hashes, replaced }| Event::Refreshed {
            part,
            entity,
            upto,
            properties: hashes,
            replaced,
        }));
        Ok(())
    }

    fn enter(&mut self, entity: EntityId, seen: EntityView, events: &mut VecDeque<Event>) {
        self.leave(entity, events);
        let (part, type_id, upto) = (self.source, seen.type_id, seen.upto);
        self.entities.insert(entity, seen);
        events.push_back(Event::Entered {
            part,
            entity,
            type_id,
            upto,
        });
    }

    /// Keeps the state of an entity that has left the cell's view.
    fn keep(&mut self, entity: EntityId, seen: EntityView) {
        if self.source == Part::Base {
            return;
        }
        self.kept.push_back((entity, seen));
        if self.kept.len() > MAX_KEPT {
            self.kept.pop_front();
        }
    }

    /// Restores an entity whose state was kept.
    fn take_back(
        &mut self,
        entity: EntityId,
        place: (Position, Direction),
        tick: Tick,
        events: &mut VecDeque<Event>,
    ) -> Result<(), ViewGap> {
        let at = self
            .kept
            .iter()
            .position(|(known, _)| *known == entity)
            .ok_or(ViewGap)?;
        let (_, mut seen) = self.kept.remove(at).ok_or(ViewGap)?;
        (seen.place, seen.placed_at) = (Some(place), tick);
        self.enter(entity, seen, events);
        Ok(())
    }

    /// Applies the history events of an entity after the start of `span`, up to and including its end.
    fn update(
        &mut self,
        schema: &Schema,
        entity: EntityId,
        span: RangeInclusive<HistoryNumber>,
        shown: &[u8],
        events: &mut VecDeque<Event>,
    ) -> Result<(), ViewGap> {
        let part = self.source;
        let (seen, entity_type) = self.seen(schema, entity)?;
        if seen.upto != *span.start() {
            // Something before it is missing: the present state is correct and stays.
            return Err(ViewGap);
        }
        let updated = seen.update(entity_type, (part, *span.end()), shown, &mut |number, hash, what| {
            events.push_back(Event::Shown(Showing {
                part,
                entity,
                number,
                hash,
                what,
            }));
        });
        updated.or_else(|ViewGap| self.give_up(entity, events))
    }

    fn seen<'s>(&mut self, schema: &'s Schema, entity: EntityId) -> Result<(&mut EntityView, &'s EntityType), ViewGap> {
        let seen = self.entities.get_mut(&entity).ok_or(ViewGap)?;
        let entity_type = schema.entity_type(seen.type_id);
        Ok((
            seen,
            entity_type.expect("invariant: an entity in view has a type of the schema"),
        ))
    }

    fn leave(&mut self, entity: EntityId, events: &mut VecDeque<Event>) -> Option<EntityView> {
        let seen = self.entities.remove(&entity)?;
        self.drives.remove(&entity);
        let part = self.source;
        events.push_back(Event::Left { part, entity });
        Some(seen)
    }

    /// What was sent of the entity contradicts its state: it is to be shown as a new one.
    fn give_up(&mut self, entity: EntityId, events: &mut VecDeque<Event>) -> Result<(), ViewGap> {
        self.leave(entity, events);
        Err(ViewGap)
    }

    /// Drops entities that have left and all but the nearest entities, if there are more than `limit` stamps in total.
    fn forget_beyond(&mut self, limit: usize, near: Position, events: &mut VecDeque<Event>) {
        let numbers = |seen: &EntityView| 1 + seen.finer.len();
        let kept: usize = self.kept.iter().map(|(_, seen)| numbers(seen)).sum();
        let all: usize = self.entities.values().map(numbers).sum();
        if all + kept <= limit {
            return;
        }
        self.kept.clear();
        let distance = |seen: &EntityView| {
            let (position, _) = seen.place.unwrap_or_default();
            (position.x - near.x).abs().max((position.z - near.z).abs())
        };
        let mut by_distance: Vec<(f32, EntityId)> = self
            .entities
            .iter()
            .map(|(&entity, seen)| (distance(seen), entity))
            .collect();
        by_distance.sort_by(|(a, x), (b, y)| a.total_cmp(b).then(x.cmp(y)));
        let mut all = 0;
        for (_, entity) in by_distance {
            all += self.entities.get(&entity).map_or(0, numbers);
            if all > limit {
                self.leave(entity, events);
            }
        }
    }
}

impl EntityView {
    /// Applies the full state and returns what was sent, and, for an entity that was shown before, what it replaced.
    fn refresh(
        &mut self,
        entity_type: &EntityType,
        (upto, level): (HistoryNumber, u8),
        bytes: &[u8],
    ) -> Result<Refreshment, ViewGap> {
        let mut properties = defaults(entity_type);
        let mut hashes = Vec::new();
        for (member, value) in read_properties(entity_type, bytes).map_err(|_| ViewGap)? {
            let (index, data_type) = property(entity_type, member).ok_or(ViewGap)?;
            hashes.push((index, property_hash(data_type, &value).ok_or(ViewGap)?));
            properties[usize::from(member.0)] = value;
        }
        let old = std::mem::replace(&mut self.properties, properties);
        let is_new = self.upto == HistoryNumber(0);
        let pairs = entity_type.client_properties().iter().zip(old).zip(&self.properties);
        let replaced = pairs.filter(|((_, old), new)| !is_new && old != *new);
        let replaced = replaced.map(|((index, old), _)| (*index, old)).collect();
        self.upto = upto;
        self.finer = vec![HistoryNumber(0); level.into()];
        Ok(Refreshment { hashes, replaced })
    }

    /// Changes the level of detail, and returns what was sent for it, if anything.
    fn change_level(
        &mut self,
        entity_type: &EntityType,
        level: u8,
        bytes: &[u8],
    ) -> Result<Option<Refreshment>, ViewGap> {
        let (mut hashes, mut replaced) = (Vec::new(), Vec::new());
        for (member, value) in read_properties(entity_type, bytes).map_err(|_| ViewGap)? {
            let (index, data_type) = property(entity_type, member).ok_or(ViewGap)?;
            hashes.push((index, property_hash(data_type, &value).ok_or(ViewGap)?));
            let old = std::mem::replace(&mut self.properties[usize::from(member.0)], value);
            if self.properties[usize::from(member.0)] != old {
                replaced.push((index, old));
            }
        }
        self.finer.resize(level.into(), self.upto);
        Ok((!hashes.is_empty()).then_some(Refreshment { hashes, replaced }))
    }

    /// Applies history events of a part in the order of their numbers; on a hole, those before it.
    fn update(
        &mut self,
        entity_type: &EntityType,
        (source, upto): (Part, HistoryNumber),
        shown: &[u8],
        report: &mut dyn FnMut(HistoryNumber, Hash, What),
    ) -> Result<(), ViewGap> {
        let mut reader = ShownReader::new(entity_type, (self.upto, upto), shown);
        while let Some((number, event)) = reader.next_event(&self.properties).map_err(|_| ViewGap)? {
            let (hash, what) = match event {
                Shown::Property { member, change } => self.change(entity_type, member, change)?,
                Shown::Method { member, args } => called(entity_type, member, args).ok_or(ViewGap)?,
                Shown::Reply(reply) if reply.part == source => replied(entity_type, reply).ok_or(ViewGap)?,
                Shown::Reply(_) => return Err(ViewGap),
            };
            self.upto = number;
            report(number, hash, what);
        }
        self.upto = upto;
        Ok(())
    }

    fn change(
        &mut self,
        entity_type: &EntityType,
        member: ClientMember,
        change: Change,
    ) -> Result<(Hash, What), ViewGap> {
        let (property, data_type) = property(entity_type, member).ok_or(ViewGap)?;
        let value = &mut self.properties[usize::from(member.0)];
        let replaced = apply(data_type, value, &change).map_err(|_| ViewGap)?;
        let hash = change_hash(data_type, &change).ok_or(ViewGap)?;
        let what = What::Changed {
            property,
            change,
            replaced,
        };
        Ok((hash, what))
    }
}

/// What a refresh contained.
struct Refreshment {
    hashes: Vec<(MemberId, Hash)>,
    replaced: Vec<(MemberId, Value)>,
}

/// The place of an entity at `place` after a movement: what the movement leaves out stays. The height of entities on
/// the ground is left to code that knows the terrain.
fn moved((position, direction): (Position, Direction), motion: &Motion) -> (Position, Direction) {
    let position = match motion.placing {
        Placing::Full(at) | Placing::Exact(at) => at,
        Placing::Ground(at) => Position { y: position.y, ..at },
        Placing::Unsaid => position,
    };
    let direction = match motion.facing {
        Facing::YawPitchRoll(yaw, pitch, roll) => Direction { yaw, pitch, roll },
        Facing::YawPitch(yaw, pitch) => Direction {
            yaw,
            pitch,
            ..direction
        },
        Facing::Yaw(yaw) => Direction { yaw, ..direction },
        Facing::Unsaid => direction,
    };
    (position, direction)
}

fn property(entity_type: &EntityType, member: ClientMember) -> Option<(MemberId, &DataType)> {
    let index = *entity_type.client_properties().get(usize::from(member.0))?;
    entity_type.property(index).map(|property| (index, &property.data_type))
}

fn called(entity_type: &EntityType, member: ClientMember, args: Vec<Value>) -> Option<(Hash, What)> {
    let index = *entity_type.client_method_ids().get(usize::from(member.0))?;
    let hash = args_hash(entity_type.client_methods.get(usize::from(index.0))?, &args)?;
    Some((hash, What::Called { method: index, args }))
}

fn replied(entity_type: &EntityType, reply: Reply) -> Option<(Hash, What)> {
    let method = exposed_method(entity_type, reply.part, reply.member)?;
    let declared = entity_type.method_of(reply.part, method)?;
    let hash = reply_hash(declared, (reply.call, method), &reply.outcome)?;
    let Reply {
        part, call, outcome, ..
    } = reply;
    let what = What::Replied {
        part,
        call,
        method,
        outcome,
    };
    Some((hash, what))
}

/// The initial values of an entity of this type, by client number.
fn defaults(entity_type: &EntityType) -> Vec<Value> {
    entity_type
        .client_properties()
        .iter()
        .filter_map(|&index| entity_type.property(index))
        .map(|property| property.default.clone())
        .collect()
}
