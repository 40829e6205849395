//! The stored form of a division: its nodes in pre-order, each cut before its two sides.

use std::collections::BTreeSet;

use annals_ids::{OwnerId, SpaceId};
use annals_wire::control::{WireNode, WireTree};
use thiserror::Error;

use super::{Axis, Bounds, Cut, CutId, Division, MOST_CELLS, Node, Side};

/// Why a stored tree is not a division.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum NotATree {
    /// A side of a cut is missing, or nodes are left over.
    #[error("nodes are missing or left over")]
    Shape,
    /// It has more cells than a space can have.
    #[error("it has more than {MOST_CELLS} cells")]
    Size,
    /// A cut lies outside the area that it cuts.
    #[error("cut {0} is outside the area that it cuts")]
    Outside(u32),
    /// Two cuts have the same number, or a cut has a number that is not assigned yet.
    #[error("the number of cut {0} is taken or not assigned yet")]
    Number(u32),
    /// An owner has two cells.
    #[error("owner {0} has two cells")]
    Owner(u32),
}

struct Reader<'a> {
    nodes: std::slice::Iter<'a, WireNode>,
    next: u32,
    cuts: BTreeSet<u32>,
    owners: BTreeSet<u32>,
}

impl Division {
    /// The stored form.
    #[must_use]
    pub fn flat(&self, space: SpaceId) -> WireTree {
        let mut nodes = Vec::new();
        write(&self.root, &mut nodes);
        WireTree {
            space: space.0,
            next: self.next,
            nodes,
        }
    }

    /// Decodes the stored form.
    ///
    /// # Errors
    /// When it is not a division.
    pub fn read(tree: &WireTree) -> Result<Self, NotATree> {
        if tree.nodes.len() >= 2 * MOST_CELLS {
            return Err(NotATree::Size);
        }
        let mut reader = Reader {
            nodes: tree.nodes.iter(),
            next: tree.next,
            cuts: BTreeSet::new(),
            owners: BTreeSet::new(),
        };
        let root = reader.node(Bounds::PLANE)?;
        if reader.nodes.next().is_some() {
            return Err(NotATree::Shape);
        }
        Ok(Self { next: tree.next, root })
    }
}

impl Reader<'_> {
    fn node(&mut self, bounds: Bounds) -> Result<Node, NotATree> {
        let node = *self.nodes.next().ok_or(NotATree::Shape)?;
        if node.owner > 0 {
            let is_new = self.owners.insert(node.owner);
            let leaf = Node::Leaf(OwnerId(node.owner));
            return is_new.then_some(leaf).ok_or(NotATree::Owner(node.owner));
        }
        let axis = if node.along_z { Axis::Z } else { Axis::X };
        let within = bounds.edge(axis, Side::Low) < node.at && node.at < bounds.edge(axis, Side::High);
        if !within {
            return Err(NotATree::Outside(node.cut));
        }
        if node.cut >= self.next || !self.cuts.insert(node.cut) {
            return Err(NotATree::Number(node.cut));
        }
        let low = self.node(bounds.beside(axis, node.at, Side::Low))?;
        let high = self.node(bounds.beside(axis, node.at, Side::High))?;
        Ok(Node::Cut(Cut {
            id: CutId(node.cut),
            axis,
            at: node.at,
            low: Box::new(low),
            high: Box::new(high),
        }))
    }
}

fn write(node: &Node, nodes: &mut Vec<WireNode>) {
    match node {
        Node::Leaf(owner) => nodes.push(WireNode {
            owner: owner.0,
            ..WireNode::default()
        }),
        Node::Cut(cut) => {
            nodes.push(WireNode {
                owner: 0,
                cut: cut.id.0,
                along_z: cut.axis == Axis::Z,
                at: cut.at,
            });
            write(&cut.low, nodes);
            write(&cut.high, nodes);
        }
    }
}
