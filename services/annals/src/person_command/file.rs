//! The file in which keys are kept separately: one JSON object per line; the first gives the format and the number of
//! the others.

use std::{
    collections::BTreeMap,
    fs::{File, OpenOptions},
    io::{self, BufRead, BufReader, BufWriter, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use annals_db::personal::Person;
use annals_ids::{DatabaseId, Hash, LeafIndex};
use annals_personal::PersonalKey;
use annals_store::layout::personal::{Forgotten, TEXT_LIMIT};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The format in the first line.
const FORM: &str = "annals persons v1";

/// Maximum length of a line, in bytes: two texts, each byte of which is escaped, and numbers.
const LINE_LIMIT: usize = 2 * 6 * TEXT_LIMIT + 512;

/// Why a key file cannot be used.
#[derive(Debug, Error)]
pub(super) enum KeyFileError {
    #[error("{} cannot be written; existing files are not overwritten", path.display())]
    Write {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("{} cannot be read", path.display())]
    Read {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("line {line} of {}: {what}", path.display())]
    Malformed { path: PathBuf, line: usize, what: String },
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Head {
    form: String,
    persons: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    person: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    forgotten: Option<Since>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Since {
    at: u64,
    leaves: u64,
    by: String,
    reason: String,
}

/// Writes a new file, readable only by its owner. It is synced to disk on return.
pub(super) fn write(path: &Path, persons: &BTreeMap<DatabaseId, Person>) -> Result<(), KeyFileError> {
    let failed = |source| KeyFileError::Write {
        path: path.to_owned(),
        source,
    };
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    let mut out = BufWriter::new(file.map_err(failed)?);
    put(&mut out, persons).map_err(failed)?;
    let file = out.into_inner().map_err(|error| failed(error.into_error()))?;
    file.sync_all().map_err(failed)
}

fn put(out: &mut impl Write, persons: &BTreeMap<DatabaseId, Person>) -> io::Result<()> {
    let head = Head {
        form: FORM.to_owned(),
        persons: persons.len() as u64,
    };
    writeln!(out, "{}", serde_json::to_string(&head)?)?;
    for (person, known) in persons {
        let (key, forgotten) = match known {
            Person::Unknown => (None, None),
            Person::Known(key) => (Some(Hash(*key.bytes()).to_string()), None),
            Person::Forgotten(forgotten) => (None, Some(Since::of(forgotten))),
        };
        let line = Line {
            person: person.0,
            key,
            forgotten,
        };
        writeln!(out, "{}", serde_json::to_string(&line)?)?;
    }
    out.flush()
}

/// Reads a key file, all of it or nothing.
pub(super) fn read(path: &Path) -> Result<BTreeMap<DatabaseId, Person>, KeyFileError> {
    let failed = |source| KeyFileError::Read {
        path: path.to_owned(),
        source,
    };
    let malformed = |line: usize, what: &str| KeyFileError::Malformed {
        path: path.to_owned(),
        line,
        what: what.to_owned(),
    };
    let mut file = BufReader::new(File::open(path).map_err(failed)?);
    let mut number = 0;
    let mut next = || {
        number += 1;
        let mut bytes = Vec::new();
        let read = io::Read::take(&mut file, LINE_LIMIT as u64).read_until(b'\n', &mut bytes);
        read.map_err(failed)?;
        match bytes.pop() {
            None => Ok((number, None)),
            Some(b'\n') => Ok((number, Some(bytes))),
            Some(_) => Err(malformed(number, "the line is too long, or was truncated")),
        }
    };
    let (_, head) = next()?;
    let head = head.and_then(|bytes| serde_json::from_slice::<Head>(&bytes).ok());
    let head = head.filter(|head| head.form == FORM);
    let head = head.ok_or_else(|| malformed(1, &format!("expected the file format {FORM}")))?;
    let mut persons = BTreeMap::new();
    loop {
        let (number, line) = next()?;
        let Some(line) = line else { break };
        let line: Line = serde_json::from_slice(&line).map_err(|error| malformed(number, &error.to_string()))?;
        let (person, known) = line.person().ok_or_else(|| {
            malformed(
                number,
                "expected a key of 64 hexadecimal digits, or the time at which the person was forgotten",
            )
        })?;
        if persons.insert(person, known).is_some() {
            return Err(malformed(number, "this person occurs twice"));
        }
    }
    if persons.len() as u64 != head.persons {
        let what = format!(
            "the header says {} persons, and the file has {}",
            head.persons,
            persons.len()
        );
        return Err(malformed(1, &what));
    }
    Ok(persons)
}

impl Line {
    fn person(self) -> Option<(DatabaseId, Person)> {
        let known = match (self.key, self.forgotten) {
            (Some(key), None) => Person::Known(PersonalKey::new(key.parse::<Hash>().ok()?.0)),
            (None, Some(since)) => Person::Forgotten(since.forgotten()?),
            _ => return None,
        };
        Some((DatabaseId(self.person), known))
    }
}

impl Since {
    fn of(forgotten: &Forgotten) -> Self {
        let Forgotten { at, leaves, by, reason } = forgotten.clone();
        Self {
            at,
            leaves: leaves.0,
            by,
            reason,
        }
    }

    fn forgotten(self) -> Option<Forgotten> {
        let fits = self.by.len() <= TEXT_LIMIT && self.reason.len() <= TEXT_LIMIT;
        fits.then_some(Forgotten {
            at: self.at,
            leaves: LeafIndex(self.leaves),
            by: self.by,
            reason: self.reason,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn person_files_round_trip_and_others_are_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("persons");
        let forgotten = Forgotten {
            at: 7,
            leaves: LeafIndex(8),
            by: "olga \"o\"\n".into(),
            reason: "asked".into(),
        };
        let persons = BTreeMap::from([
            (DatabaseId(1), Person::Known(PersonalKey::new([0xab; 32]))),
            (DatabaseId(u64::MAX), Person::Forgotten(forgotten)),
        ]);
        write(&path, &persons).expect("written");
        assert_eq!(read(&path).expect("read"), persons);
        assert!(
            matches!(write(&path, &persons), Err(KeyFileError::Write { .. })),
            "it is there"
        );
        let mode = std::os::unix::fs::PermissionsExt::mode(&path.metadata().expect("there").permissions());
        assert_eq!(mode & 0o777, 0o600);

        let whole = std::fs::read(&path).expect("read");
        let spoilt = folder.path().join("spoilt");
        for end in 0..whole.len() {
            std::fs::write(&spoilt, &whole[..end]).expect("written");
            assert!(read(&spoilt).is_err(), "cut off at {end}");
        }
        let text = String::from_utf8(whole).expect("text");
        for (from, to) in [
            ("persons v1", "persons v2"),
            ("ab", "zz"),
            ("\"at\":7", "\"at\":-7"),
            ("\"person\":1,", ""),
        ] {
            std::fs::write(&spoilt, text.replacen(from, to, 1)).expect("written");
            assert!(read(&spoilt).is_err(), "{from} -> {to}");
        }
    }
}
