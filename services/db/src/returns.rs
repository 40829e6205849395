//! Delivers the ledger's results to the parties: the role of the one owner of kind `ledger` (rule F7).
//!
//! The fold writes notices to the store's outbox, numbered from 1. The shell reads them and gives them to this role,
//! repeatedly, until the fold has removed them; the role takes each once, in order. Taking one is an event (`Entered`),
//! recorded in the same input as the calls that notify the parties, so that a process that takes the owner over
//! continues after the last notice in the log. The fold removes a notice from the outbox when it folds that event.
//!
//! Updates for a base part are sent in a call to its home owner, which hands them on. An entity that has ended needs none,
//! because its next activation begins with a statement. So there are as many links as base owners, however many
//! activations there were.

use std::{collections::BTreeSet, sync::Arc};

use annals_event::{
    Adoption, Body, Call, Event, OwnerState, Subject,
    ledger::{Delivery, Notice},
};
use annals_ids::{Address, EntityId, MemberId, NoticeNumber, OwnerId, OwnerKind, Tick};
use annals_node::{Answer, Behaviour, Caller, ClientCallStatus, Context, OwnerContext, Request, Role, time::Mono};
use annals_wire::{
    SpaceMap,
    bus::{GhostMessage, ViewMessage},
};

/// Number of unconfirmed calls at which no more notices are taken. With updates of at most some hundred kilobytes, and
/// usually some hundred bytes, the calls fit in the memory of a process. Further notices wait in the outbox.
pub const UNCONFIRMED_LIMIT: usize = 10_000;

/// Input of an owner of kind `ledger`.
#[derive(Clone, Debug)]
pub enum LedgerInput {
    /// A new map of spaces from the director. The ledger ignores it, since it is in no space.
    Map(SpaceMap),
    /// Notices in the outbox, in order. Those that were taken already are skipped.
    Notices(Vec<(NoticeNumber, Notice)>),
    /// Adoptions that are in the store but in no log yet: operators' decisions about logs that the store did not know
    /// (rule F17).
    Adoptions(Vec<Adoption>),
}

/// The role of the owner of kind `ledger`: takes notices in order and sends their updates to base owners.
#[derive(Debug, Default)]
pub struct LedgerRole {
    taken: u64,
    /// Adoptions that were recorded since the take-over; the store notes this when it folds them.
    adopted: BTreeSet<u32>,
}

impl LedgerRole {
    /// Creates the role for an owner in any state: all that the role needs is in the owner's state.
    #[must_use]
    pub fn take_over(_state: &OwnerState, _now: Mono) -> Self {
        Self::default()
    }

    /// Number of notices taken since the take-over.
    #[must_use]
    pub fn taken(&self) -> u64 {
        self.taken
    }

    /// Takes a notice if it is the next, fewer than [`UNCONFIRMED_LIMIT`] calls are unconfirmed, and all of it fits in
    /// the batch. Returns whether the following one may be tried.
    fn enter(&mut self, cx: &mut OwnerContext, number: NoticeNumber, notice: Notice) -> bool {
        let last = cx.state().ledger.notice;
        if number <= last {
            return true;
        }
        if number != last.next() || unconfirmed(cx) >= UNCONFIRMED_LIMIT || cx.needs(size(number, &notice)).is_err() {
            return false;
        }
        let Notice { entry, deliveries } = notice;
        let entered = Body::Entered { notice: number, entry };
        cx.record(Subject::Owner, false, entered);
        let from = Address::Owner(cx.owner());
        for Delivery { to, home, update } in deliveries {
            cx.call(from, Address::Owner(home), home, Call::Ledger { to, update });
        }
        self.taken += 1;
        true
    }
}

impl Role for LedgerRole {
    type Input = LedgerInput;

    const KIND: OwnerKind = OwnerKind::Ledger;

    fn handle(&mut self, cx: &mut OwnerContext, input: LedgerInput) {
        match input {
            LedgerInput::Map(_) => {}
            LedgerInput::Notices(notices) => {
                for (number, notice) in notices {
                    if !self.enter(cx, number, notice) {
                        break;
                    }
                }
            }
            LedgerInput::Adoptions(adoptions) => {
                for adoption in adoptions {
                    if self.adopted.insert(adoption.number) {
                        cx.record(Subject::Owner, false, Body::Adopted(Box::new(adoption)));
                    }
                }
            }
        }
    }

    // The owner has no entities, clients or space, so no call from another owner concerns it.

    fn handle_call(&mut self, _cx: &mut OwnerContext, _caller: &Caller, _call: Call) {}

    fn request(&mut self, _cx: &mut OwnerContext, _by: EntityId, _request: Request) {}

    fn ghost(&mut self, _cx: &mut OwnerContext, _from: OwnerId, _message: GhostMessage) {}

    fn view(&mut self, _cx: &mut OwnerContext, _from: OwnerId, _message: ViewMessage) {}

    fn to_client(&mut self, _cx: &mut OwnerContext, _status: ClientCallStatus) {}

    fn publish(&mut self, _cx: &mut OwnerContext, _recorded: &[Event]) {}

    fn tick(&mut self, _cx: &mut OwnerContext) {}

    fn deadline(&self) -> Option<Mono> {
        None
    }

    fn ticks(&self) -> Tick {
        Tick(0)
    }
}

/// The behaviour of an owner that holds no entities; it is never called.
#[derive(Debug)]
struct Nobody;

impl Behaviour for Nobody {
    fn call(
        &self,
        _context: &mut Context<'_>,
        _method: MemberId,
        _args: &[annals_def::Value],
        _caller: &Caller,
    ) -> Answer {
        Answer::DONE
    }
}

/// The behaviour with which an owner that holds no entities begins.
#[must_use]
pub fn no_behaviour() -> Arc<dyn Behaviour> {
    Arc::new(Nobody)
}

fn unconfirmed(cx: &OwnerContext) -> usize {
    let links = cx.state().links.sent.values();
    links.map(|sent| sent.unconfirmed.len()).sum()
}

/// Approximate bytes that taking a notice records, including the overhead of its events.
fn size(number: NoticeNumber, notice: &Notice) -> usize {
    /// Overhead: subject, cause and numbers of an event, and the addresses of a call.
    const AROUND: usize = 64;
    let entered = Body::Entered {
        notice: number,
        entry: notice.entry.clone(),
    };
    let mut bytes = Vec::new();
    for delivery in &notice.deliveries {
        delivery.update.write(&mut bytes);
    }
    if let Body::Entered { entry: Some(entry), .. } = &entered {
        entry.write(&mut bytes);
    }
    bytes.len() + AROUND * (1 + notice.deliveries.len())
}
