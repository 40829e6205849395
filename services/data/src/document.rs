//! A data file in memory: its sections in one list, each knowing its parent and its children.

use annals_def::{Diagnostic, Element, read_elements};

use crate::{
    editing::{EditError, SectionMut},
    section::Section,
    xml,
};

/// Most sections of a document. The largest data file of a published game seen so far has 60,000.
pub const MAX_SECTIONS: usize = 500_000;

/// The position of the root in the list.
pub(crate) const ROOT: usize = 0;

/// A data file in memory.
#[derive(Clone, Debug)]
pub struct Document {
    /// Its name in errors: the path of the file.
    pub(crate) name: String,
    /// Its sections, the root first; those that were deleted stay, empty, until they are used again.
    pub(crate) nodes: Vec<Node>,
    /// The positions of deleted sections.
    free: Vec<usize>,
    /// What stands in comments behind the root.
    pub(crate) comments_behind: Vec<String>,
    warnings: Vec<Diagnostic>,
}

/// One section.
#[derive(Clone, Debug, Default)]
pub(crate) struct Node {
    pub(crate) name: String,
    /// Without blanks around it.
    pub(crate) text: String,
    pub(crate) attributes: Vec<(String, String)>,
    /// None of the root.
    pub(crate) parent: Option<usize>,
    pub(crate) children: Vec<usize>,
    /// Line and column of its tag; none of a section that was created.
    pub(crate) position: Option<(u32, u32)>,
    pub(crate) comments: Option<Box<Comments>>,
}

/// What people wrote beside a section, kept for when it is saved.
#[derive(Clone, Debug, Default)]
pub(crate) struct Comments {
    pub(crate) before: Vec<String>,
    pub(crate) at_end: Vec<String>,
}

/// A file is no data file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ParseError {
    /// Its bytes are no well-formed XML, or more of it than is read.
    #[error("{}", summary(.0))]
    Xml(Vec<Diagnostic>),
    /// XML has no way to write this character; who wrote the file meant bytes.
    #[error(
        "{file}:{line}:{column}: `<{section}>` has the character U+{character:04X} in it, which XML does not allow: \
         write bytes in base 64"
    )]
    Character {
        /// The file.
        file: String,
        /// The line of the section's tag.
        line: u32,
        /// The column of the section's tag.
        column: u32,
        /// The section's name.
        section: String,
        /// The character's number.
        character: u32,
    },
    /// An attribute refers to an entity.
    #[error("{file}:{line}:{column}: the attribute `{attribute}` refers to what is not there: write `&amp;` for `&`")]
    Attribute {
        /// The file.
        file: String,
        /// The line of the section's tag.
        line: u32,
        /// The column of the section's tag.
        column: u32,
        /// The attribute's name.
        attribute: String,
    },
    /// The file would take too much memory.
    #[error("{file} has more than {MAX_SECTIONS} sections: divide it into several files")]
    TooManySections {
        /// The file.
        file: String,
    },
}

impl Document {
    /// A document with nothing but its root.
    ///
    /// # Errors
    /// [`EditError::Name`].
    pub fn new(name: impl Into<String>, root: &str) -> Result<Self, EditError> {
        xml::check_name(root)?;
        let root = Node {
            name: root.to_owned(),
            ..Node::default()
        };
        Ok(Self {
            nodes: vec![root],
            ..Self::empty(name.into())
        })
    }

    /// Reads the bytes of a file. `name` is what errors call it.
    ///
    /// # Errors
    /// [`ParseError`], with the place of what cannot be read.
    pub fn parse(name: &str, bytes: &[u8]) -> Result<Self, ParseError> {
        let (document, diagnostics) = read_elements(name, bytes, |root| {
            let mut document = Self::empty(name.to_owned());
            document.read(root, None)?;
            document.comments_behind = root.comments_behind().map(str::to_owned).collect();
            Ok(document)
        });
        match document {
            Some(read) => read.map(|document| Self {
                warnings: diagnostics,
                ..document
            }),
            None => Err(ParseError::Xml(diagnostics)),
        }
    }

    fn empty(name: String) -> Self {
        Self {
            name,
            nodes: Vec::new(),
            free: Vec::new(),
            comments_behind: Vec::new(),
            warnings: Vec::new(),
        }
    }

    /// Adds an element with all that is in it; deep no more than the reader allows.
    fn read(&mut self, element: Element<'_>, parent: Option<usize>) -> Result<usize, ParseError> {
        if self.nodes.len() == MAX_SECTIONS {
            return Err(ParseError::TooManySections {
                file: self.name.clone(),
            });
        }
        let node = self.node(element, parent)?;
        let at = self.nodes.len();
        self.nodes.push(node);
        for child in element.children() {
            let child = self.read(child, Some(at))?;
            self.nodes[at].children.push(child);
        }
        Ok(at)
    }

    fn node(&self, element: Element<'_>, parent: Option<usize>) -> Result<Node, ParseError> {
        let (line, column) = element.position();
        let mut attributes = Vec::new();
        for (name, value) in element.attributes() {
            let value = value.ok_or_else(|| ParseError::Attribute {
                file: self.name.clone(),
                line,
                column,
                attribute: name.to_owned(),
            })?;
            attributes.push((name.to_owned(), value));
        }
        let comments = Comments {
            before: element.comments_before().map(str::to_owned).collect(),
            at_end: element.comments_at_end().map(str::to_owned).collect(),
        };
        let has_comments = !comments.before.is_empty() || !comments.at_end.is_empty();
        let node = Node {
            name: element.name().to_owned(),
            text: element.text().to_owned(),
            attributes,
            parent,
            children: Vec::new(),
            position: Some((line, column)),
            comments: has_comments.then(|| Box::new(comments)),
        };
        match foreign_character(&node) {
            None => Ok(node),
            Some(character) => Err(ParseError::Character {
                file: self.name.clone(),
                line,
                column,
                section: node.name,
                character: character.into(),
            }),
        }
    }

    /// The outermost section.
    #[must_use]
    pub fn root(&self) -> Section<'_> {
        Section::new(self, ROOT)
    }

    /// The outermost section, to be changed.
    pub fn root_mut(&mut self) -> SectionMut<'_> {
        SectionMut::new(self, ROOT)
    }

    /// What errors call it.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What the file says and was not read: text behind children, an attribute that is there twice.
    #[must_use]
    pub fn warnings(&self) -> &[Diagnostic] {
        &self.warnings
    }

    /// The document as it stands in a file: one section a line, texts between blanks, children indented by tabs.
    #[must_use]
    pub fn to_xml(&self) -> String {
        xml::document(self)
    }

    /// Whether so many more sections can be added.
    pub(crate) fn has_room(&self, more: usize) -> Result<(), EditError> {
        let left = MAX_SECTIONS - (self.nodes.len() - self.free.len());
        if more > left { Err(EditError::TooMany) } else { Ok(()) }
    }

    /// Puts a new section behind the other children of a section. Whoever calls has seen to the limits.
    pub(crate) fn add(&mut self, parent: usize, name: &str) -> usize {
        let node = Node {
            name: name.to_owned(),
            parent: Some(parent),
            ..Node::default()
        };
        let at = match self.free.pop() {
            Some(at) => {
                self.nodes[at] = node;
                at
            }
            None => {
                self.nodes.push(node);
                self.nodes.len() - 1
            }
        };
        self.nodes[parent].children.push(at);
        at
    }

    /// Takes a section away from its parent, with all that is in it.
    pub(crate) fn remove(&mut self, parent: usize, index: usize) {
        let mut leaving = vec![self.nodes[parent].children.remove(index)];
        while let Some(at) = leaving.pop() {
            let node = std::mem::take(&mut self.nodes[at]);
            leaving.extend(node.children);
            self.free.push(at);
        }
    }

    /// On which level a section is; the root is on the first.
    pub(crate) fn depth(&self, at: usize) -> usize {
        let mut depth = 1;
        let mut at = at;
        while let Some(parent) = self.nodes[at].parent {
            depth += 1;
            at = parent;
        }
        depth
    }
}

impl ParseError {
    /// Everything that is wrong, if the file is no well-formed XML.
    #[must_use]
    pub fn diagnostics(&self) -> &[Diagnostic] {
        match self {
            Self::Xml(diagnostics) => diagnostics,
            Self::Character { .. } | Self::Attribute { .. } | Self::TooManySections { .. } => &[],
        }
    }
}

/// The gravest of what was found, in a line.
fn summary(diagnostics: &[Diagnostic]) -> String {
    let Some(first) = diagnostics.iter().min_by_key(|diagnostic| diagnostic.severity) else {
        return "the file cannot be read".to_owned();
    };
    let place = &first.place;
    let help = first.help.as_ref().map(|help| format!(": {help}")).unwrap_or_default();
    format!(
        "{}:{}:{}: {}{help}",
        place.file, place.line, place.column, first.message
    )
}

/// The first character in a section that XML has no way to write.
fn foreign_character(node: &Node) -> Option<char> {
    let attributes = node.attributes.iter().flat_map(|(name, value)| [name, value]);
    let mut words = [&node.name, &node.text].into_iter().chain(attributes);
    words.find_map(|word| xml::foreign_character(word))
}
