//! The content of downloads: from the log, or from files in a folder. The core repeats what is not answered, so an
//! attempt that cannot be made now is dropped.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{self, Read as _},
    num::NonZeroU32,
    path::{Component, Path, PathBuf},
    sync::{Arc, Mutex, PoisonError, Weak},
    time::SystemTime,
};

use annals_base::{BaseInput, DOWNLOAD_BITS, DownloadContent, PreparedDownload};
use annals_ids::{Hash, OwnerId};
use annals_node::download::{Download, DownloadSource};
use annals_wire::client::{MAX_DOWNLOAD_BYTES, value_hash};
use thiserror::Error;
use tokio::sync::Semaphore;

use crate::holder_set::Holders;

/// Maximum files of a process that are read at the same time.
const AT_ONCE: usize = 4;

/// How a base process serves downloads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DownloadSettings {
    /// The folder of files that can be downloaded, if there is one.
    pub folder: Option<PathBuf>,
    /// Maximum rate of downloads to one client, bits per second.
    pub bits: NonZeroU32,
}

impl Default for DownloadSettings {
    fn default() -> Self {
        Self {
            folder: None,
            bits: DOWNLOAD_BITS,
        }
    }
}

/// Why a file cannot be downloaded.
#[derive(Debug, Error)]
enum FileError {
    #[error(
        "there is no folder of files to download: start the base services with the setting `downloads`, and with the \
         same files in each"
    )]
    NoFolder,
    #[error("{0:?} is no path within the folder of downloads: write names of folders and of a file, separated by /")]
    Outside(String),
    #[error("the file {name:?} in the folder of downloads cannot be read: {source}")]
    Unreadable { name: String, source: io::Error },
    #[error("the file {name:?} has more than {MAX_DOWNLOAD_BYTES} bytes: split it")]
    TooLarge { name: String },
}

/// Prepares downloads, each file in a task of its own.
pub(super) struct Downloads {
    holders: Holders<BaseInput>,
    files: Arc<Files>,
    room: Arc<Semaphore>,
}

impl Downloads {
    pub(super) fn new(folder: Option<PathBuf>, holders: Holders<BaseInput>) -> Self {
        Self {
            holders,
            files: Arc::new(Files {
                folder,
                read: Mutex::default(),
            }),
            room: Arc::new(Semaphore::new(AT_ONCE)),
        }
    }

    /// Gives the content of a download to the holder of its owner.
    pub(super) fn prepare(&self, owner: OwnerId, download: Download) {
        let Download {
            id,
            description,
            source,
        } = download;
        let holders = self.holders.clone();
        let deliver = move |content| {
            let prepared = PreparedDownload {
                id,
                description,
                content,
            };
            // A holder that has ended or lags asks again.
            let _ = holders.send(owner, BaseInput::Download(prepared));
        };
        match source {
            DownloadSource::Content(bytes) => deliver(Ok(DownloadContent {
                hash: value_hash(&bytes),
                bytes: bytes.into(),
            })),
            DownloadSource::File(name) => {
                let Ok(permit) = Arc::clone(&self.room).try_acquire_owned() else {
                    return;
                };
                let files = Arc::clone(&self.files);
                tokio::task::spawn_blocking(move || {
                    let content = files.content(&name);
                    if let Err(error) = &content {
                        tracing::warn!(%owner, entity = %id.entity, %error, "a download has failed");
                    }
                    deliver(content.map_err(|error| error.to_string()));
                    drop(permit);
                });
            }
        }
    }
}

/// The files of a folder. One that several clients download is in memory once.
struct Files {
    folder: Option<PathBuf>,
    /// The files whose content may still be in use, by name.
    read: Mutex<BTreeMap<String, KnownFile>>,
}

/// A file that was read.
struct KnownFile {
    version: FileVersion,
    bytes: Weak<[u8]>,
    hash: Hash,
}

/// What differs when a file has changed.
#[derive(Clone, Copy, PartialEq, Eq)]
struct FileVersion {
    size: u64,
    modified: Option<SystemTime>,
}

impl Files {
    fn content(&self, name: &str) -> Result<DownloadContent, FileError> {
        let folder = self.folder.as_deref().ok_or(FileError::NoFolder)?;
        let unreadable = |source| FileError::Unreadable {
            name: name.to_owned(),
            source,
        };
        let path = within(folder, name)?;
        let file = File::open(path).map_err(unreadable)?;
        let about = file.metadata().map_err(unreadable)?;
        if !about.is_file() {
            return Err(unreadable(io::Error::other("it is no file")));
        }
        let version = FileVersion {
            size: about.len(),
            modified: about.modified().ok(),
        };
        if let Some(known) = self.known(name, version) {
            return Ok(known);
        }
        let mut bytes = Vec::new();
        file.take(MAX_DOWNLOAD_BYTES + 1)
            .read_to_end(&mut bytes)
            .map_err(unreadable)?;
        if bytes.len() as u64 > MAX_DOWNLOAD_BYTES {
            return Err(FileError::TooLarge { name: name.to_owned() });
        }
        let content = DownloadContent {
            hash: value_hash(&bytes),
            bytes: bytes.into(),
        };
        self.remember(name, version, &content);
        Ok(content)
    }

    fn known(&self, name: &str, version: FileVersion) -> Option<DownloadContent> {
        let read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        let known = read.get(name).filter(|known| known.version == version)?;
        Some(DownloadContent {
            bytes: known.bytes.upgrade()?,
            hash: known.hash,
        })
    }

    fn remember(&self, name: &str, version: FileVersion, content: &DownloadContent) {
        let known = KnownFile {
            version,
            bytes: Arc::downgrade(&content.bytes),
            hash: content.hash,
        };
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        // Bounded by the files in use.
        read.retain(|_, known| known.bytes.strong_count() > 0);
        read.insert(name.to_owned(), known);
    }
}

/// The path of a file in a folder, or below it. Links that lead elsewhere are refused.
fn within(folder: &Path, name: &str) -> Result<PathBuf, FileError> {
    let relative = Path::new(name);
    let is_plain = relative.components().all(|part| matches!(part, Component::Normal(_)));
    if !is_plain {
        return Err(FileError::Outside(name.to_owned()));
    }
    let unreadable = |source| FileError::Unreadable {
        name: name.to_owned(),
        source,
    };
    let folder = folder.canonicalize().map_err(unreadable)?;
    let path = folder.join(relative).canonicalize().map_err(unreadable)?;
    if !path.starts_with(&folder) {
        return Err(FileError::Outside(name.to_owned()));
    }
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    use std::fs;

    fn files(folder: Option<&Path>) -> Files {
        Files {
            folder: folder.map(Path::to_owned),
            read: Mutex::default(),
        }
    }

    #[test]
    fn only_files_within_the_folder_are_read() {
        let root = tempfile::tempdir().expect("a folder");
        let folder = root.path().join("downloads");
        fs::create_dir_all(folder.join("maps")).expect("folders");
        fs::write(root.path().join("secret"), "s").expect("a file");
        fs::write(folder.join("maps/one"), "1").expect("a file");
        #[cfg(unix)]
        std::os::unix::fs::symlink(root.path().join("secret"), folder.join("link")).expect("a link");
        let files = files(Some(&folder));
        let one = files.content("maps/one").expect("it is there");
        assert_eq!((&*one.bytes, one.hash), (&b"1"[..], value_hash(b"1")));
        for name in ["../secret", "/etc/passwd", "maps/../../secret", "./maps/one", "link"] {
            let refused = files.content(name);
            assert!(matches!(refused, Err(FileError::Outside(_))), "{name}: {refused:?}");
        }
        for name in ["maps", "maps/two", "maps/one/two"] {
            let refused = files.content(name);
            assert!(
                matches!(refused, Err(FileError::Unreadable { .. })),
                "{name}: {refused:?}"
            );
        }
        assert!(matches!(
            super::tests::files(None).content("maps/one"),
            Err(FileError::NoFolder)
        ));
    }

    #[test]
    fn a_file_is_in_memory_once_and_read_again_when_it_has_changed() {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("film"), "old").expect("a file");
        let files = files(Some(folder.path()));
        let first = files.content("film").expect("it is there");
        let second = files.content("film").expect("it is there");
        assert!(Arc::ptr_eq(&first.bytes, &second.bytes));
        fs::write(folder.path().join("film"), "newer").expect("a file");
        assert_eq!(&*files.content("film").expect("it is there").bytes, b"newer");
        assert_eq!(&*first.bytes, b"old");
    }

    #[test]
    fn a_file_that_is_too_large_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = File::create(folder.path().join("film")).expect("a file");
        // A sparse file.
        file.set_len(MAX_DOWNLOAD_BYTES + 1).expect("it has this size");
        let refused = files(Some(folder.path())).content("film");
        assert!(matches!(refused, Err(FileError::TooLarge { .. })), "{refused:?}");
    }
}
