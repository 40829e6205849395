//! What a client sees: entities, properties, spaces.

use std::{ffi::c_char, ptr, time::Instant};

use annals_client::{Client, EntityView, Millis};
use annals_ids::{EntityId, Part};

use crate::{
    client::{AnnalsClient, using},
    failure::{AnnalsError, AnnalsErrorCode, Failure, answering, reporting},
    inputs::{
        AnnalsBytes, AnnalsDirection, AnnalsPart, AnnalsPosition, AnnalsText, part_number, part_of, put, room, text,
    },
    value::AnnalsValue,
};

/// An entity as a view shows it.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct AnnalsEntity {
    pub id: u64,
    /// The history number up to which it was shown.
    pub number: u64,
    /// The name of its type, valid as long as the client.
    pub type_name: AnnalsText,
    /// The number of its type among those of the schema.
    pub type_id: u16,
    /// The view.
    pub part: AnnalsPart,
    /// Whether it has a place: those in the base's view have none.
    pub has_place: bool,
    pub position: AnnalsPosition,
    pub direction: AnnalsDirection,
    /// The level of detail on which it is shown, 0 for the finest.
    pub level: u32,
}

/// Reads something of a client.
///
/// # Safety
/// `client` is NULL or a client that was not freed, and `result` is NULL or a place for a `T`.
unsafe fn read<T>(client: *const AnnalsClient, result: *mut T, read: impl FnOnce(&Client) -> Option<T>) -> bool {
    answering(false, || {
        // SAFETY: as promised by the caller.
        let found = read(&unsafe { using(client) }?.client);
        let is_found = found.is_some();
        if let Some(found) = found {
            // SAFETY: as promised by the caller.
            unsafe { put(result, found) };
        }
        Ok(is_found)
    })
}

/// Whether the session has a connection to its base.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn annals_client_is_playing(client: *const AnnalsClient) -> bool {
    // SAFETY: the caller passes NULL or a client.
    unsafe {
        read(client, ptr::null_mut(), |client| {
            client.core().is_playing().then_some(())
        })
    }
}

/// Whether the client has ended, and does nothing any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn annals_client_has_ended(client: *const AnnalsClient) -> bool {
    // SAFETY: the caller passes NULL or a client.
    unsafe {
        read(client, ptr::null_mut(), |client| {
            client.core().has_ended().then_some(())
        })
    }
}

/// The entity that the client controls. False if there is no session.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn annals_client_controls(client: *const AnnalsClient, entity: *mut u64) -> bool {
    // SAFETY: the caller passes NULL or a client, and NULL or a place for a number.
    unsafe { read(client, entity, |client| Some(client.core().controls()?.0.0)) }
}

/// Whether the client moves this entity: its own, unless the realm has chosen another driver, or one of which the realm
/// has chosen the client's entity as the driver (ANNALS_EVENT_KIND_DRIVES).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn annals_client_drives(client: *const AnnalsClient, entity: u64) -> bool {
    // SAFETY: the caller passes NULL or a client.
    unsafe {
        read(client, ptr::null_mut(), |client| {
            client.core().drives(EntityId(entity)).then_some(())
        })
    }
}

/// The number of calls whose effects are not in the realm's log yet.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn annals_client_unconfirmed_calls(client: *const AnnalsClient) -> usize {
    let mut count = 0;
    // SAFETY: the caller passes NULL or a client.
    unsafe { read(client, &mut count, |client| Some(client.core().unconfirmed_calls())) };
    count
}

/// The entities in a view, ascending: writes up to `capacity` ids, and returns how many there are.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn annals_client_entities(
    client: *const AnnalsClient,
    part: AnnalsPart,
    ids: *mut u64,
    capacity: usize,
) -> usize {
    answering(0, || {
        let part = part_of(part)?;
        // SAFETY: the caller passes NULL or a client, and room for so many ids.
        let (playing, room) = unsafe { (using(client)?, room(ids, capacity, "ids")?) };
        let entities = playing.client.core().view(part).entities();
        for (place, entity) in room.iter_mut().zip(entities.keys()) {
            place.write(entity.0);
        }
        Ok(entities.len())
    })
}

/// An entity in a view. False if it is not in it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn annals_client_entity(
    client: *const AnnalsClient,
    part: AnnalsPart,
    entity: u64,
    result: *mut AnnalsEntity,
) -> bool {
    let of_view = |client: &Client| {
        let part = part_of(part).ok()?;
        let seen = client.core().view(part).entities().get(&EntityId(entity))?;
        Some(described(client, (entity, part), seen))
    };
    // SAFETY: the caller passes NULL or a client, and NULL or a place for an entity.
    unsafe { read(client, result, of_view) }
}

fn described(client: &Client, (id, part): (u64, Part), seen: &EntityView) -> AnnalsEntity {
    let entity_type = client.core().schema().entity_type(seen.type_id);
    let (position, direction) = seen.place.unwrap_or_default();
    AnnalsEntity {
        id,
        number: seen.upto.0,
        type_name: entity_type.map_or(AnnalsText::NONE, |found| AnnalsText::new(&found.name)),
        type_id: seen.type_id.0,
        part: part_number(part),
        has_place: seen.place.is_some(),
        position: position.into(),
        direction: direction.into(),
        level: u32::try_from(seen.level()).unwrap_or(u32::MAX),
    }
}

/// A property of an entity in view, as it was shown last. It is valid until the next call of annals_client_poll,
/// annals_client_move, annals_client_call, annals_client_leave, annals_client_cut or annals_client_free of this client;
/// annals_value_copy keeps it. NULL after an error.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn annals_client_property(
    client: *const AnnalsClient,
    entity: u64,
    property: *const c_char,
    error: *mut *mut AnnalsError,
) -> *const AnnalsValue {
    let body = || {
        // SAFETY: the caller passes NULL or a client, and NULL or a text.
        let (playing, name) = unsafe { (using(client)?, text(property, "property")?) };
        let (core, entity) = (playing.client.core(), EntityId(entity));
        if let Some(value) = core.property(entity, name) {
            return Ok(AnnalsValue::lent(value));
        }
        let seen = [Part::Cell, Part::Base].map(|part| core.view(part).entities().get(&entity));
        let entity_type = seen.into_iter().flatten().next();
        let entity_type = entity_type.and_then(|seen| core.schema().entity_type(seen.type_id));
        Err(match entity_type {
            None => Failure::new(AnnalsErrorCode::NotInView, format!("entity {entity} is not in view")),
            Some(found)
                if found
                    .property_named(name)
                    .is_some_and(|property| property.client_id.is_some()) =>
            {
                let said = format!("{}.{name} is not shown of entity {entity} here", found.name);
                Failure::new(AnnalsErrorCode::NotInView, said)
            }
            Some(found) => {
                let said = format!("{} has no property {name} that clients are shown", found.name);
                Failure::new(AnnalsErrorCode::NoSuchMember, said)
            }
        })
    };
    // SAFETY: the caller passes NULL or a place for an error.
    unsafe { reporting(error, ptr::null(), body) }
}

/// The space of the client's own entity. False if it is not known yet.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn annals_client_space(client: *const AnnalsClient, space: *mut u32) -> bool {
    // SAFETY: the caller passes NULL or a client, and NULL or a place for a number.
    unsafe {
        read(client, space, |client| {
            Some(client.core().view(Part::Cell).space()?.0.0)
        })
    }
}

/// The value under a key in the data of that space, valid as a property is. False if there is none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn annals_client_space_data(
    client: *const AnnalsClient,
    key: u16,
    result: *mut AnnalsBytes,
) -> bool {
    let data = |client: &Client| Some(AnnalsBytes::new(client.core().space_data()?.get(key)?));
    // SAFETY: the caller passes NULL or a client, and NULL or a place for bytes.
    unsafe { read(client, result, data) }
}

/// The time of day in that space, seconds since midnight. False if it has none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn annals_client_time_of_day(client: *const AnnalsClient, seconds: *mut f64) -> bool {
    let time = |client: &Client| {
        let passed = Instant::now().saturating_duration_since(client.instant(Millis(0)));
        let now = Millis(u64::try_from(passed.as_millis()).ok()?);
        client.core().time_of_day(now)
    };
    // SAFETY: the caller passes NULL or a client, and NULL or a place for a number.
    unsafe { read(client, seconds, time) }
}
