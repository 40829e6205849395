//! What each rule of section H prevents.

use super::{HandoverBounds, HandoverModel};
use crate::exhibit::Exhibit;
use crate::faults::Faults;
use crate::invariant::Invariant::{OneReal, Progress};
use crate::rule::{Rule, Rules};

const CRASH: Faults = Faults {
    crashes: 1,
    ..Faults::NONE
};
const DROP: Faults = Faults {
    drops: 1,
    ..Faults::NONE
};

const ONCE: HandoverBounds = HandoverBounds {
    owners: 2,
    moves: 1,
    ring: false,
    refusals: 0,
    faults: Faults::NONE,
};
const TWICE: HandoverBounds = HandoverBounds { moves: 2, ..ONCE };
const REFUSED: HandoverBounds = HandoverBounds { refusals: 1, ..ONCE };
const AROUND: HandoverBounds = HandoverBounds {
    owners: 3,
    moves: 3,
    ring: true,
    ..ONCE
};

/// One exhibit for each rule of this model.
pub fn exhibits() -> Vec<Exhibit> {
    let handover = |rule, invariant, bounds: HandoverBounds, faults| {
        let bounds = HandoverBounds { faults, ..bounds };
        Exhibit::new(
            rule,
            invariant,
            HandoverModel {
                rules: Rules::ALL.without(rule),
                bounds,
            },
        )
    };
    vec![
        handover(Rule::H1Logged, OneReal, ONCE, CRASH),
        handover(Rule::H1OneInput, OneReal, ONCE, CRASH),
        handover(Rule::H2Resent, Progress, ONCE, DROP),
        handover(Rule::H3AnswerIsCall, Progress, REFUSED, DROP),
        handover(Rule::H3Once, OneReal, TWICE, Faults::NONE),
        handover(Rule::H4ThatOne, OneReal, AROUND, Faults::NONE),
        handover(Rule::H4Returned, OneReal, REFUSED, Faults::NONE),
        handover(Rule::H4OnlyRefused, OneReal, ONCE, Faults::NONE),
        handover(Rule::H6Ordered, Progress, TWICE, DROP),
    ]
}
