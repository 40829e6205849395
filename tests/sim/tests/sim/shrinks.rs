//! The harness finds defects and shrinks their plans: tested with a rule of the protocol switched off.

use annals_sim::{
    fault::{Blow, Kind, Trouble},
    minimal,
    plan::{Odds, Plan, Planned},
    run,
};

/// Faults that a realm survives, and among them losses of messages that db has not read.
fn plan(fills: bool) -> Plan {
    let mut plan = Plan::of(1);
    plan.shape.play_ms = 8_000;
    plan.shape.settle_ms = 40_000;
    plan.shape.look_us = 2_500_000;
    plan.shape.trim_every = 1;
    plan.fills = fills;
    let blows = [Blow::ClockJump, Blow::LoseMessage, Blow::Disconnect]
        .into_iter()
        .cycle();
    let strikes = (0..12).zip(blows).map(|(at, blow)| Planned::Strike {
        at_ms: 3_000 + 350 * at,
        blow,
        dice: at,
    });
    let spells = [Trouble::Drop, Trouble::Duplicate].map(|trouble| Planned::Spell {
        from_ms: 2_000,
        until_ms: 8_000,
        trouble,
        odds: Odds(200),
    });
    plan.faults = strikes.chain(spells).collect();
    plan
}

#[test]
fn a_disabled_rule_is_detected_and_its_plan_shrunk() {
    run(&plan(true)).unwrap_or_else(|failure| panic!("with the rule enabled no invariant breaks: {failure}"));
    let failure = run(&plan(false)).expect_err("an unfilled hole breaks an invariant");
    let (shrunk, smaller) = minimal(&failure);
    assert!(shrunk.is_minimal, "{shrunk:?}");
    let kinds: Vec<Kind> = smaller.plan.faults.iter().map(|fault| fault.kind()).collect();
    // Some others may remain: without them, different batches are lost.
    let is_small = kinds.len() <= failure.plan.faults.len() / 2;
    assert!(is_small && kinds.contains(&Kind::Blow(Blow::LoseMessage)), "{smaller}");
    assert_eq!(smaller.kind(), failure.kind());
    assert!(
        smaller.to_string().contains("the log loses a message in its middle"),
        "{smaller}"
    );
}
