//! Encodes one view's movements as datagrams: plainly, or as the difference to what the client can predict
//! (`docs/movements.md`).

use annals_def::EntityType;
use annals_ids::{EntityId, Position, Tick};
use annals_wire::client::{
    MAX_DATAGRAM, Move, Movements, Moves,
    volatile::{Facing, Motion, MovementAck, Placing, VolatileWriter},
};

/// The parts of a place that are due at some distance.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parts {
    position: bool,
    /// Whether the position is sent exactly, and not in steps of the packing (`DetailedPosition`).
    is_exact: bool,
    /// Number of angles, in the order yaw, pitch, roll.
    angles: usize,
}

/// The movement of an entity, and the parts of it that are due.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sighting {
    pub(crate) movement: Move,
    pub(crate) parts: Parts,
}

/// The encoder of one view's movements, in one of two formats.
#[derive(Debug)]
pub(crate) enum MovementEncoder {
    /// Full movements, independent of what the client has.
    Plain { view: u64 },
    /// Only what the client is not known to predict.
    Predicted(Predicted),
}

#[derive(Debug)]
pub(crate) struct Predicted {
    writer: VolatileWriter,
    /// The client's newest acknowledgement, applied before the next datagram: once a tick, however often a client sends
    /// one.
    ack: Option<MovementAck>,
    /// Recent average size of a movement, in 16ths of a byte.
    each: usize,
}

/// Initial value of `each`, in 16ths of a byte: about the size in the first datagram, of an entity not sent before.
const FIRST: usize = 12 * 16;

/// Size of a datagram without movements, bytes.
const HEAD: usize = 8;

impl Parts {
    /// The parts of a place of an entity of this type that are due at this distance; `None` if none is.
    pub(crate) fn due(entity_type: &EntityType, distance: f32) -> Option<Self> {
        let volatile = &entity_type.volatile;
        let angles = [volatile.yaw, volatile.pitch, volatile.roll];
        let angles = angles.iter().rposition(|reach| reach.covers(distance));
        let parts = Self {
            position: volatile.position.covers(distance),
            is_exact: entity_type.detailed_position.is_some(),
            angles: angles.map_or(0, |last| last + 1),
        };
        (parts.position || parts.angles > 0).then_some(parts)
    }
}

impl Sighting {
    /// The due parts of the movement. No entity is marked as standing on the ground, so the height is sent with the
    /// position.
    fn motion(&self) -> Motion {
        let Self { movement, parts } = self;
        let (at, looks) = (movement.position, movement.direction);
        Motion {
            entity: movement.entity,
            placing: match parts {
                Parts { position: false, .. } => Placing::Unsaid,
                Parts { is_exact: true, .. } => Placing::Exact(at),
                Parts { .. } => Placing::Full(at),
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
    /// Makes the encoder of a view.
    pub(crate) fn begin(view: u64, movements: Movements) -> Self {
        match movements {
            Movements::Plain => MovementEncoder::Plain { view },
            Movements::Predicted(packing) => MovementEncoder::Predicted(Predicted {
                writer: VolatileWriter::new(view, packing),
                ack: None,
                each: FIRST,
            }),
        }
    }

    /// Approximate size of this number of movements, bytes.
    pub(crate) fn about_bytes(&self, moves: usize) -> usize {
        match self {
            MovementEncoder::Plain { .. } => moves * Move::ABOUT_BYTES,
            MovementEncoder::Predicted(_) if moves == 0 => 0,
            MovementEncoder::Predicted(predicted) => HEAD + (moves * predicted.each).div_ceil(16),
        }
    }

    /// Takes the client's acknowledgement.
    pub(crate) fn acknowledge(&mut self, ack: MovementAck) {
        if let MovementEncoder::Predicted(predicted) = self {
            predicted.ack = Some(ack);
        }
    }

    /// Drops the state of an entity that the client does not have any more.
    pub(crate) fn forget(&mut self, entity: EntityId) {
        if let MovementEncoder::Predicted(predicted) = self {
            predicted.writer.forget(entity);
        }
    }

    /// Encodes movements as datagrams, and returns how many of them fit, counted from the first. Predicted movements
    /// take one datagram a tick, of at most `limit` bytes; `observer` is the position of the client's entity.
    pub(crate) fn encode(
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
            MovementEncoder::Predicted(predicted) => predicted.encode(tick, observer, moves, limit),
        }
    }
}

impl Predicted {
    fn encode(&mut self, tick: Tick, observer: Position, moves: &[Sighting], limit: usize) -> (Vec<Vec<u8>>, usize) {
        if let Some(ack) = self.ack.take() {
            self.writer.acknowledge(ack.tick, ack.before);
        }
        let motions: Vec<Motion> = moves.iter().map(Sighting::motion).collect();
        let sent = self.writer.write(tick, observer, &motions, limit.min(MAX_DATAGRAM));
        if let Some(datagram) = &sent.datagram {
            let each = (datagram.len().saturating_sub(HEAD) * 16).div_ceil(sent.movements);
            self.each = (3 * self.each + each).div_ceil(4).max(1);
        } else if !moves.is_empty() {
            // Not even one fits. Doubling the estimate makes the next one wait until there is room for it.
            self.each = (2 * self.each).min(16 * MAX_DATAGRAM);
        }
        (sent.datagram.into_iter().collect(), sent.movements)
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
                is_exact: false,
                angles: 1,
            },
        };
        (0..count).map(sighting).collect()
    }

    #[test]
    fn movements_are_sent_in_order_up_to_the_limit() {
        let predicted = Movements::choose(Reads::Predicted, 500.0);
        let mut movement_encoder = MovementEncoder::begin(1, predicted);
        let moves = sightings(60);
        for (tick, limit) in (1..).zip([100, 50, 200, 30]) {
            let (datagrams, count) = movement_encoder.encode(Tick(tick), Position::default(), &moves, limit);
            assert!((1..60).contains(&count), "{count} in {limit} bytes");
            assert!(datagrams.len() == 1 && datagrams[0].len() <= limit, "{datagrams:?}");
        }
        let (datagrams, count) = movement_encoder.encode(Tick(9), Position::default(), &moves, 3);
        assert!(datagrams.is_empty() && count == 0);
    }
}
