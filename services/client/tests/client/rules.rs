//! The client's rules one by one, on frames written by hand.

mod downloads;
mod moving;
mod queue;
mod sent_moves;

use std::{net::SocketAddr, sync::Arc};

use annals_client::{
    Attempt, CallError, ClientCore, Credentials, EndReason, Event, Input, MAX_KEPT_CALLS, Millis, Output,
};
use annals_def::{Argument, DataType, Distribution, EntityType, Exposure, Method, Property, Schema, Value, split_mix};
use annals_ids::{
    CallNumber, Direction, EntityId, Epoch, Hash, HistoryNumber, OwnerId, Part, Position, SessionId, Tick, TypeId,
};
use annals_wire::client::{
    Call, CloseReason, Hello, HelloAnswer, Located, LoginAnswer, LoginRefusal, LoginRequest, MAX_STAMPS, Move,
    Movements, Moves, Proof, Rejection, Secret, Stamps, Ticket, ToClient, ToServer, ToServerDatagram, ViewFrame,
    ViewItem, Welcome,
};

const OWN: EntityId = EntityId(7);
const OTHER: EntityId = EntityId(8);
/// Message ids: of a gap, of the one property, of the one client method.
const GAP: u8 = 2;
const HEALTH: u8 = 3;
const SAY: u8 = 4;
const PLACE: (Position, Direction) = (
    Position { x: 0.0, y: 0.0, z: 0.0 },
    Direction {
        yaw: 0.0,
        pitch: 0.0,
        roll: 0.0,
    },
);

fn schema() -> Arc<Schema> {
    let mut avatar = EntityType::new("Avatar");
    avatar.properties = vec![Property::new("health", DataType::Int32, Distribution::AllClients)];
    let mut hit = Method::new("hit", vec![Argument::new("text", DataType::String)]);
    hit.exposed = Exposure::AllClients;
    avatar.cell_methods = vec![hit];
    avatar.client_methods = vec![Method::new("say", vec![Argument::new("text", DataType::Unicode)])];
    Arc::new(Schema::new(vec![avatar], Vec::new(), Vec::new()))
}

fn address(port: u16) -> SocketAddr {
    ([127, 0, 0, 1], port).into()
}

fn located(epoch: u64) -> Located {
    Located {
        owner: OwnerId(3),
        epoch: Epoch(epoch),
        address: address(1_000),
        certificate: Some(Hash([1; 32])),
    }
}

fn welcome(epoch: u64, token: u8) -> HelloAnswer {
    welcome_with(epoch, token, Movements::Plain)
}

/// A welcome that names the encoding of movements.
fn welcome_with(epoch: u64, token: u8, movements: Movements) -> HelloAnswer {
    let (session, token) = (SessionId(5), Secret([token; 32]));
    HelloAnswer::Welcome(Welcome {
        session,
        epoch: Epoch(epoch),
        entity: OWN,
        type_id: TypeId(0),
        token,
        movements,
    })
}

/// A core whose inputs are written by hand.
struct Table {
    core: ClientCore,
    now: Millis,
    attempt: Attempt,
    /// The connection that is prepared beside the present one.
    beside: Attempt,
}

/// The core's outputs, with their frames decoded.
#[derive(Debug, PartialEq)]
enum Asked {
    Login(LoginRequest),
    Connect(SocketAddr),
    Prepare(SocketAddr),
    Switch,
    Abandon,
    Hello(Hello),
    Frame(ToServer),
    Datagram(ToServerDatagram),
    Disconnect(CloseReason),
}

impl Table {
    fn new() -> Self {
        let credentials = Credentials::password("Ann", "secret");
        let mut core = ClientCore::new(schema(), credentials, 1);
        core.start(Millis(0));
        Self {
            core,
            now: Millis(0),
            attempt: Attempt(0),
            beside: Attempt(0),
        }
    }

    /// A client that plays under epoch 5, with both its views started as number 1.
    fn playing() -> Self {
        let mut table = Self::new();
        table.asked();
        let (session, secret) = (SessionId(5), Secret([9; 32]));
        let ticket = Ticket {
            session,
            secret,
            base: located(5),
        };
        table.login(Some(LoginAnswer::Ticket(ticket)));
        table.asked();
        table.connect();
        table.greet(&welcome(5, 1));
        table.asked();
        table.events();
        table
    }

    /// A client that sees itself and another entity, both shown up to number 10.
    fn seeing() -> Self {
        let mut table = Self::playing();
        let items = [OWN, OTHER]
            .into_iter()
            .flat_map(|entity| [enter(entity), refresh(entity, 10, 100)]);
        table.show(1, 1, items.collect());
        table.events();
        table
    }

    fn asked(&mut self) -> Vec<Asked> {
        let greets = !self.core.is_playing();
        let mut asked = Vec::new();
        while let Some(output) = self.core.poll_output() {
            asked.push(match output {
                Output::Login { attempt, request } => {
                    self.attempt = attempt;
                    Asked::Login(request)
                }
                Output::Connect { attempt, address, .. } => {
                    self.attempt = attempt;
                    Asked::Connect(address)
                }
                Output::Prepare { attempt, address, .. } => {
                    self.beside = attempt;
                    Asked::Prepare(address)
                }
                Output::Greet(body) => Asked::Hello(Hello::read(&body).unwrap()),
                Output::Switch => {
                    self.attempt = self.beside;
                    Asked::Switch
                }
                Output::Abandon => Asked::Abandon,
                Output::Frame(body) if greets => Asked::Hello(Hello::read(&body).unwrap()),
                Output::Frame(body) => Asked::Frame(ToServer::read(&body).unwrap()),
                Output::Datagram(bytes) => Asked::Datagram(ToServerDatagram::read(&bytes).unwrap()),
                Output::Disconnect(reason) => Asked::Disconnect(reason),
            });
        }
        asked
    }

    fn frames(&mut self) -> Vec<ToServer> {
        let frame = |asked| match asked {
            Asked::Frame(frame) => frame,
            other => panic!("not a frame: {other:?}"),
        };
        self.asked().into_iter().map(frame).collect()
    }

    fn calls(&mut self) -> Vec<u64> {
        let number = |frame| match frame {
            ToServer::Call(Call { number, .. }) => number.0,
            other => panic!("not a call: {other:?}"),
        };
        self.frames().into_iter().map(number).collect()
    }

    fn events(&mut self) -> Vec<Event> {
        std::iter::from_fn(|| self.core.poll_event()).collect()
    }

    fn login(&mut self, answer: Option<LoginAnswer>) {
        self.core.handle(
            self.now,
            Input::LoginAnswered {
                attempt: self.attempt,
                answer,
            },
        );
    }

    fn connect(&mut self) {
        self.core.handle(self.now, Input::Connected { attempt: self.attempt });
        self.asked();
    }

    fn greet(&mut self, answer: &HelloAnswer) {
        let mut body = Vec::new();
        answer.write(&mut body);
        self.core.handle(
            self.now,
            Input::Frame {
                attempt: self.attempt,
                body,
            },
        );
    }

    fn say(&mut self, frame: &ToClient) {
        let mut body = Vec::new();
        frame.write(&mut body);
        self.core.handle(
            self.now,
            Input::Frame {
                attempt: self.attempt,
                body,
            },
        );
    }

    fn show(&mut self, view: u64, sequence: u64, items: Vec<ViewItem>) {
        let frame = ViewFrame {
            source: Part::Cell,
            view,
            sequence,
            tick: Tick(sequence),
            items,
        };
        self.say(&ToClient::View(frame));
    }

    fn moves(&mut self, view: u64, tick: u64, entity: EntityId, x: f32) {
        let (position, direction) = (Position { x, y: 0.0, z: 0.0 }, Direction::default());
        let moves = Moves {
            view,
            tick: Tick(tick),
            moves: vec![Move {
                entity,
                position,
                direction,
            }],
        };
        for bytes in moves.datagrams() {
            self.core.handle(
                self.now,
                Input::Datagram {
                    attempt: self.attempt,
                    bytes,
                },
            );
        }
    }

    fn x(&self, entity: EntityId) -> f32 {
        self.core.entity(entity).unwrap().place.unwrap().0.x
    }

    fn hit(&mut self, bytes: usize) -> Result<CallNumber, CallError> {
        self.core
            .call(self.now, OTHER, Part::Cell, "hit", &[Value::Bytes(vec![b'x'; bytes])])
    }

    fn lose(&mut self, reason: CloseReason) {
        self.core.handle(
            self.now,
            Input::Disconnected {
                attempt: self.attempt,
                reason,
            },
        );
    }

    fn wait(&mut self, milliseconds: u64) {
        self.now = self.now.after(milliseconds);
        self.core.tick(self.now);
    }

    /// Moves its own entity.
    fn walk(&mut self, x: f32) {
        let position = Position { x, y: 0.0, z: 0.0 };
        assert!(self.core.move_to(self.now, position, Direction::default()));
    }
}

fn enter(entity: EntityId) -> ViewItem {
    ViewItem::Enter {
        entity,
        type_id: TypeId(0),
        place: Some(PLACE),
    }
}

fn refresh(entity: EntityId, upto: u64, health: i32) -> ViewItem {
    let mut properties = vec![HEALTH];
    properties.extend(health.to_le_bytes());
    ViewItem::Refresh {
        entity,
        upto: HistoryNumber(upto),
        level: 0,
        properties,
    }
}

fn update(entity: EntityId, from: u64, upto: u64, value: Vec<u8>) -> ViewItem {
    let gap = upto.saturating_sub(from + 1).to_le_bytes()[0];
    let mut events = if gap > 0 { vec![GAP, gap] } else { Vec::new() };
    events.push(HEALTH);
    events.extend(value);
    let (from, upto) = (HistoryNumber(from), HistoryNumber(upto));
    ViewItem::Update {
        entity,
        from,
        upto,
        events,
    }
}

fn stamps(view: u64, known: &[(EntityId, u64)]) -> ToServer {
    let known = known
        .iter()
        .map(|&(entity, upto)| (entity, HistoryNumber(upto)))
        .collect();
    ToServer::Stamps(Stamps {
        source: Part::Cell,
        view,
        known,
    })
}

#[test]
fn an_update_out_of_sequence_restarts_the_view() {
    for (what, from) in [("something is missing before it", 11), ("it goes back", 9)] {
        let mut table = Table::seeing();
        table.show(
            1,
            2,
            vec![update(OTHER, from, 12, vec![0; 4]), update(OWN, 10, 11, vec![0; 4])],
        );
        assert_eq!(table.frames(), [stamps(2, &[(OWN, 10), (OTHER, 10)])], "{what}");
        assert_eq!(table.events(), [], "{what}: no part of it is shown");
    }
}

#[test]
fn a_frame_out_of_sequence_restarts_the_view() {
    for sequence in [1, 3] {
        let mut table = Table::seeing();
        table.show(1, sequence, Vec::new());
        assert_eq!(
            table.frames(),
            [stamps(2, &[(OWN, 10), (OTHER, 10)])],
            "frame {sequence} after 1"
        );
        // Nothing of the former view counts any more.
        table.show(1, 2, vec![ViewItem::Leave { entity: OTHER }]);
        assert_eq!((table.frames(), table.events()), (vec![], vec![]));
        assert_eq!(table.core.counters().stale, 1);
        table.show(2, 1, vec![ViewItem::Leave { entity: OTHER }]);
        assert_eq!(
            table.events(),
            [Event::Left {
                part: Part::Cell,
                entity: OTHER
            }]
        );
    }
}

#[test]
fn an_undecodable_update_removes_its_entity_and_restarts_the_view() {
    let bad_method = vec![SAY, 1, 0xff];
    let (from, upto) = (HistoryNumber(10), HistoryNumber(11));
    let cases = [
        update(OTHER, 10, 11, vec![1, 2, 3]),
        ViewItem::Update {
            entity: OTHER,
            from,
            upto,
            events: bad_method,
        },
        ViewItem::Refresh {
            entity: OTHER,
            upto,
            level: 0,
            properties: vec![99],
        },
    ];
    for item in cases {
        let mut table = Table::seeing();
        table.show(1, 2, vec![item.clone()]);
        assert_eq!(table.frames(), [stamps(2, &[(OWN, 10)])], "{item:?}");
        assert_eq!(
            table.events(),
            [Event::Left {
                part: Part::Cell,
                entity: OTHER
            }],
            "{item:?}"
        );
    }
}

#[test]
fn a_view_without_frames_is_restarted_with_backoff() {
    let mut table = Table::playing();
    let mut begun = Vec::new();
    for _ in 0..300 {
        table.wait(100);
        begun.extend(table.frames().iter().filter_map(|frame| match frame {
            ToServer::Stamps(stamps) if stamps.source == Part::Cell => Some((stamps.view, table.now.0)),
            _ => None,
        }));
    }
    assert_eq!(begun, [(2, 2_000), (3, 6_000), (4, 14_000), (5, 22_000), (6, 30_000)]);
    // Once it follows, it may be silent for 20 s.
    table.show(6, 1, Vec::new());
    table.wait(19_900);
    table.frames();
    table.wait(200);
    assert!(table.frames().contains(&stamps(7, &[])));
}

#[test]
fn the_farthest_entities_are_dropped_above_the_limit() {
    let mut table = Table::playing();
    let far = |i: u64| {
        let x = f32::from(u16::try_from(i).unwrap());
        let place = Some((Position { x, y: 0.0, z: 0.0 }, Direction::default()));
        ViewItem::Enter {
            entity: EntityId(OWN.0 + i),
            type_id: TypeId(0),
            place,
        }
    };
    table.show(1, 1, (0..MAX_STAMPS as u64 + 5).map(far).collect());
    table.events();
    table.say(&ToClient::StampsWanted { source: Part::Cell });
    let frames = table.frames();
    let [ToServer::Stamps(stamps)] = &frames[..] else {
        panic!("stamps are sent: {frames:?}");
    };
    assert_eq!(stamps.known.seen.len(), MAX_STAMPS);
    assert_eq!(
        stamps.known.seen.last().unwrap().entity,
        EntityId(OWN.0 + MAX_STAMPS as u64 - 1)
    );
    assert_eq!(table.events().len(), 5, "the game is notified");
}

#[test]
fn the_newest_movement_wins_and_the_own_entity_ignores_movements() {
    let mut table = Table::seeing();
    table.moves(1, 20, OTHER, 2.0);
    table.moves(1, 19, OTHER, 1.0);
    assert_eq!(table.x(OTHER), 2.0);
    table.moves(2, 30, OTHER, 3.0);
    assert_eq!(table.x(OTHER), 2.0, "of another view");
    table.moves(1, 21, OWN, 5.0);
    assert_eq!(table.x(OWN), 0.0);
    table.walk(4.0);
    assert_eq!(table.x(OWN), 4.0);
    let (position, direction) = PLACE;
    table.show(
        1,
        2,
        vec![ViewItem::Placed {
            entity: OWN,
            position,
            direction,
        }],
    );
    assert_eq!(table.x(OWN), 0.0, "the server has the last word");
}

#[test]
fn another_entity_begins_with_empty_views() {
    let mut table = Table::seeing();
    table.say(&ToClient::Reset {
        entity: OTHER,
        type_id: TypeId(0),
    });
    let begun = table.frames();
    assert_eq!(begun[1], stamps(2, &[]), "{begun:?}");
    assert_eq!(begun.len(), 2);
    assert!(table.events().contains(&Event::Controls {
        entity: OTHER,
        type_id: TypeId(0)
    }));
    assert!(table.core.view(Part::Cell).entities().is_empty());
}

#[test]
fn calls_are_sent_in_a_window_and_resent_until_confirmed() {
    let mut table = Table::seeing();
    for number in 1..=40 {
        assert_eq!(table.hit(1), Ok(CallNumber(number)));
    }
    assert_eq!(table.calls(), (1..=32).collect::<Vec<_>>());
    table.say(&ToClient::Took {
        entity: OTHER,
        part: Part::Cell,
        upto: CallNumber(30),
    });
    assert_eq!(table.calls(), (33..=40).collect::<Vec<_>>());
    let mut sent = Vec::new();
    for _ in 0..200 {
        table.wait(100);
        let frames = table.frames();
        sent.extend(
            frames
                .iter()
                .any(|frame| matches!(frame, ToServer::Call(_)))
                .then_some(table.now.0),
        );
    }
    assert_eq!(sent, [500, 1_500, 3_500, 7_500, 15_500]);
    table.say(&ToClient::Took {
        entity: OTHER,
        part: Part::Cell,
        upto: CallNumber(u64::MAX >> 1),
    });
    assert_eq!(table.core.unconfirmed_calls(), 0);
    assert_eq!(table.hit(1), Ok(CallNumber(41)), "numbers go on");
}

#[test]
fn the_oldest_unconfirmed_call_is_marked() {
    let mut table = Table::seeing();
    let marked = |table: &mut Table| -> Vec<(u64, bool)> {
        let mark = |frame| match frame {
            ToServer::Call(Call { number, is_oldest, .. }) => (number.0, is_oldest),
            other => panic!("not a call: {other:?}"),
        };
        table.frames().into_iter().map(mark).collect()
    };
    for _ in 0..3 {
        table.hit(1).unwrap();
    }
    assert_eq!(marked(&mut table), [(1, true), (2, false), (3, false)]);
    let (entity, part) = (OTHER, Part::Cell);
    let upto = CallNumber(1);
    table.say(&ToClient::Took { entity, part, upto });
    table.wait(500);
    assert_eq!(marked(&mut table), [(2, true), (3, false)], "resent");
    let upto = CallNumber(3);
    table.say(&ToClient::Took { entity, part, upto });
    table.hit(1).unwrap();
    assert_eq!(marked(&mut table), [(4, true)]);
}

#[test]
fn a_gap_is_answered_once_for_all_requests() {
    let mut table = Table::seeing();
    for _ in 0..5 {
        table.hit(1).unwrap();
    }
    table.calls();
    let gap = ToClient::Gap {
        entity: OTHER,
        part: Part::Cell,
        have: CallNumber(2),
    };
    table.say(&gap);
    assert_eq!(table.calls(), [3, 4, 5]);
    table.say(&gap);
    assert_eq!(table.calls(), [] as [u64; 0]);
    table.say(&ToClient::Gone {
        entity: OTHER,
        part: Part::Cell,
    });
    let numbers = vec![CallNumber(3), CallNumber(4), CallNumber(5)];
    assert_eq!(
        table.events(),
        [Event::CallsLost {
            entity: OTHER,
            part: Part::Cell,
            numbers
        }]
    );
    // A further cell part of the entity continues the numbers: with lower ones, calls would be taken for repetitions.
    table.hit(1).unwrap();
    assert_eq!(table.calls(), [6]);
}

#[test]
fn calls_without_confirmation_are_bounded() {
    let mut table = Table::seeing();
    for _ in 0..MAX_KEPT_CALLS {
        table.hit(1).unwrap();
    }
    assert_eq!(table.hit(1), Err(CallError::TooManyKept));
    let mut table = Table::seeing();
    table.hit(60_000).unwrap();
    assert_eq!(table.hit(60_000), Err(CallError::TooManyKept));
    assert!(matches!(table.hit(70_000), Err(CallError::TooLong { .. })));
}

#[test]
fn the_client_leaves_a_base_of_a_lower_epoch() {
    let mut table = Table::seeing();
    table.lose(CloseReason::Lost);
    assert!(matches!(
        table.asked()[..],
        [Asked::Login(LoginRequest::Locate {
            owner: OwnerId(3),
            session: SessionId(5)
        })]
    ));
    assert_eq!(table.events(), [Event::Lost(CloseReason::Lost)]);
    table.login(Some(LoginAnswer::Located(located(6))));
    table.asked();
    table.connect();
    table.greet(&welcome(5, 2));
    assert_eq!(table.asked(), [Asked::Disconnect(CloseReason::Moved)]);
    assert!(!table.core.is_playing());
    assert_eq!((table.events(), table.core.counters().old_epochs), (vec![], 1));
    // Nor is a login service trusted that knows an older holder only.
    table.wait(10_000);
    table.asked();
    table.login(Some(LoginAnswer::Located(located(5))));
    assert_eq!(table.asked(), []);
    table.wait(10_000);
    table.asked();
    table.login(Some(LoginAnswer::Located(located(6))));
    assert_eq!(table.asked(), [Asked::Connect(address(1_000))]);
    table
        .core
        .handle(table.now, Input::Connected { attempt: table.attempt });
    let [Asked::Hello(hello)] = &table.asked()[..] else {
        panic!("it greets");
    };
    assert_eq!((hello.epoch, &hello.proof), (Epoch(6), &Proof::Resume(Secret([1; 32]))));
    table.greet(&welcome(6, 3));
    let frames = table.frames();
    assert_eq!(frames[1], stamps(2, &[(OWN, 10), (OTHER, 10)]));
    assert_eq!(table.events(), [Event::Resumed { epoch: Epoch(6) }]);
}

#[test]
fn answers_to_abandoned_attempts_are_ignored() {
    let mut table = Table::seeing();
    let before = table.attempt;
    table.lose(CloseReason::TooSlow);
    table.asked();
    table.events();
    let mut body = Vec::new();
    ToClient::RateWarned.write(&mut body);
    table.core.handle(table.now, Input::Frame { attempt: before, body });
    table.core.handle(
        table.now,
        Input::Disconnected {
            attempt: before,
            reason: CloseReason::Ended,
        },
    );
    table.core.handle(
        table.now,
        Input::LoginAnswered {
            attempt: before,
            answer: None,
        },
    );
    assert_eq!((table.asked(), table.events()), (vec![], vec![]));
}

#[test]
fn permanent_close_reasons_end_the_client() {
    for reason in CloseReason::ALL {
        let mut table = Table::seeing();
        table.lose(reason);
        let ended = table.events() == [Event::Ended(EndReason::Closed(reason))];
        let resumes = matches!(table.asked()[..], [Asked::Login(LoginRequest::Locate { .. })]);
        assert!(ended != resumes, "{reason:?}");
        assert_eq!(ended, table.core.deadline().is_none(), "{reason:?}");
    }
    let mut table = Table::playing();
    table.lose(CloseReason::Lost);
    table.asked();
    table.login(Some(LoginAnswer::Located(located(5))));
    table.asked();
    table.connect();
    table.events();
    table.greet(&HelloAnswer::Rejected(Rejection::UnknownSession));
    assert_eq!(
        table.events(),
        [Event::Ended(EndReason::Rejected(Rejection::UnknownSession))]
    );
}

#[test]
fn a_used_ticket_leads_to_another_log_in() {
    let mut table = Table::new();
    table.asked();
    let (session, secret) = (SessionId(5), Secret([9; 32]));
    table.login(Some(LoginAnswer::Ticket(Ticket {
        session,
        secret,
        base: located(5),
    })));
    table.asked();
    table.connect();
    table.greet(&HelloAnswer::Rejected(Rejection::UnknownSession));
    table.wait(10_000);
    let asked = table.asked();
    assert!(
        matches!(asked.last(), Some(Asked::Login(LoginRequest::LogIn { .. }))),
        "{asked:?}"
    );
}

#[test]
fn a_log_in_refused_for_a_temporary_reason_is_retried() {
    for reason in LoginRefusal::ALL {
        let mut table = Table::new();
        table.asked();
        table.login(Some(LoginAnswer::Refused(reason)));
        let ended = table.events() == [Event::Ended(EndReason::LoginRefused(reason))];
        table.wait(59_000);
        let soon = table.asked().len();
        table.wait(1_000);
        let late = table.asked().len();
        let expected = match reason {
            LoginRefusal::Busy | LoginRefusal::NotHeld => (false, 1),
            LoginRefusal::Throttled => (false, 0),
            _ => (true, 0),
        };
        assert_eq!((ended, soon), expected, "{reason:?}");
        assert_eq!(late == 1, reason == LoginRefusal::Throttled, "{reason:?}");
    }
}

#[test]
fn the_client_does_not_panic_on_arbitrary_bytes() {
    for seed in 0..3_000 {
        let mut dice = split_mix(seed);
        let mut table = Table::seeing();
        for _ in 0..8 {
            let length = dice() % 40;
            let mut body: Vec<u8> = (0..length).map(|_| (dice() >> (dice() % 8)).to_le_bytes()[0]).collect();
            if dice().is_multiple_of(2) {
                // A view frame that belongs here reaches further code.
                let sequence = u8::try_from(2 + dice() % 3).unwrap();
                let head = [5, 1, 1, sequence, 9, 1 + (dice() % 3) as u8, 1 + (dice() % 5) as u8, 8];
                body.splice(0..0, head);
            }
            let attempt = table.attempt;
            let input = if dice().is_multiple_of(5) {
                Input::Datagram { attempt, bytes: body }
            } else {
                Input::Frame { attempt, body }
            };
            table.core.handle(table.now, input);
            while table.core.poll_output().is_some() {}
            table.events();
            table.wait(dice() % 3_000);
        }
    }
}
