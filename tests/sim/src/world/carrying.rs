//! What the fold puts into the outbox, on its way to the holder of the ledger's owner.

use annals_db::{LedgerInput, ledger::read_notices};
use annals_ids::NoticeNumber;
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
    /// Gives the holder what comes behind `given`, for as long as it holds.
    pub(super) fn carry(&mut self, hold: Hold, given: NoticeNumber, since: u64) {
        if self.defer(hold.process, |_| Step::Carry { hold, given, since }) || self.held(hold).is_none() {
            return;
        }
        let is_reached = !self.cut_of(hold.process).log;
        let notices = is_reached.then(|| immediate(read_notices(&self.store, given, AT_ONCE)));
        let notices = notices.and_then(Result::ok).unwrap_or_default();
        let step = match notices.last() {
            Some((last, _)) => Step::Carry {
                hold,
                given: *last,
                since: self.now,
            },
            None if self.now - since >= AGAIN => Step::Carry {
                hold,
                given: NoticeNumber(0),
                since: self.now,
            },
            None => Step::Carry { hold, given, since },
        };
        if !notices.is_empty() {
            self.give(hold, Given::Ledger(LedgerInput::Notices(notices)));
        }
        let pause = self.between(1_000, 30_000);
        self.after(pause, step);
    }
}
