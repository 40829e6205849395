//! Steps of the backup model in words.

use super::{BackupState, BackupStep, Holder};

/// Describes a step, given the states before and after it.
pub(super) fn words(state: &BackupState, step: BackupStep, after: &BackupState) -> String {
    let appended = || {
        let batch = after.batch(after.length);
        let number = after.number(after.length);
        if batch.opens {
            format!("batch {number}, the `Open` of epoch {}", batch.epoch)
        } else {
            format!("batch {number} under epoch {}", batch.epoch)
        }
    };
    match step {
        BackupStep::Grant => format!("epoch {} of the owner is granted", after.store.granted),
        BackupStep::Open => match after.holder {
            Some(Holder::Opened(..)) => format!("the process appends {}", appended()),
            _ => "the process reads an epoch in the log that is no lower than its own, and stops".into(),
        },
        BackupStep::Record => "the process records its `Open` in the store".into(),
        BackupStep::Append => format!("the process appends {}, which is acknowledged and shown", appended()),
        BackupStep::Fold => format!("db folds batch {}", after.number(after.store.cursor)),
        BackupStep::BackUp => "the store is backed up".into(),
        BackupStep::Kill => "every process ends".into(),
        BackupStep::Restore => "the store is restored to its backup".into(),
        BackupStep::Start if after.store == state.store => "the realm starts".into(),
        BackupStep::Start => format!(
            "the store is found older than the log, the log is adopted, and the realm starts; epochs up to {} are in use",
            after.store.granted
        ),
    }
}
