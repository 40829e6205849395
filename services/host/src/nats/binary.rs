//! Finds the `nats-server` program for servers that we run ourselves.

use std::env;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{MINIMUM, Version};

/// Names the program; no other is tried then.
const VARIABLE: &str = "ANNALS_NATS_SERVER";

/// Path of the pinned program that `make setup` installs, below the working tree.
const PRIVATE: &str = "target/tools/nats-server";

const PROGRAM: &str = "nats-server";

/// A program that was examined and rejected.
#[derive(Debug)]
pub struct Candidate {
    pub path: PathBuf,
    /// Its version, or why it is unknown.
    pub version: Result<Version, String>,
}

impl fmt::Display for Candidate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.version {
            Ok(version) => write!(f, "{} is {version}", self.path.display()),
            Err(reason) => write!(f, "{} does not run: {reason}", self.path.display()),
        }
    }
}

/// No usable nats-server was found.
#[derive(Debug, thiserror::Error)]
pub enum BinaryError {
    /// `ANNALS_NATS_SERVER` names a program that is too old or does not run.
    #[error("ANNALS_NATS_SERVER names no nats-server of at least {MINIMUM}: {0}; name another, or unset it")]
    Named(Candidate),
    /// No program that was found is new enough.
    #[error("no nats-server of at least {MINIMUM} ({}); run `make setup`, or install one from its official release page", listed(.0))]
    NotFound(Vec<Candidate>),
}

/// The program to run: the one named by `ANNALS_NATS_SERVER`; else the first that is new enough of the private one
/// (searched upward from the working directory and from this executable) and the one on PATH. Blocks while it asks each
/// for its version.
///
/// # Errors
/// When there is none; the error lists what was found instead.
pub fn find_binary() -> Result<PathBuf, BinaryError> {
    if let Some(named) = env::var_os(VARIABLE) {
        let candidate = examine(PathBuf::from(named), ask_version);
        return if usable(&candidate) {
            Ok(candidate.path)
        } else {
            Err(BinaryError::Named(candidate))
        };
    }
    let starts = [env::current_dir().ok(), env::current_exe().ok()];
    let path = env::var_os("PATH").unwrap_or_default();
    let on_path = env::split_paths(&path).map(|folder| folder.join(PROGRAM));
    choose(
        private(starts.iter().flatten())
            .chain(on_path)
            .filter(|path| path.is_file()),
        ask_version,
    )
}

/// The first usable one, by the version that `ask` returns.
fn choose(
    paths: impl Iterator<Item = PathBuf>,
    ask: impl Fn(&Path) -> io::Result<Version>,
) -> Result<PathBuf, BinaryError> {
    let mut refused = Vec::new();
    for path in paths {
        let candidate = examine(path, &ask);
        if usable(&candidate) {
            return Ok(candidate.path);
        }
        refused.push(candidate);
    }
    Err(BinaryError::NotFound(refused))
}

fn private<'a>(starts: impl Iterator<Item = &'a PathBuf>) -> impl Iterator<Item = PathBuf> {
    starts
        .flat_map(|start| start.ancestors())
        .map(|folder| folder.join(PRIVATE))
}

fn usable(candidate: &Candidate) -> bool {
    matches!(candidate.version, Ok(version) if version >= MINIMUM)
}

fn examine(path: PathBuf, ask: impl Fn(&Path) -> io::Result<Version>) -> Candidate {
    let version = ask(&path).map_err(|error| error.to_string());
    Candidate { path, version }
}

/// Parses `nats-server: v2.15.1`.
fn ask_version(path: &Path) -> io::Result<Version> {
    let output = Command::new(path).arg("--version").output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let last = text.split_whitespace().last().unwrap_or_default();
    last.parse()
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

fn listed(candidates: &[Candidate]) -> String {
    if candidates.is_empty() {
        return "none was found".to_owned();
    }
    candidates
        .iter()
        .map(Candidate::to_string)
        .collect::<Vec<_>>()
        .join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The version of each path.
    fn ask(path: &Path) -> io::Result<Version> {
        let answer = match path.to_str() {
            Some("/old") => "2.9.10",
            Some("/new") => "2.15.1",
            Some("/newer") => "2.16.0",
            _ => return Err(io::Error::other("exec format error")),
        };
        answer.parse().map_err(io::Error::other)
    }

    fn choice(paths: &[&str]) -> Result<PathBuf, BinaryError> {
        choose(paths.iter().map(PathBuf::from), ask)
    }

    #[test]
    fn the_first_that_is_new_enough_is_taken() {
        assert_eq!(choice(&["/odd", "/old", "/new", "/newer"]).unwrap(), Path::new("/new"));
    }

    #[test]
    fn rejected_binaries_are_named() {
        let text = choice(&["/old", "/odd"]).unwrap_err().to_string();
        assert!(text.contains("/old is 2.9.10"), "{text}");
        assert!(text.contains("/odd does not run: exec format error"), "{text}");
        assert!(text.contains("2.15.1") && text.contains("make setup"), "{text}");
        let text = choice(&[]).unwrap_err().to_string();
        assert!(text.contains("none was found"), "{text}");
    }

    #[test]
    fn the_private_binary_is_searched_upward() {
        let start = PathBuf::from("/a/b");
        let found: Vec<_> = private([start].iter()).collect();
        assert_eq!(found[0], Path::new("/a/b/target/tools/nats-server"));
        assert_eq!(found[1], Path::new("/a/target/tools/nats-server"));
    }
}
