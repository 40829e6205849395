//! The vocabulary of the language: tags, types, flags, and where each may occur.
//!
//! The parser (`crate::read`) works by these tables, editors complete and explain by them, and the schemas for XML tools
//! are generated from them, so that they agree. Everything is static: a table costs a reader no more than a list of
//! names.

mod definition;
mod dialect;
mod file;
mod member;
mod words;
mod zone;

pub(crate) use definition::{
    BANDS, DETAIL_BAND, DETAIL_LEVEL, DETAIL_LEVELS, DETAILED_POSITION, DISTRIBUTION, INTERFACES, LOD_LEVELS, VOLATILE,
};
pub use definition::{COMPONENT_ALIAS, COMPONENT_TYPE, DEFINITION, OBJECT, SERVICE};
pub use dialect::Dialect;
pub(crate) use file::{ALIAS_FILES, COMPONENT_LIST, EXTRA_ALIASES, GROUPS, LEDGER_FILE, ZONE_FOLDER, zone_at};
pub use file::{
    ALIASES, FOLDERS, Family, FileKind, GROUPED_LIST, Kind, LEDGER, LIST, LISTED, LISTS, definition_at, root_of,
};
pub(crate) use member::{ACCOUNT, ARG, HEADER_SIZES, LENGTH_HEADER};
pub use member::{BASE_METHOD, CELL_METHOD, CLIENT_METHOD, FIELD, OBJECT_PROPERTY, PROPERTY, SERVICE_METHOD};
pub use words::{
    BOOLEANS, DICT, DOMAINS, EXPOSURES_OF_BASE, EXPOSURES_OF_CELL, FLAGS, FlagWord, INDICES, Meaning, SEQUENCE, SIMPLE,
    TYPES, TypeWord, USER, Word,
};
pub(crate) use zone::{PLACED_ENTITY, PLACED_OBJECT, ZONE};

use crate::schema::MAX_CALLS_PER_MINUTE;

/// The content of an element.
#[derive(Debug)]
pub struct Content {
    /// The text in it.
    pub text: Text,
    /// The tags in it.
    pub tags: &'static [Tag],
    /// Elements in it whose names the author chooses.
    pub named: Option<Named>,
    /// The boolean attributes of the element.
    pub attributes: &'static [Attribute],
}

/// A tag at a place where it may occur.
#[derive(Clone, Copy, Debug)]
pub struct Tag {
    /// Its spelling.
    pub name: &'static str,
    /// Its meaning, in a sentence.
    pub says: &'static str,
    pub content: &'static Content,
    /// How often it may occur, and whether it has an effect.
    pub occurs: Occurs,
    /// Its dialect.
    pub home: Home,
}

/// How often a tag may occur, and whether it has an effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Occurs {
    /// Required, once.
    Needed,
    /// At most once; the first of several counts.
    Once,
    /// Any number of times.
    Many,
    /// Understood, without effect here; reported as a note.
    Unused,
    /// Understood, but wrong here; reported with an explanation.
    Misplaced,
}

/// The dialect of a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Home {
    /// Both dialects.
    Both,
    /// A word of one dialect that the other accepts.
    Mostly(Dialect),
    /// A word of one dialect that is reported in the other.
    Only(Dialect),
}

/// Elements whose names the author chooses.
#[derive(Clone, Copy, Debug)]
pub struct Named {
    /// What each of them is, such as "property".
    pub what: &'static str,
    /// The content of each.
    pub content: &'static Content,
}

/// An attribute.
#[derive(Clone, Copy, Debug)]
pub struct Attribute {
    /// Its spelling.
    pub name: &'static str,
    /// Its meaning, in a sentence.
    pub says: &'static str,
}

/// The text of an element.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Text {
    /// No text.
    Nothing,
    /// `true` or `false`.
    Boolean,
    /// Metres.
    Distance,
    /// Metres, or empty.
    Reach,
    /// A whole number between these two, inclusive.
    Integer(u32, u32),
    /// `true`, `false`, or empty.
    BooleanOrNothing,
    /// One of these words, case-insensitive.
    Word(&'static [Word]),
    /// One of these words, or empty.
    WordOrNothing(&'static [Word]),
    /// One of [`FLAGS`].
    Flags,
    /// One of [`TYPES`], or an alias; the word decides which tags stand beside it.
    Type,
    /// A value of the type beside it, as text or as elements.
    Value,
    /// The name of a declaration elsewhere.
    Name(Noun),
    /// Free text, not empty.
    Free,
    /// Anything, including elements: it is ignored.
    Anything,
}

/// The kind of declaration that a name refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Noun {
    /// A definition of the same kind.
    Parent,
    Interface,
    Component,
    /// A listed entity type.
    Entity,
    /// An alias of a FIXED_DICT.
    DictAlias,
    /// A level of detail.
    Level,
}

impl Content {
    /// Text only.
    pub(crate) const fn text(text: Text) -> Self {
        Self {
            text,
            tags: &[],
            named: None,
            attributes: &[],
        }
    }

    /// Tags only.
    pub(crate) const fn tags(tags: &'static [Tag]) -> Self {
        Self {
            tags,
            ..Self::text(Text::Nothing)
        }
    }

    /// Elements whose names the author chooses only.
    pub(crate) const fn named(what: &'static str, content: &'static Content) -> Self {
        Self {
            named: Some(Named { what, content }),
            ..Self::text(Text::Nothing)
        }
    }

    /// The tag of this name.
    #[must_use]
    pub fn tag(&self, name: &str) -> Option<&'static Tag> {
        self.tags.iter().find(|tag| tag.name == name)
    }

    /// The tag of this name, as a dialect defines it.
    #[must_use]
    pub fn tag_in(&self, name: &str, dialect: Dialect) -> Option<&'static Tag> {
        let of_name = || self.tags.iter().filter(|tag| tag.name == name);
        of_name().find(|tag| tag.home.offers(dialect)).or(of_name().next())
    }

    /// The content of a child of this name.
    #[must_use]
    pub fn of_child(&self, name: &str, dialect: Dialect) -> Option<&'static Content> {
        match self.tag_in(name, dialect) {
            Some(tag) => Some(tag.content),
            None => self.named.map(|named| named.content),
        }
    }

    /// The content of an element with this text: if the text is a type, its word decides.
    #[must_use]
    pub fn with_text(&'static self, text: &str) -> &'static Content {
        match self.text {
            Text::Type => TypeWord::of(text).map_or(&words::SIMPLE, |word| word.content()),
            _ => self,
        }
    }
}

impl Tag {
    /// A tag that may occur once.
    pub(crate) const fn once(name: &'static str, content: &'static Content, says: &'static str) -> Self {
        Self {
            name,
            says,
            content,
            occurs: Occurs::Once,
            home: Home::Both,
        }
    }

    /// A tag that may occur several times.
    pub(crate) const fn many(name: &'static str, content: &'static Content, says: &'static str) -> Self {
        Self {
            occurs: Occurs::Many,
            ..Self::once(name, content, says)
        }
    }

    /// A tag without effect.
    pub(crate) const fn unused(name: &'static str, says: &'static str) -> Self {
        Self {
            occurs: Occurs::Unused,
            ..Self::once(name, &ANYTHING, says)
        }
    }

    /// The same tag, required.
    pub(crate) const fn needed(self) -> Self {
        Self {
            occurs: Occurs::Needed,
            ..self
        }
    }

    /// The same tag, reported as misplaced.
    pub(crate) const fn misplaced(self) -> Self {
        Self {
            occurs: Occurs::Misplaced,
            ..self
        }
    }

    /// The same tag with another dialect.
    pub(crate) const fn home(self, home: Home) -> Self {
        Self { home, ..self }
    }

    /// Its meaning, as part of a sentence.
    pub(crate) fn remark(&self) -> String {
        let says = self.says.trim_end_matches('.');
        match says.split_at_checked(1) {
            Some((first, rest)) => format!("{}{rest}", first.to_ascii_lowercase()),
            None => says.to_owned(),
        }
    }

    /// Whether editors offer it.
    #[must_use]
    pub fn is_offered(&self, dialect: Dialect) -> bool {
        !matches!(self.occurs, Occurs::Unused | Occurs::Misplaced) && self.home.offers(dialect)
    }

    /// Whether it is read without a diagnostic.
    #[must_use]
    pub fn is_accepted(&self, dialect: Dialect) -> bool {
        self.occurs != Occurs::Misplaced && self.home.accepts(dialect)
    }
}

impl Home {
    /// Whether editors offer it in this dialect.
    #[must_use]
    pub fn offers(self, dialect: Dialect) -> bool {
        match self {
            Self::Both => true,
            Self::Mostly(home) | Self::Only(home) => home == dialect,
        }
    }

    /// Whether it is read in this dialect without a diagnostic.
    #[must_use]
    pub fn accepts(self, dialect: Dialect) -> bool {
        match self {
            Self::Both | Self::Mostly(_) => true,
            Self::Only(home) => home == dialect,
        }
    }
}

const BIGWORLD: Home = Home::Mostly(Dialect::BigWorld);
const KBENGINE: Home = Home::Mostly(Dialect::KBEngine);

/// No text and no element.
static NOTHING: Content = Content::text(Text::Nothing);
/// Ignored content.
static ANYTHING: Content = Content::text(Text::Anything);
static BOOLEAN: Content = Content::text(Text::Boolean);
static DISTANCE: Content = Content::text(Text::Distance);
static FREE: Content = Content::text(Text::Free);
/// The content of a `<Type>` and similar elements. The word of the type decides which tags it has:
/// [`Content::with_text`].
pub static TYPE: Content = Content::text(Text::Type);
static VALUE: Content = Content::text(Text::Value);
/// Calls of a method in a minute.
static CALLS_PER_MINUTE: Content = Content::text(Text::Integer(1, MAX_CALLS_PER_MINUTE));
/// A fixed id of 16 bits.
static PROTOCOL_ID: Content = Content::text(Text::Integer(0, u16::MAX as u32));
static DATABASE_LENGTH: Content = Content::text(Text::Integer(1, u32::MAX));
