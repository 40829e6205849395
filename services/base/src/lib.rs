//! The base core: base entities, proxies and client sessions.
//!
//! Responsible for: which client controls which entity ([`BaseInput`]), what a client is shown of that entity's base
//! part, the acknowledgement of its calls, and the creation and destruction of base entities and their cell parts. Not
//! responsible for: connections, rate limits and certificates (the shell), who may log in (the login core), or what
//! stands in space (the cell).
//!
//! A base does not tick. All state here is volatile except what the log records: after a take-over the sessions are
//! rebuilt from the entities' clients and token digests, and the clients resume them.

mod activation;
mod admission;
mod bans;
mod connections;
mod downloads;
mod giving;
mod input;
mod internal_waits;
mod ledger;
mod lifecycle;
mod new_space;
mod operators;
mod role;
mod session;
mod traffic;
mod view;

pub use connections::Connections;
pub use downloads::{DOWNLOAD_BITS, DownloadContent, PreparedDownload};
pub use input::{
    BannedAccount, BaseInput, Begin, CheckedOut, Counters, DuplicateLogin, MAX_SESSIONS, OpenSession, OperatorOrder,
    RESUME_WINDOW, TICKET_WINDOW,
};
pub use role::BaseRole;
