//! The view of one client: everything around its entity, as numbered frames (rule V3).

use std::{borrow::Cow, collections::VecDeque, time::Duration};

use annals_event::{Place, SpaceData, SpaceEntry, SpaceVersions};
use annals_ids::{EntityId, Part, Position, SpaceId, Tick};
use annals_node::{ViewFrames, time::Mono};
use annals_space::{Interest, Priority, PriorityQueue};
use annals_wire::client::{Known, MAX_KEPT, Movements, Stamp, ViewItem, volatile::MovementAck};

use crate::{
    budget::Budget,
    entity_view::{self, ClientState, EntityView, Own, Updates, distance},
    ghost_receiver::HOLDER_SILENCE_LIMIT,
    known_entity::{KnowledgeView, KnownEntities, KnownEntity},
    movement_encoder::{MovementEncoder, Sighting},
};

/// How long entities that a client knows, and this owner does not, stay in a new view after all neighbours (or all
/// possible holders) have sent their lists since it began: ghosts that the lists name must still be requested.
const WARMUP: Duration = Duration::from_secs(3);

/// A client with nothing to receive gets an empty frame this long after its last one. It confirms that no frame was
/// lost, and that the cell is alive.
const EMPTY_FRAME_AFTER: Duration = Duration::from_secs(1);

/// What a client is sent at one moment.
#[derive(Debug, Default)]
pub(crate) struct ViewOutput {
    pub(crate) frames: Vec<Vec<u8>>,
    pub(crate) datagrams: Vec<Vec<u8>>,
    /// Whether a frame places the client's own entity.
    pub(crate) is_placed: bool,
}

/// A view that a client has begun.
#[derive(Debug)]
pub(crate) struct View {
    frames: ViewFrames,
    /// Whether a frame was made, with which the view begins at the client.
    is_open: bool,
    /// What the client has of its own entity.
    own: Option<ClientState>,
    /// All other entities in view, ascending by entity.
    entity_views: Vec<EntityView>,
    /// Entities that have left the view and that the client still keeps, oldest first; at most [`MAX_KEPT`]. The client
    /// keeps the same list.
    kept: VecDeque<(EntityId, ClientState)>,
    queue: PriorityQueue,
    movement_encoder: MovementEncoder,
    /// The space that the client was last sent for its entity.
    space: Option<SpaceId>,
    /// The space whose data the client has, and the versions that it has.
    data: Option<(SpaceId, SpaceVersions)>,
    /// The revision of the space's data at which the client had all of it.
    data_revision: Option<u64>,
    /// `None` once this owner knows everything that the client may know.
    warmup: Option<Warmup>,
    /// When the last frame was made.
    last_frame_at: Mono,
    /// Buffers, empty between ticks, in which the next `entity_views` and the order of turns are built.
    spare: Vec<EntityView>,
    due: Vec<Due>,
    /// Movements to be sent at this tick, in the order of their turns.
    encoded_movements: Vec<EncodedMovement>,
    /// Whether the budget of this tick was too small for all that were due.
    is_short: bool,
}

/// State of a view that began a moment ago.
#[derive(Clone, Copy, Debug)]
struct Warmup {
    begun: Mono,
    /// An entity that the client has and that is unknown here.
    unknown_here: Option<EntityId>,
    /// When all required owners had sent their lists since the view began.
    oldest_list_at: Option<Mono>,
}

/// An entity view whose turn is due.
#[derive(Clone, Copy, Debug)]
struct Due {
    priority: f64,
    /// Distance, metres.
    away: f32,
    /// Its index in `entity_views`.
    at: usize,
}

/// A movement to be sent, with the state before its turn: restored if the movement does not fit.
#[derive(Clone, Copy, Debug)]
struct EncodedMovement {
    /// Its index in `entity_views`.
    at: usize,
    priority: Priority,
    sent_tick: Option<u64>,
}

impl View {
    /// Begins a view of the client of `own`, which has `known` and reads movements in the way of `movements`.
    pub(crate) fn begin(number: u64, own: EntityId, mut known: Known, movements: Movements, now: Mono) -> Self {
        let queue = PriorityQueue::default();
        let is_own = known.seen.binary_search_by_key(&own, |stamp| stamp.entity);
        let known_own = is_own.ok().map(|at| known.seen.remove(at));
        let unusual = known.unusual_drivers;
        let is_unusual = |entity: &EntityId| unusual.binary_search(entity).is_ok();
        let entity_view = |Stamp { entity, upto, finer }| EntityView {
            entity,
            priority: queue.enter(),
            client_state: Some(ClientState::from_report(now, upto, finer, is_unusual(&entity))),
        };
        let kept = |Stamp { entity, upto, finer }| (entity, ClientState::from_report(now, upto, finer, false));
        Self {
            frames: ViewFrames::new(Part::Cell, number),
            is_open: false,
            own: known_own.map(|stamp| ClientState::from_report(now, stamp.upto, stamp.finer, !is_unusual(&own))),
            entity_views: known.seen.into_iter().map(entity_view).collect(),
            kept: known.kept.into_iter().map(kept).collect(),
            queue,
            movement_encoder: MovementEncoder::begin(number, movements),
            space: None,
            data: known.space.take(),
            data_revision: None,
            warmup: Some(Warmup {
                begun: now,
                unknown_here: None,
                oldest_list_at: None,
            }),
            last_frame_at: now,
            spare: Vec::new(),
            due: Vec::new(),
            encoded_movements: Vec::new(),
            is_short: false,
        }
    }

    /// The number that the client gave to the view.
    pub(crate) fn number(&self) -> u64 {
        self.frames.view()
    }

    /// Whether the client has been sent another entity than its own, which has not left since.
    pub(crate) fn shows(&self, entity: EntityId) -> bool {
        self.client_state(entity).is_some()
    }

    /// Whether the client was sent that it moves another entity than its own.
    pub(crate) fn drives(&self, entity: EntityId) -> bool {
        self.client_state(entity).is_some_and(ClientState::drives)
    }

    /// Records that the client has moved another entity than its own there.
    pub(crate) fn record_movement(&mut self, entity: EntityId, place: Place, now: Mono) {
        let at = self.entity_views.binary_search_by_key(&entity, |found| found.entity);
        if let Ok(at) = at
            && let Some(client_state) = &mut self.entity_views[at].client_state
            && let Some(driving) = &mut client_state.driving
        {
            driving.record_movement(now, place);
        }
    }

    /// What the client has of another entity than its own.
    fn client_state(&self, entity: EntityId) -> Option<&ClientState> {
        let at = self.entity_views.binary_search_by_key(&entity, |found| found.entity);
        self.entity_views[at.ok()?].client_state.as_ref()
    }

    /// An entity that the client has and that was unknown here at the last tick, while it may still arrive.
    pub(crate) fn unknown_here(&self) -> Option<EntityId> {
        self.warmup?.unknown_here
    }

    /// Ends the warm-up: the client knows no entity that could be around its own.
    pub(crate) fn end_warmup(&mut self) {
        self.warmup = None;
    }

    /// Takes the client's acknowledgement of movement datagrams.
    pub(crate) fn acknowledge(&mut self, ack: MovementAck) {
        self.movement_encoder.acknowledge(ack);
    }

    /// What the client is sent at a tick: its own entity, entities that have left, and the others in the order of their
    /// turns, as far as the budget goes.
    pub(crate) fn update(
        &mut self,
        knowledge: &KnowledgeView<'_>,
        entities: &KnownEntities<'_>,
        own: Own,
        interest: &mut Interest,
        budget: &mut Budget,
    ) -> ViewOutput {
        budget.refill();
        let around = self.around(knowledge, entities, own.entity, interest);
        let mut updates = Updates::default();
        let state = entities.get(own.entity);
        // Entities of the former space leave before the client receives its own entity's new space.
        let space = state.map(|state| state.whereabouts.place.space);
        if self.space.is_some() && self.space != space {
            self.leave_others(&mut updates);
        }
        self.update_members(knowledge, &around, &mut updates);
        if let Some(state) = state {
            self.add_own(knowledge, own, state, &mut updates);
            self.add_space_data(knowledge, own.entity, budget, &mut updates);
        }
        self.take_turns(knowledge, entities, own, budget, &mut updates);
        let Updates { items, moves } = updates;
        let mut output = self.output(knowledge, own, items, budget);
        let tick = knowledge.known.sampling.tick();
        let observer = own.position.unwrap_or_default();
        output.datagrams = self.encode_movements(tick, observer, &moves, budget.left());
        budget.spend(output.datagrams.iter().map(Vec::len).sum());
        output
    }

    /// What the client is sent at once, after something has happened to its own entity; `None` if nothing is new.
    pub(crate) fn update_own(
        &mut self,
        knowledge: &KnowledgeView<'_>,
        own: Own,
        budget: &mut Budget,
    ) -> Option<ViewOutput> {
        let state = knowledge.entity(own.entity)?;
        let mut updates = Updates::default();
        self.add_own(knowledge, own, &state, &mut updates);
        (!updates.items.is_empty()).then(|| self.output(knowledge, own, updates.items, budget))
    }

    fn output(
        &mut self,
        knowledge: &KnowledgeView<'_>,
        own: Own,
        items: Vec<ViewItem>,
        budget: &mut Budget,
    ) -> ViewOutput {
        let is_placement =
            |item: &ViewItem| matches!(item, ViewItem::Placed { entity: placed, .. } if *placed == own.entity);
        let is_placed = items.iter().any(is_placement);
        let (now, tick) = (knowledge.cx.now().mono, knowledge.known.sampling.tick());
        let frames = self.encode_frames(now, tick, items);
        budget.spend(frames.iter().map(Vec::len).sum());
        ViewOutput {
            frames,
            datagrams: Vec::new(),
            is_placed,
        }
    }

    /// The entities around the client's own, ascending. What the client had before the view began stays in view within
    /// the hysteresis; so does an entity that the client no longer sees at any distance.
    fn around<'i>(
        &mut self,
        knowledge: &KnowledgeView<'_>,
        entities: &KnownEntities<'_>,
        own: EntityId,
        interest: &'i mut Interest,
    ) -> Cow<'i, [EntityId]> {
        if self.is_warming_up(knowledge) {
            let known = self
                .entity_views
                .iter()
                .filter(|entity_view| entity_view.client_state.is_some());
            known.for_each(|known| {
                interest.keep(own, known.entity);
            });
        }
        let always = always_seen(knowledge, entities, own);
        always.iter().for_each(|seen| {
            interest.keep(own, *seen);
        });
        if always.is_empty() {
            return Cow::Borrowed(interest.seen(own));
        }
        let mut around = [interest.seen(own), &always].concat();
        around.sort_unstable();
        around.dedup();
        Cow::Owned(around)
    }

    /// Whether the view is so new that this owner may not know everything that the client knows. Lists that neighbours
    /// sent before it began do not count: with a newer map they may name more. While such an entity exists, all owners
    /// with an area in the space must have sent their lists, as its holder may have no area nearby any more. The wait
    /// ends after [`HOLDER_SILENCE_LIMIT`], the time for which ghosts of a silent holder are kept.
    fn is_warming_up(&mut self, knowledge: &KnowledgeView<'_>) -> bool {
        let now = knowledge.cx.now().mono;
        self.warmup = self.warmup.and_then(|mut warmup| {
            warmup.unknown_here = unknown_here(&self.entity_views, knowledge);
            let wanted = match warmup.unknown_here {
                Some(_) => knowledge.known.territory.space_peers(),
                None => knowledge.known.territory.neighbours(),
            };
            let oldest = knowledge.known.ghosts.oldest_list_at(now, wanted);
            if warmup.oldest_list_at.is_none() && oldest >= Some(warmup.begun) {
                warmup.oldest_list_at = Some(now);
            }
            let waits = warmup.oldest_list_at.is_none_or(|since| now.since(since) <= WARMUP);
            (waits && now.since(warmup.begun) <= HOLDER_SILENCE_LIMIT).then_some(warmup)
        });
        self.warmup.is_some()
    }

    /// Adds what is new of the client's own entity.
    fn add_own(&mut self, knowledge: &KnowledgeView<'_>, own: Own, state: &KnownEntity<'_>, updates: &mut Updates) {
        let (entity, space) = (own.entity, state.whereabouts.place.space);
        let (is_known, before) = (self.own.is_some(), self.space.replace(space));
        if before.is_some_and(|before| before != space) {
            self.leave_others(updates);
            // The client drops the data of its space with this item, and has none of it if it returns.
            (self.data, self.data_revision) = (None, None);
        }
        let entered = (before != Some(space)).then_some(ViewItem::Space { entity, space });
        let (first, last) = if is_known { (entered, None) } else { (None, entered) };
        updates.items.extend(first);
        entity_view::show(&mut self.own, knowledge, own, (entity, state), updates);
        updates.items.extend(last);
    }

    /// Adds what is new in the data of the client's space, within half of the budget, which is shared with entities;
    /// the rest follows at later ticks. The client keeps what it has in a newer version than this owner.
    fn add_space_data(
        &mut self,
        knowledge: &KnowledgeView<'_>,
        entity: EntityId,
        budget: &Budget,
        updates: &mut Updates,
    ) {
        let Some(space) = self.space else { return };
        if self.data.as_ref().is_none_or(|(of, _)| *of != space) {
            (self.data, self.data_revision) = (Some((space, SpaceVersions::default())), None);
        }
        let revision = Some(knowledge.known.spaces.revision(space));
        let (Some((_, client_state)), true) = (&mut self.data, self.data_revision != revision) else {
            return;
        };
        let (before, mut bytes) = (updates.bytes_after(0), 0);
        let entries = knowledge.cx.space_data(space).into_iter().flat_map(SpaceData::entries);
        for (key, version, value) in entries {
            if !client_state.is_news(key, version) {
                continue;
            }
            if !budget.allows(before + 2 * bytes) {
                return;
            }
            client_state.note(key, version);
            let value = value.to_vec();
            let entry = SpaceEntry { key, version, value };
            let item = ViewItem::SpaceData { entity, entry };
            bytes += item.about_bytes();
            updates.items.push(item);
        }
        self.data_revision = revision;
    }

    /// Removes all other entities from the view: the client's entity is in another space now.
    fn leave_others(&mut self, updates: &mut Updates) {
        let gone = self.entity_views.drain(..);
        gone.for_each(|entity_view| leave(entity_view, &mut self.kept, updates));
    }

    /// Updates the set of entities in view, and adds items for those that have left.
    fn update_members(&mut self, knowledge: &KnowledgeView<'_>, around: &[EntityId], updates: &mut Updates) {
        let warmup = self.warmup.is_some();
        let is_same = self
            .entity_views
            .iter()
            .map(|entity_view| entity_view.entity)
            .eq(around.iter().copied());
        if is_same {
            return;
        }
        let (queue, next, kept) = (&self.queue, &mut self.spare, &mut self.kept);
        let mut known = self.entity_views.drain(..).peekable();
        let mut leave_or_retain = |entity_view: EntityView, next: &mut Vec<EntityView>| {
            if warmup && knowledge.source(entity_view.entity).is_none() {
                next.push(entity_view);
            } else {
                leave(entity_view, kept, updates);
            }
        };
        for &entity in around {
            while let Some(entity_view) = known.next_if(|entity_view| entity_view.entity < entity) {
                leave_or_retain(entity_view, next);
            }
            let new = || EntityView {
                entity,
                priority: queue.enter(),
                client_state: None,
            };
            next.push(
                known
                    .next_if(|entity_view| entity_view.entity == entity)
                    .unwrap_or_else(new),
            );
        }
        known.for_each(|entity_view| leave_or_retain(entity_view, next));
        std::mem::swap(&mut self.entity_views, &mut self.spare);
    }

    /// Adds what is new of other entities, most urgent first.
    fn take_turns(
        &mut self,
        knowledge: &KnowledgeView<'_>,
        entities: &KnownEntities<'_>,
        own: Own,
        budget: &Budget,
        updates: &mut Updates,
    ) {
        for (at, entity_view) in self.entity_views.iter().enumerate() {
            if self.queue.is_due(&entity_view.priority)
                && let Some(state) = entities.get(entity_view.entity)
            {
                self.due.push(Due {
                    priority: entity_view.priority.value(),
                    away: distance(own.position, state.whereabouts.place.position),
                    at,
                });
            }
        }
        self.due.sort_unstable_by(|one, other| {
            let by_priority = one.priority.total_cmp(&other.priority);
            by_priority
                .then(one.away.total_cmp(&other.away))
                .then(one.at.cmp(&other.at))
        });
        self.is_short = false;
        let (mut counted, mut items) = (updates.items.len(), updates.bytes_after(0));
        for due in self.due.drain(..) {
            self.is_short = !budget.allows(items + self.movement_encoder.about_bytes(updates.moves.len()));
            if self.is_short {
                break;
            }
            let entity_view = &mut self.entity_views[due.at];
            let (at, priority) = (due.at, entity_view.priority);
            let sent_tick = entity_view
                .client_state
                .as_ref()
                .and_then(|client_state| client_state.sent_tick);
            let moves = updates.moves.len();
            if let Some(state) = entities.get(entity_view.entity) {
                if entity_view.client_state.is_none() {
                    entity_view.client_state =
                        take_back(&mut self.kept, entity_view.entity, (knowledge, state), updates);
                }
                entity_view::show(
                    &mut entity_view.client_state,
                    knowledge,
                    own,
                    (entity_view.entity, state),
                    updates,
                );
            }
            self.queue.turn(&mut entity_view.priority, due.away);
            if updates.moves.len() > moves {
                self.encoded_movements.push(EncodedMovement {
                    at,
                    priority,
                    sent_tick,
                });
            }
            items += updates.bytes_after(counted);
            counted = updates.items.len();
        }
    }

    /// Encodes movements as datagrams, as many as fit into the larger of `left` and their expected size, in bytes, and
    /// ends the tick. Those that do not fit stay due.
    fn encode_movements(&mut self, tick: Tick, observer: Position, moves: &[Sighting], left: usize) -> Vec<Vec<u8>> {
        let limit = left.max(self.movement_encoder.about_bytes(moves.len()));
        let (datagrams, fit) = self.movement_encoder.encode(tick, observer, moves, limit);
        self.is_short |= fit < moves.len();
        for EncodedMovement {
            at,
            priority,
            sent_tick,
        } in self.encoded_movements.drain(..).skip(fit)
        {
            let entity_view = &mut self.entity_views[at];
            entity_view.priority = priority;
            if let Some(client_state) = &mut entity_view.client_state {
                client_state.sent_tick = sent_tick;
            }
        }
        let priorities = self.entity_views.iter().map(|entity_view| entity_view.priority.value());
        self.queue.end_tick(priorities.min_by(f64::total_cmp), self.is_short);
        datagrams
    }

    /// Encodes items as frames. The first frame of a view may be empty, as it says that the view has begun; later empty
    /// frames let the client detect a lost one.
    fn encode_frames(&mut self, now: Mono, tick: Tick, items: Vec<ViewItem>) -> Vec<Vec<u8>> {
        if items.is_empty() {
            let due = !self.is_open || now.since(self.last_frame_at) >= EMPTY_FRAME_AFTER;
            if !due {
                return Vec::new();
            }
        }
        for item in &items {
            if let ViewItem::Leave { entity } = item {
                self.movement_encoder.forget(*entity);
            }
        }
        self.last_frame_at = now;
        self.is_open = true;
        self.frames.of(tick, items)
    }
}

/// Entities that a client sees at any distance, as far as they are known here, ascending.
fn always_seen(knowledge: &KnowledgeView<'_>, entities: &KnownEntities<'_>, own: EntityId) -> Vec<EntityId> {
    let cell = knowledge.cx.image(own).and_then(|image| image.cell());
    let Some((manual, place)) = cell.map(|cell| &cell.sight.manual).zip(knowledge.cx.place(own)) else {
        return Vec::new();
    };
    let is_shown = |entity: &&EntityId| {
        entities
            .get(**entity)
            .is_some_and(|state| state.entity_type.parts.client && state.whereabouts.place.space == place.space)
    };
    manual.iter().filter(is_shown).copied().collect()
}

/// An entity that the client has and that is unknown here.
fn unknown_here(entity_views: &[EntityView], knowledge: &KnowledgeView<'_>) -> Option<EntityId> {
    let mut known = entity_views
        .iter()
        .filter(|entity_view| entity_view.client_state.is_some());
    let unknown_here = known.find(|entity_view| knowledge.source(entity_view.entity).is_none());
    unknown_here.map(|entity_view| entity_view.entity)
}

/// Adds a `Leave` item if the client has the entity, and keeps what it has.
fn leave(entity_view: EntityView, kept: &mut VecDeque<(EntityId, ClientState)>, updates: &mut Updates) {
    let EntityView {
        entity, client_state, ..
    } = entity_view;
    let Some(mut client_state) = client_state else { return };
    updates.items.push(ViewItem::Leave { entity });
    client_state.driving = None;
    kept.push_back((entity, client_state));
    if kept.len() > MAX_KEPT {
        kept.pop_front();
    }
}

/// Adds a `Return` item for an entity of which the client still keeps something.
fn take_back(
    kept: &mut VecDeque<(EntityId, ClientState)>,
    entity: EntityId,
    (knowledge, state): (&KnowledgeView<'_>, &KnownEntity<'_>),
    updates: &mut Updates,
) -> Option<ClientState> {
    let at = kept.iter().position(|(known, _)| *known == entity)?;
    let (_, mut client_state) = kept.remove(at)?;
    let place = state.whereabouts.place;
    updates.items.push(ViewItem::Return {
        entity,
        position: place.position,
        direction: place.direction,
    });
    client_state.sent_tick = Some(knowledge.known.sampling.local_tick());
    Some(client_state)
}
