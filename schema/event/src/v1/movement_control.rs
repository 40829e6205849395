//! Who says where a cell part goes, and how fast.
//!
//! ```text
//! movement_control = driver:u8 top_speed:f32 top_speed_y:f32
//! ```
//! The driver is 0 for the client and 1 for the server. Floats are 4 bytes, little-endian, finite and not negative.

use crate::encoding::{Malformed, Reader};

/// Who says where a cell part goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Driver {
    /// Its client, if it has one.
    #[default]
    Client,
    /// Nobody but behaviour and controllers.
    Server,
}

/// See the module.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct MovementControl {
    /// Who holds them.
    pub driver: Driver,
    /// How fast its client may move it, metres per second; 0 if as fast as it likes.
    pub top_speed: f32,
    /// How fast up and down, if it is not to count as the rest does; 0 if it is. Without a top speed it means nothing.
    pub top_speed_y: f32,
}

impl MovementControl {
    /// Whether the speeds are some.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        let speeds = [self.top_speed, self.top_speed_y];
        speeds.iter().all(|speed| speed.is_finite() && speed.is_sign_positive())
    }

    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        out.push(match self.driver {
            Driver::Client => 0,
            Driver::Server => 1,
        });
        out.extend(self.top_speed.to_bits().to_le_bytes());
        out.extend(self.top_speed_y.to_bits().to_le_bytes());
    }

    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let wrong = reader.malformed("movement control");
        let driver = match reader.byte("driver")? {
            0 => Driver::Client,
            1 => Driver::Server,
            _ => return Err(wrong),
        };
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
