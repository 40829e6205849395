//! Frames sent by a client during play.

use annals_event::{Malformed, Reader, SpaceVersions, put_number};
use annals_ids::{Address, CallNumber, Direction, EntityId, HistoryNumber, Part, Position, SpaceId};

use super::{
    DownloadProgress, MAX_KEPT, MAX_STAMPS,
    fields::{
        put_direction, put_entity, put_part, put_position, take_direction, take_entity, take_part, take_position,
    },
    volatile::MovementAck,
};

/// A frame from a client.
#[derive(Clone, Debug, PartialEq)]
pub enum ToServer {
    /// Runs an exposed method.
    Call(Call),
    /// Restarts a view.
    Stamps(Stamps),
    /// Ends the session.
    Bye,
    /// Answers [`ToClient::DownloadBegun`](super::ToClient::DownloadBegun), and the chunks that follow.
    DownloadProgress(DownloadProgress),
}

/// A call on the link from the client's session to an entity part (rules C2 and C8).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    pub entity: EntityId,
    pub part: Part,
    /// Its number on the link: dense from 1, continuous over the session's lifetime, at most 2^40.
    pub number: CallNumber,
    /// Whether all earlier calls on the link are confirmed, so that the receiver waits for none of them (rule C2).
    pub is_oldest: bool,
    /// The index among the part's exposed methods ([`MessageRange::of_calls`](annals_def::MessageRange::of_calls)), and
    /// the arguments in the method's order. Decoding it requires the entity's type.
    pub message: Vec<u8>,
}

impl Call {
    /// The receiving end of the link.
    #[must_use]
    pub fn to(&self) -> Address {
        Address::of(self.entity, self.part)
    }
}

/// Restarts a view and lists what the client has of it (rule V3).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stamps {
    /// The view: the base's view of the client's own entity, or the view of the witness.
    pub source: Part,
    /// The number of the new view: above all that the session has used for this source. From now on the client ignores
    /// every frame with another number.
    pub view: u64,
    /// What the client has of it.
    pub known: Known,
}

/// What a client has of a view: at most [`MAX_STAMPS`] history numbers in all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Known {
    /// The entities that are in view, ascending.
    pub seen: Vec<Stamp>,
    /// Entities that have left the view and that the client still keeps, in the order in which they left; at most
    /// [`MAX_KEPT`], none of them in view.
    pub kept: Vec<Stamp>,
    /// The space of its entity, as far as it knows, and the versions it has of that space's data. It has no data of
    /// other spaces.
    pub space: Option<(SpaceId, SpaceVersions)>,
    /// Where the client moves what it usually does not, or does not move what it usually does, as it was last sent
    /// ([`ViewItem::Drives`](super::ViewItem::Drives)): others that it moves, and its own if it does not move that.
    /// Ascending.
    pub unusual_drivers: Vec<EntityId>,
}

/// What a client has of one entity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stamp {
    pub entity: EntityId,
    /// The history number up to which it was shown the entity.
    pub upto: HistoryNumber,
    /// For each level of detail finer than the one on which it is shown the entity, nearest first, the history number
    /// for which it has the properties of that level.
    pub finer: Vec<HistoryNumber>,
}

impl Stamp {
    /// The stamp of an entity that is shown in every detail.
    #[must_use]
    pub fn new(entity: EntityId, upto: HistoryNumber) -> Self {
        let finer = Vec::new();
        Self { entity, upto, finer }
    }

    /// Number of history numbers in it.
    #[must_use]
    pub fn numbers(&self) -> usize {
        1 + self.finer.len()
    }
}

impl FromIterator<(EntityId, HistoryNumber)> for Known {
    /// Entities in view, in every detail.
    fn from_iter<I: IntoIterator<Item = (EntityId, HistoryNumber)>>(known: I) -> Self {
        let stamps = known.into_iter().map(|(entity, upto)| Stamp::new(entity, upto));
        Self {
            seen: stamps.collect(),
            kept: Vec::new(),
            space: None,
            unusual_drivers: Vec::new(),
        }
    }
}

impl Known {
    /// Appends it.
    pub fn write(&self, out: &mut Vec<u8>) {
        for stamps in [&self.seen, &self.kept] {
            put_number(out, stamps.len() as u64);
            for Stamp { entity, upto, finer } in stamps {
                put_entity(out, *entity);
                put_number(out, upto.0);
                out.push(u8::try_from(finer.len()).expect("invariant: a type has less than 256 levels of detail"));
                finer.iter().for_each(|stamp| put_number(out, stamp.0));
            }
        }
        let rest =
            u8::from(self.space.is_some()) * HAS_SPACE + u8::from(!self.unusual_drivers.is_empty()) * HAS_UNUSUAL;
        out.push(rest);
        if let Some((space, versions)) = &self.space {
            put_number(out, space.0.into());
            versions.write(out);
        }
        if !self.unusual_drivers.is_empty() {
            put_number(out, self.unusual_drivers.len() as u64);
            self.unusual_drivers.iter().for_each(|entity| put_entity(out, *entity));
        }
    }

    /// Reads it.
    ///
    /// # Errors
    /// When it is not in its one encoding, exceeds a limit, or entities in view or with unusual drivers do not ascend.
    pub fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let wrong = reader.malformed("stamps");
        let mut left = MAX_STAMPS;
        let (seen, kept) = (take_stamps(reader, &mut left)?, take_stamps(reader, &mut left)?);
        let wrong_rest = reader.malformed("space");
        let rest = reader.byte("space")?;
        if rest & !(HAS_SPACE | HAS_UNUSUAL) != 0 {
            return Err(wrong_rest);
        }
        let space = (rest & HAS_SPACE != 0)
            .then(|| Ok((SpaceId(reader.narrow("space")?), SpaceVersions::read(reader)?)))
            .transpose()?;
        let unusual_drivers = (rest & HAS_UNUSUAL != 0)
            .then(|| take_unusual_drivers(reader))
            .transpose()?;
        let known = Self {
            seen,
            kept,
            space,
            unusual_drivers: unusual_drivers.unwrap_or_default(),
        };
        let is_ordered = known.seen.is_sorted_by(|one, next| one.entity < next.entity);
        if is_ordered && known.kept.len() <= MAX_KEPT {
            Ok(known)
        } else {
            Err(wrong)
        }
    }
}

/// Bits of what follows the stamps.
const HAS_SPACE: u8 = 1;
const HAS_UNUSUAL: u8 = 2;

/// Reads the entities with unusual drivers: at least one.
fn take_unusual_drivers(reader: &mut Reader<'_>) -> Result<Vec<EntityId>, Malformed> {
    let wrong = reader.malformed("unusual drivers");
    let count = reader.count(1, "unusual drivers")?;
    if count == 0 || count > MAX_STAMPS {
        return Err(wrong);
    }
    let entities: Vec<EntityId> = (0..count).map(|_| take_entity(reader)).collect::<Result<_, _>>()?;
    if entities.is_sorted_by(|one, next| one < next) {
        Ok(entities)
    } else {
        Err(wrong)
    }
}

/// Reads stamps with at most as many history numbers as are left.
fn take_stamps(reader: &mut Reader<'_>, left: &mut usize) -> Result<Vec<Stamp>, Malformed> {
    let wrong = reader.malformed("stamps");
    let count = reader.count(3, "stamps")?;
    if count > *left {
        return Err(wrong);
    }
    let mut stamps = Vec::with_capacity(count);
    for _ in 0..count {
        let entity = take_entity(reader)?;
        let upto = HistoryNumber(reader.ordinal("history number")?);
        let level = reader.byte("level of detail")?;
        *left = left.checked_sub(1 + usize::from(level)).ok_or(wrong)?;
        let finer = (0..level).map(|_| reader.ordinal("history number").map(HistoryNumber));
        let finer = finer.collect::<Result<_, _>>()?;
        stamps.push(Stamp { entity, upto, finer });
    }
    Ok(stamps)
}

/// A datagram from a client.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ToServerDatagram {
    /// The client moved the entity that it controls.
    Moved(Moved),
    /// The client moved another entity, which it drives.
    Drove(Drove),
    /// The client acknowledges movements that it has read; any of these may be lost.
    MovementAck {
        view: u64,
        /// The acknowledgement.
        ack: MovementAck,
    },
}

/// The position to which the client has moved its entity; the newest wins.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Moved {
    /// Counts the session's movements, from 1.
    pub sequence: u64,
    pub position: Position,
    pub direction: Direction,
}

/// The position to which the client has moved another entity, which it drives ([`ViewItem::Drives`](super::ViewItem));
/// the newest wins.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Drove {
    pub entity: EntityId,
    /// The history number up to which the client was shown it. A movement that was made before the client was shown the
    /// entity's last placement is ignored.
    pub upto: HistoryNumber,
    /// As in [`Moved`], of which it is one.
    pub moved: Moved,
}

impl ToServer {
    /// Appends the frame's body.
    pub fn write(&self, out: &mut Vec<u8>) {
        match self {
            ToServer::Call(call) => {
                out.push(if call.is_oldest { 4 } else { 1 });
                put_part(out, call.part);
                put_entity(out, call.entity);
                put_number(out, call.number.0);
                out.extend(&call.message);
            }
            ToServer::Stamps(stamps) => {
                out.push(2);
                put_part(out, stamps.source);
                put_number(out, stamps.view);
                stamps.known.write(out);
            }
            ToServer::Bye => out.push(3),
            ToServer::DownloadProgress(progress) => {
                out.push(5);
                progress.write(out);
            }
        }
    }

    /// Reads a body that fills `bytes`.
    ///
    /// # Errors
    /// When it is not in its one encoding, a number that begins at 1 is 0, a call's number is of a further generation, or
    /// stamps are too many or out of order.
    pub fn read(bytes: &[u8]) -> Result<Self, Malformed> {
        let reader = &mut Reader::new(bytes);
        let wrong = reader.malformed("client frame");
        let frame = match reader.byte("client frame")? {
            kind @ (1 | 4) => ToServer::Call(take_call(kind == 4, reader)?),
            2 => ToServer::Stamps(Stamps {
                source: take_part(reader)?,
                view: reader.number("view")?,
                known: Known::read(reader)?,
            }),
            3 => ToServer::Bye,
            5 => ToServer::DownloadProgress(DownloadProgress::read(reader)?),
            _ => return Err(wrong),
        };
        reader.finish("end of client frame")?;
        Ok(frame)
    }
}

fn take_call(is_oldest: bool, reader: &mut Reader<'_>) -> Result<Call, Malformed> {
    let part = take_part(reader)?;
    let entity = take_entity(reader)?;
    let wrong = reader.malformed("call number");
    // A client's numbers may be skipped, so it could use them up at once: in the called entity's state, for ever.
    let number = CallNumber(reader.ordinal("call number")?);
    if number.0 == 0 || number.generation() > 0 {
        return Err(wrong);
    }
    let message = reader.take(reader.remaining(), "message")?.to_vec();
    Ok(Call {
        entity,
        part,
        number,
        is_oldest,
        message,
    })
}

impl Moved {
    fn write(&self, out: &mut Vec<u8>) {
        put_number(out, self.sequence);
        put_position(out, self.position);
        put_direction(out, self.direction);
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Self {
            sequence: reader.number("sequence")?,
            position: take_position(reader)?,
            direction: take_direction(reader)?,
        })
    }
}

impl ToServerDatagram {
    /// Appends the datagram.
    pub fn write(&self, out: &mut Vec<u8>) {
        match self {
            ToServerDatagram::Moved(moved) => {
                out.push(1);
                moved.write(out);
            }
            ToServerDatagram::MovementAck { view, ack } => {
                out.push(2);
                put_number(out, *view);
                [ack.tick, ack.before]
                    .iter()
                    .for_each(|half| out.extend(half.to_le_bytes()));
            }
            ToServerDatagram::Drove(Drove { entity, upto, moved }) => {
                out.push(3);
                put_entity(out, *entity);
                put_number(out, upto.0);
                moved.write(out);
            }
        }
    }

    /// Reads a datagram.
    ///
    /// # Errors
    /// When it is not in its one encoding, or a coordinate or an angle is not finite.
    pub fn read(bytes: &[u8]) -> Result<Self, Malformed> {
        let reader = &mut Reader::new(bytes);
        let wrong = reader.malformed("client datagram");
        let datagram = match reader.byte("client datagram")? {
            1 => ToServerDatagram::Moved(Moved::read(reader)?),
            2 => ToServerDatagram::MovementAck {
                view: reader.number("view")?,
                ack: MovementAck {
                    tick: u16::from_le_bytes(reader.array("tick")?),
                    before: u16::from_le_bytes(reader.array("ticks before")?),
                },
            },
            3 => ToServerDatagram::Drove(Drove {
                entity: take_entity(reader)?,
                upto: HistoryNumber(reader.ordinal("history number")?),
                moved: Moved::read(reader)?,
            }),
            _ => return Err(wrong),
        };
        reader.finish("end of client datagram")?;
        Ok(datagram)
    }
}
