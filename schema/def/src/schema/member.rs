//! Properties and methods.

use std::fmt;

use annals_ids::{MemberId, Part};

use super::AccountView;
use crate::{data_type::DataType, value::Value};

/// A property of an entity type.
#[derive(Clone, Debug, PartialEq)]
pub struct Property {
    /// Its position among the type's properties.
    pub index: MemberId,
    /// Its name; `component.name` for a member of a component.
    pub name: String,
    pub data_type: DataType,
    /// Which parts of the entity and which clients have a copy.
    pub distribution: Distribution,
    /// Its initial value: the default of the property, else of its alias, else of its type (D4).
    pub default: Value,
    /// The type that behaviour reads and sets, if the member is personal: the property then holds the sealed value as a
    /// BLOB, or is empty.
    pub personal: Option<DataType>,
    /// The account that it shows, if it is a view without a value of its own. Its default is then shown until the
    /// ledger has reported.
    pub account: Option<AccountView>,
    /// Whether it is stored.
    pub persistent: bool,
    /// Whether the store has an index of it.
    pub indexed: Index,
    /// Whether it is the name by which an entity is loaded; at most one per type, with a unique index.
    pub identifier: bool,
    /// Characters or bytes that a database reserves, if declared.
    pub database_length: Option<u32>,
    /// The level of detail within which its changes are sent, as a position in the type's levels; `None`: at any
    /// distance.
    pub detail_level: Option<u8>,
    /// Only the newest change is kept for an observer.
    pub latest_only: bool,
    /// Lost changes are sent again.
    pub reliable: bool,
    /// World editors offer it.
    pub editable: bool,
    /// `VariableLengthHeaderSize`, 1 to 4, if clients see the property and its size varies; else 1. It only affects the
    /// order of client numbers.
    pub header_size: u8,
    /// The id that the author fixed for it on a foreign wire (`Utype`).
    pub protocol_id: Option<u16>,
    /// Its client number: fixed sizes first, by size, then the others by `header_size`. Derived.
    pub client_id: Option<u16>,
}

/// A method of a base, cell or client part, or of a service.
#[derive(Clone, Debug, PartialEq)]
pub struct Method {
    /// Its position among the methods of the same part.
    pub index: MemberId,
    /// Its name; `component.name` for a method of a component.
    pub name: String,
    /// Its arguments.
    pub args: Vec<Argument>,
    /// Its return values; empty for a one-way call.
    pub returns: Vec<Argument>,
    /// Which clients may call it.
    pub exposed: Exposure,
    /// Calls of one client in a minute, of one entity, 1 to [`MAX_CALLS_PER_MINUTE`]; exposed methods only.
    pub calls_per_minute: Option<u32>,
    /// Clients farther away than this many metres do not receive it; client methods only.
    pub detail_distance: Option<f32>,
    /// Only the newest call is kept for an observer; client methods only.
    pub latest_only: bool,
    /// A lost call is sent again; client methods only.
    pub reliable: bool,
    /// `VariableLengthHeaderSize`, 1 to 4, if it is a client method whose size varies; else 1. It only affects the
    /// order of client numbers.
    pub header_size: u8,
    /// The id that the author fixed for it on a foreign wire (`Utype`).
    pub protocol_id: Option<u16>,
    /// Its number among the exposed methods of its part, or among the client methods: fixed sizes of the arguments
    /// first, by size, then the others by `header_size`. Derived.
    pub client_id: Option<u16>,
}

/// Highest [`Method::calls_per_minute`]: a client that sends more messages is disconnected.
pub const MAX_CALLS_PER_MINUTE: u32 = 30_000;

/// An argument or a returned value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Argument {
    /// Its name; `arg0`, `arg1`… where only types are given.
    pub name: String,
    pub data_type: DataType,
}

/// Which clients may call a server method.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Exposure {
    /// None; only servers.
    #[default]
    No,
    /// The entity's own client.
    OwnClient,
    /// Every client that can see the entity.
    AllClients,
}

/// The index of a property in the store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Index {
    /// No index.
    #[default]
    None,
    /// Several entities may have the same value.
    Plain,
    /// At most one entity per value.
    Unique,
}

/// Which parts and clients have a copy of a property (D5). The base may change the `Base…` kinds, the cell all others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Distribution {
    Base,
    /// The base and the own client.
    BaseAndClient,
    /// The real cell part.
    CellPrivate,
    /// The cell and its ghosts.
    CellPublic,
    /// The cell, its ghosts and the own client.
    CellPublicAndOwn,
    /// The cell, its ghosts and every client that sees the entity but its own.
    OtherClients,
    /// The cell and the own client.
    OwnClient,
    /// The cell, its ghosts and every client that sees the entity.
    AllClients,
    /// World editors only; absent at run time.
    EditorOnly,
}

impl Property {
    /// A property that is not stored, with its type's own default and all other settings as if undeclared.
    #[must_use]
    pub fn new(name: impl Into<String>, data_type: DataType, distribution: Distribution) -> Self {
        Self {
            index: MemberId(0),
            name: name.into(),
            default: data_type.default_value(),
            data_type,
            distribution,
            personal: None,
            account: None,
            persistent: false,
            indexed: Index::None,
            identifier: false,
            database_length: None,
            detail_level: None,
            latest_only: false,
            reliable: true,
            editable: false,
            header_size: 1,
            protocol_id: None,
            client_id: None,
        }
    }

    /// The same as a personal member, which holds sealed values of this type; `None` where that is not possible: a
    /// personal member is on the base alone, stored, not indexed, and initially empty.
    #[must_use]
    pub fn sealed(self, data_type: DataType) -> Option<Self> {
        let is_plain = self.distribution == Distribution::Base
            && self.persistent
            && self.account.is_none()
            && self.indexed == Index::None
            && !self.identifier
            && !self.editable
            && !self.latest_only;
        is_plain.then(|| Self {
            default: DataType::Blob.default_value(),
            data_type: DataType::Blob,
            personal: Some(data_type),
            ..self
        })
    }

    /// Whether it is in the rows of stored entities.
    #[must_use]
    pub fn is_stored(&self) -> bool {
        self.persistent && self.is_held()
    }

    /// Whether it is in the state of a part.
    #[must_use]
    pub fn is_held(&self) -> bool {
        self.is_held_by(Part::Base) || self.is_held_by(Part::Cell)
    }

    /// Whether it is in the state of this part. A view is in none: its value follows from the ledger.
    #[must_use]
    pub fn is_held_by(&self, part: Part) -> bool {
        self.account.is_none() && self.distribution.on(part)
    }
}

impl Distribution {
    /// All distributions, in the order of their codes in stored schemas.
    pub const ALL: [Distribution; 9] = [
        Self::Base,
        Self::BaseAndClient,
        Self::CellPrivate,
        Self::CellPublic,
        Self::CellPublicAndOwn,
        Self::OtherClients,
        Self::OwnClient,
        Self::AllClients,
        Self::EditorOnly,
    ];

    /// The flag in files.
    #[must_use]
    pub const fn flag(self) -> &'static str {
        match self {
            Self::Base => "BASE",
            Self::BaseAndClient => "BASE_AND_CLIENT",
            Self::CellPrivate => "CELL_PRIVATE",
            Self::CellPublic => "CELL_PUBLIC",
            Self::CellPublicAndOwn => "CELL_PUBLIC_AND_OWN",
            Self::OtherClients => "OTHER_CLIENTS",
            Self::OwnClient => "OWN_CLIENT",
            Self::AllClients => "ALL_CLIENTS",
            Self::EditorOnly => "EDITOR_ONLY",
        }
    }

    /// Whether this part holds it.
    #[must_use]
    pub fn on(self, part: Part) -> bool {
        match part {
            Part::Base => self.on_base(),
            Part::Cell => self.on_cell(),
        }
    }

    /// Whether the base part holds it.
    #[must_use]
    pub fn on_base(self) -> bool {
        matches!(self, Self::Base | Self::BaseAndClient)
    }

    /// Whether the real cell part holds it.
    #[must_use]
    pub fn on_cell(self) -> bool {
        !self.on_base() && self != Self::EditorOnly
    }

    /// Whether ghosts on other cells hold a copy.
    #[must_use]
    pub fn to_ghosts(self) -> bool {
        matches!(
            self,
            Self::CellPublic | Self::CellPublicAndOwn | Self::OtherClients | Self::AllClients
        )
    }

    /// Whether the entity's own client holds a copy.
    #[must_use]
    pub fn to_own_client(self) -> bool {
        matches!(
            self,
            Self::BaseAndClient | Self::CellPublicAndOwn | Self::OwnClient | Self::AllClients
        )
    }

    /// Whether clients that see another player's entity hold a copy.
    #[must_use]
    pub fn to_other_clients(self) -> bool {
        matches!(self, Self::OtherClients | Self::AllClients)
    }

    /// Whether any client holds a copy.
    #[must_use]
    pub fn to_clients(self) -> bool {
        self.to_own_client() || self.to_other_clients()
    }

    /// Whether a change is sent outside the part that made it.
    #[must_use]
    pub fn is_shown(self) -> bool {
        self.to_clients() || self.to_ghosts()
    }
}

impl fmt::Display for Distribution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.flag())
    }
}

impl Argument {
    /// An argument of this name and type.
    #[must_use]
    pub fn new(name: impl Into<String>, data_type: DataType) -> Self {
        Self {
            name: name.into(),
            data_type,
        }
    }
}

impl Method {
    /// A one-way method that no client may call, with all other settings as if undeclared.
    #[must_use]
    pub fn new(name: impl Into<String>, args: Vec<Argument>) -> Self {
        Self {
            index: MemberId(0),
            name: name.into(),
            args,
            returns: Vec::new(),
            exposed: Exposure::No,
            calls_per_minute: None,
            detail_distance: None,
            latest_only: false,
            reliable: true,
            header_size: 1,
            protocol_id: None,
            client_id: None,
        }
    }

    /// Whether the caller gets an answer.
    #[must_use]
    pub fn is_two_way(&self) -> bool {
        !self.returns.is_empty()
    }

    /// Bytes of the arguments if all calls take the same number of bytes, else `None`.
    #[must_use]
    pub fn stream_size(&self) -> Option<usize> {
        self.args
            .iter()
            .try_fold(0_usize, |sum, arg| sum.checked_add(arg.data_type.stream_size()?))
    }
}
