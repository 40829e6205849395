//! The realm's definitions in db: everything that reads or writes stored entities uses the present ones, and the task that
//! folds changes them (rule M7).

use std::sync::Arc;

use annals_def::Schema;
use annals_ids::Hash;
use annals_wire::control::{ChangeDefinitions, DefinitionsChanged};
use tokio::sync::{RwLock, RwLockReadGuard, mpsc, oneshot, watch};

/// Requests for a change that wait: the director has one at a time.
const CHANGES: usize = 1;

/// The present definitions, and the way to change them.
pub struct Definitions {
    /// Held by whatever depends on them, so that they do not change meanwhile.
    present: RwLock<Arc<Schema>>,
    /// The same, for those who wait for a change.
    latest: watch::Sender<Arc<Schema>>,
    changes: mpsc::Sender<Change>,
}

/// A request to change the definitions to these.
pub struct Change {
    pub(super) to: Hash,
    /// The new definitions, or why they did not change.
    pub(super) answer: oneshot::Sender<Result<Arc<Schema>, String>>,
}

impl Definitions {
    /// Begins with these; requests for changes go to the receiver.
    #[must_use]
    pub fn new(present: Arc<Schema>) -> (Arc<Self>, mpsc::Receiver<Change>) {
        let (changes, requested) = mpsc::channel(CHANGES);
        let definitions = Self {
            latest: watch::Sender::new(Arc::clone(&present)),
            present: RwLock::new(present),
            changes,
        };
        (Arc::new(definitions), requested)
    }

    /// The present definitions. They do not change before the guard is dropped.
    pub(super) async fn present(&self) -> RwLockReadGuard<'_, Arc<Schema>> {
        self.present.read().await
    }

    /// The present definitions, and notice of each change.
    pub(super) fn subscribe(&self) -> watch::Receiver<Arc<Schema>> {
        self.latest.subscribe()
    }

    /// Has the definitions changed, for the director.
    pub(super) async fn change(&self, ask: &ChangeDefinitions) -> DefinitionsChanged {
        let refused = match self.try_change(ask).await {
            Ok(()) => String::new(),
            Err(refused) => refused,
        };
        DefinitionsChanged { refused }
    }

    async fn try_change(&self, ask: &ChangeDefinitions) -> Result<(), String> {
        let to = ask.to.as_slice().try_into().map(Hash);
        let to = to.map_err(|_| "the request names no definitions".to_owned())?;
        let (answer, answered) = oneshot::channel();
        let mut present = self.present.write().await;
        let ends = || "db is ending".to_owned();
        self.changes.send(Change { to, answer }).await.map_err(|_| ends())?;
        let changed = answered.await.map_err(|_| ends())??;
        *present = Arc::clone(&changed);
        self.latest.send_replace(changed);
        Ok(())
    }
}
