//! The words of the language, each once: tags, types, flags, and what stands where.
//!
//! [`crate::read`] reads by these tables, editors complete and explain by them, and the schemas for XML tools are written
//! from them. So what one of them knows all of them know. Everything is static: a table costs a reader no more than a list
//! of names.

mod definition;
mod dialect;
mod file;
mod member;
mod words;

pub(crate) use definition::{
    BANDS, DETAIL_BAND, DETAIL_LEVEL, DETAIL_LEVELS, DETAILED_POSITION, DISTRIBUTION, INTERFACES, LOD_LEVELS, VOLATILE,
};
pub use definition::{COMPONENT_ALIAS, COMPONENT_TYPE, DEFINITION, OBJECT, SERVICE};
pub use dialect::Dialect;
pub(crate) use file::{ALIAS_FILES, COMPONENT_LIST, EXTRA_ALIASES, GROUPS, LEDGER_FILE};
pub use file::{
    ALIASES, FOLDERS, Family, FileKind, GROUPED_LIST, Kind, LEDGER, LIST, LISTED, LISTS, definition_at, root_of,
};
pub(crate) use member::{ACCOUNT, ARG, HEADER_SIZES, LENGTH_HEADER};
pub use member::{BASE_METHOD, CELL_METHOD, CLIENT_METHOD, FIELD, OBJECT_PROPERTY, PROPERTY, SERVICE_METHOD};
pub use words::{
    BOOLEANS, DICT, DOMAINS, EXPOSURES_OF_BASE, EXPOSURES_OF_CELL, FLAGS, FlagWord, INDICES, Meaning, SEQUENCE, SIMPLE,
    TYPES, TypeWord, USER, Word,
};

/// What stands in an element.
#[derive(Debug)]
pub struct Content {
    /// What its text is.
    pub text: Text,
    /// The tags in it.
    pub tags: &'static [Tag],
    /// The elements in it that have names of the author's choice.
    pub named: Option<Named>,
    /// The attributes of the element: yes or no, each.
    pub attributes: &'static [Attribute],
}

/// A tag where it may stand.
#[derive(Clone, Copy, Debug)]
pub struct Tag {
    /// As it is written.
    pub name: &'static str,
    /// What it says, in a sentence.
    pub says: &'static str,
    /// What stands in it.
    pub content: &'static Content,
    /// How often it may be there, and whether it has an effect.
    pub occurs: Occurs,
    /// Whose word it is.
    pub home: Home,
}

/// How often a tag may be there, and whether it has an effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Occurs {
    /// Once, and without it something is missing.
    Needed,
    /// Once at most; of several the first counts.
    Once,
    /// Any number of times.
    Many,
    /// It is understood and has no effect here, which is noted.
    Unused,
    /// It is understood and wrong here, which is reported at length.
    Misplaced,
}

/// Whose word something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Home {
    /// Both dialects have it.
    Both,
    /// One has it; the other is read with it too.
    Mostly(Dialect),
    /// One has it; in the other it is reported.
    Only(Dialect),
}

/// Elements with names of the author's choice.
#[derive(Clone, Copy, Debug)]
pub struct Named {
    /// What each of them is, like "property".
    pub what: &'static str,
    /// What stands in each.
    pub content: &'static Content,
}

/// An attribute.
#[derive(Clone, Copy, Debug)]
pub struct Attribute {
    /// As it is written.
    pub name: &'static str,
    /// What it says, in a sentence.
    pub says: &'static str,
}

/// What the text of an element is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Text {
    /// There is none.
    Nothing,
    /// `true` or `false`.
    Boolean,
    /// Metres.
    Distance,
    /// Metres, or nothing.
    Reach,
    /// A whole number from the one to the other.
    Integer(u32, u32),
    /// `true`, `false`, or nothing.
    BooleanOrNothing,
    /// One of these words, in any case.
    Word(&'static [Word]),
    /// One of these words, or nothing.
    WordOrNothing(&'static [Word]),
    /// One of [`FLAGS`].
    Flags,
    /// One of [`TYPES`], or an alias; which says what else stands beside it.
    Type,
    /// A value of the type beside it, as text or as elements.
    Value,
    /// The name of something that is declared elsewhere.
    Name(Noun),
    /// Any words; some.
    Free,
    /// Anything at all, elements too: nobody reads it.
    Anything,
}

/// What a name can be of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Noun {
    /// A definition of the same kind.
    Parent,
    /// An interface.
    Interface,
    /// A component.
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

    /// Elements with names of the author's choice only.
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

    /// The tag of this name as a dialect means it.
    #[must_use]
    pub fn tag_in(&self, name: &str, dialect: Dialect) -> Option<&'static Tag> {
        let of_name = || self.tags.iter().filter(|tag| tag.name == name);
        of_name().find(|tag| tag.home.offers(dialect)).or(of_name().next())
    }

    /// What stands in a child of this name.
    #[must_use]
    pub fn of_child(&self, name: &str, dialect: Dialect) -> Option<&'static Content> {
        match self.tag_in(name, dialect) {
            Some(tag) => Some(tag.content),
            None => self.named.map(|named| named.content),
        }
    }

    /// What stands in an element of this content with this text: where it is a type, its word decides.
    #[must_use]
    pub fn with_text(&'static self, text: &str) -> &'static Content {
        match self.text {
            Text::Type => TypeWord::of(text).map_or(&words::SIMPLE, |word| word.content()),
            _ => self,
        }
    }
}

impl Tag {
    /// A tag that may be there once.
    pub(crate) const fn once(name: &'static str, content: &'static Content, says: &'static str) -> Self {
        Self {
            name,
            says,
            content,
            occurs: Occurs::Once,
            home: Home::Both,
        }
    }

    /// A tag that may be there several times.
    pub(crate) const fn many(name: &'static str, content: &'static Content, says: &'static str) -> Self {
        Self {
            occurs: Occurs::Many,
            ..Self::once(name, content, says)
        }
    }

    /// A tag that has no effect.
    pub(crate) const fn unused(name: &'static str, says: &'static str) -> Self {
        Self {
            occurs: Occurs::Unused,
            ..Self::once(name, &ANYTHING, says)
        }
    }

    /// The same where it is needed.
    pub(crate) const fn needed(self) -> Self {
        Self {
            occurs: Occurs::Needed,
            ..self
        }
    }

    /// The same where it is wrong.
    pub(crate) const fn misplaced(self) -> Self {
        Self {
            occurs: Occurs::Misplaced,
            ..self
        }
    }

    /// The same as the word of one dialect.
    pub(crate) const fn home(self, home: Home) -> Self {
        Self { home, ..self }
    }

    /// What it says, within a sentence.
    pub(crate) fn remark(&self) -> String {
        let says = self.says.trim_end_matches('.');
        match says.split_at_checked(1) {
            Some((first, rest)) => format!("{}{rest}", first.to_ascii_lowercase()),
            None => says.to_owned(),
        }
    }

    /// Whether a writer should be offered it.
    #[must_use]
    pub fn is_offered(&self, dialect: Dialect) -> bool {
        !matches!(self.occurs, Occurs::Unused | Occurs::Misplaced) && self.home.offers(dialect)
    }

    /// Whether it is read without a word.
    #[must_use]
    pub fn is_accepted(&self, dialect: Dialect) -> bool {
        self.occurs != Occurs::Misplaced && self.home.accepts(dialect)
    }
}

impl Home {
    /// Whether a writer of this dialect should be offered it.
    #[must_use]
    pub fn offers(self, dialect: Dialect) -> bool {
        match self {
            Self::Both => true,
            Self::Mostly(home) | Self::Only(home) => home == dialect,
        }
    }

    /// Whether it is read in this dialect without a word.
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
/// What nobody reads.
static ANYTHING: Content = Content::text(Text::Anything);
static BOOLEAN: Content = Content::text(Text::Boolean);
static DISTANCE: Content = Content::text(Text::Distance);
static FREE: Content = Content::text(Text::Free);
/// What a `<Type>` and everything like it holds. The word of the type decides about its tags: [`Content::with_text`].
pub static TYPE: Content = Content::text(Text::Type);
static VALUE: Content = Content::text(Text::Value);
/// A fixed id of 16 bits.
static PROTOCOL_ID: Content = Content::text(Text::Integer(0, u16::MAX as u32));
static DATABASE_LENGTH: Content = Content::text(Text::Integer(1, u32::MAX));
