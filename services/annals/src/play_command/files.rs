//! The files of the page, as `ops/play-page.sh` has compiled them into a folder.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
};

use thiserror::Error;

/// The page itself.
pub(crate) const PAGE: &str = "index.html";

/// Maximum files, and bytes of each.
const FILES: usize = 100;
const FILE_BYTES: u64 = 1 << 20;

/// Maximum depth of folders.
const DEPTH: usize = 4;

/// The kinds of files that belong to a page, by the ends of their names.
const KINDS: [(&str, &str); 3] = [
    (".html", "text/html; charset=utf-8"),
    (".css", "text/css; charset=utf-8"),
    (".js", "text/javascript; charset=utf-8"),
];

/// Why there is no page.
#[derive(Debug, Error)]
pub(crate) enum FilesError {
    #[error("there is no page in {}; run `make play`, or ops/play-page.sh and name its folder with --files", .0.display())]
    Missing(PathBuf),
    #[error("the page cannot be read from {}; run ops/play-page.sh again", path.display())]
    Unreadable {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("{} has more or larger files than a page has; name the page's folder with --files", .0.display())]
    NoPage(PathBuf),
}

/// A file, and its kind.
#[derive(Debug)]
pub(crate) struct PageFile {
    pub(crate) kind: &'static str,
    pub(crate) bytes: Vec<u8>,
}

/// All files, by their paths in the folder. They are read once: no request names a path of this machine.
#[derive(Debug, Default)]
pub(crate) struct Files(BTreeMap<String, PageFile>);

impl Files {
    /// Reads the files in a folder.
    pub(crate) fn read(folder: &Path) -> Result<Self, FilesError> {
        let mut files = Self(BTreeMap::new());
        if folder.is_dir() {
            files.add(folder, "", DEPTH)?;
        }
        match files.get(PAGE) {
            Some(_) => Ok(files),
            None => Err(FilesError::Missing(folder.to_owned())),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The file with this path.
    pub(crate) fn get(&self, path: &str) -> Option<&PageFile> {
        self.0.get(path)
    }

    fn add(&mut self, folder: &Path, prefix: &str, depth: usize) -> Result<(), FilesError> {
        let unreadable = |source| FilesError::Unreadable {
            path: folder.to_owned(),
            source,
        };
        for entry in fs::read_dir(folder).map_err(unreadable)? {
            let entry = entry.map_err(unreadable)?;
            let path = entry.path();
            // The page's own names are text.
            let Ok(name) = entry.file_name().into_string() else {
                continue;
            };
            let about = fs::metadata(&path).map_err(unreadable)?;
            if about.is_dir() && depth > 0 {
                self.add(&path, &format!("{prefix}{name}/"), depth - 1)?;
                continue;
            }
            let kind = KINDS.iter().find(|(end, _)| name.ends_with(end));
            let Some((_, kind)) = kind.filter(|_| about.is_file()) else {
                continue;
            };
            if self.0.len() == FILES || about.len() > FILE_BYTES {
                return Err(FilesError::NoPage(folder.to_owned()));
            }
            let bytes = fs::read(&path).map_err(unreadable)?;
            self.0.insert(format!("{prefix}{name}"), PageFile { kind, bytes });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_found_by_their_paths() {
        let folder = tempfile::tempdir().expect("a folder");
        let missing = Files::read(folder.path()).expect_err("there is none");
        assert!(missing.to_string().contains("make play"), "{missing}");
        fs::create_dir_all(folder.path().join("play/src")).expect("folders");
        for (path, text) in [
            (PAGE, "<p>"),
            ("play/src/main.js", "1;"),
            ("play/src/notes.txt", "no part of it"),
        ] {
            fs::write(folder.path().join(path), text).expect("written");
        }
        let files = Files::read(folder.path()).expect("there is one");
        let script = files.get("play/src/main.js").expect("it is there");
        assert_eq!(
            (script.kind, &script.bytes[..]),
            ("text/javascript; charset=utf-8", &b"1;"[..])
        );
        for other in ["play/src/notes.txt", "../index.html", "/index.html", ""] {
            assert!(files.get(other).is_none(), "{other}");
        }
    }
}
