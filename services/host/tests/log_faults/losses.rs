//! A log that loses acknowledged batches: from its middle, and its tail.

use std::time::Duration;

use annals_event::Header;
use annals_host::log::{Entry, History, Lane, Reader, Reading, Verdict};
use annals_ids::BatchNumber;
use annals_node::chain::{Hole, assemble};

use crate::actor::{Actor, Order, TIMEOUT, eventually};
use crate::rig::{Book, NOTHING_ARCHIVED, OWNER, Rig, SLOWNESS, Wire, copy_folder};
use crate::{chain, check, one_node, read, three_nodes};

/// Time slice after which a wait for a message is cancelled and restarted, as a caller with other work does.
const SLICE: Duration = Duration::from_millis(SLOWNESS.as_millis() as u64 / 4);

/// Reads on until `until` returns true.
async fn read_until(reader: &mut Reader, mut until: impl FnMut(&Entry) -> bool) -> Vec<Entry> {
    let reading = async {
        let mut entries = Vec::new();
        loop {
            if let Ok(entry) = tokio::time::timeout(SLICE, reader.next()).await {
                entries.push(entry);
                if entries.last().is_some_and(&mut until) {
                    return entries;
                }
            }
        }
    };
    tokio::time::timeout(TIMEOUT, reading)
        .await
        .expect("the reader gets on")
}

/// A message is missing in the middle. Numbers and hashes show it, the writer refills it, and a reader of the stream
/// receives it.
async fn hole_in_the_middle(rig: &mut Rig) {
    let (realm, book) = (rig.new_realm(), Book::default());
    let history = rig.history(&realm).await;
    let actor = Actor::take_over(history.clone(), &book);
    actor.shows(40).await;
    actor.hush();
    let before = chain(&history, &book).await;
    let taken_out = before.beyond[before.beyond.len() / 2].clone();
    let mut reader = Reader::new(&history, 1);
    let entries = read_until(&mut reader, |entry| entry.bytes == taken_out.bytes).await;
    assert!(
        history
            .stream()
            .delete_message(entries.last().unwrap().sequence)
            .await
            .unwrap()
    );

    let reading = read(&history).await;
    let hole = assemble(OWNER, NOTHING_ARCHIVED, &book.openings(), reading.batches, reading.last).unwrap_err();
    let successor = BatchNumber(taken_out.number.0 + 1);
    assert_eq!(
        hole,
        Hole {
            owner: OWNER,
            missing: taken_out.number,
            successor,
            hash: hole.hash
        }
    );

    actor.order(Order::Fill(taken_out.number)).await;
    let fill = read_until(&mut reader, |entry| entry.lane == Lane::Fill)
        .await
        .pop()
        .unwrap();
    assert_eq!((fill.owner, &fill.bytes[..]), (OWNER, &taken_out.bytes[..]));
    actor.talk();
    actor.shows(20).await;
    check(&history, &book, &[&actor.screen]).await;
}

/// The last messages are lost while their writer runs: with its next append it sends them again.
async fn lost_tail(rig: &mut Rig) {
    let (realm, book) = (rig.new_realm(), Book::default());
    let history = rig.history(&realm).await;
    let actor = Actor::take_over(history.clone(), &book);
    for lost in [1, 3] {
        actor.shows(20).await;
        actor.hush();
        let sequences = quiet(&history).await;
        for sequence in &sequences[sequences.len() - lost..] {
            history.stream().delete_message(*sequence).await.unwrap();
        }
        actor.talk();
        actor.shows(20).await;
        check(&history, &book, &[&actor.screen]).await;
    }
}

/// The sequences of the log once nothing is in flight.
async fn quiet(history: &History) -> Vec<u64> {
    // Within a heartbeat nothing follows the last batch that is not empty.
    tokio::time::sleep(Duration::from_millis(50)).await;
    let mut sequences = Vec::new();
    while let Some(entry) = history
        .next(Lane::Log, OWNER, sequences.last().map_or(1, |last| last + 1))
        .await
        .unwrap()
    {
        sequences.push(entry.sequence);
    }
    sequences
}

/// The servers restart with an older copy of their disks, so that sequences are reused. The writer appends again what
/// is missing, and a reader of the stream does not fall behind, although the server answers too late for its slices.
async fn older_disks(rig: &mut Rig) {
    let (realm, book) = (rig.new_realm(), Book::default());
    let history = rig.history(&realm).await;
    let actor = Actor::take_over(history.clone(), &book);
    actor.shows(20).await;
    let copies = rig.dir().join(format!("copies of {realm}"));
    let copy_of = |store: &std::path::Path| copies.join(store.to_string_lossy().replace('/', "_"));
    rig.while_down(|store| copy_folder(store, &copy_of(store))).await;
    let kept = chain(&history, &book).await.beyond.len();
    actor.shows(40).await;
    let wire = Wire::to(&rig.url()).await;
    let followed = rig.history_by(wire.url(), &realm).await;
    wire.slow();
    let mut reader = Reader::new(&followed, 1);
    let newest = chain(&history, &book).await.beyond.pop().unwrap();
    read_until(&mut reader, |entry| entry.bytes == newest.bytes).await;

    rig.while_down(|store| {
        std::fs::remove_dir_all(store).unwrap();
        copy_folder(&copy_of(store), store);
    })
    .await;
    let before = actor.screen.taken().len();
    eventually("the actor continues", || actor.screen.taken().len() > before + 20).await;
    let repaired = check(&history, &book, &[&actor.screen]).await;
    assert!(
        repaired.beyond.len() > kept && repaired.beyond.contains(&newest),
        "what was lost is there again"
    );
    let after = repaired.beyond.last().unwrap();
    read_until(&mut reader, |entry| entry.bytes == after.bytes).await;
}

/// Appends until the servers, which may have just restarted, acknowledge it.
async fn append(history: &History, expect: u64, bytes: &'static str) -> u64 {
    let appending = async {
        loop {
            match history.append(OWNER, expect, bytes.into(), &[]).await {
                Verdict::Appended(sequence) => return sequence,
                Verdict::Rejected | Verdict::Unknown(_) => tokio::time::sleep(SLICE).await,
            }
        }
    };
    tokio::time::timeout(TIMEOUT, appending).await.expect("it is appended")
}

/// A log that has lost its end reuses the sequences. A reading that is continued notices that, although the new end has
/// the sequence of the one that it knows.
async fn reused_sequences(rig: &mut Rig) {
    let realm = rig.new_realm();
    let history = rig.history(&realm).await;
    let copies = rig.dir().join(format!("copies of {realm}"));
    let copy_of = |store: &std::path::Path| copies.join(store.to_string_lossy().replace('/', "_"));
    let first = append(&history, 0, "first").await;
    rig.while_down(|store| copy_folder(store, &copy_of(store))).await;
    let end = append(&history, first, "lost").await;
    let mut reading = Reading::default();
    history.read(OWNER, &mut reading).await.unwrap();
    rig.while_down(|store| {
        std::fs::remove_dir_all(store).unwrap();
        copy_folder(&copy_of(store), store);
    })
    .await;
    assert_eq!(append(&history, first, "another").await, end, "the sequence is reused");
    assert!(history.read(OWNER, &mut reading).await.is_err());
    history.read(OWNER, &mut reading).await.unwrap();
    assert_eq!(reading.batches, [b"first".to_vec(), b"another".to_vec()]);
    history.read(OWNER, &mut reading).await.unwrap();
    assert_eq!((reading.batches.len(), reading.last), (2, end), "nothing is new");
}

/// Archived batches are trimmed, up to the newest, which stays.
async fn trimmed(rig: &mut Rig) {
    let (realm, book) = (rig.new_realm(), Book::default());
    let history = rig.history(&realm).await;
    let actor = Actor::take_over(history.clone(), &book);
    actor.shows(40).await;
    actor.hush();
    let batches = quiet(&history).await.len() as u64;
    let first = async || {
        let entry = history.next(Lane::Log, OWNER, 1).await.unwrap().unwrap();
        Header::read(&entry.bytes).unwrap().0.number
    };
    let hour = Duration::from_secs(3_600);
    let is_done = history.trim(Lane::Log, OWNER, BatchNumber(batches), hour).await;
    assert!(!is_done.unwrap(), "what is young goes later");
    assert_eq!(first().await, BatchNumber(1), "nothing is old enough");
    for cursor in [batches / 2, batches / 2, batches] {
        let is_done = history
            .trim(Lane::Log, OWNER, BatchNumber(cursor), Duration::ZERO)
            .await;
        assert!(is_done.unwrap());
        assert_eq!(first().await, BatchNumber(cursor), "the newest archived batch stays");
    }
    history
        .trim(Lane::Fill, OWNER, BatchNumber(batches), Duration::ZERO)
        .await
        .unwrap();
    actor.talk();
    actor.shows(20).await;
}

#[tokio::test]
async fn hole_in_the_middle_on_one_node() {
    hole_in_the_middle(&mut *one_node().await).await;
}

#[tokio::test]
async fn hole_in_the_middle_on_three_nodes() {
    hole_in_the_middle(&mut *three_nodes().await).await;
}

#[tokio::test]
async fn lost_tail_on_one_node() {
    lost_tail(&mut *one_node().await).await;
}

#[tokio::test]
async fn lost_tail_on_three_nodes() {
    lost_tail(&mut *three_nodes().await).await;
}

#[tokio::test]
async fn older_disks_on_one_node() {
    older_disks(&mut *one_node().await).await;
}

#[tokio::test]
async fn older_disks_on_three_nodes() {
    older_disks(&mut *three_nodes().await).await;
}

#[tokio::test]
async fn reused_sequences_on_one_node() {
    reused_sequences(&mut *one_node().await).await;
}

#[tokio::test]
async fn reused_sequences_on_three_nodes() {
    reused_sequences(&mut *three_nodes().await).await;
}

#[tokio::test]
async fn trimmed_on_one_node() {
    trimmed(&mut *one_node().await).await;
}

#[tokio::test]
async fn trimmed_on_three_nodes() {
    trimmed(&mut *three_nodes().await).await;
}
