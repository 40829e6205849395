//! db through its public surface: logs of several owners, in every disorder that a stream can have, folded into a store in
//! memory that fails as told, and compared with what was written.

mod accounts;
mod acts;
mod agreement;
mod alarms;
mod archiving;
mod database;
mod game;
mod generated;
mod index;
mod ledger;
mod ledger_oracle;
mod oracle;
mod query;
mod realm;
mod restoring;
mod scribe;
mod sealing;
mod snapshots;

use annals_event::OwnerState;
use annals_ids::Part;

/// Whether a state is that of base parts.
fn is_base(state: &OwnerState) -> bool {
    state.part() == Some(Part::Base)
}
