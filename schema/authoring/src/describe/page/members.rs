//! The tables of a section: properties and methods.

use annals_def::{Diagnostic, Ids, MemberOrigin, Size};

use super::{
    Page,
    escape::{Anchor, Text},
    kinds::{codes, shortened},
};
use crate::{
    describe::ArgumentDescription, describe::MethodDescription, describe::PropertyDescription,
    describe::TypeDescription, describe::marks::method_marks, describe::marks::property_marks,
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
    pub(super) fn property_table(&mut self, one: &TypeDescription) {
        if one.properties.is_empty() {
            return;
        }
        self.put(format_args!(
            "<div data-table><h3>Properties{}</h3>\n",
            overflow(&one.client_properties)
        ));
        self.push(
            "<table class=\"properties\"><thead><tr><th class=\"number\">id</th><th>property</th><th>type</th>\
             <th class=\"number\">size</th><th>who has it</th><th>level</th><th class=\"number\">stored</th>\
             <th>default</th></tr></thead>\n",
        );
        let seen = one.client_properties.members.iter().map(|id| one.property(*id));
        let others = one.properties.iter().filter(|property| property.id.is_none());
        for property in seen.chain(others) {
            self.property(&one.name, property);
        }
        self.push("</table></div>\n");
    }

    fn property(&mut self, owner: &str, property: &PropertyDescription) {
        let name = &property.name;
        let marks = property_marks(property);
        let find = property_words(owner, property, &marks);
        self.put(format_args!(
            "<tbody id=\"{anchor}\" data-item data-find=\"{}\"><tr>",
            Text(&find),
            anchor = Anchor(&["type", owner, name]),
        ));
        self.id(property.id);
        self.put(format_args!(
            "<td class=\"name\"><a href=\"#{}\">{}</a>",
            Anchor(&["type", owner, name]),
            Text(name)
        ));
        self.said(owner, property.origin.as_ref());
        self.chips(marks.iter().map(|mark| ("", mark.as_str())));
        self.put(format_args!(
            "</td><td class=\"type\" data-label=\"type\"><code title=\"{}\">",
            Text(&shortened(&property.data_type))
        ));
        self.written(property.written());
        self.push("</code></td>");
        self.size(property.size, "size");
        self.put(format_args!(
            "<td class=\"who\" data-label=\"who has it\"><span title=\"{}\">",
            property.distribution.flag()
        ));
        let receivers = property.receivers();
        let has = |who: &&(&str, &str, &str)| receivers.contains(&who.0);
        self.chips(RECEIVERS.iter().filter(has).map(|(_, class, word)| (*class, *word)));
        self.push("</span></td>");
        match (&property.level, property.distribution.to_other_clients()) {
            (Some(level), _) => self.put(format_args!(
                "<td class=\"level\" data-label=\"level\"><span>{} <small>{} m</small></span></td>",
                Text(&level.label),
                level.radius
            )),
            (None, true) => self.push("<td class=\"level\" data-label=\"level\">any</td>"),
            (None, false) => self.push("<td class=\"none\" data-label=\"level\">–</td>"),
        }
        match &property.storage {
            Some(storage) => self.size(storage.size, "stored"),
            None => self.push("<td class=\"number none\" data-label=\"stored\">–</td>"),
        }
        self.put(format_args!(
            "<td class=\"default\" data-label=\"default\"><code>{}</code></td></tr>",
            Text(&shortened(&property.default.in_words()))
        ));
        self.advice_row(&property.advice, 8);
    }

    /// The methods of one part: those that clients know in the order of their ids, then the others.
    pub(super) fn method_table(
        &mut self,
        (title, part): (&str, &str),
        owner: &str,
        methods: &[&MethodDescription],
        ids: Option<&Ids>,
    ) {
        if methods.is_empty() {
            return;
        }
        let over = ids.map(overflow).unwrap_or_default();
        self.put(format_args!(
            "<div data-table><h3>{title}{over}</h3>\n<table class=\"methods\"><thead><tr><th class=\"number\">id</th>\
             <th>method</th><th>arguments</th><th class=\"number\">size</th><th>who</th></tr></thead>\n"
        ));
        methods.iter().for_each(|method| self.method(part, owner, method));
        self.push("</table></div>\n");
    }

    fn method(&mut self, part: &str, owner: &str, method: &MethodDescription) {
        let name = &method.name;
        let marks = method_marks(method);
        let types = method
            .args
            .iter()
            .chain(&method.returns)
            .map(|arg| shortened(&arg.data_type));
        let names = method.args.iter().map(|arg| arg.name.as_str());
        let find = [
            owner,
            name,
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
        let find = find.join(" ").to_lowercase();
        let anchor = match part {
            "service" => Anchor(&["service", owner, name]).to_string(),
            part => Anchor(&["type", owner, part, name]).to_string(),
        };
        self.put(format_args!(
            "<tbody id=\"{anchor}\" data-item data-find=\"{}\"><tr>",
            Text(&find)
        ));
        self.id(method.id);
        self.put(format_args!(
            "<td class=\"name\"><a href=\"#{anchor}\">{}</a>",
            Text(name)
        ));
        self.said(owner, method.origin.as_ref());
        let none = if method.args.is_empty() && method.returns.is_empty() {
            " none"
        } else {
            ""
        };
        self.put(format_args!(
            "</td><td class=\"type{none}\" data-label=\"arguments\"><span>"
        ));
        self.arguments(&method.args, method.written());
        if !method.returns.is_empty() {
            self.push(" → ");
            self.arguments(&method.returns, &[]);
        }
        self.push("</span></td>");
        self.size(method.size, "size");
        let none = if marks.is_empty() { " class=\"none\"" } else { "" };
        self.put(format_args!("<td{none} data-label=\"who\">"));
        self.chips(marks.iter().map(|mark| (class_of(mark), mark.as_str())));
        self.push("</td></tr>");
        self.advice_row(&method.advice, 5);
    }

    /// Advice on a member in a row below it, and the end of the member.
    fn advice_row(&mut self, advice: &[Diagnostic], columns: usize) {
        if !advice.is_empty() {
            self.put(format_args!("<tr><td></td><td colspan=\"{}\">", columns - 1));
            self.advice(advice);
            self.push("</td></tr>");
        }
        self.push("</tbody>\n");
    }

    fn arguments(&mut self, arguments: &[ArgumentDescription], written: &[String]) {
        for (at, argument) in arguments.iter().enumerate() {
            self.push(if at > 0 { ", " } else { "" });
            self.put(format_args!(
                "{}: <code title=\"{}\">",
                Text(&argument.name),
                argument.size
            ));
            match written.get(at) {
                Some(written) => self.written(written),
                None => self.put(format_args!("{}", Text(&shortened(&argument.data_type)))),
            }
            self.push("</code>");
        }
        if arguments.is_empty() {
            self.push("–");
        }
    }

    fn id(&mut self, id: Option<u16>) {
        match id {
            Some(id) => self.put(format_args!("<td class=\"number\" data-label=\"id\">{id}</td>")),
            None => self.push("<td class=\"number none\" data-label=\"id\">–</td>"),
        }
    }

    fn size(&mut self, size: Size, label: &str) {
        match size {
            Size::Fixed(bytes) => {
                self.put(format_args!(
                    "<td class=\"number\" data-label=\"{label}\">{bytes} B</td>"
                ));
            }
            Size::Variable { least, of_default } => self.put(format_args!(
                "<td class=\"number\" data-label=\"{label}\" \
                 title=\"at least {least} bytes; the default takes {of_default}\">{least}+ B</td>"
            )),
        }
    }

    /// The documentation of a member, and its place if it is declared elsewhere.
    fn said(&mut self, owner: &str, origin: Option<&MemberOrigin>) {
        let Some(origin) = origin else { return };
        if let Some(documentation) = &origin.documentation {
            self.put(format_args!("<div class=\"doc\">{}</div>", Text(documentation)));
        }
        if origin.from.name != owner {
            self.put(format_args!(
                "<div class=\"place\">from <a href=\"#{}\">{}</a></div>",
                Anchor(&["definition", origin.from.kind.name(), &origin.from.name]),
                Text(&origin.from.to_string())
            ));
        }
    }

    fn chips<'c>(&mut self, chips: impl Iterator<Item = (&'static str, &'c str)>) {
        let mut any = false;
        for (class, word) in chips {
            self.push(if any { "" } else { "<span class=\"chips\">" });
            any = true;
            self.put(format_args!("<span class=\"chip {class}\">{}</span>", Text(word)));
        }
        self.push(if any { "</span>" } else { "" });
    }
}

/// The number of ids in a list that take more than one byte, if any.
fn overflow(ids: &Ids) -> String {
    match ids.overflowing() {
        0 => String::new(),
        over => format!(
            " <small>{over} of {} ids take more than one byte</small>",
            ids.members.len()
        ),
    }
}

fn class_of(mark: &str) -> &'static str {
    match mark {
        "exposed to own client" => "own",
        "exposed to all clients" => "others",
        _ => "",
    }
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
