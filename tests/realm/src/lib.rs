//! What end-to-end tests on real processes share.

use std::{
    fs,
    path::{Path, PathBuf},
    thread::panicking,
};

use tempfile::TempDir;

/// Lines of one process that a failed test prints.
const LINES: usize = 5;

/// Characters of such a line.
const LINE_CHARS: usize = 400;

/// How deep the logs of a realm may be in the folder of its test.
const MAX_DEPTH: usize = 4;

/// A folder of a test. If the test fails, what the processes in it warned of is printed before it is removed: often that
/// is all that is known of a failure on another machine.
pub struct Folder(TempDir);

impl Folder {
    /// Creates an empty one.
    ///
    /// # Panics
    /// When it cannot be created.
    #[must_use]
    pub fn create() -> Self {
        Self(tempfile::tempdir().expect("a folder can be created"))
    }

    /// Its path.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if panicking() {
            println!("{}", last_warnings(self.path()));
        }
    }
}

/// The last warnings and errors in each process log below a folder, a line each.
#[must_use]
pub fn last_warnings(folder: &Path) -> String {
    let mut logs = Vec::new();
    find_logs(folder, MAX_DEPTH, &mut logs);
    logs.sort();
    let mut text = String::new();
    for path in logs {
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        // What a process wrote need not be UTF-8.
        let bytes = fs::read(&path).unwrap_or_else(|error| error.to_string().into_bytes());
        let log = String::from_utf8_lossy(&bytes);
        let warnings: Vec<&str> = log.lines().filter(|line| is_warning(line)).collect();
        for line in &warnings[warnings.len().saturating_sub(LINES)..] {
            let line: String = line.chars().take(LINE_CHARS).collect();
            text.push_str(&format!("log of {name}: {line}\n"));
        }
    }
    text
}

fn is_warning(line: &str) -> bool {
    [" WARN ", " ERROR ", "panicked"].iter().any(|mark| line.contains(mark))
}

/// Adds the files `logs/*.log` below a folder.
fn find_logs(folder: &Path, depth: usize, found: &mut Vec<PathBuf>) {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    for path in entries.map(|entry| entry.path()) {
        let is_log = path.extension().is_some_and(|extension| extension == "log");
        if is_log && folder.ends_with("logs") {
            found.push(path);
        } else if depth > 0 && path.is_dir() && !path.is_symlink() {
            find_logs(&path, depth - 1, found);
        }
    }
}
