//! Pseudo-random numbers from a seed: `SplitMix64`.

/// A generator of pseudo-random numbers.
#[derive(Clone, Debug)]
pub(crate) struct Dice(u64);

impl Dice {
    /// A generator with this seed.
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Any number.
    pub(crate) fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number less than `sides`.
    pub(crate) fn below(&mut self, sides: u64) -> u64 {
        self.roll() % sides
    }

    /// A number from 0 to 1.
    pub(crate) fn share(&mut self) -> f32 {
        (self.roll() >> 40) as f32 / (1_u64 << 24) as f32
    }

    /// A number in this range.
    pub(crate) fn between(&mut self, least: f32, most: f32) -> f32 {
        least + self.share() * (most - least)
    }

    /// A point in a disc.
    pub(crate) fn within(&mut self, centre: [f32; 2], radius: f32) -> [f32; 2] {
        loop {
            let [x, z] = [self.between(-1.0, 1.0), self.between(-1.0, 1.0)];
            if x * x + z * z <= 1.0 {
                return [centre[0] + x * radius, centre[1] + z * radius];
            }
        }
    }
}
