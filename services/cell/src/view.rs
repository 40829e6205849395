//! The view of one client: everything around its entity, as numbered frames (rule V3).

use std::{collections::VecDeque, time::Duration};

use annals_event::{SpaceData, SpaceEntry, SpaceVersions};
use annals_ids::{EntityId, Part, Position, SpaceId, Tick};
use annals_node::{Frames, time::Mono};
use annals_space::{Priority, PriorityQueue};
use annals_wire::client::{Known, MAX_KEPT, Movements, Stamp, ViewItem, volatile::Heard};

use crate::{
    budget::Budget,
    entity_view::{self, EntityView, Had, Own, Sights, distance},
    ghost_receiver::UNHEARD,
    movement_encoder::{MovementEncoder, Sighting},
    presence::{Actor, Cast, Scene},
};

/// How long entities that a client knows, and this owner does not, stay in a new view after all neighbours (or all
/// possible holders) have sent their lists since it began: ghosts that the lists name must still be requested.
const SETTLING: Duration = Duration::from_secs(3);

/// A client with nothing to receive gets an empty frame this long after its last one. It confirms that no frame was
/// lost, and that the cell is alive.
const EMPTY_FRAME_AFTER: Duration = Duration::from_secs(1);

/// A view that a client has begun.
#[derive(Debug)]
pub(crate) struct View {
    frames: Frames,
    /// Whether a frame was made, which tells the client that the view has begun.
    is_open: bool,
    /// What the client has of its own entity.
    own: Option<Had>,
    /// All other entities in view, ascending by entity.
    entity_views: Vec<EntityView>,
    /// Entities that have left the view and that the client still keeps, oldest first; at most [`MAX_KEPT`]. The client
    /// keeps the same list.
    kept: VecDeque<(EntityId, Had)>,
    queue: PriorityQueue,
    /// Encodes movements.
    movement_encoder: MovementEncoder,
    /// The space that the client was last sent for its entity.
    space: Option<SpaceId>,
    /// The space whose data the client has, and the versions that it has.
    data: Option<(SpaceId, SpaceVersions)>,
    /// The revision of the space's data at which the client had all of it.
    data_revision: Option<u64>,
    /// `None` once this owner knows everything that the client may know.
    settling: Option<Settling>,
    /// When the last frame was made.
    spoke: Mono,
    /// Buffers, empty between ticks, in which the next `entity_views` and the order of turns are built.
    spare: Vec<EntityView>,
    due: Vec<Due>,
    /// Movements to be sent at this tick, in the order of their turns.
    told: Vec<EncodedMovement>,
    /// Whether the budget of this tick was too small for all that were due.
    is_short: bool,
}

/// State of a view that began a moment ago.
#[derive(Clone, Copy, Debug)]
struct Settling {
    begun: Mono,
    /// An entity that the client has and that is unknown here.
    missed: Option<EntityId>,
    /// When all required owners had sent their lists since the view began.
    all_heard: Option<Mono>,
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
    told: Option<u64>,
}

impl View {
    /// Begins a view of the client of `own`, which has `known` and reads movements in the way of `movements`.
    pub(crate) fn begin(number: u64, own: EntityId, mut known: Known, movements: Movements, now: Mono) -> Self {
        let queue = PriorityQueue::default();
        let is_own = known.seen.binary_search_by_key(&own, |stamp| stamp.entity);
        let known_own = is_own.ok().map(|at| known.seen.remove(at));
        let entity_view = |Stamp { entity, upto, finer }| EntityView {
            entity,
            priority: queue.enter(),
            had: Some(Had::said(upto, finer)),
        };
        let kept = |Stamp { entity, upto, finer }| (entity, Had::said(upto, finer));
        Self {
            frames: Frames::new(Part::Cell, number),
            is_open: false,
            own: known_own.map(|stamp| Had::said(stamp.upto, stamp.finer)),
            entity_views: known.seen.into_iter().map(entity_view).collect(),
            kept: known.kept.into_iter().map(kept).collect(),
            queue,
            movement_encoder: MovementEncoder::begin(number, movements),
            space: None,
            data: known.space.take(),
            data_revision: None,
            settling: Some(Settling {
                begun: now,
                missed: None,
                all_heard: None,
            }),
            spoke: now,
            spare: Vec::new(),
            due: Vec::new(),
            told: Vec::new(),
            is_short: false,
        }
    }

    /// The number that the client gave to the view.
    pub(crate) fn number(&self) -> u64 {
        self.frames.view()
    }

    /// Whether the view is so new that this owner may not know everything that the client knows. Lists that neighbours
    /// sent before it began do not count: with a newer map they may name more. While an entity is missed, all owners
    /// with an area in the space must have sent their lists, as its holder may have no area nearby any more. The wait
    /// ends after [`UNHEARD`], the time for which ghosts of a silent holder are kept.
    pub(crate) fn is_settling(&mut self, scene: &Scene<'_>) -> bool {
        let now = scene.cx.now().mono;
        self.settling = self.settling.and_then(|mut settling| {
            settling.missed = missed(&self.entity_views, scene);
            let wanted = match settling.missed {
                Some(_) => scene.territory.space_peers(),
                None => scene.territory.neighbours(),
            };
            let heard = scene.ghosts.all_heard(now, wanted);
            if settling.all_heard.is_none() && heard >= Some(settling.begun) {
                settling.all_heard = Some(now);
            }
            let waits = settling.all_heard.is_none_or(|since| now.since(since) <= SETTLING);
            (waits && now.since(settling.begun) <= UNHEARD).then_some(settling)
        });
        self.settling.is_some()
    }

    /// An entity that the client has and that was unknown here at the last tick, while it may still arrive.
    pub(crate) fn missed(&self) -> Option<EntityId> {
        self.settling?.missed
    }

    /// Ends the settling: the client knows no entity that could be around its own.
    pub(crate) fn settle(&mut self) {
        self.settling = None;
    }

    /// The entities around its own that the client has.
    pub(crate) fn known(&self) -> impl Iterator<Item = EntityId> {
        let known = self.entity_views.iter().filter(|entity_view| entity_view.had.is_some());
        known.map(|entity_view| entity_view.entity)
    }

    /// Takes the client's acknowledgement of movement datagrams.
    pub(crate) fn heard(&mut self, heard: Heard) {
        self.movement_encoder.heard(heard);
    }

    /// What the client is sent at a tick: its own entity, entities that have left, and the others in the order of their
    /// turns, as far as the budget goes. `around` are the entities around its own, ascending. [`View::tell`] ends the
    /// tick.
    pub(crate) fn show(
        &mut self,
        scene: &Scene<'_>,
        cast: &Cast<'_>,
        own: Own,
        around: &[EntityId],
        budget: &Budget,
    ) -> Sights {
        let mut sights = Sights::default();
        let actor = cast.get(own.entity);
        // Entities of the former space leave before the client receives its own entity's new space.
        let space = actor.map(|actor| actor.whereabouts.place.space);
        if self.space.is_some() && self.space != space {
            self.leave_others(&mut sights);
        }
        self.meet(scene, around, &mut sights);
        if let Some(actor) = actor {
            self.show_own(scene, own, actor, &mut sights);
            self.show_data(scene, own.entity, budget, &mut sights);
        }
        self.take_turns(scene, cast, own, budget, &mut sights);
        sights
    }

    /// Adds what is new of the client's own entity.
    pub(crate) fn show_own(&mut self, scene: &Scene<'_>, own: Own, actor: &Actor<'_>, sights: &mut Sights) {
        let (entity, space) = (own.entity, actor.whereabouts.place.space);
        let (is_known, before) = (self.own.is_some(), self.space.replace(space));
        if before.is_some_and(|before| before != space) {
            self.leave_others(sights);
            // The client drops the data of its space with this item, and has none of it if it returns.
            (self.data, self.data_revision) = (None, None);
        }
        let told = (before != Some(space)).then_some(ViewItem::Space { entity, space });
        let (first, last) = if is_known { (told, None) } else { (None, told) };
        sights.items.extend(first);
        entity_view::show(&mut self.own, scene, own, (entity, actor), sights);
        sights.items.extend(last);
    }

    /// Adds what is new in the data of the client's space, within half of the budget, which is shared with entities;
    /// the rest follows at later ticks. The client keeps what it has in a newer version than this owner.
    fn show_data(&mut self, scene: &Scene<'_>, entity: EntityId, budget: &Budget, sights: &mut Sights) {
        let Some(space) = self.space else { return };
        if self.data.as_ref().is_none_or(|(of, _)| *of != space) {
            (self.data, self.data_revision) = (Some((space, SpaceVersions::default())), None);
        }
        let revision = Some(scene.spaces.revision(space));
        let (Some((_, had)), true) = (&mut self.data, self.data_revision != revision) else {
            return;
        };
        let (before, mut bytes) = (sights.bytes_after(0), 0);
        let entries = scene.cx.space_data(space).into_iter().flat_map(SpaceData::entries);
        for (key, version, value) in entries {
            if !had.is_news(key, version) {
                continue;
            }
            if !budget.allows(before + 2 * bytes) {
                return;
            }
            had.note(key, version);
            let value = value.to_vec();
            let entry = SpaceEntry { key, version, value };
            let item = ViewItem::SpaceData { entity, entry };
            bytes += item.about_bytes();
            sights.items.push(item);
        }
        self.data_revision = revision;
    }

    /// Removes all other entities from the view: the client's entity is in another space now.
    fn leave_others(&mut self, sights: &mut Sights) {
        let gone = self.entity_views.drain(..);
        gone.for_each(|entity_view| leave(entity_view, &mut self.kept, sights));
    }

    /// Updates the set of entities in view, and adds items for those that have left.
    fn meet(&mut self, scene: &Scene<'_>, around: &[EntityId], sights: &mut Sights) {
        let settling = self.settling.is_some();
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
        let mut dismiss = |entity_view: EntityView, next: &mut Vec<EntityView>| {
            if settling && scene.presence(entity_view.entity).is_none() {
                next.push(entity_view);
            } else {
                leave(entity_view, kept, sights);
            }
        };
        for &entity in around {
            while let Some(entity_view) = known.next_if(|entity_view| entity_view.entity < entity) {
                dismiss(entity_view, next);
            }
            let new = || EntityView {
                entity,
                priority: queue.enter(),
                had: None,
            };
            next.push(
                known
                    .next_if(|entity_view| entity_view.entity == entity)
                    .unwrap_or_else(new),
            );
        }
        known.for_each(|entity_view| dismiss(entity_view, next));
        std::mem::swap(&mut self.entity_views, &mut self.spare);
    }

    /// Adds what is new of other entities, most urgent first.
    fn take_turns(&mut self, scene: &Scene<'_>, cast: &Cast<'_>, own: Own, budget: &Budget, sights: &mut Sights) {
        for (at, entity_view) in self.entity_views.iter().enumerate() {
            if self.queue.is_due(&entity_view.priority)
                && let Some(actor) = cast.get(entity_view.entity)
            {
                self.due.push(Due {
                    priority: entity_view.priority.value(),
                    away: distance(own.position, actor.whereabouts.place.position),
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
        let (mut counted, mut items) = (sights.items.len(), sights.bytes_after(0));
        for due in self.due.drain(..) {
            self.is_short = !budget.allows(items + self.movement_encoder.about_bytes(sights.moves.len()));
            if self.is_short {
                break;
            }
            let entity_view = &mut self.entity_views[due.at];
            let (at, priority) = (due.at, entity_view.priority);
            let told = entity_view.had.as_ref().and_then(|had| had.told);
            let moves = sights.moves.len();
            if let Some(actor) = cast.get(entity_view.entity) {
                if entity_view.had.is_none() {
                    entity_view.had = take_back(&mut self.kept, entity_view.entity, (scene, actor), sights);
                }
                entity_view::show(&mut entity_view.had, scene, own, (entity_view.entity, actor), sights);
            }
            self.queue.turn(&mut entity_view.priority, due.away);
            if sights.moves.len() > moves {
                self.told.push(EncodedMovement { at, priority, told });
            }
            items += sights.bytes_after(counted);
            counted = sights.items.len();
        }
    }

    /// Encodes movements as datagrams, as many as fit into the larger of `left` and their expected size, in bytes, and
    /// ends the tick. Those that do not fit stay due.
    pub(crate) fn tell(&mut self, tick: Tick, observer: Position, moves: &[Sighting], left: usize) -> Vec<Vec<u8>> {
        let limit = left.max(self.movement_encoder.about_bytes(moves.len()));
        let (datagrams, fit) = self.movement_encoder.tell(tick, observer, moves, limit);
        self.is_short |= fit < moves.len();
        for EncodedMovement { at, priority, told } in self.told.drain(..).skip(fit) {
            let entity_view = &mut self.entity_views[at];
            entity_view.priority = priority;
            if let Some(had) = &mut entity_view.had {
                had.told = told;
            }
        }
        let priorities = self.entity_views.iter().map(|entity_view| entity_view.priority.value());
        self.queue.end_tick(priorities.min_by(f64::total_cmp), self.is_short);
        datagrams
    }

    /// Encodes items as frames. The first frame of a view may be empty, as it says that the view has begun; later empty
    /// frames let the client detect a lost one.
    pub(crate) fn frames(&mut self, now: Mono, tick: Tick, items: Vec<ViewItem>) -> Vec<Vec<u8>> {
        if items.is_empty() {
            let due = !self.is_open || now.since(self.spoke) >= EMPTY_FRAME_AFTER;
            if !due {
                return Vec::new();
            }
        }
        for item in &items {
            if let ViewItem::Leave { entity } = item {
                self.movement_encoder.forget(*entity);
            }
        }
        self.spoke = now;
        self.is_open = true;
        self.frames.of(tick, items)
    }
}

/// An entity that the client has and that is unknown here.
fn missed(entity_views: &[EntityView], scene: &Scene<'_>) -> Option<EntityId> {
    let mut known = entity_views.iter().filter(|entity_view| entity_view.had.is_some());
    let missed = known.find(|entity_view| scene.presence(entity_view.entity).is_none());
    missed.map(|entity_view| entity_view.entity)
}

/// Adds a `Leave` item if the client has the entity, and keeps what it has.
fn leave(entity_view: EntityView, kept: &mut VecDeque<(EntityId, Had)>, sights: &mut Sights) {
    let EntityView { entity, had, .. } = entity_view;
    let Some(had) = had else { return };
    sights.items.push(ViewItem::Leave { entity });
    kept.push_back((entity, had));
    if kept.len() > MAX_KEPT {
        kept.pop_front();
    }
}

/// Adds a `Return` item for an entity of which the client still keeps something.
fn take_back(
    kept: &mut VecDeque<(EntityId, Had)>,
    entity: EntityId,
    (scene, actor): (&Scene<'_>, &Actor<'_>),
    sights: &mut Sights,
) -> Option<Had> {
    let at = kept.iter().position(|(known, _)| *known == entity)?;
    let (_, had) = kept.remove(at)?;
    let place = actor.whereabouts.place;
    sights.items.push(ViewItem::Return {
        entity,
        position: place.position,
        direction: place.direction,
    });
    let told = Some(scene.sampling.beat());
    Some(Had { told, ..had })
}
