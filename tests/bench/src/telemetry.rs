//! What exporting traces and metrics costs: processor time of a realm's processes under bots, with a collector and
//! without one, in turns.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use crate::{
    Figure,
    processes::{self, Load},
    realm::{Realm, Shape},
};

/// Bots that play.
const BOTS: usize = 200;

/// The share of calls that is traced.
const RATIO: &str = "0.01";

/// Realms of each kind, in turns, so that what else the machine does meets both.
const TURNS: usize = 3;

/// Time until all bots play as they do later, and the measured time.
const SETTLING: Duration = Duration::from_secs(6);
const MEASURED: Duration = Duration::from_secs(20);

/// Measures both kinds.
///
/// # Panics
/// If the realm's binaries are not built beside this one, or it does not start.
#[must_use]
pub fn run() -> Vec<Figure> {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let (endpoint, received) = collector();
    let exporting = Shape {
        settings: vec![
            ("ANNALS_OTLP".to_owned(), endpoint),
            ("ANNALS_TRACE_RATIO".to_owned(), RATIO.to_owned()),
        ],
        ..Shape::default()
    };
    let mut spent = [Vec::new(), Vec::new()];
    for _ in 0..TURNS {
        for (shape, spent) in [&Shape::default(), &exporting].into_iter().zip(&mut spent) {
            let busy = runtime.block_on(measure(shape));
            eprintln!("  {busy:.3} cores");
            spent.push(busy);
        }
    }
    let [without, with] = spent.map(median);
    let requests = received.load(Ordering::Relaxed);
    assert!(requests > 0, "nothing was exported");
    vec![Figure::against(
        "telemetry_cost",
        with,
        without,
        "cores",
        format!(
            "of the realm's processes without nats-server, under {BOTS} bots, {RATIO} of all calls traced, metrics every \
             15 s; baseline: without a collector; median of {TURNS} realms each; {requests} exports; goal: ratio at most \
             1.03"
        ),
    )]
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Processor time per second of a realm's processes.
async fn measure(shape: &Shape) -> f64 {
    let directory = crate::scratch();
    let realm = Realm::start(directory.path(), shape).await;
    let measuring = async {
        tokio::time::sleep(SETTLING).await;
        let (began, before) = (Instant::now(), load(&realm));
        tokio::time::sleep(MEASURED).await;
        load(&realm).since(before, began.elapsed().as_secs_f64()).busy
    };
    let (_, busy) = realm.among_bots(BOTS, directory.path(), measuring).await;
    realm.stop().await;
    busy
}

/// Of all processes that can export.
fn load(realm: &Realm) -> Load {
    let all = processes::below(realm.id()).into_iter();
    let ours = all.filter(|process| process.name.starts_with("annals-"));
    ours.map(|process| process.load()).sum()
}

/// A collector that accepts everything and keeps nothing: its address, and the number of requests so far.
fn collector() -> (String, Arc<AtomicU64>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("it is bound");
    let received = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&received);
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let counted = Arc::clone(&counted);
            thread::spawn(move || {
                // A process that ends closes its connection.
                while accept(&stream, &counted).is_ok() {}
            });
        }
    });
    (format!("http://{address}"), received)
}

/// Reads a request and answers it.
fn accept(mut stream: &TcpStream, counted: &AtomicU64) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream);
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        let header = line.trim_end().to_ascii_lowercase();
        if header.is_empty() {
            break;
        }
        if let Some(value) = header.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap_or(0);
        }
    }
    std::io::copy(&mut reader.take(length), &mut std::io::sink())?;
    counted.fetch_add(1, Ordering::Relaxed);
    stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-type: application/x-protobuf\r\ncontent-length: 0\r\n\r\n")
}
