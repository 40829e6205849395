//! At rest every client that has not left plays: no account stays locked, neither by a crashed process nor by another
//! client. Two clients of one account do not keep displacing each other. Where unplayed avatars are destroyed, nothing
//! is left of them.

use std::collections::BTreeMap;

use annals_client::{EndReason, Event};
use annals_ids::{DatabaseId, EntityId, Part};
use annals_wire::client::{CloseReason, Rejection};

use crate::{archive::Archive, game::AVATAR, world::World};

/// Checks that clients play and that no avatar is left behind.
pub fn check(world: &World, archive: &Archive) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut playing: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
    for (number, client) in world.clients.iter().enumerate() {
        match client.ended {
            None if client.core.is_playing() => playing.entry(client.account).or_default().push(number),
            None => wrong.push(format!("client {number} of account {} is not admitted", client.account)),
            Some(reason) if is_sound(reason) => {}
            Some(reason) => wrong.push(format!("client {number} has ended: {reason}")),
        }
        let log_ins = client
            .events
            .iter()
            .filter(|event| matches!(event, Event::Connected { .. }));
        let log_ins = log_ins.count();
        if log_ins > 1 {
            wrong.push(format!("client {number} has logged in {log_ins} times"));
        }
    }
    for (account, clients) in playing.iter().filter(|(_, clients)| clients.len() > 1) {
        wrong.push(format!("clients {clients:?} play account {account} at once"));
    }
    if world.plan.visits {
        let played = world.clients.iter().filter(|client| client.core.is_playing());
        let played: Vec<EntityId> = played.filter_map(|client| Some(client.core.controls()?.0)).collect();
        wrong.extend(left_behind(world, archive, &played));
    }
    wrong
}

/// Whether a client's session may end for this reason.
fn is_sound(reason: EndReason) -> bool {
    let expired = [
        EndReason::Rejected(Rejection::UnknownSession),
        EndReason::Closed(CloseReason::Ended),
    ];
    reason == EndReason::Left || reason.is_elsewhere() || expired.contains(&reason)
}

/// Avatars of accounts that still exist, in either part, although no client plays them.
fn left_behind(world: &World, archive: &Archive, played: &[EntityId]) -> Vec<String> {
    let avatar = world.schema.type_named(AVATAR).expect("the game has avatars").id;
    let states = archive.states.values();
    let living = states.flat_map(|state| state.entities.iter().map(move |(entity, image)| (state, entity, image)));
    let avatars = living.filter(|(_, _, image)| image.type_id == avatar);
    let left = avatars.filter(|(_, entity, image)| {
        // The bootstrap entity is not played and has no cell part.
        let begins = image.base().is_some_and(|base| base.database == DatabaseId(0));
        !begins && !played.contains(entity)
    });
    left.map(|(state, entity, _)| {
        let part = state.part().unwrap_or(Part::Base);
        format!(
            "the {part} part of entity {entity} is on owner {} without a client",
            state.owner
        )
    })
    .collect()
}
