//! What one client is shown of everything around its entity, as frames (rule V3).

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

/// How long entities that a client knows, and this owner does not yet, stay in a view that has just begun, once all
/// neighbours, or all who may hold them, have been heard since: what these name has to be asked for.
const SETTLING: Duration = Duration::from_secs(3);

/// A client with nothing to be shown gets an empty frame this long after its last one. It tells it that the last one was
/// the last, and that its cell is there.
const EMPTY_FRAME_AFTER: Duration = Duration::from_secs(1);

/// A view that a client has begun.
#[derive(Debug)]
pub(crate) struct View {
    frames: Frames,
    /// Whether the client was told that it has begun.
    is_open: bool,
    /// What the client has of its own entity.
    own: Option<Had>,
    /// Everybody else in view, ascending by entity.
    entity_views: Vec<EntityView>,
    /// Who has left and the client still has, in that order; at most [`MAX_KEPT`]. The client keeps the same.
    kept: VecDeque<(EntityId, Had)>,
    queue: PriorityQueue,
    /// How movements are told.
    movement_encoder: MovementEncoder,
    /// The space that the client was told its entity is in.
    space: Option<SpaceId>,
    /// What the client has of a space's data: of which space, and which versions.
    data: Option<(SpaceId, SpaceVersions)>,
    /// The revision of that data at which it had all of it.
    data_revision: Option<u64>,
    /// `None` once this owner knows all that the client may know.
    settling: Option<Settling>,
    /// When the last frame was made.
    spoke: Mono,
    /// Empty between ticks: the vectors in which the next `entity_views` and the order of turns are made.
    spare: Vec<EntityView>,
    due: Vec<Due>,
    /// Whose movements are to be told at this tick, in the order of their turns.
    told: Vec<Told>,
    /// Whether somebody whose turn it is has none at this tick.
    is_short: bool,
}

/// A view that has begun a moment ago.
#[derive(Clone, Copy, Debug)]
struct Settling {
    begun: Mono,
    /// Somebody whom the client has, and of whom nothing is known here.
    missed: Option<EntityId>,
    /// When all that was needed had been heard since it began.
    all_heard: Option<Mono>,
}

/// Somebody whose turn it is.
#[derive(Clone, Copy, Debug)]
struct Due {
    priority: f64,
    /// Metres.
    away: f32,
    /// Its place among the entity_views.
    at: usize,
}

/// Somebody whose movement is to be told, and how it was before its turn: if there is no room for it after all, it has had
/// none.
#[derive(Clone, Copy, Debug)]
struct Told {
    /// Its place among the entity_views.
    at: usize,
    priority: Priority,
    told: Option<u64>,
}

impl View {
    /// Begins a view of the client of `own`, who has what `known` says and is told of movements in this way.
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

    /// The number that the client gave it.
    pub(crate) fn number(&self) -> u64 {
        self.frames.view()
    }

    /// Whether it has begun so lately that this owner may not know yet all that the client knows. What neighbours said before
    /// it began does not count: with a newer map they may have more to say. Where somebody is missed nobody's word is enough but
    /// that of all who have an area in the space, for the one that holds it may have none nearby any more. One that nobody holds
    /// at the moment is waited for as long as ghosts of a silent holder are kept.
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

    /// Somebody whom the client has, and of whom nothing was known here at the last tick although that may still come.
    pub(crate) fn missed(&self) -> Option<EntityId> {
        self.settling?.missed
    }

    /// The client knows nobody who could be around its entity: this owner need not wait to know as much.
    pub(crate) fn settle(&mut self) {
        self.settling = None;
    }

    /// The entities around its own that the client has.
    pub(crate) fn known(&self) -> impl Iterator<Item = EntityId> {
        let known = self.entity_views.iter().filter(|entity_view| entity_view.had.is_some());
        known.map(|entity_view| entity_view.entity)
    }

    /// The client has read so much of the movements of this view.
    pub(crate) fn heard(&mut self, heard: Heard) {
        self.movement_encoder.heard(heard);
    }

    /// What the client is to be told at a tick, given who is around its entity, ascending: of its own entity, of who has
    /// left, and of the others as far as the budget goes, each when its turn comes. [`View::tell`] ends the tick.
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
        // Who is in another space leaves before the client is told of its own.
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

    /// What the client is to be told of its own entity.
    pub(crate) fn show_own(&mut self, scene: &Scene<'_>, own: Own, actor: &Actor<'_>, sights: &mut Sights) {
        let (entity, space) = (own.entity, actor.whereabouts.place.space);
        let (is_known, before) = (self.own.is_some(), self.space.replace(space));
        if before.is_some_and(|before| before != space) {
            self.leave_others(sights);
            // The client forgets its data as it is told so, and has none of it when it is back.
            (self.data, self.data_revision) = (None, None);
        }
        let told = (before != Some(space)).then_some(ViewItem::Space { entity, space });
        let (first, last) = if is_known { (told, None) } else { (None, told) };
        sights.items.extend(first);
        entity_view::show(&mut self.own, scene, own, (entity, actor), sights);
        sights.items.extend(last);
    }

    /// What the client is to be told of its space's data, as far as half of the budget goes, for there are others to be shown;
    /// the rest comes at the ticks after this. What it has in a newer version than this owner it keeps.
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

    /// The client's entity is in another space now: whoever was around it is out of view.
    fn leave_others(&mut self, sights: &mut Sights) {
        let gone = self.entity_views.drain(..);
        gone.for_each(|entity_view| leave(entity_view, &mut self.kept, sights));
    }

    /// Takes in who is around, and tells who has left.
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

    /// Tells of others, most urgent first.
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
                self.told.push(Told { at, priority, told });
            }
            items += sights.bytes_after(counted);
            counted = sights.items.len();
        }
    }

    /// Puts movements into datagrams, as many as fit into `left` bytes and into what they were expected to take, and ends the
    /// tick. Who did not fit stays due.
    pub(crate) fn tell(&mut self, tick: Tick, observer: Position, moves: &[Sighting], left: usize) -> Vec<Vec<u8>> {
        let limit = left.max(self.movement_encoder.about_bytes(moves.len()));
        let (datagrams, fit) = self.movement_encoder.tell(tick, observer, moves, limit);
        self.is_short |= fit < moves.len();
        for Told { at, priority, told } in self.told.drain(..).skip(fit) {
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

    /// Puts items into frames. The first frame of a view may be empty, for it says that the view has begun; and one is sent
    /// now and then so that the client finds out if it lost one.
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

/// Somebody whom the client has, and of whom nothing is known here.
fn missed(entity_views: &[EntityView], scene: &Scene<'_>) -> Option<EntityId> {
    let mut known = entity_views.iter().filter(|entity_view| entity_view.had.is_some());
    let missed = known.find(|entity_view| scene.presence(entity_view.entity).is_none());
    missed.map(|entity_view| entity_view.entity)
}

/// Tells that somebody has left, if the client has it, and notes what it has.
fn leave(entity_view: EntityView, kept: &mut VecDeque<(EntityId, Had)>, sights: &mut Sights) {
    let EntityView { entity, had, .. } = entity_view;
    let Some(had) = had else { return };
    sights.items.push(ViewItem::Leave { entity });
    kept.push_back((entity, had));
    if kept.len() > MAX_KEPT {
        kept.pop_front();
    }
}

/// Tells that somebody is back of whom the client still has something.
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
