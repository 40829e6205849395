//! Division of a space: a tree of cuts (a binary space partition) whose leaves are cell owners.
//!
//! The areas of the leaves cover the plane and do not overlap, whatever is done to the tree: that follows from its
//! shape. A cut keeps its identity when it moves, until one of its sides is removed.

mod flat;

use annals_ids::OwnerId;
use annals_wire::CellArea;

pub use flat::NotATree;

/// Maximum cells of a space: bounds the size of the map, which goes to every process at once.
pub const MOST_CELLS: usize = 1_024;

/// Axis that a cut divides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Axis {
    /// Divides west from east.
    X,
    /// Divides south from north.
    Z,
}

/// One of the two sides of a cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Side {
    /// West or south.
    Low,
    /// East or north.
    High,
}

/// Identity of a cut in its space.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CutId(pub u32);

/// A rectangle of the plane: half-open along both axes, possibly unbounded.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bounds {
    low: [f32; 2],
    high: [f32; 2],
}

/// A cut and its two sides.
#[derive(Clone, Debug, PartialEq)]
pub struct Cut {
    pub id: CutId,
    /// Axis that it divides.
    pub axis: Axis,
    /// Position on that axis, metres.
    pub at: f32,
    pub(crate) low: Box<Node>,
    pub(crate) high: Box<Node>,
}

/// An area: one cell, or divided by a cut.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Node {
    Leaf(OwnerId),
    Cut(Cut),
}

/// Division of one space into cells, as a tree of cuts.
#[derive(Clone, Debug, PartialEq)]
pub struct Division {
    next: u32,
    pub(crate) root: Node,
}

impl Axis {
    /// The other axis.
    #[must_use]
    pub fn other(self) -> Self {
        match self {
            Axis::X => Axis::Z,
            Axis::Z => Axis::X,
        }
    }
}

impl Side {
    /// The other side.
    #[must_use]
    pub fn other(self) -> Self {
        match self {
            Side::Low => Side::High,
            Side::High => Side::Low,
        }
    }
}

impl Bounds {
    /// The whole plane.
    pub const PLANE: Self = Self {
        low: [f32::NEG_INFINITY; 2],
        high: [f32::INFINITY; 2],
    };

    /// Position of the edge on a side.
    #[must_use]
    pub fn edge(&self, axis: Axis, side: Side) -> f32 {
        match side {
            Side::Low => self.low[axis as usize],
            Side::High => self.high[axis as usize],
        }
    }

    /// Length along an axis.
    #[must_use]
    pub fn length(&self, axis: Axis) -> f32 {
        self.edge(axis, Side::High) - self.edge(axis, Side::Low)
    }

    /// The part that lies on a side of a cut.
    #[must_use]
    pub fn beside(&self, axis: Axis, at: f32, side: Side) -> Self {
        let mut part = *self;
        match side {
            Side::Low => part.high[axis as usize] = at,
            Side::High => part.low[axis as usize] = at,
        }
        part
    }

    fn area(&self, owner: OwnerId) -> CellArea {
        CellArea {
            owner,
            west: self.low[0],
            east: self.high[0],
            south: self.low[1],
            north: self.high[1],
        }
    }
}

impl From<&CellArea> for Bounds {
    fn from(area: &CellArea) -> Self {
        Self {
            low: [area.west, area.south],
            high: [area.east, area.north],
        }
    }
}

impl Cut {
    pub(crate) fn side(&self, side: Side) -> &Node {
        match side {
            Side::Low => &self.low,
            Side::High => &self.high,
        }
    }

    /// Bounds of a side, if the area that the cut divides has these `bounds`.
    #[must_use]
    pub fn beside(&self, bounds: &Bounds, side: Side) -> Bounds {
        bounds.beside(self.axis, self.at, side)
    }
}

impl Node {
    /// All its cells, from west to east and south to north.
    pub(crate) fn leaves(&self, bounds: Bounds) -> Vec<(OwnerId, Bounds)> {
        let mut leaves = Vec::new();
        self.gather(bounds, &mut |_| [true, true], &mut leaves);
        leaves
    }

    /// Its cells that touch its edge on a side.
    pub(crate) fn along(&self, bounds: Bounds, axis: Axis, side: Side) -> Vec<(OwnerId, Bounds)> {
        let mut leaves = Vec::new();
        let is_there = |cut: &Cut| [Side::Low, Side::High].map(|part| cut.axis != axis || part == side);
        self.gather(bounds, &mut { is_there }, &mut leaves);
        leaves
    }

    fn gather(&self, bounds: Bounds, enters: &mut impl FnMut(&Cut) -> [bool; 2], leaves: &mut Vec<(OwnerId, Bounds)>) {
        match self {
            Node::Leaf(owner) => leaves.push((*owner, bounds)),
            Node::Cut(cut) => {
                let [low, high] = enters(cut);
                if low {
                    cut.low.gather(cut.beside(&bounds, Side::Low), enters, leaves);
                }
                if high {
                    cut.high.gather(cut.beside(&bounds, Side::High), enters, leaves);
                }
            }
        }
    }

    fn cuts<'a>(&'a self, cuts: &mut Vec<&'a Cut>) {
        if let Node::Cut(cut) = self {
            cuts.push(cut);
            cut.low.cuts(cuts);
            cut.high.cuts(cuts);
        }
    }

    fn find(&mut self, owner: OwnerId) -> Option<&mut Node> {
        match self {
            Node::Leaf(held) => (*held == owner).then_some(self),
            Node::Cut(cut) => match cut.low.find(owner) {
                Some(found) => Some(found),
                None => cut.high.find(owner),
            },
        }
    }

    /// Removes a cell; the other side of its cut takes its place. `None` if the cell was the whole node.
    fn without(self, owner: OwnerId) -> Option<Node> {
        match self {
            Node::Leaf(held) => (held != owner).then_some(self),
            Node::Cut(cut) => {
                let (low, high) = (cut.low.without(owner), cut.high.without(owner));
                match (low, high) {
                    (Some(low), Some(high)) => Some(Node::Cut(Cut {
                        low: Box::new(low),
                        high: Box::new(high),
                        ..cut
                    })),
                    (low, high) => low.or(high),
                }
            }
        }
    }
}

impl Division {
    /// A division of one cell.
    #[must_use]
    pub fn whole(owner: OwnerId) -> Self {
        Self {
            next: 1,
            root: Node::Leaf(owner),
        }
    }

    /// Cells of equal size within this distance (m) of the origin; those at the edges are unbounded. `None` without
    /// owners. An area is cut across its longer side.
    #[must_use]
    pub fn even(owners: &[OwnerId], extent: f32) -> Option<Self> {
        let mut next = 1;
        let inner = Bounds {
            low: [-extent; 2],
            high: [extent; 2],
        };
        let root = even(owners, inner, &mut next)?;
        Some(Self { next, root })
    }

    /// The division that has these areas, if a tree of cuts can make them.
    #[must_use]
    pub fn of_areas(areas: &[CellArea]) -> Option<Self> {
        let mut next = 1;
        let root = recut(areas, &mut next)?;
        Some(Self { next, root })
    }

    /// The areas of all cells.
    #[must_use]
    pub fn areas(&self) -> Vec<CellArea> {
        let leaves = self.root.leaves(Bounds::PLANE);
        leaves.iter().map(|(owner, bounds)| bounds.area(*owner)).collect()
    }

    /// All cells, as bounds.
    pub(crate) fn cells(&self) -> Vec<(OwnerId, Bounds)> {
        self.root.leaves(Bounds::PLANE)
    }

    /// The owners of all cells.
    #[must_use]
    pub fn owners(&self) -> Vec<OwnerId> {
        let leaves = self.root.leaves(Bounds::PLANE);
        leaves.iter().map(|(owner, _)| *owner).collect()
    }

    /// All cuts in pre-order: each before its two sides.
    #[must_use]
    pub fn cuts(&self) -> Vec<&Cut> {
        let mut cuts = Vec::new();
        self.root.cuts(&mut cuts);
        cuts
    }

    /// Cuts the cell of an owner, and gives one side to another owner. Returns whether that was possible: the cut must
    /// leave both of them an area, and the other must have no cell yet.
    pub fn split(&mut self, owner: OwnerId, (axis, at): (Axis, f32), side: Side, newcomer: OwnerId) -> bool {
        let leaves = self.root.leaves(Bounds::PLANE);
        let within = |bounds: &Bounds| bounds.edge(axis, Side::Low) < at && at < bounds.edge(axis, Side::High);
        let fits = leaves.iter().any(|(held, bounds)| *held == owner && within(bounds));
        let is_new = newcomer.0 > 0 && leaves.iter().all(|(held, _)| *held != newcomer);
        if !fits || !is_new || leaves.len() >= MOST_CELLS {
            return false;
        }
        let id = CutId(self.next);
        if let Some(node) = self.root.find(owner) {
            let (low, high) = match side {
                Side::Low => (newcomer, owner),
                Side::High => (owner, newcomer),
            };
            *node = Node::Cut(Cut {
                id,
                axis,
                at,
                low: Box::new(Node::Leaf(low)),
                high: Box::new(Node::Leaf(high)),
            });
        }
        self.next += 1;
        true
    }

    /// Removes the cell of an owner. Returns whether there was one, and others to take over its area.
    pub fn remove(&mut self, owner: OwnerId) -> bool {
        let owners = self.owners();
        if owners.len() < 2 || !owners.contains(&owner) {
            return false;
        }
        if let Some(root) = self.root.clone().without(owner) {
            self.root = root;
        }
        true
    }
}

fn even(owners: &[OwnerId], inner: Bounds, next: &mut u32) -> Option<Node> {
    if let [] | [_] = owners {
        return owners.first().map(|owner| Node::Leaf(*owner));
    }
    let id = CutId(*next);
    *next += 1;
    let axis = if inner.length(Axis::X) >= inner.length(Axis::Z) {
        Axis::X
    } else {
        Axis::Z
    };
    let (low, high) = owners.split_at(owners.len() / 2);
    let share = low.len() as f32 / owners.len() as f32;
    let at = inner.edge(axis, Side::Low) + inner.length(axis) * share;
    Some(Node::Cut(Cut {
        id,
        axis,
        at,
        low: Box::new(even(low, inner.beside(axis, at, Side::Low), next)?),
        high: Box::new(even(high, inner.beside(axis, at, Side::High), next)?),
    }))
}

/// Cuts along the middle one of those edges that pass through no area, so that the tree is balanced.
fn recut(areas: &[CellArea], next: &mut u32) -> Option<Node> {
    if let [] | [_] = areas {
        return areas.first().map(|area| Node::Leaf(area.owner));
    }
    let bounds: Vec<(OwnerId, Bounds)> = areas.iter().map(|area| (area.owner, Bounds::from(area))).collect();
    for axis in [Axis::X, Axis::Z] {
        let edges = bounds.iter().map(|(_, bounds)| bounds.edge(axis, Side::Low));
        let passes = |at: f32, (_, bounds): &(OwnerId, Bounds)| {
            bounds.edge(axis, Side::Low) < at && at < bounds.edge(axis, Side::High)
        };
        let mut cuts: Vec<f32> = edges
            .filter(|at| bounds.iter().all(|one| !passes(*at, one)))
            .filter(|at| bounds.iter().any(|(_, one)| one.edge(axis, Side::High) <= *at))
            .collect();
        cuts.sort_unstable_by(f32::total_cmp);
        let Some(&at) = cuts.get(cuts.len() / 2) else { continue };
        let id = CutId(*next);
        *next += 1;
        let is_low = |area: &CellArea| Bounds::from(area).edge(axis, Side::High) <= at;
        let (low, high): (Vec<CellArea>, Vec<CellArea>) = areas.iter().copied().partition(is_low);
        return Some(Node::Cut(Cut {
            id,
            axis,
            at,
            low: Box::new(recut(&low, next)?),
            high: Box::new(recut(&high, next)?),
        }));
    }
    None
}
