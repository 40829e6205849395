//! The files of a world: their paths, and the content of each.

use super::{
    Attribute, Content, DEFINITION, Dialect, Home, OBJECT, SERVICE, TYPE, Tag, Text, ZONE,
    member::{KIND, SLOT},
};
use crate::source::Tree;

/// The kind of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FileKind {
    /// The list of entity types.
    EntityList,
    ServiceList,
    /// A list of user data objects.
    ObjectList,
    /// A list of components, which one game has.
    ComponentList,
    /// Names for types.
    Aliases,
    /// Names for kinds of assets and slots of accounts.
    Ledger,
    /// A definition of an entity type, an interface or a component.
    Definition,
    /// A definition of a service, or of what services share.
    Service,
    /// A definition of a user data object, or of what they share.
    Object,
    /// What an author has placed.
    Zone,
}

/// What a definition file defines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// An entity type.
    Entity,
    /// An interface, of entity types or of services or user data objects.
    Interface,
    /// A component of entity types.
    Component,
    Service,
    /// A user data object type.
    UserDataObject,
}

/// Families of definitions: those of one family share parents and interfaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Family {
    /// Entity types, and components.
    Entity,
    Service,
    /// User data objects.
    Object,
}

/// Possible paths of the definition folders below the game's folder.
pub(crate) const ROOTS: [&str; 3] = ["", "scripts/", "res/scripts/"];

/// The definition folders: path, and what their files define. The first match counts.
pub const FOLDERS: [(&str, Family, Kind); 8] = [
    ("entity_defs/interfaces/", Family::Entity, Kind::Interface),
    ("entity_defs/components/", Family::Entity, Kind::Component),
    ("entity_defs/", Family::Entity, Kind::Entity),
    ("component_defs/", Family::Entity, Kind::Component),
    ("service_defs/interfaces/", Family::Service, Kind::Interface),
    ("service_defs/", Family::Service, Kind::Service),
    ("user_data_object_defs/interfaces/", Family::Object, Kind::Interface),
    ("user_data_object_defs/", Family::Object, Kind::UserDataObject),
];

/// What the definition file at a path below the root defines, and its name.
#[must_use]
pub fn definition_at(path: &str) -> Option<(Family, Kind, &str)> {
    let stem = path.strip_suffix(".def")?;
    let of_folder = |(folder, family, kind): &(&str, Family, Kind)| Some((*family, *kind, stem.strip_prefix(folder)?));
    FOLDERS.iter().find_map(of_folder)
}

/// The files with fixed names, beside the definitions.
pub const LISTS: [(&str, FileKind); 8] = [
    ("entities.xml", FileKind::EntityList),
    ("services.xml", FileKind::ServiceList),
    ("user_data_objects.xml", FileKind::ObjectList),
    (ALIAS_FILES[0], FileKind::Aliases),
    (ALIAS_FILES[1], FileKind::Aliases),
    (EXTRA_ALIASES, FileKind::Aliases),
    (COMPONENT_LIST, FileKind::ComponentList),
    (LEDGER_FILE, FileKind::Ledger),
];

/// The files of aliases: BigWorld's, KBEngine's.
pub(crate) const ALIAS_FILES: [&str; 2] = ["entity_defs/alias.xml", "entity_defs/types.xml"];

/// More aliases, which one game has in addition to BigWorld's file.
pub(crate) const EXTRA_ALIASES: &str = "entity_defs/alias_ext.xml";

/// The list of components, which one game has.
pub(crate) const COMPONENT_LIST: &str = "components.xml";

/// The file of names for kinds and slots.
pub(crate) const LEDGER_FILE: &str = "ledger.xml";

/// The folder of zones.
pub(crate) const ZONE_FOLDER: &str = "zones";

/// The name of the zone in the file at a path below the root.
pub(crate) fn zone_at(path: &str) -> Option<&str> {
    let name = path
        .strip_prefix(ZONE_FOLDER)?
        .strip_prefix('/')?
        .strip_suffix(".xml")?;
    (!name.contains('/')).then_some(name)
}

/// The path of a game's definitions below its folder: empty, or a path that ends in `/`. `None` if there are none.
#[must_use]
pub fn root_of(tree: &Tree) -> Option<&'static str> {
    let has = |root: &&str| {
        tree.files().any(|(path, _)| {
            path.strip_prefix(*root)
                .is_some_and(|path| path == "entities.xml" || path.starts_with("entity_defs/"))
        })
    };
    ROOTS.iter().find(|root| has(root)).copied()
}

impl FileKind {
    /// Every kind of file.
    pub const ALL: [FileKind; 10] = [
        Self::EntityList,
        Self::ServiceList,
        Self::ObjectList,
        Self::ComponentList,
        Self::Aliases,
        Self::Ledger,
        Self::Definition,
        Self::Service,
        Self::Object,
        Self::Zone,
    ];

    /// The kind of a file by its path below the root of the definitions; `None` if it is not read.
    #[must_use]
    pub fn of(path: &str) -> Option<Self> {
        if let Some((_, kind)) = LISTS.iter().find(|(list, _)| *list == path) {
            return Some(*kind);
        }
        if zone_at(path).is_some() {
            return Some(Self::Zone);
        }
        definition_at(path).map(|(family, ..)| match family {
            Family::Entity => Self::Definition,
            Family::Service => Self::Service,
            Family::Object => Self::Object,
        })
    }

    /// The content of the root element.
    #[must_use]
    pub fn content(self) -> &'static Content {
        match self {
            Self::EntityList => &ENTITY_LIST,
            Self::ServiceList | Self::ObjectList | Self::ComponentList => &LIST,
            Self::Aliases => &ALIASES,
            Self::Ledger => &LEDGER,
            Self::Definition => &DEFINITION,
            Self::Service => &SERVICE,
            Self::Object => &OBJECT,
            Self::Zone => &ZONE,
        }
    }
}

/// The groups of entity types in BigWorld's list: with and without a client part.
pub(crate) const GROUPS: [&str; 2] = ["ClientServerEntities", "ServerOnlyEntities"];

const GROUP_TAGS: &[Tag] = &[
    Tag::once(GROUPS[0], &LIST, "Entity types with a client part.").home(Home::Mostly(Dialect::BigWorld)),
    Tag::once(GROUPS[1], &LIST, "Entity types that clients never see.").home(Home::Mostly(Dialect::BigWorld)),
];

/// Entity types in groups: the form of `entities.xml` if it has one of the groups.
pub static GROUPED_LIST: Content = Content::tags(GROUP_TAGS);

/// Either form of `entities.xml`.
static ENTITY_LIST: Content = Content {
    tags: GROUP_TAGS,
    ..Content::named("entity type", &LISTED)
};

/// Names only.
pub static LIST: Content = Content::named("definition", &LISTED);

/// An entry of a list.
pub static LISTED: Content = Content {
    attributes: &[
        Attribute {
            name: "hasBase",
            says: "Whether the entity type has a base part.",
        },
        Attribute {
            name: "hasCell",
            says: "Whether the entity type has a cell part.",
        },
        Attribute {
            name: "hasClient",
            says: "Whether the entity type has a client part.",
        },
    ],
    ..Content::text(Text::Nothing)
};

/// Names for types.
pub static ALIASES: Content = Content::named("alias", &TYPE);

/// Names for kinds of assets and slots of accounts.
pub static LEDGER: Content = Content::tags(&[
    Tag::once(
        "Kinds",
        &KIND_NAMES,
        "Names of kinds of assets, each with the number of its kind.",
    ),
    Tag::once(
        "Slots",
        &SLOT_NAMES,
        "Names of slots of accounts, each with the number of its slot; 0 is the inventory.",
    ),
]);

static KIND_NAMES: Content = Content::named("kind", &KIND);
static SLOT_NAMES: Content = Content::named("slot", &SLOT);
