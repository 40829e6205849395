//! How players are authenticated: by the realm's own passwords, by a service on NATS, or by the tokens of an identity
//! provider. This decides who a client is. Whether that account exists, and may play, is for the login service.

mod file;
mod ring_provider;
mod service;
mod tokens;

use thiserror::Error;

pub use file::TokenFileError;
pub use service::{MAX_ANSWER_BYTES, SERVICE_TIMEOUT};
pub use tokens::{KeysError, NotVerified, Tokens};

pub(crate) use service::{Answered, Question, ask};

use crate::config::Authentication;

/// How the clients of a login process are authenticated.
pub enum Authenticator {
    /// By the passwords in the realm's store.
    BuiltIn,
    /// By a service that answers requests on this subject.
    Service(String),
    /// By tokens.
    Tokens(Tokens),
}

/// Why clients cannot be authenticated.
#[derive(Debug, Error)]
pub enum AuthenticationError {
    #[error(transparent)]
    File(#[from] TokenFileError),
    #[error("the keys for tokens cannot be used")]
    Keys(#[from] KeysError),
}

impl Authenticator {
    /// Reads the files that the setting names.
    ///
    /// # Errors
    /// When a file has errors: all of them are named.
    pub fn open(setting: &Authentication) -> Result<Self, AuthenticationError> {
        Ok(match setting {
            Authentication::BuiltIn => Self::BuiltIn,
            Authentication::Service(subject) => Self::Service(subject.clone()),
            Authentication::Tokens(path) => Self::Tokens(Tokens::open(file::read(path)?)?),
        })
    }
}
