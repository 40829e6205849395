//! The attacks.

use std::{
    fmt,
    net::{Ipv4Addr, SocketAddr},
    pin::pin,
    sync::Arc,
    time::{Duration, Instant},
};

use annals_def::split_mix;
use annals_host::violations::Violation;
use annals_ids::{Direction, EntityId, HistoryNumber, Part, Position, SessionId};
use annals_wire::client::{
    CloseReason, Drove, HelloAnswer, Known, MAX_UPSTREAM_FRAME, Moved, PLAY_ALPN, Proof, Secret, Stamps, ToServer,
    ToServerDatagram,
};
use quinn::{ConnectionError, Endpoint};
use tokio::{
    net::{TcpSocket, UdpSocket},
    sync::Semaphore,
    task::JoinSet,
    time::{MissedTickBehavior, interval, sleep, timeout},
};

use super::{
    quic::{config, frame},
    target::{ATTACKER, Target, call},
    web,
};

/// Maximum actions of an attack in progress; further ones wait.
const AT_ONCE: usize = 4_096;

/// Timeout for one action.
const PATIENCE: Duration = Duration::from_secs(10);

/// Calls and movements of a flood that are sent at once.
const BURST: u64 = 50;

/// Sessions that do not read.
const SLOW: usize = 4;

/// A kind of attack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Attack {
    /// Random UDP packets, half of them like the first of a connection.
    Noise,
    /// First packets of QUIC handshakes, and no second.
    HalfOpen,
    /// Connections that send no frame.
    Silent,
    /// TCP connections on which TLS does not begin.
    TcpOnly,
    /// Log-ins with wrong passwords, to known and to new accounts.
    Passwords,
    /// Tickets that were used.
    Replays,
    /// Sessions and secrets that do not exist.
    Forgeries,
    /// Calls of methods that are not exposed.
    Unexposed,
    /// Calls with arguments that do not fit.
    Arguments,
    /// Calls to entities of others, and of nobody.
    Entities,
    /// Frames above the limit.
    Oversize,
    /// Frames of noise.
    Malformed,
    /// Calls, as fast as they can be sent.
    Calls,
    /// Movements, as fast as they can be sent.
    Movements,
    /// Sessions that begin views and do not read.
    SlowReaders,
    /// WebSocket frames of every wrong kind.
    WebSocketFrames,
    /// WebSockets of pages of another origin.
    ForeignOrigins,
}

impl Attack {
    pub(super) const ALL: [Self; 17] = [
        Self::Noise,
        Self::HalfOpen,
        Self::Silent,
        Self::TcpOnly,
        Self::Passwords,
        Self::Replays,
        Self::Forgeries,
        Self::Unexposed,
        Self::Arguments,
        Self::Entities,
        Self::Oversize,
        Self::Malformed,
        Self::Calls,
        Self::Movements,
        Self::SlowReaders,
        Self::WebSocketFrames,
        Self::ForeignOrigins,
    ];

    /// As what it is counted, as one of these; none if it causes nothing that would be worth counting, or is counted
    /// elsewhere.
    pub(super) fn violations(self) -> &'static [Violation] {
        match self {
            // Packets that belong to no connection; refused log-ins, which login counts; calls to an entity that has
            // just left, which honest clients make, too; and clients that are closed only when megabytes wait.
            Self::Noise | Self::Passwords | Self::Entities | Self::SlowReaders => &[],
            Self::HalfOpen | Self::TcpOnly => &[Violation::FailedHandshake],
            Self::Silent => &[Violation::Silent],
            Self::Replays | Self::Forgeries => &[Violation::UnknownSession],
            Self::Unexposed => &[Violation::NoSuchMethod],
            Self::Arguments => &[Violation::BadArguments],
            Self::Oversize => &[Violation::TooLarge],
            Self::Malformed | Self::WebSocketFrames => &[Violation::Malformed],
            // Each call is answered, and the answers to a burst may be more than the client's queue holds.
            Self::Calls => &[Violation::TooFast, Violation::TooSlow],
            Self::Movements => &[Violation::TooFast],
            Self::ForeignOrigins => &[Violation::ForeignOrigin],
        }
    }

    /// Actions per second.
    fn rate(self) -> u32 {
        match self {
            Self::Noise => 2_000,
            Self::HalfOpen | Self::Silent | Self::TcpOnly => 500,
            Self::Passwords | Self::Replays | Self::Calls | Self::Movements => 20,
            Self::Forgeries | Self::Oversize | Self::Malformed => 100,
            Self::Unexposed | Self::Arguments | Self::Entities => 100,
            Self::SlowReaders => 10,
            Self::WebSocketFrames | Self::ForeignOrigins => 50,
        }
    }

    /// Attacks for this time, which begins when the sessions that the attack needs are open: on a busy machine a log-in
    /// may take longer than the attack. Returns the number of actions.
    ///
    /// # Panics
    ///
    /// If such a session cannot be opened.
    pub(super) async fn run(self, target: &Target, time: Duration) -> u64 {
        let target = Arc::new(target.clone());
        let rate = self.rate();
        match self {
            Self::Noise => noise(&target, rate, time).await,
            Self::HalfOpen => half_open(&target, rate, time).await,
            Self::Silent => repeat(rate, time, |_| silent(Arc::clone(&target))).await,
            Self::TcpOnly => repeat(rate, time, |_| tcp_only(target.base)).await,
            Self::Passwords => repeat(rate, time, |number| password(Arc::clone(&target), number)).await,
            Self::Replays => replays(target, rate, time).await,
            Self::Forgeries => repeat(rate, time, |number| forgery(Arc::clone(&target), number)).await,
            Self::Unexposed => calls(&target, (1, rate), time, |_| (None, vec![200])).await,
            Self::Arguments => {
                let message = |number: u64| [&[0][..], &number.to_le_bytes()].concat();
                calls(&target, (2, rate), time, |number| (None, message(number))).await
            }
            Self::Entities => calls(&target, (3, rate), time, |number| (Some(number), vec![0])).await,
            Self::Oversize => repeat(rate, time, |_| oversize(Arc::clone(&target))).await,
            Self::Malformed => repeat(rate, time, |number| malformed(Arc::clone(&target), number)).await,
            Self::Calls => repeat(rate, time, |_| call_flood(Arc::clone(&target))).await,
            Self::Movements => repeat(rate, time, |_| move_flood(Arc::clone(&target))).await,
            Self::SlowReaders => slow_readers(&target, rate, time).await,
            Self::WebSocketFrames => repeat(rate, time, |number| web::wrong_frame(Arc::clone(&target), number)).await,
            Self::ForeignOrigins => repeat(rate, time, |_| web::foreign_origin(Arc::clone(&target))).await,
        }
    }
}

impl fmt::Display for Attack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Noise => "random UDP packets",
            Self::HalfOpen => "half-open QUIC handshakes",
            Self::Silent => "connections without a frame",
            Self::TcpOnly => "TCP connections without TLS",
            Self::Passwords => "guessed passwords and registrations",
            Self::Replays => "replayed tickets",
            Self::Forgeries => "forged sessions",
            Self::Unexposed => "calls of methods that are not exposed",
            Self::Arguments => "calls with wrong arguments",
            Self::Entities => "calls to foreign entities",
            Self::Oversize => "oversize frames",
            Self::Malformed => "malformed frames",
            Self::Calls => "floods of calls",
            Self::Movements => "floods of movements",
            Self::SlowReaders => "views that are not read",
            Self::WebSocketFrames => "wrong WebSocket frames",
            Self::ForeignOrigins => "WebSockets of foreign pages",
        })
    }
}

/// Repeats an action at a rate for this time, and waits for those in progress. Returns how often.
async fn repeat<F>(rate: u32, time: Duration, action: impl Fn(u64) -> F) -> u64
where
    F: Future<Output = ()> + Send + 'static,
{
    let slots = Arc::new(Semaphore::new(AT_ONCE));
    let mut tasks = JoinSet::new();
    let mut due = interval(Duration::from_secs(1) / rate);
    due.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut actions = 0;
    let mut deadline = pin!(sleep(time));
    loop {
        tokio::select! {
            _ = due.tick() => {}
            () = &mut deadline => break,
        }
        while let Some(done) = tasks.try_join_next() {
            done.expect("the server did what it must");
        }
        let Ok(slot) = Arc::clone(&slots).try_acquire_owned() else {
            continue;
        };
        let action = action(actions);
        tasks.spawn(async move {
            // An action that the server leaves unanswered ends here.
            let _ = timeout(PATIENCE, action).await;
            drop(slot);
        });
        actions += 1;
    }
    while let Some(done) = tasks.join_next().await {
        done.expect("the server did what it must");
    }
    actions
}

async fn noise(target: &Target, rate: u32, time: Duration) -> u64 {
    let socket = UdpSocket::bind((ATTACKER, 0)).await.expect("a port is free");
    let mut dice = split_mix(1);
    let mut due = interval(Duration::from_secs(1) / rate);
    due.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut actions = 0;
    let until = Instant::now() + time;
    while Instant::now() < until {
        due.tick().await;
        let length = 20 + (dice() % 1_180) as usize;
        let mut packet: Vec<u8> = (0..length).map(|_| dice().to_le_bytes()[0]).collect();
        if actions % 2 == 0 {
            // The long header of an initial packet, version 1.
            packet[..5].copy_from_slice(&[0xc3, 0, 0, 0, 1]);
        }
        // A packet that the kernel drops is as good as another.
        let _ = socket
            .send_to(&packet, [target.base, target.login][(actions / 2 % 2) as usize])
            .await;
        actions += 1;
    }
    actions
}

/// Lets a client of QUIC write the first packet of a connection to a socket of ours, and sends that to the target.
async fn half_open(target: &Target, rate: u32, time: Duration) -> u64 {
    let recorder = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port is free");
    let sender = UdpSocket::bind((ATTACKER, 0)).await.expect("a port is free");
    let at = recorder.local_addr().expect("it has an address");
    let mut client = Endpoint::client((ATTACKER, 0).into()).expect("a port is free");
    client.set_default_client_config(config(&target.trust, PLAY_ALPN));
    let mut due = interval(Duration::from_secs(1) / rate);
    due.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut packet = vec![0; 2_048];
    let mut actions = 0;
    let until = Instant::now() + time;
    while Instant::now() < until {
        due.tick().await;
        let connecting = client.connect(at, "localhost").expect("an address of IPv4");
        let Ok(Ok(length)) = timeout(PATIENCE, recorder.recv(&mut packet)).await else {
            continue;
        };
        drop(connecting);
        let _ = sender.send_to(&packet[..length], target.base).await;
        actions += 1;
    }
    actions
}

/// Connects, and holds the connection until the server closes it.
async fn silent(target: Arc<Target>) {
    if let Ok(connection) = target.connect_to_base().await {
        connection.closed().await;
    }
}

async fn tcp_only(to: SocketAddr) {
    let connect = async {
        let socket = TcpSocket::new_v4()?;
        socket.bind((ATTACKER, 0).into())?;
        let stream = socket.connect(to).await?;
        // Readable when the server has closed it.
        stream.readable().await
    };
    let _ = connect.await;
}

async fn password(target: Arc<Target>, number: u64) {
    let name = match number % 2 {
        0 => "bot 0".to_owned(),
        _ => format!("another {number}"),
    };
    drop(target.log_in(&name, "a guess").await);
}

/// Uses the ticket of a session that was admitted, and whose client has left.
async fn replays(target: Arc<Target>, rate: u32, time: Duration) -> u64 {
    let session = target.enter(0).await.expect("the account of replays enters");
    let (id, secret) = (session.ticket.session, session.ticket.secret.0);
    drop(session);
    let replay = |_| {
        let target = Arc::clone(&target);
        async move { check_rejected(target.present(id, Proof::Ticket(Secret(secret))).await.as_ref()) }
    };
    repeat(rate, time, replay).await
}

async fn forgery(target: Arc<Target>, number: u64) {
    let mut dice = split_mix(number);
    let secret: Vec<u8> = (0..4).flat_map(|_| dice().to_le_bytes()).collect();
    let secret = Secret(secret.try_into().expect("four times eight bytes"));
    let proof = match number % 2 {
        0 => Proof::Ticket(secret),
        _ => Proof::Resume(secret),
    };
    // Numbers of sessions are guessable; their secrets are not.
    check_rejected(target.present(SessionId(number % 500), proof).await.as_ref());
}

/// Checks that it is, or that no connection could be made: the server may refuse one.
fn check_rejected(answer: Option<&HelloAnswer>) {
    assert!(
        !matches!(answer, Some(HelloAnswer::Welcome(_))),
        "an attacker was welcomed"
    );
}

/// Calls in one session: to which entity, if not the session's own, and the message.
async fn calls(
    target: &Target,
    (account, rate): (usize, u32),
    time: Duration,
    message: impl Fn(u64) -> (Option<u64>, Vec<u8>),
) -> u64 {
    let mut session = target.enter(account).await.expect("the account of calls enters");
    let mut due = interval(Duration::from_secs(1) / rate);
    due.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut actions = 0;
    let mut answers = vec![0; 1_024];
    let until = Instant::now() + time;
    while Instant::now() < until {
        tokio::select! {
            _ = due.tick() => {
                actions += 1;
                let (to, message) = message(actions);
                // Calls are numbered by receiver.
                let (to, number) = match to {
                    Some(entity) => (EntityId(entity), 1),
                    None => (session.entity, actions),
                };
                if session.send.write_all(&call(to, number, message)).await.is_err() {
                    break;
                }
            }
            read = session.receive.read(&mut answers) => if !matches!(read, Ok(Some(_))) {
                break;
            }
        }
    }
    actions
}

async fn oversize(target: Arc<Target>) {
    let mut frame = Vec::new();
    annals_event::put_number(&mut frame, MAX_UPSTREAM_FRAME as u64 + 1);
    frame.extend([0; 64]);
    send_first(&target, &frame).await;
}

async fn malformed(target: Arc<Target>, number: u64) {
    let mut dice = split_mix(number);
    let length = 1 + (dice() % 300) as usize;
    let body: Vec<u8> = (0..length).map(|_| dice().to_le_bytes()[0]).collect();
    send_first(&target, &frame(&body)).await;
}

/// Sends these bytes first, and waits for the close.
async fn send_first(target: &Target, bytes: &[u8]) {
    if let Some((connection, _send, _receive)) = target.open(bytes).await {
        connection.closed().await;
    }
}

/// Sends calls until the connection is closed.
async fn call_flood(target: Arc<Target>) {
    // The next action's session may have replaced this one.
    let Ok(mut session) = target.enter(4).await else {
        return;
    };
    let mut number = 0;
    while session.connection.close_reason().is_none() {
        let burst: Vec<u8> = (number..number + BURST)
            .flat_map(|number| call(session.entity, number + 1, vec![200]))
            .collect();
        number += BURST;
        if session.send.write_all(&burst).await.is_err() {
            break;
        }
    }
    check_close(&session.connection.closed().await);
}

async fn move_flood(target: Arc<Target>) {
    let Ok(session) = target.enter(5).await else {
        return;
    };
    let mut sequence = 0;
    while session.connection.close_reason().is_none() {
        for _ in 0..BURST {
            sequence += 1;
            let moved = Moved {
                sequence,
                position: Position {
                    x: sequence as f32,
                    y: 0.0,
                    z: 0.0,
                },
                direction: Direction::default(),
            };
            // Every other one is of an entity that the client does not drive.
            let datagram = match sequence % 2 {
                0 => ToServerDatagram::Moved(moved),
                _ => ToServerDatagram::Drove(Drove {
                    entity: EntityId(sequence),
                    upto: HistoryNumber(sequence),
                    moved,
                }),
            };
            let mut bytes = Vec::new();
            datagram.write(&mut bytes);
            let _ = session.connection.send_datagram(bytes.into());
        }
        tokio::task::yield_now().await;
    }
    check_close(&session.connection.closed().await);
}

/// Checks that the flood ended as it should, or because another session of the account replaced this one.
fn check_close(error: &ConnectionError) {
    if let ConnectionError::ApplicationClosed(close) = error {
        let reason = CloseReason::from_code(close.error_code.into_inner());
        let flooded = [CloseReason::TooFast, CloseReason::TooSlow];
        let replaced = [CloseReason::LoggedInElsewhere, CloseReason::Replaced, CloseReason::Lost];
        assert!(
            flooded.contains(&reason) || replaced.contains(&reason),
            "closed for {reason}"
        );
    }
}

/// Sessions that ask for their view again and again, and read nothing.
async fn slow_readers(target: &Target, rate: u32, time: Duration) -> u64 {
    let mut sessions = Vec::new();
    for account in 0..SLOW {
        let session = target.enter(account).await;
        sessions.push(session.expect("an account of slow readers enters"));
    }
    let mut due = interval(Duration::from_secs(1) / rate);
    let mut actions = 0;
    let until = Instant::now() + time;
    while Instant::now() < until {
        due.tick().await;
        actions += 1;
        for session in &mut sessions {
            let stamps = Stamps {
                source: Part::Base,
                view: actions,
                known: Known::default(),
            };
            let mut body = Vec::new();
            ToServer::Stamps(stamps).write(&mut body);
            let _ = session.send.write_all(&frame(&body)).await;
        }
    }
    actions
}
