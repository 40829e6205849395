//! Activation of stored entities. A stored entity is checked out before it is activated, and a check-out names one
//! owner. So it can be activated on one owner only, and that owner's log decides.

use annals_ids::{EntityId, Mailbox, Part};
use annals_node::{Begun, Denied, NotOpened, Output, OwnerContext, Stored};

use crate::{
    input::{Begin, CheckedOut},
    internal_waits::is_about_to_end,
    role::BaseRole,
};

impl BaseRole {
    /// Activates a stored entity, on request.
    pub(crate) fn begin(&mut self, cx: &mut OwnerContext, wanted: &Begin) {
        let request = wanted.request;
        let begun = try_begin(cx, &wanted.entity);
        self.counters.begun += u64::from(begun.as_ref().is_ok_and(|begun| !begun.was_active));
        cx.emit(Output::Begun { request, begun });
    }
}

fn try_begin(cx: &mut OwnerContext, wanted: &CheckedOut) -> Result<Begun, NotOpened> {
    check(cx, wanted)?;
    let live = live(cx, wanted)?;
    let entity = match live {
        Some(entity) => entity,
        None => begin(cx, wanted)?,
    };
    // Its behaviour may have destroyed it at once.
    let image = cx.image(entity).ok_or(NotOpened::Outdated)?;
    let mailbox = Mailbox {
        entity,
        home: cx.owner(),
        type_id: image.type_id,
        part: Part::Base,
    };
    let was_active = live.is_some();
    Ok(Begun { mailbox, was_active })
}

/// Checks whether it can be activated here.
pub(crate) fn check(cx: &OwnerContext, wanted: &CheckedOut) -> Result<(), NotOpened> {
    if wanted.epoch != cx.epoch() {
        return Err(NotOpened::Outdated);
    }
    let entity_type = cx.type_of(wanted.type_id);
    let entity_type = entity_type.ok_or_else(|| NotOpened::Unfit(format!("there is no type {}", wanted.type_id)))?;
    // Without a client part its client is shown nothing of it; worlds that are server-only have accounts too.
    if !entity_type.parts.base {
        return Err(NotOpened::Unfit(format!("{} has no base part", entity_type.name)));
    }
    Ok(())
}

/// The entity if it is activated already; `None` if it may be activated.
///
/// # Errors
/// [`NotOpened::Outdated`] if the check-out is of an activation that has ended, or is about to.
pub(crate) fn live(cx: &OwnerContext, wanted: &CheckedOut) -> Result<Option<EntityId>, NotOpened> {
    let live = cx.state().databases.get(&wanted.database).copied();
    let outdated = match live {
        Some(entity) => is_outdated(cx, entity, wanted.checkout),
        None => wanted.checkout == 0 || cx.state().ended.contains(&wanted.checkout),
    };
    if outdated { Err(NotOpened::Outdated) } else { Ok(live) }
}

/// Whether a check-out is newer than the activation of this entity, or that activation is about to end.
fn is_outdated(cx: &OwnerContext, entity: EntityId, checkout: u64) -> bool {
    cx.image(entity).is_none_or(|image| {
        let life = image.base().map_or(0, |base| base.checkout);
        life < checkout || is_about_to_end(image)
    })
}

/// Keeps the key: for a new activation, and for one that had no key when its owner was taken over.
pub(crate) fn learn_key(cx: &mut OwnerContext, wanted: &CheckedOut) {
    if let Some(key) = &wanted.key {
        cx.learn_key(wanted.database, key.clone());
    }
}

/// Activates the entity.
pub(crate) fn begin(cx: &mut OwnerContext, wanted: &CheckedOut) -> Result<EntityId, NotOpened> {
    let entity_type = cx.type_of(wanted.type_id);
    let is_of_cell = |member| {
        let property = entity_type.and_then(|found| found.property(member));
        property.is_some_and(|property| property.distribution.on_cell())
    };
    let stored = wanted.properties.iter().cloned();
    let (cell_properties, properties) = stored.partition(|(member, _)| is_of_cell(*member));
    learn_key(cx, wanted);
    let stored = Stored {
        database: wanted.database,
        checkout: wanted.checkout,
        cell_properties,
    };
    cx.create_base(wanted.type_id, properties, stored)
        .map_err(|denied| match denied {
            Denied::NoIds => NotOpened::Full,
            denied => NotOpened::Unfit(denied.to_string()),
        })
}
