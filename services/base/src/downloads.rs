//! Sends downloads to clients: to each one at a time, in chunks, at a limited rate, from where the client has it.
//!
//! Which downloads there are is in the state ([`annals_node::download`]). What is here is lost with the process: the
//! content comes again, and the client says again what it has.

use std::{
    collections::{BTreeMap, BTreeSet},
    num::NonZeroU32,
    sync::Arc,
    time::Duration,
};

use annals_event::CallError;
use annals_ids::{CallNumber, EntityId, Hash, SessionId};
use annals_node::{ConnectionId, Nowhere, Output, OwnerContext, time::Mono};
use annals_wire::client::{DownloadBegun, DownloadChunk, DownloadId, DownloadProgress, MAX_CHUNK_BYTES, ToClient};

use crate::role::BaseRole;

/// Default limit of the rate of downloads to one client, bits per second.
pub const DOWNLOAD_BITS: NonZeroU32 = NonZeroU32::new(100_000).expect("invariant: it is not 0");

/// Time between two chunks to a client.
const SLOT: Duration = Duration::from_millis(100);

/// Slots in a second.
const SLOTS_PER_SECOND: u32 = 10;

/// Slots whose chunks may be unacknowledged: a client that is reached within half a second gets the whole rate, and one
/// that reads slowly does not fill the buffers on the way to it.
const SLOTS_UNACKNOWLEDGED: u64 = 5;

/// The content of a download.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DownloadContent {
    pub bytes: Arc<[u8]>,
    /// SHA-256 of the bytes.
    pub hash: Hash,
}

/// Answer to [`Output::Download`]: the content, or why it cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PreparedDownload {
    pub id: DownloadId,
    pub description: String,
    pub content: Result<DownloadContent, String>,
}

/// The downloads whose content is here, and the one that each client is sent.
#[derive(Debug)]
pub(crate) struct Downloads {
    /// Bytes that one client is sent in one slot.
    slot_bytes: u64,
    ready: BTreeMap<DownloadId, (String, DownloadContent)>,
    sending: BTreeMap<EntityId, Sending>,
    /// The next slot, while there is a download.
    next_slot: Option<Mono>,
}

/// A download that is sent over a connection.
#[derive(Debug)]
struct Sending {
    number: CallNumber,
    connection: ConnectionId,
    /// What the client has by its newest answer; `None` before the first one.
    acknowledged: Option<u64>,
    /// The bytes up to which chunks were sent.
    sent: u64,
}

impl Default for Downloads {
    fn default() -> Self {
        Self {
            slot_bytes: slot_bytes(DOWNLOAD_BITS),
            ready: BTreeMap::new(),
            sending: BTreeMap::new(),
            next_slot: None,
        }
    }
}

fn slot_bytes(bits: NonZeroU32) -> u64 {
    u64::from(bits.get() / 8 / SLOTS_PER_SECOND).max(1)
}

impl Downloads {
    /// Sets the limit of the rate of downloads to one client, bits per second.
    pub(crate) fn limit(&mut self, bits: NonZeroU32) {
        self.slot_bytes = slot_bytes(bits);
    }

    pub(crate) fn deadline(&self) -> Option<Mono> {
        self.next_slot
    }

    /// The first download of each entity.
    fn first_of_each(&self) -> Vec<DownloadId> {
        let mut before = None;
        let ids = self.ready.keys().copied();
        ids.filter(|id| before.replace(id.entity) != Some(id.entity)).collect()
    }

    /// Begins a download over a connection, if it is not sent over it already.
    fn begin(&mut self, id: DownloadId, connection: ConnectionId) -> Option<ToClient> {
        let sending = self.sending.get(&id.entity);
        if sending.is_some_and(|sending| (sending.number, sending.connection) == (id.number, connection)) {
            return None;
        }
        let (description, content) = self.ready.get(&id)?;
        let begun = DownloadBegun {
            id,
            size: content.bytes.len() as u64,
            hash: content.hash,
            description: description.clone(),
        };
        let sending = Sending {
            number: id.number,
            connection,
            acknowledged: None,
            sent: 0,
        };
        self.sending.insert(id.entity, sending);
        Some(ToClient::DownloadBegun(begun))
    }

    /// The chunks of one slot.
    fn next_chunks(&mut self, id: DownloadId) -> Vec<DownloadChunk> {
        let (Some(sending), Some((_, content))) = (self.sending.get_mut(&id.entity), self.ready.get(&id)) else {
            return Vec::new();
        };
        let Some(acknowledged) = sending.acknowledged else {
            return Vec::new();
        };
        let size = content.bytes.len() as u64;
        let window = acknowledged + SLOTS_UNACKNOWLEDGED * self.slot_bytes;
        let end = (sending.sent + self.slot_bytes).min(window).min(size);
        let mut chunks = Vec::new();
        while sending.sent < end {
            let upto = end.min(sending.sent + MAX_CHUNK_BYTES as u64);
            let range = to_index(sending.sent)..to_index(upto);
            chunks.push(DownloadChunk {
                id,
                offset: sending.sent,
                content: content.bytes[range].to_vec(),
            });
            sending.sent = upto;
        }
        chunks
    }

    /// Takes an answer of a client. Returns whether it has everything.
    fn acknowledge(&mut self, connection: ConnectionId, progress: DownloadProgress) -> bool {
        let DownloadProgress { id, upto } = progress;
        let (Some(sending), Some((_, content))) = (self.sending.get_mut(&id.entity), self.ready.get(&id)) else {
            return false;
        };
        let size = content.bytes.len() as u64;
        if (sending.number, sending.connection) != (id.number, connection) || upto > size {
            return false;
        }
        // At first, and if the client has dropped what it had, it continues from where the client is.
        let restarts = sending.acknowledged.is_none_or(|before| upto < before);
        if restarts || upto > sending.sent {
            sending.sent = upto;
        }
        sending.acknowledged = Some(upto);
        upto == size
    }

    fn remove(&mut self, id: DownloadId) {
        self.ready.remove(&id);
        if self
            .sending
            .get(&id.entity)
            .is_some_and(|sending| sending.number == id.number)
        {
            self.sending.remove(&id.entity);
        }
    }
}

/// A position in content that is in memory.
fn to_index(offset: u64) -> usize {
    usize::try_from(offset).expect("invariant: content is in memory")
}

impl BaseRole {
    /// Limits the rate of downloads to one client, bits per second; [`DOWNLOAD_BITS`] by default.
    #[must_use]
    pub fn with_download_bits(mut self, bits: NonZeroU32) -> Self {
        self.downloads.limit(bits);
        self
    }

    /// Takes the content of a download, which may come several times.
    pub(crate) fn take_download(&mut self, cx: &mut OwnerContext, prepared: PreparedDownload) {
        let PreparedDownload {
            id,
            description,
            content,
        } = prepared;
        if !cx.is_download_open(id) {
            return;
        }
        match content {
            Ok(content) => {
                self.downloads.ready.entry(id).or_insert((description, content));
                self.downloads.next_slot.get_or_insert(cx.now().mono);
            }
            Err(why) => cx.end_download(&Nowhere, id, &Err(CallError::Internal(why))),
        }
    }

    /// Takes an answer of a client.
    pub(crate) fn download_progressed(
        &mut self,
        cx: &mut OwnerContext,
        session: SessionId,
        progress: DownloadProgress,
    ) {
        let Some(connection) = self.sessions.connection(session) else {
            return;
        };
        let is_own = self
            .sessions
            .get(session)
            .is_some_and(|found| found.entity == progress.id.entity);
        if is_own && self.downloads.acknowledge(connection, progress) {
            self.downloads.remove(progress.id);
            self.counters.downloaded += 1;
            cx.end_download(&Nowhere, progress.id, &Ok(Vec::new()));
        }
    }

    /// Sends what is due in this slot.
    pub(crate) fn send_downloads(&mut self, cx: &mut OwnerContext) {
        self.drop_ended_downloads(cx);
        for id in self.downloads.first_of_each() {
            let session = self.session_of(cx, id.entity);
            let Some(connection) = session.and_then(|session| self.sessions.connection(session)) else {
                continue;
            };
            if let Some(begun) = self.downloads.begin(id, connection) {
                send(cx, connection, &begun);
            }
            for chunk in self.downloads.next_chunks(id) {
                let mut bytes = Vec::new();
                ToClient::DownloadChunk(chunk).write(&mut bytes);
                cx.emit(Output::BackgroundFrame { connection, bytes });
            }
        }
        let is_idle = self.downloads.ready.is_empty();
        self.downloads.next_slot = (!is_idle).then(|| cx.now().mono.after(SLOT));
    }

    /// Drops downloads that have ended otherwise: with their deadline or their entity, or cancelled.
    fn drop_ended_downloads(&mut self, cx: &mut OwnerContext) {
        let ids = self.downloads.ready.keys().copied();
        let ended: BTreeSet<DownloadId> = ids.filter(|id| !cx.is_download_open(*id)).collect();
        for id in ended {
            let sending = self.downloads.sending.get(&id.entity);
            let connection = sending
                .filter(|sending| sending.number == id.number)
                .map(|sending| sending.connection);
            self.downloads.remove(id);
            // An output for a connection that has closed has no effect.
            if let Some(connection) = connection {
                send(cx, connection, &ToClient::DownloadEnded(id));
            }
        }
    }
}

fn send(cx: &mut OwnerContext, connection: ConnectionId, frame: &ToClient) {
    let mut bytes = Vec::new();
    frame.write(&mut bytes);
    cx.emit(Output::Frame { connection, bytes });
}
