//! Verification of a bundle: every hash, proof and signature, and that the answer follows from the events.

use std::collections::{BTreeMap, BTreeSet};

use annals_ids::{Hash, Shard};
use annals_proof::{
    Checkpoint, KeyKind, SignedNote, TreeHead, Trust, Trusted, VerifierKey, checkpoint::Untrusted,
    succession::NotNamed, verify::Unproven, verify_consistency, verify_inclusion,
};
use thiserror::Error;

use crate::{
    Bundle, BundleError, DeclaredLost, LEDGER_SHARD, Lineage, Proven, ReceiptError, ShardLog, Verdict,
    bundle::{continuation_name, event_name, key_name, schema_name},
    verdict::{Believed, KeyTrust, Subject},
    words,
    zip::ZipError,
};

/// What the verifier knows from other sources. Without any of it, only internal consistency can be proven.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Anchors {
    /// Trusted keys of the log.
    pub keys: Vec<VerifierKey>,
    /// Trusted keys of witnesses.
    pub witnesses: Vec<VerifierKey>,
    /// Number of witnesses that must have cosigned.
    pub quorum: usize,
    /// Checkpoints of the log that were stored outside of it.
    pub kept: Vec<SignedNote>,
}

/// Why verification failed. Names the first error found.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Wrong {
    /// The bundle is incomplete, or contradicts itself.
    #[error(transparent)]
    Bundle(#[from] BundleError),
    /// The receipt is incomplete, or contradicts itself.
    #[error(transparent)]
    Receipt(#[from] ReceiptError),
    /// A key was not named by the previous one.
    #[error("{name} is not proven to be of the log's next key")]
    Key {
        /// The file.
        name: String,
        /// The reason.
        source: NotNamed,
    },
    /// A key's record does not belong there.
    #[error("{name} does not belong there: {why}")]
    KeyOrder {
        /// The file.
        name: String,
        /// The reason.
        why: &'static str,
    },
    /// None of the trusted keys is the log's.
    #[error(
        "the checkpoint is signed by {found}, which is neither one of the given keys nor named as a successor by one"
    )]
    Stranger {
        /// The signing key.
        found: String,
    },
    /// Two shards have one log.
    #[error("the log {origin} is said to be that of shard {first} and that of shard {second}: each shard has its own")]
    SameLog {
        first: Shard,
        second: Shard,
        /// The name of the log.
        origin: String,
    },
    /// The checkpoint is not signed as required.
    #[error("the checkpoint cannot be trusted")]
    Untrusted(#[from] Untrusted),
    /// An event is not in the log.
    #[error("the event in {name} is not proven to be in the log")]
    Event {
        /// The file.
        name: String,
        /// The reason.
        source: Unproven,
    },
    /// The checkpoint is not shown to continue an earlier one.
    #[error("the checkpoint is not proven to continue the signed checkpoint of {size} batches ({name})")]
    Continued {
        /// The file.
        name: String,
        /// Size of the earlier tree (batches).
        size: u64,
        /// The reason.
        source: Unproven,
    },
    /// Definitions are missing, or not needed.
    #[error("{name} is missing, or contains definitions that no event needs")]
    Schema {
        /// The file.
        name: String,
    },
    /// A checkpoint stored outside is not trusted.
    #[error("the kept checkpoint is not of this log")]
    Kept(#[source] Untrusted),
    /// Two signed checkpoints contradict each other.
    #[error(
        "for {size} batches the kept checkpoint has the root {kept}, and this one {found}: the log has signed two \
         histories"
    )]
    Forked {
        /// Size of the tree (batches).
        size: u64,
        /// The root in the checkpoint stored outside.
        kept: Hash,
        /// The other root.
        found: Hash,
    },
    /// The checkpoint stored outside is of an earlier log, and covers batches that were declared lost.
    #[error(transparent)]
    DeclaredLost(#[from] DeclaredLost),
    /// No proof connects the checkpoint stored outside with this one.
    #[error(
        "no proof leads from the kept checkpoint of {kept} batches to this one of {size}: request the evidence with \
         --kept and that checkpoint"
    )]
    Unlinked {
        /// Size of the tree of the former (batches).
        kept: u64,
        /// Size of the tree of the latter (batches).
        size: u64,
    },
}

impl Wrong {
    /// Whether there is no verdict either way: the input is not evidence at all, or the question cannot be answered
    /// from it.
    #[must_use]
    pub fn is_no_verdict(&self) -> bool {
        matches!(
            self,
            Self::Unlinked { .. }
                | Self::DeclaredLost(_)
                | Self::Bundle(BundleError::Zip(ZipError::Kind | ZipError::Size { .. }))
                | Self::Receipt(ReceiptError::Kind | ReceiptError::Size { .. })
        )
    }
}

/// Verifies a bundle, and returns what it proves.
///
/// # Errors
/// The first error found.
pub fn check(bytes: &[u8], anchors: &Anchors) -> Result<Verdict, Wrong> {
    let (bundle, answer) = Bundle::read(bytes)?;
    let mut lineages: BTreeMap<Shard, Lineage> = BTreeMap::new();
    for (shard, log) in bundle.logs() {
        let lineage = Lineage::verify_of(shard, &log.keys)?;
        let origin = lineage.origin();
        if let Some((same, _)) = lineages.iter().find(|(_, other)| other.has_name(&origin)) {
            let origin = words::text(&origin);
            let (first, second) = (*same, shard);
            return Err(Wrong::SameLog { first, second, origin });
        }
        lineages.insert(shard, lineage);
    }
    let mut logs: BTreeMap<Shard, Believed> = BTreeMap::new();
    for (shard, log) in bundle.logs() {
        let anchors = anchors_of(shard, anchors, &lineages);
        logs.insert(shard, check_log((shard, log), &lineages[&shard], &anchors)?);
    }
    for (at, event) in bundle.events.iter().enumerate() {
        let name = event_name(at);
        let head = logs.get(&event.leaf.shard).map(|log| log.trusted.checkpoint.head);
        let head = head.ok_or_else(|| BundleError::OtherCheckpoint { name: name.clone() })?;
        included(event, head).map_err(|source| Wrong::Event { name, source })?;
    }
    check_schemas(&bundle)?;
    Ok(Verdict {
        subject: Subject::Answer(bundle.question, answer, bundle.lexicon()?),
        realm: bundle.realm().to_owned(),
        leaves: bundle.events.iter().map(|event| event.leaf).collect(),
        logs,
    })
}

/// What the verifier knows of a shard's log. What names none of the logs is about the ledger's.
fn anchors_of(shard: Shard, anchors: &Anchors, lineages: &BTreeMap<Shard, Lineage>) -> Anchors {
    let is_of = |origin: &str| {
        let named = lineages.iter().find(|(_, lineage)| lineage.has_name(origin));
        named.map_or(LEDGER_SHARD, |(of, _)| *of) == shard
    };
    let stated = |note: &&SignedNote| is_of(note.text().lines().next().unwrap_or_default());
    Anchors {
        keys: anchors
            .keys
            .iter()
            .filter(|key| is_of(key.name().as_str()))
            .cloned()
            .collect(),
        kept: anchors.kept.iter().filter(stated).cloned().collect(),
        ..anchors.clone()
    }
}

/// Verifies the checkpoint of a shard's log, and that it continues earlier ones.
fn check_log((shard, log): (Shard, &ShardLog), lineage: &Lineage, anchors: &Anchors) -> Result<Believed, Wrong> {
    let checkpoint = Signed {
        shard,
        note: &log.checkpoint,
        lineage,
    };
    let (trusted, key_trust) = checkpoint.check(anchors)?;
    let head = trusted.checkpoint.head;
    continues((shard, log), head)?;
    let kept = checkpoint.compare(anchors, head, |size| log.continued.get(&size).map(Vec::as_slice))?;
    Ok(Believed {
        trusted,
        key_trust,
        kept,
        witnesses: anchors.witnesses.len(),
        signatures: log.checkpoint.signatures().len(),
        lineage: lineage.clone(),
    })
}

/// Verifies that an event's batch is in a tree.
pub(crate) fn included(event: &Proven, head: TreeHead) -> Result<(), Unproven> {
    verify_inclusion(event.excerpt.hash(), event.leaf.leaf.0, head, &event.path)
}

/// A checkpoint, and the keys up to the one that must have signed it.
pub(crate) struct Signed<'a> {
    pub(crate) shard: Shard,
    pub(crate) note: &'a SignedNote,
    pub(crate) lineage: &'a Lineage,
}

impl Signed<'_> {
    /// Checks whether it is trusted, and by which keys and witnesses.
    pub(crate) fn check(&self, anchors: &Anchors) -> Result<(Trusted, KeyTrust), Wrong> {
        for (keys, kind, role) in [
            (&anchors.keys, KeyKind::Note, "log"),
            (&anchors.witnesses, KeyKind::Cosignature, "witness"),
        ] {
            if let Some(key) = keys.iter().find(|key| key.kind() != kind) {
                let name = key.name().clone();
                return Err(Untrusted::Role { name, role }.into());
            }
        }
        let keys = &self.lineage.keys;
        let last = keys.last().map(|key| words::text(&key.to_string())).unwrap_or_default();
        let origin = self.lineage.origin();
        let trust = Trust {
            witnesses: anchors.witnesses.clone(),
            quorum: anchors.quorum,
            ..Trust::in_log(&origin, keys)
        };
        let trusted = trust.check(self.note)?;
        let by_last = trusted.signed.iter().any(|key| Some(key) == keys.last());
        let anchor = keys.iter().rposition(|key| anchors.keys.contains(key));
        match anchor {
            _ if !by_last => Err(Wrong::Stranger { found: last }),
            None if !anchors.keys.is_empty() => Err(Wrong::Stranger { found: last }),
            None => Ok((trusted, KeyTrust::Unknown)),
            Some(at) if at + 1 == keys.len() => Ok((trusted, KeyTrust::Given)),
            Some(_) => Ok((trusted, KeyTrust::Named)),
        }
    }

    /// Compares it with the checkpoints stored outside; returns their sizes and roots.
    pub(crate) fn compare<'p>(
        &self,
        anchors: &Anchors,
        head: TreeHead,
        leading: impl Fn(u64) -> Option<&'p [Hash]>,
    ) -> Result<Vec<TreeHead>, Wrong> {
        let mut compared = Vec::new();
        for note in &anchors.kept {
            let trust = self.trust_of_kept(anchors, note);
            let kept = trust.check(note).map_err(Wrong::Kept)?;
            match continue_kept(self.shard, kept.checkpoint.head, head, &leading) {
                Ok(()) => compared.push(kept.checkpoint.head),
                Err(wrong) => return Err(self.explain(&kept.checkpoint, head, wrong)),
            }
        }
        Ok(compared)
    }

    /// Why a kept checkpoint is not continued: its batches were declared lost, or it is of a log that this one is not
    /// known to continue.
    fn explain(&self, kept: &Checkpoint, head: TreeHead, wrong: Wrong) -> Wrong {
        let (kept_size, size) = (kept.head.size, head.size);
        match self.lineage.declared_lost(kept) {
            Some(lost) => lost.into(),
            None if !self.lineage.has_name(&kept.origin) => Wrong::Unlinked { kept: kept_size, size },
            None => wrong,
        }
    }

    /// Trust in a kept checkpoint: of the log, of an earlier one, or of one for which the verifier has a key. The latter
    /// may be related to this one in a way that only newer evidence shows.
    fn trust_of_kept(&self, anchors: &Anchors, note: &SignedNote) -> Trust {
        let mut trust = self.lineage.trust_of(note);
        let stated = note.text().lines().next().unwrap_or_default();
        let is_known = anchors.keys.iter().any(|key| key.name().as_str() == stated);
        if is_known && trust.origin != stated {
            trust.origin = stated.to_owned();
            trust.keys.clear();
        }
        let given = anchors.keys.iter().filter(|key| key.name().as_str() == trust.origin);
        trust.keys.extend(given.cloned());
        trust.witnesses.extend(anchors.witnesses.iter().cloned());
        trust
    }
}

/// Verifies that a checkpoint's tree is the same as a kept one's, or continues it. `leading` has consistency proofs by
/// the size from which they lead.
fn continue_kept<'p>(
    shard: Shard,
    kept: TreeHead,
    head: TreeHead,
    leading: impl Fn(u64) -> Option<&'p [Hash]>,
) -> Result<(), Wrong> {
    if kept.size == head.size {
        let (size, kept, found) = (kept.size, kept.root, head.root);
        return (kept == found).then_some(()).ok_or(Wrong::Forked { size, kept, found });
    }
    let (size, name) = (kept.size, continuation_name(shard, kept.size));
    let path = leading(size).filter(|_| size < head.size).ok_or(Wrong::Unlinked {
        kept: size,
        size: head.size,
    })?;
    verify_consistency(kept, head, path).map_err(|source| match source {
        Unproven::OldRoot { found, expected } => Wrong::Forked {
            size,
            kept: expected,
            found,
        },
        source => Wrong::Continued { name, size, source },
    })
}

/// Verifies that the checkpoint continues the tree signed at each change of keys, and of each log that has ended what
/// was declared to be continued.
fn continues((shard, log): (Shard, &ShardLog), head: TreeHead) -> Result<(), Wrong> {
    for (at, record) in log.keys.iter().enumerate() {
        let old = match record.changed_at().map_err(|source| Wrong::Key {
            name: key_name(shard, at),
            source,
        })? {
            // Every tree continues the empty one.
            None | Some(TreeHead { size: 0, .. }) => continue,
            Some(old) => old,
        };
        if old.size > head.size {
            return Err(Wrong::KeyOrder {
                name: key_name(shard, at),
                why: "the key was changed after the checkpoint",
            });
        }
        let name = continuation_name(shard, old.size);
        let path = match log.continued.get(&old.size) {
            Some(path) => path.as_slice(),
            None if old.size == head.size => &[],
            None => return Err(BundleError::Missing { name }.into()),
        };
        let size = old.size;
        verify_consistency(old, head, path).map_err(|source| Wrong::Continued { name, size, source })?;
    }
    Ok(())
}

/// Checks that the definitions of each event's batch are there, and no others. Reading has already verified their
/// fingerprints.
fn check_schemas(bundle: &Bundle) -> Result<(), Wrong> {
    let needed: BTreeSet<Hash> = schemas_of(&bundle.events);
    let held: BTreeSet<Hash> = bundle.schemas.keys().copied().collect();
    match needed.symmetric_difference(&held).next() {
        None => Ok(()),
        Some(fingerprint) => Err(Wrong::Schema {
            name: schema_name(*fingerprint),
        }),
    }
}

/// The fingerprints of the definitions under which events were written.
pub(crate) fn schemas_of(events: &[Proven]) -> BTreeSet<Hash> {
    events.iter().map(|event| event.excerpt.header().schema).collect()
}
