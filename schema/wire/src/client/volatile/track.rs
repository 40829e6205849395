//! Prediction of coordinates and angles: both ends compute the same from their common state.
//!
//! A track follows the received positions, and its speed follows only in part, so that neither the step size of
//! positions nor a stumble disturbs it. All numbers are integers; divisions and shifts round down, also below zero. All
//! fit in a double exactly, so a client in any language computes the same.

/// Fraction bits of a unit in tracks.
const FINE: u32 = 4;

/// A track without an update for more ticks than this is not extrapolated: the entity is assumed to stand still.
const LONGEST_REACH: i64 = 10;

/// Half of the range of coordinates, in units: 1,000 km where a unit is a millimetre.
pub(super) const FARTHEST: i64 = 1 << 30;

/// The greatest speed (units per tick).
const FASTEST: i64 = 1 << 16;

/// One coordinate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Track {
    /// The estimated position, in 16ths of a unit.
    at: i64,
    /// The speed per tick, in 16ths of a unit.
    speed: i64,
    /// The step size, as a power of two of units.
    pub(super) exponent: u8,
}

impl Track {
    /// Starts at the first received position.
    pub(super) fn begin(step: i64, exponent: u8) -> Self {
        Self {
            at: (step << exponent) << FINE,
            speed: 0,
            exponent,
        }
    }

    fn reckon(&self, ticks: i64) -> i64 {
        if ticks > LONGEST_REACH {
            self.at
        } else {
            self.at + self.speed * ticks
        }
    }

    /// The predicted step, of this power of two of units, after this many ticks.
    pub(super) fn expect(&self, ticks: i64, exponent: u8) -> i64 {
        let bits = u32::from(exponent) + FINE;
        (self.reckon(ticks) + (1 << (bits - 1))) >> bits
    }

    /// Updates the track with the step received at that time.
    pub(super) fn follow(&self, ticks: i64, step: i64, exponent: u8) -> Self {
        let reckoned = self.reckon(ticks);
        let missed = ((step << exponent) << FINE) - reckoned;
        let speed = if ticks > LONGEST_REACH { 0 } else { self.speed };
        let fastest = FASTEST << FINE;
        Self {
            at: reckoned + ((missed * PLACE_SHARE) >> 3),
            speed: (speed + (missed * SPEED_SHARE).div_euclid(8 * ticks)).clamp(-fastest, fastest),
            exponent,
        }
    }

    /// Whether it hardly moves: less than three 16ths of a step per tick.
    pub(super) fn is_still(&self) -> bool {
        self.speed.abs() >> self.exponent <= 2
    }
}

/// In eighths: the share of the prediction error by which a track's position, and its speed, are corrected.
const PLACE_SHARE: i64 = 7;
const SPEED_SHARE: i64 = 6;

/// One angle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Turn {
    /// Its value, in steps.
    at: i64,
    /// The rate of turn per tick, in 16ths of a step.
    rate: i64,
    /// The number of bits of a step.
    bits: u32,
}

impl Turn {
    pub(super) fn begin(step: i64, bits: u32) -> Self {
        Self {
            at: step & ((1 << bits) - 1),
            rate: 0,
            bits,
        }
    }

    /// The difference between two angles, in the shorter direction.
    pub(super) fn short(&self, steps: i64) -> i64 {
        let half = 1 << (self.bits - 1);
        ((steps + half) & ((1 << self.bits) - 1)) - half
    }

    fn turned(&self, ticks: i64) -> i64 {
        if ticks > LONGEST_REACH {
            0
        } else {
            (self.rate * ticks + (1 << (FINE - 1))) >> FINE
        }
    }

    /// The predicted step after this many ticks.
    pub(super) fn expect(&self, ticks: i64) -> i64 {
        (self.at + self.turned(ticks)) & ((1 << self.bits) - 1)
    }

    /// Updates the angle with the step received at that time.
    pub(super) fn follow(&self, ticks: i64, step: i64) -> Self {
        let rate = if ticks > LONGEST_REACH { 0 } else { self.rate };
        let turned = self.short(step - self.at) << FINE;
        Self {
            at: step & ((1 << self.bits) - 1),
            rate: rate + (((turned.div_euclid(ticks) - rate) * RATE_SHARE) >> 3),
            bits: self.bits,
        }
    }

    /// The class of angular speed, from still to fast.
    pub(super) fn haste(&self) -> usize {
        match self.rate.abs() >> FINE {
            0 if self.rate.abs() < 4 => 0,
            0..2 => 1,
            2..6 => 2,
            _ => 3,
        }
    }
}

/// In eighths, the share by which the rate is corrected.
const RATE_SHARE: i64 = 6;
