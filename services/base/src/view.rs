//! What a client is shown of the base part of its own entity (rule V4).

use std::{borrow::Cow, collections::BTreeSet};

use annals_def::{EntityType, Located, Schema, Value};
use annals_event::{Body, Event, Image};
use annals_ids::{EntityId, HistoryNumber, MemberId, Part, Tick, TypeId};
use annals_node::{Showing, Tally, ViewFrames, Viewer, shown_upto};
use annals_wire::client::{Stamps, ViewItem};

/// A view that a client has begun.
#[derive(Debug)]
pub(crate) struct View {
    frames: ViewFrames,
    /// History number up to which the client was shown the entity.
    shown: HistoryNumber,
}

/// State of an entity at the moment when a client was given it. The client is shown this first, so that no event after
/// that moment is skipped.
#[derive(Debug)]
pub(crate) struct Beginning {
    upto: HistoryNumber,
    held: Vec<(MemberId, Value)>,
}

/// An event, with its number, as the client is sent it; `None` if it is hidden from the client.
type ShownEvent<'e> = (HistoryNumber, Option<Cow<'e, Event>>);

/// An entity as its own client's view needs it.
pub(crate) struct OwnView<'a> {
    showing: Showing<'a>,
    entity_type: &'a EntityType,
    image: &'a Image,
}

impl<'a> OwnView<'a> {
    /// `None` if the schema has no such type. The tally counts the cost of showing it.
    pub(crate) fn new(schema: &'a Schema, tally: &'a Tally, entity: EntityId, image: &'a Image) -> Option<Self> {
        let showing = Showing::new(schema, entity, image.type_id, Viewer::Own)?.counted_by(tally);
        Some(Self {
            showing: match image.client {
                Some(client) => showing.seen_by(entity, client.session),
                None => showing,
            },
            entity_type: schema.entity_type(image.type_id)?,
            image,
        })
    }

    /// The type that clients know the entity as.
    pub(crate) fn client_type(&self) -> TypeId {
        self.showing.client_type()
    }

    /// Its current state.
    pub(crate) fn beginning(&self) -> Beginning {
        Beginning {
            upto: self.image.history,
            held: self
                .held()
                .filter(|(member, _)| self.showing.sees(*member))
                .map(|(member, value)| (member, value.into_owned()))
                .collect(),
        }
    }

    /// All properties that the entity holds.
    fn held(&self) -> impl Iterator<Item = (MemberId, Cow<'a, Value>)> {
        let properties = self.entity_type.properties.iter();
        properties.filter_map(|property| Some((property.index, self.image.value(property)?)))
    }

    /// The properties that the client sees, encoded as in a refresh.
    fn properties(&self) -> Vec<u8> {
        let values: Vec<(MemberId, Cow<'_, Value>)> = self.held().collect();
        self.showing
            .properties(values.iter().map(|(member, value)| (member, value.as_ref())))
    }

    /// History events as the client is sent them, with their numbers. Where an account's view has changed, the client
    /// is sent its current value at the newest of these events (V5).
    fn shown_events<'e>(&self, events: impl Iterator<Item = &'e Event>) -> Vec<ShownEvent<'e>> {
        let mut shown: Vec<ShownEvent<'e>> = events
            .filter_map(|event| Some((event.history?, Some(Cow::Borrowed(event)))))
            .collect();
        let mut newer = BTreeSet::new();
        for (_, event) in shown.iter_mut().rev() {
            if let Some(restated) = event
                && let Body::Restated { member } = restated.body
            {
                *event = newer.insert(member).then(|| self.restated(restated, member)).flatten();
            }
        }
        shown
    }

    /// The change that a client is sent where an account's view has another value.
    fn restated(&self, event: &Event, member: MemberId) -> Option<Cow<'static, Event>> {
        let value = self.image.value(self.entity_type.property(member)?)?.into_owned();
        let change = Located::whole(value);
        let body = Body::Changed { member, change };
        Some(Cow::Owned(Event { body, ..event.clone() }))
    }

    /// The items that the client sees of the events after `from`.
    fn update<'e>(&self, from: HistoryNumber, events: impl Iterator<Item = &'e Event>) -> Vec<ViewItem> {
        let shown = self.shown_events(events);
        let shown = shown.iter().map(|(number, event)| (*number, event.as_deref()));
        self.showing.update(from, shown)
    }

    /// The items that begin a view for a client that has what `stamps` says, and the history number that they show.
    fn begin(&self, stamps: &Stamps, beginning: Option<Beginning>) -> (Vec<ViewItem>, HistoryNumber) {
        let (entity, now) = (self.showing.entity(), self.image.history);
        let mut items = Vec::new();
        let mut start = None;
        for stamp in &stamps.known.seen {
            if stamp.entity == entity {
                start = Some(stamp.upto);
            } else {
                items.push(ViewItem::Leave { entity: stamp.entity });
            }
        }
        if start.is_none() {
            items.push(ViewItem::Enter {
                entity,
                type_id: self.client_type(),
                place: None,
            });
            start = beginning.map(|Beginning { upto, held }| {
                let properties = self
                    .showing
                    .properties(held.iter().map(|(member, value)| (member, value)));
                items.push(ViewItem::Refresh {
                    entity,
                    upto,
                    level: 0,
                    properties,
                });
                upto
            });
        }
        let Some((start, events)) = start.and_then(|start| Some((start, self.image.history_since(start)?))) else {
            items.push(ViewItem::Refresh {
                entity,
                upto: now,
                level: 0,
                properties: self.properties(),
            });
            return (items, now);
        };
        let updates = self.update(start, events);
        let shown = shown_upto(&updates).unwrap_or(start);
        items.extend(updates);
        (items, shown)
    }
}

impl View {
    /// Begins a view for a client that has what `stamps` says. `beginning` is the state to show first if the client was
    /// just given the entity. Returns the view and the frames that show it.
    pub(crate) fn begin(seen: &OwnView<'_>, stamps: &Stamps, beginning: Option<Beginning>) -> (Self, Vec<Vec<u8>>) {
        let (items, shown) = seen.begin(stamps, beginning);
        let mut frames = ViewFrames::new(Part::Base, stamps.view);
        let bodies = frames.of(Tick(0), items);
        (Self { frames, shown }, bodies)
    }

    /// The frames that show the events just recorded.
    pub(crate) fn follow<'e>(&mut self, seen: &OwnView<'_>, recorded: impl Iterator<Item = &'e Event>) -> Vec<Vec<u8>> {
        let shown = self.shown;
        let new = recorded.filter(|event| event.history > Some(shown));
        let items = seen.update(shown, new);
        if items.is_empty() {
            return Vec::new();
        }
        self.shown = shown_upto(&items).unwrap_or(shown);
        self.frames.of(Tick(0), items)
    }
}
