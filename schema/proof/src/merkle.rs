//! Tree hashing as in RFC 6962, section 2.1.
//!
//! A [`Frontier`] keeps only the right edge of a tree, so that appending a leaf costs a logarithmic number of hashes at
//! worst and one or two on average. It serves both trees of a log: the tree of a batch's events and the tree of a
//! shard's archived batches.

use std::slice;

use annals_ids::Hash;
use sha2::{Digest, Sha256, compress256, digest::generic_array::GenericArray};

const LEAF: u8 = 0;
const NODE: u8 = 1;

/// Block size of SHA-256 (bytes).
const BLOCK: usize = 64;

/// Minimum padding that SHA-256 adds to a message (bytes): a bit and the length.
const PADDING: usize = 9;

/// Initial state of SHA-256 (FIPS 180-4, section 5.3.3).
const INITIAL: [u32; 8] = [
    0x6a09_e667,
    0xbb67_ae85,
    0x3c6e_f372,
    0xa54f_f53a,
    0x510e_527f,
    0x9b05_688c,
    0x1f83_d9ab,
    0x5be0_cd19,
];

/// The hash of a leaf: SHA-256 of a zero byte and the leaf's bytes.
#[must_use]
pub fn leaf_hash(leaf: &[u8]) -> Hash {
    match (leaf.len() + 1 + PADDING).div_ceil(BLOCK) {
        1 => short::<1>([&[LEAF], leaf, &[]]),
        2 => short::<2>([&[LEAF], leaf, &[]]),
        _ => Hash(Sha256::new().chain_update([LEAF]).chain_update(leaf).finalize().into()),
    }
}

/// The hash of an inner node: SHA-256 of a one byte and the hashes of its children.
#[must_use]
pub fn node_hash(left: Hash, right: Hash) -> Hash {
    short::<2>([&[NODE], &left.0, &right.0])
}

/// SHA-256 of a message that is known to fit into this many blocks. Most events and all nodes do, and for them the
/// buffering for messages of arbitrary length takes a good part of the time.
fn short<const BLOCKS: usize>(message: [&[u8]; 3]) -> Hash {
    let mut blocks = [[0; BLOCK]; BLOCKS];
    let bytes = blocks.as_flattened_mut();
    let mut length = 0;
    for part in message {
        bytes[length..length + part.len()].copy_from_slice(part);
        length += part.len();
    }
    bytes[length] = 0x80;
    let bits = (length as u64 * 8).to_be_bytes();
    let end = bytes.len() - bits.len();
    bytes[end..].copy_from_slice(&bits);
    let mut state = INITIAL;
    for block in &blocks {
        compress256(&mut state, slice::from_ref(GenericArray::from_slice(block)));
    }
    let mut hash = [0; 32];
    for (bytes, word) in hash.chunks_exact_mut(4).zip(state) {
        bytes.copy_from_slice(&word.to_be_bytes());
    }
    Hash(hash)
}

/// An append-only tree, reduced to the data for appending and for the root: the roots of its complete subtrees, largest
/// first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Frontier {
    size: u64,
    peaks: Vec<Hash>,
}

impl Frontier {
    /// A tree without leaves.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Resumes a stored tree.
    ///
    /// `None` if a tree of `size` leaves does not have that many peaks.
    #[must_use]
    pub fn resume(size: u64, peaks: Vec<Hash>) -> Option<Self> {
        (peaks.len() == size.count_ones() as usize).then_some(Self { size, peaks })
    }

    /// Appends a leaf by its hash.
    pub fn push(&mut self, leaf: Hash) {
        self.push_with(leaf, |_, _| {});
    }

    /// Appends a leaf by its hash, and calls `on_subtree` for each subtree that it completes, with its height (0 for
    /// the leaf itself) and its root.
    pub fn push_with(&mut self, leaf: Hash, mut on_subtree: impl FnMut(u32, Hash)) {
        let mut hash = leaf;
        on_subtree(0, hash);
        for below in 0..self.size.trailing_ones() {
            let left = self
                .peaks
                .pop()
                .expect("a complete subtree for each low one bit of the size");
            hash = node_hash(left, hash);
            on_subtree(below + 1, hash);
        }
        self.peaks.push(hash);
        self.size += 1;
    }

    /// Number of leaves.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.size
    }

    /// The roots of the complete subtrees, largest first: together with the size, all that must be stored.
    #[must_use]
    pub fn peaks(&self) -> &[Hash] {
        &self.peaks
    }

    /// The tree's root; for an empty tree, the hash of no bytes.
    #[must_use]
    pub fn root(&self) -> Hash {
        let mut peaks = self.peaks.iter().rev();
        match peaks.next() {
            None => Hash(Sha256::digest([]).into()),
            Some(&last) => peaks.fold(last, |right, &left| node_hash(left, right)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The definition of RFC 6962, used as the oracle.
    fn tree_hash(leaves: &[Vec<u8>]) -> Hash {
        match leaves {
            [] => Hash(Sha256::digest([]).into()),
            [leaf] => leaf_hash(leaf),
            _ => {
                let split = leaves.len().next_power_of_two() / 2;
                node_hash(tree_hash(&leaves[..split]), tree_hash(&leaves[split..]))
            }
        }
    }

    #[test]
    fn short_messages_are_hashed_as_any_others() {
        let bytes: Vec<u8> = (0..=255).collect();
        for length in 0..bytes.len() {
            let leaf = &bytes[..length];
            let whole = Sha256::digest([&[LEAF], leaf].concat());
            assert_eq!(leaf_hash(leaf), Hash(whole.into()), "{length} bytes");
        }
        let (left, right) = (leaf_hash(b"left"), leaf_hash(b"right"));
        let whole = Sha256::digest([&[NODE][..], &left.0, &right.0].concat());
        assert_eq!(node_hash(left, right), Hash(whole.into()));
    }

    #[test]
    fn agrees_with_the_definition_at_every_size() {
        let leaves: Vec<Vec<u8>> = (0..130u8).map(|i| vec![i; usize::from(i) % 7]).collect();
        let mut tree = Frontier::new();
        for size in 0..=leaves.len() {
            assert_eq!(tree.root(), tree_hash(&leaves[..size]), "{size} leaves");
            let resumed = Frontier::resume(tree.size(), tree.peaks().to_vec());
            assert_eq!(resumed.as_ref(), Some(&tree), "{size} leaves");
            if let Some(leaf) = leaves.get(size) {
                tree.push(leaf_hash(leaf));
            }
        }
        assert_eq!(Frontier::resume(3, vec![Hash::ZERO]), None);
    }

    #[test]
    fn knows_the_published_vectors() {
        // The eight leaves and roots used by the Certificate Transparency reference tests.
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
        let mut tree = Frontier::new();
        assert_eq!(
            tree.root().to_string(),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
        );
        tree.push(leaf_hash(leaves[0]));
        assert_eq!(
            tree.root().to_string(),
            "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d"
        );
        for leaf in &leaves[1..] {
            tree.push(leaf_hash(leaf));
        }
        assert_eq!(
            tree.root().to_string(),
            "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328"
        );
    }
}
