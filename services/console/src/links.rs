//! One-time sign-in links. Each is a file that is named after the hash of its token. The
//! request that removes the file has used the link, so it works once, and nothing is compared with the token itself.

use std::{
    fs,
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
    time::Duration,
};

use annals_ids::WallTime;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::{
    people::NAME_BYTES,
    sessions::{TOKEN_CHARS, Token},
};

/// How long a link may be used.
pub const LIFETIME: Duration = Duration::from_secs(10 * 60);

/// Maximum links that wait to be used.
const LINKS: usize = 100;

/// Maximum bytes of a link's file: a name in quotes, and a number.
const FILE_BYTES: u64 = NAME_BYTES as u64 + 100;

/// The links of a console.
#[derive(Clone, Debug)]
pub struct Links {
    folder: PathBuf,
}

/// Content of a link's file.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Link {
    /// The person that it signs in.
    name: String,
    /// When it expires, ms since 1970.
    expires: u64,
}

/// Why links cannot be made or used.
#[derive(Debug, Error)]
pub enum LinkError {
    /// A file cannot be read or written.
    #[error("the sign-in links in {} cannot be used", path.display())]
    File {
        /// Path of the file or folder.
        path: PathBuf,
        /// Cause.
        #[source]
        source: io::Error,
    },
    /// Too many links.
    #[error("{LINKS} sign-in links wait to be used, which is the limit: use one, or wait until they have expired")]
    TooMany,
}

impl Links {
    /// The links in a console's folder.
    #[must_use]
    pub fn of(folder: &Path) -> Self {
        Self {
            folder: folder.join("links"),
        }
    }

    /// Makes a link for a person.
    ///
    /// # Errors
    /// If there are too many, or it cannot be stored.
    pub fn make(&self, now: WallTime, name: &str, token: &Token) -> Result<(), LinkError> {
        let folder = &self.folder;
        let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
        made.map_err(|source| self.failed(folder, source))?;
        if self.remove_expired(now)? >= LINKS {
            return Err(LinkError::TooMany);
        }
        let path = self.file(token.text());
        let lifetime = u64::try_from(LIFETIME.as_millis()).unwrap_or(u64::MAX);
        let link = Link {
            name: name.to_owned(),
            expires: now.0.saturating_add(lifetime),
        };
        let text = toml::to_string(&link).map_err(|error| self.failed(&path, io::Error::other(error)))?;
        // Complete before it has its name: a console may read it at any moment.
        let beside = path.with_extension("new");
        let mut options = fs::OpenOptions::new();
        let options = options.write(true).create_new(true).mode(0o600);
        let mut file = options.open(&beside).map_err(|source| self.failed(&beside, source))?;
        file.write_all(text.as_bytes())
            .map_err(|source| self.failed(&beside, source))?;
        fs::rename(&beside, &path).map_err(|source| self.failed(&path, source))
    }

    /// Uses the link of a token: the name of the person that it signs in; `None` if there is no such link, or no more.
    ///
    /// # Errors
    /// If that cannot be determined.
    pub fn take(&self, now: WallTime, token: &str) -> Result<Option<String>, LinkError> {
        if token.len() != TOKEN_CHARS {
            return Ok(None);
        }
        let path = self.file(token);
        let Some(link) = self.read(&path)? else {
            return Ok(None);
        };
        // Of all who have read it, one removes it.
        match fs::remove_file(&path) {
            Ok(()) => Ok((now.0 < link.expires).then_some(link.name)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(self.failed(&path, source)),
        }
    }

    /// Removes links that have expired, and returns the number of the others.
    fn remove_expired(&self, now: WallTime) -> Result<usize, LinkError> {
        let mut left = 0;
        let entries = fs::read_dir(&self.folder).map_err(|source| self.failed(&self.folder, source))?;
        for entry in entries {
            let path = entry.map_err(|source| self.failed(&self.folder, source))?.path();
            match self.read(&path)? {
                Some(link) if now.0 >= link.expires => {
                    fs::remove_file(&path).map_err(|source| self.failed(&path, source))?;
                }
                Some(_) => left += 1,
                None => {}
            }
        }
        Ok(left)
    }

    /// Reads a link; `None` if there is no such file, or it is no link.
    fn read(&self, path: &Path) -> Result<Option<Link>, LinkError> {
        match fs::metadata(path) {
            Ok(about) if about.len() > FILE_BYTES => return Ok(None),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(self.failed(path, source)),
        }
        match fs::read_to_string(path) {
            Ok(text) => Ok(toml::from_str(&text).ok()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(self.failed(path, source)),
        }
    }

    fn file(&self, token: &str) -> PathBuf {
        self.folder.join(Token::key(token).to_string())
    }

    fn failed(&self, path: &Path, source: io::Error) -> LinkError {
        LinkError::File {
            path: path.to_owned(),
            source,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: WallTime = WallTime(1_000_000);

    fn at(since: Duration) -> WallTime {
        WallTime(NOW.0 + u64::try_from(since.as_millis()).expect("a time"))
    }

    fn token(number: u8) -> Token {
        Token::new([number; 32])
    }

    #[test]
    fn a_link_works_once_and_for_a_short_time() {
        let folder = tempfile::tempdir().expect("a folder");
        let links = Links::of(folder.path());
        links.make(NOW, "otto", &token(1)).expect("made");
        links.make(NOW, "otto", &token(2)).expect("made");
        let taken = |at, token: &str| links.take(at, token).expect("readable");
        assert_eq!(taken(NOW, token(3).text()), None, "unknown");
        for other in ["", "../people.toml", &token(1).text()[1..]] {
            assert_eq!(taken(NOW, other), None, "{other:?}");
        }
        let just = at(LIFETIME - Duration::from_millis(1));
        assert_eq!(taken(just, token(1).text()).as_deref(), Some("otto"));
        assert_eq!(taken(just, token(1).text()), None, "it was used");
        assert_eq!(taken(at(LIFETIME), token(2).text()), None, "it has expired");
        assert_eq!(taken(NOW, token(2).text()), None, "and was removed");
    }

    #[test]
    fn a_stored_link_does_not_reveal_its_token() {
        let folder = tempfile::tempdir().expect("a folder");
        let links = Links::of(folder.path());
        links.make(NOW, "otto", &token(1)).expect("made");
        let kept: Vec<PathBuf> = fs::read_dir(&links.folder)
            .expect("a folder")
            .map(|entry| entry.expect("an entry").path())
            .collect();
        assert_eq!(kept.len(), 1);
        let text = fs::read_to_string(&kept[0]).expect("text");
        assert!(!kept[0].ends_with(token(1).text()) && !text.contains(token(1).text()));
    }

    #[test]
    fn links_are_limited_and_expired_ones_are_removed() {
        let folder = tempfile::tempdir().expect("a folder");
        let links = Links::of(folder.path());
        for number in 0..LINKS {
            let number = u8::try_from(number).expect("few");
            links.make(NOW, "otto", &token(number)).expect("made");
        }
        let more = token(200);
        assert!(matches!(links.make(NOW, "otto", &more), Err(LinkError::TooMany)));
        links
            .make(at(LIFETIME), "otto", &more)
            .expect("the others have expired");
        assert_eq!(fs::read_dir(&links.folder).expect("a folder").count(), 1);
    }
}
