//! Addresses of calls: entity parts, owners and clients.

use std::fmt;

use crate::{EntityId, OwnerId, SessionId, TypeId};

/// The two server parts an entity can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Part {
    /// Not in a space; holds persistent properties and talks to the client's connection.
    Base,
    /// In a space; moves between cells.
    Cell,
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Part::Base => "base",
            Part::Cell => "cell",
        })
    }
}

/// What an owner holds. Logs, epochs and calls work the same for every kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OwnerKind {
    /// Base parts.
    Base,
    /// Cell parts.
    Cell,
    /// No entities: delivers the ledger's results to the base parts concerned. A realm has one such owner.
    Ledger,
}

impl OwnerKind {
    /// Every kind.
    pub const ALL: [OwnerKind; 3] = [OwnerKind::Base, OwnerKind::Cell, OwnerKind::Ledger];

    /// The entity parts that owners of this kind hold, if any.
    #[must_use]
    pub fn part(self) -> Option<Part> {
        match self {
            OwnerKind::Base => Some(Part::Base),
            OwnerKind::Cell => Some(Part::Cell),
            OwnerKind::Ledger => None,
        }
    }

    /// Whether a realm has exactly one owner of this kind, however many processes could hold it.
    #[must_use]
    pub fn is_single(self) -> bool {
        self == OwnerKind::Ledger
    }

    /// The number that encodes this kind.
    #[must_use]
    pub fn number(self) -> u8 {
        match self {
            OwnerKind::Base => 0,
            OwnerKind::Cell => 1,
            OwnerKind::Ledger => 2,
        }
    }

    /// The kind that a number encodes.
    #[must_use]
    pub fn of_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.number() == number)
    }
}

impl From<Part> for OwnerKind {
    /// The kind of owner that holds this part.
    fn from(part: Part) -> Self {
        match part {
            Part::Base => OwnerKind::Base,
            Part::Cell => OwnerKind::Cell,
        }
    }
}

impl fmt::Display for OwnerKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            OwnerKind::Base => "base",
            OwnerKind::Cell => "cell",
            OwnerKind::Ledger => "ledger",
        })
    }
}

impl OwnerId {
    /// Stands for everything outside the realm, where no owner is.
    pub const OUTSIDE: Self = Self(u32::MAX);
    /// Stands for the clients that get downloads, where no owner is.
    pub const DOWNLOADS: Self = Self(u32::MAX - 1);
}

/// An end of a link: anything that can send or receive numbered calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Address {
    /// The owner itself: creation, hand-over and similar calls.
    Owner(OwnerId),
    /// The base part of an entity.
    Base(EntityId),
    /// The cell part of an entity, wherever it is real.
    Cell(EntityId),
    /// A client's session.
    Client(SessionId),
}

impl Address {
    /// The address of one part of an entity.
    #[must_use]
    pub fn of(entity: EntityId, part: Part) -> Self {
        match part {
            Part::Base => Address::Base(entity),
            Part::Cell => Address::Cell(entity),
        }
    }

    /// The entity part behind this address, if it is one.
    #[must_use]
    pub fn entity(self) -> Option<(EntityId, Part)> {
        match self {
            Address::Base(entity) => Some((entity, Part::Base)),
            Address::Cell(entity) => Some((entity, Part::Cell)),
            Address::Owner(_) | Address::Client(_) => None,
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Owner(OwnerId::OUTSIDE) => write!(f, "outside the realm"),
            Address::Owner(OwnerId::DOWNLOADS) => write!(f, "downloads of the client"),
            Address::Owner(owner) => write!(f, "owner {owner}"),
            Address::Base(entity) => write!(f, "base of entity {entity}"),
            Address::Cell(entity) => write!(f, "cell of entity {entity}"),
            Address::Client(session) => write!(f, "client session {session}"),
        }
    }
}

/// The storable address of an entity part. It stays valid for the entity's lifetime, wherever the part moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Mailbox {
    /// The addressed entity.
    pub entity: EntityId,
    /// The owner that always knows where the entity's parts are: its base's owner, or for an entity without a base the
    /// owner on which it was created.
    pub home: OwnerId,
    /// The entity's type, used to check a call before it is sent.
    pub type_id: TypeId,
    /// The addressed part.
    pub part: Part,
}

impl Mailbox {
    /// The address that this mailbox stands for.
    #[must_use]
    pub fn address(&self) -> Address {
        Address::of(self.entity, self.part)
    }

    /// The mailbox of a part of the same entity. Calls find it by the home that both have in common. If the entity has no
    /// such part, calls are lost, with a notification of the caller.
    #[must_use]
    pub fn to_part(self, part: Part) -> Self {
        Self { part, ..self }
    }
}
