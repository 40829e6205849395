//! Everything at once: a faulty bus, processes that die, entities that cross, are called, are teleported and end,
//! clients that walk. Once it has calmed down, the oracle must find no violation.

use annals_def::Value;
use annals_ids::{EntityId, OwnerId};

use crate::{
    game::{ACT, ACTS, AVATAR, DIE, EDGE, JUMP, NOTE, STATUE},
    oracle::check,
    world::{CALM, EAST, HOME, MIDDLE, ROUGH, WEST, World},
};

/// Seeds that are tried. A failing one is printed; it alone repeats the failure.
const SEEDS: std::ops::Range<u64> = 0..8;

/// Length of the phase with faults, in steps of a tenth of a second.
const STEPS: u64 = 200;

/// Maximum time until everything has been resent, milliseconds: pauses between two attempts go up to 8 s.
const CALMING: u64 = 22_000;

struct Run {
    world: World,
    avatars: Vec<EntityId>,
    /// The position of each client's entity, as the client has it.
    walkers: Vec<(u64, f32, f32)>,
    /// Owners that are down, and until which step.
    down: Vec<(OwnerId, u64)>,
}

impl Run {
    fn new(seed: u64) -> Self {
        let mut world = World::new(seed);
        let mut avatars = Vec::new();
        let mut walkers = Vec::new();
        for (session, x) in (1..).zip([-50.0, -10.0, 20.0, 55.0, 90.0]) {
            let type_id = if session == 5 { STATUE } else { AVATAR };
            avatars.push(world.spawn(type_id, x, Some(session)));
            walkers.push((session, x, 0.0));
        }
        avatars.extend([-30.0, 30.0, 70.0].map(|x| world.spawn(AVATAR, x, None)));
        [-20.0, 10.0, 50.0, 65.0]
            .into_iter()
            .for_each(|x| world.spawn_creature(x));
        world.run(1_000);
        world.faults = ROUGH;
        world.set_lively(true);
        Self {
            world,
            avatars,
            walkers,
            down: Vec::new(),
        }
    }

    fn step(&mut self, step: u64) {
        for at in 0..self.walkers.len() {
            let (dx, dz) = (self.stride(), self.stride());
            let (session, x, z) = &mut self.walkers[at];
            (*x, *z) = ((*x + dx).clamp(-EDGE, EDGE), (*z + dz).clamp(-EDGE, EDGE));
            let (session, x, z) = (*session, *x, *z);
            self.world.walk(session, x, z);
        }
        let roll = self.world.roll(self.avatars.len() as u64);
        let entity = self.avatars[usize::try_from(roll).expect("there are few")];
        match self.world.roll(12) {
            0..=4 => self.world.call(entity, NOTE, Vec::new()),
            5..=8 => {
                let what = self.world.roll(ACTS);
                self.world.call(entity, ACT, vec![Value::UInt(what)]);
            }
            9 => {
                let x = self.stride() * 30.0;
                self.world.call(entity, JUMP, vec![Value::Float32(x)]);
            }
            10 if self.world.roll(20) == 0 => self.world.call(entity, DIE, Vec::new()),
            _ => {}
        }
        if self.world.roll(25) == 0 {
            let roll = self.world.roll(4);
            let victim = [WEST, MIDDLE, EAST, HOME][usize::try_from(roll).expect("there are four")];
            self.world.crash(victim);
            let until = step + 3 + self.world.roll(20);
            self.down.push((victim, until));
        }
        let (up, down): (Vec<_>, Vec<_>) = self.down.drain(..).partition(|(_, until)| *until <= step);
        self.down = down;
        for (id, _) in up {
            self.start(id);
        }
        self.world.run(100);
    }

    fn stride(&mut self) -> f32 {
        let roll = u8::try_from(self.world.roll(9)).expect("it is below nine");
        f32::from(roll) - 4.0
    }

    fn start(&mut self, id: OwnerId) {
        if id == HOME {
            self.world.start_home();
        } else {
            self.world.start(id);
        }
    }

    fn calm(&mut self) {
        for id in [WEST, MIDDLE, EAST, HOME] {
            self.start(id);
        }
        self.world.faults = CALM;
        self.world.run(CALMING);
        self.world.set_lively(false);
        self.world.run(5_000);
    }
}

#[test]
fn all_invariants_hold_after_every_fault() {
    let mut crossed = 0;
    for seed in SEEDS {
        println!("seed {seed}");
        let mut run = Run::new(seed);
        for step in 0..STEPS {
            run.step(step);
        }
        run.calm();
        check(&run.world);
        crossed += [WEST, MIDDLE, EAST]
            .map(|id| run.world.role(id).counters().onloaded)
            .iter()
            .sum::<u64>();
    }
    assert!(crossed > 20, "only {crossed} entities were handed over");
}
