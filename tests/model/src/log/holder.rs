//! A process and its holding of the owner: take-over (E1 to E4), writing (L), and the gate (G).

use super::batch::{Batch, MOST_BATCHES};
use super::subject::Message;
use super::{Acknowledged, LogModel, LogState, LogStep, Packet, UNLOGGED};
use crate::invariant::Invariant;
use crate::rule::Rule;

/// Time since an event, in freshness limits, rounded down: 1 may be nearly 2.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub(crate) struct Age(u8);

impl Age {
    const NOW: Self = Self(0);
    /// Longer than any age that a rule depends on.
    const LONG: Self = Self(2);

    fn grow(&mut self) {
        self.0 = Self::LONG.0.min(self.0 + 1);
    }

    /// Whether less than a freshness limit may have passed.
    fn is_fresh(self) -> bool {
        self.0 <= 1
    }

    /// Whether more time has passed than any holder can have stayed fresh.
    fn outlasts_freshness(self) -> bool {
        self == Self::LONG
    }
}

/// Phase of a process with its owner.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) enum Phase {
    /// Its epoch is not granted yet.
    #[default]
    Waiting,
    /// Granted; the next step is E1.
    Granted,
    /// It has read cursor and archive, up to `base`.
    ReadStore,
    /// Its `Open` is in flight.
    Opening,
    /// Its `Open` was acknowledged `opened` ago.
    Opened,
    /// It has read the subject again and found its `Open` last.
    Looked,
    /// Its opening is recorded: the gate is open.
    Serving,
    /// It has stopped or crashed.
    Gone,
}

/// A holder's connection to the bus.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) enum Link {
    /// Open; the store has it as the holder's.
    #[default]
    Attached,
    /// Closed and reported; the holder need not have noticed.
    Closed,
    /// Another one is open; the store still has the closed one.
    Unconfirmed,
}

/// One process and its memory. Its epoch is its index + 1.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct Holder {
    pub(crate) phase: Phase,
    /// The cursor that it read at take-over.
    pub(crate) base: Batch,
    /// The newest batch it closed (and its chain), in flight or acknowledged.
    pub(crate) tip: Batch,
    /// The highest batch acknowledged so far.
    pub(crate) acked: u8,
    /// The batch being appended; 0 for none. Below `tip` while it resends what the log lost.
    pub(crate) sending: u8,
    /// The sequence of the subject's last message, as known to the holder.
    pub(crate) expect: u8,
    /// The inputs of the gathering batch.
    pub(crate) gathering: u8,
    /// Time since `tip` was first sent, while it is in flight.
    pub(crate) sent: Age,
    /// Time since the append was sent that made the holder fresh.
    pub(crate) fresh: Age,
    /// Time since its `Open` was acknowledged, until it is recorded.
    pub(crate) opened: Age,
    pub(crate) link: Link,
    /// Whether the grant found that the last holder had ended (E8).
    pub(crate) after_ended: bool,
}

impl Holder {
    /// The holder of epoch 1, with only its `Open`.
    pub(crate) fn established(open: Batch) -> Self {
        Self {
            phase: Phase::Serving,
            tip: open,
            acked: 1,
            expect: 1,
            base: open,
            ..Self::default()
        }
    }

    pub(crate) fn has_chain(&self) -> bool {
        matches!(
            self.phase,
            Phase::Opening | Phase::Opened | Phase::Looked | Phase::Serving
        )
    }

    /// A freshness limit passes.
    pub(crate) fn grow_older(&mut self) {
        for age in [&mut self.sent, &mut self.fresh, &mut self.opened] {
            age.grow();
        }
    }

    /// Resets the fields that have no meaning in this phase, so that equivalent states are equal.
    pub(crate) fn forget_the_irrelevant(&mut self) {
        if self.sending == 0 {
            self.sent = Age::NOW;
        }
        if self.phase != Phase::Opened {
            self.opened = Age::NOW;
        }
        if matches!(self.phase, Phase::Serving | Phase::Gone) {
            self.after_ended = false;
        }
        if matches!(
            self.phase,
            Phase::Waiting | Phase::Granted | Phase::ReadStore | Phase::Opening
        ) {
            self.fresh = Age::NOW;
        }
    }
}

/// What the subject's last message means to a writer (the table of L5).
enum Last {
    Acknowledged(Message),
    Earlier { next: u8, expect: u8 },
    VoidForIt { expect: u8 },
    Higher,
    Foreign,
}

impl LogModel {
    pub(crate) fn holder_steps(&self, state: &LogState, index: u8, steps: &mut Vec<LogStep>) {
        let holder = &state.holders[usize::from(index)];
        match holder.phase {
            Phase::Waiting => return,
            Phase::Gone => {
                if !self.rules.has(Rule::G4Emptied) {
                    self.show_steps(state, index, steps);
                }
                return;
            }
            Phase::Granted => steps.push(LogStep::ReadStore(index)),
            Phase::ReadStore => {
                let chain = self.chain_on_subject(state, holder.base);
                if chain.number() < MOST_BATCHES && state.can_send() {
                    steps.push(LogStep::ReadSubject(index));
                }
            }
            Phase::Opening => {}
            Phase::Opened => {
                if !self.rules.has(Rule::E3SecondLook) || holder.after_ended {
                    self.record_steps(state, index, steps);
                } else if holder.opened.outlasts_freshness() {
                    steps.push(LogStep::SecondLook(index));
                }
            }
            Phase::Looked => self.record_steps(state, index, steps),
            Phase::Serving => {
                let lapsed = !holder.fresh.is_fresh() && self.rules.has(Rule::E6Confirmed);
                if lapsed && holder.link != Link::Closed || holder.link == Link::Unconfirmed {
                    steps.push(LogStep::Confirm(index));
                }
                match holder.link {
                    Link::Attached if state.left.disconnects > 0 => steps.push(LogStep::Disconnect(index)),
                    Link::Closed => steps.push(LogStep::Reconnect(index)),
                    Link::Attached | Link::Unconfirmed => {}
                }
                if self.may_beat(state, index) {
                    steps.push(LogStep::Beat(index));
                }
            }
        }
        if holder.sending != 0 && state.can_send() && holder.link != Link::Closed {
            steps.push(LogStep::Look(index));
        }
        if self.speaks(holder) {
            self.write_steps(state, index, steps);
            self.show_steps(state, index, steps);
            self.fill_steps(state, index, steps);
        }
        if state.left.crashes > 0 {
            steps.push(LogStep::Crash(index));
        }
    }

    /// L7. An empty batch that is stored only makes the chain longer. So one is sent only where it can detect
    /// something: where the log has lost a batch of the newest holder.
    fn may_beat(&self, state: &LogState, index: u8) -> bool {
        let holder = &state.holders[usize::from(index)];
        let idle = holder.sending == 0 && holder.gathering == 0;
        let room = holder.tip.number() < MOST_BATCHES && state.can_send();
        let newest = state.store.granted == index + 1;
        let owed = state.store.cursor != holder.tip && !state.subject.has(holder.tip);
        self.bounds.beats && idle && room && newest && owed && self.rules.has(Rule::L7Beat)
    }

    fn record_steps(&self, state: &LogState, index: u8, steps: &mut Vec<LogStep>) {
        steps.push(LogStep::Record(index));
        if state.left.unknowns > 0 {
            steps.push(LogStep::RecordUnanswered(index));
        }
    }

    /// Whether the holder takes inputs and its gate is open.
    fn speaks(&self, holder: &Holder) -> bool {
        match holder.phase {
            Phase::Serving => true,
            Phase::Opened | Phase::Looked => !self.rules.has(Rule::E4GateAfterRecord),
            _ => false,
        }
    }

    fn write_steps(&self, state: &LogState, index: u8, steps: &mut Vec<LogStep>) {
        let holder = &state.holders[usize::from(index)];
        if holder.tip.number() == MOST_BATCHES {
            return;
        }
        if state.next_input < self.bounds.inputs {
            steps.push(LogStep::Input(index));
        }
        let free = holder.sending == 0 || !self.rules.has(Rule::L3OneInFlight);
        if holder.gathering != 0 && free && state.can_send() {
            steps.push(LogStep::Close(index));
        }
    }

    fn show_steps(&self, state: &LogState, index: u8, steps: &mut Vec<LogStep>) {
        let holder = &state.holders[usize::from(index)];
        if self.rules.has(Rule::G2Fresh) && !holder.fresh.is_fresh() {
            return;
        }
        if self.rules.has(Rule::E6Reconnected) && holder.link == Link::Unconfirmed {
            return;
        }
        for input in 0..state.next_input {
            if state.shown[usize::from(input)].is_none() && self.may_leave(state, holder, input) {
                steps.push(LogStep::Show(index, input));
            }
        }
    }

    /// G1: whether the batch that holds `input` is acknowledged. A taker shows recovered inputs as its predecessor
    /// would have.
    fn may_leave(&self, state: &LogState, holder: &Holder, input: u8) -> bool {
        let emptied = holder.phase == Phase::Gone;
        if !self.rules.has(Rule::G1LogBeforeShow) && holder.gathering & 1 << input != 0 {
            return true;
        }
        let Some(batch) = holder.tip.holder_of(input) else {
            return false;
        };
        if emptied || !self.rules.has(Rule::G1LogBeforeShow) {
            return true;
        }
        match self.acknowledged {
            Acknowledged::Log => batch.number() <= holder.acked,
            Acknowledged::Archive => state.store.cursor.contains(batch),
        }
    }

    pub(crate) fn show(&self, state: &mut LogState, index: u8, input: u8) {
        let holder = &state.holders[usize::from(index)];
        state.shown[usize::from(input)] = holder.tip.holder_of(input).or(UNLOGGED);
        // A holder with a closed connection may show, for as long as it is fresh, what the opening follows.
        let newest = state.store.openings[usize::from(state.store.highest_opening()) - 1];
        let is_kept =
            holder.link == Link::Closed && state.shown[usize::from(input)].is_some_and(|batch| newest.contains(batch));
        if state.store.highest_opening() > index + 1 && !is_kept && !self.excuses(state, holder.tip) {
            state.wrong = Some(Invariant::ReplacedShowsNothing);
        }
    }

    pub(crate) fn close(&self, state: &mut LogState, index: u8) {
        let holder = &mut state.holders[usize::from(index)];
        holder.tip = holder.tip.followed_by(index + 1, holder.gathering);
        holder.gathering = 0;
        holder.sending = holder.tip.number();
        holder.sent = Age::NOW;
        state.note_logged(index);
        state.send_append(index);
    }

    /// L5: reads the subject's last message through the leader and compares it with the holder's chain.
    pub(crate) fn look(&self, state: &mut LogState, index: u8) {
        let holder = state.holders[usize::from(index)];
        if !self.rules.has(Rule::L5Silence) {
            let number = holder.sending;
            self.acknowledge(state, index, number, holder.expect + 1);
            return;
        }
        match self.last_for(state, index) {
            Last::Acknowledged(last) => self.acknowledge(state, index, last.batch.number(), last.sequence),
            Last::Earlier { expect, .. } if holder.phase == Phase::Opening && expect == holder.expect => {
                state.send_append(index);
            }
            _ if holder.phase == Phase::Opening => state.holders[usize::from(index)].begin_again(),
            Last::Earlier { next, expect } => {
                self.refreeze(state, index);
                let holder = &mut state.holders[usize::from(index)];
                holder.sending = next;
                holder.expect = expect;
                state.send_append(index);
            }
            Last::VoidForIt { expect } => {
                state.holders[usize::from(index)].expect = expect;
                state.send_append(index);
            }
            Last::Higher => self.stop(state, index),
            Last::Foreign => {
                state.wrong = Some(Invariant::AlarmsAreTrue);
                self.stop(state, index);
            }
        }
    }

    fn last_for(&self, state: &LogState, index: u8) -> Last {
        let holder = &state.holders[usize::from(index)];
        let epoch = index + 1;
        let oldest_kept = (1..=holder.tip.number()).find(|number| self.keeps(state, holder, *number));
        let Some(last) = state.subject.last() else {
            return Last::Earlier {
                next: oldest_kept.unwrap_or(holder.tip.number()),
                expect: 0,
            };
        };
        let same = if self.rules.has(Rule::L2Chain) {
            holder.tip.contains(last.batch)
        } else {
            holder.tip.number() >= last.batch.number()
        };
        if same && last.batch.number() >= holder.sending {
            return Last::Acknowledged(last);
        }
        if same {
            let next = (last.batch.number() + 1).max(oldest_kept.unwrap_or(0));
            return Last::Earlier {
                next,
                expect: last.sequence,
            };
        }
        if last.batch.epoch() > epoch {
            return if self.rules.has(Rule::L5Replaced) {
                Last::Higher
            } else {
                Last::VoidForIt { expect: last.sequence }
            };
        }
        let opening = holder.tip.opening_of(epoch).number();
        let earlier_try = self.rules.has(Rule::L5EarlierTry) && last.batch.epoch() == epoch && last.batch.is_open();
        if earlier_try || last.batch.epoch() < epoch && last.batch.number() >= opening {
            return Last::VoidForIt { expect: last.sequence };
        }
        Last::Foreign
    }

    /// L6: whether the holder can still resend that batch.
    pub(crate) fn keeps(&self, state: &LogState, holder: &Holder, number: u8) -> bool {
        let batch = holder.tip.at(number);
        let archived = number <= holder.base.number() || state.store.cursor.contains(batch);
        let acknowledged = number <= holder.acked && !self.rules.has(Rule::L6Kept);
        !archived && !acknowledged
    }

    /// Without the second half of L3, a resent batch includes what was gathered since.
    fn refreeze(&self, state: &mut LogState, index: u8) {
        let holder = &mut state.holders[usize::from(index)];
        if !self.rules.has(Rule::L3Frozen) && holder.gathering != 0 && !holder.tip.is_open() {
            holder.tip = holder.tip.holding(holder.tip.inputs() | holder.gathering);
            holder.gathering = 0;
        }
    }

    pub(crate) fn acknowledge(&self, state: &mut LogState, index: u8, number: u8, sequence: u8) {
        let holder = &mut state.holders[usize::from(index)];
        holder.expect = sequence;
        holder.acked = holder.acked.max(number);
        if holder.phase == Phase::Opening {
            holder.phase = Phase::Opened;
            holder.opened = Age::NOW;
            if !self.rules.has(Rule::E4GateAfterRecord) {
                holder.fresh = Age::NOW;
            }
        } else if holder.fresh.is_fresh() || !self.rules.has(Rule::E6Confirmed) {
            holder.fresh = holder.fresh.min(holder.sent);
        }
        if number < holder.tip.number() {
            holder.sending = number + 1;
            state.send_append(index);
        } else {
            holder.sending = 0;
        }
    }

    /// E6: a holder whose freshness lapsed asks the store whether its epoch is still the granted one.
    pub(crate) fn confirm(&self, state: &mut LogState, index: u8) {
        if state.store.granted == index + 1 {
            state.holders[usize::from(index)].fresh = Age::NOW;
            state.holders[usize::from(index)].link = Link::Attached;
        } else {
            self.stop(state, index);
        }
    }

    /// E1, E2: reads the subject to its end and appends the `Open` after the last valid batch.
    pub(crate) fn read_subject(&self, state: &mut LogState, index: u8) {
        let replaced = state
            .subject
            .messages()
            .iter()
            .any(|message| message.batch.epoch() > index + 1);
        if replaced && self.rules.has(Rule::E1Replaced) {
            self.stop(state, index);
            return;
        }
        let head = self.chain_on_subject(state, state.holders[usize::from(index)].base);
        let expect = state.subject.last_sequence();
        let holder = &mut state.holders[usize::from(index)];
        holder.tip = head.opened_by(index + 1);
        holder.acked = head.number();
        holder.sending = holder.tip.number();
        holder.expect = expect;
        holder.sent = Age::NOW;
        holder.phase = Phase::Opening;
        state.send_append(index);
    }

    /// The valid batches (F2) on the subject after `base`, in order.
    fn chain_on_subject(&self, state: &LogState, base: Batch) -> Batch {
        state.subject.messages().iter().fold(base, |head, message| {
            let batch = message.batch;
            let follows = batch.before() == head && batch.number() == head.number() + 1;
            if follows && self.may_be_folded(state, batch, u8::MAX) {
                batch
            } else {
                head
            }
        })
    }

    /// E3: repeats the reading of E1. It must end where the first one ended, and the `Open` must be last.
    pub(crate) fn second_look(&self, state: &mut LogState, index: u8) {
        let holder = state.holders[usize::from(index)];
        let open = holder.tip.opening_of(index + 1);
        let last = state.subject.last().map_or(Batch::NONE, |message| message.batch);
        let head = self.chain_on_subject(state, holder.base);
        let holder = &mut state.holders[usize::from(index)];
        let same_chain = head == open.before() || !self.rules.has(Rule::E3WholeChain);
        if same_chain && last.contains(open) && holder.tip.contains(last) {
            holder.phase = Phase::Looked;
            state.losses.excuse_all_but(open);
        } else {
            holder.begin_again();
        }
    }

    /// The holder stops by itself. Without G4, outputs that wait in its gate still leave.
    fn stop(&self, state: &mut LogState, index: u8) {
        let Holder { tip, fresh, .. } = state.holders[usize::from(index)];
        state.crash(index);
        if !self.rules.has(Rule::G4Emptied) {
            let holder = &mut state.holders[usize::from(index)];
            holder.tip = tip;
            holder.fresh = fresh;
        }
    }

    /// E3: one transaction, which may be repeated; `answered` says whether the taker receives the answer.
    pub(crate) fn record(&self, state: &mut LogState, index: u8, answered: bool) {
        let epoch = index + 1;
        let open = state.holders[usize::from(index)].tip.opening_of(epoch);
        if self.rules.has(Rule::E3Granted) && state.store.granted != epoch {
            self.stop(state, index);
            return;
        }
        let cursor = state.store.cursor;
        let recorded = state.store.openings[usize::from(index)] == open;
        let above_cursor = cursor.number() < open.number() || !self.rules.has(Rule::E3Cursor);
        if !recorded && !above_cursor && !cursor.contains(open) {
            state.holders[usize::from(index)].begin_again();
            return;
        }
        if self.rules.has(Rule::E3Recorded) {
            state.store.openings[usize::from(index)] = open;
        }
        state.losses.excuse_all_but(open);
        if answered {
            let holder = &mut state.holders[usize::from(index)];
            holder.phase = Phase::Serving;
            holder.fresh = Age::NOW;
        }
    }
}

impl Holder {
    /// Returns to E1 with no state.
    fn begin_again(&mut self) {
        *self = Self {
            phase: Phase::Granted,
            after_ended: self.after_ended,
            ..Self::default()
        };
    }
}

impl LogState {
    pub(crate) fn input(&mut self, index: u8) {
        self.holders[usize::from(index)].gathering |= 1 << self.next_input;
        self.next_input += 1;
    }

    pub(crate) fn read_store(&mut self, index: u8) {
        let holder = &mut self.holders[usize::from(index)];
        holder.base = self.store.cursor;
        holder.phase = Phase::ReadStore;
    }

    /// The process crashes and loses its memory; nobody can resend those of its batches that the log has lost.
    pub(crate) fn crash(&mut self, index: u8) {
        self.holders[usize::from(index)] = Holder {
            phase: Phase::Gone,
            ..Holder::default()
        };
    }

    fn send_append(&mut self, index: u8) {
        let holder = &self.holders[usize::from(index)];
        let batch = holder.tip.at(holder.sending);
        self.send(Packet::Append {
            from: index,
            batch,
            expect: holder.expect,
            closed: holder.link == Link::Closed,
        });
    }

    /// Notes that an input shown before it was in a batch is in one now.
    fn note_logged(&mut self, index: u8) {
        let batch = self.holders[usize::from(index)].tip;
        for (input, shown) in (0u8..).zip(&mut self.shown) {
            if *shown == UNLOGGED && batch.inputs() & 1 << input != 0 {
                *shown = Some(batch);
            }
        }
    }
}
