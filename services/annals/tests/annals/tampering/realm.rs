//! A generated realm, everything stored of its archive, and functions to change it and to restore it.

use std::collections::BTreeMap;

use annals_event::{Batch, Header};
use annals_ids::{Hash, HistoryNumber, LeafIndex, LogPosition, OwnerId};
use annals_proof::{Checkpoint, Frontier, KeyKind, KeyName, SignedNote, SignerKey, TreeHead, succession::KeyRecord};
use annals_store::{
    ArchivedBatch, KeyRange, MemoryStore, Store,
    layout::{
        archive::{self, Tree},
        checkpoints, chunks,
        owners::{self, Cursor, OpeningRecord},
        segments, tiles,
    },
    segment::{self, Leaf},
};
use bytes::Bytes;

use crate::world::{SHARD, World};

type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

/// Leaves per segment, if a realm is sealed.
const SEGMENT: usize = 24;

/// Everything that is stored of an archive and can be tampered with.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct State {
    /// The content of each leaf; `None` if it is missing.
    pub(crate) leaves: Vec<Option<Vec<u8>>>,
    pub(crate) places: BTreeMap<LogPosition, u64>,
    pub(crate) tree: Vec<u8>,
    pub(crate) ends: BTreeMap<OwnerId, Cursor>,
    pub(crate) openings: BTreeMap<OwnerId, Vec<OpeningRecord>>,
    /// Tiles by level and index.
    pub(crate) tiles: BTreeMap<(u8, u64), Vec<Hash>>,
    /// Signed checkpoints by size.
    pub(crate) signed: BTreeMap<u64, String>,
    /// Number of first leaves that are sealed.
    pub(crate) sealed: usize,
}

impl State {
    /// The state that matches these leaves: with the checkpoints that still hold, or with those of all sizes signed
    /// anew.
    pub(crate) fn of(leaves: &[Vec<u8>], like: &Self, key: Option<&SignerKey>) -> Self {
        let mut state = Self {
            leaves: leaves.iter().cloned().map(Some).collect(),
            places: BTreeMap::new(),
            tree: Vec::new(),
            ends: like.ends.keys().map(|owner| (*owner, Cursor::default())).collect(),
            openings: BTreeMap::new(),
            tiles: BTreeMap::new(),
            signed: BTreeMap::new(),
            sealed: like.sealed.min(leaves.len() / SEGMENT * SEGMENT),
        };
        let mut tree = Frontier::new();
        let mut hashes = Vec::new();
        for (leaf, bytes) in (0..).zip(leaves) {
            let (header, hash) = Header::read(bytes).unwrap();
            let (owner, batch) = (header.owner, header.number);
            state.places.insert(LogPosition { owner, batch }, leaf);
            let end = Cursor {
                batch,
                hash,
                event: header.tail(hash).event,
                epoch: header.epoch,
            };
            state.ends.insert(owner, end);
            if header.opens {
                let (epoch, number) = (header.epoch, header.number);
                let opening = OpeningRecord { epoch, number, hash };
                state.openings.entry(owner).or_default().push(opening);
            }
            tree.push(hash);
            hashes.push(hash);
            let size = leaf + 1;
            let holds = like.signed.get(&size).filter(|note| root_of(note) == Some(tree.root()));
            let anew = key.filter(|_| like.signed.contains_key(&size) || size == leaves.len() as u64);
            let note = anew.map(|key| sign(key, size, tree.root())).or(holds.cloned());
            state.signed.extend(note.map(|note| (size, note)));
        }
        state.tree = Tree {
            size: tree.size(),
            peaks: tree.peaks().to_vec(),
        }
        .encode();
        state.tiles = tiles_over(hashes);
        state
    }

    /// The rows in which it is stored; segments that are the same in the state `like` are not sealed again.
    fn rows(&self, like: Option<(&Self, &Rows)>) -> Rows {
        let mut rows = Rows::new();
        for first in (0..self.sealed).step_by(SEGMENT) {
            let range = first..first + SEGMENT;
            let last = LeafIndex((first + SEGMENT - 1) as u64);
            let prefixes = [
                segments::index_key(SHARD, last),
                segments::blocks(SHARD, last).begin.to_vec(),
            ];
            if let Some((_, stored)) =
                like.filter(|(like, _)| like.sealed > first && like.leaves[range.clone()] == self.leaves[range.clone()])
            {
                for prefix in prefixes {
                    let same = stored
                        .range(prefix.clone()..)
                        .take_while(|(key, _)| key.starts_with(&prefix));
                    rows.extend(same.map(|(key, value)| (key.clone(), value.clone())));
                }
                continue;
            }
            let leaves = range.map(|place| {
                let bytes = self.leaves[place].clone().unwrap();
                let (header, _) = Header::read(&bytes).unwrap();
                Leaf {
                    leaf: LeafIndex(place as u64),
                    owner: header.owner,
                    batch: header.number,
                    wall: header.wall,
                    archived: ArchivedBatch::of(bytes),
                }
            });
            let (segment, blocks) = segment::seal(SHARD, leaves.collect()).unwrap();
            put(&mut rows, &segments::index_key(SHARD, last), &segment.encode());
            for (number, block) in (0..).zip(&blocks) {
                put(&mut rows, &segments::block_key(SHARD, last, number), block);
            }
        }
        for (leaf, bytes) in (0..).zip(&self.leaves).skip(self.sealed) {
            if let Some(bytes) = bytes {
                put(&mut rows, &archive::leaf_key(SHARD, LeafIndex(leaf)), bytes);
            }
        }
        for (at, leaf) in &self.places {
            let place = archive::encode_place(LeafIndex(*leaf));
            rows.insert(archive::place_key(at.owner, at.batch), place.to_vec());
        }
        rows.insert(archive::tree_key(SHARD), self.tree.clone());
        for (owner, end) in &self.ends {
            rows.insert(owners::cursor_key(*owner), end.encode());
        }
        for (owner, openings) in &self.openings {
            for opening in openings {
                rows.insert(owners::opening_key(*owner, opening.epoch), opening.encode());
            }
        }
        for ((level, index), hashes) in &self.tiles {
            rows.insert(tiles::tile_key(SHARD, *level, *index), tiles::encode_tile(hashes));
        }
        for (size, note) in &self.signed {
            rows.insert(checkpoints::checkpoint_key(SHARD, *size), note.clone().into_bytes());
        }
        rows
    }
}

fn put(rows: &mut Rows, key: &[u8], bytes: &[u8]) {
    rows.extend(chunks(key, bytes).map(|(key, chunk)| (key, chunk.to_vec())));
}

/// Full tiles of leaf hashes, and the tiles above them.
fn tiles_over(leaves: Vec<Hash>) -> BTreeMap<(u8, u64), Vec<Hash>> {
    let mut found = BTreeMap::new();
    let (mut level, mut hashes) = (0_u8, leaves);
    loop {
        let above: Vec<Hash> = hashes.chunks_exact(256).map(annals_proof::tile::root_of).collect();
        for (index, tile) in (0..).zip(hashes.chunks(256)) {
            if level > 0 || tile.len() == 256 {
                found.insert((level, index), tile.to_vec());
            }
        }
        if above.is_empty() {
            return found;
        }
        (level, hashes) = (level + 1, above);
    }
}

fn root_of(note: &str) -> Option<Hash> {
    let note = SignedNote::parse(note.as_bytes()).ok()?;
    Some(note.text().parse::<Checkpoint>().ok()?.head.root)
}

pub(crate) fn sign(key: &SignerKey, size: u64, root: Hash) -> String {
    let checkpoint = Checkpoint {
        origin: "example.com/test".to_owned(),
        head: TreeHead { size, root },
        extensions: Vec::new(),
    };
    let mut note = SignedNote::new(checkpoint.to_string()).unwrap();
    note.sign(key, 1);
    note.to_string()
}

/// A generated realm, with everything stored of its archive.
pub(crate) struct Realm {
    pub(crate) store: Store,
    pub(crate) key: SignerKey,
    pub(crate) state: State,
    /// The archived batches, decoded.
    pub(crate) batches: Vec<Batch>,
    pub(crate) hashes: Vec<Hash>,
    rows: Rows,
}

impl Realm {
    /// A realm after `steps` random steps, with signed checkpoints, tiles if it is large enough, and sealed segments if
    /// `is_sealed`.
    pub(crate) async fn generate(seed: u64, steps: usize, is_sealed: bool) -> Self {
        let memory = MemoryStore::new();
        let mut world = World::new(memory.store()).await;
        for round in 0..steps.div_ceil(8) as u64 {
            world.play(seed * 1_000 + round, 7).await;
            several(&mut world, seed + round);
        }
        world.archive().await;
        world.tile().await;
        let all = world.frozen.len();
        let key = SignerKey::from_seed(KeyName::new("example.com/test").unwrap(), KeyKind::Note, &[7; 32]);
        let record = KeyRecord {
            key: key.verifier(),
            change: None,
        };
        world
            .edit(&checkpoints::signer_key(SHARD, 0), Some(record.to_string().as_bytes()))
            .await;
        let mut tree = Frontier::new();
        for (size, batch) in (1..).zip(&world.frozen) {
            tree.push(batch.hash);
            if size % 20 == 0 || size == all as u64 {
                let note = sign(&key, size, tree.root());
                world
                    .edit(&checkpoints::checkpoint_key(SHARD, size), Some(note.as_bytes()))
                    .await;
            }
        }
        let sealed = if is_sealed {
            world.seal(SEGMENT).await * SEGMENT
        } else {
            0
        };
        let leaves: Vec<Vec<u8>> = world.frozen.iter().map(|batch| batch.bytes.clone()).collect();
        let empty = State {
            leaves: Vec::new(),
            places: BTreeMap::new(),
            tree: Vec::new(),
            ends: world.logs.iter().map(|log| (log.owner, Cursor::default())).collect(),
            openings: BTreeMap::new(),
            tiles: BTreeMap::new(),
            signed: (1..=all as u64)
                .filter(|size| size % 20 == 0)
                .map(|size| (size, String::new()))
                .collect(),
            sealed,
        };
        let state = State::of(&leaves, &empty, Some(&key));
        let rows = state.rows(None);
        for (key, value) in &rows {
            let stored = memory
                .rows()
                .get(&Bytes::copy_from_slice(key))
                .map(|value| value.to_vec());
            assert_eq!(
                stored.as_ref(),
                Some(value),
                "what is stored is what db has stored, row {key:?}"
            );
        }
        Self {
            store: memory.store(),
            key,
            state,
            batches: leaves.iter().map(|bytes| Batch::read(bytes).unwrap()).collect(),
            hashes: world.frozen.iter().map(|batch| batch.hash).collect(),
            rows,
        }
    }

    /// The kept tree head of the first leaves.
    pub(crate) fn head(&self, size: u64) -> TreeHead {
        let mut tree = Frontier::new();
        let first = &self.hashes[..usize::try_from(size).unwrap()];
        first.iter().for_each(|hash| tree.push(*hash));
        let root = tree.root();
        TreeHead { size, root }
    }

    /// The bytes of all leaves.
    pub(crate) fn leaves(&self) -> Vec<Vec<u8>> {
        self.state.leaves.iter().cloned().map(Option::unwrap).collect()
    }

    /// Puts another state into the store.
    pub(crate) async fn change(&self, state: &State) -> Change {
        let rows = state.rows(Some((&self.state, &self.rows)));
        let mut edits = BTreeMap::new();
        for key in self.rows.keys().chain(rows.keys()) {
            if self.rows.get(key) != rows.get(key) {
                edits.insert(key.clone(), rows.get(key).cloned());
            }
        }
        self.edit(edits).await
    }

    /// Changes stored rows.
    pub(crate) async fn edit(&self, edits: BTreeMap<Vec<u8>, Option<Vec<u8>>>) -> Change {
        assert!(!edits.is_empty(), "something is changed");
        let before = edits
            .keys()
            .map(|key| (key.clone(), self.rows.get(key).cloned()))
            .collect();
        write(&self.store, &edits).await;
        Change { before }
    }

    /// Restores the previous rows.
    pub(crate) async fn put_back(&self, change: Change) {
        write(&self.store, &change.before).await;
    }

    /// The rows below a prefix.
    pub(crate) fn rows_below(&self, prefix: &[u8]) -> Vec<(Vec<u8>, Vec<u8>)> {
        let rows = self
            .rows
            .range(prefix.to_vec()..)
            .take_while(|(key, _)| key.starts_with(prefix));
        rows.map(|(key, value)| (key.clone(), value.clone())).collect()
    }
}

/// The previous rows of a change.
#[must_use]
pub(crate) struct Change {
    before: BTreeMap<Vec<u8>, Option<Vec<u8>>>,
}

pub(crate) async fn write(store: &Store, edits: &BTreeMap<Vec<u8>, Option<Vec<u8>>>) {
    let transaction = store.begin();
    for (key, value) in edits {
        match value {
            Some(value) => transaction.set(key, value).unwrap(),
            None => transaction
                .clear_range(&KeyRange::new(key.clone(), annals_store::key_after(key)))
                .unwrap(),
        }
    }
    transaction.commit().await.unwrap();
}

/// Several events of one avatar in one batch.
pub(crate) fn several(world: &mut World, seed: u64) {
    let log = usize::try_from(seed % 3).unwrap();
    let Some(&entity) = world.logs[log].state.entities.keys().next() else {
        return;
    };
    let first = world.next_history(log, entity);
    let events: Vec<_> = (0..2 + seed % 4)
        .map(|more| {
            let level = world.changed("level", (seed * 7 + more) % 200);
            world.event(entity, Some(HistoryNumber(first.0 + more)), 0, level)
        })
        .collect();
    world.append(log, &[], &events);
}
