//! Verifying an archive: every hash, number, seal, chain and tile, against reading the same bytes and hashing them
//! once; and the full verification, which also folds the logs.

use std::{
    fs::{self, File},
    io::{BufWriter, Read, Write},
    path::Path,
    process::{Command, Stdio},
    sync::Arc,
    time::{Duration, Instant},
};

use annals_db::Folder;
use annals_host::process::FIRST_SHARD;
use annals_store::{
    Store,
    archive::{read_leaves, read_segments},
    embedded::EmbeddedStore,
};
use sha2::{Digest, Sha256};

use crate::{
    Figure,
    audit::{
        archive::{Made, Plan},
        write,
    },
    backup::fill,
    realm::beside,
};

/// Batches like those of the sample world with bots: mostly four events of about forty bytes.
const USUAL: Plan = Plan {
    rounds: 30_000,
    items: 10_000,
    moves: 4,
    changes: 4,
    text: 28,
};

/// Minimum-size events, hundreds in a batch: each is hashed with a block of its own, and each pair of hashes with two.
const SMALL: Plan = Plan {
    rounds: 1_100,
    items: 10_000,
    moves: 32,
    changes: 640,
    text: 0,
};

/// Measurements of each part, alternating.
const TURNS: u32 = 3;

/// Read size for a plain file, bytes.
const CHUNK: usize = 1 << 20;

/// Measures them.
///
/// # Panics
/// If the disk or the store fails, or `annals` is not built beside this.
#[must_use]
pub fn run() -> Vec<Figure> {
    let folder = crate::scratch();
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let mut figures = Vec::new();
    for (name, plan) in [("", USUAL), ("_small", SMALL)] {
        let folder = folder.path().join(format!("hashed{name}"));
        figures.extend(runtime.block_on(hashed(&folder, name, plan)));
    }
    let folded = folder.path().join("folded");
    fs::create_dir_all(&folded).expect("the disk accepts it");
    let whole = runtime.block_on(async {
        let store = EmbeddedStore::open(&folded.join("store")).expect("a new store").store();
        fill(&store).await
    });
    figures.push(Figure::alone(
        "verify_whole",
        rate(whole, verify(&folded, &[])),
        "MB/s",
        "`annals log verify`, which folds the log, of one owner's 1 million events".to_owned(),
    ));
    figures
}

/// `annals log verify --hashes` of such an archive, against reading the same bytes and hashing them once.
async fn hashed(folder: &Path, name: &str, plan: Plan) -> [Figure; 2] {
    let (data, plain) = (folder.join("realm"), folder.join("batches"));
    let made = write(&data, plan).await;
    let bytes = prepare(&data, &plain).await;
    let (mut hashing, mut fetching, mut verifying) = (Duration::ZERO, Duration::ZERO, Duration::ZERO);
    for _ in 0..TURNS {
        hashing += hash_plain(&plain);
        fetching += hash_archive(&data).await;
        verifying += verify(&data, &["--hashes"]);
    }
    let of = |time: Duration| rate(bytes * u64::from(TURNS), time);
    [
        Figure::against(
            &format!("verify{name}_vs_sha256"),
            of(verifying),
            of(hashing),
            "MB/s",
            format!(
                "`annals log verify --hashes` as a whole, {}; baseline: the same batches in a plain file, read and hashed once by \
                 one thread; 0.5 asked",
                about(&made, bytes)
            ),
        ),
        Figure::against(
            &format!("verify{name}_vs_archive_sha256"),
            of(verifying),
            of(fetching),
            "MB/s",
            "the same; baseline: the same batches read from the archive, decompressed, and hashed once by one thread"
                .to_owned(),
        ),
    ]
}

fn rate(bytes: u64, time: Duration) -> f64 {
    bytes as f64 / time.as_secs_f64() * 1e-6
}

fn about(made: &Made, bytes: u64) -> String {
    format!(
        "{:.0} MB, {:.1} million events in {:.2} million batches",
        bytes as f64 * 1e-6,
        made.events as f64 * 1e-6,
        made.batches as f64 * 1e-6
    )
}

/// Lets db write the archive's tiles, and copies its batches into a plain file; returns their bytes.
async fn prepare(data: &Path, plain: &Path) -> u64 {
    let store = EmbeddedStore::open(&data.join("store")).expect("its store").store();
    let defs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../defs");
    let schema = annals_host::world::compile(&defs).expect("the sample compiles");
    let folder = Folder::begin(store.clone(), FIRST_SHARD, Arc::clone(&schema))
        .await
        .expect("a store");
    let mut tiler = folder.tiler();
    while tiler.tile_next().await.expect("a store").is_some() {}
    let mut file = BufWriter::new(File::create(plain).expect("the disk accepts it"));
    let mut bytes = 0;
    each_batch(&store, |batch| {
        file.write_all(batch).expect("the disk accepts it");
        bytes += batch.len() as u64;
    })
    .await;
    file.flush().expect("the disk accepts it");
    bytes
}

async fn each_batch(store: &Store, mut each: impl FnMut(&[u8])) {
    for segment in read_segments(store, FIRST_SHARD).await.expect("segments") {
        for leaf in read_leaves(store, &segment).await.expect("leaves") {
            each(leaf.archived.header());
        }
    }
}

fn hash_plain(plain: &Path) -> Duration {
    let clock = Instant::now();
    let mut file = File::open(plain).expect("it was written");
    let (mut digest, mut chunk) = (Sha256::new(), vec![0; CHUNK]);
    loop {
        match file.read(&mut chunk).expect("it can be read") {
            0 => break,
            read => digest.update(&chunk[..read]),
        }
    }
    std::hint::black_box(digest.finalize());
    clock.elapsed()
}

async fn hash_archive(data: &Path) -> Duration {
    let store = EmbeddedStore::open(&data.join("store")).expect("its store").store();
    let clock = Instant::now();
    let mut digest = Sha256::new();
    each_batch(&store, |batch| digest.update(batch)).await;
    std::hint::black_box(digest.finalize());
    clock.elapsed()
}

/// Runs `annals log verify`; returns the duration.
fn verify(data: &Path, flags: &[&str]) -> Duration {
    let clock = Instant::now();
    let status = Command::new(beside("annals"))
        .args(["log", "verify", "--data"])
        .arg(data)
        .args(flags)
        .stdout(Stdio::null())
        .status();
    let took = clock.elapsed();
    assert!(status.expect("it is built").success(), "`annals log verify` says why");
    took
}
