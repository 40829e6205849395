//! Log-ins: how many in a second, and memory of the login process after many of them, in a realm of real processes. Each
//! needs a password hash of 19 MiB, in memory that is reused, however many log in. Hashing alone is the limit of their rate.

use std::{
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use annals_client::{Client, Config, Credentials, Event, Trust, client_endpoint};
use annals_def::check_dir;
use annals_host::passwords::{HASHED_AT_ONCE, Passwords};
use futures::{StreamExt, stream};
use tokio::time::{sleep, timeout};

use crate::{
    Figure, processes,
    realm::{Realm, Shape, TIMEOUT, WORLD},
};

/// Total log-ins, number of accounts, and concurrent log-ins.
const LOG_INS: usize = 2_000;
const ACCOUNTS: usize = 200;
const AT_ONCE: usize = 16;

/// Passwords compared to find the limit, half before the log-ins and half after them.
const COMPARED: usize = 200;

const PASSWORD: &str = "a password for benches";

/// Maximum memory of the process afterwards, MB.
const TARGET: f64 = 60.0;

/// Idle time before memory is measured.
const REST: Duration = Duration::from_secs(2);

/// Measures the rate of log-ins, and the memory of the login process.
///
/// # Panics
/// If the realm's binaries are not built, or it does not start.
#[must_use]
pub fn run() -> Vec<Figure> {
    repeat(LOG_INS, COMPARED)
}

/// The same with this number of log-ins, and of passwords compared to find the limit.
///
/// # Panics
/// As [`run`].
#[must_use]
pub fn repeat(log_ins: usize, compared: usize) -> Vec<Figure> {
    let directory = crate::scratch();
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let before = compare(compared / 2).await;
        let realm = Realm::start(directory.path(), &Shape::default()).await;
        let (took, memory) = measure(&realm, log_ins).await;
        realm.stop().await;
        let hashing = before + compare(compared / 2).await;
        let per_second = |count: usize, took: Duration| count as f64 / took.as_secs_f64();
        let limit = per_second(compared / 2 * 2, hashing);
        vec![rate(log_ins, per_second(log_ins, took), limit), memory]
    })
}

/// Compares passwords as login does, and nothing beside it; returns how long that takes.
async fn compare(passwords: usize) -> Duration {
    let hasher = Passwords::default();
    let hash = hasher.hash(PASSWORD.to_owned()).await.expect("a hash is made");
    let began = Instant::now();
    let compared = stream::iter(0..passwords).map(|_| hasher.fits(PASSWORD.to_owned(), hash.clone()));
    compared
        .buffer_unordered(AT_ONCE)
        .for_each(|fits| async { assert!(fits.expect("a password is compared"), "it is the password") })
        .await;
    began.elapsed()
}

/// The rate of log-ins, against that of hashing alone.
fn rate(log_ins: usize, value: f64, limit: f64) -> Figure {
    let note = format!(
        "{log_ins} log-ins of {ACCOUNTS} accounts, {AT_ONCE} at a time, each until the session is open, and its end; baseline: \
         the limit, which is comparing passwords alone with the same parameters, {HASHED_AT_ONCE} at a time"
    );
    Figure::against("login_per_second", value, limit, "log-ins/s", note)
}

/// How long the log-ins take, and the memory of the process that served them.
async fn measure(realm: &Realm, log_ins: usize) -> (Duration, Figure) {
    let schema = Arc::new(check_dir(Path::new(WORLD)).0.expect("the sample's definitions compile"));
    let endpoint = client_endpoint(realm.login.0).expect("a socket");
    let began = Instant::now();
    let visits = stream::iter(0..log_ins).map(|number| {
        let config = Config {
            login: realm.login.0,
            trust: Trust::Pinned(realm.login.1),
            credentials: Credentials::password(format!("bench{}", number % ACCOUNTS), PASSWORD),
            schema: Arc::clone(&schema),
            seed: number as u64,
            reads: annals_client::Reads::Predicted,
        };
        timeout(TIMEOUT, visit(Client::start(endpoint.clone(), config)))
    });
    visits
        .buffer_unordered(AT_ONCE)
        .for_each(|visited| async { visited.expect("a client is let in and out") })
        .await;
    let took = began.elapsed();
    sleep(REST).await;
    let login = processes::below(realm.id());
    let login = login.iter().find(|process| process.name.contains("login"));
    let (now, most) = login
        .and_then(processes::Process::held)
        .expect("the login process runs");
    let note = format!(
        "resident memory of annals-login after {log_ins} log-ins of {ACCOUNTS} accounts; at most {most:.0} MB before; \
         target {TARGET}"
    );
    (took, Figure::alone("login_rss_mb", now, "MB", note))
}

/// Logs in and leaves.
async fn visit(mut client: Client) {
    while let Some(event) = client.next().await {
        match event {
            Event::Connected { .. } => client.leave(),
            Event::Ended(annals_client::EndReason::Left) => {}
            Event::Ended(reason) => panic!("a client was put out: {reason}"),
            _ => {}
        }
    }
}
