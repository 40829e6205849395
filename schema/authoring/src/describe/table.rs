//! A description as text for a terminal, 100 columns wide.

use std::fmt::Write as _;

use annals_def::{Diagnostic, LedgerNames, Style, columns, paint};

use super::{
    ArgumentDescription, Description, Ids, MethodDescription, PropertyDescription, Sum, TypeDescription,
    marks::{method_marks, part_marks, property_marks, volatile_marks},
};

/// Width of a table, columns.
const WIDTH: usize = 100;

/// Columns between the cells of a row.
const GAP: usize = 2;

const BOLD: &str = "1";
const DIM: &str = "2";
const GREEN: &str = "32";
const YELLOW: &str = "33";

/// The types, then the services and user data objects. A text that does not fit its column ends in an ellipsis.
#[must_use]
pub fn to_table(description: &Description, style: Style) -> String {
    let mut out = String::new();
    for one in &description.types {
        entity_type(one, style, &mut out);
    }
    for service in &description.services {
        let _ = writeln!(out, "{}", paint(&format!("service {}", service.name), BOLD, style));
        methods("methods", service.methods.iter(), style, &mut out);
        out.push('\n');
    }
    for object in &description.user_data_objects {
        let head = format!("user data object {}", object.name);
        let _ = writeln!(out, "{}  {:?}", paint(&head, BOLD, style), object.domain);
        let rows = object.properties.iter().map(|(property, default)| {
            [
                property.name.clone(),
                property.data_type.clone(),
                property.size.to_string(),
                default.in_words(),
            ]
        });
        table(
            ["property", "type", "size", "default"],
            &rows.collect::<Vec<_>>(),
            style,
            &mut out,
        );
        out.push('\n');
    }
    ledger_names(&description.ledger_names, style, &mut out);
    out
}

/// The names of the ledger's numbers.
fn ledger_names(names: &LedgerNames, style: Style, out: &mut String) {
    if names.is_empty() {
        return;
    }
    let _ = writeln!(out, "{}", paint("ledger", BOLD, style));
    let kinds = names.kinds().iter();
    let kinds: Vec<_> = kinds.map(|(kind, name)| [kind.to_string(), name.clone()]).collect();
    let slots = names.slots().iter();
    let slots: Vec<_> = slots.map(|(slot, name)| [slot.to_string(), name.clone()]).collect();
    for (head, rows) in [("kind", kinds), ("slot", slots)] {
        if !rows.is_empty() {
            table([head, "name"], &rows, style, out);
        }
    }
    out.push('\n');
}

fn entity_type(one: &TypeDescription, style: Style, out: &mut String) {
    let place = one
        .origin
        .as_ref()
        .map(|origin| origin.place.to_string())
        .unwrap_or_default();
    let head = paint(&one.name, BOLD, style);
    let _ = writeln!(
        out,
        "{head}  type {}: {}  {}",
        one.id,
        part_marks(one.parts).join(", "),
        paint(&place, DIM, style)
    );
    let documentation = one.origin.as_ref().and_then(|origin| origin.documentation.as_deref());
    for line in documentation.unwrap_or_default().lines() {
        let _ = writeln!(out, "  {}", paint(&fitted(line, WIDTH - 2), GREEN, style));
    }
    for line in facts(one) {
        let _ = writeln!(out, "  {line}");
    }
    let seen = one.client_properties.members.iter().map(|id| one.property(*id));
    let unseen = one.properties.iter().filter(|property| property.id.is_none());
    properties(seen.chain(unseen), style, out);
    let called = |ids: &Ids, methods: &'_ [MethodDescription]| -> Vec<usize> {
        let known = ids.members.iter().map(|id| usize::from(id.0));
        let others = (0..methods.len()).filter(|at| methods[*at].id.is_none());
        known.chain(others).collect()
    };
    for (part, ids, list) in [
        ("client methods", &one.client_method_ids, &one.client_methods),
        ("cell methods", &one.exposed_cell_methods, &one.cell_methods),
        ("base methods", &one.exposed_base_methods, &one.base_methods),
    ] {
        methods(part, called(ids, list).into_iter().map(|at| &list[at]), style, out);
    }
    advice(one, style, out);
    out.push('\n');
}

/// Warnings and advice on a type and its members.
fn advice(one: &TypeDescription, style: Style, out: &mut String) {
    let all: Vec<&Diagnostic> = one.all_advice().collect();
    if !all.is_empty() {
        out.push('\n');
    }
    for one in all {
        let code = one.rule.to_string();
        let text = match &one.help {
            Some(help) => format!("{}; {help}", one.message),
            None => one.message.clone(),
        };
        for (at, line) in wrapped(&text, WIDTH - GAP - code.len() - GAP).iter().enumerate() {
            let code = if at == 0 {
                paint(&code, YELLOW, style)
            } else {
                " ".repeat(code.len())
            };
            let _ = writeln!(out, "  {code}  {line}");
        }
    }
}

/// A text wrapped to this many columns.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let last = lines.len() - 1;
        let line = &mut lines[last];
        if line.is_empty() {
            *line = fitted(word, width);
        } else if columns(line) + 1 + columns(word) <= width {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(fitted(word, width));
        }
    }
    lines
}

/// Facts about a type as a whole, in lines.
fn facts(one: &TypeDescription) -> Vec<String> {
    let mut facts = Vec::new();
    let ancestors: Vec<String> = one.ancestors().iter().map(ToString::to_string).collect();
    if !ancestors.is_empty() {
        facts.push(format!("inherits     {}", ancestors.join(", ")));
    }
    if let Some(client_type) = &one.client_type {
        facts.push(format!("clients      see it as {client_type}"));
    }
    let totals = &one.totals;
    for (who, sum) in [
        ("own client", &totals.own_client),
        ("other client", &totals.other_clients),
        ("ghost", &totals.ghosts),
    ] {
        if sum.members > 0 {
            facts.push(format!("{who:<12} {}", whole(sum)));
        }
    }
    facts.push(match one.persistent {
        true => format!("store        {}", whole(&totals.stored)),
        false => "store        nothing: its entities are not stored".to_owned(),
    });
    let volatile = volatile_marks(one);
    if !volatile.is_empty() {
        facts.push(format!("volatile     {}", volatile.join(", ")));
    }
    let levels: Vec<String> = one
        .lod_levels
        .iter()
        .map(|level| format!("{} to {} m (+ {})", level.label, level.radius, level.hysteresis))
        .collect();
    if !levels.is_empty() {
        facts.push(format!("levels       {}", levels.join(", ")));
    }
    let lists = [
        ("client properties", &one.client_properties),
        ("client methods", &one.client_method_ids),
        ("exposed base methods", &one.exposed_base_methods),
        ("exposed cell methods", &one.exposed_cell_methods),
    ];
    for (what, ids) in lists {
        if ids.overflowing() > 0 {
            let (count, over) = (ids.members.len(), ids.overflowing());
            facts.push(format!(
                "ids          {over} of {count} {what} have an id of more than one byte"
            ));
        }
    }
    facts
}

/// `5 properties, 23+ B, 31 B while each holds its default`.
fn whole(sum: &Sum) -> String {
    let properties = if sum.members == 1 { "property" } else { "properties" };
    match sum.is_fixed {
        true => format!("{} {properties}, {} B", sum.members, sum.least),
        false => format!(
            "{} {properties}, {}+ B; {} B with defaults",
            sum.members, sum.least, sum.of_defaults
        ),
    }
}

fn properties<'p>(list: impl Iterator<Item = &'p PropertyDescription>, style: Style, out: &mut String) {
    let rows: Vec<[String; 8]> = list
        .map(|property| {
            let level = match (&property.level, property.distribution.to_other_clients()) {
                (Some(level), _) => &level.label,
                (None, true) => "any",
                (None, false) => "",
            };
            let stored = property.storage.as_ref().map(|storage| storage.size.to_string());
            [
                number(property.id),
                property.name.clone(),
                property.written().to_owned(),
                property.size.to_string(),
                property
                    .receivers()
                    .join(" ")
                    .replace(" client", "")
                    .replace("others", "other"),
                level.to_owned(),
                stored.unwrap_or_default(),
                property_marks(property).join(", "),
            ]
        })
        .collect();
    table(
        ["id", "property", "type", "size", "who has it", "level", "stored", ""],
        &rows,
        style,
        out,
    );
}

/// An id; a dash for members that clients do not know.
fn number(id: Option<u16>) -> String {
    id.map_or("–".to_owned(), |id| id.to_string())
}

fn methods<'m>(title: &'static str, list: impl Iterator<Item = &'m MethodDescription>, style: Style, out: &mut String) {
    let rows: Vec<[String; 4]> = list
        .map(|method| {
            let notes = method_marks(method);
            [
                number(method.id),
                signature(method),
                method.size.to_string(),
                notes.join(", "),
            ]
        })
        .collect();
    table(["id", title, "size", ""], &rows, style, out);
}

/// `say(text: UNICODE_STRING) → (listeners: UINT8)`, aliases unresolved.
fn signature(method: &MethodDescription) -> String {
    let list = |arguments: &[ArgumentDescription], written: &[String]| {
        let shown = arguments.iter().enumerate().map(|(at, argument)| {
            let data_type = written.get(at).unwrap_or(&argument.data_type);
            format!("{}: {data_type}", argument.name)
        });
        shown.collect::<Vec<_>>().join(", ")
    };
    let args = list(&method.args, method.written());
    if method.returns.is_empty() {
        return format!("{}({args})", method.name);
    }
    format!("{}({args}) → ({})", method.name, list(&method.returns, &[]))
}

/// Minimum width of a shrunk cell, columns.
const NARROWEST: usize = 10;

/// The columns that are never shrunk: a truncated number would be misleading.
const WHOLE: [&str; 5] = ["id", "size", "who has it", "level", "stored"];

/// A table with a head: each column as wide as needed; the widest shrink until the rows fit.
fn table<const N: usize>(head: [&str; N], rows: &[[String; N]], style: Style, out: &mut String) {
    if rows.is_empty() {
        return;
    }
    let mut widths = head.map(columns);
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(columns(cell));
        }
    }
    let room = WIDTH - GAP - GAP * (N - 1);
    while widths.iter().sum::<usize>() > room {
        let yielding = widths.iter_mut().zip(head).filter(|(_, head)| !WHOLE.contains(head));
        let widest = yielding.map(|(width, _)| width).max_by_key(|width| **width);
        let Some(widest) = widest.filter(|width| **width > NARROWEST) else {
            break;
        };
        *widest -= 1;
    }
    let line = |cells: &[String; N]| {
        let mut line = " ".repeat(GAP);
        for (at, (cell, width)) in cells.iter().zip(widths).enumerate() {
            let cell = fitted(cell, width);
            let blanks = " ".repeat(width - columns(&cell));
            // Numbers and sizes are right-aligned.
            let is_right = matches!(head[at], "id" | "size" | "stored");
            line.push_str(&if is_right { blanks + &cell } else { cell + &blanks });
            line.push_str(&" ".repeat(GAP));
        }
        line.trim_end().to_owned()
    };
    let _ = writeln!(out, "\n{}", paint(&line(&head.map(str::to_owned)), DIM, style));
    for row in rows {
        let _ = writeln!(out, "{}", line(row));
    }
}

/// The text, truncated to this many columns.
fn fitted(text: &str, width: usize) -> String {
    let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    if columns(&text) <= width {
        return text;
    }
    let mut fitted = String::new();
    for c in text.chars() {
        if columns(&fitted) + columns(c.encode_utf8(&mut [0; 4])) + 1 > width {
            break;
        }
        fitted.push(c);
    }
    fitted.push('…');
    fitted
}
