//! A data file that can be changed and saved.

use std::{
    fs, io,
    io::Write as _,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use annals_def::{Diagnostic, MAX_FILE_BYTES, Rule};
use tempfile::NamedTempFile;

use crate::{document::Document, editing::SectionMut, section::Section};

/// Who may read and write a new file, before the process's mask takes away from it.
const NEW_FILE_MODE: u32 = 0o666;

/// A data file, opened whole. Only such a file can be saved; see [`Resources::open_file`](crate::Resources::open_file).
#[derive(Debug)]
pub struct DataFile {
    at: PathBuf,
    document: Document,
    is_on_disk: bool,
}

/// A data file was not saved or deleted. But for [`SaveError::Unsynced`], what is on the disk is what was there before.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SaveError {
    /// The file says things that were not read, and saving would lose them.
    #[error("{file} is not saved: {}:{}: {}, and would be lost", .0.place.line, .0.place.column, .0.message, file = .0.place.file)]
    WouldLose(Box<Diagnostic>),
    /// The file could not be opened again.
    #[error("{file} is not saved: it would have {bytes} bytes, more than the {MAX_FILE_BYTES} that are read")]
    TooLarge {
        /// The file.
        file: String,
        /// How many bytes it would have.
        bytes: usize,
    },
    /// The disk is full, or something else is wrong with it.
    #[error("{file} stays as it was: {doing} failed")]
    Disk {
        /// The file.
        file: String,
        /// What failed.
        doing: &'static str,
        /// Why.
        source: io::Error,
    },
    /// The file is saved, but the disk did not promise to keep its name.
    #[error("{file} is saved, but a power cut may bring the old content back: save again")]
    Unsynced {
        /// The file.
        file: String,
        /// Why.
        source: io::Error,
    },
}

impl DataFile {
    /// A file that is on the disk.
    pub(crate) fn existing(at: PathBuf, document: Document) -> Self {
        Self {
            at,
            document,
            is_on_disk: true,
        }
    }

    /// A file that is not.
    pub(crate) fn new(at: PathBuf, document: Document) -> Self {
        Self {
            at,
            document,
            is_on_disk: false,
        }
    }

    /// The outermost section.
    #[must_use]
    pub fn root(&self) -> Section<'_> {
        self.document.root()
    }

    /// The outermost section, to be changed.
    pub fn root_mut(&mut self) -> SectionMut<'_> {
        self.document.root_mut()
    }

    /// The file's content.
    #[must_use]
    pub fn document(&self) -> &Document {
        &self.document
    }

    /// Writes the file: the new content is on the disk when this returns, and whoever opens the file meanwhile, or after a
    /// power cut, finds the old content or the new, whole.
    ///
    /// # Errors
    /// [`SaveError`], which says what the file has in it then.
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
            // Whatever has taken the name since stays.
            temporary.persist_noclobber(&self.at)
        };
        put.map_err(|error| self.failed("putting the new content into its place", error.error))?;
        self.is_on_disk = true;
        sync(self.folder()).map_err(|source| SaveError::Unsynced {
            file: self.document.name().to_owned(),
            source,
        })
    }

    /// Takes the file off the disk.
    ///
    /// # Errors
    /// [`SaveError::Disk`]; the file is still there then. One that was never saved is no error.
    pub fn delete(self) -> Result<(), SaveError> {
        if !self.is_on_disk {
            return Ok(());
        }
        fs::remove_file(&self.at)
            .and_then(|()| sync(self.folder()))
            .map_err(|source| self.failed("deleting it", source))
    }

    /// Writes the new content to a file of its own, which goes if anything fails.
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

/// Whether what was found is something that the document does not have.
fn is_loss(warning: &Diagnostic) -> bool {
    matches!(warning.rule, Rule::StrayText | Rule::Attribute)
}

/// Makes a change of names in a folder last.
fn sync(folder: &Path) -> io::Result<()> {
    fs::File::open(folder)?.sync_all()
}
