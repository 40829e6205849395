//! Allocations per tick: bounded for each entity, and not growing with the number of entities.

use std::alloc::System;

use annals_bench::tick::allocations;
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

#[global_allocator]
static GLOBAL: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Maximum allocations per entity and tick.
const MOST: f64 = 5.0;

fn counted() -> usize {
    let so_far = GLOBAL.stats();
    so_far.allocations + so_far.reallocations
}

#[test]
fn allocations_per_entity_are_few_and_independent_of_the_entity_count() {
    let (few, many) = (allocations(1_000, counted), allocations(4_000, counted));
    println!("pieces of memory per entity and tick: {few:.2} of 1,000, {many:.2} of 4,000");
    assert!(few > 0.0, "it is counted");
    assert!(few < MOST && many < MOST, "{few:.2}, {many:.2}");
    assert!(many < few * 1.2, "{few:.2}, {many:.2}");
}
