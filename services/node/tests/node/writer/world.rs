//! A small model of a writer's environment: the log, the store, db, and any number of processes, of which the newest
//! holds the owner and the others do not know that yet.

use std::collections::{BTreeMap, BTreeSet};

use annals_event::FrozenBatch;
use annals_ids::{BatchNumber, Epoch, Hash};
use annals_node::{
    chain::assemble,
    gate::Gate,
    time::Mono,
    writer::{Action, Chain, Durability, Input, Opening, OpeningRefused, Stop, Tip, Wanted, Writer},
};

use crate::writer::{OWNER, batch_behind, tip_of};

/// The subject: the messages that JetStream holds, in order.
#[derive(Default)]
pub(crate) struct Log {
    pub(crate) messages: Vec<(u64, FrozenBatch)>,
    next: u64,
}

impl Log {
    fn last(&self) -> u64 {
        self.messages.last().map_or(0, |(sequence, _)| *sequence)
    }

    fn append(&mut self, expect: u64, batch: &FrozenBatch) -> Input {
        if expect != self.last() {
            return Input::Rejected;
        }
        self.next += 1;
        self.messages.push((self.next, batch.clone()));
        Input::Appended { sequence: self.next }
    }
}

/// The store's records of the owner, and the rules by which they change.
#[derive(Default)]
pub(crate) struct Store {
    pub(crate) granted: Epoch,
    openings: BTreeMap<Epoch, Opening>,
    pub(crate) archive: Vec<FrozenBatch>,
}

impl Store {
    pub(crate) fn cursor(&self) -> Tip {
        self.archive.last().map_or(Tip::default(), tip_of)
    }

    fn is_void(&self, batch: &FrozenBatch) -> bool {
        self.openings
            .values()
            .any(|opening| opening.epoch > batch.epoch && opening.number <= batch.number)
    }

    /// E3.
    fn record(&mut self, opening: Opening) -> Input {
        if opening.epoch != self.granted {
            return Input::OpeningRefused(OpeningRefused::Superseded);
        }
        if self.openings.get(&opening.epoch) != Some(&opening) {
            if self.cursor().number >= opening.number {
                return Input::OpeningRefused(OpeningRefused::CursorPassed);
            }
            self.openings.insert(opening.epoch, opening);
        }
        Input::OpeningRecorded
    }

    /// F2, for one batch that db has read. An `Open` waits until the store holds its opening.
    fn fold(&mut self, batch: &FrozenBatch) -> bool {
        let tip = self.cursor();
        let follows = batch.number == tip.number.next() && batch.previous == tip.hash;
        let opening = Opening {
            epoch: batch.epoch,
            number: batch.number,
            hash: batch.hash,
        };
        let opened = !batch.opens || self.openings.get(&batch.epoch) == Some(&opening);
        let folded = follows && opened && !self.is_void(batch);
        if folded {
            self.archive.push(batch.clone());
        }
        folded
    }
}

/// An action in flight.
enum Question {
    Append { expect: u64, batch: FrozenBatch },
    Last,
    Look,
    Record(Opening),
    Confirm(Epoch),
    Answered(Input),
}

/// A process that holds the owner, or believes it does.
pub(crate) struct Process {
    pub(crate) writer: Writer,
    gate: Gate<Tip>,
    question: Option<Question>,
}

/// The whole model. `shown` is what left any gate, `safe` the batches that fresh writers counted as acknowledged.
#[derive(Default)]
pub(crate) struct World {
    pub(crate) log: Log,
    pub(crate) store: Store,
    pub(crate) processes: Vec<Process>,
    pub(crate) shown: Vec<Tip>,
    safe: BTreeSet<Hash>,
    /// Appends whose senders timed out, and which may still arrive.
    strays: Vec<(u64, FrozenBatch)>,
    /// Batches that db has read and not folded yet, and the sequence up to which it read.
    read: Vec<FrozenBatch>,
    read_upto: u64,
    now: Mono,
    marks: u64,
}

impl World {
    pub(crate) fn newest(&mut self) -> &mut Process {
        self.processes.last_mut().expect("a process holds the owner")
    }

    pub(crate) fn wait(&mut self, milliseconds: u64) {
        self.now.0 += milliseconds * 1_000;
    }

    /// The director grants a new epoch, and its holder reads the log (E1). Within the fault budget the previous holder
    /// has resent what the log had lost by then.
    pub(crate) fn take_over(&mut self) {
        if let Some(chain) = self.read_chain() {
            let known: BTreeSet<Hash> = self
                .store
                .archive
                .iter()
                .chain(&chain.beyond)
                .map(|batch| batch.hash)
                .collect();
            if !self.safe.is_subset(&known) {
                return;
            }
            self.store.granted = self.store.granted.next();
            self.begin(chain);
        }
    }

    /// The newest process, after `ReadAgain`, reads again in the same epoch.
    pub(crate) fn retake(&mut self) {
        if matches!(self.newest().writer.stopped(), Some(Stop::ReadAgain { .. }))
            && let Some(chain) = self.read_chain()
        {
            self.processes.pop();
            self.begin(chain);
        }
    }

    fn begin(&mut self, chain: Chain) {
        let writer = Writer::take_over(OWNER, self.store.granted, Durability::Log, chain);
        self.processes.push(Process {
            writer,
            gate: Gate::new(),
            question: None,
        });
    }

    /// E1: archive, then log. `None` while there is a hole in between, which db has to fill.
    fn read_chain(&mut self) -> Option<Chain> {
        self.read_log();
        while self.fold() {}
        let openings: Vec<Opening> = self.store.openings.values().copied().collect();
        let batches = self.log.messages.iter().map(|(_, batch)| batch.bytes.clone());
        assemble(OWNER, self.store.cursor(), &openings, batches, self.log.last()).ok()
    }

    /// One turn of a process: it closes a batch if one is wanted, makes an output that depends on it, and sends a
    /// request.
    pub(crate) fn turn(&mut self, who: usize) {
        let Some(process) = self.processes.get_mut(who) else {
            return;
        };
        let wanted = process.writer.wanted(self.now);
        if wanted != Wanted::Nothing {
            self.marks += 1;
            let opens = wanted == Wanted::Opening;
            let batch = batch_behind(process.writer.tip(), process.writer.epoch(), opens, self.marks);
            process.gate.push(batch.number, tip_of(&batch));
            process.writer.offer(self.now, batch);
        }
        let question = match process.writer.poll(self.now) {
            None => return,
            Some(Action::Append { expect, batch }) => Question::Append {
                expect,
                batch: batch.clone(),
            },
            Some(Action::ReadLast) => Question::Last,
            Some(Action::LookAgain) => Question::Look,
            Some(Action::RecordOpening(opening)) => Question::Record(opening),
            Some(Action::ConfirmEpoch) => Question::Confirm(process.writer.epoch()),
        };
        assert!(process.question.is_none(), "two actions at once");
        process.question = Some(question);
    }

    /// A process's request reaches the log or the store, which executes it. The answer is in flight.
    pub(crate) fn carry(&mut self, who: usize) {
        let Some(process) = self.processes.get_mut(who) else {
            return;
        };
        let last = || {
            self.log
                .messages
                .last()
                .map(|(sequence, batch)| (*sequence, batch.bytes.clone()))
        };
        let answer = match process.question.take() {
            None => return,
            Some(Question::Append { expect, batch }) => self.log.append(expect, &batch),
            Some(Question::Last) => Input::Last(last()),
            Some(Question::Look) => Input::Looked {
                batches: self.log.messages.iter().map(|(_, batch)| batch.bytes.clone()).collect(),
                last: last(),
            },
            Some(Question::Record(opening)) => {
                let answer = self.store.record(opening);
                if answer == Input::OpeningRecorded {
                    let chain = (1..=opening.number.0).filter_map(|number| process.writer.kept(BatchNumber(number)));
                    self.safe.extend(chain.map(|batch| batch.hash));
                }
                answer
            }
            Some(Question::Confirm(epoch)) if epoch == self.store.granted => Input::EpochConfirmed,
            Some(Question::Confirm(_)) => Input::EpochLost,
            Some(Question::Answered(answer)) => answer,
        };
        process.question = Some(Question::Answered(answer));
    }

    /// The answer arrives; if the request has not arrived yet, both do.
    pub(crate) fn answer(&mut self, who: usize) {
        self.carry(who);
        let Some(process) = self.processes.get_mut(who) else {
            return;
        };
        if let Some(Question::Answered(answer)) = process.question.take() {
            process.writer.handle(self.now, answer);
            self.release(who);
        }
    }

    /// The process stops waiting. Its request may have been executed, or may still be.
    pub(crate) fn silence(&mut self, who: usize) {
        let Some(process) = self.processes.get_mut(who) else {
            return;
        };
        match process.question.take() {
            None => return,
            Some(Question::Append { expect, batch }) => self.strays.push((expect, batch)),
            Some(_) => {}
        }
        process.writer.handle(self.now, Input::Silent);
        self.release(who);
    }

    /// An append whose sender timed out arrives after all.
    pub(crate) fn stray(&mut self, which: usize) {
        if !self.strays.is_empty() {
            let (expect, batch) = self.strays.swap_remove(which % self.strays.len());
            self.log.append(expect, &batch);
        }
    }

    /// The process is disconnected from the bus, with the request delivered or not, and reconnected.
    pub(crate) fn reconnect(&mut self, who: usize) {
        let Some(process) = self.processes.get_mut(who) else {
            return;
        };
        process.writer.handle(self.now, Input::Disconnected);
        self.release(who);
        self.answer(who);
        let Some(process) = self.processes.get_mut(who) else {
            return;
        };
        process.writer.handle(self.now, Input::Reconnected);
    }

    fn release(&mut self, who: usize) {
        let process = &mut self.processes[who];
        if process.writer.stopped().is_some() {
            process.gate.shut();
        }
        let acknowledged = process.writer.acknowledged();
        let fresh = process.writer.is_fresh(self.now);
        while let Some(tip) = process.gate.release(acknowledged, fresh) {
            assert!(
                tip.number <= acknowledged,
                "batch {} was shown at {acknowledged}",
                tip.number
            );
            self.shown.push(tip);
        }
        if process.writer.opening().is_some() {
            let chain = (self.store.archive.len() as u64..=acknowledged.0).map(BatchNumber);
            let counted = chain.filter_map(|number| process.writer.kept(number));
            let counted = counted.filter(|batch| !self.store.is_void(batch));
            self.safe.extend(counted.map(|batch| batch.hash));
        }
    }

    /// JetStream loses up to `count` messages from the subject's end, within the fault budget: every acknowledged batch
    /// is archived, or its writer is alive and holds the owner. With `rewind` their sequences are reused.
    pub(crate) fn lose_tail(&mut self, count: usize, rewind: bool) {
        for _ in 0..count {
            let Some((_, batch)) = self.log.messages.last() else {
                return;
            };
            let batch = batch.clone();
            let holder = &self.newest().writer;
            let held = holder.opening().is_some()
                && holder.stopped().is_none()
                && holder.kept(batch.number).is_some_and(|kept| kept.hash == batch.hash);
            let archived = batch.number <= self.store.cursor().number;
            if !held && !archived && self.safe.contains(&batch.hash) {
                return;
            }
            self.log.messages.pop();
            // An answer in flight that reports the lost messages is lost too.
            for process in &mut self.processes {
                if let Some(Question::Answered(answer @ (Input::Appended { .. } | Input::Last(_)))) =
                    &mut process.question
                {
                    *answer = Input::Silent;
                }
            }
        }
        if rewind {
            self.log.next = self.log.last();
        }
        self.read_upto = self.read_upto.min(self.log.last());
    }

    /// db reads the log to its end.
    pub(crate) fn read_log(&mut self) {
        let new = self
            .log
            .messages
            .iter()
            .filter(|(sequence, _)| *sequence > self.read_upto);
        self.read.extend(new.map(|(_, batch)| batch.clone()));
        self.read_upto = self.log.last();
    }

    /// db folds one of the batches that it has read, or fills a hole from the kept batches of a process (F4). Returns
    /// whether it did.
    pub(crate) fn fold(&mut self) -> bool {
        let cursor = self.store.cursor().number;
        self.read.retain(|batch| batch.number > cursor);
        for index in 0..self.read.len() {
            let batch = self.read[index].clone();
            if self.store.fold(&batch) || (!self.store.is_void(&batch) && self.fill_before(&batch)) {
                return true;
            }
        }
        false
    }

    /// Fetches the batches before `successor`, back to the cursor, and folds the first of them.
    fn fill_before(&mut self, successor: &FrozenBatch) -> bool {
        let mut wanted = (successor.number.0 - 1, successor.previous);
        while wanted.0 > self.store.cursor().number.0 {
            let mut kept = self
                .processes
                .iter()
                .filter_map(|p| p.writer.kept(BatchNumber(wanted.0)));
            let Some(batch) = kept.find(|batch| batch.hash == wanted.1).cloned() else {
                return false;
            };
            if self.store.fold(&batch) {
                return true;
            }
            wanted = (wanted.0 - 1, batch.previous);
        }
        false
    }

    /// db announces the cursor to a process.
    pub(crate) fn announce(&mut self, who: usize) {
        let (upto, newest) = (self.store.cursor(), self.store.archive.last());
        let epoch = newest.map_or(Epoch(0), |batch| batch.epoch);
        if let Some(process) = self.processes.get_mut(who) {
            process.writer.handle(self.now, Input::Archived { upto, epoch });
            self.release(who);
        }
    }

    /// Faults end: the newest holder continues until two more batches are in the log, and db folds everything.
    pub(crate) fn calm(&mut self) {
        let mut goal = None;
        for _ in 0..2_000 {
            self.wait(200);
            self.retake();
            let who = self.processes.len() - 1;
            self.turn(who);
            self.answer(who);
            let writer = &self.newest().writer;
            let acknowledged = writer.acknowledged().0;
            if writer.opening().is_some() && acknowledged >= *goal.get_or_insert(acknowledged + 2) {
                self.read_log();
                while self.fold() {}
                return;
            }
        }
        panic!("the newest holder does not get on: {:?}", self.newest().writer);
    }
}
