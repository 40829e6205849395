//! Log-ins: memory of the login process after many of them, in a realm of real processes. Each needs a password hash of
//! 19 MiB, in memory that is reused, however many log in.

use std::{
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use annals_client::{Client, Config, Credentials, Event, Trust, client_endpoint};
use annals_def::check_dir;
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

/// Maximum memory of the process afterwards, MB.
const TARGET: f64 = 60.0;

/// Idle time before memory is measured.
const REST: Duration = Duration::from_secs(2);

/// Measures the memory of the login process.
///
/// # Panics
/// If the realm's binaries are not built beside this one, or it does not start.
#[must_use]
pub fn run() -> Vec<Figure> {
    let directory = crate::scratch();
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let realm = Realm::start(directory.path(), &Shape::default()).await;
        let figure = measure(&realm).await;
        realm.stop().await;
        vec![figure]
    })
}

async fn measure(realm: &Realm) -> Figure {
    let schema = Arc::new(check_dir(Path::new(WORLD)).0.expect("the sample's definitions compile"));
    let endpoint = client_endpoint(realm.login.0).expect("a socket");
    let began = Instant::now();
    let visits = stream::iter(0..LOG_INS).map(|number| {
        let config = Config {
            login: realm.login.0,
            trust: Trust::Pinned(realm.login.1),
            credentials: Credentials::password(format!("bench{}", number % ACCOUNTS), "a password for benches"),
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
    let seconds = began.elapsed().as_secs_f64();
    sleep(REST).await;
    let login = processes::below(realm.id());
    let login = login.iter().find(|process| process.name.contains("login"));
    let (now, most) = login
        .and_then(processes::Process::held)
        .expect("the login process runs");
    let note = format!(
        "resident memory of annals-login after {LOG_INS} log-ins of {ACCOUNTS} accounts, {AT_ONCE} at a time, in {seconds:.0} s \
         ({:.0} per second); at most {most:.0} MB before; target {TARGET}",
        LOG_INS as f64 / seconds
    );
    Figure::alone("login_rss_mb", now, "MB", note)
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
