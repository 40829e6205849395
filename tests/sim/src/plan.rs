//! The configuration of a run and its faults, all drawn from the seed.
//!
//! A plan is a configuration and a list of faults. The configuration differs from seed to seed (*swarm testing*): each
//! kind of fault is on in about half of the seeds, rare in some and frequent in others, so that no kind masks another.
//! The faults are independent: if some are removed, the others still strike at the same moments, each with its own
//! random generator. A failing plan can therefore be [shrunk](crate::shrink).

use std::{fmt, num::NonZeroU32};

use annals_def::split_mix;
use annals_node::writer::{ANSWER_TIMEOUT, Durability};

use crate::fault::{Blow, Kind, Trouble};

/// A probability, in ten-thousandths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Odds(pub u64);

impl Odds {
    /// Whether it happens, for one roll.
    #[must_use]
    pub fn hit(self, roll: u64) -> bool {
        roll % 10_000 < self.0
    }
}

/// Duration of one trouble, milliseconds: short, so that a shrunk plan shows when a trouble matters.
const SLICE_MS: u64 = 2_500;

/// Mixed into the seed for the retention settings.
const RETAINING: u64 = 0x0f14_0f14;

/// Mixed into the seed for the number of shards.
const SHARDS: u64 = 0x5a1f_0001;

/// Mixed into the seed for the drains. The seeds in `tests/sim/learned.rs` have none.
const DRAINING: u64 = 0xd9a1_0001;

/// Mixed into the seed for the border settings.
const CROSSING: u64 = 0xc205_5145;

/// Mixed into the seed for the visit settings.
const VISITING: u64 = 0x0715_1715;

/// Settling time where players come and go, milliseconds: the last client with a ticket may never connect, and its
/// session waits a minute for it.
const VISITED_MS: u64 = 75_000;

/// One realm and its faults.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The seed from which the plan and all other randomness is drawn.
    pub seed: u64,
    /// The configuration.
    pub shape: Shape,
    pub faults: Vec<Planned>,
    /// Number of shards, each with its stream and its db.
    pub shards: u16,
    /// Whether holes in logs are filled (rule F4). Off only to verify that the checkers notice.
    pub fills: bool,
    /// How many cells the plane has and how their borders move, if they do.
    pub crossing: Option<Crossing>,
    /// Whether players leave and come back, at times with two clients of one account; an unplayed avatar is destroyed.
    /// True for every third seed.
    pub visits: bool,
    /// Age at which db deletes batches of cells (rule F14), if it does, milliseconds.
    pub lets_go_ms: Option<u64>,
}

/// A plane with moving cell borders, and a parade at the end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Crossing {
    /// How the plane is divided.
    pub division: Division,
    /// Maximum distance of one border move, as a share of the divided extent.
    pub stride: f32,
    /// Interval between moves, milliseconds.
    pub pause_ms: u64,
    /// Beasts around each player.
    pub beasts: u64,
    /// Whether players change their AoI radius: every fifth seed.
    pub squints: bool,
}

/// How a plane is divided into cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Division {
    /// In strips from west to east.
    Strips,
    /// In both directions, as a tree of cuts.
    Plane,
}

/// The size and timing of a simulated realm.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Base processes.
    pub bases: u64,
    /// Cell processes.
    pub cells: u64,
    /// Processes that can hold the ledger's owner; one does.
    pub ledgers: u64,
    pub clients: u64,
    /// Duration of play and faults, milliseconds.
    pub play_ms: u64,
    /// Time without new calls and faults, after which everything must have come to rest, milliseconds.
    pub settle_ms: u64,
    /// When outputs may be shown.
    pub durability: Durability,
    /// Maximum latency of an append, microseconds: the slower the log, the larger the batches.
    pub append_us: u64,
    /// Timeout of a holder's request to log or store, microseconds.
    pub patience_us: u64,
    /// Interval at which db reads the stream, microseconds.
    pub look_us: u64,
    /// Reads of db between two trims of the stream.
    pub trim_every: u64,
    /// Interval between beats of the director, microseconds.
    pub beat_us: u64,
    /// Maximum pause of a client between two actions, microseconds.
    pub pace_us: u64,
    /// AoI radius of a witness, metres.
    pub sight: f32,
    /// Maximum downstream rate of a client, bits per second.
    pub downstream: Option<NonZeroU32>,
}

/// One planned fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Planned {
    /// A blow at a moment.
    Strike {
        /// When, milliseconds.
        at_ms: u64,
        blow: Blow,
        /// The seed of its own random generator.
        dice: u64,
    },
    /// A trouble during an interval.
    Spell {
        /// Start, milliseconds.
        from_ms: u64,
        /// End, milliseconds.
        until_ms: u64,
        trouble: Trouble,
        /// The probability for each item of traffic.
        odds: Odds,
    },
}

impl Planned {
    /// The kind of fault.
    #[must_use]
    pub fn kind(self) -> Kind {
        match self {
            Self::Strike { blow, .. } => Kind::Blow(blow),
            Self::Spell { trouble, .. } => Kind::Trouble(trouble),
        }
    }
}

impl fmt::Display for Planned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = |ms: u64| ms as f64 / 1e3;
        match self {
            Self::Strike { at_ms, .. } => write!(f, "{:.3} s: {}", seconds(*at_ms), self.kind()),
            Self::Spell {
                from_ms,
                until_ms,
                odds,
                ..
            } => write!(
                f,
                "{:.3} s to {:.3} s: {}, {} times in 10,000",
                seconds(*from_ms),
                seconds(*until_ms),
                self.kind(),
                odds.0
            ),
        }
    }
}

impl Plan {
    /// Draws the plan of a seed. Every fifth seed has no blows, every seventh no troubles: their failures are easier to
    /// understand.
    #[must_use]
    pub fn of(seed: u64) -> Self {
        let mut dice = split_mix(seed);
        let mut shape = Shape::of(&mut dice);
        let crossing = Crossing::of(seed, &mut shape);
        let visits = split_mix(seed ^ VISITING)().is_multiple_of(3);
        if visits {
            shape.settle_ms = VISITED_MS;
        }
        let mut faults = Vec::new();
        if !seed.is_multiple_of(5) {
            strikes(shape.play_ms, &mut dice, &mut faults);
        }
        if !seed.is_multiple_of(7) {
            spells(shape.play_ms, &mut dice, &mut faults);
        }
        drains(seed, shape.play_ms, &mut faults);
        Self {
            seed,
            shape,
            faults,
            // Drawn from a separate generator, so that the rest of a seed's plan is unchanged.
            shards: [1, 2, 3][split_mix(seed ^ SHARDS)() as usize % 3],
            fills: true,
            crossing,
            visits,
            // Drawn as the number of shards is.
            lets_go_ms: [None, None, None, Some(300), Some(1_500), Some(6_000)]
                [split_mix(seed ^ RETAINING)() as usize % 6],
        }
    }

    /// The same plan with only these faults, by index.
    #[must_use]
    pub fn only(&self, places: &[usize]) -> Self {
        let kept = places.iter().filter_map(|&place| self.faults.get(place).copied());
        Self {
            faults: kept.collect(),
            ..self.clone()
        }
    }

    /// Initial AoI radius of players, if players change it.
    #[must_use]
    pub fn squints(&self) -> Option<f32> {
        let squints = self.crossing.is_some_and(|crossing| crossing.squints);
        squints.then_some(self.shape.sight)
    }

    /// Probability of a trouble at a moment.
    #[must_use]
    pub fn odds(&self, wanted: Trouble, now_ms: u64) -> Odds {
        let spell = self.faults.iter().find_map(|fault| match *fault {
            Planned::Spell {
                from_ms,
                until_ms,
                trouble,
                odds,
            } if trouble == wanted && (from_ms..until_ms).contains(&now_ms) => Some(odds),
            _ => None,
        });
        spell.unwrap_or_default()
    }
}

impl Crossing {
    /// Some for half of the seeds. Drawn from a separate generator, as retention is.
    fn of(seed: u64, shape: &mut Shape) -> Option<Self> {
        let mut dice = split_mix(seed ^ CROSSING);
        if dice().is_multiple_of(2) {
            return None;
        }
        shape.cells = 2 + dice() % 7;
        shape.sight = [15.0, 30.0, 60.0][(dice() % 3) as usize];
        Some(Self {
            division: [Division::Strips, Division::Plane][(dice() % 2) as usize],
            stride: [0.02, 0.1, 0.5][(dice() % 3) as usize],
            pause_ms: [400, 1_500, 5_000][(dice() % 3) as usize],
            beasts: dice() % 4,
            squints: seed % 5 == 2,
        })
    }
}

impl Shape {
    fn of(dice: &mut dyn FnMut() -> u64) -> Self {
        let mut between = |least: u64, most: u64| least + dice() % (most - least + 1);
        let append_us = [1_500, 6_000, 40_000, 150_000][between(0, 3) as usize];
        let shape = Self {
            bases: between(1, 3),
            cells: between(1, 4),
            ledgers: between(1, 2),
            clients: between(2, 7),
            play_ms: between(8_000, 20_000),
            settle_ms: 45_000,
            durability: match between(0, 3) {
                0 => Durability::Archive,
                _ => Durability::Log,
            },
            append_us,
            patience_us: [120_000, 300_000, ANSWER_TIMEOUT.as_micros() as u64][between(0, 2) as usize],
            look_us: [2_000, 20_000, 100_000][between(0, 2) as usize],
            trim_every: [1, 16, 200][between(0, 2) as usize],
            beat_us: [100_000, 300_000, 700_000][between(0, 2) as usize],
            pace_us: [60_000, 250_000, 900_000][between(0, 2) as usize],
            sight: 0.0,
            downstream: None,
        };
        let seen = between(0, 8) as usize;
        Self {
            sight: [30.0, 60.0, 150.0][seen % 3],
            downstream: NonZeroU32::new([0, 20_000, 100_000][seen / 3]),
            ..shape
        }
    }
}

fn strikes(play_ms: u64, dice: &mut dyn FnMut() -> u64, faults: &mut Vec<Planned>) {
    let on = dice();
    let kinds: Vec<Blow> = (0..)
        .zip(Blow::faults())
        .filter(|(bit, _)| on >> bit & 1 == 1)
        .map(|(_, blow)| blow)
        .collect();
    let pause = [700, 1_500, 3_000, 6_000][(dice() % 4) as usize];
    let mut at_ms = 2_000 + pause;
    while at_ms < play_ms && !kinds.is_empty() {
        faults.push(Planned::Strike {
            at_ms,
            blow: kinds[(dice() % kinds.len() as u64) as usize],
            dice: dice(),
        });
        at_ms += pause / 2 + dice() % pause;
    }
}

/// Drains for half of the seeds, also those without faults; during some, the director is replaced. Drawn from a separate
/// generator, as retention is, and after all faults, whose indices stay as they are.
fn drains(seed: u64, play_ms: u64, faults: &mut Vec<Planned>) {
    let mut dice = split_mix(seed ^ DRAINING);
    if dice().is_multiple_of(2) {
        return;
    }
    let pause = [1_500, 4_000, 9_000][(dice() % 3) as usize];
    let mut at_ms = 2_500 + dice() % pause;
    while at_ms < play_ms {
        faults.push(Planned::Strike {
            at_ms,
            blow: Blow::Drain,
            dice: dice(),
        });
        if dice().is_multiple_of(4) {
            faults.push(Planned::Strike {
                at_ms: at_ms + dice() % 900,
                blow: Blow::ReplaceDirector,
                dice: dice(),
            });
        }
        at_ms += pause / 2 + dice() % pause;
    }
}

fn spells(play_ms: u64, dice: &mut dyn FnMut() -> u64, faults: &mut Vec<Planned>) {
    for trouble in Trouble::ALL {
        if dice().is_multiple_of(2) {
            continue;
        }
        let odds = Odds([20, 100, 300, 800][(dice() % 4) as usize]);
        let mut from_ms = 0;
        while from_ms < play_ms {
            let until_ms = (from_ms + SLICE_MS).min(play_ms);
            faults.push(Planned::Spell {
                from_ms,
                until_ms,
                trouble,
                odds,
            });
            from_ms = until_ms;
        }
    }
}
