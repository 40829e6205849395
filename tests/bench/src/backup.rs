//! Backups: making and restoring one with the command line, compared with copying the files of the same store.

use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use annals_db::Folder;
use annals_def::{Located, Schema, Value};
use annals_director::{Grants, openings};
use annals_event::{BaseCreation, Body, Cause, Event, FrozenBatch, Gathering, Header, Imprint, Subject, Tail};
use annals_host::process::FIRST_SHARD;
use annals_ids::{DatabaseId, EntityId, MemberId, OwnerKind, Part, ProcessId, Tick, TypeId, WallTime};
use annals_store::{Store, embedded::EmbeddedStore, layout::owners::OpeningRecord};

use crate::Figure;

/// Batches of the realm: about 16 MB.
const BATCHES: u64 = 8_192;

/// Events in a batch, each a change of one property.
const EVENTS_PER_BATCH: usize = 128;

/// Properties of the changing entity.
const PROPERTIES: u16 = 16;

/// Measurements of each part, alternating.
const TURNS: u32 = 3;

/// Measures both.
///
/// # Panics
/// If the disk or the store fails.
#[must_use]
pub fn run() -> Vec<Figure> {
    let directory = crate::scratch();
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(measure(directory.path()))
}

async fn measure(directory: &Path) -> Vec<Figure> {
    let data = directory.join("realm");
    let files = data.join("store");
    fs::create_dir_all(&data).expect("the disk accepts it");
    let bytes = {
        let store = EmbeddedStore::open(&files).expect("a new store").store();
        fill(&store).await
    };
    let (mut making, mut restoring, mut copying) = (
        std::time::Duration::ZERO,
        std::time::Duration::ZERO,
        std::time::Duration::ZERO,
    );
    for turn in 0..TURNS {
        let began = Instant::now();
        copy(&files, &directory.join(format!("copy-{turn}"))).expect("the disk accepts it");
        copying += began.elapsed();
        let backups = directory.join(format!("backups-{turn}"));
        let restored = directory.join(format!("restored-{turn}"));
        making += backup("create", &["--realm", "bench"], &data, &backups);
        restoring += backup("restore", &[], &restored, &backups);
    }
    let megabytes_of = |folder: &str| size_of(&directory.join(folder)).expect("it was made") as f64 * 1e-6;
    let (backed_up, copied) = (megabytes_of("backups-0"), megabytes_of("copy-0"));
    let rate = |time: Duration| bytes as f64 * f64::from(TURNS) / time.as_secs_f64() * 1e-6;
    let note = |what: &str| {
        format!(
            "{what}, {:.1} MB in {BATCHES} batches, {backed_up:.1} MB backed up; baseline: the store's files ({copied:.1} MB) \
             copied and synced, counted in bytes of batches as well",
            bytes as f64 * 1e-6
        )
    };
    vec![
        Figure::against(
            "backup_vs_copy",
            rate(making),
            rate(copying),
            "MB/s",
            note("read, compressed or checked, written and synced"),
        ),
        Figure::against(
            "restore_vs_copy",
            rate(restoring),
            rate(copying),
            "MB/s",
            note("read, check, find the cut, fold"),
        ),
    ]
}

/// Runs `annals backup` to completion; returns the duration.
fn backup(what: &str, with: &[&str], data: &Path, target: &Path) -> Duration {
    let here = std::env::current_exe().expect("a program has a path");
    let began = Instant::now();
    let status = Command::new(here.with_file_name("annals"))
        .args(["backup", what])
        .args(with)
        .arg("--data")
        .arg(data)
        .arg("--target")
        .arg(target)
        .stdout(Stdio::null())
        .status();
    let took = began.elapsed();
    assert!(status.expect("it is built").success(), "annals backup {what} says why");
    took
}

/// Bytes of all files below a folder.
fn size_of(folder: &Path) -> io::Result<u64> {
    let mut size = 0;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        size += match entry.metadata()? {
            about if about.is_dir() => size_of(&entry.path())?,
            about => about.len(),
        };
    }
    Ok(size)
}

/// A busy realm of one owner, mostly sealed; returns the bytes of its batches.
pub(crate) async fn fill(store: &Store) -> u64 {
    let (schema, batches) = written(store).await;
    let mut folder = Folder::begin(store.clone(), FIRST_SHARD, schema)
        .await
        .expect("a store");
    for batch in &batches {
        folder.offer(batch.owner, batch.bytes.clone());
        if folder.pending_bytes() > 3 << 20 {
            fold(&mut folder).await;
        }
    }
    fold(&mut folder).await;
    let mut sealer = folder.sealer();
    while sealer.seal_next().await.expect("a store").is_some() {}
    batches.iter().map(|batch| batch.bytes.len() as u64).sum()
}

async fn fold(folder: &mut Folder) {
    while folder.has_work() {
        let folded = folder.commit().await.expect("a store");
        assert_eq!(folded.alarms, [], "the log is as it should be");
    }
}

/// The log of the one owner, with its opening recorded.
async fn written(store: &Store) -> (Arc<Schema>, Vec<FrozenBatch>) {
    let defs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../defs");
    let schema = annals_host::world::compile(&defs).expect("the sample compiles");
    let seen = Grants::watch(store).await.expect("a store");
    let grants = Grants::lead(store.clone(), ProcessId(1), seen, std::time::Duration::ZERO)
        .await
        .expect("no other db leads");
    let encoded = schema.encode();
    let begun = grants.begin_realm(WallTime(1), schema.fingerprint(), &encoded);
    begun.await.expect("a realm");
    let grant = grants
        .found(OwnerKind::Base, FIRST_SHARD, ProcessId(1))
        .await
        .expect("an owner");
    let imprint = Imprint {
        realm: "bench".into(),
        owner: grant.owner,
        epoch: grant.epoch,
        schema: schema.fingerprint(),
    };
    let mut tail = Tail::default();
    let mut freeze = |events: &[Event]| {
        let mut gathering = Gathering::default();
        events.iter().for_each(|event| gathering.record(event));
        let opens = events.is_empty();
        gathering.freeze(&imprint, &mut tail, Tick(1), WallTime(1), opens)
    };
    let mut batches = vec![freeze(&[]), freeze(&[created()])];
    for number in batches.len() as u64..BATCHES {
        let events: Vec<Event> = (0..EVENTS_PER_BATCH).map(|place| changed(number, place)).collect();
        batches.push(freeze(&events));
    }
    let opening = OpeningRecord {
        epoch: grant.epoch,
        number: batches[0].number,
        hash: batches[0].hash,
    };
    let hash_of = |bytes: &[u8]| Header::read(bytes).ok().map(|(_, hash)| hash);
    let opening = [opening];
    let recorded = openings::record(store, FIRST_SHARD, grant.owner, &opening, "server:1", hash_of);
    recorded.await.expect("a store");
    (schema, batches)
}

fn created() -> Event {
    event(Body::BaseCreated(Box::new(BaseCreation {
        type_id: TypeId(0),
        database: DatabaseId(0),
        checkout: 0,
        cell_properties: Vec::new(),
        properties: (0..PROPERTIES)
            .map(|member| (MemberId(member), Value::Int(0)))
            .collect(),
    })))
}

/// A unique change: numbers like those of a game, which compress similarly.
fn changed(number: u64, place: usize) -> Event {
    let mixed = (number * 131 + place as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    event(Body::Changed {
        member: MemberId(mixed as u16 % PROPERTIES),
        change: Located::whole(Value::Int((mixed >> 40) as i64)),
    })
}

fn event(body: Body) -> Event {
    Event {
        subject: Subject::Entity(EntityId(1), Part::Base),
        cause: Cause(0),
        history: None,
        body,
    }
}

fn copy(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), &target)?;
            File::open(&target)?.sync_all()?;
        }
    }
    File::open(to)?.sync_all()
}
