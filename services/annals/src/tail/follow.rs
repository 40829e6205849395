//! Follows growing logs.

use std::collections::BTreeMap;

use annals_event::{Batch, Header};
use annals_host::{
    log::Reader,
    log_source::{Source, read_openings},
};
use annals_ids::OwnerId;
use annals_node::{
    chain::{Candidates, ChainEnd, Claim, Step},
    writer::{Opening, Tip},
};
use annals_store::layout::owners::OpeningRecord;
use bytes::Bytes;
use futures::future::select_all;

use super::{End, TailError};

/// Maximum batches that wait behind a hole. Beyond that the newest are dropped, and later ones are not printed.
const MAX_WAITING: usize = 10_000;

/// The logs of a realm, each from where it was read to.
#[derive(Default)]
pub(super) struct Following {
    /// One for each shard.
    readers: Vec<Reader>,
    logs: BTreeMap<OwnerId, Log>,
}

#[derive(Default)]
struct Log {
    end: End,
    openings: Vec<Opening>,
    waiting: Candidates<Bytes>,
}

impl Following {
    /// Follows a log from this end on.
    pub(super) fn begin(&mut self, owner: OwnerId, end: End) {
        self.logs.entry(owner).or_default().end = end;
    }

    pub(super) fn has_begun(&self) -> bool {
        !self.readers.is_empty()
    }

    /// The batches that the next message of the stream completes, without void ones; often none.
    pub(super) async fn next(&mut self, source: &Source, notes: &mut Vec<String>) -> Result<Vec<Batch>, TailError> {
        if self.readers.is_empty() {
            self.readers = source.logs.values().map(|history| Reader::new(history, 1)).collect();
        }
        if self.readers.is_empty() {
            return Err(TailError::NothingToFollow);
        }
        let nexts = self.readers.iter_mut().map(|reader| Box::pin(reader.next()));
        let (entry, ..) = select_all(nexts).await;
        let Ok((header, hash)) = Header::read(&entry.bytes) else {
            notes.push(format!("a message of owner {}'s log is not a batch", entry.owner));
            return Ok(Vec::new());
        };
        let log = self.logs.entry(entry.owner).or_default();
        if header.owner != entry.owner || header.number <= log.end.batch {
            return Ok(Vec::new());
        }
        log.waiting.insert(Claim::of(&header, hash), entry.bytes);
        if log.waiting.iter().count() > MAX_WAITING {
            log.waiting.drop_last();
        }
        log.advance(source, entry.owner, notes).await
    }
}

impl Log {
    async fn advance(
        &mut self,
        source: &Source,
        owner: OwnerId,
        notes: &mut Vec<String>,
    ) -> Result<Vec<Batch>, TailError> {
        let mut batches = Vec::new();
        let mut asked = false;
        loop {
            let stand = ChainEnd {
                tip: Tip {
                    number: self.end.batch,
                    hash: self.end.hash,
                },
                epoch: self.end.epoch,
                openings: &self.openings,
            };
            match self.waiting.step(&stand) {
                Step::Next(claim, bytes) => {
                    self.end = End {
                        batch: claim.number,
                        hash: claim.hash,
                        epoch: claim.epoch,
                    };
                    match Batch::read(&bytes) {
                        Ok(batch) => batches.push(batch),
                        Err(error) => notes.push(format!("batch {} of owner {owner}: {error}", claim.number)),
                    }
                }
                Step::Wrong { claim, .. } => notes.push(format!(
                    "batch {} of owner {owner} (hash {}) does not continue the log",
                    claim.number, claim.hash
                )),
                // Only the store knows whether an `Open` counts, and what it voids.
                Step::End if !asked && self.waiting.awaits_opening(&stand) => {
                    asked = true;
                    let records = read_openings(&source.store, owner).await?;
                    let opening = |OpeningRecord { epoch, number, hash }| Opening { epoch, number, hash };
                    self.openings = records.into_iter().map(opening).collect();
                }
                // db requests the missing batches, and they arrive as a fill.
                Step::End | Step::Missing { .. } => return Ok(batches),
            }
        }
    }
}
