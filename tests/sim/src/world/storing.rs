//! The store's troubles: outages, conflicts, and unknown outcomes of commits.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use annals_store::{
    Store,
    faults::{Call, Fault, FaultyStore},
};

use super::World;
use crate::{
    fault::{Kind, Trouble},
    plan::Plan,
};

/// The current troubles of the store.
pub(crate) struct Storing {
    plan: Plan,
    dice: Box<dyn FnMut() -> u64 + Send>,
    /// Microseconds since the simulation began.
    now: u64,
    /// Until when it accepts and answers nothing.
    away: u64,
    /// Number of next commits that are lost in any case.
    torn: u64,
    struck: BTreeMap<Trouble, u64>,
}

impl Storing {
    pub(super) fn of(plan: &Plan) -> Self {
        Self {
            plan: plan.clone(),
            dice: Box::new(annals_def::split_mix(plan.seed ^ 0x0005_7012_e000)),
            now: 0,
            away: 0,
            torn: 0,
            struck: BTreeMap::new(),
        }
    }

    fn decide(&mut self, call: Call) -> Fault {
        if self.now < self.away {
            return Fault::Unavailable;
        }
        if call != Call::Commit {
            return Fault::None;
        }
        if self.torn > 0 {
            self.torn -= 1;
            return Fault::RequestLost;
        }
        let late = [Fault::LandsBeforeNext, Fault::LandsAfterNext][((self.dice)() % 2) as usize];
        for (trouble, fault) in [
            (Trouble::Conflict, Fault::Conflict),
            (Trouble::UnknownDone, Fault::AnswerLost),
            (Trouble::UnknownLost, Fault::RequestLost),
            (Trouble::UnknownLate, late),
        ] {
            let roll = (self.dice)();
            if self.plan.odds(trouble, self.now / 1_000).hit(roll) {
                *self.struck.entry(trouble).or_default() += 1;
                return fault;
            }
        }
        Fault::None
    }
}

/// Wraps a store with the troubles.
pub(super) fn wrap(store: &Store, storing: &Arc<Mutex<Storing>>) -> Store {
    let storing = Arc::clone(storing);
    FaultyStore::wrap(store, move |call| lock(&storing).decide(call))
}

fn lock(storing: &Mutex<Storing>) -> MutexGuard<'_, Storing> {
    storing.lock().unwrap_or_else(PoisonError::into_inner)
}

impl World {
    pub(super) fn set_store_time(&mut self) {
        let mut storing = lock(&self.storing);
        storing.now = self.now;
        for (trouble, count) in std::mem::take(&mut storing.struck) {
            *self.struck.entry(Kind::Trouble(trouble)).or_default() += count;
        }
    }

    /// Makes the store unavailable for a while.
    pub(super) fn send_store_away(&mut self, until: u64) {
        let mut storing = lock(&self.storing);
        storing.away = storing.away.max(until);
    }

    /// Loses the next commits in transit.
    pub(super) fn tear_commits(&mut self, count: u64) {
        lock(&self.storing).torn += count;
    }

    /// Whether a call of the store may fail temporarily.
    pub(super) fn is_store_troubled(&self) -> bool {
        lock(&self.storing).away > self.now || self.is_playing()
    }

    /// Whether the store is unavailable.
    pub(super) fn is_store_away(&self) -> bool {
        lock(&self.storing).away > self.now
    }
}
