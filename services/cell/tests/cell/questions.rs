//! Spatial queries of behaviour, compared with an exhaustive search.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use annals_def::Value;
use annals_event::Place;
use annals_ids::{EntityId, Part, Position};
use annals_node::{Context, Denied, Shape};

use crate::{
    game::{AVATAR, NOTE, SIGN},
    home::HomeInput,
    world::{EAST, MIDDLE, SPACE, WEST, World, have, place},
};

/// A query and its result.
type Asked = (Shape, Vec<EntityId>);

/// All entities known to the owner of an entity, with their places; empty while the entity is leaving.
fn known(world: &World, entity: EntityId) -> BTreeMap<EntityId, Place> {
    let Some(&id) = world.holders(entity).first() else {
        return BTreeMap::new();
    };
    let ghosts = world.role(id).ghosts().iter();
    let ghosts = ghosts.map(|(entity, ghost)| (entity, ghost.place()));
    ghosts.chain(world.cx(id).places()).collect()
}

fn brute(known: &BTreeMap<EntityId, Place>, own: EntityId, shape: &Shape) -> Vec<EntityId> {
    let others = known.iter().filter(|(entity, _)| **entity != own);
    let is_in = |place: &Place| {
        let at = place.position;
        let near = |centre: &Position| {
            (
                (at.x - centre.x).abs(),
                (at.y - centre.y).abs(),
                (at.z - centre.z).abs(),
            )
        };
        place.space == SPACE
            && match shape {
                Shape::Square { centre, metres } => {
                    let (x, _, z) = near(centre);
                    x.max(z) <= *metres
                }
                Shape::Ball { centre, metres } => {
                    let (x, y, z) = near(centre);
                    x * x + y * y + z * z <= metres * metres
                }
                Shape::Cuboid { least, most } => [
                    (least.x, at.x, most.x),
                    (least.y, at.y, most.y),
                    (least.z, at.z, most.z),
                ]
                .iter()
                .all(|(least, at, most)| (*least..=*most).contains(at)),
            }
    };
    others
        .filter(|(_, place)| is_in(place))
        .map(|(entity, _)| *entity)
        .collect()
}

/// A number of metres, in steps of a quarter, so that edges are hit exactly.
fn metres(context: &mut Context<'_>, span: u16) -> f32 {
    let quarters = context.roll() % (u64::from(span) * 8 + 1);
    f32::from(u16::try_from(quarters).expect("it is small")) / 4.0 - f32::from(span)
}

/// A random part of the space, around the entity that asks.
fn some_shape(context: &mut Context<'_>) -> Shape {
    let own = context.place().expect("it is somewhere").position;
    let mut corner = || Position {
        x: own.x + metres(context, 30),
        y: metres(context, 3),
        z: own.z + metres(context, 30),
    };
    let (least, most) = (corner(), corner());
    let far = metres(context, 22).abs();
    match context.roll() % 3 {
        0 => Shape::Square {
            centre: least,
            metres: far,
        },
        1 => Shape::Ball {
            centre: least,
            metres: far,
        },
        _ => Shape::Cuboid { least, most },
    }
}

/// Players, some with clients, and creatures on all three cells.
fn crowd(seed: u64) -> (World, Vec<EntityId>) {
    let mut world = World::new(seed);
    let mut players = Vec::new();
    for nth in 0..9u8 {
        let x = f32::from(nth) * 15.0 - 40.0;
        players.push(world.spawn(AVATAR, x, Some(u64::from(nth) + 1)));
        world.spawn(SIGN, x + 4.0, None);
        world.spawn_creature(x - 3.0);
    }
    world.set_lively(true);
    world.run(4_000);
    world.set_lively(false);
    (world, players)
}

#[test]
fn queries_find_exactly_the_present_entities() {
    let (mut held, mut hits, mut ghosts) = (0, 0, 0);
    for seed in 0..12 {
        let (mut world, players) = crowd(seed);
        for _ in 0..60 {
            // Mostly between two ticks: clients move, and an entity queries, moves, and queries again.
            for _ in 0..world.roll(4) {
                let session = world.roll(9) + 1;
                let (x, z) = (world.roll(140), world.roll(40));
                let at = |metres: u64| f32::from(u8::try_from(metres).expect("it is small"));
                world.walk(session, at(x) - 40.0, at(z) - 20.0);
            }
            let pause = world.roll(12);
            world.run(3 + pause);
            let own = players[usize::try_from(world.roll(9)).expect("there are few")];
            let before = known(&world, own);
            let asked: Arc<Mutex<Vec<Asked>>> = Arc::default();
            let answers = Arc::clone(&asked);
            have(&mut world, own, move |context| {
                for _ in 0..4 {
                    let shape = some_shape(context);
                    match context.entities_in(shape, None) {
                        Ok(found) => answers.lock().expect("the lock is not poisoned").push((shape, found)),
                        // The entity may have gone far from where its cell knows others.
                        Err(denied) => assert_eq!(denied, Denied::Beyond { known: 50.0 }),
                    }
                    let mut place = context.place().expect("it is somewhere");
                    place.position.z += 0.25;
                    context.move_to(place).expect("it is a place");
                }
            });
            let after = known(&world, own);
            let others = |known: &BTreeMap<EntityId, Place>| {
                let mut others = known.clone();
                others.remove(&own);
                others
            };
            // An entity that moved while the call was under way may be found at either place.
            let holders = world.holders(own);
            let Some(holder) = holders.first().filter(|_| others(&before) == others(&after)) else {
                continue;
            };
            for (shape, found) in asked.lock().expect("the lock is not poisoned").drain(..) {
                assert_eq!(found, brute(&after, own, &shape), "seed {seed}: {shape:?}");
                held += 1;
                hits += found.len();
                let is_ghost = |entity: &&EntityId| world.cx(*holder).image(**entity).is_none();
                ghosts += found.iter().filter(is_ghost).count();
            }
        }
    }
    assert!(
        held > 1_000 && hits > 1_000 && ghosts > 200,
        "{held} asked, {hits} found, {ghosts} ghosts among them"
    );
}

#[test]
fn queries_beyond_the_known_range_are_denied() {
    let mut world = World::new(40);
    let own = world.spawn(AVATAR, 30.0, Some(1));
    world.run(500);
    have(&mut world, own, |context| {
        let around = |x: f32, metres| Shape::Square {
            centre: place(x, 0.0).position,
            metres,
        };
        // Its cell has 0 to 60, and knows entities up to 50 m outside.
        for (x, metres, is_known) in [
            (30.0, 80.0, true),
            (30.0, 80.5, false),
            (-49.0, 1.0, true),
            (-49.0, 1.25, false),
        ] {
            let answer = context.entities_in(around(x, metres), None);
            let denied = Err(Denied::Beyond { known: 50.0 });
            assert_eq!(
                answer,
                if is_known { Ok(Vec::new()) } else { denied },
                "{metres} m around {x}"
            );
        }
        for wrong in [f32::NAN, -1.0, f32::INFINITY] {
            assert_eq!(context.entities_in(around(0.0, wrong), None), Err(Denied::Distance));
        }
        assert!(matches!(
            context.entities_in_range(1.0, Some("Dragon")),
            Err(Denied::Unknown { .. })
        ));
        let never = Shape::Cuboid {
            least: place(9_999.0, 0.0).position,
            most: place(-9_999.0, 0.0).position,
        };
        assert_eq!(context.entities_in(never, None), Ok(Vec::new()), "nothing is in it");
    });
}

#[test]
fn an_owner_answers_for_the_union_of_its_areas() {
    let mut world = World::new(41);
    let own = world.spawn(AVATAR, -30.0, Some(1));
    let mut map = world.map.clone();
    map.version += 1;
    let cells = &mut map.spaces.get_mut(&SPACE).expect("it is there").cells;
    for area in cells.iter_mut().filter(|area| area.owner == MIDDLE) {
        area.owner = WEST;
    }
    for id in [WEST, MIDDLE, EAST] {
        world.send_to_cell(id, annals_cell::CellInput::Map(map.clone()));
    }
    world.map = map;
    world.run(500);
    have(&mut world, own, |context| {
        let upto = |x: f32| Shape::Cuboid {
            least: place(-500.0, -500.0).position,
            most: place(x, 500.0).position,
        };
        assert_eq!(context.entities_in(upto(110.0), None), Ok(Vec::new()));
        assert_eq!(
            context.entities_in(upto(110.5), None),
            Err(Denied::Beyond { known: 50.0 })
        );
    });
}

#[test]
fn ghosted_properties_are_readable_on_ghosts_and_real_entities() {
    let mut world = World::new(42);
    let own = world.spawn(AVATAR, -5.0, Some(1));
    let (real, ghost) = (world.spawn(AVATAR, -9.0, None), world.spawn(AVATAR, 9.0, None));
    let sign = world.spawn(SIGN, 12.0, None);
    world.run(500);
    for other in [real, ghost] {
        have(&mut world, other, |context| {
            context.set("mood", Value::Int(7)).expect("it fits");
            context.set("secret", Value::Int(8)).expect("it fits");
        });
    }
    world.run(1_000);
    assert_eq!((world.holders(real), world.holders(ghost)), (vec![WEST], vec![MIDDLE]));
    have(&mut world, own, move |context| {
        assert_eq!(context.entities_in_range(40.0, None), Ok(vec![real, ghost, sign]));
        assert_eq!(context.entities_in_range(40.0, Some("Sign")), Ok(vec![sign]));
        assert_eq!(context.entities_in_range(14.0, Some("Avatar")), Ok(vec![real, ghost]));
        assert_eq!(context.entities_in_range(13.75, Some("Avatar")), Ok(vec![real]));
        for (other, x) in [(real, -9.0), (ghost, 9.0)] {
            let seen = context.look_at(other).expect("it is known");
            assert_eq!(seen.get("mood"), Some(&Value::Int(7)));
            assert_eq!(seen.get("secret"), None, "only its own client has it");
            assert_eq!(seen.place.position, place(x, 0.0).position);
            let to = seen.mailbox(Part::Cell);
            context
                .call(to, "act", vec![Value::UInt(3)])
                .expect("it has this method");
        }
        assert!(context.look_at(EntityId(12_345)).is_none());
    });
    world.run(1_000);
    let moods =
        |world: &World| [real, ghost].map(|other| world.real(other).properties[&annals_ids::MemberId(3)].clone());
    assert!(
        moods(&world).iter().all(|mood| *mood != Value::Int(7)),
        "both were called"
    );
    // One of the requested entities has gone away, the other never existed.
    world.send_to_home(HomeInput::Call(ghost, crate::game::DIE, Vec::new()));
    world.call(real, NOTE, vec![Value::Int(1)]);
    world.run(1_500);
    have(&mut world, own, move |context| {
        assert_eq!(context.entities_in_range(40.0, None), Ok(vec![real, sign]));
        assert!(context.look_at(ghost).is_none());
    });
}
