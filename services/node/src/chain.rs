//! Selection of an owner's chain among the batches in its log (rules E1, E5, F2 and F4 of `docs/protocol.md`).
//!
//! A log may hold duplicate batches, batches that an opening has voided, `Open`s that were never recorded, fills of
//! holes, and holes. Exactly one path through it, starting at the archive, is the owner's history. A process that takes
//! over the owner finds it with [`assemble`], from everything there is; db walks it batch by batch as messages arrive.
//! Both use [`Candidates`], so that they cannot differ.

use std::collections::BTreeMap;

use annals_event::{FrozenBatch, Header};
use annals_ids::{BatchNumber, Epoch, Hash, OwnerId};
use thiserror::Error;

use crate::writer::{Chain, Opening, Tip};

/// The archive and the log do not meet, or the log has a gap. db has to fill it before the owner can be taken over
/// (F4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "the log of owner {owner} has a hole: batch {missing}, the predecessor of batch {successor} (hash {hash}), is \
     missing; db requests it from all processes, and says in its log what to do if none has it"
)]
pub struct Hole {
    pub owner: OwnerId,
    /// First missing batch.
    pub missing: BatchNumber,
    /// First batch after the hole.
    pub successor: BatchNumber,
    /// Hash of `successor`.
    pub hash: Hash,
}

/// What a batch's header claims about its position in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim {
    pub number: BatchNumber,
    pub epoch: Epoch,
    /// Hash that it names for the previous batch.
    pub previous: Hash,
    /// Hash of the batch itself.
    pub hash: Hash,
    /// Whether the batch is an `Open`.
    pub opens: bool,
}

/// End of the chain walked so far, with the openings that the store holds.
#[derive(Clone, Copy, Debug)]
pub struct ChainEnd<'a> {
    /// Newest batch.
    pub tip: Tip,
    /// Epoch of the newest batch; 0 before the first.
    pub epoch: Epoch,
    /// Openings of that epoch and of higher ones.
    pub openings: &'a [Opening],
}

/// Validity of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Validity {
    /// Not part of any chain, now or later.
    Void,
    /// Not part of a chain until the store holds the opening of its epoch.
    SetAside,
    /// Appended by its writer, in an epoch that the store has recorded.
    Valid,
}

/// What follows the tip.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step<T> {
    /// This batch.
    Next(Claim, T),
    /// This batch follows by its number and the store's openings, but names another hash than `expected`; or it fills a
    /// hole and its hash differs from the one that the batch after the hole names. It is dropped.
    Wrong {
        /// The batch.
        claim: Claim,
        /// The hash that it should have named, or should have.
        expected: Hash,
    },
    /// A batch is missing. Batches between the tip and the hole are not known to be valid before the hole is filled.
    Missing {
        /// First missing batch.
        first: BatchNumber,
        /// Hash of the batch before it.
        after: Hash,
        /// First batch after the hole.
        behind: Claim,
    },
    /// Nothing, or nothing until the store holds an opening.
    End,
}

/// Batches beyond the tip, each with its payload. Void ones are dropped when their turn comes.
#[derive(Clone, Debug)]
pub struct Candidates<T> {
    rows: BTreeMap<BatchNumber, Vec<(Claim, T)>>,
}

impl<T> Default for Candidates<T> {
    fn default() -> Self {
        Self { rows: BTreeMap::new() }
    }
}

impl<T> Candidates<T> {
    /// Adds a batch, unless it is already present.
    pub fn insert(&mut self, claim: Claim, held: T) {
        let row = self.rows.entry(claim.number).or_default();
        if row.iter().all(|(known, _)| known.hash != claim.hash) {
            row.push((claim, held));
        }
    }

    /// Takes the batch after the tip, or says why there is none. Call it again with the same tip after [`Step::Wrong`],
    /// and with the batch as the tip after [`Step::Next`], until it returns something else.
    pub fn step(&mut self, stand: &ChainEnd<'_>) -> Step<T> {
        let number = stand.tip.number.next();
        while self.rows.first_key_value().is_some_and(|(passed, _)| *passed < number) {
            self.rows.pop_first();
        }
        if let Some(row) = self.rows.get_mut(&number) {
            row.retain(|(claim, _)| stand.worth(claim) != Validity::Void);
        }
        let valid = |(claim, _): &(Claim, T)| stand.worth(claim) == Validity::Valid;
        let row = self.rows.get(&number).map_or(&[][..], Vec::as_slice);
        if let Some(stray) = row.iter().position(|one| valid(one) && !stand.precedes(&one.0)) {
            return self.wrong(number, stray, stand.tip.hash);
        }
        let opening = row.iter().position(|one| valid(one) && one.0.opens);
        let behind = self
            .rows
            .range(number.next()..)
            .flat_map(|(_, row)| row)
            .find(|one| valid(one));
        let behind = behind.map(|(claim, _)| *claim);
        let chosen = match (opening.or_else(|| row.iter().position(valid)), behind) {
            (None, None) => return Step::End,
            (None, Some(behind)) => {
                return Step::Missing {
                    first: number,
                    after: stand.tip.hash,
                    behind,
                };
            }
            (Some(next), None) => next,
            (Some(next), Some(_)) if opening.is_some() => next,
            // Only the batch after the hole identifies what fills it (F4).
            (Some(next), Some(behind)) if behind.number > number.next() => {
                return Step::Missing {
                    first: number.next(),
                    after: row[next].0.hash,
                    behind,
                };
            }
            (Some(next), Some(behind)) => {
                let named = self.named_at(stand, behind.number);
                match row.iter().position(|one| valid(one) && named.contains(&one.0.hash)) {
                    Some(named) => named,
                    None => return self.wrong(number, next, behind.previous),
                }
            }
        };
        let (claim, held) = self.take(number, chosen);
        Step::Next(claim, held)
    }

    /// Whether an `Open` is set aside that can come next once the store holds it.
    #[must_use]
    pub fn awaits_opening(&self, stand: &ChainEnd<'_>) -> bool {
        let row = self.rows.get(&stand.tip.number.next());
        row.into_iter()
            .flatten()
            .any(|(claim, _)| claim.opens && stand.worth(claim) == Validity::SetAside)
    }

    /// All batches, by number.
    pub fn iter(&self) -> impl Iterator<Item = (&Claim, &T)> {
        self.rows.values().flatten().map(|(claim, held)| (claim, held))
    }

    /// Drops the most recently inserted of those with the highest number.
    pub fn drop_last(&mut self) {
        if let Some(mut row) = self.rows.last_entry() {
            row.get_mut().pop();
            if row.get().is_empty() {
                row.remove();
            }
        }
    }

    /// The previous-batch hashes named by the valid batches with this number.
    fn named_at(&self, stand: &ChainEnd<'_>, number: BatchNumber) -> Vec<Hash> {
        let row = self.rows.get(&number).into_iter().flatten();
        let valid = row.filter(|(claim, _)| stand.worth(claim) == Validity::Valid);
        valid.map(|(claim, _)| claim.previous).collect()
    }

    fn wrong(&mut self, number: BatchNumber, place: usize, expected: Hash) -> Step<T> {
        let (claim, _) = self.take(number, place);
        Step::Wrong { claim, expected }
    }

    fn take(&mut self, number: BatchNumber, place: usize) -> (Claim, T) {
        let row = self
            .rows
            .get_mut(&number)
            .expect("invariant: the row was just looked at");
        row.remove(place)
    }
}

impl ChainEnd<'_> {
    /// Rule E5. An `Open` of an epoch below that of a recorded one was not recorded in time, and can no longer be
    /// recorded.
    fn worth(&self, claim: &Claim) -> Validity {
        let own = self.openings.iter().find(|opening| opening.epoch == claim.epoch);
        let overtaken = self.openings.iter().any(|opening| {
            opening.epoch > claim.epoch && (opening.number <= claim.number || (claim.opens && own.is_none()))
        });
        let passed = claim.number <= self.tip.number || claim.epoch < self.epoch;
        match own {
            _ if passed || overtaken => Validity::Void,
            Some(opening) if claim.opens && opening.hash != claim.hash => Validity::Void,
            None if claim.opens || claim.epoch > self.epoch => Validity::SetAside,
            _ => Validity::Valid,
        }
    }

    /// Whether a valid claim continues the tip.
    fn precedes(&self, claim: &Claim) -> bool {
        claim.previous == self.tip.hash && (claim.opens || claim.epoch == self.epoch)
    }
}

impl Claim {
    /// The claim of a batch, from its header and hash.
    #[must_use]
    pub fn of(header: &Header, hash: Hash) -> Self {
        Self {
            number: header.number,
            epoch: header.epoch,
            previous: header.previous,
            hash,
            opens: header.opens,
        }
    }
}

/// Finds the chain after the archive.
///
/// `batches` are the messages of an owner's log and fills, in any order, and `sequence` is that of the log's last
/// message. `openings` are those that the store holds. Messages that are not batches of this owner are skipped: they
/// cannot be on a chain.
///
/// # Errors
/// If a valid batch is present and the one before it is missing.
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
    let mut candidates = Candidates::default();
    for bytes in batches {
        if let Ok((header, hash)) = Header::read(&bytes)
            && header.owner == owner
        {
            chain.highest = chain.highest.max(header.epoch);
            candidates.insert(Claim::of(&header, hash), bytes);
        }
    }
    let passed = openings.iter().filter(|opening| opening.number <= archived.number);
    let mut stand = ChainEnd {
        tip: archived,
        epoch: passed.map(|opening| opening.epoch).max().unwrap_or_default(),
        openings,
    };
    let hole = |missing, behind: Claim| Hole {
        owner,
        missing,
        successor: behind.number,
        hash: behind.hash,
    };
    loop {
        match candidates.step(&stand) {
            Step::Next(claim, bytes) => {
                let Claim {
                    number, epoch, hash, ..
                } = claim;
                stand.tip = Tip { number, hash };
                stand.epoch = epoch;
                chain.beyond.push(frozen(owner, claim, bytes));
            }
            // db raises an alarm about it. If it names another previous batch than the tip, that one is missing.
            Step::Wrong { claim, .. } if claim.previous == stand.tip.hash => {}
            Step::Wrong { claim, .. } => return Err(hole(stand.tip.number, claim)),
            Step::Missing { first, behind, .. } => return Err(hole(first, behind)),
            Step::End => return Ok(chain),
        }
    }
}

fn frozen(owner: OwnerId, claim: Claim, bytes: Vec<u8>) -> FrozenBatch {
    FrozenBatch {
        owner,
        epoch: claim.epoch,
        number: claim.number,
        previous: claim.previous,
        hash: claim.hash,
        opens: claim.opens,
        bytes,
    }
}
