//! The texts of a run: from places to lines and elements.

use std::collections::BTreeMap;

use super::SourcePlace;
use crate::{
    compile::World,
    source::{Document, FileId, Section, Span},
};

/// A run with the lines and elements of its files at hand.
pub(super) struct Texts<'w> {
    pub(super) world: &'w World<'w>,
    documents: BTreeMap<FileId, &'w Document<'w>>,
    /// The offsets at which the lines of each file begin.
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

    /// The line of a place.
    pub(super) fn place(&self, span: Span) -> SourcePlace {
        let starts = &self.lines[&span.file];
        let line = starts.partition_point(|&start| start <= span.start as usize);
        SourcePlace {
            file: self.world.sources.file(span.file).path.to_owned(),
            line: u32::try_from(line).unwrap_or(u32::MAX),
        }
    }

    /// The element whose name is there.
    pub(super) fn section(&self, name: Span) -> Option<Section<'w>> {
        self.documents.get(&name.file)?.section_at(name)
    }

    /// The root element of a file.
    pub(super) fn root(&self, file: FileId) -> Option<Section<'w>> {
        self.documents.get(&file)?.root()
    }

    /// The parsed files.
    pub(super) fn documents(&self) -> impl Iterator<Item = &'w Document<'w>> {
        self.documents.values().copied()
    }
}
