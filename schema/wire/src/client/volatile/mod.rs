//! What is only worth having now, in few bytes: where entities are and where they look (rule V4).
//!
//! Two codecs carry [`Motion`]s to a client. [`Packing`] is how systems of this kind have long done it: small floats
//! relative to the observer, bit for bit; it is what the other is measured against. [`VolatileWriter`] and
//! [`VolatileReader`] predict each entity from what the client is known to have, and tell what the prediction missed.
//! With either, the error of a coordinate is at most half a step of the packing at that distance, that of an angle half a
//! step of its byte.

mod entry;
mod model;
mod packed;
mod range;
mod reader;
mod track;
mod writer;

use annals_ids::{EntityId, Position};

pub use packed::{PACKED_ALIASES, Packing, Reference};
pub use reader::{Heard, Unreadable, VolatileReader, VolatileUpdate};
pub use writer::{KIND, MAX_SLOTS, Sent, VolatileWriter};

/// What an observer is told of an entity's movement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Motion {
    /// Which entity.
    pub entity: EntityId,
    /// Where it is.
    pub placing: Placing,
    /// Where it looks.
    pub facing: Facing,
}

/// As much of a position as is told.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Placing {
    /// All of it.
    Full(Position),
    /// Without the height: it stands on the ground, and the client knows where that is. Who reads it finds a height of 0;
    /// who writes it gives the true one, for far away all of the position is told.
    Ground(Position),
    /// Nothing.
    Unsaid,
    /// All of it, to the last bit.
    Exact(Position),
}

/// As much of a direction as is told, radians.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Facing {
    /// All of it.
    YawPitchRoll(f32, f32, f32),
    /// Without the tilt.
    YawPitch(f32, f32),
    /// Only where it heads.
    Yaw(f32),
    /// Nothing.
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

    /// How many angles are told.
    fn angles(number: u8) -> usize {
        3 - usize::from(number)
    }
}

impl Motion {
    /// Whether it tells anything, and nothing that is no number.
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
