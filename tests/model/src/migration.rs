//! A realm migrates to other definitions: when its logs change to them, and its database.
//!
//! One owner's log and one row of the database, in which the owner writes the entity that a client's call concerns. A
//! holds the owner under the former definitions and has survived the stop of the realm; B and C may take it over. In
//! between the realm is migrated, and its stored entities are converted. db folds the log throughout. The message with the
//! call may arrive at any time and as often as it likes, as it was written under the former definitions; once the realm
//! is migrated, the sender writes it again under the current ones. Fencing and recording of an `Open` are one step each
//! here: their details are in the log model. The rules are M1 to M5 and M7.

pub mod exhibits;
mod words;

use crate::explorer::Model;
use crate::faults::{Faults, spend};
use crate::invariant::Invariant;
use crate::rule::{Rule, Rules};

/// Holders, by epoch less one: A, B, C.
const HOLDERS: usize = 3;
/// More batches than the log can hold while the rules are in force.
const MOST_BATCHES: usize = 6;

/// Definitions: 0 are the former, 1 the current ones. 2 marks data that was converted once too often.
type Definitions = u8;

/// Bounds of a schedule.
#[derive(Debug, Clone, Copy)]
pub struct MigrationBounds {
    /// Number of take-overs: at most 2.
    pub takers: u8,
    /// Faults; crashes (of takers, and of the migration) and lost tails count here.
    pub faults: Faults,
}

/// The model of a migration.
#[derive(Debug, Clone, Copy)]
pub struct MigrationModel {
    /// The rules in force.
    pub rules: Rules,
    /// Bounds of a schedule.
    pub bounds: MigrationBounds,
}

/// A batch: an `Open`, or the one in which the call takes effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
struct Batch {
    epoch: u8,
    is_open: bool,
    definitions: Definitions,
}

/// The state that a log folds into.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
struct Folded {
    definitions: Definitions,
    /// Number of calls taken, as the numbers of a link record it.
    taken: u8,
}

/// Phase of a holder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
enum Phase {
    /// It does not hold the owner.
    #[default]
    Absent,
    /// The owner is granted to it.
    Granted,
    /// Its `Open` is appended.
    Opened,
    /// Its `Open` is recorded.
    Serving,
    /// It has crashed or stopped.
    Gone,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
struct Holder {
    phase: Phase,
    /// The definitions that its process was started with.
    definitions: Definitions,
    state: Folded,
}

/// A stored entity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
struct Row {
    /// The definitions that its properties are of.
    content: Definitions,
    /// The definitions that it names.
    generation: Definitions,
}

/// The state of the store and of db.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
struct Store {
    /// The realm's definitions.
    definitions: Definitions,
    /// Whether the migration record exists, by which states and rows are converted.
    record: bool,
    /// Whether the conversion of all stored entities has finished.
    is_converted: bool,
    granted: u8,
    /// The epochs whose openings are recorded, as bits.
    openings: u8,
    cursor: u8,
    folded: Folded,
    row: Row,
}

/// The state of the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct MigrationState {
    store: Store,
    log: [Batch; MOST_BATCHES],
    length: u8,
    holders: [Holder; HOLDERS],
    /// Whether the migration was killed.
    is_killed: bool,
    /// Whether a batch was folded, or a message handled, under definitions that are not its own.
    is_misread: bool,
    left: Faults,
}

/// A step. Holders are named by index.
#[derive(Debug, Clone, Copy)]
pub enum MigrationStep {
    /// The realm changes to the current definitions.
    Migrate,
    /// Without M2: the migration record follows.
    Record,
    /// The migration is killed.
    Kill,
    /// All stored entities that are not converted yet are converted.
    ConvertRows,
    /// The owner is granted to the next process, which has these definitions.
    Grant(Definitions),
    /// A taker reads the log and appends its `Open`.
    Open(u8),
    /// Its `Open` is recorded.
    RecordOpening(u8),
    /// Its `Open` is no longer the last batch of the log: it begins again.
    BeginAgain(u8),
    /// The call takes effect, by a message of these definitions.
    Take(u8, Definitions),
    /// A taker crashes.
    Crash(u8),
    /// The log loses its last batch, an `Open` that is not recorded.
    LoseTail,
    /// db folds the next batch.
    Fold,
    /// Without M3: db converts the state at an `Open` that does not count yet.
    ConvertEarly,
    /// db skips a void `Open`.
    Skip,
}

impl Model for MigrationModel {
    type State = MigrationState;
    type Step = MigrationStep;

    fn start(&self) -> MigrationState {
        let mut holders = [Holder::default(); HOLDERS];
        holders[0].phase = Phase::Serving;
        let store = Store {
            granted: 1,
            openings: 1 << 1,
            ..Store::default()
        };
        MigrationState {
            store,
            log: [Batch::default(); MOST_BATCHES],
            length: 0,
            holders,
            is_killed: false,
            is_misread: false,
            left: self.bounds.faults,
        }
    }

    fn steps(&self, state: &MigrationState, steps: &mut Vec<MigrationStep>) {
        self.migrating(state, steps);
        for index in 0..HOLDERS as u8 {
            self.holding(state, index, steps);
        }
        self.folding(state, steps);
    }

    fn take(&self, state: &MigrationState, step: MigrationStep) -> MigrationState {
        let mut after = *state;
        self.happen(&mut after, step);
        after
    }

    fn broken(&self, state: &MigrationState) -> Option<Invariant> {
        let serves = |holder: &Holder| holder.phase == Phase::Serving && holder.state.definitions != holder.definitions;
        let row = state.store.row;
        if state.is_misread || state.holders.iter().any(serves) || row.content != row.generation {
            return Some(Invariant::ReadAsWritten);
        }
        let effects = state.log().iter().filter(|batch| !batch.is_open).count();
        (effects > 1).then_some(Invariant::CallsTakeEffectOnce)
    }

    fn words(&self, state: &MigrationState, step: MigrationStep, after: &MigrationState) -> String {
        words::words(state, step, after)
    }

    /// The process that was granted the owner last serves, its log is folded, the call has taken effect, and a
    /// migration that was begun is finished.
    fn settled(&self, state: &MigrationState) -> bool {
        let store = &state.store;
        let is_migrated = store.definitions == 0 || store.record && store.is_converted;
        let newest = state.holders[usize::from(store.granted) - 1];
        let is_served = newest.phase == Phase::Serving && newest.state.taken == 1;
        is_migrated && is_served && store.cursor == state.length
    }

    fn is_fault(&self, step: MigrationStep) -> bool {
        matches!(
            step,
            MigrationStep::Migrate | MigrationStep::Kill | MigrationStep::Crash(_) | MigrationStep::LoseTail
        )
    }
}

impl MigrationModel {
    fn migrating(&self, state: &MigrationState, steps: &mut Vec<MigrationStep>) {
        let store = &state.store;
        if store.definitions == 0 {
            steps.push(MigrationStep::Migrate);
        }
        if store.definitions == 1 && !store.record && !state.is_killed {
            steps.push(MigrationStep::Record);
            if state.left.crashes > 0 {
                steps.push(MigrationStep::Kill);
            }
        }
        if store.record && !store.is_converted {
            steps.push(MigrationStep::ConvertRows);
        }
        if store.granted <= self.bounds.takers {
            steps.push(MigrationStep::Grant(store.definitions));
            if store.definitions == 1 && !self.rules.has(Rule::M2PresentOnly) {
                steps.push(MigrationStep::Grant(0));
            }
        }
    }

    fn holding(&self, state: &MigrationState, index: u8, steps: &mut Vec<MigrationStep>) {
        let holder = &state.holders[usize::from(index)];
        let has_room = usize::from(state.length) < MOST_BATCHES;
        let is_granted = state.store.granted == index + 1;
        match holder.phase {
            Phase::Granted if is_granted && has_room && self.read(state, holder).is_some() => {
                steps.push(MigrationStep::Open(index));
            }
            Phase::Opened if is_granted && state.last_epoch() == index + 1 => {
                steps.push(MigrationStep::RecordOpening(index));
            }
            Phase::Opened if is_granted => steps.push(MigrationStep::BeginAgain(index)),
            // Its append is rejected once the last batch is another holder's.
            Phase::Serving if holder.state.taken == 0 && has_room && state.last_epoch() == index + 1 => {
                for message in 0..=state.store.definitions {
                    if message == holder.definitions || !self.rules.has(Rule::M7Named) {
                        steps.push(MigrationStep::Take(index, message));
                    }
                }
            }
            _ => {}
        }
        let may_crash = matches!(holder.phase, Phase::Granted | Phase::Opened) && index < self.bounds.takers;
        if state.left.crashes > 0 && may_crash {
            steps.push(MigrationStep::Crash(index));
        }
    }

    fn folding(&self, state: &MigrationState, steps: &mut Vec<MigrationStep>) {
        let store = &state.store;
        let Some(next) = state.log().get(usize::from(store.cursor)) else {
            return;
        };
        if next.is_open && !store.has_opening(next.epoch) {
            if store.openings >> (next.epoch + 1) != 0 {
                steps.push(MigrationStep::Skip);
            }
            if !self.rules.has(Rule::M3OnceItCounts) && store.record && store.folded.definitions < next.definitions {
                steps.push(MigrationStep::ConvertEarly);
            }
            if state.left.tails > 0 && store.cursor + 1 == state.length {
                steps.push(MigrationStep::LoseTail);
            }
            return;
        }
        steps.push(MigrationStep::Fold);
    }

    fn happen(&self, state: &mut MigrationState, step: MigrationStep) {
        match step {
            MigrationStep::Migrate => {
                state.store.definitions = 1;
                state.store.record = self.rules.has(Rule::M2OneTransaction);
                if !self.rules.has(Rule::M1WithItsOpen) {
                    self.convert(&mut state.store.folded);
                }
            }
            MigrationStep::Record => state.store.record = true,
            MigrationStep::Kill => {
                spend(&mut state.left.crashes);
                state.is_killed = true;
            }
            MigrationStep::ConvertRows => {
                let row = &mut state.store.row;
                if row.generation == 0 || !self.rules.has(Rule::M5Generation) {
                    row.content += 1;
                    row.generation = 1;
                }
                state.store.is_converted = true;
            }
            MigrationStep::Grant(definitions) => {
                let taker = &mut state.holders[usize::from(state.store.granted)];
                (taker.phase, taker.definitions) = (Phase::Granted, definitions);
                state.store.granted += 1;
            }
            MigrationStep::Open(index) => self.open(state, index),
            MigrationStep::RecordOpening(index) => {
                state.store.openings |= 1 << (index + 1);
                state.holders[usize::from(index)].phase = Phase::Serving;
            }
            MigrationStep::BeginAgain(index) => state.holders[usize::from(index)].phase = Phase::Granted,
            MigrationStep::Take(index, message) => {
                let holder = &mut state.holders[usize::from(index)];
                holder.state.taken += 1;
                let definitions = holder.definitions;
                state.is_misread |= message != definitions;
                state.append(Batch {
                    epoch: index + 1,
                    is_open: false,
                    definitions,
                });
            }
            MigrationStep::Crash(index) => {
                spend(&mut state.left.crashes);
                state.holders[usize::from(index)].phase = Phase::Gone;
            }
            MigrationStep::LoseTail => {
                spend(&mut state.left.tails);
                state.length -= 1;
                state.log[usize::from(state.length)] = Batch::default();
            }
            MigrationStep::Fold => self.fold_next(state),
            MigrationStep::ConvertEarly => self.convert(&mut state.store.folded),
            MigrationStep::Skip => state.store.cursor += 1,
        }
    }

    /// E1 and E2: the taker's state is the store's plus the rest of the log, and its `Open` is appended.
    fn open(&self, state: &mut MigrationState, index: u8) {
        let holder = state.holders[usize::from(index)];
        let Some(read) = self.read(state, &holder) else {
            return;
        };
        let holder = &mut state.holders[usize::from(index)];
        (holder.state, holder.phase) = (read, Phase::Opened);
        let definitions = holder.definitions;
        state.append(Batch {
            epoch: index + 1,
            is_open: true,
            definitions,
        });
    }

    /// The taker's state at the end of E1; `None` while there is no record by which to convert it.
    fn read(&self, state: &MigrationState, holder: &Holder) -> Option<Folded> {
        let mut folded = state.store.folded;
        for batch in &state.log()[usize::from(state.store.cursor)..] {
            if !batch.is_open {
                folded.taken = 1;
            } else if state.store.has_opening(batch.epoch) && folded.definitions < batch.definitions {
                self.convert(&mut folded);
            }
        }
        if folded.definitions < holder.definitions {
            if !state.store.record {
                return None;
            }
            if self.rules.has(Rule::M3TakerConverts) {
                self.convert(&mut folded);
            }
        }
        Some(folded)
    }

    /// db folds the batch after its cursor; the batch with the call also writes the row.
    fn fold_next(&self, state: &mut MigrationState) {
        let store = &mut state.store;
        let batch = state.log[usize::from(store.cursor)];
        store.cursor += 1;
        let goes_over = batch.is_open && store.folded.definitions < batch.definitions;
        if goes_over && self.rules.has(Rule::M3FoldConverts) {
            self.convert(&mut store.folded);
        }
        state.is_misread |= store.folded.definitions != batch.definitions;
        if !batch.is_open {
            store.folded.taken = 1;
            let present = u8::from(store.record);
            store.row = Row {
                content: if self.rules.has(Rule::M5PresentRows) {
                    present
                } else {
                    batch.definitions
                },
                generation: present,
            };
        }
    }

    fn convert(&self, state: &mut Folded) {
        state.definitions = 1;
        if !self.rules.has(Rule::M4NumbersStay) {
            state.taken = 0;
        }
    }
}

impl MigrationState {
    fn log(&self) -> &[Batch] {
        &self.log[..usize::from(self.length)]
    }

    /// The epoch of the last batch; A's epoch if there is no batch.
    fn last_epoch(&self) -> u8 {
        self.log().last().map_or(1, |last| last.epoch)
    }

    fn append(&mut self, batch: Batch) {
        self.log[usize::from(self.length)] = batch;
        self.length += 1;
    }
}

impl Store {
    fn has_opening(&self, epoch: u8) -> bool {
        self.openings & (1 << epoch) != 0
    }
}
