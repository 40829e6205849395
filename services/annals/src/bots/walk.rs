//! Where a bot goes: to and fro along x, so that it crosses the boundary of cells that meet there.

use annals_def::Dice;
use annals_ids::{Direction, Position};

/// How far from x = 0 bots go, metres.
pub const REACH: f32 = 150.0;

/// The slowest and the fastest walk, metres per second.
const SPEED: [f32; 2] = [4.0, 8.0];

/// Every so many destinations one lies on the same side of x = 0.
const SAME_SIDE_ODDS: u64 = 4;

/// How far a bot strays along z from where it began, metres.
const STRAY: f32 = 20.0;

/// A bot on its way.
#[derive(Clone, Debug)]
pub(super) struct Walk {
    at: Position,
    began_z: f32,
    towards: Position,
    speed: f32,
}

impl Walk {
    /// Begins where the bot stands.
    pub(super) fn new(at: Position, dice: &mut Dice<'_>) -> Self {
        let mut walk = Self {
            at,
            began_z: at.z,
            towards: at,
            speed: SPEED[0],
        };
        walk.choose(dice);
        walk
    }

    /// The server put the bot somewhere else.
    pub(super) fn put(&mut self, at: Position) {
        self.at = at;
    }

    /// Walks on for so many seconds.
    pub(super) fn step(&mut self, seconds: f32, dice: &mut Dice<'_>) -> (Position, Direction) {
        let (x, z) = (self.towards.x - self.at.x, self.towards.z - self.at.z);
        let (left, stride) = (x.hypot(z), self.speed * seconds);
        if left <= stride {
            self.at = Position {
                y: self.at.y,
                ..self.towards
            };
            self.choose(dice);
        } else {
            self.at.x += x / left * stride;
            self.at.z += z / left * stride;
        }
        let direction = Direction {
            yaw: x.atan2(z),
            ..Direction::default()
        };
        (self.at, direction)
    }

    fn choose(&mut self, dice: &mut Dice<'_>) {
        let across = !dice().is_multiple_of(SAME_SIDE_ODDS);
        let side = if (self.at.x < 0.0) == across { 1.0 } else { -1.0 };
        self.towards = Position {
            x: side * between(0.0, REACH, dice),
            y: self.at.y,
            z: self.began_z + between(-STRAY, STRAY, dice),
        };
        self.speed = between(SPEED[0], SPEED[1], dice);
    }
}

/// A number between two others.
fn between(least: f32, most: f32, dice: &mut Dice<'_>) -> f32 {
    let share = f32::from((dice() >> 48) as u16) / f32::from(u16::MAX);
    least + (most - least) * share
}

#[cfg(test)]
mod tests {
    use annals_def::split_mix;

    use super::*;

    #[test]
    fn walks_stay_within_reach_keep_to_their_speed_and_cross_the_middle() {
        for seed in 0..50 {
            let mut dice = split_mix(seed);
            let began = Position {
                x: 40.0,
                y: 2.0,
                z: -30.0,
            };
            let mut walk = Walk::new(began, &mut dice);
            let (mut before, mut crossings) = (began, 0);
            for _ in 0..1_200 {
                let (at, direction) = walk.step(0.1, &mut dice);
                let moved = (at.x - before.x).hypot(at.z - before.z);
                assert!(moved <= SPEED[1] * 0.1 + 0.001, "seed {seed}: {moved} m in a step");
                assert!(
                    at.x.abs() <= REACH && (at.z - began.z).abs() <= STRAY + 0.001,
                    "seed {seed}: {at:?}"
                );
                assert!(at.is_finite() && direction.is_finite() && at.y == began.y);
                crossings += u32::from((at.x < 0.0) != (before.x < 0.0));
                before = at;
            }
            assert!(crossings > 0, "seed {seed}: two minutes on one side");
        }
    }

    #[test]
    fn who_was_put_somewhere_walks_on_from_there() {
        let mut dice = split_mix(1);
        let mut walk = Walk::new(Position::default(), &mut dice);
        let put = Position {
            x: 90.0,
            ..Position::default()
        };
        walk.put(put);
        let (at, _) = walk.step(0.1, &mut dice);
        assert!((at.x - put.x).abs() <= SPEED[1] * 0.1 + 0.001);
    }
}
