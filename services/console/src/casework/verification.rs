//! What was verified, step by step, and what a kept checkpoint proves.

use annals_audit::Extent;
use annals_db::{ProveError, Prover};
use annals_evidence::{Lineage, words};
use annals_host::{
    signer::{key_records, newest},
    telemetry::Chain,
};
use annals_ids::{Hash, Shard};
use annals_proof::{SignedNote, TreeHead, Trusted, VerifierKey, succession::KeyRecord, verify_consistency};
use annals_store::Store;

use super::NoAnswer;

/// Maximum bytes of a checkpoint.
pub const NOTE_BYTES: usize = 64 << 10;

/// Result of the verification.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verification {
    /// Extent of the verification: batches, chains, and the tree of each shard over all of its batches.
    pub extent: Extent,
    /// What is signed of each shard.
    pub shards: Vec<ShardVerification>,
    /// Result for a checkpoint that was kept elsewhere.
    pub kept: Option<Kept>,
}

/// What is signed of the archive of a shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShardVerification {
    pub shard: Shard,
    /// The verified batches.
    pub verified: TreeHead,
    /// Newest checkpoint, if there is one.
    pub newest: Option<Checked>,
    /// All keys that the log has had, each with the size of the first checkpoint that it may sign.
    pub keys: Vec<(u64, VerifierKey)>,
}

/// A checkpoint with valid signatures, of which the archive is a continuation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checked {
    /// Name of the log.
    pub origin: String,
    /// Number of batches, and their root.
    pub head: TreeHead,
    /// Keys of the log that have signed it.
    pub signed: Vec<VerifierKey>,
    /// The note, as it is in the store.
    pub note: String,
}

/// What a kept checkpoint proves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kept {
    /// The archive begins with the batches of the checkpoint.
    Continued(Checked),
    /// A checkpoint of an earlier log, with batches that were declared lost.
    Lost(String),
    /// Not a valid checkpoint of a log of this realm: it proves nothing.
    Unbelieved(String),
}

impl Verification {
    /// Checks the stored checkpoints, and a kept one if given.
    ///
    /// # Errors
    /// If the archive differs from what was signed, or cannot be read.
    pub(crate) async fn of(store: &Store, extent: Extent, kept: Option<&[u8]>) -> Result<Self, NoAnswer> {
        let (note, mut kept) = match kept.map(SignedNote::parse) {
            None => (None, None),
            Some(Err(error)) => (None, Some(Kept::Unbelieved(Chain(&error).to_string()))),
            Some(Ok(note)) => (Some(note), None),
        };
        let mut shards = Vec::new();
        for (&shard, &verified) in &extent.trees {
            let (of_shard, of_kept) = ShardVerification::of(store, (shard, verified), note.as_ref()).await?;
            shards.push(of_shard);
            // It is a checkpoint of the shard whose keys have signed it.
            kept = match (kept, of_kept) {
                (Some(Kept::Unbelieved(_)), Some(of_kept @ (Kept::Continued(_) | Kept::Lost(_)))) => Some(of_kept),
                (kept, of_kept) => kept.or(of_kept),
            };
        }
        Ok(Self { extent, shards, kept })
    }
}

impl ShardVerification {
    /// Checks the stored checkpoint of a shard, and a kept one if given.
    async fn of(
        store: &Store,
        (shard, verified): (Shard, TreeHead),
        kept: Option<&SignedNote>,
    ) -> Result<(Self, Option<Kept>), NoAnswer> {
        let records = key_records(store, shard).await?;
        let keys = records
            .iter()
            .map(|(from, record)| (*from, record.key.clone()))
            .collect();
        let records: Vec<KeyRecord> = records.into_iter().map(|(_, record)| record).collect();
        let lineage = Lineage::verify(&records).map_err(|error| {
            let why = Chain(&error);
            NoAnswer::Wrong(format!(
                "the records of the log's keys in the store cannot be trusted: {why}"
            ))
        })?;
        let mut prover = Prover::begin(store.clone(), shard).await?;
        let newest = match newest(store, shard).await? {
            None => None,
            Some((_, note)) => {
                let trusted = lineage.trust_of(&note).check(&note).map_err(|error| {
                    let why = Chain(&error);
                    NoAnswer::Wrong(format!("the newest checkpoint in the store cannot be trusted: {why}"))
                })?;
                Some(continued((&mut prover, verified), trusted, &note).await?)
            }
        };
        let kept = match kept {
            None => None,
            Some(note) => Some(match lineage.trust_of(note).check(note) {
                Ok(trusted) => {
                    let lost = lineage.declared_lost(&trusted.checkpoint);
                    match (continued((&mut prover, verified), trusted, note).await, lost) {
                        (Err(NoAnswer::Wrong(_)), Some(lost)) => Kept::Lost(lost.to_string()),
                        (checked, _) => Kept::Continued(checked?),
                    }
                }
                Err(error) => Kept::Unbelieved(Chain(&error).to_string()),
            }),
        };
        let of_shard = Self {
            shard,
            verified,
            newest,
            keys,
        };
        Ok((of_shard, kept))
    }
}

/// Checks that the verified archive and a checkpoint are one history. The proof leads from one root to the other, so it
/// depends neither on the stored tree nor on the party that keeps it.
async fn continued(
    (prover, verified): (&mut Prover, TreeHead),
    trusted: Trusted,
    note: &SignedNote,
) -> Result<Checked, NoAnswer> {
    let head = trusted.checkpoint.head;
    let there = prover.head().size;
    if there < head.size {
        let size = head.size;
        return Err(NoAnswer::Wrong(format!(
            "the archive has {there} batches, and the signed checkpoint has {size}: it was rolled back"
        )));
    }
    let found = prover.root(head.size).await?;
    if found != head.root {
        return Err(NoAnswer::Wrong(changed(head.size, found, head.root)));
    }
    let (earlier, later) = if head.size <= verified.size {
        (head, verified)
    } else {
        (verified, head)
    };
    let proof = prover.consistency(earlier.size, later.size).await?;
    verify_consistency(earlier, later, &proof).map_err(|error| {
        let (size, verified) = (head.size, verified.size);
        NoAnswer::Wrong(format!(
            "the {verified} verified batches and the checkpoint of {size} are not proven to be one history: {error}"
        ))
    })?;
    Ok(Checked {
        origin: words::text(&trusted.checkpoint.origin),
        head,
        signed: trusted.signed,
        note: note.to_string(),
    })
}

fn changed(size: u64, found: Hash, signed: Hash) -> String {
    format!(
        "the first {size} batches of the archive have the root {found}, and {signed} is signed: they were changed since"
    )
}

impl From<ProveError> for NoAnswer {
    fn from(error: ProveError) -> Self {
        let said = Chain(&error).to_string();
        match error {
            ProveError::Store(error) => error.into(),
            _ => Self::Wrong(said),
        }
    }
}
