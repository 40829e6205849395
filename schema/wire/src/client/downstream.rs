//! Frames sent to a client during play.

use annals_event::{Malformed, Reader, put_number};
use annals_ids::{CallNumber, EntityId, OwnerId, Part, TypeId};
use thiserror::Error;

use super::{
    Ban, DownloadBegun, DownloadChunk, DownloadId, Located, ViewFrame,
    fields::{put_entity, put_part, put_type, take_entity, take_part, take_reason, take_type},
};

/// A frame to a client.
#[derive(Clone, Debug, PartialEq)]
pub enum ToClient {
    /// The client's calls to this part were taken up to this number; their effects are logged (rule C3).
    Took {
        entity: EntityId,
        part: Part,
        /// The highest number taken.
        upto: CallNumber,
    },
    /// Calls to this part are missing: resend those after this number (rule C2).
    Gap {
        entity: EntityId,
        part: Part,
        /// The highest number taken; 0 for none.
        have: CallNumber,
    },
    /// The part no longer exists: unacknowledged calls may not have been taken (rule C6).
    Gone { entity: EntityId, part: Part },
    /// A call was taken, but not run.
    Refused {
        entity: EntityId,
        part: Part,
        /// The number of the call.
        number: CallNumber,
        reason: CallRefusal,
    },
    /// A frame of a view.
    View(ViewFrame),
    /// The view's server does not know what the client has: restart the view with [`super::Stamps`].
    StampsWanted {
        /// The view.
        source: Part,
    },
    /// The client controls another entity from now on. Both its views have ended; it starts new ones from nothing.
    Reset { entity: EntityId, type_id: TypeId },
    /// The client exceeds its rate, and will be disconnected if it continues.
    RateWarned,
    /// Another process is about to serve the session: connect there as well, and keep this connection until the other
    /// one has welcomed the session. The epoch is not below that of this connection.
    Moving(Located),
    /// The account was banned. The connection is closed next.
    Banned(Ban),
    /// A download begins, or continues: the client answers with what it has of it.
    DownloadBegun(DownloadBegun),
    /// Content of the download that was begun last. It may come on a stream of its own.
    DownloadChunk(DownloadChunk),
    /// The base sends no more of this download.
    DownloadEnded(DownloadId),
    /// The session continues at another owner, with an entity there. The connection is closed next.
    Given(OwnerId),
}

/// Why a client's call was not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Error)]
pub enum CallRefusal {
    /// The part has no exposed method of this number.
    #[error("the entity has no exposed method of this number; check that client and realm have the same definitions")]
    NoSuchMethod,
    /// The method may be called by the entity's own client only, or by clients that see the entity.
    #[error("this client may not call that method of that entity")]
    NotAllowed,
    /// The arguments do not fit the method.
    #[error("the arguments do not fit the method; check that client and realm have the same definitions")]
    BadArguments,
    /// The client calls the method more often than its definition allows.
    #[error("the client calls the method too often; wait, and see `CallsPerMinute` in its definition")]
    TooOften,
}

impl CallRefusal {
    /// Every reason, in the order of the codes, from 0.
    pub const ALL: [CallRefusal; 4] = [Self::NoSuchMethod, Self::NotAllowed, Self::BadArguments, Self::TooOften];

    pub(crate) fn code(self) -> u8 {
        match self {
            Self::NoSuchMethod => 0,
            Self::NotAllowed => 1,
            Self::BadArguments => 2,
            Self::TooOften => 3,
        }
    }

    pub(crate) fn from_code(code: u8) -> Option<Self> {
        Self::ALL.get(usize::from(code)).copied()
    }
}

/// The kind of [`ToClient::Refused`].
const REFUSED: u8 = 4;

impl ToClient {
    /// Why a call was refused, if this body says that. Other frames are not read.
    #[must_use]
    pub fn refusal(body: &[u8]) -> Option<CallRefusal> {
        if body.first() != Some(&REFUSED) {
            return None;
        }
        match Self::read(body) {
            Ok(Self::Refused { reason, .. }) => Some(reason),
            _ => None,
        }
    }

    /// Appends the frame's body.
    pub fn write(&self, out: &mut Vec<u8>) {
        let mut about = |kind: u8, part: Part, entity: EntityId| {
            out.push(kind);
            put_part(out, part);
            put_entity(out, entity);
        };
        match self {
            ToClient::Took { entity, part, upto } => {
                about(1, *part, *entity);
                put_number(out, upto.0);
            }
            ToClient::Gap { entity, part, have } => {
                about(2, *part, *entity);
                put_number(out, have.0);
            }
            ToClient::Gone { entity, part } => about(3, *part, *entity),
            ToClient::Refused {
                entity,
                part,
                number,
                reason,
            } => {
                about(REFUSED, *part, *entity);
                put_number(out, number.0);
                out.push(reason.code());
            }
            ToClient::View(frame) => {
                out.push(5);
                frame.write(out);
            }
            ToClient::StampsWanted { source } => {
                out.push(6);
                put_part(out, *source);
            }
            ToClient::Reset { entity, type_id } => {
                out.push(7);
                put_entity(out, *entity);
                put_type(out, *type_id);
            }
            ToClient::RateWarned => out.push(8),
            ToClient::Moving(located) => {
                out.push(9);
                located.write(out);
            }
            ToClient::Banned(ban) => {
                out.push(10);
                ban.write(out);
            }
            ToClient::DownloadBegun(begun) => {
                out.push(11);
                begun.write(out);
            }
            ToClient::DownloadChunk(chunk) => {
                out.push(12);
                chunk.write(out);
            }
            ToClient::DownloadEnded(id) => {
                out.push(13);
                id.write(out);
            }
            ToClient::Given(owner) => {
                out.push(14);
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
        let wrong = reader.malformed("server frame");
        let frame = match reader.byte("server frame")? {
            1 => {
                let (part, entity) = take_about(reader)?;
                ToClient::Took {
                    entity,
                    part,
                    upto: take_call_number(reader)?,
                }
            }
            2 => {
                let (part, entity) = take_about(reader)?;
                ToClient::Gap {
                    entity,
                    part,
                    have: take_call_number(reader)?,
                }
            }
            3 => {
                let (part, entity) = take_about(reader)?;
                ToClient::Gone { entity, part }
            }
            REFUSED => {
                let (part, entity) = take_about(reader)?;
                let number = take_call_number(reader)?;
                ToClient::Refused {
                    entity,
                    part,
                    number,
                    reason: take_reason(reader, CallRefusal::from_code)?,
                }
            }
            5 => ToClient::View(ViewFrame::read(reader)?),
            6 => ToClient::StampsWanted {
                source: take_part(reader)?,
            },
            7 => ToClient::Reset {
                entity: take_entity(reader)?,
                type_id: take_type(reader)?,
            },
            8 => ToClient::RateWarned,
            9 => ToClient::Moving(Located::read(reader)?),
            10 => ToClient::Banned(Ban::read(reader)?),
            11 => ToClient::DownloadBegun(DownloadBegun::read(reader)?),
            12 => ToClient::DownloadChunk(DownloadChunk::read(reader)?),
            13 => ToClient::DownloadEnded(DownloadId::read(reader)?),
            14 => ToClient::Given(OwnerId(reader.narrow("owner")?)),
            _ => return Err(wrong),
        };
        reader.finish("end of server frame")?;
        Ok(frame)
    }
}

fn take_about(reader: &mut Reader<'_>) -> Result<(Part, EntityId), Malformed> {
    Ok((take_part(reader)?, take_entity(reader)?))
}

fn take_call_number(reader: &mut Reader<'_>) -> Result<CallNumber, Malformed> {
    reader.ordinal("call number").map(CallNumber)
}
