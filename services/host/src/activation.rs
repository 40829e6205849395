//! Activation of a stored entity (rule P1), requested over the bus.

use std::time::Duration;

use annals_ids::{DatabaseId, EntityId, Mailbox, OwnerId, Part, TypeId};
use annals_node::Begun;
use annals_wire::{
    Subjects,
    control::{
        BeginLife, CheckOut, CheckedOut, DbAsk, DbRequest, DirectorAsk, DirectorRequest, LifeBegun, Locate, Place,
    },
};
use thiserror::Error;

use crate::{nats::Bus, process::request};

/// How often it is tried: what stands in the way (a life that ends, an owner that is taken over) passes within seconds.
const TRIES: u32 = 40;

/// Between two of these.
const PAUSE: Duration = Duration::from_millis(250);

/// Why an entity does not live.
#[derive(Debug, Error)]
pub enum NotBegun {
    /// Something stood in the way for too long.
    #[error("its life did not begin in time; ask again")]
    Late,
    /// It cannot.
    #[error("its life cannot begin: {0}")]
    Refused(String),
}

/// What one try came to.
enum Tried {
    Begun(Begun),
    /// It is checked out to another owner.
    Elsewhere(OwnerId),
    Again,
}

/// Lets an entity of the database live, on this owner unless it does elsewhere, as a log-in does: it is checked out, and
/// whoever holds the owner that the check-out names begins its life or says that it has begun. A check-out that is out of date
/// is read again. That there is such an entity the caller has seen.
///
/// # Errors
/// When it does not live in the end.
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
    // The epoch before the check-out: what was found out in an earlier holding is out of date there.
    let ask = DirectorRequest {
        ask: Some(DirectorAsk::Locate(Locate { owner: at.0 })),
    };
    let place = request::<Place>(bus, "director", subjects.service("director"), &ask).await;
    let Some(place) = place.ok().filter(|place| place.owner == at.0) else {
        return Ok(Tried::Again);
    };
    let ask = DbRequest {
        ask: Some(DbAsk::CheckOut(CheckOut {
            database: database.0,
            preferred: at.0,
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
