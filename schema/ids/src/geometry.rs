//! Where an entity is and where it looks.

/// A point in a space, metres. `y` is up; areas of interest look at `x` and `z` alone.
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
    /// Whether all three coordinates are finite; nothing else may enter a core.
    #[must_use]
    pub fn is_finite(self) -> bool {
        self.x.is_finite() && self.y.is_finite() && self.z.is_finite()
    }

    /// How far another position is away, metres; infinite where that is more than can be told.
    #[must_use]
    pub fn distance(self, other: Self) -> f32 {
        let (dx, dy, dz) = (self.x - other.x, self.y - other.y, self.z - other.z);
        (dx * dx + dy * dy + dz * dz).sqrt()
    }
}

/// A direction, radians.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Direction {
    /// About the vertical axis.
    pub yaw: f32,
    /// Up and down.
    pub pitch: f32,
    /// About the line of sight.
    pub roll: f32,
}

impl Direction {
    /// Whether all three angles are finite.
    #[must_use]
    pub fn is_finite(self) -> bool {
        self.yaw.is_finite() && self.pitch.is_finite() && self.roll.is_finite()
    }
}
