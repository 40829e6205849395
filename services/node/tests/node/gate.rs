//! The gate against the rules, over generated histories of pushes and acknowledgements.

use annals_ids::BatchNumber;
use annals_node::gate::{Gate, WAITING_LIMIT};
use proptest::prelude::*;

/// One output, as the oracle remembers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Output {
    made: usize,
    volatile: bool,
    label: u64,
}

#[derive(Clone, Copy, Debug)]
enum Step {
    /// The core makes a reliable output; the gathering batch grew by `grow` since the last.
    Make { grow: u64 },
    /// The core makes a volatile output for an entity that was created `age` batches ago.
    MakeVolatile { age: u64 },
    /// The writer acknowledges up to `lag` batches before the newest.
    Acknowledge { lag: u64 },
    /// The gate is drained.
    Release { fresh: bool },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (0..2u64).prop_map(|grow| Step::Make { grow }),
        (0..4u64).prop_map(|age| Step::MakeVolatile { age }),
        (0..4u64).prop_map(|lag| Step::Acknowledge { lag }),
        any::<bool>().prop_map(|fresh| Step::Release { fresh }),
    ]
}

proptest! {
    #[test]
    fn outputs_leave_in_order_after_their_batch(steps in proptest::collection::vec(step(), 1..120)) {
        let mut gate = Gate::new();
        let (mut newest, mut acknowledged) = (1, 0);
        let mut held: Vec<Output> = Vec::new();
        let mut released: Vec<Output> = Vec::new();
        for (made, step) in steps.into_iter().enumerate() {
            match step {
                Step::Make { grow } => {
                    newest += grow;
                    let output = Output { made, volatile: false, label: newest };
                    gate.push(BatchNumber(newest), output);
                    held.push(output);
                }
                Step::MakeVolatile { age } => {
                    let output = Output { made, volatile: true, label: newest.saturating_sub(age) };
                    gate.push_volatile(BatchNumber(output.label), output);
                    held.push(output);
                }
                Step::Acknowledge { lag } => acknowledged = acknowledged.max(newest.saturating_sub(lag)),
                Step::Release { fresh } => {
                    let left: Vec<Output> =
                        std::iter::from_fn(|| gate.release(BatchNumber(acknowledged), fresh)).collect();
                    let due: Vec<Output> =
                        held.iter().copied().filter(|output| fresh && output.label <= acknowledged).collect();
                    prop_assert_eq!(&left, &due);
                    held.retain(|output| !(output.volatile || fresh && output.label <= acknowledged));
                    released.extend(left);
                }
            }
            prop_assert_eq!(gate.waiting(), held.len());
        }
        let lasting: Vec<usize> = released.iter().filter(|o| !o.volatile).map(|o| o.made).collect();
        prop_assert!(lasting.is_sorted());
    }
}

#[test]
fn a_shut_gate_stays_empty() {
    let mut gate = Gate::new();
    gate.push(BatchNumber(1), "frame");
    gate.push_volatile(BatchNumber(0), "position");
    gate.shut();
    gate.push(BatchNumber(1), "later frame");
    gate.push_volatile(BatchNumber(0), "later position");
    assert_eq!(gate.waiting(), 0);
    assert_eq!(gate.release(BatchNumber(9), true), None);
}

#[test]
fn an_output_with_a_lower_label_does_not_overtake() {
    let mut gate = Gate::new();
    gate.push(BatchNumber(5), "first");
    gate.push(BatchNumber(3), "second");
    assert_eq!(gate.release(BatchNumber(4), true), None);
    assert_eq!(gate.release(BatchNumber(5), true), Some("first"));
    assert_eq!(gate.release(BatchNumber(5), true), Some("second"));
}

#[test]
fn an_overfull_gate_is_reported() {
    let mut gate = Gate::new();
    for _ in 0..WAITING_LIMIT {
        assert!(!gate.is_full());
        gate.push(BatchNumber(1), ());
    }
    assert!(gate.is_full());
    assert!(gate.release(BatchNumber(1), true).is_some());
    assert!(!gate.is_full());
}
