//! Calls between two cells when the log of one is cut at an accepted hole (rules C2 and C13): the batches behind the hole
//! are void, and the other cell still knows of the calls in them.

use std::sync::atomic::Ordering;

use annals_def::Value;
use annals_event::{Body, Link};
use annals_ids::{Address, CallNumber, EntityId, MemberId, OwnerId};

use crate::{
    game::AVATAR,
    world::{EAST, WEST, World},
};

/// A caller in the west whose timer calls an entity in the east.
struct Calls {
    world: World,
    caller: EntityId,
    receiver: EntityId,
}

impl Calls {
    fn new(seed: u64) -> Self {
        let mut world = World::new(seed);
        let caller = world.spawn(AVATAR, -100.0, None);
        let receiver = world.spawn(AVATAR, 100.0, None);
        world.run(2_000);
        Self {
            world,
            caller,
            receiver,
        }
    }

    /// Lets the timer call for a while. Returns the number of the last call's argument.
    fn call_for(&mut self, milliseconds: u64) -> i64 {
        self.world.game.pestered.store(self.receiver.0, Ordering::Relaxed);
        self.world.run(milliseconds);
        self.world.game.pestered.store(0, Ordering::Relaxed);
        i64::try_from(self.world.game.last.load(Ordering::Relaxed)).expect("few")
    }

    /// Cuts a cell's log behind this many batches, and starts the cell again.
    fn cut(&mut self, cell: OwnerId, length: usize, generation: u64) {
        self.world.crash(cell);
        self.world
            .cells
            .get_mut(&cell)
            .expect("there is such a cell")
            .cut(length, generation);
        self.world.start(cell);
    }

    fn length(&self, cell: OwnerId) -> usize {
        self.world.cells[&cell].length()
    }

    /// The arguments of the calls that took effect.
    fn notes(&self) -> Vec<i64> {
        match &self.world.real(self.receiver).properties[&MemberId(5)] {
            Value::Sequence(notes) => notes
                .iter()
                .map(|value| match value {
                    Value::Int(number) => *number,
                    other => panic!("{other:?} is no number"),
                })
                .collect(),
            other => panic!("{other:?} is no sequence"),
        }
    }

    fn last_call(&self) -> CallNumber {
        let link = Link {
            from: Address::Cell(self.caller),
            to: Address::Cell(self.receiver),
        };
        let links = self.world.cx(WEST).state().links(link.from).expect("it calls");
        assert!(links.sent[&link.to].unconfirmed.is_empty(), "every call is confirmed");
        links.sent[&link.to].last
    }

    /// Every call after `last` takes effect, once and in order.
    fn assert_continues_after(&mut self, last: i64) {
        let newest = self.call_for(2_000);
        self.world.run(12_000);
        let notes = self.notes();
        let later: Vec<i64> = notes.iter().copied().filter(|number| *number > last).collect();
        assert!(newest > last + 5, "the timer called {} times", newest - last);
        assert_eq!(later, ((last + 1)..=newest).collect::<Vec<_>>());
        self.last_call();
    }
}

/// What the receiver took in void batches is confirmed, so the sender does not have it any more.
#[test]
fn calls_continue_when_the_receivers_log_is_cut() {
    for seed in 0..10 {
        let mut calls = Calls::new(seed);
        calls.call_for(500);
        calls.world.run(1_000);
        let (before, kept) = (calls.length(EAST), calls.notes());
        let last = calls.call_for(1_000);
        calls.world.run(2_000);
        assert!(
            calls.notes().len() > kept.len(),
            "seed {seed}: calls are behind the cut"
        );
        calls.last_call();
        calls.cut(EAST, before, 1);
        calls.world.run(1_000);
        assert_eq!(calls.notes(), kept, "seed {seed}: they are void");
        calls.assert_continues_after(last);
        let events = calls.world.cells[&EAST].events();
        let skipped = events.iter().filter(
            |event| matches!(event.body, Body::CallsSkipped { from, .. } if from == Address::Cell(calls.caller)),
        );
        assert_eq!(skipped.count(), 1, "seed {seed}: the log says so once");
    }
}

/// What the sender made in void batches was taken, and its numbers must not be used again.
#[test]
fn calls_continue_when_the_senders_log_is_cut() {
    for seed in 0..10 {
        let mut calls = Calls::new(seed);
        calls.call_for(500);
        calls.world.run(1_000);
        let (before, used) = (calls.length(WEST), calls.last_call());
        let last = calls.call_for(1_000);
        calls.world.run(2_000);
        let highest = calls.last_call();
        assert!(highest > used, "seed {seed}: calls are behind the cut");
        calls.cut(WEST, before, 7);
        calls.world.run(1_000);
        calls.assert_continues_after(last);
        let newest = calls.last_call();
        assert_eq!((newest.generation(), highest.generation()), (7, 0), "seed {seed}");
        // A successor on the same log does not begin another generation.
        calls.world.crash(WEST);
        calls.world.start(WEST);
        calls.world.run(1_000);
        let last = i64::try_from(calls.world.game.last.load(Ordering::Relaxed)).expect("few");
        calls.assert_continues_after(last);
        assert_eq!(calls.last_call().generation(), 7, "seed {seed}");
    }
}

/// Both at once: one cell after the other loses the end of its log.
#[test]
fn calls_continue_when_both_logs_are_cut() {
    for seed in 0..10 {
        let mut calls = Calls::new(seed);
        let (west, east) = (calls.length(WEST), calls.length(EAST));
        calls.call_for(700);
        calls.world.run(2_000);
        calls.cut(EAST, east, 1);
        let last = calls.call_for(700);
        calls.cut(WEST, west, 2);
        calls.world.run(1_000);
        calls.assert_continues_after(last);
    }
}
