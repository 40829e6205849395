//! Positions and directions.

/// A point in a space (m). `y` is up; areas of interest use only `x` and `z`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Position {
    /// East.
    pub x: f32,
    /// Up.
    pub y: f32,
    /// North.
    pub z: f32,
}

impl Position {
    /// Whether all three coordinates are finite. Cores accept only finite positions.
    #[must_use]
    pub fn is_finite(self) -> bool {
        self.x.is_finite() && self.y.is_finite() && self.z.is_finite()
    }

    /// Distance to another position (m); infinite on overflow.
    #[must_use]
    pub fn distance(self, other: Self) -> f32 {
        let (dx, dy, dz) = (self.x - other.x, self.y - other.y, self.z - other.z);
        (dx * dx + dy * dy + dz * dz).sqrt()
    }
}

/// A direction (rad).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Direction {
    /// Rotation about the vertical axis.
    pub yaw: f32,
    /// Rotation up or down.
    pub pitch: f32,
    /// Rotation about the line of sight.
    pub roll: f32,
}

impl Direction {
    /// Whether all three angles are finite.
    #[must_use]
    pub fn is_finite(self) -> bool {
        self.yaw.is_finite() && self.pitch.is_finite() && self.roll.is_finite()
    }
}
