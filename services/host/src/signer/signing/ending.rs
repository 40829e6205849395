//! The end of a log whose archive was lost, and the beginning of the one that continues the rest (`docs/proofs.md`).
//!
//! The record of the next log's first key is the commit point: once it is in the folder, the ended log's key signs
//! nothing more, and whatever a crash leaves undone is completed at the next turn.

use std::collections::BTreeSet;

use annals_db::{
    Prover,
    adopting::{AdoptionRecord, AdoptionStage},
};
use annals_event::Adoption;
use annals_proof::{Frontier, KeyName, LogEnd, SignedNote, TreeHead, Trust, VerifierKey, succession::KeyRecord};
use annals_store::{KeyRange, StoreError, Transaction, layout::checkpoints};

use super::{Refusal, SignError, Signer, stored_heads::StoredHeads};
use crate::{
    clock,
    signer::folder::{FolderError, NextLog},
};

impl Signer {
    /// Ends this log, if the archive was adopted and an operator has decided it; otherwise returns why nothing is
    /// signed.
    pub(super) async fn end_log(&mut self, prover: &mut Prover, error: SignError) -> Result<(), SignError> {
        // Contradictory parts of a tree are damage, which no log can continue.
        let (SignError::Refused(refusal @ (Refusal::RolledBack { .. } | Refusal::Rewritten { .. })), Some(signed)) =
            (&error, self.last)
        else {
            return Err(error);
        };
        let Some(adoption) = self.adoption_before(signed).await? else {
            return Err(error);
        };
        let Some(next) = self.folder.next_log()? else {
            let (adoption, source) = (adoption.number, *refusal);
            return Err(SignError::Adopted { adoption, source });
        };
        if self.is_used(next.key.verifier().name()) {
            let next = next.key.verifier().name().to_string();
            return Err(SignError::UsedName { next });
        }
        let end = LogEnd {
            ended: self.key.verifier().name().clone(),
            signed,
            continued: self.continued_part(prover).await?,
            next: next.key.verifier(),
            adoption: adoption.number,
            at: clock::wall(),
            operator: next.operator.clone(),
            reason: next.reason.clone(),
            lost_keys: Vec::new(),
        };
        self.record_end(end, &next)?;
        self.finish_log_end()?;
        self.has_compared = false;
        self.compare().await
    }

    /// Signs and stores the statement that this log has ended.
    fn record_end(&mut self, mut end: LogEnd, next: &NextLog) -> Result<(), SignError> {
        if self.records.is_empty() {
            let (key, change) = (self.key.verifier(), None);
            self.keep(0, KeyRecord { key, change })?;
        }
        let first = end.first_size();
        let lost = self.records.iter().filter(|(from, _)| *from >= first);
        end.lost_keys = lost.map(|(_, record)| record.clone()).collect();
        // The file may have been edited.
        let mut note = SignedNote::new(end.to_string()).map_err(|_| FolderError::Text)?;
        LogEnd::parse(note.text()).map_err(|_| FolderError::Text)?;
        note.sign(&self.key, 0);
        note.sign(&next.key, 0);
        let (key, change) = (next.key.verifier(), Some(note));
        self.folder.record(first, &KeyRecord { key, change })?;
        self.records = self.folder.records()?;
        tracing::warn!(
            ended = %end.ended, signed = end.signed.size, continued = end.continued.size, next = %end.next,
            "the log has ended: what it has signed beyond the continued batches is declared lost"
        );
        Ok(())
    }

    /// Completes the change to a log whose first key is on record.
    pub(super) fn finish_log_end(&mut self) -> Result<(), FolderError> {
        let Some(next) = self.folder.next_log()? else {
            return Ok(());
        };
        let key = next.key.verifier();
        if self.records.iter().any(|(_, record)| record.key == key) {
            self.folder.change_logs(&next)?;
            self.key = next.key;
            self.last = self.continued();
        }
        Ok(())
    }

    /// Drops the decision to end a log that the archive continues: it would otherwise apply to another loss, later.
    pub(super) fn drop_needless_end(&self) -> Result<(), FolderError> {
        if self.folder.next_log()?.is_some() {
            self.folder.drop_next_log()?;
            tracing::warn!(
                log = self.origin(),
                "the decision of annals checkpoint new-log was dropped: the archive continues what this log has signed"
            );
        }
        Ok(())
    }

    /// The end of the log that this one continues, if it continues one.
    pub(super) fn previous(&self) -> Option<LogEnd> {
        let newest_first = self.records.iter().rev();
        newest_first
            .filter_map(|(_, record)| record.log_end().ok().flatten())
            .next()
    }

    /// The tree with which this log continues an ended one.
    pub(super) fn continued(&self) -> Option<TreeHead> {
        self.previous().map(|end| end.continued)
    }

    /// Writes the first key of this log to a store that does not have it, and deletes from the store what was declared
    /// lost.
    pub(super) async fn publish_log_end(&self) -> Result<(), StoreError> {
        let Some(end) = self.previous() else { return Ok(()) };
        let (shard, first, records) = (self.shard, end.first_size(), &self.records);
        let is_lost = |value: &[u8]| {
            let stored = KeyRecord::parse(value);
            stored.is_ok_and(|stored| end.lost_keys.contains(&stored))
        };
        let is_lost = &is_lost;
        let work = |transaction: Transaction| async move {
            let held = transaction.get(&checkpoints::signer_key(shard, first)).await?;
            if held.is_some_and(|held| !is_lost(&held)) {
                return Ok::<_, StoreError>(());
            }
            for (begin, all) in [
                (
                    checkpoints::checkpoint_key(shard, first),
                    checkpoints::checkpoints(shard),
                ),
                (checkpoints::signer_key(shard, first), checkpoints::signers(shard)),
            ] {
                transaction.clear_range(&KeyRange::new(begin, all.end))?;
            }
            for (from, record) in records {
                transaction.set(&checkpoints::signer_key(shard, *from), record.to_string().as_bytes())?;
            }
            Ok(())
        };
        self.store.run_repeatable(work).await.map(|_| ())
    }

    /// The newest adoption, if it can be why the archive does not continue the tree that was signed last: the archive was
    /// smaller at that time, and no log has ended for it yet.
    async fn adoption_before(&self, signed: TreeHead) -> Result<Option<Adoption>, StoreError> {
        let read = |transaction: Transaction| async move { AdoptionRecord::read_newest(&transaction).await };
        let newest = self.store.read(read).await?;
        let newest = newest.filter(|record| record.stage != AdoptionStage::Unfinished);
        let used = self.previous().map(|end| end.adoption);
        Ok(newest
            .map(|record| record.adoption)
            .filter(|adoption| adoption.leaves.0 < signed.size && used.is_none_or(|used| adoption.number > used)))
    }

    /// Whether this log, or one that it continues, has that name.
    fn is_used(&self, name: &KeyName) -> bool {
        self.all_logs().iter().any(|log| log.origin == name.as_str())
    }

    /// This log, and those that it continues.
    fn all_logs(&self) -> Vec<Trust> {
        let mut keys = vec![self.key.verifier()];
        for (_, record) in &self.records {
            let end = record.log_end().ok().flatten();
            keys.extend(end.into_iter().flat_map(|end| end.lost_keys).map(|lost| lost.key));
            keys.push(record.key.clone());
        }
        let names: BTreeSet<&KeyName> = keys.iter().map(VerifierKey::name).collect();
        let trust = |name: &KeyName| Trust {
            origin: name.to_string(),
            keys: keys.clone(),
            witnesses: Vec::new(),
            quorum: 0,
        };
        names.into_iter().map(trust).collect()
    }

    /// The largest signed tree that the archive continues; the empty one if none is stored.
    async fn continued_part(&self, prover: &mut Prover) -> Result<TreeHead, SignError> {
        let archive = prover.head();
        let mut stored = StoredHeads::of(self, self.all_logs());
        while let Some(heads) = stored.page(&self.store).await? {
            for head in heads.into_iter().filter(|head| head.size <= archive.size) {
                if prover.root(head.size).await? == head.root {
                    return Ok(head);
                }
            }
        }
        Ok(TreeHead {
            size: 0,
            root: Frontier::new().root(),
        })
    }
}
