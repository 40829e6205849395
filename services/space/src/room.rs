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
    reach: f32,
    seen: usize,
}

impl Room {
    /// Nobody is here, and nobody looks.
    pub(crate) fn clear(&mut self) {
        self.layers.retain(|_, layer| !layer.is_empty());
        self.layers.values_mut().for_each(Layer::clear);
        (self.observers, self.reach, self.seen) = (0, 0.0, 0);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.layers.values().all(Layer::is_empty)
    }

    /// A body that has that appeal has come, gone, stayed or moved.
    pub(crate) fn take(&mut self, who: Who, appeal: f32, step: Step) {
        self.layers.entry(appeal.to_bits()).or_default().take(who, step);
    }

    /// Somebody looks who sees so far, and saw so much.
    pub(crate) fn watch(&mut self, reach: Reach, seen: usize) {
        self.observers += 1;
        self.reach += reach.hold(0.0);
        self.seen += seen;
    }

    /// Whether so many have come, gone or leapt that looking anew is less work.
    pub(crate) fn is_upset(&self) -> bool {
        self.layers.values().any(Layer::is_upset)
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
        let reach = self.reach / self.observers as f32;
        let squares = match self.seen / self.observers {
            0..10 => 0.5,
            10..1_000 => 4.0,
            _ => 8.0,
        };
        (reach / squares).max(1.0)
    }
}
