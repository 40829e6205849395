//! Which of the batches that a log holds are its chain (rules E1, E5, F2 and F4 of `docs/protocol.md`).
//!
//! What is read from a log may hold batches twice, batches that an opening has voided, `Open`s that nobody recorded, fills of
//! holes, and holes. One path through it, from the archive on, is the owner's history. A taker finds it with [`assemble`], in
//! all that there is; db walks it batch by batch as they come, with the same [`Candidates`], so that the two cannot differ.

use std::collections::BTreeMap;

use annals_event::{FrozenBatch, Header};
use annals_ids::{BatchNumber, Epoch, Hash, OwnerId};
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

/// A batch, as far as its place in the log goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim {
    /// Its number.
    pub number: BatchNumber,
    /// Its epoch.
    pub epoch: Epoch,
    /// The hash that it names as that of the batch before.
    pub previous: Hash,
    /// Its own hash.
    pub hash: Hash,
    /// Whether it is an `Open`.
    pub opens: bool,
}

/// The end of the chain as far as it was walked, and what the store says of openings.
#[derive(Clone, Copy, Debug)]
pub struct Stand<'a> {
    /// The newest batch.
    pub tip: Tip,
    /// Its epoch; 0 before the first.
    pub epoch: Epoch,
    /// The openings of that epoch and higher ones.
    pub openings: &'a [Opening],
}

/// What a claim is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Worth {
    /// It is of no chain, and never will be.
    Void,
    /// It is of none as long as the store does not hold the opening of its epoch.
    SetAside,
    /// It is what its writer appended, with the store's leave.
    Valid,
}

/// What comes after the tip.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step<T> {
    /// This batch.
    Next(Claim, T),
    /// This one should, by its number and the store's word, and names another hash than `expected`; or it fills a hole, and
    /// has another hash than the batch behind the hole names. It is dropped.
    Wrong {
        /// The batch.
        claim: Claim,
        /// What it should have named, or been.
        expected: Hash,
    },
    /// Something that is not there. What stands between the tip and the hole is not known to belong there before it is filled.
    Missing {
        /// The first batch that is missing.
        first: BatchNumber,
        /// The hash of the batch before it.
        after: Hash,
        /// The first that is there again.
        behind: Claim,
    },
    /// Nothing; or nothing before the store holds an opening.
    End,
}

/// Batches beyond the tip, each with what is held of it. Void ones are dropped when their turn comes.
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
    /// Adds a batch, unless it is there already.
    pub fn insert(&mut self, claim: Claim, held: T) {
        let row = self.rows.entry(claim.number).or_default();
        if row.iter().all(|(known, _)| known.hash != claim.hash) {
            row.push((claim, held));
        }
    }

    /// Takes the batch after the tip, or says why there is none. Asked again with the same tip after [`Step::Wrong`], and with
    /// the batch as the tip after [`Step::Next`], until it says something else.
    pub fn step(&mut self, stand: &Stand<'_>) -> Step<T> {
        let number = stand.tip.number.next();
        while self.rows.first_key_value().is_some_and(|(passed, _)| *passed < number) {
            self.rows.pop_first();
        }
        if let Some(row) = self.rows.get_mut(&number) {
            row.retain(|(claim, _)| stand.worth(claim) != Worth::Void);
        }
        let valid = |(claim, _): &(Claim, T)| stand.worth(claim) == Worth::Valid;
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
            // What fills a hole is known by the batch behind it alone (F4).
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

    /// Whether an `Open` is set aside that may come next, once the store holds it.
    #[must_use]
    pub fn awaits_opening(&self, stand: &Stand<'_>) -> bool {
        let row = self.rows.get(&stand.tip.number.next());
        row.into_iter()
            .flatten()
            .any(|(claim, _)| claim.opens && stand.worth(claim) == Worth::SetAside)
    }

    /// All that is there, by number.
    pub fn iter(&self) -> impl Iterator<Item = (&Claim, &T)> {
        self.rows.values().flatten().map(|(claim, held)| (claim, held))
    }

    /// Drops the one with the highest number that came last.
    pub fn drop_last(&mut self) {
        if let Some(mut row) = self.rows.last_entry() {
            row.get_mut().pop();
            if row.get().is_empty() {
                row.remove();
            }
        }
    }

    /// The hashes that the valid batches of a number name as that of the batch before.
    fn named_at(&self, stand: &Stand<'_>, number: BatchNumber) -> Vec<Hash> {
        let row = self.rows.get(&number).into_iter().flatten();
        let valid = row.filter(|(claim, _)| stand.worth(claim) == Worth::Valid);
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

impl Stand<'_> {
    /// Rule E5. An `Open` of an epoch below that of a recorded one was not recorded in time: nobody can record it any more.
    fn worth(&self, claim: &Claim) -> Worth {
        let own = self.openings.iter().find(|opening| opening.epoch == claim.epoch);
        let overtaken = self.openings.iter().any(|opening| {
            opening.epoch > claim.epoch && (opening.number <= claim.number || (claim.opens && own.is_none()))
        });
        let passed = claim.number <= self.tip.number || claim.epoch < self.epoch;
        match own {
            _ if passed || overtaken => Worth::Void,
            Some(opening) if claim.opens && opening.hash != claim.hash => Worth::Void,
            None if claim.opens || claim.epoch > self.epoch => Worth::SetAside,
            _ => Worth::Valid,
        }
    }

    /// Whether a valid claim continues the tip.
    fn precedes(&self, claim: &Claim) -> bool {
        claim.previous == self.tip.hash && (claim.opens || claim.epoch == self.epoch)
    }
}

impl Claim {
    /// What a batch's header claims, and its hash.
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
    let mut stand = Stand {
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
            // db raises an alarm about it. Where it stands on another batch than the tip, that one is what is missing.
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
