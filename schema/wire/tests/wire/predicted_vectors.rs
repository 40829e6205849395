//! Predicted movements in `test_data/client/predicted.txt`: what one reader makes of datagrams, some of which were
//! lost, late or sent twice. Clients in other languages use the file too. With `ANNALS_WRITE_VECTORS=1` it is
//! rewritten; any difference is then a change of the protocol.

use std::{fmt::Write, fs, path::PathBuf};

use annals_def::{Dice, split_mix};
use annals_ids::{EntityId, Position, Tick};
use annals_wire::client::{
    MAX_DATAGRAM,
    volatile::{Facing, Motion, Packing, Placing, Unreadable, VolatileReader, VolatileWriter},
};

const VIEW: u64 = 300;
const RADIUS: f32 = 500.0;
const BEGUN: u64 = 17_000_000_000;
const TICKS: u64 = 120;
const ENTITIES: u64 = 7;

fn between(least: f32, most: f32, dice: &mut Dice<'_>) -> f32 {
    least + (most - least) * ((dice() >> 40) as f32 / (1u64 << 24) as f32)
}

/// An entity that walks, turns, leaps at times, and changes which parts are sent.
struct Body {
    entity: EntityId,
    at: Position,
    step: [f32; 3],
    angles: [f32; 3],
    turn: f32,
    parts: (u64, u64),
}

impl Body {
    fn new(index: u64, dice: &mut Dice<'_>) -> Self {
        Self {
            entity: EntityId(1 << (8 * index)),
            at: Position {
                x: between(-200.0, 200.0, dice),
                y: between(-5.0, 40.0, dice),
                z: between(-200.0, 200.0, dice),
            },
            step: [between(-0.6, 0.6, dice), 0.0, between(-0.6, 0.6, dice)],
            angles: [between(-3.0, 3.0, dice), between(-1.5, 1.5, dice), 0.1],
            turn: between(-0.3, 0.3, dice),
            parts: (index % 4, (index + 1) % 4),
        }
    }

    fn walk(&mut self, dice: &mut Dice<'_>) {
        match dice() % 30 {
            0 => self.step = [0; 3].map(|_| between(-2.0, 2.0, dice)),
            1 => self.at.x = between(-1.0, 1.0, dice) * [400.0, 2e4, 1e7][dice() as usize % 3],
            2 => self.parts = (dice() % 4, dice() % 4),
            3 => self.step = [0.0; 3],
            4 => self.turn = between(-0.6, 0.6, dice),
            _ => {}
        }
        self.at.x += self.step[0];
        self.at.y += self.step[1];
        self.at.z += self.step[2];
        self.angles[0] = (self.angles[0] + self.turn) % 3.0;
        self.angles[1] = (self.angles[1] + self.turn / 4.0) % 1.5;
        self.angles[2] += 0.01;
    }

    fn motion(&self) -> Motion {
        let [yaw, pitch, roll] = self.angles;
        let facing = match self.parts.1 {
            0 => Facing::YawPitchRoll(yaw, pitch, roll),
            1 => Facing::YawPitch(yaw, pitch),
            2 => Facing::Yaw(yaw),
            _ => Facing::Unsaid,
        };
        let placing = match self.parts.0 {
            0 => Placing::Full(self.at),
            1 => Placing::Ground(self.at),
            2 if facing != Facing::Unsaid => Placing::Unsaid,
            _ => Placing::Exact(self.at),
        };
        Motion {
            entity: self.entity,
            placing,
            facing,
        }
    }
}

/// A motion as a line of the file: what is not sent is `-`.
fn line(motion: &Motion) -> String {
    let [x, y, z] = match motion.placing {
        Placing::Full(at) | Placing::Exact(at) => [Some(at.x), Some(at.y), Some(at.z)],
        Placing::Ground(at) => [Some(at.x), None, Some(at.z)],
        Placing::Unsaid => [None; 3],
    };
    let [yaw, pitch, roll] = match motion.facing {
        Facing::YawPitchRoll(yaw, pitch, roll) => [Some(yaw), Some(pitch), Some(roll)],
        Facing::YawPitch(yaw, pitch) => [Some(yaw), Some(pitch), None],
        Facing::Yaw(yaw) => [Some(yaw), None, None],
        Facing::Unsaid => [None; 3],
    };
    let parts = [x, y, z, yaw, pitch, roll];
    let parts = parts.map(|part| part.map_or_else(|| "-".to_owned(), |part| part.to_string()));
    format!("{} {}", motion.entity.0, parts.join(" "))
}

/// What the reader makes of one datagram.
fn case(text: &mut String, reader: &mut VolatileReader, now: Tick, bytes: &[u8]) {
    writeln!(text, "at {}", now.0).unwrap();
    match reader.read(bytes, now) {
        Ok(update) => {
            writeln!(text, "  tick {}", update.tick.0).unwrap();
            for motion in &update.motions {
                writeln!(text, "  {}", line(motion)).unwrap();
            }
            let ack = reader.ack().unwrap();
            writeln!(text, "  ack {} {}", ack.tick, ack.before).unwrap();
        }
        Err(Unreadable::Late) => writeln!(text, "  late").unwrap(),
        Err(error) => panic!("{error}"),
    }
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    writeln!(text, "  {hex}").unwrap();
}

fn file() -> String {
    let packing = Packing::for_radius(RADIUS);
    let mut dice = split_mix(4);
    let (mut writer, mut reader) = (VolatileWriter::new(VIEW, packing), VolatileReader::new(VIEW, packing));
    let mut bodies: Vec<Body> = (0..ENTITIES).map(|index| Body::new(index, &mut dice)).collect();
    let mut observer = Position {
        x: 10.5,
        y: 3.0,
        z: -20.0,
    };
    let (mut text, mut waiting): (String, Vec<Vec<u8>>) = (String::new(), Vec::new());
    // A pause after which nothing is extrapolated.
    for tick in (0..TICKS).filter(|tick| !(60..75).contains(tick)) {
        let now = Tick(BEGUN + tick);
        observer.x += 0.4;
        bodies.iter_mut().for_each(|body| body.walk(&mut dice));
        let motions: Vec<Motion> = bodies
            .iter()
            .filter(|_| !dice().is_multiple_of(4))
            .map(Body::motion)
            .collect();
        waiting.extend(writer.write(now, observer, &motions, MAX_DATAGRAM).datagram);
        while !waiting.is_empty() && !dice().is_multiple_of(5) {
            let at = dice() as usize % waiting.len();
            if !dice().is_multiple_of(6) {
                case(&mut text, &mut reader, now, &waiting[at]);
            }
            if !dice().is_multiple_of(10) {
                waiting.remove(at);
            }
        }
        if let Some(ack) = reader.ack().filter(|_| !dice().is_multiple_of(3)) {
            writer.acknowledge(ack.tick, ack.before);
        }
    }
    text
}

#[test]
fn datagrams_are_read_as_in_the_file() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("test_data/client/predicted.txt");
    let text = file();
    for part in ["  late\n", " - - ", "  ack "] {
        assert!(text.contains(part), "the file has a case of {part:?}");
    }
    if std::env::var_os("ANNALS_WRITE_VECTORS").is_some() {
        fs::write(&path, &text).unwrap();
    }
    assert!(
        fs::read_to_string(&path).unwrap() == text,
        "datagrams differ from {}; if the protocol was changed, set ANNALS_WRITE_VECTORS=1",
        path.display()
    );
}
