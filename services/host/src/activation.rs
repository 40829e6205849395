//! Activation of a stored entity (rule P1), requested over the bus.

use std::time::Duration;

use annals_ids::{DatabaseId, EntityId, Mailbox, OwnerId, Part, TypeId};
use annals_node::Begun;
use annals_wire::{
    Subjects,
    control::{
        BeginLife, CheckOut, CheckedOut, DbAsk, DbRequest, DirectorAsk, DirectorRequest, LifeBegun, Locate,
        OwnerAddress,
    },
};
use thiserror::Error;

use crate::{nats::Bus, process::request};

/// Maximum tries: obstacles (an activation that is ending, an owner that is being taken over) pass within seconds.
const TRIES: u32 = 40;

/// Pause between two tries.
const PAUSE: Duration = Duration::from_millis(250);

/// Why an entity could not be activated.
#[derive(Debug, Error)]
pub enum NotBegun {
    /// An obstacle lasted for too long.
    #[error("the entity was not activated in time; try again")]
    Late,
    /// The activation was refused.
    #[error("the entity cannot be activated: {0}")]
    Refused(String),
}

/// Result of one try.
enum Tried {
    Begun(Begun),
    /// It is checked out to another owner.
    Elsewhere(OwnerId),
    Again,
}

/// Activates a stored entity, as a log-in does, on this owner unless it is active on another: it is checked out, and
/// the holder of the owner that the check-out names creates its base or confirms that it exists. A stale check-out is
/// read again. The caller has verified that the entity exists.
///
/// # Errors
/// When it could not be activated.
pub async fn begin(bus: &Bus, subjects: &Subjects, database: DatabaseId, on: OwnerId) -> Result<Begun, NotBegun> {
    let mut at = on;
    for turn in 0..TRIES {
        if turn > 0 {
            tokio::time::sleep(PAUSE).await;
        }
        match try_begin(bus, subjects, database, at).await? {
            Tried::Begun(begun) => return Ok(begun),
            Tried::Elsewhere(owner) => at = owner,
            Tried::Again => {}
        }
    }
    Err(NotBegun::Late)
}

async fn try_begin(bus: &Bus, subjects: &Subjects, database: DatabaseId, at: OwnerId) -> Result<Tried, NotBegun> {
    // Read the epoch before the check-out: what is learned under an earlier epoch is stale there.
    let ask = DirectorRequest {
        ask: Some(DirectorAsk::Locate(Locate { owner: at.0 })),
    };
    let place = request::<OwnerAddress>(bus, "director", subjects.service("director"), &ask).await;
    let Some(place) = place.ok().filter(|place| place.owner == at.0) else {
        return Ok(Tried::Again);
    };
    let ask = DbRequest {
        ask: Some(DbAsk::CheckOut(CheckOut {
            database: database.0,
            preferred: at.0,
            plays: false,
            only_active: false,
        })),
    };
    let asked = request::<CheckedOut>(bus, "db", subjects.service("db"), &ask).await;
    let Ok(checked_out) = asked else {
        return Ok(Tried::Again);
    };
    if !checked_out.failed.is_empty() {
        return Err(NotBegun::Refused(checked_out.failed));
    }
    if checked_out.owner != at.0 {
        return Ok(Tried::Elsewhere(OwnerId(checked_out.owner)));
    }
    let life = BeginLife {
        database: database.0,
        checkout: checked_out.checkout,
        type_id: checked_out.type_id,
        properties: checked_out.properties,
        epoch: place.epoch,
        key: checked_out.key,
    };
    let Ok(begun) = request::<LifeBegun>(bus, "base", subjects.lives(at), &life).await else {
        return Ok(Tried::Again);
    };
    let type_id = u16::try_from(life.type_id).map(TypeId);
    match (begun, type_id) {
        (LifeBegun { entity, was_active, .. }, Ok(type_id)) if entity != 0 => {
            let mailbox = Mailbox {
                entity: EntityId(entity),
                home: at,
                type_id,
                part: Part::Base,
            };
            Ok(Tried::Begun(Begun { mailbox, was_active }))
        }
        (LifeBegun { outdated: true, .. }, _) => Ok(Tried::Again),
        (LifeBegun { refused, .. }, _) => Err(NotBegun::Refused(refused)),
    }
}
