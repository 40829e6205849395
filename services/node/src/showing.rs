//! Encoding of an entity part for clients, as items of a view (rules V3, V4). Used by witnesses and proxies.

use std::collections::BTreeMap;

use annals_def::{EntityType, Method, Property, Schema, Value};
use annals_event::{Audience, Body, Event, Subject};
use annals_ids::{EntityId, HistoryNumber, MemberId, Part, SessionId, TypeId};
use annals_wire::client::{ClientMember, Reply, ShownWriter, ViewItem};

use crate::{
    tally::{CostKind, Member, Tally},
    view_frames::FRAME_BYTES,
};

/// Why values in the state can be encoded.
const FITS: &str = "invariant: values in the state, and changes that were made to it, fit their types";

/// The viewing client's relation to the entity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Viewer {
    /// The client that controls it.
    Own,
    /// Another client.
    Others,
}

/// A member whose events clients are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum ShownMember {
    Property(MemberId),
    Method(MemberId),
}

/// An entity part as a view needs it: under its `ClientName`, and with only those members that are declared alike in
/// the client's type.
#[derive(Clone, Copy, Debug)]
pub struct Showing<'a> {
    schema: &'a Schema,
    entity_type: &'a EntityType,
    entity: EntityId,
    viewer: Viewer,
    /// The entity that the viewing client controls, and its session.
    seen_by: Option<(EntityId, SessionId)>,
    /// Distance, metres.
    distance: f32,
    /// Level of detail: members of a finer level are not sent.
    level: u8,
    /// Counts the encoded bytes of each member.
    tally: Option<&'a Tally>,
}

impl<'a> Showing<'a> {
    /// `None` if the schema has no such type.
    #[must_use]
    pub fn new(schema: &'a Schema, entity: EntityId, type_id: TypeId, viewer: Viewer) -> Option<Self> {
        Some(Self {
            schema,
            entity_type: schema.entity_type(type_id)?,
            entity,
            viewer,
            seen_by: None,
            distance: 0.0,
            level: 0,
            tally: None,
        })
    }

    /// The same, seen by the client that controls `viewer` in this session: it is shown what is for it alone.
    #[must_use]
    pub fn seen_by(self, viewer: EntityId, session: SessionId) -> Self {
        Self {
            seen_by: Some((viewer, session)),
            ..self
        }
    }

    /// The same, seen from a distance, metres.
    #[must_use]
    pub fn from_afar(self, distance: f32) -> Self {
        Self { distance, ..self }
    }

    /// The same, at a level of detail: 0 is the finest.
    #[must_use]
    pub fn on_level(self, level: u8) -> Self {
        Self { level, ..self }
    }

    /// The same, with encoded bytes counted.
    #[must_use]
    pub fn counted_by(self, tally: &'a Tally) -> Self {
        Self {
            tally: Some(tally),
            ..self
        }
    }

    /// The entity.
    #[must_use]
    pub fn entity(&self) -> EntityId {
        self.entity
    }

    /// The type under which clients know the entity.
    #[must_use]
    pub fn client_type(&self) -> TypeId {
        self.entity_type.client_type.unwrap_or(self.entity_type.id)
    }

    /// Whether this client sees a property.
    #[must_use]
    pub fn sees(&self, property: MemberId) -> bool {
        self.seen_property(property).is_some()
    }

    /// Encodes the properties that this client sees, except those with their default values, as for a refresh.
    #[must_use]
    pub fn properties<'v>(&self, held: impl IntoIterator<Item = (&'v MemberId, &'v Value)>) -> Vec<u8> {
        self.write(held, |_, known, value| *value != known.default)
    }

    /// Encodes those properties that this client sees which belong to levels finer than `from`, and of those only the
    /// ones that `is_news`, as for a change to this level.
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

    /// Encodes the properties that this client sees and that are `meant`: each as the entity's type declares it, as the
    /// client's type declares it, and its value.
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

    /// All that this client sees, at one history number.
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

    /// The part of the events after `from` that this client sees, in order; empty if it sees none of them. Hidden
    /// events are `None` with their numbers. Of a member that is `SendLatestOnly`, or that may get lost (`IsReliable`
    /// is false), only the newest event is sent: an outdated one is not needed.
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

    /// The newest event of each member of which only the newest is sent.
    fn newest(&self, events: &[(HistoryNumber, Option<&Event>)]) -> BTreeMap<ShownMember, HistoryNumber> {
        let latest = |(number, event): &(HistoryNumber, Option<&Event>)| {
            let member = self.latest_only((*event)?)?;
            Some((member, *number))
        };
        // Later entries replace earlier ones: events come in the order of their numbers.
        events.iter().filter_map(latest).collect()
    }

    /// The member of an event, if this client sees it and only its newest event is sent.
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

    /// Encodes the part of an event that this client sees, if any.
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
            Body::Replied {
                to,
                number: call,
                method,
                outcome,
            } => {
                let (part, member) = self.seen_reply(event.subject, *to, *method)?;
                let reply = Reply {
                    part,
                    call: *call,
                    member,
                    outcome: outcome.clone(),
                };
                writer.reply(number, &reply).expect(FITS);
            }
            _ => return None,
        }
        self.count(Member::changed_by(event.subject, &event.body)?, writer.len() - before);
        Some(())
    }

    /// Counts the encoded bytes of a member.
    fn count(&self, member: Member, bytes: usize) {
        if let Some(tally) = self.tally {
            let way = match self.viewer {
                Viewer::Own => CostKind::Own,
                Viewer::Others => CostKind::Others,
            };
            tally.add(self.entity_type.id, member, way, bytes);
        }
    }

    /// A property as the client's type declares it. One with another declaration there would be misread.
    fn known_property(&self, property: &Property) -> Option<&'a Property> {
        let known = self.seen_as().property_named(&property.name)?;
        (known.data_type == property.data_type).then_some(known)
    }

    /// A client method as the client's type declares it.
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
        let is_meant = match self.viewer {
            Viewer::Own => matches!(audience, Audience::Own | Audience::All),
            Viewer::Others => match audience {
                Audience::Own => false,
                Audience::Others | Audience::All => method.detail_distance.is_none_or(|reach| self.distance <= reach),
                Audience::Of(viewer) => self.seen_by.is_some_and(|(seen_by, _)| seen_by == viewer),
            },
        };
        is_meant.then_some(method)
    }

    /// The part and method of an answer to this client, as its type declares the method: it must return the same values.
    fn seen_reply(&self, subject: Subject, to: SessionId, method: MemberId) -> Option<(Part, ClientMember)> {
        let Subject::Entity(_, part) = subject else { return None };
        self.seen_by.filter(|(_, session)| *session == to)?;
        let seen_as = self.seen_as();
        let called = self.entity_type.method_of(part, method)?;
        let types = |method: &'a Method| method.returns.iter().map(|argument| &argument.data_type);
        let place = seen_as.exposed_methods_of(part).iter().position(|index| {
            let known = seen_as.method_of(part, *index);
            known.is_some_and(|known| known.name == called.name && types(known).eq(types(called)))
        })?;
        Some((part, ClientMember(u16::try_from(place).ok()?)))
    }

    fn is_seen(&self, property: &Property) -> bool {
        match self.viewer {
            Viewer::Own => property.distribution.to_own_client(),
            Viewer::Others => {
                let is_near = property.detail_level.is_none_or(|level| level >= self.level);
                property.distribution.to_other_clients() && is_near
            }
        }
    }

    fn seen_as(&self) -> &'a EntityType {
        self.schema.entity_type(self.client_type()).unwrap_or(self.entity_type)
    }
}

/// The newest history number covered by items of an entity.
#[must_use]
pub fn shown_upto(items: &[ViewItem]) -> Option<HistoryNumber> {
    items.iter().rev().find_map(|item| match item {
        ViewItem::Update { upto, .. } | ViewItem::Refresh { upto, .. } => Some(*upto),
        _ => None,
    })
}
