//! Storage that loses or changes acknowledged data while bots play: messages deleted from a stream, block files
//! truncated and changed. Each damage is either healed, with every promise kept, or reported.

use std::{
    fs::{self, OpenOptions},
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
    time::Duration,
};

use annals_audit::replay::owners;
use annals_host::{
    log::{History, Lane},
    nats::ServerCount,
};
use annals_ids::OwnerId;
use tokio::time::{sleep, timeout};

use crate::{
    age::{ChaosRealm, REALM},
    fencing::{source, with_retries},
};

/// Maximum time for logs to grow by as much as is damaged.
const GROWTH_TIMEOUT: Duration = Duration::from_secs(60);

/// Interval between looks at them.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Messages that are deleted from each log.
const DELETED_MESSAGES: usize = 3;

/// Bytes at the end of a block file that are truncated, or before which a byte is changed: several messages.
const DAMAGED_BYTES: u64 = 6_000;

/// One kind of damage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Damage {
    /// Archived messages deleted from the middle of each log.
    DeletedArchived,
    /// Messages deleted from the middle of each log before db has read them, while their writers run.
    DeletedMiddle,
    /// The last messages of each log deleted before db has read them, while their writers run.
    DeletedTail,
    /// A server's last block file truncated while it is down, before db has read the truncated part.
    CutBlock,
    /// A byte near the end of a server's last block file changed while it is down, before db has read it.
    FlippedByte,
}

impl Damage {
    pub(crate) const ALL: [Damage; 5] = [
        Damage::DeletedArchived,
        Damage::DeletedMiddle,
        Damage::DeletedTail,
        Damage::CutBlock,
        Damage::FlippedByte,
    ];

    fn title(self) -> &'static str {
        match self {
            Damage::DeletedArchived => "archived messages deleted from the middle of each log",
            Damage::DeletedMiddle => "messages deleted from the middle of each log before they were archived",
            Damage::DeletedTail => "the last messages of each log deleted before they were archived",
            Damage::CutBlock => "the last block file of one server cut short before it was archived",
            Damage::FlippedByte => "a byte of the last block file of one server changed before it was archived",
        }
    }
}

/// Damages a realm in one way after another, and runs the checks after each.
pub(crate) async fn damage_and_check(age: &mut ChaosRealm, servers: ServerCount, damages: &[Damage]) {
    for &damage in damages {
        let done = inject(age, damage).await;
        println!("{} ({servers} servers): {done}", damage.title());
        age.assert_recovered(damage.title()).await;
        if age.has_failed() {
            return;
        }
        println!("| {servers} | {} | every promise kept: {done} |", damage.title());
    }
}

async fn inject(age: &mut ChaosRealm, damage: Damage) -> String {
    let source = source(REALM, &age.realm().nats()).await;
    let history = source
        .logs
        .get(&annals_host::process::FIRST_SHARD)
        .expect("a live realm has a log");
    let owners = owners(&source.store).await.expect("the store answers");
    let done = match damage {
        Damage::DeletedArchived => {
            let beginnings: Vec<(OwnerId, u64)> = owners.into_iter().map(|owner| (owner, 0)).collect();
            return delete(history, &middles(history, &beginnings).await).await;
        }
        Damage::DeletedMiddle => {
            let ends = without_db(age, history, owners).await;
            delete(history, &middles(history, &ends).await).await
        }
        Damage::DeletedTail => {
            let ends = without_db(age, history, owners).await;
            delete(history, &lasts(history, &ends).await).await
        }
        Damage::CutBlock => {
            without_db(age, history, owners).await;
            on_disk(age, cut).await
        }
        Damage::FlippedByte => {
            without_db(age, history, owners).await;
            on_disk(age, flip).await
        }
    };
    assert!(age.realm().start_again("db").expect("it starts again"));
    done
}

/// Kills db, and waits until logs have grown. Returns the owners and the last sequences of their logs when db died;
/// later messages are not archived.
async fn without_db(age: &mut ChaosRealm, history: &History, owners: Vec<OwnerId>) -> Vec<(OwnerId, u64)> {
    assert!(age.realm().kill("db").expect("it can be killed"));
    let mut ends = Vec::new();
    for owner in owners {
        ends.push((owner, last(history, owner).await));
    }
    let growing = async {
        while middles(history, &ends).await.len() < 2 * DELETED_MESSAGES {
            sleep(POLL_INTERVAL).await;
        }
    };
    timeout(GROWTH_TIMEOUT, growing).await.expect("logs grow without db");
    ends
}

async fn last(history: &History, owner: OwnerId) -> u64 {
    let last = with_retries(async || history.last(owner).await).await;
    last.expect("it is not empty").sequence
}

/// Messages of each log after these sequences, excluding the first and the last.
async fn middles(history: &History, after: &[(OwnerId, u64)]) -> Vec<u64> {
    let mut middles = Vec::new();
    for &(owner, after) in after {
        let (mut sequence, mut found) = (after + 1, Vec::new());
        while found.len() < DELETED_MESSAGES + 2
            && let Some(entry) = with_retries(async || history.next(Lane::Log, owner, sequence).await).await
        {
            sequence = entry.sequence + 1;
            found.push(entry.sequence);
        }
        // The last may be in flight; the first reveals the hole.
        if found.len() > 2 {
            middles.extend(&found[1..found.len() - 1]);
        }
    }
    middles
}

/// The last message of each log.
async fn lasts(history: &History, logs: &[(OwnerId, u64)]) -> Vec<u64> {
    let mut lasts = Vec::new();
    for (owner, _) in logs {
        lasts.push(last(history, *owner).await);
    }
    lasts
}

async fn delete(history: &History, doomed: &[u64]) -> String {
    let mut deleted = 0;
    for sequence in doomed {
        deleted += usize::from(history.stream().delete_message(*sequence).await.is_ok_and(|done| done));
    }
    assert!(deleted > 0, "nothing was deleted");
    format!("{deleted} messages")
}

fn cut(block: &Path) -> String {
    let file = OpenOptions::new().write(true).open(block).expect("a block file");
    let length = file.metadata().expect("it has a length").len();
    let cut = DAMAGED_BYTES.min(length / 2);
    file.set_len(length - cut).expect("it can be truncated");
    format!("{} of {length} bytes cut by {cut}", name(block))
}

fn flip(block: &Path) -> String {
    let file = OpenOptions::new().read(true).write(true).open(block);
    let file = file.expect("a block file");
    let length = file.metadata().expect("it has a length").len();
    let place = length - DAMAGED_BYTES.min(length / 2);
    let mut byte = [0];
    file.read_exact_at(&mut byte, place).expect("it is that long");
    file.write_all_at(&[byte[0] ^ 0x10], place).expect("it can be written");
    format!("{} of {length} bytes, at byte {place}", name(block))
}

/// Kills a server, damages the last block file of the stream, and restarts the server.
async fn on_disk(age: &mut ChaosRealm, harm: impl FnOnce(&Path) -> String) -> String {
    let servers = age.realm().nats_servers();
    let server = &mut servers.each()[0];
    server.kill().expect("it can be killed");
    let block = last_block(server.store()).expect("the stream has a block file");
    let done = harm(&block);
    servers.restart_ended().await.expect("it starts again");
    done
}

/// The newest block file of the realm's stream.
fn last_block(store: &Path) -> Option<PathBuf> {
    let mut blocks = Vec::new();
    let mut folders = vec![store.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("a folder").flatten() {
            let path = entry.path();
            let is_ours = path.to_string_lossy().contains("_history_");
            match path.extension().is_some_and(|extension| extension == "blk") {
                true if is_ours => blocks.push(path),
                _ if path.is_dir() => folders.push(path),
                _ => {}
            }
        }
    }
    let number = |path: &PathBuf| path.file_stem().and_then(|stem| stem.to_str()?.parse::<u64>().ok());
    blocks.into_iter().max_by_key(number)
}

fn name(block: &Path) -> String {
    block.file_name().unwrap_or_default().to_string_lossy().into_owned()
}
