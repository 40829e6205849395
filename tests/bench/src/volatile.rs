//! Bytes of movements: the cost of sending a client the positions of 60 neighbours ten times a second, with the packing
//! that systems of this kind have long used and with ours.
//!
//! Both send the same movements, at the same ticks, with the same bound on the error of each coordinate and angle,
//! which is checked at each of them. The packing is counted without any header, as if its datagrams had none, and with
//! an alias of one byte from the first; ours is counted as it is sent. Datagrams and the client's acknowledgements are
//! lost at random; acknowledgements take 100 to 200 ms.

mod link;
mod pace;

use annals_client::walk::{Gait, Walk};
use annals_def::split_mix;
use annals_ids::{Direction, EntityId, Position};
use annals_wire::client::volatile::{Facing, Motion, Packing, Placing};

use crate::Figure;
use link::{Link, Scale};
use pace::{Pace, Recording};

/// Number of neighbours.
const NEIGHBOURS: usize = 60;

/// Recorded ticks of each kind of walk: three minutes at 10 Hz.
const TICKS: u64 = 1_800;

/// Maximum initial distance of neighbours from their observer, east or north, metres.
const AROUND: f32 = 120.0;

/// Maximum AoI radius, metres; it sets the scale of the packing.
const RADIUS: f32 = 500.0;
const NEAR_RADIUS: f32 = 100.0;

/// Seeds of the measured walks. They were chosen after the codec was frozen: the first words of the SHA-256 of its
/// sources then. Its model of movements was fitted to walks of the seeds 1 to 8, and validated on 101 to 103.
pub const MEASURED: [u64; 3] = [0x0f44_89a1, 0x5a29_1f4d, 0xa4ae_d348];

/// Loss of datagrams and of acknowledgements, percent.
const LOSSES: [u64; 2] = [0, 5];

/// Maximum bytes of ours, as a share of the packing.
const TARGET: f64 = 0.60;

/// The coordinates and angles that are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parts {
    /// East, north and yaw: the cheapest case for the packing.
    Ground,
    /// All three coordinates, yaw and pitch.
    Flying,
}

/// Bytes sent to one observer.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cost {
    /// Movements.
    pub updates: u64,
    /// Seconds of transmission, summed over clients.
    pub client_seconds: f64,
    /// Bytes of the packing.
    pub packed: u64,
    /// Bytes of ours.
    pub ours: u64,
}

impl Cost {
    fn add(&mut self, other: Cost) {
        self.updates += other.updates;
        self.client_seconds += other.client_seconds;
        self.packed += other.packed;
        self.ours += other.ours;
    }
}

/// A kind of walk; `None` mixes all gaits.
pub type Kind = (&'static str, Option<Gait>);

/// The kinds that are measured separately.
pub const KINDS: [Kind; 5] = [
    ("idle", Some(Gait::Idle)),
    ("walking", Some(Gait::Walking)),
    ("fighting", Some(Gait::Fighting)),
    ("riding", Some(Gait::Riding)),
    ("mixed", None),
];

/// Measures all kinds of walks.
///
/// # Panics
/// If a client decodes other movements than were sent, or less exactly than the packing would.
#[must_use]
pub fn run() -> Vec<Figure> {
    let mut figures = Vec::new();
    let mut overall = Cost::default();
    for (name, gait) in KINDS {
        for loss in LOSSES {
            let cost = total(gait, Parts::Ground, RADIUS, loss);
            overall.add(cost);
            figures.extend(figures_of(&format!("volatile_{name}_loss{loss}"), cost));
        }
    }
    for (name, parts, radius) in [("flying", Parts::Flying, RADIUS), ("near", Parts::Ground, NEAR_RADIUS)] {
        let cost = total(None, parts, radius, 0);
        figures.extend(figures_of(&format!("volatile_{name}_loss0"), cost));
    }
    figures.extend(paces());
    let note = format!("ground and yaw, all kinds of walk, 0 and 5 % lost; target {TARGET:.2}");
    let (ours, packed) = (per_update(overall.ours, overall), per_update(overall.packed, overall));
    figures.push(Figure::against(
        "volatile_bytes_vs_baseline",
        ours,
        packed,
        "B/update",
        note,
    ));
    figures
}

/// Time to encode and decode: a mix of all gaits, as in a realm, with height, yaw and pitch.
fn paces() -> Vec<Figure> {
    let (mut total, mut updates) = (Pace::default(), 0);
    for seed in MEASURED {
        let mut crowd = Crowd::new(None, seed);
        let recording: Recording = (0..TICKS)
            .map(|_| {
                crowd.step();
                let due = crowd.due(RADIUS).map(|body| body.motion(Parts::Flying));
                (crowd.observer(), due.collect())
            })
            .collect();
        updates += recording.iter().map(|(_, due)| due.len()).sum::<usize>();
        let pace = Pace::of(&recording, Packing::for_radius(RADIUS));
        total.written += pace.written;
        total.read += pace.read;
        total.packed += pace.packed;
        total.unpacked += pace.unpacked;
    }
    let each = |spent: std::time::Duration| spent.as_secs_f64() * 1e9 / updates as f64;
    let figure = |name, ours, theirs, what: &str| {
        let note = format!("processor time {what} a movement with height, yaw and pitch");
        Figure::against(name, each(ours), each(theirs), "ns/update", note)
    };
    vec![
        figure("volatile_write_time", total.written, total.packed, "to write"),
        figure("volatile_read_time", total.read, total.unpacked, "to read"),
    ]
}

fn figures_of(name: &str, cost: Cost) -> Vec<Figure> {
    let rate = cost.updates as f64 / cost.client_seconds;
    let second = |bytes: u64| bytes as f64 / cost.client_seconds;
    vec![
        Figure::against(
            &format!("{name}_update"),
            per_update(cost.ours, cost),
            per_update(cost.packed, cost),
            "B/update",
            format!("{rate:.0} updates a second"),
        ),
        Figure::against(
            &format!("{name}_client"),
            second(cost.ours),
            second(cost.packed),
            "B/s",
            format!("to one client that sees {NEIGHBOURS}"),
        ),
    ]
}

fn per_update(bytes: u64, cost: Cost) -> f64 {
    bytes as f64 / cost.updates as f64
}

fn total(gait: Option<Gait>, parts: Parts, radius: f32, loss: u64) -> Cost {
    let mut total = Cost::default();
    for seed in MEASURED {
        total.add(measure((gait, parts), radius, loss, seed, TICKS));
    }
    total
}

/// Cost of sending one observer its neighbours, for this many ticks.
///
/// # Panics
/// If the client decodes other movements than were sent, or less exactly than the packing would.
#[must_use]
pub fn measure((gait, parts): (Option<Gait>, Parts), radius: f32, loss: u64, seed: u64, ticks: u64) -> Cost {
    let mut crowd = Crowd::new(gait, seed);
    let scale = Scale {
        packing: Packing::for_radius(radius),
        loss,
    };
    let mut link = Link::new(scale, seed);
    for tick in 0..ticks {
        crowd.step();
        let due: Vec<Motion> = crowd.due(radius).map(|body| body.motion(parts)).collect();
        link.send(tick, crowd.observer(), &due);
    }
    Cost {
        client_seconds: ticks as f64 / 10.0,
        ..link.cost()
    }
}

/// An observer, the first, and its neighbours.
struct Crowd {
    bodies: Vec<Body>,
    dice: Box<dyn FnMut() -> u64>,
    tick: u64,
}

struct Body {
    entity: EntityId,
    walk: Walk,
    place: (Position, Direction),
    since: u64,
}

impl Crowd {
    fn new(gait: Option<Gait>, seed: u64) -> Self {
        let mut dice = split_mix(seed);
        let bodies = (0..=NEIGHBOURS).map(|index| {
            let mut around = || ((dice() >> 40) as f32 / (1u64 << 24) as f32 * 2.0 - 1.0) * AROUND;
            let at = Position {
                x: around(),
                y: 0.0,
                z: around(),
            };
            let walk = match gait {
                Some(gait) => Walk::only(gait, at, &mut dice),
                None => Walk::new(at, &mut dice),
            };
            Body {
                entity: EntityId((1 << 20) + 97 * index as u64),
                walk,
                place: (at, Direction::default()),
                since: 0,
            }
        });
        Self {
            bodies: bodies.collect(),
            dice: Box::new(split_mix(!seed)),
            tick: 0,
        }
    }

    fn step(&mut self) {
        self.tick += 1;
        for body in &mut self.bodies {
            let (mut at, direction) = body.walk.step(0.1, &mut self.dice);
            at.y = height(at);
            if body.place != (at, direction) {
                body.place = (at, direction);
                body.since = self.tick;
            }
        }
    }

    fn observer(&self) -> Position {
        self.bodies[0].place.0
    }

    /// The neighbours within range that are due, as a cell decides it: those that moved, and three more times those
    /// that came to rest.
    fn due(&self, radius: f32) -> impl Iterator<Item = &Body> {
        let from = self.observer();
        self.bodies[1..].iter().filter(move |body| {
            let (at, _) = body.place;
            let rest = self.tick - body.since;
            let is_near = (at.x - from.x).abs() < radius - 1.0 && (at.z - from.z).abs() < radius - 1.0;
            is_near && rest.is_multiple_of(10) && rest <= 30
        })
    }
}

/// Gentle hills.
fn height(at: Position) -> f32 {
    6.0 * (at.x / 37.0).sin() + 4.0 * (at.z / 23.0).cos() + 10.0
}

impl Body {
    fn motion(&self, parts: Parts) -> Motion {
        let (at, direction) = self.place;
        let (placing, facing) = match parts {
            Parts::Ground => (Placing::Ground(at), Facing::Yaw(direction.yaw)),
            Parts::Flying => (Placing::Full(at), Facing::YawPitch(direction.yaw, direction.pitch)),
        };
        Motion {
            entity: self.entity,
            placing,
            facing,
        }
    }
}
