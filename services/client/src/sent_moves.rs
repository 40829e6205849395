//! The movements of the client's own entity, and of others that it drives, on their way to the cell.
//!
//! Each replaces the one before, so a lost datagram does no harm while the entity moves. The last one before a rest is
//! replaced by none: it is sent again, with its sequence number, and the cell ignores what it has already.

use std::collections::BTreeMap;

use annals_ids::{Direction, EntityId, HistoryNumber, Position};
use annals_wire::client::{Drove, Moved, ToServerDatagram};

use crate::{
    event::{Millis, Output},
    session::ClientCore,
};

/// Milliseconds of rest after which the last movement is sent again; doubled for each further time.
const FIRST_REPEAT: u64 = 200;

/// How many times it is sent again.
const REPEATS: u32 = 4;

#[derive(Debug, Default)]
pub(crate) struct SentMoves {
    /// The sequence number of the newest movement of the session.
    newest: u64,
    /// The newest movement of each entity, until it has been sent often enough.
    last: BTreeMap<EntityId, LastMove>,
}

#[derive(Debug)]
struct LastMove {
    place: (Position, Direction),
    datagram: Vec<u8>,
    repeats: u32,
    again_at: Millis,
}

impl ClientCore {
    /// Moves the entity that the client controls, as [`ClientCore::move_entity`] does.
    pub fn move_to(&mut self, now: Millis, position: Position, direction: Direction) -> bool {
        let own = self.controls();
        own.is_some_and(|(own, _)| self.move_entity(now, own, position, direction))
    }

    /// Moves an entity that the client [drives](ClientCore::drives). Returns whether it was sent: there is a connection,
    /// and the client drives the entity. The last movement before a rest is sent again a few times, in case it was lost.
    pub fn move_entity(&mut self, now: Millis, entity: EntityId, position: Position, direction: Direction) -> bool {
        let Some((own, _)) = self.controls().filter(|_| self.is_playing() && self.drives(entity)) else {
            return false;
        };
        let (place, cell) = ((position, direction), &mut self.views.cell);
        let upto = cell.set_place(entity, place);
        let bytes = match upto {
            _ if entity == own => self.sent_moves.make_own(now, entity, place),
            Some(upto) => self.sent_moves.make_driven(now, (entity, upto), place),
            None => return false,
        };
        self.outputs.push_back(Output::Datagram(bytes));
        true
    }

    /// Whether the client moves this entity: its own, unless behaviour has chosen another driver, or one of which
    /// behaviour has chosen this client's entity as the driver ([`Event::Drives`](crate::Event::Drives)).
    #[must_use]
    pub fn drives(&self, entity: EntityId) -> bool {
        self.controls()
            .is_some_and(|(own, _)| self.views.cell.drives(entity, own))
    }

    /// Sends the last movements again that are due.
    pub(crate) fn move_again(&mut self, now: Millis) {
        let (view, own) = (&self.views.cell, self.controls().map(|(own, _)| own));
        let is_driven = |entity: &EntityId| own.is_some_and(|own| view.drives(*entity, own));
        let place = |entity| view.entities().get(&entity)?.place.filter(|_| is_driven(&entity));
        let again = self.sent_moves.due(now, place);
        self.outputs.extend(again.into_iter().map(Output::Datagram));
    }
}

impl SentMoves {
    /// The client moves its own entity: returns the datagram.
    pub(crate) fn make_own(&mut self, now: Millis, entity: EntityId, place: (Position, Direction)) -> Vec<u8> {
        let moved = self.moved(place);
        self.keep(now, entity, place, &ToServerDatagram::Moved(moved))
    }

    /// The client moves another entity, which it was shown up to that history number: returns the datagram.
    pub(crate) fn make_driven(
        &mut self,
        now: Millis,
        (entity, upto): (EntityId, HistoryNumber),
        place: (Position, Direction),
    ) -> Vec<u8> {
        let moved = self.moved(place);
        self.keep(
            now,
            entity,
            place,
            &ToServerDatagram::Drove(Drove { entity, upto, moved }),
        )
    }

    fn moved(&mut self, (position, direction): (Position, Direction)) -> Moved {
        self.newest += 1;
        Moved {
            sequence: self.newest,
            position,
            direction,
        }
    }

    fn keep(
        &mut self,
        now: Millis,
        entity: EntityId,
        place: (Position, Direction),
        datagram: &ToServerDatagram,
    ) -> Vec<u8> {
        let mut bytes = Vec::new();
        datagram.write(&mut bytes);
        let last = LastMove {
            place,
            datagram: bytes.clone(),
            repeats: 0,
            again_at: now.after(FIRST_REPEAT),
        };
        self.last.insert(entity, last);
        bytes
    }

    /// The newest movements that are due again, as datagrams. `place` is where the client has an entity that it moves:
    /// one that the server has placed elsewhere stays there.
    pub(crate) fn due(
        &mut self,
        now: Millis,
        place: impl Fn(EntityId) -> Option<(Position, Direction)>,
    ) -> Vec<Vec<u8>> {
        let mut due = Vec::new();
        self.last.retain(|entity, last| {
            if last.again_at > now {
                return true;
            }
            last.repeats += 1;
            last.again_at = now.after(FIRST_REPEAT << last.repeats);
            let is_there = place(*entity) == Some(last.place);
            if is_there {
                due.push(last.datagram.clone());
            }
            is_there && last.repeats < REPEATS
        });
        due
    }

    /// The client controls another entity: nothing is sent again.
    pub(crate) fn clear(&mut self) {
        self.last.clear();
    }

    pub(crate) fn deadline(&self) -> Option<Millis> {
        self.last.values().map(|last| last.again_at).min()
    }
}
