//! The logs of a realm: a stream for each of its shards (rule T).

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use annals_ids::Shard;

use super::History;
use crate::nats::{Bus, StreamError};

/// The streams of a realm's shards, for processes that hold owners. A stream is joined when an owner of its shard is
/// first granted. Clones share the streams.
#[derive(Debug, Clone)]
pub struct Logs {
    bus: Bus,
    realm: String,
    replicas: usize,
    joined: Arc<Mutex<BTreeMap<Shard, History>>>,
}

impl Logs {
    /// The logs of a realm, of which these streams are joined.
    #[must_use]
    pub fn new(bus: &Bus, realm: &str, replicas: usize, joined: BTreeMap<Shard, History>) -> Self {
        Self {
            bus: bus.clone(),
            realm: realm.to_owned(),
            replicas,
            joined: Arc::new(Mutex::new(joined)),
        }
    }

    /// The stream of a shard. Waits until db has created it, as long as it takes.
    ///
    /// # Errors
    /// As [`History::join`].
    pub async fn of(&self, shard: Shard) -> Result<History, StreamError> {
        if let Some(history) = self.lock().get(&shard) {
            return Ok(history.clone());
        }
        let history = History::join(&self.bus, &self.realm, shard, self.replicas).await?;
        self.lock().insert(shard, history.clone());
        Ok(history)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<Shard, History>> {
        // The map is valid after any panic: entries are only added.
        self.joined.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
