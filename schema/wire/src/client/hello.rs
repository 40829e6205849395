//! The first frames of a play connection.

use annals_event::{Malformed, Reader, put_number};
use annals_ids::{EntityId, Epoch, Hash, OwnerId, SessionId, TypeId};
use thiserror::Error;

use super::{
    Movements, Reads, Secret,
    fields::{put_entity, put_type, take_entity, take_reason, take_secret, take_type},
};

/// The client's first frame: its session, and the proof that the session is its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hello {
    /// The version of the protocol that the client speaks: [`super::protocol_hash`].
    pub protocol: Hash,
    /// The fingerprint of the client's share of the schema that the client was built with.
    pub schema: Hash,
    /// The base's owner; a process may hold several.
    pub owner: OwnerId,
    /// The highest epoch of that owner that the client knows. A base of a lower one has been replaced.
    pub epoch: Epoch,
    pub session: SessionId,
    /// Proof that the session is the client's own.
    pub proof: Proof,
    /// The encodings of movements that the client can read.
    pub reads: Reads,
}

/// Proof that a session is the client's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Proof {
    /// The secret of the log-in's ticket; valid once.
    Ticket(Secret),
    /// The secret of the last [`Welcome`]. A base that renews it accepts the previous one as well, until it has
    /// received a message from the client under the new one: the `Welcome` may have been lost.
    Resume(Secret),
}

/// The base's first frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HelloAnswer {
    /// The session continues.
    Welcome(Welcome),
    /// It does not continue on this connection.
    Rejected(Rejection),
    /// It continues at this other owner, to which its client was given.
    Given(OwnerId),
}

/// The session continues over this connection, and over no other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Welcome {
    pub session: SessionId,
    /// The epoch of the base.
    pub epoch: Epoch,
    /// The entity that the client controls.
    pub entity: EntityId,
    pub type_id: TypeId,
    /// The secret with which the session can be resumed.
    pub token: Secret,
    /// The encoding of movements on this connection.
    pub movements: Movements,
}

/// Why a base does not accept a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Error)]
pub enum Rejection {
    /// The client speaks another version of the protocol.
    #[error("the client speaks another version of the protocol; update it")]
    WrongProtocol,
    /// The client was built with another schema.
    #[error("the client was built with other entity definitions; update it")]
    WrongSchema,
    /// There is no such session, or the proof is wrong or used up.
    #[error("the session is unknown; log in again")]
    UnknownSession,
    /// This process does not hold the owner, or no longer holds it.
    #[error("the base is not here; ask the login service where it is")]
    Elsewhere,
    /// There is no capacity at this moment.
    #[error("the base is busy; try again in a moment")]
    Busy,
    /// A later log-in of the account has replaced the session.
    #[error("the account logged in elsewhere")]
    LoggedInElsewhere,
}

impl Rejection {
    /// Every reason, in the order of the codes, from 0.
    pub const ALL: [Rejection; 6] = [
        Self::WrongProtocol,
        Self::WrongSchema,
        Self::UnknownSession,
        Self::Elsewhere,
        Self::Busy,
        Self::LoggedInElsewhere,
    ];

    fn code(self) -> u8 {
        match self {
            Self::WrongProtocol => 0,
            Self::WrongSchema => 1,
            Self::UnknownSession => 2,
            Self::Elsewhere => 3,
            Self::Busy => 4,
            Self::LoggedInElsewhere => 5,
        }
    }

    fn from_code(code: u8) -> Option<Self> {
        Self::ALL.get(usize::from(code)).copied()
    }
}

impl Hello {
    /// Appends the frame's body.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.extend(self.protocol.0);
        out.extend(self.schema.0);
        put_number(out, self.owner.0.into());
        put_number(out, self.epoch.0);
        put_number(out, self.session.0);
        let (kind, secret) = match &self.proof {
            Proof::Ticket(secret) => (1, secret),
            Proof::Resume(secret) => (2, secret),
        };
        out.push(kind);
        out.extend(secret.0);
        self.reads.write(out);
    }

    /// Reads a body that fills `bytes`.
    ///
    /// # Errors
    /// When it is not in its one encoding.
    pub fn read(bytes: &[u8]) -> Result<Self, Malformed> {
        let reader = &mut Reader::new(bytes);
        let hello = Hello {
            protocol: reader.hash("protocol")?,
            schema: reader.hash("schema")?,
            owner: OwnerId(reader.narrow("owner")?),
            epoch: Epoch(reader.number("epoch")?),
            session: SessionId(reader.number("session")?),
            proof: take_proof(reader)?,
            reads: Reads::read(reader)?,
        };
        reader.finish("end of hello")?;
        Ok(hello)
    }
}

fn take_proof(reader: &mut Reader<'_>) -> Result<Proof, Malformed> {
    let wrong = reader.malformed("proof");
    match reader.byte("proof")? {
        1 => Ok(Proof::Ticket(take_secret(reader)?)),
        2 => Ok(Proof::Resume(take_secret(reader)?)),
        _ => Err(wrong),
    }
}

impl HelloAnswer {
    /// Appends the frame's body.
    pub fn write(&self, out: &mut Vec<u8>) {
        match self {
            HelloAnswer::Welcome(welcome) => {
                out.push(1);
                put_number(out, welcome.session.0);
                put_number(out, welcome.epoch.0);
                put_entity(out, welcome.entity);
                put_type(out, welcome.type_id);
                out.extend(welcome.token.0);
                welcome.movements.write(out);
            }
            HelloAnswer::Rejected(reason) => out.extend([2, reason.code()]),
            HelloAnswer::Given(owner) => {
                out.push(3);
                put_number(out, owner.0.into());
            }
        }
    }

    /// Reads a body that fills `bytes`.
    ///
    /// # Errors
    /// When it is not in its one encoding.
    pub fn read(bytes: &[u8]) -> Result<Self, Malformed> {
        let reader = &mut Reader::new(bytes);
        let wrong = reader.malformed("answer to hello");
        let answer = match reader.byte("answer to hello")? {
            1 => HelloAnswer::Welcome(Welcome {
                session: SessionId(reader.number("session")?),
                epoch: Epoch(reader.number("epoch")?),
                entity: take_entity(reader)?,
                type_id: take_type(reader)?,
                token: take_secret(reader)?,
                movements: Movements::read(reader)?,
            }),
            2 => HelloAnswer::Rejected(take_reason(reader, Rejection::from_code)?),
            3 => HelloAnswer::Given(OwnerId(reader.narrow("owner")?)),
            _ => return Err(wrong),
        };
        reader.finish("end of answer to hello")?;
        Ok(answer)
    }
}
