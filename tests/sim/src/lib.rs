//! The deterministic simulation: production cores on a simulated log, bus and store.
//!
//! [`run`] simulates one realm: base and cell owners, director and db as they run in the services, and clients as the SDK
//! has them, on a log, a bus and a store whose every answer, loss, delay and repetition is drawn from the seed. What is
//! simulated and what goes wrong in it differs from seed to seed ([`plan`], [`fault`]). At the end everything must have come
//! to rest with every promise kept: one checker per promise, in [`check`]. A plan that breaks one is shrunk to a part of its
//! faults that still does ([`minimal`]). `docs/simulation.md` says how to read and repeat a failure.

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
    ledger::{News, Outcome, Stage},
};

use archive::Archive;
use fault::Kind;
use plan::Plan;
use shrink::{Shrunk, shrink};
use world::{Marched, World};

/// Runs at most to shrink a failing plan: a minute or two.
pub const SHRINK_RUNS: usize = 60;

/// Broken promises that are told of one run.
const MOST_TOLD: usize = 12;

/// What a run was like.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Batches archived.
    pub batches: usize,
    /// Events archived.
    pub events: usize,
    /// Things that clients were shown.
    pub shown: usize,
    /// Changes of parts and slices of properties that clients were shown.
    pub parts: usize,
    /// Calls that clients made.
    pub calls: usize,
    /// Hand-overs.
    pub hand_overs: usize,
    /// What of orders became of the ledger: entries that changed something.
    pub entries: usize,
    /// Trades that both sides accepted.
    pub trades: usize,
    /// Lives of stored entities that behaviour asked for.
    pub lives: usize,
    /// Cell parts of which another part asked that they end.
    pub ended: usize,
    /// Bytes of batches that were let go.
    pub let_go: u64,
    /// How often boundaries have moved, or cells come or gone.
    pub redrawn: u64,
    /// Entries of the data of spaces that were logged.
    pub written: usize,
    /// How often clients were told one.
    pub heard: usize,
    /// What the parade came to.
    pub marched: Marched,
    /// How often each kind of fault struck.
    pub struck: BTreeMap<Kind, u64>,
}

/// A run that broke a promise.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The plan that it had.
    pub plan: Plan,
    /// Which promises were broken, and how.
    pub wrong: Vec<String>,
    /// What went on, if the run came to its end.
    pub events: Vec<String>,
}

impl Failure {
    /// What kind of failure it is: the first promise that is broken.
    #[must_use]
    pub fn kind(&self) -> &str {
        let first = self.wrong.first().map_or("", String::as_str);
        first.split(':').next().unwrap_or(first)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "seed {}: {} promises broken", self.plan.seed, self.wrong.len())?;
        for wrong in self.wrong.iter().take(MOST_TOLD) {
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
/// What was wrong, at the end or when a core gave up.
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

/// The least part of a failing plan's faults that was found to break the same promise, and how it does.
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
    let told = world.clients.iter().flat_map(|client| &client.told);
    let parts = told.clone().filter(|told| match told {
        annals_client::Event::Shown(showing) => match &showing.what {
            annals_client::What::Changed { change, .. } => !change.is_whole(),
            annals_client::What::Called { .. } => false,
        },
        _ => false,
    });
    Report {
        batches: batches.clone().count(),
        events: events.clone().count(),
        shown: told.clone().count(),
        parts: parts.count(),
        calls: world.clients.iter().map(|client| client.made.len()).sum(),
        hand_overs: events
            .clone()
            .filter(|event| matches!(event.body, Body::Onloaded { .. }))
            .count(),
        entries: events.clone().filter(|event| is_done(event)).count(),
        trades: trades(events.clone()),
        lives: check::lives::count(world, archive),
        ended: check::ends::count(archive),
        written: events.clone().filter(|event| is_written(event)).count(),
        heard: told
            .filter(|told| matches!(told, annals_client::Event::SpaceDataChanged { .. }))
            .count(),
        let_go: world.let_go,
        redrawn: world.redrawn,
        marched: world.parade.marched,
        struck: world.struck.clone(),
    }
}

/// Whether it is the ledger's word that an entry changed something.
fn is_done(event: &Event) -> bool {
    let Body::Entered { entry: Some(entry), .. } = &event.body else {
        return false;
    };
    !matches!(entry.outcome, Outcome::Refused(_))
}

/// Whether somebody wrote into a space's data.
fn is_written(event: &Event) -> bool {
    matches!(event.body, Body::SpaceData { .. })
}

/// Trades that were settled.
fn trades<'e>(events: impl Iterator<Item = &'e Event>) -> usize {
    let settled = events.filter_map(|event| match &event.body {
        Body::Booked(News::Booking(booking)) => booking.trade.as_ref().filter(|trade| trade.stage == Stage::Settled),
        _ => None,
    });
    settled.map(|trade| trade.id).collect::<BTreeSet<_>>().len()
}
