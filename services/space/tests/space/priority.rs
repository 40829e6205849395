//! The order and frequency of turns.

use annals_space::{Priority, PriorityQueue, Scheme};

/// More than the entities in these tests.
const NO_LIMIT: usize = usize::MAX;

/// Entities at given distances, in the queue of one observer.
struct Crowd {
    queue: PriorityQueue,
    entities: Vec<(f32, Priority)>,
}

impl Crowd {
    fn new(queue: PriorityQueue, distances: &[f32]) -> Self {
        let entities = distances.iter().map(|distance| (*distance, queue.enter())).collect();
        Self { queue, entities }
    }

    /// The entities that have a turn at a tick, in order, `room` of them at most.
    fn tick(&mut self, room: usize) -> Vec<usize> {
        let mut due: Vec<usize> = (0..self.entities.len())
            .filter(|&at| self.queue.is_due(&self.entities[at].1))
            .collect();
        due.sort_by(|&one, &other| {
            let [(near, first), (far, second)] = [self.entities[one], self.entities[other]];
            first.value().total_cmp(&second.value()).then(near.total_cmp(&far))
        });
        let left = due.len() > room;
        due.truncate(room);
        for &at in &due {
            let (distance, priority) = &mut self.entities[at];
            self.queue.turn(priority, *distance);
        }
        let first = self.entities.iter().map(|(_, priority)| priority.value());
        self.queue.end_tick(first.min_by(f64::total_cmp), left);
        due
    }

    /// The number of turns of each entity in a number of ticks.
    fn turns(&mut self, ticks: usize, room: usize) -> Vec<usize> {
        let mut turns = vec![0; self.entities.len()];
        for _ in 0..ticks {
            self.tick(room).into_iter().for_each(|at| turns[at] += 1);
        }
        turns
    }
}

/// Deltas of 1 at 10 m and 3 at 30 m, as in the worked example.
fn example(cap: f64) -> Crowd {
    let scheme = Scheme {
        near: 0.0,
        per_metre: 0.1,
        ..Scheme::default()
    };
    Crowd::new(PriorityQueue::new(scheme, cap), &[10.0, 30.0])
}

/// The example of `seeds/001`, with room for one entity in a packet: B is 10 m away, C 30 m.
#[test]
fn the_worked_example_with_room_for_one() {
    let mut crowd = example(1e9);
    let order: String = (0..10).map(|_| ["B", "C"][crowd.tick(1)[0]]).collect();
    assert_eq!(order, "BCBBBCBBBC");
}

/// The same, with room for all and the cap at 0.8.
#[test]
fn the_worked_example_with_a_cap() {
    let mut crowd = example(0.8);
    let order: Vec<Vec<usize>> = (0..7).map(|_| crowd.tick(NO_LIMIT)).collect();
    let (b, both) = (vec![0], vec![0, 1]);
    let expected = [&both, &b, &b, &both, &b, &b, &both].map(Clone::clone);
    assert_eq!(order, expected);
}

#[test]
fn turns_follow_the_distance_delta() {
    let mut crowd = Crowd::new(
        PriorityQueue::default(),
        &[0.0, 10.0, 19.9, 45.0, 120.0, 495.0, 3_000.0],
    );
    let turns = crowd.turns(2_000, NO_LIMIT);
    assert_eq!(turns[..3], [2_000; 3]);
    // A delta of 10, 25, 100 and 101 at a cap of 5.
    for (turns, expected) in turns[3..].iter().zip([1_000, 400, 100, 99]) {
        assert!(turns.abs_diff(expected) <= 1, "{turns} instead of {expected}");
    }
}

#[test]
fn a_single_entity_has_a_turn_at_every_tick() {
    assert_eq!(
        Crowd::new(PriorityQueue::default(), &[400.0]).turns(100, NO_LIMIT),
        [100]
    );
}

#[test]
fn under_scarcity_turns_are_inverse_to_the_deltas() {
    let mut checked = 0;
    for round in 0..50_usize {
        let count = 2 + round;
        let distances: Vec<f32> = (0..count).map(|at| ((at * 37 + round * 11) % 300) as f32).collect();
        let delta = |distance: &f32| f64::from(*distance) * 0.2 + 1.0;
        let mut crowd = Crowd::new(PriorityQueue::default(), &distances);
        let wanted: f64 = distances
            .iter()
            .map(|distance| (PriorityQueue::CAP / delta(distance)).min(1.0))
            .sum();
        if wanted < 3.0 {
            continue;
        }
        let share = |distance: &f32| 1.0 / delta(distance);
        let all: f64 = distances.iter().map(share).sum();
        checked += 1;
        let ticks = 10_000;
        let turns = crowd.turns(ticks, 1);
        for (distance, turns) in distances.iter().zip(turns) {
            let expected = ticks as f64 * share(distance) / all;
            assert!(
                (turns as f64 - expected).abs() <= 3.0 + expected * 0.05,
                "round {round}: {turns} turns {distance} m away among {count}, {expected} expected"
            );
        }
    }
    assert!(checked > 30, "{checked} crowds wanted more than there was room for");
}

#[test]
fn unused_turns_do_not_accumulate() {
    let distances: Vec<f32> = (0..40).map(|at| at as f32 * 10.0).collect();
    let mut crowd = Crowd::new(PriorityQueue::default(), &distances);
    crowd.turns(10_000, NO_LIMIT);
    let before = crowd.turns(400, 2);
    assert!(before.iter().all(|turns| *turns > 0), "{before:?}");
    let mut fresh = Crowd::new(PriorityQueue::default(), &distances);
    fresh.turns(40, 2);
    let expected = fresh.turns(400, 2);
    for (at, (turns, expected)) in before.iter().zip(&expected).enumerate() {
        assert!(
            turns.abs_diff(*expected) <= 3 + expected / 5,
            "{at}: {turns} and {expected}"
        );
    }
}

#[test]
fn a_new_entity_has_a_turn_at_once_and_a_leaving_one_gradually_fewer() {
    let mut crowd = Crowd::new(PriorityQueue::default(), &[5.0; 30]);
    crowd.turns(1_000, 3);
    crowd.entities.push((400.0, crowd.queue.enter()));
    let mut waited = 0;
    while !crowd.tick(3).contains(&30) {
        waited += 1;
        assert!(waited <= 10, "it is starved");
    }
    let mut crowd = Crowd::new(PriorityQueue::default(), &[5.0, 0.0]);
    crowd.tick(2);
    crowd.entities[0].0 = 495.0;
    let mut gaps = Vec::new();
    for _ in 0..40 {
        let mut gap = 1;
        while !crowd.tick(2).contains(&0) {
            gap += 1;
        }
        gaps.push(gap);
    }
    assert!(
        gaps.iter()
            .zip(&gaps[1..])
            .all(|(gap, next)| *next <= gap + 1 + gap / 7),
        "{gaps:?}"
    );
    assert_eq!(gaps[39], 20);
}
