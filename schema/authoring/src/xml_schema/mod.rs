//! The grammar as schemas for XML tools: what both schema languages share.
//!
//! One schema for each kind of file. A pattern of a schema is a [`Content`], named after the first tag that leads to
//! it. Both languages are less exact than the compiler: neither can look up an alias, and where text stands beside
//! elements neither can restrict the text.

mod relax_ng;
mod xsd;

use annals_def::grammar::{
    Content, DICT, Dialect, FLAGS, FileKind, FlagWord, Occurs, SEQUENCE, SIMPLE, Tag, Text, USER, Word,
};

/// A schema for an XML tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemaFile {
    /// The name of the file.
    pub name: String,
    /// The kind of file that it describes.
    pub kind: FileKind,
    /// Its content.
    pub text: String,
}

/// XSD 1.0, one schema for each kind of file. XSD must list the names of elements, but authors choose the names of
/// members; so a member's tags are checked where they are known, and unknown ones are skipped. The root element is
/// `root`.
#[must_use]
pub fn xsd_files(dialect: Dialect) -> Vec<SchemaFile> {
    files(dialect, "xsd", xsd::schema)
}

/// RELAX NG, one schema for each kind of file. It can describe elements of any name, so it is exact about tags.
#[must_use]
pub fn relax_ng_files(dialect: Dialect) -> Vec<SchemaFile> {
    files(dialect, "rng", relax_ng::schema)
}

fn files(dialect: Dialect, ending: &str, schema: fn(&Patterns) -> Element) -> Vec<SchemaFile> {
    let file = |kind: FileKind| SchemaFile {
        name: format!("{}.{ending}", base_name(kind)),
        kind,
        text: schema(&Patterns::of(kind, dialect)).document(),
    };
    FileKind::ALL.into_iter().map(file).collect()
}

fn base_name(kind: FileKind) -> &'static str {
    match kind {
        FileKind::EntityList => "entities",
        FileKind::ServiceList => "services",
        FileKind::ObjectList => "user_data_objects",
        FileKind::ComponentList => "components",
        FileKind::Aliases => "aliases",
        FileKind::Ledger => "ledger",
        FileKind::Definition => "definition",
        FileKind::Service => "service",
        FileKind::Object => "user_data_object",
        FileKind::Zone => "zone",
    }
}

/// The patterns of a kind of file in a dialect.
pub(super) struct Patterns {
    pub(super) dialect: Dialect,
    /// Each content once, with its name; the root's first.
    pub(super) named: Vec<(&'static Content, String)>,
}

impl Patterns {
    fn of(kind: FileKind, dialect: Dialect) -> Self {
        let mut patterns = Self {
            dialect,
            named: Vec::new(),
        };
        patterns.add(kind.content(), "Root");
        let mut at = 0;
        while let Some(content) = patterns.named.get(at).map(|(content, _)| *content) {
            for tag in patterns.tags(content) {
                patterns.add(tag.content, tag.name);
            }
            if let Some(named) = content.named {
                patterns.add(named.content, &capitalised(named.what));
            }
            at += 1;
        }
        patterns
    }

    fn add(&mut self, content: &'static Content, name: &str) {
        if self.position(content).is_some() {
            return;
        }
        let mut own = name.to_owned();
        let mut number = 1;
        while self.named.iter().any(|(_, taken)| *taken == own) {
            number += 1;
            own = format!("{name}{number}");
        }
        self.named.push((content, own));
    }

    fn position(&self, content: &Content) -> Option<usize> {
        self.named.iter().position(|(known, _)| std::ptr::eq(*known, content))
    }

    /// The name of a content's pattern.
    pub(super) fn name(&self, content: &Content) -> &str {
        self.position(content).map_or("", |at| &self.named[at].1)
    }

    /// The tags that may occur in an element without a diagnostic, each name once; for a type those of all types.
    pub(super) fn tags(&self, content: &Content) -> Vec<Tag> {
        let shapes: &[&Content] = match content.text {
            Text::Type => &[&SIMPLE, &SEQUENCE, &DICT, &USER],
            _ => &[content],
        };
        let mut tags: Vec<Tag> = Vec::new();
        for shape in shapes {
            for tag in shape.tags.iter().filter(|tag| tag.is_accepted(self.dialect)) {
                let mut tag = *shape.tag_in(tag.name, self.dialect).unwrap_or(tag);
                if content.text == Text::Type {
                    // Whether a type requires them depends on its word.
                    tag.occurs = Occurs::Once;
                }
                if tags.iter().all(|known| known.name != tag.name) {
                    tags.push(tag);
                }
            }
        }
        tags
    }

    /// Whether it occurs only in elements whose names the author chooses.
    pub(super) fn is_of_members_only(&self, content: &Content) -> bool {
        let is_of_tag = |other: &Content| self.tags(other).iter().any(|tag| std::ptr::eq(tag.content, content));
        let is_root = std::ptr::eq(self.named[0].0, content);
        !is_root && !self.named.iter().any(|(other, _)| is_of_tag(other))
    }

    /// Whether text may stand beside elements.
    pub(super) fn is_mixed(&self, content: &Content) -> bool {
        content.text != Text::Nothing && !self.tags(content).is_empty()
    }
}

/// Joins words separated by blanks into one name.
fn capitalised(words: &str) -> String {
    let word = |word: &str| {
        let mut letters = word.chars();
        let first = letters.next().map(|letter| letter.to_ascii_uppercase());
        first.into_iter().chain(letters).collect::<String>()
    };
    words.split(' ').map(word).collect()
}

/// The flags of a dialect.
pub(super) fn flag_words(dialect: Dialect) -> Vec<Word> {
    let accepted = FLAGS.iter().filter(|flag| flag.home.accepts(dialect));
    let word = |flag: &FlagWord| Word {
        name: flag.name,
        says: flag.says(),
    };
    accepted.map(word).collect()
}

/// A case-insensitive pattern for a word.
pub(super) fn in_any_case(word: &str) -> String {
    let letter = |letter: char| match letter {
        'a'..='z' | 'A'..='Z' => format!("[{}{}]", letter.to_ascii_lowercase(), letter.to_ascii_uppercase()),
        _ => letter.to_string(),
    };
    word.chars().map(letter).collect()
}

/// An element of a schema.
pub(super) struct Element {
    name: &'static str,
    attributes: Vec<(&'static str, String)>,
    text: String,
    children: Vec<Element>,
}

impl Element {
    pub(super) fn new(name: &'static str) -> Self {
        Self {
            name,
            attributes: Vec::new(),
            text: String::new(),
            children: Vec::new(),
        }
    }

    /// Adds an attribute.
    pub(super) fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.attributes.push((name, value.into()));
        self
    }

    /// Adds text.
    pub(super) fn text(self, text: &str) -> Self {
        Self {
            text: text.to_owned(),
            ..self
        }
    }

    /// Adds a child element.
    pub(super) fn child(mut self, child: Element) -> Self {
        self.children.push(child);
        self
    }

    /// Adds child elements.
    pub(super) fn children(mut self, children: impl IntoIterator<Item = Element>) -> Self {
        self.children.extend(children);
        self
    }

    fn document(&self) -> String {
        let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
        out.push_str("<!-- Written by `annals defs schema` from the tables that the compiler reads by. -->\n");
        self.write(0, &mut out);
        out
    }

    fn write(&self, depth: usize, out: &mut String) {
        let indent = "  ".repeat(depth);
        out.push_str(&format!("{indent}<{}", self.name));
        for (name, value) in &self.attributes {
            out.push_str(&format!(" {name}=\"{}\"", escaped(value)));
        }
        if self.children.is_empty() && self.text.is_empty() {
            out.push_str("/>\n");
            return;
        }
        out.push_str(&format!(">{}", escaped(&self.text)));
        if !self.children.is_empty() {
            out.push('\n');
            for child in &self.children {
                child.write(depth + 1, out);
            }
            out.push_str(&indent);
        }
        out.push_str(&format!("</{}>\n", self.name));
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('"', "&quot;")
}
