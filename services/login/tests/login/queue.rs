//! The queue of a realm that is full, against a director that counts.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use annals_def::split_mix;
use annals_ids::{DatabaseId, OwnerId, SessionId};
use annals_login::{
    Authenticated, Host, Input, MAX_WAITING, NEWS_AT_LEAST, NEWS_EVERY, Opened, Output, PLACE_KEPT, Placed, ROOM_EVERY,
    RoomId, Unavailable, Verdict,
};
use annals_node::ConnectionId;
use annals_wire::client::{LoginAnswer, LoginRefusal, Queued};

use crate::{Bench, HERE, HOST, THERE, ask_of, checkout, located, log_in, log_in_from, refused};

/// The verdict for the account of this number.
fn good(account: u64) -> Verdict {
    Verdict::Good(Authenticated {
        account: DatabaseId(account),
        name: account.to_string(),
        waits: true,
    })
}

fn room(owner: OwnerId) -> Result<Placed, Unavailable> {
    Ok(Placed::Base {
        base: located(owner, 1),
        is_limited: true,
    })
}

fn queued(connection: u64, position: u64, length: u64) -> Output {
    Output::Queued {
        connection: ConnectionId(connection),
        queued: Queued { position, length },
    }
}

impl Bench {
    /// A client with right credentials; the core's next request.
    fn comes(&mut self, connection: u64, account: u64) -> Vec<Output> {
        let ask = ask_of(&self.one(log_in(connection, &account.to_string())));
        self.give(Input::Verified(ask, Ok(good(account))))
    }

    /// A client that comes to a full realm, without a session of its account.
    fn queues(&mut self, connection: u64, account: u64) -> Vec<Output> {
        let mut outputs = self.comes(connection, account);
        while let [Output::Place { ask, .. }] = outputs[..] {
            outputs = self.give(Input::Placed(ask, Ok(Placed::Full)));
        }
        let [Output::LookUp { ask, .. }] = outputs[..] else {
            return outputs;
        };
        self.give(Input::LookedUp(ask, Ok(None)))
    }

    /// The first client of the queue asks for room.
    fn asks_for_room(&mut self) -> (annals_login::AskId, annals_login::Wish) {
        self.now = self.now.after(ROOM_EVERY);
        let outputs = self.give(Input::Time);
        let mut asks = outputs.iter().filter_map(|output| match output {
            Output::Place { ask, wish } => Some((*ask, *wish)),
            _ => None,
        });
        asks.next().unwrap_or_else(|| panic!("{outputs:?}"))
    }
}

#[test]
fn a_client_waits_receives_its_position_and_is_admitted_in_its_turn() {
    let mut bench = Bench::new();
    let outputs = bench.queues(1, 11);
    let [position, Output::Place { ask, wish }] = &outputs[..] else {
        panic!("{outputs:?}")
    };
    assert_eq!(*position, queued(1, 1, 1));
    assert_eq!((wish.waited, wish.waiting), (Some(Duration::ZERO), 1));
    assert_eq!(bench.give(Input::Placed(*ask, Ok(Placed::Full))), []);
    // The next one asks for no room as long as somebody waits.
    assert_eq!(bench.queues(2, 12), [queued(2, 2, 2)]);
    assert_eq!((bench.login.waiting(), bench.login.attempts()), (2, 0));
    let (ask, wish) = bench.asks_for_room();
    assert_eq!(wish.waited, Some(ROOM_EVERY));
    let outputs = bench.give(Input::Placed(ask, room(HERE)));
    let [Output::CheckOut { ask, account, .. }, Output::Place { ask: next, .. }] = outputs[..] else {
        panic!("{outputs:?}")
    };
    assert_eq!(account, DatabaseId(11), "the password is not verified again");
    assert_eq!(bench.give(Input::Placed(next, Ok(Placed::Full))), []);
    let open = ask_of(&bench.one(Input::CheckedOut(ask, Ok(checkout(HERE, 1)))));
    let session = SessionId(7);
    let epoch = annals_ids::Epoch(1);
    let outputs = bench.give(Input::Opened(open, Ok(Opened::Session { session, epoch })));
    let settled = Output::Settle {
        room: wish.room,
        session: Some((HERE, session)),
    };
    assert_eq!(outputs[0], settled, "the director counts the session instead");
    assert!(matches!(
        outputs[1],
        Output::Answer {
            answer: LoginAnswer::Ticket(_),
            ..
        }
    ));
    bench.now = bench.now.after(NEWS_EVERY);
    assert!(bench.give(Input::Time).contains(&queued(2, 1, 1)));
}

#[test]
fn positions_are_sent_when_they_change_and_not_too_often() {
    let mut bench = Bench::new();
    let outputs = bench.queues(1, 11);
    bench.give(Input::Placed(ask_of(&outputs[1]), Ok(Placed::Full)));
    for other in 2..20 {
        bench.queues(other, 10 + other);
    }
    let began = bench.now;
    let mut received = Vec::new();
    while bench.now < began.after(NEWS_AT_LEAST * 2) {
        for output in bench.wait() {
            match output {
                Output::Place { ask, .. } => drop(bench.give(Input::Placed(ask, Ok(Placed::Full)))),
                Output::Queued {
                    connection: ConnectionId(1),
                    queued,
                } => {
                    received.push((bench.now.since(began), queued));
                }
                Output::Queued { .. } => {}
                other => panic!("{other:?}"),
            }
        }
    }
    let lengths: Vec<u64> = received.iter().map(|(_, queued)| queued.length).collect();
    assert_eq!(
        lengths,
        [19, 19],
        "once for the change, once so that it knows that it waits"
    );
    assert!(received[1].0 - received[0].0 >= NEWS_AT_LEAST);
}

#[test]
fn a_place_is_kept_for_a_client_that_returns_and_not_for_ever() {
    let mut bench = Bench::new();
    let outputs = bench.queues(1, 11);
    bench.give(Input::Placed(ask_of(&outputs[1]), Ok(Placed::Full)));
    bench.queues(2, 12);
    assert_eq!(bench.give(Input::Closed(ConnectionId(1))), []);
    let (ask, wish) = bench.asks_for_room();
    assert_eq!(wish.waiting, 2, "the place of the first is kept");
    bench.give(Input::Placed(ask, Ok(Placed::Full)));
    assert_eq!(bench.comes(3, 11), [queued(3, 1, 2)]);
    // A second client of the account takes the place, and the first one is notified.
    assert_eq!(
        bench.comes(4, 11),
        [refused(3, LoginRefusal::LoggedIn), queued(4, 1, 2)]
    );
    bench.give(Input::Closed(ConnectionId(4)));
    bench.now = bench.now.after(PLACE_KEPT);
    let outputs = bench.give(Input::Time);
    assert!(outputs.contains(&queued(2, 1, 1)), "{outputs:?}");
    let ask = outputs
        .iter()
        .find(|output| matches!(output, Output::Place { .. }))
        .map(ask_of)
        .unwrap();
    bench.give(Input::Placed(ask, Ok(Placed::Full)));
    assert_eq!(bench.queues(5, 11), [queued(5, 2, 2)]);
}

#[test]
fn a_session_that_exists_is_replaced_without_waiting() {
    let mut bench = Bench::new();
    let ask = ask_of(&bench.comes(1, 11)[0]);
    let look_up = bench.one(Input::Placed(ask, Ok(Placed::Full)));
    assert!(
        matches!(
            look_up,
            Output::LookUp {
                account: DatabaseId(11),
                ..
            }
        ),
        "{look_up:?}"
    );
    let locate = bench.one(Input::LookedUp(ask_of(&look_up), Ok(Some(THERE))));
    assert!(matches!(locate, Output::Locate { owner: THERE, .. }), "{locate:?}");
    let ask = ask_of(&bench.one(Input::Located(ask_of(&locate), Ok(Some(located(THERE, 1))))));
    let open = bench.one(Input::CheckedOut(ask, Ok(checkout(THERE, 1))));
    let Output::Open { ask, ref wanted } = open else {
        panic!("{open:?}")
    };
    assert!(wanted.replaces_only);
    // The account is active without a client: this one waits.
    let outputs = bench.give(Input::Opened(ask, Ok(Opened::NoSession)));
    assert_eq!(outputs[0], queued(1, 1, 1));
    let admitted = bench.give(Input::Placed(ask_of(&outputs[1]), room(HERE)));
    let open = bench.one(Input::CheckedOut(ask_of(&admitted[0]), Ok(checkout(HERE, 2))));
    assert!(
        matches!(&open, Output::Open { wanted, .. } if !wanted.replaces_only),
        "{open:?}"
    );
}

#[test]
fn exempt_accounts_do_not_wait() {
    let mut bench = Bench::new();
    let outputs = bench.queues(1, 11);
    bench.give(Input::Placed(ask_of(&outputs[1]), Ok(Placed::Full)));
    let ask = ask_of(&bench.one(log_in(2, "gm")));
    let verdict = Verdict::Good(Authenticated {
        account: DatabaseId(12),
        name: "gm".to_owned(),
        waits: false,
    });
    let place = bench.one(Input::Verified(ask, Ok(verdict)));
    let Output::Place { ask, wish } = place else {
        panic!("{place:?}")
    };
    assert!(!wish.waits);
    let outputs = bench.give(Input::Placed(ask, room(HERE)));
    assert!(
        matches!(
            outputs[0],
            Output::CheckOut {
                account: DatabaseId(12),
                ..
            }
        ),
        "the room is not given to the one that waits: {outputs:?}"
    );
}

#[test]
fn the_queue_is_bounded_and_a_stop_empties_it() {
    let mut bench = Bench::new();
    let mut refusals = 0;
    for n in 0..MAX_WAITING as u64 + 100 {
        let [a, b] = u16::try_from(n % 1_000).unwrap().to_be_bytes();
        let host = Host::Four([10, 1, a, b]);
        let ask = ask_of(&bench.one(log_in_from(host, n, &n.to_string())));
        let mut outputs = bench.give(Input::Verified(ask, Ok(good(n))));
        while let [Output::Place { ask, .. }] = outputs[..] {
            outputs = bench.give(Input::Placed(ask, Ok(Placed::Full)));
        }
        let outputs = bench.give(Input::LookedUp(ask_of(&outputs[0]), Ok(None)));
        refusals += usize::from(outputs.contains(&refused(n, LoginRefusal::Busy)));
    }
    assert!(bench.login.waiting() <= MAX_WAITING && refusals >= 100, "{refusals}");
    assert_eq!(bench.login.waiting() + refusals, MAX_WAITING + 100);
    let outputs = bench.give(Input::ShutDown { with_realm: true }).len();
    assert!(outputs >= bench.login.waiting());
    assert_eq!(
        (bench.login.waiting(), bench.login.attempts(), bench.login.deadline()),
        (0, 0, None)
    );
}

#[test]
fn one_host_does_not_fill_the_queue() {
    let mut bench = Bench::new();
    for n in 0..MAX_WAITING as u64 {
        let outputs = bench.queues(n, n);
        if let [_, Output::Place { ask, .. }] = outputs[..] {
            bench.give(Input::Placed(ask, Ok(Placed::Full)));
        }
    }
    assert!(bench.login.waiting() < MAX_WAITING / 2, "{}", bench.login.waiting());
    let ask = ask_of(&bench.one(log_in_from(Host::Four([10, 9, 9, 9]), 9_999, "another")));
    let outputs = bench.give(Input::Verified(ask, Ok(good(9_999))));
    let outputs = bench.give(Input::LookedUp(ask_of(&outputs[0]), Ok(None)));
    assert!(matches!(outputs[0], Output::Queued { .. }), "{outputs:?}");
    assert_ne!(HOST, Host::Four([10, 9, 9, 9]));
}

/// A realm with a limit: a director, db and a base that answer late, twice, or not at all.
struct Realm {
    dice: Box<dyn FnMut() -> u64>,
    limit: usize,
    /// Rooms that were given and not settled.
    rooms: BTreeSet<RoomId>,
    /// Sessions, by account.
    sessions: BTreeMap<DatabaseId, SessionId>,
    last_session: u64,
    late: VecDeque<Input>,
}

impl Realm {
    fn one_in(&mut self, odds: u64) -> bool {
        (self.dice)().is_multiple_of(odds)
    }

    fn work(&mut self, output: &Output) {
        // Lost.
        if self.one_in(12) {
            return;
        }
        let answer = match output {
            Output::Verify { ask, credentials } => {
                Input::Verified(*ask, Ok(good(credentials.name().unwrap().parse().unwrap())))
            }
            Output::Place { ask, wish } => {
                let is_given = self.rooms.contains(&wish.room);
                if !is_given && self.rooms.len() + self.sessions.len() >= self.limit {
                    Input::Placed(*ask, Ok(Placed::Full))
                } else {
                    self.rooms.insert(wish.room);
                    Input::Placed(*ask, room(HERE))
                }
            }
            Output::LookUp { ask, account } => {
                let owner = self.sessions.get(account).map(|_| HERE);
                Input::LookedUp(*ask, Ok(owner))
            }
            Output::Locate { ask, owner } => Input::Located(*ask, Ok(Some(located(*owner, 1)))),
            Output::CheckOut { ask, account, .. } => Input::CheckedOut(*ask, Ok(checkout(HERE, account.0))),
            Output::Open { ask, wanted } => {
                let opened = match self.sessions.get(&wanted.account) {
                    None if wanted.replaces_only => Opened::NoSession,
                    _ => {
                        self.last_session += 1;
                        let session = SessionId(self.last_session);
                        self.sessions.insert(wanted.account, session);
                        let epoch = annals_ids::Epoch(1);
                        Opened::Session { session, epoch }
                    }
                };
                Input::Opened(*ask, Ok(opened))
            }
            Output::Settle { .. }
            | Output::Queued { .. }
            | Output::Answer { .. }
            | Output::Counted(_)
            | Output::Forgiven(_) => return,
        };
        for _ in 0..1 + (self.dice)() % 2 {
            self.late.push_back(answer.clone());
        }
    }
}

/// What happened in a generated sequence.
#[derive(Debug, Default)]
struct Course {
    /// The order in which accounts were authenticated.
    order: Vec<u64>,
    /// Accounts that wait, by that order.
    waits: BTreeSet<usize>,
    checked_out: BTreeSet<u64>,
    admitted: usize,
    overtaken: usize,
    most: usize,
}

impl Course {
    fn rank(&self, account: u64) -> usize {
        self.order
            .iter()
            .position(|other| *other == account)
            .expect("it was authenticated")
    }

    /// Notes an input before it is given.
    fn authenticates(&mut self, input: &Input) {
        if let Input::Verified(_, Ok(Verdict::Good(good))) = input
            && !self.order.contains(&good.account.0)
        {
            self.order.push(good.account.0);
        }
    }

    fn note(&mut self, bench: &Bench, realm: &mut Realm, output: &Output) {
        match output {
            Output::Settle { room, .. } => {
                realm.rooms.remove(room);
            }
            Output::Queued { connection, queued } => {
                // Each client has an account of the same number.
                self.waits.insert(self.rank(connection.0));
                assert!(queued.position >= 1 && queued.position <= queued.length);
                assert!(queued.length as usize <= MAX_WAITING);
            }
            Output::CheckOut { account, .. } => {
                let rank = self.rank(account.0);
                self.admitted += usize::from(self.waits.remove(&rank));
                // A request may be repeated.
                if self.checked_out.insert(account.0) {
                    self.overtaken += self.waits.range(..rank).count();
                }
            }
            _ => {}
        }
        self.most = self.most.max(realm.sessions.len());
        assert!(
            realm.sessions.len() <= realm.limit,
            "more players than the realm admits"
        );
        assert!(bench.login.waiting() <= MAX_WAITING);
    }
}

#[test]
fn the_order_is_kept_the_limit_holds_and_nobody_starves() {
    let mut admitted = 0;
    for seed in 0..200 {
        println!("seed {seed}");
        let mut bench = Bench::new();
        let mut realm = Realm {
            dice: Box::new(split_mix(seed)),
            limit: 3,
            rooms: BTreeSet::new(),
            sessions: BTreeMap::new(),
            last_session: 0,
            late: VecDeque::new(),
        };
        let mut course = Course::default();
        let mut outputs: VecDeque<Output> = VecDeque::new();
        let mut answered = BTreeSet::new();
        let clients = 24_u64;
        let mut next = 0;
        for round in 0.. {
            assert!(
                round < 60_000,
                "somebody starves: {:?} {:?}",
                course.waits,
                realm.sessions
            );
            if next < clients && realm.one_in(3) {
                outputs.extend(bench.give(log_in(next, &next.to_string())));
                next += 1;
            }
            while let Some(output) = outputs.pop_front() {
                if let Output::Answer { connection, .. } = &output {
                    assert!(answered.insert(*connection), "{connection:?} was answered twice");
                }
                realm.work(&output);
                course.note(&bench, &mut realm, &output);
            }
            if realm.one_in(9) {
                // A player leaves the realm.
                realm.sessions.pop_first();
            }
            outputs.extend(match realm.late.pop_front() {
                Some(input) => {
                    course.authenticates(&input);
                    bench.give(input)
                }
                None => bench.wait_if_any(),
            });
            let is_over = next == clients && bench.login.attempts() == 0 && bench.login.waiting() == 0;
            if is_over && outputs.is_empty() {
                break;
            }
        }
        assert_eq!(answered.len() as u64, clients, "everybody is answered");
        assert_eq!(course.overtaken, 0, "in the order in which they came to the queue");
        admitted += course.admitted;
    }
    assert!(admitted > 1_000, "{admitted} clients waited, and were admitted");
}

#[test]
fn clients_that_leave_keep_neither_place_nor_room() {
    for seed in 0..100 {
        println!("seed {seed}");
        let mut bench = Bench::new();
        let mut dice = split_mix(seed);
        let mut realm = Realm {
            dice: Box::new(split_mix(seed + 1_000)),
            limit: 2,
            rooms: BTreeSet::new(),
            sessions: BTreeMap::new(),
            last_session: 0,
            late: VecDeque::new(),
        };
        let mut outputs = VecDeque::new();
        for connection in 0..16_u64 {
            outputs.extend(bench.give(log_in(connection, &(connection % 6).to_string())));
            for _ in 0..dice() % 8 {
                while let Some(output) = outputs.pop_front() {
                    if let Output::Settle { room, .. } = &output {
                        realm.rooms.remove(room);
                    }
                    realm.work(&output);
                }
                outputs.extend(match realm.late.pop_front() {
                    Some(input) => bench.give(input),
                    None => bench.wait_if_any(),
                });
            }
            outputs.extend(bench.give(Input::Closed(ConnectionId(dice() % (connection + 1)))));
        }
        for connection in 0..16 {
            bench.give(Input::Closed(ConnectionId(connection)));
        }
        bench.now = bench.now.after(PLACE_KEPT);
        bench.give(Input::Time);
        assert_eq!(
            (bench.login.waiting(), bench.login.attempts()),
            (0, 0),
            "{:?}",
            bench.login
        );
        assert_eq!(bench.login.deadline(), None);
    }
}
