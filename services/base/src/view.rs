//! What a client is shown of the base part of its own entity (rule V4).

use annals_def::{EntityType, Form, Path, Schema, Value, encode};
use annals_event::{Audience, Body, Event, Image};
use annals_ids::{EntityId, HistoryNumber, Part, Tick, TypeId};
use annals_wire::client::{ClientMember, Shown, Stamps, ToClient, ViewFrame, ViewItem};

/// Bytes of values after which a frame is closed and another begun, so that one frame stays far below what a client takes.
const FRAME_BYTES: usize = 256 << 10;

/// A view that a client has begun.
#[derive(Debug)]
pub(crate) struct View {
    /// The number that the client gave it.
    number: u64,
    /// The last frame's number.
    sequence: u64,
    /// The history number up to which the client was shown the entity.
    shown: HistoryNumber,
}

/// What an entity was when a client was given it: what the client is shown first, so that nothing that is said to it from
/// that moment on is passed over.
#[derive(Debug)]
pub(crate) struct Beginning {
    upto: HistoryNumber,
    properties: Vec<(ClientMember, Vec<u8>)>,
}

/// An entity as a view needs to know it.
pub(crate) struct Seen<'a> {
    schema: &'a Schema,
    entity: EntityId,
    entity_type: &'a EntityType,
    image: &'a Image,
}

impl<'a> Seen<'a> {
    /// `None` if the schema has no such type.
    pub(crate) fn new(schema: &'a Schema, entity: EntityId, image: &'a Image) -> Option<Self> {
        let entity_type = schema.entity_type(image.type_id)?;
        Some(Self {
            schema,
            entity,
            entity_type,
            image,
        })
    }

    /// The type as which clients know the entity.
    pub(crate) fn client_type(&self) -> TypeId {
        self.entity_type.client_type.unwrap_or(self.entity_type.id)
    }

    /// What it is now.
    pub(crate) fn beginning(&self) -> Beginning {
        Beginning {
            upto: self.image.history,
            properties: self.properties(),
        }
    }

    /// The properties that the client holds, but for those that have their defaults, by client number.
    fn properties(&self) -> Vec<(ClientMember, Vec<u8>)> {
        let seen_as = self.schema.entity_type(self.client_type()).unwrap_or(self.entity_type);
        let mut properties: Vec<(ClientMember, Vec<u8>)> = Vec::new();
        for property in &self.entity_type.properties {
            let Some(value) = self.image.properties.get(&property.index) else {
                continue;
            };
            let known = seen_as.property_named(&property.name);
            let Some((known, id)) = known.and_then(|known| Some((known, known.client_id?))) else {
                continue;
            };
            if property.distribution.to_own_client() && *value != known.default {
                properties.push((ClientMember(id), whole(&property.data_type, value)));
            }
        }
        properties.sort_by_key(|(id, _)| *id);
        properties
    }

    /// What the client may see of an event.
    fn shown(&self, event: &Event) -> Option<Shown> {
        let number = event.history?;
        let seen_as = self.schema.entity_type(self.client_type())?;
        match &event.body {
            Body::Changed { member, path, value } => {
                let property = self.entity_type.property(*member)?;
                if !property.distribution.to_own_client() {
                    return None;
                }
                let path = Path(path.clone());
                let value = whole(path.find_type(&property.data_type)?, value);
                let id = seen_as.property_named(&property.name)?.client_id?;
                let member = ClientMember(id);
                Some(Shown::Property {
                    number,
                    member,
                    path,
                    value,
                })
            }
            Body::Invoked { method, args, audience } => {
                if *audience == Audience::Others {
                    return None;
                }
                let method = self.entity_type.client_methods.get(usize::from(method.0))?;
                let mut bytes = Vec::new();
                for (argument, value) in method.args.iter().zip(args) {
                    bytes.extend(whole(&argument.data_type, value));
                }
                let member = ClientMember(seen_as.client_method_named(&method.name)?.client_id?);
                let args = bytes;
                Some(Shown::Method { number, member, args })
            }
            _ => None,
        }
    }

    fn update<'e>(&self, from: HistoryNumber, events: impl Iterator<Item = &'e Event>) -> Vec<ViewItem> {
        let (mut items, mut from, mut upto) = (Vec::new(), from, from);
        let (mut gathered, mut bytes) = (Vec::new(), 0);
        for event in events {
            let Some(number) = event.history else { continue };
            upto = number;
            if let Some(shown) = self.shown(event) {
                bytes += length(&shown);
                gathered.push(shown);
            }
            if bytes >= FRAME_BYTES {
                let events = std::mem::take(&mut gathered);
                items.push(self.updated(from, upto, events));
                (from, bytes) = (upto, 0);
            }
        }
        if !gathered.is_empty() {
            items.push(self.updated(from, upto, gathered));
        }
        items
    }

    fn updated(&self, from: HistoryNumber, upto: HistoryNumber, events: Vec<Shown>) -> ViewItem {
        ViewItem::Update {
            entity: self.entity,
            from,
            upto,
            events,
        }
    }
}

impl View {
    /// Begins a view for a client that has what `stamps` says. `beginning` is what it is shown first if it was just given
    /// the entity.
    pub(crate) fn begin(seen: &Seen<'_>, stamps: &Stamps, beginning: Option<Beginning>) -> (Self, Vec<Vec<u8>>) {
        let entity = seen.entity;
        let strangers = stamps.known.iter().filter(|(known, _)| *known != entity);
        let mut items: Vec<ViewItem> = strangers.map(|(known, _)| ViewItem::Leave { entity: *known }).collect();
        let known = stamps.known.iter().find(|(known, _)| *known == entity);
        let start = match known {
            Some((_, known)) => Some(*known),
            None => {
                items.push(ViewItem::Enter {
                    entity,
                    type_id: seen.client_type(),
                    place: None,
                });
                beginning.map(|Beginning { upto, properties }| {
                    items.push(ViewItem::Refresh {
                        entity,
                        upto,
                        properties,
                    });
                    upto
                })
            }
        };
        let mut view = Self {
            number: stamps.view,
            sequence: 0,
            shown: seen.image.history,
        };
        match start.and_then(|start| Some((start, seen.image.history_since(start)?))) {
            Some((start, events)) => {
                let updates = seen.update(start, events);
                view.shown = last(&updates).unwrap_or(start);
                items.extend(updates);
            }
            None => items.push(ViewItem::Refresh {
                entity,
                upto: seen.image.history,
                properties: seen.properties(),
            }),
        }
        let frames = view.frames(items);
        (view, frames)
    }

    /// The frames that show what has just been recorded.
    pub(crate) fn follow<'e>(&mut self, seen: &Seen<'_>, recorded: impl Iterator<Item = &'e Event>) -> Vec<Vec<u8>> {
        let new = recorded.filter(|event| event.history.is_some_and(|number| number > self.shown));
        let items = seen.update(self.shown, new);
        if items.is_empty() {
            return Vec::new();
        }
        self.shown = last(&items).unwrap_or(self.shown);
        self.frames(items)
    }

    /// Puts items into frames; the first one may be empty, for it says that the view has begun.
    fn frames(&mut self, items: Vec<ViewItem>) -> Vec<Vec<u8>> {
        let mut frames = Vec::new();
        let (mut gathered, mut bytes) = (Vec::new(), 0);
        for item in items {
            let more = item_length(&item);
            if bytes > 0 && bytes + more > FRAME_BYTES {
                frames.push(self.frame(std::mem::take(&mut gathered)));
                bytes = 0;
            }
            bytes += more;
            gathered.push(item);
        }
        frames.push(self.frame(gathered));
        frames
    }

    fn frame(&mut self, items: Vec<ViewItem>) -> Vec<u8> {
        self.sequence += 1;
        let frame = ToClient::View(ViewFrame {
            source: Part::Base,
            view: self.number,
            sequence: self.sequence,
            tick: Tick(0),
            items,
        });
        let mut body = Vec::new();
        frame.write(&mut body);
        body
    }
}

/// The history number up to which items show.
fn last(items: &[ViewItem]) -> Option<HistoryNumber> {
    items.iter().rev().find_map(|item| match item {
        ViewItem::Update { upto, .. } | ViewItem::Refresh { upto, .. } => Some(*upto),
        _ => None,
    })
}

fn item_length(item: &ViewItem) -> usize {
    match item {
        ViewItem::Refresh { properties, .. } => properties.iter().map(|(_, value)| value.len()).sum(),
        ViewItem::Update { events, .. } => events.iter().map(length).sum(),
        ViewItem::Enter { .. } | ViewItem::Leave { .. } | ViewItem::Placed { .. } => 1,
    }
}

fn length(shown: &Shown) -> usize {
    match shown {
        Shown::Property { value: bytes, .. } | Shown::Method { args: bytes, .. } => bytes.len(),
    }
}

/// A value's bytes. It was checked when it was assigned, so it fits its type.
fn whole(data_type: &annals_def::DataType, value: &Value) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode(data_type, value, Form::Whole, &mut bytes).expect("invariant: a value in the state fits its type");
    bytes
}
