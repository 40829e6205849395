//! Batches: the unit of appending, hashing and archiving. Rules L1 and L2 of `docs/protocol.md`.
//!
//! ```text
//! batch    = header events
//! header   = version:u8 = 1   flags:u8            bit 0: this batch opens its epoch
//!            realm:bytes      owner:u32           epoch:u64        number:u64
//!            first_event:u64  events:u32          events_length:u32
//!            tick:u64         wall:u64            schema:[32]      previous:[32]   events_root:[32]
//!            count:number     consumed*
//! consumed = at:number  from:address  to:address  n:number  trace:[16]
//! address  = kind:u8 (0 owner, 1 base, 2 cell, 3 client)  id:number
//! events   = (length:number event)*               `events` times, `events_length` bytes in all
//! ```
//! Integers are little-endian, the type `number` is LEB128, `bytes` is a number and as many bytes; batches and events
//! are numbered from 1. The batch's hash is the RFC 6962 leaf hash of the header; `events_root` is the RFC 6962 tree
//! hash over the events' bytes without their lengths.

use annals_ids::{
    Address, BatchNumber, CallNumber, EntityId, Epoch, EventNumber, Hash, OwnerId, SessionId, Tick, WallTime,
};
use annals_proof::{Frontier, leaf_hash};

use super::event::Event;
use crate::encoding::{Malformed, ORDINALS, Reader, put_bytes, put_number};

const VERSION: u8 = 1;

/// What is malformed about a batch of a release whose batches this one does not read.
const OTHER_VERSION: &str = "batch version (it is of a release that this one cannot read: run that one again, and upgrade one \
                             release at a time)";

const FLAG_OPENS: u8 = 1;

/// Maximum length of a realm's name (bytes): it is part of every subject and every header.
pub const MAX_REALM_BYTES: usize = 32;

/// Maximum size of a header without its consumed calls (bytes): the fields of the grammar above.
pub const HEADER_BYTES: usize = 2 + 10 + MAX_REALM_BYTES + 4 + 3 * 8 + 2 * 4 + 2 * 8 + 3 * 32 + 10;

/// Maximum size of a consumed call in a header (bytes): its place, two addresses, its number and its trace.
const CONSUMED_BYTES: usize = 5 + 2 * 11 + 10 + 16;

/// Identifies the request that led to an input, as W3C trace context does; all zeroes if it was not traced.
pub type Trace = [u8; 16];

/// A call or client message that was taken, and the position in the batch at which its effects begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Consumed {
    /// Number of the batch's events that precede it.
    pub at: u32,
    /// The sending end of the link.
    pub from: Address,
    /// The receiving end of the link.
    pub to: Address,
    /// Its number on the link.
    pub number: CallNumber,
    /// The request that it belongs to.
    pub trace: Trace,
}

/// The header of a batch: the leaf of the Merkle log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// The realm's name.
    pub realm: String,
    /// The owner of the log.
    pub owner: OwnerId,
    /// The epoch in which it was written.
    pub epoch: Epoch,
    /// Its place in the log.
    pub number: BatchNumber,
    /// The number of its first event; if it has none, the number of the next event.
    pub first_event: EventNumber,
    /// Number of its events.
    pub events: u32,
    /// Size of its events (bytes), lengths included.
    pub events_length: u32,
    /// The owner's tick when it was closed.
    pub tick: Tick,
    /// The writer's wall clock when it was closed.
    pub wall: WallTime,
    /// The fingerprint of the schema under which it was written.
    pub schema: Hash,
    /// The hash of the previous batch.
    pub previous: Hash,
    /// The tree hash over its events.
    pub events_root: Hash,
    /// Whether it is the `Open` of its epoch.
    pub opens: bool,
    /// The calls taken, in order.
    pub consumed: Vec<Consumed>,
}

/// A closed batch: its bytes are immutable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FrozenBatch {
    /// The owner of the log.
    pub owner: OwnerId,
    /// The epoch in which it was written.
    pub epoch: Epoch,
    /// Its place in the log.
    pub number: BatchNumber,
    /// The hash of the previous batch.
    pub previous: Hash,
    /// Its own hash.
    pub hash: Hash,
    /// Whether it is the `Open` of its epoch.
    pub opens: bool,
    /// The bytes to append.
    pub bytes: Vec<u8>,
}

impl FrozenBatch {
    /// Reads a batch as stored in a log. The events are not decoded.
    ///
    /// # Errors
    /// When the bytes do not begin with a header in its one encoding.
    pub fn read(bytes: Vec<u8>) -> Result<Self, Malformed> {
        let (header, hash) = Header::read(&bytes)?;
        Ok(Self::of(&header, hash, bytes))
    }

    fn of(header: &Header, hash: Hash, bytes: Vec<u8>) -> Self {
        Self {
            owner: header.owner,
            epoch: header.epoch,
            number: header.number,
            previous: header.previous,
            hash,
            opens: header.opens,
            bytes,
        }
    }
}

/// The header fields that all batches of one epoch share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Imprint {
    /// The realm's name, at most [`MAX_REALM_BYTES`].
    pub realm: String,
    /// The owner of the log.
    pub owner: OwnerId,
    pub epoch: Epoch,
    /// The schema's fingerprint.
    pub schema: Hash,
}

/// The end of a log: what the next batch must follow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tail {
    /// The last batch; 0 for an empty log.
    pub batch: BatchNumber,
    pub hash: Hash,
    /// The last event; 0 if there was none.
    pub event: EventNumber,
}

/// A batch under construction. Events are encoded and hashed as they arrive, so closing it is cheap.
#[derive(Clone, Debug, Default)]
pub struct Gathering {
    events: Vec<u8>,
    count: u32,
    tree: Frontier,
    consumed: Vec<Consumed>,
    scratch: Vec<u8>,
}

impl Gathering {
    /// Whether it is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0 && self.consumed.is_empty()
    }

    /// Maximum size once it is closed (bytes), apart from [`HEADER_BYTES`].
    #[must_use]
    pub fn length(&self) -> usize {
        self.events.len() + self.consumed.len() * CONSUMED_BYTES
    }

    /// Number of consumed calls: the cause for events that follow.
    #[must_use]
    pub fn consumed(&self) -> u32 {
        u32::try_from(self.consumed.len()).expect("a batch is closed long before it consumed 2^32 calls")
    }

    /// Adds an event.
    pub fn record(&mut self, event: &Event) {
        self.scratch.clear();
        event.write(&mut self.scratch);
        put_bytes(&mut self.events, &self.scratch);
        self.tree.push(leaf_hash(&self.scratch));
        self.count += 1;
    }

    /// Adds a call that was taken; the events that follow are its effects.
    pub fn consume(&mut self, from: Address, to: Address, number: CallNumber, trace: Trace) {
        self.consumed.push(Consumed {
            at: self.count,
            from,
            to,
            number,
            trace,
        });
    }

    /// Closes the batch after `tail` and begins the next one. `opens` marks the `Open` of an epoch.
    pub fn freeze(
        &mut self,
        imprint: &Imprint,
        tail: &mut Tail,
        tick: Tick,
        wall: WallTime,
        opens: bool,
    ) -> FrozenBatch {
        let gathered = std::mem::take(self);
        let header = Header {
            realm: imprint.realm.clone(),
            owner: imprint.owner,
            epoch: imprint.epoch,
            number: tail.batch.next(),
            first_event: tail.event.next(),
            events: gathered.count,
            events_length: u32::try_from(gathered.events.len()).expect("a batch is closed long before 4 GiB"),
            tick,
            wall,
            schema: imprint.schema,
            previous: tail.hash,
            events_root: gathered.tree.root(),
            opens,
            consumed: gathered.consumed,
        };
        let mut bytes = Vec::with_capacity(256 + gathered.events.len());
        header.write(&mut bytes);
        let hash = leaf_hash(&bytes);
        bytes.extend_from_slice(&gathered.events);
        *tail = Tail {
            batch: header.number,
            hash,
            event: EventNumber(tail.event.0 + u64::from(header.events)),
        };
        FrozenBatch::of(&header, hash, bytes)
    }
}

impl Header {
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        out.extend([VERSION, if self.opens { FLAG_OPENS } else { 0 }]);
        put_bytes(out, self.realm.as_bytes());
        out.extend(self.owner.0.to_le_bytes());
        for number in [self.epoch.0, self.number.0, self.first_event.0] {
            out.extend(number.to_le_bytes());
        }
        out.extend(self.events.to_le_bytes());
        out.extend(self.events_length.to_le_bytes());
        out.extend(self.tick.0.to_le_bytes());
        out.extend(self.wall.0.to_le_bytes());
        for hash in [self.schema, self.previous, self.events_root] {
            out.extend(hash.0);
        }
        put_number(out, self.consumed.len() as u64);
        for consumed in &self.consumed {
            put_number(out, u64::from(consumed.at));
            put_address(out, consumed.from);
            put_address(out, consumed.to);
            put_number(out, consumed.number.0);
            out.extend(consumed.trace);
        }
    }

    /// Reads the header of a batch and computes the batch's hash. The events are not decoded.
    ///
    /// # Errors
    /// When the bytes do not begin with a header in its one encoding.
    pub fn read(bytes: &[u8]) -> Result<(Header, Hash), Malformed> {
        Self::take(bytes, &mut Reader::new(bytes))
    }

    /// As [`Self::read`], with the bytes after the header: those of the events, if the batch is whole.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn split(bytes: &[u8]) -> Result<(Header, Hash, &[u8]), Malformed> {
        let mut reader = Reader::new(bytes);
        let (header, hash) = Self::take(bytes, &mut reader)?;
        Ok((header, hash, &bytes[reader.offset()..]))
    }

    /// Takes the header from the front of `bytes`; `reader` reads from their beginning.
    pub(crate) fn take(bytes: &[u8], reader: &mut Reader<'_>) -> Result<(Header, Hash), Malformed> {
        let header = Self::read_from(reader)?;
        Ok((header, leaf_hash(&bytes[..reader.offset()])))
    }

    /// The log's end after the batch with this header and hash.
    #[must_use]
    pub fn tail(&self, hash: Hash) -> Tail {
        Tail {
            batch: self.number,
            hash,
            event: EventNumber(self.first_event.0 + u64::from(self.events) - 1),
        }
    }

    fn read_from(reader: &mut Reader<'_>) -> Result<Header, Malformed> {
        let start = reader.clone();
        if reader.byte("batch version")? != VERSION {
            return Err(start.malformed(OTHER_VERSION));
        }
        let flags = reader.byte("batch flags")?;
        if flags & !FLAG_OPENS != 0 {
            return Err(start.malformed("batch flags"));
        }
        let realm = reader.bytes("realm")?;
        let realm = std::str::from_utf8(realm)
            .ok()
            .filter(|name| name.len() <= MAX_REALM_BYTES);
        let realm = realm.ok_or_else(|| reader.malformed("realm"))?.to_owned();
        let mut header = Header {
            realm,
            owner: OwnerId(u32::from_le_bytes(reader.array("owner")?)),
            epoch: Epoch(u64::from_le_bytes(reader.array("epoch")?)),
            number: BatchNumber(u64::from_le_bytes(reader.array("batch number")?)),
            first_event: EventNumber(u64::from_le_bytes(reader.array("first event")?)),
            events: u32::from_le_bytes(reader.array("event count")?),
            events_length: u32::from_le_bytes(reader.array("events length")?),
            tick: Tick(u64::from_le_bytes(reader.array("tick")?)),
            wall: WallTime(u64::from_le_bytes(reader.array("wall time")?)),
            schema: reader.hash("schema fingerprint")?,
            previous: reader.hash("previous hash")?,
            events_root: reader.hash("events root")?,
            opens: flags & FLAG_OPENS != 0,
            consumed: Vec::new(),
        };
        // Numbers begin at 1, and each has a successor.
        let last = header.first_event.0.checked_add(u64::from(header.events));
        let is_numbered = header.number.0 > 0 && header.number.0 < u64::MAX && header.first_event.0 > 0;
        if !is_numbered || last.is_none() {
            return Err(reader.malformed("batch or event number"));
        }
        if header.tick.0 >= ORDINALS {
            return Err(reader.malformed("tick"));
        }
        let count = reader.count(22, "consumed count")?;
        for _ in 0..count {
            header.consumed.push(Consumed {
                at: reader.narrow("consumed place")?,
                from: take_address(reader)?,
                to: take_address(reader)?,
                number: CallNumber(reader.ordinal("call number")?),
                trace: reader.array("trace")?,
            });
        }
        let ordered = header.consumed.is_sorted_by_key(|consumed| consumed.at);
        let placed = header.consumed.last().is_none_or(|last| last.at <= header.events);
        if ordered && placed {
            Ok(header)
        } else {
            Err(reader.malformed("consumed order"))
        }
    }
}

/// A decoded and verified batch.
#[derive(Clone, Debug, PartialEq)]
pub struct Batch {
    pub header: Header,
    pub hash: Hash,
    /// Its events, in order.
    pub events: Vec<Event>,
}

impl Batch {
    /// Reads a whole batch: decodes header and events, and verifies that the events match the header.
    ///
    /// # Errors
    /// When anything is not in its one encoding, or a hash or count does not match.
    pub fn read(bytes: &[u8]) -> Result<Batch, Malformed> {
        let mut events = Vec::new();
        let (header, hash) = Self::walk(bytes, |event| {
            events.push(Event::read(event)?);
            Ok(())
        })?;
        Ok(Batch { header, hash, events })
    }

    /// Reads the header of a whole batch, and verifies the bytes of its events against it: length, count and tree hash.
    /// The events are not decoded, which takes most of the time of [`Self::read`].
    ///
    /// # Errors
    /// When the header is not in its one encoding, or the events do not match it.
    pub fn check(bytes: &[u8]) -> Result<(Header, Hash), Malformed> {
        Self::walk(bytes, |_| Ok(()))
    }

    fn walk(bytes: &[u8], mut each: impl FnMut(&[u8]) -> Result<(), Malformed>) -> Result<(Header, Hash), Malformed> {
        let mut reader = Reader::new(bytes);
        let (header, hash) = Header::take(bytes, &mut reader)?;
        if reader.remaining() != header.events_length as usize {
            return Err(reader.malformed("events length"));
        }
        let mut tree = Frontier::new();
        for _ in 0..header.events {
            let event = reader.bytes("event")?;
            tree.push(leaf_hash(event));
            each(event)?;
        }
        reader.finish("end of batch")?;
        if tree.root() != header.events_root {
            return Err(reader.malformed("events root"));
        }
        Ok((header, hash))
    }

    /// The log's end after this batch.
    #[must_use]
    pub fn tail(&self) -> Tail {
        self.header.tail(self.hash)
    }

    /// Whether it can directly follow `tail`.
    #[must_use]
    pub fn follows(&self, tail: &Tail) -> bool {
        self.header.number == tail.batch.next()
            && self.header.previous == tail.hash
            && self.header.first_event == tail.event.next()
    }
}

/// Appends an address.
pub fn put_address(out: &mut Vec<u8>, address: Address) {
    let (kind, id) = match address {
        Address::Owner(owner) => (0, u64::from(owner.0)),
        Address::Base(entity) => (1, entity.0),
        Address::Cell(entity) => (2, entity.0),
        Address::Client(session) => (3, session.0),
    };
    out.push(kind);
    put_number(out, id);
}

/// Takes an address.
///
/// # Errors
/// When its kind is unknown or its id too large.
pub fn take_address(reader: &mut Reader<'_>) -> Result<Address, Malformed> {
    let wrong = reader.malformed("address");
    Ok(match reader.byte("address")? {
        0 => Address::Owner(OwnerId(reader.narrow("owner")?)),
        1 => Address::Base(EntityId(reader.number("entity")?)),
        2 => Address::Cell(EntityId(reader.number("entity")?)),
        3 => Address::Client(SessionId(reader.number("session")?)),
        _ => return Err(wrong),
    })
}
