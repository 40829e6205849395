//! Witnesses: what the client of a real entity is shown of all that is around (rule V3).

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use annals_event::{ClientLink, Event, Place, Subject};
use annals_ids::{EntityId, HistoryNumber, Part, SessionId, Tick};
use annals_node::{Desk, Eyes, Frames, Showing, shown_upto, time::Mono};
use annals_wire::{
    bus::{Message, ViewMessage},
    client::{Move, Moves, ToClient, ViewItem},
};

use crate::ghosts::Ghosts;

/// How often a client that has not begun its view yet is asked to.
const ASK_INTERVAL: Duration = Duration::from_millis(500);

/// After so long without anything to show an empty frame is sent, so that a lost one is missed soon.
const QUIET: Duration = Duration::from_secs(1);

/// The witness of one entity.
#[derive(Debug)]
pub(crate) struct Witness {
    client: ClientLink,
    view: Option<Begun>,
    asked: Option<Mono>,
    /// The newest movement that the client told, and where to.
    steered: Option<(u64, Place)>,
}

/// A view that the client has begun.
#[derive(Debug)]
struct Begun {
    frames: Frames,
    /// Up to which history number the client was shown each entity in view.
    seen: BTreeMap<EntityId, HistoryNumber>,
    last: Mono,
}

/// What a witness looks at: the real entities and the ghosts of its cell.
pub(crate) struct Scene<'a> {
    pub(crate) desk: &'a Desk,
    pub(crate) ghosts: &'a Ghosts,
}

impl Scene<'_> {
    /// Where an entity is.
    pub(crate) fn place(&self, entity: EntityId) -> Option<Place> {
        self.desk
            .place(entity)
            .or_else(|| self.ghosts.get(entity).map(|ghost| ghost.place))
    }

    fn showing(&self, entity: EntityId, eyes: Eyes) -> Option<Showing<'_>> {
        let real = self.desk.image(entity).map(|image| image.type_id);
        let type_id = real.or_else(|| self.ghosts.get(entity).map(|ghost| ghost.type_id))?;
        Showing::new(self.desk.schema(), entity, type_id, eyes)
    }

    /// All that may be seen of an entity.
    fn refresh(&self, showing: &Showing<'_>) -> Option<ViewItem> {
        let entity = showing.entity();
        match (self.desk.image(entity), self.ghosts.get(entity)) {
            (Some(image), _) => Some(showing.refresh(image.history, &image.properties)),
            (None, Some(ghost)) => Some(showing.refresh(ghost.history, &ghost.properties)),
            (None, None) => None,
        }
    }

    /// What is new since `known`: events, or all of it where they reach no longer back so far.
    fn since(&self, showing: &Showing<'_>, known: HistoryNumber) -> Vec<ViewItem> {
        let entity = showing.entity();
        let update = match (self.desk.image(entity), self.ghosts.get(entity)) {
            (Some(image), _) => image.history_since(known).map(|events| {
                showing.update(
                    known,
                    events.filter_map(|event| event.history.map(|number| (number, Some(event)))),
                )
            }),
            (None, Some(ghost)) => ghost.history_since(known).map(|events| showing.update(known, events)),
            (None, None) => Some(Vec::new()),
        };
        update.unwrap_or_else(|| self.refresh(showing).into_iter().collect())
    }

    /// An entity that comes into view.
    fn enter(&self, showing: &Showing<'_>) -> Vec<ViewItem> {
        let entity = showing.entity();
        let place = self.place(entity).map(|place| (place.position, place.direction));
        let enter = ViewItem::Enter {
            entity,
            type_id: showing.client_type(),
            place,
        };
        std::iter::once(enter).chain(self.refresh(showing)).collect()
    }
}

impl Witness {
    pub(crate) fn new(client: ClientLink) -> Self {
        Self {
            client,
            view: None,
            asked: None,
            steered: None,
        }
    }

    /// Whom it serves.
    pub(crate) fn client(&self) -> ClientLink {
        self.client
    }

    /// The client begins its view anew and has what `known` says. Views are numbered upwards; an older beginning that
    /// comes late is none.
    pub(crate) fn begin(
        &mut self,
        scene: &Scene<'_>,
        (own, view, tick): (EntityId, u64, Tick),
        in_view: &BTreeSet<EntityId>,
        known: &[(EntityId, HistoryNumber)],
    ) -> Option<ViewMessage> {
        if self.view.as_ref().is_some_and(|begun| begun.frames.view() >= view) {
            return None;
        }
        let known: BTreeMap<EntityId, HistoryNumber> = known.iter().copied().collect();
        let left = known
            .keys()
            .filter(|entity| **entity != own && !in_view.contains(entity));
        let mut items: Vec<ViewItem> = left.map(|entity| ViewItem::Leave { entity: *entity }).collect();
        let mut seen = BTreeMap::new();
        for entity in in_view.iter().copied().chain([own]) {
            let Some(showing) = scene.showing(entity, eyes(own, entity)) else {
                continue;
            };
            let shown = match known.get(&entity) {
                Some(known) => scene.since(&showing, *known),
                None => scene.enter(&showing),
            };
            seen.insert(
                entity,
                shown_upto(&shown)
                    .or_else(|| known.get(&entity).copied())
                    .unwrap_or_default(),
            );
            items.extend(shown);
        }
        let mut frames = Frames::new(Part::Cell, view);
        let bytes = frames.of(tick, items);
        self.view = Some(Begun {
            frames,
            seen,
            last: scene.desk.now().mono,
        });
        Some(self.say(bytes))
    }

    /// Somebody came into view or went out of it.
    pub(crate) fn change(&mut self, scene: &Scene<'_>, own: EntityId, changes: &[(EntityId, bool)]) -> Vec<ViewItem> {
        let Some(begun) = &mut self.view else { return Vec::new() };
        let mut items = Vec::new();
        for (entity, enters) in changes {
            if !enters {
                if begun.seen.remove(entity).is_some() {
                    items.push(ViewItem::Leave { entity: *entity });
                }
            } else if let Some(showing) = scene.showing(*entity, eyes(own, *entity)) {
                let shown = scene.enter(&showing);
                begun.seen.insert(*entity, shown_upto(&shown).unwrap_or_default());
                items.extend(shown);
            }
        }
        items
    }

    /// Something happened to an entity; items if the client sees it and is to be shown something.
    pub(crate) fn follow(&mut self, scene: &Scene<'_>, own: EntityId, entity: EntityId) -> Vec<ViewItem> {
        let Some(begun) = &mut self.view else { return Vec::new() };
        let (Some(known), Some(showing)) = (begun.seen.get_mut(&entity), scene.showing(entity, eyes(own, entity)))
        else {
            return Vec::new();
        };
        let items = scene.since(&showing, *known);
        if let Some(upto) = shown_upto(&items) {
            *known = upto;
        }
        items
    }

    /// Puts items into frames for the client.
    pub(crate) fn show(&mut self, tick: Tick, now: Mono, items: Vec<ViewItem>) -> Option<ViewMessage> {
        let begun = self.view.as_mut()?;
        begun.last = now;
        let bytes = begun.frames.of(tick, items);
        Some(self.say(bytes))
    }

    /// What is due at a tick: the request to begin, or a sign of life.
    pub(crate) fn keep_alive(&mut self, tick: Tick, now: Mono) -> Option<ViewMessage> {
        match &self.view {
            Some(begun) if now.since(begun.last) >= QUIET => self.show(tick, now, Vec::new()),
            Some(_) => None,
            None if self.asked.is_none_or(|asked| now.since(asked) >= ASK_INTERVAL) => {
                self.asked = Some(now);
                let mut body = Vec::new();
                ToClient::StampsWanted { source: Part::Cell }.write(&mut body);
                Some(self.say(vec![body]))
            }
            None => None,
        }
    }

    /// Where entities in view have moved.
    pub(crate) fn moves(
        &self,
        scene: &Scene<'_>,
        own: EntityId,
        tick: Tick,
        moved: &BTreeSet<EntityId>,
    ) -> Vec<ViewMessage> {
        let Some(begun) = &self.view else { return Vec::new() };
        let seen = moved
            .iter()
            .filter(|entity| **entity != own && begun.seen.contains_key(entity));
        let moves: Vec<Move> = seen
            .filter_map(|entity| {
                let Place {
                    position, direction, ..
                } = scene.place(*entity)?;
                Some(Move {
                    entity: *entity,
                    position,
                    direction,
                })
            })
            .collect();
        if moves.is_empty() {
            return Vec::new();
        }
        let datagrams = Moves {
            view: begun.frames.view(),
            tick,
            moves,
        }
        .datagrams()
        .into_iter();
        datagrams
            .map(|bytes| ViewMessage::Datagram {
                session: self.client.session,
                bytes,
            })
            .collect()
    }

    /// The client moved its entity; `false` if it had told of something newer.
    pub(crate) fn steer(&mut self, session: SessionId, sequence: u64, place: Place) -> bool {
        let newer = self.steered.is_none_or(|(newest, _)| sequence > newest);
        let takes = newer && session == self.client.session;
        if takes {
            self.steered = Some((sequence, place));
        }
        takes
    }

    /// An item that puts the client's own entity where it stands, if it is not where the client put it last.
    pub(crate) fn correct(&mut self, own: EntityId, place: Place) -> Option<ViewItem> {
        let (sequence, put) = self.steered?;
        if put == place || self.view.is_none() {
            return None;
        }
        self.steered = Some((sequence, place));
        let Place {
            position, direction, ..
        } = place;
        Some(ViewItem::Placed {
            entity: own,
            position,
            direction,
        })
    }

    fn say(&self, frames: Vec<Vec<u8>>) -> ViewMessage {
        ViewMessage::Frames {
            session: self.client.session,
            frames,
        }
    }
}

/// Sends what a witness says, through the proxy of its client.
pub(crate) fn say(desk: &mut Desk, client: ClientLink, message: ViewMessage) {
    desk.tell(client.proxy, Message::View(message));
}

/// The entities that events are about, each once, in order.
pub(crate) fn concerned(recorded: &[Event]) -> BTreeSet<EntityId> {
    let shown = recorded.iter().filter(|event| event.history.is_some());
    shown
        .filter_map(|event| match event.subject {
            Subject::Entity(entity, Part::Cell) => Some(entity),
            _ => None,
        })
        .collect()
}

fn eyes(own: EntityId, entity: EntityId) -> Eyes {
    if own == entity { Eyes::Own } else { Eyes::Others }
}
