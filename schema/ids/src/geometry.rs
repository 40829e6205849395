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
