//! Compact encoding of volatile data: positions and directions of entities (rule V4).
//!
//! Two codecs carry [`Motion`]s to a client. [`Packing`] is the traditional encoding of systems of this kind: small
//! floats relative to the observer, bit for bit; it is the baseline for the other. [`VolatileWriter`] and
//! [`VolatileReader`] predict each entity from the state that the client is known to have, and encode the prediction
//! error. With either, the error of a coordinate is at most half a step of the packing at that distance, and that of an
//! angle half a step of its byte.

mod entry;
mod model;
mod packed;
mod range;
mod reader;
mod track;
mod writer;

use annals_ids::{EntityId, Position};

pub use packed::{PACKED_ALIASES, Packing, Reference};
pub use reader::{MovementAck, Unreadable, VolatileReader, VolatileUpdate};
pub use writer::{KIND, MAX_SLOTS, Sent, VolatileWriter};

/// An entity's movement, as sent to an observer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Motion {
    pub entity: EntityId,
    /// Its position.
    pub placing: Placing,
    /// Its direction.
    pub facing: Facing,
}

/// The part of a position that is sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Placing {
    /// All coordinates.
    Full(Position),
    /// Without the height: the entity stands on the ground, whose height the client knows. A reader returns a height of
    /// 0; a writer must give the true one, because at a great distance the whole position is sent.
    Ground(Position),
    /// None.
    Unsaid,
    /// All coordinates, exact to the last bit.
    Exact(Position),
}

/// The part of a direction that is sent (rad).
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Facing {
    /// All angles.
    YawPitchRoll(f32, f32, f32),
    /// Without the roll.
    YawPitch(f32, f32),
    /// The yaw only.
    Yaw(f32),
    /// None.
    Unsaid,
}

impl Placing {
    fn number(&self) -> u8 {
        match self {
            Placing::Full(_) => 0,
            Placing::Ground(_) => 1,
            Placing::Unsaid => 2,
            Placing::Exact(_) => 3,
        }
    }
}

impl Facing {
    fn number(&self) -> u8 {
        match self {
            Facing::YawPitchRoll(..) => 0,
            Facing::YawPitch(..) => 1,
            Facing::Yaw(_) => 2,
            Facing::Unsaid => 3,
        }
    }

    /// Number of angles that are sent.
    fn angles(number: u8) -> usize {
        3 - usize::from(number)
    }
}

impl Motion {
    /// Whether it contains anything, and no NaN or infinity.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        let place = match self.placing {
            Placing::Full(position) | Placing::Ground(position) | Placing::Exact(position) => position.is_finite(),
            Placing::Unsaid => self.facing != Facing::Unsaid,
        };
        place
            && match self.facing {
                Facing::YawPitchRoll(yaw, pitch, roll) => yaw.is_finite() && pitch.is_finite() && roll.is_finite(),
                Facing::YawPitch(yaw, pitch) => yaw.is_finite() && pitch.is_finite(),
                Facing::Yaw(yaw) => yaw.is_finite(),
                Facing::Unsaid => true,
            }
    }
}
