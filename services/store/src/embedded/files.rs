//! The files of an embedded store: lock, format, reading and writing.
//! ```text
//! <directory>/LOCK           locked by the process that has the store open; contains its process id
//! <directory>/rows/          a fjall database with one keyspace, `rows`
//! <directory>/ACKNOWLEDGED   a version up to which commits were acknowledged, written once a second and at close
//! ```
//!
//! The database takes the first unreadable entry of its journal for the end of the journal. That is correct after
//! a crash, but a damaged byte would silently drop all later commits. `ACKNOWLEDGED` detects that.
//!
//! Rows of callers are below `ff`. Above it, the store keeps `ff "format"` (4 bytes, big-endian) and `ff "version"`,
//! the version of the last commit (8 bytes, big-endian), written with each group.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use fjall::{Database, Keyspace, KeyspaceCreateOptions, PersistMode, Readable};

use crate::sequencer::{Rows, Writes};
use crate::{KeyRange, Row, StoreError, Version};

/// Format that this version writes: of the files, and of the store's own rows in them. The layout of callers' rows has
/// [a mark of its own](crate::layout::mark), which is the same on every engine.
const FORMAT: u32 = 2;

const FORMAT_KEY: &[u8] = b"\xffformat";
const VERSION_KEY: &[u8] = b"\xffversion";

const ACKNOWLEDGED: &str = "ACKNOWLEDGED";

/// Journals beyond this many bytes are flushed to tables, which bounds the time of recovery.
const JOURNAL_BYTES: u64 = 256 * 1024 * 1024;

/// Size at which the memory table is written to a table, in bytes. Four of these are merged into one table of 64 MiB. A
/// larger memory table makes each write and read in it slower, and merges rarer but longer (docs/performance.md, "An
/// old realm"). It is stored when the store is created.
const MEMORY_TABLE_BYTES: u64 = 16 * 1024 * 1024;

/// Memory for blocks of tables, in bytes. More costs memory and saves no measurable time (docs/performance.md, "An old
/// realm").
const CACHE_BYTES: u64 = 32 * 1024 * 1024;

/// Why an embedded store cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process, or this one, already has it open.
    #[error(
        "the store in {} is held by process {holder}: only one may hold it. Stop that process, or reach the store \
         through it",
        path.display()
    )]
    Held {
        /// The store's directory.
        path: PathBuf,
        /// Contents of its lock file: the process that has it open.
        holder: String,
    },
    /// Its files cannot be created, read or written.
    #[error(
        "the store in {} cannot use its files; check that the directory is writable and the disk not full",
        path.display()
    )]
    Files {
        /// The store's directory.
        path: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// It was written by another version of this program.
    #[error(
        "the files of the store in {} are of format {found}, and this program reads {FORMAT} alone; run the release \
         that has written it",
        path.display()
    )]
    Format {
        /// The store's directory.
        path: PathBuf,
        /// Its format.
        found: u32,
    },
    /// It has lost acknowledged commits: its disk has changed or dropped what was written.
    #[error(
        "the store in {} ends at commit {found}, and commits up to {acknowledged} were acknowledged: its disk has lost \
         them. Restore it from a backup; to go on without them, remove the file ACKNOWLEDGED in that directory",
        path.display()
    )]
    Lost {
        /// The store's directory.
        path: PathBuf,
        /// The last commit found.
        found: Version,
        /// The last commit acknowledged.
        acknowledged: Version,
    },
    /// Its files are inconsistent.
    #[error("the store in {} is damaged; restore it from a backup", path.display())]
    Damaged {
        /// The store's directory.
        path: PathBuf,
        /// The error of the database.
        source: fjall::Error,
    },
}

/// An open database, and the lock on it.
pub(super) struct Files {
    path: PathBuf,
    database: Database,
    rows: Keyspace,
    /// Held while the database is open; dropped after it.
    _lock: Lock,
}

/// The locked file of an open database.
struct Lock(File);

impl Drop for Lock {
    fn drop(&mut self) {
        // Closing the file is not enough: a child process that is being started has a copy of it until it executes its
        // program, and with it the lock.
        if let Err(error) = self.0.unlock() {
            tracing::error!(%error, "the store's lock is not released before this process ends");
        }
    }
}

impl Files {
    /// Takes the lock and opens the database.
    pub(super) fn open(path: &Path) -> Result<Self, OpenError> {
        let failed = |source| OpenError::Files {
            path: path.to_owned(),
            source,
        };
        std::fs::create_dir_all(path).map_err(failed)?;
        let lock = take_lock(path)?;
        let database = Database::builder(path.join("rows"))
            .max_journaling_size(JOURNAL_BYTES)
            .cache_size(CACHE_BYTES)
            .open()
            .map_err(|source| open_error(path, source))?;
        let rows = database
            .keyspace("rows", || {
                KeyspaceCreateOptions::default().max_memtable_size(MEMORY_TABLE_BYTES)
            })
            .map_err(|source| open_error(path, source))?;
        let files = Self {
            path: path.to_owned(),
            database,
            rows,
            _lock: lock,
        };
        files.check_format()?;
        files.check_acknowledged()?;
        Ok(files)
    }

    /// The version of the last group written.
    pub(super) fn last_version(&self) -> Result<Version, OpenError> {
        let bytes = self.own_value(VERSION_KEY)?;
        Ok(Version(bytes.map_or(0, u64::from_be_bytes)))
    }

    /// A snapshot of the current rows.
    pub(super) fn snapshot(&self) -> RowsSnapshot {
        RowsSnapshot {
            snapshot: self.database.snapshot(),
            rows: self.rows.clone(),
        }
    }

    /// Writes a group; it is durable when this returns. After an error the database accepts no more writes, and the
    /// group may or may not be there after a reopen.
    pub(super) fn write(&self, writes: &Writes, version: Version) -> Result<(), fjall::Error> {
        let mut batch = self.database.batch().durability(Some(PersistMode::SyncData));
        for (key, value) in writes {
            match value {
                Some(value) => batch.insert(&self.rows, key.as_ref(), value.as_ref()),
                None => batch.remove(&self.rows, key.as_ref()),
            }
        }
        batch.insert(&self.rows, VERSION_KEY, version.0.to_be_bytes());
        batch.commit()
    }

    /// Records that commits up to `version` were acknowledged. The record may reach the disk late or never: it only
    /// ever understates.
    pub(super) fn note_acknowledged(&self, version: Version) {
        let (file, new) = (self.path.join(ACKNOWLEDGED), self.path.join("ACKNOWLEDGED.new"));
        let written = std::fs::write(&new, version.to_string()).and_then(|()| std::fs::rename(&new, &file));
        if let Err(error) = written {
            tracing::warn!(%error, "could not record up to which commit the store has acknowledged");
        }
    }

    fn check_acknowledged(&self) -> Result<(), OpenError> {
        // A record truncated by a power loss counts as none.
        let note = std::fs::read_to_string(self.path.join(ACKNOWLEDGED)).unwrap_or_default();
        let acknowledged = Version(note.parse().unwrap_or(0));
        let found = self.last_version()?;
        if found < acknowledged {
            return Err(OpenError::Lost {
                path: self.path.clone(),
                found,
                acknowledged,
            });
        }
        Ok(())
    }

    fn check_format(&self) -> Result<(), OpenError> {
        match self.own_value(FORMAT_KEY)?.map(u32::from_be_bytes) {
            Some(FORMAT) => Ok(()),
            Some(found) => Err(OpenError::Format {
                path: self.path.clone(),
                found,
            }),
            None => {
                let mut batch = self.database.batch().durability(Some(PersistMode::SyncAll));
                batch.insert(&self.rows, FORMAT_KEY, FORMAT.to_be_bytes());
                batch.commit().map_err(|source| open_error(&self.path, source))
            }
        }
    }

    fn own_value<const N: usize>(&self, key: &[u8]) -> Result<Option<[u8; N]>, OpenError> {
        let Some(value) = self.rows.get(key).map_err(|source| open_error(&self.path, source))? else {
            return Ok(None);
        };
        let bytes = value.as_ref().try_into().map_err(|_| OpenError::Damaged {
            path: self.path.clone(),
            source: fjall::Error::Unrecoverable,
        })?;
        Ok(Some(bytes))
    }
}

impl Rows for Files {
    fn get(&self, key: &[u8]) -> Result<Option<Bytes>, StoreError> {
        self.rows.get(key).map(|value| value.map(to_bytes)).map_err(unreadable)
    }

    fn keys(&self, range: &KeyRange, limit: usize) -> Result<Vec<Bytes>, StoreError> {
        let rows = self.rows.range::<&[u8], _>(range.bounds()).take(limit);
        rows.map(|row| row.key().map(to_bytes))
            .collect::<Result<_, _>>()
            .map_err(unreadable)
    }
}

/// The rows at one version.
pub(super) struct RowsSnapshot {
    snapshot: fjall::Snapshot,
    rows: Keyspace,
}

impl RowsSnapshot {
    /// The value of a key.
    pub(super) fn get(&self, key: &[u8]) -> Result<Option<Bytes>, StoreError> {
        self.snapshot
            .get(&self.rows, key)
            .map(|value| value.map(to_bytes))
            .map_err(unreadable)
    }

    /// The rows of a range, which must not be empty.
    pub(super) fn range(&self, range: &KeyRange) -> impl DoubleEndedIterator<Item = Result<Row, StoreError>> + use<> {
        let rows = self.snapshot.range::<&[u8], _>(&self.rows, range.bounds());
        rows.map(|row| {
            let (key, value) = row.into_inner().map_err(unreadable)?;
            Ok((to_bytes(key), to_bytes(value)))
        })
    }
}

fn take_lock(path: &Path) -> Result<Lock, OpenError> {
    let failed = |source| OpenError::Files {
        path: path.to_owned(),
        source,
    };
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    let mut lock = options.open(path.join("LOCK")).map_err(failed)?;
    let mut lock = match lock.try_lock() {
        Ok(()) => Lock(lock),
        Err(TryLockError::Error(source)) => return Err(failed(source)),
        Err(TryLockError::WouldBlock) => {
            let mut holder = String::new();
            // Only for the error message: the holder may be writing it at this moment.
            let _ = lock.read_to_string(&mut holder);
            let holder = if holder.is_empty() {
                "(unknown)".to_owned()
            } else {
                holder.trim().to_owned()
            };
            return Err(OpenError::Held {
                path: path.to_owned(),
                holder,
            });
        }
    };
    lock.0.set_len(0).and_then(|()| lock.0.rewind()).map_err(failed)?;
    writeln!(lock.0, "{}", std::process::id()).map_err(failed)?;
    Ok(lock)
}

fn open_error(path: &Path, source: fjall::Error) -> OpenError {
    match source {
        fjall::Error::Io(source) => OpenError::Files {
            path: path.to_owned(),
            source,
        },
        source => OpenError::Damaged {
            path: path.to_owned(),
            source,
        },
    }
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "callers require a function of an owned slice"
)]
fn to_bytes(slice: fjall::Slice) -> Bytes {
    Bytes::copy_from_slice(&slice)
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "callers require a function of an owned error"
)]
fn unreadable(error: fjall::Error) -> StoreError {
    StoreError::Corrupt(error.to_string().into())
}
