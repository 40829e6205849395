//! Audit queries: an item's history in an archive of ten million events, by the index and by a full scan, and the time
//! to build the index.

pub(crate) mod archive;

use std::{
    path::Path,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use annals_audit::Index;
use annals_event::{Batch, Body};
use annals_host::process::FIRST_SHARD;
use annals_ids::Serial;
use annals_store::{Store, archive::read_leaves, archive::read_segments, embedded::EmbeddedStore};

use crate::{Figure, Percentiles, busy, realm::beside};
use archive::{Made, Plan, make};

/// The full size.
pub(crate) const WHOLE: Plan = Plan {
    rounds: 2_200,
    items: 10_000,
    moves: 32,
    changes: 640,
    text: 0,
};

/// Queries of a warm index, each about another item.
const QUESTIONS: u64 = 200;

/// Measures both.
///
/// # Panics
/// If the disk or the store fails, or `annals` is not built beside this.
#[must_use]
pub fn run() -> Vec<Figure> {
    let folder = crate::scratch();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime");
    let data = folder.path().join("realm");
    let made = runtime.block_on(write(&data, WHOLE));
    let (asked, peak) = ask(folder.path());
    let mut figures = runtime.block_on(measure(folder.path(), &made));
    figures.push(Figure::alone(
        "audit_item_command",
        asked.as_secs_f64() * 1e3,
        "ms",
        "`annals audit item` as a whole, with an index that is there".to_owned(),
    ));
    figures.push(Figure::alone(
        "audit_memory",
        peak,
        "MB",
        "most memory of `annals audit item` while it makes the index; 200 asked".to_owned(),
    ));
    figures
}

pub(crate) async fn write(data: &Path, plan: Plan) -> Made {
    std::fs::create_dir_all(data).expect("the disk accepts it");
    let store = EmbeddedStore::open(&data.join("store")).expect("a new store").store();
    make(&store, plan).await
}

async fn measure(folder: &Path, made: &Made) -> Vec<Figure> {
    let store = EmbeddedStore::open(&folder.join("realm/store"))
        .expect("its store")
        .store();
    let mut index = Index::open(&folder.join("index")).await.expect("an index");
    let (began, clock) = (busy(), Instant::now());
    let extent = index.catch_up(&store, |_| {}).await.expect("a sound archive");
    let making = clock.elapsed();
    let worked = busy() - began;
    assert_eq!(extent.entry, made.entries, "all of it was taken in");
    let mut durations = Vec::new();
    let mut steps = 0;
    for question in 0..QUESTIONS {
        let serial = Serial(1 + question * 37 % made.items);
        let clock = Instant::now();
        let item = index.item(&store, serial).await.expect("an item");
        durations.push(clock.elapsed());
        steps += item.steps.len() as u64;
    }
    let clock = Instant::now();
    let found = scan(&store, Serial(1)).await;
    let scanning = clock.elapsed();
    let item = index.item(&store, Serial(1)).await.expect("an item");
    assert_eq!(found, item.steps.len(), "both find the same");
    let found = Percentiles::of(&durations);
    let million = made.events as f64 * 1e-6;
    let about = format!(
        "{million:.1} million events in {} batches, {:.1} steps an item",
        made.batches,
        steps as f64 / QUESTIONS as f64
    );
    vec![
        Figure::against(
            "audit_item_vs_scan",
            found.p50 * 1e-3,
            scanning.as_secs_f64() * 1e3,
            "ms",
            format!("an item's history, p50; {about}; baseline: one scan of the archive"),
        ),
        Figure::alone(
            "audit_item_p99",
            found.p99 * 1e-3,
            "ms",
            "the same, p99; 100 asked".to_owned(),
        ),
        Figure::alone(
            "audit_index",
            made.events as f64 / making.as_secs_f64(),
            "events/s",
            format!(
                "making the index and verifying on the way, {:.1} s of processor time",
                worked.as_secs_f64()
            ),
        ),
    ]
}

/// Number of entries that move an item, found without an index.
async fn scan(store: &Store, serial: Serial) -> usize {
    let mut found = 0;
    for segment in read_segments(store, FIRST_SHARD).await.expect("segments") {
        for leaf in read_leaves(store, &segment).await.expect("leaves") {
            let bytes = leaf.archived.whole().expect("no events were deleted");
            let batch = Batch::read(&bytes).expect("a batch");
            for event in &batch.events {
                if let Body::Entered { entry: Some(entry), .. } = &event.body {
                    found += usize::from(entry.passages.iter().any(|passage| passage.serial == serial));
                }
            }
        }
    }
    found
}

/// Runs the command twice, as an auditor would; returns the duration of the second run, and the peak memory of the
/// first, MB.
fn ask(folder: &Path) -> (Duration, f64) {
    let run = || {
        let mut command = Command::new(beside("annals"));
        command.args(["audit", "item", "7", "--data", "realm", "--index", "asked"]);
        let mut child = command
            .current_dir(folder)
            .stdout(Stdio::null())
            .spawn()
            .expect("annals is built beside this");
        let mut peak: f64 = 0.0;
        let status = loop {
            peak = peak.max(most_memory(child.id()).unwrap_or(0.0));
            if let Some(status) = child.try_wait().expect("a child") {
                break status;
            }
            std::thread::sleep(Duration::from_millis(2));
        };
        assert!(status.success(), "the question is answered");
        peak
    };
    let peak = run();
    let clock = Instant::now();
    run();
    (clock.elapsed(), peak)
}

/// Peak memory of a process, MB.
fn most_memory(process: u32) -> Option<f64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kilobytes: f64 = line.trim().strip_suffix(" kB")?.trim().parse().ok()?;
    Some(kilobytes * 1e-3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_benchmark_runs_on_a_small_archive() {
        let folder = tempfile::tempdir().expect("a folder");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.expect("a runtime");
        let plan = Plan {
            rounds: 6,
            items: 40,
            moves: 32,
            changes: 640,
            text: 0,
        };
        let made = runtime.block_on(write(&folder.path().join("realm"), plan));
        assert_eq!(made.items, 40);
        let figures = runtime.block_on(measure(folder.path(), &made));
        let names: Vec<&str> = figures.iter().map(|figure| figure.name.as_str()).collect();
        assert_eq!(names, ["audit_item_vs_scan", "audit_item_p99", "audit_index"]);
        assert!(figures.iter().all(|figure| figure.value > 0.0));
    }
}
