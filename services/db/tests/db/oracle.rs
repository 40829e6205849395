//! Properties that a store has after folding, checked by reading only the store.

use std::collections::{BTreeMap, BTreeSet};

use annals_db::{
    Prover, StoredEntity, find_stored, read_archived, read_cursor, read_floor, read_horizon, read_stored, recover,
};
use annals_def::Value;
use annals_event::{Batch, Body, Image, OwnerState, Subject, Thinned};
use annals_ids::{Address, BatchNumber, DatabaseId, EntityId, Hash, LeafIndex, OwnerId, OwnerKind, Shard};
use annals_proof::{Frontier, leaf_hash, node_hash};
use annals_store::{
    ArchivedBatch,
    layout::{
        archive::{self, Tree},
        database::{self, Checkout},
    },
};

use crate::{
    game, is_base,
    realm::{Owner, Realm, SHARD},
    wait,
};

/// The archive: the owner of each leaf's batch.
pub(crate) struct Archive {
    pub(crate) leaves: Vec<(OwnerId, Batch)>,
}

impl Owner {
    /// The archived form of a batch, which may be thinned unless it is of a base.
    fn expected(&self, written: &[u8], batch: &Batch, found: &ArchivedBatch) -> ArchivedBatch {
        if !found.is_thinned() {
            return ArchivedBatch::Whole(written.to_vec());
        }
        assert!(!is_base(&self.scribe.state), "events of a base were deleted");
        ArchivedBatch::Thinned(Thinned::of(batch).write())
    }
}

impl Realm {
    /// Reads the archive and compares it with what was written: each log is a prefix of its chain, without a gap; each
    /// leaf is some batch; the tree is that over the leaves; and the state at the cursor is the writer's at that batch.
    pub(crate) fn check(&self) -> Archive {
        let seed = self.seed;
        if !self.lanes.is_empty() {
            return self.check_shards();
        }
        let (mut leaves, mut thinned) = (BTreeMap::new(), BTreeSet::new());
        for (owner, held) in &self.owners {
            let archived = self.archived(*owner);
            for (number, (leaf, found)) in archived.iter().enumerate() {
                let written = &held.chain[number].batch.bytes;
                let batch = Batch::read(written).expect("it was written");
                let expected = held.expected(written, &batch, found);
                assert!(*found == expected, "seed {seed}: batch {} of owner {owner}", number + 1);
                thinned.extend(found.is_thinned().then_some(*leaf));
                assert!(leaves.insert(*leaf, (*owner, batch)).is_none(), "seed {seed}: {leaf:?}");
            }
            self.check_recovery(*owner, archived.len());
        }
        let indexes: Vec<u64> = leaves.keys().map(|leaf: &LeafIndex| leaf.0).collect();
        let dense: Vec<u64> = (0..leaves.len() as u64).collect();
        assert_eq!(indexes, dense, "seed {seed}: leaves");
        let archive = Archive {
            leaves: leaves.into_values().collect(),
        };
        self.check_tree(SHARD, &archive);
        self.check_floors(SHARD, &archive, thinned.last().copied());
        archive
    }

    /// The same of several shards, whose leaves are returned in the order of the transactions.
    fn check_shards(&self) -> Archive {
        let seed = self.seed;
        let mut leaves: BTreeMap<(Shard, LeafIndex), (OwnerId, Batch)> = BTreeMap::new();
        let mut thinned: BTreeMap<Shard, LeafIndex> = BTreeMap::new();
        for (owner, held) in &self.owners {
            let archived = self.archived(*owner);
            for ((leaf, found), written) in archived.iter().zip(&held.chain) {
                let bytes = &written.batch.bytes;
                let batch = Batch::read(bytes).expect("it was written");
                let expected = held.expected(bytes, &batch, found);
                assert!(*found == expected, "seed {seed}: a batch of owner {owner}");
                if found.is_thinned() {
                    let newest = thinned.entry(held.shard).or_default();
                    *newest = (*newest).max(*leaf);
                }
                let before = leaves.insert((held.shard, *leaf), (*owner, batch));
                assert!(before.is_none(), "seed {seed}: leaf {leaf:?} of shard {}", held.shard);
            }
            self.check_recovery(*owner, archived.len());
        }
        for shard in self.shards() {
            let own = leaves.range((shard, LeafIndex(0))..=(shard, LeafIndex(u64::MAX)));
            let own: Vec<_> = own
                .map(|((_, leaf), (owner, batch))| (leaf.0, (*owner, batch.clone())))
                .collect();
            assert!(
                (0..).zip(&own).all(|(at, (leaf, _))| at == *leaf),
                "seed {seed}: leaves of shard {shard}"
            );
            let leaves = own.into_iter().map(|(_, leaf)| leaf).collect();
            let archive = Archive { leaves };
            self.check_tree(shard, &archive);
            self.check_floors(shard, &archive, thinned.get(&shard).copied());
        }
        let order = self.order.leaves();
        assert_eq!(order.len(), leaves.len(), "seed {seed}: committed leaves");
        let in_order = order
            .into_iter()
            .map(|leaf| leaves.remove(&leaf).expect("it was committed once"));
        Archive {
            leaves: in_order.collect(),
        }
    }

    /// Checks that each floor is the state that was written at the horizon, and that nothing beyond it was deleted.
    fn check_floors(&self, shard: Shard, archive: &Archive, newest: Option<LeafIndex>) {
        let seed = self.seed;
        let horizon = wait(read_horizon(&self.store, shard)).expect("the store answers");
        let newest_kept = horizon.map(|horizon| horizon.leaf);
        assert!(
            newest <= newest_kept,
            "seed {seed}: {newest:?} was deleted, and the horizon is {newest_kept:?}"
        );
        let Some(horizon) = horizon else { return };
        for (owner, held) in self.owners.iter().filter(|(_, held)| held.shard == shard) {
            let before = archive.leaves[..=horizon.leaf.0 as usize].iter();
            let last = before
                .filter(|(of, _)| of == owner)
                .map(|(_, batch)| batch.header.number)
                .next_back();
            let floor = wait(read_floor(&self.store, shard, *owner, BatchNumber(0))).expect("the store answers");
            let found = floor.as_ref().map(|floor| (floor.tail.batch, floor.hash()));
            let expected = last.map(|last| (last, held.chain[last.0 as usize - 1].state));
            assert_eq!(found, expected, "seed {seed}: the floor of owner {owner}");
        }
    }

    /// Number of archived batches of a log.
    pub(crate) fn archived_count(&self, owner: OwnerId) -> usize {
        self.archived(owner).len()
    }

    fn archived(&self, owner: OwnerId) -> Vec<(LeafIndex, ArchivedBatch)> {
        let mut archived = Vec::new();
        loop {
            let after = BatchNumber(archived.len() as u64);
            let read = wait(read_archived(&self.store, self.owners[&owner].shard, owner, after, 50));
            let read = read.unwrap_or_else(|error| panic!("seed {}: {error}", self.seed));
            if read.is_empty() {
                return archived;
            }
            archived.extend(read);
        }
    }

    fn check_recovery(&self, owner: OwnerId, archived: usize) {
        let (seed, held) = (self.seed, &self.owners[&owner]);
        let cursor = wait(read_cursor(&self.store, owner)).expect("a cursor");
        assert_eq!(cursor.batch.0, archived as u64, "seed {seed}: owner {owner}");
        let recovered = wait(recover(&self.store, held.shard, owner, held.scribe.state.kind));
        let recovered = recovered.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        assert_eq!(recovered.cursor, cursor, "seed {seed}: owner {owner}");
        if let Some(newest) = archived.checked_sub(1) {
            let written = &held.chain[newest];
            assert_eq!(
                (cursor.hash, cursor.epoch),
                (written.batch.hash, written.batch.epoch),
                "seed {seed}: owner {owner}"
            );
            assert_eq!(
                recovered.state.hash(),
                written.state,
                "seed {seed}: the state of owner {owner} at batch {archived}"
            );
        }
    }

    fn check_tree(&self, shard: Shard, archive: &Archive) {
        let read = |key: Vec<u8>| {
            let reading = self.store.read(|transaction| {
                let key = key.clone();
                async move { transaction.get(&key).await }
            });
            wait(reading).expect("the store answers")
        };
        let tree = Tree::decode(read(archive::tree_key(shard)).as_deref()).expect("a tree");
        let leaves: Vec<Hash> = archive.leaves.iter().map(|(_, batch)| batch.hash).collect();
        assert_eq!(tree.size, leaves.len() as u64, "seed {}", self.seed);
        let frontier = Frontier::resume(tree.size, tree.peaks).expect("as many peaks as it takes");
        assert_eq!(frontier.root(), root(&leaves), "seed {}: the tree's root", self.seed);
        let mut prover = wait(Prover::begin(self.store.clone(), shard)).expect("the store answers");
        for size in [leaves.len() / 2, leaves.len()] {
            let found = wait(prover.root(size as u64)).expect("a root");
            assert_eq!(
                found,
                root(&leaves[..size]),
                "seed {}: the root of {size} leaves",
                self.seed
            );
        }
    }

    /// Compares the database with the effects of the archive's batches, in order.
    pub(crate) fn check_database(&self, archive: &Archive) {
        let mut expected = Database::default();
        for (owner, batch) in &archive.leaves {
            expected.take(*owner, self.owners[owner].scribe.state.kind, batch);
        }
        let seed = self.seed;
        for (id, entity) in &expected.entities {
            let reading = self.store.begin();
            let stored = wait(read_stored(&reading, *id)).expect("an entity");
            let (left, right) = (stored.as_ref().map(brief), Some(brief(entity)));
            assert!(
                stored.as_ref() == Some(entity),
                "seed {seed}: entity {id}: {left:?}, not {right:?}"
            );
            let held = wait(reading.get(&database::checkout_key(*id))).expect("a check-out");
            let held = held.map(|value| Checkout::decode(&value).expect("a check-out"));
            assert_eq!(held, expected.checkouts.get(id).copied(), "seed {seed}: entity {id}");
        }
        let mut names: Vec<&Value> = expected.entities.values().filter_map(name_of).collect();
        names.dedup();
        for name in names {
            let found = wait(find_stored(&self.store.begin(), game::avatar(), name)).expect("an index");
            assert_eq!(found, expected.found(name), "seed {seed}: {name:?}");
        }
    }
}

/// RFC 6962's definition, word for word, over hashes of leaves.
fn root(leaves: &[Hash]) -> Hash {
    match leaves {
        [] => Frontier::new().root(),
        [leaf] => *leaf,
        _ => {
            let split = leaves.len().next_power_of_two() / 2;
            node_hash(root(&leaves[..split]), root(&leaves[split..]))
        }
    }
}

#[test]
fn the_oracle_distinguishes_leaves_from_nodes() {
    assert_ne!(root(&[leaf_hash(b"a"), leaf_hash(b"b")]), leaf_hash(b"ab"));
}

/// The expected database, from the archive alone.
#[derive(Default)]
struct Database {
    states: BTreeMap<OwnerId, OwnerState>,
    entities: BTreeMap<DatabaseId, StoredEntity>,
    checkouts: BTreeMap<DatabaseId, Checkout>,
    /// Activations that have ended without their cell part, although the base part knew of none.
    waiting: BTreeMap<EntityId, (DatabaseId, Checkout)>,
    /// Present holder of each name: the first that took it and has not given it up.
    names: Vec<(Value, DatabaseId)>,
}

impl Database {
    fn take(&mut self, owner: OwnerId, kind: OwnerKind, batch: &Batch) {
        let mut wanted: Vec<(Subject, Body, Image)> = Vec::new();
        let state = self.states.entry(owner).or_insert_with(|| OwnerState::new(owner, kind));
        let noted = state.fold_with(batch, |state, event| {
            let Subject::Entity(entity, _) = event.subject else {
                return;
            };
            if let Some(image) = state.entities.get(&entity) {
                wanted.push((event.subject, event.body.clone(), image.clone()));
            }
        });
        noted.expect("what was archived folds");
        for (subject, body, image) in wanted {
            let Subject::Entity(entity, _) = subject else { continue };
            match (body, image.base()) {
                (Body::Stored { database }, Some(base)) => {
                    let cells = self.states.values().filter(|state| !is_base(state));
                    let real = cells
                        .clone()
                        .filter_map(|state| Some((state.owner, state.entities.get(&entity)?)));
                    // Around a hole it may be real twice.
                    let real = real.max_by_key(|(at, image)| (image.history, base.cell == Some(*at)));
                    let real = real.map(|(_, image)| image);
                    let under_way = cells.flat_map(|state| state.departing.values());
                    let under_way = under_way.filter(|(id, _)| *id == entity).map(|(_, image)| image).next();
                    let cell = base.cell.and_then(|_| real.or(under_way)).cloned();
                    self.write(database, &image);
                    cell.iter().for_each(|cell| self.write(database, cell));
                    let number = base.checkout;
                    self.checkouts.entry(database).or_insert(Checkout { owner, number });
                }
                (Body::Destroyed, Some(base)) => {
                    let number = base.checkout;
                    let life = (base.database, Checkout { owner, number });
                    if base.database.0 != 0 && base.cell.is_none() && self.has_cell(entity) {
                        self.waiting.insert(entity, life);
                    } else {
                        self.give_back(life);
                    }
                }
                (Body::Destroyed, None) => {
                    let home = self.states.get(&image.home);
                    let base = home.and_then(|home| home.entities.get(&entity)?.base());
                    if let Some(database) = base.map(|base| base.database).filter(|id| id.0 != 0) {
                        self.write(database, &image);
                    } else if let Some(life) = self.waiting.get(&entity).copied() {
                        self.write(life.0, &image);
                        if !self.has_cell(entity) {
                            self.waiting.remove(&entity);
                            self.give_back(life);
                        }
                    }
                }
                _ => {}
            }
        }
    }

    /// Whether a cell part is real, or in hand-over, as far as the archive goes.
    fn has_cell(&self, entity: EntityId) -> bool {
        self.states.values().filter(|state| !is_base(state)).any(|state| {
            let mut departing = state.departing.iter().filter(|(_, (id, _))| *id == entity);
            let is_under_way = departing.any(|((to, number), _)| {
                let receiver = self.states.get(to);
                let taken = receiver.and_then(|receiver| receiver.links.taken.get(&Address::Owner(state.owner)));
                taken.is_none_or(|taken| taken < number)
            });
            state.entities.contains_key(&entity) || is_under_way
        })
    }

    fn give_back(&mut self, (database, life): (DatabaseId, Checkout)) {
        if self.checkouts.get(&database) == Some(&life) {
            self.checkouts.remove(&database);
        }
    }

    fn write(&mut self, id: DatabaseId, part: &Image) {
        let entity = self.entities.entry(id).or_default();
        entity.entity_type = game::avatar().name.clone();
        for property in game::avatar().properties.iter().filter(|property| property.persistent) {
            if let Some(value) = part.properties.get(&property.index) {
                let mut value = value.clone();
                if let ("kit", Value::Dict(fields)) = (property.name.as_str(), &mut value) {
                    // `wet` is not persistent.
                    fields[1] = Value::Int(0);
                }
                entity.properties.insert(property.name.clone(), value);
            }
        }
        let name = name_of(entity).cloned();
        self.names
            .retain(|(known, holder)| *holder != id || Some(known) == name.as_ref());
        if let Some(name) = name
            && self.names.iter().all(|(known, _)| *known != name)
        {
            self.names.push((name, id));
        }
    }

    fn found(&self, name: &Value) -> Option<DatabaseId> {
        self.names
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, holder)| *holder)
    }
}

/// A short description of an entity.
fn brief(entity: &StoredEntity) -> Vec<String> {
    let value = |value: &Value| match value {
        Value::Bytes(bytes) => format!("{} bytes", bytes.len()),
        value => format!("{value:?}"),
    };
    let properties = entity.properties.iter();
    properties
        .map(|(name, held)| format!("{name}: {}", value(held)))
        .collect()
}

fn name_of(entity: &StoredEntity) -> Option<&Value> {
    let name = entity.properties.get("name")?;
    (*name != Value::Unicode(String::new())).then_some(name)
}
