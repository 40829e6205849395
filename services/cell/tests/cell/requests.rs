//! Requests of behaviour that concern other entities: each is done once, wherever those are, or denied with an error.

use std::collections::{BTreeMap, BTreeSet};

use annals_def::Value;
use annals_event::{Body, Call, ControllerEvent, Gait, Seat, Subject};
use annals_ids::{Address, EntityId, Mailbox, OwnerId, Part, Position, SpaceId};
use annals_node::{Context, Denied, Request, TeleportFailed};

use crate::{
    game::{AVATAR, JUMP, KILL, STATUE},
    home::HomeInput,
    oracle::{check, check_ghosts, check_logs},
    teleport::{ARENA, at, put, world},
    world::{CALM, EAST, HOME, MIDDLE, ROUGH, WEST, World, have, place},
};

/// An entity that never existed.
const NOBODY: EntityId = EntityId(77);

fn destroy(context: &mut Context<'_>, entity: EntityId) -> Result<(), Denied> {
    context.request(Request::Destroy { entity })
}

fn mailbox(entity: EntityId, part: Part) -> Mailbox {
    Mailbox {
        entity,
        home: HOME,
        type_id: AVATAR,
        part,
    }
}

/// One entity on the west cell, and one on the middle cell that is a ghost there.
fn pair(seed: u64) -> (World, EntityId, EntityId) {
    let mut world = world(seed);
    let (one, ghost) = (world.spawn(AVATAR, -5.0, None), world.spawn(AVATAR, 5.0, None));
    world.run(1_000);
    assert_eq!((world.holders(one), world.holders(ghost)), (vec![WEST], vec![MIDDLE]));
    assert!(world.role(WEST).ghosts().get(ghost).is_some());
    (world, one, ghost)
}

/// How often each cell part ended, according to the logs.
fn ends(world: &World) -> BTreeMap<EntityId, usize> {
    let mut ends = BTreeMap::new();
    for event in world.cells.values().flat_map(crate::process::Process::events) {
        if let (Subject::Entity(entity, Part::Cell), Body::Destroyed) = (event.subject, event.body) {
            *ends.entry(entity).or_default() += 1;
        }
    }
    ends
}

#[test]
fn a_destroy_of_a_ghost_ends_the_real_entity() {
    for request in [
        |entity| Request::Destroy { entity },
        |entity| Request::DestroyCell { entity },
    ] {
        let (mut world, killer, victim) = pair(401);
        have(&mut world, killer, move |context| {
            context.request(request(victim)).expect("it is a ghost here");
        });
        world.run(500);
        assert_eq!(world.holders(victim), [], "the real entity has ended");
        let home = world.home.owner.as_ref().expect("it is up").role();
        assert_eq!(home.lost, [victim], "its home was notified");
        world.run(3_000);
        assert_eq!(world.holders(killer), [WEST]);
        assert_eq!(ends(&world), [(victim, 1)].into());
        check(&world);
    }
}

#[test]
fn a_destroy_of_an_entity_that_is_real_here_ends_it_in_the_same_input() {
    let mut world = World::new(402);
    let (killer, victim) = (world.spawn(AVATAR, -5.0, None), world.spawn(AVATAR, -9.0, None));
    world.run(1_000);
    have(&mut world, killer, move |context| {
        destroy(context, victim).expect("it is real here");
        destroy(context, victim).expect("it is real here still");
    });
    assert_eq!(world.holders(victim), []);
    world.run(2_000);
    assert_eq!(ends(&world), [(victim, 1)].into());
    assert!(world.game.lost.lock().expect("nobody panics").is_empty());
    check(&world);
}

/// A mine explodes: ending itself first does not cancel what it requested.
#[test]
fn a_destroy_of_a_ghost_survives_its_sender() {
    let (mut world, mine, victim) = pair(403);
    world.cut_off = Some(MIDDLE);
    have(&mut world, mine, move |context| {
        let own = context.entity();
        destroy(context, own).expect("it is real here");
        destroy(context, victim).expect("it is a ghost here");
    });
    world.run(100);
    assert_eq!(world.holders(mine), []);
    world.crash(WEST);
    world.run(500);
    world.start(WEST);
    world.cut_off = None;
    world.run(10_000);
    assert_eq!(world.holders(victim), []);
    assert_eq!(ends(&world), [(mine, 1), (victim, 1)].into());
    check_logs(&world);
    let state = world.live(WEST).state();
    assert!(state.estates.is_empty(), "all was confirmed: {:?}", state.estates);
}

/// Calls that were made before are handled before, even if the receiver has come here meanwhile.
#[test]
fn a_destroy_does_not_overtake_the_calls_before_it() {
    let (mut world, killer, victim) = pair(404);
    world.cut_off = Some(MIDDLE);
    have(&mut world, killer, move |context| {
        let strength = vec![Value::UInt(0)];
        context
            .call(mailbox(victim, Part::Cell), "act", strength)
            .expect("it has this method");
    });
    world.cut_off = None;
    // It comes here while the call is on its way.
    world.call(victim, JUMP, vec![Value::Float32(-20.0)]);
    for _ in 0..200 {
        if world.holders(victim) == [WEST] {
            break;
        }
        world.run(10);
    }
    have(&mut world, killer, move |context| {
        destroy(context, victim).expect("it is real here");
    });
    world.run(10_000);
    assert_eq!(world.holders(victim), []);
    let events = world.cells.values().flat_map(crate::process::Process::events);
    let acted = events.filter(|event| {
        let own = event.subject == Subject::Entity(victim, Part::Cell);
        own && matches!(event.body, Body::Changed { .. })
    });
    assert_eq!(acted.count(), 1, "the call was taken, once");
    assert!(world.game.lost.lock().expect("nobody panics").is_empty());
    check(&world);
}

#[test]
fn a_destroy_of_an_ended_entity_is_reported_as_a_lost_call() {
    let (mut world, killer, victim) = pair(405);
    world.send_to_home(HomeInput::DestroyCell(victim));
    world.run(50);
    assert_eq!(world.holders(victim), []);
    assert!(world.role(WEST).ghosts().get(victim).is_some(), "its ghost lingers");
    have(&mut world, killer, move |context| {
        destroy(context, victim).expect("it is a ghost here still");
    });
    world.run(10_000);
    let lost = world.game.lost.lock().expect("nobody panics").clone();
    assert_eq!(lost, [(killer, Address::Cell(victim))]);
    assert_eq!(ends(&world), [(victim, 1)].into());
    check(&world);
}

/// Requests that name another entity than the one that asks, and cannot be forwarded.
#[test]
fn requests_that_are_not_forwarded_are_denied_at_once() {
    let (mut world, one, ghost) = pair(406);
    have(&mut world, one, move |context| {
        let elsewhere = |entity, what| Err(Denied::Elsewhere { entity, what });
        let stand = place(0.0, 0.0);
        assert_eq!(destroy(context, NOBODY), elsewhere(NOBODY, "end"));
        let request = Request::DestroyCell { entity: NOBODY };
        assert_eq!(context.request(request), elsewhere(NOBODY, "end its cell part"));
        for entity in [ghost, NOBODY] {
            let request = Request::Teleport { entity, place: stand };
            assert_eq!(context.request(request), elsewhere(entity, "teleport"));
            let request = Request::OpenSpace { entity, place: stand };
            assert_eq!(context.request(request), elsewhere(entity, "open a space"));
            let denied = context.request(Request::Store { entity });
            assert_eq!(denied, elsewhere(entity, "store itself from its cell part"));
        }
        let for_bases = [
            Request::CreateCell {
                entity: ghost,
                place: stand,
                properties: Vec::new(),
            },
            Request::GiveClient {
                from: context.entity(),
                to: mailbox(ghost, Part::Base),
            },
            Request::CloseClient {
                entity: ghost,
                reason: annals_wire::client::CloseReason::Ended,
            },
        ];
        for request in for_bases {
            let denied = context.request(request.clone());
            assert!(
                matches!(denied, Err(Denied::BaseOnly { .. })),
                "{request:?}: {denied:?}"
            );
        }
        let own = context.mailbox(Part::Cell);
        assert!(
            context
                .teleport_near(mailbox(ghost, Part::Base), Position::default())
                .is_err()
        );
        let strange = Mailbox {
            type_id: crate::game::ACCOUNT,
            ..own
        };
        assert!(context.call(strange, "act", vec![Value::UInt(1)]).is_err());
        let gait = Gait::at(3.0);
        let unknown = Err(Denied::UnknownHere { entity: NOBODY });
        assert_eq!(context.move_to_entity(NOBODY, 1.0, gait, 1), unknown);
        assert_eq!(context.board(NOBODY, Seat::default(), 1), unknown);
        assert!(context.look_at(NOBODY).is_none());
        assert_eq!(context.controllers().count(), 0);
    });
    world.run(1_000);
    assert_eq!(world.holders(ghost), [MIDDLE]);
    assert!(ends(&world).is_empty());
    check(&world);
}

/// A request that names another entity and concerns only the one that asks is done here, wherever the other one is
/// real.
#[test]
fn local_requests_accept_ghosts_and_real_entities() {
    let (mut world, one, ghost) = pair(407);
    have(&mut world, one, move |context| {
        context.add_to_manual_aoi(ghost).expect("it is another entity");
        context.add_to_manual_aoi(NOBODY).expect("it may be known one day");
        context.board(ghost, Seat::default(), KILL).expect("it is a ghost here");
        let seen = context.look_at(ghost).expect("it is a ghost here");
        assert_eq!(seen.place.position.x.to_bits(), 5.0f32.to_bits());
        assert_eq!(context.entities_in_range(20.0, None), Ok(vec![ghost]));
    });
    world.run(3_000);
    assert_eq!(world.reals()[&one], (WEST, place(5.0, 0.0)), "it sits on the ghost");
    have(&mut world, one, move |context| {
        context.alight();
        context
            .move_to_entity(ghost, 2.0, Gait::at(3.0), KILL)
            .expect("it is a ghost here");
        context
            .teleport_near(mailbox(ghost, Part::Cell), Position::default())
            .expect("it is a cell part");
    });
    world.run(3_000);
    let outcomes = world.game.teleports.lock().expect("nobody panics").clone();
    assert_eq!(outcomes.len(), 1, "{outcomes:?}");
    assert!(matches!(outcomes[0], (who, Ok(_)) if who == one), "{outcomes:?}");
}

#[test]
fn late_failures_are_reported() {
    let (mut world, one, _) = pair(408);
    let nowhere = SpaceId(99);
    have(&mut world, one, move |context| {
        let mut place = at(nowhere, 1.0);
        context.open_space(place).expect("it can be asked");
        context.teleport(place).expect("it can be asked");
        let entity = context.entity();
        destroy(context, entity).expect("it is real here");
        context
            .request(Request::Teleport { entity, place })
            .expect("it is real here");
        place.position.x = f32::NAN;
        assert_eq!(context.open_space(place), Err(Denied::Place));
    });
    world.run(500);
    let denied = world.game.requests_denied.lock().expect("nobody panics").clone();
    assert_eq!(
        denied,
        [(one, Denied::NoSpace(nowhere))],
        "an ended entity receives nothing"
    );
    let outcomes = world.game.teleports.lock().expect("nobody panics").clone();
    assert_eq!(outcomes, [(one, Err(TeleportFailed::NoSpace(nowhere)))]);
    assert_eq!(world.holders(one), []);
}

/// A game's "kill on enter" at cell borders: every entity that a trap reported ends, once, whether it was real or a
/// ghost, leaving or teleported, and whichever process dies.
#[test]
fn an_entity_in_a_deadly_trap_ends_once() {
    let (mut killed, mut forwarded) = (0, 0);
    for seed in 0..8 {
        println!("seed {seed}");
        let mut world = world(seed);
        let killers = [-4.0, 57.0].map(|x| world.spawn(STATUE, x, None));
        world.run(500);
        for killer in killers {
            have(&mut world, killer, |context| {
                context.add_proximity(9.0, KILL).expect("it can watch");
            });
        }
        world.faults = ROUGH;
        let mut victims: Vec<EntityId> = Vec::new();
        let mut down: BTreeMap<OwnerId, u64> = BTreeMap::new();
        for step in 0..120 {
            wander(&mut world, &killers, &mut victims, (step, &mut down));
            world.run(100);
        }
        for owner in down.into_keys() {
            start(&mut world, owner);
        }
        world.faults = CALM;
        world.run(22_000);
        check_logs(&world);
        check_ghosts(&world);
        let (caught, calls) = caught(&world);
        let ends = ends(&world);
        for who in &caught {
            assert_eq!(
                world.holders(*who),
                [],
                "seed {seed}: entity {who} was in a trap and has not ended"
            );
        }
        assert!(ends.values().all(|times| *times == 1), "seed {seed}: {ends:?}");
        assert!(
            ends.keys().all(|who| caught.contains(who)),
            "seed {seed}: no other entity ended"
        );
        killed += caught.len();
        forwarded += calls;
    }
    println!("{killed} were in traps, {forwarded} requests were forwarded");
    assert!(
        killed > 80 && forwarded > 20,
        "{killed} were in traps, {forwarded} requests were forwarded"
    );
}

/// Events of a tenth of a second: an entity comes, jumps or is teleported, or a process dies or restarts.
fn wander(
    world: &mut World,
    killers: &[EntityId; 2],
    victims: &mut Vec<EntityId>,
    (step, down): (u64, &mut BTreeMap<OwnerId, u64>),
) {
    if step % 4 == 0 && !down.contains_key(&HOME) {
        let x = world.roll(150) as f32 - 50.0;
        victims.push(world.spawn(AVATAR, x, None));
    }
    let whom = victims[usize::try_from(world.roll(victims.len() as u64)).expect("there are few")];
    match world.roll(12) {
        0..=6 => {
            let x = world.roll(140) as f32 - 40.0;
            world.call(whom, JUMP, vec![Value::Float32(x)]);
        }
        7 => {
            let there = at(ARENA, 20.0);
            put(world, whom, there);
        }
        8 => {
            let killer = killers[usize::try_from(world.roll(2)).expect("it is small")];
            let x = [-12.0, 4.0, 52.0, 68.0][usize::try_from(world.roll(4)).expect("it is small")];
            world.call(killer, JUMP, vec![Value::Float32(x)]);
        }
        9 if world.roll(2) == 0 => {
            let victim = [WEST, MIDDLE, EAST, HOME][usize::try_from(world.roll(4)).expect("it is small")];
            world.crash(victim);
            down.insert(victim, step + 3 + world.roll(12));
        }
        _ => {}
    }
    let back: Vec<OwnerId> = down
        .iter()
        .filter(|(_, until)| **until <= step)
        .map(|(owner, _)| *owner)
        .collect();
    for owner in back {
        down.remove(&owner);
        start(world, owner);
    }
}

fn start(world: &mut World, owner: OwnerId) {
    if owner == HOME {
        world.start_home();
    } else {
        world.start(owner);
    }
}

/// The entities that were in a trap, according to the logs, and the number of requests forwarded for that.
fn caught(world: &World) -> (BTreeSet<EntityId>, usize) {
    let (mut caught, mut calls) = (BTreeSet::new(), 0);
    for event in world.cells.values().flat_map(crate::process::Process::events) {
        match event.body {
            Body::Controlled {
                what: ControllerEvent::Caught(who),
                ..
            } => drop(caught.insert(who)),
            Body::Called {
                call: Call::DestroyCell,
                ..
            } => calls += 1,
            _ => {}
        }
    }
    (caught, calls)
}
