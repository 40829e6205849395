//! The browser pages of a realm: the auditors' casework, for people who do not program, and the live realm for
//! operators.
//!
//! Pages are rendered here; only operators' pages have scripts, which keep them current. A visitor has logged in and has
//! a role; each view is recorded before it is shown. The console changes nothing in the realm, and holds no data that is
//! not elsewhere: it may be stopped at any time, and several may run.
//!
//! Responsible for: access ([`people`], [`sessions`], [`links`]), the access log ([`views`]), and the presentation of
//! answers. Not responsible for: the answers, which `annals-audit` and the processes of the realm give.
//!
//! ```text
//! serve (sockets, limits) -> site (routes) -> access (identity, role, log) -> casework (answers) -> pages (HTML)
//!                                                                          -> watching (frames) -> live (bus)
//! ```

mod access;
mod alarms;
pub mod cases;
pub mod casework;
pub mod command;
mod entrance;
pub mod links;
mod live;
mod pages;
pub mod people;
pub mod serve;
pub mod sessions;
pub mod site;
pub mod views;
mod watching;
