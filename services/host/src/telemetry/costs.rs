//! Costs of the members of entity types in this process, over all owners that it has held.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use annals_def::Schema;
use annals_ids::TypeId;
use annals_node::{Cost, CostKind, Member, Tally};
use serde::{Deserialize, Serialize};

/// Maximum members reported, the most expensive first: more than a world has, and 2 MB.
const MOST: usize = 10_000;

/// Cost of a member since the process started.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct MemberCost {
    pub entity_type: String,
    /// The member's name.
    pub member: String,
    /// `property`, `client method`, `base method` or `cell method`.
    pub kind: String,
    /// Number of changes, or calls.
    pub changes: u64,
    /// Bytes to the log.
    pub log: u64,
    /// Bytes to the entity's own client.
    pub own: u64,
    /// Bytes to other clients.
    pub others: u64,
    /// Bytes to owners with a ghost of the entity.
    pub ghosts: u64,
    /// Bytes of calls to base or cell parts from other owners.
    pub part: u64,
}

/// Costs of all members, by entity type.
#[derive(Debug, Default)]
pub struct Costs(Mutex<BTreeMap<(TypeId, Member), MemberCost>>);

impl MemberCost {
    /// All bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        [self.log, self.own, self.others, self.ghosts, self.part].iter().sum()
    }

    /// Adds the same member's cost elsewhere.
    pub fn add(&mut self, other: &MemberCost) {
        self.changes += other.changes;
        self.log += other.log;
        self.own += other.own;
        self.others += other.others;
        self.ghosts += other.ghosts;
        self.part += other.part;
    }

    fn count(&mut self, cost: Cost) {
        self.changes += cost.of(CostKind::Changes);
        self.log += cost.of(CostKind::Log);
        self.own += cost.of(CostKind::Own);
        self.others += cost.of(CostKind::Others);
        self.ghosts += cost.of(CostKind::Ghosts);
        self.part += cost.of(CostKind::Part);
    }
}

impl Costs {
    /// Adds what an owner has counted since the last call.
    pub fn collect(&self, schema: &Schema, tally: &Tally) {
        let mut costs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for (type_id, member, cost) in tally.take() {
            let known = costs.entry((type_id, member)).or_insert_with(|| {
                let entity_type = schema.entity_type(type_id);
                let name = entity_type.and_then(|found| member.name(found));
                MemberCost {
                    entity_type: entity_type.map_or_else(|| type_id.to_string(), |found| found.name.clone()),
                    member: name.unwrap_or_default().to_owned(),
                    kind: member.kind().to_owned(),
                    ..MemberCost::default()
                }
            });
            known.count(cost);
        }
    }

    /// All costs, the most expensive first.
    pub fn all(&self) -> Vec<MemberCost> {
        let costs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut all: Vec<MemberCost> = costs.values().cloned().collect();
        drop(costs);
        all.sort_by_key(|cost| std::cmp::Reverse(cost.bytes()));
        all.truncate(MOST);
        all
    }
}
