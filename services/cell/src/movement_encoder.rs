//! How one view's movements become datagrams: plainly, or as what a client that reads it could not predict
//! (`docs/movements.md`).

use annals_def::Volatile;
use annals_ids::{EntityId, Position, Tick};
use annals_wire::client::{
    MAX_DATAGRAM, Move, Movements, Moves,
    volatile::{Facing, Heard, Motion, Placing, VolatileWriter},
};

/// What of a place is due at some distance.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parts {
    position: bool,
    /// So many of yaw, pitch and roll: the first.
    angles: usize,
}

/// Where somebody is, as far as it is due.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sighting {
    pub(crate) movement: Move,
    pub(crate) parts: Parts,
}

/// See the module.
#[derive(Debug)]
pub(crate) enum MovementEncoder {
    /// Everything of everybody, whatever the client has.
    Plain { view: u64 },
    /// What the client is not known to expect.
    Predicted(Predicted),
}

#[derive(Debug)]
pub(crate) struct Predicted {
    writer: VolatileWriter,
    /// What the client said last that it has read, to be taken in before the next datagram: once a tick, however often a
    /// client says something.
    heard: Option<Heard>,
    /// What a movement took lately, in 16ths of a byte.
    each: usize,
}

/// What a movement takes whose entity was never told of, in 16ths of a byte: about how many it takes in the first datagram.
const FIRST: usize = 12 * 16;

/// What a datagram takes beside movements, bytes.
const HEAD: usize = 8;

impl Parts {
    /// What of a place is told to somebody so far away; `None` if nothing is.
    pub(crate) fn due(volatile: &Volatile, distance: f32) -> Option<Self> {
        let angles = [volatile.yaw, volatile.pitch, volatile.roll];
        let angles = angles.iter().rposition(|reach| reach.covers(distance));
        let parts = Self {
            position: volatile.position.covers(distance),
            angles: angles.map_or(0, |last| last + 1),
        };
        (parts.position || parts.angles > 0).then_some(parts)
    }
}

impl Sighting {
    /// What is due of it. Nobody says who stands on the ground, so the height is told with the rest.
    fn motion(&self) -> Motion {
        let Self { movement, parts } = self;
        let (at, looks) = (movement.position, movement.direction);
        Motion {
            entity: movement.entity,
            placing: if parts.position {
                Placing::Full(at)
            } else {
                Placing::Unsaid
            },
            facing: match parts.angles {
                0 => Facing::Unsaid,
                1 => Facing::Yaw(looks.yaw),
                2 => Facing::YawPitch(looks.yaw, looks.pitch),
                _ => Facing::YawPitchRoll(looks.yaw, looks.pitch, looks.roll),
            },
        }
    }
}

impl MovementEncoder {
    /// Begins to tell of a view in this way.
    pub(crate) fn begin(view: u64, movements: Movements) -> Self {
        match movements {
            Movements::Plain => MovementEncoder::Plain { view },
            Movements::Predicted(packing) => MovementEncoder::Predicted(Predicted {
                writer: VolatileWriter::new(view, packing),
                heard: None,
                each: FIRST,
            }),
        }
    }

    /// About how many bytes so many movements take.
    pub(crate) fn about_bytes(&self, moves: usize) -> usize {
        match self {
            MovementEncoder::Plain { .. } => moves * Move::ABOUT_BYTES,
            MovementEncoder::Predicted(_) if moves == 0 => 0,
            MovementEncoder::Predicted(found) => HEAD + (moves * found.each).div_ceil(16),
        }
    }

    /// The client says what it has read.
    pub(crate) fn heard(&mut self, heard: Heard) {
        if let MovementEncoder::Predicted(found) = self {
            found.heard = Some(heard);
        }
    }

    /// The client has this entity no more.
    pub(crate) fn forget(&mut self, entity: EntityId) {
        if let MovementEncoder::Predicted(found) = self {
            found.writer.forget(entity);
        }
    }

    /// Puts movements into datagrams, and says how many: so many of the first. What is predicted takes one datagram a tick, of
    /// at most `limit` bytes; `observer` is where the client's entity is.
    pub(crate) fn tell(
        &mut self,
        tick: Tick,
        observer: Position,
        moves: &[Sighting],
        limit: usize,
    ) -> (Vec<Vec<u8>>, usize) {
        match self {
            MovementEncoder::Plain { view } => {
                let view = *view;
                let all = moves.iter().map(|sighting| sighting.movement).collect();
                let datagrams = Moves { view, tick, moves: all }.datagrams();
                (datagrams, moves.len())
            }
            MovementEncoder::Predicted(found) => found.tell(tick, observer, moves, limit),
        }
    }
}

impl Predicted {
    fn tell(&mut self, tick: Tick, observer: Position, moves: &[Sighting], limit: usize) -> (Vec<Vec<u8>>, usize) {
        if let Some(heard) = self.heard.take() {
            self.writer.heard(heard.tick, heard.before);
        }
        let motions: Vec<Motion> = moves.iter().map(Sighting::motion).collect();
        let sent = self.writer.write(tick, observer, &motions, limit.min(MAX_DATAGRAM));
        if let Some(datagram) = &sent.datagram {
            let each = (datagram.len().saturating_sub(HEAD) * 16).div_ceil(sent.told);
            self.each = (3 * self.each + each).div_ceil(4).max(1);
        } else if !moves.is_empty() {
            // Not even one fits. It is waited for until there is room for what one takes.
            self.each = (2 * self.each).min(16 * MAX_DATAGRAM);
        }
        (sent.datagram.into_iter().collect(), sent.told)
    }
}

#[cfg(test)]
mod tests {
    use annals_ids::Direction;
    use annals_wire::client::Reads;

    use super::*;

    fn sightings(count: u64) -> Vec<Sighting> {
        let sighting = |entity: u64| Sighting {
            movement: Move {
                entity: EntityId(1_000_000 + 97 * entity),
                position: Position {
                    x: entity as f32,
                    y: 1.0,
                    z: -3.0,
                },
                direction: Direction::default(),
            },
            parts: Parts {
                position: true,
                angles: 1,
            },
        };
        (0..count).map(sighting).collect()
    }

    #[test]
    fn no_more_is_told_than_there_is_room_for_and_the_first_come_first() {
        let predicted = Movements::choose(Reads::Predicted, 500.0);
        let mut movement_encoder = MovementEncoder::begin(1, predicted);
        let moves = sightings(60);
        for (tick, limit) in (1..).zip([100, 50, 200, 30]) {
            let (datagrams, told) = movement_encoder.tell(Tick(tick), Position::default(), &moves, limit);
            assert!((1..60).contains(&told), "{told} in {limit} bytes");
            assert!(datagrams.len() == 1 && datagrams[0].len() <= limit, "{datagrams:?}");
        }
        let (datagrams, told) = movement_encoder.tell(Tick(9), Position::default(), &moves, 3);
        assert!(datagrams.is_empty() && told == 0);
    }
}
