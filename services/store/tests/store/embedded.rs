//! The embedded store on real files: locking, restarts, a killed process and a full disk.

use std::collections::{BTreeMap, VecDeque};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use annals_store::embedded::{EmbeddedStore, OpenError};
use annals_store::{KeyRange, ScanOrder, Store, StoreError, Submitted};
use tokio::runtime::Runtime;

fn open(directory: &Path) -> EmbeddedStore {
    EmbeddedStore::open(directory).expect("the store opens")
}

async fn set(store: &Store, key: &[u8], value: &[u8]) -> Result<annals_store::Committed, StoreError> {
    let transaction = store.begin();
    transaction.set(key, value)?;
    transaction.commit().await
}

#[test]
fn a_second_opening_is_refused_and_names_the_holder() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let held = open(directory.path());
    let refused = EmbeddedStore::open(directory.path()).err().expect("it is held");
    assert!(
        matches!(&refused, OpenError::Held { holder, .. } if *holder == std::process::id().to_string()),
        "{refused:?}"
    );
    assert!(refused.to_string().contains("only one may hold it"), "{refused}");
    drop(held);
    open(directory.path());
}

/// A child process has copies of all open files until it executes its program.
#[test]
fn a_closed_store_is_not_held_by_child_processes_that_are_being_started() {
    const OPENINGS: usize = 100;
    let directory = tempfile::tempdir().expect("a temporary directory");
    let ended = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&ended);
    let starting = std::thread::spawn(move || {
        while !seen.load(Ordering::Relaxed) {
            let status = Command::new("true").status().expect("a child process");
            assert!(status.success());
        }
    });
    let refused = (0..OPENINGS).find_map(|_| EmbeddedStore::open(directory.path()).err());
    ended.store(true, Ordering::Relaxed);
    starting.join().expect("all children were started");
    assert!(refused.is_none(), "{refused:?}");
}

#[test]
fn a_directory_that_cannot_be_used_is_an_error() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let file = directory.path().join("file");
    std::fs::write(&file, b"").expect("a file is written");
    let refused = EmbeddedStore::open(&file).err().expect("a file is no directory");
    assert!(matches!(refused, OpenError::Files { .. }), "{refused:?}");
}

#[tokio::test]
async fn a_restart_keeps_commits_and_continues_after_them() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut newest = annals_store::Version(0);
    let mut before = None;
    for restart in 0_u8..5 {
        let embedded = open(directory.path());
        let store = embedded.store();
        for earlier in 0..restart {
            assert_eq!(
                store.begin().get(&[earlier]).await.expect("readable").as_deref(),
                Some(&[earlier][..])
            );
        }
        if let Some(version) = before {
            let read = store.backend().get(version, &[0]).await;
            assert_eq!(
                read,
                Err(StoreError::TooOld),
                "a version of the process before is not read at"
            );
        }
        let committed = set(&store, &[restart], &[restart]).await.expect("committed");
        assert!(committed.version > newest, "versions go on across restarts");
        newest = committed.version;
        before = Some(store.begin().read_version().await.expect("readable"));
    }
}

#[tokio::test]
async fn abandoned_watches_are_removed() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let store = open(directory.path()).store();
    for _ in 0..annals_store::limits::WATCHES {
        let mut watch = Box::pin(store.watch(b"k", None));
        assert!(futures::poll!(watch.as_mut()).is_pending());
    }
    // Each was dropped at once; the next must still find room.
    let mut watch = Box::pin(store.watch(b"k", None));
    assert!(futures::poll!(watch.as_mut()).is_pending());
    set(&store, b"k", b"1").await.expect("committed");
    watch.await.expect("it fires");
}

#[tokio::test]
async fn commits_lost_by_the_disk_are_detected() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let store = open(directory.path()).store();
    for number in 0..100_u8 {
        set(&store, b"key", &[number; 50]).await.expect("committed");
    }
    drop(store);
    // A damaged byte in the middle of the journal, in an entry's first byte: everything after it is unreadable.
    let journal = journal_of(directory.path());
    let mut bytes = std::fs::read(&journal).expect("readable");
    let place = bytes
        .windows(50)
        .position(|window| window == [50; 50])
        .expect("the fiftieth commit");
    bytes[place + 50] ^= 0xff;
    std::fs::write(&journal, bytes).expect("writable");

    let refused = EmbeddedStore::open(directory.path())
        .err()
        .expect("half of the commits are gone");
    let OpenError::Lost {
        found, acknowledged, ..
    } = &refused
    else {
        panic!("{refused:?}")
    };
    assert!(acknowledged.0 - found.0 >= 49, "{refused}");
    assert!(refused.to_string().contains("Restore it from a backup"), "{refused}");

    std::fs::remove_file(directory.path().join("ACKNOWLEDGED")).expect("the operator accepts the loss");
    let value = open(directory.path())
        .store()
        .begin()
        .get(b"key")
        .await
        .expect("readable");
    assert!(value.is_some_and(|value| value[0] < 51), "what is left can be read");
}

/// A full disk or a crash may end a write at any byte; after it come the zeros that the journal was allocated with, or
/// nothing.
#[tokio::test]
async fn a_torn_commit_is_discarded() {
    let written = tempfile::tempdir().expect("a temporary directory");
    let store = open(written.path()).store();
    set(&store, b"kept", b"as it was").await.expect("committed");
    let journal = journal_of(written.path());
    let whole = written_to(&journal);
    let torn = store.begin();
    for row in 0..3 {
        torn.set(&[row], &vec![row; 300]).expect("within limits");
    }
    torn.commit().await.expect("committed");
    drop((torn, store));
    let end = written_to(&journal);
    assert!(end > whole + 900, "the journal grew from {whole} to {end}");
    let bytes = std::fs::read(&journal).expect("readable");

    for cut in whole..end {
        // Within a value of equal bytes the position of the cut makes no difference.
        if bytes[cut..end.min(cut + 16)].iter().all(|byte| *byte == bytes[cut]) {
            continue;
        }
        for zeros in [true, false] {
            let mut bytes = bytes[..cut].to_vec();
            if zeros {
                bytes.resize(end, 0);
            }
            std::fs::write(&journal, bytes).expect("writable");
            // The commit was never acknowledged.
            let _ = std::fs::remove_file(written.path().join("ACKNOWLEDGED"));
            for opening in ["the first", "the second"] {
                let store = open(written.path()).store();
                let read = store.begin();
                let kept = read.get(b"kept").await.expect("readable");
                assert_eq!(
                    kept.as_deref(),
                    Some(&b"as it was"[..]),
                    "cut at {cut}, {opening} opening"
                );
                for row in 0..3 {
                    let value = read.get(&[row]).await.expect("readable");
                    assert_eq!(value, None, "cut at {cut}, {opening} opening: a part of what was torn");
                }
                let after = read.get(b"after").await.expect("readable");
                assert_eq!(
                    after.is_some(),
                    opening == "the second",
                    "cut at {cut}, {opening} opening"
                );
                set(&store, b"after", b"goes on").await.expect("committed");
            }
        }
    }
}

/// The journal of a small store.
fn journal_of(directory: &Path) -> PathBuf {
    std::fs::read_dir(directory.join("rows"))
        .expect("a directory")
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .find(|path| path.extension().is_some_and(|extension| extension == "jnl"))
        .expect("a journal")
}

/// Length of a journal up to the zeros that it was allocated with.
fn written_to(journal: &Path) -> usize {
    let bytes = std::fs::read(journal).expect("readable");
    bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1)
}

// ---- Killed during a commit ----

/// Environment variable that passes the directory to the child processes below.
const CHILD_DIRECTORY: &str = "ANNALS_STORE_TEST_DIRECTORY";

const WRITERS: u64 = 64;

/// Rows that each commit writes under one number: if only some of them are there, the commit is torn.
const ROWS: u64 = 4;

const ROUNDS: usize = 4;

fn row_key(writer: u64, number: u64, row: u64) -> Vec<u8> {
    format!("row/{writer:02}/{number:08}/{row}").into_bytes()
}

fn last_key(writer: u64) -> Vec<u8> {
    format!("last/{writer:02}").into_bytes()
}

fn to_number(value: &[u8]) -> u64 {
    u64::from_le_bytes(value.try_into().expect("eight bytes"))
}

/// Whether a writer begins each commit before the last is durable.
fn is_pipelined(writer: u64) -> bool {
    writer % 2 == 1
}

async fn write_one(store: &Store, writer: u64) -> Result<(u64, Submitted), StoreError> {
    let transaction = if is_pipelined(writer) {
        store.begin_pipelined()
    } else {
        store.begin()
    };
    let number = transaction
        .get(&last_key(writer))
        .await?
        .map_or(0, |value| to_number(&value))
        + 1;
    for row in 0..ROWS {
        transaction.set(&row_key(writer, number, row), &(writer * number).to_le_bytes())?;
    }
    transaction.set(&last_key(writer), &number.to_le_bytes())?;
    transaction.atomic_add(b"total", 1)?;
    Ok((number, transaction.submit().await?))
}

#[test]
#[ignore = "a child process of another test, which kills it"]
fn child_that_writes_until_it_is_killed() {
    let Some(directory) = std::env::var_os(CHILD_DIRECTORY) else {
        return;
    };
    let store = open(Path::new(&directory)).store();
    let write = async |writer: u64| {
        let in_flight = usize::from(is_pipelined(writer));
        let mut submitted = VecDeque::new();
        while let Ok(one) = write_one(&store, writer).await {
            submitted.push_back(one);
            while submitted.len() > in_flight {
                let (number, mut one) = submitted.pop_front().expect("there are some");
                if one.committed().await.is_err() {
                    return;
                }
                // Whole lines, written at once and unbuffered: every line that the parent reads was acknowledged.
                let _ = std::io::stdout().write_all(format!("\nack {writer} {number}\n").as_bytes());
                let _ = std::io::stdout().flush();
            }
        }
    };
    Runtime::new()
        .expect("a runtime")
        .block_on(futures::future::join_all((0..WRITERS).map(write)));
}

fn spawn_child(test: &str, directory: &Path) -> Child {
    Command::new(std::env::current_exe().expect("this test's own program"))
        .args(["--ignored", "--exact", "--nocapture", test])
        .env(CHILD_DIRECTORY, directory)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the child starts")
}

/// Parses a line `ack <writer> <number>` of a child.
fn acknowledged(line: &str) -> Option<(u64, u64)> {
    let mut words = line.strip_prefix("ack ")?.split(' ');
    Some((words.next()?.parse().ok()?, words.next()?.parse().ok()?))
}

#[test]
fn a_kill_in_mid_commit_loses_nothing_acknowledged_and_tears_nothing() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut highest = BTreeMap::<u64, u64>::new();
    for round in 0..ROUNDS {
        let mut child = spawn_child("embedded::child_that_writes_until_it_is_killed", directory.path());
        let mut lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
        let mut count = 0;
        let kill_after = 500 + 700 * round;
        while let Some(Ok(line)) = lines.next() {
            if let Some((writer, number)) = acknowledged(&line) {
                highest.insert(writer, number);
                count += 1;
            }
            if count == kill_after {
                child.kill().expect("SIGKILL is sent");
                count += 1;
            }
        }
        child.wait().expect("the child ends");
        assert!(
            count > kill_after,
            "round {round}: the child ended by itself after {count} commits"
        );
        let found = Runtime::new()
            .expect("a runtime")
            .block_on(check_rows(directory.path(), &mut highest));
        println!("round {round}: {count} acknowledged, {found} commits stored by now");
    }
}

/// Checks the rows against the acknowledged commits, and records commits that were stored without an acknowledgement.
async fn check_rows(directory: &Path, acknowledged: &mut BTreeMap<u64, u64>) -> u64 {
    let store = open(directory).store();
    let mut total = 0;
    for writer in 0..WRITERS {
        let last = store
            .begin()
            .get(&last_key(writer))
            .await
            .expect("readable")
            .map_or(0, |value| to_number(&value));
        let promised = acknowledged.get(&writer).copied().unwrap_or(0);
        assert!(
            last >= promised,
            "writer {writer}: {promised} was acknowledged, and {last} is the last stored"
        );
        // One commit was in flight at each kill, or two, so that many may be ahead of the acknowledgements read from the
        // pipe.
        assert!(
            last <= promised + 1 + u64::from(is_pipelined(writer)),
            "writer {writer}: {last} is stored, and only {promised} were acknowledged"
        );
        for number in 1..=last {
            for row in 0..ROWS {
                let value = store
                    .begin()
                    .get(&row_key(writer, number, row))
                    .await
                    .expect("readable");
                assert_eq!(
                    value.as_deref().map(to_number),
                    Some(writer * number),
                    "writer {writer}, commit {number}"
                );
            }
        }
        let beyond = KeyRange::new(row_key(writer, last + 1, 0), format!("row/{writer:02}/~"));
        let beyond = store
            .begin()
            .get_range(&beyond, 1, ScanOrder::Forward)
            .await
            .expect("readable");
        assert!(
            beyond.rows.is_empty(),
            "writer {writer}: rows of a commit that is not there: {beyond:?}"
        );
        acknowledged.insert(writer, last);
        total += last;
    }
    let stored = store
        .begin()
        .get(b"total")
        .await
        .expect("readable")
        .map_or(0, |value| to_number(&value));
    assert_eq!(stored, total, "the sum kept by atomic adds");
    total
}

// ---- Disk full ----

/// Maximum size of a file for the child below, in KiB: the size to which a journal is preallocated.
const FILE_LIMIT_KIB: usize = 64 * 1024;

/// Rows of 100 kB in each of its commits: the seventh exceeds the limit, in the middle of its journal entry.
const LARGE_ROWS: u64 = 97;

#[test]
#[ignore = "a child process of another test, which lets its files grow only so far"]
fn child_that_writes_until_the_disk_is_full() {
    let Some(directory) = std::env::var_os(CHILD_DIRECTORY) else {
        return;
    };
    let store = open(Path::new(&directory)).store();
    Runtime::new().expect("a runtime").block_on(async {
        let value = vec![7; annals_store::limits::VALUE_BYTES];
        let mut waiting = Box::pin(store.watch(b"never", None));
        assert!(futures::poll!(waiting.as_mut()).is_pending());
        let mut number = 0_u64;
        let failure = loop {
            let transaction = store.begin();
            for row in 0..LARGE_ROWS {
                transaction
                    .set(&row_key(0, number, row), &value)
                    .expect("within limits");
            }
            let mut submitted = transaction.submit().await.expect("it is within limits");
            match submitted.committed().await {
                Ok(_) => println!("\nack 0 {number}"),
                Err(failure) => break failure,
            }
            number += 1;
        };
        assert_eq!(
            failure,
            StoreError::CommitUnknown,
            "what was being written may be there or not"
        );
        let refused = set(&store, b"small", b"1")
            .await
            .expect_err("a store that failed to write acknowledges nothing");
        assert!(matches!(refused, StoreError::Poisoned(_)), "{refused}");
        assert!(refused.to_string().contains("failed write"), "{refused}");
        assert!(
            matches!(store.begin().get(b"small").await, Err(StoreError::Poisoned(_))),
            "nor does it begin a transaction"
        );
        assert!(
            matches!(
                store.begin_pipelined().get(b"small").await,
                Err(StoreError::Poisoned(_))
            ),
            "nor one that reads what was submitted"
        );
        assert!(
            matches!(waiting.await, Err(StoreError::Poisoned(_))),
            "waiting callers receive the error"
        );
        println!("\npoisoned as it should be");
    });
}

#[test]
fn a_full_disk_stops_the_store_and_loses_nothing_acknowledged() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    // A limit on file size makes a write fail as on a full disk: with its signal ignored, the error is returned.
    // `ulimit -f` counts 512 bytes.
    let script = format!("trap '' XFSZ; ulimit -f {}; exec \"$0\" \"$@\"", FILE_LIMIT_KIB * 2);
    let child = Command::new("sh")
        .args(["-c", &script])
        .arg(std::env::current_exe().expect("this test's own program"))
        .args([
            "--ignored",
            "--exact",
            "--nocapture",
            "embedded::child_that_writes_until_the_disk_is_full",
        ])
        .env(CHILD_DIRECTORY, directory.path())
        .output()
        .expect("the child runs");
    let output = String::from_utf8_lossy(&child.stdout);
    let errors = String::from_utf8_lossy(&child.stderr);
    assert!(
        child.status.success() && output.contains("poisoned as it should be"),
        "{output}\n{errors}"
    );
    let last = output
        .lines()
        .filter_map(acknowledged)
        .map(|(_, number)| number)
        .max()
        .expect("some were acknowledged");

    let store = open(directory.path()).store();
    Runtime::new().expect("a runtime").block_on(async {
        for number in 0..=last {
            let rows = KeyRange::prefix(format!("row/00/{number:08}").as_bytes());
            let page = store
                .begin()
                .get_range(&rows, 200, ScanOrder::Forward)
                .await
                .expect("readable");
            assert_eq!(
                page.rows.len() as u64,
                LARGE_ROWS,
                "commit {number} of {last} was acknowledged"
            );
        }
        set(&store, b"small", b"1")
            .await
            .expect("with room again, it commits again");
    });
    println!(
        "{} commits of 9.7 MB were acknowledged before the disk was full",
        last + 1
    );
}
