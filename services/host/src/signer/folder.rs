//! The signer's folder: the only place of the secret key, and the signer's own state.
//!
//! | file | content | written |
//! |---|---|---|
//! | `key` | the secret key, readable by its owner only | by `annals checkpoint keygen`, or by the first start |
//! | `next-key` | the key that signs next | by `annals checkpoint rotate`; replaces `key` at the change |
//! | `next-log` | the first key of the log that follows this one, and who decided that and why | by `annals checkpoint new-log`; the key replaces `key` when this log ends |
//! | `checkpoint` | the newest checkpoint that was signed | before the checkpoint leaves the process |
//! | `keys/SIZE` | the record of the key that signs from that size on | once |
//! | `lock` | locked by the process that signs | |

use std::{
    collections::BTreeSet,
    fs::{self, File, OpenOptions, TryLockError},
    io::{self, Write},
    os::unix::fs::{OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
};

use annals_ids::WallTime;
use annals_proof::{
    KeyKind, KeyName, SignedNote, SignerKey,
    key::KeyError,
    log_end::{TEXT_BYTES, is_text},
    note::NoteError,
    succession,
};
use succession::{KeyRecord, RecordError};
use thiserror::Error;

use crate::clock;

/// The folder in a data directory.
pub const FOLDER: &str = "signer";

const KEY: &str = "key";
const NEXT_KEY: &str = "next-key";
const NEXT_LOG: &str = "next-log";
const CHECKPOINT: &str = "checkpoint";
const RECORDS: &str = "keys";
const LOCK: &str = "lock";

/// Readable by its owner only: the file holds a secret key.
const PRIVATE: u32 = 0o600;

/// Readable by all users with access to the folder: the file holds public data.
const PUBLIC: u32 = 0o644;

/// Permission bits of group and others.
const OTHERS: u32 = 0o077;

/// Maximum bytes of a file that is read: more than a note may have.
const FILE_BYTES: u64 = 1 << 20;

/// The folder of one signer, locked against other processes.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    /// The lock belongs to the open file.
    _lock: File,
}

/// A decision that this log ends if the archive no longer continues it, and that another one follows.
pub struct NextLog {
    /// The first key of the next log.
    pub key: SignerKey,
    /// Who decided it.
    pub operator: String,
    /// The operator's reason.
    pub reason: String,
    /// When it was decided.
    pub at: WallTime,
}

/// Why a signer's files cannot be used.
#[derive(Debug, Error)]
pub enum FolderError {
    /// A file could not be read or written.
    #[error("{} cannot be read or written; check the path and its permissions", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// Another signer uses the folder.
    #[error("another signer uses {}: one key signs in one place", path.display())]
    Taken {
        /// The folder.
        path: PathBuf,
    },
    /// A secret file is readable by other users.
    #[error(
        "{} can be read by users other than its owner, who may have copied the key; if none can have, chmod 600 it, \
         else make another key",
        path.display()
    )]
    Exposed {
        /// The file.
        path: PathBuf,
    },
    /// There is a key already.
    #[error("{} exists already; nothing was changed", path.display())]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// The file holds no key.
    #[error("{} holds no key that signs checkpoints; restore the file", path.display())]
    Key {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: KeyError,
    },
    /// The file holds a key of the other kind.
    #[error(
        "{} holds a key of the other kind: a log's makes checkpoints, and a witness's cosigns them",
        path.display()
    )]
    Kind {
        /// The file.
        path: PathBuf,
    },
    /// The file holds no note.
    #[error(
        "{} holds no signed note; if it is what was signed or cosigned last, restore it: no other file says what that \
         was",
        path.display()
    )]
    Note {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: NoteError,
    },
    /// The file holds no decision.
    #[error("{} holds no decision that a log ends: remove it, and repeat annals checkpoint new-log", path.display())]
    NextLog {
        /// The file.
        path: PathBuf,
    },
    /// The operator or the reason cannot be recorded.
    #[error("an operator and a reason have 1 to {TEXT_BYTES} bytes each, without line breaks and invisible characters")]
    Text,
    /// The file holds no record.
    #[error("{} is damaged: restore it", path.display())]
    Record {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: RecordError,
    },
}

impl Folder {
    /// Locks the signer's folder in a data directory; it is created if missing.
    ///
    /// # Errors
    /// When another signer uses it, or it cannot be written.
    pub fn take(data: &Path) -> Result<Self, FolderError> {
        let path = data.join(FOLDER);
        let records = path.join(RECORDS);
        fs::create_dir_all(&records).map_err(|source| FolderError::File { path: records, source })?;
        let lock = path.join(LOCK);
        let failed = |source| FolderError::File {
            path: lock.clone(),
            source,
        };
        let file = File::create(&lock).map_err(failed)?;
        match file.try_lock() {
            Ok(()) => Ok(Self { path, _lock: file }),
            Err(TryLockError::WouldBlock) => Err(FolderError::Taken { path }),
            Err(TryLockError::Error(source)) => Err(failed(source)),
        }
    }

    /// The current key.
    ///
    /// # Errors
    /// When the file cannot be used.
    pub fn key(&self) -> Result<Option<SignerKey>, FolderError> {
        read_key(&self.path.join(KEY), KeyKind::Note)
    }

    /// The next key, if a change is planned.
    ///
    /// # Errors
    /// As [`Self::key`].
    pub fn next_key(&self) -> Result<Option<SignerKey>, FolderError> {
        read_key(&self.path.join(NEXT_KEY), KeyKind::Note)
    }

    /// Replaces the current key by the next one. The old key is deleted.
    ///
    /// # Errors
    /// When the files cannot be written.
    pub fn change_keys(&self) -> Result<(), FolderError> {
        let (next, key) = (self.path.join(NEXT_KEY), self.path.join(KEY));
        let moved = fs::rename(&next, &key).and_then(|()| sync(&self.path));
        moved.map_err(|source| FolderError::File { path: key, source })
    }

    /// The decision that this log ends, if there is one.
    ///
    /// # Errors
    /// When the file cannot be used.
    pub fn next_log(&self) -> Result<Option<NextLog>, FolderError> {
        let path = self.path.join(NEXT_LOG);
        let Some(text) = read_secret(&path)? else {
            return Ok(None);
        };
        let lines: Vec<&str> = text.lines().collect();
        let parsed = match lines[..] {
            [key, operator, reason, at] if is_text(operator) && is_text(reason) => {
                at.parse().ok().map(|at| (key, operator, reason, WallTime(at)))
            }
            _ => None,
        };
        let Some((key, operator, reason, at)) = parsed else {
            return Err(FolderError::NextLog { path });
        };
        Ok(Some(NextLog {
            key: parse_key(&path, key, KeyKind::Note)?,
            operator: operator.to_owned(),
            reason: reason.to_owned(),
            at,
        }))
    }

    /// Replaces the current key by the first one of the next log, and removes the decision and the ended log's
    /// checkpoint and next key. The old key is deleted.
    ///
    /// # Errors
    /// When the files cannot be written. Repeating the call completes it.
    pub fn change_logs(&self, next: &NextLog) -> Result<(), FolderError> {
        remove(&self.path.join(CHECKPOINT))?;
        remove(&self.path.join(NEXT_KEY))?;
        write_key(&self.path.join(KEY), &next.key)?;
        self.drop_next_log()
    }

    /// Removes the decision that this log ends.
    ///
    /// # Errors
    /// When the file cannot be removed.
    pub fn drop_next_log(&self) -> Result<(), FolderError> {
        remove(&self.path.join(NEXT_LOG))
    }

    /// The newest checkpoint that was signed.
    ///
    /// # Errors
    /// When it is damaged.
    pub fn checkpoint(&self) -> Result<Option<SignedNote>, FolderError> {
        read_note(&self.path.join(CHECKPOINT))
    }

    /// Stores a checkpoint: it is on disk when this returns.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn remember(&self, checkpoint: &SignedNote) -> Result<(), FolderError> {
        keep_note(&self.path.join(CHECKPOINT), checkpoint)
    }

    /// The records of all keys that have signed, by the size from which each did. Keys that have signed only what a
    /// later log has declared lost are not among them.
    ///
    /// # Errors
    /// When one is damaged.
    pub fn records(&self) -> Result<Vec<(u64, KeyRecord)>, FolderError> {
        let folder = self.path.join(RECORDS);
        let failed = |source| FolderError::File {
            path: folder.clone(),
            source,
        };
        let mut found = Vec::new();
        for entry in fs::read_dir(&folder).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            let name = path.file_name().and_then(|name| name.to_str());
            let Some(from) = name.and_then(|name| name.parse().ok()) else {
                continue;
            };
            let bytes = read(&path)?.unwrap_or_default();
            let record = KeyRecord::parse(&bytes).map_err(|source| FolderError::Record { path, source })?;
            found.push((from, record));
        }
        found.sort_by_key(|(from, _): &(u64, KeyRecord)| *from);
        let mut ended = BTreeSet::new();
        let mut records = Vec::new();
        for (from, record) in found {
            let with_lost = record.with_lost().map_err(|source| FolderError::Record {
                path: folder.join(from.to_string()),
                source: RecordError::LogEnd(source),
            })?;
            // Reading has parsed all of them.
            let ends = with_lost.iter().filter_map(|record| record.log_end().ok().flatten());
            ended.extend(ends.map(|end| end.ended));
            if !ended.contains(record.key.name()) {
                records.push((from, record));
            }
        }
        Ok(records)
    }

    /// Stores the size from which on a key signs.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn record(&self, from: u64, record: &KeyRecord) -> Result<(), FolderError> {
        let path = self.path.join(RECORDS).join(from.to_string());
        write(&path, record.to_string().as_bytes(), PUBLIC)
    }
}

/// The signed note in a file; `None` if there is no file.
///
/// # Errors
/// When it cannot be read, or is not a note.
pub fn read_note(path: &Path) -> Result<Option<SignedNote>, FolderError> {
    let Some(bytes) = read(path)? else { return Ok(None) };
    let path = path.to_owned();
    let note = SignedNote::parse(&bytes).map_err(|source| FolderError::Note { path, source })?;
    Ok(Some(note))
}

/// Writes a signed note to a file, replacing the old one: it is on disk when this returns.
///
/// # Errors
/// When it cannot be written.
pub fn keep_note(path: &Path, note: &SignedNote) -> Result<(), FolderError> {
    write(path, note.to_string().as_bytes(), PUBLIC)
}

/// Creates the first key of a data directory's signer.
///
/// # Errors
/// When there is one, or it cannot be written.
pub fn make_key(data: &Path, name: KeyName) -> Result<SignerKey, FolderError> {
    make_key_file(&data.join(FOLDER).join(KEY), name, KeyKind::Note)
}

/// Creates the next key.
///
/// # Errors
/// When there is one already, or it cannot be written.
pub fn make_next_key(data: &Path, name: KeyName) -> Result<SignerKey, FolderError> {
    make_key_file(&data.join(FOLDER).join(NEXT_KEY), name, KeyKind::Note)
}

/// Decides that the log of a data directory's signer ends if the archive no longer continues it, and creates the first
/// key of the next one.
///
/// # Errors
/// When that was decided already, the texts cannot be recorded, or the file cannot be written.
pub fn make_next_log(data: &Path, name: KeyName, operator: &str, reason: &str) -> Result<SignerKey, FolderError> {
    if !is_text(operator) || !is_text(reason) {
        return Err(FolderError::Text);
    }
    let path = data.join(FOLDER).join(NEXT_LOG);
    if path.exists() {
        return Err(FolderError::Exists { path });
    }
    let key = SignerKey::from_seed(name, KeyKind::Note, &crate::process::random());
    let (secret, at) = (key.to_secret_text(), clock::wall().0);
    let text = format!("{secret}\n{operator}\n{reason}\n{at}\n");
    write(&path, text.as_bytes(), PRIVATE)?;
    Ok(key)
}

/// The current key of a signer that may be running.
///
/// # Errors
/// When the file cannot be used.
pub fn current_key(data: &Path) -> Result<Option<SignerKey>, FolderError> {
    read_key(&data.join(FOLDER).join(KEY), KeyKind::Note)
}

/// Creates a key in its own file.
///
/// # Errors
/// When the file exists, or cannot be written.
pub fn make_key_file(path: &Path, name: KeyName, kind: KeyKind) -> Result<SignerKey, FolderError> {
    let folder = folder_of(path);
    fs::create_dir_all(folder).map_err(|source| FolderError::File {
        path: folder.to_owned(),
        source,
    })?;
    if path.exists() {
        let path = path.to_owned();
        return Err(FolderError::Exists { path });
    }
    let key = SignerKey::from_seed(name, kind, &crate::process::random());
    write_key(path, &key)?;
    Ok(key)
}

/// The key in a file that only its owner can read; `None` if there is no file.
///
/// # Errors
/// When other users can read it, or it holds no key of that kind.
pub fn read_key(path: &Path, kind: KeyKind) -> Result<Option<SignerKey>, FolderError> {
    let Some(text) = read_secret(path)? else {
        return Ok(None);
    };
    let line = text.strip_suffix('\n').unwrap_or(&text);
    parse_key(path, line, kind).map(Some)
}

fn parse_key(path: &Path, line: &str, kind: KeyKind) -> Result<SignerKey, FolderError> {
    let path = path.to_owned();
    match line.parse::<SignerKey>() {
        Ok(key) if key.verifier().kind() != kind => Err(FolderError::Kind { path }),
        Ok(key) => Ok(key),
        Err(source) => Err(FolderError::Key { path, source }),
    }
}

fn write_key(path: &Path, key: &SignerKey) -> Result<(), FolderError> {
    write(path, format!("{}\n", key.to_secret_text()).as_bytes(), PRIVATE)
}

/// The content of a file that only its owner can read; `None` if there is no file.
fn read_secret(path: &Path) -> Result<Option<String>, FolderError> {
    let Some(bytes) = read(path)? else { return Ok(None) };
    let mode = fs::metadata(path).map(|found| found.permissions().mode());
    if mode.is_ok_and(|mode| mode & OTHERS != 0) {
        let path = path.to_owned();
        return Err(FolderError::Exposed { path });
    }
    Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
}

/// The content of a file; `None` if there is none.
fn read(path: &Path) -> Result<Option<Vec<u8>>, FolderError> {
    use io::Read;
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(FILE_BYTES).read_to_end(&mut bytes));
    match read {
        Ok(_) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(FolderError::File {
            path: path.to_owned(),
            source,
        }),
    }
}

/// Writes a file atomically: to a draft that is then renamed. A crash leaves the old file or the new one; the new one
/// is durable when this returns.
fn write(path: &Path, bytes: &[u8], mode: u32) -> Result<(), FolderError> {
    let draft = path.with_extension("draft");
    let put = || {
        let _ = fs::remove_file(&draft);
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(mode)
            .open(&draft)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&draft, path)?;
        sync(folder_of(path))
    };
    put().map_err(|source| FolderError::File {
        path: path.to_owned(),
        source,
    })
}

/// Removes a file, if there is one: it stays removed when this returns.
fn remove(path: &Path) -> Result<(), FolderError> {
    let removed = match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => sync(folder_of(path)),
    };
    removed.map_err(|source| FolderError::File {
        path: path.to_owned(),
        source,
    })
}

/// The folder of a file; for a bare name the working directory.
fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

fn sync(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}
