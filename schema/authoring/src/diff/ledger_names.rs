//! Comparison of names of asset kinds and account slots. Nothing is stored, logged or sent by these names.

use std::collections::{BTreeMap, BTreeSet};

use annals_def::LedgerNames;

use super::{ChangeKind, SchemaChange, Subject, effects::Facts, entity::note};

/// Records every number whose name changed.
pub(super) fn compare(old: &LedgerNames, new: &LedgerNames, changes: &mut Vec<SchemaChange>) {
    let kinds = renamed(old.kinds(), new.kinds())
        .into_iter()
        .map(|(kind, from, to)| ChangeKind::KindNamed { kind, from, to });
    let slots = renamed(old.slots(), new.slots())
        .into_iter()
        .map(|(slot, from, to)| ChangeKind::SlotNamed { slot, from, to });
    for kind in kinds.chain(slots) {
        note(changes, Subject::Ledger, kind, Facts::default());
    }
}

type Renamed<N> = (N, Option<String>, Option<String>);

fn renamed<N: Copy + Ord>(old: &BTreeMap<N, String>, new: &BTreeMap<N, String>) -> Vec<Renamed<N>> {
    let numbers: BTreeSet<N> = old.keys().chain(new.keys()).copied().collect();
    let pairs = numbers
        .into_iter()
        .map(|number| (number, old.get(&number), new.get(&number)));
    pairs
        .filter(|(_, from, to)| from != to)
        .map(|(number, from, to)| (number, from.cloned(), to.cloned()))
        .collect()
}
