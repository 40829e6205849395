//! A data file to be edited and saved.

use std::{
    fs, io,
    io::Write as _,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use annals_def::{Diagnostic, MAX_FILE_BYTES, Rule};
use tempfile::NamedTempFile;

use crate::{document::Document, editing::SectionMut, section::Section};

/// Mode of a new file, before the umask.
const NEW_FILE_MODE: u32 = 0o666;

/// A data file that was opened as a whole. Only such a file can be saved; see
/// [`Resources::open_file`](crate::Resources::open_file).
#[derive(Debug)]
pub struct DataFile {
    at: PathBuf,
    document: Document,
    is_on_disk: bool,
}

/// A data file was not saved or deleted. Except for [`SaveError::Unsynced`], the file on disk is unchanged.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SaveError {
    /// Parts of the file were not read, and saving would lose them.
    #[error("{file} is not saved: {}:{}: {}, and would be lost", .0.place.line, .0.place.column, .0.message, file = .0.place.file)]
    WouldLose(Box<Diagnostic>),
    /// The file would be too large to open again.
    #[error("{file} is not saved: it would have {bytes} bytes, more than the {MAX_FILE_BYTES} that are read")]
    TooLarge {
        file: String,
        /// Its size, in bytes.
        bytes: usize,
    },
    /// The disk is full, or another disk error.
    #[error("{file} stays as it was: {doing} failed")]
    Disk {
        file: String,
        /// The operation that failed.
        doing: &'static str,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The file is saved, but its directory entry may not survive a power cut.
    #[error("{file} is saved, but a power cut may bring the old content back: save again")]
    Unsynced {
        file: String,
        /// The error of the operating system.
        source: io::Error,
    },
}

impl DataFile {
    /// A file that exists on disk.
    pub(crate) fn existing(at: PathBuf, document: Document) -> Self {
        Self {
            at,
            document,
            is_on_disk: true,
        }
    }

    /// A file that does not exist on disk yet.
    pub(crate) fn new(at: PathBuf, document: Document) -> Self {
        Self {
            at,
            document,
            is_on_disk: false,
        }
    }

    /// The root section.
    #[must_use]
    pub fn root(&self) -> Section<'_> {
        self.document.root()
    }

    /// The root section, for editing.
    pub fn root_mut(&mut self) -> SectionMut<'_> {
        self.document.root_mut()
    }

    /// The file's content.
    #[must_use]
    pub fn document(&self) -> &Document {
        &self.document
    }

    /// Saves the file atomically. The new content is on disk when this returns; a process that opens the file
    /// meanwhile, or after a power cut, finds either the old or the new content, complete.
    ///
    /// # Errors
    /// [`SaveError`], which describes the content of the file in that case.
    pub fn save(&mut self) -> Result<(), SaveError> {
        if let Some(lost) = self.document.warnings().iter().find(|warning| is_loss(warning)) {
            return Err(SaveError::WouldLose(Box::new(lost.clone())));
        }
        let text = self.document.to_xml();
        if text.len() > MAX_FILE_BYTES {
            return Err(SaveError::TooLarge {
                file: self.document.name().to_owned(),
                bytes: text.len(),
            });
        }
        let written = self.write_beside(&text);
        let temporary = written.map_err(|source| self.failed("writing the new content", source))?;
        let put = if self.is_on_disk {
            temporary.persist(&self.at)
        } else {
            // A file that has taken the name meanwhile is not overwritten.
            temporary.persist_noclobber(&self.at)
        };
        put.map_err(|error| self.failed("putting the new content into its place", error.error))?;
        self.is_on_disk = true;
        sync(self.folder()).map_err(|source| SaveError::Unsynced {
            file: self.document.name().to_owned(),
            source,
        })
    }

    /// Deletes the file from disk.
    ///
    /// # Errors
    /// [`SaveError::Disk`]; then the file still exists. Deleting a file that was never saved is no error.
    pub fn delete(self) -> Result<(), SaveError> {
        if !self.is_on_disk {
            return Ok(());
        }
        fs::remove_file(&self.at)
            .and_then(|()| sync(self.folder()))
            .map_err(|source| self.failed("deleting it", source))
    }

    /// Writes the new content to a temporary file, which is deleted if anything fails.
    fn write_beside(&self, text: &str) -> io::Result<NamedTempFile> {
        let mut temporary = tempfile::Builder::new()
            .prefix(".annals-")
            .suffix(".tmp")
            .permissions(fs::Permissions::from_mode(NEW_FILE_MODE))
            .tempfile_in(self.folder())?;
        if self.is_on_disk {
            let permissions = fs::metadata(&self.at)?.permissions();
            temporary.as_file().set_permissions(permissions)?;
        }
        temporary.write_all(text.as_bytes())?;
        temporary.as_file().sync_all()?;
        Ok(temporary)
    }

    fn folder(&self) -> &Path {
        self.at.parent().unwrap_or(&self.at)
    }

    fn failed(&self, doing: &'static str, source: io::Error) -> SaveError {
        SaveError::Disk {
            file: self.document.name().to_owned(),
            doing,
            source,
        }
    }
}

/// Whether a warning is about content that the document does not have.
fn is_loss(warning: &Diagnostic) -> bool {
    matches!(warning.rule, Rule::StrayText | Rule::Attribute)
}

/// Makes changes of directory entries durable.
fn sync(folder: &Path) -> io::Result<()> {
    fs::File::open(folder)?.sync_all()
}
