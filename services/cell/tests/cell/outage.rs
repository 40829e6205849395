//! A long outage of the log with much to write: the cell stops when it holds as much as it may, and then goes on like a
//! process that was frozen.

use std::sync::atomic::Ordering;

use annals_def::Value;
use annals_event::Link;
use annals_ids::{Address, CallNumber, EntityId, Epoch, OwnerId};
use annals_node::{
    Input, OwnerError,
    journal::{GATHERING_LIMIT, INPUT_LIMIT},
};
use annals_wire::bus::{Envelope, Message};

use crate::{
    game::{ACT, AVATAR, CIRCLE, EONS, NOTE},
    oracle::check,
    world::{EAST, MIDDLE, WEST, World},
};

/// Length of the outage, in tenths of a second.
const OUTAGE: u64 = 600;

/// Maximum time until everything has been resent, milliseconds: pauses between two attempts go up to 8 s.
const CALMING: u64 = 22_000;

/// Avatars on the west cell, the first of them with a client, whose timers write. Their batches are not archived.
fn busy(count: u8, texts: u64, length: u64) -> (World, Vec<EntityId>) {
    let mut world = World::new(1);
    let avatars: Vec<EntityId> = (0..count)
        .map(|nth| world.spawn(AVATAR, -100.0 + f32::from(nth), (nth == 0).then_some(1)))
        .collect();
    world.run(2_000);
    world.game.texts.store(texts, Ordering::Relaxed);
    world.game.length.store(length, Ordering::Relaxed);
    (world, avatars)
}

fn calm(world: &mut World) {
    world.run(CALMING);
    world.game.texts.store(0, Ordering::Relaxed);
    world.set_lively(false);
    world.run(5_000);
}

fn set_away(world: &mut World, id: OwnerId, away: bool) {
    world.cells.get_mut(&id).expect("there is such a cell").away = away;
}

fn motto(world: &World, entity: EntityId) -> Value {
    world.real(entity).properties[&annals_ids::MemberId(6)].clone()
}

#[test]
fn a_cell_bounds_its_batch_during_a_log_outage_and_resumes() {
    let (mut world, avatars) = busy(20, 1, 5_000);
    world.set_lively(true);
    world.run(500);
    set_away(&mut world, WEST, true);
    let mut stood_still = 0;
    let mut woken = 0;
    for step in 0..OUTAGE {
        world.call(
            avatars[usize::try_from(step).expect("few") % avatars.len()],
            NOTE,
            Vec::new(),
        );
        let before = world.cells[&WEST].woken;
        let full = world.live(WEST).is_full();
        world.run(100);
        let (west, cx) = (world.live(WEST), world.cx(WEST));
        assert!(
            west.gathered() <= GATHERING_LIMIT + INPUT_LIMIT,
            "{} bytes after {step} tenths of a second",
            west.gathered()
        );
        assert!(cx.waiting() < 20_000, "{} outputs wait", cx.waiting());
        if full && west.is_full() {
            stood_still += 1;
            woken += world.cells[&WEST].woken - before;
        }
    }
    assert!(
        stood_still > OUTAGE / 2,
        "it was blocked for {stood_still} tenths of a second"
    );
    assert!(woken < stood_still, "it was woken {woken} times while it was blocked");
    let then: Vec<Value> = avatars.iter().map(|entity| motto(&world, *entity)).collect();
    set_away(&mut world, WEST, false);
    world.run(CALMING);
    for (entity, then) in avatars.iter().zip(&then) {
        assert_ne!(&motto(&world, *entity), then, "the timers of {entity} fire again");
    }
    calm(&mut world);
    check(&world);
    let notes: usize = avatars.iter().map(|entity| note_count(&world, *entity)).sum();
    assert_eq!(notes as u64, OUTAGE, "every call took effect, once");
}

fn note_count(world: &World, entity: EntityId) -> usize {
    match &world.real(entity).properties[&annals_ids::MemberId(5)] {
        Value::Sequence(notes) => notes.len(),
        other => panic!("{other:?} is no sequence"),
    }
}

#[test]
fn an_input_above_the_batch_limit_is_denied() {
    let (mut world, avatars) = busy(2, 12, 1 << 20);
    world.run(400);
    calm(&mut world);
    let denied = world.game.denied.load(Ordering::Relaxed);
    assert!(denied > 0, "12 texts of a mebibyte are too much for one input");
    let cell = world.cells.get_mut(&WEST).expect("there is such a cell");
    let owner = cell.owner.as_mut().expect("it is up");
    assert_eq!(owner.troubles(), denied, "what is reported is counted");
    let trouble = owner.poll_trouble().expect("and can be read").to_string();
    assert!(trouble.contains("Avatar"), "{trouble}");
    for entity in avatars {
        assert!(matches!(motto(&world, entity), Value::Unicode(text) if text.len() == 1 << 20));
    }
    check(&world);
}

#[test]
fn recursive_calls_are_cut_and_reported() {
    let (mut world, avatars) = busy(1, 0, 0);
    world.call(avatars[0], ACT, vec![Value::UInt(CIRCLE)]);
    world.run(1_000);
    let cell = world.cells.get_mut(&WEST).expect("there is such a cell");
    let owner = cell.owner.as_mut().expect("it is up");
    let trouble = owner.poll_trouble().expect("it is reported");
    assert!(
        matches!(
            trouble,
            OwnerError::Cut {
                calls: 1,
                requests: 0,
                ..
            }
        ),
        "{trouble}"
    );
    assert_eq!((owner.poll_trouble(), owner.troubles()), (None, 1));
    world.call(avatars[0], NOTE, Vec::new());
    world.run(1_000);
    assert_eq!(note_count(&world, avatars[0]), 1);
}

#[test]
fn false_call_confirmations_are_harmless() {
    let (mut world, avatars) = busy(2, 0, 0);
    let far = world.spawn(AVATAR, 100.0, None);
    world.run(1_000);
    world.cut_off = Some(EAST);
    world.game.pestered.store(far.0, Ordering::Relaxed);
    world.run(1_000);
    let link = Link {
        from: Address::Cell(avatars[0]),
        to: Address::Cell(far),
    };
    let links = world.cx(WEST).state().links(link.from).expect("it calls");
    assert!(!links.sent[&link.to].unconfirmed.is_empty(), "calls are in flight");
    let (now, have) = (world.at(), CallNumber(u64::MAX));
    let gap = Envelope {
        from: EAST,
        epoch: Epoch(1),
        message: Message::Gap { link, have },
    };
    let cell = world.cells.get_mut(&WEST).expect("there is such a cell");
    cell.handle(now, Input::Bus(gap), 500);
    world.game.pestered.store(0, Ordering::Relaxed);
    world.cut_off = None;
    calm(&mut world);
    assert_eq!(
        note_count(&world, far) as u64,
        world.game.last.load(Ordering::Relaxed),
        "every call was made all the same"
    );
}

#[test]
fn a_timer_without_interval_fires_once() {
    let (mut world, avatars) = busy(1, 0, 0);
    world.call(avatars[0], ACT, vec![Value::UInt(EONS)]);
    world.run(1_000);
    let last = world.real(avatars[0]).timers.values().map(|at| at.due.0).max();
    assert_eq!(last, Some(u64::MAX));
    calm(&mut world);
    check(&world);
}

#[test]
fn entities_too_large_to_share_a_batch_are_handed_over_one_after_the_other() {
    let (mut world, avatars) = busy(6, 1, 1_000_000);
    world.run(200);
    world.game.texts.store(0, Ordering::Relaxed);
    world.run(2_000);
    let crossing = &avatars[1..];
    for entity in crossing {
        world.call(*entity, crate::game::JUMP, vec![Value::Float32(100.0)]);
    }
    world.run(CALMING);
    for entity in crossing {
        assert_eq!(world.holders(*entity), [EAST], "entity {entity}");
    }
    assert_eq!(world.holders(avatars[0]), [WEST]);
    assert!(world.reals().values().all(|(holder, _)| *holder != MIDDLE));
    check(&world);
}
