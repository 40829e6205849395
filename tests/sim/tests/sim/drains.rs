//! Realms in which nothing goes wrong while their processes are drained, one after the other (rule D9): players notice
//! nothing.

use annals_sim::{
    fault::{Blow, Kind},
    plan::{Plan, Planned},
    run,
};

/// Number of seeds.
const SEEDS: u64 = 12;

/// A process drains at each of these times.
fn drains_at(seed: u64, times: impl Iterator<Item = u64>) -> Vec<Planned> {
    times.map(|at_ms| strike(seed, at_ms, Blow::Drain)).collect()
}

fn strike(seed: u64, at_ms: u64, blow: Blow) -> Planned {
    Planned::Strike {
        at_ms,
        blow,
        dice: seed ^ at_ms,
    }
}

/// The realm of a seed, with at least two processes of each kind, and drains alone.
fn plan(seed: u64) -> Plan {
    let mut plan = Plan::of(seed);
    plan.visits = false;
    plan.shape.bases = plan.shape.bases.max(2);
    plan.shape.cells = plan.shape.cells.max(2);
    // As often as processes report while they hand owners over.
    plan.shape.beat_us = 100_000;
    // A trim that takes what a follower has not read makes it begin anew; db trims nothing that is younger than a minute.
    plan.shape.trim_every = u64::MAX;
    plan.faults.retain(|fault| fault.kind() == Kind::Blow(Blow::Drain));
    if plan.faults.is_empty() {
        let times = (3_000..plan.shape.play_ms).step_by(1_700);
        plan.faults = drains_at(seed, times);
    }
    plan
}

/// The same realm with further processes, of which two drain at almost the same time: often the second one is the process
/// that was just announced to the first one's clients.
fn overlapping(seed: u64) -> Plan {
    let mut plan = plan(seed);
    plan.shape.bases = plan.shape.bases.max(3);
    plan.shape.cells = plan.shape.cells.max(3);
    let times = (3_000..plan.shape.play_ms).step_by(2_500);
    let pairs = times.zip(0_u64..).flat_map(|(at_ms, nth)| {
        // Announced moves take up to 600 ms.
        let apart = 37 * (nth + seed) % 700;
        [at_ms, at_ms + apart]
    });
    plan.faults = drains_at(seed, pairs);
    plan
}

/// The same, with fewer drains, during each pair of which the director is replaced: the next one does not know what the
/// one before has ordered, and must have reports of all processes before it plans anything else.
fn over_new_directors(seed: u64) -> Plan {
    let mut plan = overlapping(seed);
    plan.shape.play_ms = plan.shape.play_ms.max(16_000);
    let times = (3_000..plan.shape.play_ms).step_by(6_000);
    let struck = times.zip(0_u64..).flat_map(|(at_ms, nth)| {
        let (apart, until_replaced) = (37 * (nth + seed) % 700, 53 * (nth + seed) % 900);
        [
            strike(seed, at_ms, Blow::Drain),
            strike(seed, at_ms + apart, Blow::Drain),
            strike(seed, at_ms + until_replaced, Blow::ReplaceDirector),
        ]
    });
    plan.faults = struck.collect();
    plan
}

#[test]
fn drains_interrupt_no_player() {
    judge(plan);
}

#[test]
fn drains_that_overlap_interrupt_no_player() {
    let passed_on = judge(overlapping);
    assert!(passed_on > 0, "no draining process took an owner over");
}

#[test]
fn drains_over_new_directors_interrupt_no_player() {
    judge(over_new_directors);
}

/// Runs the plan of each seed; returns the number of grants to draining processes.
fn judge(plan: fn(u64) -> Plan) -> u64 {
    let mut passed_on = 0;
    let (mut released, mut followed, mut switched, mut judged) = (0, 0, 0, 0);
    let (mut planned, mut replaced) = (0, 0);
    let replaces = |fault: &&Planned| fault.kind() == Kind::Blow(Blow::ReplaceDirector);
    for seed in 0..SEEDS {
        let plan = plan(seed);
        let report = run(&plan).unwrap_or_else(|failure| panic!("{failure}"));
        planned += plan.faults.iter().filter(replaces).count() as u64;
        replaced += report
            .struck
            .get(&Kind::Blow(Blow::ReplaceDirector))
            .copied()
            .unwrap_or(0);
        passed_on += report.passed_on;
        released += report.released;
        followed += report.followed;
        switched += report.switched;
        judged += u64::from(report.is_calm);
    }
    println!("{released} owners released, {followed} taken over by followers, {switched} clients switched");
    assert!(
        followed * 10 > released * 9,
        "{followed} of {released} owners were followed"
    );
    // Where two processes of a kind drain at once, an owner may find no follower.
    assert!(judged * 4 > SEEDS * 3, "{judged} of {SEEDS} realms were judged");
    assert!(switched > 20, "{switched} clients switched");
    assert!(
        replaced * 10 >= planned * 9,
        "{replaced} of {planned} directors were replaced"
    );
    passed_on
}
