//! The bodies of one space.

use std::collections::BTreeMap;

use crate::{
    interest::Reach,
    layer::{Gaze, Layer},
    steps::{Step, Who},
};

/// The bodies of one space by appeal, and the totals that tune the search.
#[derive(Clone, Debug, Default)]
pub(crate) struct Room {
    /// By appeal: the bits of the metres, which sort correctly because none is negative.
    layers: BTreeMap<u32, Layer>,
    /// Number of observers.
    observers: usize,
    /// Sum of the observers' reaches, metres, and number of bodies that they saw at the last update.
    reaches: f32,
    seen: usize,
}

/// Bodies that appeared, vanished or leapt are compared with every observer while there are at most this many, plus
/// some for each body that observers see; beyond that, recomputing the areas is less work.
const LEAPING: usize = 64;
const LEAPING_PER_SEEN: usize = 8;

impl Room {
    /// Removes all bodies and observers.
    pub(crate) fn clear(&mut self) {
        self.layers.retain(|_, layer| !layer.is_empty());
        self.layers.values_mut().for_each(Layer::clear);
        (self.observers, self.reaches, self.seen) = (0, 0.0, 0);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.layers.values().all(Layer::is_empty)
    }

    /// Adds a body of that appeal with its step.
    pub(crate) fn take(&mut self, who: Who, appeal: f32, step: Step) {
        self.layers.entry(appeal.to_bits()).or_default().take(who, step);
    }

    /// Adds an observer with its reach, and the number of bodies that it saw.
    pub(crate) fn observe(&mut self, reach: Reach, seen: usize) {
        self.observers += 1;
        self.reaches += reach.hold(0.0);
        self.seen += seen;
    }

    /// Whether so many bodies appeared, vanished or leapt that recomputing the areas is less work.
    pub(crate) fn is_upset(&self) -> bool {
        let leaping: usize = self.layers.values().map(Layer::leaping).sum();
        leaping > LEAPING + LEAPING_PER_SEEN * self.seen / self.observers.max(1)
    }

    /// Sorts the layers before a search.
    pub(crate) fn sort(&mut self) {
        if self.observers > 0 {
            let side = self.side();
            self.layers.values_mut().for_each(|layer| layer.sort(side));
        }
    }

    /// The layers, each with an observer's distances.
    pub(crate) fn layers(&self, reach: Reach, step: Step) -> impl Iterator<Item = (&Layer, Gaze)> {
        self.layers.iter().map(move |(appeal, layer)| {
            let appeal = f32::from_bits(*appeal);
            let gaze = Gaze {
                step,
                enter: reach.enter(appeal),
                hold: reach.hold(appeal),
            };
            (layer, gaze)
        })
    }

    /// Side of a square, metres. The fewer bodies are visible, the larger: visiting a square costs time, and so does
    /// each body in it. The values were the best in `make bench`, with a flat optimum.
    fn side(&self) -> f32 {
        let reach = self.reaches / self.observers as f32;
        let squares = match self.seen / self.observers {
            0..10 => 0.5,
            10..1_000 => 4.0,
            _ => 8.0,
        };
        (reach / squares).max(1.0)
    }
}
