//! Calls from one address to another: the same bytes in the log (inside `Called`) and on the bus.

use std::collections::BTreeMap;

use annals_def::Value;
use annals_ids::{
    Address, CallNumber, Direction, EntityId, Mailbox, MemberId, OwnerId, Position, SessionId, SpaceId, TypeId,
};
use thiserror::Error;

use super::{
    former_cell::FormerCell,
    given_client::{GivenClient, GivenOutcome},
    global_data::{GlobalEntry, take_key},
    image::{Image, put_held, take_held},
    ledger::LedgerUpdate,
    value::{put_mailbox, put_values, take_mailbox, take_values},
};
use crate::encoding::{Malformed, Reader, put_bytes, put_number};

/// A client, as the parts of its entity refer to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientLink {
    pub session: SessionId,
    /// The owner of the proxy, through which everything for the client is sent.
    pub proxy: OwnerId,
}

/// Space, position and direction of a cell part.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Place {
    pub space: SpaceId,
    pub position: Position,
    pub direction: Direction,
}

impl Place {
    /// Whether its coordinates and angles are finite numbers.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        self.position.is_finite() && self.direction.is_finite()
    }
}

/// The data needed to create the cell part of an entity.
#[derive(Clone, Debug, PartialEq)]
pub struct CellCreation {
    /// The entity, with or without a base.
    pub entity: EntityId,
    pub type_id: TypeId,
    pub home: OwnerId,
    /// Whether it has a base part, at home.
    pub based: bool,
    /// The initial place.
    pub place: Place,
    /// Every property that the cell part holds.
    pub properties: Vec<(MemberId, Value)>,
    /// The client that is to get a witness.
    pub client: Option<ClientLink>,
    /// If the entity had a cell part before: what this one continues. Only with a base part.
    pub former: Option<Box<FormerCell>>,
}

/// A base part that an entity elsewhere wants, and how to answer it.
#[derive(Clone, Debug, PartialEq)]
pub struct RequestedBase {
    /// The entity that wants it, whose base part is at the calling owner.
    pub by: EntityId,
    /// The number of its wait.
    pub of: CallNumber,
    pub type_id: TypeId,
    /// Properties that differ from their defaults.
    pub properties: Vec<(MemberId, Value)>,
}

/// The result of a registration as a global base.
#[derive(Clone, Debug, PartialEq)]
pub enum Registration {
    /// The entity is registered: the entry of the registry.
    Done(GlobalEntry),
    /// Another entity is registered under the key.
    Taken(Mailbox),
    /// It is not registered, and why.
    Refused(String),
}

/// Why a call has no result. The first six are the errors of BigWorld's two-way calls.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CallError {
    /// The caller may not do this.
    #[error("not allowed: {0}")]
    Authenticate(String),
    /// The receiver failed.
    #[error("the receiver failed: {0}")]
    Internal(String),
    /// The arguments do not fit the method.
    #[error("the arguments do not fit: {0}")]
    InvalidArgs(String),
    /// No answer arrived in time.
    #[error("no answer came in time")]
    NoReply,
    /// The entity does not exist, or no longer exists.
    #[error("there is no such entity")]
    NoSuchEntity,
    /// The entity has no cell part.
    #[error("the entity has no cell part")]
    NoSuchCellEntity,
    /// The game's own error: a name that it chose, and a text.
    #[error("{0}: {1}")]
    Custom(String, String),
}

/// The result of a two-way call: its return values in the order of the definition, or the error.
pub type Outcome = Result<Vec<Value>, CallError>;

/// A call on a link.
#[derive(Clone, Debug, PartialEq)]
pub enum Call {
    /// Runs a method of the receiving part.
    Method {
        /// Index among the part's methods.
        method: MemberId,
        /// Checked against the method by the receiver before its behaviour sees them.
        args: Vec<Value>,
        /// Whether a [`Call::Reply`] is expected.
        wants_reply: bool,
    },
    /// From a client's session: runs one of the receiving part's exposed methods. The receiver, which knows its own
    /// type, decodes and checks it; the sender does not log it as called (rule C8).
    Exposed {
        /// The index among the part's exposed methods, by the type as which clients see the entity, and the arguments
        /// in the method's order: unchanged from the client.
        message: Vec<u8>,
    },
    /// The answer to the call with this number on the link in the other direction.
    Reply {
        /// The number of the answered call.
        of: CallNumber,
        /// The result.
        outcome: Outcome,
    },
    /// To a cell owner: create a cell part.
    CreateCell(Box<CellCreation>),
    /// To a cell part: destroy yourself.
    DestroyCell,
    /// From a cell part to its home: the owner on which it is real now, or `None` once it is destroyed.
    Placed(Option<OwnerId>),
    /// To a cell part: serve this client from now on, or none.
    Witness(Option<ClientLink>),
    /// From owner to owner: take this entity over.
    Onload {
        entity: EntityId,
        /// The whole part.
        image: Box<Image>,
    },
    /// The answer to [`Call::Onload`]: the entity is real here.
    Arrived {
        /// The number of the answered call.
        of: CallNumber,
    },
    /// The answer to [`Call::Onload`]: the entity stays with the sender.
    Refused {
        /// The number of the answered call.
        of: CallNumber,
        /// The reason, for readers of the log.
        reason: String,
    },
    /// To a cell part: asks for its place. The answer holds the number of the space, position and direction.
    Locate,
    /// To a cell owner: reopens this space, if it was closed.
    OpenSpace(SpaceId),
    /// From the ledger's owner to the home of a base part: what the ledger did that concerns that part. Ignored if the
    /// part no longer exists.
    Ledger {
        /// The entity of the base part.
        to: EntityId,
        update: LedgerUpdate,
    },
    /// From a cell part to another one, which the sender's client sees: call a client method of the receiver on that
    /// client alone.
    InvokeFor {
        /// Index among the receiver's client methods.
        method: MemberId,
        /// Checked against the method by the receiver.
        args: Vec<Value>,
    },
    /// To a base owner: create a base part there. Answered with [`Call::Created`].
    CreateBase(Box<RequestedBase>),
    /// The answer to [`Call::CreateBase`], to the owner that called.
    Created {
        /// The entity that wanted it.
        by: EntityId,
        /// The number of its wait.
        of: CallNumber,
        /// The new entity at the answering owner and its type, or why there is none.
        created: Result<(EntityId, TypeId), String>,
    },
    /// To the owner that keeps the registry: register a base part of the calling owner under a key. Answered with
    /// [`Call::Registered`].
    Register {
        /// The entity.
        by: EntityId,
        /// The number of its wait.
        of: CallNumber,
        key: String,
        /// Its type.
        type_id: TypeId,
    },
    /// The answer to [`Call::Register`], to the owner that called.
    Registered {
        /// The entity.
        by: EntityId,
        /// The number of its wait.
        of: CallNumber,
        outcome: Registration,
    },
    /// To the owner that keeps the registry: this entity is not registered under the key any more.
    Deregister { entity: EntityId, key: String },
    /// From the owner of a cell part that has ended to its home, once all calls of that part are confirmed. Ignored if the
    /// base part no longer exists.
    CellEnded {
        entity: EntityId,
        type_id: TypeId,
        /// What the next cell part continues.
        former: Box<FormerCell>,
        /// The last values of all its properties.
        properties: BTreeMap<MemberId, Value>,
    },
    /// From a cell part to its base part: store the entity. Ignored if entities of the type are not stored.
    Store,
    /// To a base owner: an entity there gets a client of the calling owner. Answered with [`Call::ClientTaken`].
    GiveClient(Box<GivenClient>),
    /// The answer to [`Call::GiveClient`], to the owner that called.
    ClientTaken {
        /// The entity that has given its client.
        from: EntityId,
        /// The entity to which it was given.
        to: Mailbox,
        session: SessionId,
        outcome: GivenOutcome,
    },
}

impl Call {
    /// Appends the call.
    pub fn write(&self, out: &mut Vec<u8>) {
        match self {
            Call::Method {
                method,
                args,
                wants_reply,
            } => {
                out.push(if *wants_reply { 1 } else { 0 });
                put_number(out, u64::from(method.0));
                put_values(out, args);
            }
            Call::Exposed { message } => {
                out.push(12);
                put_bytes(out, message);
            }
            Call::Reply { of, outcome } => {
                out.push(2);
                put_number(out, of.0);
                put_outcome(out, outcome);
            }
            Call::CreateCell(creation) => {
                out.push(3);
                creation.write(out);
            }
            Call::DestroyCell => out.push(4),
            Call::Placed(None) => out.push(5),
            Call::Placed(Some(owner)) => {
                out.push(6);
                put_number(out, u64::from(owner.0));
            }
            Call::Witness(None) => out.push(7),
            Call::Witness(Some(client)) => {
                out.push(8);
                put_client(out, client);
            }
            Call::Onload { entity, image } => {
                out.push(9);
                put_number(out, entity.0);
                image.write(out);
            }
            Call::Arrived { of } => {
                out.push(10);
                put_number(out, of.0);
            }
            Call::Refused { of, reason } => {
                out.push(11);
                put_number(out, of.0);
                put_bytes(out, reason.as_bytes());
            }
            Call::Locate => out.push(14),
            Call::OpenSpace(space) => {
                out.push(15);
                put_number(out, u64::from(space.0));
            }
            Call::Ledger { .. }
            | Call::CreateBase(_)
            | Call::Created { .. }
            | Call::InvokeFor { .. }
            | Call::Register { .. }
            | Call::Registered { .. }
            | Call::Deregister { .. }
            | Call::CellEnded { .. }
            | Call::Store
            | Call::GiveClient(_)
            | Call::ClientTaken { .. } => self.write_request(out),
        }
    }

    /// Appends a call that makes another owner or part do something, or its answer.
    fn write_request(&self, out: &mut Vec<u8>) {
        match self {
            Call::Ledger { to, update } => {
                out.push(13);
                put_number(out, to.0);
                update.write(out);
            }
            Call::CreateBase(wanted) => {
                out.push(16);
                wanted.write(out);
            }
            Call::Created { by, of, created } => {
                out.push(17);
                put_number(out, by.0);
                put_number(out, of.0);
                put_created(out, created);
            }
            Call::InvokeFor { method, args } => {
                out.push(18);
                put_number(out, u64::from(method.0));
                put_values(out, args);
            }
            Call::Register { by, of, key, type_id } => {
                out.push(19);
                put_number(out, by.0);
                put_number(out, of.0);
                put_bytes(out, key.as_bytes());
                put_number(out, u64::from(type_id.0));
            }
            Call::Registered { by, of, outcome } => {
                out.push(20);
                put_number(out, by.0);
                put_number(out, of.0);
                outcome.write(out);
            }
            Call::Deregister { entity, key } => {
                out.push(21);
                put_number(out, entity.0);
                put_bytes(out, key.as_bytes());
            }
            Call::CellEnded {
                entity,
                type_id,
                former,
                properties,
            } => {
                out.push(22);
                put_number(out, entity.0);
                put_number(out, u64::from(type_id.0));
                former.write(out);
                put_held(out, properties);
            }
            _ => self.write_given(out),
        }
    }

    /// Appends a request of a cell part to store its entity, or a call about a client that is given away.
    fn write_given(&self, out: &mut Vec<u8>) {
        match self {
            Call::Store => out.push(23),
            Call::GiveClient(given) => {
                out.push(24);
                given.write(out);
            }
            Call::ClientTaken {
                from,
                to,
                session,
                outcome,
            } => {
                out.push(25);
                put_number(out, from.0);
                put_mailbox(out, to);
                put_number(out, session.0);
                outcome.write(out);
            }
            _ => unreachable!("invariant: all other calls are written before"),
        }
    }

    /// Takes a call.
    ///
    /// # Errors
    /// When it is not in its one encoding.
    pub fn read(reader: &mut Reader<'_>) -> Result<Call, Malformed> {
        let wrong = reader.malformed("call");
        Ok(match reader.byte("call")? {
            kind @ (0 | 1) => Call::Method {
                method: MemberId(reader.narrow("method")?),
                args: take_values(reader)?,
                wants_reply: kind == 1,
            },
            2 => Call::Reply {
                of: CallNumber(reader.ordinal("call number")?),
                outcome: take_outcome(reader)?,
            },
            3 => Call::CreateCell(Box::new(CellCreation::read(reader)?)),
            4 => Call::DestroyCell,
            5 => Call::Placed(None),
            6 => Call::Placed(Some(OwnerId(reader.narrow("owner")?))),
            7 => Call::Witness(None),
            8 => Call::Witness(Some(take_client(reader)?)),
            9 => Call::Onload {
                entity: EntityId(reader.number("entity")?),
                image: Box::new(Image::read(reader)?),
            },
            10 => Call::Arrived {
                of: CallNumber(reader.ordinal("call number")?),
            },
            11 => Call::Refused {
                of: CallNumber(reader.ordinal("call number")?),
                reason: take_text(reader)?,
            },
            12 => Call::Exposed {
                message: reader.bytes("message")?.to_vec(),
            },
            13 => Call::Ledger {
                to: EntityId(reader.number("entity")?),
                update: LedgerUpdate::read(reader)?,
            },
            14 => Call::Locate,
            15 => Call::OpenSpace(SpaceId(reader.narrow("space")?)),
            16 => Call::CreateBase(Box::new(RequestedBase::read(reader)?)),
            17 => Call::Created {
                by: EntityId(reader.number("entity")?),
                of: CallNumber(reader.ordinal("wait")?),
                created: take_created(reader)?,
            },
            18 => Call::InvokeFor {
                method: MemberId(reader.narrow("method")?),
                args: take_values(reader)?,
            },
            kind @ 19..=21 => Self::read_registration(kind, reader)?,
            22 => Call::CellEnded {
                entity: EntityId(reader.number("entity")?),
                type_id: TypeId(reader.narrow("type")?),
                former: Box::new(FormerCell::read(reader)?),
                properties: take_held(reader)?,
            },
            23 => Call::Store,
            24 => Call::GiveClient(Box::new(GivenClient::read(reader)?)),
            25 => Call::ClientTaken {
                from: EntityId(reader.number("entity")?),
                to: take_mailbox(reader)?,
                session: SessionId(reader.number("session")?),
                outcome: GivenOutcome::read(reader)?,
            },
            _ => return Err(wrong),
        })
    }
}

impl Call {
    fn read_registration(kind: u8, reader: &mut Reader<'_>) -> Result<Call, Malformed> {
        let entity = EntityId(reader.number("entity")?);
        if kind == 21 {
            let key = take_key(reader)?;
            return Ok(Call::Deregister { entity, key });
        }
        let (by, of) = (entity, CallNumber(reader.ordinal("wait")?));
        Ok(if kind == 19 {
            Call::Register {
                by,
                of,
                key: take_key(reader)?,
                type_id: TypeId(reader.narrow("type")?),
            }
        } else {
            Call::Registered {
                by,
                of,
                outcome: Registration::read(reader)?,
            }
        })
    }
}

impl Registration {
    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Done(entry) => {
                out.push(0);
                entry.write(out);
            }
            Self::Taken(by) => {
                out.push(1);
                put_mailbox(out, by);
            }
            Self::Refused(why) => {
                out.push(2);
                put_bytes(out, why.as_bytes());
            }
        }
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let wrong = reader.malformed("registration");
        Ok(match reader.byte("registration")? {
            0 => Self::Done(GlobalEntry::read(reader)?),
            1 => Self::Taken(take_mailbox(reader)?),
            2 => Self::Refused(take_text(reader)?),
            _ => return Err(wrong),
        })
    }
}

impl CellCreation {
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        put_number(out, self.entity.0);
        put_number(out, u64::from(self.type_id.0));
        put_number(out, u64::from(self.home.0));
        // 0: without a base part. 1: the first cell part. 2: a further one.
        out.push(if self.former.is_some() { 2 } else { u8::from(self.based) });
        put_place(out, &self.place);
        put_properties(out, &self.properties);
        put_option(out, self.client.as_ref(), put_client);
        if let Some(former) = &self.former {
            former.write(out);
        }
    }

    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let (entity, type_id) = (EntityId(reader.number("entity")?), TypeId(reader.narrow("type")?));
        let home = OwnerId(reader.narrow("owner")?);
        let wrong = reader.malformed("creation of a cell part");
        let (based, is_further) = match reader.byte("creation of a cell part")? {
            0 => (false, false),
            1 => (true, false),
            2 => (true, true),
            _ => return Err(wrong),
        };
        Ok(CellCreation {
            entity,
            type_id,
            home,
            based,
            place: take_place(reader)?,
            properties: take_properties(reader)?,
            client: take_option(reader, take_client)?,
            former: is_further.then(|| FormerCell::read(reader)).transpose()?.map(Box::new),
        })
    }
}

impl RequestedBase {
    fn write(&self, out: &mut Vec<u8>) {
        put_number(out, self.by.0);
        put_number(out, self.of.0);
        put_number(out, u64::from(self.type_id.0));
        put_properties(out, &self.properties);
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Self {
            by: EntityId(reader.number("entity")?),
            of: CallNumber(reader.ordinal("wait")?),
            type_id: TypeId(reader.narrow("type")?),
            properties: take_properties(reader)?,
        })
    }
}

/// A link: the caller and the receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Link {
    /// The calling end.
    pub from: Address,
    /// The called end.
    pub to: Address,
}

impl Link {
    /// The link on which answers come.
    #[must_use]
    pub fn back(self) -> Link {
        Link {
            from: self.to,
            to: self.from,
        }
    }
}

impl std::fmt::Display for Link {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} → {}", self.from, self.to)
    }
}

pub(crate) fn take_text(reader: &mut Reader<'_>) -> Result<String, Malformed> {
    let wrong = reader.malformed("text");
    std::str::from_utf8(reader.bytes("text")?)
        .map(str::to_owned)
        .map_err(|_| wrong)
}

pub(crate) fn put_client(out: &mut Vec<u8>, client: &ClientLink) {
    put_number(out, client.session.0);
    put_number(out, u64::from(client.proxy.0));
}

pub(crate) fn take_client(reader: &mut Reader<'_>) -> Result<ClientLink, Malformed> {
    Ok(ClientLink {
        session: SessionId(reader.number("session")?),
        proxy: OwnerId(reader.narrow("owner")?),
    })
}

/// Appends a place: the space's number, then position and direction as six little-endian floats.
pub fn put_place(out: &mut Vec<u8>, place: &Place) {
    put_number(out, u64::from(place.space.0));
    let Position { x, y, z } = place.position;
    let Direction { yaw, pitch, roll } = place.direction;
    for axis in [x, y, z, yaw, pitch, roll] {
        out.extend(axis.to_bits().to_le_bytes());
    }
}

/// Takes a place.
///
/// # Errors
/// When it is cut off.
pub fn take_place(reader: &mut Reader<'_>) -> Result<Place, Malformed> {
    let space = SpaceId(reader.narrow("space")?);
    let mut axes = [0f32; 6];
    for axis in &mut axes {
        *axis = f32::from_bits(u32::from_le_bytes(reader.array("place")?));
    }
    let [x, y, z, yaw, pitch, roll] = axes;
    Ok(Place {
        space,
        position: Position { x, y, z },
        direction: Direction { yaw, pitch, roll },
    })
}

/// Appends properties, prefixed with their count: member number and value, in ascending order of members.
pub fn put_properties(out: &mut Vec<u8>, properties: &[(MemberId, Value)]) {
    put_number(out, properties.len() as u64);
    for (member, value) in properties {
        put_number(out, u64::from(member.0));
        super::value::put_value(out, value);
    }
}

/// Takes properties.
///
/// # Errors
/// When they are not in their one encoding.
pub fn take_properties(reader: &mut Reader<'_>) -> Result<Vec<(MemberId, Value)>, Malformed> {
    let count = reader.count(2, "property count")?;
    let mut properties: Vec<(MemberId, Value)> = Vec::with_capacity(count);
    for _ in 0..count {
        let wrong = reader.malformed("property order");
        let member = MemberId(reader.narrow("member")?);
        if properties.last().is_some_and(|(last, _)| *last >= member) {
            return Err(wrong);
        }
        properties.push((member, super::value::take_value(reader)?));
    }
    Ok(properties)
}

pub(crate) fn put_option<T>(out: &mut Vec<u8>, value: Option<&T>, put: fn(&mut Vec<u8>, &T)) {
    out.push(u8::from(value.is_some()));
    if let Some(value) = value {
        put(out, value);
    }
}

pub(crate) fn take_option<T>(
    reader: &mut Reader<'_>,
    take: fn(&mut Reader<'_>) -> Result<T, Malformed>,
) -> Result<Option<T>, Malformed> {
    if take_bool(reader)? {
        take(reader).map(Some)
    } else {
        Ok(None)
    }
}

pub(crate) fn take_bool(reader: &mut Reader<'_>) -> Result<bool, Malformed> {
    let wrong = reader.malformed("yes or no");
    match reader.byte("yes or no")? {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(wrong),
    }
}

fn put_created(out: &mut Vec<u8>, created: &Result<(EntityId, TypeId), String>) {
    match created {
        Ok((entity, type_id)) => {
            out.push(1);
            put_number(out, entity.0);
            put_number(out, u64::from(type_id.0));
        }
        Err(why) => {
            out.push(0);
            put_bytes(out, why.as_bytes());
        }
    }
}

fn take_created(reader: &mut Reader<'_>) -> Result<Result<(EntityId, TypeId), String>, Malformed> {
    Ok(if take_bool(reader)? {
        Ok((EntityId(reader.number("entity")?), TypeId(reader.narrow("type")?)))
    } else {
        Err(take_text(reader)?)
    })
}

/// Appends an outcome.
pub fn put_outcome(out: &mut Vec<u8>, outcome: &Outcome) {
    let (tag, texts): (u8, &[&String]) = match outcome {
        Ok(values) => {
            out.push(0);
            put_values(out, values);
            return;
        }
        Err(CallError::Authenticate(text)) => (1, &[text]),
        Err(CallError::Internal(text)) => (2, &[text]),
        Err(CallError::InvalidArgs(text)) => (3, &[text]),
        Err(CallError::NoReply) => (4, &[]),
        Err(CallError::NoSuchEntity) => (5, &[]),
        Err(CallError::NoSuchCellEntity) => (6, &[]),
        Err(CallError::Custom(name, text)) => (7, &[name, text]),
    };
    out.push(tag);
    for text in texts {
        put_bytes(out, text.as_bytes());
    }
}

pub(crate) fn take_outcome(reader: &mut Reader<'_>) -> Result<Outcome, Malformed> {
    let wrong = reader.malformed("outcome");
    Ok(match reader.byte("outcome")? {
        0 => Ok(take_values(reader)?),
        1 => Err(CallError::Authenticate(take_text(reader)?)),
        2 => Err(CallError::Internal(take_text(reader)?)),
        3 => Err(CallError::InvalidArgs(take_text(reader)?)),
        4 => Err(CallError::NoReply),
        5 => Err(CallError::NoSuchEntity),
        6 => Err(CallError::NoSuchCellEntity),
        7 => Err(CallError::Custom(take_text(reader)?, take_text(reader)?)),
        _ => return Err(wrong),
    })
}
