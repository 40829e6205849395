//! Downloads: content that a base sends to a client beside play.
//!
//! The base names a download with [`DownloadBegun`], and sends no content before the client has answered with
//! [`DownloadProgress`], which states how much of that content it has: 0, or more if an earlier connection was lost.
//! Chunks follow from there, in order, and the client answers with its progress until it has everything.

use annals_event::{Malformed, Reader, put_number};
use annals_ids::{CallNumber, EntityId, Hash};

use super::fields::{put_entity, take_entity, take_text};

/// Maximum size of a download's content, bytes. Both sides keep it in memory.
pub const MAX_DOWNLOAD_BYTES: u64 = 64 << 20;

/// Maximum size of a download's description, bytes.
pub const MAX_DESCRIPTION_BYTES: usize = 255;

/// Maximum content of one chunk, bytes.
pub const MAX_CHUNK_BYTES: usize = 8 << 10;

/// Names a download: the entity whose base part sends it, and the call with which behaviour requested it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DownloadId {
    pub entity: EntityId,
    pub number: CallNumber,
}

/// A download begins or continues on this connection. Any earlier one of the client has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DownloadBegun {
    pub id: DownloadId,
    /// Size of the content, bytes: at most [`MAX_DOWNLOAD_BYTES`].
    pub size: u64,
    /// SHA-256 of the content.
    pub hash: Hash,
    /// What the game calls it: at most [`MAX_DESCRIPTION_BYTES`].
    pub description: String,
}

/// A part of a download's content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DownloadChunk {
    pub id: DownloadId,
    /// Position of its first byte in the content.
    pub offset: u64,
    /// From 1 to [`MAX_CHUNK_BYTES`] bytes.
    pub content: Vec<u8>,
}

/// What a client has of a download.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DownloadProgress {
    pub id: DownloadId,
    /// Number of bytes from the beginning.
    pub upto: u64,
}

impl DownloadId {
    pub(super) fn write(self, out: &mut Vec<u8>) {
        put_entity(out, self.entity);
        put_number(out, self.number.0);
    }

    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Self {
            entity: take_entity(reader)?,
            number: CallNumber(reader.ordinal("download")?),
        })
    }
}

impl DownloadBegun {
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        self.id.write(out);
        put_number(out, self.size);
        out.extend(self.hash.0);
        put_number(out, self.description.len() as u64);
        out.extend(self.description.as_bytes());
    }

    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Self {
            id: DownloadId::read(reader)?,
            size: take_size(reader, "size of a download")?,
            hash: reader.hash("hash of a download")?,
            description: take_text(reader, MAX_DESCRIPTION_BYTES, "description of a download")?,
        })
    }
}

impl DownloadChunk {
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        self.id.write(out);
        put_number(out, self.offset);
        put_number(out, self.content.len() as u64);
        out.extend(&self.content);
    }

    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let id = DownloadId::read(reader)?;
        let offset = take_size(reader, "offset in a download")?;
        let wrong = reader.malformed("content of a download");
        let content = reader.bytes("content of a download")?;
        let has_room = offset + content.len() as u64 <= MAX_DOWNLOAD_BYTES;
        if content.is_empty() || content.len() > MAX_CHUNK_BYTES || !has_room {
            return Err(wrong);
        }
        Ok(Self {
            id,
            offset,
            content: content.to_vec(),
        })
    }
}

impl DownloadProgress {
    pub(super) fn write(self, out: &mut Vec<u8>) {
        self.id.write(out);
        put_number(out, self.upto);
    }

    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Self {
            id: DownloadId::read(reader)?,
            upto: take_size(reader, "progress of a download")?,
        })
    }
}

fn take_size(reader: &mut Reader<'_>, what: &'static str) -> Result<u64, Malformed> {
    let wrong = reader.malformed(what);
    let size = reader.number(what)?;
    if size > MAX_DOWNLOAD_BYTES {
        return Err(wrong);
    }
    Ok(size)
}
