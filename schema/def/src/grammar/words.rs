//! The words that occur as text: types, flags, and other enumerations.

use super::{BIGWORLD, BOOLEAN, Content, Dialect, FIELD, FREE, Home, KBENGINE, Noun, TYPE, Tag, Text, VALUE};
use crate::{
    data_type::{DataType, MAX_DEFAULT_VALUES, PythonKind},
    schema::Distribution,
};

/// A word that can occur as text.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Word {
    /// Its spelling.
    pub name: &'static str,
    /// Its meaning, in a sentence.
    pub says: &'static str,
}

/// A word that names a type, or begins one.
#[derive(Debug)]
pub struct TypeWord {
    /// Its spelling.
    pub name: &'static str,
    /// What values of the type are, in a sentence.
    pub says: &'static str,
    /// The type it denotes.
    pub meaning: Meaning,
    /// Its dialect.
    pub home: Home,
}

/// The type that a word denotes.
#[derive(Debug)]
pub enum Meaning {
    /// A type by itself.
    Simple(DataType),
    /// A sequence of variable length.
    Array,
    /// A sequence that is replaced as a whole.
    Tuple,
    /// Named fields.
    Dict,
    /// A type whose values the game's code interprets.
    User,
}

/// A word that says which parts and clients have a property.
#[derive(Clone, Copy, Debug)]
pub struct FlagWord {
    /// Its spelling.
    pub name: &'static str,
    /// The distribution it denotes.
    pub distribution: Distribution,
    /// Its dialect.
    pub home: Home,
}

impl TypeWord {
    /// The type word with this spelling.
    #[must_use]
    pub fn of(name: &str) -> Option<&'static Self> {
        TYPES.iter().find(|word| word.name == name)
    }

    /// The content of an element whose text is this word: the word, and these tags.
    #[must_use]
    pub fn content(&self) -> &'static Content {
        match self.meaning {
            Meaning::Simple(_) => &SIMPLE,
            Meaning::Array | Meaning::Tuple => &SEQUENCE,
            Meaning::Dict => &DICT,
            Meaning::User => &USER,
        }
    }

    const fn simple(name: &'static str, data_type: DataType, says: &'static str) -> Self {
        Self {
            name,
            says,
            meaning: Meaning::Simple(data_type),
            home: Home::Both,
        }
    }

    const fn made(name: &'static str, meaning: Meaning, says: &'static str) -> Self {
        Self {
            name,
            says,
            meaning,
            home: Home::Both,
        }
    }

    /// The same word in one dialect; a macro would not read better than the three words.
    const fn of_one(name: &'static str, meaning: Meaning, home: Home, says: &'static str) -> Self {
        Self {
            name,
            says,
            meaning,
            home,
        }
    }
}

/// All words that name a type or begin one. Both dialects read the words of both.
pub static TYPES: &[TypeWord] = &[
    TypeWord::simple("INT8", DataType::Int8, "A whole number from -128 to 127."),
    TypeWord::simple("INT16", DataType::Int16, "A whole number from -32,768 to 32,767."),
    TypeWord::simple(
        "INT32",
        DataType::Int32,
        "A whole number from -2,147,483,648 to 2,147,483,647.",
    ),
    TypeWord::simple("INT64", DataType::Int64, "A whole number of 64 bits with a sign."),
    TypeWord::simple("UINT8", DataType::UInt8, "A whole number from 0 to 255."),
    TypeWord::simple("UINT16", DataType::UInt16, "A whole number from 0 to 65,535."),
    TypeWord::simple("UINT32", DataType::UInt32, "A whole number from 0 to 4,294,967,295."),
    TypeWord::simple("UINT64", DataType::UInt64, "A whole number of 64 bits without a sign."),
    TypeWord::of_one(
        "FLOAT",
        Meaning::Simple(DataType::Float32),
        KBENGINE,
        "A number with about 7 digits.",
    ),
    TypeWord::of_one(
        "FLOAT32",
        Meaning::Simple(DataType::Float32),
        BIGWORLD,
        "A number with about 7 digits.",
    ),
    TypeWord::of_one(
        "FLOAT64",
        Meaning::Simple(DataType::Float64),
        BIGWORLD,
        "A number with about 15 digits.",
    ),
    TypeWord::of_one(
        "DOUBLE",
        Meaning::Simple(DataType::Float64),
        KBENGINE,
        "A number with about 15 digits.",
    ),
    TypeWord::simple("STRING", DataType::String, "Bytes, usually of ASCII text."),
    TypeWord::of_one(
        "UNICODE_STRING",
        Meaning::Simple(DataType::Unicode),
        BIGWORLD,
        "Text of any language, sent as UTF-8.",
    ),
    TypeWord::of_one(
        "UNICODE",
        Meaning::Simple(DataType::Unicode),
        KBENGINE,
        "Text of any language, sent as UTF-8.",
    ),
    TypeWord::simple("BLOB", DataType::Blob, "Bytes; a default is written in base 64."),
    TypeWord::simple("VECTOR2", DataType::Vector2, "Two numbers with about 7 digits."),
    TypeWord::simple("VECTOR3", DataType::Vector3, "Three numbers with about 7 digits."),
    TypeWord::simple("VECTOR4", DataType::Vector4, "Four numbers with about 7 digits."),
    TypeWord::of_one(
        "MAILBOX",
        Meaning::Simple(DataType::Mailbox),
        BIGWORLD,
        "The address of an entity's part; never stored, never sent to clients.",
    ),
    TypeWord::of_one(
        "ENTITYCALL",
        Meaning::Simple(DataType::Mailbox),
        KBENGINE,
        "The address of an entity's part; never stored, never sent to clients.",
    ),
    TypeWord::of_one(
        "UDO_REF",
        Meaning::Simple(DataType::UdoRef),
        BIGWORLD,
        "A user data object of the space, or none.",
    ),
    TypeWord::simple(
        "PYTHON",
        DataType::Python(PythonKind::Any),
        "A value of the script host, kept as it is written; not for clients.",
    ),
    TypeWord::of_one(
        "PY_DICT",
        Meaning::Simple(DataType::Python(PythonKind::Dict)),
        KBENGINE,
        "A dictionary of the script host; not for clients.",
    ),
    TypeWord::of_one(
        "PY_LIST",
        Meaning::Simple(DataType::Python(PythonKind::List)),
        KBENGINE,
        "A list of the script host; not for clients.",
    ),
    TypeWord::of_one(
        "PY_TUPLE",
        Meaning::Simple(DataType::Python(PythonKind::Tuple)),
        KBENGINE,
        "A tuple of the script host; not for clients.",
    ),
    TypeWord::made("ARRAY", Meaning::Array, "A sequence whose elements change one by one."),
    TypeWord::made("TUPLE", Meaning::Tuple, "A sequence that is replaced as a whole."),
    TypeWord::made("FIXED_DICT", Meaning::Dict, "Named fields, each with its own type."),
    TypeWord::of_one("CLASS", Meaning::Dict, BIGWORLD, "An older word for `FIXED_DICT`."),
    TypeWord::of_one(
        "USER_TYPE",
        Meaning::User,
        BIGWORLD,
        "A value that the code of the game encodes and decodes.",
    ),
];

const DEFAULT: Tag = Tag::once("Default", &VALUE, "The initial value of members of the type.");
const WIDGET: Tag = Tag::unused("Widget", "The control that a world editor shows.");
const IMPLEMENTED_BY: &str = "implementedBy";

/// A type without tags.
pub static SIMPLE: Content = Content {
    text: Text::Type,
    ..Content::tags(&[DEFAULT, WIDGET])
};

/// An ARRAY or TUPLE.
pub static SEQUENCE: Content = Content {
    text: Text::Type,
    ..Content::tags(&[
        Tag::once("of", &TYPE, "The type of its elements.").needed(),
        Tag::once("size", &SIZE, "The number of elements, if it is fixed."),
        Tag::once(
            "persistAsBlob",
            &BOOLEAN,
            "Whether it is stored in one piece instead of as rows.",
        )
        .home(BIGWORLD),
        DEFAULT,
        WIDGET,
    ])
};

/// A FIXED_DICT.
pub static DICT: Content = Content {
    text: Text::Type,
    ..Content::tags(&[
        Tag::once(
            "Parent",
            &DICT_PARENT,
            "An alias of a FIXED_DICT whose fields come first.",
        )
        .home(BIGWORLD),
        Tag::once("Properties", &FIELDS, "The fields, each by its name."),
        Tag::once(
            "AllowNone",
            &BOOLEAN,
            "Whether the value can be None; it is then None initially.",
        )
        .home(BIGWORLD),
        Tag::once(
            IMPLEMENTED_BY,
            &FREE,
            "The instance, as `module.name`, that makes objects of the fields.",
        ),
        DEFAULT,
        WIDGET,
        Tag::unused("TypeName", "The name of the alias has the same meaning."),
    ])
};

/// A USER_TYPE.
pub static USER: Content = Content {
    text: Text::Type,
    ..Content::tags(&[
        Tag::once(
            IMPLEMENTED_BY,
            &FREE,
            "The instance, as `module.name`, that reads and writes values.",
        )
        .needed(),
        DEFAULT,
        WIDGET,
    ])
};

static SIZE: Content = Content::text(Text::Integer(0, MAX_DEFAULT_VALUES as u32));
static DICT_PARENT: Content = Content::text(Text::Name(Noun::DictAlias));
static FIELDS: Content = Content::named("field", &FIELD);

/// All words that say which parts and clients have a property.
pub static FLAGS: &[FlagWord] = &[
    FlagWord::own(Distribution::Base),
    FlagWord::own(Distribution::BaseAndClient),
    FlagWord::own(Distribution::CellPrivate),
    FlagWord::own(Distribution::CellPublic),
    FlagWord::own(Distribution::CellPublicAndOwn),
    FlagWord::own(Distribution::OtherClients),
    FlagWord::own(Distribution::OwnClient),
    FlagWord::own(Distribution::AllClients),
    FlagWord::own(Distribution::EditorOnly),
    FlagWord::of_kbengine("CELL", Distribution::CellPublic),
    FlagWord::of_kbengine("CELL_AND_CLIENT", Distribution::CellPublicAndOwn),
    FlagWord::of_kbengine("CELL_AND_CLIENTS", Distribution::AllClients),
    FlagWord::of_kbengine("CELL_AND_OTHER_CLIENTS", Distribution::OtherClients),
];

impl FlagWord {
    const fn own(distribution: Distribution) -> Self {
        Self {
            name: distribution.flag(),
            distribution,
            home: Home::Both,
        }
    }

    const fn of_kbengine(name: &'static str, distribution: Distribution) -> Self {
        Self {
            name,
            distribution,
            home: Home::Only(Dialect::KBEngine),
        }
    }

    /// Its meaning, in a sentence.
    #[must_use]
    pub fn says(&self) -> &'static str {
        match self.distribution {
            Distribution::Base => "It is on the base.",
            Distribution::BaseAndClient => "It is on the base and the own client.",
            Distribution::CellPrivate => "It is on the cell where the entity is real.",
            Distribution::CellPublic => "It is on the cell and its ghosts.",
            Distribution::CellPublicAndOwn => "It is on the cell, its ghosts and the own client.",
            Distribution::OtherClients => {
                "It is on the cell, its ghosts and every client that sees the entity except its own."
            }
            Distribution::OwnClient => "It is on the cell and the own client.",
            Distribution::AllClients => "It is on the cell, its ghosts and every client that sees the entity.",
            Distribution::EditorOnly => "It exists in world editors only, not at run time.",
        }
    }
}

/// Booleans, case-insensitive.
pub const BOOLEANS: &[Word] = &[
    Word {
        name: "true",
        says: "Yes.",
    },
    Word {
        name: "false",
        says: "No.",
    },
];

const OWN_CLIENT: Word = Word {
    name: "OWN_CLIENT",
    says: "The entity's own client may call it.",
};

/// Who may call a base method; an empty text means the same.
pub const EXPOSURES_OF_BASE: &[Word] = &[OWN_CLIENT];

/// Who may call a cell method; an empty text means all clients.
pub const EXPOSURES_OF_CELL: &[Word] = &[
    OWN_CLIENT,
    Word {
        name: "ALL_CLIENTS",
        says: "Every client that sees the entity may call it.",
    },
];

/// The indices of KBEngine's dialect, case-insensitive.
pub const INDICES: &[Word] = &[
    Word {
        name: "UNIQUE",
        says: "No two entities have the same value.",
    },
    Word {
        name: "INDEX",
        says: "Several entities may have the same value.",
    },
];

/// Where user data objects are created, case-insensitive.
pub const DOMAINS: &[Word] = &[
    Word {
        name: "CELL",
        says: "On cells.",
    },
    Word {
        name: "BASE",
        says: "On bases.",
    },
    Word {
        name: "CLIENT",
        says: "On clients.",
    },
];
