//! What happened to entities lately: the events since the last tick, and when each property with a level of detail changed.

mod changed;
mod recent;

pub(crate) use changed::PropertyHistory;
pub(crate) use recent::RecentEvents;
