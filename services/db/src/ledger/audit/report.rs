//! What an audit found.

use std::collections::BTreeMap;

use annals_event::ledger::Place;
use annals_ids::{AssetKind, EntryNumber, Serial};
use thiserror::Error;

/// Most findings that are kept: beyond that only their number grows.
const FINDINGS_KEPT: usize = 1000;

/// Something that must not be.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Error)]
pub enum Finding {
    /// An entry gives and takes different amounts of a kind.
    #[error("unbalanced: entry {entry} makes {sum} units of kind {kind} out of nothing")]
    Unbalanced {
        /// Which entry.
        entry: EntryNumber,
        /// Of which kind.
        kind: AssetKind,
        /// By how much.
        sum: i128,
    },
    /// An account other than the world's is below nothing.
    #[error("negative: entry {entry} leaves {balance} units of kind {kind} with {place:?}")]
    Negative {
        /// After which entry.
        entry: EntryNumber,
        /// Where.
        place: Place,
        /// Of which kind.
        kind: AssetKind,
        /// How many.
        balance: i128,
    },
    /// An item moved from where it was not.
    #[error("misplaced: entry {entry} moves item {serial} from {from:?}, where it was not")]
    Misplaced {
        /// In which entry.
        entry: EntryNumber,
        /// Which item.
        serial: Serial,
        /// From where.
        from: Place,
    },
    /// A row is not what the entries come to.
    #[error("differs: {row} is {found}, and the entries come to {expected}")]
    Differs {
        /// Which row.
        row: String,
        /// What it is.
        found: String,
        /// What it should be.
        expected: String,
    },
    /// A row that finds another is missing, or finds nothing.
    #[error("index: {what}")]
    Index {
        /// What is wrong.
        what: String,
    },
    /// An entry is missing, or what is there cannot be read.
    #[error("unreadable: {what}")]
    Unreadable {
        /// What is wrong.
        what: String,
    },
}

impl Finding {
    /// Its name, in a word.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Finding::Unbalanced { .. } => "unbalanced",
            Finding::Negative { .. } => "negative",
            Finding::Misplaced { .. } => "misplaced",
            Finding::Differs { .. } => "differs",
            Finding::Index { .. } => "index",
            Finding::Unreadable { .. } => "unreadable",
        }
    }
}

/// How much there is of a kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sum {
    /// What was ever made.
    pub made: u128,
    /// What was destroyed.
    pub destroyed: u128,
    /// What entities of the database hold.
    pub held: u128,
    /// What is reserved or on a table.
    pub in_escrow: u128,
}

/// What an audit found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// The newest entry that was looked at.
    pub entries: EntryNumber,
    /// How much there is of each kind.
    pub sums: BTreeMap<AssetKind, Sum>,
    /// What must not be, at most [`FINDINGS_KEPT`].
    pub findings: Vec<Finding>,
    /// How many of that there are.
    pub found: u64,
}

impl Report {
    pub(super) fn note(&mut self, finding: Finding) {
        self.found += 1;
        if self.findings.len() < FINDINGS_KEPT {
            self.findings.push(finding);
        }
    }
}
