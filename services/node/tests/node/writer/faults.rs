//! Generated fault schedules: for any faults of the bus, the log, the store and the processes within the fault budget,
//! the log stays one intact chain that contains everything shown.

use annals_ids::Hash;
use annals_node::writer::Stop;
use proptest::prelude::*;

use crate::writer::world::World;

/// Schedules per run: a few seconds of them. With any one rule removed, a violation occurred within 4,000.
const CASES: u32 = 1_000;

#[derive(Clone, Copy, Debug)]
enum Step {
    Turn(usize),
    /// A period without faults: a number of turns, at a fixed interval in milliseconds.
    Serve {
        who: usize,
        turns: usize,
        pause: u64,
    },
    Carry(usize),
    Answer(usize),
    Silence(usize),
    Reconnect(usize),
    Stray(usize),
    Wait(u64),
    TakeOver,
    Retake,
    LoseTail {
        count: usize,
        rewind: bool,
    },
    Read,
    Fold,
    Announce(usize),
}

/// Steps of the newest processes are more likely than those of long replaced ones; `who` counts back from the newest.
fn step() -> impl Strategy<Value = Step> {
    let who = || prop_oneof![6 => Just(0usize), 3 => Just(1usize), 1 => Just(2usize)];
    prop_oneof![
        8 => (who(), 1..8usize, prop_oneof![Just(5u64), Just(600)])
            .prop_map(|(who, turns, pause)| Step::Serve { who, turns, pause }),
        12 => who().prop_map(Step::Turn),
        4 => who().prop_map(Step::Carry),
        12 => who().prop_map(Step::Answer),
        4 => who().prop_map(Step::Silence),
        1 => who().prop_map(Step::Reconnect),
        2 => (0..4usize).prop_map(Step::Stray),
        6 => prop_oneof![Just(5u64), Just(50), Just(400), Just(900), Just(1_600)].prop_map(Step::Wait),
        2 => Just(Step::TakeOver),
        2 => Just(Step::Retake),
        2 => (1..4usize, any::<bool>()).prop_map(|(count, rewind)| Step::LoseTail { count, rewind }),
        2 => Just(Step::Read),
        3 => Just(Step::Fold),
        2 => who().prop_map(Step::Announce),
    ]
}

fn take(world: &mut World, step: Step) {
    let newest = world.processes.len() - 1;
    let who = |back: usize| newest.saturating_sub(back);
    match step {
        Step::Turn(back) => world.turn(who(back)),
        Step::Serve {
            who: back,
            turns,
            pause,
        } => {
            for _ in 0..turns {
                world.turn(who(back));
                world.answer(who(back));
                world.wait(pause);
            }
        }
        Step::Carry(back) => world.carry(who(back)),
        Step::Answer(back) => world.answer(who(back)),
        Step::Silence(back) => world.silence(who(back)),
        Step::Reconnect(back) => world.reconnect(who(back)),
        Step::Stray(which) => world.stray(which),
        Step::Wait(milliseconds) => world.wait(milliseconds),
        Step::TakeOver => world.take_over(),
        Step::Retake => world.retake(),
        Step::LoseTail { count, rewind } => world.lose_tail(count, rewind),
        Step::Read => world.read_log(),
        Step::Fold => {
            world.fold();
        }
        Step::Announce(back) => world.announce(who(back)),
    }
}

/// No schedule within the budget raises an alarm, and only a replaced writer stops with `Replaced`.
fn check_stops(world: &World) {
    let newest = world.processes.len() - 1;
    for (who, process) in world.processes.iter().enumerate() {
        match process.writer.stopped() {
            None | Some(Stop::ReadAgain { .. }) => {}
            Some(Stop::Replaced { .. }) => assert!(who < newest, "the holder of the newest epoch was not replaced"),
            Some(alarm @ Stop::Contradicted { .. }) => panic!("{alarm}"),
        }
    }
}

/// After the faults end, the archive is the newest writer's chain: dense, intact, and containing everything that was
/// ever shown.
fn check_archive(world: &mut World) {
    let mut previous = Hash::ZERO;
    for (index, batch) in world.store.archive.iter().enumerate() {
        assert_eq!(batch.number.0, index as u64 + 1, "numbers are dense");
        assert_eq!(batch.previous, previous, "batch {} names the one before", batch.number);
        previous = batch.hash;
    }
    let tip = world.newest().writer.tip();
    assert_eq!(world.store.cursor(), tip, "the archive reaches the end of the chain");
    for shown in &world.shown {
        let archived = &world.store.archive[usize::try_from(shown.number.0).expect("few batches") - 1];
        assert_eq!(
            archived.hash, shown.hash,
            "batch {} was shown, and another was archived",
            shown.number
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(CASES))]

    #[test]
    fn shown_batches_are_never_lost(steps in proptest::collection::vec(step(), 1..60)) {
        let mut world = World::default();
        world.take_over();
        for step in steps {
            take(&mut world, step);
            check_stops(&world);
        }
        world.calm();
        check_stops(&world);
        check_archive(&mut world);
    }
}

#[test]
fn an_append_before_an_opening_at_a_reused_sequence_is_found() {
    // The second process to take over has read up to the `Open` of the first, which is void. The log loses that `Open`
    // and the batch before; the holder, still fresh, appends that batch and another, and shows it. So the second `Open`
    // follows the sequence that its writer has read, and not the batch.
    let steps = [
        Step::Serve {
            who: 0,
            turns: 4,
            pause: 5,
        },
        Step::TakeOver,
        Step::Serve {
            who: 0,
            turns: 1,
            pause: 5,
        },
        Step::TakeOver,
        Step::LoseTail { count: 2, rewind: true },
        Step::Serve {
            who: 2,
            turns: 4,
            pause: 5,
        },
    ];
    let mut world = World::default();
    world.take_over();
    for step in steps {
        take(&mut world, step);
        check_stops(&world);
    }
    assert_eq!(world.shown.len(), 3, "the holder has shown another batch");
    world.calm();
    check_stops(&world);
    check_archive(&mut world);
}
