//! A generated realm's logs on a real nats-server.

use std::{collections::BTreeMap, path::Path};

use annals_event::FrozenBatch;
use annals_host::{
    config::Realm,
    log::{History, Verdict},
    nats::{Bus, Server, ServerOptions},
    process::Settings,
};
use annals_ids::OwnerId;
use annals_store::{Store, remote};
use annals_wire::Subjects;
use bytes::Bytes;

use super::world::{REALM, SHARD, World};

/// Maximum attempts to send a batch.
const TRIES: u32 = 20;

pub(crate) struct Carrier {
    pub(crate) server: Server,
    pub(crate) history: History,
    bus: Bus,
    sent: usize,
    last: BTreeMap<OwnerId, u64>,
}

impl Carrier {
    /// A private server in a folder, with the stream of the realm. The first `archived` batches of the world are not
    /// sent.
    pub(crate) async fn start(folder: &Path, archived: usize) -> Self {
        let server = Server::start(&ServerOptions::new(folder)).await.unwrap();
        let bus = Bus::connect(&server.url(), "test").await.unwrap();
        let history = History::ensure(&bus, REALM, SHARD, 1).await.unwrap();
        Self {
            server,
            history,
            bus,
            sent: archived,
            last: BTreeMap::new(),
        }
    }

    /// Appends all batches that are not appended yet.
    pub(crate) async fn append_all(&mut self, world: &World) {
        for batch in &world.frozen[self.sent..] {
            self.append(batch).await;
        }
        self.sent = world.frozen.len();
    }

    /// Skips the next batch.
    pub(crate) fn skip(&mut self) {
        self.sent += 1;
    }

    /// Appends a batch unchecked; returns its sequence.
    pub(crate) async fn append(&mut self, batch: &FrozenBatch) -> u64 {
        let last = self.last.entry(batch.owner).or_default();
        let bytes = Bytes::copy_from_slice(&batch.bytes);
        for _ in 0..TRIES {
            let verdict = self.history.append(batch.owner, *last, bytes.clone(), &[]).await;
            if let Verdict::Appended(sequence) = verdict {
                *last = sequence;
                return sequence;
            }
            // Neither a timeout nor a conflict is a verdict: a busy machine answers late, and appends late.
            eprintln!("batch {} of owner {}: {verdict:?}", batch.number, batch.owner);
            if let Ok(Some(entry)) = self.history.last(batch.owner).await
                && entry.bytes == bytes
            {
                *last = entry.sequence;
                return entry.sequence;
            }
        }
        panic!("batch {} of owner {} is not appended", batch.number, batch.owner)
    }

    /// Serves the realm's store, as db does.
    pub(crate) fn serve(&self, store: Store) {
        let (client, subject) = (self.bus.client().clone(), Subjects::new(REALM).service("store"));
        tokio::spawn(async move {
            remote::serve(client, subject, store, std::future::pending())
                .await
                .unwrap();
        });
    }

    pub(crate) fn settings(&self) -> Settings {
        Settings {
            realm: REALM.parse::<Realm>().unwrap(),
            nats: self.server.url(),
            access: annals_host::nats::Access::default(),
            replicas: 1,
        }
    }
}
