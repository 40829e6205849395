//! Which of the batches that a log holds are its chain (rules E1 and E5 of `docs/protocol.md`).
//!
//! What is read from a log may hold batches twice, batches that an opening has voided, fills of holes, and holes. One of the
//! paths through it, from the archive on, is the owner's history.

use std::collections::{BTreeMap, BTreeSet};

use annals_event::{FrozenBatch, Header};
use annals_ids::{BatchNumber, Epoch, Hash, OwnerId};
use thiserror::Error;

use crate::writer::{Chain, Opening, Tip};

/// The archive and the log do not meet, or the log has a gap. db has to fill it before the owner can be taken (F4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "the log of owner {owner} has a hole: batch {missing} is not there, and batch {successor} (hash {hash}) is; db asks for it"
)]
pub struct Hole {
    /// Whose log.
    pub owner: OwnerId,
    /// The first batch that is missing.
    pub missing: BatchNumber,
    /// The first one after it that is there.
    pub successor: BatchNumber,
    /// Its hash.
    pub hash: Hash,
}

/// Finds the chain behind the archive.
///
/// `batches` are the messages of an owner's log and fills, in any order, and `sequence` is that of the log's last. `openings` are
/// those that the store holds. Messages that are no batches of this owner are passed over: they can be on no chain.
///
/// # Errors
/// When a valid batch is there and the one before it is not.
pub fn assemble(
    owner: OwnerId,
    archived: Tip,
    openings: &[Opening],
    batches: impl IntoIterator<Item = Vec<u8>>,
    sequence: u64,
) -> Result<Chain, Hole> {
    let mut candidates: BTreeMap<BatchNumber, Vec<FrozenBatch>> = BTreeMap::new();
    for batch in batches.into_iter().filter_map(|bytes| read(owner, bytes)) {
        if batch.number > archived.number && !is_void(&batch, openings) {
            candidates.entry(batch.number).or_default().push(batch);
        }
    }
    let mut chain = Chain {
        archived,
        beyond: Vec::new(),
        sequence,
    };
    let (mut tip, mut epoch) = (archived, Epoch(0));
    let mut dead: BTreeSet<Hash> = BTreeSet::new();
    for (number, found) in candidates {
        let (next, others): (Vec<_>, Vec<_>) = found
            .into_iter()
            .partition(|batch| number == tip.number.next() && batch.previous == tip.hash && batch.epoch >= epoch);
        // At one number the highest epoch is valid: it is an `Open`, and the others are void from there on.
        let next = next.into_iter().max_by_key(|batch| batch.epoch);
        for other in others.into_iter().filter(|other| other.epoch >= epoch) {
            // What does not follow the batch before it, or follows one that does not, is a branch that was given up.
            if number > tip.number.next() && !dead.contains(&other.previous) {
                return Err(Hole {
                    owner,
                    missing: tip.number.next(),
                    successor: number,
                    hash: other.hash,
                });
            }
            dead.insert(other.hash);
        }
        if let Some(batch) = next {
            tip = Tip {
                number,
                hash: batch.hash,
            };
            epoch = batch.epoch;
            chain.beyond.push(batch);
        }
    }
    Ok(chain)
}

/// Whether the store's openings void a batch: one of a higher epoch at its number or below, or, if it is an `Open`, that the
/// store holds another one of its epoch, or one of a higher epoch and none of its own (who recorded that one did not have
/// this one in its chain, and nobody can record it any more).
fn is_void(batch: &FrozenBatch, openings: &[Opening]) -> bool {
    let of_its_own = openings.iter().find(|opening| opening.epoch == batch.epoch);
    openings.iter().any(|opening| {
        opening.epoch > batch.epoch && (opening.number <= batch.number || (batch.opens && of_its_own.is_none()))
    }) || (batch.opens && of_its_own.is_some_and(|opening| opening.hash != batch.hash))
}

fn read(owner: OwnerId, bytes: Vec<u8>) -> Option<FrozenBatch> {
    let (header, hash) = Header::read(&bytes).ok()?;
    (header.owner == owner).then_some(FrozenBatch {
        owner,
        epoch: header.epoch,
        number: header.number,
        previous: header.previous,
        hash,
        opens: header.opens,
        bytes,
    })
}
