//! An owner with its log.

use std::{collections::BTreeMap, sync::Arc};

use annals_def::Schema;
use annals_event::{Batch, FrozenBatch, Imprint, OwnerState};
use annals_ids::{DatabaseId, Epoch, OwnerId, OwnerKind};
use annals_node::{
    Beginning, Behaviour, Input, Output, Owner, Role,
    time::{Mono, Now},
    writer::{self, Action, Chain, Durability, Opening},
};
use annals_personal::PersonalKey;

/// Why bytes can be read.
pub(super) const WRITTEN: &str = "invariant: this program wrote it";

/// An owner with its log.
pub(super) struct Station<R: Role> {
    pub(super) owner: Owner<R>,
    pub(super) log: Vec<Vec<u8>>,
    pub(super) epoch: Epoch,
    /// Openings that the store has not recorded yet.
    openings: Vec<Opening>,
}

impl<R: Role> Station<R> {
    pub(super) fn begin(
        stage: (&Arc<Schema>, &Arc<dyn Behaviour>),
        owner: OwnerId,
        now: Now,
        make: fn(&OwnerState, Mono) -> R,
    ) -> Self {
        let (log, epoch) = (Vec::new(), Epoch(1));
        Self {
            owner: take_over(stage, (owner, epoch), now, (&log, BTreeMap::new()), make),
            log,
            epoch,
            openings: Vec::new(),
        }
    }

    pub(super) fn crash(
        &mut self,
        stage: (&Arc<Schema>, &Arc<dyn Behaviour>),
        now: Now,
        keys: BTreeMap<DatabaseId, PersonalKey>,
        make: fn(&OwnerState, Mono) -> R,
    ) {
        self.epoch = self.epoch.next();
        let owner = self.owner.state().owner;
        self.owner = take_over(stage, (owner, self.epoch), now, (&self.log, keys), make);
    }

    /// The openings since the last time.
    pub(super) fn take_openings(&mut self) -> Vec<Opening> {
        std::mem::take(&mut self.openings)
    }

    /// Answers the writer's requests, and returns the released outputs.
    ///
    /// # Panics
    /// If the owner reports an error: no game here may be denied an operation unexpectedly.
    fn pump(&mut self, now: Now) -> Vec<Output> {
        while let Some(action) = self.owner.poll_log(now) {
            let answer = match action {
                Action::Append { batch, .. } => {
                    self.log.push(batch.bytes.clone());
                    let sequence = self.log.len() as u64;
                    writer::Input::Appended { sequence }
                }
                Action::RecordOpening(opening) => {
                    self.openings.push(opening);
                    writer::Input::OpeningRecorded
                }
                Action::ConfirmEpoch => writer::Input::EpochConfirmed,
                Action::LookAgain => writer::Input::Looked {
                    batches: self.log.clone(),
                    last: self.log.last().map(|bytes| (self.log.len() as u64, bytes.clone())),
                },
                Action::ReadLast => panic!("nothing is doubtful here"),
            };
            self.owner.handle(now, Input::Log(answer));
        }
        if let Some(trouble) = self.owner.poll_trouble() {
            panic!("{trouble}");
        }
        std::iter::from_fn(|| self.owner.poll_output(now)).collect()
    }

    pub(super) fn give(&mut self, now: Now, input: Input<R::Input>) -> Vec<Output> {
        self.owner.handle(now, input);
        self.pump(now)
    }
}

pub(super) fn read_batch(bytes: &[u8]) -> Batch {
    Batch::read(bytes).expect(WRITTEN)
}

pub(super) fn fold(owner: OwnerId, kind: impl Into<OwnerKind>, log: &[Vec<u8>]) -> OwnerState {
    let mut state = OwnerState::new(owner, kind);
    for bytes in log {
        let folded = state.fold(&read_batch(bytes));
        folded.expect("invariant: an owner folds its own log");
    }
    state
}

fn take_over<R: Role>(
    (schema, behaviour): (&Arc<Schema>, &Arc<dyn Behaviour>),
    (owner, epoch): (OwnerId, Epoch),
    now: Now,
    (log, keys): (&[Vec<u8>], BTreeMap<DatabaseId, PersonalKey>),
    make: fn(&OwnerState, Mono) -> R,
) -> Owner<R> {
    let state = fold(owner, R::KIND, log);
    let beyond = log
        .iter()
        .map(|bytes| FrozenBatch::read(bytes.clone()).expect(WRITTEN))
        .collect();
    let chain = Chain::whole(writer::Tip::default(), beyond, log.len() as u64);
    let role = make(&state, now.mono);
    let first = u64::from(owner.0) << 40 | epoch.0 << 20;
    let beginning = Beginning {
        state,
        call_generation: 0,
        chain,
        imprint: Imprint {
            realm: "table".into(),
            owner,
            epoch,
            schema: schema.fingerprint(),
        },
        durability: Durability::Log,
        ids: first..first + (1 << 20),
        schema: Arc::clone(schema),
        behaviour: Arc::clone(behaviour),
        panics: annals_node::PanicPolicy::Propagate,
        dice: Box::new(annals_def::split_mix(first)),
        keys,
    };
    Owner::take_over(now, role, beginning)
}
