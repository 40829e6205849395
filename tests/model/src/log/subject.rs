//! The subject of one owner: the messages that JetStream holds, and the effect of its faults on them.

use super::batch::Batch;

/// More messages than any schedule within the bounds leaves on a subject.
pub(crate) const MOST_MESSAGES: usize = 6;

/// A stored message: stream sequence and batch.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub(crate) struct Message {
    pub(crate) sequence: u8,
    pub(crate) batch: Batch,
}

/// Messages in the order of their sequences.
///
/// No other owner writes to the stream of this model, so the sequences of a lost tail are reused at once: the worst
/// case of what occasionally happens on a shared stream.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Subject {
    messages: [Message; MOST_MESSAGES],
    length: u8,
    next: u8,
}

impl Subject {
    pub(crate) fn holding(batch: Batch) -> Self {
        let mut subject = Self {
            messages: [Message::default(); MOST_MESSAGES],
            length: 0,
            next: 1,
        };
        subject.append(batch);
        subject
    }

    pub(crate) fn messages(&self) -> &[Message] {
        &self.messages[..usize::from(self.length)]
    }

    pub(crate) fn has_room(&self) -> bool {
        self.messages().len() < MOST_MESSAGES
    }

    pub(crate) fn last(&self) -> Option<Message> {
        self.messages().last().copied()
    }

    /// The value that `Nats-Expected-Last-Subject-Sequence` is compared with: 0 for an empty subject.
    pub(crate) fn last_sequence(&self) -> u8 {
        self.last().map_or(0, |message| message.sequence)
    }

    pub(crate) fn has(&self, batch: Batch) -> bool {
        self.messages().iter().any(|message| message.batch == batch)
    }

    pub(crate) fn append(&mut self, batch: Batch) -> u8 {
        let sequence = self.next;
        self.messages[usize::from(self.length)] = Message { sequence, batch };
        self.length += 1;
        self.next += 1;
        sequence
    }

    /// Loses the newest `count` messages, as a server does that restarts without unsynced data.
    pub(crate) fn lose_tail(&mut self, count: u8) {
        let from = self.length - count;
        self.next = self.messages[usize::from(from)].sequence;
        self.keep(|index, _| index < from);
    }

    /// Loses the message at `index`; its sequence is not reused.
    pub(crate) fn lose_at(&mut self, lost: u8) {
        self.keep(|index, _| index != lost);
    }

    /// Purges messages with a sequence below `sequence`.
    pub(crate) fn purge_below(&mut self, sequence: u8) {
        self.keep(|_, message| message.sequence >= sequence);
    }

    fn keep(&mut self, wanted: impl Fn(u8, Message) -> bool) {
        let before = *self;
        self.messages = [Message::default(); MOST_MESSAGES];
        self.length = 0;
        for (index, message) in (0u8..).zip(before.messages()) {
            if wanted(index, *message) {
                self.messages[usize::from(self.length)] = *message;
                self.length += 1;
            }
        }
    }
}
