//! The simulated history stream: the guarantees of JetStream, and the ways in which it is known to break them.

use std::collections::BTreeMap;

use annals_ids::OwnerId;
use annals_node::follow::Reading;

/// Whether a message is a batch of a log or a refill of a hole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lane {
    /// A batch.
    Log,
    /// A refill.
    Fill,
}

/// A message of the stream.
#[derive(Clone, Debug)]
pub struct Message {
    /// The owner of the log.
    pub owner: OwnerId,
    /// Batch or refill.
    pub lane: Lane,
    /// The batch.
    pub bytes: Vec<u8>,
}

/// Outcome of an append.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Appended {
    /// Appended at this sequence.
    At(u64),
    /// The log's last sequence is another.
    Rejected,
    /// Power failed: nothing was appended, and there is no answer.
    Torn,
}

/// The stream of one shard.
#[derive(Debug, Default)]
pub struct Stream {
    messages: BTreeMap<u64, Message>,
    last: u64,
    /// Whether the next record is truncated during its write.
    tearing: bool,
}

impl Stream {
    /// Appends to a log if its last sequence is `expect`.
    pub fn append(&mut self, owner: OwnerId, expect: u64, bytes: Vec<u8>) -> Appended {
        if self.last_of(owner) != expect {
            return Appended::Rejected;
        }
        if std::mem::take(&mut self.tearing) {
            return Appended::Torn;
        }
        Appended::At(self.push(Message {
            owner,
            lane: Lane::Log,
            bytes,
        }))
    }

    /// Truncates the next record during its write, so that it is gone when the log is back, without notice.
    pub fn tear(&mut self) {
        self.tearing = true;
    }

    /// Publishes a refill.
    pub fn fill(&mut self, owner: OwnerId, bytes: Vec<u8>) {
        self.push(Message {
            owner,
            lane: Lane::Fill,
            bytes,
        });
    }

    /// The last message of a log.
    pub fn last(&self, owner: OwnerId) -> Option<(u64, Vec<u8>)> {
        let mut log = self.log(owner);
        log.next_back()
            .map(|(sequence, message)| (*sequence, message.bytes.clone()))
    }

    /// Reads an owner's log from where `reading` ended, as the host's `History::read` does. `None` if the log has lost
    /// what was read; the reading begins anew then.
    pub fn read_on(&self, owner: OwnerId, reading: &mut Reading) -> Option<()> {
        let at = self.messages.get(&reading.last);
        let at = at.filter(|message| message.owner == owner && message.lane == Lane::Log);
        let is_other = at.is_some_and(|message| reading.is_replaced_by(reading.last, &message.bytes));
        if reading.last > 0 && (is_other || self.last_of(owner) < reading.last) {
            *reading = Reading::default();
            return None;
        }
        for (&sequence, message) in self.messages.iter().filter(|(_, message)| message.owner == owner) {
            match message.lane {
                Lane::Log if sequence > reading.last => reading.add_message(sequence, message.bytes.clone()),
                Lane::Fill if sequence > reading.last_fill() => reading.add_fill(sequence, message.bytes.clone()),
                Lane::Log | Lane::Fill => {}
            }
        }
        Some(())
    }

    /// All messages of an owner, and the last sequence of its log.
    pub fn read(&self, owner: OwnerId) -> (Vec<Vec<u8>>, u64) {
        let of_owner = self.messages.values().filter(|message| message.owner == owner);
        (
            of_owner.map(|message| message.bytes.clone()).collect(),
            self.last_of(owner),
        )
    }

    /// The message at `sequence` or the next one after it.
    pub fn next(&self, sequence: u64) -> Option<(u64, &Message)> {
        self.messages
            .range(sequence..)
            .next()
            .map(|(sequence, message)| (*sequence, message))
    }

    /// The last assigned sequence.
    pub fn end(&self) -> u64 {
        self.last
    }

    /// Drops the messages of a log before `keep`.
    pub fn trim(&mut self, owner: OwnerId, keep: u64) {
        self.messages
            .retain(|sequence, message| message.owner != owner || *sequence >= keep);
    }

    /// Loses an acknowledged message from the middle of a log: not the log's last. Returns the owner.
    pub fn lose_one(&mut self, choice: u64) -> Option<OwnerId> {
        let inner: Vec<u64> = self
            .messages
            .iter()
            .filter(|(sequence, message)| message.lane == Lane::Log && **sequence != self.last_of(message.owner))
            .map(|(sequence, _)| *sequence)
            .collect();
        let chosen = *inner.get(usize::try_from(choice % inner.len().max(1) as u64).ok()?)?;
        self.messages.remove(&chosen).map(|message| message.owner)
    }

    /// Loses the newest messages, as after a power cut without sync. Their sequences are assigned again.
    pub fn lose_tail(&mut self, count: usize) -> Vec<OwnerId> {
        let mut lost = Vec::new();
        for _ in 0..count {
            if let Some((_, message)) = self.messages.pop_last() {
                lost.push(message.owner);
            }
        }
        self.last = self.messages.last_key_value().map_or(0, |(sequence, _)| *sequence);
        lost
    }

    fn push(&mut self, message: Message) -> u64 {
        self.last += 1;
        self.messages.insert(self.last, message);
        self.last
    }

    fn last_of(&self, owner: OwnerId) -> u64 {
        self.log(owner).next_back().map_or(0, |(sequence, _)| *sequence)
    }

    fn log(&self, owner: OwnerId) -> impl DoubleEndedIterator<Item = (&u64, &Message)> {
        self.messages
            .iter()
            .filter(move |(_, message)| message.owner == owner && message.lane == Lane::Log)
    }
}
