//! One zone: entities and user data objects, checked against the compiled schema.

use std::collections::{BTreeMap, btree_map::Entry};

use annals_ids::{Direction, Part, Position};

use super::{Fields, Reading, literal};
use crate::{
    data_type::{DataType, UDO_REF_SIZE},
    diagnostic::{Finding, Rule},
    grammar::{self, Content},
    schema::{EntityType, Property, Schema},
    source::{Section, Span},
    typed::UdoRef,
    value::Value,
    zone::{PlacedEntity, PlacedObject, Zone},
};

/// Maximum things in all zones together: each process keeps them in memory. Their values count towards the budget of
/// all values.
pub(crate) const MAX_PLACED: usize = 1_000_000;

/// The state of reading zones: what is known of all of them.
#[derive(Debug)]
pub(crate) struct ZonesRead<'k> {
    /// The position of each user data object type.
    kinds: BTreeMap<&'k str, usize>,
    /// Where each GUID was given.
    guids: BTreeMap<[u8; UDO_REF_SIZE], Span>,
    /// The references to user data objects, each with its place.
    references: Vec<([u8; UDO_REF_SIZE], Span)>,
    /// Number of things so far.
    placed: usize,
}

impl<'k> ZonesRead<'k> {
    pub(crate) fn new(schema: &'k Schema) -> Self {
        let kinds = schema.user_data_objects().iter().enumerate();
        Self {
            kinds: kinds.map(|(kind, object)| (object.name.as_str(), kind)).collect(),
            guids: BTreeMap::new(),
            references: Vec::new(),
            placed: 0,
        }
    }
}

impl<'s> Reading<'s> {
    /// What is in a zone. Things that are wrong are reported and left out.
    pub(crate) fn zone(&mut self, root: Section<'s>, schema: &Schema, read: &mut ZonesRead<'_>) -> Zone {
        self.text_means_nothing(root);
        let mut zone = Zone::default();
        let placed = self.fields(root, &grammar::ZONE);
        for section in placed.many() {
            if read.placed == MAX_PLACED {
                let message = format!("there are more than {MAX_PLACED} things in the zones");
                let finding = Finding::new(Rule::TooMany, section.name_span(), message);
                self.report(finding.help("create entities by behaviour where there are so many"));
                break;
            }
            read.placed += 1;
            match section.name {
                "entity" => zone.entities.extend(self.placed_entity(*section, schema, read)),
                "UserDataObject" => zone.objects.extend(self.placed_object(*section, schema, read)),
                _ => unreachable!("the table has no other tag"),
            }
        }
        zone
    }

    /// Reports references to objects that are in no zone.
    pub(crate) fn references_of_zones(&mut self, read: &ZonesRead<'_>) {
        let missing = read
            .references
            .iter()
            .filter(|(guid, _)| !read.guids.contains_key(guid));
        for (_, span) in missing {
            let finding = Finding::new(
                Rule::DanglingReference,
                *span,
                "no zone has the user data object of this GUID",
            );
            self.report(finding.help("place it, or remove the reference"));
        }
    }

    fn placed_entity(
        &mut self,
        section: Section<'s>,
        schema: &Schema,
        read: &mut ZonesRead<'_>,
    ) -> Option<PlacedEntity> {
        let fields = self.placed_fields(section, &grammar::PLACED_ENTITY);
        let is_known = |name: &str| schema.type_named(name).is_some();
        let names = schema.types().iter().map(|known| known.name.as_str());
        let named = self.placed_type(&fields, (is_known, names), "entity type");
        let (position, direction) = self.placed_at(&fields);
        let has_base = self.declared_boolean(fields.get("hasBase"));
        let entity_type = schema.type_named(named?)?;
        let parts = entity_type.parts;
        let missing = match (parts.cell, parts.base, has_base) {
            (false, ..) => Some(("cell", "type", "create it by behaviour: it has no place")),
            (true, false, Some(true)) => Some(("base", "hasBase", "remove `<hasBase>`")),
            _ => None,
        };
        if let Some((part, tag, help)) = missing {
            let message = format!("`{}` has no {part} part", entity_type.name);
            let at = fields.get(tag).map_or(section.name_span(), Section::text_span);
            self.report(Finding::new(Rule::PlacedType, at, message).help(help));
            return None;
        }
        let based = has_base.unwrap_or(parts.base);
        let mut properties = Vec::new();
        let mut is_whole = true;
        for child in self.once_each(&fields) {
            match self.placed_property(entity_type, based, child) {
                Some(property) => {
                    let value = self.placed_value(&property.data_type, &property.default, child, read);
                    is_whole &= value.is_some();
                    properties.extend(value.map(|value| (property.index, value)));
                }
                None => is_whole = false,
            }
        }
        let position = position.filter(|_| is_whole)?;
        Some(PlacedEntity {
            type_id: entity_type.id,
            position,
            direction,
            based,
            properties,
        })
    }

    fn placed_object(
        &mut self,
        section: Section<'s>,
        schema: &Schema,
        read: &mut ZonesRead<'_>,
    ) -> Option<PlacedObject> {
        let fields = self.placed_fields(section, &grammar::PLACED_OBJECT);
        let kinds = schema.user_data_objects();
        let is_known = |name: &str| read.kinds.contains_key(name);
        let names = kinds.iter().map(|known| known.name.as_str());
        let named = self.placed_type(&fields, (is_known, names), "user data object type");
        let (position, direction) = self.placed_at(&fields);
        let guid = fields.get("guid").and_then(|section| self.new_guid(section, read));
        let kind = *read.kinds.get(named?)?;
        let object = &kinds[kind];
        let count = object
            .properties
            .iter()
            .map(|field| literal::cost(&field.default))
            .sum();
        if !self.spend(count, section) {
            return None;
        }
        let mut values: Vec<Value> = object.properties.iter().map(|field| field.default.clone()).collect();
        let mut is_whole = true;
        for child in self.once_each(&fields) {
            let names = object.properties.iter().map(|field| field.name.as_str());
            let Some(at) = names.clone().position(|name| name == child.name) else {
                let message = format!("`{}` has no property `{}`", object.name, child.name);
                self.no_such_property(child, message, names);
                is_whole = false;
                continue;
            };
            let field = &object.properties[at];
            match self.placed_value(&field.data_type, &field.default, child, read) {
                Some(value) => values[at] = value,
                None => is_whole = false,
            }
        }
        let (guid, position) = (guid?, position.filter(|_| is_whole)?);
        Some(PlacedObject {
            guid: UdoRef(guid),
            kind,
            position,
            direction,
            properties: values,
        })
    }

    fn placed_fields(&mut self, section: Section<'s>, content: &'static Content) -> Fields<'s> {
        self.text_means_nothing(section);
        let fields = self.fields(section, content);
        for tag in ["type", "guid", "position"] {
            if content.tag(tag).is_some() && fields.get(tag).is_none() {
                let message = format!("there is no `<{tag}>`");
                let finding = Finding::new(Rule::MissingValue, section.name_span(), message);
                self.report(finding.help(format!("add `<{tag}>`")));
            }
        }
        if let Some(properties) = fields.get("properties") {
            self.attributes_mean_nothing(properties);
            self.text_means_nothing(properties);
        }
        fields
    }

    /// The sections of properties, without those that are repeated.
    fn once_each(&mut self, fields: &Fields<'s>) -> Vec<Section<'s>> {
        let mut first: BTreeMap<&str, Section<'s>> = BTreeMap::new();
        let mut once = Vec::new();
        for child in fields.get("properties").into_iter().flat_map(Section::children) {
            match first.entry(child.name) {
                Entry::Vacant(vacant) => {
                    vacant.insert(child);
                    once.push(child);
                }
                Entry::Occupied(first) => {
                    let message = format!("`<{}>` is repeated; the first one takes effect", child.name);
                    let finding = Finding::new(Rule::RepeatedTag, child.name_span(), message)
                        .help("remove one of them")
                        .related(first.get().name_span(), "the first one");
                    self.report(finding);
                }
            }
        }
        once
    }

    /// The name of the type of a placed thing, if there is such a type.
    fn placed_type<'t>(
        &mut self,
        fields: &Fields<'s>,
        (is_known, names): (impl Fn(&str) -> bool, impl Iterator<Item = &'t str>),
        what: &str,
    ) -> Option<&'s str> {
        let named = self.text(fields.get("type")?)?;
        if is_known(named.name) {
            return Some(named.name);
        }
        let message = format!("there is no {what} `{}`", named.name);
        let finding = Finding::new(Rule::PlacedType, named.span, message);
        let meant = self.nearest(named.name, names);
        self.report(match meant {
            Some(meant) => finding.meant(meant),
            None => finding.help("name a type that is in the list"),
        });
        None
    }

    /// Where a thing is; the position is `None` if it is missing or wrong, which has been reported.
    fn placed_at(&mut self, fields: &Fields<'s>) -> (Option<Position>, Direction) {
        let position = fields.get("position").and_then(|section| {
            self.children_mean_nothing(section);
            self.placed_number(section, &DataType::Vector3)
        });
        let position = position.and_then(|value| match value {
            Value::Vector3([x, y, z]) => Some(Position { x, y, z }),
            _ => None,
        });
        let mut angle = |tag| {
            let section = fields.get(tag)?;
            self.children_mean_nothing(section);
            match self.placed_number(section, &DataType::Float32) {
                Some(Value::Float32(angle)) => Some(angle),
                _ => None,
            }
        };
        let direction = Direction {
            yaw: angle("yaw").unwrap_or_default(),
            pitch: angle("pitch").unwrap_or_default(),
            roll: angle("roll").unwrap_or_default(),
        };
        (position, direction)
    }

    /// Finite numbers; anything else is reported.
    fn placed_number(&mut self, section: Section<'s>, data_type: &DataType) -> Option<Value> {
        let is_finite = |value: &Value| match value {
            Value::Float32(number) => number.is_finite(),
            Value::Vector3(numbers) => numbers.iter().all(|number| number.is_finite()),
            _ => false,
        };
        let value = literal::of_text(data_type, section.text()).filter(is_finite);
        if value.is_none() {
            let (what, help) = match data_type {
                DataType::Vector3 => ("three numbers", "write three finite numbers, with blanks between them"),
                _ => ("a number", "write a finite number"),
            };
            let message = format!("`{}` is not {what}", section.text());
            let finding = Finding::new(Rule::Number, section.text_span(), message);
            self.report(finding.help(help));
        }
        value
    }

    /// The GUID of an object, which no other one has.
    fn new_guid(&mut self, section: Section<'s>, read: &mut ZonesRead<'_>) -> Option<[u8; UDO_REF_SIZE]> {
        let named = self.text(section)?;
        let report = |message, help: &str| Finding::new(Rule::ObjectGuid, named.span, message).help(help);
        let Some(Value::UdoRef(guid)) = literal::of_text(&DataType::UdoRef, named.name) else {
            let message = format!("`{}` is not a GUID", named.name);
            let help = "write four groups of eight hexadecimal digits, as in `00112233.44556677.8899AABB.CCDDEEFF`";
            self.report(report(message, help));
            return None;
        };
        if guid == [0; UDO_REF_SIZE] {
            let message = "zero is the null reference".to_owned();
            self.report(report(message, "give the object a number of its own"));
            return None;
        }
        if let Some(first) = read.guids.get(&guid).copied() {
            let message = format!("two objects have the GUID {}", named.name);
            let finding = report(message, "give each object a number of its own").related(first, "the first one");
            self.report(finding);
            return None;
        }
        read.guids.insert(guid, named.span);
        Some(guid)
    }

    /// The property of an entity that a section sets, if an author may set it.
    fn placed_property<'t>(
        &mut self,
        entity_type: &'t EntityType,
        based: bool,
        section: Section<'s>,
    ) -> Option<&'t Property> {
        let mut properties = entity_type.properties.iter();
        let of = &entity_type.name;
        let Some(property) = properties.find(|property| property.name == section.name) else {
            let names = entity_type.properties.iter().map(|property| property.name.as_str());
            self.no_such_property(section, format!("`{of}` has no property `{}`", section.name), names);
            return None;
        };
        let name = &property.name;
        let is_held = property.is_held_by(Part::Cell) || based && property.is_held_by(Part::Base);
        let message = if property.account.is_some() {
            format!("`{of}.{name}` shows what the ledger has")
        } else if property.personal.is_some() {
            format!("`{of}.{name}` is sealed")
        } else if property.data_type == DataType::Mailbox {
            format!("`{of}.{name}` is a mailbox, which begins as None")
        } else if !is_held {
            format!("no part of this entity has `{of}.{name}`")
        } else {
            return Some(property);
        };
        let finding = Finding::new(Rule::PlacedProperty, section.name_span(), message);
        self.report(finding.help("remove it, and let behaviour set it"));
        None
    }

    fn no_such_property<'t>(&mut self, section: Section<'s>, message: String, known: impl Iterator<Item = &'t str>) {
        let finding = Finding::new(Rule::PlacedProperty, section.name_span(), message);
        let meant = self.nearest(section.name, known);
        self.report(match meant {
            Some(meant) => finding.meant_tag(meant),
            None => finding.help("remove it"),
        });
    }

    /// The value of a property, with the references in it noted.
    fn placed_value(
        &mut self,
        data_type: &DataType,
        own: &Value,
        section: Section<'s>,
        read: &mut ZonesRead<'_>,
    ) -> Option<Value> {
        let value = self.default(data_type, own, section)?;
        if !self.spend(literal::cost(&value), section) {
            return None;
        }
        references(&value, &mut |guid| read.references.push((guid, section.name_span())));
        Some(value)
    }
}

/// Finds the references in a value that are not null.
fn references(value: &Value, found: &mut impl FnMut([u8; UDO_REF_SIZE])) {
    match value {
        Value::UdoRef(guid) if *guid != [0; UDO_REF_SIZE] => found(*guid),
        Value::Sequence(values) | Value::Dict(values) => {
            for value in values {
                references(value, found);
            }
        }
        _ => {}
    }
}
