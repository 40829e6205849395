//! Carries the outbox of the fold to the holder of the ledger's owner.

use annals_db::{LedgerInput, ledger::Outbox};
use annals_store::immediate;

use super::{
    Step, World,
    hosting::{Given, Hold},
};

/// Maximum notices per delivery.
const AT_ONCE: usize = 16;

/// Time without new notices after which all are sent again, microseconds: the role rejects those for which it has no
/// room.
const AGAIN: u64 = 500_000;

impl World {
    /// Gives the holder the notices that it has not received, while it holds.
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
