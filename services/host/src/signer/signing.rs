//! What the signer does in a turn: it reads the tree, holds it against what it has signed, and signs, or refuses.

use annals_db::{ProveError, Prover};
use annals_ids::{Hash, Shard};
use annals_proof::{
    Checkpoint, SignedNote, SignerKey, TreeHead, Trust, VerifierKey,
    checkpoint::Untrusted,
    note::{NoteSignature, SIGNATURES},
    succession,
    verify::Unproven,
    verify_consistency,
};
use annals_store::{KeyRange, Order, Store, StoreError, Transaction, layout::checkpoints};
use succession::KeyRecord;
use thiserror::Error;

use super::folder::{Folder, FolderError};

/// How many of the newest checkpoints stay in the store, whether or not anybody has cosigned them: a witness has ten minutes to
/// bring back what it has cosigned.
pub const KEPT: usize = 64;

/// Signs the checkpoints of a shard's tree.
pub struct Signer {
    store: Store,
    shard: Shard,
    folder: Folder,
    key: SignerKey,
    records: Vec<(u64, KeyRecord)>,
    /// What was signed last.
    last: Option<Checkpoint>,
    /// Whether it was looked whether the store knows of more than the folder.
    has_compared: bool,
}

/// The archive is not what it was when it was signed. Nothing is signed any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Refusal {
    /// It is shorter.
    #[error("the archive has {found} batches, and a checkpoint was signed of {expected}: it was rolled back")]
    RolledBack {
        /// Leaves of the newest checkpoint.
        expected: u64,
        /// Leaves of the archive.
        found: u64,
    },
    /// What it began with is something else.
    #[error(
        "the first {size} batches of the archive have the root {found}, and a checkpoint was signed with {expected}: they were changed"
    )]
    Rewritten {
        /// Leaves of the newest checkpoint.
        size: u64,
        /// Its root.
        expected: Hash,
        /// That of the archive.
        found: Hash,
    },
    /// Tiles, leaves and the stored tree are not of one archive.
    #[error(
        "the tree stored with the archive of {size} batches has the root {expected}, and its leaves and tiles have {found}: one of them was changed"
    )]
    Contradictory {
        /// Leaves of the archive.
        size: u64,
        /// The root that is stored.
        expected: Hash,
        /// What the leaves come to.
        found: Hash,
    },
    /// The proof does not hold.
    #[error("the archive is not shown to continue what was signed: {0}")]
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
    /// The store.
    #[error("checkpoints could not be read or written")]
    Store(#[from] StoreError),
    /// The signer's files.
    #[error("the signer's files cannot be used")]
    Folder(#[from] FolderError),
    /// A checkpoint that should be ours is not.
    #[error("the newest checkpoint in the signer's folder is not one of its own key: restore the folder as a whole")]
    Foreign(#[from] Untrusted),
    /// The next key is of another log.
    #[error("the next key is named {next}, and the log {origin}: remove the file next-key, and rotate again")]
    OtherName {
        /// The next key's name.
        next: String,
        /// The log's.
        origin: String,
    },
}

impl Signer {
    /// Signs with what a folder has.
    ///
    /// # Errors
    /// When the files are not what they should be.
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
        if let Some(note) = signer.folder.checkpoint()? {
            signer.last = Some(signer.trust().check(&note)?.checkpoint);
        }
        Ok(signer)
    }

    /// The log's name, which is that of its keys.
    #[must_use]
    pub fn origin(&self) -> String {
        self.key.verifier().name().to_string()
    }

    /// Whom this signer believes about its own log: itself, and the keys before.
    fn trust(&self) -> Trust {
        let former = self.records.iter().map(|(_, record)| record.key.clone());
        Trust {
            origin: self.origin(),
            keys: former.chain([self.key.verifier()]).collect(),
            witnesses: Vec::new(),
            quorum: 0,
        }
    }

    /// Signs the tree as it is, if it has grown or the key is to be changed: what was signed.
    ///
    /// # Errors
    /// When it must not be signed, or that cannot be known.
    pub async fn turn(&mut self) -> Result<Option<SignedNote>, SignError> {
        self.compare().await?;
        let next = self.next_key()?;
        let mut prover = Prover::begin(self.store.clone(), self.shard).await?;
        let head = prover.head();
        let is_new = self.last.as_ref().is_none_or(|last| last.head != head);
        // A key is changed with the next batch: what was signed of this tree may have been cosigned.
        if head.size == 0 && self.last.is_none() || !is_new {
            return Ok(None);
        }
        self.check(&mut prover, head).await?;
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
        // A crash from here on is found out: whatever was signed, the next one continues it.
        self.folder.remember(&note)?;
        self.last = Some(checkpoint);
        self.keep_records(head, next.as_ref(), &note)?;
        self.publish(head.size, &note).await?;
        if let Some(next) = next {
            self.folder.change_keys()?;
            self.key = next;
        }
        Ok(Some(note))
    }

    /// The key that is to follow, if one is; one that has followed already only takes its place.
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

    /// Holds the tree against what was signed last.
    async fn check(&self, prover: &mut Prover, head: TreeHead) -> Result<(), SignError> {
        let last = self.last.as_ref().map(|last| last.head);
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

    /// Remembers the log's first key, and each that follows.
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

    /// The store may know of a later checkpoint than the folder: an older copy of that was put back. And what was signed may
    /// not have reached the store.
    async fn compare(&mut self) -> Result<(), SignError> {
        if self.has_compared {
            return Ok(());
        }
        let known = newest(&self.store, self.shard).await?;
        let known = known.and_then(|(_, note)| Some(self.trust().check(&note).ok()?.checkpoint));
        let own = self.last.as_ref().map_or(0, |last| last.head.size);
        match known {
            Some(known) if known.head.size > own => self.last = Some(known),
            _ => {
                if let (Some(last), Some(note)) = (&self.last, self.folder.checkpoint()?) {
                    self.publish(last.head.size, &note).await?;
                }
            }
        }
        self.has_compared = true;
        Ok(())
    }

    /// Puts a checkpoint into the store, with the records of keys, and removes old ones that nobody has cosigned and by which
    /// no key was changed. One that is there already may have cosignatures, and stays.
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
                .get_range(&checkpoints::checkpoints(shard), KEPT + 1, Order::Reverse)
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

/// The newest checkpoint in a store, as it lies there, and the size of its tree.
///
/// # Errors
/// When the store does not answer, or it is no note.
pub async fn newest(store: &Store, shard: Shard) -> Result<Option<(u64, SignedNote)>, StoreError> {
    let read = |transaction: Transaction| async move {
        let page = transaction
            .get_range(&checkpoints::checkpoints(shard), 1, Order::Reverse)
            .await?;
        let Some((key, value)) = page.rows.first() else {
            return Ok(None);
        };
        Ok(Some((checkpoints::size_of(key)?, stored_note(value)?)))
    };
    store.read(read).await
}

/// The checkpoint of so many leaves in a store, as it lies there.
///
/// # Errors
/// When the store does not answer, or it is no note.
pub async fn of_size(store: &Store, shard: Shard, size: u64) -> Result<Option<SignedNote>, StoreError> {
    let key = &checkpoints::checkpoint_key(shard, size);
    let value = store
        .read(|transaction: Transaction| async move { transaction.get(key).await })
        .await?;
    value.map(|value| stored_note(&value)).transpose()
}

/// The checkpoint in a store that is best shown to others of those of at least `least` leaves: the newest that somebody has
/// cosigned, or else the newest. Where there is none, the size of the newest, or 0.
///
/// # Errors
/// When the store does not answer, or one is no note.
pub async fn covering(store: &Store, shard: Shard, least: u64) -> Result<Result<SignedNote, u64>, StoreError> {
    let range = &KeyRange::new(
        checkpoints::checkpoint_key(shard, least),
        checkpoints::checkpoints(shard).end,
    );
    let read = |transaction: Transaction| async move {
        let page = transaction.get_range(range, LOOKED_AT, Order::Reverse).await?;
        let notes = page.rows.iter().map(|(_, value)| stored_note(value));
        notes.collect::<Result<Vec<_>, _>>()
    };
    let mut notes: Vec<SignedNote> = store.read(read).await?;
    // The log's own signatures have its name, which is the first line.
    let is_cosigned = |note: &SignedNote| {
        let origin = note.text().lines().next();
        note.signatures().iter().any(|held| Some(held.name.as_str()) != origin)
    };
    if notes.is_empty() {
        let newest = newest(store, shard).await?;
        return Ok(Err(newest.map_or(0, |(size, _)| size)));
    }
    let best = notes.iter().position(is_cosigned).unwrap_or(0);
    Ok(Ok(notes.swap_remove(best)))
}

/// Adds to the checkpoint of `size` leaves what these witnesses have signed of `note`: how many that is. Nothing is added to
/// another checkpoint than the one they have signed.
///
/// # Errors
/// When the store does not answer.
pub async fn add_cosignatures(
    store: &Store,
    shard: Shard,
    size: u64,
    note: &SignedNote,
    witnesses: &[VerifierKey],
) -> Result<usize, StoreError> {
    let of = |witness: &VerifierKey, signature: &NoteSignature| {
        (witness.name(), witness.id()) == (&signature.name, signature.id)
    };
    let signatures = note.signatures().iter();
    let added: Vec<&NoteSignature> = signatures
        .filter(|signature| witnesses.iter().any(|witness| of(witness, signature)))
        .collect();
    let (key, added) = (&checkpoints::checkpoint_key(shard, size), &added);
    let work = |transaction: Transaction| async move {
        let Some(value) = transaction.get(key).await? else {
            return Ok::<_, StoreError>(0);
        };
        let mut held = stored_note(&value)?;
        if held.text() != note.text() || held.signatures().len() + added.len() > SIGNATURES {
            return Ok(0);
        }
        added.iter().for_each(|signature| held.add((*signature).clone()));
        transaction.set(key, held.to_string().as_bytes())?;
        Ok(added.len())
    };
    store.run_repeatable(work).await.map(|(count, _)| count)
}

fn stored_note(value: &[u8]) -> Result<SignedNote, StoreError> {
    SignedNote::parse(value).map_err(|error| StoreError::Corrupt(error.to_string().into()))
}

/// The records of all keys in a store, as they lie there.
///
/// # Errors
/// When the store does not answer, or one is none.
pub async fn key_records(store: &Store, shard: Shard) -> Result<Vec<(u64, KeyRecord)>, StoreError> {
    let read = |transaction: Transaction| async move {
        let page = transaction
            .get_range(&checkpoints::signers(shard), RECORDS_READ, Order::Forward)
            .await?;
        let records = page.rows.iter().map(|(key, value)| {
            let record = KeyRecord::parse(value).map_err(|error| StoreError::Corrupt(error.to_string().into()))?;
            Ok((checkpoints::size_of(key)?, record))
        });
        records.collect()
    };
    store.read(read).await
}

/// Most keys of a log that are read: one a month for eight decades.
const RECORDS_READ: usize = 1_000;

/// Checkpoints among which one is looked for that somebody has cosigned: all that are kept anyway, and as many besides.
const LOOKED_AT: usize = 2 * KEPT;
