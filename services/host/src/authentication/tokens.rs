//! Tokens of an identity provider: JWTs, as of OpenID Connect, checked offline against the provider's public keys.

use std::{
    fs, io,
    os::unix::fs::MetadataExt,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
};

use annals_wire::client::{MAX_NAME_BYTES, Token};
use jsonwebtoken::{
    AlgorithmFamily, DecodingKey, Header, Validation, decode, decode_header,
    errors::Error as TokenError,
    jwk::{Jwk, JwkSet, PublicKeyUse},
};
use serde_json::{Map, Value};
use thiserror::Error;

use super::{file::TokenRules, ring_provider};
use crate::telemetry::Chain;

/// Maximum bytes of the file of keys: some hundred keys.
const MAX_KEYS_BYTES: u64 = 1 << 20;

/// Claims that a token must have.
const REQUIRED: [&str; 3] = ["exp", "iss", "aud"];

/// Why the keys cannot be used.
#[derive(Debug, Error)]
pub enum KeysError {
    #[error("{} cannot be read", path.display())]
    Unreadable {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("{} is not a JWK set: {problem}", path.display())]
    Invalid { path: PathBuf, problem: String },
    #[error("{} has no key for the algorithms that the rules allow", path.display())]
    NoKey { path: PathBuf },
}

/// Why a token is not accepted. For the process log: it names nothing that is secret.
#[derive(Debug, Error)]
pub enum NotVerified {
    #[error("it is signed by an algorithm that the rules do not allow")]
    Algorithm,
    #[error("the keys have none of this id and algorithm")]
    UnknownKey,
    #[error("the claim {0} is no account's name")]
    Name(String),
    #[error(transparent)]
    Token(#[from] TokenError),
}

/// Checks tokens. Clones share the keys.
#[derive(Clone)]
pub struct Tokens {
    rules: Arc<TokenRules>,
    keys: Arc<Mutex<Keys>>,
}

/// The keys, as they were read from their file.
struct Keys {
    keys: Vec<Key>,
    /// The file as it was when it was read last.
    read: FileState,
}

/// What differs between two states of a file, whether it was written or replaced.
#[derive(Clone, Copy, PartialEq, Eq)]
struct FileState {
    inode: u64,
    /// Time of the last change: seconds, and nanoseconds within.
    changed: (i64, i64),
    bytes: u64,
}

struct Key {
    id: Option<String>,
    /// The name of the only algorithm that it is for, if it says one.
    algorithm: Option<String>,
    key: DecodingKey,
}

impl Tokens {
    /// Reads the keys.
    ///
    /// # Errors
    /// When there are none that can be used.
    pub fn open(rules: TokenRules) -> Result<Self, KeysError> {
        ring_provider::install();
        let read = state_of(&rules).map_err(|source| unreadable(&rules, source))?;
        let keys = Keys {
            keys: read_keys(&rules)?,
            read,
        };
        Ok(Self {
            rules: Arc::new(rules),
            keys: Arc::new(Mutex::new(keys)),
        })
    }

    /// The account's name in a token that is valid now. Blocks: it may read the file of keys.
    ///
    /// # Errors
    /// When the token is not valid.
    pub fn verify(&self, token: &Token) -> Result<String, NotVerified> {
        let header = decode_header(&token.0)?;
        if !self.rules.algorithms.contains(&header.alg) {
            return Err(NotVerified::Algorithm);
        }
        let key = self.key(&header).ok_or(NotVerified::UnknownKey)?;
        let mut validation = Validation::new(header.alg);
        validation.leeway = self.rules.clock_skew;
        validation.validate_nbf = true;
        validation.set_issuer(&[&self.rules.issuer]);
        validation.set_audience(&[&self.rules.audience]);
        validation.set_required_spec_claims(&REQUIRED);
        let claims = decode::<Map<String, Value>>(&token.0, &key, &validation)?.claims;
        match claims.get(&self.rules.name) {
            Some(Value::String(name)) if (1..=MAX_NAME_BYTES).contains(&name.len()) => Ok(name.clone()),
            _ => Err(NotVerified::Name(self.rules.name.clone())),
        }
    }

    /// The key of this id, or the only key if the token names none.
    fn key(&self, header: &Header) -> Option<DecodingKey> {
        let mut keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        keys.look(&self.rules);
        let algorithm = format!("{:?}", header.alg);
        let fits = |key: &&Key| key.key.family() == header.alg.family() && key.is_for(&algorithm);
        let mut fitting = keys.keys.iter().filter(fits).filter(|key| match &header.kid {
            Some(id) => key.id.as_ref() == Some(id),
            None => true,
        });
        let found = fitting.next()?;
        // Without an id it must be clear which key is meant.
        (header.kid.is_some() || fitting.next().is_none()).then(|| found.key.clone())
    }
}

impl Key {
    fn is_for(&self, algorithm: &str) -> bool {
        self.algorithm.as_deref().is_none_or(|only| only == algorithm)
    }
}

impl Keys {
    /// Reads the file again if it has changed. A file that cannot be used changes nothing: it may be half written.
    fn look(&mut self, rules: &TokenRules) {
        let Ok(state) = state_of(rules) else { return };
        if self.read == state {
            return;
        }
        self.read = state;
        match read_keys(rules) {
            Ok(keys) => {
                tracing::info!(keys = keys.len(), "read the changed keys for tokens");
                self.keys = keys;
            }
            Err(error) => tracing::warn!(error = %Chain(&error), "the former keys for tokens stay in use"),
        }
    }
}

fn state_of(rules: &TokenRules) -> io::Result<FileState> {
    let about = fs::metadata(&rules.keys)?;
    Ok(FileState {
        inode: about.ino(),
        changed: (about.ctime(), about.ctime_nsec()),
        bytes: about.len(),
    })
}

fn unreadable(rules: &TokenRules, source: io::Error) -> KeysError {
    KeysError::Unreadable {
        path: rules.keys.clone(),
        source,
    }
}

fn read_keys(rules: &TokenRules) -> Result<Vec<Key>, KeysError> {
    let invalid = |problem: String| KeysError::Invalid {
        path: rules.keys.clone(),
        problem,
    };
    let state = state_of(rules).map_err(|source| unreadable(rules, source))?;
    if state.bytes > MAX_KEYS_BYTES {
        let problem = format!("it has {} bytes, and at most {MAX_KEYS_BYTES} are read", state.bytes);
        return Err(invalid(problem));
    }
    let text = fs::read(&rules.keys).map_err(|source| unreadable(rules, source))?;
    let set: JwkSet = serde_json::from_slice(&text).map_err(|error| invalid(error.to_string()))?;
    let keys: Vec<Key> = set.keys.iter().filter_map(|jwk| key_of(rules, jwk)).collect();
    match keys.is_empty() {
        true => Err(KeysError::NoKey {
            path: rules.keys.clone(),
        }),
        false => Ok(keys),
    }
}

/// A key, unless it is for something else: a set may have keys for encryption, or of kinds that are not allowed.
fn key_of(rules: &TokenRules, jwk: &Jwk) -> Option<Key> {
    let is_for_signatures = !matches!(
        jwk.common.public_key_use,
        Some(PublicKeyUse::Encryption | PublicKeyUse::Other(_))
    );
    let key = DecodingKey::from_jwk(jwk).ok()?;
    let family = key.family();
    let is_allowed = family != AlgorithmFamily::Hmac && rules.algorithms.iter().any(|one| one.family() == family);
    (is_for_signatures && is_allowed).then(|| Key {
        id: jwk.common.key_id.clone(),
        algorithm: jwk
            .common
            .key_algorithm
            .as_ref()
            .map(|algorithm| format!("{algorithm:?}")),
        key,
    })
}
