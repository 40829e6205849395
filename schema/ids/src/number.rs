//! Newtypes for plain numbers.

use std::fmt;

/// Declares a newtype around an unsigned integer, ordered and printed as that integer.
macro_rules! number {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub $inner);

        impl $name {
            /// The next number.
            ///
            /// # Panics
            /// When the integer is exhausted; at these widths that means a broken counter, not a long lifetime.
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
    /// One incarnation of one entity, in every log, for ever. Base and cell part share it. Allocated from blocks
    /// granted with an epoch.
    EntityId(u64)
}
number! {
    /// An owner: one log and the state it folds into. It outlives the processes that hold it.
    OwnerId(u32)
}
number! {
    /// A service's number in the ids of its fragments, of [`ServiceSlot::BITS`] bits. It follows from the service's name,
    /// so that changed definitions do not change it.
    ServiceSlot(u32)
}
number! {
    /// One holding of an owner. Granted by the director, in the store, strictly increasing per owner; 0 is before the
    /// first.
    Epoch(u64)
}
number! {
    /// Position of a batch in its owner's log, dense from 1, continuous across epochs.
    BatchNumber(u64)
}
number! {
    /// Position of an event in its owner's log, dense from 1, continuous across epochs.
    EventNumber(u64)
}
number! {
    /// Position of an event in the history that others may see of one entity part, dense from 1. The only number that
    /// leaves the realm.
    HistoryNumber(u64)
}
number! {
    /// Position of a call on the link between two addresses: dense within a generation, from 1 (rule C13).
    CallNumber(u64)
}

/// Bits of a call number below its generation: far more calls than one link makes.
const GENERATION_SHIFT: u32 = 40;

impl CallNumber {
    /// The highest number before the first one of a generation.
    #[must_use]
    pub const fn floor(generation: u64) -> Self {
        Self(generation << GENERATION_SHIFT)
    }

    /// The generation of the number.
    #[must_use]
    pub const fn generation(self) -> u64 {
        self.0.saturating_sub(1) >> GENERATION_SHIFT
    }
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
    /// A stored entity, across its activations; 0 is none.
    DatabaseId(u64)
}
number! {
    /// A sub-account of a holder in the ledger: 0 is the inventory; the game defines the others (equipment, a bank).
    Slot(u16)
}
number! {
    /// A kind of asset in the ledger, defined by the game: either counted in units or made of items with serials, never
    /// both.
    AssetKind(u32)
}
number! {
    /// One item of the ledger; never reused, even when the item is destroyed. Dense from 1.
    Serial(u64)
}
number! {
    /// Number of an entity's order to the ledger, dense from 1 within its activation.
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
    /// Number of changes to a holder's holdings.
    HoldingsVersion(u64)
}
number! {
    /// Number of changes to the offers of a trade.
    OfferVersion(u64)
}
number! {
    /// A timer of one entity part, unique within that part's lifetime.
    TimerId(u32)
}
number! {
    /// A controller of one cell part, unique within that part's lifetime.
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
    /// Milliseconds since the Unix epoch, by the writer's wall clock; recorded, never used in a decision.
    WallTime(u64)
}

impl EntityId {
    /// The lowest id of a fragment. Granted ids are below it. All ids are below 2^53, so that they are exact in JSON.
    pub const FIRST_FRAGMENT: Self = Self(1 << 52);

    /// The id of the fragment of a service on a base owner, which is the same in every realm: so every part that
    /// knows the owner can call the fragment.
    #[must_use]
    pub fn of_fragment(owner: OwnerId, slot: ServiceSlot) -> Self {
        Self(Self::FIRST_FRAGMENT.0 | u64::from(owner.0) << ServiceSlot::BITS | u64::from(slot.0))
    }

    /// The base owner and the service, if this is the id of a fragment.
    #[must_use]
    pub fn fragment(self) -> Option<(OwnerId, ServiceSlot)> {
        let rest = self.0.checked_sub(Self::FIRST_FRAGMENT.0)?;
        let owner = u32::try_from(rest >> ServiceSlot::BITS).ok()?;
        let slot = u32::try_from(rest & u64::from(ServiceSlot::MAX.0)).ok()?;
        Some((OwnerId(owner), ServiceSlot(slot)))
    }
}

impl ServiceSlot {
    /// Number of bits.
    pub const BITS: u32 = 20;

    /// The largest slot.
    pub const MAX: Self = Self((1 << Self::BITS) - 1);
}

/// A ledger transfer: its requester, and the number of the request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TransferId {
    /// The requesting entity, through its base part.
    pub asker: EntityId,
    /// The number of its order.
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
    /// The owner of the log.
    pub owner: OwnerId,
    /// The last batch included; 0 is before the first.
    pub batch: BatchNumber,
}

impl fmt::Display for LogPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.owner, self.batch)
    }
}
