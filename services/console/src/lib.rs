//! The browser pages of a realm: the auditor's casework, for people who program nothing.
//!
//! Pages are rendered here and need no script. Whoever looks has logged in and has a role; each view is written down before it
//! is shown. Nothing of the realm is changed, and the process holds nothing that is not elsewhere: it may be stopped at any time,
//! and there may be several.
//!
//! Responsible for: who may look ([`people`], [`sessions`]), that it is known who has looked ([`views`]), and how answers are
//! shown. Not responsible for: the answers, which `annals-audit` gives.
//!
//! ```text
//! serve (sockets, limits) -> site (routes) -> access (who, may they, written down) -> desk (the answer) -> pages (HTML)
//! ```

mod access;
pub mod cases;
pub mod casework;
pub mod command;
mod entrance;
mod pages;
pub mod people;
pub mod serve;
pub mod sessions;
pub mod site;
pub mod views;
