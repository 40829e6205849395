//! The folder that a game's data files are in, and the only way to them.

use std::{
    fs, io,
    io::Read as _,
    path::{Path, PathBuf},
};

use annals_def::MAX_FILE_BYTES;

use crate::{
    data_file::DataFile,
    document::{Document, ParseError},
    editing::EditError,
    section::{ReadError, Section},
};

/// A game's resource folder. Nothing outside of it is opened, whatever a path says and wherever links in it point.
#[derive(Clone, Debug)]
pub struct Resources {
    /// Absolute, without links in it.
    root: PathBuf,
}

/// A section that was opened by its path: a data file to be read.
#[derive(Clone, Debug)]
pub struct Opened {
    document: Document,
    at: usize,
}

/// A data file or a section of one could not be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// Not a path that can lead to a resource.
    #[error(
        "`{0}` is no path of a resource: write names with `/` between them, from the resource folder, without `..`"
    )]
    Path(String),
    /// A link leads elsewhere.
    #[error("`{path}` leads out of the resource folder, by a link: put the file itself there")]
    Outside {
        /// What was opened.
        path: String,
    },
    /// There is no such file.
    #[error("there is no `{path}` in the resource folder {}", root.display())]
    NotFound {
        /// What was opened, as far as it is missing.
        path: String,
        /// The resource folder.
        root: PathBuf,
    },
    /// A file of this name is there already.
    #[error("`{0}` exists: open it, or choose another name")]
    Exists(String),
    /// A folder, a device or a pipe.
    #[error("`{0}` is not a file")]
    NotAFile(String),
    /// A file was asked for, to be changed and saved, and the path goes on into it.
    #[error(
        "`{section}` is a section within {file}, and only whole files can be saved: open `{file}` and go on from its root"
    )]
    WithinFile {
        /// The file.
        file: String,
        /// The path within it.
        section: String,
    },
    /// The file is there, the section is not.
    #[error(transparent)]
    Section(#[from] ReadError),
    /// The file is no data file.
    #[error(transparent)]
    Parse(#[from] ParseError),
    /// The file would take too much memory.
    #[error("`{0}` has more than {MAX_FILE_BYTES} bytes: divide it into several files")]
    TooLarge(String),
    /// A new file's root cannot have this name.
    #[error(transparent)]
    Root(#[from] EditError),
    /// The disk did not let it be read.
    #[error("cannot read `{path}`")]
    Disk {
        /// What was opened.
        path: String,
        /// Why not.
        source: io::Error,
    },
}

/// A path taken apart: the file, and the rest, which leads on within it.
struct Found<'p> {
    /// Where the file is.
    at: PathBuf,
    /// The part of the path that names it.
    file: &'p str,
    within: &'p str,
}

impl Resources {
    /// The resource folder of a game.
    ///
    /// # Errors
    /// [`OpenError::Disk`] or [`OpenError::NotAFile`] if there is no folder.
    pub fn at(folder: &Path) -> Result<Self, OpenError> {
        let path = || folder.display().to_string();
        let root = fs::canonicalize(folder).map_err(|source| OpenError::Disk { path: path(), source })?;
        if root.is_dir() {
            Ok(Self { root })
        } else {
            Err(OpenError::NotAFile(path()))
        }
    }

    /// Opens a data file, or a section of one, to be read: `scripts/data/characters.xml/character/name`.
    ///
    /// # Errors
    /// [`OpenError`], with the path or the place.
    pub fn open(&self, path: &str) -> Result<Opened, OpenError> {
        let found = self.find(path)?;
        let document = read(&found)?;
        let at = document.root().open(found.within)?.at;
        Ok(Opened { document, at })
    }

    /// Opens a data file that can be changed and saved.
    ///
    /// # Errors
    /// [`OpenError`]; [`OpenError::WithinFile`] if the path leads to a section of a file.
    pub fn open_file(&self, path: &str) -> Result<DataFile, OpenError> {
        let found = self.find(path)?;
        if !found.within.is_empty() {
            return Err(OpenError::WithinFile {
                file: found.file.to_owned(),
                section: found.within.to_owned(),
            });
        }
        Ok(DataFile::existing(found.at.clone(), read(&found)?))
    }

    /// A data file with nothing but its root, which is not on the disk before it is saved. Its folder must be there.
    ///
    /// # Errors
    /// [`OpenError`]; [`OpenError::Exists`] if there is a file of this name.
    pub fn create_file(&self, path: &str, root: &str) -> Result<DataFile, OpenError> {
        check(path)?;
        let document = Document::new(path, root)?;
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
        let at = match folder {
            "" => self.root.clone(),
            folder => self.resolve(folder)?,
        };
        if !at.is_dir() {
            return Err(OpenError::NotAFile(folder.to_owned()));
        }
        let at = at.join(name);
        // A link that leads nowhere is in the way too.
        if fs::symlink_metadata(&at).is_ok() {
            return Err(OpenError::Exists(path.to_owned()));
        }
        Ok(DataFile::new(at, document))
    }

    /// The file that a path names, or leads into.
    fn find<'p>(&self, path: &'p str) -> Result<Found<'p>, OpenError> {
        check(path)?;
        let ends = path.match_indices('/').map(|(at, _)| at).chain([path.len()]);
        for end in ends {
            let file = &path[..end];
            let at = self.resolve(file)?;
            if at.is_file() {
                let within = path[end..].trim_start_matches('/');
                return Ok(Found { at, file, within });
            }
            if !at.is_dir() {
                return Err(OpenError::NotAFile(file.to_owned()));
            }
        }
        Err(OpenError::NotAFile(path.to_owned()))
    }

    /// Where a file or folder really is, if that is within the resource folder.
    fn resolve(&self, path: &str) -> Result<PathBuf, OpenError> {
        let at = fs::canonicalize(self.root.join(path)).map_err(|source| match source.kind() {
            io::ErrorKind::NotFound => OpenError::NotFound {
                path: path.to_owned(),
                root: self.root.clone(),
            },
            _ => OpenError::Disk {
                path: path.to_owned(),
                source,
            },
        })?;
        if at.starts_with(&self.root) {
            Ok(at)
        } else {
            Err(OpenError::Outside { path: path.to_owned() })
        }
    }
}

impl Opened {
    /// What was opened: the root of the file, or the section that the path leads to.
    #[must_use]
    pub fn section(&self) -> Section<'_> {
        Section::new(&self.document, self.at)
    }
}

/// Refuses a path before the disk is asked about it.
fn check(path: &str) -> Result<(), OpenError> {
    let is_name = |name: &str| !["", ".", ".."].contains(&name);
    if path.split('/').all(is_name) && !path.contains(['\\', '\0']) {
        Ok(())
    } else {
        Err(OpenError::Path(path.to_owned()))
    }
}

fn read(found: &Found<'_>) -> Result<Document, OpenError> {
    let mut bytes = Vec::new();
    let limit = MAX_FILE_BYTES as u64 + 1;
    fs::File::open(&found.at)
        .and_then(|file| file.take(limit).read_to_end(&mut bytes))
        .map_err(|source| OpenError::Disk {
            path: found.file.to_owned(),
            source,
        })?;
    if bytes.len() > MAX_FILE_BYTES {
        return Err(OpenError::TooLarge(found.file.to_owned()));
    }
    Ok(Document::parse(found.file, &bytes)?)
}
