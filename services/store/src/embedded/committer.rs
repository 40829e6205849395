//! The only thread that writes.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio::sync::{OwnedSemaphorePermit, mpsc, oneshot};

use crate::embedded::files::Files;
use crate::embedded::published::Published;
use crate::sequencer::{Group, Rows, Sequencer};
use crate::watches::Watches;
use crate::{CommitRequest, Committed, StoreError, Version};

/// Maximum commits in a group: beyond it, waiting for the group costs its commits more than another flush would.
const GROUP_COMMITS: usize = 1_024;

/// Size at which a group takes no more commits, in bytes; the last commit may exceed it.
const GROUP_BYTES: usize = 4 * 1024 * 1024;

/// Interval between updates of `ACKNOWLEDGED`.
const NOTE_EVERY: Duration = Duration::from_secs(1);

/// A request to the committer.
pub(super) enum Work {
    /// Apply a transaction.
    Commit {
        request: CommitRequest,
        /// Its share of the queue's memory, released once it is answered.
        room: OwnedSemaphorePermit,
        /// If the caller continues before it is durable: notified when transactions can read it. Dropped if it is rejected.
        accepted: Option<oneshot::Sender<()>>,
        answer: oneshot::Sender<Result<Committed, StoreError>>,
    },
    /// Notify when a key has a value other than `seen`.
    Watch {
        key: Bytes,
        seen: Option<Bytes>,
        answer: Waiter,
    },
}

type Waiter = oneshot::Sender<Result<(), StoreError>>;

/// A commit whose group is not on disk yet.
struct Admitted {
    committed: Committed,
    _room: OwnedSemaphorePermit,
    accepted: Option<oneshot::Sender<()>>,
    answer: oneshot::Sender<Result<Committed, StoreError>>,
}

pub(super) struct Committer {
    files: Files,
    sequencer: Sequencer,
    published: Arc<Published>,
    watches: Watches<Waiter>,
    queue: mpsc::Receiver<Work>,
    opened: Instant,
    /// The last acknowledged version, and the time of the last update of `ACKNOWLEDGED`.
    acknowledged: Version,
    noted: Duration,
}

impl Committer {
    pub(super) fn new(
        files: Files,
        first: Version,
        published: Arc<Published>,
        queue: mpsc::Receiver<Work>,
        opened: Instant,
    ) -> Self {
        Self {
            files,
            sequencer: Sequencer::new(first),
            published,
            watches: Watches::default(),
            queue,
            opened,
            acknowledged: Version::default(),
            noted: Duration::ZERO,
        }
    }

    /// Runs until the store is dropped.
    pub(super) fn run(mut self) {
        while let Some(first) = self.queue.blocking_recv() {
            if let Some(poison) = self.published.poison() {
                refuse(first, poison);
                continue;
            }
            let mut group = Group::default();
            let mut admitted = Vec::new();
            let mut watches = Vec::new();
            let mut next = Some(first);
            while let Some(work) = next {
                match work {
                    Work::Commit {
                        request,
                        room,
                        accepted,
                        answer,
                    } => match self.sequencer.admit(&mut group, &request, &self.files) {
                        Ok(committed) => admitted.push(Admitted {
                            committed,
                            _room: room,
                            accepted,
                            answer,
                        }),
                        Err(error) => answer_with(answer, Err(error)),
                    },
                    // A watch compares with the rows that readers see, so it waits for the group before it.
                    Work::Watch { key, seen, answer } => watches.push((key, seen, answer)),
                }
                let full = group.commits >= GROUP_COMMITS || group.bytes >= GROUP_BYTES;
                next = if full { None } else { self.queue.try_recv().ok() };
            }
            if group.commits > 0 {
                self.settle(group, admitted);
            }
            for (key, seen, answer) in watches {
                self.watch(key, seen, answer);
            }
        }
        if self.acknowledged > Version::default() {
            self.files.note_acknowledged(self.acknowledged);
        }
    }

    /// Writes a group to disk, publishes it to readers, and answers its commits, in this order. Callers that asked for it
    /// may read the group before that.
    fn settle(&mut self, group: Group, mut admitted: Vec<Admitted>) {
        let version = group.version;
        let fired = self.fired_by(&group);
        let writes = Arc::new(group.writes);
        if admitted.iter().any(|commit| commit.accepted.is_some()) {
            self.published.announce(version, Arc::clone(&writes));
        }
        for accepted in admitted.iter_mut().filter_map(|commit| commit.accepted.take()) {
            answer_with(accepted, ());
        }
        if let Err(error) = self.files.write(&writes, version) {
            tracing::error!(%error, "a write of the store failed; the store stops");
            self.published.set_poison(error.to_string().into());
            for commit in admitted {
                answer_with(commit.answer, Err(StoreError::CommitUnknown));
            }
            // Dropping the watches notifies their waiters that they will not fire.
            self.watches = Watches::default();
            return;
        }
        let now = self.opened.elapsed();
        let oldest = self
            .published
            .publish(now, admitted.len(), version, self.files.snapshot());
        self.sequencer.forget_before(oldest);
        for commit in admitted {
            answer_with(commit.answer, Ok(commit.committed));
        }
        for waiter in fired {
            answer_with(waiter, Ok(()));
        }
        self.acknowledged = version;
        if now.saturating_sub(self.noted) >= NOTE_EVERY {
            self.noted = now;
            self.files.note_acknowledged(version);
        }
    }

    /// Removes and returns the watches that the group will fire.
    fn fired_by(&mut self, group: &Group) -> Vec<Waiter> {
        if self.watches.count() == 0 {
            return Vec::new();
        }
        group
            .writes
            .iter()
            .flat_map(|(key, value)| self.watches.changed(key, value.as_deref()))
            .collect()
    }

    fn watch(&mut self, key: Bytes, seen: Option<Bytes>, answer: Waiter) {
        if let Some(poison) = self.published.poison() {
            return answer_with(answer, Err(poison));
        }
        if self.watches.is_full() {
            self.watches.retain(|waiter| !waiter.is_closed());
        }
        if self.watches.is_full() {
            return answer_with(answer, Err(StoreError::TooManyWatches));
        }
        match self.files.get(&key) {
            Ok(current) => {
                if let Some(waiter) = self.watches.add(key, seen, current.as_deref(), answer) {
                    answer_with(waiter, Ok(()));
                }
            }
            Err(error) => answer_with(answer, Err(error)),
        }
    }
}

fn refuse(work: Work, poison: StoreError) {
    match work {
        Work::Commit { answer, .. } => answer_with(answer, Err(poison)),
        Work::Watch { answer, .. } => answer_with(answer, Err(poison)),
    }
}

/// Sends an answer; a dropped receiver is ignored.
fn answer_with<T>(answer: oneshot::Sender<T>, value: T) {
    let _ = answer.send(value);
}
