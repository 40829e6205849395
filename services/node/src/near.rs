//! Requests to stand near another entity: its cell part is asked for its place, and the request follows from the answer.

use annals_def::Value;
use annals_event::{
    Awaiting, Body, Call, CallError, Malformed, Outcome, Place, Reader,
    latest::call::{put_properties, take_properties},
    put_number,
};
use annals_ids::{
    Address, Direction, EntityId, Hash, Mailbox, MemberId, OwnerId, Part, Position, SpaceId, TypeId, WorldTime,
};

use crate::{
    around::Around,
    context::{Context, Denied},
    output::Request,
    owner_context::OwnerContext,
    teleport::TeleportFailed,
};

/// `then` of a wait for the answer to [`Call::Locate`]. All smaller numbers are free for behaviour.
pub(crate) const LOCATED: u32 = u32::MAX;

/// Timeout of that wait, milliseconds: longer than a take-over takes.
const TIMEOUT_MS: u64 = 15_000;

impl Context<'_> {
    /// Teleports the cell part to another entity, in its space (`teleport(nearbyEntityMB)`): at `offset` from that
    /// entity's place at the time of the lookup, with an unchanged direction.
    ///
    /// ```
    /// # use annals_reference::*;
    /// # let mut scene = Scene::new();
    /// # let monster = scene.monster;
    /// # scene.on_cell(move |own| {
    /// own.context.teleport_near(monster, Position { x: 1.0, y: 0.0, z: 0.0 })?;
    /// # Ok(()) });
    /// # scene.pass(1_000);
    /// # assert_eq!(scene.called(), ["teleported"]);
    /// ```
    ///
    /// # Errors
    /// [`Denied::CellOnly`] on a base part, or with the mailbox of one.
    pub fn teleport_near(&mut self, beside: Mailbox, offset: Position) -> Result<(), Denied> {
        if self.part() == Part::Base || beside.part == Part::Base {
            return Err(Denied::CellOnly { what: "teleport_near" });
        }
        let entity = self.entity();
        self.cx().locate((entity, Part::Cell), beside, note(offset))
    }
}

impl OwnerContext {
    /// Asks the cell part of an entity for its place, to create the cell part of a base part here near it.
    ///
    /// # Errors
    /// If the present input may not record so much more.
    pub fn locate_for_cell(
        &mut self,
        entity: EntityId,
        beside: Mailbox,
        (offset, properties): (Position, &[(MemberId, Value)]),
    ) -> Result<(), Denied> {
        let mut note = note(offset);
        // Members are numbered by the definitions, which may be others when the answer comes.
        note.extend(self.schema().fingerprint().0);
        put_number(&mut note, beside.home.0.into());
        put_number(&mut note, beside.type_id.0.into());
        put_properties(&mut note, properties);
        self.locate((entity, Part::Base), beside.to_part(Part::Cell), note)
    }

    fn locate(&mut self, (entity, part): (EntityId, Part), beside: Mailbox, note: Vec<u8>) -> Result<(), Denied> {
        self.needs(note.len())?;
        let deadline = WorldTime(self.now().world.0.saturating_add(TIMEOUT_MS));
        let to = beside.address();
        let number = self.call(Address::of(entity, part), to, beside.home, Call::Locate);
        let awaiting = Awaiting {
            deadline,
            then: LOCATED,
            note,
        };
        self.record_for(entity, false, Body::Awaits { to, number, awaiting });
        Ok(())
    }

    /// The answer to [`Call::Locate`]: where the cell part is.
    pub(crate) fn whereabouts(&self, entity: EntityId) -> Outcome {
        let place = self.place(entity).ok_or(CallError::NoSuchCellEntity)?;
        let Position { x, y, z } = place.position;
        let Direction { yaw, pitch, roll } = place.direction;
        Ok(vec![
            Value::UInt(place.space.0.into()),
            Value::Vector3([x, y, z]),
            Value::Vector3([yaw, pitch, roll]),
        ])
    }

    /// The entity near which another is to stand has reported its place, or an error.
    pub(crate) fn located(
        &mut self,
        entity: EntityId,
        around: &dyn Around,
        (to, note): (Address, &[u8]),
        outcome: &Outcome,
    ) {
        match self.journal.part() {
            Part::Base => self.create_located(entity, around, (to, note), outcome),
            Part::Cell => self.teleport_located(entity, around, note, outcome),
        }
    }

    fn teleport_located(&mut self, entity: EntityId, around: &dyn Around, offset: &[u8], outcome: &Outcome) {
        match beside(offset, outcome) {
            Ok(Place { space, position, .. }) => {
                let direction = self.place(entity).unwrap_or_default().direction;
                let place = Place {
                    space,
                    position,
                    direction,
                };
                self.request(entity, Request::Teleport { entity, place });
            }
            Err(why) => {
                let why = TeleportFailed::NoEntity(why);
                self.run(entity, around, |behaviour, context| {
                    behaviour.teleport_failed(context, &why);
                });
            }
        }
    }

    fn create_located(
        &mut self,
        entity: EntityId,
        around: &dyn Around,
        (to, note): (Address, &[u8]),
        outcome: &Outcome,
    ) {
        let (Some((near, part)), Ok(wanted)) = (to.entity(), read_wanted(note)) else {
            debug_assert!(false, "a wait for a place has another note");
            return;
        };
        let Wanted {
            offset,
            schema,
            home,
            type_id,
            properties,
        } = wanted;
        let place = if schema == self.schema().fingerprint() {
            beside(note, outcome)
        } else {
            Err(CallError::Internal("the definitions have changed meanwhile".to_owned()))
        };
        match place {
            Ok(place) => {
                let request = Request::CreateCell {
                    entity,
                    place,
                    properties,
                };
                self.request(entity, request);
            }
            Err(why) => {
                let beside = Mailbox {
                    entity: near,
                    home,
                    type_id,
                    part,
                };
                let request = Request::CreateCellNear {
                    entity,
                    beside,
                    offset,
                    properties,
                };
                self.deny(entity, around, &request, &Denied::NotLocated { entity: near, why });
            }
        }
    }
}

/// What a wait for the place of a new cell part has noted.
struct Wanted {
    offset: Position,
    /// The definitions that number its members.
    schema: Hash,
    /// Home and type of the entity near which it is to be.
    home: OwnerId,
    type_id: TypeId,
    properties: Vec<(MemberId, Value)>,
}

fn read_wanted(note: &[u8]) -> Result<Wanted, Malformed> {
    let mut reader = Reader::new(note);
    let mut axis = || reader.array("offset").map(f32::from_le_bytes);
    let offset = Position {
        x: axis()?,
        y: axis()?,
        z: axis()?,
    };
    Ok(Wanted {
        offset,
        schema: Hash(reader.array("fingerprint")?),
        home: OwnerId(reader.narrow("owner")?),
        type_id: TypeId(reader.narrow("type")?),
        properties: take_properties(&mut reader)?,
    })
}

fn note(offset: Position) -> Vec<u8> {
    [offset.x, offset.y, offset.z]
        .iter()
        .flat_map(|axis| axis.to_le_bytes())
        .collect()
}

/// The place at the offset with which a note begins, from the place in an answer, in the same direction.
fn beside(note: &[u8], outcome: &Outcome) -> Result<Place, CallError> {
    let values = outcome.as_ref().map_err(Clone::clone)?;
    let strange = || CallError::Internal("the answer is not a valid position".to_owned());
    let [
        Value::UInt(space),
        Value::Vector3(place),
        Value::Vector3([yaw, pitch, roll]),
    ] = values.as_slice()
    else {
        return Err(strange());
    };
    let space = SpaceId(u32::try_from(*space).map_err(|_| strange())?);
    let mut axes = note
        .chunks_exact(4)
        .map(|axis| axis.try_into().map_or(0.0, f32::from_le_bytes));
    let mut next = |axis: f32| axis + axes.next().unwrap_or_default();
    let position = Position {
        x: next(place[0]),
        y: next(place[1]),
        z: next(place[2]),
    };
    let direction = Direction {
        yaw: *yaw,
        pitch: *pitch,
        roll: *roll,
    };
    Ok(Place {
        space,
        position,
        direction,
    })
}
