//! The keys of a log and of the earlier logs that it continues, each named by the previous one.

use annals_ids::Shard;
use annals_proof::{Checkpoint, LogEnd, SignedNote, Trust, VerifierKey, succession::KeyRecord};
use thiserror::Error;

use crate::{LEDGER_SHARD, Wrong, bundle::key_name, words};

/// The keys of a log and of those that it continues, and how the earlier ones have ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lineage {
    /// The keys, in order; the last one is the log's.
    pub(crate) keys: Vec<VerifierKey>,
    /// The ends of the earlier logs, in order.
    pub(crate) ends: Vec<LogEnd>,
    /// Keys that have signed only what was declared lost.
    lost_keys: Vec<VerifierKey>,
}

/// Maximum number of keys: one a month for eight decades.
const KEYS: usize = 1_000;

/// A checkpoint of an earlier log covers batches that were declared lost when a log ended.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "the checkpoint is of the log {origin} and covers {size} batches, which the archive does not have as they were signed; \
     those after the first {continued} were declared lost by {operator} at {when}, for the reason \"{reason}\""
)]
pub struct DeclaredLost {
    /// The name of the earlier log.
    pub origin: String,
    /// Size of the checkpoint's tree (batches).
    pub size: u64,
    /// Number of its batches that were continued.
    pub continued: u64,
    /// Who declared the others lost.
    pub operator: String,
    pub when: String,
    /// The operator's reason.
    pub reason: String,
}

impl Lineage {
    /// A log with one key, which continues no other.
    #[must_use]
    pub fn of(key: VerifierKey) -> Self {
        Self {
            keys: vec![key],
            ..Self::default()
        }
    }

    /// Verifies that each key was named by the previous one.
    ///
    /// # Errors
    /// The first record that does not follow from those before it.
    pub fn verify(records: &[KeyRecord]) -> Result<Self, Wrong> {
        Self::verify_of(LEDGER_SHARD, records)
    }

    /// The same, of the keys that a bundle has of a shard's log.
    pub(crate) fn verify_of(shard: Shard, records: &[KeyRecord]) -> Result<Self, Wrong> {
        let mut lineage = Self::default();
        for (at, record) in records.iter().enumerate() {
            let order = |why| Wrong::KeyOrder {
                name: key_name(shard, at),
                why,
            };
            let unproven = |source| Wrong::Key {
                name: key_name(shard, at),
                source,
            };
            match lineage.keys.last() {
                None if record.change.is_some() => return Err(order("the log's first key has no predecessor")),
                None => {}
                Some(before) => {
                    record.follows(before, before.name().as_str()).map_err(unproven)?;
                }
            }
            for added in record.with_lost().map_err(|error| unproven(error.into()))? {
                if lineage.all_keys().count() >= KEYS {
                    return Err(order("no log has so many keys"));
                }
                if lineage.has_key(&added.key) {
                    return Err(order("the log already had that key"));
                }
                if let Some(end) = added.log_end().map_err(|error| unproven(error.into()))? {
                    if lineage.names().any(|name| name == added.key.name().as_str()) {
                        return Err(order("an earlier log has that name"));
                    }
                    lineage.ends.push(end);
                }
                match added.key == record.key {
                    true => lineage.keys.push(added.key),
                    false => lineage.lost_keys.push(added.key),
                }
            }
        }
        Ok(lineage)
    }

    /// The name of the log.
    #[must_use]
    pub fn origin(&self) -> String {
        self.keys.last().map(|key| key.name().to_string()).unwrap_or_default()
    }

    /// Whether the log, or an earlier one, has had this key.
    #[must_use]
    pub fn has_key(&self, key: &VerifierKey) -> bool {
        self.all_keys().any(|own| own == key)
    }

    /// Whether the log, or an earlier one, has this name.
    #[must_use]
    pub fn has_name(&self, origin: &str) -> bool {
        self.names().any(|name| name == origin)
    }

    /// Trust in a checkpoint of the log, or of an earlier one if the note states that it is of that one.
    #[must_use]
    pub fn trust_of(&self, note: &SignedNote) -> Trust {
        let stated = note.text().lines().next().unwrap_or_default();
        let origin = match self.names().any(|name| name == stated) {
            true => stated.to_owned(),
            false => self.origin(),
        };
        Trust::in_log(&origin, self.all_keys())
    }

    /// The declaration that batches of a checkpoint are lost, if it is of an earlier log. An archive may nevertheless
    /// have them in the same order, so compare it first.
    #[must_use]
    pub fn declared_lost(&self, checkpoint: &Checkpoint) -> Option<DeclaredLost> {
        let is_of = |end: &LogEnd| end.ended.as_str() == checkpoint.origin;
        let ended = self.ends.iter().position(is_of)?;
        let end = self.ends[ended..].iter().min_by_key(|end| end.continued.size)?;
        let size = checkpoint.head.size;
        (size > end.continued.size).then(|| DeclaredLost {
            origin: words::text(&checkpoint.origin),
            size,
            continued: end.continued.size,
            operator: words::text(&end.operator),
            when: words::date(end.at),
            reason: words::text(&end.reason),
        })
    }

    /// All keys, those included that have signed only what was declared lost.
    fn all_keys(&self) -> impl Iterator<Item = &VerifierKey> {
        self.keys.iter().chain(&self.lost_keys)
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        self.all_keys().map(|key| key.name().as_str())
    }
}
