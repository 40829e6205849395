//! The hand-over of a client to a base part at another owner (rule C20).

use annals_ids::{DatabaseId, EntityId, Mailbox, SessionId, WorldTime};

use super::{
    call::{put_option, take_bool, take_option, take_text},
    value::{put_mailbox, take_mailbox},
};
use crate::encoding::{Malformed, Reader, put_bytes, put_number};

/// A client, and the base part that is to get it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GivenClient {
    /// The entity that has the client, at the calling owner.
    pub from: EntityId,
    /// The entity that is to get it, at the owner that is called; either of its mailboxes.
    pub to: Mailbox,
    pub session: SessionId,
    /// SHA-256 of the token that the client presents.
    pub token: [u8; 32],
    /// The same of the token before it, while the client may still present that.
    pub former_token: Option<[u8; 32]>,
    /// The account for which the session was opened, if it is known.
    pub account: Option<DatabaseId>,
    /// When the session was opened; zero if that is not known any more. Of two clients of an entity, the later one stays.
    pub opened: WorldTime,
    /// If the receiving entity has a connected client already: whether that one stays, and this session ends.
    pub gives_way: bool,
}

/// What became of a client that was given to another owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GivenOutcome {
    /// The session is at the other owner, which expects the client with this token, of which this is the SHA-256.
    Taken { token: [u8; 32] },
    /// The other entity has a client already that stays: the session ends.
    InUse,
    /// The client stays where it is, and why.
    Refused(String),
}

impl GivenClient {
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        put_number(out, self.from.0);
        put_mailbox(out, &self.to);
        put_number(out, self.session.0);
        out.extend(self.token);
        put_option(out, self.former_token.as_ref(), |out, token| out.extend(token));
        put_option(out, self.account.as_ref(), |out, account| put_number(out, account.0));
        put_number(out, self.opened.0);
        out.push(u8::from(self.gives_way));
    }

    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Self {
            from: EntityId(reader.number("entity")?),
            to: take_mailbox(reader)?,
            session: SessionId(reader.number("session")?),
            token: reader.array("token")?,
            former_token: take_option(reader, |reader| reader.array("token"))?,
            account: take_option(reader, |reader| reader.number("account").map(DatabaseId))?,
            opened: WorldTime(reader.number("time")?),
            gives_way: take_bool(reader)?,
        })
    }
}

impl GivenOutcome {
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Taken { token } => {
                out.push(0);
                out.extend(token);
            }
            Self::InUse => out.push(1),
            Self::Refused(why) => {
                out.push(2);
                put_bytes(out, why.as_bytes());
            }
        }
    }

    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let wrong = reader.malformed("outcome of a given client");
        Ok(match reader.byte("outcome of a given client")? {
            0 => Self::Taken {
                token: reader.array("token")?,
            },
            1 => Self::InUse,
            2 => Self::Refused(take_text(reader)?),
            _ => return Err(wrong),
        })
    }
}
