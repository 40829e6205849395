//! The folder of a game's data files, and the only access to them.

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

/// A game's resource folder. Nothing outside of it can be opened, whatever a path contains and wherever links in it
/// point.
#[derive(Clone, Debug)]
pub struct Resources {
    /// Absolute, without symbolic links.
    root: PathBuf,
}

/// A section that was opened by its path, for reading.
#[derive(Clone, Debug)]
pub struct Opened {
    document: Document,
    at: usize,
}

/// A data file or a section of one could not be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// Not a valid resource path.
    #[error(
        "`{0}` is no path of a resource: write names with `/` between them, from the resource folder, without `..`"
    )]
    Path(String),
    /// A link leads out of the resource folder.
    #[error("`{path}` leads out of the resource folder through a link: copy the file into the folder")]
    Outside {
        /// The requested path.
        path: String,
    },
    /// There is no such file.
    #[error("there is no `{path}` in the resource folder {}", root.display())]
    NotFound {
        /// The requested path, up to the first missing part.
        path: String,
        /// The resource folder.
        root: PathBuf,
    },
    /// A file with this name already exists.
    #[error("`{0}` exists: open it, or choose another name")]
    Exists(String),
    /// It is a folder, a device or a pipe.
    #[error("`{0}` is not a file")]
    NotAFile(String),
    /// The path leads to a section within a file, but only a whole file can be edited and saved.
    #[error(
        "`{section}` is a section within {file}, and only whole files can be saved: open `{file}` and navigate from \
         its root"
    )]
    WithinFile {
        file: String,
        /// The path within it.
        section: String,
    },
    /// The file exists, but not the section.
    #[error(transparent)]
    Section(#[from] ReadError),
    /// The file is not a data file.
    #[error(transparent)]
    Parse(#[from] ParseError),
    /// The file would take too much memory.
    #[error("`{0}` has more than {MAX_FILE_BYTES} bytes: divide it into several files")]
    TooLarge(String),
    /// The name is not valid for the root of a new file.
    #[error(transparent)]
    Root(#[from] EditError),
    /// The disk failed to read it.
    #[error("cannot read `{path}`")]
    Disk {
        /// The requested path.
        path: String,
        /// The error of the operating system.
        source: io::Error,
    },
}

/// A path split into the file and the rest, which leads to a section within it.
struct ResolvedPath<'p> {
    /// Location of the file.
    at: PathBuf,
    /// The part of the path that leads to the file.
    file: &'p str,
    within: &'p str,
}

impl Resources {
    /// The resource folder of a game.
    ///
    /// # Errors
    /// [`OpenError::Disk`] or [`OpenError::NotAFile`] if there is no such folder.
    pub fn at(folder: &Path) -> Result<Self, OpenError> {
        let path = || folder.display().to_string();
        let root = fs::canonicalize(folder).map_err(|source| OpenError::Disk { path: path(), source })?;
        if root.is_dir() {
            Ok(Self { root })
        } else {
            Err(OpenError::NotAFile(path()))
        }
    }

    /// Opens a data file, or a section of one, for reading: `scripts/data/characters.xml/character/name`.
    ///
    /// # Errors
    /// [`OpenError`], with the path or the position.
    pub fn open(&self, path: &str) -> Result<Opened, OpenError> {
        let found = self.find(path)?;
        let document = read(&found)?;
        let at = document.root().open(found.within)?.at;
        Ok(Opened { document, at })
    }

    /// Opens a data file for editing and saving.
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

    /// A new data file with only a root. It is not on disk before it is saved. Its folder must exist.
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
        // A dangling link counts as an existing file too.
        if fs::symlink_metadata(&at).is_ok() {
            return Err(OpenError::Exists(path.to_owned()));
        }
        Ok(DataFile::new(at, document))
    }

    /// The file at a path, or the file that the path leads into.
    fn find<'p>(&self, path: &'p str) -> Result<ResolvedPath<'p>, OpenError> {
        check(path)?;
        let ends = path.match_indices('/').map(|(at, _)| at).chain([path.len()]);
        for end in ends {
            let file = &path[..end];
            let at = self.resolve(file)?;
            if at.is_file() {
                let within = path[end..].trim_start_matches('/');
                return Ok(ResolvedPath { at, file, within });
            }
            if !at.is_dir() {
                return Err(OpenError::NotAFile(file.to_owned()));
            }
        }
        Err(OpenError::NotAFile(path.to_owned()))
    }

    /// The real location of a file or folder, if it is within the resource folder.
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
    /// The opened section: the root of the file, or the section that the path leads to.
    #[must_use]
    pub fn section(&self) -> Section<'_> {
        Section::new(&self.document, self.at)
    }
}

/// Rejects an invalid path without access to the disk.
fn check(path: &str) -> Result<(), OpenError> {
    let is_name = |name: &str| !["", ".", ".."].contains(&name);
    if path.split('/').all(is_name) && !path.contains(['\\', '\0']) {
        Ok(())
    } else {
        Err(OpenError::Path(path.to_owned()))
    }
}

fn read(found: &ResolvedPath<'_>) -> Result<Document, OpenError> {
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
