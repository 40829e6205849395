//! Events: the changes that the log records.
//!
//! ```text
//! event   = kind:u8 subject cause:number history:number body
//! subject = 0:u8  |  1:u8 entity:number (base)  |  2:u8 entity:number (cell)
//! ```
//! `cause` is 0, or one more than the index of the consumed call in the batch's header; `history` is 0 for events that
//! only the subject may see. Bodies are written field by field in the order of their declaration.

use std::collections::BTreeMap;

use annals_def::{Located, Value};
use annals_ids::{
    Address, CallNumber, ControllerId, DatabaseId, EntityId, HistoryNumber, MemberId, NoticeNumber, OwnerId, Part,
    SessionId, SpaceId, TimerId, TransferNumber, TypeId, WorldTime,
};

use super::{
    adoption::Adoption,
    audience::{Audience, put_audience, take_audience},
    batch::{put_address, take_address},
    call::{
        Call, CellCreation, ClientLink, Outcome, Place, put_client, put_option, put_outcome, put_place, put_properties,
        take_bool, take_client, take_option, take_outcome, take_place, take_properties,
    },
    change::{put_change, take_change},
    controller::{ControllerEvent, take_controller_id},
    former_cell::FormerCell,
    global_data::{GlobalEntry, GlobalScope},
    image::{Image, put_held, take_generation, take_held},
    ledger::{Entry, LedgerUpdate, Order},
    movement_control::MovementControl,
    sight::SightChange,
    space_data::SpaceEntry,
    value::{put_values, take_values},
};
use crate::encoding::{Malformed, Reader, put_bytes, put_number};

/// Whose state an event changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subject {
    /// The owner's own state.
    Owner,
    /// One part of one entity.
    Entity(EntityId, Part),
}

/// The consumed call of the batch that caused an event: its index plus one, or 0 for none (a timer, a decision of the
/// owner itself).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cause(pub u32);

/// One change.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// The changed state.
    pub subject: Subject,
    pub cause: Cause,
    /// Its history number, if others may see it.
    pub history: Option<HistoryNumber>,
    /// The change.
    pub body: Body,
}

/// A timer of an entity part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timer {
    /// Time of the next firing.
    pub due: WorldTime,
    /// Interval between firings (ms); 0 for a single firing.
    pub every: u64,
    /// Chosen by the behaviour.
    pub tag: u32,
}

/// An awaited reply. How to continue is data, so it survives the process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Awaiting {
    /// When the wait times out.
    pub deadline: WorldTime,
    /// The continuation of the behaviour to run.
    pub then: u32,
    /// Data for that continuation.
    pub note: Vec<u8>,
}

/// The initial state of a base part.
#[derive(Clone, Debug, PartialEq)]
pub struct BaseCreation {
    pub type_id: TypeId,
    /// The stored entity that it stands for; 0 if none.
    pub database: DatabaseId,
    /// The check-out of that stored entity that this activation holds; 0 if none.
    pub checkout: u64,
    /// Every property that the base part holds.
    pub properties: Vec<(MemberId, Value)>,
    /// The stored properties of its cell part, for when it is created.
    pub cell_properties: Vec<(MemberId, Value)>,
}

/// The kinds of changes.
#[derive(Clone, Debug, PartialEq)]
pub enum Body {
    /// The base part is created.
    BaseCreated(Box<BaseCreation>),
    /// The cell part is created. The subject repeats the entity.
    CellCreated(Box<CellCreation>),
    /// The part is destroyed. Its unconfirmed calls stay with the owner.
    Destroyed,
    /// The cell part, which has a base part, ends: `Destroyed` follows. Its state stays with the owner until its calls are
    /// confirmed, and then returns to the base part with [`Call::CellEnded`].
    CellEnding,
    /// The state of a cell part that has ended has returned to its base part.
    CellReturned {
        /// What the next cell part continues.
        former: Box<FormerCell>,
        /// The last values of all its properties.
        properties: BTreeMap<MemberId, Value>,
    },
    /// A property was changed: the whole value, a part of it, or a slice of an array in it.
    Changed {
        /// Index among the type's properties.
        member: MemberId,
        /// The change, with its path in the value.
        change: Located,
    },
    /// A client method was called on clients.
    Invoked {
        /// Index among the type's client methods.
        method: MemberId,
        /// Its arguments.
        args: Vec<Value>,
        /// Which clients.
        audience: Audience,
    },
    /// The part has answered a call of a client, which is shown the answer.
    Replied {
        /// The session that called.
        to: SessionId,
        /// The number of the answered call.
        number: CallNumber,
        /// Index of the called method among those of the part.
        method: MemberId,
        /// Values that fit the method, or the error.
        outcome: Outcome,
    },
    /// The place of a cell part, logged about once a second.
    Moved(Place),
    /// A call on the link from the subject to `to`.
    Called {
        /// The receiving end.
        to: Address,
        /// The receiver's home: the owner that knows where it is.
        home: OwnerId,
        /// Its number on the link.
        number: CallNumber,
        call: Call,
    },
    /// Calls up to this number are acknowledged and need not be kept.
    Confirmed {
        /// The receiving end.
        to: Address,
        /// The last of them.
        upto: CallNumber,
        /// Whether the receiver no longer exists, so that they may not have been taken.
        lost: bool,
    },
    /// The reply to the call with this number is awaited.
    Awaits {
        /// The receiving end.
        to: Address,
        /// The number of the call.
        number: CallNumber,
        /// How to continue.
        awaiting: Awaiting,
    },
    /// A wait has ended, with or without a reply.
    Resumed {
        /// The receiving end.
        to: Address,
        /// The number of the call.
        number: CallNumber,
    },
    /// A timer was set, or set again after it fired.
    TimerSet {
        timer: TimerId,
        /// Its schedule and tag.
        at: Timer,
    },
    /// A timer fired for the last time or was cancelled.
    TimerGone { timer: TimerId },
    /// Sets the client of this part; on a cell part, the client that its witness serves.
    ClientSet(Option<ClientLink>),
    /// A session's secret was renewed: the SHA-256 of the token with which the client may resume.
    TokenSet([u8; 32]),
    /// The owner of the entity's cell part, as its home knows it.
    Placed(Option<OwnerId>),
    /// The entity left for another owner in the call with this number on the link to it.
    Offloaded {
        /// The receiving owner.
        to: OwnerId,
        /// The number of the call.
        number: CallNumber,
    },
    /// The hand-over was acknowledged: the entity is real there.
    Departed {
        /// The receiving owner.
        to: OwnerId,
        /// The number of the call.
        number: CallNumber,
    },
    /// The hand-over was refused: the entity is real here again.
    Returned {
        /// The receiving owner.
        to: OwnerId,
        /// The number of the call.
        number: CallNumber,
    },
    /// The entity was taken over.
    Onloaded {
        /// The sending owner.
        from: OwnerId,
        /// The number of the call on the link from it.
        number: CallNumber,
        /// The whole part.
        image: Box<Image>,
    },
    /// The entity was not taken over.
    Refused {
        /// The sending owner.
        from: OwnerId,
        /// The number of the call on the link from it.
        number: CallNumber,
    },
    /// An entry was written to a space's data, here or by another of the space's owners. Has no effect where a newer
    /// version is held.
    SpaceData { space: SpaceId, entry: SpaceEntry },
    /// An entry was written to the global data, here or by another of its owners. Has no effect where a newer version is
    /// held.
    GlobalData { scope: GlobalScope, entry: GlobalEntry },
    /// The persistent properties are to be written to the database, in the transaction that folds this event.
    Stored {
        /// The stored entity that this one stands for from now on, if it stood for none.
        database: DatabaseId,
    },
    /// This is the realm's first entity, created in the same input: at most once in the log of an owner.
    Bootstrapped { entity: EntityId },
    /// The sender has no calls up to `upto` any more, since they were taken in batches that are void: the receiver's log
    /// was cut at an accepted hole. The receiver waits for none of them (rule C2).
    CallsSkipped {
        /// The sender.
        from: Address,
        /// The highest number that is skipped.
        upto: CallNumber,
    },
    /// The owner's log was cut at an accepted hole: from here on, calls of the owner and of all its parts get numbers of
    /// this generation, above all that the void batches may have used (rule C13).
    CallsRenumbered {
        /// The generation: higher than any in use in the realm when the log was cut.
        generation: u64,
    },
    /// The base part sends an order to the ledger. It is executed in the transaction that folds this event.
    Ordered {
        /// The number of the order.
        number: TransferNumber,
        order: Order,
    },
    /// The base part received an update from the ledger.
    Booked(LedgerUpdate),
    /// After `Booked`: a property that is the view of an account has a new value, which clients are shown. The value is
    /// not logged: it is derived from the part's ledger view.
    Restated {
        /// Index among the type's properties.
        member: MemberId,
    },
    /// The ledger's owner took this notice from the outbox; the calls that follow deliver it.
    Entered {
        /// The number of the notice.
        notice: NoticeNumber,
        /// The entry; `None` for a statement.
        entry: Option<Box<Entry>>,
    },
    /// A controller of a cell part was set, advanced or ended.
    Controlled {
        controller: ControllerId,
        /// The change.
        what: ControllerEvent,
    },
    /// Sets the movement control of a cell part.
    ControlChanged(MovementControl),
    /// Changes what the client of a cell part is shown of other entities.
    Sighted(SightChange),
    /// A client was admitted, with a ticket or by reconnecting. Does not change the state.
    Admitted {
        session: SessionId,
        /// The stored entity under whose key the data is sealed; 0 if it was not known.
        person: DatabaseId,
        /// The sealed admission (rule P6); empty where there was no key.
        sealed: Vec<u8>,
    },
    /// By an operator's decision the store adopted or discarded log content that it did not know (rule F17). After a
    /// take-over of the ledger's owner the same decision may be logged twice. Does not change the state.
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

/// Appends events, prefixed with their count, each prefixed with its length.
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

impl BaseCreation {
    fn write(&self, out: &mut Vec<u8>) {
        put_number(out, u64::from(self.type_id.0));
        put_number(out, self.database.0);
        put_number(out, self.checkout);
        put_properties(out, &self.properties);
        put_properties(out, &self.cell_properties);
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Self {
            type_id: TypeId(reader.narrow("type")?),
            database: DatabaseId(reader.number("database id")?),
            checkout: reader.number("check-out")?,
            properties: take_properties(reader)?,
            cell_properties: take_properties(reader)?,
        })
    }
}

impl Body {
    /// The name of the event, as tools print it.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Body::BaseCreated(_) => "base created",
            Body::CellCreated(_) => "cell created",
            Body::Destroyed => "destroyed",
            Body::CellEnding => "cell ending",
            Body::CellReturned { .. } => "cell returned",
            Body::Changed { .. } => "changed",
            Body::Invoked { .. } => "invoked",
            Body::Replied { .. } => "replied",
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
            Body::GlobalData { .. } => "global data",
            Body::Stored { .. } => "stored",
            Body::Bootstrapped { .. } => "bootstrapped",
            Body::Ordered { .. } => "ordered",
            Body::Booked(_) => "booked",
            Body::Restated { .. } => "restated",
            Body::Entered { .. } => "entered",
            Body::Controlled { what, .. } => what.name(),
            Body::ControlChanged(_) => "control changed",
            Body::Sighted(_) => "sighted",
            Body::Admitted { .. } => "admitted",
            Body::Adopted(_) => "adopted",
            Body::CallsRenumbered { .. } => "calls renumbered",
            Body::CallsSkipped { .. } => "calls skipped",
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
            Body::CallsRenumbered { .. } => 33,
            Body::CallsSkipped { .. } => 34,
            Body::GlobalData { .. } => 35,
            Body::CellEnding => 36,
            Body::CellReturned { .. } => 37,
            Body::Replied { .. } => 38,
        }
    }

    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Body::BaseCreated(creation) => creation.write(out),
            Body::CellCreated(creation) => creation.write(out),
            Body::Destroyed | Body::CellEnding => {}
            Body::CellReturned { former, properties } => {
                former.write(out);
                put_held(out, properties);
            }
            Body::Stored { database } => put_number(out, database.0),
            Body::Bootstrapped { entity } => put_number(out, entity.0),
            Body::CallsRenumbered { generation } => put_number(out, *generation),
            Body::Ordered { .. } | Body::Booked(_) | Body::Entered { .. } => self.write_ledger(out),
            Body::Restated { member } => put_number(out, u64::from(member.0)),
            Body::Changed { member, change } => {
                put_number(out, u64::from(member.0));
                put_change(out, change);
            }
            Body::Invoked { method, args, audience } => {
                put_number(out, u64::from(method.0));
                put_audience(out, *audience);
                put_values(out, args);
            }
            Body::Replied { .. } => self.write_reply(out),
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
            Body::CallsSkipped { from, upto } => put_link_end(out, *from, *upto),
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
            Body::GlobalData { scope, entry } => {
                out.push(scope.number());
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
            _ => unreachable!("invariant: the event concerns a session"),
        }
    }

    fn write_reply(&self, out: &mut Vec<u8>) {
        let Body::Replied {
            to,
            number,
            method,
            outcome,
        } = self
        else {
            unreachable!("invariant: the event is a reply")
        };
        put_number(out, to.0);
        put_number(out, number.0);
        put_number(out, u64::from(method.0));
        put_outcome(out, outcome);
    }

    fn write_ledger(&self, out: &mut Vec<u8>) {
        match self {
            Body::Ordered { number, order } => {
                put_number(out, number.0);
                order.write(out);
            }
            Body::Booked(update) => update.write(out),
            Body::Entered { notice, entry } => {
                put_number(out, notice.0);
                put_option(out, entry.as_deref(), |out, entry| entry.write(out));
            }
            _ => unreachable!("invariant: the event concerns the ledger"),
        }
    }

    fn read(kind: u8, reader: &mut Reader<'_>) -> Result<Body, Malformed> {
        let wrong = reader.malformed("event kind");
        Ok(match kind {
            1 => Body::BaseCreated(Box::new(BaseCreation::read(reader)?)),
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
            7..=10 | 34 => Self::read_link(kind, reader)?,
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
            21 | 35 => Self::read_data(kind, reader)?,
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
            25 => Body::Booked(LedgerUpdate::read(reader)?),
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
            33 => Body::CallsRenumbered {
                generation: take_generation(reader)?,
            },
            36 => Body::CellEnding,
            37 => Body::CellReturned {
                former: Box::new(FormerCell::read(reader)?),
                properties: take_held(reader)?,
            },
            38 => Self::read_reply(reader)?,
            _ => return Err(wrong),
        })
    }

    fn read_reply(reader: &mut Reader<'_>) -> Result<Body, Malformed> {
        Ok(Body::Replied {
            to: SessionId(reader.number("session")?),
            number: CallNumber(reader.ordinal("call number")?),
            method: MemberId(reader.narrow("method")?),
            outcome: take_outcome(reader)?,
        })
    }

    fn read_data(kind: u8, reader: &mut Reader<'_>) -> Result<Body, Malformed> {
        Ok(if kind == 21 {
            Body::SpaceData {
                space: SpaceId(reader.narrow("space")?),
                entry: SpaceEntry::read(reader)?,
            }
        } else {
            Body::GlobalData {
                scope: GlobalScope::read(reader)?,
                entry: GlobalEntry::read(reader)?,
            }
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
            10 => Body::Resumed { to, number },
            _ => Body::CallsSkipped { from: to, upto: number },
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

pub(crate) fn put_timer(out: &mut Vec<u8>, timer: &Timer) {
    put_number(out, timer.due.0);
    put_number(out, timer.every);
    put_number(out, u64::from(timer.tag));
}

/// Takes a timer id that as many more can follow, as any [ordinal](Reader::ordinal).
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
