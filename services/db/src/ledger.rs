//! The ledger: who holds which assets, and how that changes (rule F7; `docs/ledger.md`).
//!
//! [`Books`] has the store rows that orders need, and the rules by which they change. It is pure, so that the fold, the
//! tests and an auditor who replays the archive use the same rules. A rule that needs a row that is not loaded returns
//! [`Halt::Needs`] and changes nothing; it is retried when the row was loaded. [`LedgerTransaction`] is the fold's
//! interface: it loads rows in the transaction that folds a batch, and writes the changed ones there.
//!
//! Responsible for balances, items, reserved transfers, trades, entries, and the outbox. Not responsible for who asked
//! (a base part, in its log), nor for notifying the parties (the owner of the log `ledger`).

mod audit;
mod books;
mod entry_builder;
mod order;
mod outbox;
mod pages;
mod rows;
mod rules;
mod table;
mod trace;
mod transaction;

pub use audit::{Audit, Finding, Progress, Report, Sum, audit};
pub use books::{Books, Breach, Halt, HolderRow, Item, Life, Nature, Once, Open, Row, Supply};
pub use order::read_changes;
pub use outbox::Outbox;
pub use pages::{read_entries, read_notices};
pub(crate) use rows::is_deleted;
pub use rows::{read_action, read_item, read_life};
pub use rules::Ask;
pub use trace::{Lot, Lots, Origin, trace_account};
pub(crate) use transaction::{Failed, LedgerTransaction};
