//! Seeds: `ANNALS_SIM_SEEDS` of them (10 if it is not set), or the one that `ANNALS_SIM_SEED` names.

use std::panic::catch_unwind;

use annals_sim::run;

/// How many seeds run when nobody says.
const DEFAULT_SEEDS: u64 = 10;

fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok().filter(|text| !text.is_empty())?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name}={text} is not a number")))
}

#[test]
fn every_promise_is_kept() {
    let seeds = match number("ANNALS_SIM_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("ANNALS_SIM_SEEDS").unwrap_or(DEFAULT_SEEDS),
    };
    let mut failed = Vec::new();
    let (mut batches, mut shown, mut calls, mut hand_overs, mut faults) = (0, 0, 0, 0, 0);
    for seed in seeds.clone() {
        match catch_unwind(|| run(seed)) {
            Ok(Ok(report)) => {
                batches += report.batches;
                shown += report.shown;
                calls += report.calls;
                hand_overs += report.hand_overs;
                faults += report.faults;
            }
            Ok(Err(wrong)) => {
                println!("{wrong}\nrepeat it with: make sim SEED={seed}\n");
                failed.push(seed);
            }
            Err(_) => {
                println!("seed {seed} panicked\nrepeat it with: make sim SEED={seed}\n");
                failed.push(seed);
            }
        }
    }
    println!(
        "{} seeds: {batches} batches, {shown} things shown, {calls} calls, {hand_overs} hand-overs, {faults} large faults",
        seeds.end - seeds.start
    );
    assert!(
        failed.is_empty(),
        "seeds {failed:?} failed; repeat one with: make sim SEED={}",
        failed[0]
    );
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let once = run(3).expect("seed 3 passes");
    let again = run(3).expect("seed 3 passes");
    assert_eq!(format!("{once:?}"), format!("{again:?}"));
}
