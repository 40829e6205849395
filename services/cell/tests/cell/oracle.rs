//! Conditions that hold once nothing is under way, checked by exhaustive comparison.

use std::collections::BTreeMap;

use annals_def::{EntityType, Schema, Value, as_shown, change_as_shown};
use annals_event::{Body, Call, Driver, Event, Image, OwnerState, Place, Subject};
use annals_ids::{Address, EntityId, HistoryNumber, MemberId, OwnerId, Part, WorldTime};
use annals_node::{Showing, Viewer};
use annals_wire::client::{ClientMember, Movements, Reply, Shown};

use crate::{
    client::{Client, Seen},
    game::{NOTE, SIGN},
    world::{HYSTERESIS, RADIUS, SPACE, World},
};

/// History numbers by which a client may be behind because the events concern others.
const QUIET: u64 = 64;

/// How far beyond the ghost distance an entity keeps an existing ghost, metres.
const GHOST_SLACK: f32 = 20.0;

/// Checks everything.
pub(crate) fn check(world: &World) {
    check_logs(world);
    check_calls(world);
    check_ghosts(world);
    for client in world.clients.values() {
        check_view(world, client);
        check_shown(world, client);
    }
}

/// Every entity is real once, no owner waits for another, and what a log folds into is what its owner holds.
pub(crate) fn check_logs(world: &World) {
    world.reals();
    for cell in world.cells.values() {
        let state = cell.owner.as_ref().expect("it is up").state();
        assert!(state.departing.is_empty(), "on {}: {:?}", cell.id, state.departing);
        assert_eq!(stable(cell.folded()), stable(state.clone()), "on {}", cell.id);
        let counters = world.role(cell.id).counters();
        assert_eq!(counters.alarms, 0, "on {}", cell.id);
    }
    for (entity, events) in histories(world) {
        let numbers: Vec<u64> = events.keys().map(|number| number.0).collect();
        let dense: Vec<u64> = (1..=numbers.len() as u64).collect();
        assert_eq!(numbers, dense, "history of entity {entity}");
    }
}

/// The entities without the next times of their timers: one may just have fired, and not be in the log yet.
fn stable(state: OwnerState) -> BTreeMap<EntityId, Image> {
    let mut entities = state.entities;
    for timer in entities.values_mut().flat_map(|image| image.timers.values_mut()) {
        timer.due = WorldTime(0);
    }
    entities
}

/// The calls of the homes were done once each, in order.
fn check_calls(world: &World) {
    for (entity, image) in world.home.folded().entities {
        if world.holders(entity).is_empty() {
            continue;
        }
        let asked: Vec<Value> = world
            .home
            .events()
            .iter()
            .filter_map(|event| noted(entity, event))
            .collect();
        let notes = &world.real(entity).properties[&MemberId(5)];
        assert_eq!(notes, &Value::Sequence(asked), "entity {entity}");
        let cell = image.base().and_then(|base| base.cell);
        assert_eq!(cell, world.holders(entity).first().copied(), "entity {entity}");
    }
}

fn noted(entity: EntityId, event: &Event) -> Option<Value> {
    match &event.body {
        Body::Called {
            to,
            call: Call::Method { method: NOTE, args, .. },
            ..
        } if *to == Address::Cell(entity) => args.first().cloned(),
        _ => None,
    }
}

/// Ghosts are where they must be, and equal to the real entities.
pub(crate) fn check_ghosts(world: &World) {
    let reals = world.reals();
    let distance = world.map.spaces[&SPACE].ghost_distance;
    for &id in world.cells.keys() {
        let ghosts: BTreeMap<_, _> = world.role(id).ghosts().iter().collect();
        for (entity, (holder, place)) in reals.iter().filter(|(_, (holder, _))| *holder != id) {
            let apart = away(world, id, place);
            let Some(ghost) = ghosts.get(entity) else {
                assert!(apart > distance, "{id} has no ghost of entity {entity}, {apart} m away");
                continue;
            };
            assert!(
                apart <= distance + GHOST_SLACK,
                "{id} has a ghost of entity {entity}, {apart} m away"
            );
            let image = world.real(*entity);
            assert_eq!(
                (ghost.holder(), ghost.history()),
                (*holder, image.history),
                "ghost of {entity} on {id}"
            );
            assert_eq!(ghost.place(), *place, "ghost of {entity} on {id}");
            let driver = image.cell().expect("it is a cell part").movement_control.driver;
            assert_eq!(ghost.driver(), driver, "ghost of {entity} on {id}");
            let entity_type = world.cx(id).type_of(image.type_id).expect("it exists");
            let held = image.properties.iter().filter(|(member, _)| {
                entity_type
                    .property(**member)
                    .expect("it exists")
                    .distribution
                    .to_ghosts()
            });
            let held: BTreeMap<MemberId, Value> = held.map(|(member, value)| (*member, value.clone())).collect();
            assert_eq!(ghost.properties(), &held, "ghost of {entity} on {id}");
        }
        for entity in ghosts.keys() {
            assert!(
                reals.contains_key(entity),
                "{id} has a ghost of entity {entity}, which has ended"
            );
            assert_ne!(
                reals[entity].0, id,
                "{id} has a ghost of entity {entity}, which is real there"
            );
        }
    }
}

fn away(world: &World, id: OwnerId, place: &Place) -> f32 {
    let cells = world.map.spaces[&place.space]
        .cells
        .iter()
        .filter(|area| area.owner == id);
    cells
        .map(|area| area.distance(place.position))
        .fold(f32::INFINITY, f32::min)
}

/// A client has everything within its area of interest, nothing beyond it, and all of it up to date.
pub(crate) fn check_view(world: &World, client: &Client) {
    let reals = world.reals();
    let Some((_, own)) = reals.get(&client.entity) else {
        return;
    };
    for (entity, (_, place)) in &reals {
        let apart = apart(place, own);
        let (enter, hold) = within(world, client.entity, *entity);
        let Some(seen) = client.known.get(entity) else {
            assert!(
                apart > enter,
                "client {} does not see {entity}, {apart} m away",
                client.session
            );
            continue;
        };
        assert!(apart <= hold, "client {} sees {entity}, {apart} m away", client.session);
        let image = world.real(*entity);
        let missing = image.history.0.checked_sub(seen.history.0);
        assert!(
            missing.is_some_and(|missing| missing < QUIET),
            "client {} has {entity} up to {}, not {}",
            client.session,
            seen.history,
            image.history
        );
        check_properties(world, client, (*entity, seen), own.position.distance(place.position));
        let own = *entity == client.entity;
        let driver = image.cell().expect("it is a cell part").movement_control.driver;
        let drives = driver == Driver::ClientOf(client.entity) || (own && driver == Driver::Client);
        assert_eq!(
            client.drives(*entity),
            drives,
            "client {} and {entity}, moved by {driver:?}",
            client.session
        );
        if !own {
            let missed = |seen: f32, real: f32| (seen - real).abs() > coarsest(world.movements);
            assert!(
                !missed(seen.position.x, place.position.x) && !missed(seen.position.z, place.position.z),
                "client {}: {entity} at {:?}, not {:?}",
                client.session,
                seen.position,
                place.position
            );
        }
    }
    for entity in client.known.keys() {
        assert!(
            reals.contains_key(entity),
            "client {} sees {entity}, which has ended",
            client.session
        );
    }
}

/// Maximum error of a coordinate, at the largest distance.
fn coarsest(movements: Movements) -> f32 {
    match movements {
        Movements::Plain => 0.0,
        Movements::Predicted(packing) => packing.scale() / 2.0 + 1e-4,
    }
}

/// The distances at which a client sees an entity: up to the first it enters the view, up to the second it stays.
pub(crate) fn within(world: &World, own: EntityId, entity: EntityId) -> (f32, f32) {
    let sight = &world.real(own).cell().expect("it is a cell part").sight;
    let holder = world.holders(own)[0];
    let is_known = world.cx(holder).image(entity).is_some() || world.role(holder).ghosts().get(entity).is_some();
    if entity == own || (is_known && sight.manual.contains(&entity)) {
        return (f32::MAX, f32::MAX);
    }
    if world.real(entity).type_id == SIGN {
        return (-1.0, -1.0);
    }
    let area = sight.area;
    area.map_or((RADIUS, RADIUS + HYSTERESIS), |area| (area.radius, area.reach()))
}

/// The distance of two places, measured as a square; infinite between spaces.
pub(crate) fn apart(one: &Place, other: &Place) -> f32 {
    let (dx, dz) = (one.position.x - other.position.x, one.position.z - other.position.z);
    match one.space == other.space {
        true => dx.abs().max(dz.abs()),
        false => f32::INFINITY,
    }
}

/// What a client has of an entity at this distance is what it may have.
fn check_properties(world: &World, client: &Client, (entity, seen): (EntityId, &Seen), metres: f32) {
    let (image, session) = (world.real(entity), client.session);
    let found = world.cx(world.holders(entity)[0]).type_of(image.type_id);
    let entity_type = found.expect("it exists");
    let own = entity == client.entity;
    let level = seen.finer.len();
    if !own {
        check_level(entity_type, level, metres);
    }
    for property in &entity_type.properties {
        let is_near = property.detail_level.is_none_or(|finest| usize::from(finest) >= level);
        let held = if own {
            property.distribution.to_own_client()
        } else {
            property.distribution.to_other_clients() && is_near
        };
        if held {
            let shown = seen.property(entity_type, property.index);
            let name = &property.name;
            assert_eq!(
                shown,
                as_shown(image.properties[&property.index].clone()),
                "client {session}: {entity}.{name}"
            );
        }
    }
}

/// An entity is shown on the level of detail of its distance, or on a finer one within its hysteresis.
fn check_level(entity_type: &EntityType, level: usize, metres: f32) {
    let levels = &entity_type.lod_levels;
    let is_beyond = level == 0 || metres >= levels[level - 1].radius;
    let is_within = levels
        .get(level)
        .is_none_or(|found| metres <= found.radius + found.hysteresis);
    assert!(is_beyond && is_within, "on level {level} {metres} m away");
}

/// Everything that a client was ever shown is in a log, unchanged.
pub(crate) fn check_shown(world: &World, client: &Client) {
    let histories = histories(world);
    let types = entity_types(world);
    let schema: &Schema = world.cx(crate::world::WEST).schema();
    for (entity, number, shown) in &client.shown {
        let viewer = if *entity == client.entity {
            Viewer::Own
        } else {
            Viewer::Others
        };
        let showing = Showing::new(schema, *entity, types[entity], viewer).expect("the type exists");
        let showing = showing.seen_by(client.entity, client.session);
        let event = &histories[entity][number];
        let items = showing.update(HistoryNumber(number.0 - 1), std::iter::once((*number, Some(event))));
        assert_eq!(items.len(), 1, "client {} and entity {entity}: hidden", client.session);
        let entity_type = schema.entity_type(types[entity]).expect("the type exists");
        let logged = match &event.body {
            Body::Changed { member, change } => Shown::Property {
                member: ClientMember(client_id(
                    entity_type.property(*member).and_then(|found| found.client_id),
                )),
                change: change_as_shown(change.change().clone()),
            },
            Body::Invoked { method, args, .. } => Shown::Method {
                member: ClientMember(client_id(entity_type.client_methods[usize::from(method.0)].client_id)),
                args: args.iter().cloned().map(as_shown).collect(),
            },
            Body::Replied {
                number,
                method,
                outcome,
                ..
            } => {
                let exposed = entity_type.exposed_cell_methods();
                let place = exposed
                    .iter()
                    .position(|exposed| exposed == method)
                    .expect("it is exposed");
                Shown::Reply(Reply {
                    part: Part::Cell,
                    call: *number,
                    member: ClientMember(u16::try_from(place).expect("there are few")),
                    outcome: outcome.clone(),
                })
            }
            other => panic!("\"{}\" is not shown to clients", other.name()),
        };
        assert_eq!(logged, *shown, "client {} and entity {entity}", client.session);
    }
}

fn client_id(id: Option<u16>) -> u16 {
    id.expect("what was shown has a client number")
}

/// The histories of all cell parts, over all logs.
fn histories(world: &World) -> BTreeMap<EntityId, BTreeMap<HistoryNumber, Event>> {
    let mut histories: BTreeMap<EntityId, BTreeMap<HistoryNumber, Event>> = BTreeMap::new();
    for event in world.cells.values().flat_map(crate::process::Process::events) {
        if let (Subject::Entity(entity, Part::Cell), Some(number)) = (event.subject, event.history) {
            let twice = histories.entry(entity).or_default().insert(number, event);
            assert!(twice.is_none(), "entity {entity} has two events {number}");
        }
    }
    histories
}

fn entity_types(world: &World) -> BTreeMap<EntityId, annals_ids::TypeId> {
    let events = world.cells.values().flat_map(crate::process::Process::events);
    events
        .filter_map(|event| match event.body {
            Body::CellCreated(creation) => Some((creation.entity, creation.type_id)),
            _ => None,
        })
        .collect()
}
