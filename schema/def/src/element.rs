//! Elements of any XML file, read by the parser of definitions and under its limits.
//!
//! For callers that read files other than definitions; the meaning of the tags is up to them.

use crate::{
    diagnostic::{Diagnostic, Findings, Lines},
    source::{FileId, Section, Sources, attribute_text, parse},
};

/// An element with its content.
#[derive(Clone, Copy)]
pub struct Element<'s> {
    section: Section<'s>,
    lines: &'s Lines<'s>,
}

/// Reads a file and passes its root element to `read`. Returns the answer, `None` if the file is not well-formed, and
/// the diagnostics by line; `path` is the file's name in them.
pub fn read_elements<T>(path: &str, bytes: &[u8], read: impl FnOnce(Element<'_>) -> T) -> (Option<T>, Vec<Diagnostic>) {
    let mut findings = Findings::default();
    let sources = Sources::of_one(path, bytes, &mut findings);
    let file = sources.file(FileId::default());
    let answer = if file.is_unreadable {
        None
    } else {
        let document = parse(FileId::default(), &file.text, &mut findings);
        let lines = Lines::of(file);
        let root = document.root().filter(|_| !findings.has_errors());
        root.map(|section| read(Element { section, lines: &lines }))
    };
    (answer, findings.into_diagnostics(&sources))
}

impl<'s> Element<'s> {
    /// Its tag.
    #[must_use]
    pub fn name(self) -> &'s str {
        self.section.name
    }

    /// The first non-blank text in it, trimmed; empty if there is none.
    #[must_use]
    pub fn text(self) -> &'s str {
        self.section.text()
    }

    /// Line and column of its tag's name, in characters from 1.
    #[must_use]
    pub fn position(self) -> (u32, u32) {
        self.lines.position(self.section.name_span().start)
    }

    /// Its attributes, each name once; the value is `None` if it contains an unknown reference.
    pub fn attributes(self) -> impl Iterator<Item = (&'s str, Option<String>)> {
        let attributes = self.section.attributes().iter();
        attributes.map(|attribute| (attribute.name, attribute_text(attribute.value)))
    }

    /// Its child elements, in order.
    pub fn children(self) -> impl Iterator<Item = Element<'s>> {
        let children = self.section.children();
        children.map(move |section| Element { section, ..self })
    }

    /// Comments between the preceding item and this element.
    pub fn comments_before(self) -> impl Iterator<Item = &'s str> {
        self.section.comments_before()
    }

    /// Comments in it, behind its last child.
    pub fn comments_at_end(self) -> impl Iterator<Item = &'s str> {
        self.section.comments_at_end()
    }

    /// Comments behind the root.
    pub fn comments_behind(self) -> impl Iterator<Item = &'s str> {
        self.section.comments_behind()
    }
}
