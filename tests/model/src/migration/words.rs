//! Steps of the migration model in words.

use super::{Batch, Definitions, MigrationState, MigrationStep};

/// Describes a step, given the states before and after it.
pub(super) fn words(state: &MigrationState, step: MigrationStep, after: &MigrationState) -> String {
    let name = |index: u8| ["A", "B", "C"][usize::from(index)];
    let next = || batch(state.log[usize::from(state.store.cursor)]);
    match step {
        MigrationStep::Migrate if after.store.folded != state.store.folded => {
            "the realm changes to the new definitions, and db's snapshot with it".into()
        }
        MigrationStep::Migrate if after.store.record => "the realm changes to the new definitions".into(),
        MigrationStep::Migrate => "the realm changes to the new definitions, without a record of the old ones".into(),
        MigrationStep::Record => "the record of the migration is written".into(),
        MigrationStep::Kill => "the migration is killed".into(),
        MigrationStep::ConvertRows if after.store.row == state.store.row => {
            "the conversion of all stored entities reaches the entity, and skips it".into()
        }
        MigrationStep::ConvertRows => {
            "the conversion of all stored entities reaches the entity, and converts it".into()
        }
        MigrationStep::Grant(of) => {
            let taker = name(state.store.granted);
            format!(
                "epoch {} is granted to {taker}, which has {}",
                after.store.granted,
                definitions(of)
            )
        }
        MigrationStep::Open(index) => {
            let holder = &after.holders[usize::from(index)];
            format!(
                "{} reads the log into a state under {}, and appends {}",
                name(index),
                definitions(holder.state.definitions),
                batch(after.log[usize::from(state.length)])
            )
        }
        MigrationStep::RecordOpening(index) => format!("{}'s Open is recorded, and it serves", name(index)),
        MigrationStep::BeginAgain(index) => format!("{} does not find its Open, and begins again", name(index)),
        MigrationStep::Take(index, message) if message != state.holders[usize::from(index)].definitions => format!(
            "{} takes the call from a message under {}, which it reads by its own: {}",
            name(index),
            definitions(message),
            batch(after.log[usize::from(state.length)])
        ),
        MigrationStep::Take(index, _) => format!(
            "{} takes the call, which stores the entity: {}",
            name(index),
            batch(after.log[usize::from(state.length)])
        ),
        MigrationStep::Crash(index) => format!("{} crashes", name(index)),
        MigrationStep::LoseTail => format!("the log loses {}", next()),
        MigrationStep::Fold => format!(
            "db folds {}, with the state under {}",
            next(),
            definitions(after.store.folded.definitions)
        ),
        MigrationStep::ConvertEarly => format!("db reads {}, which is not recorded, and converts the state", next()),
        MigrationStep::Skip => format!("db skips {}, which is void", next()),
    }
}

fn batch(batch: Batch) -> String {
    let holder = ["?", "A", "B", "C"][usize::from(batch.epoch)];
    let what = if batch.is_open { "Open" } else { "call" };
    format!("{holder}({what}, {})", definitions(batch.definitions))
}

fn definitions(definitions: Definitions) -> &'static str {
    match definitions {
        0 => "the old definitions",
        _ => "the new definitions",
    }
}
