//! The movement of a controller's entity in one tick. Pure geometry.

use std::f32::consts::{PI, TAU};

use annals_event::{Ending, Facing, Gait, Height, Place, Rounds, Seat};
use annals_ids::{Direction, Position};

use crate::sampling::TICK;

/// Current progress of a controller; the log has an earlier one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Course {
    /// Index of the next waypoint of its path.
    pub(crate) leg: u32,
    /// Current speed, metres per second.
    pub(crate) pace: f32,
}

/// Follows a path. `passed` is called with the index of each waypoint that is reached and left behind. Returns whether
/// the end is reached.
pub(crate) fn follow(
    place: &mut Place,
    course: &mut Course,
    (path, rounds, gait): (&[Position], Rounds, Gait),
    mut passed: impl FnMut(u32),
) -> bool {
    let rest = || match (rounds, gait.ending) {
        (Rounds::Once, Ending::Halting) => length(place.position, rest_of(path, course.leg), gait.height),
        _ => f32::INFINITY,
    };
    let mut left = stride(course.pace, gait, rest, &mut course.pace);
    // A path whose waypoints are all equal has no end; one round per tick is enough.
    for _ in 0..path.len() {
        let Some(&to) = rest_of(path, course.leg).first() else {
            return true;
        };
        let far = distance(place.position, to, gait.height);
        if far > left {
            approach(place, to, left / far, gait);
            return false;
        }
        approach(place, to, 1.0, gait);
        left -= far;
        let next = course.leg.saturating_add(1);
        let is_last = rest_of(path, next).is_empty();
        if is_last && rounds == Rounds::Once {
            return true;
        }
        passed(course.leg);
        course.leg = if is_last { 0 } else { next };
    }
    false
}

/// Approaches a position. Returns whether it is within range.
pub(crate) fn chase(place: &mut Place, course: &mut Course, (to, within): (Position, f32), gait: Gait) -> bool {
    let far = distance(place.position, to, gait.height);
    if far <= within {
        return true;
    }
    let rest = || match gait.ending {
        Ending::Halting => far - within,
        Ending::Running => f32::INFINITY,
    };
    let left = stride(course.pace, gait, rest, &mut course.pace);
    let reach = far - within;
    approach(place, to, left.min(reach) / far, gait);
    left >= reach
}

/// Turns the shorter way. Returns whether the yaw is reached.
pub(crate) fn turn(direction: &mut Direction, yaw: f32, rate: f32) -> bool {
    let (missing, step) = (wrapped(yaw - direction.yaw), rate * TICK.as_secs_f32());
    let is_there = missing.abs() <= step;
    direction.yaw = if is_there {
        yaw
    } else {
        wrapped(direction.yaw + step.copysign(missing))
    };
    is_there
}

/// The place of an entity on a seat of a vehicle.
pub(crate) fn seated(vehicle: &Place, seat: &Seat) -> Place {
    let (sin, cos) = vehicle.direction.yaw.sin_cos();
    let (right, ahead) = (seat.position.x, seat.position.z);
    Place {
        space: vehicle.space,
        position: Position {
            x: vehicle.position.x + right * cos + ahead * sin,
            y: vehicle.position.y + seat.position.y,
            z: vehicle.position.z + ahead * cos - right * sin,
        },
        direction: Direction {
            yaw: wrapped(vehicle.direction.yaw + seat.direction.yaw),
            pitch: vehicle.direction.pitch + seat.direction.pitch,
            roll: vehicle.direction.roll + seat.direction.roll,
        },
    }
}

/// The distance covered in this tick, metres; sets `pace` to the speed after it. `rest` is the distance to the halting
/// point.
fn stride(before: f32, gait: Gait, rest: impl FnOnce() -> f32, pace: &mut f32) -> f32 {
    let tick = TICK.as_secs_f32();
    *pace = if gait.acceleration > 0.0 {
        // The highest speed from which it can still halt there, decelerating as fast as it accelerates.
        let halting = (2.0 * gait.acceleration * rest()).sqrt();
        (before + gait.acceleration * tick).min(gait.speed).min(halting)
    } else {
        gait.speed
    };
    *pace * tick
}

/// Goes a share of the way, facing the target.
fn approach(place: &mut Place, to: Position, share: f32, gait: Gait) {
    let from = place.position;
    let between = |from: f32, to: f32| if share < 1.0 { from + (to - from) * share } else { to };
    place.position = Position {
        x: between(from.x, to.x),
        y: match gait.height {
            Height::Kept => from.y,
            Height::Changed => between(from.y, to.y),
        },
        z: between(from.z, to.z),
    };
    let (dx, dz) = (to.x - from.x, to.z - from.z);
    if gait.facing == Facing::Ahead && (dx != 0.0 || dz != 0.0) {
        place.direction.yaw = dx.atan2(dz);
    }
}

fn rest_of(path: &[Position], leg: u32) -> &[Position] {
    usize::try_from(leg)
        .ok()
        .and_then(|leg| path.get(leg..))
        .unwrap_or_default()
}

fn length(from: Position, path: &[Position], height: Height) -> f32 {
    let steps = std::iter::once(&from).chain(path).zip(path);
    steps.map(|(from, to)| distance(*from, *to, height)).sum()
}

fn distance(one: Position, other: Position, height: Height) -> f32 {
    let (x, y, z) = (one.x - other.x, one.y - other.y, one.z - other.z);
    let y = if height == Height::Kept { 0.0 } else { y };
    (x * x + y * y + z * z).sqrt()
}

/// The angle, wrapped to half a turn left or right.
fn wrapped(angle: f32) -> f32 {
    let turned = (angle + PI).rem_euclid(TAU) - PI;
    if turned.is_finite() { turned } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(x: f32, y: f32, z: f32) -> Position {
        Position { x, y, z }
    }

    fn still() -> Course {
        Course { leg: 0, pace: 0.0 }
    }

    /// Ticks until arrival, and the waypoints passed.
    fn walk(place: &mut Place, course: &mut Course, path: &[Position], gait: Gait) -> (u32, Vec<u32>) {
        let mut passed = Vec::new();
        for tick in 1..10_000 {
            if follow(place, course, (path, Rounds::Once, gait), |leg| passed.push(leg)) {
                return (tick, passed);
            }
        }
        panic!("it never arrives: {place:?}, {course:?}");
    }

    #[test]
    fn the_duration_of_a_walk_depends_on_its_length_only() {
        let mut place = Place::default();
        let path = [
            at(3.0, 9.0, 4.0),
            at(3.0, 0.0, 4.1),
            at(3.0, 0.0, 4.2),
            at(-7.0, 0.0, 4.2),
        ];
        // 5 m, twice 0.1 m and 10 m at 0.5 m a tick; heights do not count.
        let (ticks, passed) = walk(&mut place, &mut still(), &path, Gait::at(5.0));
        assert_eq!((ticks, passed), (31, vec![0, 1, 2]));
        assert_eq!(place.position, at(-7.0, 0.0, 4.2));
        assert!(
            (place.direction.yaw + std::f32::consts::FRAC_PI_2).abs() < 1e-6,
            "it looks west"
        );
    }

    #[test]
    fn acceleration_respects_the_top_speed_and_stops_at_the_end() {
        let gait = Gait {
            acceleration: 2.0,
            height: Height::Changed,
            facing: Facing::Kept,
            ..Gait::at(6.0)
        };
        let (mut place, mut course) = (Place::default(), still());
        let (mut before, mut last, mut fastest) = (0.0f32, 0.0, 0.0f32);
        for _ in 0..1_000 {
            let from = place.position;
            let arrived = follow(
                &mut place,
                &mut course,
                (&[at(0.0, 30.0, 40.0)], Rounds::Once, gait),
                |_| {},
            );
            last = distance(from, place.position, Height::Changed) / 0.1;
            assert!(
                last - before <= 2.0 * 0.1 + 1e-3,
                "from {before} to {last} m/s in a tick"
            );
            (before, fastest) = (last, fastest.max(last));
            if arrived {
                break;
            }
        }
        assert_eq!(place.position, at(0.0, 30.0, 40.0));
        assert!((5.9..=6.001).contains(&fastest), "it comes to {fastest} m/s");
        assert!(last < 1.0, "it arrives at {last} m/s");
        assert!(place.direction.yaw.abs() < 1e-9, "it looks where it looked");
    }

    #[test]
    fn a_chase_ends_at_arms_length() {
        let mut place = Place::default();
        let mut course = still();
        let mut ticks = 1;
        while !chase(&mut place, &mut course, (at(10.0, 50.0, 0.0), 2.0), Gait::at(4.0)) {
            ticks += 1;
            assert!(ticks < 100, "it never comes near: {place:?}");
        }
        assert_eq!(ticks, 20);
        assert!(
            (place.position.x - 8.0).abs() < 1e-4 && place.position.y == 0.0,
            "{place:?}"
        );
    }

    #[test]
    fn a_turn_takes_the_shorter_way_and_ends_exactly() {
        let mut direction = Direction {
            yaw: 3.0,
            ..Direction::default()
        };
        let mut ticks = 1;
        while !turn(&mut direction, -3.0, 1.0) {
            ticks += 1;
            assert!(
                direction.yaw.abs() >= 3.0 - 1e-5,
                "it turned the longer way: {direction:?}"
            );
            assert!(ticks < 100, "it never gets there: {direction:?}");
        }
        assert_eq!((ticks, direction.yaw), (3, -3.0));
    }

    #[test]
    fn a_seat_turns_with_its_vehicle() {
        let seat = Seat {
            position: at(1.0, 2.0, 5.0),
            ..Seat::default()
        };
        let mut vehicle = Place {
            position: at(100.0, 0.0, 0.0),
            ..Place::default()
        };
        assert_eq!(seated(&vehicle, &seat).position, at(101.0, 2.0, 5.0));
        vehicle.direction.yaw = std::f32::consts::FRAC_PI_2;
        let place = seated(&vehicle, &seat);
        assert!(
            distance(place.position, at(105.0, 2.0, -1.0), Height::Changed) < 1e-4,
            "{place:?}"
        );
    }

    #[test]
    fn a_patrol_of_zero_length_ends_within_a_tick() {
        let (mut place, mut course, mut passed) = (Place::default(), still(), 0);
        let path = [Position::default(); 3];
        assert!(!follow(
            &mut place,
            &mut course,
            (&path, Rounds::Endless, Gait::at(1.0)),
            |_| passed += 1
        ));
        assert_eq!(passed, 3);
    }
}
