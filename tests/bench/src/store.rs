//! The store: durable serializable commits of the embedded store against bare `fdatasync`, and of a store on a cluster,
//! if one is configured, against the embedded store.

use std::fs::File;
use std::io::Write;
use std::time::{Duration, Instant};

use annals_store::conformance::Cluster;
use annals_store::embedded::{EmbeddedStore, Written};
use annals_store::{Store, StoreError};

use crate::{Figure, Percentiles};

/// Transactions in flight at a time.
pub(crate) const IN_FLIGHT: usize = 64;

/// Warm-up and measurement of each part. The parts alternate, so that a busy moment of the disk affects all.
const WARM_UP: Duration = Duration::from_millis(200);
const MEASURED: Duration = Duration::from_millis(800);
const TURNS: u32 = 4;

/// Value written by each commit, bytes; its key adds 16.
const VALUE_BYTES: usize = 100;

const KEY_BYTES: usize = 16;

/// Measures durable commits per second, 64 and one in flight, against one writer that appends the same bytes to a file
/// and calls `fdatasync` after each. If a cluster is configured ([`annals_store::conformance::CLUSTER`]), measures the
/// same on it against the embedded store in the same run.
///
/// # Panics
/// If a store or the file fails.
#[must_use]
pub fn run() -> Vec<Figure> {
    let directory = crate::scratch();
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let embedded = EmbeddedStore::open(&directory.path().join("store")).expect("a new store");
    let mut cluster = runtime.block_on(Cluster::named("bench"));
    let cluster_store = cluster.as_mut().map(|cluster| runtime.block_on(cluster.empty()));
    let mut file = File::create(directory.path().join("bare")).expect("a file is made");
    let (mut bare, mut one, mut many) = (0.0, Commits::default(), Commits::default());
    let (mut one_there, mut many_there) = (Commits::default(), Commits::default());
    let written = || embedded.written();
    for _ in 0..TURNS {
        bare += bare_syncs(&mut file) / f64::from(TURNS);
        runtime.block_on(one.run(&embedded.store(), written, 1));
        runtime.block_on(many.run(&embedded.store(), written, IN_FLIGHT));
        if let Some(store) = &cluster_store {
            runtime.block_on(one_there.run(store, Written::default, 1));
            runtime.block_on(many_there.run(store, Written::default, IN_FLIGHT));
        }
    }
    let (one, many) = (one.rate(), many.rate());
    let mut figures = embedded_figures(&one, &many, bare);
    if cluster_store.is_some() {
        figures.extend(cluster_figures(&one_there.rate(), &many_there.rate(), (&one, &many)));
    }
    figures
}

fn cluster_figures(one: &Rate, many: &Rate, (embedded_one, embedded_many): (&Rate, &Rate)) -> Vec<Figure> {
    let note = |rate: &Rate, in_flight: usize| {
        format!(
            "{in_flight} in flight on the named cluster, p50 {:.2} ms, p99 {:.2} ms; baseline: the embedded store",
            rate.p50, rate.p99
        )
    };
    let figure = |name: &str, rate: &Rate, embedded: &Rate, in_flight: usize| {
        let note = note(rate, in_flight);
        Figure::against(name, rate.per_second, embedded.per_second, "commits/s", note)
    };
    vec![
        figure("store_cluster_commits", many, embedded_many, IN_FLIGHT),
        figure("store_cluster_one_in_flight", one, embedded_one, 1),
    ]
}

fn embedded_figures(one: &Rate, many: &Rate, bare: f64) -> Vec<Figure> {
    let bytes = KEY_BYTES + VALUE_BYTES;
    vec![
        Figure::against(
            "store_commits_vs_fsync",
            many.per_second,
            bare,
            "commits/s",
            format!(
                "{IN_FLIGHT} in flight, each reads and writes its key ({bytes} B), {:.1} to a group, p50 {:.2} ms, p99 {:.2} ms; \
                 baseline: fdatasync of the same bytes, one writer",
                many.group, many.p50, many.p99
            ),
        ),
        Figure::against(
            "store_commits_one_in_flight",
            one.per_second,
            bare,
            "commits/s",
            format!("the same, one in flight, p50 {:.2} ms, p99 {:.2} ms", one.p50, one.p99),
        ),
    ]
}

/// Durable commits per second in one turn, [`IN_FLIGHT`] at a time.
pub(crate) async fn commits_per_second(embedded: &EmbeddedStore) -> f64 {
    let mut commits = Commits::default();
    commits.run(&embedded.store(), || embedded.written(), IN_FLIGHT).await;
    commits.rate().per_second
}

/// Appends and syncs, one after the other; returns how many per second.
fn bare_syncs(file: &mut File) -> f64 {
    let bytes = [7; KEY_BYTES + VALUE_BYTES];
    let mut sync_until = |end: Instant| {
        let mut count = 0_u32;
        while Instant::now() < end {
            file.write_all(&bytes)
                .and_then(|()| file.sync_data())
                .expect("the disk accepts it");
            count += 1;
        }
        count
    };
    sync_until(Instant::now() + WARM_UP);
    let start = Instant::now();
    f64::from(sync_until(start + MEASURED)) / start.elapsed().as_secs_f64()
}

/// Measurements of all turns.
#[derive(Debug, Default)]
struct Commits {
    /// Grouped commits, and groups.
    grouped: u64,
    groups: u64,
    time: Duration,
    latencies: Vec<Duration>,
}

/// Results.
struct Rate {
    per_second: f64,
    /// Commits in a group, on average.
    group: f64,
    /// Latencies, in milliseconds.
    p50: f64,
    p99: f64,
}

impl Commits {
    /// One turn. `written` returns how much the store has written, as far as it knows.
    async fn run(&mut self, store: &Store, written: impl Fn() -> Written, in_flight: usize) {
        let warm = Instant::now() + WARM_UP;
        let end = warm + MEASURED;
        let work = |worker| commit_until(store.clone(), worker, (warm, end));
        let workers: Vec<_> = (0..in_flight).map(|worker| tokio::spawn(work(worker))).collect();
        tokio::time::sleep_until(warm.into()).await;
        let before = written();
        let start = Instant::now();
        tokio::time::sleep_until(end.into()).await;
        let after = written();
        self.time += start.elapsed();
        self.grouped += after.commits - before.commits;
        self.groups += after.groups - before.groups;
        for worker in workers {
            self.latencies.extend(worker.await.expect("no worker fails"));
        }
    }

    fn rate(&self) -> Rate {
        let Percentiles { p50, p99 } = Percentiles::of(&self.latencies);
        Rate {
            per_second: self.latencies.len() as f64 / self.time.as_secs_f64(),
            group: self.grouped as f64 / self.groups as f64,
            p50: p50 * 1e-3,
            p99: p99 * 1e-3,
        }
    }
}

/// One worker's sequential commits; returns the duration of each that began after `warm` and completed by `end`.
async fn commit_until(store: Store, worker: usize, (warm, end): (Instant, Instant)) -> Vec<Duration> {
    let mut latencies = Vec::new();
    for commit in 0_u64.. {
        let start = Instant::now();
        if start >= end {
            break;
        }
        one_commit(&store, worker, commit).await.expect("it commits");
        let took = start.elapsed();
        if start >= warm && start + took <= end {
            latencies.push(took);
        }
    }
    latencies
}

/// Reads and writes a key: each time another of this worker's thousand keys.
async fn one_commit(store: &Store, worker: usize, commit: u64) -> Result<(), StoreError> {
    let key = format!("bench/{worker:04}/{:05}", commit % 1_000);
    debug_assert_eq!(key.len(), KEY_BYTES);
    let transaction = store.begin();
    transaction.get(key.as_bytes()).await?;
    transaction.set(key.as_bytes(), &[7; VALUE_BYTES])?;
    transaction.commit().await.map(drop)
}
