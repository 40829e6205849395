//! A turn of the signer: it reads the tree, compares it with what it has signed, and signs or refuses.

mod ending;
mod stored_heads;

use annals_db::{ProveError, Prover};
use annals_ids::{Hash, Shard};
use annals_proof::{
    Checkpoint, SignedNote, SignerKey, TreeHead, Trust, checkpoint::Untrusted, succession, verify::Unproven,
    verify_consistency,
};
use annals_store::{ScanOrder, Store, StoreError, Transaction, layout::checkpoints};
use succession::KeyRecord;
use thiserror::Error;

use super::{
    folder::{Folder, FolderError},
    stored::{KEPT, key_records},
};
use stored_heads::StoredHeads;

/// Why a decision to end a log is dropped.
const CONTINUES: &str = "the archive continues what this log has signed";

/// Signs the checkpoints of a shard's tree.
pub struct Signer {
    store: Store,
    shard: Shard,
    folder: Folder,
    key: SignerKey,
    records: Vec<(u64, KeyRecord)>,
    /// The last signed tree, or else the tree with which this log continues an ended one.
    last: Option<TreeHead>,
    /// Whether the folder was compared with the store, which may have more.
    has_compared: bool,
}

/// The archive differs from what was signed. Nothing is signed any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Refusal {
    /// It has fewer batches.
    #[error("the archive has {found} batches, and a checkpoint was signed of {expected}: it was rolled back")]
    RolledBack {
        /// Leaves of the newest checkpoint.
        expected: u64,
        /// Leaves of the archive.
        found: u64,
    },
    /// Its first batches differ.
    #[error(
        "the first {size} batches of the archive have the root {found}, and a checkpoint was signed with {expected}: \
         they were changed"
    )]
    Rewritten {
        /// Leaves of the newest checkpoint.
        size: u64,
        /// Its root.
        expected: Hash,
        /// The root in the archive.
        found: Hash,
    },
    /// Tiles, leaves and the stored tree do not belong to one archive.
    #[error(
        "the tree stored with the archive of {size} batches has the root {expected}, and its leaves and tiles have \
         {found}: one of them was changed"
    )]
    Contradictory {
        /// Leaves of the archive.
        size: u64,
        /// The stored root.
        expected: Hash,
        /// The root of the leaves.
        found: Hash,
    },
    /// The consistency proof is invalid.
    #[error("no proof that the archive continues what was signed: {0}")]
    Unproven(Unproven),
}

/// Why nothing was signed.
#[derive(Debug, Error)]
pub enum SignError {
    /// The archive must not be signed.
    #[error("no checkpoint is signed")]
    Refused(#[from] Refusal),
    /// The archive could not be read.
    #[error("the archive could not be read")]
    Prove(#[from] ProveError),
    /// The store could not be read or written.
    #[error("checkpoints could not be read or written")]
    Store(#[from] StoreError),
    /// The signer's files cannot be used.
    #[error("the signer's files cannot be used")]
    Folder(#[from] FolderError),
    /// The checkpoint in the folder is not signed by our key.
    #[error("the newest checkpoint in the signer's folder is not one of its own key: restore the folder as a whole")]
    Foreign(#[from] Untrusted),
    /// The store has a record of a key that the folder does not have.
    #[error(
        "the store has a record of the key {stored}, which signs this log from {from} batches on, and the signer's \
         folder has {own}: the folder was lost, or is an older copy. Restore the newest copy of it. If there is none, \
         this log is at its end: a realm that is restored from a backup begins another"
    )]
    OtherKey {
        /// The size from which on that key signs.
        from: u64,
        /// The key in the store.
        stored: String,
        /// The key in the folder.
        own: String,
    },
    /// The key has been followed by another.
    #[error(
        "the key {key} in the signer's folder is retired: its successor is {last}. Restore the newest copy of the \
         folder as a whole"
    )]
    Retired {
        key: String,
        /// The last key of the log.
        last: String,
    },
    /// The archive differs from what was signed, after an adoption of the realm's log.
    #[error(
        "no checkpoint is signed since the realm has adopted its log (adoption {adoption}): what was archived after \
         that need not have the order that was signed. To declare lost what was signed and is not in the archive, and \
         to begin another log with the rest, run annals checkpoint new-log"
    )]
    Adopted {
        /// The number of the adoption.
        adoption: u32,
        /// How the archive differs.
        source: Refusal,
    },
    /// The statement that the log has ended cannot be stored.
    #[error(
        "the statement that the log has ended would be too long to be stored: remove the file next-log, and repeat \
         annals checkpoint new-log with a shorter reason"
    )]
    LongStatement,
    /// The next log has the name of this one, or of one that has ended.
    #[error(
        "the next log is named {next}, which is the name of this log or of one that has ended: remove the file \
         next-log, and repeat annals checkpoint new-log with another --name"
    )]
    UsedName {
        /// The next log's name.
        next: String,
    },
    /// The next key belongs to another log.
    #[error("the next key is named {next}, and the log {origin}: remove the file next-key, and rotate again")]
    OtherName {
        /// The next key's name.
        next: String,
        /// The log's.
        origin: String,
    },
}

impl SignError {
    /// Whether signing must stop: the archive or the key is wrong, and waiting does not help.
    #[must_use]
    pub fn is_refusal(&self) -> bool {
        matches!(
            self,
            Self::Refused(_)
                | Self::Adopted { .. }
                | Self::OtherKey { .. }
                | Self::Retired { .. }
                | Self::UsedName { .. }
        )
    }
}

impl Signer {
    /// A signer with the files of a folder.
    ///
    /// # Errors
    /// When the files cannot be used.
    pub fn begin(store: Store, shard: Shard, folder: Folder, key: SignerKey) -> Result<Self, SignError> {
        let records = folder.records()?;
        let mut signer = Self {
            store,
            shard,
            folder,
            key,
            records,
            last: None,
            has_compared: false,
        };
        signer.finish_log_end()?;
        signer.last = match signer.folder.checkpoint()? {
            Some(note) => Some(signer.trust().check(&note)?.checkpoint.head),
            None => signer.continued(),
        };
        Ok(signer)
    }

    /// The log's name, which is the name of its keys.
    #[must_use]
    pub fn origin(&self) -> String {
        self.key.verifier().name().to_string()
    }

    /// The keys trusted for its own log: the current one, and those before.
    fn trust(&self) -> Trust {
        let former = self.records.iter().map(|(_, record)| &record.key);
        Trust::in_log(&self.origin(), former.chain([&self.key.verifier()]))
    }

    /// Signs the tree, if it has grown or the key is to be changed; returns what was signed.
    ///
    /// # Errors
    /// When it must not be signed, or the checks could not be made.
    pub async fn turn(&mut self) -> Result<Option<SignedNote>, SignError> {
        self.finish_log_end()?;
        self.compare().await?;
        let next = self.next_key()?;
        self.check_key()?;
        let mut prover = Prover::begin(self.store.clone(), self.shard).await?;
        let head = prover.head();
        // A key is changed with the next batch: the checkpoint of this tree may have been cosigned.
        if head.size == 0 && self.last.is_none() || self.last == Some(head) {
            self.drop_decision(CONTINUES)?;
            return Ok(None);
        }
        if let Err(error) = self.check(&mut prover, head).await {
            self.end_log(&mut prover, error).await?;
            return Ok(None);
        }
        self.drop_decision(CONTINUES)?;
        // The first batch of a log is signed by the key that began it.
        let next = next.filter(|_| self.records.iter().all(|(from, _)| *from != head.size));
        let checkpoint = Checkpoint {
            origin: self.origin(),
            head,
            extensions: next.iter().map(|next| succession::naming(&next.verifier())).collect(),
        };
        let mut note =
            SignedNote::new(checkpoint.to_string()).expect("invariant: a key's name has no control characters");
        for key in [Some(&self.key), next.as_ref()].into_iter().flatten() {
            note.sign(key, 0);
        }
        // A crash from here on is recovered: the next checkpoint continues whatever was signed.
        self.folder.remember(&note)?;
        self.last = Some(head);
        self.keep_records(head, next.as_ref(), &note)?;
        // If the store fails now, the next turn writes what it lacks.
        self.has_compared = false;
        self.publish(head.size, &note).await?;
        self.has_compared = true;
        if let Some(next) = next {
            self.folder.change_keys()?;
            self.key = next;
        }
        Ok(Some(note))
    }

    /// The next key, if there is one; a key that signs already only replaces the old file.
    fn next_key(&mut self) -> Result<Option<SignerKey>, SignError> {
        let Some(next) = self.folder.next_key()? else {
            return Ok(None);
        };
        let verifier = next.verifier();
        if verifier.name() != self.key.verifier().name() {
            let (next, origin) = (verifier.name().to_string(), self.origin());
            return Err(SignError::OtherName { next, origin });
        }
        if self.records.last().is_some_and(|(_, record)| record.key == verifier) {
            self.folder.change_keys()?;
            self.key = next;
            return Ok(None);
        }
        Ok(Some(next))
    }

    /// Checks that the current key is the last one on record.
    fn check_key(&self) -> Result<(), SignError> {
        let key = self.key.verifier();
        match self.records.last() {
            Some((_, last)) if last.key != key => Err(SignError::Retired {
                key: key.to_string(),
                last: last.key.to_string(),
            }),
            _ => Ok(()),
        }
    }

    /// Checks the tree against the last signed checkpoint.
    async fn check(&self, prover: &mut Prover, head: TreeHead) -> Result<(), SignError> {
        let last = self.last;
        if let Some(last) = last {
            if head.size < last.size {
                let (expected, found) = (last.size, head.size);
                return Err(Refusal::RolledBack { expected, found }.into());
            }
            let found = prover.root(last.size).await?;
            if found != last.root {
                let (size, expected) = (last.size, last.root);
                return Err(Refusal::Rewritten { size, expected, found }.into());
            }
        }
        let (size, expected, found) = (head.size, head.root, prover.root(head.size).await?);
        if found != expected {
            return Err(Refusal::Contradictory { size, expected, found }.into());
        }
        if let Some(last) = last {
            let proof = prover.consistency(last.size, head.size).await?;
            verify_consistency(last, head, &proof).map_err(Refusal::Unproven)?;
        }
        Ok(())
    }

    /// Stores the record of the log's first key, and of each that follows.
    fn keep_records(&mut self, head: TreeHead, next: Option<&SignerKey>, note: &SignedNote) -> Result<(), SignError> {
        if self.records.is_empty() {
            let (key, change) = (self.key.verifier(), None);
            self.keep(0, KeyRecord { key, change })?;
        }
        if let Some(next) = next {
            let (key, change) = (next.verifier(), Some(note.clone()));
            self.keep(head.size, KeyRecord { key, change })?;
        }
        Ok(())
    }

    fn keep(&mut self, from: u64, record: KeyRecord) -> Result<(), SignError> {
        self.folder.record(from, &record)?;
        self.records.retain(|(other, _)| *other != from);
        self.records.push((from, record));
        Ok(())
    }

    /// Compares the folder with the store. The store may have later keys and checkpoints, when an older copy of the
    /// folder was restored; and the last signed checkpoint may not have reached the store.
    async fn compare(&mut self) -> Result<(), SignError> {
        if self.has_compared {
            return Ok(());
        }
        // What the folder lacks must be found before anything of the store is replaced.
        let first = self.previous().map_or(0, |end| end.first_size());
        self.compare_keys(first).await?;
        self.publish_log_end().await?;
        self.compare_keys(u64::MAX).await?;
        let known = self.newest_own().await?;
        let own = self.last.map_or(0, |last| last.size);
        match known {
            Some(known) if known.size > own => self.last = Some(known),
            _ => {
                if let (Some(last), Some(note)) = (self.last, self.folder.checkpoint()?) {
                    self.publish(last.size, &note).await?;
                }
            }
        }
        self.has_compared = true;
        Ok(())
    }

    /// Checks that the folder has all keys that the store has on record. Otherwise a key that was replaced long ago
    /// could sign, or another log would be started in place of this one. Keys that sign from `before_size` batches on are not
    /// compared.
    async fn compare_keys(&self, before_size: u64) -> Result<(), SignError> {
        let stored = key_records(&self.store, self.shard).await?;
        for (from, stored) in stored.into_iter().filter(|(from, _)| *from < before_size) {
            let own = self.records.iter().find(|(own, _)| *own == from);
            let own = match own {
                Some((_, record)) => Some(record.key.clone()),
                // The folder has signed nothing yet: the first record will be of its key.
                None if from == 0 && self.records.is_empty() => Some(self.key.verifier()),
                None => None,
            };
            if own.as_ref() != Some(&stored.key) {
                return Err(SignError::OtherKey {
                    from,
                    stored: stored.key.to_string(),
                    own: own.map_or_else(|| "none".to_owned(), |own| own.to_string()),
                });
            }
        }
        Ok(())
    }

    /// The tree of the newest checkpoint in the store that is this log's.
    async fn newest_own(&self) -> Result<Option<TreeHead>, StoreError> {
        let mut stored = StoredHeads::of(self, vec![self.trust()]);
        while let Some(heads) = stored.page(&self.store).await? {
            if let Some(newest) = heads.first() {
                return Ok(Some(*newest));
            }
        }
        Ok(None)
    }

    /// Writes a checkpoint to the store, with the records of keys, and deletes old ones that have no cosignature and
    /// changed no key. An existing checkpoint may have cosignatures, and stays.
    async fn publish(&self, size: u64, note: &SignedNote) -> Result<(), StoreError> {
        let (shard, text, records) = (self.shard, &note.to_string(), &self.records);
        let signed = note.text();
        let work = |transaction: Transaction| async move {
            let key = checkpoints::checkpoint_key(shard, size);
            let held = transaction
                .get(&key)
                .await?
                .and_then(|held| SignedNote::parse(&held).ok());
            if held.is_none_or(|held| held.text() != signed) {
                transaction.set(&key, text.as_bytes())?;
            }
            for (from, record) in records {
                transaction.set(&checkpoints::signer_key(shard, *from), record.to_string().as_bytes())?;
            }
            let page = transaction
                .get_range(&checkpoints::checkpoints(shard), KEPT + 1, ScanOrder::Reverse)
                .await?;
            if let Some((old, value)) = page.rows.get(KEPT)
                && SignedNote::parse(value).is_ok_and(|note| note.signatures().len() == 1)
            {
                transaction.clear(old)?;
            }
            Ok::<_, StoreError>(())
        };
        self.store.run_repeatable(work).await.map(|_| ())
    }
}
