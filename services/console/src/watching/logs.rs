//! State of the logs of a realm: what each owner has logged, what db has folded of it, and what is signed of the
//! archive.

use std::{collections::BTreeMap, time::Duration};

use annals_audit::archive::read_tree;
use annals_db::read_shards;
use annals_event::Header;
use annals_host::{log::History, signer::newest, telemetry::Chain};
use annals_ids::{BatchNumber, OwnerId, OwnerKind, Shard};
use annals_store::{
    Store, StoreError, Transaction,
    layout::{
        owners::{self, Cursor, OwnerRecord},
        shards,
    },
};
use futures::{StreamExt, stream};

use crate::{
    alarms::{self, Alarm},
    casework::Casework,
    live::Live,
};

/// Maximum owners shown: each costs a request to the nats-server.
const OWNERS: usize = 200;

/// Owners whose logs are asked for at the same time.
const ASKED_AT_ONCE: usize = 16;

/// An owner that is held appends at least every 400 ms: after this time its log is blocked.
const BLOCKED_AFTER: Duration = Duration::from_secs(10);

/// Batches that db may be behind the log of an owner: at some ten batches per second, a minute.
const BEHIND: u64 = 600;

/// State of all logs.
#[derive(Debug, Default)]
pub(crate) struct LogReport {
    /// By number.
    pub(crate) owners: Vec<OwnerLog>,
    /// Number of owners that are not shown.
    pub(crate) omitted: usize,
    /// The streams of the logs, one for each shard.
    pub(crate) streams: Vec<StreamFigures>,
    /// The archives, one for each shard.
    pub(crate) archives: Vec<ArchiveFigures>,
    pub(crate) alarms: Vec<Alarm>,
    /// What could not be determined, and why.
    pub(crate) unknown: Vec<String>,
}

/// State of one log.
#[derive(Debug)]
pub(crate) struct OwnerLog {
    pub(crate) owner: OwnerId,
    pub(crate) kind: OwnerKind,
    /// The process that holds it, by the director's number.
    pub(crate) process: Option<u64>,
    /// The newest batch in the log.
    pub(crate) last: Option<BatchNumber>,
    /// How long ago that was stored.
    pub(crate) age: Option<Duration>,
    /// The newest batch that db has folded.
    pub(crate) folded: BatchNumber,
}

/// State of a shard's archive.
#[derive(Debug)]
pub(crate) struct ArchiveFigures {
    pub(crate) shard: Shard,
    /// Batches in it.
    pub(crate) archived: Option<u64>,
    /// Batches under its newest signed checkpoint.
    pub(crate) signed: Option<u64>,
}

/// State of a stream that has logs.
#[derive(Debug)]
pub(crate) struct StreamFigures {
    pub(crate) name: String,
    pub(crate) messages: u64,
    pub(crate) bytes: u64,
    pub(crate) leader: Option<String>,
    /// Replicas besides the leader: name, and whether each is current.
    pub(crate) replicas: Vec<(String, bool)>,
}

impl OwnerLog {
    /// Batches that db has not folded yet.
    pub(crate) fn behind(&self) -> Option<u64> {
        Some(self.last?.0.saturating_sub(self.folded.0))
    }
}

/// Reads the state of the logs. What cannot be read is named in the report.
pub(super) async fn report(casework: &Casework, live: &Live) -> LogReport {
    let mut report = LogReport::default();
    let holders = match live.processes().await {
        Ok(list) => list.processes,
        Err(error) => {
            report
                .unknown
                .push(format!("which process holds which log: {}", Chain(&error)));
            Vec::new()
        }
    };
    let held = holders
        .iter()
        .flat_map(|process| process.owners.iter().map(|owner| (*owner, process.process)));
    let held: BTreeMap<u32, u64> = held.collect();
    match owners_of(casework.store()).await {
        Ok(found) => {
            report.omitted = found.len().saturating_sub(OWNERS);
            let shown = found.into_iter().take(OWNERS);
            let logs = stream::iter(shown).map(|(owner, record, cursor)| {
                let process = held.get(&owner.0).copied();
                of_owner(casework, (record.shard, owner, record.kind), process, cursor)
            });
            let logs: Vec<_> = logs.buffered(ASKED_AT_ONCE).collect().await;
            for (log, problem) in logs {
                report.owners.push(log);
                report.unknown.extend(problem);
            }
        }
        Err(error) => report.unknown.push(format!("the owners: {}", Chain(&error))),
    }
    for history in casework.logs().values() {
        match stream_of(history).await {
            Ok(stream) => report.streams.push(stream),
            Err(error) => report.unknown.push(format!("stream {}: {error}", history.name())),
        }
    }
    match read_shards(casework.store()).await {
        Ok(count) => {
            for shard in shards::all(count) {
                let (archive, problems) = archive_of(casework.store(), shard).await;
                report.archives.push(archive);
                report.unknown.extend(problems);
            }
        }
        Err(error) => report.unknown.push(format!("the archives: {}", Chain(&error))),
    }
    match alarms::of_holes(casework.store()).await {
        Ok(holes) => report.alarms.extend(holes),
        Err(error) => report.unknown.push(format!("the holes in logs: {}", Chain(&error))),
    }
    report.alarms.extend(report.owners.iter().filter_map(of_lag));
    report.alarms.extend(report.owners.iter().filter_map(of_silence));
    report
}

/// The archive of a shard, and what could not be determined of it.
async fn archive_of(store: &Store, shard: Shard) -> (ArchiveFigures, Vec<String>) {
    let mut problems = Vec::new();
    let mut archive = ArchiveFigures {
        shard,
        archived: None,
        signed: None,
    };
    match read_tree(store, shard).await {
        Ok(tree) => archive.archived = Some(tree.size),
        Err(error) => problems.push(format!("the archive of shard {shard}: {}", Chain(&error))),
    }
    match newest(store, shard).await {
        Ok(note) => archive.signed = Some(note.map_or(0, |(size, _)| size)),
        Err(error) => problems.push(format!("the signed checkpoint of shard {shard}: {}", Chain(&error))),
    }
    (archive, problems)
}

/// All owners with their cursors, in one transaction.
async fn owners_of(store: &Store) -> Result<Vec<(OwnerId, OwnerRecord, Cursor)>, StoreError> {
    let read = |transaction: Transaction| async move {
        let mut found = Vec::new();
        for (owner, record) in owners::read_owners(&transaction).await? {
            let cursor = transaction.snapshot().get(&owners::cursor_key(owner)).await?;
            found.push((owner, record, Cursor::decode(cursor.as_deref())?));
        }
        Ok(found)
    };
    store.read(read).await
}

async fn of_owner(
    casework: &Casework,
    (shard, owner, kind): (Shard, OwnerId, OwnerKind),
    process: Option<u64>,
    cursor: Cursor,
) -> (OwnerLog, Option<String>) {
    let mut log = OwnerLog {
        owner,
        kind,
        process,
        last: None,
        age: None,
        folded: cursor.batch,
    };
    let Some(history) = casework.logs().get(&shard) else {
        return (log, None);
    };
    let entry = match history.last(owner).await {
        Ok(entry) => entry,
        Err(error) => return (log, Some(format!("the log of owner {owner}: {}", Chain(&error)))),
    };
    let Some(entry) = entry else {
        return (log, None);
    };
    log.age = entry.stored.elapsed().ok();
    match Header::read(&entry.bytes) {
        Ok((header, _)) => {
            log.last = Some(header.number);
            (log, None)
        }
        Err(error) => (log, Some(format!("the newest batch of owner {owner}: {error}"))),
    }
}

async fn stream_of(history: &History) -> Result<StreamFigures, String> {
    let info = history.stream().get_info().await.map_err(|error| error.to_string())?;
    let replicas = info.cluster.iter().flat_map(|cluster| &cluster.replicas);
    Ok(StreamFigures {
        name: history.name().to_owned(),
        messages: info.state.messages,
        bytes: info.state.bytes,
        leader: info.cluster.as_ref().and_then(|cluster| cluster.leader.clone()),
        replicas: replicas
            .map(|replica| (replica.name.clone(), replica.current))
            .collect(),
    })
}

fn of_lag(log: &OwnerLog) -> Option<Alarm> {
    let behind = log.behind().filter(|behind| *behind > BEHIND)?;
    Some(Alarm {
        what: format!("db is {behind} batches behind the log of owner {}.", log.owner),
        advice: "Nothing is lost. Read the log of db: it may wait for its disk, or for the store.",
    })
}

/// An owner that is held, and whose log grows no more.
fn of_silence(log: &OwnerLog) -> Option<Alarm> {
    let age = log.age.filter(|age| *age > BLOCKED_AFTER)?;
    let appends = log.process.is_some() && matches!(log.kind, OwnerKind::Base | OwnerKind::Cell);
    appends.then(|| Alarm {
        what: format!(
            "The log of owner {} has stored nothing for {} s, and players see nothing new of it.",
            log.owner,
            age.as_secs()
        ),
        advice: "Look at the nats-servers: their disks, and whether a majority runs. Nothing is lost meanwhile.",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log() -> OwnerLog {
        OwnerLog {
            owner: OwnerId(3),
            kind: OwnerKind::Cell,
            process: Some(1),
            last: Some(BatchNumber(700)),
            age: Some(Duration::from_millis(200)),
            folded: BatchNumber(690),
        }
    }

    #[test]
    fn a_log_that_is_not_folded_or_does_not_grow_is_an_alarm() {
        assert_eq!((of_lag(&log()), of_silence(&log())), (None, None));
        let late = OwnerLog {
            folded: BatchNumber(99),
            ..log()
        };
        assert!(of_lag(&late).expect("an alarm").what.contains("601 batches behind"));
        let silent = OwnerLog {
            age: Some(Duration::from_secs(12)),
            ..log()
        };
        assert!(of_silence(&silent).expect("an alarm").what.contains("nothing for 12 s"));
        // Nobody appends to a log that nobody holds.
        let released = OwnerLog {
            process: None,
            ..silent
        };
        assert_eq!(of_silence(&released), None);
    }
}
