//! Space data: values that are the same everywhere in a space, and that outlive the entity that wrote them.
//!
//! ```text
//! entry    = key:number version value:bytes
//! version  = life:number stamp:number by:number
//! data     = list(entry)
//! time     = initial:f64 rate:f64 set:u64
//! geometry = path:bytes f32{12}
//! ```
//! Keys ascend, and are below [`SPACE_KEYS`]; floats are finite, everything is little-endian.
//!
//! Every cell owner of a space has a copy. Of two versions the higher is kept, in whatever order they arrive, so copies
//! that have received the same entries are equal (rule S1). An empty value is a tombstone, kept with its version. A
//! space has a series of lives, numbered: in the even ones it exists, in the odd ones between them it is destroyed. An
//! entry written in an earlier life than the newest known is void (rule S4).

use std::collections::BTreeMap;

use annals_ids::{OwnerId, WorldTime};

use crate::encoding::{Malformed, Reader, put_bytes, put_number};

/// Number of keys: all copies together never hold more entries than this.
pub const SPACE_KEYS: u16 = 512;

/// The first key for a game's own use. Those below have a meaning to Annals.
pub const FIRST_OWN_KEY: u16 = 256;

/// Maximum size of a value (bytes): about twenty ticks of a client with 20,000 bit/s.
pub const SPACE_VALUE_BYTES: usize = 4 << 10;

/// The key of the [`TimeOfDay`].
pub const TIME_OF_DAY: u16 = 0;

/// The key of the entry that only records the life of the space. It is absent in the first life.
pub const LIFE: u16 = 1;

/// Maximum number of pieces of geometry in a space: one under each of the keys from [`FIRST_GEOMETRY`] on.
pub const GEOMETRIES: u8 = 128;

/// The key of the first piece of geometry.
pub const FIRST_GEOMETRY: u16 = 128;
const _: () = assert!(FIRST_GEOMETRY + GEOMETRIES as u16 == FIRST_OWN_KEY && FIRST_OWN_KEY < SPACE_KEYS);

/// Seconds of a day.
const DAY_SECONDS: f64 = 86_400.0;

/// The version of an entry; of two, the greater is newer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct SpaceVersion {
    /// The life of the space in which it was written.
    pub life: u64,
    /// Game time (ms) when it was written; or one more than the stamp of the version its writer knew, if that is later.
    pub stamp: u64,
    /// The owner that wrote it.
    pub by: OwnerId,
}

/// The entry under one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpaceEntry {
    /// The key, below [`SPACE_KEYS`].
    pub key: u16,
    pub version: SpaceVersion,
    /// The value, at most [`SPACE_VALUE_BYTES`]; empty for none.
    pub value: Vec<u8>,
}

/// The data of a space: entries by key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SpaceData {
    entries: BTreeMap<u16, (SpaceVersion, Vec<u8>)>,
}

/// The day cycle of a space.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TimeOfDay {
    /// The time of day when it was set (seconds since midnight).
    pub initial: f64,
    /// Seconds of the day per second of game time.
    pub rate: f64,
    /// When it was set.
    pub set: WorldTime,
}

/// A piece of the geometry of a space: a resource of the game, and its transform.
#[derive(Clone, Debug, PartialEq)]
pub struct Geometry {
    /// The resource.
    pub path: String,
    /// The axes x, y and z in the coordinates of the space, and the origin.
    pub transform: [[f32; 3]; 4],
}

impl SpaceData {
    /// Whether a version of a key would be newer than the one held.
    #[must_use]
    pub fn is_news(&self, key: u16, version: SpaceVersion) -> bool {
        is_news(self.life(), self.version(key), (key, version))
    }

    /// Applies an entry if it is newer than the one held. Returns whether it was.
    pub fn take(&mut self, entry: SpaceEntry) -> bool {
        let SpaceEntry { key, version, value } = entry;
        let is_news = self.is_news(key, version);
        if is_news && version.life > self.life() {
            // The writer is dropped: when two owners end a life at once, neither need lose.
            let SpaceEntry { version, value, .. } = SpaceEntry::of_life(version.life, OwnerId::default());
            self.entries = [(LIFE, (version, value))].into();
        }
        if is_news && key != LIFE {
            self.entries.insert(key, (version, value));
        }
        is_news
    }

    /// The life of the space.
    #[must_use]
    pub fn life(&self) -> u64 {
        self.version(LIFE).map_or(0, |version| version.life)
    }

    /// The value under a key.
    #[must_use]
    pub fn get(&self, key: u16) -> Option<&[u8]> {
        let (_, value) = self.entries.get(&key)?;
        Some(value.as_slice()).filter(|value| !value.is_empty())
    }

    /// The newest version of a key, whether of a value or of a tombstone.
    #[must_use]
    pub fn version(&self, key: u16) -> Option<SpaceVersion> {
        self.entries.get(&key).map(|(version, _)| *version)
    }

    /// The version for a value that `by` writes now: above the one held under the key.
    #[must_use]
    pub fn next_version(&self, key: u16, now: WorldTime, by: OwnerId) -> SpaceVersion {
        let held = self.version(key).map_or(0, |held| held.stamp);
        let (life, stamp) = (self.life(), now.0.max(held.saturating_add(1)));
        SpaceVersion { life, stamp, by }
    }

    /// All entries, tombstones included, ascending by key.
    pub fn entries(&self) -> impl Iterator<Item = (u16, SpaceVersion, &[u8])> {
        let entries = self.entries.iter();
        entries.map(|(key, (version, value))| (*key, *version, value.as_slice()))
    }

    /// The versions of all entries, ascending by key.
    #[must_use]
    pub fn versions(&self) -> SpaceVersions {
        let versions = self.entries.iter().map(|(key, (version, _))| (*key, *version));
        SpaceVersions(versions.collect())
    }

    /// The entries that are newer than those versions.
    #[must_use]
    pub fn newer_than(&self, known: &SpaceVersions) -> Vec<SpaceEntry> {
        let newer = self.entries().filter(|(key, version, _)| known.is_news(*key, *version));
        let entry = |(key, version, value): (u16, SpaceVersion, &[u8])| SpaceEntry {
            key,
            version,
            value: value.to_vec(),
        };
        newer.map(entry).collect()
    }

    /// Whether the space was destroyed and not opened again since.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        is_gone(self.life())
    }

    /// The entry with which `by` records that the space is destroyed; `None` if it already is.
    #[must_use]
    pub fn destroyed(&self, by: OwnerId) -> Option<SpaceEntry> {
        (!self.is_gone()).then(|| SpaceEntry::of_life(self.life().saturating_add(1), by))
    }

    /// The entry with which `by` opens a new life of the space, whether it exists or is destroyed. Its life is after
    /// the known one and, because others may have begun lives that are unknown here, at least twice the game time.
    #[must_use]
    pub fn opened(&self, now: WorldTime, by: OwnerId) -> SpaceEntry {
        let next = (self.life() | 1).saturating_add(1);
        SpaceEntry::of_life(next.max(now.0.saturating_mul(2)), by)
    }

    /// The day cycle of the space, if it was set.
    #[must_use]
    pub fn day(&self) -> Option<TimeOfDay> {
        TimeOfDay::read(self.get(TIME_OF_DAY)?).ok()
    }

    /// The geometry of the space: its pieces, each with its number, ascending.
    pub fn geometry(&self) -> impl Iterator<Item = (u8, Geometry)> {
        let keys = self.entries.range(FIRST_GEOMETRY..FIRST_OWN_KEY);
        keys.filter_map(|(key, (_, value))| {
            let number = u8::try_from(key - FIRST_GEOMETRY).ok()?;
            Some((number, Geometry::read(value).ok()?))
        })
    }

    /// Whether nothing was ever written.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        put_number(out, self.entries.len() as u64);
        self.entries.iter().for_each(|(key, (version, value))| {
            put_key(out, *key);
            version.write(out);
            put_bytes(out, value);
        });
    }

    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let entries = reader.map(4, "space data", take_key, |reader| {
            Ok((SpaceVersion::read(reader)?, take_value(reader)?))
        })?;
        Ok(Self { entries })
    }
}

/// The version of each key that a copy has, ascending by key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SpaceVersions(BTreeMap<u16, SpaceVersion>);

impl SpaceVersions {
    /// Whether a version of a key would be newer to a copy with these versions.
    #[must_use]
    pub fn is_news(&self, key: u16, version: SpaceVersion) -> bool {
        is_news(self.life(), self.version(key), (key, version))
    }

    /// The version of a key.
    #[must_use]
    pub fn version(&self, key: u16) -> Option<SpaceVersion> {
        self.0.get(&key).copied()
    }

    fn life(&self) -> u64 {
        self.0.get(&LIFE).map_or(0, |version| version.life)
    }

    /// Records that an entry was sent. A copy that has it has dropped the entries that it makes void.
    pub fn note(&mut self, key: u16, version: SpaceVersion) {
        if version.life > self.life() {
            let entry = SpaceEntry::of_life(version.life, OwnerId::default());
            self.0 = [(LIFE, entry.version)].into();
        }
        if key != LIFE {
            self.0.insert(key, version);
        }
    }

    /// Number of versions.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Each, ascending by key.
    pub fn iter(&self) -> impl Iterator<Item = (u16, SpaceVersion)> {
        self.0.iter().map(|(key, version)| (*key, *version))
    }

    /// Appends them.
    pub fn write(&self, out: &mut Vec<u8>) {
        put_number(out, self.0.len() as u64);
        self.0.iter().for_each(|(key, version)| {
            put_key(out, *key);
            version.write(out);
        });
    }

    /// Reads them.
    ///
    /// # Errors
    /// When they are not in their one encoding.
    pub fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let versions = reader.map(3, "versions of space data", take_key, SpaceVersion::read)?;
        Ok(Self(versions))
    }
}

impl FromIterator<(u16, SpaceVersion)> for SpaceVersions {
    fn from_iter<I: IntoIterator<Item = (u16, SpaceVersion)>>(versions: I) -> Self {
        Self(versions.into_iter().collect())
    }
}

impl SpaceVersion {
    fn write(self, out: &mut Vec<u8>) {
        put_number(out, self.life);
        put_number(out, self.stamp);
        put_number(out, u64::from(self.by.0));
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Self {
            life: reader.ordinal("life of a space")?,
            stamp: reader.ordinal("stamp of space data")?,
            by: OwnerId(reader.narrow("owner")?),
        })
    }
}

impl SpaceEntry {
    /// The entry with which `by` records only the life of the space.
    #[must_use]
    pub fn of_life(life: u64, by: OwnerId) -> Self {
        let stamp = 0;
        Self {
            key: LIFE,
            version: SpaceVersion { life, stamp, by },
            value: Vec::new(),
        }
    }

    /// Appends it.
    pub fn write(&self, out: &mut Vec<u8>) {
        put_key(out, self.key);
        self.version.write(out);
        put_bytes(out, &self.value);
    }

    /// Reads it.
    ///
    /// # Errors
    /// When it is not in its one encoding, there is no such key, or the value is too large.
    pub fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Self {
            key: take_key(reader)?,
            version: SpaceVersion::read(reader)?,
            value: take_value(reader)?,
        })
    }
}

impl TimeOfDay {
    /// Whether its numbers are valid.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        self.initial.is_finite() && self.rate.is_finite()
    }

    /// The time of day at that game time (seconds since midnight).
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "game time fits 53 bits for 285,000 years")]
    pub fn at(&self, now: WorldTime) -> f64 {
        let passed = now.0 as f64 - self.set.0 as f64;
        let time = (self.initial + passed / 1_000.0 * self.rate).rem_euclid(DAY_SECONDS);
        // A value just below midnight can round to the full day.
        if time < DAY_SECONDS { time } else { 0.0 }
    }

    /// Encodes the value.
    #[must_use]
    pub fn to_value(&self) -> Vec<u8> {
        let Self { initial, rate, set } = self;
        [initial.to_le_bytes(), rate.to_le_bytes(), set.0.to_le_bytes()].concat()
    }

    /// Reads a value.
    ///
    /// # Errors
    /// When it is not such a value.
    pub fn read(value: &[u8]) -> Result<Self, Malformed> {
        let reader = &mut Reader::new(value);
        let wrong = reader.malformed("time of day");
        let time = Self {
            initial: f64::from_le_bytes(reader.array("time of day")?),
            rate: f64::from_le_bytes(reader.array("rate of a day")?),
            set: WorldTime(u64::from_le_bytes(reader.array("game time")?)),
        };
        reader.finish("end of time of day")?;
        Some(time).filter(Self::is_sound).ok_or(wrong)
    }
}

impl Geometry {
    /// Whether its numbers are valid.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        self.transform.iter().flatten().all(|number| number.is_finite())
    }

    /// Encodes the value.
    #[must_use]
    pub fn to_value(&self) -> Vec<u8> {
        let mut value = Vec::new();
        put_bytes(&mut value, self.path.as_bytes());
        let numbers = self.transform.iter().flatten();
        numbers.for_each(|number| value.extend(number.to_le_bytes()));
        value
    }

    /// Reads a value.
    ///
    /// # Errors
    /// When it is not such a value.
    pub fn read(value: &[u8]) -> Result<Self, Malformed> {
        let reader = &mut Reader::new(value);
        let wrong = reader.malformed("geometry");
        let path = std::str::from_utf8(reader.bytes("path of geometry")?).map_err(|_| wrong)?;
        let path = path.to_owned();
        let mut transform = [[0.0; 3]; 4];
        for number in transform.iter_mut().flatten() {
            *number = f32::from_le_bytes(reader.array("transform")?);
        }
        reader.finish("end of geometry")?;
        Some(Self { path, transform }).filter(Self::is_sound).ok_or(wrong)
    }
}

/// Whether a space is destroyed in this life.
fn is_gone(life: u64) -> bool {
    life % 2 == 1
}

/// Whether a version of a key is newer than the held one, given the known life of the space. Nothing is written in a
/// destroyed space.
fn is_news(known: u64, held: Option<SpaceVersion>, (key, version): (u16, SpaceVersion)) -> bool {
    if key == LIFE {
        return version.life > known;
    }
    version.life >= known && !is_gone(version.life) && held.is_none_or(|held| held < version)
}

fn put_key(out: &mut Vec<u8>, key: u16) {
    put_number(out, u64::from(key));
}

fn take_key(reader: &mut Reader<'_>) -> Result<u16, Malformed> {
    let wrong = reader.malformed("key of space data");
    let key = reader.narrow("key of space data")?;
    Some(key).filter(|key| *key < SPACE_KEYS).ok_or(wrong)
}

fn take_value(reader: &mut Reader<'_>) -> Result<Vec<u8>, Malformed> {
    let wrong = reader.malformed("value of space data");
    let value = reader.bytes("value of space data")?;
    let fits = value.len() <= SPACE_VALUE_BYTES;
    fits.then(|| value.to_vec()).ok_or(wrong)
}
