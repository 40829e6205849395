//! The commands on a live realm: its store is served, its log grows.

use std::time::Duration;

use annals::tail::{Tail, TailPlan};
use annals_audit::{
    replay::{Extent, replay},
    verify::{Finding, verify},
};
use annals_event::{Body, Event};
use annals_host::{
    log::Lane,
    log_source::{Source, SourceError},
};
use annals_ids::Epoch;
use annals_store::MemoryStore;
use bytes::Bytes;
use tempfile::TempDir;

use super::{carrier::Carrier, world::World};

/// Timeout, longer than anything here takes on a slow machine.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Rounds by which a realm may grow during one look at it: the log must not grow faster than it is read.
const ROUNDS: u64 = 25;

/// A realm with an archive, whose log contains the end of it and more.
async fn running(seed: u64) -> (TempDir, World, Carrier) {
    let folder = TempDir::new().unwrap();
    let mut world = World::generate(MemoryStore::new().store(), seed, 40).await;
    let kept = world.frozen.len() - 10;
    world.play(seed + 1, 30).await;
    world.record_openings().await;
    let mut carrier = Carrier::start(folder.path(), kept).await;
    carrier.serve(world.store.clone());
    carrier.append_all(&world).await;
    (folder, world, carrier)
}

#[tokio::test(flavor = "multi_thread")]
async fn unarchived_batches_are_verified_and_replayed() {
    let (_folder, world, carrier) = running(41).await;
    let source = Source::running(&carrier.settings()).await.unwrap();
    let report = verify(&source).await.unwrap();
    assert!(report.is_clean(), "{report}");
    for log in &world.logs {
        let end = (log.state.tail.batch, log.state.hash());
        assert_eq!(report.owners[&log.owner].state, Some(end));
        let replayed = replay(&source, log.owner, None, Extent::Log).await.unwrap();
        assert_eq!((replayed.at.batch, replayed.state), end);
        let archive = replay(&source, log.owner, None, Extent::Archive).await.unwrap();
        assert_eq!(archive.at.batch, replayed.archived);
    }
    let beyond: u64 = report.owners.values().map(|owner| owner.beyond).sum();
    assert!(beyond > 0, "{report}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_lost_by_the_log_is_named() {
    let (_folder, mut world, mut carrier) = running(42).await;
    world.change_somebody(0);
    let lost = world.frozen.last().unwrap().clone();
    carrier.skip();
    world.change_somebody(0);
    carrier.append_all(&world).await;
    let source = Source::running(&carrier.settings()).await.unwrap();
    let report = verify(&source).await.unwrap();
    let named = |finding: &Finding| match finding {
        Finding::Beyond { owner, why } => *owner == lost.owner && why.contains(&format!("batch {},", lost.number)),
        _ => false,
    };
    assert!(report.findings.iter().any(named), "{report}");
    // A process that still has the batch fills the hole.
    carrier
        .history
        .fill(lost.owner, Bytes::copy_from_slice(&lost.bytes))
        .await;
    let report = verify(&source).await.unwrap();
    assert!(report.is_clean(), "{report}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_realm_that_grows_during_verification_is_clean() {
    let (_folder, mut world, mut carrier) = running(43).await;
    let source = Source::running(&carrier.settings()).await.unwrap();
    let mut sizes = Vec::new();
    for look in 0..4 {
        let begin = 100 + look * ROUNDS;
        let growing = async {
            for round in begin..begin + ROUNDS {
                world.play(round, 4).await;
                world.record_openings().await;
                carrier.append_all(&world).await;
                if round % 3 == 0 {
                    world.archive().await;
                }
            }
        };
        let (report, ()) = tokio::join!(verify(&source), growing);
        let report = report.unwrap();
        assert!(report.is_clean(), "{report}");
        sizes.push(report.leaves);
    }
    assert!(sizes.is_sorted() && sizes[0] < sizes[3], "it grew: {sizes:?}");
    for log in &world.logs {
        let last = carrier.history.last(log.owner).await.unwrap().unwrap();
        assert_eq!(last.lane, Lane::Log);
        let replayed = replay(&source, log.owner, None, Extent::Log).await.unwrap();
        assert_eq!(replayed.state, log.state.hash());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn new_events_are_followed_across_openings_and_holes_without_void_ones() {
    let (_folder, mut world, mut carrier) = running(44).await;
    let source = Source::running(&carrier.settings()).await.unwrap();
    let plan = TailPlan {
        events: 2,
        ..TailPlan::default()
    };
    let mut tail = Tail::read(&source, plan).await.unwrap();
    assert_eq!(tail.lines().len(), 2);
    // The append of a writer that was replaced without knowing it.
    let stale = {
        let events: [Event; 0] = [];
        let mut frozen = world.freeze(0, &[], &events, false);
        frozen.bytes = forged_epoch(&world, &events);
        frozen
    };
    world.reopen(0).await;
    world.record_openings().await;
    carrier.append_all(&world).await;
    carrier.append(&stale).await;
    world.create(0);
    let made = *world.logs[0].state.entities.keys().next_back().unwrap();
    carrier.append_all(&world).await;
    world.change(0, made, 17);
    let lost = world.frozen.last().unwrap().clone();
    carrier.skip();
    world.change(0, made, 18);
    carrier.append_all(&world).await;
    carrier
        .history
        .fill(lost.owner, Bytes::copy_from_slice(&lost.bytes))
        .await;
    let mut lines = Vec::new();
    while lines.len() < 3 {
        let more = tokio::time::timeout(TIMEOUT, tail.follow(&source)).await;
        lines.extend(more.expect("more is to come").unwrap());
    }
    for (line, what) in lines
        .iter()
        .zip(["created at", "level = 17 (history 1)", "level = 18 (history 2)"])
    {
        assert!(line.contains(&format!("Avatar {made} cell: {what}")), "{lines:?}");
    }
    assert_eq!(lines.len(), 3, "{lines:?}");
}

/// A batch after the present end, of an earlier epoch.
fn forged_epoch(world: &World, events: &[Event]) -> Vec<u8> {
    let log = &world.logs[0];
    let mut imprint = log.imprint.clone();
    imprint.epoch = Epoch(1);
    let mut gathering = annals_event::Gathering::default();
    events.iter().for_each(|event| gathering.record(event));
    gathering.record(&world.event(annals_ids::EntityId(1), None, 0, Body::Destroyed));
    let mut tail = log.state.tail;
    gathering
        .freeze(&imprint, &mut tail, annals_ids::Tick(1), annals_ids::WallTime(1), false)
        .bytes
}

#[tokio::test(flavor = "multi_thread")]
async fn a_realm_unknown_to_the_server_is_named() {
    let (_folder, _world, carrier) = running(45).await;
    let mut settings = carrier.settings();
    settings.realm = "other".parse().unwrap();
    let refused = Source::running(&settings).await.err().unwrap();
    assert!(matches!(refused, SourceError::NoLog { .. }), "{refused}");
    assert!(refused.to_string().contains("no log of a realm other"), "{refused}");
}
