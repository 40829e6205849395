//! What each rule of section C prevents.

use super::{CallsBounds, CallsModel};
use crate::exhibit::Exhibit;
use crate::faults::Faults;
use crate::invariant::Invariant::{CallsTakeEffectOnce, Progress};
use crate::rule::{Rule, Rules};

const CRASH: Faults = Faults {
    crashes: 1,
    ..Faults::NONE
};
const DROP: Faults = Faults {
    drops: 1,
    ..Faults::NONE
};

const TWO_CALLS: CallsBounds = CallsBounds {
    calls: 2,
    moves_of_caller: 0,
    moves_of_receiver: 0,
    answers: false,
    caller_dies: false,
    receiver_dies: false,
    further_callers: 0,
    further_receivers: 0,
    faults: Faults::NONE,
};

/// One exhibit for each rule of this model.
pub fn exhibits() -> Vec<Exhibit> {
    let calls = |rule, invariant, bounds: CallsBounds, faults| {
        let bounds = CallsBounds { faults, ..bounds };
        Exhibit::new(
            rule,
            invariant,
            CallsModel {
                rules: Rules::ALL.without(rule),
                bounds,
            },
        )
    };
    let caller_moves = CallsBounds {
        moves_of_caller: 1,
        ..TWO_CALLS
    };
    let receiver_moves = CallsBounds {
        moves_of_receiver: 1,
        ..TWO_CALLS
    };
    let answers = CallsBounds {
        calls: 1,
        answers: true,
        ..TWO_CALLS
    };
    let caller_dies = CallsBounds {
        caller_dies: true,
        ..TWO_CALLS
    };
    let further_caller = CallsBounds {
        further_callers: 1,
        ..caller_dies
    };
    let further_receiver = CallsBounds {
        receiver_dies: true,
        further_receivers: 1,
        ..TWO_CALLS
    };
    vec![
        calls(Rule::C1LoggedFirst, CallsTakeEffectOnce, TWO_CALLS, CRASH),
        calls(Rule::C1SenderMoves, Progress, caller_moves, Faults::NONE),
        calls(Rule::C2InOrder, CallsTakeEffectOnce, TWO_CALLS, Faults::NONE),
        calls(Rule::C2Once, CallsTakeEffectOnce, TWO_CALLS, Faults::NONE),
        calls(Rule::C2WithEffects, CallsTakeEffectOnce, TWO_CALLS, CRASH),
        calls(Rule::C2ReceiverMoves, CallsTakeEffectOnce, receiver_moves, Faults::NONE),
        calls(Rule::C3ThroughGate, Progress, TWO_CALLS, Faults { crashes: 1, ..DROP }),
        calls(Rule::C4Resent, Progress, TWO_CALLS, DROP),
        calls(Rule::C5Queued, CallsTakeEffectOnce, receiver_moves, Faults::NONE),
        calls(Rule::C6GoneFromHome, CallsTakeEffectOnce, receiver_moves, Faults::NONE),
        calls(Rule::C7Awaiting, Progress, answers, CRASH),
        calls(Rule::C9CallsOutlive, Progress, caller_dies, Faults::NONE),
        calls(Rule::C17Continued, CallsTakeEffectOnce, further_receiver, Faults::NONE),
        calls(Rule::C17Confirmed, Progress, further_caller, Faults::NONE),
    ]
}
