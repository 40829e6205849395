//! Waits of the base itself, kept among the replies that an entity waits for, so that they survive the process: nothing
//! answers them as a call, and behaviour never sees them. They are told apart by whom they wait for: the entity's own
//! owner, which no part of it ever asks anything.

use annals_event::{Awaiting, Body, Image};
use annals_ids::{Address, CallNumber, EntityId, WorldTime};
use annals_node::OwnerContext;

/// What an entity waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    /// That its cell part, which was asked for, says where it is for the first time.
    CellBegins,
    /// That its cell part is gone; then it is to be destroyed itself.
    CellEnds,
}

impl Mark {
    /// Records that an entity waits for this.
    pub(crate) fn set(self, cx: &mut OwnerContext, entity: EntityId) {
        let (to, number) = (Address::Owner(cx.owner()), self.number());
        let awaiting = Awaiting {
            // Only what it waits for ends the wait.
            deadline: WorldTime(u64::MAX),
            then: 0,
            note: Vec::new(),
        };
        cx.record_for(entity, false, Body::Awaits { to, number, awaiting });
    }

    /// Whether a base part waits for this.
    pub(crate) fn is_set(self, image: &Image) -> bool {
        let key = (Address::Owner(image.home), self.number());
        image.links.awaiting.contains_key(&key)
    }

    /// Records that the wait is over. Returns whether there was one.
    pub(crate) fn clear(self, cx: &mut OwnerContext, entity: EntityId) -> bool {
        let is_set = cx.image(entity).is_some_and(|image| self.is_set(image));
        if is_set {
            let (to, number) = (Address::Owner(cx.owner()), self.number());
            cx.record_for(entity, false, Body::Resumed { to, number });
        }
        is_set
    }

    fn number(self) -> CallNumber {
        match self {
            Mark::CellBegins => CallNumber(1),
            Mark::CellEnds => CallNumber(2),
        }
    }
}
