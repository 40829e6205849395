//! Storage that loses or changes what it acknowledged, under bots: messages deleted from a stream, block files cut off and
//! changed. Each is healed, that is, everything stands afterwards as it has to, or it is named.

use std::{
    fs::{self, OpenOptions},
    io::{Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
    time::Duration,
};

use annals::{replay::owners, source::Source};
use annals_host::{
    log::{History, Lane},
    nats::ServerCount,
};
use annals_ids::OwnerId;
use tokio::time::sleep;

use crate::{
    age::{Age, REALM},
    fencing::{patiently, source},
};

/// How long logs grow while db is frozen, so that nothing of that is archived.
const GROWS: Duration = Duration::from_secs(2);

/// Messages that are deleted from each log.
const DELETED: usize = 3;

/// Bytes that are cut off a block file: several messages.
const CUT: u64 = 6_000;

/// One kind of damage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Damage {
    /// Archived messages deleted from the middle of each log.
    DeletedArchived,
    /// Messages deleted from the middle of each log before db has read them, their writers alive.
    DeletedMiddle,
    /// The last messages of each log deleted before db has read them, their writers alive.
    DeletedTail,
    /// A server's last block file cut short while it is down.
    CutBlock,
    /// A byte in the middle of a server's last block file changed while it is down.
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
            Damage::CutBlock => "the last block file of one server cut short while it is down",
            Damage::FlippedByte => "a byte of the last block file of one server changed while it is down",
        }
    }
}

/// Does one thing after the other to a realm, and proves after each that everything stands as it has to.
pub(crate) async fn endure(age: &mut Age, servers: ServerCount, damages: &[Damage]) {
    for &damage in damages {
        sleep(GROWS).await;
        let done = inflict(age, damage).await;
        println!("{} ({servers} servers): {done}", damage.title());
        age.stands(damage.title()).await;
        if age.has_failed() {
            return;
        }
        println!("| {servers} | {} | healed: {done} |", damage.title());
    }
}

async fn inflict(age: &mut Age, damage: Damage) -> String {
    let realm = age.realm();
    match damage {
        Damage::DeletedArchived => {
            let source = source(REALM, &realm.nats()).await;
            let deleted = delete(&source, Which::Oldest).await;
            format!("{deleted} messages")
        }
        Damage::DeletedMiddle | Damage::DeletedTail => {
            let nats = realm.nats();
            let source = source(REALM, &nats).await;
            let before = ends(&source).await;
            realm.pause("db").expect("it can be frozen");
            sleep(GROWS).await;
            let which = match damage {
                Damage::DeletedTail => Which::Last,
                _ => Which::After(before),
            };
            let deleted = delete_from(source.history.as_ref().expect("a log"), which).await;
            age.realm().resume("db").expect("it can be woken");
            format!("{deleted} messages")
        }
        Damage::CutBlock => {
            on_disk(age, |block| {
                let file = OpenOptions::new().write(true).open(block).expect("a block file");
                let length = file.metadata().expect("it has a length").len();
                file.set_len(length.saturating_sub(CUT.min(length / 2)))
                    .expect("it can be cut");
                format!("{} cut from {length} bytes by {}", name(block), CUT.min(length / 2))
            })
            .await
        }
        Damage::FlippedByte => {
            on_disk(age, |block| {
                let mut file = OpenOptions::new()
                    .read(true)
                    .write(true)
                    .open(block)
                    .expect("a block file");
                let place = file.metadata().expect("it has a length").len() / 2;
                let mut byte = [0];
                file.seek(SeekFrom::Start(place)).expect("it is that long");
                file.read_exact(&mut byte).expect("it is that long");
                file.seek(SeekFrom::Start(place)).expect("it is that long");
                file.write_all(&[byte[0] ^ 0x10]).expect("it can be written");
                format!("{} at byte {place}", name(block))
            })
            .await
        }
    }
}

/// Which messages of each log are deleted.
enum Which {
    /// Early ones, which are archived.
    Oldest,
    /// Some of those behind these sequences, neither the first nor the last.
    After(Vec<(OwnerId, u64)>),
    /// The last ones.
    Last,
}

async fn delete(source: &Source, which: Which) -> usize {
    delete_from(source.history.as_ref().expect("a realm that runs has a log"), which).await
}

/// The owners and the last sequences of their logs.
async fn ends(source: &Source) -> Vec<(OwnerId, u64)> {
    let history = source.history.as_ref().expect("a realm that runs has a log");
    let mut ends = Vec::new();
    for owner in owners(&source.store).await.expect("the store answers") {
        let last = patiently(async || history.last(owner).await).await;
        ends.push((owner, last.expect("it is not empty").sequence));
    }
    ends
}

async fn delete_from(history: &History, which: Which) -> usize {
    let stream = history.stream();
    let mut doomed = Vec::new();
    let (owners, from_end): (Vec<(OwnerId, u64)>, bool) = match which {
        Which::Oldest => (
            all_owners(history).await.into_iter().map(|owner| (owner, 0)).collect(),
            false,
        ),
        Which::After(ends) => (ends, false),
        Which::Last => (
            all_owners(history).await.into_iter().map(|owner| (owner, 0)).collect(),
            true,
        ),
    };
    for (owner, after) in owners {
        if from_end {
            let last = history
                .last(owner)
                .await
                .expect("the log answers")
                .expect("it is not empty");
            doomed.push(last.sequence);
            continue;
        }
        let mut sequence = after + 1;
        let mut found = Vec::new();
        while found.len() <= DELETED
            && let Some(entry) = patiently(async || history.next(Lane::Log, owner, sequence).await).await
        {
            sequence = entry.sequence + 1;
            found.push(entry.sequence);
        }
        // What comes last may be in flight; what comes first shows the hole.
        if found.len() > 2 {
            doomed.extend(&found[1..found.len() - 1]);
        }
    }
    let mut deleted = 0;
    for sequence in doomed {
        deleted += usize::from(stream.delete_message(sequence).await.is_ok_and(|done| done));
    }
    assert!(deleted > 0, "nothing was deleted");
    deleted
}

/// The owners that have something in the stream.
async fn all_owners(history: &History) -> Vec<OwnerId> {
    let mut found = Vec::new();
    for number in 1..64 {
        let owner = OwnerId(number);
        if patiently(async || history.last(owner).await).await.is_some() {
            found.push(owner);
        }
    }
    found
}

/// Kills a server, does something to the last block file of the stream, and starts it again.
async fn on_disk(age: &mut Age, harm: impl FnOnce(&Path) -> String) -> String {
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
