//! The gate: holds each output until the batch that it depends on is in the log (rules G1 to G4).
//!
//! Responsible for: when an output leaves, and in which order. Not responsible for: knowing what is acknowledged or
//! whether the log is fresh ([`Writer`](crate::writer::Writer) does), or where an output goes.

use std::collections::VecDeque;

use annals_ids::BatchNumber;

/// Outputs that one gate holds before its core must take no more input. It bounds a core's memory while the log is
/// unavailable: at 10 Hz and 500 witnesses per cell this is a minute of frames.
pub const WAITING_LIMIT: usize = 300_000;

/// Pending outputs, in the order in which they were made.
///
/// Driving it: [`push`](Self::push) and [`push_volatile`](Self::push_volatile) each output of the core; after each
/// change of the writer call [`release`](Self::release) until it returns `None`; after the writer stopped,
/// [`shut`](Self::shut).
#[derive(Debug)]
pub struct Gate<T> {
    /// Outputs that must arrive. Labels never decrease from front to back.
    labelled: VecDeque<Held<T>>,
    /// Outputs that are useful only now. Emptied by every release.
    volatile: VecDeque<Held<T>>,
    made: u64,
    shut: bool,
}

#[derive(Debug)]
struct Held<T> {
    /// Position among all outputs ever pushed: restores one order over both queues.
    made: u64,
    /// Newest batch that this output depends on.
    label: BatchNumber,
    item: T,
}

impl<T> Default for Gate<T> {
    fn default() -> Self {
        Self {
            labelled: VecDeque::new(),
            volatile: VecDeque::new(),
            made: 0,
            shut: false,
        }
    }
}

impl<T> Gate<T> {
    /// An empty gate.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Holds an output until batch `label` is acknowledged (G1). `label` is the newest batch, gathering or closed, that
    /// held an event or a consumed call when the output was made.
    pub fn push(&mut self, label: BatchNumber, item: T) {
        // An output never leaves before an earlier one, so a lower label behind a higher one counts as the higher.
        let label = self.labelled.back().map_or(label, |newest| newest.label.max(label));
        self.hold(label, item, |gate| &mut gate.labelled);
    }

    /// Queues an output that leaves at the next release or never (G2). It is dropped unless batch `shown_since`, the
    /// one with the `Created` or `Onloaded` of its entity, is acknowledged (G3).
    pub fn push_volatile(&mut self, shown_since: BatchNumber, item: T) {
        self.hold(shown_since, item, |gate| &mut gate.volatile);
    }

    fn hold(&mut self, label: BatchNumber, item: T, queue: fn(&mut Self) -> &mut VecDeque<Held<T>>) {
        if self.shut {
            return;
        }
        let made = self.made;
        self.made += 1;
        queue(self).push_back(Held { made, label, item });
    }

    /// Next output that may leave, given the newest acknowledged batch and whether the writer is fresh.
    ///
    /// Call it until it returns `None`: by then every volatile output has left or been dropped.
    pub fn release(&mut self, acknowledged: BatchNumber, fresh: bool) -> Option<T> {
        if !fresh {
            self.volatile.clear();
            return None;
        }
        while self.volatile.front().is_some_and(|held| held.label > acknowledged) {
            self.volatile.pop_front();
        }
        let labelled = self
            .labelled
            .front()
            .filter(|held| held.label <= acknowledged)
            .map(|held| held.made);
        let volatile = self.volatile.front().map(|held| held.made);
        let queue = match (labelled, volatile) {
            (Some(labelled), Some(volatile)) if volatile < labelled => &mut self.volatile,
            (None, Some(_)) => &mut self.volatile,
            (Some(_), _) => &mut self.labelled,
            (None, None) => return None,
        };
        queue.pop_front().map(|held| held.item)
    }

    /// Drops all outputs, present and future (G4): the log failed, and outputs still held must never leave.
    pub fn shut(&mut self) {
        self.shut = true;
        self.labelled.clear();
        self.volatile.clear();
    }

    /// Number of waiting outputs.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.labelled.len() + self.volatile.len()
    }

    /// Whether the core must take no more input until something has left.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.waiting() >= WAITING_LIMIT
    }
}
