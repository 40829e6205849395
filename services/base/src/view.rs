//! What a client is shown of the base part of its own entity (rule V4).

use annals_def::Schema;
use annals_event::{Event, Image};
use annals_ids::{EntityId, HistoryNumber, Part, Tick, TypeId};
use annals_node::{Eyes, Frames, Showing, shown_upto};
use annals_wire::client::{Stamps, ViewItem};

/// A view that a client has begun.
#[derive(Debug)]
pub(crate) struct View {
    frames: Frames,
    /// The history number up to which the client was shown the entity.
    shown: HistoryNumber,
}

/// What an entity was when a client was given it: what the client is shown first, so that nothing that is said to it from
/// that moment on is passed over.
#[derive(Debug)]
pub(crate) struct Beginning {
    upto: HistoryNumber,
    properties: Vec<u8>,
}

/// An entity as its own client's view needs to know it.
pub(crate) struct Seen<'a> {
    showing: Showing<'a>,
    image: &'a Image,
}

impl<'a> Seen<'a> {
    /// `None` if the schema has no such type.
    pub(crate) fn new(schema: &'a Schema, entity: EntityId, image: &'a Image) -> Option<Self> {
        let showing = Showing::new(schema, entity, image.type_id, Eyes::Own)?;
        Some(Self { showing, image })
    }

    /// The type as which clients know the entity.
    pub(crate) fn client_type(&self) -> TypeId {
        self.showing.client_type()
    }

    /// What it is now.
    pub(crate) fn beginning(&self) -> Beginning {
        Beginning {
            upto: self.image.history,
            properties: self.showing.properties(&self.image.properties),
        }
    }

    /// The items with which a view begins for a client that has what `stamps` says, and the history number that they show.
    fn begin(&self, stamps: &Stamps, beginning: Option<Beginning>) -> (Vec<ViewItem>, HistoryNumber) {
        let (entity, now) = (self.showing.entity(), self.image.history);
        let mut items = Vec::new();
        let mut start = None;
        for (known, upto) in &stamps.known {
            if *known == entity {
                start = Some(*upto);
            } else {
                items.push(ViewItem::Leave { entity: *known });
            }
        }
        if start.is_none() {
            items.push(ViewItem::Enter {
                entity,
                type_id: self.client_type(),
                place: None,
            });
            start = beginning.map(|Beginning { upto, properties }| {
                items.push(ViewItem::Refresh {
                    entity,
                    upto,
                    properties,
                });
                upto
            });
        }
        let Some((start, events)) = start.and_then(|start| Some((start, self.image.history_since(start)?))) else {
            items.push(self.showing.refresh(now, &self.image.properties));
            return (items, now);
        };
        let updates = self.showing.update(start, numbered(events));
        let shown = shown_upto(&updates).unwrap_or(start);
        items.extend(updates);
        (items, shown)
    }
}

impl View {
    /// Begins a view for a client that has what `stamps` says. `beginning` is what it is shown first if it was just given
    /// the entity. Returns the frames that show it.
    pub(crate) fn begin(seen: &Seen<'_>, stamps: &Stamps, beginning: Option<Beginning>) -> (Self, Vec<Vec<u8>>) {
        let (items, shown) = seen.begin(stamps, beginning);
        let mut frames = Frames::new(Part::Base, stamps.view);
        let bodies = frames.of(Tick(0), items);
        (Self { frames, shown }, bodies)
    }

    /// The frames that show what has just been recorded.
    pub(crate) fn follow<'e>(&mut self, seen: &Seen<'_>, recorded: impl Iterator<Item = &'e Event>) -> Vec<Vec<u8>> {
        let shown = self.shown;
        let new = numbered(recorded).filter(|(number, _)| *number > shown);
        let items = seen.showing.update(shown, new);
        if items.is_empty() {
            return Vec::new();
        }
        self.shown = shown_upto(&items).unwrap_or(shown);
        self.frames.of(Tick(0), items)
    }
}

/// Events of a history, with their numbers.
fn numbered<'e>(events: impl Iterator<Item = &'e Event>) -> impl Iterator<Item = (HistoryNumber, Option<&'e Event>)> {
    events.filter_map(|event| Some((event.history?, Some(event))))
}
