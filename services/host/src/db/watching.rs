//! Watched values of db.

use std::collections::BTreeMap;
use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use annals_ids::Shard;

use crate::{
    telemetry::Metrics,
    watched::{Registration, Unit, Watched},
};

/// What folding reports, twice a second.
#[derive(Debug, Default)]
pub(super) struct Figures {
    pub(super) behind: AtomicU64,
    pub(super) holes: AtomicU64,
    pub(super) owners: AtomicU64,
}

impl Figures {
    /// Replaces the figures of a shard, whose sums the metrics have.
    pub(super) fn set(&self, metrics: &Metrics, (behind, holes, owners): (u64, u64, u64)) {
        let change = |figure: &AtomicU64, value: u64| {
            let before = figure.swap(value, Ordering::Relaxed);
            value.cast_signed() - before.cast_signed()
        };
        metrics.fold_behind.add(change(&self.behind, behind));
        metrics.log_holes.add(change(&self.holes, holes));
        self.owners.store(owners, Ordering::Relaxed);
    }
}

/// Adds the values of db: sums over the shards that it folds, and each shard's own if there are several.
pub(super) fn add(watched: &Watched, figures: &BTreeMap<Shard, Arc<Figures>>) -> Registration {
    let figures = figures.clone();
    watched.add("fold", move |nodes| {
        let is_divided = figures.len() > 1;
        let mut count = |path: &str, of: fn(&Figures) -> &AtomicU64, about: &str| {
            let mut sum = 0;
            for (shard, figures) in &figures {
                let value = of(figures).load(Ordering::Relaxed);
                sum += value;
                if is_divided {
                    nodes.put(format!("shards/{shard}/{path}"), value, Unit::None, about);
                }
            }
            nodes.put(path, sum, Unit::None, about);
        };
        count(
            "behind",
            |figures| &figures.behind,
            "messages of the log that are not read yet, up to a second ago",
        );
        count("holes", |figures| &figures.holes, "places where the log lacks batches");
        count(
            "logs",
            |figures| &figures.owners,
            "logs of which something was folded since the start",
        );
    })
}
