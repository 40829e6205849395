//! Proofs and tiles of generated trees, against the definitions in RFC 6962, and its published tree.

use std::{cell::RefCell, collections::BTreeMap};

use annals_ids::Hash;
use annals_proof::{
    Frontier, Node, Span, Tile, Tiles, TreeHead, leaf_hash, node_hash,
    tree::{OutsideTree, consistency, inclusion},
    verify::Unproven,
    verify_consistency, verify_inclusion,
};

/// Number of leaves of the largest tree for which every pair is proven. More than the width of a tile, so that all
/// shapes occur.
const LEAVES: u64 = 300;

fn leaf(i: u64) -> Hash {
    leaf_hash(&i.to_le_bytes())
}

fn leaves(count: u64) -> Vec<Hash> {
    (0..count).map(leaf).collect()
}

/// The definitions of RFC 6962, section 2.1, over leaves of which each run is hashed once.
struct Definition {
    leaves: Vec<Hash>,
    known: RefCell<BTreeMap<(usize, usize), Hash>>,
}

impl Definition {
    fn of(leaves: Vec<Hash>) -> Self {
        let known = RefCell::default();
        Self { leaves, known }
    }

    /// MTH of D[start:end].
    fn tree_hash(&self, start: usize, end: usize) -> Hash {
        if let Some(hash) = self.known.borrow().get(&(start, end)) {
            return *hash;
        }
        let middle = start + split(end - start);
        let hash = match end - start {
            0 => Frontier::new().root(),
            1 => self.leaves[start],
            _ => node_hash(self.tree_hash(start, middle), self.tree_hash(middle, end)),
        };
        self.known.borrow_mut().insert((start, end), hash);
        hash
    }

    /// PATH of the leaf `m` in D[start:end], section 2.1.1.
    fn path(&self, m: usize, start: usize, end: usize) -> Vec<Hash> {
        if end - start == 1 {
            return Vec::new();
        }
        let middle = start + split(end - start);
        let (mut below, beside) = if m < middle {
            (self.path(m, start, middle), self.tree_hash(middle, end))
        } else {
            (self.path(m, middle, end), self.tree_hash(start, middle))
        };
        below.push(beside);
        below
    }

    /// SUBPROOF of D[start:end], where the old tree has the leaves before `m`, section 2.1.2.
    fn subproof(&self, m: usize, start: usize, end: usize, is_known: bool) -> Vec<Hash> {
        if m == end {
            let hash = self.tree_hash(start, end);
            return if is_known { Vec::new() } else { vec![hash] };
        }
        let middle = start + split(end - start);
        let (mut below, beside) = if m <= middle {
            (self.subproof(m, start, middle, is_known), self.tree_hash(middle, end))
        } else {
            (self.subproof(m, middle, end, false), self.tree_hash(start, middle))
        };
        below.push(beside);
        below
    }
}

fn split(count: usize) -> usize {
    count.next_power_of_two() / 2
}

/// All complete subtrees of a tree.
struct Subtrees(Vec<Vec<Hash>>);

impl Subtrees {
    fn of(leaves: &[Hash]) -> Self {
        let mut levels = vec![leaves.to_vec()];
        while levels[levels.len() - 1].len() > 1 {
            let below = &levels[levels.len() - 1];
            let above = below.chunks_exact(2).map(|pair| node_hash(pair[0], pair[1])).collect();
            levels.push(above);
        }
        Self(levels)
    }

    fn hash_all(&self, spans: &[Span]) -> Vec<Hash> {
        let read = |node: Node| {
            let index = usize::try_from(node.index).expect("small");
            let found = self.0.get(usize::from(node.level)).and_then(|level| level.get(index));
            found.copied().ok_or(())
        };
        let hashes = spans.iter().map(|span| span.hash(read));
        hashes
            .collect::<Result<_, ()>>()
            .expect("every span consists of complete subtrees")
    }
}

#[test]
fn inclusion_proofs_of_all_leaves_equal_the_definition() {
    let subtrees = Subtrees::of(&leaves(LEAVES));
    let definition = Definition::of(leaves(LEAVES));
    for size in 0..=LEAVES {
        let end = usize::try_from(size).expect("small");
        let root = definition.tree_hash(0, end);
        assert_eq!(subtrees.hash_all(&[Span::whole(size)]), [root], "{size} leaves");
        let head = TreeHead { size, root };
        for index in 0..size {
            let at = usize::try_from(index).expect("small");
            let proof = subtrees.hash_all(&inclusion(index, size).expect("inside"));
            assert_eq!(proof, definition.path(at, 0, end), "leaf {index} of {size}");
            assert_eq!(
                verify_inclusion(leaf(index), index, head, &proof),
                Ok(()),
                "leaf {index} of {size}"
            );
        }
        assert_eq!(inclusion(size, size), Err(OutsideTree::Leaf { leaf: size, size }));
        assert!(verify_inclusion(leaf(size), size, head, &[]).is_err());
    }
}

#[test]
fn consistency_proofs_between_all_trees_verify() {
    let leaves = leaves(LEAVES);
    let subtrees = Subtrees::of(&leaves);
    let definition = Definition::of(leaves.clone());
    let head = |size: usize| TreeHead {
        size: size as u64,
        root: definition.tree_hash(0, size),
    };
    for new in 0..=leaves.len() {
        for old in 0..=new {
            let proof = subtrees.hash_all(&consistency(old as u64, new as u64).expect("in order"));
            if old > 0 {
                assert_eq!(proof, definition.subproof(old, 0, new, true), "{old} to {new}");
            }
            assert_eq!(
                verify_consistency(head(old), head(new), &proof),
                Ok(()),
                "{old} to {new}"
            );
            if old < new {
                let shrunk = OutsideTree::Shrunk {
                    old: new as u64,
                    new: old as u64,
                };
                assert_eq!(consistency(new as u64, old as u64), Err(shrunk));
                assert_eq!(
                    verify_consistency(head(new), head(old), &proof),
                    Err(Unproven::Outside(shrunk))
                );
            }
        }
    }
}

/// Calls `refused` with every proof that differs from `proof` in one bit, or has one element too many, missing,
/// repeated or out of order.
fn for_each_change(proof: &[Hash], mut refused: impl FnMut(&[Hash])) {
    for element in 0..proof.len() {
        for bit in 0..256 {
            let mut changed = proof.to_vec();
            changed[element].0[bit / 8] ^= 1 << (bit % 8);
            refused(&changed);
        }
        let mut changed = proof.to_vec();
        changed.remove(element);
        refused(&changed);
        let mut changed = proof.to_vec();
        changed.insert(element, proof[element]);
        refused(&changed);
        if element > 0 {
            let mut changed = proof.to_vec();
            changed.swap(element - 1, element);
            refused(&changed);
        }
    }
    for more in [Hash::ZERO, Frontier::new().root()] {
        refused(&[proof, &[more]].concat());
        refused(&[&[more], proof].concat());
    }
}

#[test]
fn every_changed_proof_is_refused() {
    let leaves = leaves(20);
    let subtrees = Subtrees::of(&leaves);
    let definition = Definition::of(leaves.clone());
    let head = |size: u64| {
        let root = definition.tree_hash(0, usize::try_from(size).expect("small"));
        TreeHead { size, root }
    };
    for size in 1..=leaves.len() as u64 {
        for index in 0..size {
            let proof = subtrees.hash_all(&inclusion(index, size).expect("inside"));
            for_each_change(&proof, |changed| {
                let verdict = verify_inclusion(leaf(index), index, head(size), changed);
                assert!(verdict.is_err(), "leaf {index} of {size}: {changed:?}");
            });
            for other in (0..size).filter(|other| *other != index) {
                let verdict = verify_inclusion(leaf(index), other, head(size), &proof);
                assert!(verdict.is_err(), "leaf {index} of {size} in the place of {other}");
            }
            let verdict = verify_inclusion(leaf(index + 1), index, head(size), &proof);
            assert!(verdict.is_err(), "another leaf in the place of {index} of {size}");
        }
        for old in 0..=size {
            let proof = subtrees.hash_all(&consistency(old, size).expect("in order"));
            for_each_change(&proof, |changed| {
                let verdict = verify_consistency(head(old), head(size), changed);
                assert!(verdict.is_err(), "{old} to {size}: {changed:?}");
            });
            let mut other = head(old);
            other.root.0[0] ^= 1;
            assert!(
                verify_consistency(other, head(size), &proof).is_err(),
                "{old} to {size}"
            );
            let mut other = head(size);
            other.root.0[31] ^= 0x80;
            let verdict = verify_consistency(head(old), other, &proof);
            // Anything continues an empty tree.
            assert_eq!(verdict.is_err(), old > 0, "{old} to {size}");
        }
    }
}

#[test]
fn proofs_at_the_largest_sizes_have_bounded_length() {
    let size = u64::MAX;
    for leaf in [0, 1, 1 << 63, size - 2, size - 1] {
        let spans = inclusion(leaf, size).expect("inside");
        assert!(spans.len() <= 64, "{leaf}: {}", spans.len());
        assert!(spans.iter().flat_map(|span| span.nodes()).count() < 200);
        assert!(!Tiles::needed(&spans, size).is_empty());
    }
    for old in [1, 2, 1 << 63, (1 << 63) + 1, size - 1] {
        let spans = consistency(old, size).expect("in order");
        assert!(spans.len() <= 65, "{old}: {}", spans.len());
    }
    let head = |size| TreeHead { size, root: Hash::ZERO };
    for hashes in [0, 1, 63, 64, 65, 66] {
        let path = vec![Hash::ZERO; hashes];
        for number in [1, 2, 1 << 63, size - 1] {
            assert!(verify_inclusion(Hash::ZERO, number, head(size), &path).is_err());
            assert!(verify_consistency(head(number), head(size), &path).is_err());
        }
    }
}

#[test]
fn proofs_are_computed_from_tiles() {
    // Three levels of tiles need 65,536 leaves or more; so a few sizes around the edges of tiles.
    let count = 66_000;
    let leaves = leaves(count);
    let subtrees = Subtrees::of(&leaves);
    let hashes_of = |tile: Tile| -> Vec<Hash> {
        let from = usize::try_from(tile.index() * 256).expect("small");
        subtrees.0[usize::from(tile.level()) * 8][from..from + usize::from(tile.width())].to_vec()
    };
    for size in [1, 255, 256, 257, 511, 513, 65_535, 65_536, 65_537, count] {
        let old_sizes = [1, 2, 255, 256, 300, 512, 65_535, 65_536, 65_900];
        let spans = old_sizes.into_iter().filter(|old| *old <= size).flat_map(|old| {
            let proofs = [consistency(old, size), inclusion(old - 1, size)];
            proofs.into_iter().flat_map(|spans| spans.expect("inside"))
        });
        let spans: Vec<Span> = spans.chain([Span::whole(size)]).collect();
        let needed = Tiles::needed(&spans, size);
        let mut tiles = Tiles::default();
        for tile in &needed {
            let contents = Tile::encode(&hashes_of(*tile));
            assert_eq!(contents.len(), usize::from(tile.width()) * 32);
            tiles.insert(*tile, tile.decode(&contents).expect("as long as it is wide"));
        }
        assert_eq!(tiles.hash_all(&spans), Ok(subtrees.hash_all(&spans)), "{size} leaves");
        let all: Vec<Tile> = Tile::all(size).collect();
        assert!(needed.iter().all(|tile| all.contains(tile)), "{size} leaves");
        if let Some(first) = needed.first() {
            let mut without = Tiles::default();
            needed
                .iter()
                .filter(|tile| *tile != first)
                .for_each(|tile| without.insert(*tile, hashes_of(*tile)));
            assert!(without.hash_all(&spans).is_err(), "{size} leaves without {first}");
        }
    }
}

#[test]
fn a_tree_has_the_specified_tiles() {
    let paths = |size| Tile::all(size).map(|tile| tile.to_string()).collect::<Vec<_>>();
    assert_eq!(paths(0), [""; 0]);
    assert_eq!(paths(1), ["tile/0/000.p/1"]);
    assert_eq!(paths(256), ["tile/0/000", "tile/1/000.p/1"]);
    // The specification's own example: 273 full tiles and one of 112 hashes, one full and one of 17, one of 1.
    let tiles = paths(70_000);
    assert_eq!(tiles.len(), 273 + 1 + 1 + 1 + 1);
    assert_eq!(
        tiles[273..],
        ["tile/0/273.p/112", "tile/1/000", "tile/1/001.p/17", "tile/2/000.p/1"]
    );
}

#[test]
fn a_tile_has_one_path() {
    let paths = [
        (0, 0, 256, "tile/0/000"),
        (0, 999, 255, "tile/0/999.p/255"),
        (3, 1_234_067, 256, "tile/3/x001/x234/067"),
        (1, 1_000, 1, "tile/1/x001/000.p/1"),
        (7, 0, 17, "tile/7/000.p/17"),
        (0, (1 << 56) - 1, 255, "tile/0/x072/x057/x594/x037/x927/935.p/255"),
    ];
    for (level, index, width, path) in paths {
        let tile = Tile::new(level, index, width).expect("a tile");
        assert_eq!(tile.to_string(), path);
        assert_eq!(path.parse(), Ok(tile));
    }
    let none = [
        "",
        "tile",
        "tile/0",
        "tile/0/",
        "tile/0/0",
        "tile/0/0000",
        "tile/0/x000/000",
        "tile/0/001/000",
        "tile/0/x001/x000",
        "tile/00/000",
        "tile/+0/000",
        "tile/0/+00",
        "tile/8/000",
        "tile/7/001",
        "tile/63/000",
        "tile/entries/000",
        "tile/0/000.p/0",
        "tile/0/000.p/256",
        "tile/0/000.p/01",
        "tile/0/000.p/",
        "tile/0/000.p",
        "/tile/0/000",
        "tile/0/000/",
        "tile/0/x072/x057/x594/x037/x927/936",
        "tile/8/0/000",
    ];
    for path in none {
        assert!(path.parse::<Tile>().is_err(), "{path}");
    }
    assert_eq!(Tile::new(0, 0, 0), None);
    assert_eq!(Tile::new(0, 0, 257), None);
    assert_eq!(Tile::new(8, 0, 1), None);
}

fn hex(digits: &str) -> Hash {
    digits.parse().expect("64 hexadecimal digits")
}

/// The tree of eight leaves with which implementations of Certificate Transparency are tested.
fn reference_leaves() -> Vec<Hash> {
    let leaves: [&[u8]; 8] = [
        b"",
        b"\x00",
        b"\x10",
        b"\x20\x21",
        b"\x30\x31",
        b"\x40\x41\x42\x43",
        b"\x50\x51\x52\x53\x54\x55\x56\x57",
        b"\x60\x61\x62\x63\x64\x65\x66\x67\x68\x69\x6a\x6b\x6c\x6d\x6e\x6f",
    ];
    leaves.into_iter().map(leaf_hash).collect()
}

const REFERENCE_ROOTS: [&str; 8] = [
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
    "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
];

#[test]
fn the_published_tree_has_the_published_roots_and_proofs() {
    let leaves = reference_leaves();
    let subtrees = Subtrees::of(&leaves);
    let head = |size: u64| TreeHead {
        size,
        root: hex(REFERENCE_ROOTS[usize::try_from(size - 1).expect("small")]),
    };
    for size in 1..=8 {
        assert_eq!(
            subtrees.hash_all(&[Span::whole(size)]),
            [head(size).root],
            "{size} leaves"
        );
    }
    let b = hex("96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7");
    let cd = hex("5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e");
    let e = hex("bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b");
    let ef = hex("0ebc5d3437fbe2db158b9f126a1d118e308181031d0a949f8dededebc558ef6a");
    let g = hex("b08693ec2e721597130641e8211e7eedccb4c26413963eee6c1e2ed16ffb1a5f");
    let gh = hex("ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0");
    let efgh = hex("6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4");
    let (a, ab, abcd) = (
        hex(REFERENCE_ROOTS[0]),
        hex(REFERENCE_ROOTS[1]),
        hex(REFERENCE_ROOTS[3]),
    );

    // The index counts from 0 here; in the published list, from 1.
    let inclusions = [
        (0, 1, vec![]),
        (0, 8, vec![b, cd, efgh]),
        (5, 8, vec![e, gh, abcd]),
        (2, 3, vec![ab]),
        (1, 5, vec![a, cd, e]),
    ];
    for (index, size, published) in inclusions {
        let spans = inclusion(index, size).expect("inside");
        assert_eq!(subtrees.hash_all(&spans), published, "leaf {index} of {size}");
        let leaf = leaves[usize::try_from(index).expect("small")];
        assert_eq!(verify_inclusion(leaf, index, head(size), &published), Ok(()));
    }
    let consistencies = [
        (1, 1, vec![]),
        (1, 8, vec![b, cd, efgh]),
        (6, 8, vec![ef, gh, abcd]),
        (2, 5, vec![cd, e]),
        (6, 7, vec![ef, g, abcd]),
    ];
    for (old, new, published) in consistencies {
        let spans = consistency(old, new).expect("in order");
        assert_eq!(subtrees.hash_all(&spans), published, "{old} to {new}");
        assert_eq!(verify_consistency(head(old), head(new), &published), Ok(()));
    }
}
