//! The round trip: from a bot through its base to its cell and back, in a realm of real processes, compared with its
//! parts alone: a request over the same bus, a publish to the same log, and an echo over QUIC.

use std::{
    net::SocketAddr,
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use annals_client::{Client, Config, Credentials, Event, Trust, What, client_endpoint};
use annals_def::{Schema, Value, check_dir};
use annals_event::{Call, Link};
use annals_host::{log::History, nats::Bus};
use annals_ids::{Address, CallNumber, EntityId, Epoch, Hash, MemberId, OwnerId, Part, Shard};
use annals_node::writer::PACE;
use annals_wire::{
    Subjects,
    bus::{CallMessage, Envelope, Message},
};
use bytes::Bytes;
use futures::StreamExt;
use tokio::time::{timeout, timeout_at};

use crate::{
    Figure, Percentiles,
    quic_echo::{self, QuicEcho},
    realm::{Realm, Shape, TIMEOUT, WORLD},
};

/// Concurrent bots, each with one call in flight.
const BOTS: u64 = 8;

/// Round trips of each bot for warm-up, and measured.
const WARM_UP: u64 = 20;
const MEASURED: u64 = 300;

/// Pause of a bot between two round trips; a prime number of milliseconds, so that it does not align with ticks.
const PAUSE: Duration = Duration::from_millis(17);

/// Subject of the bare requests.
const ECHO: &str = "bench.echo";

/// Measures all of them, in turn.
///
/// # Panics
/// If the realm's binaries are not built, or it does not start.
#[must_use]
pub fn run() -> Vec<Figure> {
    repeat(MEASURED)
}

/// The same with this number of round trips of each bot.
///
/// # Panics
/// As [`run`].
#[must_use]
pub fn repeat(rounds: u64) -> Vec<Figure> {
    let directory = crate::scratch();
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let realm = Realm::start(directory.path(), &Shape::default()).await;
        let times = measure(&realm, rounds).await;
        realm.stop().await;
        figures(&times)
    })
}

fn figures(times: &Times) -> Vec<Figure> {
    let through = Percentiles::of(&times.through);
    let bare = Percentiles::of(&times.bare);
    let append = Percentiles::of(&times.append);
    let quic = Percentiles::of(&times.quic);
    let row = |name: &str, value: f64, baseline: f64, append: f64| {
        Figure::against(
            &format!("round_trip_bot_base_cell_bot_{name}"),
            value,
            baseline,
            "us",
            format!(
                "{BOTS} bots over QUIC, separate processes, two batches logged on the way, each closed at least {} ms after the one \
                 before it (sync always; a bare append takes {append:.0}); baseline: a NATS request of {} B and as large a reply",
                PACE.as_millis(),
                request().len()
            ),
        )
    };
    let of_parts = |name: &str, value: f64, [bare, append, quic]: [f64; 3]| {
        Figure::against(
            &format!("round_trip_and_its_parts_{name}"),
            value,
            bare + 2.0 * append + quic,
            "us",
            format!(
                "the same; baseline: the sum of its parts alone, which are a NATS request ({bare:.0}), twice a publish to JetStream \
                 that is acknowledged ({append:.0}) and an echo over QUIC ({quic:.0}); the time between batches is not in it"
            ),
        )
    };
    let alone = |name: &str, value: f64, what: &str| {
        let note = format!("{what}, {} B each way, in turn with the round trips", request().len());
        Figure::alone(name, value, "us", note)
    };
    let publish = "a publish to JetStream and its acknowledgement";
    let echo = "a bare echo over QUIC, on an open stream of an open connection";
    vec![
        row("p50", through.p50, bare.p50, append.p50),
        row("p99", through.p99, bare.p99, append.p99),
        of_parts("p50", through.p50, [bare.p50, append.p50, quic.p50]),
        of_parts("p99", through.p99, [bare.p99, append.p99, quic.p99]),
        alone("bare_nats_request_p50", bare.p50, "a bare NATS request and its reply"),
        alone("bare_nats_request_p99", bare.p99, "a bare NATS request and its reply"),
        alone("bare_jetstream_publish_p50", append.p50, publish),
        alone("bare_jetstream_publish_p99", append.p99, publish),
        alone("bare_quic_echo_p50", quic.p50, echo),
        alone("bare_quic_echo_p99", quic.p99, echo),
    ]
}

/// Measured durations.
#[derive(Debug, Default)]
struct Times {
    through: Vec<Duration>,
    bare: Vec<Duration>,
    append: Vec<Duration>,
    quic: Vec<Duration>,
}

/// What every bot needs.
#[derive(Clone)]
struct Means {
    login: SocketAddr,
    certificate: Hash,
    schema: Arc<Schema>,
    endpoint: quinn::Endpoint,
    bus: Bus,
    raw: History,
    /// The address and certificate hash of the bare echo.
    echo: (SocketAddr, Hash),
    rounds: u64,
}

async fn measure(realm: &Realm, rounds: u64) -> Times {
    let answering = Bus::connect(&realm.nats, "bench-echo").await.expect("the bus answers");
    let mut requests = answering.client().subscribe(ECHO).await.expect("it is subscribed");
    answering.barrier().await.expect("the bus answers");
    let echo = tokio::spawn(async move {
        while let Some(request) = requests.next().await {
            let reply = request.reply.expect("a request says where its answer goes");
            answering
                .client()
                .publish(reply, request.payload)
                .await
                .expect("it is sent");
        }
    });
    let bus = Bus::connect(&realm.nats, "bench").await.expect("the bus answers");
    let raw = History::ensure(&bus, "raw", Shard(0), 1).await.expect("a stream");
    let schema = check_dir(Path::new(WORLD)).0.expect("the sample's definitions compile");
    let bare_echo = quic_echo::serve();
    let means = Means {
        login: realm.login.0,
        certificate: realm.login.1,
        schema: Arc::new(schema),
        endpoint: client_endpoint(realm.login.0).expect("a socket"),
        bus,
        raw,
        echo: bare_echo.address(),
        rounds,
    };
    let bots: Vec<_> = (0..BOTS)
        .map(|number| tokio::spawn(play(means.clone(), number)))
        .collect();
    let mut times = Times::default();
    for bot in bots {
        let Times {
            through,
            bare,
            append,
            quic,
        } = bot.await.expect("no bot comes to grief");
        times.through.extend(through);
        times.bare.extend(bare);
        times.append.extend(append);
        times.quic.extend(quic);
    }
    echo.abort();
    times
}

/// One bot: a round trip, a bare request, a bare append, a bare echo, repeated.
async fn play(means: Means, number: u64) -> Times {
    let config = Config {
        login: means.login,
        trust: Trust::Pinned(means.certificate),
        credentials: Credentials::password(format!("bench{number}"), "a password for benches"),
        schema: Arc::clone(&means.schema),
        seed: number,
        reads: annals_client::Reads::Predicted,
    };
    let mut client = Client::start(means.endpoint.clone(), config);
    let (avatar, echoes) = timeout(TIMEOUT, enter(&mut client, &means.schema))
        .await
        .expect("a bot gets its avatar");
    let subject = Subjects::new("raw").log(
        Shard(0),
        OwnerId(u32::try_from(number + 1).expect("there are few bots")),
    );
    let request = request();
    let mut quic = QuicEcho::connect(&means.endpoint, means.echo).await;
    let mut times = Times::default();
    for count in 0..WARM_UP + means.rounds {
        let through = round_trip(&mut client, avatar, (count, echoes)).await;
        let bare = timed(async {
            let answer = means.bus.client().request(ECHO, request.clone()).await;
            assert_eq!(answer.expect("it is answered").payload, request);
        });
        let bare = bare.await;
        let append = timed(async {
            let sent = means.raw.bus().jetstream().publish(subject.clone(), request.clone());
            sent.await.expect("it is sent").await.expect("it is stored");
        });
        let append = append.await;
        let echoed = timed(quic.echo(&request)).await;
        if count >= WARM_UP {
            times.through.push(through);
            times.bare.push(bare);
            times.append.push(append);
            times.quic.push(echoed);
        }
        // A client that is not driven receives nothing and is disconnected.
        let until = tokio::time::Instant::now() + PAUSE;
        while timeout_at(until, client.next())
            .await
            .is_ok_and(|event| event.is_some())
        {}
    }
    client.leave();
    while client.next().await.is_some() {}
    times
}

/// Drives the client until it controls an avatar and sees it. Returns the avatar, and the client method that receives
/// echoes.
async fn enter(client: &mut Client, schema: &Schema) -> (EntityId, MemberId) {
    let avatar = schema.type_named("Avatar").expect("the sample has avatars");
    let echoes = avatar.client_method_named("onPong").expect("avatars echo").index;
    loop {
        match client.next().await {
            Some(Event::Ended(reason)) => panic!("a bot's session ended: {reason:?}"),
            Some(_) => {}
            None => panic!("a bot's session ended"),
        }
        let core = client.core();
        if let Some((entity, type_id)) = core.controls()
            && type_id == avatar.id
            && core.view(Part::Cell).entities().contains_key(&entity)
        {
            return (entity, echoes);
        }
    }
}

/// From the call of the base method to the call of the client method that answers it.
async fn round_trip(client: &mut Client, avatar: EntityId, (number, echoes): (u64, MemberId)) -> Duration {
    timed(async {
        client
            .call(avatar, Part::Base, "ping", &[Value::UInt(number)])
            .expect("avatars can be called");
        let wanted = What::Called {
            method: echoes,
            args: vec![Value::UInt(number)],
        };
        let echoed = async {
            loop {
                match client.next().await {
                    Some(Event::Shown(showing)) if showing.entity == avatar && showing.what == wanted => return,
                    Some(_) => {}
                    None => panic!("a bot's session ended"),
                }
            }
        };
        timeout(TIMEOUT, echoed).await.expect("an echo comes");
    })
    .await
}

async fn timed(work: impl Future<Output = ()>) -> Duration {
    let began = Instant::now();
    work.await;
    began.elapsed()
}

/// The message of a base to a cell in such a round trip; bare requests have the same size.
fn request() -> Bytes {
    let entity = EntityId(1 << 40);
    let envelope = Envelope {
        from: OwnerId(1),
        epoch: Epoch(1),
        message: Message::Call(CallMessage {
            link: Link {
                from: Address::Base(entity),
                to: Address::Cell(entity),
            },
            from_home: OwnerId(1),
            to_home: OwnerId(1),
            number: CallNumber(100),
            is_oldest: false,
            trace: [1; 16],
            call: Call::Method {
                method: MemberId(1),
                args: vec![Value::UInt(100)],
                wants_reply: false,
            },
        }),
    };
    envelope.encode().into()
}
