//! The packing against cases recorded from the system whose encoding it follows, where they are available.

use std::path::{Path, PathBuf};

use annals_event::Reader;
use annals_ids::{EntityId, Position};
use annals_wire::client::volatile::{Facing, Motion, Packing, Placing};

/// The file of cases, in a folder next to the corpus of games. The corpus is next to the repository, or given by
/// `ANNALS_CORPUS`.
fn cases() -> Option<String> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus");
    #[expect(clippy::disallowed_methods, reason = "a test may look at its environment")]
    let corpus = std::env::var("ANNALS_CORPUS").map_or(beside, PathBuf::from);
    std::fs::read_to_string(corpus.join("../vectors/packing_vectors.txt")).ok()
}

#[test]
fn all_cases_have_the_recorded_bytes() {
    let Some(cases) = cases() else {
        println!("skipped: no vectors/packing_vectors.txt beside the games, and ANNALS_CORPUS names no folder");
        return;
    };
    let (mut section, mut seen) = (0, [0; 4]);
    for line in cases.lines() {
        if line.starts_with("##") {
            section += 1;
            continue;
        }
        let fields: Vec<&str> = line.split(',').collect();
        match section {
            1 => ground(Packing::with_scale(1.0), line, (0, 1), 2),
            2 => ground(Packing::for_radius(500.0), line, (0, 0), 1),
            3 => full(&fields),
            4 => directions(&fields),
            _ => continue,
        }
        seen[section - 1] += 1;
    }
    assert_eq!(seen, [24, 5, 24, 13], "cases of each kind");
}

fn number(field: &str) -> f32 {
    field.parse().expect("a number")
}

fn is_near(value: f32, field: &str) -> bool {
    (value - number(field)).abs() <= 1e-6 * value.abs().max(1.0)
}

fn ground(packing: Packing, line: &str, (x, z): (usize, usize), hex: usize) {
    let fields: Vec<&str> = line.split(',').collect();
    let bytes = packing.pack_ground(number(fields[x]), number(fields[z]));
    assert_eq!(written(&bytes), fields[hex], "{line}");
    let (a, b) = packing.unpack_ground(bytes);
    assert!(
        is_near(a, fields[hex + 1]) && is_near(b, fields[hex + 2]),
        "{line}: {a} {b}"
    );
}

fn full(fields: &[&str]) {
    let packing = Packing::with_scale(1.0);
    let bytes = packing.pack_full(Position {
        x: number(fields[0]),
        y: number(fields[1]),
        z: number(fields[2]),
    });
    assert_eq!(written(&bytes), fields[3], "{fields:?}");
    let Position { x, y, z } = packing.unpack_full(bytes);
    let is_same = is_near(x, fields[4]) && is_near(y, fields[5]) && is_near(z, fields[6]);
    assert!(is_same, "{fields:?}: {x} {y} {z}");
}

fn directions(fields: &[&str]) {
    let (yaw, pitch, roll) = (number(fields[0]), number(fields[1]), number(fields[2]));
    let facings = [
        Facing::Yaw(yaw),
        Facing::YawPitch(yaw, pitch),
        Facing::YawPitchRoll(yaw, pitch, roll),
    ];
    for (facing, hex) in facings.into_iter().zip(&fields[3..6]) {
        let (bytes, found) = through(facing);
        assert_eq!(written(&bytes), **hex, "{fields:?}");
        let is_same = match found {
            Facing::Yaw(yaw) => is_near(yaw, fields[6]),
            Facing::YawPitch(yaw, pitch) => is_near(yaw, fields[6]) && is_near(pitch, fields[7]),
            Facing::YawPitchRoll(yaw, pitch, roll) => {
                is_near(yaw, fields[6]) && is_near(pitch, fields[8]) && is_near(roll, fields[9])
            }
            Facing::Unsaid => false,
        };
        assert!(is_same, "{fields:?}: {found:?}");
    }
}

/// The bytes of a direction in a message, and the direction decoded from them.
fn through(facing: Facing) -> (Vec<u8>, Facing) {
    let (packing, mut bytes) = (Packing::with_scale(1.0), Vec::new());
    let motion = Motion {
        entity: EntityId(1),
        placing: Placing::Unsaid,
        facing,
    };
    packing.put(&mut bytes, [0, 0, 0], Some(1), &motion);
    let read = packing.take(&mut Reader::new(&bytes), [0, 0, 0], |_| Some(EntityId(1)));
    let found = read.expect("sound").expect("named").facing;
    // After the kind and the alias.
    (bytes.split_off(2), found)
}

fn written(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
