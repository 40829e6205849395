//! The movements of the client's own entity, on their way to the cell.
//!
//! Each replaces the one before, so a lost datagram does no harm while the entity moves. The last one before a rest is
//! replaced by none: it is sent again, with its sequence number, and the cell ignores what it has already.

use annals_ids::{Direction, EntityId, Position};
use annals_wire::client::{Moved, ToServerDatagram};

use crate::event::Millis;

/// Milliseconds of rest after which the last movement is sent again; doubled for each further time.
const FIRST_REPEAT: u64 = 200;

/// How many times it is sent again.
const REPEATS: u32 = 4;

#[derive(Debug, Default)]
pub(crate) struct OwnMoves {
    /// The sequence number of the newest movement of the session.
    newest: u64,
    last: Option<LastMove>,
}

/// The newest movement, until it has been sent often enough.
#[derive(Debug)]
struct LastMove {
    entity: EntityId,
    moved: Moved,
    repeats: u32,
    again_at: Millis,
}

impl OwnMoves {
    /// The client moves its entity: returns the datagram.
    pub(crate) fn make(
        &mut self,
        now: Millis,
        entity: EntityId,
        (position, direction): (Position, Direction),
    ) -> Vec<u8> {
        self.newest += 1;
        let moved = Moved {
            sequence: self.newest,
            position,
            direction,
        };
        self.last = Some(LastMove {
            entity,
            moved,
            repeats: 0,
            again_at: now.after(FIRST_REPEAT),
        });
        datagram(moved)
    }

    /// The newest movement as a datagram, if it is due again. `place` is where the client has an entity: one that the
    /// server has placed elsewhere stays there.
    pub(crate) fn due(
        &mut self,
        now: Millis,
        place: impl FnOnce(EntityId) -> Option<(Position, Direction)>,
    ) -> Option<Vec<u8>> {
        let last = self.last.as_mut().filter(|last| last.again_at <= now)?;
        let moved = last.moved;
        last.repeats += 1;
        last.again_at = now.after(FIRST_REPEAT << last.repeats);
        let is_there = place(last.entity) == Some((moved.position, moved.direction));
        if !is_there || last.repeats == REPEATS {
            self.last = None;
        }
        is_there.then(|| datagram(moved))
    }

    pub(crate) fn deadline(&self) -> Option<Millis> {
        self.last.as_ref().map(|last| last.again_at)
    }
}

fn datagram(moved: Moved) -> Vec<u8> {
    let mut bytes = Vec::new();
    ToServerDatagram::Moved(moved).write(&mut bytes);
    bytes
}
