//! Which of the batches that a log holds are its chain (rules E1 and E5 of `docs/protocol.md`).
//!
//! What is read from a log may hold batches twice, batches that an opening has voided, openings that nobody recorded, fills of
//! holes, and holes. One path through it, from the archive on, is the owner's history.

use std::collections::BTreeMap;

use annals_event::{FrozenBatch, Header};
use annals_ids::{BatchNumber, Hash, OwnerId};
use thiserror::Error;

use crate::writer::{Chain, Opening, Tip};

/// The archive and the log do not meet, or the log has a gap. db has to fill it before the owner can be taken (F4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "the log of owner {owner} has a hole: batch {missing} that batch {successor} (hash {hash}) stands on is not there; db asks for it"
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
    let mut chain = Chain {
        archived,
        sequence,
        openings: openings.to_vec(),
        ..Chain::default()
    };
    let mut valid: BTreeMap<(BatchNumber, Hash), FrozenBatch> = BTreeMap::new();
    for batch in batches.into_iter().filter_map(|bytes| read(owner, bytes)) {
        chain.highest = chain.highest.max(batch.epoch);
        if batch.number > archived.number && !is_void(&batch, openings) {
            valid.insert((batch.number, batch.hash), batch);
        }
    }
    let mut tip = archived;
    for batch in valid.into_values() {
        if batch.number != tip.number.next() || batch.previous != tip.hash {
            return Err(Hole {
                owner,
                missing: tip.number.next().min(BatchNumber(batch.number.0 - 1)),
                successor: batch.number,
                hash: batch.hash,
            });
        }
        tip = Tip {
            number: batch.number,
            hash: batch.hash,
        };
        chain.beyond.push(batch);
    }
    Ok(chain)
}

/// Rule E5, as far as the store's openings say: one of a higher epoch at this number or below, or an `Open` that is not the
/// store's.
fn is_void(batch: &FrozenBatch, openings: &[Opening]) -> bool {
    let overtaken = |opening: &Opening| opening.epoch > batch.epoch && opening.number <= batch.number;
    let recorded = |opening: &Opening| opening.epoch == batch.epoch && opening.hash == batch.hash;
    openings.iter().any(overtaken) || (batch.opens && !openings.iter().any(recorded))
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
