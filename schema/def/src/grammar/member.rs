//! Properties, methods and fields.

use super::{
    BIGWORLD, BOOLEAN, Content, DATABASE_LENGTH, DISTANCE, KBENGINE, NOTHING, Noun, PROTOCOL_ID, TYPE, Tag, Text,
    VALUE,
    words::{EXPOSURES_OF_BASE, EXPOSURES_OF_CELL, INDICES},
};

/// A property.
pub static PROPERTY: Content = Content::tags(&[
    TYPE_TAG,
    Tag::once("Flags", &FLAGS, "Who has a copy of the property.").needed(),
    DEFAULT,
    Tag::once(
        "Account",
        &ACCOUNT,
        "It is a view of what the ledger says that the entity holds, and has no value of its own.",
    ),
    Tag::once(
        "Personal",
        &BOOLEAN,
        "It is about a person: sealed wherever it is kept, and gone when the person is forgotten.",
    ),
    PERSISTENT,
    EDITABLE,
    Tag::once(
        "DetailLevel",
        &LEVEL,
        "The level of detail within which other clients are told of changes.",
    ),
    Tag::once(
        "Identifier",
        &BOOLEAN,
        "Entities are loaded by this name: at most one of a type, persistent, with a unique index.",
    ),
    Tag::once("Indexed", &INDEXED, "The store finds entities by it.").home(BIGWORLD),
    Tag::once("Index", &INDEX, "The store finds entities by it.").home(KBENGINE),
    DATABASE_LENGTH_TAG,
    LATEST_ONLY,
    RELIABLE,
    UTYPE.home(KBENGINE),
    HEADER_SIZE.home(BIGWORLD),
    WIDGET,
    REPLAY,
    IS_BUFFERED,
    ONLY_LAST,
    SHOULD_BACKUP,
]);

/// A property of a user data object: constant, and visible to no client.
pub static OBJECT_PROPERTY: Content = Content::tags(&[
    TYPE_TAG,
    DEFAULT,
    PERSISTENT,
    EDITABLE,
    DATABASE_LENGTH_TAG,
    Tag::unused("Flags", "The domain of the object says who has it."),
    Tag::unused("Account", "User data objects hold nothing."),
    Tag::unused("Personal", "User data objects are nobody's."),
    Tag::unused("DetailLevel", UNCHANGED),
    Tag::unused("SendLatestOnly", UNCHANGED),
    Tag::unused("IsReliable", UNCHANGED),
    Tag::unused("Utype", UNCHANGED),
    Tag::unused("Identifier", NOT_FOUND_BY),
    Tag::unused("Indexed", NOT_FOUND_BY),
    Tag::unused("Index", NOT_FOUND_BY),
    WIDGET,
    REPLAY,
    NO_HEADER_SIZE,
]);

const UNCHANGED: &str = "User data objects never change.";
const NOT_FOUND_BY: &str = "User data objects are found by their ids.";

/// A field of a FIXED_DICT.
pub static FIELD: Content = Content::tags(&[
    TYPE_TAG,
    Tag::once(
        "Persistent",
        &BOOLEAN,
        "Whether it is stored with the property; true unless said otherwise.",
    ),
    DATABASE_LENGTH_TAG,
    WIDGET,
    DEFAULT.misplaced(),
]);

/// A method of the base part.
pub static BASE_METHOD: Content = Content::tags(&BASE_TAGS);
static BASE_TAGS: [Tag; 13] = server_method(Tag::once("Exposed", &EXPOSED_BASE, "The own client may call it."));

/// A method of the cell part.
pub static CELL_METHOD: Content = Content::tags(&CELL_TAGS);
static CELL_TAGS: [Tag; 13] = server_method(Tag::once(
    "Exposed",
    &EXPOSED_CELL,
    "Clients may call it: all that see the entity, or its own.",
));

/// The tags of a method that runs on a server; `exposed` says who may call it.
const fn server_method(exposed: Tag) -> [Tag; 13] {
    [
        ARGS,
        RETURNS,
        exposed,
        UTYPE.home(KBENGINE),
        POSITIONAL,
        REPLAY_LEVEL,
        NO_HEADER_SIZE,
        IS_BUFFERED,
        ONLY_LAST,
        SHOULD_BACKUP,
        LATEST_ONLY.misplaced(),
        RELIABLE.misplaced(),
        DETAIL_DISTANCE.misplaced(),
    ]
}

/// A method of the clients.
pub static CLIENT_METHOD: Content = Content::tags(&[
    ARGS,
    DETAIL_DISTANCE,
    LATEST_ONLY,
    RELIABLE,
    UTYPE.home(KBENGINE),
    POSITIONAL,
    REPLAY_LEVEL,
    HEADER_SIZE.home(BIGWORLD),
    IS_BUFFERED,
    ONLY_LAST,
    SHOULD_BACKUP,
    RETURNS.misplaced(),
    Tag::once(
        "Exposed",
        &NOTHING,
        "Clients may call it; the server calls client methods.",
    )
    .misplaced(),
]);

/// A method of a service.
pub static SERVICE_METHOD: Content = Content::tags(&[
    ARGS,
    RETURNS,
    UTYPE.home(KBENGINE),
    POSITIONAL,
    REPLAY_LEVEL,
    NO_HEADER_SIZE,
    Tag::once("Exposed", &NOTHING, "Clients may call it; they cannot call services.").misplaced(),
    LATEST_ONLY.misplaced(),
    RELIABLE.misplaced(),
    DETAIL_DISTANCE.misplaced(),
]);

/// The tag of a positional argument.
pub(crate) const ARG: &str = "Arg";

const TYPE_TAG: Tag = Tag::once("Type", &TYPE, "What it holds: a type of the language, or an alias.").needed();
const DATABASE_LENGTH_TAG: Tag = Tag::once(
    "DatabaseLength",
    &DATABASE_LENGTH,
    "Characters or bytes that a database makes room for.",
);
const DEFAULT: Tag = Tag::once("Default", &VALUE, "What it holds at first.");
const PERSISTENT: Tag = Tag::once(
    "Persistent",
    &BOOLEAN,
    "Whether it is stored; false unless said otherwise.",
);
const EDITABLE: Tag = Tag::once("Editable", &BOOLEAN, "Whether world editors offer it.");
const REPLAY: Tag = Tag::unused("ExposedForReplay", "Everything is recorded.");
const LATEST_ONLY: Tag = Tag::once(
    "SendLatestOnly",
    &BOOLEAN,
    "Of what an observer has not been sent yet only the newest is kept.",
);
const RELIABLE: Tag = Tag::once(
    "IsReliable",
    &BOOLEAN,
    "Whether it is sent again when lost; true unless said otherwise.",
);
const DETAIL_DISTANCE: Tag = Tag::once(
    "DetailDistance",
    &DISTANCE,
    "Clients further away than so many metres are not told.",
);
const UTYPE: Tag = Tag::once("Utype", &PROTOCOL_ID, "An id of 16 bits for a foreign protocol.");
const WIDGET: Tag = Tag::unused("Widget", "How a world editor shows it.");
const REPLAY_LEVEL: Tag = Tag::unused("ReplayExposureLevel", "Everything is recorded.");
const IS_BUFFERED: Tag = Tag::unused("isBuffered", "Of a shipped game: sent together with others.");
const ONLY_LAST: Tag = Tag::unused(
    "onlyLast",
    "Of a shipped game: only the newest of what is buffered is sent, as with `SendLatestOnly`.",
);
const SHOULD_BACKUP: Tag = Tag::unused(
    "shouldBackup",
    "Of a shipped game: it is in backups; here all is in the log.",
);
const HEADER_SIZE: Tag = Tag::once(
    HEADER_SIZE_NAME,
    &LENGTH_HEADER,
    "Orders client numbers: of what varies in size, a smaller header comes first. Lengths take one byte, or four, all the \
     same.",
);
const NO_HEADER_SIZE: Tag = Tag::unused(HEADER_SIZE_NAME, "Only what clients are sent is ordered by it.");
const HEADER_SIZE_NAME: &str = "VariableLengthHeaderSize";
const ARGS: Tag = Tag::once("Args", &ARGUMENTS, "What the method takes: a type for each name.");
const RETURNS: Tag = Tag::once(
    "ReturnValues",
    &RETURNED,
    "What the method answers: a type for each name.",
);
const POSITIONAL: Tag = Tag::many(ARG, &TYPE, "The type of an argument that has only a position.");

/// The header of a member whose size varies.
pub(crate) static LENGTH_HEADER: Content = Content {
    text: Text::Integer(HEADER_SIZES.0, HEADER_SIZES.1),
    ..Content::tags(&[Tag::unused("WarnLevel", "Nothing is too long for its header.")])
};

/// Minimum and maximum size of a header, bytes.
pub(crate) const HEADER_SIZES: (u32, u32) = (1, 4);

/// The ledger account that a property shows.
pub(crate) static ACCOUNT: Content = Content::tags(&[
    Tag::once(
        "Slot",
        &SLOT,
        "Which slot of what the entity holds; 0, the inventory, unless said otherwise.",
    ),
    Tag::once("Kind", &KIND, "Which kind of asset; without it, all of them."),
]);
pub(super) static SLOT: Content = Content::text(Text::Integer(0, u16::MAX as u32));
pub(super) static KIND: Content = Content::text(Text::Integer(0, u32::MAX));
static FLAGS: Content = Content::text(Text::Flags);
static LEVEL: Content = Content::text(Text::Name(Noun::Level));
static EXPOSED_BASE: Content = Content::text(Text::WordOrNothing(EXPOSURES_OF_BASE));
static EXPOSED_CELL: Content = Content::text(Text::WordOrNothing(EXPOSURES_OF_CELL));
static INDEX: Content = Content::text(Text::Word(INDICES));
static INDEXED: Content = Content {
    text: Text::Boolean,
    ..Content::tags(&[Tag::once("Unique", &BOOLEAN, "No two entities have the same value.")])
};
static ARGUMENTS: Content = Content {
    tags: &[POSITIONAL],
    ..Content::named("argument", &TYPE)
};
static RETURNED: Content = Content {
    tags: &[POSITIONAL],
    ..Content::named("returned value", &TYPE)
};
