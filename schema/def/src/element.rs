//! Elements of any XML file, read by the reader of definitions and under its limits.
//!
//! For whoever reads files that are no definitions; what the tags mean is theirs.

use crate::{
    diagnostic::{Diagnostic, Findings, Lines},
    source::{FileId, Section, Sources, attribute_text, parse},
};

/// An element with all that is in it.
#[derive(Clone, Copy)]
pub struct Element<'s> {
    section: Section<'s>,
    lines: &'s Lines<'s>,
}

/// Reads a file and hands its root element to `read`. Beside the answer, which is missing if the file is not well formed,
/// comes what was found, by line; `path` is the file's name there.
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

    /// The first text in it that is not blank, without the blanks around it; empty if there is none.
    #[must_use]
    pub fn text(self) -> &'s str {
        self.section.text()
    }

    /// The line and the column of its tag's name, in characters from 1.
    #[must_use]
    pub fn position(self) -> (u32, u32) {
        self.lines.position(self.section.name_span().start)
    }

    /// Its attributes, each name once; the value is missing if it refers to what is not there.
    pub fn attributes(self) -> impl Iterator<Item = (&'s str, Option<String>)> {
        let attributes = self.section.attributes().iter();
        attributes.map(|attribute| (attribute.name, attribute_text(attribute.value)))
    }

    /// The elements directly in this one, in their order.
    pub fn children(self) -> impl Iterator<Item = Element<'s>> {
        let children = self.section.children();
        children.map(move |section| Element { section, ..self })
    }

    /// What comments say before it, behind what precedes it.
    pub fn comments_before(self) -> impl Iterator<Item = &'s str> {
        self.section.comments_before()
    }

    /// What comments say in it, behind its last child.
    pub fn comments_at_end(self) -> impl Iterator<Item = &'s str> {
        self.section.comments_at_end()
    }

    /// What comments say behind the root.
    pub fn comments_behind(self) -> impl Iterator<Item = &'s str> {
        self.section.comments_behind()
    }
}
