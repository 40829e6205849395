//! The base core: base entities, proxies and client sessions.
//!
//! Responsible for: who is a client and which entity it controls ([`BaseInput`]), what the client is shown of that entity's
//! base part, what it is told about its calls, and when base entities and their cell parts begin and end. Not responsible
//! for: connections, rates and certificates (the shell), who may log in (the login core), or what stands in space (the
//! cell).
//!
//! A base does not tick. Everything here is soft but what the log keeps: after a take-over the sessions are rebuilt from
//! the entities' clients and token digests, and the clients resume them.

mod activation;
mod admission;
mod input;
mod ledger;
mod lifecycle;
mod marks;
mod operators;
mod role;
mod session;
mod traffic;
mod view;

pub use input::{
    BaseInput, Begin, CheckedOut, Counters, DuplicateLogin, MAX_SESSIONS, OpenSession, OperatorOrder, RESUME_WINDOW,
    TICKET_WINDOW,
};
pub use role::BaseRole;
