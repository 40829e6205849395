//! How likely bits are: a chance for each context, as movements of players have them on average. Every datagram begins with
//! these and learns from its own bits.

use super::range::Chance;

/// The contexts, by what they are about.
pub(super) mod context {
    use super::super::range::{SIGNED_CONTEXTS, SIZE_CONTEXTS};

    /// Whether there is an origin.
    pub(crate) const HAS_ORIGIN: usize = 0;
    /// How many slots were left out.
    pub(crate) const GAP: usize = 1;
    /// Whether the entity is named, because the client has nothing of it.
    pub(crate) const IS_NEW: usize = GAP + SIZE_CONTEXTS;
    /// How much older than the newest tick that was heard of is what the client has of it.
    pub(crate) const AGE: usize = IS_NEW + 1;
    /// Whether other parts are told than before, and which.
    pub(crate) const PARTS_DIFFER: usize = AGE + SIZE_CONTEXTS;
    pub(crate) const PARTS: usize = PARTS_DIFFER + 1;
    /// How steps differ from those before.
    pub(crate) const EXPONENT: usize = PARTS + 15;
    pub(crate) const EXPONENT_UP: usize = EXPONENT + SIGNED_CONTEXTS;
    /// Coordinates of which nothing is known.
    pub(crate) const NEW: usize = EXPONENT_UP + SIGNED_CONTEXTS;
    pub(crate) const NEW_UP: usize = NEW + SIGNED_CONTEXTS;
    /// Where they begin then.
    pub(crate) const ORIGIN: usize = NEW_UP + SIGNED_CONTEXTS;
    const MISSED: usize = ORIGIN + SIGNED_CONTEXTS;
    const MISSED_UP: usize = MISSED + EXPONENTS * 2 * 3 * SIGNED_CONTEXTS;
    const TURNED: usize = MISSED_UP + 2 * SIGNED_CONTEXTS;
    /// How many there are.
    pub(crate) const COUNT: usize = TURNED + (4 + 2 + 2) * SIGNED_CONTEXTS;

    /// Steps are told apart up to this power of two.
    const EXPONENTS: usize = 8;

    /// By how much a coordinate is another than expected: by the size of steps, by whether it moves, and by whether the one
    /// before it was as expected (1) or not (2).
    pub(crate) fn missed(exponent: u8, is_still: bool, surprise: usize) -> usize {
        let exponent = usize::from(exponent).min(EXPONENTS - 1);
        MISSED + ((exponent * 2 + usize::from(is_still)) * 3 + surprise) * SIGNED_CONTEXTS
    }

    pub(crate) fn missed_up(is_still: bool) -> usize {
        MISSED_UP + usize::from(is_still) * SIGNED_CONTEXTS
    }

    /// By how much an angle is another than expected: yaw by four kinds of haste, pitch and roll by two.
    pub(crate) fn turned(angle: usize, haste: usize) -> usize {
        let of = match angle {
            0 => haste,
            1 => 4 + haste.min(1),
            _ => 6 + haste.min(1),
        };
        TURNED + of * SIGNED_CONTEXTS
    }
}

/// A chance for each context.
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

/// The chances on average, counted on walks of bots: of each context in 256ths, two hexadecimal digits.
const AVERAGES: &str = include_str!("averages.txt");

/// The same in the parts in which chances are reckoned, each in the middle of its 256th.
const AVERAGE: [Chance; context::COUNT] = {
    let (mut chances, mut context, mut at) = ([0; context::COUNT], 0, 0);
    let bytes = AVERAGES.as_bytes();
    while at < bytes.len() {
        // The digits stand in lines.
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
