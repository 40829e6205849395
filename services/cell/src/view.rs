//! What one client is shown of everything around its entity, as frames (rule V3).

use std::{collections::BTreeMap, time::Duration};

use annals_def::Volatile;
use annals_event::Body;
use annals_ids::{EntityId, HistoryNumber, Part, Position, SpaceId, Tick};
use annals_node::{Eyes, Frames, Showing, shown_upto, time::Mono};
use annals_wire::client::{Move, Moves, ViewItem};

use crate::{
    presence::{Actor, Cast, Scene},
    sampling::Whereabouts,
};

/// A client that has seen nothing of an entity for so many history numbers, because all concerned others, is told that
/// time has passed, so that its stamp does not fall out of the history that is kept. Half of that history.
const QUIET: u64 = annals_event::HISTORY_KEPT as u64 / 2;

/// How long entities that a client knows, and this owner does not yet, stay in a view that has just begun: after a
/// take-over it takes a second or two until the neighbours have been heard.
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
    /// What the client has.
    glimpses: BTreeMap<EntityId, Glimpse>,
    /// The space that the client was told its entity is in.
    space: Option<SpaceId>,
    begun: Mono,
    /// When the last frame was made.
    spoke: Mono,
}

/// What a client has of one entity.
#[derive(Clone, Copy, Debug)]
struct Glimpse {
    /// The history number up to which it was shown it.
    upto: HistoryNumber,
    /// The beat at which it was told for certain where it is; `None` if it was not in this view.
    placed: Option<u64>,
}

/// The entity whose client looks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Own {
    /// Which entity.
    pub(crate) entity: EntityId,
    /// Whether it was moved by somebody else than its client.
    pub(crate) displaced: bool,
    /// Where it is.
    pub(crate) position: Option<Position>,
}

/// What there is to be told to a client.
#[derive(Debug, Default)]
pub(crate) struct Sights {
    /// What must arrive.
    pub(crate) items: Vec<ViewItem>,
    /// What is only worth having now.
    pub(crate) moves: Vec<Move>,
}

impl View {
    /// Begins a view of a client that has what `known` says.
    pub(crate) fn begin(number: u64, known: &[(EntityId, HistoryNumber)], now: Mono) -> Self {
        let glimpse = |upto| Glimpse { upto, placed: None };
        Self {
            frames: Frames::new(Part::Cell, number),
            is_open: false,
            glimpses: known.iter().map(|&(entity, upto)| (entity, glimpse(upto))).collect(),
            space: None,
            begun: now,
            spoke: now,
        }
    }

    /// The number that the client gave it.
    pub(crate) fn number(&self) -> u64 {
        self.frames.view()
    }

    /// Whether it has begun so lately that this owner may not know yet all that the client knows.
    pub(crate) fn is_settling(&self, now: Mono) -> bool {
        now.since(self.begun) <= SETTLING
    }

    /// The entities that the client has.
    pub(crate) fn known(&self) -> impl Iterator<Item = EntityId> {
        self.glimpses.keys().copied()
    }

    /// What the client is to be told so that it has all of `target`, which ascends, and nothing else.
    pub(crate) fn show(&mut self, scene: &Scene<'_>, cast: &Cast<'_>, own: Own, target: &[EntityId]) -> Sights {
        let settling = self.is_settling(scene.desk.now().mono);
        let mut sights = Sights::default();
        self.glimpses.retain(|&entity, _| {
            let stays = target.binary_search(&entity).is_ok() || (settling && scene.presence(entity).is_none());
            if !stays {
                sights.items.push(ViewItem::Leave { entity });
            }
            stays
        });
        for &entity in target {
            if let Some(actor) = cast.get(entity) {
                self.show_one(scene, own, (entity, actor), &mut sights);
            }
        }
        sights
    }

    /// What the client is to be told of one entity that it has, or is to have.
    pub(crate) fn show_one(
        &mut self,
        scene: &Scene<'_>,
        own: Own,
        (entity, actor): (EntityId, &Actor<'_>),
        sights: &mut Sights,
    ) {
        let eyes = if entity == own.entity { Eyes::Own } else { Eyes::Others };
        let Some(showing) = Showing::new(scene.desk.schema(), entity, actor.entity_type.id, eyes) else {
            return;
        };
        let (beat, place) = (scene.sampling.beat(), actor.whereabouts.place);
        let space = (eyes == Eyes::Own && self.space != Some(place.space)).then_some(place.space);
        if space.is_some() && self.space.is_some() {
            self.leave_others(entity, sights);
        }
        self.space = space.or(self.space);
        let space = space.map(|space| ViewItem::Space { entity, space });
        let Some(glimpse) = self.glimpses.get_mut(&entity) else {
            enter(&showing, actor, &mut sights.items);
            sights.items.extend(space);
            let glimpse = Glimpse {
                upto: actor.history,
                placed: Some(beat),
            };
            self.glimpses.insert(entity, glimpse);
            return;
        };
        sights.items.extend(space);
        let jumped = catch_up(&showing, actor, &mut glimpse.upto, &mut sights.items);
        let moved = match eyes {
            Eyes::Own => jumped || own.displaced,
            Eyes::Others => {
                let untold = glimpse.placed.is_none_or(|told| told < actor.whereabouts.since);
                // Where movements are worth only having now they are told as such; those of others for certain.
                jumped || glimpse.placed.is_none() || (untold && !actor.entity_type.volatile.is_any())
            }
        };
        if moved {
            sights.items.push(ViewItem::Placed {
                entity,
                position: place.position,
                direction: place.direction,
            });
        }
        if moved || glimpse.placed.is_none() {
            glimpse.placed = Some(beat);
        } else if eyes == Eyes::Others && actor.is_acknowledged && is_seen_moving(actor, beat, own.position) {
            sights.moves.push(Move {
                entity,
                position: place.position,
                direction: place.direction,
            });
        }
    }

    /// The client's entity is in another space now: whoever was around it is out of view.
    fn leave_others(&mut self, own: EntityId, sights: &mut Sights) {
        self.glimpses.retain(|&entity, _| {
            if entity != own {
                sights.items.push(ViewItem::Leave { entity });
            }
            entity == own
        });
    }

    /// Puts movements into datagrams.
    pub(crate) fn datagrams(&self, tick: Tick, moves: Vec<Move>) -> Vec<Vec<u8>> {
        let view = self.frames.view();
        Moves { view, tick, moves }.datagrams()
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
        self.spoke = now;
        self.is_open = true;
        self.frames.of(tick, items)
    }
}

/// Tells of an entity that the client did not have.
fn enter(showing: &Showing<'_>, actor: &Actor<'_>, items: &mut Vec<ViewItem>) {
    let (entity, place) = (showing.entity(), actor.whereabouts.place);
    items.push(ViewItem::Enter {
        entity,
        type_id: showing.client_type(),
        place: Some((place.position, place.direction)),
    });
    let properties = showing.properties(actor.presence.properties());
    if actor.history != HistoryNumber(0) || !properties.is_empty() {
        items.push(ViewItem::Refresh {
            entity,
            upto: actor.history,
            properties,
        });
    }
}

/// Tells what happened since `upto`, or everything if that is not known any more. Returns whether the entity was put
/// somewhere meanwhile.
fn catch_up(showing: &Showing<'_>, actor: &Actor<'_>, upto: &mut HistoryNumber, items: &mut Vec<ViewItem>) -> bool {
    let (newest, presence) = (actor.history, &actor.presence);
    if newest == *upto {
        return false;
    }
    let Some(events) = presence.since(*upto) else {
        items.push(showing.refresh(newest, presence.properties()));
        *upto = newest;
        return true;
    };
    let happened = events.iter().filter_map(|(_, event)| *event);
    let jumped = happened.into_iter().any(|event| matches!(event.body, Body::Moved(_)));
    let shown = showing.update(*upto, events.into_iter());
    if let Some(last) = shown_upto(&shown) {
        *upto = last;
    }
    items.extend(shown);
    if newest > *upto && (jumped || newest.0 - upto.0 >= QUIET) {
        items.push(ViewItem::Update {
            entity: showing.entity(),
            from: *upto,
            upto: newest,
            events: Vec::new(),
        });
        *upto = newest;
    }
    jumped
}

/// Whether an entity has just moved and its movements are told so far away.
fn is_seen_moving(actor: &Actor<'_>, beat: u64, from: Option<Position>) -> bool {
    let Whereabouts { place, .. } = actor.whereabouts;
    let is_covered = |from| covers(&actor.entity_type.volatile, distance(from, place.position));
    actor.whereabouts.is_news(beat) && from.is_some_and(is_covered)
}

/// Whether movements are told to somebody so far away: all of it as soon as any part of it is.
fn covers(volatile: &Volatile, distance: f32) -> bool {
    [volatile.position, volatile.yaw, volatile.pitch, volatile.roll]
        .iter()
        .any(|reach| reach.covers(distance))
}

fn distance(one: Position, other: Position) -> f32 {
    (one.x - other.x).abs().max((one.z - other.z).abs())
}
