//! The sections of a page: a type, a service, a user data object, and declarations that types share.

use annals_def::{AliasOrigin, AncestorKind, Diagnostic, Domain, Ids, TypeOrigin};

use super::{
    Page, bytes,
    escape::{Anchor, Prose, Text},
};
use crate::{
    describe::MethodDescription, describe::ObjectDescription, describe::ServiceDescription, describe::TypeDescription,
    describe::marks::volatile_marks,
};

/// Maximum characters of a resolved type or default.
const MAX_SHOWN: usize = 300;

impl Page<'_> {
    pub(super) fn entity_type(&mut self, one: &TypeDescription) {
        let name = &one.name;
        let find = format!("{name} type {}", said(one.origin.as_ref())).to_lowercase();
        self.put(format_args!(
            "<section class=\"kind\" id=\"{anchor}\" data-block data-find=\"{find}\">\
             <h2><a href=\"#{anchor}\">{name}</a><small>type {id}</small></h2>\n",
            anchor = Anchor(&["type", name]),
            find = Text(&find),
            name = Text(name),
            id = one.id
        ));
        self.origin(one.origin.as_ref());
        self.ancestors(one);
        self.facts(one);
        self.advice(&one.advice);
        self.property_table(one);
        let lists: [(&str, &str, &Ids, &[MethodDescription]); 3] = [
            ("Client methods", "client", &one.client_method_ids, &one.client_methods),
            ("Cell methods", "cell", &one.exposed_cell_methods, &one.cell_methods),
            ("Base methods", "base", &one.exposed_base_methods, &one.base_methods),
        ];
        for (title, part, ids, methods) in lists {
            let known = ids.members.iter().map(|id| &methods[usize::from(id.0)]);
            let others = methods.iter().filter(|method| method.id.is_none());
            let methods: Vec<_> = known.chain(others).collect();
            self.method_table((title, part), name, &methods, Some(ids));
        }
        self.push("</section>\n");
    }

    pub(super) fn service(&mut self, service: &ServiceDescription) {
        let name = &service.name;
        self.begin("service", name, "service", service.origin.as_ref());
        let methods: Vec<_> = service.methods.iter().collect();
        self.method_table(("Methods", "service"), name, &methods, None);
        self.push("</section>\n");
    }

    pub(super) fn object(&mut self, object: &ObjectDescription) {
        let name = &object.name;
        let what = match object.domain {
            Domain::Cell => "user data object on cells",
            Domain::Base => "user data object on bases",
            Domain::Client => "user data object on clients",
        };
        self.begin("object", name, what, object.origin.as_ref());
        if !object.properties.is_empty() {
            self.push(
                "<table data-table><thead><tr><th>property</th><th>type</th><th class=\"number\">size</th>\
                 <th>default</th></tr></thead>\n",
            );
        }
        for (property, default) in &object.properties {
            let find = format!("{name} {} {}", property.name, property.data_type).to_lowercase();
            self.put(format_args!(
                "<tbody id=\"{anchor}\" data-item data-find=\"{}\"><tr><td class=\"name\"><a href=\"#{anchor}\">{}</a></td>\
                 <td class=\"type\" data-label=\"type\"><code>{}</code></td>\
                 <td class=\"number\" data-label=\"size\">{}</td>\
                 <td class=\"default\" data-label=\"default\"><code>{}</code></td></tr></tbody>\n",
                Text(&find),
                Text(&property.name),
                Text(&shortened(&property.data_type)),
                property.size,
                Text(&shortened(&default.in_words())),
                anchor = Anchor(&["object", name, &property.name]),
            ));
        }
        if !object.properties.is_empty() {
            self.push("</table>\n");
        }
        self.push("</section>\n");
    }

    /// Begins a named section.
    fn begin(&mut self, kind: &str, name: &str, what: &str, origin: Option<&TypeOrigin>) {
        let find = format!("{name} {what} {}", said(origin)).to_lowercase();
        self.put(format_args!(
            "<section class=\"kind\" id=\"{anchor}\" data-block data-find=\"{}\">\
             <h2><a href=\"#{anchor}\">{}</a><small>{what}</small></h2>\n",
            Text(&find),
            Text(name),
            anchor = Anchor(&[kind, name]),
        ));
        self.origin(origin);
    }

    fn origin(&mut self, origin: Option<&TypeOrigin>) {
        let Some(origin) = origin else { return };
        self.put(format_args!(
            "<p class=\"place\">{}</p>\n",
            Text(&origin.place.to_string())
        ));
        if let Some(documentation) = &origin.documentation {
            self.put(format_args!("<p class=\"doc\">{}</p>\n", Text(documentation)));
        }
    }

    /// The ancestors of a type, with links and the number of members that each contributes.
    fn ancestors(&mut self, one: &TypeDescription) {
        let counts = one.members_by_origin();
        let mut first = true;
        for ancestor in one.ancestors() {
            self.push(if first { "<p>Inherits " } else { ", " });
            first = false;
            let count = counts.get(ancestor).copied().unwrap_or(0);
            let members = if count == 1 { "member" } else { "members" };
            self.put(format_args!(
                "<a href=\"#{}\">{}</a> <small>({count} {members})</small>",
                Anchor(&["definition", ancestor.kind.name(), &ancestor.name]),
                Text(&ancestor.to_string())
            ));
        }
        if !first {
            self.push("</p>\n");
        }
    }

    /// Facts about a type as a whole: parts, totals, levels.
    fn facts(&mut self, one: &TypeDescription) {
        self.push("<dl class=\"facts\"><div><dt>parts</dt><dd>");
        self.parts(one);
        self.push("</dd></div>");
        let totals = &one.totals;
        for (what, sum) in [
            ("to its own client", &totals.own_client),
            ("to another client", &totals.other_clients),
            ("to a ghost", &totals.ghosts),
            ("in the store", &totals.stored),
        ] {
            if sum.members > 0 {
                self.put(format_args!("<div><dt>{what}</dt><dd>{}</dd></div>", bytes(sum)));
            }
        }
        if !one.persistent {
            self.push("<div><dt>in the store</dt><dd>never</dd></div>");
        }
        if let Some(client_type) = &one.client_type {
            self.put(format_args!(
                "<div><dt>clients see</dt><dd><a href=\"#{}\">{}</a></dd></div>",
                Anchor(&["type", client_type]),
                Text(client_type)
            ));
        }
        let volatile = volatile_marks(one);
        if !volatile.is_empty() {
            self.put(format_args!(
                "<div><dt>volatile</dt><dd>{}</dd></div>",
                volatile.join(", ")
            ));
        }
        for level in &one.lod_levels {
            self.put(format_args!(
                "<div><dt>level {}</dt><dd>to {} m <small>+ {} m</small></dd></div>",
                Text(&level.label),
                level.radius,
                level.hysteresis
            ));
        }
        if one.appeal_radius > 0.0 {
            self.put(format_args!(
                "<div><dt>appeal radius</dt><dd>{} m</dd></div>",
                one.appeal_radius
            ));
        }
        if let Some(position) = one.detailed_position {
            let how = if position.latest_only {
                "newest only"
            } else {
                "each change"
            };
            self.put(format_args!("<div><dt>exact position</dt><dd>{how}</dd></div>"));
        }
        if one.manual_aoi {
            self.push("<div><dt>area of interest</dt><dd>by behaviour</dd></div>");
        }
        if !one.temp_properties.is_empty() {
            let names = one.temp_properties.join(", ");
            self.put(format_args!("<div><dt>temporary</dt><dd>{}</dd></div>", Text(&names)));
        }
        self.push("</dl>\n");
    }

    /// Warnings and advice, each with its help.
    pub(super) fn advice(&mut self, advice: &[Diagnostic]) {
        for one in advice {
            self.put(format_args!(
                "<p class=\"advice\"><b>{}</b> {}",
                one.rule,
                Prose(&one.message)
            ));
            if let Some(help) = &one.help {
                self.put(format_args!("; {}", Prose(help)));
            }
            self.put(format_args!(
                " <small>{}: {}</small></p>\n",
                one.severity,
                Prose(one.rule.text().why)
            ));
        }
    }

    /// Parents, interfaces and components, with the types that use them.
    pub(super) fn definitions(&mut self) {
        let description = self.description;
        if description.definitions.is_empty() {
            return;
        }
        self.push(
            "<section id=\"definitions\" data-block><h2>Parents, interfaces, components</h2>\n\
             <table data-table><thead><tr><th>name</th><th>kind</th><th>part of</th></tr></thead>\n",
        );
        for one in &description.definitions {
            let (kind, name) = (one.definition.kind, &one.definition.name);
            let documentation = one.documentation.as_deref().unwrap_or_default();
            let find = format!("{name} {} {documentation} {}", kind.name(), one.heirs.join(" ")).to_lowercase();
            let anchor = Anchor(&["definition", kind.name(), name]).to_string();
            let target = match kind {
                AncestorKind::Type if self.types.contains(name.as_str()) => Anchor(&["type", name]).to_string(),
                _ => anchor.clone(),
            };
            self.put(format_args!(
                "<tbody id=\"{anchor}\" data-item data-find=\"{}\"><tr><td class=\"name\"><a href=\"#{target}\">{}</a>\
                 <div class=\"doc\">{}</div><div class=\"place\">{}</div></td>\
                 <td data-label=\"kind\">{}</td><td data-label=\"part of\">",
                Text(&find),
                Text(name),
                Text(documentation),
                Text(&one.place.to_string()),
                kind.name()
            ));
            for (at, heir) in one.heirs.iter().enumerate() {
                let kind = if self.types.contains(heir.as_str()) {
                    "type"
                } else {
                    "service"
                };
                self.push(if at > 0 { ", " } else { "" });
                self.put(format_args!(
                    "<a href=\"#{}\">{}</a>",
                    Anchor(&[kind, heir]),
                    Text(heir)
                ));
            }
            self.push("</td></tr></tbody>\n");
        }
        self.push("</table></section>\n");
    }

    /// The names of the ledger's numbers.
    pub(super) fn ledger_table(&mut self) {
        let names = &self.description.ledger_names;
        if names.is_empty() {
            return;
        }
        self.push(
            "<section id=\"ledger\" data-block><h2>Ledger</h2>\n<table data-table><thead><tr><th>name</th>\
             <th>of</th><th class=\"number\">number</th></tr></thead>\n",
        );
        let kinds = names.kinds().iter().map(|(kind, name)| ("kind", kind.0, name));
        let slots = names
            .slots()
            .iter()
            .map(|(slot, name)| ("slot", u32::from(slot.0), name));
        for (what, number, name) in kinds.chain(slots) {
            self.put(format_args!(
                "<tbody id=\"{anchor}\" data-item data-find=\"{}\"><tr><td class=\"name\"><a href=\"#{anchor}\">{}</a></td>\
                 <td data-label=\"of\">{what}</td><td class=\"number\" data-label=\"number\">{number}</td></tr></tbody>\n",
                Text(&format!("{name} {what} {number} ledger").to_lowercase()),
                Text(name),
                anchor = Anchor(&["ledger", what, name]),
            ));
        }
        self.push("</table></section>\n");
    }

    pub(super) fn alias_table(&mut self) {
        let description = self.description;
        if description.aliases.is_empty() {
            return;
        }
        self.push(
            "<section id=\"aliases\" data-block><h2>Aliases</h2>\n<table data-table><thead><tr><th>alias</th>\
             <th>type</th><th class=\"number\">size</th><th>default</th></tr></thead>\n",
        );
        description.aliases.iter().for_each(|alias| self.alias(alias));
        self.push("</table></section>\n");
    }

    fn alias(&mut self, alias: &AliasOrigin) {
        let documentation = alias.documentation.as_deref().unwrap_or_default();
        let find = format!(
            "{} alias {} {documentation} {}",
            alias.name,
            alias.data_type,
            codes(&alias.advice)
        );
        self.put(format_args!(
            "<tbody id=\"{anchor}\" data-item data-find=\"{}\"><tr><td class=\"name\"><a href=\"#{anchor}\">{}</a>\
             <div class=\"doc\">{}</div><div class=\"place\">{}</div>",
            Text(&find.to_lowercase()),
            Text(&alias.name),
            Text(documentation),
            Text(&alias.place.to_string()),
            anchor = Anchor(&["alias", &alias.name]),
        ));
        self.advice(&alias.advice);
        self.push("</td><td class=\"type\" data-label=\"type\"><code>");
        match alias.written.ends_with("{…}") {
            true => self.put(format_args!("{}", Text(&shortened(&alias.data_type)))),
            false => self.written(&alias.written),
        }
        self.put(format_args!(
            "</code></td><td class=\"number\" data-label=\"size\">{}</td>\
             <td class=\"default\" data-label=\"default\"><code>{}</code></td></tr></tbody>\n",
            alias.size,
            Text(&shortened(&alias.default))
        ));
    }

    /// The text of a type, with links to aliases.
    pub(super) fn written(&mut self, written: &str) {
        let is_letter = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let mut rest = written;
        while let Some(first) = rest.chars().next() {
            let end = rest.find(|c| is_letter(c) != is_letter(first)).unwrap_or(rest.len());
            let (word, behind) = rest.split_at(end);
            match self.aliases.contains(word) {
                true => self.put(format_args!(
                    "<a href=\"#{}\">{}</a>",
                    Anchor(&["alias", word]),
                    Text(word)
                )),
                false => self.put(format_args!("{}", Text(word))),
            }
            rest = behind;
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
