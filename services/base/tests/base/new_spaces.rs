//! Cell parts in a space that no other entity has claimed.

use annals_base::BaseInput;
use annals_def::Value;
use annals_event::{
    Body, Call, CellCreation, GlobalData, GlobalEntry, GlobalScope, GlobalVersion, Registration, RequestedBase, Subject,
};
use annals_ids::{CallNumber, Direction, EntityId, Mailbox, MemberId, OwnerId, Part, Position, SpaceId};
use annals_node::{Context, Request, SPACE_CLAIM, space_key};
use annals_wire::SpaceMap;

use crate::{
    game::{AVATAR, Game, MADE, NOTE, PLACE, TIMEOUT_MS},
    host::{BASE, Host, OTHER, call_of_other, map},
    lifecycle::trail,
};

const HP: MemberId = MemberId(4);

/// The spaces that may be claimed. The realm has two of them.
const FIRST: SpaceId = SpaceId(20);
const LAST: SpaceId = SpaceId(29);
const SPACES: [SpaceId; 2] = [SpaceId(21), SpaceId(23)];

/// Requests a cell part in a space of its own; once the entity has the space, releases it.
fn claim_or_release(context: &mut Context<'_>) {
    let entity = context.entity();
    let is_own = |space: &&SpaceId| {
        let holder = context.global_base(&space_key(**space));
        holder.is_some_and(|holder| holder.entity == entity)
    };
    if let Some(own) = SPACES.iter().find(is_own) {
        context.deregister_globally(&space_key(*own)).unwrap();
        return;
    }
    claim(context);
}

/// Requests a cell part in a space of its own.
fn claim(context: &mut Context<'_>) {
    let entity = context.entity();
    let position = Position { x: 1.0, y: 2.0, z: 3.0 };
    let direction = Direction {
        yaw: 0.5,
        ..Direction::default()
    };
    let (spaces, properties) = (FIRST..=LAST, vec![(HP, Value::Int(77))]);
    let request = Request::CreateCellInNewSpace {
        entity,
        spaces,
        position,
        direction,
        properties,
    };
    context.request(request).unwrap();
}

/// The map with the two spaces, of a realm that began on this owner.
fn map_of(keeper: OwnerId) -> SpaceMap {
    let mut map = map();
    let space = map.spaces.values().next().expect("there is one").clone();
    map.spaces.extend(SPACES.map(|number| (number, space.clone())));
    SpaceMap {
        version: 2,
        bootstrap: Some(keeper),
        bases: [BASE, OTHER].into(),
        ..map
    }
}

/// A host with so many avatars without cell parts.
fn host(keeper: OwnerId, avatars: u64) -> (Host, Vec<EntityId>) {
    host_of(claim_or_release, keeper, avatars)
}

fn host_of(errand: fn(&mut Context<'_>), keeper: OwnerId, avatars: u64) -> (Host, Vec<EntityId>) {
    let mut host = Host::of(Game {
        errand: Some(errand),
        ..Game::default()
    });
    host.role(BaseInput::Map(map_of(keeper)));
    for number in 1..=avatars {
        let wanted = RequestedBase {
            by: EntityId(1),
            of: CallNumber(1),
            type_id: AVATAR,
            properties: Vec::new(),
        };
        host.receive(call_of_other(number, Call::CreateBase(Box::new(wanted))));
    }
    host.settle();
    let created = host.batches().flat_map(|batch| batch.events);
    let created = created.filter_map(|event| match (event.subject, &event.body) {
        (Subject::Entity(entity, _), Body::BaseCreated(created)) if created.type_id == AVATAR => Some(entity),
        _ => None,
    });
    let created = created.collect();
    (host, created)
}

/// Has an avatar perform a method, with its `number`th call.
fn run(host: &mut Host, avatar: EntityId, (method, number): (&str, u64)) {
    let found = host
        .schema
        .entity_type(AVATAR)
        .and_then(|avatar| avatar.base_method_named(method));
    let index = found.expect("avatars have it").index;
    host.call_numbered(avatar, index, CallNumber(number));
    host.settle();
}

/// The calls that this host has made and that are about spaces, cell parts and registrations, in their order.
fn called(host: &Host) -> Vec<Call> {
    let bodies = host.batches().flat_map(|batch| batch.events).map(|event| event.body);
    let calls = bodies.filter_map(|body| match body {
        Body::Called { call, .. } => Some(call),
        _ => None,
    });
    let is_meant = |call: &Call| {
        matches!(
            call,
            Call::OpenSpace(_) | Call::CreateCell(_) | Call::Register { .. } | Call::Deregister { .. }
        )
    };
    calls.filter(is_meant).collect()
}

/// The spaces in which an entity's cell part was requested; each was opened before.
fn entered(host: &Host, avatar: EntityId) -> Vec<SpaceId> {
    let (mut opened, mut entered) = (Vec::new(), Vec::new());
    for call in called(host) {
        match call {
            Call::OpenSpace(space) => opened.push(space),
            Call::CreateCell(creation) => {
                let CellCreation {
                    entity,
                    place,
                    properties,
                    ..
                } = *creation;
                assert_eq!(opened.pop(), Some(place.space), "it is opened for the cell part");
                assert_eq!((place.position.y, place.direction.yaw), (2.0, 0.5));
                assert!(properties.contains(&(HP, Value::Int(77))), "{properties:?}");
                if entity == avatar {
                    entered.push(place.space);
                }
            }
            _ => {}
        }
    }
    entered
}

/// Another owner answers a claim.
fn answer(host: &mut Host, number: u64, (by, outcome): (EntityId, Registration)) {
    let of = SPACE_CLAIM;
    host.receive(call_of_other(number, Call::Registered { by, of, outcome }));
    host.settle();
}

fn granted(avatar: EntityId, space: SpaceId) -> (EntityId, Registration) {
    let entry = GlobalEntry {
        key: space_key(space),
        version: GlobalVersion { stamp: 7, by: OTHER },
        value: Some(Value::Mailbox(Some(base_of(avatar, BASE)))),
    };
    (avatar, Registration::Done(entry))
}

fn base_of(entity: EntityId, home: OwnerId) -> Mailbox {
    Mailbox {
        entity,
        home,
        type_id: AVATAR,
        part: Part::Base,
    }
}

/// The keys that were claimed for an avatar.
fn claimed(host: &Host, avatar: EntityId) -> Vec<String> {
    let keys = called(host).into_iter().filter_map(|call| match call {
        Call::Register { by, of, key, .. } if (by, of) == (avatar, SPACE_CLAIM) => Some(key),
        _ => None,
    });
    keys.collect()
}

#[test]
fn each_entity_has_a_space_of_its_own_until_it_releases_it() {
    let (mut host, avatars) = host(BASE, 3);
    for avatar in &avatars {
        run(&mut host, *avatar, ("run_errand", 1));
    }
    assert_eq!(entered(&host, avatars[0]), [SPACES[0]]);
    assert_eq!(entered(&host, avatars[1]), [SPACES[1]]);
    assert_eq!(entered(&host, avatars[2]), []);
    assert_eq!(trail(&host, avatars[2]), "bS", "none is free");

    host.crash();
    host.role(BaseInput::Map(map_of(BASE)));
    host.settle();
    run(&mut host, avatars[2], ("run_errand", 2));
    assert_eq!(entered(&host, avatars[2]), [], "the claims have survived");
    run(&mut host, avatars[1], ("run_errand", 2));
    run(&mut host, avatars[2], ("run_errand", 3));
    assert_eq!(entered(&host, avatars[2]), [SPACES[1]]);
}

#[test]
fn a_space_that_another_owner_has_given_away_is_passed_over() {
    for crashes in [false, true] {
        let (mut host, avatars) = host(OTHER, 1);
        let avatar = avatars[0];
        run(&mut host, avatar, ("run_errand", 1));
        assert_eq!(claimed(&host, avatar), [space_key(SPACES[0])]);
        run(&mut host, avatar, ("run_errand", 2));
        assert_eq!(trail(&host, avatar), "bW", "it waits already");
        if crashes {
            host.crash();
            host.role(BaseInput::Map(map_of(OTHER)));
            host.settle();
        }
        let taken = Registration::Taken(base_of(EntityId(9), OTHER));
        answer(&mut host, 2, (avatar, taken));
        assert_eq!(claimed(&host, avatar), SPACES.map(space_key));
        assert_eq!(entered(&host, avatar), []);
        answer(&mut host, 3, granted(avatar, SPACES[1]));
        assert_eq!(entered(&host, avatar), [SPACES[1]]);
        assert_eq!(host.folded().globals, host.owner.state().globals);
    }
}

#[test]
fn a_claim_that_fails_is_reported_and_releases_the_space() {
    let (mut host, avatars) = host(OTHER, 3);
    for avatar in &avatars {
        run(&mut host, *avatar, ("run_errand", 1));
    }
    answer(&mut host, 4, (avatars[0], Registration::Refused("full".to_owned())));
    assert_eq!(trail(&host, avatars[0]), "bX");
    let taken = || Registration::Taken(base_of(EntityId(9), OTHER));
    answer(&mut host, 5, (avatars[1], taken()));
    answer(&mut host, 6, (avatars[1], taken()));
    assert_eq!(trail(&host, avatars[1]), "bS");

    run(&mut host, avatars[2], ("leave", 2));
    answer(&mut host, 7, granted(avatars[2], SPACES[0]));
    let released = Call::Deregister {
        entity: avatars[2],
        key: space_key(SPACES[0]),
    };
    assert_eq!(called(&host).last(), Some(&released), "the entity has ended");
    assert!(avatars.iter().all(|avatar| entered(&host, *avatar).is_empty()));
}

/// Has the first space already, as if its cell part had ended there, and requests a cell part in a space of its own.
fn register_then_claim(context: &mut Context<'_>) {
    let key = space_key(SPACES[0]);
    if context.global_base(&key).is_none() {
        let registered = context.register_globally(&key, TIMEOUT_MS, (MADE, NOTE.to_vec()));
        registered.unwrap();
    } else {
        claim(context);
    }
}

#[test]
fn an_entity_that_has_a_space_gets_the_same_one_again() {
    let (mut host, avatars) = host_of(register_then_claim, BASE, 1);
    run(&mut host, avatars[0], ("run_errand", 1));
    run(&mut host, avatars[0], ("run_errand", 2));
    assert_eq!(entered(&host, avatars[0]), SPACES[..1]);
    let registered = host.owner.cx().global_data(GlobalScope::Registry);
    assert_eq!(registered.map(GlobalData::len), Some(1));
}

/// Claims a space, and requests a cell part elsewhere at once.
fn claim_and_create(context: &mut Context<'_>) {
    claim(context);
    let (entity, place) = (context.entity(), PLACE);
    let properties = Vec::new();
    let request = Request::CreateCell {
        entity,
        place,
        properties,
    };
    context.request(request).unwrap();
}

#[test]
fn no_other_cell_part_is_created_while_an_entity_waits_for_a_space() {
    let (mut host, avatars) = host_of(claim_and_create, OTHER, 1);
    run(&mut host, avatars[0], ("run_errand", 1));
    assert_eq!(trail(&host, avatars[0]), "bW");
    let creates = |call: &Call| matches!(call, Call::CreateCell(_));
    assert!(!called(&host).iter().any(creates));
    answer(&mut host, 2, granted(avatars[0], SPACES[0]));
    assert_eq!(entered(&host, avatars[0]), SPACES[..1]);
}
