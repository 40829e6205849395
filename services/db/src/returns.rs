//! How what the ledger did returns to those whom it concerns: the role of the one owner of kind `ledger` (rule F7).
//!
//! The fold writes notices into the store's outbox, numbered from 1. The shell reads them and gives them to this role, again
//! and again until the fold has taken them away; the role takes each once, in order. That it took one is an event
//! (`Entered`), recorded in the same input as the calls that tell those concerned, so that whoever takes the owner over goes
//! on behind the last one that is in the log. The fold takes a notice out of the outbox when it folds that event.
//!
//! News for a base part are called to the owner that is its home, which hands them on: an entity that has ended needs none,
//! for its next life begins with a statement. So there are as many links as base owners, however many lives there were.

use std::{collections::BTreeSet, sync::Arc};

use annals_event::{
    Adoption, Body, Call, Event, OwnerState, Subject,
    ledger::{Delivery, Notice},
};
use annals_ids::{Address, EntityId, MemberId, NoticeNumber, OwnerId, OwnerKind, Tick};
use annals_node::{Answer, Behaviour, Caller, ClientNews, Context, OwnerContext, Request, Role, time::Mono};
use annals_wire::{
    SpaceMap,
    bus::{GhostMessage, ViewMessage},
};

/// Calls that may wait to be taken before no more notices are: with news of at most some hundred kilobytes, and most of them
/// some hundred bytes, they fit the memory of a process. What is not taken waits in the outbox.
pub const UNCONFIRMED_LIMIT: usize = 10_000;

/// What an owner of kind `ledger` is given.
#[derive(Clone, Debug)]
pub enum LedgerInput {
    /// The director has drawn the map of spaces anew. The ledger is nowhere.
    Map(SpaceMap),
    /// The outbox holds these, in their order. Those that were taken already are passed over.
    Notices(Vec<(NoticeNumber, Notice)>),
    /// The store has these, and no log yet: what operators decided about logs that it did not know (rule F17).
    Adoptions(Vec<Adoption>),
}

/// See the module.
#[derive(Debug, Default)]
pub struct LedgerRole {
    taken: u64,
    /// Adoptions that were recorded since the take-over: the store hears of that when it folds them.
    adopted: BTreeSet<u32>,
}

impl LedgerRole {
    /// The role of an owner in any state: all that it goes by is in there.
    #[must_use]
    pub fn take_over(_state: &OwnerState, _now: Mono) -> Self {
        Self::default()
    }

    /// How many notices it took since the take-over.
    #[must_use]
    pub fn taken(&self) -> u64 {
        self.taken
    }

    /// Takes a notice if it is the next and there is room for all of it; whether the one behind it may be tried.
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
        for Delivery { to, home, news } in deliveries {
            cx.call(from, Address::Owner(home), home, Call::Ledger { to, news });
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

    // It holds no entities, has no client and no place: of what other owners hear, nothing concerns it.

    fn handle_call(&mut self, _cx: &mut OwnerContext, _caller: &Caller, _call: Call) {}

    fn request(&mut self, _cx: &mut OwnerContext, _by: EntityId, _request: Request) {}

    fn ghost(&mut self, _cx: &mut OwnerContext, _from: OwnerId, _message: GhostMessage) {}

    fn view(&mut self, _cx: &mut OwnerContext, _from: OwnerId, _message: ViewMessage) {}

    fn to_client(&mut self, _cx: &mut OwnerContext, _message: ClientNews) {}

    fn publish(&mut self, _cx: &mut OwnerContext, _recorded: &[Event]) {}

    fn tick(&mut self, _cx: &mut OwnerContext) {}

    fn deadline(&self) -> Option<Mono> {
        None
    }

    fn ticks(&self) -> Tick {
        Tick(0)
    }
}

/// The game of an owner that holds no entities: nothing ever asks it.
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

/// What an owner that holds no entities begins with for a game.
#[must_use]
pub fn no_behaviour() -> Arc<dyn Behaviour> {
    Arc::new(Nobody)
}

fn unconfirmed(cx: &OwnerContext) -> usize {
    let links = cx.state().links.sent.values();
    links.map(|sent| sent.unconfirmed.len()).sum()
}

/// The bytes that taking a notice records, give or take what events have around them.
fn size(number: NoticeNumber, notice: &Notice) -> usize {
    /// The subject, cause and numbers of an event, and the addresses of a call.
    const AROUND: usize = 64;
    let entered = Body::Entered {
        notice: number,
        entry: notice.entry.clone(),
    };
    let mut bytes = Vec::new();
    for delivery in &notice.deliveries {
        delivery.news.write(&mut bytes);
    }
    if let Body::Entered { entry: Some(entry), .. } = &entered {
        entry.write(&mut bytes);
    }
    bytes.len() + AROUND * (1 + notice.deliveries.len())
}
