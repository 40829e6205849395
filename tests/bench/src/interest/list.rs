//! Baseline: the cross-linked list, in its textbook form.
//!
//! There are two lists, one sorted by x and one by z, with each body as a node, and each area of interest as pairs of
//! nodes that bound it. A moving node is shuffled past its neighbours, first along x, then along z; a body that passes
//! a bound may enter or leave. There are two areas around each observer: entering the inner one counts, and leaving the
//! outer one (the hysteresis).
//!
//! Whether a body entered is decided after all positions of a tick are set, from the final positions: otherwise the
//! first to move would see bodies that are gone again once the others have moved.

use std::collections::BTreeSet;

use super::{Baseline, Event};

const X: usize = 0;
const Z: usize = 1;

const HEAD: usize = 0;
const TAIL: usize = 1;

/// Nodes of an entity: its body, and the lower and upper bounds of its inner and outer area.
const NODES: usize = 5;

/// Order of nodes with the same coordinate: a body on a bound is inside.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
enum Rank {
    Lower,
    Body,
    Upper,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Area {
    Inner,
    Outer,
}

#[derive(Clone, Copy, Debug)]
struct Node {
    at: [f32; 2],
    rank: Rank,
    before: [usize; 2],
    after: [usize; 2],
    is_linked: bool,
}

/// The cross-linked list.
pub struct List {
    nodes: Vec<Node>,
    seen: Vec<BTreeSet<u32>>,
    /// Observers, and the bodies that passed one of their bounds.
    crossings: Vec<(usize, usize)>,
}

impl List {
    /// An empty list for this many entities.
    #[must_use]
    pub fn new(entities: usize) -> Self {
        let end = |at: f32, rank| Node {
            at: [at, at],
            rank,
            before: [HEAD; 2],
            after: [TAIL; 2],
            is_linked: true,
        };
        let mut nodes = vec![end(f32::NEG_INFINITY, Rank::Lower), end(f32::INFINITY, Rank::Upper)];
        let ranks = [Rank::Body, Rank::Lower, Rank::Upper, Rank::Lower, Rank::Upper];
        for rank in std::iter::repeat_n(ranks, entities).flatten() {
            let node = end(f32::NEG_INFINITY, rank);
            nodes.push(Node {
                is_linked: false,
                ..node
            });
        }
        Self {
            nodes,
            seen: vec![BTreeSet::new(); entities],
            crossings: Vec::new(),
        }
    }

    /// Inserts a node into both lists directly after another, at its position.
    fn link(&mut self, node: usize, behind: usize) {
        for axis in [X, Z] {
            let next = self.nodes[behind].after[axis];
            self.nodes[node].at[axis] = self.nodes[behind].at[axis];
            self.nodes[node].before[axis] = behind;
            self.nodes[node].after[axis] = next;
            self.nodes[behind].after[axis] = node;
            self.nodes[next].before[axis] = node;
        }
        self.nodes[node].is_linked = true;
    }

    fn unlink(&mut self, node: usize) {
        for axis in [X, Z] {
            let (before, after) = (self.nodes[node].before[axis], self.nodes[node].after[axis]);
            self.nodes[before].after[axis] = after;
            self.nodes[after].before[axis] = before;
        }
        self.nodes[node].is_linked = false;
    }

    /// Moves a node along one axis, past all nodes between its old and new position.
    fn shuffle(&mut self, node: usize, axis: usize, to: f32) {
        self.nodes[node].at[axis] = to;
        loop {
            let before = self.nodes[node].before[axis];
            if before == HEAD || !self.precedes(node, before, axis) {
                break;
            }
            self.swap(before, node, axis);
            self.crossed(node, before, axis);
        }
        loop {
            let after = self.nodes[node].after[axis];
            if after == TAIL || !self.precedes(after, node, axis) {
                break;
            }
            self.swap(node, after, axis);
            self.crossed(node, after, axis);
        }
    }

    fn precedes(&self, one: usize, other: usize, axis: usize) -> bool {
        let (one, other) = (&self.nodes[one], &self.nodes[other]);
        (one.at[axis], one.rank) < (other.at[axis], other.rank)
    }

    /// Exchanges two adjacent nodes, the second directly after the first.
    fn swap(&mut self, first: usize, second: usize, axis: usize) {
        let (before, after) = (self.nodes[first].before[axis], self.nodes[second].after[axis]);
        self.nodes[before].after[axis] = second;
        self.nodes[second].before[axis] = before;
        self.nodes[second].after[axis] = first;
        self.nodes[first].before[axis] = second;
        self.nodes[first].after[axis] = after;
        self.nodes[after].before[axis] = first;
    }

    /// Handles two nodes that passed each other.
    fn crossed(&mut self, one: usize, other: usize, axis: usize) {
        let (body, bound) = match (self.nodes[one].rank, self.nodes[other].rank) {
            (Rank::Body, Rank::Lower | Rank::Upper) => (one, other),
            (Rank::Lower | Rank::Upper, Rank::Body) => (other, one),
            _ => return,
        };
        let (observer, area) = (entity_of(bound), area_of(bound));
        if observer == entity_of(body) {
            return;
        }
        let across = if axis == X { Z } else { X };
        if self.is_between(body, observer, area, across) {
            self.crossings.push((observer, entity_of(body)));
        }
    }

    /// Whether a body is between the bounds of an area on one axis.
    fn is_between(&self, body: usize, observer: usize, area: Area, axis: usize) -> bool {
        let lower = lower(observer, area);
        let at = self.nodes[body].at[axis];
        self.nodes[lower].at[axis] <= at && at <= self.nodes[lower + 1].at[axis]
    }

    /// Moves the bounds of an area, first those that enlarge it.
    fn bound(&mut self, observer: usize, area: Area, [x, z]: [f32; 2], radius: f32) {
        let lower = lower(observer, area);
        let upper = lower + 1;
        for (axis, centre) in [(X, x), (Z, z)] {
            let ends = [(lower, centre - radius), (upper, centre + radius)];
            let grows = |(node, to): (usize, f32)| match self.nodes[node].rank {
                Rank::Lower => to <= self.nodes[node].at[axis],
                _ => to >= self.nodes[node].at[axis],
            };
            let [first, second] = if grows(ends[0]) { ends } else { [ends[1], ends[0]] };
            self.shuffle(first.0, axis, first.1);
            self.shuffle(second.0, axis, second.1);
        }
    }
}

fn body(entity: usize) -> usize {
    2 + entity * NODES
}

fn lower(entity: usize, area: Area) -> usize {
    body(entity) + if area == Area::Inner { 1 } else { 3 }
}

fn entity_of(node: usize) -> usize {
    (node - 2) / NODES
}

fn area_of(node: usize) -> Area {
    if (node - 2) % NODES < 3 {
        Area::Inner
    } else {
        Area::Outer
    }
}

impl Baseline for List {
    fn place(&mut self, entity: usize, [x, z]: [f32; 2]) {
        let node = body(entity);
        if !self.nodes[node].is_linked {
            self.link(node, HEAD);
        }
        self.shuffle(node, X, x);
        self.shuffle(node, Z, z);
    }

    fn remove(&mut self, entity: usize) {
        let node = body(entity);
        if self.nodes[node].is_linked {
            self.shuffle(node, X, f32::INFINITY);
            self.unlink(node);
        }
    }

    fn observe(&mut self, entity: usize, at: [f32; 2], radius: f32, hysteresis: f32) {
        for area in [Area::Outer, Area::Inner] {
            let lower = lower(entity, area);
            if !self.nodes[lower].is_linked {
                let own = body(entity);
                let behind = if self.nodes[own].is_linked { own } else { HEAD };
                self.link(lower, behind);
                self.link(lower + 1, lower);
            }
        }
        self.bound(entity, Area::Outer, at, radius + hysteresis);
        self.bound(entity, Area::Inner, at, radius);
    }

    fn forget(&mut self, entity: usize) {
        for node in body(entity) + 1..body(entity) + NODES {
            if self.nodes[node].is_linked {
                self.unlink(node);
            }
        }
        self.seen[entity].clear();
    }

    fn update(&mut self, events: &mut Vec<Event>) {
        for (observer, entity) in std::mem::take(&mut self.crossings) {
            let is_in = |area| {
                [X, Z]
                    .iter()
                    .all(|axis| self.is_between(body(entity), observer, area, *axis))
            };
            let (catches, holds) = (is_in(Area::Inner), is_in(Area::Outer));
            let (observer, entity) = (number(observer), number(entity));
            let seen = &mut self.seen[observer as usize];
            if (catches && seen.insert(entity)) || (!holds && seen.remove(&entity)) {
                events.push((observer, entity, catches));
            }
        }
    }
}

fn number(entity: usize) -> u32 {
    u32::try_from(entity).expect("entities are numbered in 32 bits")
}
