//! How the core decodes predicted movements, and acknowledges them.

use std::sync::Arc;

use annals_client::{Attempt, ClientCore, Credentials, Input, Millis, Output};
use annals_def::{EntityType, Schema};
use annals_ids::{Direction, EntityId, Epoch, OwnerId, Part, Position, SessionId, Tick, TypeId};
use annals_wire::client::{
    CloseReason, Hello, HelloAnswer, Located, LoginAnswer, MAX_DATAGRAM, Move, Movements, Moves, Reads, Secret, Ticket,
    ToClient, ToServerDatagram, ViewFrame, ViewItem, Welcome,
    volatile::{Facing, Motion, MovementAck, Packing, Placing, VolatileWriter},
};

const OWN: EntityId = EntityId(7);
const OTHER: EntityId = EntityId(8);

/// A client that plays, and a cell that sends it movements.
struct Table {
    core: ClientCore,
    attempt: Attempt,
    now: Millis,
    reads: Option<Reads>,
    /// The core's acknowledgements.
    acks: Vec<(u64, MovementAck)>,
    writer: VolatileWriter,
}

fn packing() -> Packing {
    Packing::for_radius(100.0)
}

fn at(x: f32) -> Position {
    Position { x, y: 2.0, z: -3.0 }
}

fn moved(entity: EntityId, x: f32) -> Motion {
    Motion {
        entity,
        placing: Placing::Full(at(x)),
        facing: Facing::Yaw(0.5),
    }
}

impl Table {
    /// A client that sees itself and another entity at 0, at tick 100.
    fn playing(reads: Option<Reads>, movements: Movements) -> Self {
        let mut avatar = EntityType::new("Avatar");
        avatar.parts.client = true;
        let schema = Arc::new(Schema::new(vec![avatar], Vec::new(), Vec::new()));
        let credentials = Credentials::password("Ann", "secret");
        let core = ClientCore::new(schema, credentials, 1);
        let mut table = Self {
            core: reads.into_iter().fold(core, ClientCore::reading),
            attempt: Attempt(0),
            now: Millis(0),
            reads: None,
            acks: Vec::new(),
            writer: VolatileWriter::new(1, packing()),
        };
        table.core.start(Millis(0));
        table.listen();
        let ticket = Ticket {
            session: SessionId(5),
            secret: Secret([9; 32]),
            base: Located {
                owner: OwnerId(3),
                epoch: Epoch(5),
                address: ([127, 0, 0, 1], 1_000).into(),
                certificate: None,
            },
        };
        let (attempt, answer) = (table.attempt, Some(LoginAnswer::Ticket(ticket)));
        table.core.handle(Millis(0), Input::LoginAnswered { attempt, answer });
        table.listen();
        table.greet(movements);
        table.show(1);
        table
    }

    /// Connects, and is welcomed.
    fn greet(&mut self, movements: Movements) {
        let attempt = self.attempt;
        self.core.handle(Millis(0), Input::Connected { attempt });
        let Some(Output::Frame(hello)) = self.core.poll_output() else {
            panic!("the first thing said is a hello");
        };
        self.reads = Some(Hello::read(&hello).unwrap().reads);
        let welcome = HelloAnswer::Welcome(Welcome {
            session: SessionId(5),
            epoch: Epoch(5),
            entity: OWN,
            type_id: TypeId(0),
            token: Secret([1; 32]),
            movements,
        });
        let mut body = Vec::new();
        welcome.write(&mut body);
        self.core.handle(Millis(0), Input::Frame { attempt, body });
        self.listen();
    }

    /// The first frame of a view of the cell: both entities are in it.
    fn show(&mut self, view: u64) {
        let enter = |entity| ViewItem::Enter {
            entity,
            type_id: TypeId(0),
            place: Some((at(0.0), Direction::default())),
        };
        let frame = ToClient::View(ViewFrame {
            source: Part::Cell,
            view,
            sequence: 1,
            tick: Tick(100),
            items: vec![enter(OWN), enter(OTHER)],
        });
        let (mut body, attempt) = (Vec::new(), self.attempt);
        frame.write(&mut body);
        self.core.handle(Millis(0), Input::Frame { attempt, body });
        self.listen();
    }

    fn listen(&mut self) {
        while let Some(output) = self.core.poll_output() {
            match output {
                Output::Login { attempt, .. } | Output::Connect { attempt, .. } => self.attempt = attempt,
                Output::Datagram(bytes) => match ToServerDatagram::read(&bytes).unwrap() {
                    ToServerDatagram::MovementAck { view, ack } => self.acks.push((view, ack)),
                    other => panic!("no entity moves here: {other:?}"),
                },
                _ => {}
            }
        }
    }

    fn written(&mut self, tick: u64, motions: &[Motion]) -> Vec<u8> {
        let sent = self.writer.write(Tick(tick), at(0.0), motions, MAX_DATAGRAM);
        assert_eq!(sent.movements, motions.len());
        sent.datagram.unwrap()
    }

    fn receive(&mut self, bytes: Vec<u8>) {
        let attempt = self.attempt;
        self.core.handle(self.now, Input::Datagram { attempt, bytes });
        self.listen();
    }

    /// Lets an acknowledgement that waits for others leave alone.
    fn wait(&mut self) {
        self.now = self.now.after(150);
        self.core.tick(self.now);
        self.listen();
    }

    fn place(&self, entity: EntityId) -> (Position, Direction) {
        self.core.entity(entity).unwrap().place.unwrap()
    }

    /// Whether the other entity is at `x`, with the precision of movements so near.
    fn is_at(&self, x: f32) -> bool {
        let (position, _) = self.place(OTHER);
        let near = |one: f32, other: f32| (one - other).abs() < 0.05;
        near(position.x, x) && near(position.z, -3.0) && near(position.y, 2.0)
    }
}

#[test]
fn predicted_movements_are_read_and_acknowledged() {
    let mut table = Table::playing(None, Movements::Predicted(packing()));
    assert_eq!(table.reads, Some(Reads::Predicted));
    for step in 1..=20u8 {
        let x = f32::from(step) / 4.0;
        let bytes = table.written(100 + u64::from(step), &[moved(OTHER, x)]);
        table.receive(bytes);
        assert!(table.is_at(x), "{:?} instead of {x}", table.place(OTHER));
        table.wait();
        let (view, ack) = *table.acks.last().unwrap();
        assert_eq!((view, ack.tick), (1, 100 + u16::from(step)));
        table.writer.acknowledge(ack.tick, ack.before);
    }
    assert_eq!(table.acks.len(), 20);
    assert_eq!(table.core.counters().malformed, 0);
}

#[test]
fn the_newest_movement_wins_and_duplicates_and_other_views_are_ignored() {
    let mut table = Table::playing(None, Movements::Predicted(packing()));
    let older = table.written(101, &[moved(OTHER, 1.0)]);
    let newer = table.written(102, &[moved(OTHER, 2.0), moved(OWN, 9.0)]);
    table.receive(newer.clone());
    table.receive(older);
    assert!(table.is_at(2.0));
    assert_eq!(table.place(OWN).0, at(0.0), "its own entity the client moves itself");
    let before = table.core.counters().stale;
    table.receive(newer);
    let mut other = VolatileWriter::new(2, packing());
    let of_another = other.write(Tick(103), at(0.0), &[moved(OTHER, 3.0)], MAX_DATAGRAM);
    table.receive(of_another.datagram.unwrap());
    assert_eq!(table.core.counters().stale, before + 2);
    assert!(table.is_at(2.0));
    let mut cut = table.written(104, &[moved(OTHER, 4.0)]);
    cut.truncate(5);
    table.receive(cut);
    assert_eq!(table.core.counters().malformed, 1);
    table.wait();
    let (view, ack) = *table.acks.last().unwrap();
    assert_eq!((view, ack.tick, ack.before), (1, 102, 1), "each datagram once");
    assert_eq!(table.acks.len(), 1);
}

#[test]
fn an_acknowledgement_leaves_behind_what_the_client_sends_next_or_after_a_moment() {
    let mut table = Table::playing(None, Movements::Predicted(packing()));
    let sent = |table: &mut Table| {
        let datagrams = std::iter::from_fn(|| table.core.poll_output()).map(|output| match output {
            Output::Datagram(bytes) => ToServerDatagram::read(&bytes).unwrap(),
            other => panic!("no datagram: {other:?}"),
        });
        let acked = datagrams.map(|datagram| match datagram {
            ToServerDatagram::MovementAck { ack, .. } => Some((ack.tick, ack.before)),
            _ => None,
        });
        acked.collect::<Vec<_>>()
    };
    for (tick, x) in [(101, 1.0), (102, 2.0)] {
        let bytes = table.written(tick, &[moved(OTHER, x)]);
        table.receive(bytes);
    }
    assert_eq!(table.core.deadline(), Some(Millis(150)));
    assert!(table.core.move_to(table.now, at(1.0), Direction::default()));
    assert_eq!(sent(&mut table), [None, Some((102, 1))]);
    assert!(table.core.move_to(table.now, at(2.0), Direction::default()));
    assert_eq!(sent(&mut table), [None], "it was sent");
    let bytes = table.written(103, &[moved(OTHER, 3.0)]);
    table.receive(bytes);
    table.core.tick(Millis(149));
    assert_eq!(sent(&mut table), []);
    table.core.tick(Millis(150));
    assert_eq!(sent(&mut table), [Some((103, 3))]);
}

#[test]
fn a_view_that_is_not_continued_is_not_acknowledged() {
    let restart = |table: &mut Table| {
        let (mut body, attempt) = (Vec::new(), table.attempt);
        ToClient::StampsWanted { source: Part::Cell }.write(&mut body);
        table.core.handle(table.now, Input::Frame { attempt, body });
    };
    let lose = |table: &mut Table| {
        let (attempt, reason) = (table.attempt, CloseReason::Lost);
        table.core.handle(table.now, Input::Disconnected { attempt, reason });
    };
    for end in [restart, lose] {
        let mut table = Table::playing(None, Movements::Predicted(packing()));
        let bytes = table.written(101, &[moved(OTHER, 1.0)]);
        table.receive(bytes);
        end(&mut table);
        table.listen();
        table.wait();
        assert!(table.acks.is_empty());
    }
}

#[test]
fn positions_without_updates_stay() {
    let mut table = Table::playing(None, Movements::Predicted(packing()));
    let bytes = table.written(101, &[moved(OTHER, 1.0)]);
    table.receive(bytes);
    let (position, direction) = table.place(OTHER);
    assert!((direction.yaw - 0.5).abs() < 0.02);
    let only = |placing, facing| Motion {
        entity: OTHER,
        placing,
        facing,
    };
    let bytes = table.written(102, &[only(Placing::Unsaid, Facing::YawPitch(1.0, 0.25))]);
    table.receive(bytes);
    let (still, turned) = table.place(OTHER);
    assert_eq!(still, position);
    assert!((turned.yaw - 1.0).abs() < 0.02 && (turned.pitch - 0.25).abs() < 0.02);
    let bytes = table.written(103, &[only(Placing::Ground(at(4.0)), Facing::Unsaid)]);
    table.receive(bytes);
    let (walked, looks) = table.place(OTHER);
    assert_eq!((looks, walked.y), (turned, position.y));
    assert!((walked.x - 4.0).abs() < 0.05);
}

#[test]
fn a_client_of_plain_movements_declares_it_and_ignores_predicted_ones() {
    let mut table = Table::playing(Some(Reads::Plain), Movements::Plain);
    assert_eq!(table.reads, Some(Reads::Plain));
    let bytes = table.written(101, &[moved(OTHER, 1.0)]);
    table.receive(bytes);
    assert_eq!(table.place(OTHER).0, at(0.0));
    assert!(table.acks.is_empty());
}

#[test]
fn plain_movements_are_read_in_every_mode() {
    let mut table = Table::playing(None, Movements::Predicted(packing()));
    let moves = Moves {
        view: 1,
        tick: Tick(101),
        moves: vec![Move {
            entity: OTHER,
            position: at(6.0),
            direction: Direction::default(),
        }],
    };
    for bytes in moves.datagrams() {
        table.receive(bytes);
    }
    assert_eq!(table.place(OTHER).0, at(6.0));
}

#[test]
fn each_view_begins_empty() {
    let mut table = Table::playing(None, Movements::Predicted(packing()));
    let bytes = table.written(101, &[moved(OTHER, 1.0)]);
    table.receive(bytes);
    let wanted = ToClient::StampsWanted { source: Part::Cell };
    let (mut body, attempt) = (Vec::new(), table.attempt);
    wanted.write(&mut body);
    table.core.handle(Millis(0), Input::Frame { attempt, body });
    table.listen();
    let late = table.written(102, &[moved(OTHER, 2.0)]);
    table.receive(late);
    assert!(table.is_at(1.0), "the view it was of has ended");
    table.show(2);
    table.writer = VolatileWriter::new(2, packing());
    let bytes = table.written(103, &[moved(OTHER, 3.0)]);
    table.receive(bytes);
    assert!(table.is_at(3.0));
    table.wait();
    let (view, ack) = *table.acks.last().unwrap();
    assert_eq!((view, ack.tick, ack.before), (2, 103, 0));
}
