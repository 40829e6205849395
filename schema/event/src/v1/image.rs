//! Images: the whole state of one entity part. Used by snapshots, hand-over and the state hash.

use std::{
    borrow::Cow,
    collections::{BTreeMap, VecDeque},
};

use annals_def::{Property, Value};
use annals_ids::{Address, CallNumber, DatabaseId, HistoryNumber, MemberId, OwnerId, TimerId, TypeId};

use super::ledger::LedgerView;
use super::{
    batch::{put_address, take_address},
    call::{
        Call, ClientLink, Place, put_client, put_option, put_place, put_properties, take_bool, take_client,
        take_option, take_place, take_properties,
    },
    controller::Controllers,
    event::{
        Awaiting, Event, Timer, put_awaiting, put_events, put_timer, take_awaiting, take_events, take_timer,
        take_timer_id,
    },
    former_cell::{put_ends, take_ends},
    movement_control::MovementControl,
    sight::Sight,
};
use crate::encoding::{Malformed, Reader, put_number};

/// Number of newest history events that are kept with an entity part, for views and ghosts that lag behind. Those that
/// lag further are sent the whole state.
pub const HISTORY_KEPT: usize = 128;

/// The links between one address and all others.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Links {
    /// The calls sent, by receiver.
    pub sent: BTreeMap<Address, Sent>,
    /// The highest call number taken, by sender.
    pub taken: BTreeMap<Address, CallNumber>,
    /// The replies awaited, by the call's receiver and number.
    pub awaiting: BTreeMap<(Address, CallNumber), Awaiting>,
    /// Generation of the numbers of its next calls (rule C13): 0, unless the log that held it was cut at a hole.
    pub generation: u64,
}

/// The sending end of a link.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sent {
    /// The receiver's home: the owner that knows where it is.
    pub home: OwnerId,
    /// The highest call number used.
    pub last: CallNumber,
    /// The unconfirmed calls.
    pub unconfirmed: BTreeMap<CallNumber, Call>,
}

/// State that only a base part has.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BaseImage {
    /// The stored entity that it stands for; 0 if none.
    pub database: DatabaseId,
    /// The check-out of that stored entity that this activation holds; 0 if none.
    pub checkout: u64,
    /// The properties with which the next cell part begins: the stored ones, or the last ones of a cell part that has
    /// ended. Empty while there is a cell part.
    pub cell_properties: BTreeMap<MemberId, Value>,
    /// The owner of the cell part.
    pub cell: Option<OwnerId>,
    /// The newest history number of the last cell part whose state has returned (rule C17), if any has.
    pub cell_history: Option<HistoryNumber>,
    /// The links of that cell part, for the next one; `None` once that is requested.
    pub cell_links: Option<Links>,
    /// SHA-256 of the token with which its client may resume its session.
    pub token: Option<[u8; 32]>,
    /// Its view of the ledger.
    pub ledger: LedgerView,
}

/// State that only a cell part has.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CellImage {
    /// Whether it has a base part, at home.
    pub based: bool,
    /// Its place when last logged. Volatile: excluded from the state hash.
    pub place: Place,
    /// The life of its space that it belongs to (rule S4): the one known where it entered. `None` while it is on its
    /// way into another space.
    pub life: Option<u64>,
    pub controllers: Controllers,
    /// Who moves it, and its top speed.
    pub movement_control: MovementControl,
    /// What its client is shown of other entities.
    pub sight: Sight,
}

/// State that differs between the two parts.
#[derive(Clone, Debug, PartialEq)]
pub enum PartImage {
    /// A base part.
    Base(BaseImage),
    /// A cell part.
    Cell(CellImage),
}

/// One entity part.
#[derive(Clone, Debug, PartialEq)]
pub struct Image {
    pub type_id: TypeId,
    pub home: OwnerId,
    /// Every property that the part holds.
    pub properties: BTreeMap<MemberId, Value>,
    /// The newest history number.
    pub history: HistoryNumber,
    /// The newest history events, at most [`HISTORY_KEPT`], oldest first and dense.
    pub recent: VecDeque<Event>,
    pub timers: BTreeMap<TimerId, Timer>,
    /// The highest timer id used.
    pub last_timer: TimerId,
    /// Its calls.
    pub links: Links,
    pub client: Option<ClientLink>,
    /// State of this kind of part only.
    pub part: PartImage,
}

/// Highest generation of call numbers: accepted holes are rare, and all numbers stay below the limit of ordinals.
const MAX_GENERATION: u64 = (1 << 20) - 1;

/// Which fields of an image are written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Extent {
    /// All fields.
    Whole,
    /// The fields that the state hash covers.
    WithoutVolatile,
}

impl Image {
    /// A newly created part.
    #[must_use]
    pub fn new(type_id: TypeId, home: OwnerId, properties: &[(MemberId, Value)], part: PartImage) -> Self {
        Self {
            type_id,
            home,
            properties: properties.iter().cloned().collect(),
            history: HistoryNumber(0),
            recent: VecDeque::new(),
            timers: BTreeMap::new(),
            last_timer: TimerId(0),
            links: Links::default(),
            client: None,
            part,
        }
    }

    /// The base state, if this is a base part.
    #[must_use]
    pub fn base(&self) -> Option<&BaseImage> {
        match &self.part {
            PartImage::Base(base) => Some(base),
            PartImage::Cell(_) => None,
        }
    }

    /// The cell state, if this is a cell part.
    #[must_use]
    pub fn cell(&self) -> Option<&CellImage> {
        match &self.part {
            PartImage::Cell(cell) => Some(cell),
            PartImage::Base(_) => None,
        }
    }

    /// The value of a property: the stored value, or for the view of an account the value derived from the ledger view.
    /// `None` if the property belongs to the other part.
    #[must_use]
    pub fn value(&self, property: &Property) -> Option<Cow<'_, Value>> {
        match property.account {
            Some(account) => self.base().map(|base| Cow::Owned(base.ledger.value(account))),
            None => self.properties.get(&property.index).map(Cow::Borrowed),
        }
    }

    /// The history events after `known`, or `None` if some of them are no longer kept.
    #[must_use]
    pub fn history_since(&self, known: HistoryNumber) -> Option<impl Iterator<Item = &Event>> {
        let missing = self.history.0.checked_sub(known.0)?;
        let skipped = u64::try_from(self.recent.len()).ok()?.checked_sub(missing)?;
        Some(self.recent.iter().skip(usize::try_from(skipped).ok()?))
    }

    /// Appends the image.
    pub fn write(&self, out: &mut Vec<u8>) {
        self.write_extent(out, Extent::Whole);
    }

    /// Appends the fields that the state hash covers: all but the place.
    pub fn write_stable(&self, out: &mut Vec<u8>) {
        self.write_extent(out, Extent::WithoutVolatile);
    }

    fn write_extent(&self, out: &mut Vec<u8>, extent: Extent) {
        put_number(out, u64::from(self.type_id.0));
        put_number(out, u64::from(self.home.0));
        put_held(out, &self.properties);
        put_number(out, self.history.0);
        put_events(out, self.recent.iter());
        put_number(out, self.timers.len() as u64);
        for (timer, at) in &self.timers {
            put_number(out, u64::from(timer.0));
            put_timer(out, at);
        }
        put_number(out, u64::from(self.last_timer.0));
        self.links.write(out);
        put_option(out, self.client.as_ref(), put_client);
        let renumbered = if self.links.generation > 0 { RENUMBERED } else { 0 };
        match &self.part {
            PartImage::Base(base) => {
                out.push(base.kind() | renumbered);
                put_number(out, base.database.0);
                put_number(out, base.checkout);
                put_held(out, &base.cell_properties);
                put_option(out, base.cell.as_ref(), |out, owner| {
                    put_number(out, u64::from(owner.0));
                });
                put_option(out, base.token.as_ref(), |out, digest| out.extend(digest));
                base.ledger.write(out);
                if let Some(history) = base.cell_history {
                    put_number(out, history.0);
                    put_option(out, base.cell_links.as_ref(), put_ends);
                }
            }
            PartImage::Cell(cell) => {
                out.push(cell.kind() | renumbered);
                out.push(u8::from(cell.based));
                match extent {
                    Extent::Whole => put_place(out, &cell.place),
                    Extent::WithoutVolatile => put_number(out, u64::from(cell.place.space.0)),
                }
                if cell.kind() & CONTROLLED != 0 {
                    cell.controllers.write(out);
                }
                if cell.kind() & HAS_MOVEMENT_CONTROL != 0 {
                    cell.movement_control.write(out);
                }
                if cell.kind() & SIGHTED != 0 {
                    cell.sight.write(out);
                }
                if cell.kind() & LATER != 0 {
                    put_number(out, cell.life.unwrap_or_default());
                }
            }
        }
        if self.links.generation > 0 {
            put_number(out, self.links.generation);
        }
    }

    /// Takes an image.
    ///
    /// # Errors
    /// When it is not in its one encoding.
    pub fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let type_id = TypeId(reader.narrow("type")?);
        let home = OwnerId(reader.narrow("owner")?);
        let properties = take_held(reader)?;
        let history = HistoryNumber(reader.ordinal("history number")?);
        let recent: VecDeque<Event> = take_events(reader)?;
        if recent.len() > HISTORY_KEPT {
            return Err(reader.malformed("history length"));
        }
        let timers = reader.map(4, "timers", take_timer_id, take_timer)?;
        let last_timer = take_timer_id(reader)?;
        let mut links = Links::read(reader)?;
        let client = take_option(reader, take_client)?;
        let kind = reader.byte("part")?;
        let part = PartImage::read(kind & !RENUMBERED, reader)?;
        if kind & RENUMBERED != 0 {
            links.generation = take_generation(reader)?;
        }
        Ok(Self {
            type_id,
            home,
            properties,
            history,
            recent,
            timers,
            last_timer,
            links,
            client,
            part,
        })
    }
}

impl PartImage {
    fn read(kind: u8, reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let wrong = reader.malformed("part");
        Ok(match kind {
            0 | HAD_CELL => PartImage::Base(BaseImage::read(kind, reader)?),
            kind if kind & !(CONTROLLED | HAS_MOVEMENT_CONTROL | SIGHTED | LATER) == CELL => {
                PartImage::Cell(CellImage::read(kind, reader)?)
            }
            _ => return Err(wrong),
        })
    }
}

/// The part kind that marks a cell part (a base part has 0), and the flags for optional fields. A field with its initial
/// value takes no bytes.
const CELL: u8 = 1;
const CONTROLLED: u8 = 2;
const HAS_MOVEMENT_CONTROL: u8 = 4;
const SIGHTED: u8 = 8;
const LATER: u8 = 16;
/// For both parts.
const RENUMBERED: u8 = 32;
/// For base parts.
const HAD_CELL: u8 = 64;

impl BaseImage {
    fn kind(&self) -> u8 {
        if self.cell_history.is_some() { HAD_CELL } else { 0 }
    }

    fn read(kind: u8, reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let mut base = Self {
            database: DatabaseId(reader.number("database id")?),
            checkout: reader.number("check-out")?,
            cell_properties: take_held(reader)?,
            cell: take_option(reader, |reader| Ok(OwnerId(reader.narrow("owner")?)))?,
            token: take_option(reader, |reader| reader.array("token digest"))?,
            ledger: LedgerView::read(reader)?,
            ..Self::default()
        };
        if kind & HAD_CELL != 0 {
            base.cell_history = Some(HistoryNumber(reader.ordinal("history number")?));
            base.cell_links = take_option(reader, take_ends)?;
        }
        Ok(base)
    }
}

impl CellImage {
    fn kind(&self) -> u8 {
        let controlled = if self.controllers.is_unused() { 0 } else { CONTROLLED };
        let movement_control = if self.movement_control == MovementControl::default() {
            0
        } else {
            HAS_MOVEMENT_CONTROL
        };
        let sighted = if self.sight == Sight::default() { 0 } else { SIGHTED };
        let later = if self.life == Some(0) { 0 } else { LATER };
        CELL | controlled | movement_control | sighted | later
    }

    fn read(kind: u8, reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let wrong = reader.malformed("part");
        let mut cell = Self {
            based: take_bool(reader)?,
            place: take_place(reader)?,
            life: Some(0),
            ..Self::default()
        };
        if kind & CONTROLLED != 0 {
            cell.controllers = Controllers::read(reader)?;
        }
        if kind & HAS_MOVEMENT_CONTROL != 0 {
            cell.movement_control = MovementControl::read(reader)?;
        }
        if kind & SIGHTED != 0 {
            cell.sight = Sight::read(reader)?;
        }
        if kind & LATER != 0 {
            cell.life = Some(reader.ordinal("life of a space")?).filter(|life| *life != 0);
        }
        if cell.kind() == kind { Ok(cell) } else { Err(wrong) }
    }
}

impl Links {
    /// Whether no calls are unconfirmed.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.sent.values().all(|sent| sent.unconfirmed.is_empty())
    }

    /// What stays of the links when the fragment at their end ceases to exist: if its service is added again, the new
    /// fragment has the same address, so its calls must not have the same numbers.
    pub(crate) fn into_estate(self) -> Self {
        Self {
            awaiting: BTreeMap::new(),
            ..self
        }
    }

    /// The number of the next call to an address.
    #[must_use]
    pub fn next_call(&self, to: Address) -> CallNumber {
        let last = self.sent.get(&to).map(|sent| sent.last).unwrap_or_default();
        last.max(CallNumber::floor(self.generation)).next()
    }

    /// Appends the links, without the generation.
    pub fn write(&self, out: &mut Vec<u8>) {
        put_number(out, self.sent.len() as u64);
        for (to, sent) in &self.sent {
            put_address(out, *to);
            put_number(out, u64::from(sent.home.0));
            put_number(out, sent.last.0);
            put_number(out, sent.unconfirmed.len() as u64);
            for (number, call) in &sent.unconfirmed {
                put_number(out, number.0);
                call.write(out);
            }
        }
        put_number(out, self.taken.len() as u64);
        for (from, upto) in &self.taken {
            put_address(out, *from);
            put_number(out, upto.0);
        }
        put_number(out, self.awaiting.len() as u64);
        for ((to, number), awaiting) in &self.awaiting {
            put_address(out, *to);
            put_number(out, number.0);
            put_awaiting(out, awaiting);
        }
    }

    /// Takes links of generation 0.
    ///
    /// # Errors
    /// When they are not in their one encoding.
    pub fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Self {
            sent: reader.map(4, "links", take_address, Sent::read)?,
            taken: reader.map(3, "taken calls", take_address, take_call_number)?,
            awaiting: reader.map(
                6,
                "awaited replies",
                |reader| Ok((take_address(reader)?, take_call_number(reader)?)),
                take_awaiting,
            )?,
            generation: 0,
        })
    }
}

impl Sent {
    fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Self {
            home: OwnerId(reader.narrow("owner")?),
            last: take_call_number(reader)?,
            unconfirmed: reader.map(2, "unconfirmed calls", take_call_number, Call::read)?,
        })
    }
}

pub(crate) fn put_held(out: &mut Vec<u8>, held: &BTreeMap<MemberId, Value>) {
    let properties: Vec<_> = held.iter().map(|(member, value)| (*member, value.clone())).collect();
    put_properties(out, &properties);
}

pub(crate) fn take_held(reader: &mut Reader<'_>) -> Result<BTreeMap<MemberId, Value>, Malformed> {
    let wrong = reader.malformed("properties");
    let properties = take_properties(reader)?;
    if properties.is_sorted_by(|(one, _), (next, _)| one < next) {
        Ok(properties.into_iter().collect())
    } else {
        Err(wrong)
    }
}

/// A generation other than 0, whose numbers stay below the limit of call numbers.
pub(crate) fn take_generation(reader: &mut Reader<'_>) -> Result<u64, Malformed> {
    let wrong = reader.malformed("generation of call numbers");
    let generation = take_generation_or_none(reader)?;
    if generation > 0 { Ok(generation) } else { Err(wrong) }
}

/// A generation, or 0 for none.
pub(crate) fn take_generation_or_none(reader: &mut Reader<'_>) -> Result<u64, Malformed> {
    let wrong = reader.malformed("generation of call numbers");
    let generation = reader.number("generation of call numbers")?;
    if generation <= MAX_GENERATION {
        Ok(generation)
    } else {
        Err(wrong)
    }
}

fn take_call_number(reader: &mut Reader<'_>) -> Result<CallNumber, Malformed> {
    Ok(CallNumber(reader.ordinal("call number")?))
}
