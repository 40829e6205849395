//! The bodies of one space that are seen equally far.

use std::ops::Range;

use crate::{
    squares::{Ring, Squares},
    steps::{NOWHERE, Step, Who, distance},
};

/// So many bodies are compared at once.
const LANES: usize = 4;

/// Who goes farther in one update, metres, has leapt: at ten updates a second, 80 m/s. The edges of all areas are looked at
/// as widely as the fastest moves, so that one who moves far is better compared with everybody.
pub(crate) const LEAP: f32 = 8.0;

/// See the module.
#[derive(Clone, Debug, Default)]
pub(crate) struct Layer {
    /// Everybody who is here.
    here: Vec<(Who, Step)>,
    /// Who has come, gone or leapt.
    leaping: Vec<(Who, Step)>,
    /// How far the one went that went farthest without leaping.
    stride: f32,
    squares: Squares,
    /// Those who are here, by square.
    sorted: Lanes,
    leapt: Lanes,
}

/// How an observer sees the bodies of a layer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Gaze {
    pub(crate) step: Step,
    /// Who comes so near enters, metres.
    pub(crate) enter: f32,
    /// Who is farther than this leaves.
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

    /// A body has come, gone, stayed or moved.
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

    /// How many have come, gone or leapt.
    pub(crate) fn leaping(&self) -> usize {
        self.leaping.len()
    }

    /// Gets ready to be looked at, in squares of that side, metres.
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

    /// Adds who may have come into view, or gone out of it: all who have, and some who have not, or twice.
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

    /// Names everybody who is as near as `hold` or nearer, and how near; some more than once.
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

/// Bodies as flat arrays, so that several are compared at once. What is beyond the last is nowhere.
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

    /// Adds whoever in a range, and a few behind it, has crossed an edge.
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
