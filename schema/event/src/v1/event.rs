//! Events: what happened, in the words of the log.
//!
//! ```text
//! event   = kind:u8 subject cause:number history:number body
//! subject = 0:u8  |  1:u8 entity:number (base)  |  2:u8 entity:number (cell)
//! ```
//! `cause` is 0, or one more than the index of the consumed call in the batch's header; `history` is 0 for events that
//! nobody else may see. Bodies are written field by field in the order of their declaration.

use annals_def::{Located, Value};
use annals_ids::{
    Address, CallNumber, ControllerId, DatabaseId, EntityId, HistoryNumber, MemberId, NoticeNumber, OwnerId, Part,
    SessionId, SpaceId, TimerId, TransferNumber, TypeId, WorldTime,
};

use super::{
    adoption::Adoption,
    batch::{put_address, take_address},
    call::{
        Call, CellCreation, ClientLink, Place, put_client, put_option, put_place, put_properties, take_bool,
        take_client, take_option, take_place, take_properties,
    },
    change::{put_change, take_change},
    controller::{ControllerEvent, take_controller_id},
    image::Image,
    ledger::{Entry, News, Order},
    movement_control::MovementControl,
    sight::SightChange,
    space_data::SpaceEntry,
    value::{put_values, take_values},
};
use crate::encoding::{Malformed, Reader, put_bytes, put_number};

/// Whose state an event changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subject {
    /// The owner's own.
    Owner,
    /// One part of one entity.
    Entity(EntityId, Part),
}

/// Which of the batch's consumed calls an event came from: its index plus one, or 0 for none (a timer, a decision of
/// the owner itself).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cause(pub u32);

/// One change.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// Whose state it changes.
    pub subject: Subject,
    /// What led to it.
    pub cause: Cause,
    /// Its place in what others may see of the subject; `None` for what concerns nobody else.
    pub history: Option<HistoryNumber>,
    /// What happened.
    pub body: Body,
}

/// Which clients a client method is called on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Audience {
    /// The entity's own.
    Own,
    /// Every other that sees it.
    Others,
    /// Both.
    All,
}

/// A timer of an entity part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timer {
    /// When it fires next.
    pub due: WorldTime,
    /// Milliseconds between firings; 0 if it fires once.
    pub every: u64,
    /// What the behaviour wanted to be reminded of.
    pub tag: u32,
}

/// A reply that is waited for. What is to be done with it is data, so that it survives the process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Awaiting {
    /// When the wait ends without one.
    pub deadline: WorldTime,
    /// Which continuation of the behaviour is to be run.
    pub then: u32,
    /// What that continuation needs to know.
    pub note: Vec<u8>,
}

/// How a base part came to be.
#[derive(Clone, Debug, PartialEq)]
pub struct BaseCreation {
    /// Its type.
    pub type_id: TypeId,
    /// The entity of the database it stands for; 0 if none.
    pub database: DatabaseId,
    /// Which check-out of that entity this life holds; 0 if none.
    pub checkout: u64,
    /// Every property that the base part holds.
    pub properties: Vec<(MemberId, Value)>,
    /// What the database keeps of its cell part, for when it has one.
    pub cell_properties: Vec<(MemberId, Value)>,
}

/// What can happen.
#[derive(Clone, Debug, PartialEq)]
pub enum Body {
    /// The base part begins to exist.
    BaseCreated(Box<BaseCreation>),
    /// The cell part begins to exist. The subject repeats the entity.
    CellCreated(Box<CellCreation>),
    /// The part ceases to exist. Its unconfirmed calls stay with the owner.
    Destroyed,
    /// A property was changed: the whole of it, a part, or a slice of an array in it.
    Changed {
        /// Index among the type's properties.
        member: MemberId,
        /// What was changed in it.
        change: Located,
    },
    /// A client method was called on clients.
    Invoked {
        /// Index among the type's client methods.
        method: MemberId,
        /// Its arguments.
        args: Vec<Value>,
        /// On whose clients.
        audience: Audience,
    },
    /// Where a cell part was, about once a second.
    Moved(Place),
    /// A call on the link from the subject to `to`.
    Called {
        /// The receiving end.
        to: Address,
        /// The receiver's home: the owner that knows where it is.
        home: OwnerId,
        /// Its number on the link.
        number: CallNumber,
        /// What is asked.
        call: Call,
    },
    /// Calls up to this number need not be kept any longer.
    Confirmed {
        /// The receiving end.
        to: Address,
        /// The last of them.
        upto: CallNumber,
        /// Whether the receiver is gone, so that they may not have been taken.
        lost: bool,
    },
    /// The reply to the call with this number is waited for.
    Awaits {
        /// The receiving end.
        to: Address,
        /// Which call.
        number: CallNumber,
        /// What then.
        awaiting: Awaiting,
    },
    /// A wait has ended, with a reply or without.
    Resumed {
        /// The receiving end.
        to: Address,
        /// Which call.
        number: CallNumber,
    },
    /// A timer was set, or set again after it fired.
    TimerSet {
        /// Which.
        timer: TimerId,
        /// When and what for.
        at: Timer,
    },
    /// A timer fired for the last time or was cancelled.
    TimerGone {
        /// Which.
        timer: TimerId,
    },
    /// The client of this part, from now on; on a cell part, whom its witness serves.
    ClientSet(Option<ClientLink>),
    /// A session's secret was renewed: the SHA-256 of the token with which the client may resume.
    TokenSet([u8; 32]),
    /// Where the entity's cell part is, as its home knows.
    Placed(Option<OwnerId>),
    /// The entity left for another owner in the call with this number on the link to it.
    Offloaded {
        /// Which owner.
        to: OwnerId,
        /// Which call.
        number: CallNumber,
    },
    /// The entity arrived there for good.
    Departed {
        /// Which owner.
        to: OwnerId,
        /// Which call.
        number: CallNumber,
    },
    /// The entity was refused there and is real here again.
    Returned {
        /// Which owner.
        to: OwnerId,
        /// Which call.
        number: CallNumber,
    },
    /// The entity was taken over.
    Onloaded {
        /// From which owner.
        from: OwnerId,
        /// In which call on the link from it.
        number: CallNumber,
        /// All of it.
        image: Box<Image>,
    },
    /// The entity was not taken over.
    Refused {
        /// From which owner.
        from: OwnerId,
        /// In which call on the link from it.
        number: CallNumber,
    },
    /// This was written into a space's data, here or by another of its owners. It changes nothing where something newer is held.
    SpaceData {
        /// Which space.
        space: SpaceId,
        /// What.
        entry: SpaceEntry,
    },
    /// The persistent properties are to be written to the database, in the transaction that folds this.
    Stored {
        /// The entity of the database that this one stands for from now on, if it did not before.
        database: DatabaseId,
    },
    /// The realm begins with this entity, which was made in the same input: once in the life of an owner.
    Bootstrapped {
        /// Which entity.
        entity: EntityId,
    },
    /// The base part asks something of the ledger. It is executed in the transaction that folds this.
    Ordered {
        /// Which of its orders.
        number: TransferNumber,
        /// What.
        order: Order,
    },
    /// The base part heard from the ledger.
    Booked(News),
    /// Of what was just `Booked` a property that is the view of an account has another value, which clients are shown. The
    /// value is not logged: it is what the part knows of the ledger.
    Restated {
        /// Index among the type's properties.
        member: MemberId,
    },
    /// The ledger's owner took this from the outbox; what it then calls tells those whom it concerns.
    Entered {
        /// Which notice.
        notice: NoticeNumber,
        /// The entry, unless it is a statement.
        entry: Option<Box<Entry>>,
    },
    /// A controller of a cell part was set, came a step further, or is over.
    Controlled {
        /// Which.
        controller: ControllerId,
        /// What became of it.
        what: ControllerEvent,
    },
    /// Who says where a cell part goes, and how fast, is this from now on.
    ControlChanged(MovementControl),
    /// What the client of a cell part is shown of others is otherwise from now on.
    Sighted(SightChange),
    /// A client came in, with a ticket or back again. It changes nothing in the state.
    Admitted {
        /// In which session.
        session: SessionId,
        /// The stored entity under whose key it is sealed; 0 if that was not known.
        person: DatabaseId,
        /// Who it is and from where (rule P6); empty where there was no key.
        sealed: Vec<u8>,
    },
    /// An operator had the store take up, or give up, what the logs held and it did not know (rule F17). After a take-over of
    /// the ledger's owner the same one may be here twice. It changes nothing in the state.
    Adopted(Box<Adoption>),
}

impl Event {
    /// Appends the event.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.push(self.body.kind());
        match self.subject {
            Subject::Owner => out.push(0),
            Subject::Entity(entity, part) => {
                out.push(match part {
                    Part::Base => 1,
                    Part::Cell => 2,
                });
                put_number(out, entity.0);
            }
        }
        put_number(out, u64::from(self.cause.0));
        put_number(out, self.history.map_or(0, |number| number.0));
        self.body.write(out);
    }

    /// Reads an event that fills `bytes`.
    ///
    /// # Errors
    /// When it is not in its one encoding.
    pub fn read(bytes: &[u8]) -> Result<Event, Malformed> {
        let mut reader = Reader::new(bytes);
        let event = Self::read_from(&mut reader)?;
        reader.finish("end of event")?;
        Ok(event)
    }

    fn read_from(reader: &mut Reader<'_>) -> Result<Event, Malformed> {
        let start = reader.clone();
        let kind = reader.byte("event kind")?;
        let subject = match reader.byte("subject")? {
            0 => Subject::Owner,
            1 => Subject::Entity(EntityId(reader.number("entity")?), Part::Base),
            2 => Subject::Entity(EntityId(reader.number("entity")?), Part::Cell),
            _ => return Err(start.malformed("subject")),
        };
        let cause = Cause(reader.narrow("cause")?);
        let history = Some(reader.ordinal("history number")?)
            .filter(|&number| number > 0)
            .map(HistoryNumber);
        Ok(Event {
            subject,
            cause,
            history,
            body: Body::read(kind, reader)?,
        })
    }
}

/// Events behind their count, each behind its length.
pub(crate) fn put_events<'a>(out: &mut Vec<u8>, events: impl ExactSizeIterator<Item = &'a Event>) {
    put_number(out, events.len() as u64);
    let mut scratch = Vec::new();
    for event in events {
        scratch.clear();
        event.write(&mut scratch);
        put_bytes(out, &scratch);
    }
}

pub(crate) fn take_events<C: FromIterator<Event>>(reader: &mut Reader<'_>) -> Result<C, Malformed> {
    let count = reader.count(5, "event count")?;
    (0..count).map(|_| Event::read(reader.bytes("event")?)).collect()
}

impl Body {
    /// The name of what happened, as tools print it.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Body::BaseCreated(_) => "base created",
            Body::CellCreated(_) => "cell created",
            Body::Destroyed => "destroyed",
            Body::Changed { .. } => "changed",
            Body::Invoked { .. } => "invoked",
            Body::Moved(_) => "moved",
            Body::Called { .. } => "called",
            Body::Confirmed { .. } => "confirmed",
            Body::Awaits { .. } => "awaits",
            Body::Resumed { .. } => "resumed",
            Body::TimerSet { .. } => "timer set",
            Body::TimerGone { .. } => "timer gone",
            Body::ClientSet(_) => "client set",
            Body::TokenSet(_) => "token set",
            Body::Placed(_) => "placed",
            Body::Offloaded { .. } => "offloaded",
            Body::Departed { .. } => "departed",
            Body::Returned { .. } => "returned",
            Body::Onloaded { .. } => "onloaded",
            Body::Refused { .. } => "refused",
            Body::SpaceData { .. } => "space data",
            Body::Stored { .. } => "stored",
            Body::Bootstrapped { .. } => "bootstrapped",
            Body::Ordered { .. } => "ordered",
            Body::Booked(_) => "booked",
            Body::Restated { .. } => "restated",
            Body::Entered { .. } => "entered",
            Body::Controlled { what, .. } => what.name(),
            Body::ControlChanged(_) => "reined",
            Body::Sighted(_) => "sighted",
            Body::Admitted { .. } => "admitted",
            Body::Adopted(_) => "adopted",
        }
    }

    fn kind(&self) -> u8 {
        match self {
            Body::BaseCreated(_) => 1,
            Body::CellCreated(_) => 2,
            Body::Destroyed => 3,
            Body::Changed { .. } => 4,
            Body::Invoked { .. } => 5,
            Body::Moved(_) => 6,
            Body::Called { .. } => 7,
            Body::Confirmed { .. } => 8,
            Body::Awaits { .. } => 9,
            Body::Resumed { .. } => 10,
            Body::TimerSet { .. } => 11,
            Body::TimerGone { .. } => 12,
            Body::ClientSet(_) => 13,
            Body::TokenSet(_) => 14,
            Body::Placed(_) => 15,
            Body::Offloaded { .. } => 16,
            Body::Departed { .. } => 17,
            Body::Returned { .. } => 18,
            Body::Onloaded { .. } => 19,
            Body::Refused { .. } => 20,
            Body::SpaceData { .. } => 21,
            Body::Stored { .. } => 22,
            Body::Bootstrapped { .. } => 23,
            Body::Ordered { .. } => 24,
            Body::Booked(_) => 25,
            Body::Entered { .. } => 26,
            Body::Restated { .. } => 27,
            Body::Controlled { .. } => 28,
            Body::ControlChanged(_) => 29,
            Body::Sighted(_) => 30,
            Body::Admitted { .. } => 31,
            Body::Adopted(_) => 32,
        }
    }

    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Body::BaseCreated(creation) => {
                put_number(out, u64::from(creation.type_id.0));
                put_number(out, creation.database.0);
                put_number(out, creation.checkout);
                put_properties(out, &creation.properties);
                put_properties(out, &creation.cell_properties);
            }
            Body::CellCreated(creation) => creation.write(out),
            Body::Destroyed => {}
            Body::Stored { database } => put_number(out, database.0),
            Body::Bootstrapped { entity } => put_number(out, entity.0),
            Body::Ordered { .. } | Body::Booked(_) | Body::Entered { .. } => self.write_ledger(out),
            Body::Restated { member } => put_number(out, u64::from(member.0)),
            Body::Changed { member, change } => {
                put_number(out, u64::from(member.0));
                put_change(out, change);
            }
            Body::Invoked { method, args, audience } => {
                put_number(out, u64::from(method.0));
                out.push(match audience {
                    Audience::Own => 0,
                    Audience::Others => 1,
                    Audience::All => 2,
                });
                put_values(out, args);
            }
            Body::Moved(place) => put_place(out, place),
            Body::Called { to, home, number, call } => {
                put_link_end(out, *to, *number);
                put_number(out, u64::from(home.0));
                call.write(out);
            }
            Body::Confirmed { to, upto, lost } => {
                put_link_end(out, *to, *upto);
                out.push(u8::from(*lost));
            }
            Body::Awaits { to, number, awaiting } => {
                put_link_end(out, *to, *number);
                put_awaiting(out, awaiting);
            }
            Body::Resumed { to, number } => put_link_end(out, *to, *number),
            Body::TimerSet { timer, at } => {
                put_number(out, u64::from(timer.0));
                put_timer(out, at);
            }
            Body::TimerGone { timer } => put_number(out, u64::from(timer.0)),
            Body::ClientSet(_) | Body::TokenSet(_) | Body::Admitted { .. } => self.write_session(out),
            Body::Placed(owner) => put_option(out, owner.as_ref(), |out, owner| put_number(out, u64::from(owner.0))),
            Body::Offloaded { to: owner, number }
            | Body::Departed { to: owner, number }
            | Body::Returned { to: owner, number }
            | Body::Refused { from: owner, number } => put_transfer(out, *owner, *number),
            Body::Onloaded { from, number, image } => {
                put_transfer(out, *from, *number);
                image.write(out);
            }
            Body::SpaceData { space, entry } => {
                put_number(out, u64::from(space.0));
                entry.write(out);
            }
            Body::Controlled { controller, what } => what.write(*controller, out),
            Body::ControlChanged(movement_control) => movement_control.write(out),
            Body::Sighted(change) => change.write(out),
            Body::Adopted(adoption) => adoption.write(out),
        }
    }

    fn write_session(&self, out: &mut Vec<u8>) {
        match self {
            Body::ClientSet(client) => put_option(out, client.as_ref(), put_client),
            Body::TokenSet(digest) => out.extend(digest),
            Body::Admitted {
                session,
                person,
                sealed,
            } => {
                put_number(out, session.0);
                put_number(out, person.0);
                put_bytes(out, sealed);
            }
            _ => unreachable!("invariant: it is about a session"),
        }
    }

    fn write_ledger(&self, out: &mut Vec<u8>) {
        match self {
            Body::Ordered { number, order } => {
                put_number(out, number.0);
                order.write(out);
            }
            Body::Booked(news) => news.write(out),
            Body::Entered { notice, entry } => {
                put_number(out, notice.0);
                put_option(out, entry.as_deref(), |out, entry| entry.write(out));
            }
            _ => unreachable!("invariant: it is about the ledger"),
        }
    }

    fn read(kind: u8, reader: &mut Reader<'_>) -> Result<Body, Malformed> {
        let wrong = reader.malformed("event kind");
        Ok(match kind {
            1 => Body::BaseCreated(Box::new(BaseCreation {
                type_id: TypeId(reader.narrow("type")?),
                database: DatabaseId(reader.number("database id")?),
                checkout: reader.number("check-out")?,
                properties: take_properties(reader)?,
                cell_properties: take_properties(reader)?,
            })),
            2 => Body::CellCreated(Box::new(CellCreation::read(reader)?)),
            3 => Body::Destroyed,
            4 => Body::Changed {
                member: MemberId(reader.narrow("member")?),
                change: take_change(reader)?,
            },
            5 => Body::Invoked {
                method: MemberId(reader.narrow("method")?),
                audience: take_audience(reader)?,
                args: take_values(reader)?,
            },
            6 => Body::Moved(take_place(reader)?),
            7..=10 => Self::read_link(kind, reader)?,
            11 => Body::TimerSet {
                timer: take_timer_id(reader)?,
                at: take_timer(reader)?,
            },
            12 => Body::TimerGone {
                timer: take_timer_id(reader)?,
            },
            13 => Body::ClientSet(take_option(reader, take_client)?),
            14 => Body::TokenSet(reader.array("token digest")?),
            15 => Body::Placed(take_option(reader, |reader| Ok(OwnerId(reader.narrow("owner")?)))?),
            16..=20 => Self::read_transfer(kind, reader)?,
            21 => Body::SpaceData {
                space: SpaceId(reader.narrow("space")?),
                entry: SpaceEntry::read(reader)?,
            },
            22 => Body::Stored {
                database: DatabaseId(reader.number("database id")?),
            },
            23 => Body::Bootstrapped {
                entity: EntityId(reader.number("entity")?),
            },
            24 => Body::Ordered {
                number: TransferNumber(reader.ordinal("transfer number")?),
                order: Order::read(reader)?,
            },
            25 => Body::Booked(News::read(reader)?),
            26 => Body::Entered {
                notice: NoticeNumber(reader.ordinal("notice number")?),
                entry: take_option(reader, Entry::read)?.map(Box::new),
            },
            27 => Body::Restated {
                member: MemberId(reader.narrow("member")?),
            },
            28 => Body::Controlled {
                controller: take_controller_id(reader)?,
                what: ControllerEvent::read(reader)?,
            },
            29 => Body::ControlChanged(MovementControl::read(reader)?),
            30 => Body::Sighted(SightChange::read(reader)?),
            31 => Self::read_admission(reader)?,
            32 => Body::Adopted(Box::new(Adoption::read(reader)?)),
            _ => return Err(wrong),
        })
    }

    fn read_admission(reader: &mut Reader<'_>) -> Result<Body, Malformed> {
        Ok(Body::Admitted {
            session: SessionId(reader.number("session")?),
            person: DatabaseId(reader.number("database id")?),
            sealed: reader.bytes("what is sealed")?.to_vec(),
        })
    }

    fn read_link(kind: u8, reader: &mut Reader<'_>) -> Result<Body, Malformed> {
        let (to, number) = take_link_end(reader)?;
        Ok(match kind {
            7 => Body::Called {
                to,
                number,
                home: OwnerId(reader.narrow("owner")?),
                call: Call::read(reader)?,
            },
            8 => Body::Confirmed {
                to,
                upto: number,
                lost: take_bool(reader)?,
            },
            9 => Body::Awaits {
                to,
                number,
                awaiting: take_awaiting(reader)?,
            },
            _ => Body::Resumed { to, number },
        })
    }

    fn read_transfer(kind: u8, reader: &mut Reader<'_>) -> Result<Body, Malformed> {
        let owner = OwnerId(reader.narrow("owner")?);
        let number = CallNumber(reader.ordinal("call number")?);
        Ok(match kind {
            16 => Body::Offloaded { to: owner, number },
            17 => Body::Departed { to: owner, number },
            18 => Body::Returned { to: owner, number },
            19 => Body::Onloaded {
                from: owner,
                number,
                image: Box::new(Image::read(reader)?),
            },
            _ => Body::Refused { from: owner, number },
        })
    }
}

fn put_transfer(out: &mut Vec<u8>, owner: OwnerId, number: CallNumber) {
    put_number(out, u64::from(owner.0));
    put_number(out, number.0);
}

fn put_link_end(out: &mut Vec<u8>, to: Address, number: CallNumber) {
    put_address(out, to);
    put_number(out, number.0);
}

fn take_link_end(reader: &mut Reader<'_>) -> Result<(Address, CallNumber), Malformed> {
    Ok((take_address(reader)?, CallNumber(reader.ordinal("call number")?)))
}

fn take_audience(reader: &mut Reader<'_>) -> Result<Audience, Malformed> {
    let wrong = reader.malformed("audience");
    match reader.byte("audience")? {
        0 => Ok(Audience::Own),
        1 => Ok(Audience::Others),
        2 => Ok(Audience::All),
        _ => Err(wrong),
    }
}

pub(crate) fn put_timer(out: &mut Vec<u8>, timer: &Timer) {
    put_number(out, timer.due.0);
    put_number(out, timer.every);
    put_number(out, u64::from(timer.tag));
}

/// A timer's number, which others can follow as they can any [ordinal](Reader::ordinal).
pub(crate) fn take_timer_id(reader: &mut Reader<'_>) -> Result<TimerId, Malformed> {
    reader.short_ordinal("timer").map(TimerId)
}

pub(crate) fn take_timer(reader: &mut Reader<'_>) -> Result<Timer, Malformed> {
    Ok(Timer {
        due: WorldTime(reader.number("timer due")?),
        every: reader.number("timer interval")?,
        tag: reader.narrow("timer tag")?,
    })
}

pub(crate) fn put_awaiting(out: &mut Vec<u8>, awaiting: &Awaiting) {
    put_number(out, awaiting.deadline.0);
    put_number(out, u64::from(awaiting.then));
    put_bytes(out, &awaiting.note);
}

pub(crate) fn take_awaiting(reader: &mut Reader<'_>) -> Result<Awaiting, Malformed> {
    Ok(Awaiting {
        deadline: WorldTime(reader.number("deadline")?),
        then: reader.narrow("continuation")?,
        note: reader.bytes("note")?.to_vec(),
    })
}
