//! What clients are shown of an entity part, as items and frames of a view (rules V3, V4). Witnesses and proxies make their
//! frames here.

use std::collections::BTreeMap;

use annals_def::{EntityType, Method, Property, Schema, Value};
use annals_event::{Audience, Body, Event};
use annals_ids::{EntityId, HistoryNumber, MemberId, Part, Tick, TypeId};
use annals_wire::client::{ClientMember, ShownWriter, ToClient, ViewFrame, ViewItem};

use crate::tally::{Member, Tally, Way};

/// Bytes of values after which a frame is closed and another begun, so that one frame stays far below what a client takes.
const FRAME_BYTES: usize = 256 << 10;

/// Why what is in the state can be written.
const FITS: &str = "invariant: values in the state, and changes that were made to it, fit their types";

/// With whose eyes an entity is seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Eyes {
    /// Those of the client that controls it.
    Own,
    /// Those of another client.
    Others,
}

/// A member of which clients are shown events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum ShownMember {
    Property(MemberId),
    Method(MemberId),
}

/// An entity part as a view needs to know it: under its `ClientName`, and with only those members that the client's type
/// has too, alike.
#[derive(Clone, Copy, Debug)]
pub struct Showing<'a> {
    schema: &'a Schema,
    entity_type: &'a EntityType,
    entity: EntityId,
    eyes: Eyes,
    /// Metres.
    distance: f32,
    /// The level of detail: what is of a finer one is not told of.
    level: u8,
    /// Where what it takes to tell of a member is counted.
    tally: Option<&'a Tally>,
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
            distance: 0.0,
            level: 0,
            tally: None,
        })
    }

    /// The same, seen from so many metres away.
    #[must_use]
    pub fn from_afar(self, distance: f32) -> Self {
        Self { distance, ..self }
    }

    /// The same, seen on a level of detail: 0 is the finest.
    #[must_use]
    pub fn on_level(self, level: u8) -> Self {
        Self { level, ..self }
    }

    /// The same, and what is written is counted.
    #[must_use]
    pub fn counted_by(self, tally: &'a Tally) -> Self {
        Self {
            tally: Some(tally),
            ..self
        }
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

    /// Whether these eyes see a property.
    #[must_use]
    pub fn sees(&self, property: MemberId) -> bool {
        self.seen_property(property).is_some()
    }

    /// The properties that these eyes see, but for those that have their defaults, as a refresh tells them.
    #[must_use]
    pub fn properties<'v>(&self, held: impl IntoIterator<Item = (&'v MemberId, &'v Value)>) -> Vec<u8> {
        self.write(held, |_, known, value| *value != known.default)
    }

    /// Of the properties that these eyes see those of levels finer than `from`, and among them those that `is_news`, as a
    /// change to this level tells them.
    #[must_use]
    pub fn details<'v>(
        &self,
        held: impl IntoIterator<Item = (&'v MemberId, &'v Value)>,
        from: u8,
        is_news: impl Fn(MemberId, u8) -> bool,
    ) -> Vec<u8> {
        self.write(held, |property, _, _| {
            let level = property.detail_level.filter(|level| *level < from);
            level.is_some_and(|level| is_news(property.index, level))
        })
    }

    /// Writes those properties that these eyes see and that are `meant`: as the entity's type has them, as the client's has
    /// them, and what they hold.
    fn write<'v>(
        &self,
        held: impl IntoIterator<Item = (&'v MemberId, &'v Value)>,
        meant: impl Fn(&Property, &Property, &Value) -> bool,
    ) -> Vec<u8> {
        let mut properties = Vec::new();
        for (member, value) in held {
            let Some(property) = self.seen_property(*member) else {
                continue;
            };
            if let Some(known) = self.known_property(property)
                && let Some(id) = known.client_id
                && meant(property, known, value)
            {
                properties.push((ClientMember(id), *member, value));
            }
        }
        properties.sort_by_key(|(id, ..)| *id);
        let mut writer = ShownWriter::new(self.seen_as(), HistoryNumber(0));
        for (id, member, value) in properties {
            let before = writer.len();
            writer.property(id, value).expect(FITS);
            self.count(Member::Property(member), writer.len() - before);
        }
        writer.finish()
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
            level: self.level,
            properties: self.properties(held),
        }
    }

    /// What these eyes see of events that follow `from`, in order; nothing if they see nothing of them. Hidden events are
    /// `None` with their numbers. Of a member that is `SendLatestOnly`, or that may get lost (`IsReliable` is false), only the
    /// newest event is told: what is told late need not be told.
    pub fn update<'e>(
        &self,
        from: HistoryNumber,
        events: impl Iterator<Item = (HistoryNumber, Option<&'e Event>)>,
    ) -> Vec<ViewItem> {
        let events: Vec<_> = events.collect();
        let newest = self.newest(&events);
        let (mut items, mut from, mut upto) = (Vec::new(), from, from);
        let mut writer = ShownWriter::new(self.seen_as(), from);
        for (number, event) in events {
            upto = number;
            let is_newest = |event: &&Event| {
                let latest = self.latest_only(event);
                latest.is_none_or(|member| newest.get(&member) == Some(&number))
            };
            if let Some(event) = event.filter(is_newest) {
                self.show(&mut writer, number, event);
            }
            if writer.len() >= FRAME_BYTES {
                let full = std::mem::replace(&mut writer, ShownWriter::new(self.seen_as(), upto));
                items.push(self.item(from, upto, full));
                from = upto;
            }
        }
        if !writer.is_empty() {
            items.push(self.item(from, upto, writer));
        }
        items
    }

    fn item(&self, from: HistoryNumber, upto: HistoryNumber, writer: ShownWriter<'_>) -> ViewItem {
        ViewItem::Update {
            entity: self.entity,
            from,
            upto,
            events: writer.finish(),
        }
    }

    /// The newest event of each member of which only that is told.
    fn newest(&self, events: &[(HistoryNumber, Option<&Event>)]) -> BTreeMap<ShownMember, HistoryNumber> {
        let latest = |(number, event): &(HistoryNumber, Option<&Event>)| {
            let member = self.latest_only((*event)?)?;
            Some((member, *number))
        };
        // Later ones take the place of earlier ones: events come in the order of their numbers.
        events.iter().filter_map(latest).collect()
    }

    /// What the event is about, if these eyes see it and only the newest of its kind is told.
    fn latest_only(&self, event: &Event) -> Option<ShownMember> {
        match &event.body {
            Body::Changed { member, .. } => {
                let property = self.seen_property(*member)?;
                (property.latest_only || !property.reliable).then_some(ShownMember::Property(*member))
            }
            Body::Invoked { method, audience, .. } => {
                let found = self.seen_method(*method, *audience)?;
                (found.latest_only || !found.reliable).then_some(ShownMember::Method(*method))
            }
            _ => None,
        }
    }

    /// Writes what these eyes see of an event, if anything.
    fn show(&self, writer: &mut ShownWriter<'_>, number: HistoryNumber, event: &Event) -> Option<()> {
        let before = writer.len();
        match &event.body {
            Body::Changed { member, change } => {
                let property = self.seen_property(*member)?;
                let member = ClientMember(self.known_property(property)?.client_id?);
                writer.change(number, member, change).expect(FITS);
            }
            Body::Invoked { method, args, audience } => {
                let method = self.seen_method(*method, *audience)?;
                let member = ClientMember(self.known_method(method)?.client_id?);
                writer.method(number, member, args).expect(FITS);
            }
            _ => return None,
        }
        self.count(Member::changed_by(&event.body)?, writer.len() - before);
        Some(())
    }

    /// Counts what was written of a member.
    fn count(&self, member: Member, bytes: usize) {
        if let Some(tally) = self.tally {
            let way = match self.eyes {
                Eyes::Own => Way::Own,
                Eyes::Others => Way::Others,
            };
            tally.add(self.entity_type.id, member, way, bytes);
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

    fn seen_property(&self, member: MemberId) -> Option<&'a Property> {
        let property = self.entity_type.property(member);
        property.filter(|property| self.is_seen(property))
    }

    fn seen_method(&self, method: MemberId, audience: Audience) -> Option<&'a Method> {
        let method = self.entity_type.client_methods.get(usize::from(method.0))?;
        let is_meant = match self.eyes {
            Eyes::Own => audience != Audience::Others,
            Eyes::Others => {
                let is_near = method.detail_distance.is_none_or(|reach| self.distance <= reach);
                audience != Audience::Own && is_near
            }
        };
        is_meant.then_some(method)
    }

    fn is_seen(&self, property: &Property) -> bool {
        match self.eyes {
            Eyes::Own => property.distribution.to_own_client(),
            Eyes::Others => {
                let is_near = property.detail_level.is_none_or(|level| level >= self.level);
                property.distribution.to_other_clients() && is_near
            }
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
            let more = item.about_bytes();
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
