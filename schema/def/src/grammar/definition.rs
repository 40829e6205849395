//! The sections of definition files.

use super::{
    BASE_METHOD, BIGWORLD, BOOLEAN, CELL_METHOD, CLIENT_METHOD, Content, DISTANCE, Dialect, FREE, Home, KBENGINE,
    NOTHING, Noun, OBJECT_PROPERTY, PROPERTY, SERVICE_METHOD, Tag, Text, words::DOMAINS,
};

/// An entity type, an interface or a component.
pub static DEFINITION: Content = Content::tags(&[
    PARENT,
    IMPLEMENTS,
    INTERFACES_TAG,
    PROPERTIES,
    Tag::once("BaseMethods", &BASE_METHODS, "The methods of the base part."),
    Tag::once("CellMethods", &CELL_METHODS, "The methods of the cell part."),
    Tag::once(
        "ClientMethods",
        &CLIENT_METHODS,
        "The methods of the clients, which the server calls.",
    ),
    Tag::once(
        "Components",
        &BIGWORLD_COMPONENTS,
        "Components; their members become `name.member`.",
    )
    .home(Home::Mostly(Dialect::BigWorld)),
    Tag::once(
        "Components",
        &KBENGINE_COMPONENTS,
        "Components; their members become `name.member`.",
    )
    .home(Home::Mostly(Dialect::KBEngine)),
    Tag::once(
        "Volatile",
        &VOLATILE,
        "Position and direction, sent whenever they are due, not as changes. Replaces the whole inherited section.",
    ),
    Tag::once(
        "LoDLevels",
        &LOD_LEVELS,
        "Levels of detail: the distances up to which properties are sent.",
    )
    .home(BIGWORLD),
    Tag::once("LODLevels", &LOD_LEVELS, "Another spelling of `LoDLevels`.").home(Home::Mostly(Dialect::BigWorld)),
    Tag::once(
        "DetailLevels",
        &DETAIL_LEVELS,
        "The three levels of detail: NEAR, MEDIUM and FAR.",
    )
    .home(KBENGINE),
    Tag::once(
        "Persistent",
        &BOOLEAN,
        "Whether entities of this type can be stored; true by default.",
    ),
    Tag::once(
        "ClientName",
        &ENTITY_NAME,
        "The listed entity type that clients see instead of this one.",
    )
    .home(BIGWORLD),
    Tag::once(
        "TempProperties",
        &TEMP_PROPERTIES,
        "Members that are neither backed up nor handed over.",
    )
    .home(BIGWORLD),
    Tag::once(
        "DetailedPosition",
        &DETAILED_POSITION,
        "The exact position is sent beside the volatile one.",
    )
    .home(BIGWORLD),
    Tag::once(
        "ShouldSendDetailedVolatilePosition",
        &BOOLEAN,
        "An older word for `DetailedPosition`.",
    )
    .home(BIGWORLD),
    Tag::once(
        "AppealRadius",
        &DISTANCE,
        "Metres around the entity within which it attracts areas of interest.",
    )
    .home(BIGWORLD),
    Tag::once(
        "IsManualAoI",
        &BOOLEAN,
        "Clients see it only when behaviour adds it to their view.",
    )
    .home(BIGWORLD),
    Tag::once("IsManualAOI", &BOOLEAN, "Another spelling of `IsManualAoI`.").home(BIGWORLD),
    Tag::once("Distribution", &DISTRIBUTION, "The parts that the entity type has.").home(BIGWORLD),
    Tag::unused("ExplicitDatabaseID", "Ids are chosen by the store."),
    Tag::unused("NetworkCompression", "The transport decides about compression."),
    Tag::unused(
        "ofEntity",
        "Of a shipped game: the entity types that have the component; here their `<Components>` name it.",
    ),
    Tag::unused(
        "ofBWComponent",
        "Of a shipped game: the parts on which the component runs.",
    ),
]);

/// A service.
pub static SERVICE: Content = Content::tags(&[
    IMPLEMENTS,
    INTERFACES_TAG,
    Tag::once(
        "Methods",
        &SERVICE_METHODS,
        "The methods that any fragment of the service answers.",
    ),
]);

/// A user data object.
pub static OBJECT: Content = Content::tags(&[
    Tag::once("Domain", &DOMAIN, "Where objects of this type are created.").needed(),
    PARENT,
    IMPLEMENTS,
    INTERFACES_TAG,
    Tag::once("Properties", &OBJECT_PROPERTIES, "The properties, each by its name."),
]);

const PARENT: Tag = Tag::once(
    "Parent",
    &PARENT_NAME,
    "The definition from which this one inherits everything.",
);
const IMPLEMENTS: Tag = Tag::once(
    "Implements",
    &IMPLEMENTED,
    "Interfaces whose members this definition has; the tag of each is free.",
)
.home(Home::Only(Dialect::BigWorld));
const INTERFACES_TAG: Tag = Tag::once(
    "Interfaces",
    &INTERFACES,
    "Interfaces whose members this definition has.",
)
.home(Home::Only(Dialect::KBEngine));
const PROPERTIES: Tag = Tag::once("Properties", &PROPERTY_LIST, "The properties, each by its name.");

static PARENT_NAME: Content = Content::text(Text::Name(Noun::Parent));
static ENTITY_NAME: Content = Content::text(Text::Name(Noun::Entity));
static INTERFACE_NAME: Content = Content::text(Text::Name(Noun::Interface));
static COMPONENT_NAME: Content = Content::text(Text::Name(Noun::Component));
static IMPLEMENTED: Content = Content::named("interface", &INTERFACE_NAME);
static PROPERTY_LIST: Content = Content::named("property", &PROPERTY);
static OBJECT_PROPERTIES: Content = Content::named("property", &OBJECT_PROPERTY);
static BASE_METHODS: Content = Content::named("base method", &BASE_METHOD);
static CELL_METHODS: Content = Content::named("cell method", &CELL_METHOD);
static CLIENT_METHODS: Content = Content::named("client method", &CLIENT_METHOD);
static SERVICE_METHODS: Content = Content::named("method", &SERVICE_METHOD);
static TEMP_PROPERTIES: Content = Content::named("temporary member", &NOTHING);
static DOMAIN: Content = Content::text(Text::Word(DOMAINS));

/// The interfaces of the KBEngine dialect.
pub(crate) static INTERFACES: Content = Content::tags(&[
    Tag::many("Interface", &INTERFACE_NAME, "An interface, by the name of its file."),
    Tag::many("interface", &INTERFACE_NAME, "Another spelling of `Interface`."),
    Tag::many("Type", &INTERFACE_NAME, "Another word for `Interface`."),
    Tag::many("type", &INTERFACE_NAME, "Another word for `Interface`."),
]);

static BIGWORLD_COMPONENTS: Content = Content::named("component", &COMPONENT_ALIAS);
static KBENGINE_COMPONENTS: Content = Content::named("component", &COMPONENT_TYPE);

/// A component in BigWorld's form: the tag names its definition.
pub static COMPONENT_ALIAS: Content = Content::tags(&[Tag::once(
    "name",
    &FREE,
    "The name of the component in the entity; by default that of its definition.",
)]);

/// A component in KBEngine's form: the tag is what the entity calls it.
pub static COMPONENT_TYPE: Content = Content::tags(&[
    Tag::once("Type", &COMPONENT_NAME, "The component's definition.").needed(),
    Tag::once(
        "Persistent",
        &BOOLEAN,
        "`false` keeps all members of the component out of the store.",
    ),
]);

const REACH: &Content = &Content::text(Text::Reach);

/// The volatile properties of an entity.
pub(crate) static VOLATILE: Content = Content::tags(&[
    Tag::once(
        "position",
        REACH,
        "The position of the entity: empty to send it at any distance, or a maximum distance in metres.",
    ),
    Tag::once(
        "yaw",
        REACH,
        "The heading: empty to send it at any distance, or a maximum distance in metres.",
    ),
    Tag::once(
        "pitch",
        REACH,
        "The inclination up or down; sent no further than `yaw`.",
    ),
    Tag::once("roll", REACH, "The tilt; sent no further than `pitch`."),
    Tag::once(
        "optimized",
        &Content::text(Text::BooleanOrNothing),
        "Whether the height may be omitted while the entity is on the ground.",
    ),
]);

/// Levels of detail in BigWorld's form.
pub(crate) static LOD_LEVELS: Content = Content::tags(&[Tag::many(
    "level",
    &DETAIL_LEVEL,
    "A level of detail: its radius in metres, its `label`, and its `hyst`eresis.",
)]);

/// A level of detail in BigWorld's form.
pub(crate) static DETAIL_LEVEL: Content = Content {
    text: Text::Distance,
    ..Content::tags(&[
        Tag::once(
            "label",
            &FREE,
            "The name by which properties refer to the level in their `DetailLevel`.",
        )
        .needed(),
        Tag::once(
            "hyst",
            &DISTANCE,
            "Metres further out at which an observer leaves the level; 10 by default.",
        ),
    ])
};

/// The three levels of the KBEngine dialect, nearest first.
pub(crate) const BANDS: [&str; 3] = ["NEAR", "MEDIUM", "FAR"];

/// Levels of detail in KBEngine's form.
pub(crate) static DETAIL_LEVELS: Content = Content::tags(&[
    Tag::once(BANDS[0], &DETAIL_BAND, "The innermost level.").needed(),
    Tag::once(
        BANDS[1],
        &DETAIL_BAND,
        "The middle level; its radius counts from the end of the one before.",
    )
    .needed(),
    Tag::once(
        BANDS[2],
        &DETAIL_BAND,
        "The outermost level; its radius counts from the end of the one before.",
    )
    .needed(),
]);

/// A level of detail in KBEngine's form.
pub(crate) static DETAIL_BAND: Content = Content::tags(&[
    Tag::once("radius", &DISTANCE, "The width of the level, metres.").needed(),
    Tag::once(
        "hyst",
        &DISTANCE,
        "Metres further out at which an observer leaves the level.",
    )
    .needed(),
]);

/// How the exact position is sent.
pub(crate) static DETAILED_POSITION: Content = Content::tags(&[Tag::once(
    "SendLatestOnly",
    &BOOLEAN,
    "Only the newest position is kept for an observer.",
)]);

/// The parts of an entity type.
pub(crate) static DISTRIBUTION: Content = Content::tags(&[
    Tag::once("Base", &BOOLEAN, "Whether there is a base part."),
    Tag::once("Cell", &BOOLEAN, "Whether there is a cell part."),
    Tag::once("Client", &BOOLEAN, "Whether there is a client part."),
]);
