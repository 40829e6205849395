//! db through its public interface: logs of several owners, in every disorder that a stream can have, folded into a
//! store that fails on request, and compared with what was written. The store is the one in memory; the ledger is also
//! tested on the others.

mod accounts;
mod acts;
mod adopting;
mod aging;
mod agreement;
mod alarms;
mod amounts;
mod archiving;
mod awaited;
mod bans;
mod changed_definitions;
mod clocks;
mod contended;
mod cut_oracle;
mod database;
mod deleting;
mod expiry_killed;
mod game;
mod generated;
mod index;
mod layout;
mod ledger;
mod ledger_oracle;
mod migrating;
mod operators;
mod oracle;
mod pages;
mod personal;
mod pipelined;
mod query;
mod realm;
mod restoring;
mod retention;
mod retention_killed;
mod returns;
mod scribe;
mod sealing;
mod shards;
mod shards_behind;
mod shards_cut;
mod shards_restored;
mod snapshots;
mod tiling;
mod together;
mod traders;
mod trades;

#[path = "../../../../schema/authoring/tests/authoring/diff/renamed.rs"]
mod renamed;
#[path = "../../../../schema/authoring/tests/authoring/diff/worlds.rs"]
mod worlds;

use std::sync::LazyLock;

use annals_event::OwnerState;
use annals_ids::Part;
use tokio::runtime::{Builder, Runtime};

/// Runtime for stores that are not in memory.
static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| {
    Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .expect("a thread")
});

/// Waits for a store; the one in memory answers at once.
fn wait<F: Future>(answer: F) -> F::Output {
    RUNTIME.block_on(answer)
}

/// Whether a state is that of base parts.
fn is_base(state: &OwnerState) -> bool {
    state.part() == Some(Part::Base)
}
