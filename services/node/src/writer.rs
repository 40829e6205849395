//! The writer: appends one owner's batches to its log, once and in order (rules L3 to L7, E2 to E4, E6 of
//! `docs/protocol.md`).
//!
//! Responsible for: what is sent next and with which expected sequence, the meaning of an answer or of its absence,
//! detecting that the owner was taken over, which batches are kept, and whether the owner is fresh enough to show
//! anything. Not responsible for: filling batches (the journal does), holding outputs ([`Gate`](crate::gate::Gate)
//! does), or I/O: the driver carries out its [`Action`]s.

mod contract;
mod kept_batches;

use std::time::Duration;

use annals_event::{FrozenBatch, Header};
use annals_ids::{BatchNumber, Epoch, OwnerId};

use crate::{chain::assemble, time::Mono};
pub use contract::{Action, Chain, Durability, Found, Input, Opening, OpeningRefused, Stop, Tip, Wanted};
use kept_batches::{ChainStatus, KeptBatches};

/// Minimum time between closing two batches (L3): events of that time share one append.
pub const PACE: Duration = Duration::from_millis(5);

/// An idle owner appends an empty batch this long after its last append (L7).
pub const HEARTBEAT: Duration = Duration::from_millis(400);

/// Nothing is shown unless the last acknowledged append was sent less than this long ago (G2).
pub const FRESHNESS: Duration = Duration::from_millis(1_000);

/// How long the driver waits for an answer before it reports [`Input::Silent`]. Shorter than [`FRESHNESS`], so that one
/// lost answer need not make the owner stale; an append that syncs three disks takes a few milliseconds.
pub const ANSWER_TIMEOUT: Duration = Duration::from_millis(500);

/// Time between the `Open` of a take-over and its second look at the log (E3): longer than any previous holder can have
/// stayed fresh, with a margin for clocks that run at different rates.
pub const SECOND_READ_DELAY: Duration = Duration::from_millis(1_500);

/// Kept bytes at which the core must take no more input (L6). At a megabyte per second it is a minute without db.
pub const KEPT_LIMIT: usize = 64 << 20;

/// Kept bytes at which not even an empty batch is requested: the space beyond [`KEPT_LIMIT`] is for the last batches of
/// a core that has stopped taking input, and for several hours of heartbeats.
pub const KEPT_CEILING: usize = KEPT_LIMIT + (8 << 20);

/// Pause before retrying an unanswered request; doubled with each failure in a row, up to [`LONGEST_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_millis(1_000);

const _: () = assert!(SECOND_READ_DELAY.as_millis() > FRESHNESS.as_millis());
const _: () = assert!(HEARTBEAT.as_millis() + ANSWER_TIMEOUT.as_millis() < FRESHNESS.as_millis());

/// State of the writer. Each phase but `Opening`, `Waiting`, `Free` and `Stopped` has exactly one action.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Phase {
    /// The chain is known; its `Open` is awaited from the journal.
    Opening,
    /// The kept batch of this number is in flight, and the later ones follow.
    Appending(BatchNumber),
    /// It is not known whether the batch in flight was appended: the subject's last message is being read.
    Resolving(BatchNumber),
    /// The `Open` is in the log; until this time a previous holder may still be fresh.
    Waiting(Mono),
    /// The log is being read again.
    Looking,
    /// No other batch was appended in between: the `Open` goes into the store.
    Recording,
    /// The bus was disconnected, or freshness has lapsed: the store is asked whether it still grants the epoch.
    Confirming,
    /// Every batch is in the log; the next one is awaited from the journal.
    Free,
    /// Terminal.
    Stopped(Stop),
}

/// An action that was handed out.
#[derive(Clone, Copy, Debug)]
struct Asked {
    at: Mono,
    /// The bus was disconnected meanwhile: the answer is ignored, whatever it is (L5).
    doubted: bool,
}

/// The append state machine of one owner in one epoch.
///
/// Driving it, after each [`handle`](Self::handle) and whenever [`deadline`](Self::deadline) has passed:
/// 1. call [`wanted`](Self::wanted), close a batch accordingly and [`offer`](Self::offer) it;
/// 2. carry out what [`poll`](Self::poll) returns, and `handle` its answer when it arrives, or [`Input::Silent`] after
///    [`ANSWER_TIMEOUT`];
/// 3. if [`stopped`](Self::stopped), shut the gate; else release from it what [`acknowledged`](Self::acknowledged) and
///    [`is_fresh`](Self::is_fresh) allow.
#[derive(Debug)]
pub struct Writer {
    owner: OwnerId,
    epoch: Epoch,
    durability: Durability,
    kept: KeptBatches,
    /// The subject's last sequence, as known to this writer.
    last: u64,
    appended: BatchNumber,
    archived: BatchNumber,
    /// Openings in the store at the take-over. No opening of a lower epoch was recorded since (E3).
    openings: Vec<Opening>,
    /// This epoch's opening, once it is closed.
    opening: Option<Opening>,
    /// Whether the store holds `opening`.
    recorded: bool,
    /// Whether former holders had ended before the log was read (rule E8).
    former_ended: bool,
    phase: Phase,
    asked: Option<Asked>,
    connected: bool,
    /// The bus was disconnected, or freshness has lapsed, since the last confirmation of the epoch (E6).
    unconfirmed: bool,
    last_closed: Option<Mono>,
    /// Start of freshness: the first sending of the newest acknowledged batch, or the last confirmation request that
    /// the store answered with yes.
    fresh_at: Option<Mono>,
    failures: u32,
    not_before: Mono,
}

impl Writer {
    /// Takes over an owner whose log was read (E1), on a connected bus. If the log holds an `Open` of this epoch that
    /// the store has recorded, that one counts; else [`wanted`](Self::wanted) first asks for one.
    ///
    /// # Panics
    /// If the batches beyond the archive do not continue it.
    #[must_use]
    pub fn take_over(owner: OwnerId, epoch: Epoch, durability: Durability, chain: Chain) -> Self {
        let mut kept = KeptBatches::new(chain.archived);
        chain.beyond.into_iter().for_each(|batch| kept.push(batch));
        let opening = chain.openings.iter().find(|opening| opening.epoch == epoch).copied();
        let recorded = chain.openings.iter().map(|opening| opening.epoch).max();
        let phase = match opening {
            // An opening in the store may be missing from the log: its `Open` was lost, or a hole was accepted (F4).
            _ if recorded.max(Some(chain.highest)) > Some(epoch) => Phase::Stopped(Stop::Replaced { owner, epoch }),
            Some(_) => Phase::Recording,
            None => Phase::Opening,
        };
        Self {
            owner,
            epoch,
            durability,
            last: chain.sequence,
            appended: kept.tip().number,
            archived: chain.archived.number,
            kept,
            openings: chain.openings,
            opening,
            recorded: false,
            former_ended: chain.former_ended,
            phase,
            asked: None,
            connected: true,
            unconfirmed: false,
            last_closed: None,
            fresh_at: None,
            failures: 0,
            not_before: Mono::default(),
        }
    }

    /// The owner.
    #[must_use]
    pub fn owner(&self) -> OwnerId {
        self.owner
    }

    /// The writer's epoch.
    #[must_use]
    pub fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// End of the chain: the predecessor of the next batch.
    #[must_use]
    pub fn tip(&self) -> Tip {
        self.kept.tip()
    }

    /// What the journal has to close now.
    #[must_use]
    pub fn wanted(&self, now: Mono) -> Wanted {
        match self.phase {
            Phase::Opening => Wanted::Opening,
            Phase::Free if self.connected && self.kept.cost() < KEPT_CEILING => match self.last_closed {
                Some(closed) if now < closed.after(PACE) => Wanted::Nothing,
                Some(closed) if now < closed.after(HEARTBEAT) => Wanted::Filled,
                Some(_) | None => Wanted::Heartbeat,
            },
            _ => Wanted::Nothing,
        }
    }

    /// Takes the [`wanted`](Self::wanted) batch. It is kept until it is archived, and resent unchanged.
    ///
    /// # Panics
    /// If nothing was wanted, or the batch does not follow [`tip`](Self::tip) in this epoch.
    pub fn offer(&mut self, now: Mono, batch: FrozenBatch) {
        assert!(
            self.wanted(now) != Wanted::Nothing,
            "batch {} was offered without a request",
            batch.number
        );
        assert!(
            (batch.owner, batch.epoch) == (self.owner, self.epoch),
            "batch {} belongs to another owner",
            batch.number
        );
        assert!(
            batch.opens == (self.phase == Phase::Opening),
            "an epoch is opened once, by its first batch"
        );
        if batch.opens {
            self.opening = Some(Opening {
                epoch: batch.epoch,
                number: batch.number,
                hash: batch.hash,
            });
        }
        self.phase = Phase::Appending(batch.number);
        self.last_closed = Some(now);
        self.kept.push(batch);
    }

    /// Next action, if any. Each action is handed out once.
    #[must_use]
    pub fn poll(&mut self, now: Mono) -> Option<Action<'_>> {
        if self.asked.is_some() || !self.connected || now < self.not_before {
            return None;
        }
        if matches!(self.phase, Phase::Waiting(until) if now >= until) {
            self.phase = Phase::Looking;
        }
        let action = match self.phase {
            Phase::Opening | Phase::Waiting(_) | Phase::Free | Phase::Stopped(_) => return None,
            Phase::Appending(number) => {
                let kept = self.kept.get_mut(number).expect("the batch in flight is kept");
                kept.first_sent.get_or_insert(now);
                Action::Append {
                    expect: self.last,
                    batch: &kept.batch,
                }
            }
            Phase::Resolving(_) => Action::ReadLast,
            Phase::Looking => Action::LookAgain,
            Phase::Recording => Action::RecordOpening(self.opening.expect("the recorded opening was closed")),
            Phase::Confirming => Action::ConfirmEpoch,
        };
        self.asked = Some(Asked {
            at: now,
            doubted: false,
        });
        Some(action)
    }

    /// Applies an answer, or a notification.
    pub fn handle(&mut self, now: Mono, input: Input) {
        match input {
            Input::Disconnected => self.disconnect(),
            Input::Reconnected => self.reconnect(now),
            Input::Archived { upto, epoch } => self.archive(upto, epoch),
            answer => {
                // An answer without a pending action arrived after `Silent` was reported for it: its outcome is already
                // known, or will be read.
                let Some(asked) = self.asked.take() else { return };
                let answer = if asked.doubted { Input::Silent } else { answer };
                self.answer(now, asked.at, answer);
            }
        }
    }

    fn disconnect(&mut self) {
        self.connected = false;
        self.unconfirmed = true;
        if let Some(asked) = &mut self.asked {
            asked.doubted = true;
        }
    }

    fn reconnect(&mut self, now: Mono) {
        self.connected = true;
        self.failures = 0;
        self.not_before = now;
        if self.phase == Phase::Free {
            self.settle();
        }
    }

    fn archive(&mut self, upto: Tip, epoch: Epoch) {
        if self.stopped().is_some() || upto.number <= self.archived {
            return;
        }
        match self.kept.hash(upto.number) {
            Some(hash) if hash == upto.hash => self.archived = upto.number,
            _ if epoch > self.epoch => self.replaced(),
            // Until the store holds the opening, batches that others append are part of the chain (E2).
            _ if !self.recorded => self.stop_to_read_again(),
            _ => self.contradicted(Found::Archive { archived: upto }),
        }
        if !matches!(self.phase, Phase::Appending(_) | Phase::Resolving(_)) {
            self.kept.forget(self.archived);
        }
    }

    fn answer(&mut self, now: Mono, asked: Mono, answer: Input) {
        match (&self.phase, answer) {
            (&Phase::Appending(number), Input::Appended { sequence }) => {
                self.last = sequence;
                self.acknowledge(now, number);
            }
            (&Phase::Appending(number), answer) => {
                self.phase = Phase::Resolving(number);
                // A rejection is followed by a reading, so the first one costs no pause; repeated ones do.
                if answer != Input::Rejected || self.failures > 0 {
                    self.pause(now);
                } else {
                    self.failures = 1;
                }
            }
            (&Phase::Resolving(number), Input::Last(last)) => self.resolve(now, number, last),
            (Phase::Looking, Input::Looked { batches, last }) => self.look_again(batches, last),
            (Phase::Recording, Input::OpeningRecorded) => {
                self.recorded = true;
                self.confirmed(asked);
            }
            (Phase::Recording, Input::OpeningRefused(OpeningRefused::CursorPassed)) => self.stop_to_read_again(),
            (Phase::Recording, Input::OpeningRefused(OpeningRefused::Superseded))
            | (Phase::Confirming, Input::EpochLost) => self.replaced(),
            (Phase::Confirming, Input::EpochConfirmed) => self.confirmed(asked),
            // Silence, or an answer to another action, which is equally inconclusive.
            _ => self.pause(now),
        }
    }

    /// The table of L5: what the last message on the subject means while batch `sending` is in flight.
    fn resolve(&mut self, now: Mono, sending: BatchNumber, last: Option<(u64, Vec<u8>)>) {
        let Some((sequence, bytes)) = last else {
            self.last = 0;
            self.phase = Phase::Appending(self.kept.oldest());
            return;
        };
        let (header, hash) = match Header::read(&bytes) {
            Ok((header, hash)) if header.owner == self.owner => (header, hash),
            Ok(_) | Err(_) => return self.contradicted(Found::Stranger { sequence }),
        };
        let (number, epoch) = (header.number, header.epoch);
        self.last = sequence;
        if epoch > self.epoch {
            return self.replaced();
        }
        match self.kept.status_of(number, hash) {
            ChainStatus::Kept => self.acknowledge(now, number),
            ChainStatus::Archived => self.phase = Phase::Appending(self.kept.oldest()),
            // Until the store holds the opening, batches that others append are part of the chain (E2).
            ChainStatus::Elsewhere if !self.recorded => self.stop_to_read_again(),
            // After that they never are: an `Open` that is not on this chain (of a lower epoch, or of this one and
            // given up at E2) can no longer be recorded; a batch of a lower epoch behind an `Open` on this chain is
            // void; and neither is folded (E5, F2).
            ChainStatus::Elsewhere if epoch < self.epoch || header.opens => self.phase = Phase::Appending(sending),
            ChainStatus::Elsewhere => self.contradicted(Found::Batch {
                sequence,
                number,
                epoch,
                hash,
            }),
        }
    }

    /// The second look (E3): checks that the log ends where the first reading did, with the `Open` as its last message.
    fn look_again(&mut self, batches: Vec<Vec<u8>>, last: Option<(u64, Vec<u8>)>) {
        let mut first: Vec<&FrozenBatch> = self.kept.iter().collect();
        let open = first.pop();
        let is_last = last.is_some_and(|(sequence, bytes)| {
            sequence == self.last && open.is_some_and(|open| open.opens && open.bytes == bytes)
        });
        // The `Open` does not count yet: the batch at its number may be from a holder that was fresh when it was
        // appended. A log that has lost its end reuses sequences, so that the append of the `Open` could not detect
        // that.
        let found = assemble(self.owner, self.kept.base(), &self.openings, batches, self.last);
        match found {
            Ok(chain) if chain.highest > self.epoch => self.replaced(),
            Ok(chain) if is_last && chain.beyond.iter().eq(first) => self.phase = Phase::Recording,
            Ok(_) | Err(_) => self.stop_to_read_again(),
        }
    }

    /// The last message on the subject is the kept batch `number`.
    fn acknowledge(&mut self, now: Mono, number: BatchNumber) {
        self.appended = self.appended.max(number);
        self.failures = 0;
        // An acknowledgement that arrives this late does not restore lapsed freshness (G2).
        if self.fresh_at.is_some_and(|since| now.since(since) >= FRESHNESS) {
            self.unconfirmed = true;
        } else if self.recorded {
            self.fresh_at = self
                .fresh_at
                .max(self.kept.get(number).and_then(|kept| kept.first_sent));
        }
        if number < self.kept.tip().number {
            self.phase = Phase::Appending(number.next());
        } else if self.recorded {
            self.settle();
        } else if self.former_ended {
            self.phase = Phase::Recording;
        } else {
            let alone = self.openings.is_empty();
            self.phase = Phase::Waiting(if alone { now } else { now.after(SECOND_READ_DELAY) });
        }
    }

    /// The store has answered a request sent at `asked`: the epoch still holds.
    fn confirmed(&mut self, asked: Mono) {
        self.unconfirmed = false;
        self.fresh_at = self.fresh_at.max(Some(asked));
        self.failures = 0;
        self.settle();
    }

    /// Continues with the remaining work once the opening is recorded and every batch is in the log.
    fn settle(&mut self) {
        self.kept.forget(self.archived);
        self.phase = if self.unconfirmed {
            Phase::Confirming
        } else {
            Phase::Free
        };
    }

    fn pause(&mut self, now: Mono) {
        let pause = FIRST_PAUSE
            .saturating_mul(1 << self.failures.min(16))
            .min(LONGEST_PAUSE);
        self.failures = self.failures.saturating_add(1);
        self.not_before = now.after(pause);
    }

    fn replaced(&mut self) {
        self.phase = Phase::Stopped(Stop::Replaced {
            owner: self.owner,
            epoch: self.epoch,
        });
    }

    fn stop_to_read_again(&mut self) {
        self.phase = Phase::Stopped(Stop::ReadAgain {
            owner: self.owner,
            epoch: self.epoch,
        });
    }

    fn contradicted(&mut self, found: Found) {
        self.phase = Phase::Stopped(Stop::Contradicted {
            owner: self.owner,
            epoch: self.epoch,
            found,
        });
    }

    /// When [`wanted`](Self::wanted) or [`poll`](Self::poll) will return something else without an input; `None` if
    /// never.
    #[must_use]
    pub fn deadline(&self, now: Mono) -> Option<Mono> {
        match self.phase {
            Phase::Stopped(_) => None,
            _ if !self.connected || self.asked.is_some() => None,
            Phase::Opening => Some(now),
            Phase::Free => {
                let closed = self.last_closed.unwrap_or_default();
                [closed.after(PACE), closed.after(HEARTBEAT)]
                    .into_iter()
                    .find(|due| *due > now)
            }
            Phase::Waiting(until) => Some(until.max(self.not_before).max(now)),
            _ => Some(self.not_before.max(now)),
        }
    }

    /// Newest batch that counts as acknowledged, by the realm's setting.
    #[must_use]
    pub fn acknowledged(&self) -> BatchNumber {
        match self.durability {
            Durability::Log => self.appended,
            Durability::Archive => self.appended.min(self.archived),
        }
    }

    /// Whether outputs may leave: the opening is recorded (E4); since the last confirmation of the epoch the bus was
    /// not disconnected and freshness has not lapsed (E6); and the last acknowledged append was sent less than
    /// [`FRESHNESS`] ago (G2).
    #[must_use]
    pub fn is_fresh(&self, now: Mono) -> bool {
        self.recorded
            && self.connected
            && !self.unconfirmed
            && self.stopped().is_none()
            && self.fresh_at.is_some_and(|sent| now.since(sent) < FRESHNESS)
    }

    /// Whether the core must take no more input until some batch is archived (L6).
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.kept.cost() >= KEPT_LIMIT
    }

    /// Why it stopped, if it did. A stopped writer never resumes.
    #[must_use]
    pub fn stopped(&self) -> Option<&Stop> {
        match &self.phase {
            Phase::Stopped(stop) => Some(stop),
            _ => None,
        }
    }

    /// An appended batch that is not archived yet: fills a hole about which db asks (F4).
    #[must_use]
    pub fn kept(&self, number: BatchNumber) -> Option<&FrozenBatch> {
        self.kept
            .get(number)
            .map(|kept| &kept.batch)
            .filter(|batch| batch.number <= self.appended)
    }

    /// The batches that [`kept`](Self::kept) returns for these numbers, whatever the range.
    pub fn kept_within(&self, numbers: std::ops::Range<u64>) -> impl Iterator<Item = &FrozenBatch> {
        let appended = self.kept.iter().take_while(|batch| batch.number <= self.appended);
        appended.filter(move |batch| numbers.contains(&batch.number.0))
    }

    /// The opening of this epoch, once the store holds it.
    #[must_use]
    pub fn opening(&self) -> Option<Opening> {
        self.opening.filter(|_| self.recorded)
    }
}
