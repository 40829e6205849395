//! Recent history of entities: the events since the last tick, and the last change of each property with a level of
//! detail.

mod changed;
mod recent;

pub(crate) use changed::PropertyHistory;
pub(crate) use recent::RecentEvents;
