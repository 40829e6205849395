//! The ledger: who holds what, and how that changes (rule F7; `docs/ledger.md`).
//!
//! [`Books`] holds the rows of the store that orders need, and the rules by which they change: pure, so that the fold, the
//! tests and an auditor who goes through the archive use the same ones. A rule that meets a row which is not there says so
//! ([`Halt::Needs`]), changes nothing, and is tried again when the row was loaded. [`LedgerTransaction`] is the way in for the fold: it
//! loads rows in the transaction that folds a batch, and writes there what has changed.
//!
//! Responsible for: balances, items, reserved transfers, trades, entries, and what goes to the outbox. Not responsible for:
//! who asked (a base part, in its log), nor for telling those concerned (the owner of the log `ledger`).

mod audit;
mod books;
mod entry_builder;
mod outbox;
mod pages;
mod rows;
mod rules;
mod table;
mod trace;
mod transaction;

pub use audit::{Audit, Finding, Progress, Report, Sum, audit};
pub use books::{Books, Breach, Halt, HolderRow, Item, Life, Nature, Once, Open, Row, Supply};
pub use outbox::Outbox;
pub use pages::{read_entries, read_notices};
pub use rows::{read_action, read_item, read_life};
pub use rules::Ask;
pub use trace::{Lot, Lots, Origin, trace_account};
pub(crate) use transaction::{Failed, LedgerTransaction};
