//! The files of zones: what authors place in a space.

use super::{BOOLEAN, Content, FREE, Tag, VALUE};

/// A zone.
pub(crate) static ZONE: Content = Content::tags(&[
    Tag::many("entity", &PLACED_ENTITY, "An entity, created when the zone is loaded."),
    Tag::many("UserDataObject", &PLACED_OBJECT, "A user data object."),
]);

const TYPE: Tag = Tag::once("type", &FREE, "Its type, by its name in the list.").needed();
const POSITION: Tag = Tag::once(
    "position",
    &FREE,
    "Its position in the zone, metres: `x y z`, with `y` up.",
)
.needed();
const YAW: Tag = Tag::once("yaw", &FREE, "Its rotation about the vertical axis, radians.");
const PITCH: Tag = Tag::once("pitch", &FREE, "Its rotation up or down, radians.");
const ROLL: Tag = Tag::once("roll", &FREE, "Its rotation about the line of sight, radians.");
const PROPERTIES: Tag = Tag::once(
    "properties",
    &VALUES,
    "Values of its properties; the others have their defaults.",
);
const EDITOR: Tag = Tag::unused("metadata", "Notes of an editor.");

const HAS_BASE: Tag = Tag::once(
    "hasBase",
    &BOOLEAN,
    "`false` for an entity that has only a cell part, though its type may have a base part.",
);

/// An entity in a zone.
pub(crate) static PLACED_ENTITY: Content =
    Content::tags(&[TYPE, HAS_BASE, POSITION, YAW, PITCH, ROLL, PROPERTIES, EDITOR]);

/// A user data object in a zone.
pub(crate) static PLACED_OBJECT: Content = Content::tags(&[
    TYPE,
    Tag::once(
        "guid",
        &FREE,
        "Its number, to which others refer: four groups of eight hexadecimal digits.",
    )
    .needed(),
    POSITION,
    YAW,
    PITCH,
    ROLL,
    PROPERTIES,
    Tag::unused("Domain", "Its type has the domain."),
    EDITOR,
]);

static VALUES: Content = Content::named("property", &VALUE);
