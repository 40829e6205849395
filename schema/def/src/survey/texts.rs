//! The texts of a run, with lookup of lines and elements.

use std::collections::BTreeMap;

use super::SourcePlace;
use crate::{
    compile::World,
    grammar::{ALIAS_FILES, EXTRA_ALIASES},
    source::{Document, FileId, Section, Span},
};

/// A run with the lines and elements of its files.
pub(super) struct Texts<'w> {
    pub(super) world: &'w World<'w>,
    documents: BTreeMap<FileId, &'w Document<'w>>,
    /// The line starts of each file.
    lines: BTreeMap<FileId, Vec<usize>>,
}

impl<'w> Texts<'w> {
    pub(super) fn of(world: &'w World<'w>) -> Self {
        let lines = world.sources.iter().map(|(id, file)| {
            let breaks = file.text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
            (id, std::iter::once(0).chain(breaks.map(|(at, _)| at + 1)).collect())
        });
        let documents = world.documents.iter().map(|document| (document.file(), document));
        Self {
            world,
            documents: documents.collect(),
            lines: lines.collect(),
        }
    }

    /// The text of a file.
    pub(super) fn text(&self, file: FileId) -> &'w str {
        &self.world.sources.file(file).text
    }

    /// The place of the element whose name is at this span.
    pub(super) fn place(&self, name: Span) -> SourcePlace {
        let (line, column) = self.position(name.file, name.start);
        let end = self.section(name).map_or(name.end, Section::last_offset);
        SourcePlace {
            file: self.world.sources.file(name.file).path.to_owned(),
            line,
            column,
            end: self.position(name.file, end),
        }
    }

    /// Line and column of an offset, both from 1.
    fn position(&self, file: FileId, offset: u32) -> (u32, u32) {
        let (starts, offset) = (&self.lines[&file], offset as usize);
        let line = starts.partition_point(|&start| start <= offset);
        let before = &self.text(file)[starts[line - 1]..offset];
        let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        (number(line), number(before.chars().count() + 1))
    }

    /// The element whose name is at this span.
    pub(super) fn section(&self, name: Span) -> Option<Section<'w>> {
        self.documents.get(&name.file)?.section_at(name)
    }

    /// A parsed file.
    pub(super) fn document(&self, file: FileId) -> Option<&'w Document<'w>> {
        self.documents.get(&file).copied()
    }

    /// The root element of a file.
    pub(super) fn root(&self, file: FileId) -> Option<Section<'w>> {
        self.document(file)?.root()
    }

    /// The sections that declare aliases, in declaration order.
    pub(super) fn alias_sections(&self) -> impl Iterator<Item = Section<'w>> {
        let files = self.documents().filter(|document| {
            let path = self.world.sources.file(document.file()).path;
            let mut names = ALIAS_FILES.iter().chain([&EXTRA_ALIASES]);
            names.any(|name| path.ends_with(name))
        });
        files.filter_map(Document::root).flat_map(Section::children)
    }

    /// The parsed files.
    pub(super) fn documents(&self) -> impl Iterator<Item = &'w Document<'w>> {
        self.documents.values().copied()
    }
}
