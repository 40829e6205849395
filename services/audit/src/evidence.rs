//! Creates evidence: an answer with everything needed to check it elsewhere, from the archive and its signed
//! checkpoints.
//!
//! Before evidence is returned, it is checked in the way in which its receiver will check it.

use std::collections::{BTreeMap, BTreeSet, btree_map::Entry};

use annals_db::{ProveError, Prover, read_schema};
use annals_event::ledger::Stage;
use annals_evidence::{
    Anchors, Answer, Bundle, BundleError, Cited, Excerpt, LEDGER_SHARD, Lineage, Proven, Question, Receipt,
    ReceiptError, ShardLeaf, TradeStage, Wrong, check, check_receipt,
};
use annals_host::signer::{covering, key_records};
use annals_ids::{Hash, LeafIndex, LogPosition, Shard, TradeId};
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
        "no signed checkpoint covers this answer: it needs the archive's first {needed} batches, and the newest \
         checkpoint is of {signed}. A running annals-signer signs every ten seconds; try again later (annals \
         checkpoint show prints the newest one)"
    )]
    Uncovered {
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
        "the archive's first {size} batches have the root {found}, and {signed} was signed: they were changed since"
    )]
    Rewritten {
        /// Number of batches.
        size: u64,
        /// The root of their tree.
        found: Hash,
        /// The signed root.
        signed: Hash,
    },
    /// The archive is older than the signed one.
    #[error("the archive has {found} batches, and {signed} were signed: it was rolled back")]
    RolledBack {
        /// Current number of batches.
        found: u64,
        /// Signed number of batches.
        signed: u64,
    },
    /// The answer rests on batches of another shard than the ledger's.
    #[error(
        "the answer rests on batch {at} of shard {shard}, and a bundle proves batches of one shard, that of the ledger. \
         A settled trade has a receipt, which rests on entries of the ledger alone"
    )]
    OtherShard {
        /// The batch.
        at: LogPosition,
        shard: Shard,
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
        "the store has no record of the key that has signed: start annals-signer with its own folder, and ask again"
    )]
    NoKey,
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
pub async fn bundle(
    store: &Store,
    index: &Index,
    (question, answer): (Question, &Answer),
    kept: &[SignedNote],
) -> Result<Vec<u8>, EvidenceError> {
    let mut events = Vec::new();
    for cited in answer.cited() {
        for (leaf, excerpt) in index.excerpts(store, cited).await? {
            events.push((of_ledger(leaf, &excerpt)?, excerpt));
        }
        if events.len() > annals_evidence::EVENTS {
            let events = events.len();
            return Err(BundleError::Events { events }.into());
        }
    }
    let kept_sizes = kept.iter().map(|note| Ok(claimed(note)?.size));
    let kept_sizes: BTreeSet<u64> = kept_sizes.collect::<Result<_, EvidenceError>>()?;
    refuse_lost(store, kept).await?;
    let mut checkpointed = Checkpointed::read(store, &events, kept_sizes.last().copied().unwrap_or(0)).await?;
    let mut changes = Vec::new();
    for record in &checkpointed.keys {
        changes.extend(record.changed_at()?.map(|head| head.size));
    }
    let mut continued = BTreeMap::new();
    for size in changes.into_iter().chain(kept_sizes) {
        if 0 < size && size < checkpointed.head.size {
            continued.insert(
                size,
                checkpointed.prover.consistency(size, checkpointed.head.size).await?,
            );
        }
    }
    let mut schemas = BTreeMap::new();
    for (_, excerpt) in &events {
        let fingerprint = excerpt.header().schema;
        if let Entry::Vacant(entry) = schemas.entry(fingerprint) {
            entry.insert(read_schema(store, fingerprint).await?.encode());
        }
    }
    let bundle = Bundle {
        question,
        events: checkpointed.prove_all(events).await?,
        checkpoint: checkpointed.note,
        keys: checkpointed.keys,
        continued,
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
    let mut checkpointed = Checkpointed::read(store, &events, 0).await?;
    let key = checkpointed.key().ok_or(EvidenceError::NoKey)?;
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
async fn entry(store: &Store, index: &Index, cited: &Cited) -> Result<(LeafIndex, Excerpt), EvidenceError> {
    let alone = Cited {
        asked: None,
        ..cited.clone()
    };
    let (leaf, excerpt) = index.excerpts(store, &alone).await?.swap_remove(0);
    Ok((of_ledger(leaf, &excerpt)?, excerpt))
}

/// The leaf of a batch on the ledger's shard. Evidence has one checkpoint, and each shard's signer signs its own.
fn of_ledger(ShardLeaf { shard, leaf }: ShardLeaf, excerpt: &Excerpt) -> Result<LeafIndex, EvidenceError> {
    let header = excerpt.header();
    let at = LogPosition {
        owner: header.owner,
        batch: header.number,
    };
    match shard {
        LEDGER_SHARD => Ok(leaf),
        shard => Err(EvidenceError::OtherShard { at, shard }),
    }
}

/// Returns an error if the archive differs from a kept checkpoint in batches that were declared lost: no evidence
/// continues it.
async fn refuse_lost(store: &Store, kept: &[SignedNote]) -> Result<(), EvidenceError> {
    if kept.is_empty() {
        return Ok(());
    }
    let records = key_records(store, LEDGER_SHARD).await?.into_iter();
    let lineage = Lineage::verify(&records.map(|(_, record)| record).collect::<Vec<_>>())?;
    let mut prover = Prover::begin(store.clone(), LEDGER_SHARD).await?;
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
    /// Finds a checkpoint of at least `least` batches that covers these events.
    async fn read(store: &Store, events: &[(LeafIndex, Excerpt)], least: u64) -> Result<Self, EvidenceError> {
        let needed = events.iter().map(|(leaf, _)| leaf.0 + 1).max().unwrap_or(1).max(least);
        let note = match covering(store, LEDGER_SHARD, needed).await? {
            Ok(note) => note,
            Err(signed) => return Err(EvidenceError::Uncovered { needed, signed }),
        };
        let head = claimed(&note)?;
        let mut prover = Prover::begin(store.clone(), LEDGER_SHARD).await?;
        let (found, signed) = (prover.head().size, head.size);
        if found < signed {
            return Err(EvidenceError::RolledBack { found, signed });
        }
        let found = prover.root(head.size).await?;
        if found != head.root {
            let (size, signed) = (head.size, head.root);
            return Err(EvidenceError::Rewritten { size, found, signed });
        }
        let keys = key_records(store, LEDGER_SHARD).await?.into_iter();
        let keys = keys.filter(|(from, _)| *from <= head.size).map(|(_, record)| record);
        let keys: Vec<KeyRecord> = keys.collect();
        if keys.is_empty() {
            return Err(EvidenceError::NoKey);
        }
        Ok(Self {
            note,
            head,
            keys,
            prover,
        })
    }

    /// The key that signed the checkpoint.
    fn key(&self) -> Option<VerifierKey> {
        self.keys.last().map(|record| record.key.clone())
    }

    async fn prove(&mut self, (leaf, excerpt): (LeafIndex, Excerpt)) -> Result<Proven, EvidenceError> {
        let path = self.prover.inclusion(leaf.0, self.head.size).await?;
        Ok(Proven { excerpt, leaf, path })
    }

    async fn prove_all(&mut self, events: Vec<(LeafIndex, Excerpt)>) -> Result<Vec<Proven>, EvidenceError> {
        let mut proven = Vec::new();
        for event in events {
            proven.push(self.prove(event).await?);
        }
        Ok(proven)
    }
}
