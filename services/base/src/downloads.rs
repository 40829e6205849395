//! Sends downloads to clients: to each one at a time, in chunks, at a limited rate, from where the client has it.
//!
//! Which downloads there are is in the state ([`annals_node::download`]). What is here is lost with the process: content
//! is requested again, and the client says again what it has. Content is here only while a connected client is sent it.

use std::{
    collections::{BTreeMap, BTreeSet},
    num::NonZeroU32,
    sync::Arc,
    time::Duration,
};

use annals_event::{Body, CallError, Event, OwnerState, Subject};
use annals_ids::{CallNumber, EntityId, Hash, Part, SessionId};
use annals_node::{
    ConnectionId, Nowhere, Output, OwnerContext,
    download::{DOWNLOADS, open_downloads},
    time::Mono,
};
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

/// Answer to [`Output::Download`]: the content, or why there is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PreparedDownload {
    pub id: DownloadId,
    pub description: String,
    pub content: Result<DownloadContent, String>,
}

/// Time after which a request that was not answered is repeated: by the shell for content, and by the client for what it
/// has. Either may have been dropped.
const REPEATED_AFTER: Duration = Duration::from_secs(2);

/// Time between two looks for a client, while none of the entities with downloads has one that is connected.
const IDLE: Duration = Duration::from_secs(1);

/// The entities with downloads, and what is sent to the clients of some.
#[derive(Debug)]
pub(crate) struct Downloads {
    /// Bytes that one client is sent in one slot.
    slot_bytes: u64,
    /// The entities that may have downloads that have not ended.
    entities: BTreeSet<EntityId>,
    sending: BTreeMap<EntityId, Sending>,
    /// The next slot, while there is an entity.
    next_slot: Option<Mono>,
}

/// The first download of an entity, and the connection over which it is sent.
#[derive(Debug)]
struct Sending {
    id: DownloadId,
    connection: ConnectionId,
    /// When what it waits for was last requested, or last came.
    requested: Mono,
    stage: Stage,
}

#[derive(Debug)]
enum Stage {
    /// The shell provides the content.
    Preparing,
    /// The client has been named the download.
    Begun(Begun),
}

#[derive(Debug)]
struct Begun {
    description: String,
    content: DownloadContent,
    /// What the client has by its newest answer; `None` before the first one.
    acknowledged: Option<u64>,
    /// The bytes up to which chunks were sent.
    sent: u64,
}

impl Begun {
    fn size(&self) -> u64 {
        self.content.bytes.len() as u64
    }

    fn frame(&self, id: DownloadId) -> ToClient {
        ToClient::DownloadBegun(DownloadBegun {
            id,
            size: self.size(),
            hash: self.content.hash,
            description: self.description.clone(),
        })
    }

    /// The chunks of one slot.
    fn next_chunks(&mut self, id: DownloadId, slot_bytes: u64) -> Vec<DownloadChunk> {
        let Some(acknowledged) = self.acknowledged else {
            return Vec::new();
        };
        let window = acknowledged + SLOTS_UNACKNOWLEDGED * slot_bytes;
        let end = (self.sent + slot_bytes).min(window).min(self.size());
        let mut chunks = Vec::new();
        while self.sent < end {
            let upto = end.min(self.sent + MAX_CHUNK_BYTES as u64);
            let range = to_index(self.sent)..to_index(upto);
            chunks.push(DownloadChunk {
                id,
                offset: self.sent,
                content: self.content.bytes[range].to_vec(),
            });
            self.sent = upto;
        }
        chunks
    }
}

impl Default for Downloads {
    fn default() -> Self {
        Self {
            slot_bytes: slot_bytes(DOWNLOAD_BITS),
            entities: BTreeSet::new(),
            sending: BTreeMap::new(),
            next_slot: None,
        }
    }
}

fn slot_bytes(bits: NonZeroU32) -> u64 {
    u64::from(bits.get() / 8 / SLOTS_PER_SECOND).max(1)
}

impl Downloads {
    /// The downloads of an owner with this state.
    pub(crate) fn take_over(state: &OwnerState, now: Mono) -> Self {
        let mut downloads = Self::default();
        for (entity, image) in &state.entities {
            if open_downloads(image).next().is_some() {
                downloads.add(*entity, now);
            }
        }
        downloads
    }

    /// Sets the limit of the rate of downloads to one client, bits per second.
    pub(crate) fn limit(&mut self, bits: NonZeroU32) {
        self.slot_bytes = slot_bytes(bits);
    }

    /// An entity has a download, or has a client again.
    pub(crate) fn add(&mut self, entity: EntityId, now: Mono) {
        self.entities.insert(entity);
        self.next_slot = Some(self.next_slot.map_or(now, |slot| slot.min(now.after(SLOT))));
    }

    /// The client of an entity drops what it has of a download: it is named again.
    pub(crate) fn restart(&mut self, entity: EntityId) {
        self.sending.remove(&entity);
    }

    pub(crate) fn deadline(&self) -> Option<Mono> {
        self.next_slot
    }

    /// Takes an answer of a client. Returns whether it has everything.
    fn acknowledge(&mut self, now: Mono, connection: ConnectionId, progress: DownloadProgress) -> bool {
        let DownloadProgress { id, upto } = progress;
        let sending = self.sending.get_mut(&id.entity);
        let Some(sending) = sending.filter(|sending| (sending.id, sending.connection) == (id, connection)) else {
            return false;
        };
        let Stage::Begun(begun) = &mut sending.stage else {
            return false;
        };
        if upto > begun.size() {
            return false;
        }
        sending.requested = now;
        // It continues from where the client is: at first, if the client has dropped what it had, and if it names the
        // same place again. It does so when the download is named again, and may have dropped chunks before that.
        let restarts = begun.acknowledged.is_none_or(|before| upto <= before);
        if restarts || upto > begun.sent {
            begun.sent = upto;
        }
        begun.acknowledged = Some(upto);
        upto == begun.size()
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

    /// Takes the content of a download, if it is still the one that is to be sent.
    pub(crate) fn take_download(&mut self, cx: &mut OwnerContext, prepared: PreparedDownload) {
        let PreparedDownload {
            id,
            description,
            content,
        } = prepared;
        let sending = self.downloads.sending.get_mut(&id.entity);
        let Some(sending) = sending.filter(|sending| sending.id == id) else {
            return;
        };
        if !matches!(sending.stage, Stage::Preparing) || !cx.is_download_open(id) {
            return;
        }
        match content {
            Ok(content) => {
                let begun = Begun {
                    description,
                    content,
                    acknowledged: None,
                    sent: 0,
                };
                send(cx, sending.connection, &begun.frame(id));
                (sending.stage, sending.requested) = (Stage::Begun(begun), cx.now().mono);
            }
            Err(why) => {
                self.downloads.sending.remove(&id.entity);
                cx.end_download(&Nowhere, id, &Err(CallError::Internal(why)));
            }
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
        let (id, now) = (progress.id, cx.now().mono);
        let is_own = self
            .sessions
            .get(session)
            .is_some_and(|found| found.entity == id.entity);
        if is_own && self.downloads.acknowledge(now, connection, progress) {
            self.downloads.sending.remove(&id.entity);
            self.counters.downloaded += 1;
            cx.end_download(&Nowhere, id, &Ok(Vec::new()));
        }
    }

    /// Notes which entities have downloads.
    pub(crate) fn note_downloads(&mut self, now: Mono, recorded: &[Event]) {
        for event in recorded {
            if let (Subject::Entity(entity, Part::Base), Body::Awaits { to: DOWNLOADS, .. }) =
                (event.subject, &event.body)
            {
                self.downloads.add(entity, now);
            }
        }
    }

    /// Sends what is due in this slot.
    pub(crate) fn send_downloads(&mut self, cx: &mut OwnerContext) {
        let mut is_idle = true;
        for entity in self.downloads.entities.clone() {
            let first = cx.image(entity).and_then(|image| open_downloads(image).next());
            let session = self.session_of(cx, entity);
            let connection = session.and_then(|session| self.sessions.connection(session));
            let next = first.zip(connection);
            self.drop_sending(cx, entity, next);
            if first.is_none() {
                self.downloads.entities.remove(&entity);
            }
            if let Some((number, connection)) = next {
                is_idle = false;
                self.send_download(cx, DownloadId { entity, number }, connection);
            }
        }
        let pause = if is_idle { IDLE } else { SLOT };
        let has_some = !self.downloads.entities.is_empty();
        self.downloads.next_slot = has_some.then(|| cx.now().mono.after(pause));
    }

    /// Drops what is sent of an entity if another download, or none, is to be sent now, or over another connection. The
    /// client learns of a download that has ended otherwise: with its deadline or its entity, or cancelled.
    fn drop_sending(&mut self, cx: &mut OwnerContext, entity: EntityId, next: Option<(CallNumber, ConnectionId)>) {
        let Some(sending) = self.downloads.sending.get(&entity) else {
            return;
        };
        let (id, connection) = (sending.id, sending.connection);
        if next == Some((id.number, connection)) {
            return;
        }
        let has_begun = matches!(sending.stage, Stage::Begun(_));
        self.downloads.sending.remove(&entity);
        if has_begun && !cx.is_download_open(id) {
            // An output for a connection that has closed has no effect.
            send(cx, connection, &ToClient::DownloadEnded(id));
        }
    }

    /// Sends what is due of one download.
    fn send_download(&mut self, cx: &mut OwnerContext, id: DownloadId, connection: ConnectionId) {
        let (now, slot_bytes) = (cx.now().mono, self.downloads.slot_bytes);
        let Some(sending) = self.downloads.sending.get_mut(&id.entity) else {
            let sending = Sending {
                id,
                connection,
                requested: now,
                stage: Stage::Preparing,
            };
            self.downloads.sending.insert(id.entity, sending);
            return cx.prepare_download(id);
        };
        let is_overdue = now.since(sending.requested) >= REPEATED_AFTER;
        match &mut sending.stage {
            Stage::Preparing if is_overdue => {
                sending.requested = now;
                cx.prepare_download(id);
            }
            Stage::Preparing => {}
            Stage::Begun(begun) => {
                if is_overdue {
                    sending.requested = now;
                    let frame = begun.frame(id);
                    send(cx, connection, &frame);
                }
                for chunk in begun.next_chunks(id, slot_bytes) {
                    let mut bytes = Vec::new();
                    ToClient::DownloadChunk(chunk).write(&mut bytes);
                    cx.emit(Output::BackgroundFrame { connection, bytes });
                }
            }
        }
    }
}

fn send(cx: &mut OwnerContext, connection: ConnectionId, frame: &ToClient) {
    let mut bytes = Vec::new();
    frame.write(&mut bytes);
    cx.emit(Output::Frame { connection, bytes });
}
