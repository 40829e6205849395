//! Compiles one entity type, service or user data object from its lineage.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    declared::Declared,
    library::{Library, Lookup},
    lineage::Lineage,
    merge::{Members, Merged},
};
use crate::{
    data_type::Field,
    diagnostic::{Finding, Rule, Severity},
    grammar::{BANDS, Dialect, Family, Kind},
    read::{DeclaredLevel, Definition, Listed, Named, Reading},
    schema::{Domain, EntityType, LodLevel, Method, Parts, Property, Service, UserDataObject, Volatile},
    source::Span,
};

/// Maximum levels of detail of a type.
const MAX_LEVELS: usize = 6;

/// Maximum nodes of types and values of defaults in the members of all compiled types together. Inherited members are
/// copied to every heir, so the limit on declarations does not bound them.
const MAX_COMPILED: usize = 16_000_000;

/// Turns definitions into parts of the schema.
pub(super) struct Compiler<'l, 's> {
    library: &'l Library<'l>,
    reading: Reading<'s>,
    /// The client name of each entity type compiled so far.
    client_names: Vec<Option<Named<'l>>>,
    used: BTreeSet<(Family, Kind, &'l str)>,
    budget: usize,
}

impl<'l, 's> Compiler<'l, 's> {
    pub(super) fn new(library: &'l Library<'l>, reading: Reading<'s>) -> Self {
        Self {
            library,
            reading,
            client_names: Vec::new(),
            used: BTreeSet::new(),
            budget: MAX_COMPILED,
        }
    }

    pub(super) fn report(&mut self, finding: Finding) {
        self.reading.report(finding);
    }

    /// The candidate most similar to `word`, if one is similar enough.
    pub(super) fn nearest<'c>(&mut self, word: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<&'c str> {
        self.reading.nearest(word, candidates)
    }

    pub(super) fn into_reading(self) -> Reading<'s> {
        self.reading
    }

    /// The client name of each listed type, in the order of the list.
    pub(super) fn client_names(&mut self) -> Vec<Option<Named<'l>>> {
        std::mem::take(&mut self.client_names)
    }

    /// The definition of a listed name. One that is missing or cannot be read keeps its position among the compiled
    /// types.
    pub(super) fn find(&mut self, family: Family, kind: Kind, name: &'l str, span: Span, rule: Rule) -> Lookup<'l> {
        let findings = &mut self.reading.findings;
        let found = self.library.find((family, kind, name), span, rule, findings);
        if let Lookup::Broken(name) | Lookup::Missing(name) = found {
            self.used.insert((family, kind, name));
        }
        if kind == Kind::Entity && !matches!(found, Lookup::Found(_)) {
            self.client_names.push(None);
        }
        found
    }

    /// Compiles a listed entity type.
    pub(super) fn entity_type(
        &mut self,
        listed: &Listed<'_>,
        definition: &'l Definition<'l>,
    ) -> (EntityType, Declared<'l>) {
        let (lineage, members) = self.members(Family::Entity, definition);
        let settings = Settings::of(&lineage.by_precedence());
        self.client_names.push(settings.client_name);
        let levels = self.levels(&settings.levels);
        let parts = self.parts(listed, definition, &members, &settings.volatile);
        self.parts_have_members(&parts, listed, &members);
        self.one_identifier(&members.properties);
        self.fixed_ids_differ(&members);
        let mut entity_type = EntityType::new(listed.name);
        entity_type.parts = parts;
        entity_type.persistent = settings.persistent.unwrap_or(true);
        entity_type.volatile = settings.volatile.unwrap_or_default();
        entity_type.detailed_position = settings.detailed_position;
        entity_type.appeal_radius = settings.appeal_radius.unwrap_or(0.0);
        entity_type.manual_aoi = settings.manual_aoi.unwrap_or(false);
        entity_type.temp_properties = settings.temp_properties.into_iter().map(str::to_owned).collect();
        let labels = members.levels;
        let mut declared = Declared::new(listed.span, definition, lineage);
        (entity_type.properties, declared.properties) = members.properties.into_parts();
        for (at, label) in labels {
            let property = &mut entity_type.properties[at];
            if property.distribution.to_other_clients() {
                property.detail_level = self.level(label, &levels);
            }
        }
        for label in members.other_levels {
            self.level(label, &levels);
        }
        entity_type.lod_levels = levels;
        (entity_type.base_methods, declared.base_methods) = members.base_methods.into_parts();
        (entity_type.cell_methods, declared.cell_methods) = members.cell_methods.into_parts();
        (entity_type.client_methods, declared.client_methods) = members.client_methods.into_parts();
        (entity_type, declared)
    }

    /// Compiles a listed service.
    pub(super) fn service(&mut self, listed: &Listed<'_>, definition: &'l Definition<'l>) -> (Service, Declared<'l>) {
        let (lineage, members) = self.members(Family::Service, definition);
        let mut declared = Declared::new(listed.span, definition, lineage);
        let methods;
        (methods, declared.methods) = members.methods.into_parts();
        let name = listed.name.to_owned();
        (Service { name, methods }, declared)
    }

    /// Compiles a listed user data object.
    pub(super) fn user_data_object(
        &mut self,
        listed: &Listed<'_>,
        definition: &'l Definition<'l>,
    ) -> (UserDataObject, Declared<'l>) {
        let (lineage, members) = self.members(Family::Object, definition);
        let domain = lineage
            .by_precedence()
            .iter()
            .rev()
            .find_map(|definition| definition.domain);
        let mut declared = Declared::new(listed.span, definition, lineage);
        let properties;
        (properties, declared.properties) = members.properties.into_parts();
        let properties = properties.into_iter().map(|property| Field {
            name: property.name,
            data_type: property.data_type,
            default: property.default,
            persistent: property.persistent,
            database_length: property.database_length,
        });
        let object = UserDataObject {
            name: listed.name.to_owned(),
            domain: domain.unwrap_or(Domain::Cell),
            properties: properties.collect(),
        };
        (object, declared)
    }

    /// The definitions reached from the lists so far, by family, kind and name.
    pub(super) fn used(&self) -> BTreeSet<(Family, Kind, &'l str)> {
        self.used.clone()
    }

    /// Compiles the definitions that no list reaches, to find their mistakes, and notes that they are not used. An
    /// error that only such a definition reaches is a warning.
    pub(super) fn compile_unlisted(&mut self) {
        let used = std::mem::take(&mut self.used);
        let idle = self.reading.findings.apart();
        let of_listed = std::mem::replace(&mut self.reading.findings, idle);
        for (family, kind, name, definition) in self.library.all() {
            if used.contains(&(family, kind, name)) {
                continue;
            }
            let (_, members) = self.members(family, definition);
            self.one_identifier(&members.properties);
            if !self.library.is_listed_component(kind, name) {
                self.report(unused(kind, name, definition.span, self.reading.dialect));
            }
        }
        let of_unlisted = std::mem::replace(&mut self.reading.findings, of_listed);
        self.reading.findings.extend_idle(of_unlisted);
    }

    /// The members of a definition and its lineage; empty once the budget is used up.
    fn members(&mut self, family: Family, definition: &'l Definition<'l>) -> (Lineage<'l>, Members<'l>) {
        let dialect = self.reading.dialect;
        let none = (Lineage::none(self.library, family, dialect), Members::default());
        if self.budget == 0 {
            return none;
        }
        let findings = &mut self.reading.findings;
        let lineage = Lineage::of(self.library, family, dialect, definition, findings);
        let members = Members::merge(&lineage, dialect, findings);
        self.used
            .extend(lineage.used().map(|(kind, name)| (family, kind, name)));
        if let Some(left) = self.budget.checked_sub(lineage.steps().len() + members.cost()) {
            self.budget = left;
            return (lineage, members);
        }
        self.budget = 0;
        let message = "from here on, all types together have too many members";
        let finding = Finding::new(Rule::TypeTooLarge, definition.span, message)
            .help("inherit less, or omit the sizes of sequences");
        self.report(finding);
        none
    }

    /// The levels of detail: a repeated label modifies its level, a new label adds one.
    fn levels(&mut self, declared: &[&DeclaredLevel]) -> Vec<LodLevel> {
        let mut levels: Vec<LodLevel> = Vec::new();
        for DeclaredLevel { level, span } in declared {
            match levels.iter().position(|known| known.label == level.label) {
                Some(at) => levels[at] = level.clone(),
                None if levels.len() == MAX_LEVELS => {
                    let message = format!("`{}` exceeds the maximum of {MAX_LEVELS} levels of detail", level.label);
                    let finding = Finding::new(Rule::LevelCount, *span, message).help("merge two levels");
                    self.report(finding);
                }
                None => levels.push(level.clone()),
            }
        }
        levels.sort_by(|a, b| a.radius.total_cmp(&b.radius));
        levels
    }

    /// The position of the level that a property names.
    fn level(&mut self, label: Named<'_>, levels: &[LodLevel]) -> Option<u8> {
        if let Some(position) = levels.iter().position(|level| level.label == label.name) {
            return u8::try_from(position).ok();
        }
        let is_band = self.reading.dialect == Dialect::KBEngine && BANDS.contains(&label.name);
        if is_band && levels.is_empty() {
            let message = format!(
                "the level `{}` has no distance, so changes are sent at any distance",
                label.name
            );
            let finding = Finding::new(Rule::LevelWithoutEffect, label.span, message)
                .help("declare `<DetailLevels>` in the entity, or remove the `<DetailLevel>`");
            self.report(finding);
            return None;
        }
        let severity = match self.reading.dialect {
            Dialect::BigWorld => Severity::Error,
            Dialect::KBEngine => Severity::Warning,
        };
        let finding = Finding::new(
            Rule::UnknownLevel,
            label.span,
            format!("there is no level of detail `{}`", label.name),
        )
        .severity(severity);
        let labels = levels.iter().map(|level| level.label.as_str());
        let meant = self.reading.nearest(label.name, labels);
        self.report(match meant {
            Some(meant) => finding.meant(meant),
            None => finding.help(
                "declare it in the entity: `<LoDLevels> <level> metres <label> NAME </label> </level> </LoDLevels>`",
            ),
        });
        None
    }

    /// The parts of the type: as its list or its definition declares; else by the scripts that exist; else by what its
    /// members need.
    fn parts(
        &self,
        listed: &Listed<'_>,
        definition: &Definition<'_>,
        members: &Members<'_>,
        volatile: &Option<Volatile>,
    ) -> Parts {
        let [base, cell, client] = match definition.parts {
            Some(parts) => parts.map(Some),
            None => [None; 3],
        };
        let scripted = |part: usize| {
            let scripts = &self.library.scripts[part];
            (!scripts.is_empty()).then(|| scripts.contains(listed.name))
        };
        let has_scripts = self.library.scripts[0].len() + self.library.scripts[1].len() > 0;
        let server_part = |part: usize| has_scripts.then(|| self.library.scripts[part].contains(listed.name));
        let properties = || members.properties.iter().map(|(property, _)| property);
        let is_in_space = volatile.is_some()
            || !members.cell_methods.is_empty()
            || properties().any(|property| property.distribution.on_cell());
        let is_seen = volatile.is_some()
            || !members.client_methods.is_empty()
            || properties().any(|property| property.distribution.to_clients());
        let has_base_members =
            !members.base_methods.is_empty() || properties().any(|property| property.distribution.on_base());
        let client_unless_said = match self.reading.dialect {
            Dialect::BigWorld => is_seen,
            // Interfaces give client members to types without a client part, so members prove nothing here.
            Dialect::KBEngine => is_seen && !self.library.has_entity_list,
        };
        Parts {
            base: listed.base.or(base).or(server_part(0)).unwrap_or(true),
            cell: listed
                .cell
                .or(cell)
                .or(server_part(1))
                .unwrap_or(is_in_space || !has_base_members),
            client: listed.client.or(client).or(scripted(2)).unwrap_or(client_unless_said),
        }
    }

    /// Reports members that cannot be reached because their part is missing.
    fn parts_have_members(&mut self, parts: &Parts, listed: &Listed<'_>, members: &Members<'_>) {
        let on = |is_there: fn(&Property) -> bool| {
            members
                .properties
                .iter()
                .find(|(property, _)| is_there(property))
                .map(|(property, span)| (&property.name, span))
        };
        let first = |methods: &Merged<Method>| methods.iter().next().map(|(method, span)| (method.name.clone(), span));
        let base = on(|property| property.distribution.on_base()).map(|(name, span)| (name.clone(), span));
        let cell = on(|property| property.distribution.on_cell()).map(|(name, span)| (name.clone(), span));
        let missing = [
            (parts.base, "base", base.or_else(|| first(&members.base_methods))),
            (parts.cell, "cell", cell.or_else(|| first(&members.cell_methods))),
            (
                parts.client || self.reading.dialect == Dialect::KBEngine,
                "client",
                first(&members.client_methods),
            ),
        ];
        for (has_part, part, member) in missing {
            if let (false, Some((name, span))) = (has_part, member) {
                let message = format!("`{}` has no {part} part, but `{name}` belongs to it", listed.name);
                let finding = Finding::new(Rule::PartMismatch, span, message)
                    .help(format!("remove the member, or give the type a {part} part"))
                    .related(listed.span, "the type");
                self.report(finding);
            }
        }
    }

    fn one_identifier(&mut self, properties: &Merged<Property>) {
        let mut identifiers = properties.iter().filter(|(property, _)| property.identifier);
        let Some((first, first_span)) = identifiers.next() else {
            return;
        };
        for (second, span) in identifiers {
            let message = format!(
                "`{}` is an identifier, but `{}` already is one",
                second.name, first.name
            );
            let finding = Finding::new(Rule::SecondIdentifier, span, message)
                .help("use a unique index instead: `<Indexed> true <Unique> true </Unique> </Indexed>`")
                .related(first_span, "the first one");
            self.report(finding);
        }
    }

    fn fixed_ids_differ(&mut self, members: &Members<'_>) {
        let properties = members
            .properties
            .iter()
            .map(|(property, span)| (property.protocol_id, &property.name, span));
        self.ids_differ(properties);
        let parts = [&members.base_methods, &members.cell_methods, &members.client_methods];
        let methods = parts.into_iter().flat_map(|methods| methods.iter());
        self.ids_differ(methods.map(|(method, span)| (method.protocol_id, &method.name, span)));
    }

    fn ids_differ<'m>(&mut self, members: impl Iterator<Item = (Option<u16>, &'m String, Span)>) {
        let mut known: BTreeMap<u16, (&String, Span)> = BTreeMap::new();
        for (id, name, span) in members {
            let Some(id) = id else { continue };
            if let Some((first, first_span)) = known.get(&id)
                && *first_span != span
            {
                let message = format!("`{name}` and `{first}` both have the fixed id {id}");
                let finding = Finding::new(Rule::ProtocolId, span, message)
                    .help("give each its own `<Utype>`")
                    .related(*first_span, "the other one");
                self.report(finding);
            } else {
                known.insert(id, (name, span));
            }
        }
    }
}

/// Settings that an entity has once; a later definition takes precedence.
#[derive(Default)]
struct Settings<'d> {
    volatile: Option<Volatile>,
    levels: Vec<&'d DeclaredLevel>,
    temp_properties: BTreeSet<&'d str>,
    detailed_position: Option<crate::schema::DetailedPosition>,
    appeal_radius: Option<f32>,
    manual_aoi: Option<bool>,
    persistent: Option<bool>,
    client_name: Option<Named<'d>>,
}

impl<'d> Settings<'d> {
    fn of(definitions: &[&'d Definition<'d>]) -> Self {
        let mut settings = Self::default();
        for definition in definitions {
            settings.volatile = definition.volatile.or(settings.volatile);
            settings.levels.extend(&definition.levels);
            settings
                .temp_properties
                .extend(definition.temp_properties.iter().copied());
            settings.detailed_position = definition.detailed_position.or(settings.detailed_position);
            settings.appeal_radius = definition.appeal_radius.or(settings.appeal_radius);
            settings.manual_aoi = definition.manual_aoi.or(settings.manual_aoi);
            settings.persistent = definition.persistent.or(settings.persistent);
            settings.client_name = definition.client_name.or(settings.client_name);
        }
        settings
    }
}

/// The note that no list reaches a definition, and how to list it.
fn unused(kind: Kind, name: &str, span: Span, dialect: Dialect) -> Finding {
    let implements = match dialect {
        Dialect::BigWorld => "Implements",
        Dialect::KBEngine => "Interfaces",
    };
    let list = |file: &str| {
        (
            format!("`{name}` is not listed"),
            format!("add `<{name}/>` to `{file}`"),
        )
    };
    let (message, help) = match kind {
        Kind::Entity => list("entities.xml"),
        Kind::Service => list("services.xml"),
        Kind::UserDataObject => list("user_data_objects.xml"),
        Kind::Interface => (
            format!("nothing implements `{name}`"),
            format!("name it in the `<{implements}>` of a definition"),
        ),
        Kind::Component => (
            format!("nothing has the component `{name}`"),
            "name it in the `<Components>` of an entity".to_owned(),
        ),
    };
    Finding::new(Rule::Unlisted, span, message).help(format!("{help}, or remove the file"))
}
