//! Bit probabilities: one per context, initially the averages over movements of players. Every datagram begins with
//! these and adapts them to its own bits.

use super::range::Chance;

/// The contexts, by subject.
pub(super) mod context {
    use super::super::range::{SIGNED_CONTEXTS, SIZE_CONTEXTS};

    /// Whether there is an origin.
    pub(crate) const HAS_ORIGIN: usize = 0;
    /// Number of slots skipped.
    pub(crate) const GAP: usize = 1;
    /// Whether the entity's id is included, because the client has no state of it.
    pub(crate) const IS_NEW: usize = GAP + SIZE_CONTEXTS;
    /// Age of the client's state, relative to the newest acknowledged tick.
    pub(crate) const AGE: usize = IS_NEW + 1;
    /// Whether other parts are sent than before, and which.
    pub(crate) const PARTS_DIFFER: usize = AGE + SIZE_CONTEXTS;
    pub(crate) const PARTS: usize = PARTS_DIFFER + 1;
    /// Differences of step sizes from the previous ones.
    pub(crate) const EXPONENT: usize = PARTS + 15;
    pub(crate) const EXPONENT_UP: usize = EXPONENT + SIGNED_CONTEXTS;
    /// Coordinates without known state.
    pub(crate) const NEW: usize = EXPONENT_UP + SIGNED_CONTEXTS;
    pub(crate) const NEW_UP: usize = NEW + SIGNED_CONTEXTS;
    /// The origin of such coordinates.
    pub(crate) const ORIGIN: usize = NEW_UP + SIGNED_CONTEXTS;
    const MISSED: usize = ORIGIN + SIGNED_CONTEXTS;
    const MISSED_UP: usize = MISSED + EXPONENTS * 2 * 3 * SIGNED_CONTEXTS;
    const TURNED: usize = MISSED_UP + 2 * SIGNED_CONTEXTS;
    /// Number of contexts.
    pub(crate) const COUNT: usize = TURNED + (4 + 2 + 2) * SIGNED_CONTEXTS;

    /// Step sizes are distinguished up to this power of two.
    const EXPONENTS: usize = 8;

    /// Prediction error of a coordinate: by step size, by whether it moves, and by whether the previous coordinate was
    /// as predicted (1) or not (2).
    pub(crate) fn missed(exponent: u8, is_still: bool, surprise: usize) -> usize {
        let exponent = usize::from(exponent).min(EXPONENTS - 1);
        MISSED + ((exponent * 2 + usize::from(is_still)) * 3 + surprise) * SIGNED_CONTEXTS
    }

    pub(crate) fn missed_up(is_still: bool) -> usize {
        MISSED_UP + usize::from(is_still) * SIGNED_CONTEXTS
    }

    /// Prediction error of an angle: yaw by four classes of angular speed, pitch and roll by two.
    pub(crate) fn turned(angle: usize, haste: usize) -> usize {
        let of = match angle {
            0 => haste,
            1 => 4 + haste.min(1),
            _ => 6 + haste.min(1),
        };
        TURNED + of * SIGNED_CONTEXTS
    }
}

/// A probability for each context.
#[derive(Clone, Debug)]
pub(super) struct Model {
    chances: [Chance; context::COUNT],
}

impl Default for Model {
    fn default() -> Self {
        Self { chances: AVERAGE }
    }
}

impl Model {
    pub(super) fn chance(&mut self, context: usize) -> &mut Chance {
        &mut self.chances[context]
    }
}

/// The average probabilities, measured on walks of bots: of each context in 256ths, two hexadecimal digits.
const AVERAGES: &str = include_str!("averages.txt");

/// The same at the resolution of the coder, each in the middle of its 256th.
const AVERAGE: [Chance; context::COUNT] = {
    let (mut chances, mut context, mut at) = ([0; context::COUNT], 0, 0);
    let bytes = AVERAGES.as_bytes();
    while at < bytes.len() {
        // The digits are broken into lines.
        if bytes[at] == b'\n' {
            at += 1;
            continue;
        }
        chances[context] = (digit(bytes[at]) << 4 | digit(bytes[at + 1])) << 4 | 8;
        context += 1;
        at += 2;
    }
    assert!(context == context::COUNT, "a chance for each context");
    chances
};

const fn digit(byte: u8) -> Chance {
    match byte {
        b'0'..=b'9' => (byte - b'0') as Chance,
        b'a'..=b'f' => (byte - b'a' + 10) as Chance,
        _ => panic!("chances are hexadecimal digits in lines"),
    }
}
