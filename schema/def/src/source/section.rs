//! XML to sections: an element with its text, its attributes and its children, each with its place.

use std::borrow::Cow;

use quick_xml::{
    Reader,
    events::{BytesStart, Event},
};

use super::{FileId, MAX_XML_DEPTH, Span};
use crate::diagnostic::{Finding, Findings, Rule};

/// An element. Borrows from the text of its file.
#[derive(Debug)]
pub(crate) struct Section<'s> {
    /// Its tag.
    pub(crate) name: &'s str,
    /// Where the tag's name is.
    pub(crate) name_span: Span,
    /// From the beginning of its start tag to the end of its end tag.
    pub(crate) span: Span,
    /// The first text in it that is not blank, without the blanks around it; empty if there is none.
    pub(crate) text: Cow<'s, str>,
    /// Where that text is; just behind the start tag if there is none.
    pub(crate) text_span: Span,
    pub(crate) attributes: Vec<Attribute<'s>>,
    pub(crate) children: Vec<Section<'s>>,
}

/// An attribute.
#[derive(Debug)]
pub(crate) struct Attribute<'s> {
    pub(crate) name: &'s str,
    pub(crate) value: Cow<'s, str>,
    pub(crate) span: Span,
}

impl<'s> Section<'s> {
    /// The first child of this name.
    pub(crate) fn child(&self, name: &str) -> Option<&Section<'s>> {
        self.children.iter().find(|child| child.name == name)
    }

    /// Whether there is neither text nor a child.
    pub(crate) fn is_empty(&self) -> bool {
        self.text.is_empty() && self.children.is_empty()
    }
}

/// The root element of a file, or `None` and a finding if the file is not well formed.
pub(crate) fn parse<'s>(file: FileId, text: &'s str, findings: &mut Findings) -> Option<Section<'s>> {
    let mut parser = Parser {
        file,
        text,
        open: Vec::new(),
        root: None,
        findings,
    };
    parser.run()
}

struct Parser<'s, 'f> {
    file: FileId,
    text: &'s str,
    open: Vec<Open<'s>>,
    root: Option<Section<'s>>,
    findings: &'f mut Findings,
}

/// An element whose end has not come yet.
struct Open<'s> {
    section: Section<'s>,
    /// How many children it had when its text was last added to.
    children_at_text: usize,
}

/// Parsing of this file cannot go on; a finding says why.
struct Stop;

impl<'s> Parser<'s, '_> {
    fn run(&mut self) -> Option<Section<'s>> {
        let mut reader = Reader::from_str(self.text);
        loop {
            let start = position(reader.buffer_position());
            let event = reader.read_event();
            let span = Span {
                file: self.file,
                start,
                end: position(reader.buffer_position()),
            };
            let outcome = match event {
                Ok(Event::Eof) => break,
                Ok(event) => self.take(event, span),
                Err(error) => {
                    let start = reader.error_position();
                    let end = self.text[start as usize..]
                        .find('>')
                        .map_or(start, |length| start + 1 + length as u64);
                    let span = Span {
                        file: self.file,
                        start: position(start),
                        end: position(end),
                    };
                    self.not_well_formed(&error, span);
                    Err(Stop)
                }
            };
            if outcome.is_err() {
                return None;
            }
        }
        if let Some(open) = self.open.last() {
            let message = format!("`<{}>` is not closed before the end of the file", open.section.name);
            let finding = Finding::new(Rule::NotWellFormed, open.section.name_span, message)
                .help(format!("add `</{}>`", open.section.name));
            self.findings.push(finding);
            return None;
        }
        if self.root.is_none() {
            let start = Span {
                file: self.file,
                start: 0,
                end: 0,
            };
            let finding = Finding::new(Rule::NotWellFormed, start, "the file has no root element")
                .help("the smallest file is `<root> </root>`");
            self.findings.push(finding);
        }
        self.root.take()
    }

    fn take(&mut self, event: Event<'s>, span: Span) -> Result<(), Stop> {
        match event {
            Event::Start(start) => self.begin(&start, span),
            Event::Empty(start) => {
                self.begin(&start, span)?;
                self.end(span);
                Ok(())
            }
            Event::End(_) => {
                self.end(span);
                Ok(())
            }
            Event::Text(text) => {
                self.add_text(text.xml10_content(), span);
                Ok(())
            }
            Event::CData(text) => {
                self.add_text(text.xml10_content(), span);
                Ok(())
            }
            Event::GeneralRef(reference) => self.add_reference(&reference, span),
            Event::DocType(doc_type) => self.doc_type(&doc_type, span),
            Event::Decl(_) | Event::PI(_) | Event::Comment(_) | Event::Eof => Ok(()),
        }
    }

    fn begin(&mut self, start: &BytesStart<'s>, span: Span) -> Result<(), Stop> {
        let name_start = span.start as usize + 1;
        let name = &self.text[name_start..name_start + start.name().as_ref().len()];
        let name_span = Span {
            start: position(name_start as u64),
            end: position((name_start + name.len()) as u64),
            ..span
        };
        if self.open.is_empty() && self.root.is_some() {
            let message = format!("`<{name}>` follows the root element");
            let finding =
                Finding::new(Rule::NotWellFormed, name_span, message).help("put everything into one root element");
            self.findings.push(finding);
            return Err(Stop);
        }
        if self.open.len() == MAX_XML_DEPTH {
            let message = format!("elements are nested more than {MAX_XML_DEPTH} levels deep");
            self.findings.push(Finding::new(Rule::TooDeep, name_span, message));
            return Err(Stop);
        }
        let section = Section {
            name,
            name_span,
            span,
            text: Cow::Borrowed(""),
            text_span: Span {
                start: span.end,
                ..span
            },
            attributes: self.attributes(start, name_span)?,
            children: Vec::new(),
        };
        self.open.push(Open {
            section,
            children_at_text: 0,
        });
        Ok(())
    }

    /// The attributes of the start tag whose name is at `name_span`.
    fn attributes(&mut self, start: &BytesStart<'s>, name_span: Span) -> Result<Vec<Attribute<'s>>, Stop> {
        let mut attributes = Vec::new();
        if start.attributes_raw().trim().is_empty() {
            return Ok(attributes);
        }
        if start.attributes_raw().contains('<') {
            let tag = start.name();
            let message = format!("the tag `<{}` has no `>` before the next tag", tag.as_ref());
            self.findings
                .push(Finding::new(Rule::NotWellFormed, name_span, message).help("close it with `>`"));
            return Err(Stop);
        }
        let behind = &self.text[name_span.end as usize..];
        let mut from = 0;
        for attribute in start.attributes().with_checks(true) {
            match attribute {
                Ok(attribute) => {
                    let name = attribute.key.as_ref();
                    let offset = from + behind[from..].find(name).unwrap_or(0);
                    from = offset + name.len() + attribute.value.len();
                    let start = name_span.end + position(offset as u64);
                    let span = Span {
                        start,
                        end: start + position(name.len() as u64),
                        ..name_span
                    };
                    attributes.push(Attribute {
                        name: &behind[offset..offset + name.len()],
                        value: Cow::Owned(attribute.value.into_owned()),
                        span,
                    });
                }
                Err(error) => {
                    self.findings.push(Finding::new(
                        Rule::Attribute,
                        name_span,
                        format!("an attribute cannot be read: {error}"),
                    ));
                    break;
                }
            }
        }
        Ok(attributes)
    }

    fn end(&mut self, span: Span) {
        let Some(Open { mut section, .. }) = self.open.pop() else {
            return;
        };
        section.span.end = span.end;
        if !section.text.is_empty() {
            section.text_span = trimmed(self.text, section.text_span);
            section.text = match section.text {
                Cow::Borrowed(text) => Cow::Borrowed(text.trim()),
                Cow::Owned(text) => Cow::Owned(text.trim().to_owned()),
            };
        }
        match self.open.last_mut() {
            Some(parent) => parent.section.children.push(section),
            None => self.root = Some(section),
        }
    }

    fn add_text(&mut self, text: Cow<'s, str>, span: Span) {
        let is_blank = text.trim().is_empty();
        let Some(open) = self.open.last_mut() else {
            if !is_blank {
                self.findings.push(Finding::new(
                    Rule::StrayText,
                    trimmed(self.text, span),
                    "text outside of the root element is not read",
                ));
            }
            return;
        };
        let section = &mut open.section;
        if section.text.is_empty() {
            if !is_blank {
                section.text = text;
                section.text_span = span;
                open.children_at_text = section.children.len();
            }
        } else if open.children_at_text == section.children.len() {
            section.text.to_mut().push_str(&text);
            if !is_blank {
                section.text_span.end = span.end;
            }
        } else if !is_blank {
            let message = format!("text behind the children of `<{}>` is not read", section.name);
            self.findings
                .push(Finding::new(Rule::StrayText, trimmed(self.text, span), message));
        }
    }

    fn add_reference(&mut self, reference: &str, span: Span) -> Result<(), Stop> {
        let character = match reference {
            "lt" => Some('<'),
            "gt" => Some('>'),
            "amp" => Some('&'),
            "quot" => Some('"'),
            "apos" => Some('\''),
            _ => reference.strip_prefix('#').and_then(character),
        };
        if let Some(character) = character {
            self.add_text(Cow::Owned(character.to_string()), span);
            return Ok(());
        }
        let finding = Finding::new(Rule::Entity, span, format!("`&{reference};` stands for nothing here"))
            .help("write the character itself; entities of one's own are not supported");
        self.findings.push(finding);
        Err(Stop)
    }

    fn doc_type(&mut self, doc_type: &str, span: Span) -> Result<(), Stop> {
        if doc_type.contains('[') || doc_type.contains("SYSTEM") || doc_type.contains("PUBLIC") {
            let finding = Finding::new(Rule::Entity, span, "a document type with declarations is refused")
                .help("remove the `<!DOCTYPE …>`");
            self.findings.push(finding);
            return Err(Stop);
        }
        self.findings
            .push(Finding::new(Rule::NotUsed, span, "`<!DOCTYPE>` has no effect").help("remove it"));
        Ok(())
    }

    fn not_well_formed(&mut self, error: &quick_xml::Error, span: Span) {
        use quick_xml::errors::{Error, IllFormedError};
        let mut message = error.to_string();
        let mut help = "correct the XML; nothing else in this file was looked at".to_owned();
        if let Error::IllFormed(IllFormedError::MismatchedEndTag { expected, found }) = error {
            message = format!("`</{found}>` was found where `</{expected}>` should close `<{expected}>`");
            help = match self.open.iter().rposition(|open| open.section.name == found) {
                Some(_) => format!("add `</{expected}>` before it"),
                None => format!("write `</{expected}>`"),
            };
        }
        let mut finding = Finding::new(Rule::NotWellFormed, span, message).help(help);
        if let (Some(open), Error::IllFormed(IllFormedError::MismatchedEndTag { .. })) = (self.open.last(), error) {
            finding = finding.related(open.section.name_span, "opened here");
        }
        self.findings.push(finding);
    }
}

fn character(number: &str) -> Option<char> {
    let code = match number.strip_prefix(['x', 'X']) {
        Some(digits) => u32::from_str_radix(digits, 16),
        None => number.parse(),
    };
    code.ok().and_then(char::from_u32).filter(|c| *c != '\0')
}

/// The span without the blanks at its ends.
fn trimmed(text: &str, span: Span) -> Span {
    let inner = &text[span.start as usize..span.end as usize];
    let start = span.start + position((inner.len() - inner.trim_start().len()) as u64);
    let end = start + position(inner.trim().len() as u64);
    Span { start, end, ..span }
}

/// A position in a text of at most [`super::MAX_FILE_BYTES`].
fn position(offset: u64) -> u32 {
    u32::try_from(offset).unwrap_or(u32::MAX)
}
