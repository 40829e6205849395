//! The traditional packing of systems of this kind, bit for bit: small floats relative to the observer.
//!
//! A coordinate has a sign, a few bits of exponent and a few of mantissa: of `|v| / scale + 2`, so that numbers near
//! zero have an exponent too. East and north have 3 + 8 bits, rounded; the height has 4 + 11, truncated, and no scale.
//! An angle is a byte. A message begins with a kind byte, followed by the entity as an alias of one byte or as its id.

use std::f32::consts::PI;

use annals_event::{Malformed, Reader};
use annals_ids::{EntityId, Position};

use super::{Facing, Motion, Placing};
use crate::client::fields::{put_entity, put_position, take_entity, take_position};

/// Number of aliases of an observer; the last value of the byte means none.
pub const PACKED_ALIASES: usize = 255;

/// The origin of packed coordinates: the observer's position in whole metres, east, up and north.
pub type Reference = [i32; 3];

/// A small float: numbers of bits of its exponent and mantissa. The sign is above them.
#[derive(Clone, Copy)]
struct Small {
    exponent: u32,
    mantissa: u32,
    is_rounded: bool,
}

const GROUND: Small = Small {
    exponent: 3,
    mantissa: 8,
    is_rounded: true,
};
const HEIGHT: Small = Small {
    exponent: 4,
    mantissa: 11,
    is_rounded: false,
};

/// The encoding of 2.0, the least exponent that a value has.
const TWO: u32 = 128 << (f32::MANTISSA_DIGITS - 1);

impl Small {
    /// The bits without the sign.
    const fn magnitude(self) -> u32 {
        (1 << (self.exponent + self.mantissa)) - 1
    }

    fn pack(self, value: f32) -> u32 {
        let bits = (value.abs() + 2.0).to_bits() - TWO;
        let cut = f32::MANTISSA_DIGITS - 1 - self.mantissa;
        let half = if self.is_rounded { 1 << (cut - 1) } else { 0 };
        let sign = u32::from(value.is_sign_negative()) << (self.exponent + self.mantissa);
        sign | ((bits + half) >> cut).min(self.magnitude())
    }

    fn unpack(self, packed: u32) -> f32 {
        let bits = (packed & self.magnitude()) << (f32::MANTISSA_DIGITS - 1 - self.mantissa);
        let value = f32::from_bits(bits + TWO) - 2.0;
        if packed > self.magnitude() { -value } else { value }
    }

    /// Values from here on cannot be packed: half a step above the greatest value.
    fn limit(self) -> f32 {
        let step = (2.0f32).powi((1 << self.exponent) - self.mantissa as i32);
        self.unpack(self.magnitude()) + step / 2.0
    }

    /// The step size at this distance, as a power of two of the steps around zero.
    fn step_at(self, distance: f32) -> u8 {
        let bits = (distance.abs() + 2.0).to_bits() - TWO;
        let exponent = bits >> (f32::MANTISSA_DIGITS - 1);
        exponent.min((1 << self.exponent) - 1) as u8
    }
}

/// The packing of positions: the scale follows from the maximum distance at which observers see.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Packing {
    scale: f32,
}

/// A scale equals itself: it is never NaN.
impl Eq for Packing {}

impl Packing {
    /// A packing for observers that see this far (m).
    ///
    /// # Panics
    /// When that is not a positive number.
    #[must_use]
    pub fn for_radius(radius: f32) -> Self {
        Self::fitting(radius).unwrap_or_else(|| panic!("a radius of {radius}"))
    }

    /// A packing for observers that see this far (m), if that is a positive number.
    #[must_use]
    pub fn fitting(radius: f32) -> Option<Self> {
        Self::scaled(radius / GROUND.limit().floor())
    }

    /// A packing with this many metres per unit of the small floats.
    ///
    /// # Panics
    /// When that is not a positive number.
    #[must_use]
    pub fn with_scale(scale: f32) -> Self {
        Self::scaled(scale).unwrap_or_else(|| panic!("a scale of {scale}"))
    }

    /// A packing with this many metres per unit of the small floats, if that is a positive number.
    #[must_use]
    pub fn scaled(scale: f32) -> Option<Self> {
        (scale.is_normal() && scale > 0.0).then_some(Self { scale })
    }

    /// Metres per unit of the small floats.
    #[must_use]
    pub fn scale(self) -> f32 {
        self.scale
    }

    /// Coordinates at this distance from the reference (m) or farther are sent in full.
    #[must_use]
    pub fn limit(self) -> f32 {
        GROUND.limit() * self.scale
    }

    /// Packs east and north into three bytes.
    #[must_use]
    pub fn pack_ground(self, x: f32, z: f32) -> [u8; 3] {
        let packed = GROUND.pack(x / self.scale) << 12 | GROUND.pack(z / self.scale);
        let [a, b, c, _] = packed.to_le_bytes();
        [a, b, c]
    }

    /// Unpacks the output of [`Packing::pack_ground`].
    #[must_use]
    pub fn unpack_ground(self, [a, b, c]: [u8; 3]) -> (f32, f32) {
        let packed = u32::from_le_bytes([a, b, c, 0]);
        let one = |packed| GROUND.unpack(packed) * self.scale;
        (one(packed >> 12), one(packed & 0xfff))
    }

    /// Packs a position into five bytes.
    #[must_use]
    pub fn pack_full(self, position: Position) -> [u8; 5] {
        let [a, b, c] = self.pack_ground(position.x, position.z);
        let [d, e, _, _] = HEIGHT.pack(position.y).to_le_bytes();
        [a, b, c, d, e]
    }

    /// Unpacks the output of [`Packing::pack_full`].
    #[must_use]
    pub fn unpack_full(self, [a, b, c, d, e]: [u8; 5]) -> Position {
        let (x, z) = self.unpack_ground([a, b, c]);
        let y = HEIGHT.unpack(u32::from_le_bytes([d, e, 0, 0]));
        Position { x, y, z }
    }

    /// The form in which a placing is sent, relative to the reference: in full where it cannot be packed.
    #[must_use]
    pub fn settled(self, placing: Placing, reference: Reference) -> Placing {
        let fits = |value: f32, metres: i32| (-self.limit()..self.limit()).contains(&(value - metres as f32));
        let [x, y, z] = reference;
        match placing {
            Placing::Full(at) | Placing::Ground(at) if !fits(at.x, x) || !fits(at.z, z) => Placing::Exact(at),
            Placing::Full(at) if (at.y - y as f32).abs() >= HEIGHT.limit() => Placing::Exact(at),
            placing => placing,
        }
    }

    /// The step sizes at this distance from the reference, as powers of two: east and north, in 128ths of the scale.
    pub(super) fn ground_step(self, distance: f32) -> u8 {
        GROUND.step_at(distance / self.scale)
    }

    /// The step size of the height, in 1,024ths of a metre.
    pub(super) fn height_step(distance: f32) -> u8 {
        HEIGHT.step_at(distance)
    }

    /// Appends a message about an entity, by its alias if it has one.
    pub fn put(self, out: &mut Vec<u8>, reference: Reference, alias: Option<u8>, motion: &Motion) {
        let placing = self.settled(motion.placing, reference);
        out.push(kind(alias.is_some(), placing.number(), motion.facing.number()));
        match alias {
            Some(alias) => out.push(alias),
            None => put_entity(out, motion.entity),
        }
        let [x, y, z] = reference.map(|metres| metres as f32);
        match placing {
            Placing::Full(at) => out.extend(self.pack_full(Position {
                x: at.x - x,
                y: at.y - y,
                z: at.z - z,
            })),
            Placing::Ground(at) => out.extend(self.pack_ground(at.x - x, at.z - z)),
            Placing::Unsaid => {}
            Placing::Exact(at) => put_position(out, at),
        }
        match motion.facing {
            Facing::YawPitchRoll(yaw, pitch, roll) => out.extend([pack_angle(yaw), pack_half(pitch), pack_angle(roll)]),
            Facing::YawPitch(yaw, pitch) => out.extend([pack_angle(yaw), pack_angle(pitch)]),
            Facing::Yaw(yaw) => out.push(pack_angle(yaw)),
            Facing::Unsaid => {}
        }
    }

    /// Reads a message. `named` resolves aliases; a message with an unknown alias is skipped.
    ///
    /// # Errors
    /// When it is cut off or of an unknown kind, or a coordinate is not finite.
    pub fn take(
        self,
        reader: &mut Reader<'_>,
        reference: Reference,
        named: impl Fn(u8) -> Option<EntityId>,
    ) -> Result<Option<Motion>, Malformed> {
        let wrong = reader.malformed("kind of movement");
        let (is_aliased, placing, facing) = contents(reader.byte("kind of movement")?).ok_or(wrong)?;
        let entity = if is_aliased {
            named(reader.byte("alias")?)
        } else {
            Some(take_entity(reader)?)
        };
        let [x, y, z] = reference.map(|metres| metres as f32);
        let placing = match placing {
            0 => {
                let at = self.unpack_full(reader.array("position")?);
                Placing::Full(Position {
                    x: at.x + x,
                    y: at.y + y,
                    z: at.z + z,
                })
            }
            1 => {
                let (east, north) = self.unpack_ground(reader.array("position")?);
                Placing::Ground(Position {
                    x: east + x,
                    y: 0.0,
                    z: north + z,
                })
            }
            2 => Placing::Unsaid,
            _ => Placing::Exact(take_position(reader)?),
        };
        let mut angle = || reader.byte("angle");
        let facing = match facing {
            0 => {
                let [yaw, pitch, roll] = [angle()?, angle()?, angle()?];
                Facing::YawPitchRoll(unpack_angle(yaw), unpack_half(pitch), unpack_angle(roll))
            }
            1 => Facing::YawPitch(unpack_angle(angle()?), unpack_angle(angle()?)),
            2 => Facing::Yaw(unpack_angle(angle()?)),
            _ => Facing::Unsaid,
        };
        Ok(entity.map(|entity| Motion {
            entity,
            placing,
            facing,
        }))
    }
}

/// The kind byte of a message. Kinds with an exact position come after the others.
fn kind(is_aliased: bool, placing: u8, facing: u8) -> u8 {
    let alias = u8::from(is_aliased);
    match placing {
        3 => 24 + alias * 4 + facing,
        placing => alias * 12 + placing * 4 + facing,
    }
}

fn contents(kind: u8) -> Option<(bool, u8, u8)> {
    let (alias, placing, facing) = match kind {
        0..24 => (kind / 12, kind % 12 / 4, kind % 4),
        24..32 => ((kind - 24) / 4, 3, kind % 4),
        _ => return None,
    };
    // A message without content is never sent.
    ((placing, facing) != (2, 3)).then_some((alias == 1, placing, facing))
}

/// An angle in a byte: a turn has 256 steps.
pub(super) fn pack_angle(angle: f32) -> u8 {
    ((angle * (128.0 / PI) + 0.5).floor() as i64).to_le_bytes()[0]
}

pub(super) fn unpack_angle(packed: u8) -> f32 {
    f32::from(packed.cast_signed()) * (PI / 128.0)
}

/// An angle between straight down and straight up: half a turn has 254 steps.
fn pack_half(angle: f32) -> u8 {
    ((angle * (254.0 / PI) + 0.5).floor() as i64).to_le_bytes()[0]
}

fn unpack_half(packed: u8) -> f32 {
    f32::from(packed.cast_signed()) * (PI / 254.0)
}

#[cfg(test)]
mod tests;
