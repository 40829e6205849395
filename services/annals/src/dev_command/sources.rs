//! The files of a game, and notice of their changes.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use sha2::{Digest as _, Sha256};
use tokio::{sync::mpsc, time::sleep};

/// Folders of a game that are built, and files.
const FOLDERS: [&str; 3] = ["defs", "src", "page"];
const FILES: [&str; 2] = ["Cargo.toml", "Makefile"];

/// Pause after a change before the files are read: an editor saves several at once.
const QUIET: Duration = Duration::from_millis(100);

/// SHA-256 of the paths and contents of all files.
pub(super) type Digest = [u8; 32];

/// The files from which a game is built.
pub(super) struct Sources {
    dir: PathBuf,
    changed: mpsc::Receiver<()>,
    /// Ends the watching when it is dropped.
    _watcher: RecommendedWatcher,
}

impl Sources {
    /// Begins to watch the files of a game's folder.
    ///
    /// # Errors
    /// When the operating system allows no more watches, or there is no such folder.
    pub(super) fn watch(dir: &Path) -> Result<Self, notify::Error> {
        // One notice is as good as several.
        let (notice, changed) = mpsc::channel(1);
        let mut watcher = notify::recommended_watcher(move |event: notify::Result<Event>| {
            // Reading is no change. An error may hide one.
            if !event.is_ok_and(|event| matches!(event.kind, EventKind::Access(_))) {
                let _ = notice.try_send(());
            }
        })?;
        // Not the files themselves: editors replace them.
        watcher.watch(dir, RecursiveMode::NonRecursive)?;
        for folder in FOLDERS {
            watcher.watch(&dir.join(folder), RecursiveMode::Recursive)?;
        }
        Ok(Self {
            dir: dir.to_owned(),
            changed,
            _watcher: watcher,
        })
    }

    /// Waits until the files differ from those of a digest.
    pub(super) async fn differ_from(&mut self, digest: Option<Digest>) {
        while digest == Some(self.digest()) {
            // The watcher lives as long as this.
            let _ = self.changed.recv().await;
            sleep(QUIET).await;
            let _ = self.changed.try_recv();
        }
    }

    /// The digest of the files as they are. A file that cannot be read counts as empty; the build reports it.
    pub(super) fn digest(&self) -> Digest {
        let mut paths: Vec<PathBuf> = FILES.iter().map(|file| self.dir.join(file)).collect();
        let mut folders: Vec<PathBuf> = FOLDERS.iter().map(|folder| self.dir.join(folder)).collect();
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
                let path = entry.path();
                let Ok(kind) = entry.file_type() else { continue };
                match kind.is_dir() {
                    true => folders.push(path),
                    false if is_scratch(&path) => {}
                    false => paths.push(path),
                }
            }
        }
        paths.sort();
        let mut hash = Sha256::new();
        for path in paths {
            let content = fs::read(&path).unwrap_or_default();
            for part in [path.as_os_str().as_encoded_bytes(), &content] {
                hash.update((part.len() as u64).to_le_bytes());
                hash.update(part);
            }
        }
        hash.finalize().into()
    }
}

/// Whether a file is an editor's own: a hidden one, or a former version.
fn is_scratch(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.starts_with('.') || name.starts_with('#') || name.ends_with('~')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn changes_of_what_is_built_are_noticed() {
        let dir = tempfile::tempdir().expect("a folder");
        for folder in FOLDERS {
            fs::create_dir(dir.path().join(folder)).expect("a folder");
        }
        let write = |file: &str, text: &str| fs::write(dir.path().join(file), text).expect("a file");
        write("src/lib.rs", "one");
        let mut sources = Sources::watch(dir.path()).expect("it is watched");
        let first = sources.digest();
        for (file, text, is_change) in [
            ("src/.lib.rs.swp", "scratch", false),
            ("src/lib.rs~", "scratch", false),
            ("README.md", "not built", false),
            ("src/lib.rs", "one", false),
            ("src/lib.rs", "two", true),
        ] {
            write(file, text);
            assert_eq!(sources.digest() != first, is_change, "{file}");
        }
        sources.differ_from(Some(first)).await;
        let second = sources.digest();
        // As editors save: another file takes its name; and a folder that is new.
        fs::create_dir(dir.path().join("src/deep")).expect("a folder");
        write("src/deep/new.rs", "three");
        sources.differ_from(Some(second)).await;
        let third = sources.digest();
        write("manifest", "four");
        fs::rename(dir.path().join("manifest"), dir.path().join("Cargo.toml")).expect("a new name");
        sources.differ_from(Some(third)).await;
    }
}
