//! Creates evidence: an answer with everything needed to check it elsewhere, from the archive and its signed
//! checkpoints.
//!
//! Before evidence is returned, it is checked in the way in which its receiver will check it.

use async_recursion::async_recursion as boxed;
use std::collections::{BTreeMap, BTreeSet, btree_map::Entry};

use annals_db::{ProveError, Prover, read_schema, read_shards};
use annals_event::ledger::Stage;
use annals_evidence::{
    Anchors, Answer, Bundle, BundleError, Cited, Excerpt, LEDGER_SHARD, Lineage, Proven, Question, Receipt,
    ReceiptError, ShardLeaf, ShardLog, TradeStage, Wrong, check, check_receipt,
};
use annals_host::signer::{covering, key_records};
use annals_ids::{Hash, Shard, TradeId};
use annals_proof::{
    Checkpoint, SignedNote, TreeHead, VerifierKey,
    checkpoint::CheckpointError,
    succession::{KeyRecord, NotNamed},
};
use annals_store::{Store, StoreError};
use thiserror::Error;

use crate::{AuditError, Index};

/// Why there is no evidence.
#[derive(Debug, Error)]
pub enum EvidenceError {
    /// There is no answer, or its basis was changed.
    #[error("the question has no answer to prove")]
    Audit(#[from] AuditError),
    /// The store cannot be read.
    #[error("the store cannot be read")]
    Store(#[from] StoreError),
    /// The proof from the archive's tree failed.
    #[error("the archive's tree cannot be read")]
    Prove(#[from] ProveError),
    /// No signed checkpoint covers the events.
    #[error(
        "no signed checkpoint covers this answer: it needs the first {needed} batches of the archive of shard {shard}, and \
         the newest checkpoint is of {signed}. A running annals-signer of that shard signs every ten seconds; try again \
         later (annals checkpoint show --shard {shard} prints the newest one)"
    )]
    Uncovered {
        shard: Shard,
        /// Number of batches that must be signed.
        needed: u64,
        /// Number of signed batches.
        signed: u64,
    },
    /// The signed note is not a checkpoint of a tree.
    #[error("the signed data is not a checkpoint")]
    Checkpoint(#[from] CheckpointError),
    /// The archive differs from the signed one.
    #[error(
        "the first {size} batches of shard {shard} have the root {found}, and {signed} was signed: they were changed since"
    )]
    Rewritten {
        shard: Shard,
        /// Number of batches.
        size: u64,
        /// The root of their tree.
        found: Hash,
        /// The signed root.
        signed: Hash,
    },
    /// The archive is older than the signed one.
    #[error("the archive of shard {shard} has {found} batches, and {signed} were signed: it was rolled back")]
    RolledBack {
        shard: Shard,
        /// Current number of batches.
        found: u64,
        /// Signed number of batches.
        signed: u64,
    },
    /// The bundle could not be created.
    #[error("the answer cannot be written as a bundle")]
    Bundle(#[from] BundleError),
    /// The receipt could not be created.
    #[error("no receipt can be made of that trade")]
    Receipt(#[from] ReceiptError),
    /// The trade was not settled.
    #[error("trade {0} was not settled: only settled trades have receipts")]
    Unsettled(TradeId),
    /// The log's keys are not in the store.
    #[error(
        "the store has no record of the key that has signed shard {0}: start annals-signer of that shard with its own \
         folder, and ask again"
    )]
    NoKey(Shard),
    /// A stored record of a key cannot be read.
    #[error("a record of the log's keys in the store cannot be used")]
    Key(#[from] NotNamed),
    /// The evidence created does not verify.
    #[error("the new evidence does not verify")]
    Wrong(#[from] Wrong),
}

impl EvidenceError {
    /// Whether the error shows that data was changed, and not merely that it is missing or unavailable.
    #[must_use]
    pub fn is_finding(&self) -> bool {
        match self {
            Self::Audit(error) => error.is_finding(),
            Self::Wrong(wrong) => !wrong.is_no_verdict(),
            Self::Rewritten { .. } | Self::RolledBack { .. } => true,
            _ => false,
        }
    }
}

/// A bundle of an answer, with a proof for each of the checkpoints that were kept elsewhere. Deterministic: the same
/// archive and checkpoints give the same bytes.
///
/// # Errors
/// When it cannot be created, or its basis does not verify.
#[boxed]
pub async fn bundle(
    store: &Store,
    index: &Index,
    (question, answer): (Question, &Answer),
    kept: &[SignedNote],
) -> Result<Vec<u8>, EvidenceError> {
    let mut events = Vec::new();
    for cited in answer.cited() {
        events.extend(index.excerpts(store, cited).await?);
        if events.len() > annals_evidence::EVENTS {
            let events = events.len();
            return Err(BundleError::Events { events }.into());
        }
    }
    let mut shards: BTreeSet<Shard> = events.iter().map(|(leaf, _)| leaf.shard).collect();
    shards.insert(LEDGER_SHARD);
    let mut logs = BTreeMap::new();
    for shard in shards {
        let kept = kept_of(store, shard, kept).await?;
        refuse_lost(store, shard, &kept).await?;
        let sizes = kept.iter().map(|note| Ok(claimed(note)?.size));
        let sizes: BTreeSet<u64> = sizes.collect::<Result<_, EvidenceError>>()?;
        let least = sizes.last().copied().unwrap_or(0);
        let mut checkpointed = Checkpointed::read(store, shard, &events, least).await?;
        let continued = checkpointed.prove_continued(sizes).await?;
        logs.insert(shard, (checkpointed, continued));
    }
    let mut schemas = BTreeMap::new();
    for (_, excerpt) in &events {
        let fingerprint = excerpt.header().schema;
        if let Entry::Vacant(entry) = schemas.entry(fingerprint) {
            entry.insert(read_schema(store, fingerprint).await?.encode());
        }
    }
    let mut proven = Vec::new();
    for (leaf, excerpt) in events {
        if let Some((checkpointed, _)) = logs.get_mut(&leaf.shard) {
            proven.push(checkpointed.prove((leaf, excerpt)).await?);
        }
    }
    let as_log = |(checkpointed, continued): (Checkpointed, _)| ShardLog {
        checkpoint: checkpointed.note,
        keys: checkpointed.keys,
        continued,
    };
    let log = logs
        .remove(&LEDGER_SHARD)
        .map(as_log)
        .ok_or(EvidenceError::NoKey(LEDGER_SHARD))?;
    let bundle = Bundle {
        question,
        log,
        others: logs.into_iter().map(|(shard, log)| (shard, as_log(log))).collect(),
        events: proven,
        schemas,
    };
    let bytes = bundle.write()?;
    let anchors = Anchors {
        kept: kept.to_vec(),
        ..Anchors::default()
    };
    check(&bytes, &anchors)?;
    Ok(bytes)
}

/// A receipt of a settled trade.
///
/// # Errors
/// When it cannot be created, or its basis does not verify.
#[boxed]
pub async fn receipt(store: &Store, index: &Index, id: TradeId) -> Result<String, EvidenceError> {
    let trade = index.trade(store, id).await?;
    let settled = trade
        .steps
        .iter()
        .find(|step| step.stage == TradeStage::Begun(Stage::Settled));
    let settled = &settled.ok_or(EvidenceError::Unsettled(id))?.cited;
    let proposed = trade.steps.first().map(|step| &step.cited).unwrap_or(settled);
    let events = [
        entry(store, index, proposed).await?,
        entry(store, index, settled).await?,
    ];
    let mut checkpointed = Checkpointed::read(store, LEDGER_SHARD, &events, 0).await?;
    let key = checkpointed.key().ok_or(EvidenceError::NoKey(LEDGER_SHARD))?;
    let [proposed, settled] = events;
    let receipt = Receipt {
        key,
        proposed: checkpointed.prove(proposed).await?,
        settled: checkpointed.prove(settled).await?,
        checkpoint: checkpointed.note,
    };
    let text = receipt.write()?;
    check_receipt(text.as_bytes(), &Anchors::default())?;
    Ok(text)
}

/// The entry alone, without the order that asked for it.
async fn entry(store: &Store, index: &Index, cited: &Cited) -> Result<(ShardLeaf, Excerpt), EvidenceError> {
    let alone = Cited {
        asked: None,
        ..cited.clone()
    };
    Ok(index.excerpts(store, &alone).await?.swap_remove(0))
}

/// The kept checkpoints of a shard's log; those of no shard's log count as the ledger's.
async fn kept_of(store: &Store, shard: Shard, kept: &[SignedNote]) -> Result<Vec<SignedNote>, EvidenceError> {
    let mut found = Vec::new();
    for note in kept {
        let checkpoint: Checkpoint = note.text().parse()?;
        let mut of = LEDGER_SHARD;
        for other in 1..read_shards(store).await? {
            if lineage_of(store, Shard(other)).await?.has_name(&checkpoint.origin) {
                of = Shard(other);
            }
        }
        found.extend((of == shard).then(|| note.clone()));
    }
    Ok(found)
}

async fn lineage_of(store: &Store, shard: Shard) -> Result<Lineage, EvidenceError> {
    let records = key_records(store, shard).await?.into_iter();
    Ok(Lineage::verify(&records.map(|(_, record)| record).collect::<Vec<_>>())?)
}

/// Returns an error if the archive differs from a kept checkpoint in batches that were declared lost: no evidence
/// continues it.
async fn refuse_lost(store: &Store, shard: Shard, kept: &[SignedNote]) -> Result<(), EvidenceError> {
    if kept.is_empty() {
        return Ok(());
    }
    let lineage = lineage_of(store, shard).await?;
    let mut prover = Prover::begin(store.clone(), shard).await?;
    for note in kept {
        let checkpoint: Checkpoint = note.text().parse()?;
        let TreeHead { size, root } = checkpoint.head;
        let has_it = size <= prover.head().size && prover.root(size).await? == root;
        if let Some(lost) = lineage.declared_lost(&checkpoint).filter(|_| !has_it) {
            return Err(Wrong::from(lost).into());
        }
    }
    Ok(())
}

fn claimed(note: &SignedNote) -> Result<TreeHead, EvidenceError> {
    Ok(note.text().parse::<Checkpoint>()?.head)
}

/// The basis of evidence: a checkpoint, its log's keys, and the tree.
struct Checkpointed {
    note: SignedNote,
    head: TreeHead,
    keys: Vec<KeyRecord>,
    prover: Prover,
}

impl Checkpointed {
    /// Finds a checkpoint of at least `least` batches of a shard that covers those of these events that are on it.
    async fn read(
        store: &Store,
        shard: Shard,
        events: &[(ShardLeaf, Excerpt)],
        least: u64,
    ) -> Result<Self, EvidenceError> {
        let own = events.iter().filter(|(leaf, _)| leaf.shard == shard);
        let needed = own.map(|(leaf, _)| leaf.leaf.0 + 1).max().unwrap_or(1).max(least);
        let note = match covering(store, shard, needed).await? {
            Ok(note) => note,
            Err(signed) => return Err(EvidenceError::Uncovered { shard, needed, signed }),
        };
        let head = claimed(&note)?;
        let mut prover = Prover::begin(store.clone(), shard).await?;
        let (found, signed) = (prover.head().size, head.size);
        if found < signed {
            return Err(EvidenceError::RolledBack { shard, found, signed });
        }
        let found = prover.root(head.size).await?;
        if found != head.root {
            let (size, signed) = (head.size, head.root);
            return Err(EvidenceError::Rewritten {
                shard,
                size,
                found,
                signed,
            });
        }
        let keys = key_records(store, shard).await?.into_iter();
        let keys = keys.filter(|(from, _)| *from <= head.size).map(|(_, record)| record);
        let keys: Vec<KeyRecord> = keys.collect();
        if keys.is_empty() {
            return Err(EvidenceError::NoKey(shard));
        }
        Ok(Self {
            note,
            head,
            keys,
            prover,
        })
    }

    /// Proofs that the checkpoint continues the trees of these sizes, and that of each change of keys.
    async fn prove_continued(&mut self, kept: BTreeSet<u64>) -> Result<BTreeMap<u64, Vec<Hash>>, EvidenceError> {
        let mut sizes = kept;
        for record in &self.keys {
            sizes.extend(record.changed_at()?.map(|head| head.size));
        }
        let mut continued = BTreeMap::new();
        for size in sizes.into_iter().filter(|size| 0 < *size && *size < self.head.size) {
            continued.insert(size, self.prover.consistency(size, self.head.size).await?);
        }
        Ok(continued)
    }

    /// The key that signed the checkpoint.
    fn key(&self) -> Option<VerifierKey> {
        self.keys.last().map(|record| record.key.clone())
    }

    async fn prove(&mut self, (leaf, excerpt): (ShardLeaf, Excerpt)) -> Result<Proven, EvidenceError> {
        let path = self.prover.inclusion(leaf.leaf.0, self.head.size).await?;
        Ok(Proven { excerpt, leaf, path })
    }
}
