//! Displays what is known of the first change.

use std::fmt;

use annals_ids::EventNumber;

use super::{First, MANY, Traced, UNANCHORED, What};

impl fmt::Display for Traced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kept, leaves, .. } = self;
        if let Some(first) = &self.first {
            writeln!(f, "FIRST: {first}")?;
        }
        if let Some(leaf) = self.tile {
            writeln!(
                f,
                "FIRST: the hash of leaf {leaf} in its tile differs from that of its batch: the batch is intact, \
                 proofs from the tile are wrong"
            )?;
        }
        match (kept, &self.first) {
            (0, _) => f.write_str(UNANCHORED),
            (kept, None) => write!(
                f,
                "the archive continues the kept checkpoint of {kept} batches, and their events are unchanged; it \
                 does not cover the {} batches after them",
                leaves.saturating_sub(*kept)
            ),
            (kept, Some(_)) => write!(
                f,
                "compared with a checkpoint of {kept} batches that was kept elsewhere"
            ),
        }
    }
}

impl fmt::Display for First {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (from, to) = self.leaves;
        match (self.batch, self.events) {
            (Some(batch), Some((first, last))) if first == last => {
                write!(
                    f,
                    "event {first} of owner {}, in batch {batch}, leaf {from}",
                    batch.owner
                )?;
            }
            (Some(batch), Some((first, last))) => {
                write!(
                    f,
                    "one of the events {} of owner {}, in batch {batch}, leaf {from}",
                    Span(first, last),
                    batch.owner
                )?;
            }
            (Some(batch), None) => write!(f, "batch {batch}, leaf {from}, which has no events")?,
            (None, _) if from == to => write!(f, "the batch of leaf {from}")?,
            (None, _) => write!(f, "an event in one of the batches of the leaves {from} to {to}")?,
        }
        write!(f, " is the first that was changed: {}; ", self.what)?;
        f.write_str(if self.is_proven {
            "the kept checkpoint proves it"
        } else {
            "this follows from the logs, unless they were rewritten"
        })?;
        match self.signed {
            0 => Ok(()),
            signed => write!(
                f,
                "; the first {signed} batches match a checkpoint in the store that the log's key has signed: unless \
                 the key was stolen, the change is after them"
            ),
        }
    }
}

/// A range of events, by number.
struct Span(EventNumber, EventNumber);

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.1 {
            MANY => write!(f, "from {} on", self.0),
            last => write!(f, "{} to {last}", self.0),
        }
    }
}

impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Gone => "it is missing, or cannot be read",
            Self::Changed => {
                "the header of its batch was changed, and with it the time of all events or the content of one; \
                 another copy of the batch (a backup, evidence) shows which"
            }
            Self::Events => {
                "the header of its batch is unchanged, and events were changed; another copy of the batch (a backup, \
                 evidence) shows which"
            }
            Self::Reordered => "events of its batch were reordered",
            Self::PutIn => "it was inserted into its batch",
            Self::Inserted => "its batch was inserted",
            Self::Moved => "its batch was moved",
            Self::Cut => {
                "the archive was truncated, or rewritten from there on and truncated; only the root of the original \
                 is known"
            }
            Self::Rewritten => {
                "the archive was rewritten from there on, and only the root of the original is known; leaf hashes \
                 kept with the checkpoint (--leaves) would identify the batch"
            }
        })
    }
}
