//! The frames in `test_data/client`: test vectors that other implementations of the client protocol use too.
//!
//! A case is a line with its name, an indented line with the frame as Rust prints it, and one with its bytes. With
//! `ANNALS_WRITE_VECTORS=1` the files are rewritten; any difference is then a change of the protocol.

use std::{collections::BTreeSet, fmt::Write, fs, net::SocketAddr, path::PathBuf};

use annals_event::{SpaceEntry, SpaceVersion};
use annals_ids::{
    CallNumber, Direction, EntityId, Epoch, Hash, HistoryNumber, OwnerId, Part, Position, SessionId, SpaceId, Tick,
    TypeId, WallTime,
};
use annals_wire::client::{
    Ban, Call, CallRefusal, CloseReason, Credentials, DownloadBegun, DownloadChunk, DownloadId, DownloadProgress,
    Drove, GRAMMAR, Hello, HelloAnswer, Known, Located, LoginAnswer, LoginRefusal, LoginRequest, Move, Moved,
    Movements, Moves, Password, Proof, Queued, Reads, Rejection, Secret, Stamp, Stamps, Ticket, ToClient,
    ToClientDatagram, ToServer, ToServerDatagram, Token, ViewFrame, ViewItem, Welcome, protocol_hash,
    volatile::MovementAck,
};

use crate::support::{Any, KINDS};

const ENTITY: EntityId = EntityId(1_048_577);
const VERSION: SpaceVersion = SpaceVersion {
    life: 2,
    stamp: 300_000,
    by: OwnerId(3),
};
const PLACE: (Position, Direction) = (
    Position {
        x: 1.0,
        y: 0.0,
        z: -2.5,
    },
    Direction {
        yaw: 0.5,
        pitch: 0.0,
        roll: 0.0,
    },
);

fn located() -> Located {
    Located {
        owner: OwnerId(3),
        epoch: Epoch(2),
        address: SocketAddr::from(([127, 0, 0, 1], 20_013)),
        certificate: Some(Hash([0xcc; 32])),
    }
}

fn ban() -> Ban {
    Ban {
        until: Some(WallTime(1_798_000_000_000)),
        reason: "case 9: trading outside the game".to_owned(),
    }
}

fn login_requests() -> Vec<(&'static str, LoginRequest)> {
    vec![
        (
            "log in",
            LoginRequest::LogIn {
                protocol: Hash([0xaa; 32]),
                credentials: Credentials::Password {
                    name: "Zoë".to_owned(),
                    password: Password("secret".to_owned()),
                },
            },
        ),
        (
            "log in with a token",
            LoginRequest::LogIn {
                protocol: Hash([0xaa; 32]),
                credentials: Credentials::Token(Token("a.b.c".to_owned())),
            },
        ),
        (
            "register",
            LoginRequest::LogIn {
                protocol: Hash([0xaa; 32]),
                credentials: Credentials::Registration {
                    name: "Zoë".to_owned(),
                    password: Password("secret".to_owned()),
                },
            },
        ),
        (
            "locate",
            LoginRequest::Locate {
                owner: OwnerId(3),
                session: SessionId(300),
            },
        ),
    ]
}

fn login_answers() -> Vec<(&'static str, LoginAnswer)> {
    let signed = Located {
        address: "[2001:db8::1]:443".parse().unwrap(),
        certificate: None,
        ..located()
    };
    vec![
        (
            "ticket",
            LoginAnswer::Ticket(Ticket {
                session: SessionId(300),
                secret: Secret([0x11; 32]),
                base: located(),
            }),
        ),
        ("located", LoginAnswer::Located(located())),
        ("located with a signed certificate", LoginAnswer::Located(signed)),
        (
            "refused: wrong password",
            LoginAnswer::Refused(LoginRefusal::WrongPassword),
        ),
        ("refused: not held", LoginAnswer::Refused(LoginRefusal::NotHeld)),
        ("banned", LoginAnswer::Banned(ban())),
        ("banned for ever", LoginAnswer::Banned(Ban { until: None, ..ban() })),
        (
            "queued",
            LoginAnswer::Queued(Queued {
                position: 7,
                length: 300,
            }),
        ),
    ]
}

fn hellos() -> Vec<(&'static str, Hello)> {
    let hello = Hello {
        protocol: Hash([0xaa; 32]),
        schema: Hash([0xbb; 32]),
        owner: OwnerId(3),
        epoch: Epoch(2),
        session: SessionId(300),
        proof: Proof::Ticket(Secret([0x11; 32])),
        reads: Reads::Plain,
    };
    vec![
        ("with a ticket", hello.clone()),
        (
            "resumed",
            Hello {
                proof: Proof::Resume(Secret([0x22; 32])),
                reads: Reads::Predicted,
                ..hello
            },
        ),
    ]
}

fn hello_answers() -> Vec<(&'static str, HelloAnswer)> {
    let welcome = Welcome {
        session: SessionId(300),
        epoch: Epoch(2),
        entity: ENTITY,
        type_id: TypeId(4),
        token: Secret([0x22; 32]),
        movements: Movements::Plain,
    };
    let predicted = Welcome {
        movements: Movements::with_scale(0.25).unwrap(),
        ..welcome.clone()
    };
    vec![
        ("welcome", HelloAnswer::Welcome(welcome)),
        ("welcome: movements are predicted", HelloAnswer::Welcome(predicted)),
        ("rejected: elsewhere", HelloAnswer::Rejected(Rejection::Elsewhere)),
        ("given", HelloAnswer::Given(OwnerId(3))),
    ]
}

fn download() -> DownloadId {
    DownloadId {
        entity: ENTITY,
        number: CallNumber(3),
    }
}

fn to_server() -> Vec<(&'static str, ToServer)> {
    let call = Call {
        entity: ENTITY,
        part: Part::Cell,
        number: CallNumber(3),
        is_oldest: false,
        message: vec![2, 5, b'h', b'e', b'l', b'l', b'o'],
    };
    let mut frames = vec![
        ("call", ToServer::Call(call.clone())),
        (
            "call: all earlier ones are confirmed",
            ToServer::Call(Call {
                is_oldest: true,
                ..call
            }),
        ),
        ("bye", ToServer::Bye),
        (
            "download progress",
            ToServer::DownloadProgress(DownloadProgress {
                id: download(),
                upto: 300,
            }),
        ),
    ];
    frames.extend(stamps());
    frames
}

fn stamps() -> Vec<(&'static str, ToServer)> {
    let known = Known {
        seen: vec![
            Stamp::new(EntityId(7), HistoryNumber(12)),
            Stamp {
                entity: ENTITY,
                upto: HistoryNumber(301),
                finer: vec![HistoryNumber(0), HistoryNumber(300)],
            },
        ],
        kept: vec![Stamp::new(EntityId(5), HistoryNumber(2))],
        space: None,
        unusual_drivers: Vec::new(),
    };
    let driving = Known {
        seen: known.seen.clone(),
        unusual_drivers: vec![EntityId(7), ENTITY],
        ..Known::default()
    };
    let with_space = Known {
        space: Some((SpaceId(300), [(0, VERSION), (256, VERSION)].into_iter().collect())),
        ..Known::default()
    };
    vec![
        (
            "stamps",
            ToServer::Stamps(Stamps {
                source: Part::Cell,
                view: 2,
                known,
            }),
        ),
        (
            "stamps of one that has data of its space",
            ToServer::Stamps(Stamps {
                source: Part::Cell,
                view: 2,
                known: with_space,
            }),
        ),
        (
            "stamps of one that drives others",
            ToServer::Stamps(Stamps {
                source: Part::Cell,
                view: 2,
                known: driving,
            }),
        ),
        (
            "stamps of one that has nothing",
            ToServer::Stamps(Stamps {
                source: Part::Base,
                view: 1,
                known: Known::default(),
            }),
        ),
    ]
}

fn to_client() -> Vec<(&'static str, ToClient)> {
    let (entity, part) = (ENTITY, Part::Cell);
    let (number, upto, have) = (CallNumber(6), CallNumber(5), CallNumber(0));
    let mut cases = vec![
        ("took", ToClient::Took { entity, part, upto }),
        ("gap", ToClient::Gap { entity, part, have }),
        ("gone", ToClient::Gone { entity, part }),
        (
            "refused",
            ToClient::Refused {
                entity,
                part,
                number,
                reason: CallRefusal::BadArguments,
            },
        ),
        ("stamps wanted", ToClient::StampsWanted { source: part }),
        (
            "reset",
            ToClient::Reset {
                entity,
                type_id: TypeId(4),
            },
        ),
        ("rate warned", ToClient::RateWarned),
        ("moving", ToClient::Moving(located())),
        ("banned", ToClient::Banned(ban())),
        (
            "download begun",
            ToClient::DownloadBegun(DownloadBegun {
                id: download(),
                size: 300,
                hash: Hash([0xcc; 32]),
                description: "map".to_owned(),
            }),
        ),
        (
            "download chunk",
            ToClient::DownloadChunk(DownloadChunk {
                id: download(),
                offset: 298,
                content: vec![1, 2],
            }),
        ),
        ("download ended", ToClient::DownloadEnded(download())),
        ("given", ToClient::Given(OwnerId(3))),
    ];
    for (name, item) in view_items().into_iter().chain(placing_items()) {
        let frame = ViewFrame {
            source: part,
            view: 2,
            sequence: 9,
            tick: Tick(600),
            items: vec![item],
        };
        cases.push((name, ToClient::View(frame)));
    }
    let empty = ViewFrame {
        source: Part::Base,
        view: 1,
        sequence: 1,
        tick: Tick(0),
        items: vec![],
    };
    cases.push(("view: begun", ToClient::View(empty)));
    cases
}

fn view_items() -> Vec<(&'static str, ViewItem)> {
    let entity = ENTITY;
    vec![
        (
            "view: enter",
            ViewItem::Enter {
                entity,
                type_id: TypeId(4),
                place: Some(PLACE),
            },
        ),
        (
            "view: enter, base",
            ViewItem::Enter {
                entity,
                type_id: TypeId(4),
                place: None,
            },
        ),
        ("view: leave", ViewItem::Leave { entity }),
        (
            "view: refresh",
            ViewItem::Refresh {
                entity,
                upto: HistoryNumber(12),
                level: 0,
                properties: vec![3, 1],
            },
        ),
        (
            "view: update",
            ViewItem::Update {
                entity,
                from: HistoryNumber(12),
                upto: HistoryNumber(301),
                events: vec![3, 1, 2, 10, 4, 2, b'h', b'i'],
            },
        ),
    ]
}

/// Items about the position of an entity, and its level of detail.
fn placing_items() -> Vec<(&'static str, ViewItem)> {
    let entity = ENTITY;
    let (position, direction) = PLACE;
    vec![
        (
            "view: placed",
            ViewItem::Placed {
                entity,
                position,
                direction,
            },
        ),
        (
            "view: level",
            ViewItem::Level {
                entity,
                level: 1,
                properties: vec![3, 1],
            },
        ),
        (
            "view: return",
            ViewItem::Return {
                entity,
                position,
                direction,
            },
        ),
        (
            "view: space",
            ViewItem::Space {
                entity,
                space: SpaceId(300),
            },
        ),
        (
            "view: space data",
            ViewItem::SpaceData {
                entity,
                entry: SpaceEntry {
                    key: 256,
                    version: VERSION,
                    value: vec![1, 2, 3],
                },
            },
        ),
        ("view: drives", ViewItem::Drives { entity, drives: true }),
        ("view: no longer drives", ViewItem::Drives { entity, drives: false }),
    ]
}

fn to_server_datagrams() -> Vec<(&'static str, ToServerDatagram)> {
    let (position, direction) = PLACE;
    vec![
        (
            "moved",
            ToServerDatagram::Moved(Moved {
                sequence: 1_000,
                position,
                direction,
            }),
        ),
        (
            "movement_ack",
            ToServerDatagram::MovementAck {
                view: 2,
                ack: MovementAck {
                    tick: 600,
                    before: 0b1011,
                },
            },
        ),
        (
            "drove",
            ToServerDatagram::Drove(Drove {
                entity: ENTITY,
                upto: HistoryNumber(300),
                moved: Moved {
                    sequence: 1_001,
                    position,
                    direction,
                },
            }),
        ),
    ]
}

fn to_client_datagrams() -> Vec<(&'static str, ToClientDatagram)> {
    let quarter = std::f32::consts::FRAC_PI_2;
    let moves = vec![
        Move {
            entity: EntityId(7),
            position: PLACE.0,
            direction: Direction {
                yaw: quarter,
                pitch: 0.0,
                roll: 0.0,
            },
        },
        Move {
            entity: ENTITY,
            position: Position::default(),
            direction: Direction::default(),
        },
    ];
    vec![(
        "moves",
        ToClientDatagram::Moves(Moves {
            view: 2,
            tick: Tick(600),
            moves,
        }),
    )]
}

fn cases(kind: &str) -> Vec<(&'static str, Any)> {
    fn any<T>(cases: Vec<(&'static str, T)>, wrap: fn(T) -> Any) -> Vec<(&'static str, Any)> {
        cases.into_iter().map(|(name, frame)| (name, wrap(frame))).collect()
    }
    match kind {
        "login_request" => any(login_requests(), Any::LoginRequest),
        "login_answer" => any(login_answers(), Any::LoginAnswer),
        "hello" => any(hellos(), Any::Hello),
        "hello_answer" => any(hello_answers(), Any::HelloAnswer),
        "to_server" => any(to_server(), Any::ToServer),
        "to_client" => any(to_client(), Any::ToClient),
        "to_server_datagram" => any(to_server_datagrams(), Any::ToServerDatagram),
        "to_client_datagram" => any(to_client_datagrams(), Any::ToClientDatagram),
        other => panic!("no such kind of frame: {other}"),
    }
}

fn file(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("test_data/client")
        .join(name)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Vec<u8> {
    let digits = text.as_bytes();
    assert!(digits.len().is_multiple_of(2), "odd number of digits: {text}");
    digits
        .chunks(2)
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}

fn render(cases: &[(&'static str, Any)]) -> String {
    let mut text = String::new();
    for (name, frame) in cases {
        let printed = format!("{frame:?}");
        let bytes = hex(&frame.encode());
        writeln!(text, "{name}\n  {printed}\n  {bytes}").unwrap();
    }
    text
}

#[test]
fn frames_have_the_bytes_in_the_files() {
    for kind in KINDS {
        let cases = cases(kind);
        let rendered = render(&cases);
        let path = file(&format!("{kind}.txt"));
        if std::env::var_os("ANNALS_WRITE_VECTORS").is_some() {
            fs::write(&path, &rendered).unwrap();
        }
        let stored = fs::read_to_string(&path).unwrap();
        assert_eq!(stored, rendered, "{} differs", path.display());
        for (line, (name, frame)) in stored.lines().skip(2).step_by(3).zip(cases) {
            assert_eq!(Any::decode(kind, &unhex(line.trim())), Ok(frame), "{kind}: {name}");
        }
    }
}

/// Lines of kind, bytes and the error message.
#[test]
fn malformed_frames_are_refused_for_the_reasons_in_the_file() {
    let text = fs::read_to_string(file("malformed.txt")).unwrap();
    let mut kinds = BTreeSet::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let mut fields = line.split('|').map(str::trim);
        let (kind, bytes, message) = (fields.next().unwrap(), fields.next().unwrap(), fields.next().unwrap());
        let refused = Any::decode(kind, &unhex(bytes)).expect_err(line);
        assert_eq!(refused.to_string(), message, "{line}");
        kinds.insert(kind.to_owned());
    }
    assert_eq!(kinds.len(), KINDS.len(), "each kind has a malformed case");
}

#[test]
fn close_codes_map_to_their_reasons() {
    for reason in CloseReason::ALL {
        assert_eq!(CloseReason::from_code(reason.code().into()), reason);
    }
    assert_eq!(CloseReason::from_code(u64::MAX), CloseReason::Lost);
}

#[test]
fn debug_output_omits_secrets() {
    let (_, request) = &login_requests()[0];
    let (_, hello) = &hellos()[0];
    let printed = format!("{request:?} {hello:?}");
    assert!(!printed.contains("secret") && !printed.contains("17, 17"), "{printed}");
}

/// Every implementation compares this hash, so a change of it disconnects every client.
#[test]
fn the_protocol_hash_matches_the_document() {
    let document = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/client-protocol.md");
    let document = fs::read_to_string(document).unwrap();
    assert!(
        document.contains(GRAMMAR.trim_end()),
        "docs/client-protocol.md shows another grammar"
    );
    assert!(
        document.contains(&protocol_hash().to_string()),
        "its hash is {}",
        protocol_hash()
    );
}
