//! Properties, methods and fields.

use super::{
    BIGWORLD, BOOLEAN, CALLS_PER_MINUTE, Content, DATABASE_LENGTH, DISTANCE, KBENGINE, NOTHING, Noun, PROTOCOL_ID,
    TYPE, Tag, Text, VALUE,
    words::{EXPOSURES_OF_BASE, EXPOSURES_OF_CELL, INDICES},
};

/// A property.
pub static PROPERTY: Content = Content::tags(&[
    TYPE_TAG,
    Tag::once("Flags", &FLAGS, "The parts and clients that have the property.").needed(),
    DEFAULT,
    Tag::once(
        "Account",
        &ACCOUNT,
        "A view of the holdings of the entity in the ledger; the property has no value of its own.",
    ),
    Tag::once(
        "Personal",
        &BOOLEAN,
        "Personal data: sealed wherever it is kept, and unreadable once the person is forgotten.",
    ),
    PERSISTENT,
    EDITABLE,
    Tag::once(
        "DetailLevel",
        &LEVEL,
        "The level of detail within which changes are sent to other clients.",
    ),
    Tag::once(
        "Identifier",
        &BOOLEAN,
        "The name by which entities are loaded: at most one per type, persistent, with a unique index.",
    ),
    Tag::once("Indexed", &INDEXED, "The store can look entities up by this value.").home(BIGWORLD),
    Tag::once("Index", &INDEX, "The store can look entities up by this value.").home(KBENGINE),
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
    Tag::unused("Flags", "The domain of the object decides where the property is."),
    Tag::unused("Account", "User data objects have no holdings."),
    Tag::unused("Personal", "User data objects hold no personal data."),
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
        "Whether the field is stored with the property; true by default.",
    ),
    DATABASE_LENGTH_TAG,
    WIDGET,
    DEFAULT.misplaced(),
]);

/// A method of the base part.
pub static BASE_METHOD: Content = Content::tags(&BASE_TAGS);
static BASE_TAGS: [Tag; 14] = server_method(Tag::once("Exposed", &EXPOSED_BASE, "The own client may call it."));

/// A method of the cell part.
pub static CELL_METHOD: Content = Content::tags(&CELL_TAGS);
static CELL_TAGS: [Tag; 14] = server_method(Tag::once(
    "Exposed",
    &EXPOSED_CELL,
    "Clients may call it: all that see the entity, or its own.",
));

/// The tags of a method that runs on a server; `exposed` says who may call it.
const fn server_method(exposed: Tag) -> [Tag; 14] {
    [
        ARGS,
        RETURNS,
        exposed,
        CALL_LIMIT,
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

const TYPE_TAG: Tag = Tag::once("Type", &TYPE, "The type: a type of the language, or an alias.").needed();
const DATABASE_LENGTH_TAG: Tag = Tag::once(
    "DatabaseLength",
    &DATABASE_LENGTH,
    "Characters or bytes for which a database reserves space.",
);
const DEFAULT: Tag = Tag::once("Default", &VALUE, "The initial value.");
const PERSISTENT: Tag = Tag::once(
    "Persistent",
    &BOOLEAN,
    "Whether the property is stored; false by default.",
);
const EDITABLE: Tag = Tag::once("Editable", &BOOLEAN, "Whether world editors can edit the property.");
const REPLAY: Tag = Tag::unused("ExposedForReplay", "Everything is recorded.");
const LATEST_ONLY: Tag = Tag::once(
    "SendLatestOnly",
    &BOOLEAN,
    "Only the newest of the changes not yet sent to an observer is kept.",
);
const RELIABLE: Tag = Tag::once(
    "IsReliable",
    &BOOLEAN,
    "Whether a lost change or call is sent again; true by default.",
);
const DETAIL_DISTANCE: Tag = Tag::once(
    "DetailDistance",
    &DISTANCE,
    "Maximum distance of clients to which it is sent, metres.",
);
const CALL_LIMIT: Tag = Tag::once(
    "CallsPerMinute",
    &CALLS_PER_MINUTE,
    "Calls of one client in a minute, of one entity; further ones are refused. A tenth of them may come at once.",
);
const UTYPE: Tag = Tag::once("Utype", &PROTOCOL_ID, "A 16-bit id for a foreign protocol.");
const WIDGET: Tag = Tag::unused("Widget", "The control that a world editor shows.");
const REPLAY_LEVEL: Tag = Tag::unused("ReplayExposureLevel", "Everything is recorded.");
const IS_BUFFERED: Tag = Tag::unused("isBuffered", "Of a shipped game: sent together with others.");
const ONLY_LAST: Tag = Tag::unused(
    "onlyLast",
    "Of a shipped game: only the newest of what is buffered is sent, as with `SendLatestOnly`.",
);
const SHOULD_BACKUP: Tag = Tag::unused(
    "shouldBackup",
    "Of a shipped game: whether it is in backups; here everything is in the log.",
);
const HEADER_SIZE: Tag = Tag::once(
    HEADER_SIZE_NAME,
    &LENGTH_HEADER,
    "Orders client numbers: among members of variable size, a smaller header comes first. A length takes one byte, or \
     four, in any case.",
);
const NO_HEADER_SIZE: Tag = Tag::unused(HEADER_SIZE_NAME, "It orders only members that are sent to clients.");
const HEADER_SIZE_NAME: &str = "VariableLengthHeaderSize";
const ARGS: Tag = Tag::once("Args", &ARGUMENTS, "The arguments of the method: a type for each name.");
const RETURNS: Tag = Tag::once(
    "ReturnValues",
    &RETURNED,
    "The return values of the method: a type for each name.",
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
    Tag::once("Slot", &SLOT, "The slot of the holdings; by default 0, the inventory."),
    Tag::once("Kind", &KIND, "The kind of asset; all kinds if absent."),
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
