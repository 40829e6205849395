//! Teleports: how behaviour puts a cell part somewhere, and why that may fail.

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

/// What asks for the answer to [`Call::Locate`], as `then` of a wait. Behaviour has all numbers below.
pub(crate) const LOCATED: u32 = u32::MAX;

/// How long that answer is waited for, milliseconds: longer than a take-over takes.
const PATIENCE_MS: u64 = 15_000;

/// Why a cell part was not put where behaviour wanted it. It stands where it stood, with all that it had.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TeleportFailed {
    /// The position or direction is no number.
    #[error("its place has coordinates that are no numbers")]
    NoPlace,
    /// The map has no such space, or was not heard yet.
    #[error("there is no space {0}")]
    NoSpace(SpaceId),
    /// The space was destroyed, and not opened again since.
    #[error("space {0} is gone")]
    SpaceGone(SpaceId),
    /// The entity beside which it was to stand does not exist, or has no cell part.
    #[error("the entity beside which it was to stand: {0}")]
    NoEntity(CallError),
    /// It is larger than what can be handed over, or this input has recorded so much that it does not fit.
    #[error("it is too large to be handed over now")]
    TooLarge,
    /// Another teleport was asked for before this one was begun.
    #[error("it was to be put somewhere else before that was begun")]
    Superseded,
    /// Whoever is responsible there did not take it.
    #[error("it was refused there: {0}")]
    Refused(String),
}

impl Context<'_> {
    /// Puts the cell part at once somewhere else, in any space (`teleport`). It is done when the present call is over:
    /// [`teleported`](crate::Behaviour::teleported) is told once it stands there, wherever that is, or
    /// [`teleport_failed`](crate::Behaviour::teleport_failed), and then it stands where it stood.
    ///
    /// # Errors
    /// When this is a base part.
    pub fn teleport(&mut self, place: Place) -> Result<(), Denied> {
        let entity = self.entity();
        self.request(Request::Teleport { entity, place })
    }

    /// The same to a place beside another entity, in whatever space that is (`teleport(nearbyEntityMB)`): so far from where
    /// it is when it is asked, looking as before.
    ///
    /// # Errors
    /// When this is a base part, the mailbox is one of a base part, or this input has recorded as much as one may.
    pub fn teleport_near(&mut self, beside: Mailbox, offset: Position) -> Result<(), Denied> {
        if self.part() == Part::Base || beside.part == Part::Base {
            return Err(Denied::CellOnly { what: "teleport_near" });
        }
        let deadline = WorldTime(self.now().0.saturating_add(PATIENCE_MS));
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

    /// The entity beside which another is to stand has said where it is, or cannot.
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
    let strange = || CallError::Internal("what it says is no place".to_owned());
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
