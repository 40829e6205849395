//! Identifiers and units: newtypes for everything that is counted, identified or hashed.
//!
//! Responsible for: giving each kind of number its own type, so that an epoch cannot be passed where a batch number is
//! expected. Not responsible for: allocating ids (the director grants blocks of them) or encoding them in messages
//! (each format does that itself).

mod action;
mod address;
mod geometry;
mod hash;
mod number;

pub use action::{ActionId, ParseActionError};
pub use address::{Address, Mailbox, OwnerKind, Part};
pub use geometry::{Direction, Position};
pub use hash::{Hash, ParseHashError};
pub use number::{
    AssetKind, BatchNumber, CallNumber, ControllerId, DatabaseId, EntityId, EntryNumber, Epoch, EventNumber,
    HistoryNumber, HoldingsVersion, LeafIndex, LogPosition, MemberId, NoticeNumber, OfferVersion, OwnerId, ProcessId,
    Serial, ServiceSlot, SessionId, Shard, Slot, SpaceId, Tick, TimerId, TradeId, TransferId, TransferNumber, TypeId,
    WallTime, WorldTime,
};
