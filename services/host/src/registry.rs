//! Openings and epochs in the store, for the log's driver.

use annals_director::openings::{self, Recorded};
use annals_event::Header;
use annals_ids::{Epoch, OwnerId, Shard};
use annals_node::writer::{Opening, OpeningRefused};
use annals_store::{Store, layout::owners::OpeningRecord};
use futures::future::BoxFuture;

use crate::log::{Holding, Recording, Registry};

/// Reads openings and epochs from the realm's store.
pub(crate) struct StoreRegistry {
    store: Store,
    shard: Shard,
}

impl StoreRegistry {
    /// A registry on a store, for the owners of a shard.
    pub(crate) fn new(store: Store, shard: Shard) -> Self {
        Self { store, shard }
    }
}

impl Registry for StoreRegistry {
    fn record(&self, owner: OwnerId, opening: Opening, connection: String) -> BoxFuture<'static, Recording> {
        let (store, shard) = (self.store.clone(), self.shard);
        Box::pin(async move {
            let Opening { epoch, number, hash } = opening;
            let records = [OpeningRecord { epoch, number, hash }];
            let hash_of = |bytes: &[u8]| Header::read(bytes).ok().map(|(_, hash)| hash);
            match openings::record(&store, shard, owner, &records, &connection, hash_of).await {
                Ok(Recorded::Yes) => Recording::Recorded,
                Ok(Recorded::Superseded) => Recording::Refused(OpeningRefused::Superseded),
                Ok(Recorded::CursorPassed) => Recording::Refused(OpeningRefused::CursorPassed),
                Err(error) => {
                    tracing::debug!(%owner, %error, "an opening is not recorded yet");
                    Recording::Unknown
                }
            }
        })
    }

    fn confirm(&self, owner: OwnerId, epoch: Epoch, connection: String) -> BoxFuture<'static, Holding> {
        let store = self.store.clone();
        Box::pin(async move {
            match openings::confirm(&store, owner, epoch, &connection).await {
                Ok(true) => Holding::Granted,
                Ok(false) => Holding::Lost,
                Err(error) => {
                    tracing::debug!(%owner, %error, "an epoch is not confirmed yet");
                    Holding::Unknown
                }
            }
        })
    }
}
