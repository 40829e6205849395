//! The director's records: its term, and the realm's counters, schema and map.

use std::ops::Range;

use annals_ids::{EntityId, Hash, ProcessId, WallTime, WorldTime};

use super::fields::{Fields, decode_connection, encode_connection, key, number, put_texts};
use crate::{StoreError, Transaction};

/// The number sequences of a realm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counter {
    /// Entity ids, of live and stored entities alike.
    Entities,
    Owners,
    Processes,
    /// Check-outs.
    Checkouts,
    /// Generations of call numbers (rule C13): one per log that was cut at a hole.
    CallGenerations,
}

/// The current leader and its term.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Term {
    /// Incremented by each director that begins to lead.
    pub number: u64,
    /// The leading process.
    pub process: ProcessId,
    /// Incremented by the leader as a heartbeat; standbys watch it.
    pub beat: u64,
    /// The game time at that heartbeat; 0 if there was none.
    pub world: WorldTime,
}

/// The connection to the bus of the director that leads (rule D1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaderConnection {
    /// The number of its term.
    pub term: u64,
    /// The name that a nats-server's reports give the connection; `None` once the director has resigned.
    pub connection: Option<String>,
}

/// Basic facts of a realm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Realm {
    /// When the realm was created.
    pub began: WallTime,
    /// The fingerprint of its current schema.
    pub schema: Hash,
}

/// A prepared change of a running realm's definitions (rule M7).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upgrade {
    /// The fingerprint of the new schema, which is stored beside the present one.
    pub to: Hash,
    /// The renames, as they were given.
    pub renames: Vec<String>,
}

/// Key of a counter.
#[must_use]
pub fn counter_key(counter: Counter) -> Vec<u8> {
    let number = match counter {
        Counter::Entities => 0,
        Counter::Owners => 1,
        Counter::Processes => 2,
        Counter::Checkouts => 3,
        Counter::CallGenerations => 4,
    };
    key(0x01, &[&[number]])
}

/// The stored form of a counter: the next number to assign.
#[must_use]
pub fn encode_counter(next: u64) -> [u8; 8] {
    next.to_be_bytes()
}

/// Decodes a counter; no value is one that has assigned nothing. Numbers begin at 1.
///
/// # Errors
/// [`StoreError::Corrupt`].
pub fn decode_counter(value: Option<&[u8]>) -> Result<u64, StoreError> {
    value.map_or(Ok(1), |value| number("a counter", value))
}

/// Assigns the next `count` numbers of a counter.
///
/// # Errors
/// As [`Transaction::get`]; [`StoreError::Corrupt`] if the counter is corrupt or exhausted.
pub async fn assign(transaction: &Transaction, counter: Counter, count: u64) -> Result<Range<u64>, StoreError> {
    let key = counter_key(counter);
    let next = decode_counter(transaction.get(&key).await?.as_deref())?;
    let limit = match counter {
        // The ids behind it are those of fragments (rule C16).
        Counter::Entities => EntityId::FIRST_FRAGMENT.0,
        _ => u64::MAX,
    };
    let end = next.checked_add(count).filter(|end| *end <= limit);
    let end =
        end.ok_or_else(|| StoreError::Corrupt(format!("the counter of {counter:?} is at {next}, its limit").into()))?;
    transaction.set(&key, &encode_counter(end))?;
    Ok(next..end)
}

/// Key of the [`Realm`] record.
#[must_use]
pub fn realm_key() -> Vec<u8> {
    key(0x02, &[])
}

/// Key prefix of the chunks of a schema.
#[must_use]
pub fn schema_key(fingerprint: Hash) -> Vec<u8> {
    key(0x03, &[&fingerprint.0])
}

/// Key of the director's term.
#[must_use]
pub fn term_key() -> Vec<u8> {
    key(0x10, &[])
}

/// Key of the time of the realm's orderly stop. While it is there, no process holds an owner.
#[must_use]
pub fn closed_key() -> Vec<u8> {
    key(0x28, &[])
}

/// The stored form of that time.
#[must_use]
pub fn encode_closed(at: WallTime) -> [u8; 8] {
    at.0.to_be_bytes()
}

/// Decodes that time.
///
/// # Errors
/// [`StoreError::Corrupt`].
pub fn decode_closed(value: &[u8]) -> Result<WallTime, StoreError> {
    number("the moment of a stop", value).map(WallTime)
}

/// Key of the map of spaces.
#[must_use]
pub fn map_key() -> Vec<u8> {
    key(0x11, &[])
}

/// Key of the leader's connection.
#[must_use]
pub fn leader_connection_key() -> Vec<u8> {
    key(0x33, &[])
}

/// Key of the prepared change of definitions, if there is one.
#[must_use]
pub fn upgrade_key() -> Vec<u8> {
    key(0x34, &[])
}

impl Upgrade {
    /// The stored form.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut value = self.to.0.to_vec();
        put_texts(&mut value, &self.renames);
        value
    }

    /// Decodes the stored form.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`].
    pub fn decode(value: &[u8]) -> Result<Self, StoreError> {
        let mut fields = Fields::of("the prepared change of definitions", value);
        let upgrade = Self {
            to: fields.hash()?,
            renames: fields.texts()?,
        };
        fields.finish()?;
        Ok(upgrade)
    }
}

impl LeaderConnection {
    /// The stored form.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        encode_connection(self.term, self.connection.as_deref())
    }

    /// Decodes the stored form.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`].
    pub fn decode(value: &[u8]) -> Result<Self, StoreError> {
        let (term, connection) = decode_connection("the connection of the leading director", value)?;
        Ok(Self { term, connection })
    }
}

impl Term {
    /// The stored form.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let world = Some(self.world.0).filter(|world| *world > 0);
        let numbers = [self.number, self.process.0, self.beat].into_iter().chain(world);
        numbers.flat_map(u64::to_be_bytes).collect()
    }

    /// Decodes the stored form; no value is the term before the first.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`].
    pub fn decode(value: Option<&[u8]>) -> Result<Self, StoreError> {
        let Some(value) = value else { return Ok(Self::default()) };
        let mut fields = Fields::of("the director's term", value);
        let (number, process, beat) = (fields.u64()?, ProcessId(fields.u64()?), fields.u64()?);
        let world = WorldTime(fields.optional_u64()?);
        let term = Self {
            number,
            process,
            beat,
            world,
        };
        fields.finish()?;
        Ok(term)
    }
}

impl Realm {
    /// The stored form.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        [&self.began.0.to_be_bytes()[..], &self.schema.0].concat()
    }

    /// Decodes the stored form.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`].
    pub fn decode(value: &[u8]) -> Result<Self, StoreError> {
        let mut fields = Fields::of("the realm", value);
        let realm = Self {
            began: WallTime(fields.u64()?),
            schema: fields.hash()?,
        };
        fields.finish()?;
        Ok(realm)
    }
}
