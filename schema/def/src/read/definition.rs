//! One definition file.

use std::collections::BTreeMap;

use super::{DeclaredLevel, DeclaredMethod, DeclaredProperty, Dialect, Family, Kind, MethodPart, Named, Reading};
use crate::{
    diagnostic::{Finding, Rule, Severity},
    grammar,
    schema::{DetailedPosition, Domain, Volatile},
    source::{Section, Span},
};

/// The declarations of one file, before inheritance.
#[derive(Debug)]
pub(crate) struct Definition<'s> {
    pub(crate) kind: Kind,
    /// The name of its file.
    pub(crate) name: &'s str,
    /// The start of the file.
    pub(crate) span: Span,
    pub(crate) parent: Option<Named<'s>>,
    pub(crate) interfaces: Vec<Named<'s>>,
    pub(crate) components: Vec<ComponentUse<'s>>,
    pub(crate) properties: Vec<DeclaredProperty<'s>>,
    pub(crate) base_methods: Vec<DeclaredMethod<'s>>,
    pub(crate) cell_methods: Vec<DeclaredMethod<'s>>,
    pub(crate) client_methods: Vec<DeclaredMethod<'s>>,
    /// The methods of a service.
    pub(crate) methods: Vec<DeclaredMethod<'s>>,
    pub(crate) volatile: Option<Volatile>,
    pub(crate) levels: Vec<DeclaredLevel>,
    pub(crate) temp_properties: Vec<&'s str>,
    pub(crate) detailed_position: Option<DetailedPosition>,
    pub(crate) appeal_radius: Option<f32>,
    pub(crate) manual_aoi: Option<bool>,
    pub(crate) persistent: Option<bool>,
    pub(crate) client_name: Option<Named<'s>>,
    /// The parts in `<Distribution>`: base, cell, client.
    pub(crate) parts: Option<[bool; 3]>,
    /// The domain of a user data object.
    pub(crate) domain: Option<Domain>,
}

/// A component of an entity.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ComponentUse<'s> {
    /// Its name in the entity.
    pub(crate) name: Named<'s>,
    pub(crate) definition: Named<'s>,
    /// `false` makes all its members non-persistent.
    pub(crate) persistent: bool,
}

impl<'s> Definition<'s> {
    fn empty(kind: Kind, name: &'s str, span: Span) -> Self {
        Self {
            kind,
            name,
            span,
            parent: None,
            interfaces: Vec::new(),
            components: Vec::new(),
            properties: Vec::new(),
            base_methods: Vec::new(),
            cell_methods: Vec::new(),
            client_methods: Vec::new(),
            methods: Vec::new(),
            volatile: None,
            levels: Vec::new(),
            temp_properties: Vec::new(),
            detailed_position: None,
            appeal_radius: None,
            manual_aoi: None,
            persistent: None,
            client_name: None,
            parts: None,
            domain: None,
        }
    }
}

impl<'s> Reading<'s> {
    /// Reads the root of a definition file.
    pub(crate) fn definition(
        &mut self,
        (family, kind): (Family, Kind),
        name: &'s str,
        root: Section<'s>,
    ) -> Definition<'s> {
        let mut definition = Definition::empty(kind, name, root.name_span().start_of());
        self.text_means_nothing(root);
        let tags = match family {
            Family::Entity => &grammar::DEFINITION,
            Family::Service => &grammar::SERVICE,
            Family::Object => &grammar::OBJECT,
        };
        let fields = self.fields(root, tags);
        self.ancestors(&mut definition, &fields);
        if let Some(properties) = fields.get("Properties") {
            definition.properties = self.properties(properties, family != Family::Object);
        }
        let mut methods = |tag, part| {
            fields
                .get(tag)
                .map_or(Vec::new(), |section| self.methods(section, part))
        };
        definition.base_methods = methods("BaseMethods", MethodPart::Base);
        definition.cell_methods = methods("CellMethods", MethodPart::Cell);
        definition.client_methods = methods("ClientMethods", MethodPart::Client);
        definition.methods = methods("Methods", MethodPart::Service);
        self.seen_from_a_distance(&mut definition, &fields);
        if let Some(section) = fields.get("TempProperties") {
            self.attributes_mean_nothing(section);
            self.text_means_nothing(section);
            for child in section.children() {
                self.text_means_nothing(child);
                self.children_mean_nothing(child);
                if self.is_identifier(child) {
                    definition.temp_properties.push(child.name);
                }
            }
        }
        definition.persistent = self.declared_boolean(fields.get("Persistent"));
        definition.client_name = fields.get("ClientName").and_then(|name| self.text(name));
        if let Some(section) = fields.get("Distribution") {
            self.text_means_nothing(section);
            let parts = self.fields(section, &grammar::DISTRIBUTION);
            definition.parts = Some(["Base", "Cell", "Client"].map(|part| self.boolean(parts.get(part), false)));
        }
        if kind == Kind::UserDataObject {
            definition.domain = self.domain(root, fields.get("Domain"));
        }
        definition
    }

    /// Parent, interfaces and components.
    fn ancestors(&mut self, definition: &mut Definition<'s>, fields: &super::Fields<'s>) {
        if let Some(parent) = fields.get("Parent").filter(|parent| !parent.is_empty()) {
            if definition.kind == Kind::Interface {
                let finding = Finding::new(
                    Rule::InterfaceParent,
                    parent.name_span(),
                    "the parent of an interface is not read",
                )
                .help("implement the other interface instead");
                self.report(finding);
            } else {
                definition.parent = self.text(parent);
            }
        }
        for tag in ["Implements", "Interfaces"] {
            if let Some(section) = fields.get(tag) {
                self.interfaces(section, definition);
            }
        }
        if let Some(section) = fields.get("Components") {
            self.attributes_mean_nothing(section);
            self.text_means_nothing(section);
            definition.components = section
                .children()
                .filter_map(|child| self.component_use(child))
                .collect();
        }
    }

    fn interfaces(&mut self, section: Section<'s>, definition: &mut Definition<'s>) {
        self.attributes_mean_nothing(section);
        self.text_means_nothing(section);
        let of_this_dialect = match self.dialect {
            Dialect::BigWorld => "Implements",
            Dialect::KBEngine => "Interfaces",
        };
        if section.name != of_this_dialect && section.has_children() {
            let message = format!("{} does not read `<{}>`", self.dialect.name(), section.name);
            let finding = Finding::new(Rule::OtherDialect, section.name_span(), message).write_tag(of_this_dialect);
            self.report(finding);
        }
        let mut seen: BTreeMap<&str, Span> = BTreeMap::new();
        for child in section.children() {
            if section.name == "Interfaces" && grammar::INTERFACES.tag(child.name).is_none() {
                let message = format!("`<{}>` is read as `<Interface>`", child.name);
                let finding = Finding::new(Rule::TagCase, child.name_span(), message).write_tag("Interface");
                self.report(finding);
            }
            let Some(named) = self.text(child) else { continue };
            if let Some(&first) = seen.get(named.name) {
                let message = format!("`{}` is implemented twice", named.name);
                let finding = Finding::new(Rule::RepeatedInterface, named.span, message)
                    .help("remove one of the two")
                    .related(first, "first implemented here");
                self.report(finding);
                continue;
            }
            seen.insert(named.name, named.span);
            definition.interfaces.push(named);
        }
    }

    /// BigWorld: `<Type> <name> alias </name> </Type>`. KBEngine: `<name> <Type> Type </Type> </name>`.
    fn component_use(&mut self, section: Section<'s>) -> Option<ComponentUse<'s>> {
        self.text_means_nothing(section);
        let own = Named {
            name: section.name,
            span: section.name_span(),
        };
        let is_named = self.is_identifier(section);
        let used = if self.dialect == Dialect::BigWorld && section.child("Type").is_none() {
            let fields = self.fields(section, &grammar::COMPONENT_ALIAS);
            let name = match fields.get("name") {
                Some(name) => self.text(name)?,
                None => own,
            };
            ComponentUse {
                name,
                definition: own,
                persistent: true,
            }
        } else {
            let fields = self.fields(section, &grammar::COMPONENT_TYPE);
            let Some(definition) = fields.get("Type") else {
                let message = format!("the component `{}` has no type", section.name);
                let finding = Finding::new(Rule::MissingComponent, section.name_span(), message)
                    .help("add `<Type> NAME </Type>`, the name of its definition");
                self.report(finding);
                return None;
            };
            let definition = self.text(definition)?;
            let persistent = self.boolean(fields.get("Persistent"), true);
            ComponentUse {
                name: own,
                definition,
                persistent,
            }
        };
        is_named.then_some(used)
    }

    fn seen_from_a_distance(&mut self, definition: &mut Definition<'s>, fields: &super::Fields<'s>) {
        definition.volatile = fields.get("Volatile").map(|section| self.volatile(section));
        for tag in ["LoDLevels", "LODLevels"] {
            if let Some(section) = fields.get(tag) {
                definition.levels.extend(self.levels(section));
            }
        }
        if let Some(section) = fields.get("DetailLevels") {
            definition.levels.extend(self.bands(section));
        }
        definition.detailed_position = fields
            .get("DetailedPosition")
            .map(|section| self.detailed_position(section));
        if self.boolean(fields.get("ShouldSendDetailedVolatilePosition"), false) {
            definition
                .detailed_position
                .get_or_insert(DetailedPosition { latest_only: false });
        }
        definition.appeal_radius = fields
            .get("AppealRadius")
            .and_then(|section| self.distance(section, 0.0));
        let manual = fields.get("IsManualAoI").or(fields.get("IsManualAOI"));
        definition.manual_aoi = self.declared_boolean(manual);
    }

    fn domain(&mut self, root: Section<'s>, section: Option<Section<'s>>) -> Option<Domain> {
        let Some(section) = section else {
            let message = "the user data object has no domain; it is created on cells";
            let finding = Finding::new(Rule::Domain, root.name_span(), message)
                .severity(Severity::Warning)
                .help("add `<Domain> CELL </Domain>`, or BASE, or CLIENT");
            self.report(finding);
            return None;
        };
        let named = self.text(section)?;
        match named.name.to_ascii_uppercase().as_str() {
            "CELL" => Some(Domain::Cell),
            "BASE" => Some(Domain::Base),
            "CLIENT" => Some(Domain::Client),
            other => {
                let finding = Finding::new(Rule::Domain, named.span, format!("there is no domain `{}`", named.name));
                let meant = self.nearest(other, ["CELL", "BASE", "CLIENT"]);
                self.report(match meant {
                    Some(meant) => finding.meant(meant),
                    None => finding.help("write CELL, BASE or CLIENT"),
                });
                None
            }
        }
    }
}
