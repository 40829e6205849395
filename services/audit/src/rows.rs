//! The layout of an index's rows. No other module builds its keys.
//!
//! | prefix | key after it | value |
//! |---|---|---|
//! | `00` | – | [`Reached`]: progress of taking in the archive of each shard |
//! | `01` | owner:u32 | [`LogEnd`]: the end of its log: shard:u16 batch:u64 hash event:u64 |
//! | `02` | owner:u32, batch:u64 | [`Where`]: the batch's position |
//! | `03` | entry:u64 | [`EntryPosition`]: its position in the ledger's log |
//! | `04` | serial:u64, entry:u64 | – : the entry moved that item |
//! | `05` | transfer, entry:u64 | – : the entry is about that transfer or trade |
//! | `06` | database id:u64, entry:u64 | – : the entry concerns the holdings of that stored entity |
//! | `07` | entity:u64, owner:u32, stretch:u64 | – : that [stretch](STRETCH) of the log has events of the entity |
//! | `08` | shard:u16, wall clock ms:u64 | leaf:u64 : the first batch closed then, later than all before it |
//! | `09` | session:u64, seat, place:u32 | owner:u32, batch:u64 : arrival of the session's client |
//! | `0a` | database id:u64, seat, place:u32 | owner:u32, batch:u64 : begin of a life, or arrival of a client |
//! | `0b` | entity:u64, seat, place:u32 | owner:u32, batch:u64 : end of the entity's base part |
//! | `0c` | owner:u32 | – : the log has events that are never deleted: of base parts, or of the ledger |
//! | `0d` | entry:u64 | transfer : the entry acted on that trade |
//! | `0e` | database id:u64, seat, place:u32 | owner:u32, batch:u64 : arrival of a client of that stored entity |
//!
//! A seat is a [`Seat`], moment:u64, shard:u16 and leaf:u64. A place is the number of events before the event in its
//! batch. A transfer is the entity id:u64 and the number:u64 of its asker. Numbers are big-endian, so that keys sort.

use std::collections::BTreeMap;

use annals_event::Tail;
use annals_evidence::{About, ShardLeaf};
use annals_ids::{
    BatchNumber, DatabaseId, EntityId, EntryNumber, EventNumber, Hash, LeafIndex, LogPosition, OwnerId, SessionId,
    Shard, TradeId, TransferId, TransferNumber, WallTime,
};
use annals_store::{KeyRange, StoreError, key_after};

/// Form of these rows. An index of another form is rebuilt.
pub(crate) const FORM: u8 = 6;

/// Number of batches of a log whose entities are recorded together: a busy entity has events in most batches of its
/// owner, and a row for each would make the index as large as the archive.
pub(crate) const STRETCH: u64 = 64;

/// How far the archives of a realm are taken in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Reached {
    /// The newest entry of the ledger.
    pub(crate) entry: EntryNumber,
    pub(crate) shards: BTreeMap<Shard, ShardReached>,
}

/// How far the archive of a shard is taken in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ShardReached {
    /// The hash of its first batch.
    pub(crate) first: Hash,
    /// The latest wall time of its batches.
    pub(crate) latest: WallTime,
    /// Number of leaves.
    pub(crate) leaves: u64,
    /// The tree over them: the roots of its complete subtrees, largest first.
    pub(crate) peaks: Vec<Hash>,
}

/// Position of a batch in the order of an index: that of the archive within a shard, and by the clocks of the writers
/// between shards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Seat {
    /// The latest wall time of a batch of its shard up to there.
    pub(crate) moment: WallTime,
    pub(crate) leaf: ShardLeaf,
}

/// Position of a batch in the archive, and its verified hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Where {
    pub(crate) seat: Seat,
    pub(crate) hash: Hash,
}

/// The shard of a log, and the last batch taken in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LogEnd {
    pub(crate) shard: Shard,
    pub(crate) tail: Tail,
}

/// Position of an entry in the log of the ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EntryPosition {
    pub(crate) owner: OwnerId,
    pub(crate) batch: BatchNumber,
    /// The event's place in the batch.
    pub(crate) place: u32,
}

pub(crate) fn reached_key() -> Vec<u8> {
    vec![0x00]
}

pub(crate) fn tail_key(owner: OwnerId) -> Vec<u8> {
    key(0x01, &[&owner.0.to_be_bytes()])
}

pub(crate) fn tails() -> KeyRange {
    KeyRange::prefix(&[0x01])
}

pub(crate) fn owner_of(key: &[u8]) -> Result<OwnerId, StoreError> {
    let mut fields = Fields(key.get(1..).unwrap_or_default());
    let owner = OwnerId(fields.u32()?);
    fields.finish()?;
    Ok(owner)
}

pub(crate) fn batch_key(owner: OwnerId, batch: BatchNumber) -> Vec<u8> {
    key(0x02, &[&owner.0.to_be_bytes(), &batch.0.to_be_bytes()])
}

pub(crate) fn entry_key(entry: EntryNumber) -> Vec<u8> {
    key(0x03, &[&entry.0.to_be_bytes()])
}

/// All rows of an index.
pub(crate) fn all() -> KeyRange {
    KeyRange::new(vec![0x00], vec![0x0f])
}

pub(crate) fn stretch_key(entity: EntityId, owner: OwnerId, stretch: u64) -> Vec<u8> {
    key(
        0x07,
        &[&entity.0.to_be_bytes(), &owner.0.to_be_bytes(), &stretch.to_be_bytes()],
    )
}

/// The stretches of all logs in which an entity has events.
pub(crate) fn stretches(entity: EntityId) -> KeyRange {
    KeyRange::prefix(&key(0x07, &[&entity.0.to_be_bytes()]))
}

/// The owner and the stretch in a stretch's key.
pub(crate) fn stretch_of(key: &[u8]) -> Result<(OwnerId, u64), StoreError> {
    let mut fields = Fields(key.get(9..).unwrap_or_default());
    let place = (OwnerId(fields.u32()?), fields.u64()?);
    fields.finish()?;
    Ok(place)
}

pub(crate) fn moment_key(shard: Shard, wall: WallTime) -> Vec<u8> {
    key(0x08, &[&shard.0.to_be_bytes(), &wall.0.to_be_bytes()])
}

/// Rows of a shard's batches closed at a moment or after it.
pub(crate) fn moments_from(shard: Shard, wall: WallTime) -> KeyRange {
    let all = KeyRange::prefix(&key(0x08, &[&shard.0.to_be_bytes()]));
    KeyRange::new(moment_key(shard, wall), all.end)
}

/// Rows of a shard's batches closed after a moment; empty after the last possible one.
pub(crate) fn moments_after(shard: Shard, wall: WallTime) -> KeyRange {
    let from = moments_from(shard, wall);
    KeyRange::new(key_after(&from.begin), from.end)
}

/// Key of an arrival of a session's client.
pub(crate) fn session_key(session: SessionId, seat: Seat, place: u32) -> Vec<u8> {
    seated(0x09, session.0, seat, place)
}

/// The arrivals of a session's client, in the order of the index.
pub(crate) fn session(session: SessionId) -> KeyRange {
    KeyRange::prefix(&key(0x09, &[&session.0.to_be_bytes()]))
}

/// Key of the begin of a stored entity's life, or of an arrival of its client.
pub(crate) fn life_key(database: DatabaseId, seat: Seat, place: u32) -> Vec<u8> {
    seated(0x0a, database.0, seat, place)
}

/// The begins of a stored entity's lives and the arrivals of its clients, in the order of the index.
pub(crate) fn lives(database: DatabaseId) -> KeyRange {
    KeyRange::prefix(&key(0x0a, &[&database.0.to_be_bytes()]))
}

/// Key of the end of an entity's base part.
pub(crate) fn end_key(entity: EntityId, seat: Seat, place: u32) -> Vec<u8> {
    seated(0x0b, entity.0, seat, place)
}

/// The end of an entity's base part, at most one row.
pub(crate) fn ends(entity: EntityId) -> KeyRange {
    KeyRange::prefix(&key(0x0b, &[&entity.0.to_be_bytes()]))
}

/// Key that marks an owner's log as one with events that are never deleted.
pub(crate) fn lasting_key(owner: OwnerId) -> Vec<u8> {
    key(0x0c, &[&owner.0.to_be_bytes()])
}

/// All logs with events that are never deleted.
pub(crate) fn lasting() -> KeyRange {
    KeyRange::prefix(&[0x0c])
}

/// Key of an arrival of a stored entity's client.
pub(crate) fn admission_key(database: DatabaseId, seat: Seat, place: u32) -> Vec<u8> {
    seated(0x0e, database.0, seat, place)
}

/// The arrivals of a stored entity's clients, in the order of the index.
pub(crate) fn admissions(database: DatabaseId) -> KeyRange {
    KeyRange::prefix(&key(0x0e, &[&database.0.to_be_bytes()]))
}

/// Key that marks an entry as one that acted on a trade.
pub(crate) fn traded_key(entry: EntryNumber) -> Vec<u8> {
    key(0x0d, &[&entry.0.to_be_bytes()])
}

/// All entries that acted on a trade, in order.
pub(crate) fn traded() -> KeyRange {
    KeyRange::prefix(&[0x0d])
}

pub(crate) fn encode_trade(TradeId(id): TradeId) -> Vec<u8> {
    [&id.asker.0.to_be_bytes()[..], &id.number.0.to_be_bytes()].concat()
}

pub(crate) fn decode_trade(value: &[u8]) -> Result<TradeId, StoreError> {
    let mut fields = Fields(value);
    let id = TransferId {
        asker: EntityId(fields.u64()?),
        number: TransferNumber(fields.u64()?),
    };
    fields.finish()?;
    Ok(TradeId(id))
}

/// The event's place in its batch, from a key of a session, of a life or of an end.
pub(crate) fn place_of(key: &[u8]) -> Result<u32, StoreError> {
    let mut fields = Fields(key.get(27..).unwrap_or_default());
    let place = fields.u32()?;
    fields.finish()?;
    Ok(place)
}

pub(crate) fn encode_position(at: LogPosition) -> Vec<u8> {
    [&at.owner.0.to_be_bytes()[..], &at.batch.0.to_be_bytes()].concat()
}

pub(crate) fn decode_position(value: &[u8]) -> Result<LogPosition, StoreError> {
    let mut fields = Fields(value);
    let at = LogPosition {
        owner: OwnerId(fields.u32()?),
        batch: BatchNumber(fields.u64()?),
    };
    fields.finish()?;
    Ok(at)
}

pub(crate) fn encode_leaf(leaf: LeafIndex) -> Vec<u8> {
    leaf.0.to_be_bytes().to_vec()
}

pub(crate) fn decode_leaf(value: &[u8]) -> Result<LeafIndex, StoreError> {
    let mut fields = Fields(value);
    let leaf = LeafIndex(fields.u64()?);
    fields.finish()?;
    Ok(leaf)
}

fn prefix(about: About) -> Vec<u8> {
    match about {
        About::Item(serial) => key(0x04, &[&serial.0.to_be_bytes()]),
        About::Transfer(id) => key(0x05, &[&id.asker.0.to_be_bytes(), &id.number.0.to_be_bytes()]),
        About::Holder(holder) => key(0x06, &[&holder.0.to_be_bytes()]),
    }
}

/// Key that marks an entry as being about a subject.
pub(crate) fn about_key(about: About, entry: EntryNumber) -> Vec<u8> {
    [prefix(about), entry.0.to_be_bytes().to_vec()].concat()
}

/// The keys of all entries about a subject.
pub(crate) fn entries(about: About) -> KeyRange {
    KeyRange::prefix(&prefix(about))
}

/// The entry in a key of a subject.
pub(crate) fn entry_of(about: About, key: &[u8]) -> Result<EntryNumber, StoreError> {
    let mut fields = Fields(key.get(prefix(about).len()..).unwrap_or_default());
    let entry = EntryNumber(fields.u64()?);
    fields.finish()?;
    Ok(entry)
}

/// The item of the archive that a row refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Concerned {
    /// The end of a log.
    Log(OwnerId),
    Batch(LogPosition),
    Entry(EntryNumber),
    /// An entity's events in a stretch of a log.
    Stretch(EntityId, OwnerId, u64),
    Leaf(ShardLeaf),
    /// The event of a batch, by the number of events before it.
    Event(LogPosition, u32),
}

/// The item of the archive that a row refers to; `None` if the row is about the index itself, or cannot be read.
pub(crate) fn concerned(key: &[u8], value: &[u8]) -> Option<Concerned> {
    let (&prefix, rest) = key.split_first()?;
    let mut fields = Fields(rest);
    let about = match prefix {
        0x01 | 0x0c => Concerned::Log(OwnerId(fields.u32().ok()?)),
        0x02 => {
            let (owner, batch) = (OwnerId(fields.u32().ok()?), BatchNumber(fields.u64().ok()?));
            Concerned::Batch(LogPosition { owner, batch })
        }
        0x03 => Concerned::Entry(EntryNumber(fields.u64().ok()?)),
        // Each of these keys ends with the entry's number.
        0x04..=0x06 | 0x0d => Concerned::Entry(EntryNumber(u64::from_be_bytes(*key.last_chunk()?))),
        0x07 => {
            let entity = EntityId(fields.u64().ok()?);
            Concerned::Stretch(entity, OwnerId(fields.u32().ok()?), fields.u64().ok()?)
        }
        0x08 => Concerned::Leaf(ShardLeaf {
            shard: Shard(fields.u16().ok()?),
            leaf: decode_leaf(value).ok()?,
        }),
        0x09..=0x0b | 0x0e => Concerned::Event(decode_position(value).ok()?, u32::from_be_bytes(*key.last_chunk()?)),
        _ => return None,
    };
    Some(about)
}

impl Reached {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut value = vec![FORM];
        value.extend(self.entry.0.to_be_bytes());
        for (shard, reached) in &self.shards {
            value.extend(shard.0.to_be_bytes());
            value.extend(reached.first.0);
            value.extend(reached.latest.0.to_be_bytes());
            value.extend(reached.leaves.to_be_bytes());
            reached.peaks.iter().for_each(|peak| value.extend(peak.0));
        }
        value
    }

    /// `None` if the index is of another form.
    pub(crate) fn decode(value: &[u8]) -> Result<Option<Self>, StoreError> {
        let mut fields = Fields(value);
        if fields.array::<1>()? != [FORM] {
            return Ok(None);
        }
        let entry = EntryNumber(fields.u64()?);
        let mut shards = BTreeMap::new();
        while !fields.0.is_empty() {
            let shard = Shard(fields.u16()?);
            let first = fields.hash()?;
            let (latest, leaves) = (WallTime(fields.u64()?), fields.u64()?);
            let peaks = (0..leaves.count_ones()).map(|_| fields.hash());
            let peaks = peaks.collect::<Result<_, _>>()?;
            let reached = ShardReached {
                first,
                latest,
                leaves,
                peaks,
            };
            if shards.insert(shard, reached).is_some() {
                return Err(damaged());
            }
        }
        Ok(Some(Self { entry, shards }))
    }
}

impl Where {
    pub(crate) fn encode(&self) -> Vec<u8> {
        [&self.seat.encode()[..], &self.hash.0].concat()
    }

    pub(crate) fn decode(value: &[u8]) -> Result<Self, StoreError> {
        let mut fields = Fields(value);
        let seat = Seat {
            moment: WallTime(fields.u64()?),
            leaf: ShardLeaf {
                shard: Shard(fields.u16()?),
                leaf: LeafIndex(fields.u64()?),
            },
        };
        let hash = fields.hash()?;
        fields.finish()?;
        Ok(Self { seat, hash })
    }
}

impl Seat {
    fn encode(&self) -> Vec<u8> {
        let ShardLeaf { shard, leaf } = self.leaf;
        [
            &self.moment.0.to_be_bytes()[..],
            &shard.0.to_be_bytes(),
            &leaf.0.to_be_bytes(),
        ]
        .concat()
    }
}

impl EntryPosition {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let (owner, batch) = (self.owner.0.to_be_bytes(), self.batch.0.to_be_bytes());
        [&owner[..], &batch, &self.place.to_be_bytes()].concat()
    }

    pub(crate) fn decode(value: &[u8]) -> Result<Self, StoreError> {
        let mut fields = Fields(value);
        let row = Self {
            owner: OwnerId(fields.u32()?),
            batch: BatchNumber(fields.u64()?),
            place: fields.u32()?,
        };
        fields.finish()?;
        Ok(row)
    }
}

impl LogEnd {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let Tail { batch, hash, event } = &self.tail;
        [
            &self.shard.0.to_be_bytes()[..],
            &batch.0.to_be_bytes(),
            &hash.0,
            &event.0.to_be_bytes(),
        ]
        .concat()
    }

    pub(crate) fn decode(value: &[u8]) -> Result<Self, StoreError> {
        let mut fields = Fields(value);
        let shard = Shard(fields.u16()?);
        let tail = Tail {
            batch: BatchNumber(fields.u64()?),
            hash: fields.hash()?,
            event: EventNumber(fields.u64()?),
        };
        fields.finish()?;
        Ok(Self { shard, tail })
    }
}

/// Key of an event of a subject, in the order of the index.
fn seated(prefix: u8, subject: u64, seat: Seat, place: u32) -> Vec<u8> {
    key(prefix, &[&subject.to_be_bytes(), &seat.encode(), &place.to_be_bytes()])
}

fn key(prefix: u8, parts: &[&[u8]]) -> Vec<u8> {
    let mut key = vec![prefix];
    parts.iter().for_each(|part| key.extend_from_slice(part));
    key
}

/// Reads the fields of a row from its front.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn array<const N: usize>(&mut self) -> Result<[u8; N], StoreError> {
        let (field, rest) = self.0.split_first_chunk().ok_or_else(damaged)?;
        self.0 = rest;
        Ok(*field)
    }

    fn u16(&mut self) -> Result<u16, StoreError> {
        self.array().map(u16::from_be_bytes)
    }

    fn u32(&mut self) -> Result<u32, StoreError> {
        self.array().map(u32::from_be_bytes)
    }

    fn u64(&mut self) -> Result<u64, StoreError> {
        self.array().map(u64::from_be_bytes)
    }

    fn hash(&mut self) -> Result<Hash, StoreError> {
        self.array().map(Hash)
    }

    fn finish(self) -> Result<(), StoreError> {
        if self.0.is_empty() { Ok(()) } else { Err(damaged()) }
    }
}

pub(crate) fn damaged() -> StoreError {
    StoreError::Corrupt("the index has a row that cannot be read; remove its folder to rebuild it".into())
}
