//! The archive of a finished run, read back for the checkers.

use std::collections::BTreeMap;

use annals_db::{read_archived, recover};
use annals_event::{Batch, Body, CellCreation, Event, OwnerState, Subject, Thinned};
use annals_ids::{BatchNumber, EntityId, HistoryNumber, LeafIndex, OwnerId, Part, Shard};
use annals_store::immediate;

use crate::world::World;

/// The archive of a run.
pub struct Archive {
    /// Each owner's batches, by number.
    pub logs: BTreeMap<OwnerId, Vec<Batch>>,
    /// All batches, by leaf.
    pub leaves: BTreeMap<(Shard, LeafIndex), (OwnerId, BatchNumber)>,
    /// All batches in the order in which they were archived.
    pub order: Vec<(OwnerId, BatchNumber)>,
    /// Events that others may see, by entity part and history number; more than one event per number is a defect.
    pub histories: BTreeMap<(EntityId, Part), BTreeMap<HistoryNumber, Vec<Event>>>,
    /// The creation of each cell part.
    pub cells: BTreeMap<EntityId, CellCreation>,
    /// Each owner's state, folded from its whole log.
    pub states: BTreeMap<OwnerId, OwnerState>,
}

impl Archive {
    /// Reads the archive of a world that has come to rest.
    ///
    /// # Panics
    /// If the archive cannot be read or does not fold.
    #[must_use]
    pub fn read(world: &World) -> Self {
        let store = world.truth();
        let owners = immediate(annals_director::read_owners(&store)).expect("the simulated store answers");
        let mut archive = Self {
            logs: BTreeMap::new(),
            leaves: BTreeMap::new(),
            order: Vec::new(),
            histories: BTreeMap::new(),
            cells: BTreeMap::new(),
            states: BTreeMap::new(),
        };
        for (owner, record) in owners {
            let mut state = OwnerState::new(owner, record.kind);
            loop {
                let read = immediate(read_archived(&store, record.shard, owner, state.tail.batch, usize::MAX));
                let batches = read.unwrap_or_else(|error| panic!("seed {}: {error}", world.seed));
                if batches.is_empty() {
                    break;
                }
                for (leaf, kept) in batches {
                    let thinned = kept.is_thinned().then(|| kept.header().to_vec());
                    let bytes = world.as_archived(owner, state.tail.batch.next(), kept);
                    let batch = Batch::read(&bytes).unwrap_or_else(|error| panic!("seed {}: {error}", world.seed));
                    state
                        .fold(&batch)
                        .unwrap_or_else(|error| panic!("seed {}: {error}", world.seed));
                    if let Some(thinned) = thinned {
                        let left = Thinned::of(&batch).write();
                        assert!(
                            thinned == left,
                            "seed {}: leaf {leaf} lost protected events",
                            world.seed
                        );
                    }
                    archive.take(owner, (record.shard, leaf), batch);
                }
            }
            let recovered = immediate(recover(&store, record.shard, owner, record.kind));
            let recovered = recovered.unwrap_or_else(|error| panic!("seed {}: {error}", world.seed));
            assert_eq!(
                recovered.state.hash(),
                state.hash(),
                "seed {}: owner {owner}: snapshot and archive give another state than the whole log",
                world.seed
            );
            archive.states.insert(owner, state);
        }
        let order = world.archived.iter().map(|leaf| archive.leaves[leaf]);
        archive.order = order.collect();
        archive
    }

    fn take(&mut self, owner: OwnerId, leaf: (Shard, LeafIndex), batch: Batch) {
        for event in &batch.events {
            if let Body::CellCreated(creation) = &event.body {
                self.cells.insert(creation.entity, (**creation).clone());
            }
            if let (Some(number), Subject::Entity(entity, part)) = (event.history, event.subject) {
                let history = self.histories.entry((entity, part)).or_default();
                history.entry(number).or_default().push(event.clone());
            }
        }
        self.leaves.insert(leaf, (owner, batch.header.number));
        self.logs.entry(owner).or_default().push(batch);
    }
}
