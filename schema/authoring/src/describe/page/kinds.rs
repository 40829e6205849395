//! The sections of a page: a type, a service, a user data object, and declarations that types share.

use annals_def::{AliasOrigin, AncestorKind, DefinitionOrigin, Diagnostic, Domain, Ids, TypeOrigin};
use maud::{Markup, html};

use super::{
    Page, bytes,
    escape::{Text, anchor, link, prose},
    parts,
};
use crate::describe::{
    MethodDescription, ObjectDescription, ServiceDescription, TypeDescription, marks::volatile_marks,
};

/// Maximum characters of a resolved type or default.
const MAX_SHOWN: usize = 300;

impl Page<'_> {
    pub(super) fn entity_type(&self, one: &TypeDescription) -> Markup {
        let name = &one.name;
        let what = format!("type {}", one.id);
        let find = format!("{name} type {}", said(one.origin.as_ref()));
        let lists: [(&str, &str, &Ids, &[MethodDescription]); 3] = [
            ("Client methods", "client", &one.client_method_ids, &one.client_methods),
            ("Cell methods", "cell", &one.exposed_cell_methods, &one.cell_methods),
            ("Base methods", "base", &one.exposed_base_methods, &one.base_methods),
        ];
        let methods = |ids: &Ids, methods: &'_ [MethodDescription]| {
            let known = ids.members.iter().map(|id| usize::from(id.0));
            let others = (0..methods.len()).filter(|at| methods[*at].id.is_none());
            known.chain(others).collect::<Vec<_>>()
        };
        section(
            &Heading {
                kind: "type",
                name,
                what: &what,
                find,
            },
            one.origin.as_ref(),
            &html! {
                (ancestors(one))
                (facts(one))
                (advice(&one.advice))
                (self.property_table(one))
                @for (title, part, ids, all) in lists {
                    @let listed: Vec<_> = methods(ids, all).into_iter().map(|at| &all[at]).collect();
                    (self.method_table((title, part), name, &listed, Some(ids)))
                }
            },
        )
    }

    pub(super) fn service(&self, service: &ServiceDescription) -> Markup {
        let (name, origin) = (&service.name, service.origin.as_ref());
        let methods: Vec<_> = service.methods.iter().collect();
        let table = self.method_table(("Methods", "service"), name, &methods, None);
        section(&Heading::of("service", name, "service", origin), origin, &table)
    }

    pub(super) fn object(&self, object: &ObjectDescription) -> Markup {
        let (name, origin) = (&object.name, object.origin.as_ref());
        let what = match object.domain {
            Domain::Cell => "user data object on cells",
            Domain::Base => "user data object on bases",
            Domain::Client => "user data object on clients",
        };
        section(
            &Heading::of("object", name, what, origin),
            origin,
            &html! {
                @if !object.properties.is_empty() {
                    table data-table {
                        thead { tr { th { "property" } th { "type" } th.number { "size" } th { "default" } } }
                        @for (property, default) in &object.properties {
                            @let anchor = anchor(&["object", name, &property.name]);
                            @let find = format!("{name} {} {}", property.name, property.data_type).to_lowercase();
                            tbody id=(anchor) data-item data-find=(Text(&find)) {
                                tr {
                                    td.name { (link(&anchor, &property.name)) }
                                    td.type data-label="type" { code { (Text(&shortened(&property.data_type))) } }
                                    td.number data-label="size" { (property.size.to_string()) }
                                    td.default data-label="default" { code { (Text(&shortened(&default.in_words()))) } }
                                }
                            }
                        }
                    }
                }
            },
        )
    }

    /// Parents, interfaces and components, with the types that use them.
    pub(super) fn definitions(&self) -> Markup {
        let definitions = &self.description.definitions;
        html! {
            @if !definitions.is_empty() {
                section id="definitions" data-block {
                    h2 { "Parents, interfaces, components" }
                    table data-table {
                        thead { tr { th { "name" } th { "kind" } th { "part of" } } }
                        @for one in definitions { (self.definition(one)) }
                    }
                }
            }
        }
    }

    fn definition(&self, one: &DefinitionOrigin) -> Markup {
        let (kind, name) = (one.definition.kind, &one.definition.name);
        let documentation = one.documentation.as_deref().unwrap_or_default();
        let find = format!("{name} {} {documentation} {}", kind.name(), one.heirs.join(" ")).to_lowercase();
        let own = anchor(&["definition", kind.name(), name]);
        let target = match kind {
            AncestorKind::Type if self.types.contains(name.as_str()) => anchor(&["type", name]),
            _ => own.clone(),
        };
        let kind_of = |heir: &str| if self.types.contains(heir) { "type" } else { "service" };
        html! {
            tbody id=(own) data-item data-find=(Text(&find)) {
                tr {
                    td.name {
                        (link(&target, name))
                        div.doc { (Text(documentation)) }
                        div.place { (Text(&one.place.to_string())) }
                    }
                    td data-label="kind" { (kind.name()) }
                    td data-label="part of" {
                        @for (at, heir) in one.heirs.iter().enumerate() {
                            @if at > 0 { ", " }
                            (link(&anchor(&[kind_of(heir), heir]), heir))
                        }
                    }
                }
            }
        }
    }

    /// The names of the ledger's numbers.
    pub(super) fn ledger_table(&self) -> Markup {
        let names = &self.description.ledger_names;
        let kinds = names.kinds().iter().map(|(kind, name)| ("kind", kind.0, name));
        let slots = names.slots().iter();
        let slots = slots.map(|(slot, name)| ("slot", u32::from(slot.0), name));
        html! {
            @if !names.is_empty() {
                section id="ledger" data-block {
                    h2 { "Ledger" }
                    table data-table {
                        thead { tr { th { "name" } th { "of" } th.number { "number" } } }
                        @for (what, number, name) in kinds.chain(slots) {
                            @let anchor = anchor(&["ledger", what, name]);
                            @let find = format!("{name} {what} {number} ledger").to_lowercase();
                            tbody id=(anchor) data-item data-find=(Text(&find)) {
                                tr {
                                    td.name { (link(&anchor, name)) }
                                    td data-label="of" { (what) }
                                    td.number data-label="number" { (number) }
                                }
                            }
                        }
                    }
                }
            }
        }
    }

    pub(super) fn alias_table(&self) -> Markup {
        let aliases = &self.description.aliases;
        html! {
            @if !aliases.is_empty() {
                section id="aliases" data-block {
                    h2 { "Aliases" }
                    table data-table {
                        thead { tr { th { "alias" } th { "type" } th.number { "size" } th { "default" } } }
                        @for alias in aliases { (self.alias(alias)) }
                    }
                }
            }
        }
    }

    fn alias(&self, alias: &AliasOrigin) -> Markup {
        let documentation = alias.documentation.as_deref().unwrap_or_default();
        let (name, advised) = (&alias.name, codes(&alias.advice));
        let find = format!("{name} alias {} {documentation} {advised}", alias.data_type).to_lowercase();
        let anchor = anchor(&["alias", name]);
        html! {
            tbody id=(anchor) data-item data-find=(Text(&find)) {
                tr {
                    td.name {
                        (link(&anchor, name))
                        div.doc { (Text(documentation)) }
                        div.place { (Text(&alias.place.to_string())) }
                        (advice(&alias.advice))
                    }
                    td.type data-label="type" {
                        code {
                            @if alias.written.ends_with("{…}") {
                                (Text(&shortened(&alias.data_type)))
                            } @else {
                                (self.written(&alias.written))
                            }
                        }
                    }
                    td.number data-label="size" { (alias.size.to_string()) }
                    td.default data-label="default" { code { (Text(&shortened(&alias.default))) } }
                }
            }
        }
    }

    /// The text of a type, with links to aliases.
    pub(super) fn written(&self, written: &str) -> Markup {
        let is_letter = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let mut words = Vec::new();
        let mut rest = written;
        while let Some(first) = rest.chars().next() {
            let end = rest.find(|c| is_letter(c) != is_letter(first)).unwrap_or(rest.len());
            let (word, behind) = rest.split_at(end);
            words.push(word);
            rest = behind;
        }
        html! {
            @for word in words {
                @if self.aliases.contains(word) {
                    (link(&anchor(&["alias", word]), word))
                } @else {
                    (Text(word))
                }
            }
        }
    }
}

/// The heading of a section.
struct Heading<'h> {
    kind: &'h str,
    name: &'h str,
    what: &'h str,
    /// Words that find it.
    find: String,
}

impl<'h> Heading<'h> {
    fn of(kind: &'h str, name: &'h str, what: &'h str, origin: Option<&TypeOrigin>) -> Self {
        let find = format!("{name} {what} {}", said(origin));
        Self { kind, name, what, find }
    }
}

fn section(heading: &Heading<'_>, origin: Option<&TypeOrigin>, content: &Markup) -> Markup {
    let Heading { kind, name, what, find } = heading;
    let anchor = anchor(&[kind, name]);
    html! {
        section.kind id=(anchor) data-block data-find=(Text(&find.to_lowercase())) {
            h2 { (link(&anchor, name)) small { (what) } }
            @if let Some(origin) = origin {
                p.place { (Text(&origin.place.to_string())) }
                @if let Some(documentation) = &origin.documentation { p.doc { (Text(documentation)) } }
            }
            (content)
        }
    }
}

/// The ancestors of a type, with links and the number of members that each contributes.
fn ancestors(one: &TypeDescription) -> Markup {
    let counts = one.members_by_origin();
    let ancestors = one.ancestors();
    html! {
        @if !ancestors.is_empty() {
            p {
                "Inherits "
                @for (at, ancestor) in ancestors.iter().enumerate() {
                    @let count = counts.get(ancestor).copied().unwrap_or(0);
                    @if at > 0 { ", " }
                    (link(&anchor(&["definition", ancestor.kind.name(), &ancestor.name]), &ancestor.to_string()))
                    " "
                    small { "(" (count) @if count == 1 { " member)" } @else { " members)" } }
                }
            }
        }
    }
}

/// Facts about a type as a whole: parts, totals, levels.
fn facts(one: &TypeDescription) -> Markup {
    let fact = |term: &str, text: &Markup| html! { div { dt { (Text(term)) } dd { (text) } } };
    let totals = &one.totals;
    let sums = [
        ("to its own client", &totals.own_client),
        ("to another client", &totals.other_clients),
        ("to a ghost", &totals.ghosts),
        ("in the store", &totals.stored),
    ];
    let volatile = volatile_marks(one);
    html! {
        dl.facts {
            (fact("parts", &parts(one)))
            @for (what, sum) in sums.into_iter().filter(|(_, sum)| sum.members > 0) {
                (fact(what, &bytes(sum)))
            }
            @if !one.persistent { (fact("in the store", &html! { "never" })) }
            @if let Some(client_type) = &one.client_type {
                (fact("clients see", &link(&anchor(&["type", client_type]), client_type)))
            }
            @if !volatile.is_empty() { (fact("volatile", &html! { (volatile.join(", ")) })) }
            @for level in &one.lod_levels {
                (fact(
                    &format!("level {}", level.label),
                    &html! { "to " (level.radius) " m " small { "+ " (level.hysteresis) " m" } },
                ))
            }
            @if one.appeal_radius > 0.0 {
                (fact("appeal radius", &html! { (one.appeal_radius) " m" }))
            }
            @if let Some(position) = one.detailed_position {
                @let how = if position.latest_only { "newest only" } else { "each change" };
                (fact("exact position", &html! { (how) }))
            }
            @if one.manual_aoi { (fact("area of interest", &html! { "by behaviour" })) }
            @if !one.temp_properties.is_empty() {
                (fact("temporary", &html! { (Text(&one.temp_properties.join(", "))) }))
            }
        }
    }
}

/// Warnings and advice, each with its help.
pub(super) fn advice(advice: &[Diagnostic]) -> Markup {
    html! {
        @for one in advice {
            p.advice {
                b { (one.rule.to_string()) } " " (prose(&one.message))
                @if let Some(help) = &one.help { "; " (prose(help)) }
                " " small { (one.severity.to_string()) ": " (prose(one.rule.text().why)) }
            }
        }
    }
}

/// The codes of advice, as search words.
pub(super) fn codes(advice: &[Diagnostic]) -> String {
    let codes = advice.iter().map(|one| format!("{} {}", one.rule, one.severity));
    codes.collect::<Vec<_>>().join(" ")
}

pub(super) fn shortened(text: &str) -> String {
    match text.char_indices().nth(MAX_SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

fn said(origin: Option<&TypeOrigin>) -> String {
    let Some(origin) = origin else { return String::new() };
    let ancestors: Vec<String> = origin.ancestors.iter().map(ToString::to_string).collect();
    format!(
        "{} {}",
        origin.documentation.as_deref().unwrap_or_default(),
        ancestors.join(" ")
    )
}
