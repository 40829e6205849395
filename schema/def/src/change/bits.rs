//! Bit packing: numbers of a few bits each, the most significant bit first, padded with zeroes to a whole byte.

/// Number of bits that distinguish `count` values: 0 for a single value.
pub(super) fn bits_required(count: u32) -> u32 {
    count.checked_sub(1).map_or(0, |last| u32::BITS - last.leading_zeros())
}

/// Writes numbers bit by bit.
#[derive(Debug, Default)]
pub(super) struct BitWriter {
    bytes: Vec<u8>,
    /// Bits used in the last byte; 0 if it is full, or there is none.
    used: u32,
}

impl BitWriter {
    /// Appends the `count` low bits of `number`, at most 32.
    pub(super) fn put(&mut self, count: u32, number: u32) {
        for bit in (0..count).rev() {
            if self.used == 0 {
                self.bytes.push(0);
            }
            let last = self.bytes.last_mut().expect("invariant: a byte was just pushed");
            *last |= u8::from(number >> bit & 1 == 1) << (7 - self.used);
            self.used = (self.used + 1) % 8;
        }
    }

    /// The written bits, in whole bytes.
    pub(super) fn finish(self) -> Vec<u8> {
        self.bytes
    }
}

/// Reads what [`BitWriter`] wrote.
#[derive(Debug)]
pub(super) struct BitReader<'a> {
    bytes: &'a [u8],
    read: usize,
}

impl<'a> BitReader<'a> {
    /// Starts at the first bit.
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, read: 0 }
    }

    /// Takes a number of `count` bits, at most 32; `None` when fewer are left.
    pub(super) fn take(&mut self, count: u32) -> Option<u32> {
        let mut number = 0;
        for _ in 0..count {
            let byte = self.bytes.get(self.read / 8)?;
            number = number << 1 | u32::from(byte >> (7 - self.read % 8) & 1);
            self.read += 1;
        }
        Some(number)
    }

    /// The bytes behind the last one read; `None` if the remaining bits of that one are not zero.
    pub(super) fn finish(mut self) -> Option<&'a [u8]> {
        while !self.read.is_multiple_of(8) {
            if self.take(1)? != 0 {
                return None;
            }
        }
        self.bytes.get(self.read / 8..)
    }
}
