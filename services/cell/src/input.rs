//! Inputs and counters of the cell core.

use annals_def::Value;
use annals_event::Place;
use annals_ids::{MemberId, TypeId};
use annals_wire::SpaceMap;

/// An input of a cell core.
#[derive(Clone, Debug, PartialEq)]
pub enum CellInput {
    /// The director has published a new map.
    Map(SpaceMap),
    /// Creates an entity that has only a cell part.
    Create {
        /// Its entity type.
        type_id: TypeId,
        /// Its initial place.
        place: Place,
        /// Properties that differ from their defaults.
        properties: Vec<(MemberId, Value)>,
    },
    /// The process is shutting down: accept no more entities.
    Close,
}

/// What happened on one owner since it was taken over; for monitoring.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Entities handed over to another owner.
    pub offloaded: u64,
    /// Entities taken over from another owner.
    pub onloaded: u64,
    /// Entities sent by another owner and refused here.
    pub refused: u64,
    /// Entities refused by another owner and returned.
    pub returned: u64,
    /// Requests of behaviour or of the operator that could not be fulfilled, and cell parts that could not be created.
    pub denied: u64,
    /// Calls of client methods for one client that were dropped because it did not see the entity.
    pub not_in_view: u64,
    /// Rejected movements of clients: too fast, not allowed by the game, or from before the entity was placed
    /// elsewhere.
    pub rejected_movements: u64,
    /// Events that are impossible according to the protocol (rule H7). An operator must look at any value above 0.
    pub alarms: u64,
}
