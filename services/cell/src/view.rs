//! What one client is shown of everything around its entity, as frames (rule V3).

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use annals_def::Volatile;
use annals_event::{Body, Place};
use annals_ids::{EntityId, HistoryNumber, Part, Position, Tick};
use annals_node::{Eyes, Frames, Showing, shown_upto, time::Mono};
use annals_wire::client::{Move, Moves, ViewItem};

use crate::presence::{Presence, Scene};

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
}

impl View {
    /// Begins a view of a client that has what `known` says.
    pub(crate) fn begin(number: u64, known: &[(EntityId, HistoryNumber)], now: Mono) -> Self {
        let glimpse = |upto| Glimpse { upto, placed: None };
        Self {
            frames: Frames::new(Part::Cell, number),
            is_open: false,
            glimpses: known.iter().map(|&(entity, upto)| (entity, glimpse(upto))).collect(),
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

    /// What the client is to be told so that it has all of `target` and nothing else.
    pub(crate) fn show(&mut self, scene: &Scene<'_>, own: Own, target: &BTreeSet<EntityId>) -> Vec<ViewItem> {
        let settling = self.is_settling(scene.desk.now().mono);
        let mut items = Vec::new();
        self.glimpses.retain(|&entity, _| {
            let stays = target.contains(&entity) || (settling && scene.presence(entity).is_none());
            if !stays {
                items.push(ViewItem::Leave { entity });
            }
            stays
        });
        for &entity in target {
            self.show_one(scene, own, entity, &mut items);
        }
        items
    }

    /// What the client is to be told of one entity that it has, or is to have.
    pub(crate) fn show_one(&mut self, scene: &Scene<'_>, own: Own, entity: EntityId, items: &mut Vec<ViewItem>) {
        let eyes = if entity == own.entity { Eyes::Own } else { Eyes::Others };
        let Some(presence) = scene.presence(entity) else { return };
        let Some(showing) = Showing::new(scene.desk.schema(), entity, presence.type_id(), eyes) else {
            return;
        };
        let Some(whereabouts) = scene.whereabouts(entity) else {
            return;
        };
        let (beat, place) = (scene.sampling.beat(), whereabouts.place);
        let Some(glimpse) = self.glimpses.get_mut(&entity) else {
            items.push(ViewItem::Enter {
                entity,
                type_id: showing.client_type(),
                place: Some((place.position, place.direction)),
            });
            let properties = showing.properties(presence.properties());
            let upto = presence.history();
            if upto != HistoryNumber(0) || !properties.is_empty() {
                items.push(ViewItem::Refresh {
                    entity,
                    upto,
                    properties,
                });
            }
            let glimpse = Glimpse {
                upto,
                placed: Some(beat),
            };
            self.glimpses.insert(entity, glimpse);
            return;
        };
        let jumped = catch_up(&showing, &presence, &mut glimpse.upto, items);
        let moved = match eyes {
            Eyes::Own => jumped || own.displaced,
            Eyes::Others => {
                let untold = glimpse.placed.is_none_or(|told| told < whereabouts.since);
                jumped || glimpse.placed.is_none() || (untold && !is_volatile(scene, &presence))
            }
        };
        if moved {
            items.push(ViewItem::Placed {
                entity,
                position: place.position,
                direction: place.direction,
            });
        }
        if moved || glimpse.placed.is_none() {
            glimpse.placed = Some(beat);
        }
    }

    /// Where those entities are that have moved and whose movements are volatile.
    pub(crate) fn moves(&self, scene: &Scene<'_>, own: EntityId) -> Vec<Vec<u8>> {
        let beat = scene.sampling.beat();
        let Some(centre) = scene.whereabouts(own).map(|own| own.place.position) else {
            return Vec::new();
        };
        let told = self.glimpses.iter().filter(|(entity, glimpse)| {
            // One that was placed at this very tick has the newest place already.
            **entity != own && glimpse.placed.is_none_or(|placed| placed < beat)
        });
        let moves = told
            .filter_map(|(&entity, _)| {
                let whereabouts = scene.whereabouts(entity).filter(|found| found.is_news(beat))?;
                let Place {
                    position, direction, ..
                } = whereabouts.place;
                let volatile = scene.desk.type_of(scene.presence(entity)?.type_id())?.volatile;
                let told = covers(&volatile, distance(centre, position)) && scene.desk.is_acknowledged(entity);
                told.then_some(Move {
                    entity,
                    position,
                    direction,
                })
            })
            .collect();
        let moves = Moves {
            view: self.frames.view(),
            tick: scene.sampling.tick(),
            moves,
        };
        moves.datagrams()
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

/// Tells what happened since `upto`, or everything if that is not known any more. Returns whether the entity was put
/// somewhere meanwhile.
fn catch_up(
    showing: &Showing<'_>,
    presence: &Presence<'_>,
    upto: &mut HistoryNumber,
    items: &mut Vec<ViewItem>,
) -> bool {
    let newest = presence.history();
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

/// Whether an entity's movements are worth only having now; those of others are told for certain.
fn is_volatile(scene: &Scene<'_>, presence: &Presence<'_>) -> bool {
    scene
        .desk
        .type_of(presence.type_id())
        .is_some_and(|found| found.volatile.is_any())
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
