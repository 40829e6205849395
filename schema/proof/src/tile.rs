//! Tiles: a tree divided into files of up to 256 hashes, as in C2SP tlog-tiles (<https://c2sp.org/tlog-tiles>).
//!
//! ```text
//! path     = "tile/" level "/" index [".p/" width]
//! level    = 0 | 1 | … 7, in decimal          (a tree of 64-bit numbers has no more; the specification counts to 63)
//! index    = ("x" digit digit digit "/")* digit digit digit
//! width    = 1 … 255, in decimal: how many hashes a tile has that is not full
//! contents = hash{width}, 32 bytes each
//! ```
//! A tile of level 0 has leaf hashes; a tile of the level above has, for each full tile, the root of the tree over it.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    str::FromStr,
};

use annals_ids::Hash;
use thiserror::Error;

use crate::tree::{Node, Span};

/// Number of hashes of a full tile.
pub const TILE_WIDTH: u16 = 256;

/// Number of tree levels that one level of tiles spans: log2 of [`TILE_WIDTH`].
pub const TILE_HEIGHT: u8 = 8;

/// Number of levels of tiles, for the largest tree.
pub const TILE_LEVELS: u8 = 8;

const _: () = assert!(1 << TILE_HEIGHT == TILE_WIDTH && TILE_LEVELS as u32 * TILE_HEIGHT as u32 == u64::BITS);

/// Size of a hash (bytes).
const HASH_BYTES: usize = 32;

/// Number range of one part of a path: three digits of the index.
const PART: u64 = 1_000;

/// Maximum length of a path: index 2^56 − 1, six parts.
const PATH_BYTES: usize = "tile/0/x072/x057/x594/x037/x927/935.p/255".len();

/// Identifies a tile, and how many of its hashes exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Tile {
    level: u8,
    index: u64,
    width: u16,
}

/// Why a path or contents are not a tile's.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TileError {
    /// The text is not a path of a tile.
    #[error("\"{path}\" is not the path of a tile, such as tile/0/x001/234 or tile/1/000.p/17")]
    Path {
        /// The rejected text, truncated if long.
        path: String,
    },
    /// The contents differ in length from the tile.
    #[error("{tile} must have {expected} bytes, found {bytes}")]
    Length {
        tile: Tile,
        /// The expected number of bytes.
        expected: usize,
        /// The actual number of bytes.
        bytes: usize,
    },
}

impl Tile {
    /// A tile by its numbers; `None` if no tree has it.
    #[must_use]
    pub fn new(level: u8, index: u64, width: u16) -> Option<Self> {
        let last = (u64::MAX >> TILE_HEIGHT).checked_shr(u32::from(level) * u32::from(TILE_HEIGHT))?;
        (index <= last && (1..=TILE_WIDTH).contains(&width)).then_some(Self { level, index, width })
    }

    /// The part of a tile that a tree of `size` leaves has; `None` if it has none.
    #[must_use]
    pub fn within(size: u64, level: u8, index: u64) -> Option<Self> {
        let hashes = size.checked_shr(u32::from(level) * u32::from(TILE_HEIGHT))?;
        let first = index.checked_mul(TILE_WIDTH.into())?;
        let width = hashes.checked_sub(first)?.min(TILE_WIDTH.into());
        Self::new(level, index, width.try_into().ok()?)
    }

    /// The tile from which a complete subtree is computed, as far as a tree of `size` leaves has it; `None` if the
    /// subtree is not in the tree.
    #[must_use]
    pub fn holding(node: Node, size: u64) -> Option<Self> {
        let within = node.level % TILE_HEIGHT;
        let last = node.index.checked_add(1)?.checked_mul(1 << within)? - 1;
        let level = node.level / TILE_HEIGHT;
        let tile = Self::within(size, level, last / u64::from(TILE_WIDTH))?;
        (last % u64::from(TILE_WIDTH) < u64::from(tile.width)).then_some(tile)
    }

    /// All tiles of a tree of `size` leaves, from the leaves up.
    pub fn all(size: u64) -> impl Iterator<Item = Self> {
        (0..TILE_LEVELS).flat_map(move |level| {
            let tiles = (size >> (level * TILE_HEIGHT)).div_ceil(TILE_WIDTH.into());
            (0..tiles).filter_map(move |index| Self::within(size, level, index))
        })
    }

    /// Its level: 0 for leaf hashes.
    #[must_use]
    pub fn level(self) -> u8 {
        self.level
    }

    /// Its index within its level.
    #[must_use]
    pub fn index(self) -> u64 {
        self.index
    }

    /// Number of its hashes.
    #[must_use]
    pub fn width(self) -> u16 {
        self.width
    }

    /// Whether it is full, and thus final.
    #[must_use]
    pub fn is_full(self) -> bool {
        self.width == TILE_WIDTH
    }

    /// Encodes its contents.
    #[must_use]
    pub fn encode(hashes: &[Hash]) -> Vec<u8> {
        hashes.iter().flat_map(|hash| hash.0).collect()
    }

    /// Decodes its contents.
    ///
    /// # Errors
    /// When their length does not match.
    pub fn decode(self, bytes: &[u8]) -> Result<Vec<Hash>, TileError> {
        let expected = usize::from(self.width) * HASH_BYTES;
        if bytes.len() != expected {
            return Err(TileError::Length {
                tile: self,
                expected,
                bytes: bytes.len(),
            });
        }
        let (hashes, _) = bytes.as_chunks::<HASH_BYTES>();
        Ok(hashes.iter().copied().map(Hash).collect())
    }
}

/// Its path.
impl fmt::Display for Tile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "tile/{}/", self.level)?;
        let mut divisor = 1;
        while self.index / divisor >= PART {
            divisor *= PART;
        }
        while divisor > 1 {
            write!(f, "x{:03}/", self.index / divisor % PART)?;
            divisor /= PART;
        }
        write!(f, "{:03}", self.index % PART)?;
        if !self.is_full() {
            write!(f, ".p/{}", self.width)?;
        }
        Ok(())
    }
}

impl FromStr for Tile {
    type Err = TileError;

    fn from_str(path: &str) -> Result<Self, Self::Err> {
        // A tile has exactly one path, so the path is parsed leniently and compared.
        read_path(path)
            .filter(|tile| tile.to_string() == path)
            .ok_or_else(|| TileError::Path {
                path: path.chars().take(PATH_BYTES).collect(),
            })
    }
}

fn read_path(path: &str) -> Option<Tile> {
    if path.len() > PATH_BYTES {
        return None;
    }
    let (level, place) = path.strip_prefix("tile/")?.split_once('/')?;
    let (parts, width) = match place.split_once(".p/") {
        Some((parts, width)) => (parts, width.parse().ok()?),
        None => (place, TILE_WIDTH),
    };
    let index = parts.split('/').try_fold(0u64, |index, part| {
        let digits: u64 = part.trim_start_matches('x').parse().ok()?;
        index.checked_mul(PART)?.checked_add(digits)
    })?;
    Tile::new(level.parse().ok()?, index, width)
}

/// Fetched tiles of a tree, from which spans are hashed.
#[derive(Clone, Debug, Default)]
pub struct Tiles {
    held: BTreeMap<(u8, u64), Vec<Hash>>,
}

/// A tile was not provided or has too few hashes, or the requested subtree is in no tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("none of the given tiles has the subtree {index} of level {level}")]
pub struct NotHeld {
    level: u8,
    index: u64,
}

impl Tiles {
    /// The tiles needed to hash these spans of a tree of `size` leaves.
    #[must_use]
    pub fn needed(spans: &[Span], size: u64) -> BTreeSet<Tile> {
        let nodes = spans.iter().flat_map(|span| span.nodes());
        nodes.filter_map(|node| Tile::holding(node, size)).collect()
    }

    /// Adds the hashes of a tile: those of a wider version of it serve as well.
    pub fn insert(&mut self, tile: Tile, hashes: Vec<Hash>) {
        self.held.insert((tile.level, tile.index), hashes);
    }

    /// The root of a complete subtree.
    ///
    /// # Errors
    /// When the tile that has it was not provided.
    pub fn node(&self, node: Node) -> Result<Hash, NotHeld> {
        let Node { level, index } = node;
        self.find(node).ok_or(NotHeld { level, index })
    }

    fn find(&self, node: Node) -> Option<Hash> {
        let height = node.level % TILE_HEIGHT;
        let first = node.index.checked_mul(1 << height)?;
        let place = (node.level / TILE_HEIGHT, first / u64::from(TILE_WIDTH));
        let from = usize::try_from(first % u64::from(TILE_WIDTH)).ok()?;
        let hashes = self.held.get(&place)?.get(from..from + (1 << height))?;
        Some(root_of(hashes))
    }

    /// The hashes of spans, in the form of a proof.
    ///
    /// # Errors
    /// When a required tile is missing.
    pub fn hash_all(&self, spans: &[Span]) -> Result<Vec<Hash>, NotHeld> {
        spans.iter().map(|span| span.hash(|node| self.node(node))).collect()
    }
}

/// The root of the tree over a tile's hashes, or over a range of them that forms a complete subtree.
#[must_use]
pub fn root_of(hashes: &[Hash]) -> Hash {
    let mut tree = crate::merkle::Frontier::new();
    hashes.iter().for_each(|hash| tree.push(*hash));
    tree.root()
}
