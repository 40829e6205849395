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
use annals_ids::WallTime;
use annals_proof::{Frontier, KeyName, LogEnd, SignedNote, TreeHead, Trust, VerifierKey, succession::KeyRecord};
use annals_store::{KeyRange, ScanOrder, StoreError, Transaction, layout::checkpoints, limits};

use super::{Refusal, SignError, Signer, stored_heads::StoredHeads};
use crate::{
    clock,
    signer::{
        folder::{FolderError, NextLog},
        stored::RECORDS_READ,
    },
};

impl Signer {
    /// Ends this log, if the archive was adopted and an operator has decided it since; otherwise returns why nothing is
    /// signed. A decision that does not apply is dropped: it would otherwise apply to another loss, later.
    pub(super) async fn end_log(&mut self, prover: &mut Prover, error: SignError) -> Result<(), SignError> {
        let (SignError::Refused(refusal @ (Refusal::RolledBack { .. } | Refusal::Rewritten { .. })), Some(signed)) =
            (&error, self.last)
        else {
            return Err(error);
        };
        // A tree whose parts contradict one another is damaged, and no log can continue it.
        let head = prover.head();
        let found = prover.root(head.size).await?;
        if found != head.root {
            let (size, expected) = (head.size, head.root);
            return Err(Refusal::Contradictory { size, expected, found }.into());
        }
        let Some(adoption) = self.adoption_before(signed).await? else {
            self.drop_decision("no adoption can be the reason")?;
            return Err(error);
        };
        let adopted = SignError::Adopted {
            adoption: adoption.number,
            source: *refusal,
        };
        let Some(next) = self.folder.next_log()? else {
            return Err(adopted);
        };
        if next.at < adoption.at {
            self.drop_decision("it was made before the adoption")?;
            return Err(adopted);
        }
        if self.is_used(next.key.verifier().name()) {
            let next = next.key.verifier().name().to_string();
            return Err(SignError::UsedName { next });
        }
        let end = LogEnd {
            ended: self.key.verifier().name().clone(),
            signed,
            continued: self.continued_part(prover).await?,
            next: next.key.verifier(),
            adoption: (adoption.number, adoption.at),
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
        let mut note = SignedNote::new(end.to_string()).map_err(|_| SignError::LongStatement)?;
        note.sign(&self.key, 0);
        note.sign(&next.key, 0);
        let (key, change) = (next.key.verifier(), Some(note));
        let record = KeyRecord { key, change };
        // It must be possible to store and to read it, before anything is lost.
        let text = record.to_string();
        if text.len() > limits::VALUE_BYTES || KeyRecord::parse(text.as_bytes()).as_ref() != Ok(&record) {
            return Err(SignError::LongStatement);
        }
        self.folder.record(first, &record)?;
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
        // An error may have come between writing the record and reading it again.
        self.records = self.folder.records()?;
        let key = next.key.verifier();
        if self.records.iter().any(|(_, record)| record.key == key) {
            self.folder.change_logs(&next)?;
            self.key = next.key;
            self.last = self.continued();
        }
        Ok(())
    }

    /// Drops the decision to end this log, if there is one.
    pub(super) fn drop_decision(&self, why: &str) -> Result<(), FolderError> {
        if self.folder.next_log()?.is_some() {
            self.folder.drop_next_log()?;
            tracing::warn!(
                log = self.origin(),
                "the decision of annals checkpoint new-log was dropped: {why}"
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
    /// lost. Nothing is deleted from a store that lacks the adoption, as it may have what was lost; nor from one with a
    /// key that the folder has never known.
    pub(super) async fn publish_log_end(&self) -> Result<(), StoreError> {
        let Some(end) = self.previous() else { return Ok(()) };
        let (shard, first, records, end) = (self.shard, end.first_size(), &self.records, &end);
        let is_known = |record: &KeyRecord| {
            let is_own = records.iter().any(|(_, own)| own == record);
            is_own || end.lost_keys.contains(record)
        };
        let is_known = &is_known;
        let work = |transaction: Transaction| async move {
            let begin = checkpoints::signer_key(shard, first);
            let from_first = KeyRange::new(begin, checkpoints::signers(shard).end);
            let page = transaction
                .get_range(&from_first, RECORDS_READ, ScanOrder::Forward)
                .await?;
            let stored: Vec<Option<KeyRecord>> = page
                .rows
                .iter()
                .map(|(_, value)| KeyRecord::parse(value).ok())
                .collect();
            let has_first = stored.iter().flatten().any(|record| record.key == end.next);
            let all_known = stored.iter().all(|record| record.as_ref().is_some_and(is_known));
            let adoptions = AdoptionRecord::read_all(&transaction).await?;
            let is_named = |record: &AdoptionRecord| (record.adoption.number, record.adoption.at) == end.adoption;
            if has_first || !all_known || !adoptions.iter().any(is_named) {
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

    /// The newest adoption that can be why the archive does not continue the tree that was signed last: the archive was
    /// smaller at that time, and no log has ended for it yet.
    async fn adoption_before(&self, signed: TreeHead) -> Result<Option<Adoption>, StoreError> {
        let read = |transaction: Transaction| async move { AdoptionRecord::read_all(&transaction).await };
        let records = self.store.read(read).await?.into_iter();
        let all = self.all_records();
        let ends = all.iter().filter_map(|record| record.log_end().ok().flatten());
        let used: BTreeSet<(u32, WallTime)> = ends.map(|end| end.adoption).collect();
        let finished = records.filter(|record| record.stage != AdoptionStage::Unfinished);
        let mut unused = finished
            .map(|record| record.adoption)
            .filter(|adoption| adoption.leaves.0 < signed.size && !used.contains(&(adoption.number, adoption.at)));
        Ok(unused.next_back())
    }

    /// The records of this log's keys and of those of the logs that it continues, oldest first.
    fn all_records(&self) -> Vec<KeyRecord> {
        let records = self.records.iter();
        records
            .flat_map(|(_, record)| record.with_lost().unwrap_or_default())
            .collect()
    }

    /// This log, and those that it continues.
    fn all_logs(&self) -> Vec<Trust> {
        let mut keys = vec![self.key.verifier()];
        keys.extend(self.all_records().into_iter().map(|record| record.key));
        let names: BTreeSet<&KeyName> = keys.iter().map(VerifierKey::name).collect();
        let trust = |name: &KeyName| Trust::in_log(name.as_str(), &keys);
        names.into_iter().map(trust).collect()
    }

    /// Whether this log, or one that it continues, has that name.
    fn is_used(&self, name: &KeyName) -> bool {
        self.all_logs().iter().any(|log| log.origin == name.as_str())
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
