//! What a client sends while it plays.

use annals_event::{Malformed, Reader, put_number};
use annals_ids::{Address, CallNumber, Direction, EntityId, HistoryNumber, Part, Position};

use super::{
    MAX_STAMPS,
    fields::{
        put_direction, put_entity, put_part, put_position, take_direction, take_entity, take_part, take_position,
    },
};

/// A frame from a client.
#[derive(Clone, Debug, PartialEq)]
pub enum ToServer {
    /// An exposed method is to be run.
    Call(Call),
    /// A view is to begin anew.
    Stamps(Stamps),
    /// The session is to end.
    Bye,
}

/// A call on the link from the client's session to an entity part (rules C2 and C8).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// Whose method.
    pub entity: EntityId,
    /// Of which part.
    pub part: Part,
    /// Its number on the link: dense from 1, running on through the session's whole life.
    pub number: CallNumber,
    /// Which of the part's exposed methods ([`MessageRange::of_calls`](annals_def::MessageRange::of_calls)), and the arguments in
    /// the method's order, one after the other. Only who knows the entity's type can read it.
    pub message: Vec<u8>,
}

impl Call {
    /// The receiving end of the link.
    #[must_use]
    pub fn to(&self) -> Address {
        Address::of(self.entity, self.part)
    }
}

/// Begins a view anew and names what the client has of it (rule V3).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stamps {
    /// Which view: what the base shows of the client's own entity, or what the witness shows.
    pub source: Part,
    /// The number of the view that begins: above all that the session has used for this source. From now on the client
    /// ignores every frame that carries another.
    pub view: u64,
    /// All the entities that the client has of it, ascending, with the history number up to which it was shown them. At most
    /// [`MAX_STAMPS`].
    pub known: Vec<(EntityId, HistoryNumber)>,
}

/// A datagram from a client.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ToServerDatagram {
    /// The client moved the entity that it controls.
    Moved(Moved),
}

/// Where the client has moved its entity; newest wins.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Moved {
    /// Counts the session's movements, from 1.
    pub sequence: u64,
    /// Where to.
    pub position: Position,
    /// Looking where.
    pub direction: Direction,
}

impl ToServer {
    /// Appends the frame's body.
    pub fn write(&self, out: &mut Vec<u8>) {
        match self {
            ToServer::Call(call) => {
                out.push(1);
                put_part(out, call.part);
                put_entity(out, call.entity);
                put_number(out, call.number.0);
                out.extend(&call.message);
            }
            ToServer::Stamps(stamps) => {
                out.push(2);
                put_part(out, stamps.source);
                put_number(out, stamps.view);
                put_number(out, stamps.known.len() as u64);
                for (entity, history) in &stamps.known {
                    put_entity(out, *entity);
                    put_number(out, history.0);
                }
            }
            ToServer::Bye => out.push(3),
        }
    }

    /// Reads a body that fills `bytes`.
    ///
    /// # Errors
    /// When it is not in its one encoding, a number that begins at 1 is 0, or stamps are too many or out of order.
    pub fn read(bytes: &[u8]) -> Result<Self, Malformed> {
        let reader = &mut Reader::new(bytes);
        let wrong = reader.malformed("client frame");
        let frame = match reader.byte("client frame")? {
            1 => ToServer::Call(take_call(reader)?),
            2 => ToServer::Stamps(take_stamps(reader)?),
            3 => ToServer::Bye,
            _ => return Err(wrong),
        };
        reader.finish("end of client frame")?;
        Ok(frame)
    }
}

fn take_call(reader: &mut Reader<'_>) -> Result<Call, Malformed> {
    let part = take_part(reader)?;
    let entity = take_entity(reader)?;
    let wrong = reader.malformed("call number");
    let number = CallNumber(reader.ordinal("call number")?);
    if number.0 == 0 {
        return Err(wrong);
    }
    let message = reader.take(reader.remaining(), "message")?.to_vec();
    Ok(Call {
        entity,
        part,
        number,
        message,
    })
}

fn take_stamps(reader: &mut Reader<'_>) -> Result<Stamps, Malformed> {
    let source = take_part(reader)?;
    let view = reader.number("view")?;
    let wrong = reader.malformed("stamps");
    let count = reader.count(2, "stamps")?;
    if count > MAX_STAMPS {
        return Err(wrong);
    }
    let mut known: Vec<(EntityId, HistoryNumber)> = Vec::with_capacity(count);
    for _ in 0..count {
        let entity = take_entity(reader)?;
        if known.last().is_some_and(|&(before, _)| before >= entity) {
            return Err(wrong);
        }
        known.push((entity, HistoryNumber(reader.ordinal("history number")?)));
    }
    Ok(Stamps { source, view, known })
}

impl ToServerDatagram {
    /// Appends the datagram.
    pub fn write(&self, out: &mut Vec<u8>) {
        let ToServerDatagram::Moved(moved) = self;
        out.push(1);
        put_number(out, moved.sequence);
        put_position(out, moved.position);
        put_direction(out, moved.direction);
    }

    /// Reads a datagram.
    ///
    /// # Errors
    /// When it is not in its one encoding, or a coordinate or an angle is not finite.
    pub fn read(bytes: &[u8]) -> Result<Self, Malformed> {
        let reader = &mut Reader::new(bytes);
        let wrong = reader.malformed("client datagram");
        if reader.byte("client datagram")? != 1 {
            return Err(wrong);
        }
        let moved = Moved {
            sequence: reader.number("sequence")?,
            position: take_position(reader)?,
            direction: take_direction(reader)?,
        };
        reader.finish("end of client datagram")?;
        Ok(ToServerDatagram::Moved(moved))
    }
}
