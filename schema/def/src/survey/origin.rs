//! Converts places of declarations to origins.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    AliasOrigin, Ancestor, DefinitionOrigin, MemberOrigin, MemberOrigins, Origins, TypeOrigin, comment::documentation,
    texts::Texts,
};
use crate::{
    compile::Declared,
    grammar::Kind,
    names::Name,
    read::{Definition, Typed},
    size::Size,
    source::{Section, Span},
};

/// Maximum characters of a type's text; an inline dictionary can have any length.
const MAX_WRITTEN: usize = 200;

impl Origins {
    /// The origins of all declarations.
    pub(super) fn of(texts: &Texts<'_>) -> Self {
        let world = texts.world;
        let listed = |declared: &[Declared<'_>]| declared.iter().map(|one| texts.type_origin(one)).collect();
        Self {
            types: listed(&world.declared.types),
            services: listed(&world.declared.services),
            objects: listed(&world.declared.objects),
            aliases: texts.aliases(),
            definitions: texts.definitions(),
        }
    }
}

impl Texts<'_> {
    fn type_origin(&self, declared: &Declared<'_>) -> TypeOrigin {
        let own = declared.own;
        let span = own.map_or(declared.listed, |definition| definition.span);
        let members = |spans: &[Span], has_args: bool| -> Vec<MemberOrigin> {
            spans
                .iter()
                .map(|span| self.member(declared, *span, has_args))
                .collect()
        };
        let is_own = |definition: &&Definition<'_>| own.is_none_or(|own| !std::ptr::eq(own, *definition));
        let mut ancestors: Vec<Ancestor> = Vec::new();
        for ancestor in declared.definitions().filter(is_own).map(ancestor) {
            // A type can have several components of one definition.
            if !ancestors.contains(&ancestor) {
                ancestors.push(ancestor);
            }
        }
        TypeOrigin {
            place: self.place(span),
            documentation: self.documentation_of_file(span),
            ancestors,
            members: MemberOrigins {
                properties: members(&declared.properties, false),
                base_methods: members(&declared.base_methods, true),
                cell_methods: members(&declared.cell_methods, true),
                client_methods: members(&declared.client_methods, true),
                methods: members(&declared.methods, true),
            },
        }
    }

    fn member(&self, declared: &Declared<'_>, span: Span, has_args: bool) -> MemberOrigin {
        let from = declared.definition_at(span).map(ancestor);
        let section = self.section(span);
        let written = match (section, has_args) {
            (None, _) => Vec::new(),
            (Some(method), true) => arguments(method).into_iter().map(written).collect(),
            (Some(property), false) => property.child("Type").map(written).into_iter().collect(),
        };
        MemberOrigin {
            place: self.place(span),
            from: from.unwrap_or(Ancestor {
                kind: super::AncestorKind::Type,
                name: String::new(),
            }),
            documentation: self.documentation(span),
            written,
        }
    }

    /// The comment above the root element of a file.
    fn documentation_of_file(&self, span: Span) -> Option<String> {
        let root = self.root(span.file)?;
        self.documentation(root.name_span())
    }

    /// The documentation of the element whose name is at this place.
    fn documentation(&self, name: Span) -> Option<String> {
        documentation(self.document(name.file)?, name.start)
    }

    /// The aliases, in declaration order.
    fn aliases(&self) -> Vec<AliasOrigin> {
        let known = &self.world.reading.aliases;
        let mut seen = BTreeSet::new();
        let mut aliases = Vec::new();
        for section in self.alias_sections() {
            let Some(Some(typed)) = known.get(&Name(section.name)) else {
                continue;
            };
            if seen.insert(section.name) {
                aliases.push(self.alias(section, typed.clone()));
            }
        }
        aliases
    }

    fn alias(&self, section: Section<'_>, typed: Typed) -> AliasOrigin {
        let span = section.name_span();
        let (data_type, default) = typed.with_value();
        AliasOrigin {
            name: section.name.to_owned(),
            place: self.place(span),
            documentation: self.documentation(span),
            written: written(section),
            data_type: data_type.to_string(),
            size: Size::of_value(&data_type, &default),
            default: default.in_words(),
            advice: Vec::new(),
        }
    }

    /// The definitions that listed types inherit from or use, and which are not listed, or from which others inherit.
    fn definitions(&self) -> Vec<DefinitionOrigin> {
        let mut heirs: BTreeMap<(Kind, &str), (Span, BTreeSet<&str>)> = BTreeMap::new();
        let schema = self.world.schema;
        let declared = self.world.declared;
        let types = schema.types().iter().map(|one| &one.name).zip(declared.types.iter());
        let services = schema
            .services()
            .iter()
            .map(|one| &one.name)
            .zip(declared.services.iter());
        let objects = schema
            .user_data_objects()
            .iter()
            .map(|one| &one.name)
            .zip(declared.objects.iter());
        for (name, declared) in types.chain(services).chain(objects) {
            for definition in declared.definitions().filter(|definition| definition.name != name) {
                let (_, heirs) = heirs
                    .entry((definition.kind, definition.name))
                    .or_insert((definition.span, BTreeSet::new()));
                heirs.insert(name);
            }
        }
        let origin = |((kind, name), (span, heirs)): (_, (Span, BTreeSet<&str>))| DefinitionOrigin {
            definition: Ancestor {
                kind: Kind::into(kind),
                name: str::to_owned(name),
            },
            place: self.place(span),
            documentation: self.documentation_of_file(span),
            heirs: heirs.into_iter().map(str::to_owned).collect(),
        };
        heirs.into_iter().map(origin).collect()
    }
}

fn ancestor(definition: &Definition<'_>) -> Ancestor {
    Ancestor {
        kind: definition.kind.into(),
        name: definition.name.to_owned(),
    }
}

/// The sections with the types of a method's arguments.
pub(super) fn arguments(method: Section<'_>) -> Vec<Section<'_>> {
    match method.child("Args") {
        Some(args) => args.children().collect(),
        None => method.children().filter(|child| child.name == "Arg").collect(),
    }
}

/// The text of a type on one line: a sequence with its element type, a dictionary with an ellipsis.
pub(super) fn written(section: Section<'_>) -> String {
    let word = section.text().split_whitespace().collect::<Vec<_>>().join(" ");
    let mut written = match (section.child("of"), section.child("size")) {
        (Some(of), Some(size)) => format!("{word} of {} x {}", size.text(), self::written(of)),
        (Some(of), None) => format!("{word} of {}", self::written(of)),
        (None, _) => match section.child("implementedBy").or(section.child("Properties")) {
            Some(part) if part.name == "implementedBy" && word == "USER_TYPE" => format!("{word} {}", part.text()),
            Some(_) => format!("{word} {{…}}"),
            None => word,
        },
    };
    if let Some((end, _)) = written.char_indices().nth(MAX_WRITTEN) {
        written.truncate(end);
        written.push('…');
    }
    written
}
