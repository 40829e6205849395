//! A description as one self-contained HTML page: no other file, no network, no server.
//!
//! All text from files goes through [`Text`] or [`Anchor`]. Should that fail, the page's own policy allows only this
//! script and this style sheet.

mod escape;
mod kinds;
mod members;

use std::{collections::BTreeSet, fmt::Write as _};

use annals_def::INDEXED_BYTES;

use super::{Description, Sum, TypeDescription, marks::part_marks};
use escape::{Anchor, Text, source_hash};

/// The style sheet and the search script.
const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// A page under construction.
struct Page<'d> {
    description: &'d Description,
    /// The names that link to an alias, and to a type.
    aliases: BTreeSet<&'d str>,
    types: BTreeSet<&'d str>,
    out: String,
}

/// The description as a page with this title.
#[must_use]
pub fn to_page(description: &Description, title: &str) -> String {
    let mut page = Page {
        description,
        aliases: description.aliases.iter().map(|alias| alias.name.as_str()).collect(),
        types: description.types.iter().map(|one| one.name.as_str()).collect(),
        out: String::new(),
    };
    page.head(title);
    page.navigation();
    page.push("<main id=\"content\">\n");
    page.overview();
    description.types.iter().for_each(|one| page.entity_type(one));
    description.services.iter().for_each(|service| page.service(service));
    description
        .user_data_objects
        .iter()
        .for_each(|object| page.object(object));
    page.definitions();
    page.ledger_table();
    page.alias_table();
    page.push("<p id=\"nothing\" class=\"nothing\" hidden>Nothing here has all these words.</p>\n</main>\n</div>\n");
    page.push("<script>");
    page.push(SCRIPT);
    page.push("</script>\n</body>\n</html>\n");
    page.out
}

impl Page<'_> {
    /// Appends HTML.
    fn push(&mut self, html: &str) {
        self.out.push_str(html);
    }

    /// Appends formatted HTML.
    fn put(&mut self, html: std::fmt::Arguments<'_>) {
        let _ = self.out.write_fmt(html);
    }

    fn head(&mut self, title: &str) {
        let title = Text(title);
        let (style, script) = (source_hash(STYLE), source_hash(SCRIPT));
        self.put(format_args!(
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src {style}; \
             script-src {script}; base-uri 'none'; form-action 'none'\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <title>{title} – definitions</title>\n<style>"
        ));
        self.push(STYLE);
        self.put(format_args!(
            "</style>\n</head>\n<body>\n<a class=\"skip\" href=\"#content\">To the content</a>\n<header>\n\
             <h1><a href=\"#overview\">{title}</a></h1>\n<div class=\"search\" hidden>\
             <label for=\"search\">Search</label><input id=\"search\" type=\"search\" autocomplete=\"off\" \
             spellcheck=\"false\" aria-describedby=\"told hint\">\
             <output id=\"told\" aria-live=\"polite\"></output>\
             <span id=\"hint\">a name, a type, ALL_CLIENTS, stored, lint … <kbd>/</kbd></span></div>\n</header>\n<div class=\"layout\">\n"
        ));
    }

    fn navigation(&mut self) {
        self.push("<nav aria-label=\"Contents\"><details open><summary>Contents</summary>\n");
        self.push("<h2 hidden></h2><ul><li><a href=\"#overview\">Overview</a></li></ul>\n");
        let description = self.description;
        let names = |names: Vec<&'_ str>| names.into_iter().map(str::to_owned).collect::<Vec<_>>();
        let types = names(description.types.iter().map(|one| one.name.as_str()).collect());
        let services = names(description.services.iter().map(|one| one.name.as_str()).collect());
        let objects = names(
            description
                .user_data_objects
                .iter()
                .map(|one| one.name.as_str())
                .collect(),
        );
        for (title, kind, names) in [
            ("Entity types", "type", types),
            ("Services", "service", services),
            ("User data objects", "object", objects),
        ] {
            if names.is_empty() {
                continue;
            }
            self.put(format_args!("<h2>{title}</h2><ul>\n"));
            for name in &names {
                self.put(format_args!(
                    "<li><a href=\"#{}\">{}</a></li>\n",
                    Anchor(&[kind, name]),
                    Text(name)
                ));
            }
            self.push("</ul>\n");
        }
        let lists = [
            (
                !description.definitions.is_empty(),
                "definitions",
                "Parents, interfaces",
            ),
            (!description.ledger_names.is_empty(), "ledger", "Ledger"),
            (!description.aliases.is_empty(), "aliases", "Aliases"),
        ];
        self.push("<h2>Shared</h2><ul>\n");
        for (_, anchor, title) in lists.into_iter().filter(|(is_there, ..)| *is_there) {
            self.put(format_args!("<li><a href=\"#{anchor}\">{title}</a></li>\n"));
        }
        self.push("</ul>\n</details></nav>\n");
    }

    /// An overview of all types.
    fn overview(&mut self) {
        let description = self.description;
        self.put(format_args!(
            "<section id=\"overview\" data-block><h2>Overview</h2>\n<p class=\"place\">schema {}</p>\n\
             <p class=\"doc\">Bytes are those of values; a + marks the least of what varies, and behind it stands \
             what the defaults take. Identifiers and lengths of messages come on top. The store keeps an entity as one \
             value: the name of its type, and each persistent property by its name. It finds entities by their database \
             id, and by the first {INDEXED_BYTES} bytes of their identifier.</p>\n",
            description.fingerprint
        ));
        self.push(
            "<table data-table><thead><tr><th class=\"number\">id</th><th>type</th><th>parts</th>\
             <th class=\"number\">own client</th><th class=\"number\">other clients</th>\
             <th class=\"number\">ghosts</th><th class=\"number\">stored</th><th class=\"number\">advice</th>\
             </tr></thead>\n",
        );
        for one in &description.types {
            self.overview_of(one);
        }
        self.push("</table></section>\n");
    }

    fn overview_of(&mut self, one: &TypeDescription) {
        let advice = one.all_advice().count();
        let totals = &one.totals;
        self.put(format_args!(
            "<tbody><tr><td class=\"number\" data-label=\"id\">{}</td>\
             <td class=\"name\"><a href=\"#{}\">{}</a></td><td data-label=\"parts\">",
            one.id,
            Anchor(&["type", &one.name]),
            Text(&one.name)
        ));
        self.parts(one);
        self.push("</td>");
        for (label, sum) in [
            ("own client", &totals.own_client),
            ("other clients", &totals.other_clients),
            ("ghosts", &totals.ghosts),
            ("stored", &totals.stored),
        ] {
            let none = if sum.members == 0 { " none" } else { "" };
            self.put(format_args!(
                "<td class=\"number{none}\" data-label=\"{label}\">{}</td>",
                bytes(sum)
            ));
        }
        match advice {
            0 => self.push("<td class=\"number none\" data-label=\"advice\">–</td></tr></tbody>\n"),
            _ => self.put(format_args!(
                "<td class=\"number\" data-label=\"advice\">{advice}</td></tr></tbody>\n"
            )),
        }
    }

    fn parts(&mut self, one: &TypeDescription) {
        self.push("<span class=\"chips\">");
        for part in part_marks(one.parts) {
            // The colour of properties on that part.
            let class = if part == "client" { "own" } else { part };
            self.put(format_args!("<span class=\"chip {class}\">{part}</span>"));
        }
        self.push("</span>");
    }
}

/// `41 B`, `23+ B (31)`, or a dash for an empty sum.
fn bytes(sum: &Sum) -> String {
    match (sum.members, sum.is_fixed) {
        (0, _) => "–".to_owned(),
        (_, true) => format!("{} B", sum.least),
        (_, false) => format!("<span>{}+ B <small>({})</small></span>", sum.least, sum.of_defaults),
    }
}
