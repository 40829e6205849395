//! The results of the cases, counted.

use std::{collections::BTreeMap, fmt};

use annals_audit::verify::Traced;
use annals_ids::{EventNumber, LogPosition};

/// What was changed first, as known to the forger.
#[derive(Clone, Debug)]
pub(crate) struct Truth {
    /// The leaf.
    pub(crate) leaf: u64,
    /// The batches that may be named, and the event of each: if two were swapped, either is the first.
    pub(crate) batches: Vec<(LogPosition, Option<EventNumber>)>,
}

/// The precision of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Named {
    /// The event.
    Event,
    /// Its batch.
    Batch,
    /// A range of leaves.
    Leaves,
    /// A change that concerns no event.
    Nothing,
}

impl Truth {
    /// The precision of a report, which must not name anything else.
    pub(crate) fn named(&self, traced: &Traced, case: &str) -> Named {
        let Some(first) = &traced.first else {
            panic!("{case}: no event is named, {self:?}: {traced:?}")
        };
        let (from, to) = (first.leaves.0.0, first.leaves.1.0);
        assert!((from..=to).contains(&self.leaf), "{case}: {self:?}: {first:?}");
        let Some(batch) = first.batch else {
            return Named::Leaves;
        };
        let known = self.batches.iter().find(|(at, _)| *at == batch);
        let Some((_, event)) = known else {
            panic!("{case}: another batch than {self:?}: {first:?}")
        };
        if let (Some((from, to)), Some(event)) = (first.events, event) {
            assert!(
                (from..=to).contains(event),
                "{case}: another event than {self:?}: {first:?}"
            );
        }
        match first.events {
            Some((from, to)) if from < to => Named::Batch,
            // A batch without events has none to name.
            _ => Named::Event,
        }
    }
}

/// The results of the cases of one kind.
#[derive(Clone, Debug, Default)]
struct Row {
    cases: u64,
    found: u64,
    named: BTreeMap<Named, u64>,
    without: u64,
}

/// The results by layer and kind.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table {
    rows: BTreeMap<(&'static str, &'static str), Row>,
}

impl Table {
    /// Counts a case that was found and named with this precision. `without` says whether it was found without a
    /// checkpoint as well.
    pub(crate) fn count(&mut self, layer: &'static str, kind: &'static str, named: Named, without: bool) {
        let row = self.rows.entry((layer, kind)).or_default();
        row.cases += 1;
        row.found += 1;
        row.without += u64::from(without);
        *row.named.entry(named).or_default() += 1;
    }

    pub(crate) fn add(&mut self, other: Self) {
        for (key, row) in other.rows {
            let sum = self.rows.entry(key).or_default();
            sum.cases += row.cases;
            sum.found += row.found;
            sum.without += row.without;
            for (named, count) in row.named {
                *sum.named.entry(named).or_default() += count;
            }
        }
    }

    pub(crate) fn cases(&self) -> u64 {
        self.rows.values().map(|row| row.cases).sum()
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "| layer | what was done | cases | found | event named | batch named | leaves named | no event is another | found without a checkpoint |"
        )?;
        writeln!(f, "|---|---|---|---|---|---|---|---|---|")?;
        for ((layer, kind), row) in &self.rows {
            let named = |how: Named| row.named.get(&how).copied().unwrap_or(0);
            writeln!(
                f,
                "| {layer} | {kind} | {} | {} | {} | {} | {} | {} | {} |",
                row.cases,
                row.found,
                named(Named::Event),
                named(Named::Batch),
                named(Named::Leaves),
                named(Named::Nothing),
                row.without
            )?;
        }
        Ok(())
    }
}
