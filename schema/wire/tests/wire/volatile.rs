//! Movements over links that lose, repeat and reorder: a client decodes exactly what was sent, within the error bound,
//! or nothing; and arbitrary bytes change nothing.

use std::collections::BTreeMap;
use std::f32::consts::{PI, TAU};

use annals_def::{Dice, split_mix};
use annals_ids::{EntityId, Position, Tick};
use annals_wire::client::MAX_DATAGRAM;
use annals_wire::client::volatile::{
    Facing, Motion, Packing, Placing, Unreadable, VolatileReader, VolatileUpdate, VolatileWriter,
};

const VIEW: u64 = 300;
const BEGUN: u64 = 17_000_000_000;
const RADIUS: f32 = 500.0;
const WHOLE: usize = MAX_DATAGRAM;

fn packing() -> Packing {
    Packing::for_radius(RADIUS)
}

fn ends() -> (VolatileWriter, VolatileReader) {
    (
        VolatileWriter::new(VIEW, packing()),
        VolatileReader::new(VIEW, packing()),
    )
}

fn between(least: f32, most: f32, dice: &mut Dice<'_>) -> f32 {
    least + (most - least) * ((dice() >> 40) as f32 / (1u64 << 24) as f32)
}

fn odds(one_in: u64, dice: &mut Dice<'_>) -> bool {
    dice().is_multiple_of(one_in)
}

/// An entity with erratic movement: glides, stands, leaps, and changes which parts are sent.
#[derive(Clone, Copy)]
struct Body {
    at: [f32; 3],
    speed: [f32; 3],
    angles: [f32; 3],
    placing: u64,
    facing: u64,
}

impl Body {
    fn any(dice: &mut Dice<'_>) -> Self {
        Self {
            at: [
                between(-300.0, 300.0, dice),
                between(-50.0, 90.0, dice),
                between(-300.0, 300.0, dice),
            ],
            speed: [between(-1.0, 1.0, dice), 0.0, between(-1.0, 1.0, dice)],
            angles: [between(-PI, PI, dice), between(-PI, PI, dice), between(-PI, PI, dice)],
            placing: dice() % 4,
            facing: dice() % 4,
        }
    }

    fn step(&mut self, dice: &mut Dice<'_>) {
        match dice() % 40 {
            0 => self.at = Self::any(dice).at,
            1 => self.at[0] = between(-1.0, 1.0, dice) * [700.0, 1e6, 3e7, f32::MAX][dice() as usize % 4],
            2 => self.speed = [between(-2.0, 2.0, dice), between(-0.2, 0.2, dice), 0.0],
            3 => (self.placing, self.facing) = (dice() % 4, dice() % 4),
            4..8 => self.angles[0] += between(-9.0, 9.0, dice),
            _ => self.angles[0] += 0.02,
        }
        for axis in 0..3 {
            self.at[axis] = (self.at[axis] + self.speed[axis]).clamp(f32::MIN, f32::MAX);
        }
    }

    fn motion(&self, entity: EntityId) -> Motion {
        let [x, y, z] = self.at;
        let (at, [yaw, pitch, roll]) = (Position { x, y, z }, self.angles);
        let placing = match self.placing {
            0 => Placing::Full(at),
            1 => Placing::Ground(at),
            2 if self.facing != 3 => Placing::Unsaid,
            _ => Placing::Exact(at),
        };
        let facing = match self.facing {
            0 => Facing::YawPitchRoll(yaw, pitch, roll),
            1 => Facing::YawPitch(yaw, pitch),
            2 => Facing::Yaw(yaw),
            _ => Facing::Unsaid,
        };
        Motion {
            entity,
            placing,
            facing,
        }
    }
}

/// The packing's error bound of a coordinate at this distance: half a step, and the rounding of floats.
fn bound(distance: f32, scale: f32, steps: f32) -> f32 {
    let power = ((distance.abs() / scale + 2.0).log2().floor() - 1.0).exp2();
    scale * power / steps
}

fn check(observer: Position, meant: &Motion, found: &Motion, about: &str) {
    assert_eq!(found.entity, meant.entity, "{about}");
    let near = |meant: f32, found: f32, bound: f32| {
        let slack = meant.abs() * f32::EPSILON + 1e-5;
        assert!(
            (meant - found).abs() <= bound * 1.000_1 + slack,
            "{about}: {meant} became {found}; {bound}"
        );
    };
    let ground = |meant: Position, found: Position| {
        near(
            meant.x,
            found.x,
            bound(meant.x - observer.x.round(), packing().scale(), 256.0),
        );
        near(
            meant.z,
            found.z,
            bound(meant.z - observer.z.round(), packing().scale(), 256.0),
        );
    };
    match (meant.placing, found.placing) {
        (Placing::Full(meant), Placing::Full(found)) => {
            ground(meant, found);
            near(meant.y, found.y, bound(meant.y - observer.y.round(), 1.0, 2_048.0));
        }
        (Placing::Ground(meant), Placing::Ground(found)) => ground(meant, found),
        (Placing::Unsaid, Placing::Unsaid) => {}
        (Placing::Full(meant) | Placing::Ground(meant) | Placing::Exact(meant), Placing::Exact(found)) => {
            assert_eq!(found, meant, "{about}");
        }
        (meant, found) => panic!("{about}: {meant:?} became {found:?}"),
    }
    let angle = |meant: f32, found: f32, steps: f32| {
        let missed = ((meant - found + PI).rem_euclid(TAU) - PI).abs();
        assert!(missed <= PI / steps + 1e-5, "{about}: {meant} rad became {found}");
    };
    match (meant.facing, found.facing) {
        (Facing::YawPitchRoll(a, b, c), Facing::YawPitchRoll(x, y, z)) => {
            angle(a, x, 256.0);
            angle(b, y, 508.0);
            angle(c, z, 256.0);
        }
        (Facing::YawPitch(a, b), Facing::YawPitch(x, y)) => {
            angle(a, x, 256.0);
            angle(b, y, 508.0);
        }
        (Facing::Yaw(a), Facing::Yaw(x)) => angle(a, x, 256.0),
        (meant, found) => assert_eq!(meant, found, "{about}"),
    }
}

/// Compares a decoded datagram with what was sent.
fn check_all(observer: Position, meant: &[Motion], update: &VolatileUpdate, about: &str) {
    assert_eq!(update.motions.len(), meant.len(), "{about}");
    let meant: BTreeMap<EntityId, &Motion> = meant.iter().map(|motion| (motion.entity, motion)).collect();
    for found in &update.motions {
        check(observer, meant[&found.entity], found, about);
    }
}

/// Behaviour of a link: one in so many datagrams is lost, duplicated, or delayed.
#[derive(Clone, Copy)]
struct Weather {
    lost: u64,
    twice: u64,
    delayed: u64,
}

#[derive(Default)]
struct Outcome {
    read: u64,
    late: u64,
}

struct SentDatagram {
    tick: Tick,
    bytes: Vec<u8>,
    meant: Vec<Motion>,
    observer: Position,
}

impl Outcome {
    /// Passes a datagram to the client: it is decoded correctly, or came too late.
    fn take(&mut self, reader: &mut VolatileReader, now: Tick, letter: &SentDatagram, seed: u64) {
        let about = format!("seed {seed}, tick {}", letter.tick.0 - BEGUN);
        match reader.read(&letter.bytes, now) {
            Ok(update) => {
                assert_eq!(update.tick, letter.tick, "{about}");
                check_all(letter.observer, &letter.meant, &update, &about);
                self.read += 1;
            }
            Err(Unreadable::Late) => self.late += 1,
            Err(error) => panic!("{about}: {error}"),
        }
    }
}

fn history(seed: u64, weather: Weather, ticks: u64) -> Outcome {
    let mut dice = split_mix(seed);
    let (mut writer, mut reader) = ends();
    let mut bodies: BTreeMap<EntityId, Body> = BTreeMap::new();
    let mut observer = Position {
        x: 10.5,
        y: 3.0,
        z: -20.0,
    };
    let (mut waiting, mut answers, mut outcome): (Vec<SentDatagram>, Vec<_>, _) =
        (Vec::new(), Vec::new(), Outcome::default());
    for tick in (0..ticks).filter(|tick| tick % 50 != 49).map(|tick| Tick(BEGUN + tick)) {
        observer.x += 0.4;
        let known: Vec<EntityId> = bodies.keys().copied().collect();
        for entity in known.into_iter().filter(|_| odds(60, &mut dice)) {
            bodies.remove(&entity);
            writer.forget(entity);
        }
        if bodies.len() < 40 && odds(2, &mut dice) {
            let id = dice() >> (dice() % 64);
            bodies.insert(EntityId(id), Body::any(&mut dice));
        }
        bodies.values_mut().for_each(|body| body.step(&mut dice));
        let share = 1 + dice() % 3;
        let sent_bodies = bodies.iter().filter(|_| odds(share, &mut dice));
        let motions: Vec<Motion> = sent_bodies.map(|(entity, body)| body.motion(*entity)).collect();
        let limit = if odds(3, &mut dice) {
            (dice() % 120) as usize
        } else {
            WHOLE
        };
        let sent = writer.write(tick, observer, &motions, limit);
        if let Some(bytes) = sent.datagram {
            assert!(
                bytes.len() <= limit && sent.movements > 0,
                "seed {seed}: {} of {limit} B",
                bytes.len()
            );
            let meant = motions[..sent.movements].to_vec();
            waiting.push(SentDatagram {
                tick,
                bytes,
                meant,
                observer,
            });
        }
        while !waiting.is_empty() && !odds(weather.delayed, &mut dice) {
            let at = if weather.delayed == u64::MAX {
                0
            } else {
                dice() as usize % waiting.len()
            };
            if !odds(weather.lost, &mut dice) {
                outcome.take(&mut reader, tick, &waiting[at], seed);
            }
            if !odds(weather.twice, &mut dice) {
                waiting.remove(at);
            }
        }
        answers.extend(reader.ack().filter(|_| !odds(weather.lost, &mut dice)));
        if !answers.is_empty() && !odds(3, &mut dice) {
            let ack = answers.swap_remove(dice() as usize % answers.len());
            writer.acknowledge(ack.tick, ack.before);
        }
    }
    outcome
}

#[test]
fn lost_and_late_datagrams_do_not_affect_others() {
    let never = u64::MAX;
    for seed in 0..60 {
        let calm = history(
            seed,
            Weather {
                lost: never,
                twice: never,
                delayed: never,
            },
            200,
        );
        assert_eq!(calm.late, 0, "seed {seed}");
        let lossy = history(
            seed,
            Weather {
                lost: 5,
                twice: never,
                delayed: never,
            },
            200,
        );
        assert_eq!(
            lossy.late, 0,
            "seed {seed}: what comes in order is understood, whatever is missing"
        );
        let stormy = history(
            seed,
            Weather {
                lost: 4,
                twice: 6,
                delayed: 3,
            },
            200,
        );
        assert!(
            stormy.read > 40,
            "seed {seed}: {} read, {} late",
            stormy.read,
            stormy.late
        );
    }
}

/// Straight movements, all of which are sent.
fn march(count: u64, tick: u64) -> Vec<Motion> {
    let motion = |index: u64| Motion {
        entity: EntityId(1_000_000 + index),
        placing: Placing::Ground(Position {
            x: index as f32 + 0.5 * tick as f32,
            y: 0.0,
            z: 3.0 * index as f32,
        }),
        facing: Facing::Yaw(1.5),
    };
    (0..count).map(motion).collect()
}

const HERE: Position = Position { x: 0.0, y: 0.0, z: 0.0 };

#[test]
fn acknowledged_state_shortens_movements() {
    let (mut writer, mut reader) = ends();
    let mut sizes = Vec::new();
    for tick in 0..10 {
        let sent = writer.write(Tick(BEGUN + tick), HERE, &march(60, tick), WHOLE);
        let bytes = sent.datagram.unwrap();
        sizes.push(bytes.len());
        reader.read(&bytes, Tick(BEGUN)).unwrap();
        // From the third tick on the client acknowledges.
        if let Some(ack) = reader.ack().filter(|_| tick >= 2) {
            writer.acknowledge(ack.tick, ack.before);
        }
    }
    assert!(sizes[2] > 400, "everything by its name: {sizes:?}");
    assert!(
        sizes[9] < 60,
        "less than a byte for an entity with constant motion: {sizes:?}"
    );
}

#[test]
fn a_datagram_holds_the_longest_prefix_that_fits() {
    for limit in [0, 5, 20, 100, 222, 500] {
        let (mut writer, mut reader) = ends();
        let motions = march(200, 0);
        let sent = writer.write(Tick(BEGUN), HERE, &motions, limit);
        let Some(bytes) = sent.datagram else {
            assert!(sent.movements == 0 && limit <= 20, "{limit}");
            continue;
        };
        assert!(
            bytes.len() <= limit && bytes.len() + 16 > limit,
            "{} of {limit} B",
            bytes.len()
        );
        let update = reader.read(&bytes, Tick(BEGUN)).unwrap();
        check_all(HERE, &motions[..sent.movements], &update, "");
        // One more does not fit.
        let mut other = VolatileWriter::new(VIEW, packing());
        let more = other.write(Tick(BEGUN), HERE, &motions[..sent.movements + 1], limit);
        assert!(
            more.movements <= sent.movements,
            "{limit}: {} fit, {} said",
            more.movements,
            sent.movements
        );
    }
}

#[test]
fn aliases_are_reused_least_recently_sent_first() {
    let (mut writer, mut reader) = ends();
    let mut first = 0;
    for tick in 0..60 {
        let all = march(3_000, 0);
        let sent = writer.write(Tick(BEGUN + tick), HERE, &all[first..(first + 100)], WHOLE);
        let update = reader.read(&sent.datagram.unwrap(), Tick(BEGUN)).unwrap();
        check_all(
            HERE,
            &all[first..first + sent.movements],
            &update,
            &format!("tick {tick}"),
        );
        first = (first + 50) % 2_900;
        let ack = reader.ack().unwrap();
        writer.acknowledge(ack.tick, ack.before);
    }
}

#[test]
fn false_acknowledgements_are_harmless() {
    for seed in 0..50 {
        let mut dice = split_mix(seed);
        let (mut writer, mut reader) = ends();
        for tick in 0..100 {
            writer.acknowledge(dice() as u16, dice() as u16);
            writer.acknowledge((BEGUN + tick - dice() % 5) as u16, dice() as u16);
            let sent = writer.write(Tick(BEGUN + tick), HERE, &march(10, tick), WHOLE);
            // A client with false acknowledgements harms only itself.
            match reader.read(&sent.datagram.unwrap(), Tick(BEGUN)) {
                Ok(_) | Err(Unreadable::Late) => {}
                Err(error) => panic!("seed {seed}: {error}"),
            }
        }
    }
}

#[test]
fn arbitrary_bytes_change_nothing() {
    for seed in 0..40 {
        let mut dice = split_mix(seed);
        let (mut writer, mut reader) = ends();
        let mut last = Vec::new();
        for tick in 0..6 {
            last = writer
                .write(Tick(BEGUN + tick), HERE, &march(12, tick), WHOLE)
                .datagram
                .unwrap();
            if tick < 5 {
                reader.read(&last, Tick(BEGUN)).unwrap();
                let ack = reader.ack().unwrap();
                writer.acknowledge(ack.tick, ack.before);
            }
        }
        let before = format!("{reader:?}");
        let mut refused = 0;
        for _ in 0..400 {
            let mut bytes = last.clone();
            match dice() % 3 {
                0 => bytes.truncate(dice() as usize % bytes.len()),
                1 => {
                    let bit = dice() as usize % (bytes.len() * 8);
                    bytes[bit / 8] ^= 1 << (bit % 8);
                }
                _ => {
                    bytes = (0..dice() % 90)
                        .map(|at| if at == 0 { 2 } else { dice() as u8 })
                        .collect();
                }
            }
            // The result may be wrong, but is sound.
            let mut other = VolatileReader::new(VIEW, packing());
            let _ = other.read(&bytes, Tick(BEGUN));
            let mut copy = reader.clone();
            if copy.read(&bytes, Tick(BEGUN)).is_err() {
                refused += 1;
                assert_eq!(format!("{copy:?}"), before, "seed {seed}");
            }
        }
        assert!(refused > 0, "seed {seed}");
        for end in [&[0][..], &[7], &[0, 0]] {
            let longer = [last.as_slice(), end].concat();
            let (_, mut fresh) = ends();
            assert!(matches!(
                fresh.read(&longer, Tick(BEGUN)),
                Err(Unreadable::Malformed(_) | Unreadable::Late)
            ));
        }
    }
}

#[test]
fn other_views_and_duplicates_differ_from_malformed_datagrams() {
    let (mut writer, mut reader) = ends();
    let bytes = writer.write(Tick(BEGUN), HERE, &march(3, 0), WHOLE).datagram.unwrap();
    let mut other = VolatileReader::new(VIEW + 1, packing());
    assert_eq!(other.read(&bytes, Tick(BEGUN)), Err(Unreadable::OtherView));
    // The right tick is found from one half an hour away.
    assert_eq!(reader.read(&bytes, Tick(BEGUN - 18_000)).unwrap().tick, Tick(BEGUN));
    assert_eq!(reader.read(&bytes, Tick(BEGUN)), Err(Unreadable::Late));
    assert!(matches!(
        reader.read(&[9, 9], Tick(BEGUN)),
        Err(Unreadable::Malformed(_))
    ));
    let nothing = writer.write(Tick(BEGUN + 1), HERE, &[], WHOLE);
    assert_eq!((nothing.datagram, nothing.movements), (None, 0));
}

#[test]
fn a_silent_client_still_decodes() {
    let (mut writer, mut reader) = ends();
    for tick in 0..150 {
        let motions = march(5, tick);
        let bytes = writer
            .write(Tick(BEGUN + tick), HERE, &motions, WHOLE)
            .datagram
            .unwrap();
        let update = reader.read(&bytes, Tick(BEGUN)).unwrap();
        check_all(HERE, &motions, &update, &format!("tick {tick}"));
        if let Some(ack) = reader.ack().filter(|_| tick < 3) {
            writer.acknowledge(ack.tick, ack.before);
        }
    }
}

#[test]
fn a_forgotten_entity_is_sent_by_id_again() {
    let (mut writer, mut reader) = ends();
    let motions = march(2, 0);
    for tick in 0..3 {
        let bytes = writer
            .write(Tick(BEGUN + tick), HERE, &motions, WHOLE)
            .datagram
            .unwrap();
        reader.read(&bytes, Tick(BEGUN)).unwrap();
        let ack = reader.ack().unwrap();
        writer.acknowledge(ack.tick, ack.before);
    }
    writer.forget(motions[0].entity);
    for (tick, motion, is_new) in [(3, motions[0], true), (4, motions[1], false)] {
        let bytes = writer
            .write(Tick(BEGUN + tick), HERE, &[motion], WHOLE)
            .datagram
            .unwrap();
        let (_, mut stranger) = ends();
        assert_eq!(stranger.read(&bytes, Tick(BEGUN)).is_ok(), is_new);
        assert_eq!(
            reader.read(&bytes, Tick(BEGUN)).unwrap().motions[0].entity,
            motion.entity
        );
    }
}

#[test]
fn aliases_of_forgotten_entities_are_reused() {
    let (mut writer, _) = ends();
    let motions = march(50, 0);
    writer.write(Tick(BEGUN), HERE, &motions, WHOLE);
    motions.iter().for_each(|motion| writer.forget(motion.entity));
    let (mut other, _) = ends();
    let again = |writer: &mut VolatileWriter| writer.write(Tick(BEGUN + 1), HERE, &motions[..1], WHOLE);
    assert_eq!(again(&mut writer), again(&mut other));
}
