//! Parses XML to a [`Document`], in one pass over the bytes.
//!
//! Supports what definitions use: elements, attributes, text with the five named and all numeric character references,
//! CDATA. Comments are recorded, processing instructions skipped. Document types with declarations are rejected, so
//! nothing can expand. The tests compare the result with another parser's.

#[cfg(test)]
mod oracle;

use super::{Attribute, Comment, Document, Extra, FileId, MAX_XML_DEPTH, Node, Span, position};
use crate::{
    data_type::MAX_TYPE_DEPTH,
    diagnostic::{Finding, Findings, Rule},
};

/// Maximum attributes of a tag: each is compared with all before it, and three are understood.
const MAX_ATTRIBUTES: usize = 64;

/// The separators inside a tag.
const BLANKS: [char; 4] = [' ', '\t', '\n', '\r'];

/// Approximate bytes of a definition file per element, for the initial capacity.
const BYTES_PER_ELEMENT: usize = 28;

/// The elements of a file; none and a finding if the file is not well-formed.
pub(crate) fn parse<'s>(file: FileId, text: &'s str, findings: &mut Findings) -> Document<'s> {
    let mut parser = Parser {
        file,
        text,
        at: 0,
        nodes: Vec::with_capacity(text.len() / BYTES_PER_ELEMENT),
        extras: Vec::new(),
        comments: Vec::new(),
        open: Vec::new(),
        findings,
    };
    match parser.run() {
        Ok(()) => Document {
            file,
            text,
            nodes: parser.nodes,
            extras: parser.extras,
            comments: parser.comments,
        },
        Err(Stop) => Document::default(),
    }
}

struct Parser<'s, 'f> {
    file: FileId,
    text: &'s str,
    /// The offset of the next piece.
    at: usize,
    nodes: Vec<Node<'s>>,
    extras: Vec<Extra<'s>>,
    comments: Vec<Comment<'s>>,
    open: Vec<Open>,
    findings: &'f mut Findings,
}

/// An element without its end tag so far.
struct Open {
    node: usize,
    /// Number of nodes when text was last added.
    nodes_at_text: usize,
}

/// Parsing cannot continue; a finding says why.
struct Stop;

impl<'s> Parser<'s, '_> {
    fn run(&mut self) -> Result<(), Stop> {
        let bytes = self.text.as_bytes();
        while self.at < bytes.len() {
            let begin = self.at;
            while bytes.get(self.at).is_some_and(u8::is_ascii_whitespace) {
                self.at += 1;
            }
            // Blanks between elements are most of a file and have no meaning; within a text they are part of it.
            if begin < self.at && self.is_in_text() {
                self.at = begin;
                self.plain_text();
            }
            match bytes.get(self.at) {
                Some(b'<') => self.markup()?,
                Some(b'&') => self.reference()?,
                Some(_) => self.plain_text(),
                None => break,
            }
        }
        if let Some(open) = self.open.last() {
            let node = &self.nodes[open.node];
            let message = format!("`<{}>` is not closed before the end of the file", node.name);
            let finding = Finding::new(Rule::NotWellFormed, self.name_span(node), message)
                .help(format!("add `</{}>`", node.name));
            self.findings.push(finding);
            return Err(Stop);
        }
        if self.nodes.is_empty() {
            let start = self.span(0, 0);
            let finding = Finding::new(Rule::NotWellFormed, start, "the file has no root element")
                .help("the smallest file is `<root> </root>`");
            self.findings.push(finding);
        }
        Ok(())
    }

    /// Whether further text belongs to the text of the open element.
    fn is_in_text(&self) -> bool {
        self.open
            .last()
            .is_some_and(|open| open.nodes_at_text == self.nodes.len() && self.nodes[open.node].has_text())
    }

    /// Parses text up to the next tag or reference.
    fn plain_text(&mut self) {
        let rest = &self.text.as_bytes()[self.at..];
        let length = rest.iter().position(|&byte| byte == b'<' || byte == b'&');
        let begin = self.at;
        self.at += length.unwrap_or(rest.len());
        self.add_text(begin, None);
    }

    /// Parses what begins with `<`.
    fn markup(&mut self) -> Result<(), Stop> {
        let rest = &self.text[self.at..];
        match rest.as_bytes().get(1) {
            Some(b'/') => self.end_tag(),
            Some(b'!') => {
                if rest.starts_with("<!--") {
                    let begin = self.at;
                    let text = self.pass("<!--", "-->", "the comment")?;
                    self.comments.push(Comment {
                        text,
                        begin: position(begin),
                        inside: self.open.last().map(|open| position(open.node)),
                        before: position(self.nodes.len()),
                    });
                    Ok(())
                } else if rest.starts_with("<![CDATA[") {
                    let begin = self.at;
                    let content = self.pass("<![CDATA[", "]]>", "the CDATA section")?;
                    self.add_text(begin, Some(&with_line_feeds(content)));
                    Ok(())
                } else {
                    self.doc_type()
                }
            }
            Some(b'?') => self.pass("<?", "?>", "the processing instruction").map(|_| ()),
            _ => self.start_tag(),
        }
    }

    /// Advances behind the end of a delimited piece that begins here; returns its content.
    fn pass(&mut self, begin: &str, end: &str, what: &str) -> Result<&'s str, Stop> {
        let content = &self.text[self.at + begin.len()..];
        let Some(length) = content.find(end) else {
            let span = self.span(self.at, self.at + begin.len());
            let finding = Finding::new(Rule::NotWellFormed, span, format!("{what} is not closed"));
            self.findings.push(finding.help(format!("add `{end}`")));
            return Err(Stop);
        };
        self.at += begin.len() + length + end.len();
        Ok(&content[..length])
    }

    fn start_tag(&mut self) -> Result<(), Stop> {
        let (text, begin) = (self.text, self.at + 1);
        let bytes = text.as_bytes();
        let is_no_name = |byte: &u8| matches!(byte, b'"' | b'\'' | b'&' | b'=' | b'!');
        let ends_name =
            |byte: &u8| matches!(byte, b'>' | b'/' | b'<' | b' ' | b'\t' | b'\n' | b'\r') || is_no_name(byte);
        let length = bytes[begin..].iter().position(ends_name);
        let name_end = length.map_or(bytes.len(), |length| begin + length);
        let name = &text[begin..name_end];
        let name_span = self.span(begin, name_end);
        if name.is_empty() || bytes.get(name_end).is_some_and(is_no_name) {
            let end = (name_end + 1).min(bytes.len());
            let noted = text.get(self.at..end).unwrap_or("<").trim_end();
            let finding = Finding::new(
                Rule::NotWellFormed,
                self.span(self.at, end),
                format!("`{noted}` does not begin a tag"),
            );
            self.findings
                .push(finding.help("write `&lt;` for the character itself"));
            return Err(Stop);
        }
        let (attributes, is_closed) = match bytes.get(name_end) {
            Some(b'>') => {
                self.at = name_end + 1;
                (Vec::new(), false)
            }
            Some(b'/') if bytes.get(name_end + 1) == Some(&b'>') => {
                self.at = name_end + 2;
                (Vec::new(), true)
            }
            _ => {
                self.at = name_end;
                self.attributes(name, name_span)?
            }
        };
        if self.open.is_empty() && !self.nodes.is_empty() {
            let message = format!("`<{name}>` follows the root element");
            let finding =
                Finding::new(Rule::NotWellFormed, name_span, message).help("put everything into one root element");
            self.findings.push(finding);
            return Err(Stop);
        }
        if self.open.len() == MAX_XML_DEPTH {
            self.findings.push(too_deep(name_span));
            return Err(Stop);
        }
        let behind = position(self.at);
        if !is_closed {
            self.open.push(Open {
                node: self.nodes.len(),
                nodes_at_text: self.nodes.len() + 1,
            });
        }
        let extra = (!attributes.is_empty()).then(|| {
            self.extras.push(Extra { text: None, attributes });
            position(self.extras.len() - 1)
        });
        self.nodes.push(Node {
            name,
            name_start: name_span.start,
            text_start: behind,
            text_end: behind,
            size: 1,
            extra,
        });
        Ok(())
    }

    /// Parses the attributes of a start tag, and whether it is self-closing; advances behind it.
    fn attributes(&mut self, tag: &str, tag_span: Span) -> Result<(Vec<Attribute<'s>>, bool), Stop> {
        let mut attributes: Vec<Attribute<'s>> = Vec::new();
        let text = self.text;
        loop {
            let rest = text[self.at..].trim_start_matches(BLANKS);
            self.at = text.len() - rest.len();
            if rest.starts_with('>') {
                self.at += 1;
                return Ok((attributes, false));
            }
            if rest.starts_with("/>") {
                self.at += 2;
                return Ok((attributes, true));
            }
            if rest.starts_with('/') {
                let span = self.span(self.at, self.at + 1);
                let message = format!("`/` does not close the tag `<{tag}`");
                self.findings
                    .push(Finding::new(Rule::NotWellFormed, span, message).help("write `/>`, or remove it"));
                return Err(Stop);
            }
            let Some(first) = rest.chars().next().filter(|c| *c != '<') else {
                return Err(self.tag_without_end(tag, tag_span));
            };
            let length = rest.find(|c: char| BLANKS.contains(&c) || "=>/<\"'".contains(c));
            let name = &rest[..length.unwrap_or(rest.len()).max(first.len_utf8())];
            let span = self.span(self.at, self.at + name.len());
            let behind_name = &rest[name.len()..];
            let Some((value, behind)) = quoted(behind_name) else {
                if let Some(quote) = opening_quote(behind_name) {
                    let message = format!("the value of the attribute `{name}` is not closed");
                    let finding = Finding::new(Rule::NotWellFormed, span, message);
                    self.findings.push(finding.help(format!("close it with `{quote}`")));
                    return Err(Stop);
                }
                let message = format!("the attribute `{name}` has no value");
                let finding = Finding::new(Rule::Attribute, span, message).help("remove it, or write `name=\"value\"`");
                self.findings.push(finding);
                // The tag cannot be parsed further; its end must still be found with certainty.
                let end = rest.find(['>', '<', '"', '\'']);
                let Some(end) = end.filter(|&end| rest[end..].starts_with('>')) else {
                    return Err(self.tag_without_end(tag, tag_span));
                };
                self.at += end + 1;
                return Ok((attributes, rest[..end].ends_with('/')));
            };
            if value.contains('<') {
                return Err(self.tag_without_end(tag, tag_span));
            }
            self.at = text.len() - behind.len();
            if attributes.len() == MAX_ATTRIBUTES {
                let message = format!("the tag `<{tag}` has more than {MAX_ATTRIBUTES} attributes");
                let finding = Finding::new(Rule::NotWellFormed, tag_span, message);
                self.findings.push(finding.help("use elements instead"));
                return Err(Stop);
            }
            if attributes.iter().any(|known| known.name == name) {
                let message = format!("the attribute `{name}` is repeated; the first one takes effect");
                self.findings
                    .push(Finding::new(Rule::Attribute, span, message).help("remove one of the two"));
            } else {
                attributes.push(Attribute { name, value, span });
            }
        }
    }

    fn tag_without_end(&mut self, tag: &str, span: Span) -> Stop {
        let message = format!("the tag `<{tag}` has no `>` before the next tag");
        self.findings
            .push(Finding::new(Rule::NotWellFormed, span, message).help("close it with `>`"));
        Stop
    }

    fn end_tag(&mut self) -> Result<(), Stop> {
        let name_start = self.at + 2;
        let rest = &self.text[name_start..];
        let open = self.open.last();
        let expected = open.map_or("", |open| self.nodes[open.node].name);
        let is_expected = !expected.is_empty()
            && rest.as_bytes().get(expected.len()) == Some(&b'>')
            && rest.as_bytes().starts_with(expected.as_bytes());
        let length = match is_expected {
            true => expected.len(),
            false => self.other_end_tag(expected, rest)?,
        };
        self.at = name_start + length + 1;
        if let Some(open) = self.open.pop() {
            let size = position(self.nodes.len() - open.node);
            let node = &mut self.nodes[open.node];
            node.size = size;
            if node.has_text() {
                let noted = &self.text[node.text_start as usize..node.text_end as usize];
                node.text_end = node.text_start + position(trim_end(noted).len());
                if let Some(extra) = node.extra
                    && let Some(text) = &mut self.extras[extra as usize].text
                {
                    text.truncate(trim_end(text).len());
                }
            }
        }
        Ok(())
    }

    /// The length of an end tag with blanks in it; reports a wrong end tag.
    fn other_end_tag(&mut self, expected: &str, rest: &str) -> Result<usize, Stop> {
        let end = rest.find(['>', '<']).filter(|&end| rest[end..].starts_with('>'));
        let name = rest[..end.unwrap_or(0)].trim_end_matches(BLANKS);
        if !expected.is_empty() && name == expected {
            return Ok(end.unwrap_or(0));
        }
        let span = self.span(self.at, self.at + 2 + end.map_or(0, |end| end + 1));
        let finding = match (end, self.open.last()) {
            (None, _) => Finding::new(Rule::NotWellFormed, span, "the end tag has no `>`").help("close it with `>`"),
            (Some(_), None) => {
                let message = format!("`</{name}>` has no start tag");
                Finding::new(Rule::NotWellFormed, span, message).help("remove it, or add its start tag")
            }
            (Some(_), Some(open)) => {
                let message = format!("expected `</{expected}>` to close `<{expected}>`, found `</{name}>`");
                let is_outer = self.open.iter().any(|open| self.nodes[open.node].name == name);
                let help = if is_outer {
                    format!("add `</{expected}>` before it")
                } else {
                    format!("write `</{expected}>`")
                };
                Finding::new(Rule::NotWellFormed, span, message)
                    .help(help)
                    .related(self.name_span(&self.nodes[open.node]), "opened here")
            }
        };
        self.findings.push(finding);
        Err(Stop)
    }

    /// Adds the text between an offset and here; `meaning` replaces it if present.
    fn add_text(&mut self, begin: usize, meaning: Option<&str>) {
        let noted = &self.text[begin..self.at];
        let piece = meaning.unwrap_or(noted);
        let trimmed = trim_start(piece);
        let is_blank = trimmed.is_empty();
        let lead = if meaning.is_none() {
            noted.len() - trimmed.len()
        } else {
            0
        };
        let span = self.span(begin + lead, self.at);
        let is_in_text = self.is_in_text();
        let Some(open) = self.open.last_mut() else {
            if !is_blank {
                let message = "text outside the root element is not read";
                let span = self.without_blanks(span);
                let finding = Finding::new(Rule::StrayText, span, message).help("remove it, or put it into a comment");
                self.findings.push(finding);
            }
            return;
        };
        let node = &mut self.nodes[open.node];
        if is_in_text {
            let before = &self.text[node.text_start as usize..node.text_end as usize];
            let text = own_text(&mut node.extra, &mut self.extras).get_or_insert_with(|| with_line_feeds(before));
            match meaning {
                Some(meaning) => text.push_str(meaning),
                None => text.push_str(&with_line_feeds(noted)),
            }
            if !is_blank {
                node.text_end = span.end;
            }
        } else if !is_blank && !node.has_text() {
            (node.text_start, node.text_end) = (span.start, span.end);
            if meaning.is_some() {
                *own_text(&mut node.extra, &mut self.extras) = Some(trimmed.to_owned());
            } else if noted.as_bytes().contains(&b'\r') {
                *own_text(&mut node.extra, &mut self.extras) = Some(with_line_feeds(trimmed));
            }
            open.nodes_at_text = self.nodes.len();
        } else if !is_blank {
            let message = format!("text after the children of `<{}>` is not read", node.name);
            let span = self.without_blanks(span);
            let finding =
                Finding::new(Rule::StrayText, span, message).help("move it before the first child, or remove it");
            self.findings.push(finding);
        }
    }

    /// `&…;`: one character. Anything longer would be an entity, and none can be declared.
    fn reference(&mut self) -> Result<(), Stop> {
        let rest = &self.text[self.at..];
        let end = rest.find(|c: char| c == ';' || c == '<' || c.is_whitespace());
        let Some(end) = end.filter(|&end| rest[end..].starts_with(';')) else {
            let finding = Finding::new(
                Rule::NotWellFormed,
                self.span(self.at, self.at + 1),
                "`&` does not begin a reference",
            );
            self.findings
                .push(finding.help("write `&amp;` for the character itself"));
            return Err(Stop);
        };
        let (reference, begin) = (&rest[1..end], self.at);
        self.at += end + 1;
        if let Some(character) = referred(reference) {
            self.add_text(begin, Some(character.encode_utf8(&mut [0; 4])));
            return Ok(());
        }
        let span = self.span(begin, self.at);
        let finding = Finding::new(Rule::Entity, span, format!("`&{reference};` is not a known entity"))
            .help("write the character itself; custom entities are not supported");
        self.findings.push(finding);
        Err(Stop)
    }

    /// `<!…>` that is neither a comment nor a CDATA section.
    fn doc_type(&mut self) -> Result<(), Stop> {
        let rest = &self.text[self.at..];
        let end = rest.find('>');
        let declaration = &rest[..end.map_or(rest.len(), |end| end + 1)];
        let span = self.span(self.at, self.at + declaration.len());
        let is_doc_type = declaration
            .get(..9)
            .is_some_and(|word| word.eq_ignore_ascii_case("<!DOCTYPE"));
        if !is_doc_type || end.is_none() {
            let finding = Finding::new(
                Rule::NotWellFormed,
                span,
                "`<!` begins neither a comment nor a document type",
            );
            self.findings.push(finding.help("write `<!-- … -->` for a comment"));
            return Err(Stop);
        }
        if declaration.contains(['[', '"', '\'']) || declaration.contains("SYSTEM") || declaration.contains("PUBLIC") {
            let finding = Finding::new(Rule::Entity, span, "a document type with declarations is refused")
                .help("remove the `<!DOCTYPE …>`");
            self.findings.push(finding);
            return Err(Stop);
        }
        self.at += declaration.len();
        self.findings
            .push(Finding::new(Rule::NotUsed, span, "`<!DOCTYPE>` has no effect").help("remove it"));
        Ok(())
    }

    fn name_span(&self, node: &Node<'_>) -> Span {
        let start = node.name_start as usize;
        self.span(start, start + node.name.len())
    }

    fn span(&self, start: usize, end: usize) -> Span {
        Span {
            file: self.file,
            start: position(start),
            end: position(end),
        }
    }

    /// The span without trailing blanks.
    fn without_blanks(&self, span: Span) -> Span {
        let noted = &self.text[span.start as usize..span.end as usize];
        Span {
            end: span.start + position(trim_end(noted).len()),
            ..span
        }
    }
}

/// The finding about elements that are nested too deeply.
fn too_deep(span: Span) -> Finding {
    let message = format!("elements are nested more than {MAX_XML_DEPTH} levels deep");
    let help = format!("close the open elements above; a type is nested at most {MAX_TYPE_DEPTH} levels deep");
    Finding::new(Rule::TooDeep, span, message).help(help)
}

/// The value behind an attribute's name, between its quotes, and what follows.
fn quoted(rest: &str) -> Option<(&str, &str)> {
    let quote = opening_quote(rest)?;
    let (_, value) = rest.split_once(quote)?;
    value.split_once(quote)
}

/// The opening quote of a value, behind an attribute's name.
fn opening_quote(rest: &str) -> Option<char> {
    let value = rest.trim_start_matches(BLANKS).strip_prefix('=')?;
    let first = value.trim_start_matches(BLANKS).chars().next();
    first.filter(|quote| ['"', '\''].contains(quote))
}

/// The decoded value of an attribute: references replaced, line ends normalised as XML prescribes. `None` if a
/// reference is unknown.
pub(crate) fn attribute_text(noted: &str) -> Option<String> {
    let mut text = String::new();
    let mut rest = noted;
    while let Some((before, behind)) = rest.split_once('&') {
        let (reference, next) = behind.split_once(';')?;
        text.push_str(&with_line_feeds(before));
        text.push(referred(reference)?);
        rest = next;
    }
    text.push_str(&with_line_feeds(rest));
    Some(text)
}

/// The character of a reference, given without `&` and `;`.
fn referred(reference: &str) -> Option<char> {
    match reference {
        "lt" => Some('<'),
        "gt" => Some('>'),
        "amp" => Some('&'),
        "quot" => Some('"'),
        "apos" => Some('\''),
        _ => reference.strip_prefix('#').and_then(character),
    }
}

/// The character of a numeric reference, given without `#`.
fn character(number: &str) -> Option<char> {
    let code = match number.strip_prefix(['x', 'X']) {
        Some(digits) => u32::from_str_radix(digits, 16),
        None => number.parse(),
    };
    code.ok().and_then(char::from_u32).filter(|c| *c != '\0')
}

/// The text of an element that differs from the file.
fn own_text<'e>(extra: &mut Option<u32>, extras: &'e mut Vec<Extra<'_>>) -> &'e mut Option<String> {
    let at = *extra.get_or_insert_with(|| {
        extras.push(Extra::default());
        position(extras.len() - 1)
    });
    &mut extras[at as usize].text
}

/// The text with line ends normalised as XML prescribes.
fn with_line_feeds(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\r', "\n")
}

/// The text without leading blanks. Most texts are ASCII, where bytes suffice.
fn trim_start(text: &str) -> &str {
    match text.as_bytes() {
        [first, ..] if first.is_ascii_graphic() => text,
        _ => text.trim_start(),
    }
}

/// The text without trailing blanks.
fn trim_end(text: &str) -> &str {
    let bytes = text.as_bytes();
    let end = bytes
        .iter()
        .rposition(|byte| !matches!(byte, b' ' | b'\t' | b'\n' | b'\r'));
    match end {
        Some(end) if bytes[end].is_ascii_graphic() => &text[..=end],
        _ => text.trim_end(),
    }
}
