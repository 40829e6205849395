//! Hashing and comparing passwords in reused memory.
//!
//! Argon2 fills 19 MiB for each password, on purpose. When many threads allocate and free that much in turn, an
//! allocator keeps it: hundreds of MB after some hundred log-ins. So there are only as many buffers as passwords are
//! hashed at once, each created when it is first needed.

use std::sync::{Arc, Mutex, PoisonError};

use argon2::{
    Algorithm, Argon2, Block, Params, Version,
    password_hash::{Error, Output, ParamsString, PasswordHash, Salt, SaltString},
};
use thiserror::Error;
use tokio::sync::Semaphore;

use crate::process::random;

/// Maximum passwords hashed at a time. Each takes 19 MiB and about 20 ms of a core.
pub const HASHED_AT_ONCE: usize = 2;

/// Maximum passwords that wait: about a second's work. A longer queue would serve no client.
pub const MAX_WAITING: usize = 64;

/// Maximum memory that a stored hash may ask for, in blocks of 1 KiB: 256 MiB. Ours ask for 19 MiB; others may come
/// from a file that people edit.
const MAX_BLOCKS: usize = 256 << 10;

/// Maximum bytes of a salt: as many as the library decodes.
const SALT_BYTES: usize = 64;

/// Why a password was neither hashed nor compared.
#[derive(Debug, Error)]
pub enum PasswordError {
    /// A stored hash cannot be parsed.
    #[error("a stored password hash is damaged: {0}")]
    Damaged(Error),
    /// A stored hash asks for more memory than is allowed.
    #[error(
        "a stored password hash asks for {asked} KiB of memory, and at most {MAX_BLOCKS} KiB are used; store one that \
         asks for less"
    )]
    TooLarge {
        /// The amount, KiB.
        asked: usize,
    },
    /// No hash could be made.
    #[error("the password could not be hashed: {0}")]
    Hash(Error),
    /// Too many passwords wait.
    #[error("{MAX_WAITING} passwords wait to be compared; try again in a moment")]
    Crowded,
    /// The thread panicked, or the process ends.
    #[error("the comparison was cancelled")]
    BrokenOff,
}

/// Hashes and compares passwords, [`HASHED_AT_ONCE`] at a time, in order of arrival.
#[derive(Clone, Debug)]
pub struct Passwords {
    /// Permits for passwords that are hashed or wait.
    places: Arc<Semaphore>,
    turns: Arc<Semaphore>,
    /// Free buffers: each is taken with a turn, so there are no more than turns.
    buffers: Arc<Mutex<Vec<Buffer>>>,
}

impl Default for Passwords {
    fn default() -> Self {
        Self {
            places: Arc::new(Semaphore::new(HASHED_AT_ONCE + MAX_WAITING)),
            turns: Arc::new(Semaphore::new(HASHED_AT_ONCE)),
            buffers: Arc::default(),
        }
    }
}

impl Passwords {
    /// The hash of a password, as a PHC string.
    ///
    /// # Errors
    /// When it could not be made, or too many wait.
    pub async fn hash(&self, password: String) -> Result<String, PasswordError> {
        self.with_buffer(move |buffer| buffer.hash(&password)).await
    }

    /// Whether a password matches a hash.
    ///
    /// # Errors
    /// When the hash is damaged or asks for too much memory, or too many wait.
    pub async fn fits(&self, password: String, hash: String) -> Result<bool, PasswordError> {
        self.with_buffer(move |buffer| buffer.fits(&password, &hash)).await
    }

    async fn with_buffer<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Buffer) -> Result<T, PasswordError> + Send + 'static,
    ) -> Result<T, PasswordError> {
        let _place = self.places.try_acquire().map_err(|_| PasswordError::Crowded)?;
        let turn = Arc::clone(&self.turns).acquire_owned().await;
        let turn = turn.map_err(|_| PasswordError::BrokenOff)?;
        let buffers = Arc::clone(&self.buffers);
        let working = tokio::task::spawn_blocking(move || {
            let kept = |buffers: &Mutex<Vec<Buffer>>| buffers.lock().unwrap_or_else(PoisonError::into_inner).pop();
            let mut buffer = kept(&buffers).unwrap_or_default();
            let done = work(&mut buffer);
            buffers.lock().unwrap_or_else(PoisonError::into_inner).push(buffer);
            drop(turn);
            done
        });
        working.await.map_err(|_| PasswordError::BrokenOff)?
    }
}

/// The hash of one password, for a program that hashes no other.
///
/// # Errors
/// When it could not be made.
pub fn hash(password: &str) -> Result<String, PasswordError> {
    Buffer::default().hash(password)
}

/// Whether a text is a hash in the form of a PHC string.
#[must_use]
pub fn is_hash(text: &str) -> bool {
    PasswordHash::new(text).is_ok()
}

/// The memory of one comparison.
#[derive(Debug, Default)]
struct Buffer(Vec<Block>);

impl Buffer {
    fn hash(&mut self, password: &str) -> Result<String, PasswordError> {
        let salt = SaltString::encode_b64(&random::<16>()).map_err(PasswordError::Hash)?;
        let (algorithm, version, params) = (Algorithm::default(), Version::default(), Params::default());
        let output = self
            .fill(password, salt.as_salt(), (algorithm, version, &params))
            .map_err(PasswordError::Hash)?;
        let hash = PasswordHash {
            algorithm: algorithm.ident(),
            version: Some(version.into()),
            params: ParamsString::try_from(&params).map_err(PasswordError::Hash)?,
            salt: Some(salt.as_salt()),
            hash: Some(output),
        };
        Ok(hash.to_string())
    }

    fn fits(&mut self, password: &str, hash: &str) -> Result<bool, PasswordError> {
        let stored = PasswordHash::new(hash).map_err(PasswordError::Damaged)?;
        let algorithm = Algorithm::try_from(stored.algorithm).map_err(PasswordError::Damaged)?;
        let version = stored.version.map(Version::try_from).transpose();
        let version = version.map_err(|error| PasswordError::Damaged(error.into()))?;
        let params = Params::try_from(&stored).map_err(PasswordError::Damaged)?;
        let (Some(salt), Some(expected)) = (stored.salt, stored.hash) else {
            return Err(PasswordError::Damaged(Error::PhcStringField));
        };
        if params.block_count() > MAX_BLOCKS {
            let asked = params.block_count();
            return Err(PasswordError::TooLarge { asked });
        }
        let found = self.fill(password, salt, (algorithm, version.unwrap_or_default(), &params));
        // Outputs are compared in constant time.
        Ok(found.map_err(PasswordError::Damaged)? == expected)
    }

    /// Computes the hash of a password and a salt.
    fn fill(
        &mut self,
        password: &str,
        salt: Salt<'_>,
        (algorithm, version, params): (Algorithm, Version, &Params),
    ) -> Result<Output, Error> {
        let mut decoded = [0; SALT_BYTES];
        let salt = salt.decode_b64(&mut decoded)?;
        let argon2 = Argon2::new(algorithm, version, params.clone());
        let (blocks, ours) = (params.block_count(), Params::default().block_count());
        // Buffers larger than ours are not kept.
        let mut larger = Vec::new();
        let memory = if blocks <= ours {
            self.0.resize(ours, Block::default());
            &mut self.0
        } else {
            larger.resize(blocks, Block::default());
            &mut larger
        };
        let length = params.output_len().unwrap_or(Params::DEFAULT_OUTPUT_LEN);
        Output::init_with(length, |out| {
            argon2.hash_password_into_with_memory(password.as_bytes(), salt, out, memory)?;
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests {
    use argon2::{PasswordHasher, PasswordVerifier};

    use super::*;

    #[test]
    fn hashes_are_those_of_the_library() {
        let mut buffer = Buffer::default();
        for text in [
            "",
            "secret",
            "ünïcode and longer than a block of the hash function takes at once, twice over, or more",
        ] {
            let ours = buffer.hash(text).unwrap();
            let parsed = PasswordHash::new(&ours).unwrap();
            assert!(Argon2::default().verify_password(text.as_bytes(), &parsed).is_ok());
            assert!(buffer.fits(text, &ours).unwrap() && !buffer.fits("another", &ours).unwrap());
        }
    }

    #[test]
    fn stored_hashes_may_have_other_parameters() {
        let mut buffer = Buffer::default();
        let salt = SaltString::encode_b64(&[7; 16]).unwrap();
        let larger = Params::DEFAULT_M_COST + 1_024;
        for (algorithm, version, (memory, rounds, lanes, length)) in [
            (Algorithm::Argon2id, Version::V0x13, (64, 1, 2, None)),
            (Algorithm::Argon2i, Version::V0x10, (256, 3, 1, Some(20))),
            (Algorithm::Argon2d, Version::V0x13, (larger, 1, 1, Some(64))),
        ] {
            let params = Params::new(memory, rounds, lanes, length).unwrap();
            let hash = Argon2::new(algorithm, version, params)
                .hash_password(b"secret", &salt)
                .unwrap()
                .to_string();
            assert!(buffer.fits("secret", &hash).unwrap(), "{hash}");
            assert!(!buffer.fits("Secret", &hash).unwrap(), "{hash}");
            assert!(buffer.0.len() <= Params::default().block_count(), "{hash}");
        }
    }

    #[test]
    fn invalid_and_oversized_hashes_are_reported() {
        let mut buffer = Buffer::default();
        let good = buffer.hash("secret").unwrap();
        for damaged in [
            "",
            "secret",
            "$argon2id$v=19$m=19456,t=2,p=1",
            &good.replace("argon2id", "scrypt"),
            &good[..40],
        ] {
            assert!(
                matches!(buffer.fits("secret", damaged), Err(PasswordError::Damaged(_))),
                "{damaged}"
            );
        }
        let greedy = good.replace("m=19456", "m=4194304");
        let error = buffer.fits("secret", &greedy).unwrap_err();
        assert!(matches!(error, PasswordError::TooLarge { asked: 4_194_304 }), "{error}");
        assert!(error.to_string().contains("store one that asks for less"), "{error}");
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn buffers_never_exceed_turns() {
        let passwords = Passwords::default();
        let hash = passwords.hash("secret".to_owned()).await.unwrap();
        let asking: Vec<_> = (0..12)
            .map(|n| {
                let (passwords, hash) = (passwords.clone(), hash.clone());
                let text = if n % 3 == 0 { "secret" } else { "wrong" };
                tokio::spawn(async move { passwords.fits(text.to_owned(), hash).await.unwrap() })
            })
            .collect();
        for (n, asked) in asking.into_iter().enumerate() {
            assert_eq!(asked.await.unwrap(), n % 3 == 0);
        }
        let many = (0..HASHED_AT_ONCE + MAX_WAITING + 3).map(|_| passwords.fits("secret".to_owned(), hash.clone()));
        let many = futures::future::join_all(many).await;
        let crowded = many.iter().filter(|fits| matches!(fits, Err(PasswordError::Crowded)));
        assert_eq!(crowded.count(), 3, "what cannot wait is refused at once");
        let buffers = passwords.buffers.lock().unwrap();
        assert!((1..=HASHED_AT_ONCE).contains(&buffers.len()), "{}", buffers.len());
    }
}
