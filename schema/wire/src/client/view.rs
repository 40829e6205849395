//! What a client sees: frames of a view, and datagrams (rules V1, V3, V4).
//!
//! A client has two independent views: the base shows it the base part of its own entity, the witness on the cell shows
//! it the cell parts of all entities around.

use std::f32::consts::TAU;

use annals_event::{Malformed, Reader, SpaceEntry, put_bytes, put_number};
use annals_ids::{Direction, EntityId, HistoryNumber, Part, Position, SpaceId, Tick, TypeId};

use super::{
    MAX_DATAGRAM,
    fields::{
        put_direction, put_entity, put_option, put_part, put_position, put_type, take_direction, take_entity,
        take_option, take_part, take_position, take_type,
    },
};

/// One update of a view.
#[derive(Clone, Debug, PartialEq)]
pub struct ViewFrame {
    /// The view.
    pub source: Part,
    /// The number that the client gave this view when it started it ([`super::Stamps`]).
    pub view: u64,
    /// The frame's number in the view, dense from 1. A client that misses one restarts the view.
    pub sequence: u64,
    /// The tick of the frame; orders it against [`Moves`] of the same view. 0 from a base, which has no ticks.
    pub tick: Tick,
    /// The changes, in order. An empty first frame confirms that the view has started.
    pub items: Vec<ViewItem>,
}

/// A change of one entity in a view.
#[derive(Clone, Debug, PartialEq)]
pub enum ViewItem {
    /// It enters the view. Its properties follow as [`ViewItem::Refresh`], or as [`ViewItem::Update`] from 0 if it
    /// began with defaults only. An entity that is already in view starts afresh.
    Enter {
        entity: EntityId,
        /// Its type, as clients know it.
        type_id: TypeId,
        /// Position and direction; `None` for a base part.
        place: Option<(Position, Direction)>,
    },
    /// It leaves the view.
    Leave { entity: EntityId },
    /// All its properties that the client may see. Properties that are not listed have the defaults of the definition.
    Refresh {
        entity: EntityId,
        /// The history number of this state.
        upto: HistoryNumber,
        /// The level of detail from now on; properties of finer levels are not listed.
        level: u8,
        /// Properties as encoded by [`ShownWriter::property`](super::ShownWriter::property), ascending by client
        /// number.
        properties: Vec<u8>,
    },
    /// All its events that the client may see, after `from` up to and including `upto`.
    Update {
        entity: EntityId,
        /// The history number up to which the client was shown it before.
        from: HistoryNumber,
        /// The history number up to which it is shown now; not below `from`.
        upto: HistoryNumber,
        /// Events as encoded by [`ShownWriter`](super::ShownWriter), above `from` and up to `upto`. Missing numbers are
        /// not visible to this client.
        events: Vec<u8>,
    },
    /// Its level of detail changes. The client keeps the present values of properties of finer levels. If the new level
    /// is finer, properties of the levels in between that have changed since the client had them are listed.
    Level {
        entity: EntityId,
        level: u8,
        /// Properties as in [`ViewItem::Refresh`].
        properties: Vec<u8>,
    },
    /// It returns into view. The client has its state from when it left.
    Return {
        entity: EntityId,
        position: Position,
        direction: Direction,
    },
    /// The client's own entity, and everything in the view, is in this space.
    Space {
        /// The client's own entity.
        entity: EntityId,
        /// Which space.
        space: SpaceId,
    },
    /// An entry of the data of the space given by [`ViewItem::Space`].
    SpaceData {
        /// The client's own entity.
        entity: EntityId,
        entry: SpaceEntry,
    },
    /// It was teleported, or its movements are not volatile. The client's own entity must be placed there.
    Placed {
        entity: EntityId,
        position: Position,
        direction: Direction,
    },
    /// Whether the client moves it from now on. When it enters or returns, the client moves it if it is its own. When a
    /// view starts anew, the client goes on as before, and says so in [`super::Stamps`].
    Drives { entity: EntityId, drives: bool },
}

/// A datagram to a client that can be decoded on its own. One that begins with [`super::volatile::KIND`] is for the
/// [`super::volatile::VolatileReader`] of its view.
#[derive(Clone, Debug, PartialEq)]
pub enum ToClientDatagram {
    /// Entities of the cell's view moved.
    Moves(Moves),
}

/// Positions of entities in the cell's view; per entity the newest tick wins.
#[derive(Clone, Debug, PartialEq)]
pub struct Moves {
    /// The number of the view. Datagrams of other views are dropped.
    pub view: u64,
    /// The tick of the positions.
    pub tick: Tick,
    pub moves: Vec<Move>,
}

/// The position of one entity.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Move {
    pub entity: EntityId,
    pub position: Position,
    /// The direction; each angle is sent as a whole number of 1/65,536 turns, and decoded to between 0 and one turn.
    pub direction: Direction,
}

impl ViewFrame {
    /// Appends the frame without its kind byte.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        put_part(out, self.source);
        put_number(out, self.view);
        put_number(out, self.sequence);
        put_number(out, self.tick.0);
        put_number(out, self.items.len() as u64);
        self.items.iter().for_each(|item| item.write(out));
    }

    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let source = take_part(reader)?;
        let view = reader.number("view")?;
        let wrong = reader.malformed("frame number");
        let sequence = reader.number("frame number")?;
        if sequence == 0 {
            return Err(wrong);
        }
        let tick = Tick(reader.number("tick")?);
        let count = reader.count(2, "items")?;
        let items = (0..count).map(|_| ViewItem::read(reader)).collect::<Result<_, _>>()?;
        Ok(ViewFrame {
            source,
            view,
            sequence,
            tick,
            items,
        })
    }
}

impl ViewItem {
    /// The entity concerned.
    #[must_use]
    pub fn entity(&self) -> EntityId {
        match self {
            ViewItem::Enter { entity, .. }
            | ViewItem::Leave { entity }
            | ViewItem::Refresh { entity, .. }
            | ViewItem::Update { entity, .. }
            | ViewItem::Placed { entity, .. }
            | ViewItem::Space { entity, .. }
            | ViewItem::SpaceData { entity, .. }
            | ViewItem::Level { entity, .. }
            | ViewItem::Return { entity, .. }
            | ViewItem::Drives { entity, .. } => *entity,
        }
    }

    /// Approximate size in a frame (bytes).
    #[must_use]
    pub fn about_bytes(&self) -> usize {
        match self {
            ViewItem::Refresh { properties: bytes, .. }
            | ViewItem::Level { properties: bytes, .. }
            | ViewItem::Update { events: bytes, .. } => 12 + bytes.len(),
            ViewItem::Enter { .. } => 36,
            ViewItem::SpaceData { entry, .. } => 18 + entry.value.len(),
            ViewItem::Leave { .. } | ViewItem::Space { .. } | ViewItem::Drives { .. } => 6,
            ViewItem::Placed { .. } | ViewItem::Return { .. } => 30,
        }
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.push(match self {
            ViewItem::Enter { .. } => 1,
            ViewItem::Leave { .. } => 2,
            ViewItem::Refresh { .. } => 3,
            ViewItem::Update { .. } => 4,
            ViewItem::Placed { .. } => 5,
            ViewItem::Space { .. } => 6,
            ViewItem::Level { .. } => 7,
            ViewItem::Return { .. } => 8,
            ViewItem::SpaceData { .. } => 9,
            ViewItem::Drives { .. } => 10,
        });
        put_entity(out, self.entity());
        match self {
            ViewItem::Enter { type_id, place, .. } => {
                put_type(out, *type_id);
                put_option(out, *place, |out, (position, direction)| {
                    put_place(out, position, direction);
                });
            }
            ViewItem::Leave { .. } => {}
            ViewItem::Refresh {
                upto,
                level,
                properties,
                ..
            } => {
                put_number(out, upto.0);
                out.push(*level);
                put_bytes(out, properties);
            }
            ViewItem::Update { from, upto, events, .. } => {
                put_number(out, from.0);
                put_number(out, upto.0.wrapping_sub(from.0));
                put_bytes(out, events);
            }
            ViewItem::Placed {
                position, direction, ..
            }
            | ViewItem::Return {
                position, direction, ..
            } => put_place(out, *position, *direction),
            ViewItem::Space { space, .. } => put_number(out, u64::from(space.0)),
            ViewItem::SpaceData { entry, .. } => entry.write(out),
            ViewItem::Drives { drives, .. } => out.push(u8::from(*drives)),
            ViewItem::Level { level, properties, .. } => {
                out.push(*level);
                put_bytes(out, properties);
            }
        }
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let wrong = reader.malformed("view item");
        let kind = reader.byte("view item")?;
        let entity = take_entity(reader)?;
        match kind {
            1 => Ok(ViewItem::Enter {
                entity,
                type_id: take_type(reader)?,
                place: take_option(reader, "place", take_place)?,
            }),
            2 => Ok(ViewItem::Leave { entity }),
            3 => Ok(ViewItem::Refresh {
                entity,
                upto: HistoryNumber(reader.ordinal("history number")?),
                level: reader.byte("level of detail")?,
                properties: reader.bytes("properties")?.to_vec(),
            }),
            4 => take_update(reader, entity),
            5 => {
                let (position, direction) = take_place(reader)?;
                Ok(ViewItem::Placed {
                    entity,
                    position,
                    direction,
                })
            }
            7 => Ok(ViewItem::Level {
                entity,
                level: reader.byte("level of detail")?,
                properties: reader.bytes("properties")?.to_vec(),
            }),
            8 => {
                let (position, direction) = take_place(reader)?;
                Ok(ViewItem::Return {
                    entity,
                    position,
                    direction,
                })
            }
            6 => Ok(ViewItem::Space {
                entity,
                space: SpaceId(reader.narrow("space")?),
            }),
            9 => Ok(ViewItem::SpaceData {
                entity,
                entry: SpaceEntry::read(reader)?,
            }),
            10 => take_drives(reader, entity),
            _ => Err(wrong),
        }
    }
}

fn take_drives(reader: &mut Reader<'_>, entity: EntityId) -> Result<ViewItem, Malformed> {
    let wrong = reader.malformed("drives");
    match reader.byte("drives")? {
        drives @ (0 | 1) => Ok(ViewItem::Drives {
            entity,
            drives: drives == 1,
        }),
        _ => Err(wrong),
    }
}

fn take_update(reader: &mut Reader<'_>, entity: EntityId) -> Result<ViewItem, Malformed> {
    let from = reader.ordinal("history number")?;
    let wrong = reader.malformed("span of history");
    let upto = from.checked_add(reader.number("span of history")?).ok_or(wrong)?;
    Ok(ViewItem::Update {
        entity,
        from: HistoryNumber(from),
        upto: HistoryNumber(upto),
        events: reader.bytes("shown events")?.to_vec(),
    })
}

fn put_place(out: &mut Vec<u8>, position: Position, direction: Direction) {
    put_position(out, position);
    put_direction(out, direction);
}

fn take_place(reader: &mut Reader<'_>) -> Result<(Position, Direction), Malformed> {
    Ok((take_position(reader)?, take_direction(reader)?))
}

impl Moves {
    /// The datagrams that carry these movements, each at most [`MAX_DATAGRAM`] bytes, as few as possible in this order.
    #[must_use]
    pub fn datagrams(&self) -> Vec<Vec<u8>> {
        let mut head = vec![1];
        put_number(&mut head, self.view);
        put_number(&mut head, self.tick.0);
        // A datagram of this size holds fewer than 128 movements, so their count is one byte.
        let room = MAX_DATAGRAM - head.len() - 1;
        let mut datagrams = Vec::new();
        let mut body = Vec::with_capacity(room);
        let mut count = 0;
        let mut close = |count: &mut u8, body: &mut Vec<u8>| {
            datagrams.push([head.as_slice(), &[*count], body.as_slice()].concat());
            (*count, *body) = (0, Vec::with_capacity(room));
        };
        for movement in &self.moves {
            let start = body.len();
            movement.write(&mut body);
            if body.len() > room {
                let last = body.split_off(start);
                close(&mut count, &mut body);
                body.extend(last);
            }
            count += 1;
        }
        if count > 0 {
            close(&mut count, &mut body);
        }
        datagrams
    }
}

impl ToClientDatagram {
    /// Reads a datagram.
    ///
    /// # Errors
    /// When it is not in its one encoding.
    pub fn read(bytes: &[u8]) -> Result<Self, Malformed> {
        let reader = &mut Reader::new(bytes);
        let wrong = reader.malformed("server datagram");
        if reader.byte("server datagram")? != 1 {
            return Err(wrong);
        }
        let view = reader.number("view")?;
        let tick = Tick(reader.number("tick")?);
        let count = reader.count(Move::LEAST_BYTES, "moves")?;
        // An empty datagram is never sent.
        if count == 0 {
            return Err(wrong);
        }
        let moves = (0..count).map(|_| Move::read(reader)).collect::<Result<_, _>>()?;
        reader.finish("end of server datagram")?;
        Ok(ToClientDatagram::Moves(Moves { view, tick, moves }))
    }
}

impl Move {
    /// Size of the shortest movement (bytes): an id of one, three coordinates, three angles.
    const LEAST_BYTES: usize = 1 + 3 * 4 + 3 * 2;

    /// Approximate size of one movement in a datagram (bytes).
    pub const ABOUT_BYTES: usize = Self::LEAST_BYTES + 3;

    fn write(&self, out: &mut Vec<u8>) {
        put_entity(out, self.entity);
        put_position(out, self.position);
        let Direction { yaw, pitch, roll } = self.direction;
        [yaw, pitch, roll]
            .iter()
            .for_each(|&angle| out.extend(turn(angle).to_le_bytes()));
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Move {
            entity: take_entity(reader)?,
            position: take_position(reader)?,
            direction: Direction {
                yaw: take_turn(reader)?,
                pitch: take_turn(reader)?,
                roll: take_turn(reader)?,
            },
        })
    }
}
const _: () = assert!(MAX_DATAGRAM / Move::LEAST_BYTES < 128);

/// Resolution of angles in movements.
const STEPS_PER_TURN: f32 = 65_536.0;

fn turn(angle: f32) -> u16 {
    let steps = (angle.rem_euclid(TAU) / TAU * STEPS_PER_TURN).round();
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "steps lie between 0 and 65,536, and a whole turn is none"
    )]
    let steps = steps as u32;
    (steps % (1 << 16))
        .try_into()
        .expect("invariant: a remainder of 65,536 has 16 bits")
}

fn take_turn(reader: &mut Reader<'_>) -> Result<f32, Malformed> {
    let steps = u16::from_le_bytes(reader.array("angle")?);
    Ok(f32::from(steps) / STEPS_PER_TURN * TAU)
}
