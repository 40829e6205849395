//! One owner's log: the processes that hold it in turn, the subject, the store, and db.
//!
//! Initially process A holds epoch 1, and batch 1 is its `Open`, archived. The director may grant epoch 2 to B and
//! epoch 3 to C at any time, whether or not the previous holder has failed. The holders take inputs x, y, z; each input
//! changes state and has an output that a player sees. The model covers the rules of the sections L, G, E and F of
//! `docs/protocol.md`.
//!
//! Time is a count of elapsed *freshness limits*. Freshness is rounded in favour of the faults: a holder may send
//! outputs up to two limits after it sent the append that made it fresh.

mod batch;
pub mod exhibits;
mod fold;
mod holder;
mod loss;
mod subject;
mod words;

use crate::explorer::Model;
use crate::faults::{Faults, spend};
use crate::invariant::Invariant;
use crate::rule::{Rule, Rules};
use batch::Batch;
use fold::{Db, Store};
use holder::{Holder, Link, Phase};
use loss::Losses;
use subject::{Message, Subject};

/// A, B and C: one for each epoch.
const MOST_HOLDERS: usize = 3;
/// x, y and z.
const MOST_INPUTS: usize = 3;
/// Maximum packets in flight; further ones wait.
const MOST_PACKETS: usize = 4;

/// When a batch counts as acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Acknowledged {
    /// When JetStream acknowledges it.
    Log,
    /// When it is in the store.
    Archive,
}

/// Bounds of a schedule.
#[derive(Debug, Clone, Copy)]
pub struct LogBounds {
    /// Epochs granted, including the first: 2 or 3.
    pub epochs: u8,
    /// Inputs taken: at most 3.
    pub inputs: u8,
    /// Whether db runs; otherwise it is down throughout.
    pub db: bool,
    /// Whether an idle holder appends empty batches (L7). These detect a loss; without them only the next input does,
    /// which is as safe and has far fewer states.
    pub beats: bool,
    pub faults: Faults,
}

/// The model of one log.
#[derive(Debug, Clone, Copy)]
pub struct LogModel {
    /// The rules in force.
    pub rules: Rules,
    /// The realm's setting.
    pub acknowledged: Acknowledged,
    /// Bounds of a schedule.
    pub bounds: LogBounds,
}

/// The state of the model of one log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LogState {
    subject: Subject,
    packets: [Packet; MOST_PACKETS],
    holders: [Holder; MOST_HOLDERS],
    store: Store,
    db: Db,
    /// By input: the batch with which it was shown; [`UNLOGGED`] if it was shown before it was in a batch.
    shown: [Option<Batch>; MOST_INPUTS],
    next_input: u8,
    losses: Losses,
    left: Faults,
    wrong: Option<Invariant>,
}

/// Stands for the batch of an input that was shown before it was in a batch (without G1).
const UNLOGGED: Option<Batch> = Some(Batch::NONE);

/// A packet between a holder and the log. It may arrive at any time or never.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub(crate) enum Packet {
    #[default]
    None,
    /// A holder's append (holder by index), with the sequence it expects.
    Append {
        from: u8,
        batch: Batch,
        expect: u8,
        /// Whether it was sent over a connection that is closed: no answer returns over that one.
        closed: bool,
    },
    /// The log's acknowledgement of an append.
    Stored { to: u8, batch: Batch, sequence: u8 },
}

/// A step. Holders, packets and messages are named by index.
#[derive(Debug, Clone, Copy)]
pub enum LogStep {
    /// The director grants the next epoch to the next process.
    Grant,
    /// A freshness limit passes.
    TimePasses,
    /// A holder takes the next input.
    Input(u8),
    /// A holder closes the gathering batch and sends it.
    Close(u8),
    /// A holder without an answer, or with a rejection, reads the subject's last message (L5).
    Look(u8),
    /// An idle holder sends an empty batch (L7).
    Beat(u8),
    /// A holder confirms its epoch at the store (E6).
    Confirm(u8),
    /// The output of an input leaves a holder's gate.
    Show(u8, u8),
    /// A taker reads cursor and archive (E1).
    ReadStore(u8),
    /// A taker reads the subject and sends its `Open` (E1, E2).
    ReadSubject(u8),
    /// A taker reads the subject again (E3).
    SecondLook(u8),
    /// A taker records its opening (E3).
    Record(u8),
    /// The same, but the store's answer is lost.
    RecordUnanswered(u8),
    /// A packet arrives.
    Arrive(u8),
    /// A packet arrives, and a copy of it stays in flight.
    ArriveTwice(u8),
    /// db folds a message.
    Fold(u8),
    /// db folds the batch that it has read ahead.
    FoldHand,
    /// db reads the openings before it folds (only without F2).
    DbLearn,
    /// A holder fills the hole after db's cursor (F4).
    Fill(u8),
    /// The same, with damaged bytes.
    FillDamaged(u8),
    /// db trims the subject (F6).
    Trim,
    /// A holder crashes.
    Crash(u8),
    /// A server closes a holder's connection and reports that; the holder need not notice.
    Disconnect(u8),
    /// A holder notices, and is connected again.
    Reconnect(u8),
    /// The log loses its newest messages.
    LoseTail(u8),
    /// The same, but db has already read the first of them.
    LoseTailRead(u8),
    /// The log loses one message.
    LoseAt(u8),
    /// The same, but db has already read it.
    LoseAtRead(u8),
}

impl Model for LogModel {
    type State = LogState;
    type Step = LogStep;

    fn start(&self) -> LogState {
        let open = Batch::NONE.opened_by(1);
        let mut holders = [Holder::default(); MOST_HOLDERS];
        holders[0] = Holder::established(open);
        LogState {
            subject: Subject::holding(open),
            packets: [Packet::None; MOST_PACKETS],
            holders,
            store: Store::with_archived(open),
            db: Db::default(),
            shown: [None; MOST_INPUTS],
            next_input: 0,
            losses: Losses::default(),
            left: self.bounds.faults,
            wrong: None,
        }
    }

    fn steps(&self, state: &LogState, steps: &mut Vec<LogStep>) {
        for holder in 0..self.bounds.epochs {
            self.holder_steps(state, holder, steps);
        }
        self.network_steps(state, steps);
        if self.bounds.db {
            self.db_steps(state, steps);
        }
        if state.store.granted < self.bounds.epochs {
            steps.push(LogStep::Grant);
        }
        steps.push(LogStep::TimePasses);
        self.loss_steps(state, steps);
    }

    fn take(&self, state: &LogState, step: LogStep) -> LogState {
        let mut after = *state;
        self.happen(&mut after, step);
        after.forget_the_irrelevant();
        after
    }

    fn broken(&self, state: &LogState) -> Option<Invariant> {
        self.shown_and_lost(state)
            .then_some(Invariant::ShownIsNeverLost)
            .or(state.wrong)
    }

    fn words(&self, state: &LogState, step: LogStep, after: &LogState) -> String {
        words::words(state, step, after)
    }

    /// The newest holder serves, is idle and has everything archived; or no holder is left; or the chain has its
    /// maximum length.
    fn settled(&self, state: &LogState) -> bool {
        let newest = &state.holders[usize::from(state.store.granted) - 1];
        match newest.phase {
            Phase::Serving => {
                let said_all = newest.sending == 0 && newest.gathering == 0 && state.store.cursor == newest.tip;
                said_all || newest.tip.number() == batch::MOST_BATCHES
            }
            Phase::Gone => true,
            _ => false,
        }
    }

    fn is_fault(&self, step: LogStep) -> bool {
        matches!(
            step,
            LogStep::Grant
                | LogStep::Input(_)
                | LogStep::RecordUnanswered(_)
                | LogStep::ArriveTwice(_)
                | LogStep::FillDamaged(_)
                | LogStep::Crash(_)
                | LogStep::Disconnect(_)
                | LogStep::LoseTail(_)
                | LogStep::LoseTailRead(_)
                | LogStep::LoseAt(_)
                | LogStep::LoseAtRead(_)
        )
    }
}

impl LogModel {
    fn happen(&self, state: &mut LogState, step: LogStep) {
        match step {
            LogStep::Grant => self.grant(state),
            LogStep::TimePasses => {
                state.holders.iter_mut().for_each(Holder::grow_older);
            }
            LogStep::Input(holder) => state.input(holder),
            LogStep::Close(holder) | LogStep::Beat(holder) => self.close(state, holder),
            LogStep::Look(holder) => self.look(state, holder),
            LogStep::Confirm(holder) => self.confirm(state, holder),
            LogStep::Show(holder, input) => self.show(state, holder, input),
            LogStep::ReadStore(holder) => state.read_store(holder),
            LogStep::ReadSubject(holder) => self.read_subject(state, holder),
            LogStep::SecondLook(holder) => self.second_look(state, holder),
            LogStep::Record(holder) => self.record(state, holder, true),
            LogStep::RecordUnanswered(holder) => {
                spend(&mut state.left.unknowns);
                self.record(state, holder, false);
            }
            LogStep::Arrive(packet) => {
                let packet = std::mem::take(&mut state.packets[usize::from(packet)]);
                self.arrive(state, packet);
            }
            LogStep::ArriveTwice(packet) => {
                spend(&mut state.left.repeats);
                self.arrive(state, state.packets[usize::from(packet)]);
            }
            LogStep::Fold(_) | LogStep::FoldHand | LogStep::DbLearn | LogStep::Trim => self.db_step(state, step),
            LogStep::Fill(holder) => state.fill(holder),
            LogStep::FillDamaged(holder) => state.fill_damaged(holder),
            LogStep::Crash(holder) => {
                spend(&mut state.left.crashes);
                state.crash(holder);
            }
            LogStep::Disconnect(holder) => {
                spend(&mut state.left.disconnects);
                state.disconnect(holder);
            }
            LogStep::Reconnect(holder) => state.holders[usize::from(holder)].link = Link::Unconfirmed,
            LogStep::LoseTail(count) | LogStep::LoseTailRead(count) => {
                spend(&mut state.left.tails);
                let messages = state.subject.messages();
                let lost: Vec<Message> = messages[messages.len() - usize::from(count)..].to_vec();
                state.subject.lose_tail(count);
                state.lose(&lost, matches!(step, LogStep::LoseTailRead(_)));
            }
            LogStep::LoseAt(index) | LogStep::LoseAtRead(index) => {
                spend(&mut state.left.holes);
                let lost = state.subject.messages()[usize::from(index)];
                state.subject.lose_at(index);
                state.lose(&[lost], matches!(step, LogStep::LoseAtRead(_)));
            }
        }
    }

    /// Grants the next epoch. E8: the last holder has ended if it crashed, or if the store has a closed connection as its
    /// own; before a taker records an opening, only the holder of the newest opening can show anything.
    fn grant(&self, state: &mut LogState) {
        let last = &state.holders[usize::from(state.store.highest_opening()) - 1];
        let was_closed = self.bounds.faults.disconnects > state.left.disconnects;
        let has_ended =
            last.phase == Phase::Gone || last.link != Link::Attached || was_closed && !self.rules.has(Rule::E8AtGrant);
        state.store.granted += 1;
        let taker = &mut state.holders[usize::from(state.store.granted) - 1];
        taker.phase = Phase::Granted;
        taker.after_ended = has_ended;
    }

    fn network_steps(&self, state: &LogState, steps: &mut Vec<LogStep>) {
        for (index, packet) in (0u8..).zip(state.packets) {
            let possible = match packet {
                Packet::None => false,
                Packet::Append { .. } => state.subject.has_room(),
                Packet::Stored { .. } => true,
            };
            if possible {
                steps.push(LogStep::Arrive(index));
                if state.left.repeats > 0 && matches!(packet, Packet::Append { .. }) {
                    steps.push(LogStep::ArriveTwice(index));
                }
            }
        }
    }

    fn loss_steps(&self, state: &LogState, steps: &mut Vec<LogStep>) {
        let messages = state.subject.messages();
        for (index, message) in (0u8..).zip(messages) {
            let count = messages.len() as u8 - index;
            let readable = self.follows(message.batch, state.store.cursor);
            if state.left.tails > 0 && count <= 2 {
                steps.push(LogStep::LoseTail(count));
                if readable {
                    steps.push(LogStep::LoseTailRead(count));
                }
            }
            if state.left.holes > 0 {
                steps.push(LogStep::LoseAt(index));
                if readable {
                    steps.push(LogStep::LoseAtRead(index));
                }
            }
        }
    }

    fn arrive(&self, state: &mut LogState, packet: Packet) {
        match packet {
            Packet::None => {}
            Packet::Append {
                from,
                batch,
                expect,
                closed,
            } => {
                if self.rules.has(Rule::L4Fence) && state.subject.last_sequence() != expect {
                    return;
                }
                if state.losses.none_so_far() && state.store.highest_opening() > from + 1 {
                    state.wrong = Some(Invariant::ReplacedAppendsNothing);
                }
                let sequence = state.subject.append(batch);
                state.losses.put_back(batch);
                if !closed || !self.rules.has(Rule::E8SameConnection) {
                    state.send(Packet::Stored {
                        to: from,
                        batch,
                        sequence,
                    });
                }
            }
            Packet::Stored { to, batch, sequence } => {
                let holder = &state.holders[usize::from(to)];
                let meant = if self.rules.has(Rule::L3Frozen) {
                    holder.tip.at(holder.sending) == batch
                } else {
                    holder.sending == batch.number()
                };
                if holder.sending != 0 && meant {
                    self.acknowledge(state, to, batch.number(), sequence);
                }
            }
        }
    }
}

impl LogState {
    /// Sends a packet. A packet already in flight is not sent twice (a repeat is a fault of its own), and one for which
    /// there is no room is lost.
    fn send(&mut self, packet: Packet) {
        if self.packets.contains(&packet) {
            return;
        }
        if let Some(free) = self.packets.iter_mut().find(|slot| **slot == Packet::None) {
            *free = packet;
        }
        self.packets.sort_unstable();
    }

    fn can_send(&self) -> bool {
        self.packets.contains(&Packet::None)
    }

    /// A server closes the holder's connection: what it sent before may still arrive.
    fn disconnect(&mut self, holder: u8) {
        self.holders[usize::from(holder)].link = Link::Closed;
        for packet in &mut self.packets {
            if let Packet::Append { from, closed, .. } = packet {
                *closed |= *from == holder;
            }
        }
        self.packets.sort_unstable();
    }

    /// Drops what can no longer have an effect, so that equivalent states are equal.
    fn forget_the_irrelevant(&mut self) {
        for slot in &mut self.packets {
            if let Packet::Stored { to, batch, .. } = *slot {
                let holder = &self.holders[usize::from(to)];
                if holder.sending == 0 || holder.sending != batch.number() {
                    *slot = Packet::None;
                }
            }
        }
        self.packets.sort_unstable();
        self.holders.iter_mut().for_each(Holder::forget_the_irrelevant);
        self.settle_losses();
    }
}
