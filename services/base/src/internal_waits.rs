//! Internal waits of the base, kept among the replies that an entity waits for, so that they survive a restart. No reply
//! ends them, and behaviour never sees them. They are recognised by their address: the entity's own owner, to which
//! no part of it ever sends a request.

use annals_event::{Awaiting, Body, Image};
use annals_ids::{Address, CallNumber, EntityId, WorldTime};
use annals_node::OwnerContext;

/// A wait of an entity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InternalWait {
    /// Waits for its requested cell part to report its place for the first time.
    CellBegins,
    /// Waits for its cell part to be gone; then the entity is destroyed.
    CellEnds,
    /// Waits for another owner to take its client. The note has the time at which that was called last.
    ClientTaken,
    /// Is destroyed once it no longer waits for another owner to take its client.
    EndsAfterClient,
    /// Waits for a client that another owner has given to it.
    ClientComes,
    /// Waits for the space in which its cell part is to be. The note has the cell part.
    SpaceClaimed,
}

/// Whether a base part is about to end, so that it gets no client any more.
pub(crate) fn is_about_to_end(image: &Image) -> bool {
    InternalWait::CellEnds.is_set(image) || InternalWait::EndsAfterClient.is_set(image)
}

impl InternalWait {
    /// Records that an entity begins this wait.
    pub(crate) fn set(self, cx: &mut OwnerContext, entity: EntityId) {
        self.set_with(cx, entity, Vec::new());
    }

    /// The same, with a note.
    pub(crate) fn set_with(self, cx: &mut OwnerContext, entity: EntityId, note: Vec<u8>) {
        let (to, number) = (Address::Owner(cx.owner()), self.number());
        let awaiting = Awaiting {
            // No deadline: only the awaited event ends the wait.
            deadline: WorldTime(u64::MAX),
            then: 0,
            note,
        };
        cx.record_for(entity, false, Body::Awaits { to, number, awaiting });
    }

    /// Whether a base part is in this wait.
    pub(crate) fn is_set(self, image: &Image) -> bool {
        let key = (Address::Owner(image.home), self.number());
        image.links.awaiting.contains_key(&key)
    }

    /// The note of the wait of a base part, if it is in this wait.
    pub(crate) fn note(self, image: &Image) -> Option<&[u8]> {
        let key = (Address::Owner(image.home), self.number());
        image.links.awaiting.get(&key).map(|awaiting| awaiting.note.as_slice())
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
            InternalWait::CellBegins => CallNumber(1),
            InternalWait::CellEnds => CallNumber(2),
            InternalWait::ClientTaken => CallNumber(3),
            InternalWait::EndsAfterClient => CallNumber(4),
            InternalWait::ClientComes => CallNumber(5),
            InternalWait::SpaceClaimed => CallNumber(6),
        }
    }
}
