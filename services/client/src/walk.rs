//! A simulated player's movements, driven by random numbers. Bots use it, and the cost of movements is measured on it.
//!
//! Real players do not move in straight lines at one speed. They stand and look around, walk and stray from their way,
//! strafe around an opponent, and ride in wide curves; each of these is a [`Gait`], kept for a while. Most ways lead
//! across x = 0, so that walkers cross the boundary of cells that meet there.

use std::f32::consts::{PI, TAU};

use annals_def::Dice;
use annals_ids::{Direction, Position};

/// Maximum distance from x = 0, metres.
pub const REACH: f32 = 150.0;

/// Maximum distance along z from the start, metres: room enough for the curves of a rider.
pub const STRAY: f32 = 60.0;

/// Maximum speed, metres per second.
pub const TOP_SPEED: f32 = 14.0;

/// One way in this many ends on the side of x = 0 on which it starts.
const SAME_SIDE_ODDS: u64 = 4;

/// Distance from the end of a way, metres, at which a walker on foot chooses the next.
const THERE: f32 = 1.5;

/// Distance of a fighter from the opponent, metres.
const SWORD: f32 = 3.0;

/// Distance from the end of its way, metres, up to which somebody on the way to a gathering walks instead of riding.
const WALKED: f32 = 30.0;

/// A place where walkers gather.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gathering {
    /// Its centre: x and z, metres.
    pub centre: [f32; 2],
    /// Maximum distance from the centre of the ends of ways, metres.
    pub radius: f32,
}

/// Kind of movement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Gait {
    /// Stands and looks around.
    Idle,
    /// Walks somewhere, with stops.
    Walking,
    /// Strafes around an opponent, with quick turns.
    Fighting,
    /// Rides in wide curves.
    Riding,
}

/// Limits of a gait.
struct Limits {
    /// Duration, seconds.
    kept: [f32; 2],
    /// Speed, metres per second.
    speed: [f32; 2],
    /// Acceleration, metres per second squared.
    acceleration: f32,
    /// Turning rate of the way, radians per second.
    curve: f32,
    /// Turning rate of the look, radians per second.
    glance: f32,
    /// Time until speed and side change, seconds.
    mood: [f32; 2],
}

impl Gait {
    /// Every gait.
    pub const ALL: [Gait; 4] = [Gait::Idle, Gait::Walking, Gait::Fighting, Gait::Riding];

    fn limits(self) -> Limits {
        match self {
            Gait::Idle => Limits {
                kept: [2.0, 8.0],
                speed: [0.0, 0.0],
                acceleration: 8.0,
                curve: 3.0,
                glance: 2.5,
                mood: [0.8, 4.0],
            },
            Gait::Walking => Limits {
                kept: [10.0, 40.0],
                speed: [1.4, 6.0],
                acceleration: 6.0,
                curve: 2.5,
                glance: 5.0,
                mood: [1.5, 6.0],
            },
            Gait::Fighting => Limits {
                kept: [5.0, 12.0],
                speed: [2.5, 5.0],
                acceleration: 25.0,
                curve: 30.0,
                glance: 9.0,
                mood: [0.25, 0.9],
            },
            Gait::Riding => Limits {
                kept: [10.0, 30.0],
                speed: [10.0, TOP_SPEED],
                acceleration: 4.0,
                curve: 0.9,
                glance: 1.5,
                mood: [2.0, 6.0],
            },
        }
    }

    fn choose(dice: &mut Dice<'_>) -> Self {
        match dice() >> 60 {
            0..=1 => Gait::Idle,
            2..=8 => Gait::Walking,
            9..=10 => Gait::Fighting,
            _ => Gait::Riding,
        }
    }
}

impl Gathering {
    /// A gait of somebody at `at` that is on the way there, or there.
    fn gait(&self, at: Position, dice: &mut Dice<'_>) -> Gait {
        let beyond = (at.x - self.centre[0]).hypot(at.z - self.centre[1]) - self.radius;
        match dice() >> 63 {
            _ if beyond > WALKED => Gait::Riding,
            0 if beyond <= 0.0 => Gait::Idle,
            _ => Gait::Walking,
        }
    }
}

/// A walker.
#[derive(Clone, Debug)]
pub struct Walk {
    at: Position,
    began_z: f32,
    gait: Gait,
    /// Whether the gait never changes.
    is_kept: bool,
    gathering: Option<Gathering>,
    /// Seconds until the next gait, and until the next change of speed and side.
    gait_left: f32,
    mood_left: f32,
    /// The present heading, and the end of the way.
    heading: f32,
    towards: [f32; 2],
    /// Deviation of the way from the direction of its end, radians: walkers do not go straight.
    bend: f32,
    speed: f32,
    wanted_speed: f32,
    look: Direction,
    wanted_look: Direction,
    /// Position of the opponent.
    opponent: [f32; 2],
}

impl Walk {
    /// A walker at `at` that walks or rides.
    #[must_use]
    pub fn new(at: Position, dice: &mut Dice<'_>) -> Self {
        let gait = if dice() >> 63 == 0 { Gait::Walking } else { Gait::Riding };
        Self::begin(at, gait, false, None, dice)
    }

    /// A walker at `at` that goes to a gathering, and walks and stands there.
    #[must_use]
    pub fn to(gathering: Gathering, at: Position, dice: &mut Dice<'_>) -> Self {
        let gait = gathering.gait(at, dice);
        Self::begin(at, gait, false, Some(gathering), dice)
    }

    /// A walker at `at` that keeps this gait.
    #[must_use]
    pub fn only(gait: Gait, at: Position, dice: &mut Dice<'_>) -> Self {
        Self::begin(at, gait, true, None, dice)
    }

    fn begin(at: Position, gait: Gait, is_kept: bool, gathering: Option<Gathering>, dice: &mut Dice<'_>) -> Self {
        let heading = between(-PI, PI, dice);
        let look = Direction {
            yaw: heading,
            ..Direction::default()
        };
        let mut walk = Self {
            at,
            began_z: at.z,
            gait,
            is_kept,
            gathering,
            gait_left: 0.0,
            mood_left: 0.0,
            heading,
            towards: [at.x, at.z],
            bend: 0.0,
            speed: 0.0,
            wanted_speed: 0.0,
            look,
            wanted_look: look,
            opponent: [at.x, at.z],
        };
        walk.take_up(gait, dice);
        walk
    }

    /// The present gait.
    #[must_use]
    pub fn gait(&self) -> Gait {
        self.gait
    }

    /// The server set the walker's position.
    pub fn put(&mut self, at: Position) {
        self.at = at;
    }

    /// Moves on for so many seconds.
    pub fn step(&mut self, seconds: f32, dice: &mut Dice<'_>) -> (Position, Direction) {
        self.gait_left -= seconds;
        self.mood_left -= seconds;
        if self.gait_left <= 0.0 {
            let gait = match self.gathering {
                _ if self.is_kept => self.gait,
                Some(gathering) => gathering.gait(self.at, dice),
                None => Gait::choose(dice),
            };
            self.take_up(gait, dice);
        }
        if self.mood_left <= 0.0 {
            self.change_mind(dice);
        }
        match self.gait {
            Gait::Idle => {}
            Gait::Walking | Gait::Riding => self.head_for_the_end(seconds, dice),
            Gait::Fighting => self.face_the_opponent(seconds, dice),
        }
        self.advance(seconds);
        (self.at, self.look)
    }

    fn take_up(&mut self, gait: Gait, dice: &mut Dice<'_>) {
        self.gait = gait;
        let [least, most] = gait.limits().kept;
        self.gait_left = between(least, most, dice);
        match gait {
            Gait::Idle => {}
            Gait::Walking | Gait::Riding => self.choose_end(dice),
            Gait::Fighting => {
                let (sin, cos) = self.look.yaw.sin_cos();
                self.opponent = [self.at.x + SWORD * sin, self.at.z + SWORD * cos];
            }
        }
        self.change_mind(dice);
    }

    /// Chooses the end of a way: within the gathering if there is one; else across x = 0 more often than not, and near it
    /// more often than far from it.
    fn choose_end(&mut self, dice: &mut Dice<'_>) {
        if let Some(Gathering { centre, radius }) = self.gathering {
            let (sin, cos) = between(-PI, PI, dice).sin_cos();
            let distance = radius * between(0.0, 1.0, dice).sqrt();
            self.towards = [centre[0] + distance * sin, centre[1] + distance * cos];
            return;
        }
        let across = !dice().is_multiple_of(SAME_SIDE_ODDS);
        let side = if (self.at.x < 0.0) == across { 1.0 } else { -1.0 };
        let share = between(0.0, 1.0, dice);
        let x = side * REACH * share * share;
        let z = self.began_z + between(-STRAY, STRAY, dice);
        self.towards = [x, z];
    }

    /// Chooses what can change at any time: speed, side and look.
    fn change_mind(&mut self, dice: &mut Dice<'_>) {
        let Limits { speed, mood, .. } = self.gait.limits();
        self.mood_left = between(mood[0], mood[1], dice);
        self.wanted_speed = between(speed[0], speed[1], dice);
        match self.gait {
            Gait::Idle => {
                // A glance to the side, sometimes up or down.
                self.wanted_look.yaw = wrapped(self.look.yaw + between(-1.8, 1.8, dice));
                self.wanted_look.pitch = self.glance_up(dice);
            }
            Gait::Walking => {
                self.bend = between(-0.5, 0.5, dice);
                self.wanted_look.pitch = self.glance_up(dice);
                if dice().is_multiple_of(6) {
                    // A short stop.
                    self.wanted_speed = 0.0;
                    self.mood_left = between(0.4, 2.0, dice);
                }
            }
            Gait::Fighting => {
                // To the left, to the right, forward, back, or a pause.
                self.bend = f32::from((dice() >> 62) as u8) * (PI / 2.0) + between(-0.4, 0.4, dice);
                self.wanted_look.pitch = between(-0.25, 0.25, dice);
                match dice() % 8 {
                    0 => self.wanted_speed = 0.0,
                    // Another opponent attacks, from any side.
                    1 => {
                        let (sin, cos) = between(-PI, PI, dice).sin_cos();
                        self.opponent = [self.at.x + SWORD * sin, self.at.z + SWORD * cos];
                    }
                    _ => {}
                }
            }
            Gait::Riding => {
                self.bend = between(-0.7, 0.7, dice);
                self.wanted_look.pitch = between(-0.15, 0.05, dice);
            }
        }
    }

    fn glance_up(&self, dice: &mut Dice<'_>) -> f32 {
        if dice().is_multiple_of(3) {
            between(-0.5, 0.4, dice)
        } else {
            self.wanted_look.pitch
        }
    }

    fn head_for_the_end(&mut self, seconds: f32, dice: &mut Dice<'_>) {
        let (x, z) = (self.towards[0] - self.at.x, self.towards[1] - self.at.z);
        // A rider passes by the end, and does not circle around it.
        let Limits { curve, glance, .. } = self.gait.limits();
        if x.hypot(z) <= THERE.max(2.0 * self.speed / curve) {
            match (self.gait, self.gathering) {
                // The rider dismounts.
                (Gait::Riding, Some(_)) => self.take_up(Gait::Walking, dice),
                _ => self.choose_end(dice),
            }
        }
        let wanted = wrapped(x.atan2(z) + self.bend);
        let before = self.heading;
        self.heading = turned(before, wanted, curve * seconds);
        self.wanted_look.yaw = self.heading;
        let tilt = match self.gait {
            Gait::Riding => -0.35 * wrapped(self.heading - before) / (curve * seconds).max(f32::MIN_POSITIVE),
            _ => 0.0,
        };
        self.look.roll = turned(self.look.roll, tilt, glance * 0.5 * seconds);
    }

    fn face_the_opponent(&mut self, seconds: f32, dice: &mut Dice<'_>) {
        // The opponent moves too.
        for axis in &mut self.opponent {
            *axis += between(-4.0, 4.0, dice) * seconds;
        }
        let (x, z) = (self.opponent[0] - self.at.x, self.opponent[1] - self.at.z);
        let facing = x.atan2(z);
        self.wanted_look.yaw = facing;
        // Keep the distance while strafing.
        let distance = x.hypot(z);
        let inwards = ((distance - SWORD) * 0.5).clamp(-0.7, 0.7);
        let wanted = facing + self.bend - inwards * self.bend.sin();
        self.heading = turned(self.heading, wrapped(wanted), Gait::Fighting.limits().curve * seconds);
        self.look.roll = turned(self.look.roll, 0.0, seconds);
    }

    fn advance(&mut self, seconds: f32) {
        let Limits {
            acceleration, glance, ..
        } = self.gait.limits();
        let change = (self.wanted_speed - self.speed).clamp(-acceleration * seconds, acceleration * seconds);
        self.speed += change;
        let (sin, cos) = self.heading.sin_cos();
        let stride = self.speed * seconds;
        let (x, z) = (self.at.x + sin * stride, self.at.z + cos * stride);
        (self.at.x, self.at.z) = match self.gathering {
            Some(_) => (x, z),
            None => (
                x.clamp(-REACH, REACH),
                z.clamp(self.began_z - STRAY, self.began_z + STRAY),
            ),
        };
        self.look.yaw = turned(self.look.yaw, self.wanted_look.yaw, glance * seconds);
        self.look.pitch = turned(self.look.pitch, self.wanted_look.pitch, 1.5 * seconds);
    }
}

/// An angle normalised to half a turn to either side.
fn wrapped(angle: f32) -> f32 {
    let wrapped = (angle + PI).rem_euclid(TAU) - PI;
    wrapped.clamp(-PI, PI)
}

/// An angle turned towards another the short way, by at most `at_most`; faster the farther it is.
fn turned(angle: f32, towards: f32, at_most: f32) -> f32 {
    let missing = wrapped(towards - angle);
    wrapped(angle + (missing * 0.6).clamp(-at_most, at_most))
}

/// A random number between two others.
fn between(least: f32, most: f32, dice: &mut Dice<'_>) -> f32 {
    let share = f32::from((dice() >> 48) as u16) / f32::from(u16::MAX);
    least + (most - least) * share
}

#[cfg(test)]
mod tests {
    use annals_def::split_mix;

    use super::*;

    const STEP: f32 = 0.1;

    /// Distance, and angle of the way, between two positions.
    fn stride(before: Position, at: Position) -> (f32, f32) {
        let (x, z) = (at.x - before.x, at.z - before.z);
        (x.hypot(z), x.atan2(z))
    }

    #[test]
    fn walks_stay_in_range_at_speed_and_cross_the_middle() {
        let mut crossings = 0;
        for seed in 0..200 {
            let mut dice = split_mix(seed);
            let began = Position {
                x: 40.0,
                y: 2.0,
                z: -30.0,
            };
            let mut walk = Walk::new(began, &mut dice);
            let (mut before, mut mine) = (began, 0);
            for _ in 0..1_200 {
                let (at, direction) = walk.step(STEP, &mut dice);
                let (moved, _) = stride(before, at);
                assert!(moved <= TOP_SPEED * STEP + 0.001, "seed {seed}: {moved} m in a step");
                assert!(
                    at.x.abs() <= REACH && (at.z - began.z).abs() <= STRAY + 0.001,
                    "seed {seed}: {at:?}"
                );
                assert!(at.is_finite() && direction.is_finite() && at.y == began.y);
                mine += u32::from((at.x < 0.0) != (before.x < 0.0));
                before = at;
            }
            assert!(mine > 0, "seed {seed}: two minutes on one side");
            crossings += mine;
        }
        // Cells of a demonstration must keep handing over: every walker every half minute.
        assert!(crossings >= 200 * 4, "{crossings} crossings in 400 minutes");
    }

    #[test]
    fn each_gait_has_its_movement() {
        for gait in Gait::ALL {
            let (mut way, mut steps, mut straight, mut turns) = (0.0, 0, 0, 0);
            for seed in 0..20 {
                let mut dice = split_mix(seed);
                let mut walk = Walk::only(gait, Position::default(), &mut dice);
                let (mut before, mut look, mut course) = (Position::default(), None, None);
                for _ in 0..600 {
                    let (at, direction) = walk.step(STEP, &mut dice);
                    assert_eq!(walk.gait(), gait);
                    let turn = look.map_or(0.0, |look: Direction| wrapped(direction.yaw - look.yaw).abs());
                    assert!(
                        turn <= gait.limits().glance * STEP + 0.001,
                        "{gait:?}, seed {seed}: {turn} rad"
                    );
                    assert!(
                        direction.pitch.abs() <= 0.6 && direction.roll.abs() <= 0.4,
                        "{direction:?}"
                    );
                    let (moved, heading) = stride(before, at);
                    if moved > 0.1 {
                        straight += u32::from(course.is_some_and(|course: f32| wrapped(heading - course).abs() < 1e-4));
                        course = Some(heading);
                    }
                    turns += u32::from(turn > 0.2);
                    (before, look) = (at, Some(direction));
                    way += moved;
                    steps += 1;
                }
            }
            let (speed, steps) = (way / (steps as f32 * STEP), f64::from(steps));
            let speeds = match gait {
                Gait::Idle => 0.0..=0.001,
                Gait::Walking => 1.4..=6.0,
                Gait::Fighting => 1.0..=5.0,
                Gait::Riding => 9.0..=TOP_SPEED,
            };
            assert!(speeds.contains(&speed), "{gait:?}: {speed} m/s");
            // Ways wind; a fighter turns on the spot again and again, and a horse never does.
            assert!(
                f64::from(straight) < steps * 0.5,
                "{gait:?}: {straight} straight steps of {steps}"
            );
            let quick = match gait {
                Gait::Idle | Gait::Walking => 0.02..0.15,
                Gait::Fighting => 0.15..1.0,
                Gait::Riding => 0.0..0.001,
            };
            assert!(
                quick.contains(&(f64::from(turns) / steps)),
                "{gait:?}: {turns} of {steps}"
            );
        }
    }

    #[test]
    fn a_gathering_is_reached_from_afar_and_kept() {
        let gathering = Gathering {
            centre: [300.0, -200.0],
            radius: 15.0,
        };
        let from = Position {
            x: -60.0,
            y: 1.0,
            z: 50.0,
        };
        let mut apart = Vec::new();
        for seed in 0..100 {
            let mut dice = split_mix(seed);
            let mut walk = Walk::to(gathering, from, &mut dice);
            for step in 0..1_800 {
                let before = walk.at;
                let (at, _) = walk.step(STEP, &mut dice);
                assert!(stride(before, at).0 <= TOP_SPEED * STEP + 0.001);
                let distance = (at.x - 300.0).hypot(at.z + 200.0);
                // Those who walk on curved ways leave it by a few metres.
                assert!(step < 1_000 || distance < 15.0 + WALKED, "seed {seed}: {distance} m");
                if step == 1_799 {
                    apart.push(distance);
                }
            }
        }
        let inside = apart.iter().filter(|&&distance| distance <= 15.0).count();
        assert!(inside >= 80, "{inside} of 100 are there after three minutes");
    }

    #[test]
    fn every_bot_does_every_action_in_time() {
        let mut seconds = [0.0; 4];
        for seed in 0..50 {
            let mut dice = split_mix(seed);
            let mut walk = Walk::new(Position::default(), &mut dice);
            for _ in 0..3_000 {
                walk.step(STEP, &mut dice);
                seconds[walk.gait() as usize] += STEP;
            }
        }
        assert!(
            seconds.iter().all(|&seconds| seconds > 300.0),
            "{seconds:?} of 15,000 s"
        );
    }

    #[test]
    fn a_teleported_walker_continues_from_its_new_place() {
        let mut dice = split_mix(1);
        let mut walk = Walk::new(Position::default(), &mut dice);
        let put = Position {
            x: 90.0,
            ..Position::default()
        };
        walk.put(put);
        let (at, _) = walk.step(STEP, &mut dice);
        assert!(stride(put, at).0 <= TOP_SPEED * STEP + 0.001);
    }
}
