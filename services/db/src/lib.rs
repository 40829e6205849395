//! The db core: folds logs into snapshots, owner records and the archive.
//!
//! Responsible for what folding a batch writes to the store, for rebuilding an owner's state from it, and for the
//! database behind accounts, stored entities and the ledger. Not responsible for reading the stream or for deciding
//! which process folds: a shell and a lease in the store do that. The crate has no clock; every function is one
//! transaction or a few.
//!
//! Public asynchronous functions without generic parameters are `#[boxed]`: they return a boxed future, which is not
//! `Send` where it borrows a [`Folder`]. Otherwise each program that awaits one compiles its body, and those of all that
//! it awaits, again.

pub mod accounts;
pub mod adopting;
pub mod bans;
pub mod comparison;
mod cut;
mod fold;
mod holes;
mod index;
pub mod ledger;
mod merging;
pub mod migrating;
mod migrations;
pub mod personal;
mod proving;
mod query;
mod recovery;
mod restoring;
mod retention;
mod returns;
mod sealing;
mod setting_changes;
mod shards;
mod stored;
mod tiling;

pub use cut::Cuts;
pub use fold::{Alarm, Archived, ChangeError, FoldError, Folded, Folder, Missing, PIPELINED_FROM, Replay, Round};
pub use holes::{AcceptError, Accepted, accept_hole};
pub use index::{FOUND_AT_ONCE, FindError, find as find_stored, find_indexed, taken_from};
pub use merging::{MergedLeaf, Merging, Survey};
pub use migrations::{Migrations, present_schema, read_records, read_schema};
pub use proving::{ProveError, Prover};
pub use query::{Answer, Found, Query, QueryError, query};
pub use recovery::{Recovered, RecoveryError, read_archived, read_cursor, read_position, recover};
pub use restoring::{
    ClaimedStore, Extent, RestoreError, Restoring, Row, check_horizon, horizon_of, read_unlogged, shards_of,
};
pub use retention::{
    Kind, Pace as RetentionPace, Progress as RetentionProgress, Retention, floors_of, read_floor, read_floor_batch,
    read_horizon,
};
pub use returns::{LedgerInput, LedgerRole, UNCONFIRMED_LIMIT, no_behaviour};
pub use sealing::{Sealer, leaf};
pub use setting_changes::{
    MAX_NAME_BYTES, MAX_REASON_BYTES, MAX_VALUE_BYTES, NewestChanges, SettingChange, newest_changes, record_change,
};
pub use shards::{ensure_shards, read_shards};
pub use stored::{StoredEntity, Unfit, read as read_stored};
pub use tiling::{Tiled, Tiler};
