//! The bodies of one space.

use std::collections::BTreeMap;

use crate::{
    interest::Reach,
    layer::{Gaze, Layer},
    steps::{Step, Who},
};

/// See the module.
#[derive(Clone, Debug, Default)]
pub(crate) struct Room {
    /// By how much farther than others they are seen: the bits of the metres, which are in order as none are negative.
    layers: BTreeMap<u32, Layer>,
    /// How many look.
    observers: usize,
    /// How far all of them see together, metres, and how much they saw at the last update.
    reaches: f32,
    seen: usize,
}

/// So many bodies that have come, gone or leapt are compared with every observer, and some more for each body that it sees;
/// if there are more, looking anew is less work.
const LEAPING: usize = 64;
const LEAPING_PER_SEEN: usize = 8;

impl Room {
    /// Nobody is here, and nobody looks.
    pub(crate) fn clear(&mut self) {
        self.layers.retain(|_, layer| !layer.is_empty());
        self.layers.values_mut().for_each(Layer::clear);
        (self.observers, self.reaches, self.seen) = (0, 0.0, 0);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.layers.values().all(Layer::is_empty)
    }

    /// A body that has that appeal has come, gone, stayed or moved.
    pub(crate) fn take(&mut self, who: Who, appeal: f32, step: Step) {
        self.layers.entry(appeal.to_bits()).or_default().take(who, step);
    }

    /// Somebody looks who sees so far, and saw so much.
    pub(crate) fn observe(&mut self, reach: Reach, seen: usize) {
        self.observers += 1;
        self.reaches += reach.hold(0.0);
        self.seen += seen;
    }

    /// Whether so many have come, gone or leapt that looking anew is less work.
    pub(crate) fn is_upset(&self) -> bool {
        let leaping: usize = self.layers.values().map(Layer::leaping).sum();
        leaping > LEAPING + LEAPING_PER_SEEN * self.seen / self.observers.max(1)
    }

    /// Gets ready to be looked at.
    pub(crate) fn sort(&mut self) {
        if self.observers > 0 {
            let side = self.side();
            self.layers.values_mut().for_each(|layer| layer.sort(side));
        }
    }

    /// The layers, with how an observer sees each.
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

    /// The side of a square, metres. The less there is to be seen, the larger: it is work to look into a square, and to
    /// look at what is in it. These were the best in `make bench`, far from sharply.
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
