//! Teleports: requests of behaviour, and reasons for failure.

use annals_def::Value;
use annals_event::{Awaiting, Body, Call, CallError, Outcome, Place};
use annals_ids::{Address, Direction, EntityId, Mailbox, Part, Position, SpaceId, WorldTime};
use thiserror::Error;

use crate::{
    around::Around,
    context::{Context, Denied},
    output::Request,
    owner_context::OwnerContext,
};

/// `then` of a wait for the answer to [`Call::Locate`]. All smaller numbers are free for behaviour.
pub(crate) const LOCATED: u32 = u32::MAX;

/// Timeout of that wait, milliseconds: longer than a take-over takes.
const TIMEOUT_MS: u64 = 15_000;

/// Why a teleport failed. The cell part stands where it stood, with its state unchanged.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TeleportFailed {
    /// The position or direction is not a number.
    #[error("the target position is not finite")]
    NoPlace,
    /// The map has no such space, or was not received yet.
    #[error("there is no space {0}")]
    NoSpace(SpaceId),
    /// The space was destroyed, and not opened again since.
    #[error("space {0} was destroyed")]
    SpaceGone(SpaceId),
    /// The entity near which it was to stand does not exist, or has no cell part.
    #[error("the reference entity of the teleport: {0}")]
    NoEntity(CallError),
    /// It exceeds the size limit of a hand-over, or the limit of what this input may still record.
    #[error("the entity is too large to be handed over")]
    TooLarge,
    /// Another teleport was requested before this one began.
    #[error("a later teleport replaced this one before it began")]
    Superseded,
    /// The owner responsible for the destination refused it.
    #[error("the receiving cell refused the entity: {0}")]
    Refused(String),
}

impl Context<'_> {
    /// Teleports the cell part, to any space (`teleport`). Executed after the present call; then
    /// [`teleported`](crate::Behaviour::teleported) is called at the destination, or
    /// [`teleport_failed`](crate::Behaviour::teleport_failed) at the old place.
    ///
    /// ```
    /// # use annals_reference::*;
    /// # let mut scene = Scene::new();
    /// # scene.on_cell(|own| {
    /// own.context.teleport(at(-60.0, 20.0))?;
    /// # Ok(()) });
    /// # scene.pass(1_000);
    /// # assert_eq!(scene.called(), ["teleported"]);
    /// ```
    ///
    /// # Errors
    /// [`Denied::CellOnly`] on a base part.
    pub fn teleport(&mut self, place: Place) -> Result<(), Denied> {
        let entity = self.entity();
        self.request(Request::Teleport { entity, place })
    }

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
        let deadline = WorldTime(self.now().0.saturating_add(TIMEOUT_MS));
        let entity = self.entity();
        self.cx().needs(0)?;
        let from = Address::Cell(entity);
        let number = self.cx().call(from, beside.address(), beside.home, Call::Locate);
        let awaiting = Awaiting {
            deadline,
            then: LOCATED,
            note: note(offset),
        };
        let to = beside.address();
        self.cx()
            .record_for(entity, false, Body::Awaits { to, number, awaiting });
        Ok(())
    }
}

impl OwnerContext {
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
    pub(crate) fn located(&mut self, entity: EntityId, around: &dyn Around, offset: &[u8], outcome: &Outcome) {
        match beside(offset, outcome) {
            Ok((space, position)) => {
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
}

fn note(offset: Position) -> Vec<u8> {
    [offset.x, offset.y, offset.z]
        .iter()
        .flat_map(|axis| axis.to_le_bytes())
        .collect()
}

fn beside(offset: &[u8], outcome: &Outcome) -> Result<(SpaceId, Position), CallError> {
    let values = outcome.as_ref().map_err(Clone::clone)?;
    let strange = || CallError::Internal("the answer is not a valid position".to_owned());
    let [Value::UInt(space), Value::Vector3(place), ..] = values.as_slice() else {
        return Err(strange());
    };
    let space = SpaceId(u32::try_from(*space).map_err(|_| strange())?);
    let mut axes = offset
        .chunks_exact(4)
        .map(|axis| axis.try_into().map_or(0.0, f32::from_le_bytes));
    let mut next = |axis: f32| axis + axes.next().unwrap_or_default();
    let position = Position {
        x: next(place[0]),
        y: next(place[1]),
        z: next(place[2]),
    };
    Ok((space, position))
}
