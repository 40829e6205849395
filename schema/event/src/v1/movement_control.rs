//! Movement control: who moves a cell part, and its top speed.
//!
//! ```text
//! movement_control = driver top_speed:f32 top_speed_y:f32
//! driver           = 0:u8 own client | 1:u8 server | 2:u8 entity:number client of that entity
//! ```
//! Floats are 4 bytes, little-endian, finite and not negative.

use annals_ids::EntityId;

use crate::encoding::{Malformed, Reader, put_number};

/// Who moves a cell part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Driver {
    /// Its client, if it has one.
    #[default]
    Client,
    /// Behaviour and controllers only.
    Server,
    /// The client of another entity, while that has this one in view.
    ClientOf(EntityId),
}

impl Driver {
    /// Appends it.
    pub fn write(self, out: &mut Vec<u8>) {
        match self {
            Driver::Client => out.push(0),
            Driver::Server => out.push(1),
            Driver::ClientOf(entity) => {
                out.push(2);
                put_number(out, entity.0);
            }
        }
    }

    /// Reads it.
    ///
    /// # Errors
    /// When it is not in its one encoding.
    pub fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let wrong = reader.malformed("driver");
        match reader.byte("driver")? {
            0 => Ok(Driver::Client),
            1 => Ok(Driver::Server),
            2 => Ok(Driver::ClientOf(EntityId(reader.number("driver")?))),
            _ => Err(wrong),
        }
    }
}

/// Who moves a cell part, and its top speeds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct MovementControl {
    pub driver: Driver,
    /// Top speed at which its client may move it (m/s); 0 means unlimited.
    pub top_speed: f32,
    /// Vertical top speed (m/s), if it differs from the other; 0 if it does not. Ignored without a top speed.
    pub top_speed_y: f32,
}

impl MovementControl {
    /// Whether the speeds are finite and not negative.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        let speeds = [self.top_speed, self.top_speed_y];
        speeds.iter().all(|speed| speed.is_finite() && speed.is_sign_positive())
    }

    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        self.driver.write(out);
        out.extend(self.top_speed.to_bits().to_le_bytes());
        out.extend(self.top_speed_y.to_bits().to_le_bytes());
    }

    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let wrong = reader.malformed("movement control");
        let driver = Driver::read(reader)?;
        let mut speed = || Ok(f32::from_bits(u32::from_le_bytes(reader.array("top speed")?)));
        let movement_control = Self {
            driver,
            top_speed: speed()?,
            top_speed_y: speed()?,
        };
        if movement_control.is_sound() {
            Ok(movement_control)
        } else {
            Err(wrong)
        }
    }
}
