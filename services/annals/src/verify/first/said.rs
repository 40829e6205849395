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
                "FIRST: the hash of leaf {leaf} in its tile is not that of the batch there: proofs that rest on it are wrong, the \
                 batch is not"
            )?;
        }
        match (kept, &self.first) {
            (0, _) => f.write_str(UNANCHORED),
            (kept, None) => write!(
                f,
                "the archive begins with the {kept} batches of the checkpoint that was kept, and their events are what they were; \
                 of what came after, {} batches, it says nothing",
                leaves.saturating_sub(*kept)
            ),
            (kept, Some(_)) => write!(f, "held against a checkpoint of {kept} batches that was kept elsewhere"),
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
        write!(f, " is the first that is not as it was: {}; ", self.what)?;
        f.write_str(if self.is_proven {
            "the checkpoint that was kept proves it"
        } else {
            "so the logs say, as far as they were not written anew"
        })?;
        match self.signed {
            0 => Ok(()),
            signed => write!(
                f,
                "; the first {signed} batches are those of a checkpoint in the store that the log's key has signed: if nobody else \
                 has the key, it is behind these"
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
            Self::Gone => "it is not there any more, or cannot be read",
            Self::Changed => {
                "the header of its batch is another, and with it the time of all of them or what any of them says; which, only \
                 another copy of the batch tells (a backup, evidence)"
            }
            Self::Events => {
                "the header of its batch is what it was, and the events are others; which of several, only another copy of the \
                 batch tells (a backup, evidence)"
            }
            Self::Reordered => "events of its batch have changed places",
            Self::PutIn => "it was put into its batch",
            Self::Inserted => "its batch was put in",
            Self::Moved => "its batch is in another place",
            Self::Cut => {
                "the archive was cut back to its last batch, or written anew from there on and cut back, and of what it was only \
                 the root is known"
            }
            Self::Rewritten => {
                "the archive was written anew from there on, and of what it was only the root is known; hashes of the leaves \
                 that were kept with the checkpoint (--leaves) would tell the batch"
            }
        })
    }
}
