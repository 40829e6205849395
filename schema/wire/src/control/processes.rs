//! Messages about a realm's processes: who is there, and which are drained.

/// The request [`super::DirectorAsk::Processes`].
#[derive(Clone, PartialEq, prost::Message)]
pub struct ListProcesses {}

/// The answer to [`super::DirectorAsk::Processes`].
#[derive(Clone, PartialEq, prost::Message)]
pub struct ProcessList {
    /// The live processes, by number.
    #[prost(message, repeated, tag = "1")]
    pub processes: Vec<ListedProcess>,
}

/// A live process.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ListedProcess {
    /// The number that the director gave it.
    #[prost(uint64, tag = "1")]
    pub process: u64,
    #[prost(string, tag = "2")]
    pub service: String,
    /// The owners that are granted to it.
    #[prost(uint32, repeated, tag = "3")]
    pub owners: Vec<u32>,
    /// The number of entities there at its last heartbeat.
    #[prost(uint64, tag = "4")]
    pub entities: u64,
    /// Whether it drains.
    #[prost(bool, tag = "5")]
    pub draining: bool,
    /// The owners that it follows.
    #[prost(uint32, repeated, tag = "6")]
    pub follows: Vec<u32>,
}

/// The request [`super::DirectorAsk::Drain`].
#[derive(Clone, PartialEq, prost::Message)]
pub struct DrainProcess {
    /// The process, by the number that the director gave it.
    #[prost(uint64, tag = "1")]
    pub process: u64,
    /// Whether to drain it; if not set, this only asks.
    #[prost(bool, tag = "2")]
    pub drain: bool,
    /// Whether to drain it even if no other process can take its owners: their entities pause until one can.
    #[prost(bool, tag = "3")]
    pub force: bool,
}

/// The answer to [`super::DirectorAsk::Drain`].
#[derive(Clone, PartialEq, prost::Message)]
pub struct DrainStage {
    /// The service of the process; empty if the director does not know a live process of that number.
    #[prost(string, tag = "1")]
    pub service: String,
    /// The number of owners that it still holds.
    #[prost(uint32, tag = "2")]
    pub owners: u32,
    /// Why it is not drained, and what to do; empty if it is.
    #[prost(string, tag = "3")]
    pub refused: String,
    /// Whether it has ended in order, while this director led.
    #[prost(bool, tag = "4")]
    pub left: bool,
}

/// An owner to release.
#[derive(Clone, PartialEq, prost::Message)]
pub struct HandOver {
    #[prost(uint32, tag = "1")]
    pub owner: u32,
    /// The client address of the process that follows, as in its heartbeat.
    #[prost(string, tag = "2")]
    pub address: String,
}
