//! Seeds: `ANNALS_SIM_SEEDS` of them (default 10) from `ANNALS_SIM_FIRST` on, or the one in `ANNALS_SIM_SEED`,
//! restricted to the faults whose indices `ANNALS_SIM_ONLY` lists.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    thread,
};

use annals_sim::{Report, coverage::Coverage, minimal, plan::Plan, run};

/// Number of seeds by default.
const DEFAULT_SEEDS: u64 = 10;

/// Number of seeds from which a kind of fault that never struck is a failure, since the run does not test it.
const LONG_RUN: u64 = 500;

/// Maximum failing seeds that are shrunk and reported in full; the others are only listed.
const MOST_SHRUNK: usize = 3;

/// Maximum threads: a run takes some ten megabytes.
const MOST_THREADS: usize = 8;

fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok().filter(|text| !text.is_empty())?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name}={text} is not a number")))
}

/// The plan of a seed, or the requested subset.
fn plan(seed: u64) -> Plan {
    let plan = Plan::of(seed);
    let only = std::env::var("ANNALS_SIM_ONLY").ok().filter(|text| !text.is_empty());
    let Some(only) = only else { return plan };
    let place = |text: &str| {
        let place = text.trim().parse();
        place.unwrap_or_else(|_| panic!("ANNALS_SIM_ONLY={only} is not a list of indices"))
    };
    let places: Vec<usize> = match only.as_str() {
        "none" => Vec::new(),
        list => list.split(',').map(place).collect(),
    };
    plan.only(&places)
}

/// Prints the totals of all seeds.
fn say(seeds: u64, sum: &Report) {
    println!(
        "{} seeds: {} batches, {} things shown, {} changes of parts shown, {} calls, {} hand-overs, {} entries of the ledger, \
         {} trades settled, {} activations of pets, {} eggs laid, {} of them asked for by cells, {} registered, {} calls of services, {} further cell parts, {} of them on another cell, {} downloads, {} growls for one client, {} clients given to another owner, {} of them arrived, {} cell parts ended by others, \
         {} bytes of batches deleted, \
         {} entries of space data logged, {} shown, {} maps with other boundaries, \
         {} owners released by draining processes, {} taken over by followers, {} clients that switched, {} movements of driven entities, \
         {} rounds of parades, {} views of somebody judged, {} of them by what was before, {} open",
        seeds,
        sum.batches,
        sum.shown,
        sum.parts,
        sum.calls,
        sum.hand_overs,
        sum.entries,
        sum.trades,
        sum.lives,
        sum.created,
        sum.created_by_cells,
        sum.registered,
        sum.carried,
        sum.further.0,
        sum.further.1,
        sum.downloaded,
        sum.directed,
        sum.given.0,
        sum.given.1,
        sum.ended,
        sum.deleted,
        sum.written,
        sum.received,
        sum.redrawn,
        sum.released,
        sum.followed,
        sum.switched,
        sum.driven,
        sum.marched.rounds,
        sum.marched.judged,
        sum.marched.held,
        sum.marched.open
    );
}

#[test]
fn all_invariants_hold_for_every_seed() {
    let first = number("ANNALS_SIM_FIRST").unwrap_or(0);
    let seeds = match number("ANNALS_SIM_SEED") {
        Some(seed) => seed..seed + 1,
        None => first..first + number("ANNALS_SIM_SEEDS").unwrap_or(DEFAULT_SEEDS),
    };
    let (mut failed, mut coverage, mut sum) = (Vec::new(), Coverage::default(), Report::default());
    for (seed, ran) in run_all(seeds.clone()) {
        match ran {
            Ok(report) => {
                coverage.add(&report.struck);
                add(&mut sum, &report);
            }
            Err(failure) => failed.push((seed, failure)),
        }
    }
    say(seeds.end - seeds.start, &sum);
    println!("{coverage}");
    for (seed, failure) in failed.iter().take(MOST_SHRUNK) {
        let (shrunk, failure) = minimal(failure);
        let places: Vec<String> = shrunk.kept.iter().map(ToString::to_string).collect();
        let only = if places.is_empty() {
            "none".to_owned()
        } else {
            places.join(",")
        };
        println!(
            "\n{failure}{} in {} runs; repeat it with: make sim SEED={seed} ONLY={only}",
            if shrunk.is_minimal {
                "this is minimal, found"
            } else {
                "shrunk so far"
            },
            shrunk.tries
        );
    }
    let names: Vec<u64> = failed.iter().map(|(seed, _)| *seed).collect();
    assert!(
        failed.is_empty(),
        "seeds {names:?} failed; repeat one with: make sim SEED={}",
        names[0]
    );
    let few = seeds.end - seeds.start < DEFAULT_SEEDS;
    assert!(few || has_everything(&sum), "an expected event never occurred: {sum:?}");
    let never: Vec<String> = coverage.never().iter().map(ToString::to_string).collect();
    assert!(
        seeds.end - seeds.start < LONG_RUN || never.is_empty(),
        "these faults never struck: {never:?}"
    );
}

/// Whether there was a trade, an answer to a client, an activation of a pet, an entity created on
/// request of a base part and one of a cell part, a registration,
/// a call for one client, a further cell part on another cell, a download, a cell part destroyed by another owner, an owner
/// handed over to a follower with a client that switched, an entity that another client moved, and a body in view through the hysteresis; otherwise the run
/// did not test these.
fn has_everything(sum: &Report) -> bool {
    let requested = sum.created > sum.created_by_cells
        && sum.created_by_cells > 0
        && sum.registered > 0
        && sum.carried > 0
        && sum.directed > 0
        // Some entities that a client was given to end before it comes.
        && sum.given.1 > 0
        && sum.given.1 * 5 >= sum.given.0 * 4
        && sum.further.1 > 0;
    sum.trades > 0
        && sum.answers > 0
        && sum.lives > 0
        && sum.downloaded > 0
        && requested
        && sum.ended > 0
        && sum.released > 0
        && sum.followed > 0
        && sum.switched > 0
        && sum.driven > 0
        && sum.marched.held > 0
}

/// The result of each seed, in order.
fn run_all(seeds: std::ops::Range<u64>) -> Vec<(u64, Result<Report, Box<annals_sim::Failure>>)> {
    let next = AtomicU64::new(seeds.start);
    let work = || {
        let mut done = Vec::new();
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= seeds.end {
                return done;
            }
            done.push((seed, run(&plan(seed))));
        }
    };
    let threads = thread::available_parallelism().map_or(1, usize::from).min(MOST_THREADS);
    let mut done: Vec<_> = thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        let joined = workers
            .into_iter()
            .map(|worker| worker.join().expect("a run's panics are caught"));
        joined.flatten().collect()
    });
    done.sort_by_key(|(seed, _)| *seed);
    done
}

fn add(sum: &mut Report, report: &Report) {
    sum.batches += report.batches;
    sum.shown += report.shown;
    sum.parts += report.parts;
    sum.calls += report.calls;
    sum.answers += report.answers;
    sum.hand_overs += report.hand_overs;
    sum.entries += report.entries;
    sum.trades += report.trades;
    sum.lives += report.lives;
    sum.created += report.created;
    sum.created_by_cells += report.created_by_cells;
    sum.registered += report.registered;
    sum.carried += report.carried;
    sum.further.0 += report.further.0;
    sum.further.1 += report.further.1;
    sum.downloaded += report.downloaded;
    sum.directed += report.directed;
    sum.given.0 += report.given.0;
    sum.given.1 += report.given.1;
    sum.ended += report.ended;
    sum.deleted += report.deleted;
    sum.written += report.written;
    sum.received += report.received;
    sum.redrawn += report.redrawn;
    sum.released += report.released;
    sum.followed += report.followed;
    sum.switched += report.switched;
    sum.driven += report.driven;
    sum.marched.rounds += report.marched.rounds;
    sum.marched.judged += report.marched.judged;
    sum.marched.held += report.marched.held;
    sum.marched.open += report.marched.open;
}

#[test]
fn runs_of_a_plan_are_deterministic() {
    let once = run(&Plan::of(3)).unwrap_or_else(|failure| panic!("{failure}"));
    let again = run(&Plan::of(3)).unwrap_or_else(|failure| panic!("{failure}"));
    assert_eq!(once, again);
    assert!(once.parts > 0, "seed 3 shows no change of a part: {once:?}");
    // Not each of these runs has something to delete.
    let deleting = (0..).map(Plan::of).filter(|plan| plan.lets_go_ms == Some(300));
    let deletes = |plan: &Plan| run(plan).unwrap_or_else(|failure| panic!("{failure}")).deleted > 0;
    let tried: Vec<Plan> = deleting.take(4).collect();
    let seeds: Vec<u64> = tried.iter().map(|plan| plan.seed).collect();
    assert!(tried.iter().any(deletes), "none of seeds {seeds:?} deletes anything");
    assert!(once.entries > 0, "no entry of an order of seed 3: {once:?}");
}
