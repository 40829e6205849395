//! Entities that are moved by the client of another entity (BigWorld: `controlledBy`).
//!
//! The client learns from its view that it drives the entity. Its movements come to the holder of its own entity, which
//! forwards them to the holder of the driven one, as far as it is known. Both entities may change their holders
//! meanwhile: a movement that does not find the driven entity is lost, like any other.

use std::time::Duration;

use annals_event::Place;
use annals_ids::OwnerId;
use annals_node::{OwnerContext, time::Mono};
use annals_wire::bus::{DrivenMovement, Message, ViewMessage};

use crate::{ghost_receiver::Ghost, role::CellRole, witness::client};

/// Time after a client's last movement of another entity than its own after which the entity must be there. Longer than
/// the movement takes to its holder, and its place takes to come back.
const SETTLED_AFTER: Duration = Duration::from_secs(1);

/// Where a client has an entity that it moves.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Driving {
    /// `None` if it is not known.
    place: Option<Place>,
    /// When that was noted last.
    noted: Mono,
    /// When the client was last sent a place of the entity; `None` if it was not since this began.
    placed: Option<Mono>,
}

impl Driving {
    pub(crate) fn begun(now: Mono) -> Self {
        Self {
            place: None,
            noted: now,
            placed: None,
        }
    }

    /// Records that the client has moved the entity there. Shortly after the client was sent a place of the entity, it is
    /// not known which of the two came first.
    pub(crate) fn record_movement(&mut self, now: Mono, place: Place) {
        let is_settled = self.placed.is_none_or(|placed| now.since(placed) >= SETTLED_AFTER);
        let place = Some(place).filter(|_| is_settled);
        if place.is_none() || self.place != place {
            (self.place, self.noted) = (place, now);
        }
    }

    /// Records that the client is sent a place of the entity.
    pub(crate) fn record_placement(&mut self, now: Mono, place: Place) {
        (self.place, self.noted, self.placed) = (Some(place), now, Some(now));
    }

    /// Whether the client has left the entity somewhere else than at `place`: its last movements were lost or refused,
    /// or the entity's holder died.
    pub(crate) fn has_strayed(&self, now: Mono, place: Place) -> bool {
        self.place != Some(place) && now.since(self.noted) >= SETTLED_AFTER
    }
}

impl CellRole {
    /// Takes a movement from the client's proxy, or one that the holder of the client's entity has forwarded. Returns
    /// whether it was rejected, and not only lost or outdated.
    pub(crate) fn take_driven(&mut self, cx: &mut OwnerContext, from: OwnerId, movement: DrivenMovement) -> bool {
        let DrivenMovement {
            session,
            driver,
            driven,
            ..
        } = movement;
        // Then the holder of the client's entity has checked that the client drives the other one. A proxy that has an
        // outdated route to that holder has not, but the holder of the driven entity knows its driver.
        let is_forwarded = cx.image(driver).is_none();
        if !is_forwarded {
            let witness = self.clients.witness(driver, client(session, from));
            // Before its view has begun here, the client drives what the former holder has sent: the entity's holder
            // knows its driver.
            let Some(witness) = witness.filter(|witness| witness.awaits_view() || witness.drives(driven)) else {
                return true;
            };
            if let Some(Place { space, .. }) = self.known.place(cx, driven) {
                let place = Place {
                    space,
                    ..movement.place
                };
                witness.record_movement(driven, place, cx.now().mono);
            }
        }
        let holder = self.known.ghosts.get(driven).map(Ghost::holder);
        match holder.filter(|_| cx.place(driven).is_none()) {
            // Forwarded once only: two owners that each believe that the other one holds it must not pass it on.
            Some(_) if is_forwarded => false,
            Some(holder) => {
                cx.send_volatile(driver, holder, Message::View(ViewMessage::Drove(movement)));
                false
            }
            None => self.physics.take_driven(cx, &self.known, &movement),
        }
    }
}
