//! Where something will be, as both ends reckon it from what both have.
//!
//! A track follows what it is told, and half-way only in its speed, so that neither the steps in which places are told nor a
//! stumble throw it off. All numbers are whole; divisions and shifts go down, also below zero. None is out of what a double
//! can hold, so that a client in any language reckons the same.

/// Parts of a unit in which tracks reckon.
const FINE: u32 = 4;

/// A track is given up that was not told of for so many ticks: it is taken to stand still.
const LONGEST_REACH: i64 = 10;

/// Half of what can be told, in units: 1,000 km where a unit is a millimetre.
pub(super) const FARTHEST: i64 = 1 << 30;

/// The greatest speed, in units a tick.
const FASTEST: i64 = 1 << 16;

/// One coordinate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Track {
    /// Where it is taken to be, in 16ths of a unit.
    at: i64,
    /// How far it goes in a tick, in 16ths of a unit.
    speed: i64,
    /// Which power of two of units a step had.
    pub(super) exponent: u8,
}

impl Track {
    /// Told for the first time.
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

    /// The step, of this power of two of units, in which it should be after so many ticks.
    pub(super) fn expect(&self, ticks: i64, exponent: u8) -> i64 {
        let bits = u32::from(exponent) + FINE;
        (self.reckon(ticks) + (1 << (bits - 1))) >> bits
    }

    /// The step in which it was then.
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

    /// Whether it hardly moves: less than three 16ths of a step in a tick.
    pub(super) fn is_still(&self) -> bool {
        self.speed.abs() >> self.exponent <= 2
    }
}

/// In eighths, how far a track follows where it is told to be, and how far its speed follows what that misses.
const PLACE_SHARE: i64 = 7;
const SPEED_SHARE: i64 = 6;

/// One angle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Turn {
    /// Where it points, in steps.
    at: i64,
    /// How far it turns in a tick, in 16ths of a step.
    rate: i64,
    /// How many bits tell a step.
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

    /// The difference between two angles, the short way.
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

    /// The step at which it should point after so many ticks.
    pub(super) fn expect(&self, ticks: i64) -> i64 {
        (self.at + self.turned(ticks)) & ((1 << self.bits) - 1)
    }

    /// The step at which it pointed then.
    pub(super) fn follow(&self, ticks: i64, step: i64) -> Self {
        let rate = if ticks > LONGEST_REACH { 0 } else { self.rate };
        let told = self.short(step - self.at) << FINE;
        Self {
            at: step & ((1 << self.bits) - 1),
            rate: rate + (((told.div_euclid(ticks) - rate) * RATE_SHARE) >> 3),
            bits: self.bits,
        }
    }

    /// How fast it turns, from not at all to quickly.
    pub(super) fn haste(&self) -> usize {
        match self.rate.abs() >> FINE {
            0 if self.rate.abs() < 4 => 0,
            0..2 => 1,
            2..6 => 2,
            _ => 3,
        }
    }
}

/// In eighths, how far a rate follows.
const RATE_SHARE: i64 = 6;
