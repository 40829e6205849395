//! The client protocol with generated frames, and with truncated, flipped or random bytes.

use annals_def::split_mix;
use annals_event::Malformed;
use annals_ids::{Direction, EntityId, Position, Tick};
use annals_wire::client::{
    FrameBuffer, FrameTooLarge, MAX_DATAGRAM, MAX_UPSTREAM_FRAME, Move, Moves, ToClient, ToClientDatagram, ToServer,
    put_frame,
};

use crate::support::{Any, KINDS};

const SEEDS: u64 = 400;

/// The message of a call extends to the end of its frame; only a reader that knows the method detects that it is
/// truncated.
fn is_refused_or_shorter_call(read: &Result<Any, Malformed>) -> bool {
    matches!(read, Err(_) | Ok(Any::ToServer(ToServer::Call(_))))
}

#[test]
fn frames_round_trip() {
    for kind in KINDS {
        for seed in 0..SEEDS {
            let frame = Any::random(kind, &mut split_mix(seed));
            assert_eq!(Any::decode(kind, &frame.encode()), Ok(frame), "{kind}, seed {seed}");
        }
    }
}

#[test]
fn the_refusal_of_a_call_is_found_in_its_frame() {
    let mut found = 0;
    for seed in 0..SEEDS {
        let frame = Any::random("to_client", &mut split_mix(seed));
        let expected = match &frame {
            Any::ToClient(ToClient::Refused { reason, .. }) => Some(*reason),
            _ => None,
        };
        assert_eq!(ToClient::refusal(&frame.encode()), expected, "seed {seed}");
        found += u64::from(expected.is_some());
    }
    assert!(found > 0 && found < SEEDS, "{found} refusals");
}

#[test]
fn a_truncated_frame_is_refused() {
    for kind in KINDS {
        for seed in 0..SEEDS {
            let bytes = Any::random(kind, &mut split_mix(seed)).encode();
            for cut in 0..bytes.len() {
                let read = Any::decode(kind, &bytes[..cut]);
                assert!(is_refused_or_shorter_call(&read), "{kind}, seed {seed}, cut at {cut}");
            }
        }
    }
}

#[test]
fn a_frame_with_trailing_bytes_is_refused() {
    for kind in KINDS {
        for seed in 0..SEEDS {
            let mut bytes = Any::random(kind, &mut split_mix(seed)).encode();
            bytes.push(0);
            assert!(
                is_refused_or_shorter_call(&Any::decode(kind, &bytes)),
                "{kind}, seed {seed}"
            );
        }
    }
}

/// Every accepted frame has one encoding: a flipped bit gives an error or another frame, never the same one.
#[test]
fn a_flipped_bit_is_an_error_or_another_frame() {
    for kind in KINDS {
        for seed in 0..SEEDS / 10 {
            let bytes = Any::random(kind, &mut split_mix(seed)).encode();
            for bit in 0..bytes.len() * 8 {
                let mut flipped = bytes.clone();
                flipped[bit / 8] ^= 1 << (bit % 8);
                if let Ok(frame) = Any::decode(kind, &flipped) {
                    assert_eq!(frame.encode(), flipped, "{kind}, seed {seed}, bit {bit}");
                }
            }
        }
    }
}

#[test]
fn random_bytes_never_panic() {
    for kind in KINDS {
        for seed in 0..SEEDS * 10 {
            let mut dice = split_mix(seed);
            let length = dice() % 80;
            // Small bytes lead further into a frame than uniform ones.
            let noise: Vec<u8> = (0..length).map(|_| (dice() >> (dice() % 8)).to_le_bytes()[0]).collect();
            if let Ok(frame) = Any::decode(kind, &noise) {
                assert_eq!(frame.encode(), noise, "{kind}, seed {seed}");
            }
        }
    }
}

#[test]
fn a_stream_gives_its_frames_however_it_is_split() {
    for seed in 0..SEEDS {
        let mut dice = split_mix(seed);
        let frames: Vec<Vec<u8>> = (0..dice() % 8)
            .map(|_| vec![dice().to_le_bytes()[0]; (dice() % 300) as usize])
            .collect();
        let mut stream = Vec::new();
        for frame in &frames {
            put_frame(&mut stream, frame, MAX_UPSTREAM_FRAME).unwrap();
        }
        let mut buffer = FrameBuffer::new(MAX_UPSTREAM_FRAME);
        let mut seen = Vec::new();
        let mut rest = stream.as_slice();
        while !rest.is_empty() {
            let (piece, after) = rest.split_at(rest.len().min(1 + (dice() % 200) as usize));
            rest = after;
            buffer.push(piece);
            while let Some(frame) = buffer.next_frame().unwrap() {
                seen.push(frame.to_vec());
            }
        }
        assert_eq!(seen, frames, "seed {seed}");
        assert!(buffer.is_empty(), "seed {seed}");
    }
}

#[test]
fn a_length_above_the_limit_is_refused_before_its_frame_arrives() {
    let too_large = Err(FrameTooLarge { limit: 100 });
    for length in [
        &[101][..],
        &[0xff, 0x01],
        &[0xff, 0xff, 0xff, 0xff, 0x7f],
        &[0x80, 0x00],
        &[0x80; 12],
    ] {
        let mut buffer = FrameBuffer::new(100);
        buffer.push(length);
        assert_eq!(buffer.next_frame(), too_large, "{length:02x?}");
    }
    let mut buffer = FrameBuffer::new(100);
    buffer.push(&[100]);
    assert_eq!(
        buffer.next_frame(),
        Ok(None),
        "a frame of exactly the limit is waited for"
    );
    assert!(!buffer.is_empty());

    let mut out = vec![7];
    assert_eq!(put_frame(&mut out, &[0; 101], 100), Err(FrameTooLarge { limit: 100 }));
    assert_eq!(out, [7]);
}

#[test]
fn movements_are_split_to_fit_datagrams() {
    for count in [0, 1, 48, 49, 50, 500] {
        let place = |i: u64| Move {
            entity: EntityId(1 << (i % 60)),
            position: Position {
                x: 1.5,
                y: -2.25,
                z: 1e6,
            },
            direction: Direction::default(),
        };
        let moves: Vec<Move> = (0..count).map(place).collect();
        let datagrams = Moves {
            view: 3,
            tick: Tick(1_000_000),
            moves: moves.clone(),
        }
        .datagrams();
        let mut back = Vec::new();
        for datagram in &datagrams {
            assert!(
                datagram.len() <= MAX_DATAGRAM,
                "{count} movements: a datagram of {} bytes",
                datagram.len()
            );
            let ToClientDatagram::Moves(part) = ToClientDatagram::read(datagram).unwrap();
            assert_eq!((part.view, part.tick), (3, Tick(1_000_000)));
            back.extend(part.moves);
        }
        assert_eq!(back, moves);
        let full = datagrams
            .iter()
            .rev()
            .skip(1)
            .all(|datagram| datagram.len() > MAX_DATAGRAM - 30);
        assert!(full, "{count} movements: a datagram before the last has room left");
    }
}

#[test]
fn angles_round_trip_within_one_step() {
    for angle in [0.0, 1.0, -1.0, 3.2, 6.283_185_5, -1e-9, 700.0] {
        let direction = Direction {
            yaw: angle,
            pitch: 0.0,
            roll: 0.0,
        };
        let sent = Move {
            entity: EntityId(1),
            position: Position::default(),
            direction,
        };
        let datagrams = Moves {
            view: 1,
            tick: Tick(1),
            moves: vec![sent],
        }
        .datagrams();
        let ToClientDatagram::Moves(got) = ToClientDatagram::read(&datagrams[0]).unwrap();
        let yaw = got.moves[0].direction.yaw;
        let off = (yaw - angle).rem_euclid(std::f32::consts::TAU);
        let off = off.min(std::f32::consts::TAU - off);
        assert!(
            (0.0..std::f32::consts::TAU).contains(&yaw) && off < 1e-4,
            "{angle} came out as {yaw}"
        );
    }
}
