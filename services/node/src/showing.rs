//! What clients are shown of an entity part, as items and frames of a view (rules V3, V4). Witnesses and proxies make their
//! frames here.

use annals_def::{DataType, EntityType, Form, Method, Path, Property, Schema, Value, encode};
use annals_event::{Audience, Body, Event};
use annals_ids::{EntityId, HistoryNumber, MemberId, Part, Tick, TypeId};
use annals_wire::client::{ClientMember, Shown, ToClient, ViewFrame, ViewItem};

/// Bytes of values after which a frame is closed and another begun, so that one frame stays far below what a client takes.
const FRAME_BYTES: usize = 256 << 10;

/// With whose eyes an entity is seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Eyes {
    /// Those of the client that controls it.
    Own,
    /// Those of another client.
    Others,
}

/// An entity part as a view needs to know it: under its `ClientName`, and with only those members that the client's type
/// has too, alike.
#[derive(Clone, Copy, Debug)]
pub struct Showing<'a> {
    schema: &'a Schema,
    entity_type: &'a EntityType,
    entity: EntityId,
    eyes: Eyes,
}

impl<'a> Showing<'a> {
    /// `None` if the schema has no such type.
    #[must_use]
    pub fn new(schema: &'a Schema, entity: EntityId, type_id: TypeId, eyes: Eyes) -> Option<Self> {
        Some(Self {
            schema,
            entity_type: schema.entity_type(type_id)?,
            entity,
            eyes,
        })
    }

    /// Which entity.
    #[must_use]
    pub fn entity(&self) -> EntityId {
        self.entity
    }

    /// The type as which clients know the entity.
    #[must_use]
    pub fn client_type(&self) -> TypeId {
        self.entity_type.client_type.unwrap_or(self.entity_type.id)
    }

    /// The properties that these eyes see, but for those that have their defaults, by client number.
    #[must_use]
    pub fn properties<'v>(
        &self,
        held: impl IntoIterator<Item = (&'v MemberId, &'v Value)>,
    ) -> Vec<(ClientMember, Vec<u8>)> {
        let mut properties = Vec::new();
        for (member, value) in held {
            let Some(property) = self
                .entity_type
                .property(*member)
                .filter(|property| self.sees(property))
            else {
                continue;
            };
            if let Some(known) = self.known_property(property)
                && let Some(id) = known.client_id
                && *value != known.default
            {
                properties.push((ClientMember(id), whole(&property.data_type, value)));
            }
        }
        properties.sort_by_key(|(id, _)| *id);
        properties
    }

    /// Everything that these eyes see at one history number.
    #[must_use]
    pub fn refresh<'v>(
        &self,
        upto: HistoryNumber,
        held: impl IntoIterator<Item = (&'v MemberId, &'v Value)>,
    ) -> ViewItem {
        ViewItem::Refresh {
            entity: self.entity,
            upto,
            properties: self.properties(held),
        }
    }

    /// What these eyes see of events that follow `from`, in order; nothing if they see nothing of them. Hidden events are
    /// `None` with their numbers.
    pub fn update<'e>(
        &self,
        from: HistoryNumber,
        events: impl Iterator<Item = (HistoryNumber, Option<&'e Event>)>,
    ) -> Vec<ViewItem> {
        let (mut items, mut from, mut upto) = (Vec::new(), from, from);
        let (mut gathered, mut bytes) = (Vec::new(), 0);
        for (number, event) in events {
            upto = number;
            if let Some(shown) = event.and_then(|event| self.shown(number, event)) {
                bytes += length(&shown);
                gathered.push(shown);
            }
            if bytes >= FRAME_BYTES {
                let events = std::mem::take(&mut gathered);
                items.push(ViewItem::Update {
                    entity: self.entity,
                    from,
                    upto,
                    events,
                });
                (from, bytes) = (upto, 0);
            }
        }
        if !gathered.is_empty() {
            items.push(ViewItem::Update {
                entity: self.entity,
                from,
                upto,
                events: gathered,
            });
        }
        items
    }

    /// What these eyes see of an event.
    fn shown(&self, number: HistoryNumber, event: &Event) -> Option<Shown> {
        match &event.body {
            Body::Changed { member, path, value } => {
                let property = self
                    .entity_type
                    .property(*member)
                    .filter(|property| self.sees(property))?;
                let path = Path(path.clone());
                let value = whole(path.find_type(&property.data_type)?, value);
                let member = ClientMember(self.known_property(property)?.client_id?);
                Some(Shown::Property {
                    number,
                    member,
                    path,
                    value,
                })
            }
            Body::Invoked { method, args, audience } => {
                let meant = match self.eyes {
                    Eyes::Own => *audience != Audience::Others,
                    Eyes::Others => *audience != Audience::Own,
                };
                let method = self
                    .entity_type
                    .client_methods
                    .get(usize::from(method.0))
                    .filter(|_| meant)?;
                let values = method.args.iter().zip(args);
                let args = values
                    .flat_map(|(argument, value)| whole(&argument.data_type, value))
                    .collect();
                let member = ClientMember(self.known_method(method)?.client_id?);
                Some(Shown::Method { number, member, args })
            }
            _ => None,
        }
    }

    /// A property as the client's type has it. One of another type there would be misread.
    fn known_property(&self, property: &Property) -> Option<&'a Property> {
        let known = self.seen_as().property_named(&property.name)?;
        (known.data_type == property.data_type).then_some(known)
    }

    /// A client method as the client's type has it.
    fn known_method(&self, method: &Method) -> Option<&'a Method> {
        let known = self.seen_as().client_method_named(&method.name)?;
        let known_types = known.args.iter().map(|argument| &argument.data_type);
        let alike = known_types.eq(method.args.iter().map(|argument| &argument.data_type));
        alike.then_some(known)
    }

    fn sees(&self, property: &Property) -> bool {
        match self.eyes {
            Eyes::Own => property.distribution.to_own_client(),
            Eyes::Others => property.distribution.to_other_clients(),
        }
    }

    fn seen_as(&self) -> &'a EntityType {
        self.schema.entity_type(self.client_type()).unwrap_or(self.entity_type)
    }
}

/// The frames of one view that a client has begun.
#[derive(Debug)]
pub struct Frames {
    source: Part,
    view: u64,
    sequence: u64,
}

impl Frames {
    /// A view to which the client gave this number.
    #[must_use]
    pub fn new(source: Part, view: u64) -> Self {
        Self {
            source,
            view,
            sequence: 0,
        }
    }

    /// The number that the client gave the view.
    #[must_use]
    pub fn view(&self) -> u64 {
        self.view
    }

    /// Puts items into frames, at least one: an empty one says that the view has begun, or still goes on.
    #[must_use]
    pub fn of(&mut self, tick: Tick, items: Vec<ViewItem>) -> Vec<Vec<u8>> {
        let mut frames = Vec::new();
        let (mut gathered, mut bytes) = (Vec::new(), 0);
        for item in items {
            let more = item_length(&item);
            if bytes > 0 && bytes + more > FRAME_BYTES {
                frames.push(self.frame(tick, std::mem::take(&mut gathered)));
                bytes = 0;
            }
            bytes += more;
            gathered.push(item);
        }
        frames.push(self.frame(tick, gathered));
        frames
    }

    fn frame(&mut self, tick: Tick, items: Vec<ViewItem>) -> Vec<u8> {
        self.sequence += 1;
        let frame = ViewFrame {
            source: self.source,
            view: self.view,
            sequence: self.sequence,
            tick,
            items,
        };
        let mut body = Vec::new();
        ToClient::View(frame).write(&mut body);
        body
    }
}

/// The history number up to which items show something of an entity.
#[must_use]
pub fn shown_upto(items: &[ViewItem]) -> Option<HistoryNumber> {
    items.iter().rev().find_map(|item| match item {
        ViewItem::Update { upto, .. } | ViewItem::Refresh { upto, .. } => Some(*upto),
        _ => None,
    })
}

fn item_length(item: &ViewItem) -> usize {
    match item {
        ViewItem::Refresh { properties, .. } => properties.iter().map(|(_, value)| value.len() + 4).sum(),
        ViewItem::Update { events, .. } => events.iter().map(length).sum(),
        ViewItem::Enter { .. } | ViewItem::Leave { .. } | ViewItem::Placed { .. } => 32,
    }
}

fn length(shown: &Shown) -> usize {
    match shown {
        Shown::Property { value: bytes, .. } | Shown::Method { args: bytes, .. } => bytes.len() + 8,
    }
}

/// A value's bytes. It was checked when it was assigned, so it fits its type.
fn whole(data_type: &DataType, value: &Value) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode(data_type, value, Form::Whole, &mut bytes).expect("invariant: a value in the state fits its type");
    bytes
}
