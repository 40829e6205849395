//! The findings of an audit.

use std::collections::BTreeMap;

use annals_event::ledger::AssetSlot;
use annals_ids::{AssetKind, EntryNumber, Serial};
use thiserror::Error;

/// Maximum findings that are kept; further ones are only counted.
const FINDINGS_KEPT: usize = 1000;

/// A violation of the ledger's rules.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Error)]
pub enum Finding {
    /// The postings of an entry do not sum to 0 for a kind.
    #[error("unbalanced: entry {entry} makes {sum} units of kind {kind} out of nothing")]
    Unbalanced {
        entry: EntryNumber,
        /// Its asset kind.
        kind: AssetKind,
        sum: i128,
    },
    /// An account other than the world's is negative.
    #[error("negative: entry {entry} leaves {balance} units of kind {kind} with {place:?}")]
    Negative {
        /// Entry after which it is negative.
        entry: EntryNumber,
        /// The account's place.
        place: AssetSlot,
        /// Its asset kind.
        kind: AssetKind,
        balance: i128,
    },
    /// An item was moved from a place where it was not.
    #[error("misplaced: entry {entry} moves item {serial} from {from:?}, where it was not")]
    Misplaced {
        entry: EntryNumber,
        /// The item.
        serial: Serial,
        /// Place that the entry names.
        from: AssetSlot,
    },
    /// A row differs from the sum of the entries.
    #[error("differs: {row} is {found}, and the entries come to {expected}")]
    Differs {
        row: String,
        /// Its value.
        found: String,
        /// The expected value.
        expected: String,
    },
    /// An index row is missing, or refers to nothing.
    #[error("index: {what}")]
    Index {
        /// What is wrong.
        what: String,
    },
    /// An entry is missing or cannot be read.
    #[error("unreadable: {what}")]
    Unreadable {
        /// What is wrong.
        what: String,
    },
}

impl Finding {
    /// Short name of the finding.
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

/// Amounts of a kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sum {
    /// Total ever made.
    pub made: u128,
    /// Total destroyed.
    pub destroyed: u128,
    /// Amount held by stored entities.
    pub held: u128,
    /// Amount reserved or in trades.
    pub in_escrow: u128,
}

/// Result of an audit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Newest entry that was examined.
    pub entries: EntryNumber,
    /// Amounts of each kind.
    pub sums: BTreeMap<AssetKind, Sum>,
    /// Findings, at most [`FINDINGS_KEPT`].
    pub findings: Vec<Finding>,
    /// Number of all findings.
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
