//! Deterministic simulation: production cores on a simulated log, bus and store.
//!
//! [`run`] simulates one realm: base and cell owners, director and db as they run in the services, and clients as in
//! the SDK, on a log, a bus and a store whose every answer, loss, delay and duplicate is drawn from the seed. The
//! configuration and the faults differ from seed to seed ([`plan`], [`fault`]). At the end everything must have come to
//! rest with every promise kept: one checker per promise, in [`check`]. A plan that breaks one is shrunk to a subset of
//! its faults that still breaks it ([`minimal`]). `docs/simulation.md` says how to read and repeat a failure.

pub mod archive;
pub mod check;
pub mod coverage;
pub mod fault;
pub mod game;
pub mod one_cell;
pub mod plan;
pub mod shrink;
pub mod stream;
pub mod world;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
};

use annals_event::{
    Body, Event,
    ledger::{LedgerUpdate, Outcome, Stage},
};

use archive::Archive;
use fault::Kind;
use plan::Plan;
use shrink::{Shrunk, shrink};
use world::{Marched, World};

/// Maximum runs to shrink a failing plan: a minute or two.
pub const SHRINK_RUNS: usize = 60;

/// Maximum broken promises reported per run.
const MOST_REPORTED: usize = 12;

/// Statistics of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Batches archived.
    pub batches: usize,
    /// Events archived.
    pub events: usize,
    /// Events that clients were shown.
    pub shown: usize,
    /// Changes of parts and slices of properties that clients were shown.
    pub parts: usize,
    /// Calls that clients made.
    pub calls: usize,
    /// Answers that clients were shown.
    pub answers: usize,
    pub hand_overs: usize,
    /// Ledger entries that changed something.
    pub entries: usize,
    /// Trades that both sides accepted.
    pub trades: usize,
    /// Activations of stored entities that behaviour requested.
    pub lives: usize,
    /// Entities that were created for others, on their own owner or another.
    pub created: usize,
    /// How many of them cell parts requested.
    pub created_by_cells: usize,
    /// Registrations as global bases.
    pub registered: usize,
    /// Calls that fragments of a service executed.
    pub carried: usize,
    /// Cell parts that continued a former one, and how many of them began on another owner.
    pub further: (usize, usize),
    /// Downloads that arrived.
    pub downloaded: u64,
    /// Calls of client methods for one client alone.
    pub directed: usize,
    /// Clients that another owner has given, and those that arrived.
    pub given: (usize, usize),
    /// Cell parts whose destruction another part requested.
    pub ended: usize,
    /// Bytes of batches that retention deleted.
    pub deleted: u64,
    /// Boundary moves, and cells added or retired.
    pub redrawn: u64,
    /// Logged entries of space data.
    pub written: usize,
    /// Entries of space data that clients received.
    pub received: usize,
    /// Owners that draining processes released.
    pub released: u64,
    /// Grants to processes that drain themselves.
    pub passed_on: u64,
    /// Take-overs by processes that followed the owner.
    pub followed: u64,
    /// Whether nothing but drains happened, so that no player may have been interrupted.
    pub is_calm: bool,
    /// Movements of other entities than their own that clients sent, as their drivers.
    pub driven: u64,
    /// Changes of clients to the next holder of their owner, without an interruption.
    pub switched: u64,
    /// Statistics of the parade.
    pub marched: Marched,
    /// Occurrences of each kind of fault.
    pub struck: BTreeMap<Kind, u64>,
}

/// A run that broke a promise.
#[derive(Clone, Debug)]
pub struct Failure {
    pub plan: Plan,
    /// The broken promises, with details.
    pub wrong: Vec<String>,
    /// The faults and events of the run, if it completed.
    pub events: Vec<String>,
}

impl Failure {
    /// The class of the failure: the first broken promise.
    #[must_use]
    pub fn kind(&self) -> &str {
        let first = self.wrong.first().map_or("", String::as_str);
        first.split(':').next().unwrap_or(first)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "seed {}: {} promises broken", self.plan.seed, self.wrong.len())?;
        for wrong in self.wrong.iter().take(MOST_REPORTED) {
            writeln!(f, "  {wrong}")?;
        }
        writeln!(f, "what is simulated:\n  {:?}", self.plan.shape)?;
        if let Some(crossing) = &self.plan.crossing {
            writeln!(f, "  {crossing:?}")?;
        }
        writeln!(f, "what was planned:")?;
        for fault in &self.plan.faults {
            writeln!(f, "  {fault}")?;
        }
        writeln!(f, "what went on:")?;
        for event in &self.events {
            writeln!(f, "  {event}")?;
        }
        Ok(())
    }
}

/// Simulates the realm of a plan.
///
/// # Errors
/// The broken promises, at the end or when a core panicked.
pub fn run(plan: &Plan) -> Result<Report, Box<Failure>> {
    let mut events = Vec::new();
    let ran = catch_unwind(AssertUnwindSafe(|| simulate(plan, &mut events)));
    let (report, wrong) = ran.unwrap_or_else(|panic| {
        let what = panic.downcast_ref::<String>().cloned();
        let what = what.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string));
        (Report::default(), vec![format!("panic: {}", what.unwrap_or_default())])
    });
    if wrong.is_empty() {
        return Ok(report);
    }
    Err(Box::new(Failure {
        plan: plan.clone(),
        wrong,
        events,
    }))
}

/// The smallest subset of a failing plan's faults found to break the same promise, with its failure.
#[must_use]
pub fn minimal(failure: &Failure) -> (Shrunk, Failure) {
    let mut found = failure.clone();
    let shrunk = shrink(failure.plan.faults.len(), SHRINK_RUNS, |kept| {
        match run(&failure.plan.only(kept)) {
            Err(smaller) if smaller.kind() == failure.kind() => {
                found = *smaller;
                true
            }
            _ => false,
        }
    });
    (shrunk, found)
}

fn simulate(plan: &Plan, events: &mut Vec<String>) -> (Report, Vec<String>) {
    let mut world = World::new(plan.clone());
    let ran = catch_unwind(AssertUnwindSafe(|| world.run()));
    events.clone_from(&world.events);
    if let Err(panic) = ran {
        std::panic::resume_unwind(panic);
    }
    let archive = Archive::read(&world);
    let wrong = check::ALL.iter().flat_map(|(promise, check)| {
        let found = check(&world, &archive).into_iter();
        found.map(move |what| format!("{promise}: {what}"))
    });
    let wrong: Vec<String> = wrong.collect();
    (report(&world, &archive), wrong)
}

fn report(world: &World, archive: &Archive) -> Report {
    let batches = archive.logs.values().flatten();
    let events = batches.clone().flat_map(|batch| &batch.events);
    let shown = world.clients.iter().flat_map(|client| &client.events);
    let parts = shown.clone().filter(|event| match event {
        annals_client::Event::Shown(showing) => match &showing.what {
            annals_client::What::Changed { change, .. } => !change.is_whole(),
            annals_client::What::Called { .. } | annals_client::What::Replied { .. } => false,
        },
        _ => false,
    });
    Report {
        batches: batches.clone().count(),
        events: events.clone().count(),
        shown: shown.clone().count(),
        parts: parts.count(),
        calls: world.clients.iter().map(|client| client.made.len()).sum(),
        answers: check::answers::count(world),
        hand_overs: events
            .clone()
            .filter(|event| matches!(event.body, Body::Onloaded { .. }))
            .count(),
        entries: events.clone().filter(|event| is_done(event)).count(),
        trades: trades(events.clone()),
        lives: check::lives::count(world, archive),
        created: check::creations::count(archive),
        created_by_cells: check::creations::count_by_cells(world, archive),
        registered: check::globals::count(archive),
        carried: check::calls::count_of_fragments(archive),
        further: check::further_cells::count(archive),
        downloaded: check::downloads::count(world, archive),
        directed: check::shown::count_directed(archive),
        given: check::given::count(archive),
        ended: check::ends::count(archive),
        written: events.clone().filter(|event| is_written(event)).count(),
        received: shown
            .filter(|event| matches!(event, annals_client::Event::SpaceDataChanged { .. }))
            .count(),
        deleted: world.deleted,
        redrawn: world.redrawn,
        released: world.released,
        passed_on: world.passed_on,
        followed: world.followed,
        is_calm: check::drains::is_calm(world),
        driven: world.clients.iter().map(|client| client.driven).sum(),
        switched: world.clients.iter().map(|client| client.core.counters().moved).sum(),
        marched: world.parade.marched,
        struck: world.struck.clone(),
    }
}

/// Whether the event is the ledger's confirmation that an entry changed something.
fn is_done(event: &Event) -> bool {
    let Body::Entered { entry: Some(entry), .. } = &event.body else {
        return false;
    };
    !matches!(entry.outcome, Outcome::Refused(_))
}

/// Whether the event writes space data.
fn is_written(event: &Event) -> bool {
    matches!(event.body, Body::SpaceData { .. })
}

/// Number of settled trades.
fn trades<'e>(events: impl Iterator<Item = &'e Event>) -> usize {
    let settled = events.filter_map(|event| match &event.body {
        Body::Booked(LedgerUpdate::Booking(booking)) => {
            booking.trade.as_ref().filter(|trade| trade.stage == Stage::Settled)
        }
        _ => None,
    });
    settled.map(|trade| trade.id).collect::<BTreeSet<_>>().len()
}
