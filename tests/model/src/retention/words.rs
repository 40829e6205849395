//! Steps of the retention model in words.

use super::{CALLING, RetentionState, RetentionStep, Taker};

/// Describes a step, given the states before and after it.
pub(super) fn words(state: &RetentionState, step: RetentionStep, after: &RetentionState) -> String {
    match step {
        RetentionStep::Archive if after.archived == CALLING => {
            format!("db folds batch {CALLING} of the cell, which makes a call")
        }
        RetentionStep::Archive => format!("db folds batch {} of the cell", after.archived),
        RetentionStep::Store => format!(
            "db folds a batch of the base that stores the entity, whose row includes the cell part as of batch {}",
            after.stored
        ),
        RetentionStep::Seal => format!("the archive is sealed up to batch {}", after.sealed),
        RetentionStep::Age => format!("batch {} reaches the retention age", after.old),
        RetentionStep::Snapshot => format!("a snapshot is written at batch {}", after.snapshot),
        RetentionStep::Begin => {
            let target = after.advance.map_or(0, |advance| advance.target);
            format!("db folds the floor up to batch {target}")
        }
        RetentionStep::Write => {
            let pieces = after.advance.map_or(0, |advance| advance.pieces);
            let place = if after.areas[usize::from(state.horizon.1)] == state.areas[usize::from(state.horizon.1)] {
                "the other area"
            } else {
                "the area that the horizon names"
            };
            format!("piece {pieces} of 2 of the floor is written into {place}")
        }
        RetentionStep::Move => format!("the horizon moves to batch {}", after.horizon.0),
        RetentionStep::Drop(batch) if after.lost != state.lost => format!("batch {batch} is deleted with its header"),
        RetentionStep::Drop(batch) => format!("the events of batch {batch} are deleted"),
        RetentionStep::DropBase => "the events of the base are deleted".into(),
        RetentionStep::Crash => "db crashes and restarts".into(),
        RetentionStep::Read => {
            let at = match after.taker {
                Taker::Folding { at, .. } => at,
                Taker::Idle | Taker::Holds(_) => 0,
            };
            format!("a taker reads the newest stored state, of batch {at}")
        }
        RetentionStep::Fold => match (state.taker, after.taker) {
            (_, Taker::Idle) => "the taker reaches a batch without events, and begins again".into(),
            (Taker::Folding { folded, .. }, Taker::Folding { at, folded: now }) if folded == now => {
                format!("the taker skips batch {at}, which has no events")
            }
            (_, Taker::Folding { at, .. }) => format!("the taker folds batch {at}"),
            _ => "the taker reaches the end of the archive, and holds the owner".into(),
        },
    }
}
