//! What the fold puts into the outbox, on its way to the holder of the ledger's owner.

use annals_db::{LedgerInput, ledger::Outbox};
use annals_store::immediate;

use super::{
    Step, World,
    hosting::{Given, Hold},
};

/// Notices that are given at a time.
const AT_ONCE: usize = 16;

/// How long nothing may be new before everything is given again, microseconds: the role turns away what it has no room for.
const AGAIN: u64 = 500_000;

impl World {
    /// Gives the holder what it was not given, for as long as it holds.
    pub(super) fn carry(&mut self, hold: Hold, mut outbox: Outbox, since: u64) {
        if self.defer(hold.process, |_| Step::Carry { hold, outbox, since }) || self.held(hold).is_none() {
            return;
        }
        let is_reached = !self.cut_of(hold.process).log;
        let notices = is_reached.then(|| immediate(outbox.read(&self.store, AT_ONCE)));
        let notices = notices.and_then(Result::ok).unwrap_or_default();
        let mut last = since;
        if let Some((given, _)) = notices.last() {
            outbox.give(*given);
            last = self.now;
        } else if self.now - since >= AGAIN {
            outbox.give_again();
            last = self.now;
        }
        let step = Step::Carry {
            hold,
            outbox,
            since: last,
        };
        if !notices.is_empty() {
            self.give(hold, Given::Ledger(LedgerInput::Notices(notices)));
        }
        let pause = self.between(1_000, 30_000);
        self.after(pause, step);
    }
}
