//! What lies where in an index's files. This is the only place that knows.
//!
//! | prefix | key after it | value |
//! |---|---|---|
//! | `00` | – | [`Reached`]: how far the archive is taken in |
//! | `01` | owner:u32 | the end of its log: batch:u64 hash event:u64 |
//! | `02` | owner:u32, batch:u64 | [`Where`] the batch lies |
//! | `03` | entry:u64 | [`Told`]: where the ledger's log has it |
//! | `04` | serial:u64, entry:u64 | – : the entry moved that item |
//! | `05` | transfer, entry:u64 | – : the entry is about that transfer or trade |
//! | `06` | database id:u64, entry:u64 | – : the entry concerns what that entity of the database holds |
//! | `07` | entity:u64, owner:u32, stretch:u64 | – : events of that [stretch](STRETCH) of the owner's log are the entity's |
//! | `08` | wall clock ms:u64 | leaf:u64 : the first batch that was closed then, later than all that lie before it |
//! | `09` | session:u64, leaf:u64, place:u32 | owner:u32, batch:u64 : that event of the batch says that the session's client came in |
//! | `0a` | database id:u64, leaf:u64, place:u32 | owner:u32, batch:u64 : with that event a life of that entity of the database began, or its client came in |
//! | `0b` | entity:u64, leaf:u64, place:u32 | owner:u32, batch:u64 : with that event the entity's base part ended |
//! | `0c` | owner:u32 | – : the owner's log has events that are never let go: of base parts, or of the ledger |
//! | `0d` | entry:u64 | transfer : the entry did something in that trade |
//! | `0e` | database id:u64, leaf:u64, place:u32 | owner:u32, batch:u64 : that event says that a client of that entity of the database came in |
//!
//! A transfer is its asker's entity id:u64 and number:u64. Numbers are big-endian, so that keys sort.

use annals_event::Tail;
use annals_evidence::About;
use annals_ids::{
    BatchNumber, DatabaseId, EntityId, EntryNumber, EventNumber, Hash, LeafIndex, LogPosition, OwnerId, SessionId,
    TradeId, TransferId, TransferNumber, WallTime,
};
use annals_store::{KeyRange, StoreError};

/// The form of these rows. An index of another form is built anew.
pub(crate) const FORM: u8 = 5;

/// Batches of a log for which it is noted together whose events they hold: an entity that is busy has events in most batches
/// of its owner, and a row for each would be as large as the archive.
pub(crate) const STRETCH: u64 = 64;

/// How far an archive is taken in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Reached {
    /// The hash of its first batch.
    pub(crate) first: Hash,
    /// Its newest entry of the ledger.
    pub(crate) entry: EntryNumber,
    /// The latest wall time of its batches.
    pub(crate) latest: WallTime,
    /// How many leaves.
    pub(crate) leaves: u64,
    /// The tree over them: the roots of its complete subtrees, largest first.
    pub(crate) peaks: Vec<Hash>,
}

/// Where a batch lies in the archive, and what it was when it was verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Where {
    pub(crate) leaf: LeafIndex,
    pub(crate) hash: Hash,
}

/// Where the log of the ledger has an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Told {
    pub(crate) owner: OwnerId,
    pub(crate) batch: BatchNumber,
    /// Which of the batch's events it is.
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

/// Whose log, and which stretch of it, a key of a stretch names.
pub(crate) fn stretch_of(key: &[u8]) -> Result<(OwnerId, u64), StoreError> {
    let mut fields = Fields(key.get(9..).unwrap_or_default());
    let place = (OwnerId(fields.u32()?), fields.u64()?);
    fields.finish()?;
    Ok(place)
}

pub(crate) fn moment_key(wall: WallTime) -> Vec<u8> {
    key(0x08, &[&wall.0.to_be_bytes()])
}

/// What was closed after a moment; nothing is after the last that can be said.
pub(crate) fn moments_after(wall: WallTime) -> KeyRange {
    KeyRange::new([moment_key(wall), vec![0x00]].concat(), vec![0x09])
}

/// Says that the client of a session came in.
pub(crate) fn session_key(session: SessionId, leaf: LeafIndex, place: u32) -> Vec<u8> {
    let (session, leaf) = (session.0.to_be_bytes(), leaf.0.to_be_bytes());
    key(0x09, &[&session, &leaf, &place.to_be_bytes()])
}

/// Whenever the client of a session came in, in the order of the archive.
pub(crate) fn session(session: SessionId) -> KeyRange {
    KeyRange::prefix(&key(0x09, &[&session.0.to_be_bytes()]))
}

/// Says that a life of an entity of the database began, or that its client came in.
pub(crate) fn life_key(database: DatabaseId, leaf: LeafIndex, place: u32) -> Vec<u8> {
    let (database, leaf) = (database.0.to_be_bytes(), leaf.0.to_be_bytes());
    key(0x0a, &[&database, &leaf, &place.to_be_bytes()])
}

/// Whenever that was, in the order of the archive.
pub(crate) fn lives(database: DatabaseId) -> KeyRange {
    KeyRange::prefix(&key(0x0a, &[&database.0.to_be_bytes()]))
}

/// Says that an entity's base part ended.
pub(crate) fn end_key(entity: EntityId, leaf: LeafIndex, place: u32) -> Vec<u8> {
    let (entity, leaf) = (entity.0.to_be_bytes(), leaf.0.to_be_bytes());
    key(0x0b, &[&entity, &leaf, &place.to_be_bytes()])
}

/// Whenever that was, which is once.
pub(crate) fn ends(entity: EntityId) -> KeyRange {
    KeyRange::prefix(&key(0x0b, &[&entity.0.to_be_bytes()]))
}

/// Says that an owner's log has events that are never let go.
pub(crate) fn lasting_key(owner: OwnerId) -> Vec<u8> {
    key(0x0c, &[&owner.0.to_be_bytes()])
}

/// All such logs.
pub(crate) fn lasting() -> KeyRange {
    KeyRange::prefix(&[0x0c])
}

/// Says that a client of an entity of the database came in.
pub(crate) fn admission_key(database: DatabaseId, leaf: LeafIndex, place: u32) -> Vec<u8> {
    let (database, leaf) = (database.0.to_be_bytes(), leaf.0.to_be_bytes());
    key(0x0e, &[&database, &leaf, &place.to_be_bytes()])
}

/// Whenever that was, in the order of the archive.
pub(crate) fn admissions(database: DatabaseId) -> KeyRange {
    KeyRange::prefix(&key(0x0e, &[&database.0.to_be_bytes()]))
}

/// Says that an entry did something in a trade.
pub(crate) fn traded_key(entry: EntryNumber) -> Vec<u8> {
    key(0x0d, &[&entry.0.to_be_bytes()])
}

/// All such entries, in their order.
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

/// The event's place in its batch that a key of a session, of a life or of an end names.
pub(crate) fn place_of(key: &[u8]) -> Result<u32, StoreError> {
    let mut fields = Fields(key.get(17..).unwrap_or_default());
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

/// Says that an entry is about something.
pub(crate) fn about_key(about: About, entry: EntryNumber) -> Vec<u8> {
    [prefix(about), entry.0.to_be_bytes().to_vec()].concat()
}

/// The keys of all entries about something.
pub(crate) fn entries(about: About) -> KeyRange {
    KeyRange::prefix(&prefix(about))
}

/// The entry that a key of it names.
pub(crate) fn entry_of(about: About, key: &[u8]) -> Result<EntryNumber, StoreError> {
    let mut fields = Fields(key.get(prefix(about).len()..).unwrap_or_default());
    let entry = EntryNumber(fields.u64()?);
    fields.finish()?;
    Ok(entry)
}

/// What of the archive a row is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Concerned {
    /// The end of a log.
    Log(OwnerId),
    Batch(LogPosition),
    Entry(EntryNumber),
    /// An entity's events in a stretch of a log.
    Stretch(EntityId, OwnerId, u64),
    Leaf(LeafIndex),
    /// The event before which its batch has so many.
    Event(LogPosition, u32),
}

/// What of the archive a row is about; `None` if it is about the index itself, or cannot be read.
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
        // The entry's number is the end of each of these.
        0x04..=0x06 | 0x0d => Concerned::Entry(EntryNumber(u64::from_be_bytes(*key.last_chunk()?))),
        0x07 => {
            let entity = EntityId(fields.u64().ok()?);
            Concerned::Stretch(entity, OwnerId(fields.u32().ok()?), fields.u64().ok()?)
        }
        0x08 => Concerned::Leaf(decode_leaf(value).ok()?),
        0x09..=0x0b | 0x0e => Concerned::Event(decode_position(value).ok()?, u32::from_be_bytes(*key.last_chunk()?)),
        _ => return None,
    };
    Some(about)
}

impl Reached {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut value = vec![FORM];
        value.extend(self.first.0);
        value.extend(self.entry.0.to_be_bytes());
        value.extend(self.latest.0.to_be_bytes());
        value.extend(self.leaves.to_be_bytes());
        self.peaks.iter().for_each(|peak| value.extend(peak.0));
        value
    }

    /// `None` if the index is of another form.
    pub(crate) fn decode(value: &[u8]) -> Result<Option<Self>, StoreError> {
        let mut fields = Fields(value);
        if fields.array::<1>()? != [FORM] {
            return Ok(None);
        }
        let first = fields.hash()?;
        let (entry, latest) = (EntryNumber(fields.u64()?), WallTime(fields.u64()?));
        let leaves = fields.u64()?;
        let peaks = (0..leaves.count_ones()).map(|_| fields.hash());
        let peaks = peaks.collect::<Result<_, _>>()?;
        fields.finish()?;
        Ok(Some(Self {
            first,
            entry,
            latest,
            leaves,
            peaks,
        }))
    }
}

impl Where {
    pub(crate) fn encode(&self) -> Vec<u8> {
        [&self.leaf.0.to_be_bytes()[..], &self.hash.0].concat()
    }

    pub(crate) fn decode(value: &[u8]) -> Result<Self, StoreError> {
        let mut fields = Fields(value);
        let (leaf, hash) = (LeafIndex(fields.u64()?), fields.hash()?);
        fields.finish()?;
        Ok(Self { leaf, hash })
    }
}

impl Told {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let (owner, batch) = (self.owner.0.to_be_bytes(), self.batch.0.to_be_bytes());
        [&owner[..], &batch, &self.place.to_be_bytes()].concat()
    }

    pub(crate) fn decode(value: &[u8]) -> Result<Self, StoreError> {
        let mut fields = Fields(value);
        let told = Self {
            owner: OwnerId(fields.u32()?),
            batch: BatchNumber(fields.u64()?),
            place: fields.u32()?,
        };
        fields.finish()?;
        Ok(told)
    }
}

pub(crate) fn encode_tail(tail: &Tail) -> Vec<u8> {
    [
        &tail.batch.0.to_be_bytes()[..],
        &tail.hash.0,
        &tail.event.0.to_be_bytes(),
    ]
    .concat()
}

pub(crate) fn decode_tail(value: &[u8]) -> Result<Tail, StoreError> {
    let mut fields = Fields(value);
    let tail = Tail {
        batch: BatchNumber(fields.u64()?),
        hash: fields.hash()?,
        event: EventNumber(fields.u64()?),
    };
    fields.finish()?;
    Ok(tail)
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
    StoreError::Corrupt("the index holds a row that cannot be read; remove its folder, and it is built anew".into())
}
