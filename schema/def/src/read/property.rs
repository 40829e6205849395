//! Properties: type, distribution, and other tags.

use super::{Dialect, Named, Reading, Typed, reserved::Holder};
use crate::{
    data_type::DataType,
    diagnostic::{Finding, Rule, Severity},
    grammar::{self, FLAGS},
    names::Names,
    schema::{Distribution, Index, Property},
    source::{Section, Span},
};

/// A property declaration.
#[derive(Clone, Debug)]
pub(crate) struct DeclaredProperty<'s> {
    pub(crate) name: &'s str,
    pub(crate) span: Span,
    /// Without its name, which depends on the owner of the property. `None` if the declaration is wrong, which has been
    /// reported.
    pub(crate) property: Option<Property>,
    /// The label of its level of detail.
    pub(crate) level: Option<Named<'s>>,
}

impl<'s> Reading<'s> {
    /// The properties of a section, without those that are redeclared in it.
    pub(crate) fn properties(&mut self, section: Section<'s>, has_flags: bool) -> Vec<DeclaredProperty<'s>> {
        self.attributes_mean_nothing(section);
        self.text_means_nothing(section);
        let mut properties: Vec<DeclaredProperty<'s>> = Vec::with_capacity(section.children().count());
        let mut names = Names::with_capacity(properties.capacity());
        for child in section.children() {
            if child.name.contains(':') {
                self.unknown_tag(child, []);
                continue;
            }
            let property = self.property(child, has_flags);
            let Err(at) = names.insert(child.name, properties.len()) else {
                properties.push(property);
                continue;
            };
            self.declared_again(&properties[at], &property);
            if self.dialect == Dialect::BigWorld {
                properties[at] = property;
            }
        }
        properties
    }

    fn declared_again(&mut self, first: &DeclaredProperty<'s>, again: &DeclaredProperty<'s>) {
        let name = again.name;
        let message = match self.dialect {
            Dialect::BigWorld => format!("`{name}` is declared twice; this declaration replaces the first"),
            Dialect::KBEngine => format!("`{name}` is declared twice; the first declaration takes effect"),
        };
        let finding = Finding::new(Rule::RepeatedProperty, again.span, message)
            .help("remove one of the two")
            .related(first.span, "declared here first");
        self.report(finding);
    }

    fn property(&mut self, section: Section<'s>, has_flags: bool) -> DeclaredProperty<'s> {
        let (name, span) = (section.name, section.name_span());
        let mut declared = DeclaredProperty {
            name,
            span,
            property: None,
            level: None,
        };
        let is_identifier = self.is_identifier(section);
        if self.bare_type(section).is_none() {
            self.text_means_nothing(section);
        }
        let content = if has_flags {
            &grammar::PROPERTY
        } else {
            &grammar::OBJECT_PROPERTY
        };
        let fields = self.fields(section, content);
        let typed = match fields.get("Type") {
            Some(section) => self.declared_type(section),
            None => {
                self.no_type(section, "");
                None
            }
        };
        let (distribution, holder) = if has_flags {
            let declared = self.distribution(section, fields.get("Flags"));
            (declared, Holder::Entity(declared))
        } else {
            (Some(Distribution::CellPrivate), Holder::Object)
        };
        let is_named = self.is_free(section, holder) && is_identifier;
        // Each check runs on what is known, so that no mistake hides another.
        let mut property = Property::new(String::new(), DataType::Int8, Distribution::CellPrivate);
        property.persistent = self.boolean(fields.get("Persistent"), false);
        property.editable = self.boolean(fields.get("Editable"), false);
        property.latest_only = self.boolean(fields.get("SendLatestOnly"), false);
        property.reliable = self.boolean(fields.get("IsReliable"), true);
        property.protocol_id = self.protocol_id(fields.get("Utype"));
        declared.level = fields.get("DetailLevel").and_then(|level| self.text(level));
        let (data_type, own) = typed.map(Typed::with_value).unzip();
        property.header_size = self.property_header(&fields, data_type.as_ref(), distribution);
        let default = match (fields.get("Default"), &data_type, own) {
            (Some(section), Some(data_type), Some(own)) => self.default(data_type, &own, section),
            (_, _, own) => own,
        };
        self.storage(section, &fields, data_type.as_ref(), &mut property);
        self.history(section, declared.level, distribution, &property);
        let reaches_others = distribution.is_none_or(Distribution::to_other_clients);
        declared.level = declared.level.filter(|_| reaches_others);
        if let (Some(data_type), Some(true)) = (&data_type, distribution.map(Distribution::to_clients)) {
            self.travels_to_clients(&std::iter::once(data_type), span, section.name);
        }
        if let (Some(data_type), Some(default), Some(distribution), true) = (data_type, default, distribution, is_named)
        {
            let mut property = Property {
                data_type,
                default,
                distribution,
                ..property
            };
            property.account = self.account(section, &fields, &property);
            declared.property = Some(self.personal(section, &fields, property));
        }
        declared
    }

    /// The header size that orders the property's client number, if clients see it and its size varies.
    fn property_header(
        &mut self,
        fields: &super::Fields<'s>,
        data_type: Option<&DataType>,
        distribution: Option<Distribution>,
    ) -> u8 {
        let varies = data_type.is_none_or(|data_type| data_type.stream_size().is_none());
        let is_seen = distribution.is_none_or(Distribution::to_clients);
        self.header_size(fields.get("VariableLengthHeaderSize"), varies && is_seen)
    }

    fn distribution(&mut self, property: Section<'s>, flags: Option<Section<'s>>) -> Option<Distribution> {
        let known = || Distribution::ALL.into_iter().map(Distribution::flag);
        let Some(flags) = flags else {
            let message = format!("`{}` has no flags", property.name);
            let finding = Finding::new(Rule::MissingFlags, property.name_span(), message)
                .help("add `<Flags> FLAG </Flags>`: BASE, CELL_PRIVATE, CELL_PUBLIC, OWN_CLIENT, ALL_CLIENTS, …");
            self.report(finding);
            return None;
        };
        let named = self.text(flags)?;
        let is_word = |word: &str| word.eq_ignore_ascii_case(named.name);
        let Some(flag) = FLAGS.iter().find(|flag| is_word(flag.name)) else {
            let finding = Finding::new(
                Rule::UnknownFlags,
                named.span,
                format!("there are no flags `{}`", named.name),
            );
            let meant = self.nearest(named.name, known());
            self.report(match meant {
                Some(meant) => finding.meant(meant),
                None => finding.help(format!("write one of {}", known().collect::<Vec<_>>().join(", "))),
            });
            return None;
        };
        let distribution = flag.distribution;
        if !flag.home.accepts(self.dialect) {
            let message = format!("`{}` is KBEngine's word for `{distribution}`", named.name);
            let finding = Finding::new(Rule::OtherDialect, named.span, message).write(distribution.flag());
            self.report(finding);
        } else if self.dialect == Dialect::BigWorld && named.name != distribution.flag() {
            let message = format!("`{}` is read as `{distribution}`", named.name);
            let finding = Finding::new(Rule::FlagCase, named.span, message).write(distribution.flag());
            self.report(finding);
        }
        Some(distribution)
    }

    /// How the property is stored (D8). Tags that depend on the type are not checked if the type is wrong.
    fn storage(
        &mut self,
        section: Section<'s>,
        fields: &super::Fields<'s>,
        data_type: Option<&DataType>,
        property: &mut Property,
    ) {
        if property.persistent && data_type == Some(&DataType::Mailbox) {
            let span = fields
                .get("Persistent")
                .map_or(section.name_span(), |persistent| persistent.name_span());
            let message = format!("`{}` is a mailbox and is not stored", section.name);
            let finding = Finding::new(Rule::MailboxPersistent, span, message)
                .help("store a database id, and look the entity up by it");
            self.report(finding);
            property.persistent = false;
        }
        if let Some(length) = fields.get("DatabaseLength") {
            property.database_length = self.integer(length, Rule::Number, 1, u32::MAX);
            if let Some(data_type) = data_type.filter(|data_type| !has_database_length(data_type)) {
                let message = format!("a value of type {data_type} has no database length");
                let finding = Finding::new(Rule::DatabaseLength, length.name_span(), message).help("remove it");
                self.report(finding);
                property.database_length = None;
            }
        }
        property.identifier = self.boolean(fields.get("Identifier"), false);
        let index = self.declared_index(fields);
        property.indexed = index.map_or(Index::None, |(index, _)| index);
        if property.identifier {
            if let Some((Index::None | Index::Plain, span)) = index {
                let finding = Finding::new(Rule::IdentifierIndex, span, "an identifier needs a unique index")
                    .help("remove this, or write `<Indexed> true <Unique> true </Unique> </Indexed>`");
                self.report(finding);
            }
            property.indexed = Index::Unique;
        }
        self.index_rules(section, fields, data_type, property);
    }

    /// The index declared in the form of either dialect, and its place.
    fn declared_index(&mut self, fields: &super::Fields<'s>) -> Option<(Index, Span)> {
        if let Some(indexed) = fields.get("Indexed") {
            self.attributes_mean_nothing(indexed);
            let unique = indexed.child("Unique");
            for child in indexed.children().filter(|child| child.name != "Unique") {
                self.unknown_tag(child, ["Unique"]);
            }
            let span = if !indexed.has_text() {
                indexed.name_span()
            } else {
                indexed.text_span()
            };
            let is_indexed = super::as_boolean(indexed.text()).unwrap_or_else(|| {
                let message = format!("`{}` is neither true nor false; it is read as false", indexed.text());
                self.report(Finding::new(Rule::Boolean, span, message).help("write `true` or `false`"));
                false
            });
            let is_unique = self.boolean(unique, fields.get("Identifier").is_some());
            let index = match (is_indexed, is_unique) {
                (false, _) => Index::None,
                (true, false) => Index::Plain,
                (true, true) => Index::Unique,
            };
            return Some((index, span));
        }
        let named = self.text(fields.get("Index")?)?;
        match named.name.to_ascii_uppercase().as_str() {
            "UNIQUE" => Some((Index::Unique, named.span)),
            "INDEX" => Some((Index::Plain, named.span)),
            _ => {
                let message = format!("`{}` is not a kind of index", named.name);
                let finding = Finding::new(Rule::IndexType, named.span, message).help("write `UNIQUE` or `INDEX`");
                self.report(finding);
                None
            }
        }
    }

    fn index_rules(
        &mut self,
        section: Section<'s>,
        fields: &super::Fields<'s>,
        data_type: Option<&DataType>,
        property: &Property,
    ) {
        if property.indexed == Index::None {
            return;
        }
        let tag = ["Identifier", "Indexed", "Index"]
            .into_iter()
            .find_map(|tag| fields.get(tag));
        let span = tag.map_or(section.name_span(), |tag| tag.name_span());
        let name = section.name;
        if !property.persistent {
            let message = format!("`{name}` is indexed but not persistent");
            let finding = Finding::new(Rule::IndexNotPersistent, span, message)
                .help("add `<Persistent> true </Persistent>`, or remove the index");
            self.report(finding);
        }
        let Some(data_type) = data_type else { return };
        if !data_type.can_be_indexed() {
            let message = format!("`{name}` is of type {data_type}, which cannot be indexed");
            let finding = Finding::new(Rule::IndexType, span, message)
                .help("index a number, a STRING, a UNICODE_STRING or a BLOB");
            self.report(finding);
        } else if property.identifier && !matches!(data_type, DataType::String | DataType::Unicode | DataType::Blob) {
            let message = format!("`{name}` is of type {data_type}, which cannot be an identifier");
            let finding = Finding::new(Rule::IdentifierType, span, message)
                .help("make it a STRING, a UNICODE_STRING or a BLOB, or use a unique index instead");
            self.report(finding);
        }
    }

    /// How changes reach observers.
    fn history(
        &mut self,
        section: Section<'s>,
        level: Option<Named<'_>>,
        distribution: Option<Distribution>,
        property: &Property,
    ) {
        if let (Some(level), Some(false)) = (level, distribution.map(Distribution::to_other_clients)) {
            let message = format!("`{}` is not sent to other clients", section.name);
            let finding = Finding::new(Rule::LevelWithoutEffect, level.span, message)
                .help("remove the `<DetailLevel>`, or use ALL_CLIENTS or OTHER_CLIENTS");
            self.report(finding);
        }
        if !property.reliable && !property.latest_only {
            let message = format!("`{}` is unreliable, and each of its changes is sent once", section.name);
            let finding = Finding::new(Rule::UnreliableHistory, section.name_span(), message)
                .help("add `<SendLatestOnly> true </SendLatestOnly>`");
            self.report(finding);
        }
    }

    /// The id fixed by `<Utype>`.
    pub(super) fn protocol_id(&mut self, section: Option<Section<'s>>) -> Option<u16> {
        let id = self.integer(section?, Rule::ProtocolId, 0, u16::MAX.into())?;
        u16::try_from(id).ok()
    }

    /// Reports types that should not be sent between client and server.
    pub(super) fn travels_to_clients<'t>(
        &mut self,
        types: &(impl Iterator<Item = &'t DataType> + Clone),
        span: Span,
        name: &str,
    ) {
        let has = |wanted: fn(&DataType) -> bool| {
            let mut types = types.clone();
            types.any(|data_type| data_type.any(&mut |part| wanted(part)))
        };
        if has(|part| matches!(part, DataType::Python(_))) {
            let message = format!("`{name}` sends an opaque value between client and server");
            let finding = Finding::new(Rule::ClientPython, span, message)
                .help("declare its content: a FIXED_DICT, an ARRAY, a STRING");
            self.report(finding);
        }
        if has(|part| matches!(part, DataType::Mailbox)) {
            let message = format!("`{name}` sends a mailbox between client and server");
            let severity = match self.dialect {
                Dialect::BigWorld => Severity::Error,
                Dialect::KBEngine => Severity::Warning,
            };
            let finding = Finding::new(Rule::ClientMailbox, span, message)
                .severity(severity)
                .help("send an entity id");
            self.report(finding);
        }
    }
}

/// Whether a database reserves a length for values of the type; for a sequence it is that of the elements.
fn has_database_length(data_type: &DataType) -> bool {
    match data_type {
        DataType::String | DataType::Unicode | DataType::Blob | DataType::Python(_) | DataType::UserType(_) => true,
        DataType::Array(sequence) | DataType::Tuple(sequence) => has_database_length(&sequence.of),
        _ => false,
    }
}
