//! A batch, represented by its whole chain.
//!
//! A hash stands for everything before it. Here the chain is short enough to be stored instead: a batch is a stack of
//! levels of six bits, the newest lowest, so equality of values is equality of hashes, without collisions.

use std::fmt;

/// Maximum batches of a chain: five levels of six bits fit a `u32`.
pub(crate) const MOST_BATCHES: u8 = 5;

const LEVEL_BITS: u32 = 6;
const EPOCH_BITS: u32 = 2;
const OPEN_BIT: u32 = 1 << EPOCH_BITS;
const CONTENT_SHIFT: u32 = EPOCH_BITS + 1;

/// A batch with all its predecessors; [`Batch::NONE`] precedes batch 1.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub(crate) struct Batch(u32);

impl Batch {
    pub(crate) const NONE: Self = Self(0);

    /// The next batch, with the inputs in the bit set `inputs` (at most three).
    pub(crate) fn followed_by(self, epoch: u8, inputs: u8) -> Self {
        self.push(u32::from(epoch) | u32::from(inputs) << CONTENT_SHIFT)
    }

    /// The `Open` of `epoch` after this batch.
    pub(crate) fn opened_by(self, epoch: u8) -> Self {
        self.push(u32::from(epoch) | OPEN_BIT)
    }

    /// A batch with the same number, epoch and predecessors, but other inputs.
    pub(crate) fn holding(self, inputs: u8) -> Self {
        self.before().followed_by(self.epoch(), inputs)
    }

    fn push(self, level: u32) -> Self {
        debug_assert!(
            self.number() < MOST_BATCHES,
            "a chain of {MOST_BATCHES} batches is full"
        );
        Self(self.0 << LEVEL_BITS | level)
    }

    /// The previous batch.
    pub(crate) fn before(self) -> Self {
        Self(self.0 >> LEVEL_BITS)
    }

    /// 1, 2, 3 …; 0 for [`Batch::NONE`]. No level is zero, since no epoch is.
    pub(crate) fn number(self) -> u8 {
        (u32::BITS - self.0.leading_zeros()).div_ceil(LEVEL_BITS) as u8
    }

    pub(crate) fn epoch(self) -> u8 {
        (self.0 & (OPEN_BIT - 1)) as u8
    }

    pub(crate) fn is_open(self) -> bool {
        self.0 & OPEN_BIT != 0
    }

    /// The bit set of inputs in this batch alone.
    pub(crate) fn inputs(self) -> u8 {
        ((self.0 >> CONTENT_SHIFT) & 0b111) as u8
    }

    /// The batch with this number in the chain; `NONE` if the chain is shorter.
    pub(crate) fn at(self, number: u8) -> Self {
        match self.number().checked_sub(number) {
            Some(above) => Self(self.0 >> (LEVEL_BITS * u32::from(above))),
            None => Self::NONE,
        }
    }

    /// Whether `other` is this batch or precedes it.
    pub(crate) fn contains(self, other: Self) -> bool {
        self.number() >= other.number() && self.at(other.number()) == other
    }

    /// The batch of this chain that contains `input`.
    pub(crate) fn holder_of(self, input: u8) -> Option<Self> {
        let mut batch = self;
        while batch != Self::NONE {
            if batch.inputs() & 1 << input != 0 {
                return Some(batch);
            }
            batch = batch.before();
        }
        None
    }

    /// The `Open` of `epoch` in this chain; the newest if there are several.
    pub(crate) fn opening_of(self, epoch: u8) -> Self {
        let mut batch = self;
        while batch != Self::NONE && !(batch.is_open() && batch.epoch() == epoch) {
            batch = batch.before();
        }
        batch
    }
}

/// The name of an input, for descriptions.
pub(crate) fn input_name(input: u8) -> char {
    char::from(b'x' + input)
}

/// The name of the process that holds `epoch`, for descriptions.
pub(crate) fn process_name(epoch: u8) -> char {
    char::from(b'A' + epoch - 1)
}

impl fmt::Display for Batch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Self::NONE {
            return f.write_str("nothing");
        }
        write!(f, "{}{}", self.number(), process_name(self.epoch()))?;
        if self.is_open() {
            f.write_str("(Open)")?;
        }
        let inputs: String = (0..3)
            .filter(|input| self.inputs() & 1 << input != 0)
            .map(input_name)
            .collect();
        if !inputs.is_empty() {
            write!(f, "({inputs})")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Batch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.before() != Self::NONE {
            write!(f, "{:?} ", self.before())?;
        }
        fmt::Display::fmt(self, f)
    }
}
