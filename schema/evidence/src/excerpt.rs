//! One event of a batch, with the proof that it is in that batch, without the other events.
//!
//! ```text
//! excerpt = header:bytes place:number event:bytes count:number hash*
//! ```
//! `header` is the batch's, byte for byte as archived: its RFC 6962 leaf hash is the batch's hash, the leaf of the
//! archive's tree. `place` is the number of the batch's events before this one, `event` is its bytes as archived, and
//! the hashes are its RFC 6962 inclusion proof in the tree over the batch's events, from its sibling up; the header has
//! the root.

use annals_event::{Event, Header, Malformed, Reader, put_bytes, put_number};
use annals_ids::{EventNumber, Hash, LogPosition};
use annals_proof::{
    TreeHead, leaf_hash,
    tile::root_of,
    tree,
    verify::{PATH_HASHES, Unproven},
    verify_inclusion,
};
use thiserror::Error;

/// An event with its batch's header and inclusion proof. A value of this type is always consistent.
#[derive(Clone, Debug, PartialEq)]
pub struct Excerpt {
    header: Header,
    hash: Hash,
    place: u32,
    event: Event,
    header_bytes: Vec<u8>,
    event_bytes: Vec<u8>,
    path: Vec<Hash>,
}

/// Why bytes are not an excerpt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ExcerptError {
    /// They are malformed.
    #[error("not an excerpt of a batch")]
    Malformed(#[from] Malformed),
    /// There are bytes after the header.
    #[error("data follows the batch's header")]
    Header,
    /// The event is not in that batch.
    #[error("the event does not match the batch's header")]
    Event(#[from] Unproven),
}

/// Why no event can be taken from a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum TakeError {
    /// The bytes are not a batch.
    #[error("the batch cannot be read")]
    Malformed(#[from] Malformed),
    /// It has no such event.
    #[error("the batch has no event {0}")]
    Place(u32),
}

impl Excerpt {
    /// Takes the event of an archived batch that has `place` events before it.
    ///
    /// # Errors
    /// When the batch cannot be read, or has no such event.
    pub fn take(batch: &[u8], place: u32) -> Result<Self, TakeError> {
        let (header, hash) = Header::read(batch)?;
        let split = batch.len().checked_sub(header.events_length as usize);
        let (header_bytes, mut events) = match split {
            Some(split) => (&batch[..split], Reader::new(&batch[split..])),
            None => return Err(Reader::new(batch).malformed("events length").into()),
        };
        let mut event_bytes = None;
        let mut leaves = Vec::new();
        for number in 0..header.events {
            let bytes = events.bytes("event")?;
            leaves.push(leaf_hash(bytes));
            if number == place {
                event_bytes = Some(bytes.to_vec());
            }
        }
        let event_bytes = event_bytes.ok_or(TakeError::Place(place))?;
        let spans = tree::inclusion(place.into(), header.events.into()).map_err(|_| TakeError::Place(place))?;
        let subtree = |node: tree::Node| {
            let (level, first) = (node.level, node.index << node.level);
            let first = usize::try_from(first).expect("invariant: a batch has fewer than 2^32 events");
            Ok::<_, TakeError>(root_of(&leaves[first..first + (1 << level)]))
        };
        let path = spans.into_iter().map(|span| span.hash(subtree));
        Ok(Self {
            path: path.collect::<Result<_, _>>()?,
            event: Event::read(&event_bytes)?,
            header_bytes: header_bytes.to_vec(),
            event_bytes,
            header,
            hash,
            place,
        })
    }

    /// The header of its batch.
    #[must_use]
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The hash of its batch: the leaf of the archive's tree.
    #[must_use]
    pub fn hash(&self) -> Hash {
        self.hash
    }

    /// Its batch.
    #[must_use]
    pub fn at(&self) -> LogPosition {
        LogPosition {
            owner: self.header.owner,
            batch: self.header.number,
        }
    }

    /// Number of the batch's events before it.
    #[must_use]
    pub fn place(&self) -> u32 {
        self.place
    }

    /// Its number in the log.
    #[must_use]
    pub fn number(&self) -> EventNumber {
        EventNumber(self.header.first_event.0 + u64::from(self.place))
    }

    /// The event.
    #[must_use]
    pub fn event(&self) -> &Event {
        &self.event
    }

    /// Encodes it for a file.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        put_bytes(&mut out, &self.header_bytes);
        put_number(&mut out, self.place.into());
        put_bytes(&mut out, &self.event_bytes);
        put_number(&mut out, self.path.len() as u64);
        self.path.iter().for_each(|hash| out.extend(hash.0));
        out
    }

    /// Decodes an excerpt, and verifies that the event is in the batch of the header. That the batch is in an archive
    /// must be verified by the caller, with [`Self::hash`].
    ///
    /// # Errors
    /// When the bytes are not in their one encoding, or the event is not in that batch.
    pub fn decode(bytes: &[u8]) -> Result<Self, ExcerptError> {
        let mut reader = Reader::new(bytes);
        let header_bytes = reader.bytes("header of a batch")?.to_vec();
        let place = reader.narrow("place of an event")?;
        let event_bytes = reader.bytes("event")?.to_vec();
        let count = reader.count(32, "count of hashes")?;
        if count > PATH_HASHES {
            return Err(reader.malformed("count of hashes").into());
        }
        let path = (0..count).map(|_| reader.hash("hash"));
        let path: Vec<Hash> = path.collect::<Result<_, _>>()?;
        reader.finish("end of an excerpt")?;
        let (header, hash) = Header::read(&header_bytes)?;
        if leaf_hash(&header_bytes) != hash {
            return Err(ExcerptError::Header);
        }
        let head = TreeHead {
            size: header.events.into(),
            root: header.events_root,
        };
        verify_inclusion(leaf_hash(&event_bytes), u64::from(place), head, &path)?;
        let event = Event::read(&event_bytes)?;
        Ok(Self {
            header,
            hash,
            place,
            event,
            header_bytes,
            event_bytes,
            path,
        })
    }
}
