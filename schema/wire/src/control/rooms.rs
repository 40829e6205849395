//! Room for players: what bases report, and what login processes ask for.

/// The sessions of a base owner.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct WirePlayed {
    /// Their number, whether their clients are connected or not.
    #[prost(uint64, tag = "1")]
    pub sessions: u64,
    /// The newest session that was opened, whether it has ended or not; 0 if there was none.
    #[prost(uint64, tag = "2")]
    pub newest: u64,
}

/// The request [`DirectorAsk::PlaceSession`](super::DirectorAsk::PlaceSession). A login process asks for room, too; for
/// others, who create entities, the fields are 0.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct PlaceSession {
    /// The login process.
    #[prost(uint64, tag = "1")]
    pub process: u64,
    /// Id of the room, within the process; the same in a repeated request. 0 if none is needed.
    #[prost(uint64, tag = "2")]
    pub room: u64,
    /// Whether the realm's limit does not apply.
    #[prost(bool, tag = "3")]
    pub exempt: bool,
    /// Whether the client is the first in the queue of the process.
    #[prost(bool, tag = "4")]
    pub queued: bool,
    /// For how long it has waited there (ms).
    #[prost(uint64, tag = "5")]
    pub waited: u64,
    /// Number of places in the queue.
    #[prost(uint64, tag = "6")]
    pub waiting: u64,
}

/// The room in a realm with a limit of players.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct RealmRoom {
    /// Whether there is none for this request: no owner is named.
    #[prost(bool, tag = "1")]
    pub full: bool,
    /// Number of sessions, and of rooms that were given for further ones.
    #[prost(uint64, tag = "2")]
    pub players: u64,
    /// The limit.
    #[prost(uint64, tag = "3")]
    pub limit: u64,
}

/// The request [`DirectorAsk::SettleRoom`](super::DirectorAsk::SettleRoom).
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct SettleRoom {
    /// The login process.
    #[prost(uint64, tag = "1")]
    pub process: u64,
    /// Id of the room.
    #[prost(uint64, tag = "2")]
    pub room: u64,
    /// The base owner of the session that was opened; 0 if none was.
    #[prost(uint32, tag = "3")]
    pub owner: u32,
    /// The session.
    #[prost(uint64, tag = "4")]
    pub session: u64,
}

/// The answer to [`DirectorAsk::SettleRoom`](super::DirectorAsk::SettleRoom).
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct RoomSettled {}
