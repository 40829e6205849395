//! Teleports: requests of behaviour, and reasons for failure.

use annals_event::{CallError, Place};
use annals_ids::SpaceId;
use thiserror::Error;

use crate::{
    context::{Context, Denied},
    output::Request,
};

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
}
