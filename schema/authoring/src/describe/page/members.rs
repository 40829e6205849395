//! The tables of a section: properties and methods.

use annals_def::{Diagnostic, Ids, MemberOrigin, Size};
use maud::{Markup, html};

use super::{
    Page,
    escape::{Text, anchor, link},
    kinds::{advice, codes, shortened},
};
use crate::describe::{
    ArgumentDescription, MethodDescription, PropertyDescription, TypeDescription,
    marks::{method_marks, property_marks},
};

/// Who has a copy, the class of its label, and the text of the label.
const RECEIVERS: [(&str, &str, &str); 5] = [
    ("base", "base", "base"),
    ("cell", "cell", "cell"),
    ("ghosts", "ghosts", "ghosts"),
    ("own client", "own", "own client"),
    ("other clients", "others", "others"),
];

impl Page<'_> {
    /// The properties of a type: those of clients in the order of their ids, then the others.
    pub(super) fn property_table(&self, one: &TypeDescription) -> Markup {
        let seen = one.client_properties.members.iter().map(|id| one.property(*id));
        let others = one.properties.iter().filter(|property| property.id.is_none());
        html! {
            @if !one.properties.is_empty() {
                div data-table {
                    h3 { "Properties" (overflow(&one.client_properties)) }
                    table.properties {
                        thead {
                            tr {
                                th.number { "id" } th { "property" } th { "type" } th.number { "size" }
                                th { "who has it" } th { "level" } th.number { "stored" } th { "default" }
                            }
                        }
                        @for property in seen.chain(others) { (self.property(&one.name, property)) }
                    }
                }
            }
        }
    }

    fn property(&self, owner: &str, property: &PropertyDescription) -> Markup {
        let name = &property.name;
        let marks = property_marks(property);
        let anchor = anchor(&["type", owner, name]);
        let receivers = property.receivers();
        let receivers = RECEIVERS.iter().filter(|who| receivers.contains(&who.0));
        html! {
            tbody id=(anchor) data-item data-find=(Text(&property_words(owner, property, &marks))) {
                tr {
                    (id(property.id))
                    td.name {
                        (link(&anchor, name))
                        (said(owner, property.origin.as_ref()))
                        (chips(marks.iter().map(|mark| ("", mark.as_str()))))
                    }
                    td.type data-label="type" {
                        code title=(Text(&shortened(&property.data_type))) { (self.written(property.written())) }
                    }
                    (size(property.size, "size"))
                    td.who data-label="who has it" {
                        span title=(property.distribution.flag()) {
                            (chips(receivers.map(|(_, class, word)| (*class, *word))))
                        }
                    }
                    (level(property))
                    @match &property.storage {
                        Some(storage) => (size(storage.size, "stored")),
                        None => td.number.none data-label="stored" { "–" },
                    }
                    td.default data-label="default" { code { (Text(&shortened(&property.default.in_words()))) } }
                }
                (advice_row(&property.advice, 8))
            }
        }
    }

    /// The methods of one part: those that clients know in the order of their ids, then the others.
    pub(super) fn method_table(
        &self,
        (title, part): (&str, &str),
        owner: &str,
        methods: &[&MethodDescription],
        ids: Option<&Ids>,
    ) -> Markup {
        html! {
            @if !methods.is_empty() {
                div data-table {
                    h3 { (title) @if let Some(ids) = ids { (overflow(ids)) } }
                    table.methods {
                        thead {
                            tr {
                                th.number { "id" } th { "method" } th { "arguments" } th.number { "size" } th { "who" }
                            }
                        }
                        @for method in methods { (self.method(part, owner, method)) }
                    }
                }
            }
        }
    }

    fn method(&self, part: &str, owner: &str, method: &MethodDescription) -> Markup {
        let name = &method.name;
        let marks = method_marks(method);
        let anchor = match part {
            "service" => anchor(&["service", owner, name]),
            part => anchor(&["type", owner, part, name]),
        };
        let has_none = method.args.is_empty() && method.returns.is_empty();
        html! {
            tbody id=(anchor) data-item data-find=(Text(&method_words(part, owner, method, &marks))) {
                tr {
                    (id(method.id))
                    td.name { (link(&anchor, name)) (said(owner, method.origin.as_ref())) }
                    td.type.none[has_none] data-label="arguments" {
                        span {
                            (self.arguments(&method.args, method.written()))
                            @if !method.returns.is_empty() { " → " (self.arguments(&method.returns, &[])) }
                        }
                    }
                    (size(method.size, "size"))
                    td class=[marks.is_empty().then_some("none")] data-label="who" {
                        (chips(marks.iter().map(|mark| (class_of(mark), mark.as_str()))))
                    }
                }
                (advice_row(&method.advice, 5))
            }
        }
    }

    fn arguments(&self, arguments: &[ArgumentDescription], written: &[String]) -> Markup {
        html! {
            @if arguments.is_empty() { "–" }
            @for (at, argument) in arguments.iter().enumerate() {
                @if at > 0 { ", " }
                (Text(&argument.name)) ": "
                code title=(argument.size.to_string()) {
                    @match written.get(at) {
                        Some(written) => (self.written(written)),
                        None => (Text(&shortened(&argument.data_type))),
                    }
                }
            }
        }
    }
}

/// The detail level of a property.
fn level(property: &PropertyDescription) -> Markup {
    html! {
        @match (&property.level, property.distribution.to_other_clients()) {
            (Some(level), _) => td.level data-label="level" {
                span { (Text(&level.label)) " " small { (level.radius) " m" } }
            },
            (None, true) => td.level data-label="level" { "any" },
            (None, false) => td.none data-label="level" { "–" },
        }
    }
}

/// Advice on a member, in a row below it.
fn advice_row(given: &[Diagnostic], columns: usize) -> Markup {
    html! {
        @if !given.is_empty() { tr { td {} td colspan=(columns - 1) { (advice(given)) } } }
    }
}

fn id(id: Option<u16>) -> Markup {
    html! {
        @match id {
            Some(id) => td.number data-label="id" { (id) },
            None => td.number.none data-label="id" { "–" },
        }
    }
}

fn size(size: Size, label: &str) -> Markup {
    html! {
        @match size {
            Size::Fixed(bytes) => td.number data-label=(label) { (bytes) " B" },
            Size::Variable { least, of_default } => td.number data-label=(label)
                title={ "at least " (least) " bytes; the default takes " (of_default) } { (least) "+ B" },
        }
    }
}

/// The documentation of a member, and its place if it is declared elsewhere.
fn said(owner: &str, origin: Option<&MemberOrigin>) -> Markup {
    let elsewhere = origin
        .filter(|origin| origin.from.name != owner)
        .map(|origin| &origin.from);
    html! {
        @if let Some(documentation) = origin.and_then(|origin| origin.documentation.as_ref()) {
            div.doc { (Text(documentation)) }
        }
        @if let Some(from) = elsewhere {
            div.place {
                "from " (link(&anchor(&["definition", from.kind.name(), &from.name]), &from.to_string()))
            }
        }
    }
}

fn chips<'c>(chips: impl Iterator<Item = (&'static str, &'c str)>) -> Markup {
    let chips: Vec<_> = chips.collect();
    html! {
        @if !chips.is_empty() {
            span.chips {
                @for (class, word) in chips { span class={ "chip " (class) } { (Text(word)) } }
            }
        }
    }
}

/// The number of ids in a list that take more than one byte, if any.
fn overflow(ids: &Ids) -> Markup {
    let over = ids.overflowing();
    html! {
        @if over > 0 { " " small { (over) " of " (ids.members.len()) " ids take more than one byte" } }
    }
}

fn class_of(mark: &str) -> &'static str {
    match mark {
        "exposed to own client" => "own",
        "exposed to all clients" => "others",
        _ => "",
    }
}

/// The search words of a method.
fn method_words(part: &str, owner: &str, method: &MethodDescription, marks: &[String]) -> String {
    let arguments = method.args.iter().chain(&method.returns);
    let types = arguments.map(|arg| shortened(&arg.data_type));
    let names = method.args.iter().map(|arg| arg.name.as_str());
    let find = [
        owner,
        &method.name,
        part,
        "method",
        &names.collect::<Vec<_>>().join(" "),
        &types.collect::<Vec<_>>().join(" "),
        &method.written().join(" "),
        &marks.join(" "),
        if method.size.fixed().is_some() {
            "fixed"
        } else {
            "variable"
        },
        &found_by(method.origin.as_ref()),
        &codes(&method.advice),
    ];
    find.join(" ").to_lowercase()
}

/// The search words of a property.
fn property_words(owner: &str, property: &PropertyDescription, marks: &[String]) -> String {
    let name = &property.name;
    let stored = property.storage.as_ref().map_or("", |_| "stored persistent");
    let level = property.level.as_ref().map(|level| level.label.as_str());
    let find = [
        owner,
        name,
        property.written(),
        &shortened(&property.data_type),
        property.distribution.flag(),
        &property.receivers().join(" "),
        level.unwrap_or_default(),
        stored,
        &marks.join(" "),
        if property.size.fixed().is_some() {
            "fixed"
        } else {
            "variable"
        },
        &found_by(property.origin.as_ref()),
        &codes(&property.advice),
    ];
    find.join(" ").to_lowercase()
}

/// The search words of a member beside its own.
fn found_by(origin: Option<&MemberOrigin>) -> String {
    let Some(origin) = origin else { return String::new() };
    let documentation = origin.documentation.as_deref().unwrap_or_default();
    format!("{} {documentation}", origin.from)
}
