//! Positions of the measured entities: all walk in one direction for a while, and turn back at the edge.

/// All coordinates are multiples of this, metres. Sums of coordinates and radii are then exact in a float, so that all
/// algorithms see the same, although they compare differently.
const RASTER: f32 = 1.0 / 256.0;

/// Distance of the slowest and the fastest in a tick of 100 ms, metres: a stroll and a run.
const SLOWEST: f32 = 0.1;
const FASTEST: f32 = 0.6;

/// One in this many entities turns at each tick.
const TURNS: u64 = 30;

/// A square world in which all entities walk.
#[derive(Clone)]
pub(super) struct World {
    /// Its side, metres.
    pub(super) side: f32,
    /// Positions: x and z.
    pub(super) places: Vec<[f32; 2]>,
    steps: Vec<[f32; 2]>,
    /// One in this many entities jumps to another place at each tick.
    leaps: Option<u64>,
    dice: u64,
}

impl World {
    /// Distributes this many entities over a square of this side.
    pub(super) fn new(entities: usize, side: f32) -> Self {
        let mut world = Self {
            side,
            places: Vec::with_capacity(entities),
            steps: Vec::with_capacity(entities),
            leaps: None,
            dice: 1,
        };
        for _ in 0..entities {
            let place = world.anywhere();
            world.places.push(place);
            let step = world.turn();
            world.steps.push(step);
        }
        world
    }

    /// The same world, in which one in this many entities jumps at each tick.
    pub(super) fn leaping(self, one_in: u64) -> Self {
        Self {
            leaps: Some(one_in),
            ..self
        }
    }

    /// Moves all entities by a tick.
    pub(super) fn walk(&mut self) {
        for entity in 0..self.places.len() {
            if self.roll().is_multiple_of(TURNS) {
                self.steps[entity] = self.turn();
            }
            if self.leaps.is_some_and(|one_in| self.roll().is_multiple_of(one_in)) {
                self.places[entity] = self.anywhere();
                continue;
            }
            for axis in [0, 1] {
                let to = self.places[entity][axis] + self.steps[entity][axis];
                if (0.0..=self.side).contains(&to) {
                    self.places[entity][axis] = to;
                } else {
                    self.steps[entity][axis] *= -1.0;
                }
            }
        }
    }

    fn anywhere(&mut self) -> [f32; 2] {
        [self.share() * self.side, self.share() * self.side].map(rastered)
    }

    fn turn(&mut self) -> [f32; 2] {
        let (angle, length) = (self.share() * std::f32::consts::TAU, self.share());
        let length = SLOWEST + length * (FASTEST - SLOWEST);
        [angle.cos() * length, angle.sin() * length].map(rastered)
    }

    /// A random number from 0 to 1.
    fn share(&mut self) -> f32 {
        (self.roll() >> 40) as f32 / (1_u64 << 24) as f32
    }

    /// `SplitMix64`.
    fn roll(&mut self) -> u64 {
        self.dice = self.dice.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.dice;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

fn rastered(metres: f32) -> f32 {
    (metres / RASTER).round() * RASTER
}
