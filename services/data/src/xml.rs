//! Writes a document as XML, and checks which text a document can contain.

use crate::{
    document::{Comments, Document},
    editing::EditError,
    section::Section,
};

/// The document as the text of a file.
pub(crate) fn document(document: &Document) -> String {
    let mut out = String::new();
    put(document.root(), 0, &mut out);
    for comment in &document.comments_behind {
        put_comment(comment, 0, &mut out);
    }
    out
}

/// A section with all its contents.
pub(crate) fn section(section: Section<'_>) -> String {
    let mut out = String::new();
    put(section, 0, &mut out);
    out
}

/// Writes a section on its own lines. Its depth is within the limit of a document.
fn put(section: Section<'_>, level: usize, out: &mut String) {
    let node = &section.document().nodes[section.at];
    let comments = node.comments.as_deref();
    let comments = |part: fn(&Comments) -> &[String]| comments.map_or(&[][..], part);
    for comment in comments(|comments| &comments.before) {
        put_comment(comment, level, out);
    }
    indent(level, out);
    out.push('<');
    out.push_str(&node.name);
    for (name, value) in &node.attributes {
        out.push_str(&format!(" {name}=\""));
        put_text(value, TextPosition::Attribute, out);
        out.push('"');
    }
    out.push('>');
    if !node.text.is_empty() {
        out.push(' ');
        put_text(&node.text, TextPosition::Section, out);
    }
    let at_end = comments(|comments| &comments.at_end);
    if node.children.is_empty() && at_end.is_empty() {
        out.push(' ');
    } else {
        out.push('\n');
        for child in section.children() {
            put(child, level + 1, out);
        }
        for comment in at_end {
            put_comment(comment, level + 1, out);
        }
        indent(level, out);
    }
    out.push_str("</");
    out.push_str(&node.name);
    out.push_str(">\n");
}

fn put_comment(comment: &str, level: usize, out: &mut String) {
    indent(level, out);
    out.push_str("<!--");
    out.push_str(comment);
    out.push_str("-->\n");
}

fn indent(level: usize, out: &mut String) {
    out.extend(std::iter::repeat_n('\t', level));
}

/// Position of a text.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TextPosition {
    Section,
    Attribute,
}

/// Writes a text so that it reads back unchanged.
fn put_text(text: &str, place: TextPosition, out: &mut String) {
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            // Readers would convert it to a line feed.
            '\r' => out.push_str("&#13;"),
            '"' if place == TextPosition::Attribute => out.push_str("&quot;"),
            // Readers would convert them to blanks there.
            '\n' if place == TextPosition::Attribute => out.push_str("&#10;"),
            '\t' if place == TextPosition::Attribute => out.push_str("&#9;"),
            c => out.push(c),
        }
    }
}

/// The text, if a file can contain it.
pub(crate) fn written(text: &str) -> Result<&str, EditError> {
    match foreign_character(text) {
        None => Ok(text),
        Some(character) => Err(EditError::Character(character.into())),
    }
}

/// The first character that XML cannot represent.
pub(crate) fn foreign_character(text: &str) -> Option<char> {
    text.chars()
        .find(|c| !matches!(c, '\t' | '\n' | '\r' | ' '..='\u{fffd}' | '\u{10000}'..))
}

/// Rejects invalid XML names. In XML, colons separate namespaces, which data files do not use.
pub(crate) fn check_name(name: &str) -> Result<(), EditError> {
    let mut rest = name.chars();
    if rest.next().is_some_and(begins_name) && rest.all(continues_name) {
        Ok(())
    } else {
        Err(EditError::Name(name.to_owned()))
    }
}

/// `NameStartChar` of XML 1.0, without the colon.
fn begins_name(c: char) -> bool {
    matches!(c, 'A'..='Z' | '_' | 'a'..='z' | '\u{c0}'..='\u{d6}' | '\u{d8}'..='\u{f6}' | '\u{f8}'..='\u{2ff}'
        | '\u{370}'..='\u{37d}' | '\u{37f}'..='\u{1fff}' | '\u{200c}'..='\u{200d}' | '\u{2070}'..='\u{218f}'
        | '\u{2c00}'..='\u{2fef}' | '\u{3001}'..='\u{d7ff}' | '\u{f900}'..='\u{fdcf}' | '\u{fdf0}'..='\u{fffd}'
        | '\u{10000}'..='\u{effff}')
}

/// `NameChar` of XML 1.0, without the colon.
fn continues_name(c: char) -> bool {
    begins_name(c) || matches!(c, '-' | '.' | '0'..='9' | '\u{b7}' | '\u{300}'..='\u{36f}' | '\u{203f}'..='\u{2040}')
}
