//! Movements take at most the promised share of the packing's bytes, and are as exact.

use annals_bench::volatile::{KINDS, Parts, measure};

/// Uses other seeds than the measured ones, and shorter walks.
#[test]
fn every_kind_of_walk_stays_within_the_promised_size() {
    for (name, gait) in KINDS {
        for parts in [Parts::Ground, Parts::Flying] {
            for loss in [0, 20] {
                let cost = measure((gait, parts), 500.0, loss, 31, 200);
                let share = cost.ours as f64 / cost.packed as f64;
                println!(
                    "{name} {parts:?} {loss} %: {share:.3}, {:.2} B",
                    cost.ours as f64 / cost.updates as f64
                );
                assert!(share <= 0.60, "{name}, {parts:?}, {loss} % lost: {share:.2}");
            }
        }
    }
}
