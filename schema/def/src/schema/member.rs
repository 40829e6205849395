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
    /// Its name; `component.name` if a component brought it.
    pub name: String,
    /// What it holds.
    pub data_type: DataType,
    /// Which parts of the entity and which clients have a copy.
    pub distribution: Distribution,
    /// What it holds at first: of the property, else of its alias, else of its type (D4).
    pub default: Value,
    /// What behaviour reads and sets, if the member is personal: then it holds that value sealed, as a BLOB, or nothing.
    pub personal: Option<DataType>,
    /// The account that it is a view of, if it has no value of its own. Then its default is what there is to see as long
    /// as the ledger was not heard of.
    pub account: Option<AccountView>,
    /// Whether it is stored.
    pub persistent: bool,
    /// Whether the store finds entities by it.
    pub indexed: Index,
    /// Whether it is the name by which an entity is loaded; at most one per type, and then a unique index.
    pub identifier: bool,
    /// Characters or bytes that a database makes room for, if declared.
    pub database_length: Option<u32>,
    /// The level of detail within which its changes are sent, a position in the type's levels; `None`: at any distance.
    pub detail_level: Option<u8>,
    /// Only the newest change is kept for an observer.
    pub latest_only: bool,
    /// Changes are sent again when lost.
    pub reliable: bool,
    /// World editors offer it.
    pub editable: bool,
    /// `VariableLengthHeaderSize`, 1 to 4, where clients see the property and its size varies; else 1. It orders client
    /// numbers and does nothing else.
    pub header_size: u8,
    /// The id that the author fixed for it on a foreign wire (`Utype`).
    pub protocol_id: Option<u16>,
    /// Its number among the properties that clients see: fixed sizes first, by size, then the others by `header_size`.
    /// Derived.
    pub client_id: Option<u16>,
}

/// A method of a base, cell or client part, or of a service.
#[derive(Clone, Debug, PartialEq)]
pub struct Method {
    /// Its position among the methods of the same part.
    pub index: MemberId,
    /// Its name; `component.name` if a component brought it.
    pub name: String,
    /// What it takes.
    pub args: Vec<Argument>,
    /// What it answers; empty if it is a one-way call.
    pub returns: Vec<Argument>,
    /// Which clients may call it.
    pub exposed: Exposure,
    /// Clients further away than this many metres are not told; client methods only.
    pub detail_distance: Option<f32>,
    /// Only the newest call is kept for an observer; client methods only.
    pub latest_only: bool,
    /// A lost call is sent again; client methods only.
    pub reliable: bool,
    /// `VariableLengthHeaderSize`, 1 to 4, of a client method whose size varies; else 1. It orders client numbers and does
    /// nothing else.
    pub header_size: u8,
    /// The id that the author fixed for it on a foreign wire (`Utype`).
    pub protocol_id: Option<u16>,
    /// Its number among the exposed methods of its part, or among the client methods: fixed sizes of the arguments first,
    /// by size, then the others by `header_size`. Derived.
    pub client_id: Option<u16>,
}

/// An argument or a returned value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Argument {
    /// Its name; `arg0`, `arg1`… where only types are given.
    pub name: String,
    /// What it holds.
    pub data_type: DataType,
}

/// Which clients may call a method of the server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Exposure {
    /// None; the server only.
    #[default]
    No,
    /// The one whose entity it is.
    OwnClient,
    /// Every one that can see the entity.
    AllClients,
}

/// Whether and how the store finds entities by a property.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Index {
    /// Not at all.
    #[default]
    None,
    /// Several entities may have the same value.
    Plain,
    /// One value, one entity.
    Unique,
}

/// Who has a copy of a property (D5). The part that may change it is the base for the `Base…` kinds, else the cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Distribution {
    /// The base.
    Base,
    /// The base and the own client.
    BaseAndClient,
    /// The cell where the entity is real.
    CellPrivate,
    /// The cell and its ghosts.
    CellPublic,
    /// The cell, its ghosts and the own client.
    CellPublicAndOwn,
    /// The cell, its ghosts and every client that sees it but its own.
    OtherClients,
    /// The cell and the own client.
    OwnClient,
    /// The cell, its ghosts and every client that sees it.
    AllClients,
    /// World editors only; nothing at run time.
    EditorOnly,
}

impl Property {
    /// A property that is not stored, with its type's own default and everything else as where nothing is declared.
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

    /// The same as a personal member, which holds values of this type sealed; `None` where it cannot be one: it is on the base
    /// alone, stored, found by nothing, and begins as nothing.
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

    /// Whether the rows of stored entities have it.
    #[must_use]
    pub fn is_stored(&self) -> bool {
        self.persistent && self.is_held()
    }

    /// Whether the state of a part keeps its value.
    #[must_use]
    pub fn is_held(&self) -> bool {
        self.is_held_by(Part::Base) || self.is_held_by(Part::Cell)
    }

    /// Whether the state of this part keeps its value. That of a view nobody keeps: it follows from the ledger.
    #[must_use]
    pub fn is_held_by(&self, part: Part) -> bool {
        self.account.is_none() && self.distribution.on(part)
    }
}

impl Distribution {
    /// Every distribution, in the order of their codes in stored schemas.
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

    /// The flag as it is written in files.
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

    /// Whether it belongs to this part.
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

    /// Whether clients that see somebody else's entity hold a copy.
    #[must_use]
    pub fn to_other_clients(self) -> bool {
        matches!(self, Self::OtherClients | Self::AllClients)
    }

    /// Whether any client holds a copy.
    #[must_use]
    pub fn to_clients(self) -> bool {
        self.to_own_client() || self.to_other_clients()
    }

    /// Whether a change is shown outside the part that made it.
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
    /// A one-way method that no client may call, with everything else as where nothing is declared.
    #[must_use]
    pub fn new(name: impl Into<String>, args: Vec<Argument>) -> Self {
        Self {
            index: MemberId(0),
            name: name.into(),
            args,
            returns: Vec::new(),
            exposed: Exposure::No,
            detail_distance: None,
            latest_only: false,
            reliable: true,
            header_size: 1,
            protocol_id: None,
            client_id: None,
        }
    }

    /// Whether the caller is answered.
    #[must_use]
    pub fn is_two_way(&self) -> bool {
        !self.returns.is_empty()
    }

    /// Bytes of the arguments when every call takes the same number of bytes, else `None`.
    #[must_use]
    pub fn stream_size(&self) -> Option<usize> {
        self.args
            .iter()
            .try_fold(0_usize, |sum, arg| sum.checked_add(arg.data_type.stream_size()?))
    }
}
