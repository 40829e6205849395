//! The deterministic simulation: production cores on a simulated log, bus and store.
//!
//! [`run`] simulates one realm: base and cell owners, director and db as they run in the services, and clients as the SDK
//! has them, on a log, a bus and a store whose every answer, loss, delay and repetition is drawn from the seed. Processes
//! die, sleep and wake, the stream loses what it acknowledged, and at the end everything must have come to rest with every
//! promise kept: one checker per promise, in [`check`].

pub mod archive;
pub mod check;
pub mod game;
pub mod plan;
pub mod stream;
pub mod world;

use archive::Archive;
use world::World;

/// What a run was like.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Batches archived.
    pub batches: usize,
    /// Events archived.
    pub events: usize,
    /// Things that clients were shown.
    pub shown: usize,
    /// Calls that clients made.
    pub calls: usize,
    /// Hand-overs.
    pub hand_overs: usize,
    /// Large faults.
    pub faults: u64,
}

/// Simulates the realm that a seed stands for.
///
/// # Errors
/// What was wrong at the end, and what had gone on before.
pub fn run(seed: u64) -> Result<Report, String> {
    let mut world = World::new(seed);
    world.run();
    let archive = Archive::read(&world);
    let mut wrong: Vec<String> = Vec::new();
    for (promise, check) in check::ALL {
        wrong.extend(
            check(&world, &archive)
                .into_iter()
                .map(|what| format!("{promise}: {what}")),
        );
    }
    if !wrong.is_empty() {
        let (count, shown) = (wrong.len(), 12);
        wrong.truncate(shown);
        let events = world.events.join("\n  ");
        return Err(format!(
            "seed {seed}: {count} promises broken\n  {}\nwhat went on:\n  {events}\n{:?}",
            wrong.join("\n  "),
            world.plan
        ));
    }
    let batches = archive.logs.values().flatten();
    let events = batches.clone().flat_map(|batch| &batch.events);
    Ok(Report {
        batches: batches.clone().count(),
        events: events.clone().count(),
        shown: world.clients.iter().map(|client| client.told.len()).sum(),
        calls: world.clients.iter().map(|client| client.made.len()).sum(),
        hand_overs: events
            .filter(|event| matches!(event.body, annals_event::Body::Onloaded { .. }))
            .count(),
        faults: world.faults.values().sum(),
    })
}
