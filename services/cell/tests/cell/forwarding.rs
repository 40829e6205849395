//! Calls that behaviour makes to entities that are ghosts on its cell, or unknown. While those cross and are
//! teleported, into other spaces too, and owners die, each call takes effect once, in the order of its sender.

use std::collections::BTreeMap;

use annals_def::Value;
use annals_ids::{EntityId, Mailbox, MemberId, OwnerId, Part};

use crate::{
    game::{ACT, AVATAR, JUMP, POST},
    oracle::{check_ghosts, check_logs, check_view},
    teleport::{ARENA, HALL, at, put, world},
    world::{CALM, EAST, HOME, MIDDLE, ROUGH, SPACE, WEST, World},
};

/// Seeds that are tried.
const SEEDS: std::ops::Range<u64> = 0..8;

/// Length of the phase with faults, in steps of a tenth of a second.
const STEPS: u64 = 150;

/// Maximum time until everything has been resent, milliseconds: pauses between two attempts go up to 8 s.
const CALMING: u64 = 22_000;

/// The properties in which senders count the calls to each receiver.
const COUNTS: [MemberId; 2] = [MemberId(0), MemberId(1)];
/// The property in which receivers record the calls.
const NOTES: MemberId = MemberId(5);

fn mailbox(entity: EntityId) -> Mailbox {
    Mailbox {
        entity,
        home: HOME,
        type_id: AVATAR,
        part: Part::Cell,
    }
}

/// Events of one tenth of a second.
fn step(world: &mut World, all: &[EntityId], down: &mut BTreeMap<OwnerId, u64>, step: u64) {
    for entity in &all[..4] {
        let to = world.roll(2);
        world.call(*entity, ACT, vec![Value::UInt(POST + to)]);
    }
    let whom = usize::try_from(world.roll(all.len() as u64)).expect("there are few");
    match world.roll(14) {
        0..=3 => {
            let x = f32::from(u8::try_from(world.roll(160)).expect("it is small")) - 50.0;
            world.call(all[whom], JUMP, vec![Value::Float32(x)]);
        }
        4 | 5 => {
            let roll = usize::try_from(world.roll(3)).expect("it is small");
            put(world, all[whom], at([SPACE, HALL, ARENA][roll], 20.0));
        }
        6 if world.roll(3) == 0 => {
            let roll = usize::try_from(world.roll(4)).expect("it is small");
            let victim = [WEST, MIDDLE, EAST, HOME][roll];
            world.crash(victim);
            let until = step + 3 + world.roll(15);
            down.insert(victim, until);
        }
        _ => {}
    }
    world.run(100);
    down.retain(|owner, until| {
        let stays = *until > step;
        if !stays {
            start(world, *owner);
        }
        stays
    });
}

fn start(world: &mut World, owner: OwnerId) {
    if owner == HOME {
        world.start_home();
    } else {
        world.start(owner);
    }
}

/// Each receiver received all calls of each sender, once, in order. Returns how many there were.
fn check_received(world: &World, senders: &[EntityId], receivers: &[EntityId]) -> usize {
    let mut sum = 0;
    for (receiver, count) in receivers.iter().zip(COUNTS) {
        let Value::Sequence(notes) = &world.real(*receiver).properties[&NOTES] else {
            panic!("it is a sequence");
        };
        sum += notes.len();
        for sender in senders {
            let of = |value: &Value| match value {
                Value::Int(number) if number / 1_000 == i64::try_from(sender.0 % 30).expect("small") => {
                    Some(number % 1_000)
                }
                _ => None,
            };
            let notes: Vec<i64> = notes.iter().filter_map(of).collect();
            let Value::Int(sent) = world.real(*sender).properties[&count] else {
                panic!("it is a number");
            };
            let all: Vec<i64> = (1..=sent).collect();
            assert_eq!(notes, all, "from {sender} to {receiver}");
        }
    }
    sum
}

#[test]
fn calls_on_ghosts_reach_the_real_entity_once_and_in_order() {
    let (mut received, mut crossed) = (0, 0);
    for seed in SEEDS {
        println!("seed {seed}");
        let mut world = world(seed);
        let all: Vec<EntityId> = (1..)
            .zip([-30.0, 5.0, 30.0, 70.0, -10.0, 55.0])
            .map(|(session, x)| world.spawn(AVATAR, x, (session > 4).then_some(session)))
            .collect();
        let (senders, receivers) = all.split_at(4);
        *world.game.receivers.lock().expect("the lock is not poisoned") =
            receivers.iter().copied().map(mailbox).collect();
        world.run(1_000);
        world.faults = ROUGH;
        let mut down = BTreeMap::new();
        for number in 0..STEPS {
            step(&mut world, &all, &mut down, number);
        }
        down.into_keys().for_each(|owner| start(&mut world, owner));
        world.faults = CALM;
        world.run(CALMING);
        received += check_received(&world, senders, receivers);
        check_logs(&world);
        check_ghosts(&world);
        world.clients.values().for_each(|client| check_view(&world, client));
        crossed += [WEST, MIDDLE, EAST]
            .map(|id| world.role(id).counters().onloaded)
            .iter()
            .sum::<u64>();
    }
    assert!(
        received > 2_000 && crossed > 50,
        "{received} calls were received, {crossed} hand-overs"
    );
}
