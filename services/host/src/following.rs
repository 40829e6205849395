//! The state of an owner from its archive and log (rule E1), read at once for a take-over, or followed while another
//! process holds the owner, so that a take-over reads only what is new (rule D9).

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use annals_db::{Migrations, recover};
use annals_event::{Batch, OwnerState};
use annals_ids::{Epoch, OwnerId, OwnerKind, Shard};
use annals_node::{
    chain::Hole,
    follow::{Followed, NotOnChain},
    time::Mono,
    writer::{Chain, Opening, Tip},
};
use annals_store::{
    Store, StoreError, Transaction,
    layout::owners::{self, Cursor, OpeningRecord},
};
use futures::StreamExt;
use thiserror::Error;
use tokio::sync::{Notify, oneshot, watch};
use tokio::task::JoinHandle;

use crate::{
    clock,
    log::{ReadError, Reading},
    nats::{StreamError, Subscription},
    process::Process,
    telemetry::Chain as Causes,
    waiting::Wait,
};

/// Interval at which a follower reads on. A take-over reads what was appended since.
const READ_EVERY: Duration = Duration::from_millis(50);

/// Maximum pause before a follower reads again after an error.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// Normal time until a follower is at the end of the log.
const FOLLOWED_WITHIN: Duration = Duration::from_secs(1);

/// For how long a follower keeps messages to the owner: longer than the owner can be without a holder while it is handed
/// over. The next holder handles them; those that the former one has handled too are repetitions.
const MESSAGES_KEPT: Duration = Duration::from_secs(1);

/// Maximum messages that a follower keeps: more are resent by their senders.
const MOST_MESSAGES: usize = 4_096;

/// Why the state of an owner could not be read now. It is retried.
#[derive(Debug, Error)]
pub(crate) enum TakeError {
    #[error("the owner's archived state could not be rebuilt")]
    Recovery(#[from] annals_db::RecoveryError),
    #[error("the owner's records could not be read from the store")]
    Store(#[from] StoreError),
    #[error("the owner's log could not be read")]
    Log(#[from] ReadError),
    #[error("the stream of the owner's shard cannot be used")]
    Stream(#[from] StreamError),
    #[error(transparent)]
    Hole(#[from] Hole),
    #[error("the owner's log does not continue its archive")]
    Impossible(#[from] annals_event::Impossible),
    #[error("the owner's log holds a malformed batch")]
    Malformed(#[from] annals_event::Malformed),
    #[error("cannot subscribe to the owner's subjects on the bus")]
    Listen(#[from] async_nats::SubscribeError),
    #[error("the bus does not answer")]
    Barrier(#[from] crate::nats::BarrierError),
    #[error(transparent)]
    Changed(#[from] NotOnChain),
}

/// The owner to read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OwnerLog {
    pub(crate) owner: OwnerId,
    pub(crate) kind: OwnerKind,
    /// The stream of its log.
    pub(crate) shard: Shard,
}

/// Messages to an owner, from before and after it was taken over.
pub(crate) struct KeptMessages {
    kept: VecDeque<(Mono, async_nats::Message)>,
    subscriber: Subscription,
}

impl KeptMessages {
    /// The next message; `None` once the connection has ended. Cancel-safe.
    pub(crate) async fn next(&mut self) -> Option<async_nats::Message> {
        match self.kept.pop_front() {
            Some((_, message)) => Some(message),
            None => self.subscriber.next().await,
        }
    }

    /// Keeps what arrives, for the time that messages are kept. Never returns; cancel-safe.
    async fn keep(&mut self) {
        while let Some(message) = self.subscriber.next().await {
            let now = clock::mono();
            let is_old = |(at, _): &(Mono, _)| now.since(*at) > MESSAGES_KEPT;
            while self.kept.front().is_some_and(is_old) || self.kept.len() >= MOST_MESSAGES {
                self.kept.pop_front();
            }
            self.kept.push_back((now, message));
        }
        std::future::pending::<()>().await;
    }
}

/// What was read of an owner so far.
#[derive(Default)]
pub(crate) struct Prepared {
    messages: Option<KeptMessages>,
    reading: Reading,
    followed: Option<Followed>,
}

impl Prepared {
    /// Forgets what was read of store and log, which may be outdated. Messages stay.
    pub(crate) fn read_anew(&mut self) {
        self.reading = Reading::default();
        self.followed = None;
    }

    /// Reads on to the end of the log (rule E1), and folds what is new. After an error, the next call begins from the
    /// store.
    pub(crate) async fn advance(&mut self, process: &Process, log: OwnerLog) -> Result<(), TakeError> {
        let (followed, _) = self.read_on(process, log).await?;
        self.followed = Some(followed);
        Ok(())
    }

    /// As [`Self::advance`]; returns the state at the end of the log, under the realm's definitions, and the chain that
    /// leads there. The next call begins from the store.
    pub(crate) async fn take(&mut self, process: &Process, log: OwnerLog) -> Result<(OwnerState, Chain), TakeError> {
        let (followed, chain) = self.read_on(process, log).await?;
        let mut state = followed.into_state();
        let schema = process.schema.fingerprint();
        if state.tail.batch.0 > 0 && state.schema != schema {
            // The `Open` that comes next uses the present definitions (rule M3).
            Migrations::read(&process.store).await?.convert(&mut state, schema)?;
            tracing::info!(owner = %state.owner, "converted the owner's state to the realm's new definitions");
        }
        Ok((state, chain))
    }

    async fn read_on(&mut self, process: &Process, log: OwnerLog) -> Result<(Followed, Chain), TakeError> {
        let OwnerLog { owner, kind, shard } = log;
        if self.messages.is_none() {
            let subscriber = process.bus.subscribe(process.subjects.owner(owner)).await?;
            process.bus.barrier().await?;
            let kept = VecDeque::new();
            self.messages = Some(KeptMessages { kept, subscriber });
        }
        let mut followed = match self.followed.take() {
            Some(followed) => followed,
            None => {
                let recovered = recover(&process.store, shard, owner, kind).await?;
                Followed::from_archive(tip_of(recovered.cursor), recovered.state)
            }
        };
        let (openings, cursor) = read_records(&process.store, owner).await?;
        let history = process.logs.of(shard).await?;
        history.read(owner, &mut self.reading).await?;
        let batches = self.reading.batches.iter().cloned();
        let mut chain = followed.chain(&openings, batches, self.reading.last)?;
        fold(process, &mut followed, &chain).await?;
        // An archive that is beyond what was read of the log is read at the next call.
        if followed.rebase(&mut chain, tip_of(cursor)) {
            self.reading.forget(cursor.batch);
        }
        Ok((followed, chain))
    }

    /// The messages to the owner since the first call of [`Self::advance`].
    pub(crate) fn into_messages(self) -> Option<KeptMessages> {
        let mut messages = self.messages?;
        let now = clock::mono();
        messages.kept.retain(|(at, _)| now.since(*at) <= MESSAGES_KEPT);
        Some(messages)
    }
}

fn tip_of(cursor: Cursor) -> Tip {
    Tip {
        number: cursor.batch,
        hash: cursor.hash,
    }
}

/// Folds the rest of a chain. If the realm was migrated since, the state is converted before the `Open` that changes the
/// definitions (rule M3).
async fn fold(process: &Process, followed: &mut Followed, chain: &Chain) -> Result<(), TakeError> {
    for frozen in followed.unfolded(chain)? {
        // A long log must not keep a process of one thread from its heartbeats.
        tokio::task::consume_budget().await;
        let batch = Batch::read(&frozen.bytes)?;
        let state = followed.state_mut();
        if state.goes_over(&batch.header)? {
            Migrations::read(&process.store).await?.fold(state, &batch)?;
        } else {
            state.fold(&batch)?;
        }
        followed.folded(frozen);
    }
    Ok(())
}

/// An owner's openings and cursor.
async fn read_records(store: &Store, owner: OwnerId) -> Result<(Vec<Opening>, Cursor), StoreError> {
    let read = |transaction: Transaction| async move {
        let cursor = transaction.get(&owners::cursor_key(owner)).await?;
        let openings = owners::read_openings(&transaction, owner, Epoch(0)).await?;
        Ok::<_, StoreError>((openings, Cursor::decode(cursor.as_deref())?))
    };
    let (openings, cursor) = store.read(read).await?;
    let opening = |OpeningRecord { epoch, number, hash }| Opening { epoch, number, hash };
    Ok((openings.into_iter().map(opening).collect(), cursor))
}

/// A task that follows an owner.
pub(crate) struct Following {
    stop: oneshot::Sender<()>,
    ready: watch::Receiver<bool>,
    task: JoinHandle<Prepared>,
}

impl Following {
    /// Begins to follow. `changed` is notified when the state is at the end of the log.
    pub(crate) fn start(process: Arc<Process>, log: OwnerLog, changed: Arc<Notify>) -> Self {
        let (stop, stopped) = oneshot::channel();
        let (says, ready) = watch::channel(false);
        let task = tokio::spawn(follow(process, log, (says, changed), stopped));
        Self { stop, ready, task }
    }

    /// Whether the owner could be taken over in a moment.
    pub(crate) fn is_ready(&self) -> bool {
        *self.ready.borrow()
    }

    /// Ends the task; returns what it has read.
    pub(crate) async fn finish(self) -> Prepared {
        // Without a receiver the task has ended.
        let _ = self.stop.send(());
        self.task.await.unwrap_or_default()
    }

    /// Ends the task.
    pub(crate) fn cancel(self) {
        self.task.abort();
    }
}

async fn follow(
    process: Arc<Process>,
    log: OwnerLog,
    (ready, changed): (watch::Sender<bool>, Arc<Notify>),
    mut stopped: oneshot::Receiver<()>,
) -> Prepared {
    let owner = log.owner;
    tracing::info!(%owner, "following the owner");
    let mut prepared = Prepared::default();
    let mut wait = Wait::new(
        format!("the log of owner {owner}, to follow it"),
        "this process cannot take it over from the one that drains; check that annals-db and the nats-server run",
    )
    .after(FOLLOWED_WITHIN);
    let mut pause = READ_EVERY;
    loop {
        match prepared.advance(&process, log).await {
            Ok(()) => {
                wait.ends();
                pause = READ_EVERY;
                if !ready.send_replace(true) {
                    changed.notify_one();
                }
            }
            Err(error) => {
                wait.lasts(Causes(&error));
                pause = (pause * 2).min(LONGEST_PAUSE);
                prepared.read_anew();
                ready.send_replace(false);
            }
        }
        let keeping = async {
            match &mut prepared.messages {
                Some(messages) => messages.keep().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = &mut stopped => return prepared,
            () = tokio::time::sleep(pause) => {}
            () = keeping => {}
        }
    }
}
