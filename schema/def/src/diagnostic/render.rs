//! Diagnostics as text for a terminal.
//!
//! ```text
//! error[D0201]: there is no type `INT33`
//!   --> entity_defs/Avatar.def:12:10
//!    |
//! 12 |     <Type> INT33 </Type>
//!    |            ^^^^^
//!    = why: without its type a member has neither size nor default nor check
//!    = help: did you mean `INT32`?
//! ```

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
};

use super::{Diagnostic, Rule, Severity, SourceSpan};

/// Whether the text is coloured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Style {
    /// Plain text.
    #[default]
    Plain,
    /// With the escape sequences of terminals.
    Coloured,
}

/// Maximum diagnostics with the same message in a digest.
const MAX_ALIKE: usize = 3;

/// Columns of a tab stop.
const TAB: usize = 4;

/// All diagnostics, and a last line with their counts. Empty if there are none.
#[must_use]
pub fn render(diagnostics: &[Diagnostic], style: Style) -> String {
    let mut out = String::new();
    for diagnostic in diagnostics {
        render_one(diagnostic, style, &mut out);
        out.push('\n');
    }
    out.push_str(&counts(diagnostics));
    out
}

/// The diagnostics for a reader at a terminal: the most severe last, next to the prompt, and only a few of those with
/// the same message, with the number of the others. Empty if there are none.
#[must_use]
pub fn digest(diagnostics: &[Diagnostic], style: Style) -> String {
    let mut alike: BTreeMap<(Rule, &str), Vec<&Diagnostic>> = BTreeMap::new();
    for diagnostic in diagnostics {
        let those = alike.entry((diagnostic.rule, &diagnostic.message)).or_default();
        those.push(diagnostic);
    }
    let mut groups: Vec<_> = alike.into_values().collect();
    // The remark about omitted findings comes directly above the counts; the others are ordered by severity and place.
    groups.sort_by_key(|group| {
        let first = group[0];
        (first.rule == Rule::MoreFindings, Reverse(first.severity), &first.place)
    });
    let mut out = String::new();
    for group in groups {
        // One more diagnostic takes no more room than a line that says so.
        let shown = if group.len() <= MAX_ALIKE + 1 {
            group.len()
        } else {
            MAX_ALIKE
        };
        for diagnostic in &group[..shown] {
            render_one(diagnostic, style, &mut out);
            out.push('\n');
        }
        if let [first, ..] = &group[shown..] {
            let files: BTreeSet<&str> = group[shown..].iter().map(|one| one.place.file.as_str()).collect();
            let _ = writeln!(
                out,
                "… and {} more of {}, in {} file{}: {}\n",
                group.len() - shown,
                first.rule,
                files.len(),
                if files.len() == 1 { "" } else { "s" },
                first.message
            );
        }
    }
    out.push_str(&counts(diagnostics));
    out
}

/// `2 errors, 1 warning` with a line end; empty if there are none.
fn counts(diagnostics: &[Diagnostic]) -> String {
    let count = |severity| diagnostics.iter().filter(|d| d.severity == severity).count();
    let counts: Vec<String> = [Severity::Error, Severity::Warning, Severity::Lint, Severity::Note]
        .into_iter()
        .map(|severity| (count(severity), severity))
        .filter(|(count, _)| *count > 0)
        .map(|(count, severity)| format!("{count} {severity}{}", if count == 1 { "" } else { "s" }))
        .collect();
    match counts.as_slice() {
        [] => String::new(),
        counts => format!("{}\n", counts.join(", ")),
    }
}

fn render_one(diagnostic: &Diagnostic, style: Style, out: &mut String) {
    let Diagnostic {
        rule,
        severity,
        place,
        message,
        help,
        related,
        fix: _,
    } = diagnostic;
    let head = format!("{severity}[{rule}]");
    let places = related.iter().map(|(place, _)| place).chain([place]);
    let margin = places.map(|place| place.line.to_string().len()).max().unwrap_or(1);
    let _ = writeln!(
        out,
        "{}: {}",
        paint(&head, colour(*severity), style),
        paint(message, BOLD, style)
    );
    let mark = Mark {
        arrow: "-->",
        line: '^',
        what: "",
        colour: colour(*severity),
    };
    render_place(place, &mark, margin, style, out);
    for (place, what) in related {
        let mark = Mark {
            arrow: ":::",
            line: '-',
            what,
            colour: BLUE,
        };
        render_place(place, &mark, margin, style, out);
    }
    let bar = paint("=", BLUE, style);
    let _ = writeln!(out, "{:margin$} {bar} why: {}", "", rule.text().why);
    if let Some(help) = help {
        let _ = writeln!(out, "{:margin$} {bar} help: {help}", "");
    }
}

/// The style in which a place is marked.
struct Mark<'a> {
    arrow: &'a str,
    line: char,
    what: &'a str,
    colour: &'a str,
}

fn render_place(place: &SourceSpan, mark: &Mark<'_>, margin: usize, style: Style, out: &mut String) {
    let SourceSpan { file, line, column, .. } = place;
    let arrow = paint(mark.arrow, BLUE, style);
    if place.text.trim().is_empty() {
        let file = if file.is_empty() { "." } else { file };
        let _ = writeln!(out, "{:margin$}{arrow} {file}", "");
        return;
    }
    let bar = paint("|", BLUE, style);
    let (text, before, width) = visible(place);
    let _ = writeln!(out, "{:margin$}{arrow} {file}:{line}:{column}", "");
    let _ = writeln!(out, "{:margin$} {bar}", "");
    let _ = writeln!(out, "{} {bar} {text}", paint(&format!("{line:>margin$}"), BLUE, style));
    let marks = mark.line.to_string().repeat(width);
    let marks = paint(format!("{marks} {}", mark.what).trim_end(), mark.colour, style);
    let _ = writeln!(out, "{:margin$} {bar} {:before$}{marks}", "", "");
}

/// The line's text with tabs expanded and cuts marked, the columns before the place, and the columns of the place.
fn visible(place: &SourceSpan) -> (String, usize, usize) {
    let start = (place.column - place.text_column) as usize;
    let (mut text, mut columns) = (String::new(), 0);
    if place.text_column > 1 {
        text.push('…');
        columns = 1;
    }
    let (mut before, mut width) = (columns, 0);
    for (i, c) in place.text.chars().enumerate() {
        let c_width = if c == '\t' { TAB - columns % TAB } else { columns_of(c) };
        match c {
            '\t' => text.extend(std::iter::repeat_n(' ', c_width)),
            c if c.is_control() => text.push('\u{fffd}'),
            c => text.push(c),
        }
        columns += c_width;
        if i < start {
            before = columns;
        } else if i < start + place.width as usize {
            width = columns - before;
        }
    }
    if place.is_cut {
        text.push('…');
    }
    (text.trim_end().to_owned(), before, width.max(1))
}

/// Number of terminal columns of a text.
#[must_use]
pub fn columns(text: &str) -> usize {
    text.chars().map(columns_of).sum()
}

/// Number of terminal columns of a character: two for East Asian scripts and pictographs.
fn columns_of(c: char) -> usize {
    let is_wide = matches!(u32::from(c),
        0x1100..=0x115f | 0x2e80..=0xa4cf | 0xac00..=0xd7a3 | 0xf900..=0xfaff | 0xfe30..=0xfe6f
        | 0xff00..=0xff60 | 0xffe0..=0xffe6 | 0x1f300..=0x1faff | 0x20000..=0x3fffd);
    if is_wide { 2 } else { 1 }
}

const BOLD: &str = "1";
const BLUE: &str = "1;34";

fn colour(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "1;31",
        Severity::Warning => "1;33",
        Severity::Lint => "1;35",
        Severity::Note => "1;36",
    }
}

/// A text in a terminal colour, by its code: `1` is bold, `2` faint, `31` red.
#[must_use]
pub fn paint(text: &str, colour: &str, style: Style) -> String {
    match style {
        Style::Plain => text.to_owned(),
        Style::Coloured => format!("\u{1b}[{colour}m{text}\u{1b}[0m"),
    }
}
