//! Baseline: the uniform grid, in its textbook form: each tick every entity is put into its square, and every observer
//! scans the squares that its area touches.

use super::{Baseline, Event};

/// The uniform grid.
pub struct Grid {
    /// Side of a square, metres.
    side: f32,
    /// Squares along each side of the world; positions outside are in the outermost ones.
    across: usize,
    squares: Vec<Vec<(u32, [f32; 2])>>,
    bodies: Vec<Option<[f32; 2]>>,
    observers: Vec<Option<Observer>>,
    seen: Vec<Vec<u32>>,
    /// Per entity, whether the current observer saw it before, and sees it.
    marks: Vec<u64>,
    mark: u64,
}

#[derive(Clone, Copy)]
struct Observer {
    at: [f32; 2],
    radius: f32,
    hysteresis: f32,
}

impl Grid {
    /// An empty grid for this many entities, in a world of this width, with squares of this side, metres.
    #[must_use]
    pub fn new(entities: usize, world: f32, side: f32) -> Self {
        let across = index(world / side) + 1;
        Self {
            side,
            across,
            squares: vec![Vec::new(); across * across],
            bodies: vec![None; entities],
            observers: vec![None; entities],
            seen: vec![Vec::new(); entities],
            marks: vec![0; entities],
            mark: 0,
        }
    }

    fn index(&self, axis: f32) -> usize {
        index(axis / self.side).min(self.across - 1)
    }

    fn look(&mut self, own: u32, observer: Observer, events: &mut Vec<Event>) {
        let before = std::mem::take(&mut self.seen[own as usize]);
        let (saw, sees) = (self.mark + 1, self.mark + 2);
        self.mark = sees;
        for &body in &before {
            self.marks[body as usize] = saw;
        }
        let ([x, z], reach) = (observer.at, observer.radius + observer.hysteresis);
        let mut seen = Vec::with_capacity(before.len());
        for row in self.index(z - reach)..=self.index(z + reach) {
            for column in self.index(x - reach)..=self.index(x + reach) {
                for &(body, at) in &self.squares[row * self.across + column] {
                    let distance = (at[0] - x).abs().max((at[1] - z).abs());
                    if distance > reach || body == own {
                        continue;
                    }
                    let was_seen = self.marks[body as usize] == saw;
                    if was_seen || distance <= observer.radius {
                        self.marks[body as usize] = sees;
                        seen.push(body);
                        if !was_seen {
                            events.push((own, body, true));
                        }
                    }
                }
            }
        }
        let gone = before.iter().filter(|body| self.marks[**body as usize] == saw);
        events.extend(gone.map(|body| (own, *body, false)));
        self.seen[own as usize] = seen;
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the cast saturates: what is below the world is in its first square"
)]
fn index(squares: f32) -> usize {
    squares as usize
}

impl Baseline for Grid {
    fn place(&mut self, entity: usize, at: [f32; 2]) {
        self.bodies[entity] = Some(at);
    }

    fn remove(&mut self, entity: usize) {
        self.bodies[entity] = None;
    }

    fn observe(&mut self, entity: usize, at: [f32; 2], radius: f32, hysteresis: f32) {
        self.observers[entity] = Some(Observer { at, radius, hysteresis });
    }

    fn forget(&mut self, entity: usize) {
        self.observers[entity] = None;
        self.seen[entity].clear();
    }

    fn update(&mut self, events: &mut Vec<Event>) {
        self.squares.iter_mut().for_each(Vec::clear);
        for (entity, at) in (0..).zip(&self.bodies) {
            if let Some(at) = *at {
                let square = self.index(at[1]) * self.across + self.index(at[0]);
                self.squares[square].push((entity, at));
            }
        }
        for (entity, observer) in (0..).zip(self.observers.clone()) {
            if let Some(observer) = observer {
                self.look(entity, observer, events);
            }
        }
    }
}
