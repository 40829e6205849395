//! Accounts: looking them up, creating and checking them out, and ending their sessions.

use annals_ids::WallTime;

use crate::client::Ban;

/// A ban of an account.
#[derive(Clone, PartialEq, prost::Message)]
pub struct WireBan {
    /// When it ends (ms since 1970); 0 if it does not end by itself.
    #[prost(uint64, tag = "1")]
    pub until: u64,
    /// The operator's reason.
    #[prost(string, tag = "2")]
    pub reason: String,
}

impl From<&Ban> for WireBan {
    fn from(ban: &Ban) -> Self {
        Self {
            until: ban.until.map_or(0, |until| until.0),
            reason: ban.reason.clone(),
        }
    }
}

impl From<WireBan> for Ban {
    fn from(ban: WireBan) -> Self {
        Self {
            until: Some(WallTime(ban.until)).filter(|until| until.0 > 0),
            reason: ban.reason,
        }
    }
}

/// An account was banned, and its sessions are to end.
#[derive(Clone, PartialEq, prost::Message)]
pub struct EndSessions {
    /// The newest session of the account that the log has; 0 if it has none. An owner that was taken over does not know
    /// the account of a session whose client was given to another entity.
    #[prost(uint64, tag = "1")]
    pub session: u64,
    /// What the client is sent.
    #[prost(message, optional, tag = "2")]
    pub ban: Option<WireBan>,
}

/// The request [`DbAsk::FindAccount`](super::DbAsk::FindAccount).
#[derive(Clone, PartialEq, prost::Message)]
pub struct FindAccount {
    /// The keyed hash of the name.
    #[prost(bytes = "vec", tag = "1")]
    pub name: Vec<u8>,
}

/// The request [`DbAsk::CreateAccount`](super::DbAsk::CreateAccount).
#[derive(Clone, PartialEq, prost::Message)]
pub struct CreateAccount {
    /// The keyed hash of the name.
    #[prost(bytes = "vec", tag = "1")]
    pub name: Vec<u8>,
    /// The password's hash, as a PHC string.
    #[prost(string, tag = "2")]
    pub password: String,
    /// The name of the account entity's type.
    #[prost(string, tag = "3")]
    pub entity_type: String,
}

/// An account, if there is one.
#[derive(Clone, PartialEq, prost::Message)]
pub struct AccountFound {
    /// Its stored entity; 0 if there is no such account.
    #[prost(uint64, tag = "1")]
    pub database: u64,
    /// The password's hash, as a PHC string.
    #[prost(string, tag = "2")]
    pub password: String,
    /// Why there is no answer, for the reader; empty if there is one.
    #[prost(string, tag = "3")]
    pub failed: String,
    /// The ban that is in force, if any.
    #[prost(message, optional, tag = "4")]
    pub ban: Option<WireBan>,
}

/// The request [`DbAsk::CheckOut`](super::DbAsk::CheckOut).
#[derive(Clone, PartialEq, prost::Message)]
pub struct CheckOut {
    /// The stored entity.
    #[prost(uint64, tag = "1")]
    pub database: u64,
    /// The owner on which to activate it if it is not active yet.
    #[prost(uint32, tag = "2")]
    pub preferred: u32,
    /// Whether it is for a player, who must not be banned.
    #[prost(bool, tag = "3")]
    pub plays: bool,
    /// Whether nothing is checked out: the answer names the owner, or 0, and nothing else.
    #[prost(bool, tag = "4")]
    pub only_active: bool,
}

/// The answer to [`DbAsk::CheckOut`](super::DbAsk::CheckOut).
#[derive(Clone, PartialEq, prost::Message)]
pub struct CheckedOut {
    /// The owner on which it is, or is to be, active.
    #[prost(uint32, tag = "1")]
    pub owner: u32,
    /// The number of the check-out.
    #[prost(uint64, tag = "2")]
    pub checkout: u64,
    #[prost(uint32, tag = "3")]
    pub type_id: u32,
    /// The stored properties of both parts, in the log's encoding.
    #[prost(bytes = "vec", tag = "4")]
    pub properties: Vec<u8>,
    /// Why there is no answer, for the reader; empty if there is one.
    #[prost(string, tag = "5")]
    pub failed: String,
    /// The key that seals this person's data; empty if it was destroyed.
    #[prost(bytes = "vec", tag = "6")]
    pub key: Vec<u8>,
    /// The ban in force for which it was not checked out to a player.
    #[prost(message, optional, tag = "7")]
    pub ban: Option<WireBan>,
}
