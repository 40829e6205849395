//! Watched values of db.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use crate::watched::{Registration, Unit, Watched};

/// What folding reports, twice a second.
#[derive(Debug, Default)]
pub(super) struct Figures {
    pub(super) behind: AtomicU64,
    pub(super) holes: AtomicU64,
    pub(super) owners: AtomicU64,
}

/// Adds the values of db.
pub(super) fn add(watched: &Watched, figures: &Arc<Figures>) -> Registration {
    let figures = Arc::clone(figures);
    watched.add("fold", move |nodes| {
        let mut count = |path: &str, count: &AtomicU64, about: &str| {
            nodes.put(path, count.load(Ordering::Relaxed), Unit::None, about);
        };
        count(
            "behind",
            &figures.behind,
            "messages of the log that are not read yet, up to a second ago",
        );
        count("holes", &figures.holes, "places where the log lacks batches");
        count(
            "logs",
            &figures.owners,
            "logs of which something was folded since the start",
        );
    })
}
