//! Faults of the log on real nats-servers: each scenario on one node, and on three with replicas 3. Nothing that was
//! shown is missing from the log afterwards, and a process that was replaced shows nothing.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod actor;
mod freezing;
mod gate;
mod losses;
mod outages;
mod rig;
mod takeovers;

use std::collections::BTreeSet;

use annals_event::Header;
use annals_host::log::{History, Reading};
use annals_host::nats::ServerCount;
use annals_node::chain::assemble;
use annals_node::writer::Chain;
use tokio::sync::{MappedMutexGuard, Mutex, MutexGuard};
use tokio::time::Instant;

use actor::Screen;
use rig::{Book, NOTHING_ARCHIVED, OWNER, Rig};

static ONE: Mutex<Option<Rig>> = Mutex::const_new(None);
static THREE: Mutex<Option<Rig>> = Mutex::const_new(None);

/// The single server, for one scenario at a time.
async fn one_node() -> MappedMutexGuard<'static, Rig> {
    let mut rig = ONE.lock().await;
    match &mut *rig {
        Some(rig) => rig.heal().await,
        None => *rig = Some(Rig::start(ServerCount::One).await),
    }
    MutexGuard::map(rig, |rig| rig.as_mut().expect("it was started"))
}

/// The three servers, for one scenario at a time.
async fn three_nodes() -> MappedMutexGuard<'static, Rig> {
    let mut rig = THREE.lock().await;
    match &mut *rig {
        Some(rig) => rig.heal().await,
        None => *rig = Some(Rig::start(ServerCount::Three).await),
    }
    MutexGuard::map(rig, |rig| rig.as_mut().expect("it was started"))
}

/// The log's chain, which must be complete: from the first batch, without gaps, each naming the one before.
async fn chain(history: &History, book: &Book) -> Chain {
    let reading = read(history).await;
    assemble(OWNER, NOTHING_ARCHIVED, &book.openings(), reading.batches, reading.last).unwrap()
}

/// The present log, as soon as its stream has a leader.
async fn read(history: &History) -> Reading {
    let patience = Instant::now() + actor::TIMEOUT;
    let mut reading = Reading::default();
    loop {
        match history.read(OWNER, &mut reading).await {
            Ok(()) => return reading,
            Err(error) => assert!(Instant::now() < patience, "{error}"),
        }
    }
}

/// Everything that was shown is in the log, once.
async fn check(history: &History, book: &Book, screens: &[&Screen]) -> Chain {
    // What is shown while the log is being read need not be in the reading.
    let shown: Vec<Vec<u64>> = screens.iter().map(|screen| screen.taken()).collect();
    let chain = chain(history, book).await;
    let headers = chain.beyond.iter().map(|batch| Header::read(&batch.bytes).unwrap().0);
    let logged: Vec<u64> = headers
        .flat_map(|header| header.consumed)
        .map(|consumed| consumed.number.0)
        .collect();
    let distinct: BTreeSet<u64> = logged.iter().copied().collect();
    assert_eq!(distinct.len(), logged.len(), "a call is in the log twice");
    for taken in shown {
        assert!(!taken.is_empty(), "a scenario in which nothing is shown shows nothing");
        assert!(taken.is_sorted(), "outputs leave in the order in which they were made");
        let lost: Vec<u64> = taken.into_iter().filter(|number| !distinct.contains(number)).collect();
        assert!(lost.is_empty(), "shown and not in the log: {lost:?}");
    }
    chain
}
