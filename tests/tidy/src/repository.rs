//! The files of this repository: those that git tracks or would track.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Allowed top-level names. Anything else belongs below one of these.
const TOP: &[&str] = &[
    ".ci",
    ".cargo",
    ".config",
    ".gitattributes",
    ".github",
    ".gitignore",
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "Cargo.lock",
    "Cargo.toml",
    "LICENSE",
    "Makefile",
    "README.md",
    "clippy.toml",
    "defs",
    "deny.toml",
    "docs",
    "ops",
    "rust-toolchain.toml",
    "rustfmt.toml",
    "schema",
    "services",
    "tests",
];

/// A file and its contents.
#[derive(Debug, Clone)]
pub struct SourceFile {
    /// Its path from the root, with `/`.
    pub path: String,
    /// Its bytes as text, with invalid UTF-8 replaced.
    pub text: String,
    /// Its size in bytes.
    pub size: u64,
}

impl SourceFile {
    /// A file that is not on disk, for testing a rule.
    pub fn new(path: &str, text: &str) -> Self {
        Self {
            path: path.to_owned(),
            text: text.to_owned(),
            size: text.len() as u64,
        }
    }

    /// Whether its name has this extension.
    pub fn has_extension(&self, extension: &str) -> bool {
        Path::new(&self.path)
            .extension()
            .is_some_and(|found| found == extension)
    }
}

/// The root of the repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .nth(2)
        .expect("invariant: this crate is two folders deep")
        .to_owned()
}

/// Every file that git tracks or would track, without links, ordered by path.
///
/// # Panics
/// If git fails or a file cannot be read.
pub fn files() -> Vec<SourceFile> {
    let root = root();
    let listing = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(&root)
        .output()
        .expect("git lists the files of the repository");
    assert!(
        listing.status.success(),
        "git ls-files: {}",
        String::from_utf8_lossy(&listing.stderr)
    );
    let listing = String::from_utf8(listing.stdout).expect("paths are UTF-8");
    let mut paths: Vec<_> = listing.split_terminator('\0').map(str::to_owned).collect();
    paths.sort();
    paths.dedup();
    paths.into_iter().filter_map(|path| read(&root, path)).collect()
}

/// `None` for deleted files, and for links.
fn read(root: &Path, path: String) -> Option<SourceFile> {
    let full = root.join(&path);
    let size = fs::symlink_metadata(&full).ok().filter(fs::Metadata::is_file)?.len();
    let bytes = fs::read(&full).expect("a listed file can be read");
    Some(SourceFile {
        path,
        text: String::from_utf8_lossy(&bytes).into_owned(),
        size,
    })
}

/// Top-level names that are not allowed.
pub fn stray_at_top<'a>(paths: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut strays: Vec<_> = paths
        .filter_map(|path| path.split('/').next())
        .filter(|top| !TOP.contains(top))
        .map(str::to_owned)
        .collect();
    strays.dedup();
    strays
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unexpected_top_level_entry_is_reported_once() {
        let paths = [
            "Cargo.toml",
            "scripts/a",
            "scripts/b",
            "services/host/Cargo.toml",
            "notes.txt",
        ];
        assert_eq!(stray_at_top(paths.into_iter()), ["scripts", "notes.txt"]);
    }
}
