//! What a client has of one entity, and what it is told of it next.

use annals_def::Volatile;
use annals_event::Body;
use annals_ids::{EntityId, HistoryNumber, Position};
use annals_node::{Eyes, Showing, shown_upto};
use annals_space::Priority;
use annals_wire::client::{Move, ViewItem};

use crate::presence::{Actor, Scene};

/// A client that has seen nothing of an entity for so many history numbers, because all concerned others, is told that
/// time has passed, so that its stamp does not fall out of the history that is kept. Half of that history.
const QUIET: u64 = annals_event::HISTORY_KEPT as u64 / 2;

/// An entity in view, or one that is to be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Glimpse {
    pub(crate) entity: EntityId,
    /// When its turn comes.
    pub(crate) priority: Priority,
    /// `None` until its first turn.
    pub(crate) had: Option<Had>,
}

/// What a client has of an entity.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Had {
    /// The history number up to which it was shown it.
    pub(crate) upto: HistoryNumber,
    /// The beat at which it was last told where it is; `None` if it was not in this view.
    pub(crate) told: Option<u64>,
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

impl Sights {
    /// About how many bytes they take, without the first `items` items and `moves` movements.
    pub(crate) fn bytes_after(&self, (items, moves): (usize, usize)) -> usize {
        let items = self.items[items..].iter().map(ViewItem::about_bytes).sum::<usize>();
        items + (self.moves.len() - moves) * Move::ABOUT_BYTES
    }

    pub(crate) fn len(&self) -> (usize, usize) {
        (self.items.len(), self.moves.len())
    }
}

/// Tells of an entity what is new to a client.
pub(crate) fn show(
    had: &mut Option<Had>,
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
    let away = distance(own.position, place.position);
    let showing = showing.from_afar(away);
    let Some(had) = had else {
        enter(&showing, actor, &mut sights.items);
        let (upto, told) = (actor.history, Some(beat));
        *had = Some(Had { upto, told });
        return;
    };
    let jumped = catch_up(&showing, actor, &mut had.upto, &mut sights.items);
    let news = had.told.is_none_or(|told| told < actor.whereabouts.news(beat));
    let moved = match eyes {
        Eyes::Own => jumped || own.displaced,
        Eyes::Others => {
            let since = actor.whereabouts.since;
            let untold = had.told.is_none_or(|told| told < since);
            // Where movements are worth only having now they are told as such; those of others for certain.
            jumped || had.told.is_none() || (untold && !actor.entity_type.volatile.is_any())
        }
    };
    if moved {
        sights.items.push(ViewItem::Placed {
            entity,
            position: place.position,
            direction: place.direction,
        });
    }
    if moved || had.told.is_none() {
        had.told = Some(beat);
    } else if eyes == Eyes::Others && news && actor.is_acknowledged && covers(&actor.entity_type.volatile, away) {
        had.told = Some(beat);
        sights.moves.push(Move {
            entity,
            position: place.position,
            direction: place.direction,
        });
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

/// Whether movements are told to somebody so far away: all of it as soon as any part of it is.
fn covers(volatile: &Volatile, distance: f32) -> bool {
    [volatile.position, volatile.yaw, volatile.pitch, volatile.roll]
        .iter()
        .any(|reach| reach.covers(distance))
}

/// How far away something is seen, metres: nothing, from nowhere.
pub(crate) fn distance(from: Option<Position>, to: Position) -> f32 {
    from.map_or(0.0, |from| from.distance(to))
}
