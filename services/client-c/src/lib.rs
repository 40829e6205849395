//! The client SDK for C: [`annals_client`] behind functions of a shared library, for engines to bind.
//!
//! Responsible for: `include/annals_client.h`, which cbindgen writes from this crate and a test compares, and the checks
//! that keep wrong calls from being undefined behaviour. Not responsible for: sessions and views, which are those of
//! `annals-client`. Docs: `docs/c-client.md`.
//!
//! Every function runs in [`failure::reporting`] or [`failure::answering`], which stop panics. Pointers from outside are
//! read in `inputs.rs` alone; what a pointer handed out points to lies behind a [`Vec`] or a [`Box`] of its owner, or in
//! the schema.
#![allow(
    unsafe_code,
    reason = "a C interface takes pointers; the header states what callers promise of them, and what can be checked is"
)]
#![allow(
    clippy::missing_safety_doc,
    reason = "the promises are those of C, the same for all functions: the header states them once, at its top"
)]
#![warn(clippy::undocumented_unsafe_blocks)]

mod client;
mod config;
mod event;
mod failure;
mod inputs;
mod reading;
mod reason;
mod schema;
mod value;
mod wanted;

pub use client::*;
pub use config::AnnalsConfig;
pub use event::{AnnalsChange, AnnalsChangeKind, AnnalsEvent, AnnalsEventKind};
pub use failure::{AnnalsError, AnnalsErrorCode, annals_error_free, annals_error_get_code, annals_error_get_text};
pub use inputs::{
    ANNALS_PART_BASE, ANNALS_PART_CELL, AnnalsBytes, AnnalsDirection, AnnalsPart, AnnalsPosition, AnnalsText,
};
pub use reading::*;
pub use reason::AnnalsReason;
pub use schema::*;
pub use value::*;
