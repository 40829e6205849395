//! The bodies of one space that have the same appeal.

use std::ops::Range;

use crate::{
    squares::{Ring, Squares},
    steps::{NOWHERE, Step, Who, distance},
};

/// Bodies compared at once.
const LANES: usize = 4;

/// A body that moves farther than this in one update, metres, has leapt: at ten updates a second, 80 m/s. The ring
/// searched around all edges is as wide as the fastest movement, so bodies that move far are compared with every
/// observer instead.
pub(crate) const LEAP: f32 = 8.0;

/// Bodies with equal appeal, sorted by square for the search around edges.
#[derive(Clone, Debug, Default)]
pub(crate) struct Layer {
    /// All bodies of the layer.
    here: Vec<(Who, Step)>,
    /// Bodies that appeared, vanished or leapt.
    leaping: Vec<(Who, Step)>,
    /// Largest movement that is not a leap.
    stride: f32,
    squares: Squares,
    /// The present bodies, by square.
    sorted: Lanes,
    leapt: Lanes,
}

/// Distances at which an observer's area gains and loses the bodies of a layer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Gaze {
    pub(crate) step: Step,
    /// Bodies within this distance enter, metres.
    pub(crate) enter: f32,
    /// Bodies beyond this distance leave, metres.
    pub(crate) hold: f32,
}

impl Layer {
    pub(crate) fn clear(&mut self) {
        self.here.clear();
        self.leaping.clear();
        self.stride = 0.0;
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.here.is_empty()
    }

    /// Adds a body with its step.
    pub(crate) fn take(&mut self, who: Who, step: Step) {
        let length = step.length();
        if length <= LEAP {
            self.stride = self.stride.max(length);
            self.here.push((who, step));
            return;
        }
        self.leaping.push((who, step));
        if step.is != NOWHERE {
            self.here.push((who, step.arrived()));
        }
    }

    /// Number of bodies that appeared, vanished or leapt.
    pub(crate) fn leaping(&self) -> usize {
        self.leaping.len()
    }

    /// Sorts the bodies into squares of that side, metres, before a search.
    pub(crate) fn sort(&mut self, side: f32) {
        self.sorted.resize(self.here.len());
        let mut rest = self.here.iter();
        let places = self.here.iter().map(|(_, step)| step.is);
        self.squares.sort(side, places, |at| {
            if let Some((who, step)) = rest.next() {
                self.sorted.put(at, *who, *step);
            }
        });
        self.leapt.resize(self.leaping.len());
        for (at, (who, step)) in self.leaping.iter().enumerate() {
            self.leapt.put(at, *who, *step);
        }
    }

    /// Adds the bodies that may have entered or left: all that have, and some that have not, or twice.
    pub(crate) fn crossings(&self, gaze: &Gaze, found: &mut Vec<Who>) {
        let moved = self.stride + gaze.step.length();
        let ring = Ring {
            centre: gaze.step.is,
            inner: gaze.enter - moved,
            outer: gaze.hold + moved,
        };
        self.squares
            .touch(ring, |range| self.sorted.crossings(range, gaze, found));
        self.leapt.crossings(0..self.leaping.len(), gaze, found);
    }

    /// Visits all bodies up to `hold` away, with their distances; some more than once.
    pub(crate) fn near(&self, gaze: &Gaze, mut visit: impl FnMut(Who, f32)) {
        let ring = Ring {
            centre: gaze.step.is,
            inner: 0.0,
            outer: gaze.hold,
        };
        self.squares.touch(ring, |range| {
            for at in range {
                let (who, place) = self.sorted.get(at);
                let distance = distance(place, gaze.step.is);
                if distance <= gaze.hold {
                    visit(who, distance);
                }
            }
        });
    }
}

/// Bodies as flat arrays, so that several are compared at once. The entries after the last body are `NOWHERE`.
#[derive(Clone, Debug, Default)]
struct Lanes {
    who: Vec<Who>,
    was: [Vec<f32>; 2],
    is: [Vec<f32>; 2],
}

impl Lanes {
    fn resize(&mut self, bodies: usize) {
        self.who.resize(bodies, Who::default());
        for axis in self.was.iter_mut().chain(&mut self.is) {
            axis.resize(bodies, 0.0);
            axis.resize(bodies + LANES, f32::INFINITY);
            axis[bodies..].fill(f32::INFINITY);
        }
    }

    fn put(&mut self, at: usize, who: Who, step: Step) {
        self.who[at] = who;
        for axis in [0, 1] {
            self.was[axis][at] = step.was[axis];
            self.is[axis][at] = step.is[axis];
        }
    }

    fn get(&self, at: usize) -> (Who, [f32; 2]) {
        (self.who[at], [self.is[0][at], self.is[1][at]])
    }

    /// Adds the bodies in a range, and a few behind it, that have crossed an edge.
    #[inline]
    fn crossings(&self, range: Range<usize>, gaze: &Gaze, found: &mut Vec<Who>) {
        let padded = range.start..range.start + range.len().next_multiple_of(LANES);
        let [was_x, was_z] = self
            .was
            .each_ref()
            .map(|axis| axis[padded.clone()].as_chunks::<LANES>().0);
        let [is_x, is_z] = self
            .is
            .each_ref()
            .map(|axis| axis[padded.clone()].as_chunks::<LANES>().0);
        let chunks = was_x.iter().zip(was_z).zip(is_x.iter().zip(is_z));
        for (chunk, ((was_x, was_z), (is_x, is_z))) in chunks.enumerate() {
            let crossed: [bool; LANES] = std::array::from_fn(|lane| {
                let was = distance([was_x[lane], was_z[lane]], gaze.step.was);
                let is = distance([is_x[lane], is_z[lane]], gaze.step.is);
                ((was > gaze.enter) & (is <= gaze.enter)) | ((was <= gaze.hold) & (is > gaze.hold))
            });
            if crossed.iter().fold(false, |any, crossed| any | crossed) {
                let first = range.start + chunk * LANES;
                let crossed = (first..).zip(crossed).filter(|(_, crossed)| *crossed);
                found.extend(crossed.filter_map(|(at, _)| self.who.get(at)));
            }
        }
    }
}
