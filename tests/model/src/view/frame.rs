//! Frames, and the set of those in flight.

use super::Sight;

/// Content of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Shows {
    /// The whole state: `Enter`, or `Refresh`.
    Whole(Sight),
    /// The events after `from`.
    Update { from: u8, to: Sight },
    /// The entity leaves the view.
    Leave,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Frame {
    pub(crate) epoch: u8,
    pub(crate) view: u8,
    /// Its number in the view.
    pub(crate) number: u8,
    pub(crate) shows: Shows,
}

/// Maximum frames in flight; the witness waits while there are this many.
const MOST: usize = 6;

/// Frames that were written and not lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct Frames([Option<Frame>; MOST]);

impl Frames {
    pub(crate) fn len(&self) -> u8 {
        self.0.iter().flatten().count() as u8
    }

    pub(crate) fn is_full(&self) -> bool {
        self.0.iter().all(Option::is_some)
    }

    /// The frame at `index`; occupied slots come last.
    pub(crate) fn at(&self, index: u8) -> Frame {
        self.0
            .into_iter()
            .flatten()
            .nth(usize::from(index))
            .expect("invariant: indices are below len")
    }

    pub(crate) fn add(&mut self, frame: Frame) {
        if !self.0.contains(&Some(frame))
            && let Some(free) = self.0.iter_mut().find(|slot| slot.is_none())
        {
            *free = Some(frame);
            self.0.sort_unstable();
        }
    }

    pub(crate) fn remove(&mut self, index: u8) {
        let gone = self.at(index);
        self.retain(|frame| frame != gone);
    }

    pub(crate) fn retain(&mut self, wanted: impl Fn(Frame) -> bool) {
        for slot in &mut self.0 {
            *slot = slot.filter(|frame| wanted(*frame));
        }
        self.0.sort_unstable();
    }
}
