//! Rule R4 of recovery: a process that was declared dead and resumes appends nothing and writes nothing. That it shows
//! nothing is checked by comparing the bots' files with the archive, which would lack what it showed.

use std::{collections::BTreeMap, time::Duration};

use annals_audit::replay::owners;
use annals_director::Grants;
use annals_event::Header;
use annals_host::{
    log::{Lane, ReadError},
    log_source::Source,
    process::Settings,
};
use annals_ids::{Epoch, OwnerId, ProcessId};

/// Requests to the log before it counts as unavailable: with the timeout of each, half a minute.
const ATTEMPTS: u32 = 40;

/// Interval between requests.
const RETRY_INTERVAL: Duration = Duration::from_millis(250);

/// State of the realm when a process was resumed.
#[derive(Clone, Debug)]
pub(crate) struct Resumed {
    /// By owner, the last message of its log and its epoch.
    logs: BTreeMap<OwnerId, (u64, Epoch)>,
    /// The director's term, and the leader.
    term: (u64, ProcessId),
}

impl Resumed {
    /// Reads the state of a realm.
    pub(crate) async fn look(realm: &str, nats: &str) -> Self {
        let source = source(realm, nats).await;
        let history = source
            .logs
            .get(&annals_host::process::FIRST_SHARD)
            .expect("a live realm has a log");
        let mut logs = BTreeMap::new();
        for owner in owners(&source.store).await.expect("the store answers") {
            let last = history
                .last(owner)
                .await
                .expect("the log answers")
                .expect("it is not empty");
            let (header, _) = Header::read(&last.bytes).expect("a batch");
            logs.insert(owner, (last.sequence, header.epoch));
        }
        let term = Grants::watch(&source.store).await.expect("the store answers");
        Self {
            logs,
            term: (term.number, term.process),
        }
    }

    /// Checks that no batch of an older epoch was appended since, and that the same director leads in the same term.
    pub(crate) async fn check_fenced(&self, source: &Source) -> Result<(), String> {
        let history = source
            .logs
            .get(&annals_host::process::FIRST_SHARD)
            .expect("a live realm has a log");
        for (&owner, &(last, at_waking)) in &self.logs {
            let (mut sequence, mut epoch) = (last + 1, at_waking);
            while let Some(entry) = with_retries(async || history.next(Lane::Log, owner, sequence).await).await {
                let (header, _) = Header::read(&entry.bytes).map_err(|error| error.to_string())?;
                if header.epoch < epoch {
                    return Err(format!(
                        "owner {owner}: batch {} of epoch {} was appended after one of epoch {epoch}",
                        header.number, header.epoch
                    ));
                }
                (sequence, epoch) = (entry.sequence + 1, header.epoch);
            }
        }
        let term = Grants::watch(&source.store).await.map_err(|error| error.to_string())?;
        if (term.number, term.process) != self.term {
            return Err(format!(
                "term {} of director {} came after term {} of {}, without a director timeout",
                term.number, term.process, self.term.0, self.term.1
            ));
        }
        Ok(())
    }
}

/// A realm's log, archive and store.
pub(crate) async fn source(realm: &str, nats: &str) -> Source {
    let settings = Settings {
        realm: realm.parse().expect("the realm's name is one"),
        nats: nats.to_owned(),
        access: annals_host::nats::Access::default(),
        replicas: 1,
    };
    Source::running(&settings).await.expect("the realm runs")
}

/// Asks the log, and retries while it has no leader or is busy.
pub(crate) async fn with_retries<T>(ask: impl AsyncFn() -> Result<T, ReadError>) -> T {
    let mut tries = 0;
    loop {
        match ask().await {
            Ok(answer) => return answer,
            Err(error) => assert!(tries < ATTEMPTS, "{error}"),
        }
        tries += 1;
        tokio::time::sleep(RETRY_INTERVAL).await;
    }
}
