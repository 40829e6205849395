//! The newtypes around plain numbers.

use std::fmt;

/// Declares one newtype around an unsigned integer, ordered and printable as that integer.
macro_rules! number {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub $inner);

        impl $name {
            /// The number that follows this one.
            ///
            /// # Panics
            /// When the integer is exhausted, which for the widths chosen here means a broken counter, not a long life.
            #[must_use]
            pub fn next(self) -> Self {
                Self(self.0.checked_add(1).expect(concat!(stringify!($name), " has run out")))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

number! {
    /// One life of one entity, in every log, for ever. Base and cell part share it. Allotted from blocks granted with an epoch.
    EntityId(u64)
}
number! {
    /// An owner: one log and the state it folds into. It outlives the processes that hold it.
    OwnerId(u32)
}
number! {
    /// One holding of an owner. Granted by the director, in the store, strictly increasing per owner; 0 is before the first.
    Epoch(u64)
}
number! {
    /// Position of a batch in its owner's log, dense from 1, running on through all epochs.
    BatchNumber(u64)
}
number! {
    /// Position of an event in its owner's log, dense from 1, running on through all epochs.
    EventNumber(u64)
}
number! {
    /// Position of an event in what others may see of one entity part, dense from 1. The only number that leaves the realm.
    HistoryNumber(u64)
}
number! {
    /// Position of a call on the link between two addresses, dense from 1.
    CallNumber(u64)
}
number! {
    /// Index of a leaf in a shard's Merkle tree, dense from 0, assigned when a batch is archived.
    LeafIndex(u64)
}
number! {
    /// A stream of logs. A realm starts with shard 0 alone.
    Shard(u16)
}
number! {
    /// A running process of any service, granted by the director at registration and never reused.
    ProcessId(u64)
}
number! {
    /// One client's session, from log-in until it is closed, across reconnects.
    SessionId(u64)
}
number! {
    /// A space: one continuous world that is divided into cells.
    SpaceId(u32)
}
number! {
    /// An entity type, in the order of `entities.xml`, from 0.
    TypeId(u16)
}
number! {
    /// A property or a method within one list of one entity type, in declaration order after inheritance, from 0.
    MemberId(u16)
}
number! {
    /// An entity of the database, across its lives; 0 is none.
    DatabaseId(u64)
}
number! {
    /// A sub-account of a holder in the ledger: 0 is the inventory, what the others are is the game's (equipment, a bank).
    Slot(u16)
}
number! {
    /// A kind of asset in the ledger, either counted in units or made of items with serials, never both. The game's.
    AssetKind(u32)
}
number! {
    /// One item of the ledger, for ever; never used again when the item is gone. Dense from 1.
    Serial(u64)
}
number! {
    /// What one entity has asked of the ledger, dense from 1 within its life.
    TransferNumber(u64)
}
number! {
    /// Position of an entry in the ledger, dense from 1.
    EntryNumber(u64)
}
number! {
    /// Position of a notice in the ledger's outbox, dense from 1.
    NoticeNumber(u64)
}
number! {
    /// How often a holder's holdings have changed.
    HoldingsVersion(u64)
}
number! {
    /// How often the offers of a trade have changed.
    OfferVersion(u64)
}
number! {
    /// A timer of one entity part, unique within that part's life.
    TimerId(u32)
}
number! {
    /// A controller of one cell part, unique within that part's life.
    ControllerId(u32)
}
number! {
    /// Count of cell ticks (100 ms each at 10 Hz) since the owner's log began.
    Tick(u64)
}
number! {
    /// Milliseconds since the realm began.
    WorldTime(u64)
}
number! {
    /// Milliseconds since the Unix epoch, as the writer's wall clock told; recorded, never compared to decide anything.
    WallTime(u64)
}

/// One transfer of the ledger: who asked for it, and which of the things it asked for it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TransferId {
    /// The entity that asked, by its base part.
    pub asker: EntityId,
    /// Which of its orders.
    pub number: TransferNumber,
}

impl fmt::Display for TransferId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.asker, self.number)
    }
}

/// A trade: the transfer that proposed it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TradeId(pub TransferId);

impl fmt::Display for TradeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A point in one owner's log: everything up to and including this batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LogPosition {
    /// Whose log.
    pub owner: OwnerId,
    /// The last batch included; 0 is before the first.
    pub batch: BatchNumber,
}

impl fmt::Display for LogPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.owner, self.batch)
    }
}
