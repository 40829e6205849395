use super::*;

/// East, north; their bytes; the unpacked values.
const ON_GROUND: [(f32, f32, [u8; 3], f32, f32); 8] = [
    (0.0, -0.0, [0x00, 0x08, 0x00], 0.0, -0.0),
    (0.003_906_25, -0.001_953_125, [0x00, 0x18, 0x00], 0.007_812_5, -0.0),
    (-1.0, 0.5, [0x40, 0x00, 0x88], -1.0, 0.5),
    (1.996_093_8, -0.998_046_9, [0x80, 0x08, 0x10], 2.0, -1.0),
    (123.456, -61.728, [0xfe, 0x6c, 0x5f], 123.5, -61.75),
    (254.75, -127.375, [0x03, 0x1e, 0x70], 255.0, -127.5),
    (509.5, -254.75, [0x01, 0xff, 0x7f], 509.0, -255.0),
    (-1_000.0, 500.0, [0xf6, 0xf7, 0xff], -509.0, 500.0),
];

const IN_FULL: [(Position, [u8; 5], Position); 3] = [
    (at(1.0, 10.0, -1.0), [0x80, 0x08, 0x08, 0x00, 0x14], at(1.0, 10.0, -1.0)),
    (
        at(-123.456, -1_234.56, 123.456),
        [0xf6, 0x65, 0xdf, 0xa9, 0xc9],
        at(-123.5, -1_234.5, 123.5),
    ),
    // The height is truncated: a value half-way between two steps becomes the lower.
    (
        at(509.5, 5_095.0, -509.5),
        [0xff, 0xff, 0x7f, 0xf4, 0x59],
        at(509.0, 5_094.0, -509.0),
    ),
];

const fn at(x: f32, y: f32, z: f32) -> Position {
    Position { x, y, z }
}

const ONE: Packing = Packing { scale: 1.0 };

fn is_same(one: f32, other: f32) -> bool {
    one == other && one.is_sign_negative() == other.is_sign_negative()
}

#[test]
fn positions_have_the_bytes_that_clients_know() {
    for (x, z, bytes, east, north) in ON_GROUND {
        assert_eq!(ONE.pack_ground(x, z), bytes, "{x} {z}");
        let (a, b) = ONE.unpack_ground(bytes);
        assert!(is_same(a, east) && is_same(b, north), "{x} {z}: {a} {b}");
    }
    for (position, bytes, out) in IN_FULL {
        assert_eq!(ONE.pack_full(position), bytes, "{position:?}");
        assert_eq!(ONE.unpack_full(bytes), out);
    }
    assert!(is_same(ONE.limit(), 509.5));
    let wide = Packing::for_radius(500.0);
    assert!(is_same(wide.scale(), 0.982_318_3));
    assert_eq!(wide.pack_ground(499.0, 499.0), [0xfe, 0xe7, 0x7f]);
    assert!(is_same(wide.unpack_ground([0xfe, 0xe7, 0x7f]).0, 499.017_7));
}

#[test]
fn directions_have_the_bytes_that_clients_know() {
    let packed = |angle| [pack_angle(angle), pack_half(angle)];
    assert_eq!(packed(0.0), [0, 0]);
    assert_eq!(packed(0.012_271_8), [0, 1]);
    assert_eq!(packed(0.25), [10, 20]);
    assert_eq!(packed(-0.5), [0xec, 0xd8]);
    assert_eq!(packed(-PI / 2.0), [0xc0, 0x81]);
    assert_eq!([pack_angle(PI), pack_angle(-PI), pack_angle(3.1)], [0x80, 0x80, 0x7e]);
    assert!(is_same(unpack_angle(0x80), -PI));
    assert!(is_same(unpack_half(0x7f), PI / 2.0));
}

const ENTITY: EntityId = EntityId(300);

fn everything() -> Vec<Motion> {
    let place = at(12.3, 40.1, -77.7);
    let placings = [
        Placing::Full(place),
        Placing::Ground(place),
        Placing::Unsaid,
        Placing::Exact(place),
    ];
    let facings = [
        Facing::YawPitchRoll(0.5, 0.25, -0.5),
        Facing::YawPitch(-1.5, 0.2),
        Facing::Yaw(3.0),
        Facing::Unsaid,
    ];
    let pairs = placings
        .into_iter()
        .flat_map(|placing| facings.map(|facing| (placing, facing)));
    let motions = pairs.map(|(placing, facing)| Motion {
        entity: ENTITY,
        placing,
        facing,
    });
    motions.filter(Motion::is_sound).collect()
}

#[test]
fn all_messages_round_trip_within_half_a_step() {
    let packing = Packing::for_radius(500.0);
    let reference = [10, 40, -80];
    for motion in everything() {
        for alias in [Some(7), None] {
            let mut bytes = Vec::new();
            packing.put(&mut bytes, reference, alias, &motion);
            let named = |alias| (alias == 7).then_some(ENTITY);
            let mut reader = Reader::new(&bytes);
            let read = packing
                .take(&mut reader, reference, named)
                .expect("sound")
                .expect("known");
            assert_eq!(reader.remaining(), 0);
            assert_eq!(
                (read.placing.number(), read.facing.number()),
                (motion.placing.number(), motion.facing.number())
            );
            let mut again = Vec::new();
            packing.put(&mut again, reference, alias, &read);
            assert_eq!(again, bytes, "{motion:?}");
            for cut in 0..bytes.len() {
                assert!(packing.take(&mut Reader::new(&bytes[..cut]), reference, named).is_err());
            }
        }
    }
    // A position on the ground with a yaw: kind, alias, three bytes, one.
    let mut bytes = Vec::new();
    let motion = Motion {
        entity: ENTITY,
        placing: Placing::Ground(at(10.0, 5.0, -80.0)),
        facing: Facing::Yaw(0.0),
    };
    packing.put(&mut bytes, reference, Some(7), &motion);
    assert_eq!(bytes, [18, 7, 0, 0, 0, 0]);
}

#[test]
fn out_of_range_movements_are_sent_in_full_and_unknown_aliases_skipped() {
    for far in [at(600.0, 1.0, 0.0), at(0.0, 1.0, -600.0)] {
        for placing in [Placing::Full(far), Placing::Ground(far)] {
            let motion = Motion {
                entity: ENTITY,
                placing,
                facing: Facing::Unsaid,
            };
            let mut bytes = Vec::new();
            ONE.put(&mut bytes, [0, 0, 0], None, &motion);
            let read = ONE.take(&mut Reader::new(&bytes), [0, 0, 0], |_| None).expect("sound");
            assert_eq!(read.map(|read| read.placing), Some(Placing::Exact(far)));
            bytes.clear();
            ONE.put(&mut bytes, [0, 0, 0], Some(9), &motion);
            assert_eq!(ONE.take(&mut Reader::new(&bytes), [0, 0, 0], |_| None), Ok(None));
        }
    }
    for kind in (32..=255).chain([11, 23]) {
        assert!(
            ONE.take(&mut Reader::new(&[kind; 40]), [0, 0, 0], |_| None).is_err(),
            "{kind}"
        );
    }
}
