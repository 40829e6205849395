//! What a cell core is given, and what it counts.

use annals_def::Value;
use annals_event::Place;
use annals_ids::{MemberId, TypeId};
use annals_wire::SpaceMap;

/// An input of a cell core.
#[derive(Clone, Debug, PartialEq)]
pub enum CellInput {
    /// The director has drawn the map anew.
    Map(SpaceMap),
    /// Make an entity that has only a cell part, with these properties and the defaults of the others.
    Create {
        /// Its type.
        type_id: TypeId,
        /// Where it is to stand.
        place: Place,
        /// Properties that are not to have their defaults.
        properties: Vec<(MemberId, Value)>,
    },
    /// The process is shutting down: take in no entity any more.
    Close,
}

/// What happened on one owner since it was taken over, for whoever watches it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Entities that were sent to another owner.
    pub offloaded: u64,
    /// Entities that were taken from another owner.
    pub onloaded: u64,
    /// Entities that another owner sent and this one refused.
    pub refused: u64,
    /// Entities that another owner refused, so that they are back.
    pub returned: u64,
    /// Requests of behaviour or of the operator that could not be fulfilled, and cell parts that could not be made.
    pub denied: u64,
    /// Movements of clients that were not believed: too fast, not allowed by the game, or from where the entity was before.
    pub disbelieved: u64,
    /// Things that the protocol says cannot happen (rule H7). More than none is for an operator to look at.
    pub alarms: u64,
}
