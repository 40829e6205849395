//! Source files: bytes by path, decoded to text, parsed to sections.
//!
//! This module does not know the meaning of tags. Everything is bounded: a file that is too large, too deep or has a
//! document type that declares entities is rejected with a diagnostic before it costs anything.

mod disk;
mod section;
mod text;
mod tree;
mod xml;

pub(crate) use section::{Attribute, Comment, Document, Extra, Node, Section};
pub use tree::Tree;
pub(crate) use xml::{attribute_text, parse};

use std::borrow::Cow;

use crate::diagnostic::{Finding, Findings, Rule};

/// Maximum bytes of a file. The largest definition of a published game so far has 190 kB.
pub const MAX_FILE_BYTES: usize = 8 << 20;

/// Maximum bytes of all files together.
pub const MAX_TREE_BYTES: usize = 256 << 20;

/// Maximum number of files.
pub const MAX_FILES: usize = 20_000;

/// Maximum nesting of elements. A type nested to its own limit takes two elements per level.
pub const MAX_XML_DEPTH: usize = 96;

/// The number of a file among the sources of one run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct FileId(pub(crate) u32);

/// A range of a file's text, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Span {
    pub(crate) file: FileId,
    pub(crate) start: u32,
    pub(crate) end: u32,
}

/// The decoded files of one run, ordered by path.
#[derive(Debug, Default)]
pub(crate) struct Sources<'t> {
    files: Vec<SourceFile<'t>>,
}

/// One decoded file.
#[derive(Debug)]
pub(crate) struct SourceFile<'t> {
    pub(crate) path: &'t str,
    pub(crate) text: Cow<'t, str>,
    /// Whether the bytes could not be decoded, which has been reported; the text is then empty.
    pub(crate) is_unreadable: bool,
}

impl<'t> Sources<'t> {
    /// Decodes every `.def` and `.xml` file of the tree. Files that cannot be decoded are reported.
    pub(crate) fn decode(tree: &'t Tree, findings: &mut Findings) -> Self {
        let mut sources = Self::default();
        for (path, bytes) in tree.files() {
            if !has_text(path) {
                continue;
            }
            sources.add(path, bytes, findings);
        }
        sources
    }

    /// Decodes a single file.
    pub(crate) fn of_one(path: &'t str, bytes: &'t [u8], findings: &mut Findings) -> Self {
        let mut sources = Self::default();
        sources.add(path, bytes, findings);
        sources
    }

    fn add(&mut self, path: &'t str, bytes: &'t [u8], findings: &mut Findings) {
        let file = FileId(u32::try_from(self.files.len()).expect("invariant: at most MAX_FILES files"));
        let whole = Span { file, start: 0, end: 0 };
        let text = if bytes.len() > MAX_FILE_BYTES {
            let message = format!(
                "the file has {} bytes, more than the {MAX_FILE_BYTES} allowed",
                bytes.len()
            );
            findings.push(Finding::new(Rule::TooLarge, whole, message));
            None
        } else {
            text::decode(bytes, whole, findings)
        };
        // An undecodable file is kept, empty, so that findings have a place.
        let is_unreadable = text.is_none();
        let text = text.unwrap_or_default();
        self.files.push(SourceFile {
            path,
            text,
            is_unreadable,
        });
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (FileId, &SourceFile<'t>)> {
        (0..).map(FileId).zip(&self.files)
    }

    pub(crate) fn file(&self, id: FileId) -> &SourceFile<'t> {
        &self.files[id.0 as usize]
    }
}

/// An offset as `u32`; texts have at most [`MAX_FILE_BYTES`].
fn position(offset: usize) -> u32 {
    u32::try_from(offset).unwrap_or(u32::MAX)
}

impl Tree {
    /// The decoded texts of the `.def` and `.xml` files, by path; empty where the bytes cannot be decoded.
    #[must_use]
    pub fn texts(&self) -> Vec<(&str, Cow<'_, str>)> {
        let sources = Sources::decode(self, &mut Findings::default());
        let texts = sources.files.into_iter();
        texts.map(|file| (file.path, file.text)).collect()
    }
}

/// Whether the file at this path is read as text.
pub(crate) fn has_text(path: &str) -> bool {
    path.rsplit_once('.')
        .is_some_and(|(_, ending)| ending.eq_ignore_ascii_case("def") || ending.eq_ignore_ascii_case("xml"))
}

impl Span {
    /// The empty span at the start of this one.
    pub(crate) fn start_of(self) -> Self {
        Self {
            end: self.start,
            ..self
        }
    }
}
