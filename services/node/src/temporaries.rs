//! Values of temporary properties: in memory only, on the owner that holds the part.

use std::collections::BTreeMap;

use annals_def::Value;
use annals_ids::{EntityId, MemberId};

/// The temporary properties that were set on this owner. The state of the log has their initial values, with which
/// they begin again after a hand-over or a take-over.
#[derive(Debug, Default)]
pub(crate) struct Temporaries(BTreeMap<EntityId, BTreeMap<MemberId, Value>>);

impl Temporaries {
    /// The value of a property, if it was set here.
    pub(crate) fn get(&self, entity: EntityId, property: MemberId) -> Option<&Value> {
        self.0.get(&entity)?.get(&property)
    }

    /// Sets a property.
    pub(crate) fn set(&mut self, entity: EntityId, property: MemberId, value: Value) {
        self.0.entry(entity).or_default().insert(property, value);
    }

    /// Removes the values of an entity, whose part begins or ends here.
    pub(crate) fn forget(&mut self, entity: EntityId) {
        self.0.remove(&entity);
    }
}
