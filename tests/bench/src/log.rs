//! The log: appending through the whole path against publishing the same bytes, replaying against reading them, and
//! taking over a log against replaying it.

use std::fs::File;
use std::io::{BufReader, Read, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use annals_def::{Located, Value};
use annals_event::{BaseCreation, Batch, Body, Cause, Event, FrozenBatch, Imprint, OwnerState, Subject};
use annals_host::clock;
use annals_host::log::{Driver, History, Holding, Reading, Recording, Registry, Verdict};
use annals_host::nats::{Bus, Server, ServerOptions};
use annals_ids::{DatabaseId, EntityId, Epoch, Hash, MemberId, OwnerId, Part, Shard, Tick, TypeId, WallTime};
use annals_node::chain::assemble;
use annals_node::gate::Gate;
use annals_node::journal::Journal;
use annals_node::writer::{Chain, Durability, Opening, Tip, Wanted, Writer};
use annals_wire::Subjects;
use futures::FutureExt;
use futures::future::{BoxFuture, ready};

use crate::Figure;

/// Bytes of one encoded event in a batch, without the length prefix.
const EVENT_BYTES: usize = 40;

/// Events in a batch: a cell of about a hundred busy entities at 10 Hz, or what a crowded base gathers in 5 ms.
const EVENTS_PER_BATCH: usize = 128;

/// Events of one input, after which other tasks run.
const EVENTS_AT_ONCE: usize = 16;
const _: () = assert!(EVENTS_PER_BATCH.is_multiple_of(EVENTS_AT_ONCE));

/// Properties of the changing entity.
const PROPERTIES: u16 = 16;

/// Owners that append concurrently, each with one batch in flight; and as many raw publishers.
const OWNERS: u32 = 64;

/// Warm-up and measurement of each part. The parts alternate, so that a busy moment of the machine affects both.
const WARM_UP: Duration = Duration::from_millis(200);
const MEASURED: Duration = Duration::from_millis(500);
const TURNS: u32 = 12;

/// Replayed batches: about 45 MB, more than any processor cache holds.
const REPLAYED: usize = 8_192;

/// Batches in the log at a take-over: much more than a db that keeps up leaves there.
const LEFT: usize = 2_048;

/// Measures all.
///
/// # Panics
/// If there is no nats-server, or the disk fails.
#[must_use]
pub fn run() -> Vec<Figure> {
    let directory = crate::scratch();
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    vec![
        runtime.block_on(append_vs_raw(directory.path())),
        replay_vs_read(directory.path()),
        runtime.block_on(recovery_vs_replay(directory.path())),
    ]
}

async fn append_vs_raw(directory: &Path) -> Figure {
    let server = Server::start(&ServerOptions::new(directory.join("nats")))
        .await
        .expect("a nats-server");
    let bus = Bus::connect(&server.url(), "bench").await.expect("it answers");
    let history = History::ensure(&bus, "bench", Shard(0), 1).await.expect("a stream");
    let raw = History::ensure(&bus, "raw", Shard(0), 1).await.expect("a stream");
    let (mut whole, mut bare, mut batches) = (0.0, 0.0, 0.0);
    for turn in 0..TURNS {
        let first = turn * OWNERS + 1;
        let appended = measure(first, |owner, run| append(history.clone(), owner, run)).await;
        let published = measure(first, |owner, run| publish(raw.clone(), owner, run)).await;
        whole += appended.bytes / f64::from(TURNS);
        batches += appended.batches / f64::from(TURNS);
        bare += published.bytes / f64::from(TURNS);
        for stream in [history.stream(), raw.stream()] {
            stream.purge().await.expect("the file is deleted");
        }
    }
    let megabytes = 1e-6;
    Figure::against(
        "log_append_vs_raw",
        whole * megabytes,
        bare * megabytes,
        "MB/s",
        format!(
            "{OWNERS} owners, one batch in flight each, {EVENTS_PER_BATCH} events of {EVENT_BYTES} B per batch, {batches:.0} batches/s, \
             {:.2} M events/s, sync always; baseline: the same payloads published by as many publishers",
            batches * EVENTS_PER_BATCH as f64 * 1e-6
        ),
    )
}

/// A run of appending or publishing: acknowledged bytes and events, and when to stop.
struct Run {
    bytes: AtomicU64,
    batches: AtomicU64,
    ends: AtomicBool,
}

impl Run {
    fn acknowledge(&self, bytes: usize) {
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        self.batches.fetch_add(1, Ordering::Relaxed);
    }

    fn ends(&self) -> bool {
        self.ends.load(Ordering::Relaxed)
    }
}

/// Acknowledged per second.
struct Rate {
    bytes: f64,
    batches: f64,
}

/// Runs [`OWNERS`] tasks concurrently.
async fn measure<F>(first: u32, work: impl Fn(OwnerId, Arc<Run>) -> F) -> Rate
where
    F: Future<Output = ()> + Send + 'static,
{
    let run = Arc::new(Run {
        bytes: AtomicU64::new(0),
        batches: AtomicU64::new(0),
        ends: AtomicBool::new(false),
    });
    let owners = (first..first + OWNERS).map(OwnerId);
    let tasks: Vec<_> = owners
        .map(|owner| tokio::spawn(work(owner, Arc::clone(&run))))
        .collect();
    let count = || (run.bytes.load(Ordering::Relaxed), run.batches.load(Ordering::Relaxed));
    tokio::time::sleep(WARM_UP).await;
    let (began, before) = (Instant::now(), count());
    tokio::time::sleep(MEASURED).await;
    let (after, seconds) = (count(), began.elapsed().as_secs_f64());
    run.ends.store(true, Ordering::Relaxed);
    for task in tasks {
        task.await.expect("no part of the bench panics");
    }
    Rate {
        bytes: (after.0 - before.0) as f64 / seconds,
        batches: (after.1 - before.1) as f64 / seconds,
    }
}

/// One owner that always has something to log. Counted is what has left its gate.
async fn append(history: History, owner: OwnerId, run: Arc<Run>) {
    let mut core = Core::new(owner);
    let writer = Writer::take_over(owner, Epoch(1), Durability::Log, Chain::default());
    let mut driver = Driver::new(writer, history, Arc::new(Granted));
    let mut gate = Gate::new();
    while !run.ends() {
        let wanted = driver.writer().wanted(clock::mono());
        if wanted != Wanted::Nothing {
            let batch = core.close(wanted == Wanted::Opening);
            gate.push(batch.number, batch.bytes.len());
            driver.offer(batch);
            // The batch is sent; while it is in flight the next is gathered, from successive events.
            driver.step().now_or_never();
            for first in (0..EVENTS_PER_BATCH).step_by(EVENTS_AT_ONCE) {
                tokio::task::yield_now().await;
                core.take(first);
            }
        }
        driver.step().await;
        let (acknowledged, fresh) = (driver.writer().acknowledged(), driver.writer().is_fresh(clock::mono()));
        while let Some(shown) = gate.release(acknowledged, fresh) {
            run.acknowledge(shown);
            driver.archived(driver.writer().tip(), Epoch(1));
        }
    }
}

/// One publisher of the same bytes as such an owner appends.
async fn publish(history: History, owner: OwnerId, run: Arc<Run>) {
    let mut core = Core::new(owner);
    let payloads: Vec<bytes::Bytes> = (0..8).map(|_| core.next_batch().bytes.into()).collect();
    let subject = Subjects::new("raw").log(Shard(0), owner);
    for payload in payloads.iter().cycle() {
        if run.ends() {
            return;
        }
        let sent = history
            .bus()
            .jetstream()
            .publish(subject.clone(), payload.clone())
            .await
            .expect("it is sent");
        sent.await.expect("it is stored");
        run.acknowledge(payload.len());
    }
}

/// A store that grants everything.
struct Granted;

impl Registry for Granted {
    fn record(&self, _: OwnerId, _: Opening, _: String) -> BoxFuture<'static, Recording> {
        Box::pin(ready(Recording::Recorded))
    }

    fn confirm(&self, _: OwnerId, _: Epoch, _: String) -> BoxFuture<'static, Holding> {
        Box::pin(ready(Holding::Granted))
    }
}

/// A journal in which one entity's property changes continuously.
struct Core {
    journal: Journal,
    filler: usize,
}

impl Core {
    const ENTITY: EntityId = EntityId(1);

    fn new(owner: OwnerId) -> Self {
        let imprint = Imprint {
            realm: "bench".to_owned(),
            owner,
            epoch: Epoch(1),
            schema: Hash::ZERO,
        };
        let mut journal = Journal::new(OwnerState::new(owner, Part::Base), imprint);
        let creation = BaseCreation {
            type_id: TypeId(0),
            database: DatabaseId(0),
            checkout: 0,
            properties: (0..PROPERTIES)
                .map(|member| (MemberId(member), Value::Bytes(Vec::new())))
                .collect(),
            cell_properties: Vec::new(),
        };
        journal.record(Self::subject(), false, Body::BaseCreated(Box::new(creation)));
        Self {
            journal,
            filler: filler(),
        }
    }

    fn subject() -> Subject {
        Subject::Entity(Self::ENTITY, Part::Base)
    }

    /// An input that records [`EVENTS_AT_ONCE`] events.
    fn take(&mut self, first: usize) {
        for event in first..first + EVENTS_AT_ONCE {
            self.journal.record(Self::subject(), true, change(event, self.filler));
        }
        self.journal.take_recorded();
    }

    fn close(&mut self, opens: bool) -> FrozenBatch {
        self.journal.freeze(Tick(0), WallTime(0), opens)
    }

    fn next_batch(&mut self) -> FrozenBatch {
        (0..EVENTS_PER_BATCH)
            .step_by(EVENTS_AT_ONCE)
            .for_each(|first| self.take(first));
        self.close(false)
    }
}

fn change(event: usize, filler: usize) -> Body {
    let member = MemberId(u16::try_from(event).expect("few events") % PROPERTIES);
    Body::Changed {
        member,
        change: Located::whole(Value::Bytes(vec![event as u8; filler])),
    }
}

/// Length of a value whose event has [`EVENT_BYTES`], at a history number of two bytes.
fn filler() -> usize {
    let length = |filler| {
        let history = Some(annals_ids::HistoryNumber(1_000));
        let mut bytes = Vec::new();
        Event {
            subject: Core::subject(),
            cause: Cause(0),
            history,
            body: change(0, filler),
        }
        .write(&mut bytes);
        bytes.len()
    };
    (0..EVENT_BYTES)
        .find(|filler| length(*filler) >= EVENT_BYTES)
        .expect("an event is smaller than that")
}

/// Replays a log from a file, and reads the same file, both on one core.
fn replay_vs_read(directory: &Path) -> Figure {
    let path = directory.join("log");
    let mut core = Core::new(OwnerId(1));
    let mut file = File::create(&path).expect("a file is made");
    let mut size = 0;
    for _ in 0..REPLAYED {
        let bytes = core.next_batch().bytes;
        let length = u32::try_from(bytes.len()).expect("a batch is small");
        file.write_all(&length.to_le_bytes())
            .and_then(|()| file.write_all(&bytes))
            .expect("it is written");
        size += bytes.len();
    }
    drop(file);
    let fastest = |work: &dyn Fn()| {
        let timed = (0..3).map(|_| {
            let began = Instant::now();
            work();
            began.elapsed()
        });
        timed.min().expect("three times").as_secs_f64()
    };
    let replay = fastest(&|| {
        let mut state = OwnerState::new(OwnerId(1), Part::Base);
        each_batch(&path, |bytes| {
            let batch = Batch::read(bytes).expect("what was written is a batch");
            state.fold(&batch).expect("it follows");
        });
        assert_eq!(
            state.tail.batch,
            core.journal.state().tail.batch,
            "the whole log was replayed"
        );
    });
    let read = fastest(&|| each_batch(&path, |bytes| assert!(!bytes.is_empty())));
    let megabytes = size as f64 * 1e-6;
    Figure::against(
        "replay_vs_read",
        megabytes / replay,
        megabytes / read,
        "MB/s/core",
        format!(
            "{REPLAYED} batches of {EVENTS_PER_BATCH} events of {EVENT_BYTES} B, {:.2} M events/s: decode, verify hashes, fold; \
             baseline: reading the same bytes from the file cache",
            (REPLAYED * EVENTS_PER_BATCH) as f64 * 1e-6 / replay
        ),
    )
}

/// Takes over an owner whose snapshot is at the beginning of its log, and folds the same batches from memory.
async fn recovery_vs_replay(directory: &Path) -> Figure {
    let server = Server::start(&ServerOptions::new(directory.join("recovery")))
        .await
        .expect("a nats-server");
    let bus = Bus::connect(&server.url(), "bench").await.expect("it answers");
    let history = History::ensure(&bus, "bench", Shard(0), 1).await.expect("a stream");
    let owner = OwnerId(1);
    let mut core = Core::new(owner);
    let first = core.close(true);
    let opening = Opening {
        epoch: first.epoch,
        number: first.number,
        hash: first.hash,
    };
    let batches: Vec<Vec<u8>> = std::iter::once(first)
        .chain((0..LEFT).map(|_| core.next_batch()))
        .map(|batch| batch.bytes)
        .collect();
    let mut last = 0;
    for bytes in &batches {
        match history.append(owner, last, bytes.clone().into(), &[]).await {
            Verdict::Appended(sequence) => last = sequence,
            other => panic!("it is not appended: {other:?}"),
        }
    }
    let fold = |state: &mut OwnerState, bytes: &[u8]| {
        let batch = Batch::read(bytes).expect("what was written is a batch");
        state.fold(&batch).expect("it follows");
    };
    let (mut recovery, mut replay) = (Duration::MAX, Duration::MAX);
    for _ in 0..3 {
        let began = Instant::now();
        let mut reading = Reading::default();
        history.read(owner, &mut reading).await.expect("the server answers");
        let chain = assemble(owner, Tip::default(), &[opening], reading.batches, reading.last);
        let mut state = OwnerState::new(owner, Part::Base);
        for batch in chain.expect("it has no hole").beyond {
            fold(&mut state, &batch.bytes);
        }
        recovery = recovery.min(began.elapsed());
        assert_eq!(state.tail.batch, core.journal.state().tail.batch, "all was recovered");
        let began = Instant::now();
        let mut state = OwnerState::new(owner, Part::Base);
        batches.iter().for_each(|bytes| fold(&mut state, bytes));
        replay = replay.min(began.elapsed());
    }
    let events = (LEFT * EVENTS_PER_BATCH) as f64 * 1e-6;
    Figure::against(
        "recovery_vs_replay",
        events / recovery.as_secs_f64(),
        events / replay.as_secs_f64(),
        "M events/s",
        format!(
            "{LEFT} batches of {EVENTS_PER_BATCH} events, {:.0} ms: read from the nats-server, the chain looked for, fold; \
             baseline: decode, verify hashes and fold the same batches from memory",
            recovery.as_secs_f64() * 1e3
        ),
    )
}

fn each_batch(path: &Path, mut with: impl FnMut(&[u8])) {
    let mut file = BufReader::with_capacity(1 << 20, File::open(path).expect("it was written"));
    let (mut length, mut bytes) = ([0; 4], Vec::new());
    while file.read_exact(&mut length).is_ok() {
        bytes.resize(u32::from_le_bytes(length) as usize, 0);
        file.read_exact(&mut bytes).expect("a whole batch");
        with(&bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_have_the_stated_size() {
        let mut core = Core::new(OwnerId(1));
        core.next_batch();
        let batch = core.next_batch();
        let header = annals_event::Header::read(&batch.bytes).unwrap().0;
        let each = header.events_length as usize / EVENTS_PER_BATCH;
        assert_eq!((header.events as usize, each), (EVENTS_PER_BATCH, EVENT_BYTES + 1));
    }
}
