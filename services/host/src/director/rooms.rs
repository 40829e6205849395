//! Room for players: what bases report, and what login processes ask for.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::time::Duration;

use annals_director::{Admission, RoomRequest};
use annals_ids::{Epoch, OwnerId, OwnerKind, ProcessId, SessionId};
use annals_store::layout::owners::OwnerRecord;
use annals_wire::control::{Holding, OwnerAddress, PlaceSession, RealmRoom, RoomSettled, SettleRoom};

use super::{Leader, monotonic};

/// Admission by a director that begins to lead a realm with these owners. If it was stopped in order, there are no
/// sessions that bases would have to report first.
pub(super) fn admission(
    limit: Option<NonZeroU32>,
    (owners, was_stopped): (&BTreeMap<OwnerId, OwnerRecord>, bool),
) -> Admission {
    let bases = owners
        .iter()
        .filter(|(_, record)| record.kind == OwnerKind::Base && !was_stopped)
        .map(|(owner, _)| *owner);
    if let Some(limit) = limit {
        tracing::info!(%limit, "players beyond the limit wait in a queue");
    }
    Admission::new(monotonic(), limit, bases.collect())
}

impl Leader {
    /// A base for a new session, if the realm has room for it.
    pub(super) fn place(&mut self, asked: PlaceSession) -> OwnerAddress {
        let Some(limit) = self.admission.limit().filter(|_| asked.room != 0) else {
            return self.place_entity();
        };
        let (process, room) = (ProcessId(asked.process), asked.room);
        let request = RoomRequest {
            process,
            room,
            waits: !asked.exempt,
            waited: asked.queued.then_some(Duration::from_millis(asked.waited)),
            waiting: asked.waiting,
        };
        let full = !self.admission.ask(monotonic(), &request);
        let place = if full {
            OwnerAddress::default()
        } else {
            self.place_entity()
        };
        if place.address.is_empty() {
            // Without a base there is nothing to have room for.
            self.admission.settle(process, room, None);
        }
        OwnerAddress {
            room: Some(RealmRoom {
                full,
                players: self.admission.players(),
                limit,
            }),
            ..place
        }
    }

    /// The base on which one more entity is to be created.
    fn place_entity(&mut self) -> OwnerAddress {
        let owner = self.membership.place(OwnerKind::Base);
        self.locate(owner)
    }

    pub(super) fn settle(&mut self, settled: SettleRoom) -> RoomSettled {
        let session = (settled.owner != 0).then_some((OwnerId(settled.owner), SessionId(settled.session)));
        self.admission.settle(ProcessId(settled.process), settled.room, session);
        RoomSettled {}
    }

    /// Counts the sessions that a base reports. Cells report none.
    pub(super) fn count_sessions(&mut self, held: &Holding) {
        if let Some(played) = held.played {
            let (owner, epoch) = (OwnerId(held.owner), Epoch(held.epoch));
            self.admission
                .reported(owner, epoch, played.sessions, SessionId(played.newest));
        }
    }
}
