//! An adaptive binary range coder: the cost of a bit depends on how unlikely it was.
//!
//! A range is split in proportion to the probability that the bit is 0, and narrows to the part of the actual bit. The
//! arithmetic is on unsigned 32-bit numbers; products of two of them stay below 2^32. The output is the number in the
//! last range that has most trailing zero bytes, without those: a reader substitutes zeroes for missing bytes.

use super::model::Model;

/// Probability that a bit is 0, in 4,096ths.
pub(super) type Chance = u16;

/// Bits of a [`Chance`].
const CHANCE_BITS: u32 = 12;

/// Adaptation rate: a probability moves towards the actual bit by a 32nd of the difference.
const PACE: u32 = 5;

/// Below this, a range is widened by a byte.
const NARROW: u32 = 1 << 24;

/// A destination or source of bits. One description of a format serves both: a reader ignores the bits that it is given
/// and returns those that it reads.
pub(super) trait Coder {
    /// A bit with the probability of its context, which adapts to it.
    fn bit(&mut self, model: &mut Model, context: usize, bit: bool) -> bool;

    /// A bit whose values are equally likely.
    fn even(&mut self, bit: bool) -> bool;
}

/// Adapts a probability to the actual bit. Neither value ever becomes impossible.
fn learn(chance: &mut Chance, bit: bool) {
    if bit {
        *chance -= *chance >> PACE;
    } else {
        *chance += ((1 << CHANCE_BITS) - *chance) >> PACE;
    }
}

const EVEN: Chance = 1 << (CHANCE_BITS - 1);

/// The split of the range: the lower part is for 0.
fn split(range: u32, chance: Chance) -> u32 {
    (range >> CHANCE_BITS) * u32::from(chance)
}

/// Writes bits.
pub(super) struct Encoder {
    out: Vec<u8>,
    low: u64,
    range: u32,
}

impl Encoder {
    /// Starts with empty output.
    pub(super) fn new() -> Self {
        Self {
            out: Vec::with_capacity(256),
            low: 0,
            range: u32::MAX,
        }
    }

    fn put(&mut self, chance: Chance, bit: bool) {
        let bound = split(self.range, chance);
        if bit {
            self.low += u64::from(bound);
            self.range -= bound;
        } else {
            self.range = bound;
        }
        while self.range < NARROW {
            self.shift();
            self.range <<= 8;
        }
    }

    /// Writes the highest byte, and propagates the carry into those before it.
    fn shift(&mut self) {
        let [.., carry, byte, _, _, _] = self.low.to_be_bytes();
        if carry != 0 {
            for before in self.out.iter_mut().rev() {
                *before = before.wrapping_add(1);
                if *before != 0 {
                    break;
                }
            }
        }
        self.out.push(byte);
        self.low = (self.low << 8) & u64::from(u32::MAX);
    }

    pub(super) fn finish(mut self) -> Vec<u8> {
        let last = self.low + u64::from(self.range) - 1;
        let zeroes = (0..=32).rev().find(|zeroes| (last >> zeroes) << zeroes >= self.low);
        self.low = zeroes.map_or(self.low, |zeroes| (last >> zeroes) << zeroes);
        for _ in 0..4 {
            self.shift();
        }
        while self.out.last() == Some(&0) {
            self.out.pop();
        }
        self.out
    }
}

impl Coder for Encoder {
    fn bit(&mut self, model: &mut Model, context: usize, bit: bool) -> bool {
        let chance = model.chance(context);
        self.put(*chance, bit);
        learn(chance, bit);
        bit
    }

    fn even(&mut self, bit: bool) -> bool {
        self.put(EVEN, bit);
        bit
    }
}

/// Reads the output of an [`Encoder`]. Any bytes can be read, to any length; whether an encoder wrote them is known at
/// the end.
pub(super) struct Decoder<'a> {
    bytes: &'a [u8],
    taken: usize,
    code: u32,
    range: u32,
}

impl<'a> Decoder<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        let mut decoder = Self {
            bytes,
            taken: 0,
            code: 0,
            range: u32::MAX,
        };
        (0..4).for_each(|_| decoder.shift());
        decoder
    }

    fn shift(&mut self) {
        let byte = self.bytes.get(self.taken).copied().unwrap_or_default();
        self.taken += 1;
        self.code = self.code << 8 | u32::from(byte);
    }

    fn take(&mut self, chance: Chance) -> bool {
        let bound = split(self.range, chance);
        let bit = self.code >= bound;
        if bit {
            self.code -= bound;
            self.range -= bound;
        } else {
            self.range = bound;
        }
        while self.range < NARROW {
            self.shift();
            self.range <<= 8;
        }
        bit
    }

    /// Whether an encoder could have produced this end: no bytes are left over, and none is a trailing zero.
    pub(super) fn is_whole(&self) -> bool {
        self.bytes.len() <= self.taken && self.bytes.last() != Some(&0)
    }
}

impl Coder for Decoder<'_> {
    fn bit(&mut self, model: &mut Model, context: usize, _: bool) -> bool {
        let chance = model.chance(context);
        let bit = self.take(*chance);
        learn(chance, bit);
        bit
    }

    fn even(&mut self, _: bool) -> bool {
        self.take(EVEN)
    }
}

/// A number from 1 on, below 2^63: its number of bits is coded by [`SIZE_CONTEXTS`] contexts from `first` on, and so is
/// the highest bit after the leading one; the other bits are equally likely.
pub(super) fn size(coder: &mut impl Coder, model: &mut Model, first: usize, value: u64) -> u64 {
    let length = 63 - value.max(1).leading_zeros() as usize;
    let mut bits = 0;
    while bits < 62 && coder.bit(model, first + bits.min(LENGTHS - 1), bits < length) {
        bits += 1;
    }
    let mut found = 1;
    for at in (0..bits).rev() {
        let bit = value >> at & 1 == 1;
        let bit = if at + 1 == bits {
            coder.bit(model, first + LENGTHS + bits.min(TOPS) - 1, bit)
        } else {
            coder.even(bit)
        };
        found = found << 1 | u64::from(bit);
    }
    found
}

/// Contexts for the length of a number, and for its highest bits.
const LENGTHS: usize = 8;
const TOPS: usize = 3;
pub(super) const SIZE_CONTEXTS: usize = LENGTHS + TOPS;

/// A number with a sign: whether it is zero, its sign, and its size, from context `first` on.
pub(super) fn signed(coder: &mut impl Coder, model: &mut Model, first: usize, value: i64) -> i64 {
    if !coder.bit(model, first, value != 0) {
        return 0;
    }
    let is_negative = coder.bit(model, first + 1, value < 0);
    let size = size(coder, model, first + 2, value.unsigned_abs()).cast_signed();
    if is_negative { -size } else { size }
}

/// Number of contexts of a number with a sign.
pub(super) const SIGNED_CONTEXTS: usize = 2 + SIZE_CONTEXTS;

#[cfg(test)]
mod tests {
    use annals_def::split_mix;

    use super::*;

    /// Codes some bits of each kind, and numbers of all lengths, derived from `seed`.
    fn code(coder: &mut impl Coder, seed: u64, sink: &mut Vec<i64>) {
        let (mut dice, mut model) = (split_mix(seed), Model::default());
        for _ in 0..dice() % 200 {
            match dice() % 4 {
                0 => sink.push(i64::from(coder.bit(&mut model, 0, dice().is_multiple_of(20)))),
                1 => sink.push(i64::from(coder.even(dice().is_multiple_of(2)))),
                2 => sink.push(size(coder, &mut model, 1, (dice() >> (dice() % 63)).max(1) >> 1 | 1).cast_signed()),
                _ => sink.push(signed(coder, &mut model, 20, dice().cast_signed() >> (1 + dice() % 62))),
            }
        }
    }

    #[test]
    fn encodings_round_trip_and_are_minimal() {
        for seed in 0..2_000 {
            let (mut encoder, mut written, mut read) = (Encoder::new(), Vec::new(), Vec::new());
            code(&mut encoder, seed, &mut written);
            let bytes = encoder.finish();
            let mut decoder = Decoder::new(&bytes);
            code(&mut decoder, seed, &mut read);
            assert_eq!(read, written, "seed {seed}");
            assert!(decoder.is_whole(), "seed {seed}");
            let longer = [bytes.as_slice(), &[1; 12]].concat();
            let mut decoder = Decoder::new(&longer);
            code(&mut decoder, seed, &mut Vec::new());
            assert!(!decoder.is_whole(), "seed {seed}: there are more bytes than it takes");
        }
    }

    #[test]
    fn likely_bits_are_cheap() {
        let (mut encoder, mut model) = (Encoder::new(), Model::default());
        (0..8_000).for_each(|_| {
            encoder.bit(&mut model, 0, false);
        });
        let bytes = encoder.finish().len();
        assert!(bytes <= 16, "{bytes} bytes for 8,000 bits that are always the same");
    }
}
