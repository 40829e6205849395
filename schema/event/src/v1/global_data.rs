//! Global data: values under names that all owners of a kind have, and the registry of global bases.
//!
//! ```text
//! entry    = key:bytes version value:option(value)
//! version  = stamp:number by:number
//! data     = list(entry)
//! scope    = 0:u8 (all owners) | 1:u8 (bases) | 2:u8 (cells) | 3:u8 (global bases)
//! ```
//! Keys are UTF-8, ascend, and have 1 to [`GLOBAL_KEY_BYTES`] bytes.
//!
//! Every owner of a scope has a copy. Of two versions the higher is kept, in whatever order they arrive, so copies that
//! have received the same entries are equal (rule R1). A removed value leaves its entry, without a value.

use std::collections::BTreeMap;

use annals_def::Value;
use annals_ids::{Hash, Mailbox, OwnerId, OwnerKind, WorldTime};
use sha2::{Digest as _, Sha256};

use super::{
    call::{put_option, take_option},
    value::{put_value, take_value, value_length},
};
use crate::encoding::{Malformed, Reader, put_bytes, put_number};

/// Maximum number of keys of a scope, removed ones included, with which an owner adds another.
pub const GLOBAL_KEYS: usize = 1_024;

/// Maximum length of a key (bytes).
pub const GLOBAL_KEY_BYTES: usize = 128;

/// Maximum size of a value that is written, bytes as encoded in the log.
pub const GLOBAL_VALUE_BYTES: usize = 4 << 10;

/// Maximum size of a value that is read. A mailbox takes at most two bytes more when definitions change and its type
/// gets a larger number, of at least five bytes before.
const READ_VALUE_BYTES: usize = 2 * GLOBAL_VALUE_BYTES;

/// Which owners have a copy, and which names it holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum GlobalScope {
    /// All base and cell owners (`globalData`).
    Realm,
    /// All base owners (`baseAppData`).
    Bases,
    /// All cell owners (`cellAppData`).
    Cells,
    /// The registry of global bases, which all base and cell owners have (`globalBases`). Only the owner on which the
    /// realm began writes it (rule R3); all values are mailboxes.
    Registry,
}

/// The version of an entry; of two, the greater is newer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct GlobalVersion {
    /// Game time (ms) when it was written; or one more than the stamp that its writer held under the key, if that is
    /// later.
    pub stamp: u64,
    /// The owner that wrote it.
    pub by: OwnerId,
}

/// The entry under one key.
#[derive(Clone, Debug, PartialEq)]
pub struct GlobalEntry {
    /// 1 to [`GLOBAL_KEY_BYTES`] bytes.
    pub key: String,
    pub version: GlobalVersion,
    /// At most [`GLOBAL_VALUE_BYTES`] when written; `None` once it was removed.
    pub value: Option<Value>,
}

/// The data of a scope: entries by key.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GlobalData {
    entries: BTreeMap<String, (GlobalVersion, Option<Value>)>,
}

/// The version of each key that a copy has, ascending by key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GlobalVersions(BTreeMap<String, GlobalVersion>);

impl GlobalScope {
    /// All scopes.
    pub const ALL: [GlobalScope; 4] = [Self::Realm, Self::Bases, Self::Cells, Self::Registry];

    /// Whether owners of this kind have a copy.
    #[must_use]
    pub fn includes(self, kind: OwnerKind) -> bool {
        match self {
            Self::Realm | Self::Registry => matches!(kind, OwnerKind::Base | OwnerKind::Cell),
            Self::Bases => kind == OwnerKind::Base,
            Self::Cells => kind == OwnerKind::Cell,
        }
    }

    /// The number that stands for it in encodings.
    #[must_use]
    pub fn number(self) -> u8 {
        match self {
            Self::Realm => 0,
            Self::Bases => 1,
            Self::Cells => 2,
            Self::Registry => 3,
        }
    }

    /// The scope with this number.
    #[must_use]
    pub fn of_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|scope| scope.number() == number)
    }

    /// Takes a scope.
    ///
    /// # Errors
    /// When there is none with that number.
    pub fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let wrong = reader.malformed("scope of global data");
        Self::of_number(reader.byte("scope of global data")?).ok_or(wrong)
    }
}

impl GlobalData {
    /// Whether a version of a key would be newer than the one held.
    #[must_use]
    pub fn is_news(&self, key: &str, version: GlobalVersion) -> bool {
        self.version(key).is_none_or(|held| held < version)
    }

    /// Applies an entry if it is newer than the one held.
    pub fn take(&mut self, entry: GlobalEntry) {
        let GlobalEntry { key, version, value } = entry;
        if self.is_news(&key, version) {
            self.entries.insert(key, (version, value));
        }
    }

    /// The value under a key.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.entries.get(key)?.1.as_ref()
    }

    /// The newest version of a key, removed or not.
    #[must_use]
    pub fn version(&self, key: &str) -> Option<GlobalVersion> {
        self.entries.get(key).map(|(version, _)| *version)
    }

    /// The entry with which `by` writes a value now, or removes it: newer than the one held.
    #[must_use]
    pub fn next_entry(&self, key: &str, value: Option<Value>, now: WorldTime, by: OwnerId) -> GlobalEntry {
        let held = self.version(key).map_or(0, |held| held.stamp);
        let stamp = now.0.max(held.saturating_add(1));
        GlobalEntry {
            key: key.to_owned(),
            version: GlobalVersion { stamp, by },
            value,
        }
    }

    /// The keys that have values, and their values, ascending by key.
    pub fn values(&self) -> impl Iterator<Item = (&str, &Value)> {
        let entries = self.entries.iter();
        entries.filter_map(|(key, (_, value))| Some((key.as_str(), value.as_ref()?)))
    }

    /// The mailbox under a key.
    #[must_use]
    pub fn mailbox(&self, key: &str) -> Option<Mailbox> {
        self.get(key).and_then(mailbox_of)
    }

    /// Number of keys, removed ones included.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether nothing was ever written.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The entry under a key, removed or not.
    #[must_use]
    pub fn entry(&self, key: &str) -> Option<GlobalEntry> {
        let (version, value) = self.entries.get(key)?;
        Some(GlobalEntry {
            key: key.to_owned(),
            version: *version,
            value: value.clone(),
        })
    }

    /// All entries, removed ones included, ascending by key.
    pub fn entries(&self) -> impl Iterator<Item = GlobalEntry> {
        self.entries.keys().filter_map(|key| self.entry(key))
    }

    /// The versions of all entries.
    #[must_use]
    pub fn versions(&self) -> GlobalVersions {
        let versions = self.entries.iter().map(|(key, (version, _))| (key.clone(), *version));
        GlobalVersions(versions.collect())
    }

    /// The entries that are newer than those versions.
    #[must_use]
    pub fn newer_than(&self, known: &GlobalVersions) -> Vec<GlobalEntry> {
        let newer = self.entries().filter(|entry| known.is_news(&entry.key, entry.version));
        newer.collect()
    }

    /// A digest of the versions: equal for copies that hold the same.
    #[must_use]
    pub fn digest(&self) -> Hash {
        let mut bytes = Vec::new();
        self.versions().write(&mut bytes);
        Hash(Sha256::digest(&bytes).into())
    }

    /// Replaces each value by a converted one.
    pub(crate) fn converted(&self, convert: impl Fn(&Value) -> Value) -> Self {
        let entries = self.entries.iter();
        let entries = entries.map(|(key, (version, value))| (key.clone(), (*version, value.as_ref().map(&convert))));
        Self {
            entries: entries.collect(),
        }
    }

    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        put_number(out, self.entries.len() as u64);
        for (key, (version, value)) in &self.entries {
            put_bytes(out, key.as_bytes());
            version.write(out);
            put_option(out, value.as_ref(), put_value);
        }
    }

    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let entries = reader.map(5, "global data", take_key, |reader| {
            Ok((GlobalVersion::read(reader)?, take_content(reader)?))
        })?;
        Ok(Self { entries })
    }
}

impl GlobalVersions {
    /// Whether a version of a key would be newer to a copy with these versions.
    #[must_use]
    pub fn is_news(&self, key: &str, version: GlobalVersion) -> bool {
        self.0.get(key).is_none_or(|held| *held < version)
    }

    /// Each, ascending by key.
    pub fn iter(&self) -> impl Iterator<Item = (&str, GlobalVersion)> {
        self.0.iter().map(|(key, version)| (key.as_str(), *version))
    }

    /// Appends them.
    pub fn write(&self, out: &mut Vec<u8>) {
        put_number(out, self.0.len() as u64);
        for (key, version) in &self.0 {
            put_bytes(out, key.as_bytes());
            version.write(out);
        }
    }

    /// Reads them.
    ///
    /// # Errors
    /// When they are not in their one encoding.
    pub fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let versions = reader.map(4, "versions of global data", take_key, GlobalVersion::read)?;
        Ok(Self(versions))
    }
}

impl GlobalVersion {
    fn write(self, out: &mut Vec<u8>) {
        put_number(out, self.stamp);
        put_number(out, u64::from(self.by.0));
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Self {
            stamp: reader.ordinal("stamp of global data")?,
            by: OwnerId(reader.narrow("owner")?),
        })
    }
}

impl GlobalEntry {
    /// The registered mailbox, in an entry of the registry.
    #[must_use]
    pub fn mailbox(&self) -> Option<Mailbox> {
        self.value.as_ref().and_then(mailbox_of)
    }

    /// Appends it.
    pub fn write(&self, out: &mut Vec<u8>) {
        put_bytes(out, self.key.as_bytes());
        self.version.write(out);
        put_option(out, self.value.as_ref(), put_value);
    }

    /// Reads it.
    ///
    /// # Errors
    /// When it is not in its one encoding, the key is empty or too long, or the value is too large.
    pub fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Self {
            key: take_key(reader)?,
            version: GlobalVersion::read(reader)?,
            value: take_content(reader)?,
        })
    }

    /// Encoded size, bytes.
    #[must_use]
    pub fn length(&self) -> usize {
        let value = self.value.as_ref().map_or(0, value_length);
        // A version takes up to 15 bytes, lengths and tags up to 5.
        20 + self.key.len() + value
    }
}

fn mailbox_of(value: &Value) -> Option<Mailbox> {
    match value {
        Value::Mailbox(mailbox) => *mailbox,
        _ => None,
    }
}

pub(crate) fn take_key(reader: &mut Reader<'_>) -> Result<String, Malformed> {
    let wrong = reader.malformed("key of global data");
    let key = std::str::from_utf8(reader.bytes("key of global data")?).map_err(|_| wrong)?;
    let fits = (1..=GLOBAL_KEY_BYTES).contains(&key.len());
    fits.then(|| key.to_owned()).ok_or(wrong)
}

fn take_content(reader: &mut Reader<'_>) -> Result<Option<Value>, Malformed> {
    let wrong = reader.malformed("value of global data");
    let value = take_option(reader, take_value)?;
    let fits = value
        .as_ref()
        .is_none_or(|value| value_length(value) <= READ_VALUE_BYTES);
    fits.then_some(value).ok_or(wrong)
}
