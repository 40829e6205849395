//! Invalid input of every kind to one realm, one after another. After each, its players play on.

use std::{
    fs,
    net::{SocketAddr, TcpStream, UdpSocket},
    path::Path,
    process::Stdio,
    time::{Duration, Instant},
};

use annals_audit::replay::owners;
use annals_client::{EndReason, Event};
use annals_def::{Value, split_mix};
use annals_host::{health::Readiness, nats::ServerCount, process::request};
use annals_ids::{CallNumber, EntityId, OwnerKind, Part};
use annals_realm::Folder;
use annals_wire::{
    client::{
        Call, CallRefusal, CloseReason, Credentials, Hello, HelloAnswer, LOGIN_ALPN, LoginAnswer, LoginRefusal,
        LoginRequest, MAX_UPSTREAM_FRAME, PLAY_ALPN, Proof, Reads, ToClient, ToServer, protocol_hash,
    },
    control::{
        BUS_VERSION, DirectorAsk, DirectorRequest, Locate, Orders, OwnerAddress, ProcessBeat, Register, Registered,
    },
};
use std::io::{Read, Write};
use tokio::process::Command;

use crate::{
    played::{Played, are_built, binary, repository, run, until, until_event},
    strangers::{Stranger, framed},
};

/// Duration of the bus outage.
const OUTAGE: Duration = Duration::from_secs(30);

/// Time without shown events after which the gate counts as closed.
const QUIET: Duration = Duration::from_millis(2_500);

/// Maximum time until a process notices that its disk is full.
pub(crate) const NOTICE_TIMEOUT: Duration = Duration::from_secs(60);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_live_realm_survives_every_kind_of_invalid_input() {
    if !are_built() {
        return;
    }
    let mut realm = Played::start(ServerCount::One, &["store", "nats"]).await;
    wrong_password(&mut realm).await;
    unfit_names(&mut realm).await;
    wrong_calls(&mut realm).await;
    wrong_frames(&mut realm).await;
    noise_on_ports(&mut realm).await;
    noise_on_the_bus(&mut realm).await;
    wrong_definitions(&mut realm).await;
    unknown_setting(&mut realm).await;
    port_in_use(&mut realm).await;
    folder_in_use(&mut realm).await;
    settings_of_another_realm(&mut realm).await;
    two_processes_with_one_number(&mut realm).await;
    full_store(&mut realm).await;
    full_log(&mut realm).await;
    bus_outage(&mut realm).await;
    let report = realm.stop_and_verify().await;
    assert_eq!(
        report.total(|bot| bot.log_ins),
        report.bots.len() as u64,
        "a client had to log in again"
    );
    assert!(
        report.bots.iter().all(|bot| bot.ended.is_empty()),
        "no session was lost"
    );
}

async fn wrong_password(realm: &mut Played) {
    let mut first = realm.client("somebody", "the password");
    until_event(&mut first, "the first log-in", |event| {
        matches!(event, Event::Connected { .. })
    })
    .await;
    let mut second = realm.client("somebody", "another password");
    let ended = until_event(&mut second, "an end", |event| matches!(event, Event::Ended(_))).await;
    let Event::Ended(reason) = ended else {
        unreachable!("it was waited for")
    };
    assert_eq!(reason, EndReason::LoginRefused(LoginRefusal::WrongPassword));
    assert_eq!(
        reason.to_string(),
        "the log-in was refused: the name or the password is wrong"
    );
    realm.assert_playing("a wrong password").await;
}

/// Names that could be mistaken for something else, or displayed as something else.
async fn unfit_names(realm: &mut Played) {
    for name in ["stored:17", "stored:", "some\nbody", "\u{1b}[2Jsomebody"] {
        let mut client = realm.client(name, "the password");
        let ended = until_event(&mut client, "an end", |event| matches!(event, Event::Ended(_))).await;
        let Event::Ended(reason) = ended else {
            unreachable!("it was waited for")
        };
        assert_eq!(reason, EndReason::LoginRefused(LoginRefusal::UnfitName), "{name:?}");
    }
    realm.assert_playing("an unfit name").await;
}

async fn wrong_calls(realm: &mut Played) {
    // Calls that the client library knows to be wrong are never sent.
    let mut client = realm.client("caller", "the password");
    let connected = until_event(&mut client, "a log-in", |event| {
        matches!(event, Event::Connected { .. })
    })
    .await;
    let Event::Connected { entity, .. } = connected else {
        unreachable!("it was waited for")
    };
    let mut refused = |method: &str, args: &[Value]| match client.call(entity, Part::Base, method, args) {
        Ok(number) => panic!("{method} was called as {number:?}"),
        Err(error) => error.to_string(),
    };
    assert_eq!(refused("fly", &[]), "Account has no exposed base method fly");
    assert_eq!(refused("enterWorld", &[]), "enterWorld takes 1 arguments, 0 were given");
    assert_eq!(
        refused("enterWorld", &[Value::Int(7)]),
        "argument name of enterWorld does not fit"
    );

    // A client need not use the client library.
    let (mut stranger, entity) = play(realm, "stranger").await;
    let answers = [
        (vec![200], CallRefusal::NoSuchMethod),
        (Vec::new(), CallRefusal::NoSuchMethod),
        ([&[1], [0xff; 40].as_slice()].concat(), CallRefusal::BadArguments),
        (vec![1], CallRefusal::BadArguments),
    ];
    for (number, (message, expected)) in (1..).map(CallNumber).zip(answers) {
        let (part, call) = (
            Part::Base,
            Call {
                entity,
                part: Part::Base,
                number,
                is_oldest: false,
                message,
            },
        );
        let mut body = Vec::new();
        ToServer::Call(call).write(&mut body);
        stranger.frame(&body).await;
        let refused = ToClient::Refused {
            entity,
            part,
            number,
            reason: expected,
        };
        while ToClient::read(&stranger.next().await).expect("a frame") != refused {}
    }
    assert!(
        CallRefusal::NoSuchMethod
            .to_string()
            .contains("check that client and realm have the same definitions")
    );
    assert!(
        CallRefusal::BadArguments
            .to_string()
            .contains("check that client and realm have the same definitions")
    );
    realm.assert_playing("an unknown method and wrong arguments").await;
}

async fn wrong_frames(realm: &mut Played) {
    let too_long = (MAX_UPSTREAM_FRAME as u32 + 1).to_le_bytes();
    let data = realm.data();
    for (to, alpn) in ports(realm).await {
        let stranger = Stranger::sending(to, &data, alpn, &[0xff; 12]).await;
        assert_eq!(stranger.closed_for().await, CloseReason::TooLarge, "at {to}");
        let mut cut = Stranger::sending(to, &data, alpn, &framed(&too_long)[..3]).await;
        cut.send.finish().expect("the stream is open");
        assert_eq!(cut.closed_for().await, CloseReason::Malformed, "at {to}");
        let stranger = Stranger::sending(to, &data, alpn, &framed(b"GET / HTTP/1.1\r\n")).await;
        assert_eq!(stranger.closed_for().await, CloseReason::Malformed, "at {to}");
    }
    assert!(CloseReason::TooLarge.to_string().contains("send less in one frame"));
    assert!(
        CloseReason::Malformed
            .to_string()
            .contains("check the client's protocol version")
    );

    // The same from a client that plays.
    let (mut stranger, _) = play(realm, "garbler").await;
    stranger.frame(&[99]).await;
    assert_eq!(stranger.closed_for().await, CloseReason::Malformed);
    realm.assert_playing("frames that are too long or cut off").await;
}

async fn noise_on_ports(realm: &mut Played) {
    let seed = 7;
    println!("noise of seed {seed}");
    let mut dice = split_mix(seed);
    let mut noise = move || -> Vec<u8> {
        let length = 1 + dice() as usize % 1_400;
        (0..length).map(|_| dice().to_le_bytes()[0]).collect()
    };
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    for (to, _) in ports(realm).await {
        for round in 0..300 {
            let mut noise = noise();
            // Bytes that resemble the first packet of a connection are parsed further.
            noise[0] |= if round % 2 == 0 { 0xc0 } else { 0 };
            socket.send_to(&noise, to).expect("loopback takes it");
        }
    }
    let nats = realm.realm.nats().replace("nats://", "");
    for noise in [
        b"GET / HTTP/1.1\r\n\r\n".to_vec(),
        noise(),
        noise(),
        vec![b'A'; 1 << 20],
    ] {
        let mut stream = TcpStream::connect(&nats).expect("the nats-server listens");
        // The server may close before it has read all.
        let _ = stream.write_all(&noise);
        let _ = stream.set_read_timeout(Some(Duration::from_millis(200)));
        let _ = stream.read(&mut [0; 4_096]);
    }
    realm.assert_playing("noise on every port").await;
}

async fn noise_on_the_bus(realm: &mut Played) {
    let (bus, subjects, store) = realm.bus();
    let mut dice = split_mix(8);
    let mut to: Vec<String> = ["director", "db", "store"].map(|name| subjects.service(name)).into();
    to.extend(["cursors", "wants"].map(|topic| subjects.news(topic)));
    for owner in owners(&store).await.expect("the store answers") {
        to.extend([
            subjects.owner(owner),
            subjects.sessions(owner),
            subjects.inspect(owner),
            subjects.overview(owner),
        ]);
    }
    for subject in to {
        for length in (0..40).map(|round| round * 7) {
            // No message of ours begins with these bytes.
            let noise: Vec<u8> = std::iter::repeat_n(0xff, length.min(2))
                .chain((2..length).map(|_| dice() as u8))
                .collect();
            let reply = bus.client().new_inbox();
            let sent = bus
                .client()
                .publish_with_reply(subject.clone(), reply, noise.into())
                .await;
            sent.expect("the bus takes it");
        }
    }
    bus.barrier().await.expect("the bus took it");
    realm.assert_playing("noise on the bus").await;
}

async fn wrong_definitions(realm: &mut Played) {
    let folder = Folder::create();
    let world = folder.path().join("defs");
    copy(&repository().join("defs"), &world);
    let broken = world.join("entity_defs/Account.def");
    let text = fs::read_to_string(&broken).expect("the sample has an account");
    let line = 1 + text
        .lines()
        .position(|line| line.contains("</avatarNames>"))
        .expect("a property");
    fs::write(&broken, text.replace("</avatarNames>", "</avatarName>")).expect("it can be broken");
    let named = |said: &str| {
        said.contains(&format!("entity_defs/Account.def:{line}:")) && said.contains("help: write `</avatarNames>`")
    };

    let mut up = annals(realm, "annals");
    up.arg("up")
        .arg("--world")
        .arg(&world)
        .arg("--data")
        .arg(folder.path().join("data"));
    let (status, said) = run(&mut up).await;
    assert!(
        !status.success() && named(&said) && said.contains("do not compile"),
        "line {line}: {said}"
    );
    let mut base = annals(realm, "annals-base");
    base.arg("--world").arg(&world).arg("--data").arg(folder.path());
    let (status, said) = run(&mut base).await;
    assert!(
        status.code() == Some(2) && named(&said) && said.contains("do not compile"),
        "line {line}: {said}"
    );
    realm.assert_playing("definitions that do not parse").await;
}

async fn unknown_setting(realm: &mut Played) {
    let folder = Folder::create();
    let file = folder.path().join("annals.toml");
    fs::write(&file, "realmm = \"aldmoor\"\n").expect("a file");
    for service in [
        "annals-base",
        "annals-cell",
        "annals-db",
        "annals-director",
        "annals-login",
    ] {
        let (status, said) = run(annals(realm, service).arg("--config").arg(&file)).await;
        assert_eq!(status.code(), Some(2), "{service}: {said}");
        let wanted = "there is no setting \"realmm\", given in ";
        assert!(
            said.contains(wanted) && said.contains("did you mean \"realm\"?"),
            "{service}: {said}"
        );
    }
    realm.assert_playing("an unknown setting").await;
}

async fn port_in_use(realm: &mut Played) {
    let folder = Folder::create();
    for ((to, _), service) in ports(realm).await.into_iter().zip(["annals-login", "annals-base"]) {
        let mut second = annals(realm, service);
        second
            .args(["--listen", &to.to_string()])
            .arg("--data")
            .arg(folder.path());
        let (status, said) = run(&mut second).await;
        let wanted = format!("cannot listen on {to}; another process may use it");
        assert!(status.code() == Some(1) && said.contains(&wanted), "{service}: {said}");
    }
    realm.assert_playing("a port in use").await;
}

async fn folder_in_use(realm: &mut Played) {
    let mut second = annals(realm, "annals");
    second
        .arg("up")
        .arg("--data")
        .arg(realm.data())
        .args(["--listen", "127.0.0.1:0"]);
    let (status, said) = run(&mut second).await;
    assert!(!status.success(), "{said}");
    assert!(
        said.contains("a realm runs in") && said.contains("stop it, or name another folder with --data"),
        "{said}"
    );
    let mut second = annals(realm, "annals-db");
    let (status, said) = run(second.arg("--data").arg(realm.data())).await;
    assert_eq!(status.code(), Some(1), "{said}");
    assert!(said.contains("only one may hold it. Stop that process"), "{said}");
    realm.assert_playing("a folder in use").await;
}

/// A process with the settings of another realm holds nothing of this one, and says which settings to check.
async fn settings_of_another_realm(realm: &mut Played) {
    let folder = Folder::create();
    let log = folder.path().join("log");
    let mut other = annals(realm, "annals-login");
    other
        .args(["--realm", "elsewhere", "--listen", "127.0.0.1:0", "--data"])
        .arg(folder.path())
        .stdin(Stdio::null())
        .stderr(fs::File::create(&log).expect("a file"))
        .kill_on_drop(true);
    let mut waiting = other.spawn().expect("it starts");
    let said = || fs::read_to_string(&log).unwrap_or_default();
    until(NOTICE_TIMEOUT, "it to say what it waits for", || {
        said().contains("waiting for the director")
    })
    .await;
    let advice = "check that annals-director runs with the same --realm and --nats";
    assert!(said().contains(advice), "{}", said());
    waiting.kill().await.expect("it can be killed");

    let world = folder.path().join("defs");
    copy(&repository().join("defs"), &world);
    let account = world.join("entity_defs/Account.def");
    let text = fs::read_to_string(&account).expect("the sample has an account");
    fs::write(&account, text.replace("logIns>", "visits>")).expect("it can be changed");
    let mut login = annals(realm, "annals-login");
    login.args(["--listen", "127.0.0.1:0", "--world"]).arg(&world);
    let (status, said) = run(login.arg("--data").arg(folder.path())).await;
    assert_eq!(status.code(), Some(1), "{said}");
    assert!(
        said.contains("the director refused this process: the realm runs on schema ")
            && said.contains("start it with the same definitions"),
        "{said}"
    );
    realm.assert_playing("settings of another realm").await;
}

/// A copied machine: two processes report under the number that the director gave one of them.
async fn two_processes_with_one_number(realm: &mut Played) {
    let (bus, subjects, _) = realm.bus();
    let ask = |ask| DirectorRequest { ask: Some(ask) };
    let subject = || subjects.service("director");
    let register = Register {
        // It holds no owners, so that nothing is granted to it.
        service: "login".to_owned(),
        schema: realm.schema.fingerprint().0.to_vec(),
        bus: BUS_VERSION,
    };
    let register = ask(DirectorAsk::Register(register));
    let registered: Registered = request(&bus, "director", subject(), &register)
        .await
        .expect("an answer");
    let mut refused = Vec::new();
    for connection in ["original", "copy", "original", "copy", "original"] {
        let beat = ProcessBeat {
            process: registered.process,
            service: "login".to_owned(),
            connection: connection.to_owned(),
            ..ProcessBeat::default()
        };
        let beat = ask(DirectorAsk::Beat(Box::new(beat)));
        let orders: Orders = request(&bus, "director", subject(), &beat).await.expect("an answer");
        refused.push(orders.refused);
    }
    let number = registered.process;
    let named = format!("two processes report as process {number}");
    assert!(
        refused[3].contains(&named) && refused[3].contains("on connection copy must end"),
        "{refused:?}"
    );
    assert!(
        [0, 1, 2, 4].iter().all(|place| refused[*place].is_empty()),
        "{refused:?}"
    );
    assert!(
        realm.log_of("director").contains(&named),
        "{}",
        realm.log_of("director")
    );
    realm.assert_playing("two processes with one number").await;
}

async fn full_store(realm: &mut Played) {
    let Some(disk) = realm.disk("store") else {
        return skipped();
    };
    disk.fill();
    until(NOTICE_TIMEOUT, "db to stop on a full disk", || {
        matches!(realm.realm.ended("db"), Ok(Some(_)))
    })
    .await;
    let said = realm.log_of("db");
    assert!(said.contains("free or replace the disk, then start it again"), "{said}");
    // Owners run on without the store.
    let shown = realm.shown();
    until(QUIET * 2, "bots to play without the store", || {
        realm.shown() > shown + 50
    })
    .await;
    // The supervisor waits for room, however long, and restarts db by itself.
    for _ in 0..8 {
        realm.supervise().await;
        assert!(matches!(realm.realm.ended("db"), Ok(Some(_))), "db waits for room");
    }
    realm.disk("store").expect("it is mounted").free();
    let said = realm.supervise().await;
    assert!(said.iter().any(|line| line.starts_with("db ended")), "{said:?}");
    realm.assert_playing("a full disk under the store").await;
}

async fn full_log(realm: &mut Played) {
    let Some(disk) = realm.disk("nats") else {
        return skipped();
    };
    disk.fill();
    wait_until_quiet(realm).await;
    for holder in ["base-1", "base-2", "cell-1", "cell-2"] {
        let wanted = "look at the nats-server's log and disk";
        until(NOTICE_TIMEOUT, "holders to say why nothing is shown", || {
            let said = realm.log_of(holder);
            said.contains("the log is blocked") && said.contains(wanted)
        })
        .await;
    }
    for service in ["base", "cell"] {
        realm
            .wait_for_state(service, 2, |is| matches!(is, Readiness::Waiting { .. }))
            .await;
    }
    realm
        .supervise_until("its nats-server is restarted when there is space")
        .await;
    realm.disk("nats").expect("it is mounted").free();
    realm.supervise_until("was restarted").await;
    realm.assert_playing("a full disk under the log").await;
}

async fn bus_outage(realm: &mut Played) {
    let began = Instant::now();
    realm.realm.nats_servers().kill().expect("it can be killed");
    wait_until_quiet(realm).await;
    assert_eq!(
        log_in(realm, "latecomer").await,
        LoginAnswer::Refused(LoginRefusal::Busy)
    );
    assert!(LoginRefusal::Busy.to_string().contains("try again in a moment"));
    let said = realm.log_of("base-1");
    assert!(
        said.contains("the bus is unreachable, reconnecting; check that the nats-server runs"),
        "{said}"
    );
    tokio::time::sleep(OUTAGE.saturating_sub(began.elapsed())).await;
    realm.realm.nats_servers().restart().await.expect("it starts again");
    realm.assert_playing("a bus that is away for 30 s").await;
}

/// Waits until no bot is shown anything, as the gate ensures when nothing can be logged.
pub(crate) async fn wait_until_quiet(realm: &Played) {
    let (mut shown, mut since) = (realm.shown(), Instant::now());
    until(NOTICE_TIMEOUT, "nothing to be shown that is not logged", || {
        if realm.shown() != shown {
            (shown, since) = (realm.shown(), Instant::now());
        }
        since.elapsed() > QUIET
    })
    .await;
}

pub(crate) fn skipped() {
    println!("SKIPPED: a small disk cannot be mounted here; run the tests as root to see disks fill");
}

/// A program of ours, with the settings of the live realm.
pub(crate) fn annals(realm: &Played, program: &str) -> Command {
    let mut command = Command::new(binary(program).expect("it is built"));
    command
        .current_dir(repository())
        .env("ANNALS_REALM", &realm.realm.plan().realm)
        .env("ANNALS_NATS", realm.realm.nats());
    command
}

/// Ports of the realm for clients: the login service, then each base.
async fn ports(realm: &Played) -> Vec<(SocketAddr, &'static [u8])> {
    let (bus, subjects, store) = realm.bus();
    let mut ports: Vec<(SocketAddr, &'static [u8])> = vec![(realm.realm.login.0, LOGIN_ALPN)];
    let records = annals_director::read_owners(&store).await.expect("the store answers");
    for (owner, _) in records.into_iter().filter(|(_, record)| record.kind == OwnerKind::Base) {
        let ask = DirectorRequest {
            ask: Some(DirectorAsk::Locate(Locate { owner: owner.0 })),
        };
        let place: OwnerAddress = request(&bus, "director", subjects.service("director"), &ask)
            .await
            .expect("an answer");
        let (address, _) = place.address.split_once(' ').expect("address and certificate");
        ports.push((address.parse().expect("an address"), PLAY_ALPN));
    }
    assert_eq!(ports.len(), 3, "the login service and two bases");
    ports
}

/// Logs in and plays without the client library; returns the account's entity.
async fn play(realm: &Played, name: &str) -> (Stranger, EntityId) {
    let LoginAnswer::Ticket(ticket) = log_in(realm, name).await else {
        panic!("{name} gets no ticket")
    };
    let mut body = Vec::new();
    let hello = Hello {
        protocol: protocol_hash(),
        schema: realm.schema.client_fingerprint(),
        owner: ticket.base.owner,
        epoch: ticket.base.epoch,
        session: ticket.session,
        proof: Proof::Ticket(ticket.secret),
        reads: Reads::Plain,
    };
    hello.write(&mut body);
    let mut stranger = Stranger::sending(ticket.base.address, &realm.data(), PLAY_ALPN, &framed(&body)).await;
    match HelloAnswer::read(&stranger.next().await).expect("an answer") {
        HelloAnswer::Welcome(welcome) => (stranger, welcome.entity),
        HelloAnswer::Rejected(why) => panic!("{name} is rejected: {why}"),
        HelloAnswer::Given(owner) => panic!("{name} is at owner {owner}"),
    }
}

async fn log_in(realm: &Played, name: &str) -> LoginAnswer {
    let mut body = Vec::new();
    let request = LoginRequest::LogIn {
        protocol: protocol_hash(),
        credentials: Credentials::password(name, "the password"),
    };
    request.write(&mut body);
    let mut stranger = Stranger::sending(realm.realm.login.0, &realm.data(), LOGIN_ALPN, &framed(&body)).await;
    LoginAnswer::read(&stranger.next().await).expect("an answer")
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder");
    for entry in from.read_dir().expect("a folder") {
        let entry = entry.expect("an entry");
        let to = to.join(entry.file_name());
        if entry.file_type().expect("a type").is_dir() {
            copy(&entry.path(), &to);
        } else {
            fs::copy(entry.path(), to).expect("a copy");
        }
    }
}
