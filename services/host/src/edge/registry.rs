//! The open connections, and their outgoing queues.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
};

use annals_node::ConnectionId;
use annals_wire::client::CloseReason;
use bytes::Bytes;
use tokio::{
    sync::{Notify, mpsc},
    time::Instant,
};

use super::{EdgeCommand, MAX_CONNECTIONS, handshakes::Host, held::Held, web_transport};
use crate::violations::{Violation, Violations};

/// Maximum frames queued for one client. At ten a second, how far a client may lag before it is closed.
pub const MAX_QUEUED_FRAMES: usize = 1_024;

/// Maximum bytes queued for one client, unless a single frame has more.
pub const MAX_QUEUED_BYTES: usize = 4 << 20;

/// Maximum frames that wait to be written in the background of one client.
const MAX_BACKGROUND_FRAMES: usize = 1_024;

/// An order to the writer of a connection.
#[derive(Debug)]
pub(super) enum WriteCommand {
    /// Write the bodies of these frames, and send these datagrams in the same packets.
    Write(Batch),
    /// Close, when everything before is written.
    Close(CloseReason),
}

/// Frames and datagrams for one connection that leave together.
#[derive(Debug, Default)]
pub(super) struct Batch {
    /// The bodies of frames, in order.
    pub(super) frames: Vec<Vec<u8>>,
    pub(super) datagrams: Vec<Vec<u8>>,
}

impl Batch {
    /// Bytes of its frames.
    pub(super) fn bytes(&self) -> usize {
        self.frames.iter().map(Vec::len).sum()
    }
}

/// The open connections of an edge.
#[derive(Debug)]
pub(super) struct Registry {
    outboxes: Mutex<BTreeMap<ConnectionId, Outbox>>,
    last_id: AtomicU64,
    pub(super) counts: Counts,
    pub(super) violations: Violations,
    /// Maximum concurrent connections; at most [`MAX_CONNECTIONS`].
    pub(super) limit: AtomicU64,
    held: Mutex<Held>,
    /// Signalled when datagrams begin to wait.
    holds: Notify,
}

impl Registry {
    /// A registry without connections, which counts violations there.
    pub(super) fn new(violations: Violations) -> Self {
        Self {
            outboxes: Mutex::default(),
            last_id: AtomicU64::default(),
            counts: Counts::default(),
            violations,
            limit: AtomicU64::new(MAX_CONNECTIONS),
            held: Mutex::default(),
            holds: Notify::new(),
        }
    }

    /// Counts a violation by the client of an open connection.
    pub(super) fn violated(&self, connection: ConnectionId, violation: Violation) {
        let host = self.outboxes().get(&connection).map(|outbox| outbox.host);
        if let Some(host) = host {
            self.violations.count(violation, host);
        }
    }
}

/// The sending end of one connection's queue.
#[derive(Clone, Debug)]
pub(super) struct Outbox {
    orders: mpsc::Sender<WriteCommand>,
    background: mpsc::Sender<Vec<u8>>,
    shared: Arc<Queue>,
    link: Link,
    host: Host,
}

/// A connection, for what does not wait in its queue.
#[derive(Clone, Debug)]
pub(super) enum Link {
    Quic(quinn::Connection),
    /// A connection with one session, whose datagrams have a header.
    WebTransport(quinn::Connection),
    /// The datagrams to write to a WebSocket.
    WebSocket(mpsc::Sender<Vec<u8>>),
}

impl Link {
    /// Sends a datagram, or drops it: one that cannot be sent now is not worth sending later.
    pub(super) fn send(&self, bytes: Vec<u8>) {
        match self {
            Self::Quic(connection) => drop(connection.send_datagram(Bytes::from(bytes))),
            Self::WebTransport(connection) => drop(connection.send_datagram(web_transport::datagram(&bytes))),
            Self::WebSocket(datagrams) => drop(datagrams.try_send(bytes)),
        }
    }
}

/// Shared state of both ends of a connection's queue.
#[derive(Debug, Default)]
struct Queue {
    bytes: AtomicUsize,
    /// Why the registry closed the connection, if it did.
    closed_for: OnceLock<CloseReason>,
    /// Signalled when it did.
    closed: Notify,
}

/// Counters of an edge since it started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EdgeCounters {
    /// Connections that are open or in a handshake, now.
    pub open: u64,
    /// Connections whose handshake was completed.
    pub accepted: u64,
    /// Warnings to clients that approach a rate limit.
    pub warned: u64,
    /// Datagrams from clients dropped because the process was busy.
    pub dropped_datagrams: u64,
    /// Bytes of frames and datagrams from clients.
    pub bytes_in: u64,
    /// Bytes of frames and datagrams to clients.
    pub bytes_out: u64,
}

/// The atomic counters behind [`EdgeCounters`].
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) open: AtomicU64,
    pub(super) accepted: AtomicU64,
    pub(super) warned: AtomicU64,
    pub(super) dropped_datagrams: AtomicU64,
    pub(super) bytes_in: AtomicU64,
    pub(super) bytes_out: AtomicU64,
}

/// Adds to a counter.
pub(super) fn count(counter: &AtomicU64, amount: u64) {
    counter.fetch_add(amount, Ordering::Relaxed);
}

impl Registry {
    /// Assigns a connection its id and its queue.
    pub(super) fn open(&self, host: Host, link: Link) -> (ConnectionId, Orders) {
        let id = ConnectionId(self.last_id.fetch_add(1, Ordering::Relaxed) + 1);
        let (orders, taken) = mpsc::channel(MAX_QUEUED_FRAMES);
        let (background, background_taken) = mpsc::channel(MAX_BACKGROUND_FRAMES);
        let shared = Arc::new(Queue::default());
        let outbox = Outbox {
            orders,
            background,
            shared: Arc::clone(&shared),
            link: link.clone(),
            host,
        };
        self.outboxes().insert(id, outbox);
        let orders = Orders {
            taken,
            background: Some(background_taken),
            shared,
            link,
        };
        (id, orders)
    }

    pub(super) fn remove(&self, id: ConnectionId) {
        self.outboxes().remove(&id);
        self.held().take(id);
    }

    /// Applies a core's commands, in their order for each connection. Those for one connection leave together. Commands
    /// for closed connections are ignored: the event of the close is on its way to the core.
    pub(super) fn apply(&self, commands: impl IntoIterator<Item = EdgeCommand>) {
        let mut batches: BTreeMap<ConnectionId, Batch> = BTreeMap::new();
        for command in commands {
            match command {
                EdgeCommand::Frame { connection, body } => batches.entry(connection).or_default().frames.push(body),
                EdgeCommand::Datagram { connection, bytes } => {
                    batches.entry(connection).or_default().datagrams.push(bytes);
                }
                EdgeCommand::BackgroundFrame { connection, body } => self.send_background(connection, body),
                EdgeCommand::Close { connection, reason } => {
                    if let Some(batch) = batches.remove(&connection) {
                        self.send(connection, batch);
                    }
                    self.close(connection, reason);
                }
            }
        }
        for (connection, batch) in batches {
            self.send(connection, batch);
        }
    }

    fn close(&self, connection: ConnectionId, reason: CloseReason) {
        let Some(outbox) = self.outboxes().remove(&connection) else {
            return;
        };
        let held = self.held().take(connection);
        held.into_iter().for_each(|bytes| outbox.link.send(bytes));
        if outbox.orders.try_send(WriteCommand::Close(reason)).is_err() {
            outbox.close(reason);
        }
    }

    fn send(&self, connection: ConnectionId, mut batch: Batch) {
        let Some(outbox) = self.outboxes().get(&connection).cloned() else {
            return;
        };
        let sent: usize = batch.datagrams.iter().map(Vec::len).sum();
        count(&self.counts.bytes_out, sent as u64);
        if batch.frames.is_empty() {
            if self.held().hold(Instant::now(), connection, batch.datagrams) {
                self.holds.notify_one();
            }
            return;
        }
        let mut datagrams = self.held().take(connection);
        datagrams.append(&mut batch.datagrams);
        // Behind frames that wait for the client, datagrams would be outdated.
        if outbox.shared.bytes.load(Ordering::Relaxed) > 0 {
            datagrams.into_iter().for_each(|bytes| outbox.link.send(bytes));
        } else {
            batch.datagrams = datagrams;
        }
        self.queue(connection, &outbox, batch);
    }

    /// Sends datagrams that have waited long enough for frames, for ever.
    pub(super) async fn send_overdue(&self) {
        loop {
            let deadline = self.held().next_deadline();
            match deadline {
                Some(deadline) => tokio::time::sleep_until(deadline).await,
                None => self.holds.notified().await,
            }
            let overdue = self.held().take_overdue(Instant::now());
            for (connection, datagrams) in overdue {
                let link = self.outboxes().get(&connection).map(|outbox| outbox.link.clone());
                if let Some(link) = link {
                    datagrams.into_iter().for_each(|bytes| link.send(bytes));
                }
            }
        }
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn send_background(&self, connection: ConnectionId, body: Vec<u8>) {
        let Some(outbox) = self.outboxes().get(&connection).cloned() else {
            return;
        };
        // The core keeps few unanswered frames under way, so a full queue is that of a client that does not read.
        if outbox.background.try_send(body).is_err() {
            self.remove(connection);
            outbox.close(CloseReason::TooSlow);
        }
    }

    /// Closes every connection when what is queued for it is written.
    pub(super) fn close_all(&self, reason: CloseReason) {
        let ids: Vec<ConnectionId> = self.outboxes().keys().copied().collect();
        for connection in ids {
            self.close(connection, reason);
        }
    }

    /// Closes every connection at once.
    pub(super) fn cut_all(&self, reason: CloseReason) {
        for outbox in std::mem::take(&mut *self.outboxes()).into_values() {
            outbox.close(reason);
        }
    }

    fn queue(&self, id: ConnectionId, outbox: &Outbox, batch: Batch) {
        let length = batch.bytes();
        let before = outbox.shared.bytes.fetch_add(length, Ordering::Relaxed);
        let fits = before == 0 || before + length <= MAX_QUEUED_BYTES;
        if fits && outbox.orders.try_send(WriteCommand::Write(batch)).is_ok() {
            return;
        }
        // The queue of a client that does not read would fill our memory; it may resume when it can.
        self.remove(id);
        outbox.close(CloseReason::TooSlow);
    }

    fn outboxes(&self) -> MutexGuard<'_, BTreeMap<ConnectionId, Outbox>> {
        // The map is consistent after any panic: each change of it is one call.
        self.outboxes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Outbox {
    fn close(&self, reason: CloseReason) {
        // The first reason counts.
        let _ = self.shared.closed_for.set(reason);
        self.shared.closed.notify_one();
        if let Link::Quic(connection) = &self.link {
            close(connection, reason);
        }
    }
}

/// The receiving end of one connection's queue.
#[derive(Debug)]
pub(super) struct Orders {
    taken: mpsc::Receiver<WriteCommand>,
    /// The bodies of frames that are written in the background, until they are taken.
    background: Option<mpsc::Receiver<Vec<u8>>>,
    shared: Arc<Queue>,
    pub(super) link: Link,
}

impl Orders {
    /// The next order; `None` when the connection was removed and the queue is empty.
    pub(super) async fn next(&mut self) -> Option<WriteCommand> {
        self.taken.recv().await
    }

    /// The frames that are written in the background.
    ///
    /// # Panics
    /// If they were taken before.
    pub(super) fn take_background(&mut self) -> mpsc::Receiver<Vec<u8>> {
        self.background.take().expect("invariant: a connection has one writer")
    }

    /// Records that frames of `bytes` bytes were written.
    pub(super) fn written(&self, bytes: usize) {
        self.shared.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Waits until the registry has closed the connection.
    pub(super) fn closed(&self) -> impl Future<Output = ()> + use<> {
        let shared = Arc::clone(&self.shared);
        async move { shared.closed.notified().await }
    }

    /// A function that returns, also after the queue is gone, why the registry closed the connection, if it did.
    pub(super) fn verdict(&self) -> impl Fn() -> Option<CloseReason> + use<> {
        let shared = Arc::clone(&self.shared);
        move || shared.closed_for.get().copied()
    }
}

/// Closes a connection at once. The close carries the reason.
pub(super) fn close(connection: &quinn::Connection, reason: CloseReason) {
    connection.close(reason.code().into(), reason.to_string().as_bytes());
}

impl Counts {
    pub(super) fn read(&self) -> EdgeCounters {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        EdgeCounters {
            open: get(&self.open),
            accepted: get(&self.accepted),
            warned: get(&self.warned),
            dropped_datagrams: get(&self.dropped_datagrams),
            bytes_in: get(&self.bytes_in),
            bytes_out: get(&self.bytes_out),
        }
    }
}
