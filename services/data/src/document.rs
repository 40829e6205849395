//! A data file in memory: a list of sections, each with the positions of its parent and its children.

use annals_def::{Diagnostic, Element, read_elements};

use crate::{
    editing::{EditError, SectionMut},
    section::Section,
    xml,
};

/// Maximum sections of a document. The largest data file of a published game seen so far has 60,000.
pub const MAX_SECTIONS: usize = 500_000;

/// The position of the root in the list.
pub(crate) const ROOT: usize = 0;

/// A data file in memory.
#[derive(Clone, Debug)]
pub struct Document {
    /// Its name in errors: the path of the file.
    pub(crate) name: String,
    /// Its sections, the root first. Deleted ones stay as empty nodes until they are reused.
    pub(crate) nodes: Vec<Node>,
    /// The positions of deleted sections.
    free: Vec<usize>,
    /// The comments after the root.
    pub(crate) comments_behind: Vec<String>,
    warnings: Vec<Diagnostic>,
}

/// One section.
#[derive(Clone, Debug, Default)]
pub(crate) struct Node {
    pub(crate) name: String,
    /// Without surrounding whitespace.
    pub(crate) text: String,
    pub(crate) attributes: Vec<(String, String)>,
    /// None for the root.
    pub(crate) parent: Option<usize>,
    pub(crate) children: Vec<usize>,
    /// Line and column of its tag; none for a section that was created.
    pub(crate) position: Option<(u32, u32)>,
    pub(crate) comments: Option<Box<Comments>>,
}

/// Comments at a section, kept for saving.
#[derive(Clone, Debug, Default)]
pub(crate) struct Comments {
    pub(crate) before: Vec<String>,
    pub(crate) at_end: Vec<String>,
}

/// A file is not a data file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ParseError {
    /// It is not well-formed XML, or uses parts of XML that are not supported.
    #[error("{}", summary(.0))]
    Xml(Vec<Diagnostic>),
    /// XML cannot represent this character; the author of the file probably meant bytes.
    #[error(
        "{file}:{line}:{column}: `<{section}>` has the character U+{character:04X} in it, which XML does not allow: \
         write bytes in base 64"
    )]
    Character {
        file: String,
        /// The line of the section's tag.
        line: u32,
        /// The column of the section's tag.
        column: u32,
        /// The section's name.
        section: String,
        /// The code point of the character.
        character: u32,
    },
    /// An attribute contains an entity reference.
    #[error(
        "{file}:{line}:{column}: the attribute `{attribute}` has an undefined entity reference: write `&amp;` for `&`"
    )]
    Attribute {
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
    TooManySections { file: String },
}

impl Document {
    /// A document with only a root.
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

    /// Parses the bytes of a file. `name` is its name in errors.
    ///
    /// # Errors
    /// [`ParseError`], with the position of the error.
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

    /// Adds an element with all its contents. The reader limits the depth.
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

    /// The root section.
    #[must_use]
    pub fn root(&self) -> Section<'_> {
        Section::new(self, ROOT)
    }

    /// The root section, for editing.
    pub fn root_mut(&mut self) -> SectionMut<'_> {
        SectionMut::new(self, ROOT)
    }

    /// Its name in errors.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Content of the file that was not read: text after children, a repeated attribute.
    #[must_use]
    pub fn warnings(&self) -> &[Diagnostic] {
        &self.warnings
    }

    /// The document as the text of a file: one section a line, texts between blanks, children indented by tabs.
    #[must_use]
    pub fn to_xml(&self) -> String {
        xml::document(self)
    }

    /// Checks that `more` sections can be added.
    pub(crate) fn has_room(&self, more: usize) -> Result<(), EditError> {
        let left = MAX_SECTIONS - (self.nodes.len() - self.free.len());
        if more > left { Err(EditError::TooMany) } else { Ok(()) }
    }

    /// Appends a new section to the children of a section. The caller has checked the limits.
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

    /// Removes a section with all its contents from its parent.
    pub(crate) fn remove(&mut self, parent: usize, index: usize) {
        let mut leaving = vec![self.nodes[parent].children.remove(index)];
        while let Some(at) = leaving.pop() {
            let node = std::mem::take(&mut self.nodes[at]);
            leaving.extend(node.children);
            self.free.push(at);
        }
    }

    /// The depth of a section; that of the root is 1.
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
    /// All errors of a file that is not well-formed XML.
    #[must_use]
    pub fn diagnostics(&self) -> &[Diagnostic] {
        match self {
            Self::Xml(diagnostics) => diagnostics,
            Self::Character { .. } | Self::Attribute { .. } | Self::TooManySections { .. } => &[],
        }
    }
}

/// The most severe finding, in one line.
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

/// The first character in a section that XML cannot represent.
fn foreign_character(node: &Node) -> Option<char> {
    let attributes = node.attributes.iter().flat_map(|(name, value)| [name, value]);
    let mut words = [&node.name, &node.text].into_iter().chain(attributes);
    words.find_map(|word| xml::foreign_character(word))
}
