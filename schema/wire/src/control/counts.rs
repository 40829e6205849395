//! What login processes have counted: wrong credentials, registrations.

/// A name or a host, and what is counted for it.
#[derive(Clone, PartialEq, prost::Message)]
pub struct WireCounted {
    #[prost(enumeration = "CountedKind", tag = "1")]
    pub kind: i32,
    /// The keyed hash of a name, or the bytes of a host: 4, or 8.
    #[prost(bytes = "vec", tag = "2")]
    pub key: Vec<u8>,
}

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub enum CountedKind {
    /// Of a later release.
    Unknown = 0,
    /// Wrong credentials for a name.
    Name = 1,
    /// Wrong credentials from a host.
    Host = 2,
    /// Accounts that a host has registered.
    Registration = 3,
}

/// A notification among login processes: one has counted something, or cleared it.
#[derive(Clone, PartialEq, prost::Message)]
pub struct CountNews {
    /// The process, which does not count its own notification.
    #[prost(uint64, tag = "1")]
    pub process: u64,
    #[prost(message, optional, tag = "2")]
    pub counted: Option<WireCounted>,
    /// Whether it is cleared.
    #[prost(bool, tag = "3")]
    pub forgiven: bool,
}

/// A request of a login process that starts to those that run. Answer: [`CountList`].
#[derive(Clone, PartialEq, prost::Message)]
pub struct ListCounts {}

/// What a login process has counted.
#[derive(Clone, PartialEq, prost::Message)]
pub struct CountList {
    #[prost(message, repeated, tag = "1")]
    pub counts: Vec<WireCount>,
}

/// A count.
#[derive(Clone, PartialEq, prost::Message)]
pub struct WireCount {
    #[prost(message, optional, tag = "1")]
    pub counted: Option<WireCounted>,
    /// Time until all of it is forgiven (ms).
    #[prost(uint64, tag = "2")]
    pub remaining: u64,
}
