//! Generated frames of every kind.
#![allow(dead_code, reason = "each test file uses a part of it")]

use std::{collections::BTreeSet, net::SocketAddr};

use annals_def::Dice;
use annals_event::{Malformed, SPACE_KEYS, SpaceEntry, SpaceVersion};
use annals_ids::{
    CallNumber, Direction, EntityId, Epoch, Hash, HistoryNumber, OwnerId, Part, Position, SessionId, SpaceId, Tick,
    TypeId, WallTime,
};
use annals_wire::client::{
    Ban, Call, CallRefusal, Credentials, DownloadBegun, DownloadChunk, DownloadId, DownloadProgress, Drove, Hello,
    HelloAnswer, Known, Located, LoginAnswer, LoginRefusal, LoginRequest, MAX_DOWNLOAD_BYTES, Move, Moved, Movements,
    Moves, Password, Proof, Queued, Reads, Rejection, Secret, Stamp, Stamps, Ticket, ToClient, ToClientDatagram,
    ToServer, ToServerDatagram, Token, ViewFrame, ViewItem, Welcome, volatile::MovementAck,
};

/// Any frame or datagram, so that one test serves all.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Any {
    LoginRequest(LoginRequest),
    LoginAnswer(LoginAnswer),
    Hello(Hello),
    HelloAnswer(HelloAnswer),
    ToServer(ToServer),
    ToClient(ToClient),
    ToServerDatagram(ToServerDatagram),
    ToClientDatagram(ToClientDatagram),
}

pub(crate) const KINDS: [&str; 8] = [
    "login_request",
    "login_answer",
    "hello",
    "hello_answer",
    "to_server",
    "to_client",
    "to_server_datagram",
    "to_client_datagram",
];

impl Any {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        match self {
            Any::LoginRequest(frame) => frame.write(&mut out),
            Any::LoginAnswer(frame) => frame.write(&mut out),
            Any::Hello(frame) => frame.write(&mut out),
            Any::HelloAnswer(frame) => frame.write(&mut out),
            Any::ToServer(frame) => frame.write(&mut out),
            Any::ToClient(frame) => frame.write(&mut out),
            Any::ToServerDatagram(datagram) => datagram.write(&mut out),
            Any::ToClientDatagram(ToClientDatagram::Moves(moves)) => {
                let mut datagrams = moves.datagrams();
                assert_eq!(datagrams.len(), 1, "these tests make movements that fit one datagram");
                out = datagrams.remove(0);
            }
        }
        out
    }

    pub(crate) fn decode(kind: &str, bytes: &[u8]) -> Result<Any, Malformed> {
        match kind {
            "login_request" => LoginRequest::read(bytes).map(Any::LoginRequest),
            "login_answer" => LoginAnswer::read(bytes).map(Any::LoginAnswer),
            "hello" => Hello::read(bytes).map(Any::Hello),
            "hello_answer" => HelloAnswer::read(bytes).map(Any::HelloAnswer),
            "to_server" => ToServer::read(bytes).map(Any::ToServer),
            "to_client" => ToClient::read(bytes).map(Any::ToClient),
            "to_server_datagram" => ToServerDatagram::read(bytes).map(Any::ToServerDatagram),
            "to_client_datagram" => ToClientDatagram::read(bytes).map(Any::ToClientDatagram),
            other => panic!("no such kind of frame: {other}"),
        }
    }

    pub(crate) fn random(kind: &str, dice: &mut Dice<'_>) -> Any {
        match kind {
            "login_request" => Any::LoginRequest(login_request(dice)),
            "login_answer" => Any::LoginAnswer(login_answer(dice)),
            "hello" => Any::Hello(hello(dice)),
            "hello_answer" => Any::HelloAnswer(hello_answer(dice)),
            "to_server" => Any::ToServer(to_server(dice)),
            "to_client" => Any::ToClient(to_client(dice)),
            "to_server_datagram" => Any::ToServerDatagram(to_server_datagram(dice)),
            "to_client_datagram" => Any::ToClientDatagram(ToClientDatagram::Moves(Moves {
                view: number(dice),
                tick: Tick(number(dice)),
                moves: (0..=dice() % 20).map(|_| movement(dice)).collect(),
            })),
            other => panic!("no such kind of frame: {other}"),
        }
    }
}

/// Numbers of all lengths, including the bounds.
fn number(dice: &mut Dice<'_>) -> u64 {
    let bits = dice() % 65;
    if bits == 0 { 0 } else { dice() >> (64 - bits) }
}

/// A call or history number.
fn ordinal(dice: &mut Dice<'_>) -> u64 {
    number(dice) >> 1
}

fn small(dice: &mut Dice<'_>) -> u16 {
    u16::try_from(dice() >> (48 + dice() % 16)).unwrap()
}

fn entity(dice: &mut Dice<'_>) -> EntityId {
    EntityId(number(dice))
}

fn part(dice: &mut Dice<'_>) -> Part {
    if dice().is_multiple_of(2) {
        Part::Base
    } else {
        Part::Cell
    }
}

fn bytes(dice: &mut Dice<'_>) -> Vec<u8> {
    (0..dice() % 9).map(|_| dice().to_le_bytes()[0]).collect()
}

fn text(dice: &mut Dice<'_>) -> String {
    (0..dice() % 9)
        .map(|_| ['a', ' ', 'é', '龙', '🐉'][(dice() % 5) as usize])
        .collect()
}

fn secret(dice: &mut Dice<'_>) -> Secret {
    Secret(std::array::from_fn(|_| dice().to_le_bytes()[0]))
}

fn hash(dice: &mut Dice<'_>) -> Hash {
    Hash(secret(dice).0)
}

fn float(dice: &mut Dice<'_>) -> f32 {
    loop {
        let float = f32::from_bits(u32::try_from(dice() >> 32).unwrap());
        if float.is_finite() {
            return float;
        }
    }
}

fn position(dice: &mut Dice<'_>) -> Position {
    Position {
        x: float(dice),
        y: float(dice),
        z: float(dice),
    }
}

fn direction(dice: &mut Dice<'_>) -> Direction {
    Direction {
        yaw: float(dice),
        pitch: float(dice),
        roll: float(dice),
    }
}

/// A direction that is encoded without loss.
fn coarse_direction(dice: &mut Dice<'_>) -> Direction {
    let mut angle = || f32::from(u16::try_from(dice() >> 48).unwrap()) / 65_536.0 * std::f32::consts::TAU;
    Direction {
        yaw: angle(),
        pitch: angle(),
        roll: angle(),
    }
}

fn movement(dice: &mut Dice<'_>) -> Move {
    Move {
        entity: entity(dice),
        position: position(dice),
        direction: coarse_direction(dice),
    }
}

fn located(dice: &mut Dice<'_>) -> Located {
    let port = small(dice);
    let address = if dice().is_multiple_of(2) {
        SocketAddr::from(([127, 0, 0, small(dice).to_le_bytes()[0]], port))
    } else {
        SocketAddr::from(([0, 0, 0, 0, 0, 0, small(dice), 1], port))
    };
    Located {
        owner: OwnerId(u32::try_from(number(dice) >> 32).unwrap()),
        epoch: Epoch(number(dice)),
        address,
        certificate: dice().is_multiple_of(2).then(|| hash(dice)),
    }
}

fn login_request(dice: &mut Dice<'_>) -> LoginRequest {
    let protocol = hash(dice);
    let credentials = match dice() % 4 {
        0 => Credentials::Password {
            name: text(dice),
            password: Password(text(dice)),
        },
        1 => Credentials::Token(Token(text(dice))),
        2 => Credentials::Registration {
            name: text(dice),
            password: Password(text(dice)),
        },
        _ => {
            return LoginRequest::Locate {
                owner: OwnerId(u32::try_from(number(dice) >> 32).unwrap()),
                session: SessionId(number(dice)),
            };
        }
    };
    LoginRequest::LogIn { protocol, credentials }
}

fn pick<T: Copy>(all: &[T], dice: &mut Dice<'_>) -> T {
    all[(dice() % all.len() as u64) as usize]
}

fn login_answer(dice: &mut Dice<'_>) -> LoginAnswer {
    match dice() % 5 {
        0 => LoginAnswer::Ticket(Ticket {
            session: SessionId(number(dice)),
            secret: secret(dice),
            base: located(dice),
        }),
        1 => LoginAnswer::Located(located(dice)),
        2 => LoginAnswer::Banned(ban(dice)),
        3 => LoginAnswer::Queued(Queued {
            position: number(dice),
            length: number(dice),
        }),
        _ => LoginAnswer::Refused(pick(&LoginRefusal::ALL, dice)),
    }
}

fn ban(dice: &mut Dice<'_>) -> Ban {
    Ban {
        until: dice().is_multiple_of(2).then(|| WallTime(number(dice))),
        reason: text(dice),
    }
}

fn hello(dice: &mut Dice<'_>) -> Hello {
    Hello {
        protocol: hash(dice),
        schema: hash(dice),
        owner: OwnerId(u32::try_from(number(dice) >> 32).unwrap()),
        epoch: Epoch(number(dice)),
        session: SessionId(number(dice)),
        proof: if dice().is_multiple_of(2) {
            Proof::Ticket(secret(dice))
        } else {
            Proof::Resume(secret(dice))
        },
        reads: pick(&[Reads::Plain, Reads::Predicted], dice),
    }
}

fn hello_answer(dice: &mut Dice<'_>) -> HelloAnswer {
    match dice() % 8 {
        0 | 1 => return HelloAnswer::Rejected(pick(&Rejection::ALL, dice)),
        2 => return HelloAnswer::Given(OwnerId(dice() as u32)),
        _ => {}
    }
    HelloAnswer::Welcome(Welcome {
        session: SessionId(number(dice)),
        epoch: Epoch(number(dice)),
        entity: entity(dice),
        type_id: TypeId(small(dice)),
        token: secret(dice),
        movements: Movements::with_scale(float(dice)).unwrap_or_default(),
    })
}

fn to_server_datagram(dice: &mut Dice<'_>) -> ToServerDatagram {
    let moved = Moved {
        sequence: number(dice),
        position: position(dice),
        direction: direction(dice),
    };
    match dice() % 3 {
        0 => ToServerDatagram::MovementAck {
            view: number(dice),
            ack: MovementAck {
                tick: small(dice),
                before: small(dice),
            },
        },
        1 => ToServerDatagram::Moved(moved),
        _ => ToServerDatagram::Drove(Drove {
            entity: entity(dice),
            upto: HistoryNumber(ordinal(dice)),
            moved,
        }),
    }
}

fn to_server(dice: &mut Dice<'_>) -> ToServer {
    match dice() % 6 {
        5 => ToServer::DownloadProgress(DownloadProgress {
            id: DownloadId {
                entity: entity(dice),
                number: CallNumber(ordinal(dice)),
            },
            upto: number(dice) % (MAX_DOWNLOAD_BYTES + 1),
        }),
        0 | 1 => ToServer::Call(Call {
            entity: entity(dice),
            part: part(dice),
            number: CallNumber(ordinal(dice).clamp(1, CallNumber::floor(1).0)),
            is_oldest: dice().is_multiple_of(2),
            message: bytes(dice),
        }),
        2 | 3 => {
            let mut seen = stamps(dice);
            seen.sort_by_key(|stamp| stamp.entity);
            seen.dedup_by_key(|stamp| stamp.entity);
            let kept = stamps(dice);
            let versions = (0..dice() % 4).map(|_| (key(dice), version(dice)));
            let versions = versions.collect();
            let space = dice()
                .is_multiple_of(2)
                .then(|| (SpaceId(small(dice).into()), versions));
            let unusual: BTreeSet<EntityId> = (0..dice() % 4).map(|_| entity(dice)).collect();
            ToServer::Stamps(Stamps {
                source: part(dice),
                view: number(dice),
                known: Known {
                    seen,
                    kept,
                    space,
                    unusual_drivers: unusual.into_iter().collect(),
                },
            })
        }
        _ => ToServer::Bye,
    }
}

fn key(dice: &mut Dice<'_>) -> u16 {
    small(dice) % SPACE_KEYS
}

fn version(dice: &mut Dice<'_>) -> SpaceVersion {
    SpaceVersion {
        life: u64::from(small(dice)),
        stamp: ordinal(dice),
        by: OwnerId(small(dice).into()),
    }
}

fn stamps(dice: &mut Dice<'_>) -> Vec<Stamp> {
    let count = dice() % 6;
    let mut history = || HistoryNumber(ordinal(dice));
    (0..count)
        .map(|at| Stamp {
            entity: EntityId(history().0),
            upto: history(),
            finer: (0..at % 3).map(|_| history()).collect(),
        })
        .collect()
}

fn to_client(dice: &mut Dice<'_>) -> ToClient {
    let (entity, part, number) = (entity(dice), part(dice), CallNumber(ordinal(dice)));
    match dice() % 16 {
        0 => ToClient::Took {
            entity,
            part,
            upto: number,
        },
        1 => ToClient::Gap {
            entity,
            part,
            have: number,
        },
        2 => ToClient::Gone { entity, part },
        3 => ToClient::Refused {
            entity,
            part,
            number,
            reason: pick(&CallRefusal::ALL, dice),
        },
        4 => ToClient::StampsWanted { source: part },
        5 => ToClient::Reset {
            entity,
            type_id: TypeId(small(dice)),
        },
        6 => ToClient::RateWarned,
        7 => ToClient::Moving(located(dice)),
        8 => ToClient::Banned(ban(dice)),
        9 => ToClient::DownloadBegun(DownloadBegun {
            id: DownloadId { entity, number },
            size: self::number(dice) % (MAX_DOWNLOAD_BYTES + 1),
            hash: hash(dice),
            description: text(dice),
        }),
        10 => {
            let mut content = bytes(dice);
            content.push(1);
            ToClient::DownloadChunk(DownloadChunk {
                id: DownloadId { entity, number },
                offset: self::number(dice) % (MAX_DOWNLOAD_BYTES / 2),
                content,
            })
        }
        11 => ToClient::DownloadEnded(DownloadId { entity, number }),
        12 => ToClient::Given(OwnerId(self::number(dice) as u32)),
        _ => ToClient::View(view_frame(dice)),
    }
}

fn view_frame(dice: &mut Dice<'_>) -> ViewFrame {
    ViewFrame {
        source: part(dice),
        view: number(dice),
        sequence: number(dice).max(1),
        tick: Tick(number(dice)),
        items: (0..dice() % 5).map(|_| view_item(dice)).collect(),
    }
}

fn view_item(dice: &mut Dice<'_>) -> ViewItem {
    let entity = entity(dice);
    match dice() % 11 {
        10 => ViewItem::Drives {
            entity,
            drives: dice().is_multiple_of(2),
        },
        8 => ViewItem::SpaceData {
            entity,
            entry: SpaceEntry {
                key: key(dice),
                version: version(dice),
                value: bytes(dice),
            },
        },
        0 => ViewItem::Enter {
            entity,
            type_id: TypeId(small(dice)),
            place: dice().is_multiple_of(2).then(|| (position(dice), direction(dice))),
        },
        1 => ViewItem::Leave { entity },
        2 => ViewItem::Refresh {
            entity,
            upto: HistoryNumber(ordinal(dice)),
            level: small(dice) as u8,
            properties: bytes(dice),
        },
        5 => ViewItem::Level {
            entity,
            level: small(dice) as u8,
            properties: bytes(dice),
        },
        6 => ViewItem::Return {
            entity,
            position: position(dice),
            direction: direction(dice),
        },
        4 => ViewItem::Space {
            entity,
            space: SpaceId(small(dice).into()),
        },
        3 => ViewItem::Placed {
            entity,
            position: position(dice),
            direction: direction(dice),
        },
        _ => {
            let from = number(dice) >> 1;
            let upto = from + dice() % 300;
            ViewItem::Update {
                entity,
                from: HistoryNumber(from),
                upto: HistoryNumber(upto),
                events: bytes(dice),
            }
        }
    }
}
