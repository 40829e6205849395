//! Drives the login core against services that answer, fail to answer, or answer late and twice.
#![allow(clippy::unwrap_used, reason = "what is missing in a test has failed it")]

mod credentials;
mod guesses;
mod queue;

use std::collections::{BTreeMap, VecDeque};

use annals_def::split_mix;
use annals_ids::{DatabaseId, Epoch, Hash, OwnerId, SessionId, TypeId, WallTime};
use annals_login::{
    AskId, Authenticated, Checkout, Host, Input, LOGIN_WITHIN, Login, MAX_ATTEMPTS, MAX_PER_NAME, MAX_QUEUED,
    MAX_VERIFYING, NotCheckedOut, Opened, Output, Placed, RoomId, Unavailable, Verdict, Wanted, Wish, Wrong,
};
use annals_node::{ConnectionId, time::Mono};
use annals_wire::client::{
    Ban, Credentials, Located, LoginAnswer, LoginRefusal, LoginRequest, Secret, Ticket, protocol_hash,
};

const ACCOUNT: DatabaseId = DatabaseId(5);
const HERE: OwnerId = OwnerId(10);
const THERE: OwnerId = OwnerId(11);

struct Bench {
    login: Login,
    now: Mono,
    /// What the other login processes are to know.
    shared: Vec<Input>,
}

impl Bench {
    fn new() -> Self {
        let now = Mono(1_000_000_000);
        Self {
            login: Login::new(),
            now,
            shared: Vec::new(),
        }
    }

    fn give(&mut self, input: Input) -> Vec<Output> {
        self.login.handle(self.now, input);
        let mut outputs = Vec::new();
        while let Some(output) = self.login.poll_output() {
            match output {
                Output::Counted(counted) => self.shared.push(Input::Counted(counted)),
                Output::Forgiven(name) => self.shared.push(Input::Forgiven(name)),
                output => outputs.push(output),
            }
        }
        outputs
    }

    /// A wrong password for a name.
    fn guesses(&mut self, host: Host, name: &str) {
        let ask = ask_of(&self.one(log_in_from(host, 1, name)));
        let answer = self.one(Input::Verified(ask, Ok(Verdict::Wrong(Wrong::Password))));
        assert_eq!(answer, refused(1, LoginRefusal::WrongPassword));
    }

    /// Gives an input that must result in exactly one output.
    fn one(&mut self, input: Input) -> Output {
        let mut outputs = self.give(input);
        assert_eq!(outputs.len(), 1, "{outputs:?}");
        outputs.remove(0)
    }

    /// Advances time to the next deadline.
    fn wait(&mut self) -> Vec<Output> {
        let deadline = self.login.deadline().expect("something is waited for");
        assert!(deadline >= self.now, "it was due before");
        self.now = deadline;
        self.give(Input::Time)
    }

    fn asks(&mut self, connection: u64, name: &str) -> Output {
        self.one(log_in(connection, name))
    }
}

/// Host of most clients.
const HOST: Host = Host::Four([10, 0, 0, 1]);

fn log_in(connection: u64, name: &str) -> Input {
    log_in_from(HOST, connection, name)
}

fn log_in_from(host: Host, connection: u64, name: &str) -> Input {
    Input::Request {
        connection: ConnectionId(connection),
        host,
        request: LoginRequest::LogIn {
            protocol: protocol_hash(),
            credentials: Credentials::password(name, "secret"),
        },
        name: Some(hash_of(name)),
        ticket: ticket(connection),
    }
}

/// Stands for the keyed hash of a name.
fn hash_of(name: &str) -> Hash {
    let mut hash = [0; 32];
    hash.iter_mut().zip(name.bytes()).for_each(|(to, from)| *to = from);
    Hash(hash)
}

fn ticket(connection: u64) -> Secret {
    Secret([connection.to_le_bytes()[0]; 32])
}

fn located(owner: OwnerId, epoch: u64) -> Located {
    Located {
        owner,
        epoch: Epoch(epoch),
        address: "127.0.0.1:9".parse().unwrap(),
        certificate: Some(Hash([9; 32])),
    }
}

/// The director's answer in a realm without a limit.
fn placed(owner: OwnerId, epoch: u64) -> Result<Placed, Unavailable> {
    Ok(Placed::Base {
        base: located(owner, epoch),
        is_limited: false,
    })
}

fn checkout(owner: OwnerId, number: u64) -> Checkout {
    Checkout {
        owner,
        number,
        type_id: TypeId(0),
        properties: vec![1, 2, 3],
        key: vec![4; 32],
    }
}

fn refused(connection: u64, refusal: LoginRefusal) -> Output {
    Output::Answer {
        connection: ConnectionId(connection),
        answer: LoginAnswer::Refused(refusal),
    }
}

/// The verdict that the credentials are those of the account.
fn good() -> Verdict {
    Verdict::Good(Authenticated {
        account: ACCOUNT,
        name: "adam".to_owned(),
        waits: true,
    })
}

fn ban() -> Ban {
    Ban {
        until: Some(WallTime(1_798_000_000_000)),
        reason: "case 9".to_owned(),
    }
}

fn banned(connection: u64) -> Output {
    Output::Answer {
        connection: ConnectionId(connection),
        answer: LoginAnswer::Banned(ban()),
    }
}

fn ask_of(output: &Output) -> AskId {
    match output {
        Output::Verify { ask, .. }
        | Output::Place { ask, .. }
        | Output::LookUp { ask, .. }
        | Output::Locate { ask, .. }
        | Output::CheckOut { ask, .. }
        | Output::Open { ask, .. } => *ask,
        Output::Answer { .. }
        | Output::Queued { .. }
        | Output::Settle { .. }
        | Output::Counted(_)
        | Output::Forgiven(_) => panic!("{output:?} asks nothing"),
    }
}

#[test]
fn a_correct_password_gives_a_ticket() {
    let mut bench = Bench::new();
    let verify = bench.asks(1, "adam");
    let Output::Verify { ask, credentials } = verify else {
        panic!("{verify:?}")
    };
    assert_eq!(credentials, Credentials::password("adam", "secret"));
    let place = bench.one(Input::Verified(ask, Ok(good())));
    let ask = ask_of(&place);
    let wish = Wish {
        room: RoomId(1),
        waits: true,
        waited: None,
        waiting: 0,
    };
    assert_eq!(place, Output::Place { ask, wish });
    let check_out = bench.one(Input::Placed(ask, placed(HERE, 3)));
    let ask = ask_of(&check_out);
    let expected = Output::CheckOut {
        ask,
        account: ACCOUNT,
        preferred: HERE,
    };
    assert_eq!(check_out, expected);
    let open = bench.one(Input::CheckedOut(ask, Ok(checkout(HERE, 77))));
    let ask = ask_of(&open);
    let wanted = Wanted {
        owner: HERE,
        epoch: Epoch(3),
        account: ACCOUNT,
        checkout: checkout(HERE, 77),
        ticket: ticket(1).digest(),
        name: "adam".to_owned(),
        replaces_only: false,
    };
    assert_eq!(open, Output::Open { ask, wanted });
    let opened = Opened::Session {
        session: SessionId(8),
        epoch: Epoch(3),
    };
    let answer = bench.one(Input::Opened(ask, Ok(opened)));
    let expected = Output::Answer {
        connection: ConnectionId(1),
        answer: LoginAnswer::Ticket(Ticket {
            session: SessionId(8),
            secret: ticket(1),
            base: located(HERE, 3),
        }),
    };
    assert_eq!(answer, expected);
    assert_eq!((bench.login.attempts(), bench.login.deadline()), (0, None));
    assert_eq!(bench.login.counters().tickets, 1);
}

#[test]
fn an_account_active_on_another_base_is_found() {
    let mut bench = Bench::new();
    let ask = ask_of(&bench.asks(1, "adam"));
    let ask = ask_of(&bench.one(Input::Verified(ask, Ok(good()))));
    let ask = ask_of(&bench.one(Input::Placed(ask, placed(HERE, 3))));
    let locate = bench.one(Input::CheckedOut(ask, Ok(checkout(THERE, 70))));
    let ask = ask_of(&locate);
    assert_eq!(locate, Output::Locate { ask, owner: THERE });
    let again = bench.one(Input::Located(ask, Ok(Some(located(THERE, 9)))));
    let ask = ask_of(&again);
    assert!(matches!(again, Output::CheckOut { preferred: THERE, .. }), "{again:?}");
    let open = bench.one(Input::CheckedOut(ask, Ok(checkout(THERE, 70))));
    let Output::Open { ask, wanted } = open else {
        panic!("{open:?}")
    };
    assert_eq!((wanted.owner, wanted.epoch), (THERE, Epoch(9)));

    // The base knows that this activation has ended; the database is about to learn it.
    assert_eq!(bench.give(Input::Opened(ask, Ok(Opened::Outdated))), []);
    let locate = bench.wait().remove(0);
    assert_eq!(ask_of(&locate), AskId(ask.0 + 1));
    let ask = ask_of(&bench.one(Input::Located(ask_of(&locate), Ok(Some(located(THERE, 9))))));
    let open = bench.one(Input::CheckedOut(ask, Ok(checkout(THERE, 71))));
    let Output::Open { wanted, .. } = open else {
        panic!("{open:?}")
    };
    assert_eq!(wanted.checkout.number, 71);
    assert_eq!(bench.login.counters().outdated, 1);
}

#[test]
fn every_refusal_has_a_reason() {
    let mut bench = Bench::new();
    let ask = ask_of(&bench.asks(1, "adam"));
    let answer = bench.one(Input::Verified(ask, Ok(Verdict::Wrong(Wrong::Password))));
    assert_eq!(answer, refused(1, LoginRefusal::WrongPassword));
    let ask = ask_of(&bench.asks(1, "adam"));
    let answer = bench.one(Input::Verified(ask, Ok(Verdict::Banned(ban()))));
    assert_eq!(answer, banned(1));
    let ask = ask_of(&bench.asks(1, "stored:17"));
    let answer = bench.one(Input::Verified(ask, Ok(Verdict::Refused(LoginRefusal::UnfitName))));
    assert_eq!(answer, refused(1, LoginRefusal::UnfitName));
    let ask = ask_of(&bench.asks(1, "adam"));
    let answer = bench.one(Input::Verified(ask, Err(Unavailable)));
    assert_eq!(answer, refused(1, LoginRefusal::Busy));
    let mut old = log_in(1, "adam");
    let Input::Request {
        request: LoginRequest::LogIn { protocol, .. },
        ..
    } = &mut old
    else {
        panic!("{old:?}")
    };
    *protocol = Hash([1; 32]);
    assert_eq!(bench.one(old), refused(1, LoginRefusal::WrongProtocol));
    bench.asks(1, "adam");
    assert_eq!(
        bench.one(Input::ShutDown { with_realm: true }),
        refused(1, LoginRefusal::ShuttingDown)
    );
    assert_eq!(bench.asks(2, "adam"), refused(2, LoginRefusal::ShuttingDown));
}

#[test]
fn a_ban_during_the_log_in_is_noticed_at_the_check_out() {
    let mut bench = Bench::new();
    let ask = ask_of(&bench.asks(1, "adam"));
    let ask = ask_of(&bench.one(Input::Verified(ask, Ok(good()))));
    let ask = ask_of(&bench.one(Input::Placed(ask, placed(HERE, 3))));
    let answer = bench.one(Input::CheckedOut(ask, Err(NotCheckedOut::Banned(ban()))));
    assert_eq!(answer, banned(1));
    assert_eq!((bench.login.attempts(), bench.login.deadline()), (0, None));
    assert_eq!(bench.login.counters().banned, 1);
    // The password was right: it is no guess.
    for connection in 2..10 {
        let ask = ask_of(&bench.asks(connection, "eve"));
        let answer = bench.one(Input::Verified(ask, Ok(Verdict::Banned(ban()))));
        assert_eq!(answer, banned(connection));
    }
}

#[test]
fn a_pause_refuses_new_log_ins_only() {
    let mut bench = Bench::new();
    let verifying = ask_of(&bench.asks(1, "adam"));
    assert_eq!(bench.give(Input::Pause(true)), []);
    assert_eq!(bench.asks(2, "eve"), refused(2, LoginRefusal::Busy));
    let placing = bench.one(Input::Verified(verifying, Ok(good())));
    assert!(
        matches!(placing, Output::Place { .. }),
        "one in progress continues: {placing:?}"
    );
    let locating = bench.one(Input::Request {
        connection: ConnectionId(3),
        host: HOST,
        request: LoginRequest::Locate {
            owner: HERE,
            session: SessionId(8),
        },
        name: None,
        ticket: ticket(3),
    });
    assert!(matches!(locating, Output::Locate { .. }), "{locating:?}");
    assert_eq!(bench.give(Input::Pause(false)), []);
    assert!(matches!(bench.asks(4, "eve"), Output::Verify { .. }));
}

#[test]
fn an_account_in_use_has_its_own_refusal() {
    let mut bench = Bench::new();
    let ask = ask_of(&bench.asks(1, "adam"));
    let ask = ask_of(&bench.one(Input::Verified(ask, Ok(good()))));
    let ask = ask_of(&bench.one(Input::Placed(ask, placed(HERE, 3))));
    let ask = ask_of(&bench.one(Input::CheckedOut(ask, Ok(checkout(HERE, 77)))));
    let answer = bench.one(Input::Opened(ask, Ok(Opened::InUse)));
    assert_eq!(answer, refused(1, LoginRefusal::LoggedIn));
    assert_eq!((bench.login.attempts(), bench.login.deadline()), (0, None));
}

#[test]
fn concurrent_attempts_are_bounded() {
    let mut bench = Bench::new();
    for connection in 0..MAX_PER_NAME as u64 {
        bench.asks(connection, "adam");
    }
    assert_eq!(
        bench.asks(9, "adam"),
        refused(9, LoginRefusal::Busy),
        "a player who clicks while a base is taken over is not locked out for a minute"
    );
    assert_eq!(bench.give(Input::Closed(ConnectionId(0))), []);
    assert!(matches!(bench.asks(9, "adam"), Output::Verify { .. }));
    // Log-ins with a right password leave the queue and continue.
    for n in bench.login.attempts()..MAX_ATTEMPTS {
        let ask = ask_of(&bench.asks(100 + n as u64, &n.to_string()));
        bench.one(Input::Verified(ask, Ok(good())));
    }
    assert_eq!(bench.asks(99, "last"), refused(99, LoginRefusal::Busy));
    // All expire together, and leave nothing behind.
    bench.now = bench.now.after(LOGIN_WITHIN);
    assert_eq!(bench.give(Input::Time).len(), MAX_ATTEMPTS);
    assert_eq!((bench.login.attempts(), bench.login.deadline()), (0, None));
}

/// The connections whose passwords are to be verified.
fn compared(outputs: &[Output]) -> Vec<&str> {
    let names = outputs.iter().map(|output| match output {
        Output::Verify { credentials, .. } => credentials.name().unwrap_or_default(),
        other => panic!("{other:?}"),
    });
    names.collect()
}

#[test]
fn password_comparisons_are_bounded_and_fair_across_hosts() {
    let mut bench = Bench::new();
    let other = Host::Four([10, 0, 0, 2]);
    let mut asked = VecDeque::new();
    for n in 0..MAX_VERIFYING as u64 + 3 {
        asked.extend(bench.give(log_in(n, &format!("one {n}"))));
    }
    assert_eq!((asked.len(), bench.login.queued()), (MAX_VERIFYING, 3));
    assert_eq!(bench.give(log_in_from(other, 100, "other")), []);
    // A client that disconnects in the queue costs other clients nothing.
    assert_eq!(bench.give(Input::Closed(ConnectionId(MAX_VERIFYING as u64 + 1))), []);
    let mut answered = Vec::new();
    while let Some(output) = asked.pop_front() {
        let next = bench.give(Input::Verified(ask_of(&output), Ok(Verdict::Wrong(Wrong::Password))));
        let [Output::Answer { .. }, rest @ ..] = &next[..] else {
            panic!("{next:?}")
        };
        answered.extend(compared(rest).into_iter().map(str::to_owned));
        asked.extend(rest.iter().cloned());
    }
    assert_eq!(answered, ["one 8", "other", "one 10"], "each host in its turn");
    assert_eq!((bench.login.attempts(), bench.login.queued()), (0, 0));
}

#[test]
fn a_cancelled_comparison_keeps_its_place_until_it_ends() {
    let mut bench = Bench::new();
    let asked: Vec<AskId> = (0..MAX_VERIFYING as u64)
        .map(|n| ask_of(&bench.asks(n, &n.to_string())))
        .collect();
    for n in 0..MAX_VERIFYING as u64 {
        bench.give(Input::Closed(ConnectionId(n)));
    }
    // The passwords of disconnected clients are still being compared.
    assert_eq!(bench.give(log_in(50, "next")), []);
    let next = bench.one(Input::Verified(asked[0], Ok(Verdict::Wrong(Wrong::Password))));
    assert_eq!(compared(&[next]), ["next"]);
    // An answer that never comes does not occupy a slot for ever.
    assert_eq!(bench.give(log_in(51, "late")), []);
    bench.now = bench.now.after(LOGIN_WITHIN / 2);
    assert_eq!(bench.give(log_in(52, "later")), []);
    bench.now = bench.now.after(LOGIN_WITHIN / 2);
    let outputs = bench.give(Input::Time);
    let busy = [refused(50, LoginRefusal::Busy), refused(51, LoginRefusal::Busy)];
    assert_eq!(outputs[..2], busy);
    assert_eq!(compared(&outputs[2..]), ["later"]);
}

#[test]
fn a_host_with_a_full_queue_is_refused_at_once_and_others_are_not() {
    let mut bench = Bench::new();
    let (mut queued, mut busy) = (0, 0);
    for n in 0..MAX_QUEUED as u64 {
        match &bench.give(log_in(n, &n.to_string()))[..] {
            [] => queued += 1,
            [Output::Verify { .. }] => {}
            [answer] => {
                assert_eq!(*answer, refused(n, LoginRefusal::Busy));
                busy += 1;
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!((queued, bench.login.queued()), (MAX_QUEUED / 3 + 1, queued));
    assert_eq!(bench.login.counters().crowded, busy);
    let other = Host::Four([10, 0, 0, 2]);
    assert_eq!(bench.give(log_in_from(other, 9_999, "other")), []);
    assert_eq!(bench.login.queued(), queued + 1);
    assert_eq!(
        bench.give(Input::ShutDown { with_realm: true }).len(),
        queued + 1 + MAX_VERIFYING
    );
    assert_eq!((bench.login.queued(), bench.login.deadline()), (0, None));
}

#[test]
fn retries_do_not_repeat_the_password_comparison() {
    let mut bench = Bench::new();
    let ask = ask_of(&bench.asks(1, "adam"));
    let began = bench.now;
    let ask = ask_of(&bench.one(Input::Verified(ask, Ok(good()))));
    let mut answers = Vec::new();
    let mut places = 1;
    while answers.is_empty() {
        for output in bench.wait() {
            match output {
                Output::Place { .. } => places += 1,
                answer => answers.push(answer),
            }
        }
    }
    assert_eq!(answers, [refused(1, LoginRefusal::Busy)]);
    assert_eq!(bench.now, began.after(LOGIN_WITHIN));
    assert!(places > 5, "{places}");
    assert_eq!(
        bench.give(Input::Placed(ask, Ok(Placed::None))),
        [],
        "no attempt waits for it"
    );

    bench.asks(2, "adam");
    assert_eq!(bench.wait(), [refused(2, LoginRefusal::Busy)]);
}

#[test]
fn a_client_receives_the_address_of_its_base() {
    let mut bench = Bench::new();
    let request = || Input::Request {
        connection: ConnectionId(1),
        host: HOST,
        request: LoginRequest::Locate {
            owner: HERE,
            session: SessionId(8),
        },
        name: None,
        ticket: ticket(1),
    };
    let answers = [
        (Ok(Some(located(HERE, 4))), LoginAnswer::Located(located(HERE, 4))),
        (Ok(None), LoginAnswer::Refused(LoginRefusal::NotHeld)),
        (Err(Unavailable), LoginAnswer::Refused(LoginRefusal::Busy)),
    ];
    for (place, answer) in answers {
        let ask = ask_of(&bench.one(request()));
        let connection = ConnectionId(1);
        assert_eq!(
            bench.one(Input::Located(ask, place)),
            Output::Answer { connection, answer }
        );
    }
}

/// Services with generated faults: slow, silent, duplicate answers; accounts whose activations end and move.
struct Services {
    dice: Box<dyn FnMut() -> u64>,
    /// Owner and check-out of each activated account.
    lives: BTreeMap<DatabaseId, Checkout>,
    epochs: BTreeMap<OwnerId, Epoch>,
    checkouts: u64,
    sessions: u64,
    /// Answers under way.
    late: VecDeque<Input>,
}

impl Services {
    fn one_in(&mut self, odds: u64) -> bool {
        (self.dice)().is_multiple_of(odds)
    }

    fn work(&mut self, output: Output) {
        if self.one_in(5) {
            return;
        }
        let answer = match output {
            Output::Verify { ask, credentials } => {
                let verdict = match credentials.name().unwrap_or_default() {
                    "wrong" => Verdict::Wrong(Wrong::Password),
                    name => Verdict::Good(Authenticated {
                        account: DatabaseId(name.len() as u64),
                        name: name.to_owned(),
                        waits: true,
                    }),
                };
                Input::Verified(ask, Ok(verdict))
            }
            Output::Place { ask, .. } => {
                let owner = if self.one_in(2) { HERE } else { THERE };
                Input::Placed(ask, placed(owner, self.epochs[&owner].0))
            }
            Output::Locate { ask, owner } => {
                let place = if self.one_in(6) {
                    None
                } else {
                    Some(located(owner, self.epochs[&owner].0))
                };
                Input::Located(ask, Ok(place))
            }
            Output::CheckOut {
                ask,
                account,
                preferred,
            } => {
                self.checkouts += 1;
                let fresh = checkout(preferred, self.checkouts);
                let life = self.lives.entry(account).or_insert(fresh).clone();
                Input::CheckedOut(ask, Ok(life))
            }
            Output::Open { ask, wanted } => {
                assert_eq!(wanted.owner, wanted.checkout.owner);
                let lives = self.lives.get(&wanted.account) == Some(&wanted.checkout);
                let opened = if wanted.epoch != self.epochs[&wanted.owner] || !lives {
                    Opened::Outdated
                } else {
                    self.sessions += 1;
                    let (session, epoch) = (SessionId(self.sessions), wanted.epoch);
                    Opened::Session { session, epoch }
                };
                Input::Opened(ask, Ok(opened))
            }
            Output::Answer { .. }
            | Output::Queued { .. }
            | Output::Settle { .. }
            | Output::LookUp { .. }
            | Output::Counted(_)
            | Output::Forgiven(_) => unreachable!("only in a realm with a limit"),
        };
        for _ in 0..1 + (self.dice)() % 2 {
            self.late.push_back(answer.clone());
        }
    }
}

#[test]
fn every_log_in_is_answered_exactly_once() {
    let mut tickets = 0;
    for seed in 0..200 {
        println!("seed {seed}");
        let mut bench = Bench::new();
        let mut services = Services {
            dice: Box::new(split_mix(seed)),
            lives: BTreeMap::new(),
            epochs: [(HERE, Epoch(1)), (THERE, Epoch(1))].into(),
            checkouts: 0,
            sessions: 0,
            late: VecDeque::new(),
        };
        let mut answers: BTreeMap<u64, LoginAnswer> = BTreeMap::new();
        let mut outputs = VecDeque::new();
        let names = ["wrong", "a", "bb", "ccc", "dddd", "eeeeee"];
        for connection in 0..12_u64 {
            let name = names[usize::try_from(connection).unwrap() % names.len()];
            outputs.extend(bench.give(log_in(connection, name)));
        }
        while bench.login.attempts() > 0 || !outputs.is_empty() {
            while let Some(output) = outputs.pop_front() {
                match output {
                    Output::Answer { connection, answer } => {
                        let before = answers.insert(connection.0, answer);
                        assert_eq!(before, None, "{connection:?} was answered twice");
                    }
                    output => services.work(output),
                }
            }
            if services.one_in(20) {
                services.lives.pop_first();
            }
            if services.one_in(40) {
                services.epochs.entry(HERE).and_modify(|epoch| *epoch = epoch.next());
            }
            let next = match services.late.pop_front() {
                Some(input) if !services.one_in(40) => bench.give(input),
                Some(input) => {
                    services.late.push_back(input);
                    bench.wait_if_any()
                }
                None => bench.wait_if_any(),
            };
            outputs.extend(next);
        }
        assert_eq!(answers.len(), 12);
        for (connection, answer) in &answers {
            match answer {
                LoginAnswer::Ticket(given) => assert_eq!(given.secret, ticket(*connection)),
                LoginAnswer::Refused(refusal) if connection % 6 == 0 => {
                    assert!(
                        [LoginRefusal::WrongPassword, LoginRefusal::Busy].contains(refusal),
                        "{refusal}"
                    );
                }
                LoginAnswer::Refused(refusal) => assert_eq!(*refusal, LoginRefusal::Busy),
                LoginAnswer::Located(_) | LoginAnswer::Banned(_) | LoginAnswer::Queued(_) => {
                    panic!("an answer without a request")
                }
            }
        }
        let given = answers
            .values()
            .filter(|answer| matches!(answer, LoginAnswer::Ticket(_)));
        tickets += given.count();
    }
    assert!(tickets > 1_000, "{tickets} of 2,000 good log-ins found their way");
}

impl Bench {
    fn wait_if_any(&mut self) -> Vec<Output> {
        match self.login.deadline() {
            Some(_) => self.wait(),
            None => Vec::new(),
        }
    }
}

#[test]
fn debug_output_contains_no_secrets() {
    let mut bench = Bench::new();
    bench.asks(0x5e, "adam");
    let spoken = format!("{:?} {:?}", bench.login, log_in(0x5e, "adam"));
    assert!(!spoken.contains("\"secret\""), "the password");
    assert!(!spoken.contains("94, 94"), "the ticket");
}
