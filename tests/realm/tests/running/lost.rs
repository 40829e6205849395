//! A log that has irrecoverably lost batches: their writer crashed before db had read them. The hole is recorded, and
//! the realm continues once an operator has accepted it.

use std::{fs, time::Duration};

use annals_audit::{
    replay::{Extent, replay},
    verify::{Finding, verify},
};
use annals_bots::checker::Following;
use annals_db::read_cursor;
use annals_event::Header;
use annals_host::{
    health::Readiness,
    log::{Entry, History, Lane},
    log_source::Source,
    nats::ServerCount,
    process::request,
};
use annals_ids::{BatchNumber, Hash, OwnerId};
use annals_realm::Folder;
use annals_store::Store;
use annals_wire::control::Inspected;

use crate::{
    bad_input::annals,
    played::{Played, are_built, connection_to, run, until, within},
    prometheus::{Prometheus, serves_metrics, targets},
};

/// Maximum time until db records a hole: it waits half a minute for a refill.
const HOLE_TIMEOUT: Duration = Duration::from_secs(120);

/// Maximum time until the log continues after its hole is accepted.
const RESUME_TIMEOUT: Duration = Duration::from_secs(90);

/// Polling interval.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Lost batches, from the middle of those that db has not read.
const LOST_BATCHES: usize = 3;
const UNREAD_BATCHES: usize = 20;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_realm_continues_before_an_accepted_hole_with_one_server() {
    if are_built() {
        lose_and_accept(Played::start_with(serves_metrics()).await, true).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_realm_continues_before_an_accepted_hole_with_three_servers() {
    if are_built() {
        lose_and_accept(Played::start(ServerCount::Three, &[]).await, false).await;
    }
}

/// What the realm's log and store hold.
async fn source(realm: &Played) -> Source {
    let settings = connection_to(&realm.realm.plan().realm, realm.realm.nats());
    Source::running(&settings).await.expect("the realm runs")
}

/// `is_watched`: by a Prometheus, if there is one.
async fn lose_and_accept(mut realm: Played, is_watched: bool) {
    let source = source(&realm).await;
    let mut before = shown(&realm).await;
    let (writer, owner) = busiest_cell(&realm, &source.store).await;
    all_archived(&source, owner).await;
    let lost = lose_batches(&mut realm, &source, (writer, owner)).await;
    println!("owner {owner} of {writer}: {LOST_BATCHES} batches from {lost} on are lost");

    let named = "the log has lost batches that no process has";
    until(HOLE_TIMEOUT, "the hole to be named", || {
        realm.log_of("db").contains(named)
    })
    .await;
    let folder = Folder::create();
    let prometheus = match is_watched {
        true => Prometheus::start(&targets(&realm), folder.path()).await,
        false => None,
    };
    if let Some(prometheus) = &prometheus {
        prometheus.wait_for_alert("AnnalsLogHoles").await;
    }
    let hole = Finding::NamedHole {
        owner,
        first: lost,
        until: BatchNumber(lost.0 + LOST_BATCHES as u64),
    };
    let report = verify(&source).await.expect("the log can be read");
    assert!(report.findings.contains(&hole), "{report}");
    let stands = BatchNumber(lost.0 - 1);
    let state = state_at(&source, owner, stands).await;

    let place = format!("{owner}@{lost}");
    let (status, said) = run(annals(&realm, "annals").args(["log", "accept-hole", &place])).await;
    assert!(status.success(), "{said}");
    within(RESUME_TIMEOUT, "the log to continue", async {
        while archived(&source.store, owner).await < lost {
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    })
    .await;
    realm.assert_playing("an accepted hole").await;
    if let Some(prometheus) = &prometheus {
        prometheus.wait_for_the_end_of("AnnalsLogHoles").await;
    }
    assert_eq!(
        state,
        state_at(&source, owner, stands).await,
        "what stands is as it was"
    );
    let checked = before.check(&source.store, &realm.schema).await;
    let checked = checked.expect("the archive can be read");
    // Changes after the hole are gone, including their history numbers; nothing that is archived is lost.
    assert!(
        checked.shown > 0 && checked.lost_count == 0 && checked.fault_count == 0,
        "{checked}"
    );
    let report = verify(&source).await.expect("the log can be read");
    println!("{report}");
    assert_eq!(report.owners[&owner].accepted, [lost]);
    assert!(!report.findings.contains(&hole), "{report}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_follower_waits_for_a_hole_to_be_filled_and_takes_over_whole() {
    if !are_built() {
        return;
    }
    let mut realm = Played::start(ServerCount::One, &[]).await;
    let source = source(&realm).await;
    let history = source
        .logs
        .get(&annals_host::process::FIRST_SHARD)
        .expect("a live realm has a log");
    let (writer, owner) = busiest_cell(&realm, &source.store).await;
    let read = archived(&source.store, owner).await;
    // Without db nothing is archived, and nobody asks the writer for what the log has lost.
    realm.kill("db");
    within(HOLE_TIMEOUT, "the log to grow without db", async {
        while unread(history, owner, read).await.len() < UNREAD_BATCHES {
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    })
    .await;
    let unread = unread(history, owner, read).await;
    for (sequence, number) in &unread[unread.len() / 2..][..LOST_BATCHES] {
        println!("batch {number} of owner {owner} is lost");
        delete(history, *sequence).await;
    }
    realm.terminate(writer);
    realm.start_again("db");
    let status = realm.stop(writer).await;
    assert_eq!(status.code(), Some(0), "{}", realm.log_of(writer));
    realm.start_again(writer);
    realm.wait_for_state("cell", 2, |is| *is == Readiness::Ready).await;
    realm.assert_playing("a hand-over with a hole").await;
    for name in ["db", "cell-1", "cell-2"] {
        println!(
            "{name}: {:?}",
            realm
                .log_of(name)
                .lines()
                .filter(|line| line.contains("hole"))
                .collect::<Vec<_>>()
        );
    }
    realm.wait_for_trade().await;
    realm.stop_and_verify().await;
}

/// State hash from replaying an owner's log to an archived batch.
async fn state_at(source: &Source, owner: OwnerId, batch: BatchNumber) -> Hash {
    let replayed = replay(source, owner, Some(batch), Extent::Archive).await;
    replayed.expect("the log replays").state
}

/// The busiest cell: its process and the owner that it holds.
async fn busiest_cell(realm: &Played, store: &Store) -> (&'static str, OwnerId) {
    let mut cells = Vec::new();
    for name in ["cell-1", "cell-2"] {
        let log = realm.log_of(name);
        let taken = log.lines().rfind(|line| line.contains("took over the owner"));
        let owner = taken.and_then(|line| line.split("owner=").nth(1)?.split(' ').next()?.parse().ok());
        let owner = OwnerId(owner.expect("each cell holds one"));
        cells.push((archived(store, owner).await, name, owner));
    }
    let (_, name, owner) = cells.into_iter().max().expect("there are two");
    (name, owner)
}

/// The last archived batch of an owner's log.
async fn archived(store: &Store, owner: OwnerId) -> BatchNumber {
    read_cursor(store, owner).await.expect("the store answers").batch
}

/// Waits until everything that the owner's holder has logged so far is archived, including all that was shown of it.
async fn all_archived(source: &Source, owner: OwnerId) {
    let (bus, subjects) = source.live.as_ref().expect("the realm runs");
    within(HOLE_TIMEOUT, "the archive to hold what was shown", async {
        let logged = loop {
            match request::<Inspected>(bus, "the owner's holder", subjects.inspect(owner), &()).await {
                Ok(inspected) => break BatchNumber(inspected.batch),
                Err(_) => tokio::time::sleep(POLL_INTERVAL).await,
            }
        };
        while archived(&source.store, owner).await < logged {
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    })
    .await;
}

/// Everything that bots were shown so far and have written to files.
async fn shown(realm: &Played) -> Following {
    let folder = realm.shown_files();
    let mut shown = Following::new(&folder);
    until(HOLE_TIMEOUT, "a shown event to be written", || {
        let mut files = fs::read_dir(&folder).expect("files of bots").flatten();
        files.any(|file| file.metadata().is_ok_and(|file| file.len() > 0))
    })
    .await;
    shown.look().expect("files of bots");
    shown
}

/// Kills db until the log has grown, kills the writer, deletes some unread batches from the middle, and restarts both.
/// Returns the first missing batch.
async fn lose_batches(realm: &mut Played, source: &Source, (writer, owner): (&'static str, OwnerId)) -> BatchNumber {
    let history = source
        .logs
        .get(&annals_host::process::FIRST_SHARD)
        .expect("a live realm has a log");
    let read = archived(&source.store, owner).await;
    assert!(realm.realm.kill("db").expect("it can be killed"));
    within(HOLE_TIMEOUT, "the log to grow without db", async {
        while unread(history, owner, read).await.len() < UNREAD_BATCHES {
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    })
    .await;
    assert!(realm.realm.kill(writer).expect("it can be killed"));
    let unread = unread(history, owner, read).await;
    let lost = &unread[unread.len() / 2..][..LOST_BATCHES];
    for (sequence, _) in lost {
        delete(history, *sequence).await;
    }
    realm.start_again("db");
    realm.start_again(writer);
    lost[0].1
}

/// Sequences and numbers of the batches of a log after the last one that db has read.
async fn unread(history: &History, owner: OwnerId, read: BatchNumber) -> Vec<(u64, BatchNumber)> {
    let (mut unread, mut sequence) = (Vec::new(), 0);
    while let Some(entry) = next(history, owner, sequence + 1).await {
        let (header, _) = Header::read(&entry.bytes).expect("a batch");
        sequence = entry.sequence;
        unread.extend((header.number > read).then_some((sequence, header.number)));
    }
    unread
}

/// Deletes a message, with retries like [`next`].
async fn delete(history: &History, sequence: u64) {
    within(HOLE_TIMEOUT, "a message to be deleted", async {
        while !matches!(history.stream().delete_message(sequence).await, Ok(true)) {
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    })
    .await;
}

/// The next message of a log; retries while its servers have no leader or are busy.
async fn next(history: &History, owner: OwnerId, sequence: u64) -> Option<Entry> {
    within(HOLE_TIMEOUT, "the log to answer", async {
        loop {
            match history.next(Lane::Log, owner, sequence).await {
                Ok(entry) => return entry,
                Err(_) => tokio::time::sleep(POLL_INTERVAL).await,
            }
        }
    })
    .await
}
