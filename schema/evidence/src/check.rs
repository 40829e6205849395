//! Checking a bundle: every hash, proof and signature, and that the answer is what follows from the events.

use std::collections::BTreeSet;

use annals_ids::Hash;
use annals_proof::{
    KeyKind, SignedNote, TreeHead, Trust, Trusted, VerifierKey,
    checkpoint::Untrusted,
    succession::{KeyRecord, NotNamed},
    verify::Unproven,
    verify_consistency, verify_inclusion,
};
use thiserror::Error;

use crate::{
    Bundle, BundleError, Proven, ReceiptError, Verdict,
    bundle::{continuation_name, event_name, key_name, schema_name},
    verdict::{Believed, KeyTrust, Subject},
    words,
    zip::ZipError,
};

/// What whoever checks knows from elsewhere. With nothing of it, only what belongs together can be shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Anchors {
    /// Keys of the log that are believed.
    pub keys: Vec<VerifierKey>,
    /// Keys of witnesses that are believed.
    pub witnesses: Vec<VerifierKey>,
    /// How many of the witnesses must have cosigned.
    pub quorum: usize,
    /// Checkpoints of the log that were kept outside of it.
    pub kept: Vec<SignedNote>,
}

/// Why something does not verify. The first thing is named that is not as it should be.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Wrong {
    /// The bundle is not whole, or contradicts itself.
    #[error(transparent)]
    Bundle(#[from] BundleError),
    /// The receipt is not whole, or contradicts itself.
    #[error(transparent)]
    Receipt(#[from] ReceiptError),
    /// A key was not named by the one before.
    #[error("{name} is not shown to be of the log's next key")]
    Key {
        /// Which file.
        name: String,
        /// Why.
        source: NotNamed,
    },
    /// A key's record does not belong there.
    #[error("{name} does not belong there: {why}")]
    KeyOrder {
        /// Which file.
        name: String,
        /// Why.
        why: &'static str,
    },
    /// None of the believed keys is the log's.
    #[error(
        "the checkpoint is signed by {found}, which none of the keys given is, or has named as the one to follow it"
    )]
    Stranger {
        /// Who has signed.
        found: String,
    },
    /// The checkpoint is not signed as it should be.
    #[error("the checkpoint is not to be believed")]
    Untrusted(#[from] Untrusted),
    /// An event is not in the log.
    #[error("the event in {name} is not shown to be in the log")]
    Event {
        /// Which file.
        name: String,
        /// Why.
        source: Unproven,
    },
    /// The checkpoint is not shown to continue an earlier one.
    #[error("the checkpoint is not shown to continue what was signed of {size} batches ({name})")]
    Continued {
        /// Which file.
        name: String,
        /// Of how many batches.
        size: u64,
        /// Why.
        source: Unproven,
    },
    /// Definitions are missing or were put in.
    #[error("{name} is missing, or is of definitions that no event needs")]
    Schema {
        /// Which file.
        name: String,
    },
    /// What was kept cannot be believed.
    #[error("the checkpoint that was kept is not one of this log")]
    Kept(#[source] Untrusted),
    /// Two signed checkpoints contradict one another.
    #[error(
        "of {size} batches the checkpoint that was kept says the root {kept}, and this one {found}: the log has signed two histories"
    )]
    Forked {
        /// Of how many batches.
        size: u64,
        /// The root that was kept.
        kept: Hash,
        /// The other one.
        found: Hash,
    },
    /// Nothing connects what was kept with this.
    #[error(
        "nothing here leads from the checkpoint of {kept} batches that was kept to this one of {size}: have the evidence made \
         with --kept and that checkpoint, and nothing else says whether they belong together"
    )]
    Unlinked {
        /// Batches of the one that was kept.
        kept: u64,
        /// Batches of this one.
        size: u64,
    },
}

impl Wrong {
    /// Whether nothing was found wrong, and nothing could be said either: what was given is no evidence at all, or what was
    /// asked for cannot be told from it.
    #[must_use]
    pub fn is_no_verdict(&self) -> bool {
        matches!(
            self,
            Self::Unlinked { .. }
                | Self::Bundle(BundleError::Zip(ZipError::Kind | ZipError::Size { .. }))
                | Self::Receipt(ReceiptError::Kind | ReceiptError::Size { .. })
        )
    }
}

/// Checks a bundle, and says what it proves.
///
/// # Errors
/// What does not verify.
pub fn check(bytes: &[u8], anchors: &Anchors) -> Result<Verdict, Wrong> {
    let (bundle, answer) = Bundle::read(bytes)?;
    let keys = history(&bundle.keys)?;
    let checkpoint = Signed {
        note: &bundle.checkpoint,
        keys: &keys,
    };
    let (trusted, key_trust) = checkpoint.check(anchors)?;
    let head = trusted.checkpoint.head;
    continues(&bundle, head)?;
    for (at, event) in bundle.events.iter().enumerate() {
        let name = event_name(at);
        included(event, head).map_err(|source| Wrong::Event { name, source })?;
    }
    check_schemas(&bundle)?;
    let kept = checkpoint.compare(anchors, head, |size| bundle.continued.get(&size).map(Vec::as_slice))?;
    Ok(Verdict {
        subject: Subject::Answer(bundle.question, answer, bundle.lexicon()?),
        realm: bundle.realm().to_owned(),
        leaves: bundle.events.iter().map(|event| event.leaf).collect(),
        believed: Believed {
            trusted,
            keys,
            key_trust,
            kept,
            witnesses: anchors.witnesses.len(),
            signatures: bundle.checkpoint.signatures().len(),
        },
    })
}

/// That an event's batch is in a tree.
pub(crate) fn included(event: &Proven, head: TreeHead) -> Result<(), Unproven> {
    verify_inclusion(event.excerpt.hash(), event.leaf.0, head, &event.path)
}

/// The log's keys: each was named by the one before.
fn history(records: &[KeyRecord]) -> Result<Vec<VerifierKey>, Wrong> {
    let mut keys: Vec<VerifierKey> = Vec::new();
    for (at, record) in records.iter().enumerate() {
        let order = |why| Wrong::KeyOrder {
            name: key_name(at),
            why,
        };
        match keys.last() {
            None if record.change.is_some() => return Err(order("the log's first key is not named by another")),
            None => {}
            Some(before) => {
                let name = key_name(at);
                record
                    .follows(before, before.name().as_str())
                    .map_err(|source| Wrong::Key { name, source })?;
            }
        }
        if keys.contains(&record.key) {
            return Err(order("the log had that key before"));
        }
        keys.push(record.key.clone());
    }
    Ok(keys)
}

/// A checkpoint, and the keys of its log up to the one that has to have signed it.
pub(crate) struct Signed<'a> {
    pub(crate) note: &'a SignedNote,
    pub(crate) keys: &'a [VerifierKey],
}

impl Signed<'_> {
    /// Whether it is to be believed, and by whose word.
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
        let last = self
            .keys
            .last()
            .map(|key| words::text(&key.to_string()))
            .unwrap_or_default();
        let trusted = self.trust(anchors, self.keys).check(self.note)?;
        let by_last = trusted.signed.iter().any(|key| Some(key) == self.keys.last());
        let anchor = self.keys.iter().rposition(|key| anchors.keys.contains(key));
        match anchor {
            _ if !by_last => Err(Wrong::Stranger { found: last }),
            None if !anchors.keys.is_empty() => Err(Wrong::Stranger { found: last }),
            None => Ok((trusted, KeyTrust::Unknown)),
            Some(at) if at + 1 == self.keys.len() => Ok((trusted, KeyTrust::Given)),
            Some(_) => Ok((trusted, KeyTrust::Named)),
        }
    }

    fn trust(&self, anchors: &Anchors, keys: &[VerifierKey]) -> Trust {
        Trust {
            origin: self.keys.last().map(|key| key.name().to_string()).unwrap_or_default(),
            keys: keys.to_vec(),
            witnesses: anchors.witnesses.clone(),
            quorum: anchors.quorum,
        }
    }

    /// Holds it against what was kept: the sizes and roots of that.
    pub(crate) fn compare<'p>(
        &self,
        anchors: &Anchors,
        head: TreeHead,
        leading: impl Fn(u64) -> Option<&'p [Hash]>,
    ) -> Result<Vec<TreeHead>, Wrong> {
        let mut compared = Vec::new();
        for note in &anchors.kept {
            let keys = [self.keys, &anchors.keys].concat();
            let trust = Trust {
                quorum: 0,
                ..self.trust(anchors, &keys)
            };
            let kept = trust.check(note).map_err(Wrong::Kept)?.checkpoint.head;
            if kept.size == head.size && kept.root != head.root {
                let (size, kept, found) = (kept.size, kept.root, head.root);
                return Err(Wrong::Forked { size, kept, found });
            }
            if kept.size != head.size {
                let (size, name) = (kept.size, continuation_name(kept.size));
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
                })?;
            }
            compared.push(kept);
        }
        Ok(compared)
    }
}

/// What was signed at each change of keys is what the checkpoint continues.
fn continues(bundle: &Bundle, head: TreeHead) -> Result<(), Wrong> {
    for (at, record) in bundle.keys.iter().enumerate() {
        let Some(change) = &record.change else { continue };
        let signed: annals_proof::Checkpoint = change.text().parse().map_err(Untrusted::Checkpoint)?;
        let old = signed.head;
        if old.size > head.size {
            return Err(Wrong::KeyOrder {
                name: key_name(at),
                why: "the key was changed after what the checkpoint is of",
            });
        }
        let name = continuation_name(old.size);
        let path = match bundle.continued.get(&old.size) {
            Some(path) => path.as_slice(),
            None if old.size == head.size => &[],
            None => return Err(BundleError::Missing { name }.into()),
        };
        let size = old.size;
        verify_consistency(old, head, path).map_err(|source| Wrong::Continued { name, size, source })?;
    }
    Ok(())
}

/// The definitions of each batch that an event is of, and no others. Reading has seen that they are what they are named after.
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
