//! Messages about a change of a running realm's definitions (rule M7).

/// The request [`super::DirectorAsk::Upgrade`].
#[derive(Clone, PartialEq, prost::Message)]
pub struct UpgradeRealm {
    #[prost(enumeration = "UpgradeAction", tag = "1")]
    pub action: i32,
    /// The new definitions, encoded; only to prepare.
    #[prost(bytes = "vec", tag = "2")]
    pub schema: Vec<u8>,
    /// The renames, as they were given; only to prepare.
    #[prost(string, repeated, tag = "3")]
    pub renames: Vec<String>,
}

/// What an operator asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub enum UpgradeAction {
    /// The progress.
    Look = 0,
    /// Accept processes of the new definitions, which follow all owners.
    Prepare = 1,
    /// Change the definitions. There is no way back.
    Finish = 2,
    /// Forget what was prepared.
    RollBack = 3,
}

/// The answer to [`super::DirectorAsk::Upgrade`].
#[derive(Clone, PartialEq, prost::Message)]
pub struct UpgradeStage {
    /// The fingerprint of the realm's definitions.
    #[prost(bytes = "vec", tag = "1")]
    pub present: Vec<u8>,
    /// The fingerprint of those that are prepared; empty if none are.
    #[prost(bytes = "vec", tag = "2")]
    pub next: Vec<u8>,
    /// Whether owners are being released for the change.
    #[prost(bool, tag = "3")]
    pub changing: bool,
    /// What it waits for, for the reader.
    #[prost(string, repeated, tag = "4")]
    pub waiting: Vec<String>,
    /// Why the request was refused, or the last change was abandoned, and what to do; else empty.
    #[prost(string, tag = "5")]
    pub refused: String,
    /// Time from the order to release until all owners were held again at the last change that this director made (ms);
    /// 0 if it made none.
    #[prost(uint64, tag = "6")]
    pub took: u64,
}

/// A process's part in a change of definitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub enum UpgradeOrder {
    /// It goes on as before.
    None = 0,
    /// It is to release all its owners, and then wait.
    Release = 1,
    /// The realm does not have its definitions, and is not to change to them: it is to end.
    End = 2,
    /// The realm is to change to its definitions: until then it serves nothing.
    Wait = 3,
}

/// The request [`super::DbAsk::ChangeDefinitions`].
#[derive(Clone, PartialEq, prost::Message)]
pub struct ChangeDefinitions {
    /// The fingerprint of the new definitions.
    #[prost(bytes = "vec", tag = "1")]
    pub to: Vec<u8>,
}

/// The answer to [`super::DbAsk::ChangeDefinitions`].
#[derive(Clone, PartialEq, prost::Message)]
pub struct DefinitionsChanged {
    /// Why they did not change, for the reader; empty if they did.
    #[prost(string, tag = "1")]
    pub refused: String,
}
