//! Sections for reading.

use std::fmt;

use crate::{datum::Datum, document::Document};

/// Maximum characters of a wrong text in an error.
const SHOWN: usize = 60;

/// A section of a document: a name, a text, and children.
#[derive(Clone, Copy, Debug)]
pub struct Section<'d> {
    document: &'d Document,
    pub(crate) at: usize,
}

/// Location of a section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Where {
    pub file: String,
    /// Line and column of the section's tag, from 1; none if the section was created since the file was read.
    pub position: Option<(u32, u32)>,
    /// The names from the root's children to the section, with `/` between them; empty for the root.
    pub path: String,
}

/// A section is missing, or its text is not of the requested type.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// There is no such section.
    #[error("{within} has no section `{name}`; it has {present}")]
    Missing {
        /// Where it was searched: as far as the path exists.
        within: Where,
        /// The name searched for.
        name: String,
        /// The names of the sections that exist there.
        present: String,
    },
    /// The section is of another type.
    #[error("{at} holds {found}, which is not {wanted}")]
    Wrong {
        /// Its location.
        at: Where,
        /// The text, or its beginning.
        found: String,
        /// What the text should be.
        wanted: &'static str,
    },
}

impl<'d> Section<'d> {
    pub(crate) fn new(document: &'d Document, at: usize) -> Self {
        Self { document, at }
    }

    pub(crate) fn document(self) -> &'d Document {
        self.document
    }

    /// Its tag.
    #[must_use]
    pub fn name(self) -> &'d str {
        &self.document.nodes[self.at].name
    }

    /// Its text, without surrounding whitespace. Text may precede children.
    #[must_use]
    pub fn text(self) -> &'d str {
        &self.document.nodes[self.at].text
    }

    /// An attribute of its tag.
    #[must_use]
    pub fn attribute(self, name: &str) -> Option<&'d str> {
        let mut attributes = self.attributes();
        attributes.find(|attribute| attribute.0 == name).map(|(_, value)| value)
    }

    /// The attributes of its tag, as name and value.
    pub fn attributes(self) -> impl Iterator<Item = (&'d str, &'d str)> {
        let attributes = &self.document.nodes[self.at].attributes;
        attributes.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Its children, in order.
    pub fn children(self) -> impl ExactSizeIterator<Item = Section<'d>> + DoubleEndedIterator {
        let children = &self.document.nodes[self.at].children;
        children.iter().map(move |&at| Section { at, ..self })
    }

    /// Its children with this name, in order.
    pub fn all(self, name: &str) -> impl Iterator<Item = Section<'d>> {
        self.children().filter(move |child| child.name() == name)
    }

    /// The child with this index, from 0.
    #[must_use]
    pub fn child(self, index: usize) -> Option<Section<'d>> {
        self.children().nth(index)
    }

    /// The section at a path, names with `/` between them; the first of several with one name. An empty path is this
    /// section.
    #[must_use]
    pub fn find(self, path: &str) -> Option<Section<'d>> {
        names(path).try_fold(self, |found, name| found.all(name).next())
    }

    /// The section at a path.
    ///
    /// # Errors
    /// [`ReadError::Missing`].
    pub fn open(self, path: &str) -> Result<Section<'d>, ReadError> {
        let mut found = self;
        for name in names(path) {
            found = found.all(name).next().ok_or_else(|| ReadError::Missing {
                within: found.place(),
                name: name.to_owned(),
                present: found.present(),
            })?;
        }
        Ok(found)
    }

    /// Its value.
    ///
    /// # Errors
    /// [`ReadError::Wrong`] if the text is not a `T`.
    pub fn read<T: Datum>(self) -> Result<T, ReadError> {
        T::read(self).ok_or_else(|| ReadError::Wrong {
            at: self.place(),
            found: shown(self.text()),
            wanted: T::WANTED,
        })
    }

    /// Its value, or a default if the text is not a `T`, as in the predecessors.
    #[must_use]
    pub fn read_or<T: Datum>(self, default: T) -> T {
        T::read(self).unwrap_or(default)
    }

    /// The value of the section at a path.
    ///
    /// # Errors
    /// [`ReadError`], if it is missing or not a `T`.
    pub fn read_at<T: Datum>(self, path: &str) -> Result<T, ReadError> {
        self.open(path)?.read()
    }

    /// The value of the section at a path, or a default if it is missing or not a `T`.
    #[must_use]
    pub fn read_at_or<T: Datum>(self, path: &str, default: T) -> T {
        self.find(path).and_then(T::read).unwrap_or(default)
    }

    /// Its location.
    #[must_use]
    pub fn place(self) -> Where {
        let mut names = Vec::new();
        let mut at = self.at;
        while let Some(parent) = self.document.nodes[at].parent {
            names.push(self.document.nodes[at].name.as_str());
            at = parent;
        }
        names.reverse();
        Where {
            file: self.document.name.clone(),
            position: self.document.nodes[self.at].position,
            path: names.join("/"),
        }
    }

    /// The distinct names of its children, for an error.
    fn present(self) -> String {
        let mut names = Vec::new();
        for child in self.children().take(SHOWN) {
            if !names.contains(&child.name()) {
                names.push(child.name());
            }
        }
        match names.as_slice() {
            [] => "none".to_owned(),
            names => shown(&names.join("`, `")),
        }
    }
}

impl fmt::Display for Where {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if let Some((line, column)) = self.position {
            write!(f, ":{line}:{column}")?;
        }
        match self.path.as_str() {
            "" => f.write_str(": the root"),
            path => write!(f, ": `{path}`"),
        }
    }
}

/// The names of a path.
pub(crate) fn names(path: &str) -> impl Iterator<Item = &str> {
    let names = (!path.is_empty()).then(|| path.split('/'));
    names.into_iter().flatten()
}

/// A text as shown in an error.
fn shown(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("`{}…`", &text[..end]),
        None if text.is_empty() => "nothing".to_owned(),
        None => format!("`{text}`"),
    }
}
