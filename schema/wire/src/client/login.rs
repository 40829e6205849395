//! The log-in connection: one request, and one answer, before which the client may be sent its position in the queue.

use std::{fmt, net::SocketAddr};

use annals_event::{Malformed, Reader, put_bytes, put_number};
use annals_ids::{Epoch, Hash, OwnerId, SessionId};
use thiserror::Error;

use super::{
    Ban, Secret,
    fields::{put_address, put_certificate, take_address, take_certificate, take_reason, take_secret, take_text},
};

/// Maximum length of an account's name (bytes).
pub const MAX_NAME_BYTES: usize = 255;

/// Maximum length of a password (bytes). The login service's hashing cost grows with each byte.
pub const MAX_PASSWORD_BYTES: usize = 255;

/// Maximum length of a token (bytes): those of identity providers have some kilobytes.
pub const MAX_TOKEN_BYTES: usize = 8 << 10;

/// A token that an identity provider has issued: a JWT. It is not printed, to keep it out of logs.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(pub String);

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(..)")
    }
}

/// A password. It is not printed, to keep it out of logs.
#[derive(Clone, PartialEq, Eq)]
pub struct Password(pub String);

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password(..)")
    }
}

/// What a client shows to be admitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Credentials {
    /// The account's name and password.
    Password { name: String, password: Password },
    /// A token, which names the account.
    Token(Token),
    /// Name and password of an account that is to be created.
    Registration { name: String, password: Password },
}

impl Credentials {
    /// Name and password of an account.
    #[must_use]
    pub fn password(name: impl Into<String>, password: impl Into<String>) -> Self {
        Self::Password {
            name: name.into(),
            password: Password(password.into()),
        }
    }

    /// The account's name, if the client gives one.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        match self {
            Self::Password { name, .. } | Self::Registration { name, .. } => Some(name),
            Self::Token(_) => None,
        }
    }
}

/// A request to the login service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoginRequest {
    /// Open a session.
    LogIn {
        /// The version of the protocol that the client speaks.
        protocol: Hash,
        credentials: Credentials,
    },
    /// Asks where the base of a session is held now.
    Locate {
        /// The base's owner, from the ticket.
        owner: OwnerId,
        session: SessionId,
    },
}

/// An answer of the login service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoginAnswer {
    /// The session is open; its base expects the client.
    Ticket(Ticket),
    /// The location of the base.
    Located(Located),
    /// The request was refused.
    Refused(LoginRefusal),
    /// The account is banned; the password is right.
    Banned(Ban),
    /// The realm is full, and the client waits in the queue. More of these may follow, and then another answer.
    Queued(Queued),
}

/// A client's place in the queue of its login process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Queued {
    /// 1 for the client that is admitted next.
    pub position: u64,
    /// Number of places in the queue.
    pub length: u64,
}

/// Permission to connect to a base, once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ticket {
    /// The session that was opened.
    pub session: SessionId,
    /// Presented to the base in [`super::Hello`].
    pub secret: Secret,
    /// The location of the base.
    pub base: Located,
}

/// The location of the base of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Located {
    /// The base's owner; it stays the same for the session's lifetime.
    pub owner: OwnerId,
    /// The epoch. A client does not accept a base of a lower one.
    pub epoch: Epoch,
    /// The address on which its holder listens.
    pub address: SocketAddr,
    /// SHA-256 of the certificate (DER) that it will present; `None` if it is signed by an authority that the client
    /// trusts.
    pub certificate: Option<Hash>,
}

impl Located {
    /// Appends it, without a kind.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        put_number(out, self.owner.0.into());
        put_number(out, self.epoch.0);
        put_address(out, self.address);
        put_certificate(out, self.certificate);
    }

    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Self {
            owner: OwnerId(reader.narrow("owner")?),
            epoch: Epoch(reader.number("epoch")?),
            address: take_address(reader)?,
            certificate: take_certificate(reader)?,
        })
    }
}

/// Why the login service refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Error)]
pub enum LoginRefusal {
    /// Name and password do not match; which of them is wrong is not revealed.
    #[error("the name or the password is wrong")]
    WrongPassword,
    /// Too many attempts.
    #[error("too many attempts; wait a minute")]
    Throttled,
    /// There is no capacity, or a service behind this one does not answer.
    #[error("the realm is busy; try again in a moment")]
    Busy,
    /// The client speaks another version of the protocol.
    #[error("the client speaks another version of the protocol; update it")]
    WrongProtocol,
    /// No process holds the base at this moment.
    #[error("the base is being taken over; ask again in a moment")]
    NotHeld,
    /// There is no such owner, or no such session.
    #[error("the session is unknown; log in again")]
    UnknownSession,
    /// The realm is shutting down.
    #[error("the realm is shutting down")]
    ShuttingDown,
    /// There is no account of this name, and there cannot be: it has a control character, or is reserved.
    #[error("no account can have this name; choose another one")]
    UnfitName,
    /// The account has a client, and the realm refuses a second log-in.
    #[error("the account is logged in elsewhere, and the realm admits no second client; leave there first")]
    LoggedIn,
    /// The token is not one for this realm, or has expired.
    #[error("the token is invalid or has expired; get a new one")]
    WrongToken,
    /// The realm takes passwords and was shown a token, or the other way round.
    #[error("the realm takes other credentials; see how accounts log in there")]
    OtherCredentials,
    /// The client registers, and an account of this name exists.
    #[error("the name is taken; choose another one")]
    NameTaken,
    /// The client registers, and the realm takes no registrations.
    #[error("the realm takes no registrations")]
    NoRegistration,
    /// The credentials are right, and there is no account for them: an operator has to create it.
    #[error("there is no account of this name in the realm; ask its operators for one")]
    NoAccount,
}

impl LoginRefusal {
    /// Every reason, in the order of the codes, from 0.
    pub const ALL: [LoginRefusal; 14] = [
        Self::WrongPassword,
        Self::Throttled,
        Self::Busy,
        Self::WrongProtocol,
        Self::NotHeld,
        Self::UnknownSession,
        Self::ShuttingDown,
        Self::UnfitName,
        Self::LoggedIn,
        Self::WrongToken,
        Self::OtherCredentials,
        Self::NameTaken,
        Self::NoRegistration,
        Self::NoAccount,
    ];

    fn code(self) -> u8 {
        match self {
            Self::WrongPassword => 0,
            Self::Throttled => 1,
            Self::Busy => 2,
            Self::WrongProtocol => 3,
            Self::NotHeld => 4,
            Self::UnknownSession => 5,
            Self::ShuttingDown => 6,
            Self::UnfitName => 7,
            Self::LoggedIn => 8,
            Self::WrongToken => 9,
            Self::OtherCredentials => 10,
            Self::NameTaken => 11,
            Self::NoRegistration => 12,
            Self::NoAccount => 13,
        }
    }

    fn from_code(code: u8) -> Option<Self> {
        Self::ALL.get(usize::from(code)).copied()
    }
}

impl LoginRequest {
    /// Appends the request.
    pub fn write(&self, out: &mut Vec<u8>) {
        match self {
            LoginRequest::LogIn { protocol, credentials } => match credentials {
                Credentials::Password { name, password } => put_log_in(out, 1, protocol, [name, &password.0]),
                Credentials::Token(token) => put_log_in(out, 3, protocol, [&token.0]),
                Credentials::Registration { name, password } => put_log_in(out, 4, protocol, [name, &password.0]),
            },
            LoginRequest::Locate { owner, session } => {
                out.push(2);
                put_number(out, owner.0.into());
                put_number(out, session.0);
            }
        }
    }

    /// Reads a request that fills `bytes`.
    ///
    /// # Errors
    /// When it is not in its one encoding, or name or password are longer than allowed.
    pub fn read(bytes: &[u8]) -> Result<Self, Malformed> {
        let reader = &mut Reader::new(bytes);
        let wrong = reader.malformed("log-in request");
        let request = match reader.byte("log-in request")? {
            1 => {
                let protocol = reader.hash("protocol")?;
                let (name, password) = take_account(reader)?;
                let credentials = Credentials::Password { name, password };
                LoginRequest::LogIn { protocol, credentials }
            }
            2 => LoginRequest::Locate {
                owner: OwnerId(reader.narrow("owner")?),
                session: SessionId(reader.number("session")?),
            },
            3 => LoginRequest::LogIn {
                protocol: reader.hash("protocol")?,
                credentials: Credentials::Token(Token(take_text(reader, MAX_TOKEN_BYTES, "token")?)),
            },
            4 => {
                let protocol = reader.hash("protocol")?;
                let (name, password) = take_account(reader)?;
                let credentials = Credentials::Registration { name, password };
                LoginRequest::LogIn { protocol, credentials }
            }
            _ => return Err(wrong),
        };
        reader.finish("end of log-in request")?;
        Ok(request)
    }
}

fn put_log_in<const N: usize>(out: &mut Vec<u8>, kind: u8, protocol: &Hash, texts: [&String; N]) {
    out.push(kind);
    out.extend(protocol.0);
    texts.iter().for_each(|text| put_bytes(out, text.as_bytes()));
}

fn take_account(reader: &mut Reader<'_>) -> Result<(String, Password), Malformed> {
    let name = take_text(reader, MAX_NAME_BYTES, "name")?;
    let password = take_text(reader, MAX_PASSWORD_BYTES, "password")?;
    Ok((name, Password(password)))
}

impl LoginAnswer {
    /// Appends the answer.
    pub fn write(&self, out: &mut Vec<u8>) {
        match self {
            LoginAnswer::Ticket(Ticket { session, secret, base }) => {
                out.push(1);
                put_number(out, base.owner.0.into());
                put_number(out, base.epoch.0);
                put_number(out, session.0);
                put_address(out, base.address);
                put_certificate(out, base.certificate);
                out.extend(secret.0);
            }
            LoginAnswer::Located(located) => {
                out.push(2);
                located.write(out);
            }
            LoginAnswer::Refused(reason) => out.extend([3, reason.code()]),
            LoginAnswer::Banned(ban) => {
                out.push(4);
                ban.write(out);
            }
            LoginAnswer::Queued(Queued { position, length }) => {
                out.push(5);
                put_number(out, *position);
                put_number(out, *length);
            }
        }
    }

    /// Reads an answer that fills `bytes`.
    ///
    /// # Errors
    /// When it is not in its one encoding.
    pub fn read(bytes: &[u8]) -> Result<Self, Malformed> {
        let reader = &mut Reader::new(bytes);
        let wrong = reader.malformed("log-in answer");
        let answer = match reader.byte("log-in answer")? {
            1 => {
                let owner = OwnerId(reader.narrow("owner")?);
                let epoch = Epoch(reader.number("epoch")?);
                let session = SessionId(reader.number("session")?);
                let address = take_address(reader)?;
                let certificate = take_certificate(reader)?;
                let base = Located {
                    owner,
                    epoch,
                    address,
                    certificate,
                };
                LoginAnswer::Ticket(Ticket {
                    session,
                    secret: take_secret(reader)?,
                    base,
                })
            }
            2 => LoginAnswer::Located(Located::read(reader)?),
            3 => LoginAnswer::Refused(take_reason(reader, LoginRefusal::from_code)?),
            4 => LoginAnswer::Banned(Ban::read(reader)?),
            5 => LoginAnswer::Queued(Queued {
                position: reader.number("position")?,
                length: reader.number("length of the queue")?,
            }),
            _ => return Err(wrong),
        };
        reader.finish("end of log-in answer")?;
        Ok(answer)
    }
}
