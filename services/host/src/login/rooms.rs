//! Room in a realm that may be full: asked of the director, and settled with it.

use std::time::Duration;

use annals_ids::{DatabaseId, Epoch, OwnerId, SessionId};
use annals_login::{NotCheckedOut, Placed, RoomId, Unavailable, Wish};
use annals_wire::control::{
    CheckOut, CheckedOut, DbAsk, DirectorAsk, OwnerAddress, PlaceSession, RoomSettled, SettleRoom,
};

use super::{Asker, unavailable};
use crate::process;

impl Asker {
    pub(super) async fn place(&self, wish: Wish) -> Result<Placed, Unavailable> {
        let ask = PlaceSession {
            process: self.process.id.0,
            room: wish.room.0,
            exempt: !wish.waits,
            queued: wish.waited.is_some(),
            waited: millis(wish.waited.unwrap_or_default()),
            waiting: wish.waiting as u64,
        };
        let answer = self.process.ask::<OwnerAddress>(DirectorAsk::PlaceSession(ask)).await;
        let answer = answer.map_err(unavailable)?;
        self.room.send_replace(answer.room);
        if answer.room.is_some_and(|room| room.full) {
            return Ok(Placed::Full);
        }
        let base = process::located(OwnerId(answer.owner), Epoch(answer.epoch), &answer.address);
        Ok(base.map_or(Placed::None, |base| Placed::Base {
            base,
            is_limited: answer.room.is_some(),
        }))
    }

    /// A lost message costs room until the director gives it up.
    pub(super) async fn settle(&self, room: RoomId, session: Option<(OwnerId, SessionId)>) {
        let settled = SettleRoom {
            process: self.process.id.0,
            room: room.0,
            owner: session.map_or(0, |(owner, _)| owner.0),
            session: session.map_or(0, |(_, session)| session.0),
        };
        let answer = self.process.ask::<RoomSettled>(DirectorAsk::SettleRoom(settled)).await;
        if let Err(error) = answer {
            tracing::debug!(%error, "could not notify the director that room is used or free");
        }
    }

    /// The owner on which an account is active, if it is.
    pub(super) async fn look_up(&self, account: DatabaseId) -> Result<Option<OwnerId>, NotCheckedOut> {
        let ask = DbAsk::CheckOut(CheckOut {
            database: account.0,
            preferred: 0,
            plays: true,
            only_active: true,
        });
        let answer = self.db::<CheckedOut>(ask).await;
        let answer = answer.map_err(|Unavailable| NotCheckedOut::Unavailable)?;
        if !answer.failed.is_empty() {
            tracing::warn!(%account, reason = answer.failed, "could not look up where the account is active");
            return Err(NotCheckedOut::Unavailable);
        }
        Ok(Some(OwnerId(answer.owner)).filter(|owner| owner.0 > 0))
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
