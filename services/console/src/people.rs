//! People who may use the console: a file of names, each with a role and a password hash.
//!
//! ```toml
//! [[person]]
//! name = "iris"
//! role = "auditor"
//! password = "$argon2id$..."
//! ```

use std::{
    fmt, fs,
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    str::FromStr,
};

use annals_host::{
    passwords::{self, PasswordError},
    process::random,
};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::sessions::Token;

/// Maximum bytes of a name.
pub const NAME_BYTES: usize = 64;

/// Minimum characters of a password: that many are hard to guess.
pub const PASSWORD_CHARS: usize = 12;

/// Maximum bytes of a password: more adds no security, and has to be hashed.
pub const PASSWORD_BYTES: usize = 1_024;

/// Maximum bytes of the file: some thousands of people.
const FILE_BYTES: u64 = 1 << 20;

/// Role of a person, which determines their rights.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// May ask what happened, and hand out evidence.
    Auditor,
    /// May see how the realm runs, and what entities are and were, but not who their players are, nor trades.
    Operator,
}

/// A person who may log in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Person {
    /// Login name.
    pub name: String,
    pub role: Role,
    /// Password hash, as a PHC string.
    password: String,
}

/// All people in the file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct People {
    #[serde(default)]
    person: Vec<Person>,
}

/// Why the file of people cannot be used.
#[derive(Debug, Error)]
pub enum PeopleError {
    /// The file cannot be read or written.
    #[error("{} cannot be used", path.display())]
    File {
        /// Path of the file.
        path: PathBuf,
        /// Cause.
        #[source]
        source: io::Error,
    },
    /// The content is not valid.
    #[error("{} is not a valid file of persons: {reason}", path.display())]
    Form {
        /// Path of the file.
        path: PathBuf,
        /// Position and cause.
        reason: String,
    },
    /// Not a valid name.
    #[error("a name has 1 to {NAME_BYTES} bytes: letters, digits and .-_@")]
    Name,
    /// Password too short or too long.
    #[error("a password has {PASSWORD_CHARS} characters or more, in at most {PASSWORD_BYTES} bytes")]
    Password,
    /// Hashing failed.
    #[error(transparent)]
    Hash(#[from] PasswordError),
    /// The name is taken.
    #[error("person {0:?} exists already: remove it first")]
    Known(String),
    /// There is no person with this name.
    #[error("unknown person {0:?}")]
    Unknown(String),
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Auditor => "auditor",
            Self::Operator => "operator",
        })
    }
}

impl FromStr for Role {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "auditor" => Ok(Self::Auditor),
            "operator" => Ok(Self::Operator),
            _ => Err("the role must be auditor or operator"),
        }
    }
}

impl People {
    /// Reads a file; a missing file is an empty list.
    ///
    /// # Errors
    /// If it cannot be read or parsed.
    pub fn read(path: &Path) -> Result<Self, PeopleError> {
        let failed = |source| PeopleError::File {
            path: path.to_owned(),
            source,
        };
        let form = |reason: String| PeopleError::Form {
            path: path.to_owned(),
            reason,
        };
        match fs::metadata(path) {
            Ok(about) if about.len() > FILE_BYTES => {
                return Err(form(format!(
                    "the file has more than {FILE_BYTES} \
                bytes"
                )));
            }
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => return Err(failed(error)),
        }
        let text = fs::read_to_string(path).map_err(failed)?;
        let people: Self = toml::from_str(&text).map_err(|error| form(error.to_string()))?;
        for (place, person) in people.person.iter().enumerate() {
            if !passwords::is_hash(&person.password) {
                return Err(form(format!("the password of {:?} is not a valid hash", person.name)));
            }
            if people.person[..place].iter().any(|other| other.name == person.name) {
                return Err(form(format!("{:?} occurs twice", person.name)));
            }
        }
        Ok(people)
    }

    /// Replaces the file atomically; only its owner can read it.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write(&self, path: &Path) -> Result<(), PeopleError> {
        let failed = |source| PeopleError::File {
            path: path.to_owned(),
            source,
        };
        let text = toml::to_string(self).map_err(|error| failed(io::Error::other(error)))?;
        let beside = path.with_extension("new");
        let mut options = fs::OpenOptions::new();
        let options = options.write(true).create(true).truncate(true).mode(0o600);
        let mut file = options.open(&beside).map_err(failed)?;
        file.write_all(text.as_bytes()).map_err(failed)?;
        file.sync_all().map_err(failed)?;
        fs::rename(&beside, path).map_err(failed)
    }

    /// Adds a person.
    ///
    /// # Errors
    /// If the name is taken, or name or password are not valid.
    pub fn add(&mut self, name: &str, role: Role, password: &str) -> Result<(), PeopleError> {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || ".-_@".contains(c);
        if name.is_empty() || name.len() > NAME_BYTES || !name.chars().all(is_plain) {
            return Err(PeopleError::Name);
        }
        if password.chars().count() < PASSWORD_CHARS || password.len() > PASSWORD_BYTES {
            return Err(PeopleError::Password);
        }
        if self.named(name).is_some() {
            return Err(PeopleError::Known(name.to_owned()));
        }
        self.person.push(Person {
            name: name.to_owned(),
            role,
            password: passwords::hash(password)?,
        });
        Ok(())
    }

    /// Adds a person without a password, who can log in by links only.
    ///
    /// # Errors
    /// If the name is taken or not valid.
    pub fn add_without_password(&mut self, name: &str, role: Role) -> Result<(), PeopleError> {
        // Nobody knows what it is the hash of.
        let unknown: [u8; 32] = random();
        self.add(name, role, Token::new(unknown).text())
    }

    /// Removes a person.
    ///
    /// # Errors
    /// If there is no person with this name.
    pub fn remove(&mut self, name: &str) -> Result<(), PeopleError> {
        let before = self.person.len();
        self.person.retain(|person| person.name != name);
        if self.person.len() == before {
            return Err(PeopleError::Unknown(name.to_owned()));
        }
        Ok(())
    }

    /// All people.
    pub fn all(&self) -> impl Iterator<Item = &Person> {
        self.person.iter()
    }

    /// The person with this name.
    #[must_use]
    pub fn named(&self, name: &str) -> Option<&Person> {
        self.person.iter().find(|person| person.name == name)
    }
}

/// Hash to compare a password with; for a missing person, the hash of an unknown secret.
#[must_use]
pub fn hash_of(person: Option<&Person>) -> &str {
    const NOBODY: &str =
        "$argon2id$v=19$m=19456,t=2,p=1$bm9ib2R5IGhhcyB0aGlz$H3WzF9jB7dJkOcfwDmN1iOSmZ0YkN3kL2kJYb3y6q9M";
    person.map_or(NOBODY, |person| &person.password)
}
