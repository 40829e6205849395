//! One owner on a log that acknowledges appends, and that outlives the process.

use std::sync::Arc;

use annals_def::Schema;
use annals_event::{Batch, Event, FrozenBatch, Imprint, OwnerState};
use annals_ids::{Epoch, OwnerId};
use annals_node::{
    BLOCK, Beginning, Behaviour, Input, Output, Owner, PanicPolicy, Role,
    time::{Mono, Now},
    writer::{self, ANSWER_TIMEOUT, Action, Chain, Durability, Tip},
};

/// Maximum size of a message of a nats-server, bytes.
const MAX_PAYLOAD: usize = 8 << 20;

/// One owner's process and its log.
pub(crate) struct Process<R: Role> {
    pub(crate) id: OwnerId,
    /// `None` while it is down.
    pub(crate) owner: Option<Owner<R>>,
    log: Vec<FrozenBatch>,
    pub(crate) epoch: Epoch,
    /// Assigned by the store when the log is cut.
    call_generation: u64,
    /// The pending request to the log, and when the log answers it.
    asked: Option<(Mono, Asked)>,
    /// Whether the log is unavailable.
    pub(crate) away: bool,
    /// How often it received `Input::Time`.
    pub(crate) woken: u64,
}

enum Asked {
    Append(u64, FrozenBatch),
    Other(writer::Input),
}

/// What all processes have in common.
#[derive(Clone)]
pub(crate) struct Game {
    pub(crate) schema: Arc<Schema>,
    pub(crate) behaviour: Arc<dyn Behaviour>,
    pub(crate) panics: PanicPolicy,
}

impl<R: Role> Process<R> {
    pub(crate) fn new(id: OwnerId) -> Self {
        Self {
            id,
            owner: None,
            log: Vec::new(),
            epoch: Epoch(0),
            call_generation: 0,
            asked: None,
            away: false,
            woken: 0,
        }
    }

    /// The state into which the log folds.
    pub(crate) fn folded(&self) -> OwnerState {
        let mut state = OwnerState::new(self.id, R::KIND);
        for batch in self.batches() {
            state.fold(&batch).expect("the log is that of one run");
        }
        state
    }

    /// Every event in the log.
    pub(crate) fn events(&self) -> Vec<Event> {
        self.batches().into_iter().flat_map(|batch| batch.events).collect()
    }

    fn batches(&self) -> Vec<Batch> {
        let read = |batch: &FrozenBatch| Batch::read(&batch.bytes).expect("what was written can be read");
        self.log.iter().map(read).collect()
    }

    /// Takes the owner over, from its log alone.
    pub(crate) fn start(&mut self, now: Now, game: &Game, role: impl FnOnce(&OwnerState, Mono) -> R, seed: u64) {
        let state = self.folded();
        self.epoch = self.epoch.next();
        let first = (u64::from(self.id.0) * 1_000 + self.epoch.0) * BLOCK;
        let beginning = Beginning {
            call_generation: self.call_generation,
            chain: Chain::whole(Tip::default(), self.log.clone(), self.log.len() as u64),
            imprint: Imprint {
                realm: "test".to_owned(),
                owner: self.id,
                epoch: self.epoch,
                schema: game.schema.fingerprint(),
            },
            durability: Durability::Log,
            ids: first..first + BLOCK,
            schema: Arc::clone(&game.schema),
            behaviour: Arc::clone(&game.behaviour),
            panics: game.panics,
            dice: Box::new(annals_def::split_mix(seed)),
            keys: std::collections::BTreeMap::new(),
            state,
        };
        let role = role(&beginning.state, now.mono);
        self.owner = Some(Owner::take_over(now, role, beginning));
    }

    /// Crashes the process. Its pending append is in the log if it `lands`.
    pub(crate) fn crash(&mut self, lands: bool) {
        self.owner = None;
        if let Some((_, Asked::Append(expect, batch))) = self.asked.take()
            && lands
        {
            self.append(expect, batch);
        }
    }

    /// Number of batches in the log.
    pub(crate) fn length(&self) -> usize {
        self.log.len()
    }

    /// Cuts the log behind this many batches, as if an operator had accepted a hole there. The process is down.
    pub(crate) fn cut(&mut self, length: usize, call_generation: u64) {
        assert!(self.owner.is_none(), "no process holds it");
        self.log.truncate(length);
        self.call_generation = call_generation;
    }

    /// When it must be woken.
    pub(crate) fn due(&self, now: Now) -> Option<Mono> {
        let answer = self.asked.as_ref().map(|(due, _)| *due);
        let deadline = self.owner.as_ref().and_then(|owner| owner.deadline(now));
        answer.into_iter().chain(deadline).min()
    }

    /// Does what is due. `latency` is the latency of the log.
    pub(crate) fn wake(&mut self, now: Now, latency: u64) -> Vec<Output> {
        if let Some((_, asked)) = self.asked.take_if(|(due, _)| *due <= now.mono) {
            let answer = match asked {
                Asked::Append(expect, batch) => self.append(expect, batch),
                Asked::Other(answer) => answer,
            };
            if let Some(owner) = &mut self.owner {
                owner.handle(now, Input::Log(answer));
            }
        }
        if let Some(owner) = &mut self.owner
            && owner.deadline(now).is_some_and(|due| due <= now.mono)
        {
            owner.handle(now, Input::Time);
            self.woken += 1;
        }
        self.drain(now, latency)
    }

    /// Handles an input, if it is up.
    pub(crate) fn handle(&mut self, now: Now, input: Input<R::Input>, latency: u64) -> Vec<Output> {
        if let Some(owner) = &mut self.owner {
            owner.handle(now, input);
        }
        self.drain(now, latency)
    }

    fn drain(&mut self, now: Now, latency: u64) -> Vec<Output> {
        let Some(owner) = &mut self.owner else {
            return Vec::new();
        };
        let asked = owner.poll_log(now).map(|action| match action {
            Action::Append { expect, batch } => Asked::Append(expect, batch.clone()),
            Action::ReadLast => Asked::Other(writer::Input::Last(last(&self.log))),
            Action::LookAgain => Asked::Other(writer::Input::Looked {
                batches: self.log.iter().map(|batch| batch.bytes.clone()).collect(),
                last: last(&self.log),
            }),
            Action::RecordOpening(_) => Asked::Other(writer::Input::OpeningRecorded),
            Action::ConfirmEpoch { .. } => Asked::Other(writer::Input::EpochConfirmed),
        });
        if let Some(asked) = asked {
            self.asked = Some(if self.away {
                (now.mono.after(ANSWER_TIMEOUT), Asked::Other(writer::Input::Silent))
            } else {
                (Mono(now.mono.0 + latency), asked)
            });
        }
        let mut outputs = Vec::new();
        while let Some(output) = owner.poll_output(now) {
            outputs.push(output);
        }
        outputs
    }

    fn append(&mut self, expect: u64, batch: FrozenBatch) -> writer::Input {
        assert_eq!(expect, self.log.len() as u64, "there is one writer");
        // A nats-server would refuse it at every attempt.
        assert!(
            batch.bytes.len() <= MAX_PAYLOAD,
            "a batch of {} bytes",
            batch.bytes.len()
        );
        self.log.push(batch);
        writer::Input::Appended {
            sequence: self.log.len() as u64,
        }
    }
}

fn last(log: &[FrozenBatch]) -> Option<(u64, Vec<u8>)> {
    log.last().map(|batch| (log.len() as u64, batch.bytes.clone()))
}
