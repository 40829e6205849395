//! Processes of adjacent releases work in one realm, and what a release stored is read by every later one. A change that
//! breaks this is a new version of the format or message, which differs recognizably from the old one.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use annals::backup::{
    check::check,
    manifest::Manifest,
    restore::{Until, restore},
    target::Target,
};
use annals_host::nats::Bus;
use annals_ids::{Hash, LogPosition, OwnerId, WallTime};
use annals_store::MemoryStore;
use annals_wire::{
    Subjects,
    bus::Envelope,
    control::{self, CursorAnnouncement, DirectorRequest},
};
use futures::StreamExt;
use prost::Message as _;

/// The releases that this one is compatible with.
const RELEASES: [&str; 1] = ["0.1"];

/// Messages of each kind that are recorded.
const OF_EACH_KIND: usize = 3;

fn folder(release: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("releases").join(release)
}

/// The states of a backup's owners, one line each: `OWNER@BATCH HASH`.
fn states(of: &BTreeMap<OwnerId, (LogPosition, Hash)>) -> String {
    of.values().fold(String::new(), |mut text, (at, state)| {
        writeln!(text, "{at} {state}").unwrap();
        text
    })
}

#[tokio::test]
async fn a_backup_of_an_earlier_release_is_whole_and_is_restored() {
    for release in RELEASES {
        let folder = folder(release);
        let target = Target::folder(&folder.join("backup")).unwrap();
        let manifest = Manifest::read(&target, None).await.unwrap();
        let checked = check(&target, &manifest).await.unwrap();
        assert!(checked.is_clean(), "release {release}: {:#?}", checked.findings);
        assert!(checked.events > 1_000, "release {release}: {} events", checked.events);
        let expected = fs::read_to_string(folder.join("states")).unwrap();
        assert_eq!(states(&checked.states), expected, "release {release}");

        let store = MemoryStore::new().store();
        let name = (manifest.realm.as_str(), WallTime(manifest.created + 1));
        let restored = restore(&target, &manifest, Until::End, name, store.clone())
            .await
            .unwrap();
        assert_eq!(states(&restored.states), expected, "release {release}, restored");
        let audited = annals_db::ledger::audit(&store).await.unwrap();
        assert!(audited.findings.is_empty(), "release {release}: {:?}", audited.findings);
        assert!(audited.entries.0 > 0, "release {release}: nothing was traded");
    }
}

/// The kind of a recorded message, and its bytes as this release encodes them.
fn read(lane: &str, bytes: &[u8]) -> Result<(String, Vec<u8>), String> {
    let kind = |message: &dyn std::fmt::Debug| {
        let text = format!("{message:?}");
        text.split(|letter: char| !letter.is_alphanumeric())
            .next()
            .unwrap_or_default()
            .to_owned()
    };
    match lane {
        "owner" => {
            let envelope = Envelope::decode(bytes).map_err(|error| error.to_string())?;
            Ok((kind(&envelope.message), envelope.encode()))
        }
        "director" => {
            let request = control::decode::<DirectorRequest>(bytes).map_err(|error| error.to_string())?;
            let ask = request.ask.as_ref().ok_or("a request of an unknown kind")?;
            Ok((kind(ask), request.encode_to_vec()))
        }
        "cursors" => {
            let announced = control::decode::<CursorAnnouncement>(bytes).map_err(|error| error.to_string())?;
            // The kind's name in the recordings.
            Ok(("CursorNews".to_owned(), announced.encode_to_vec()))
        }
        other => Err(format!("unknown lane {other}")),
    }
}

/// The lines of a release's recorded messages: lane, kind and bytes.
fn recorded(release: &str) -> Vec<(String, String, Vec<u8>)> {
    let text = fs::read_to_string(folder(release).join("messages")).unwrap();
    let line = |line: &str| {
        let mut words = line.split(' ').map(str::to_owned);
        let (lane, kind, hex) = (words.next().unwrap(), words.next().unwrap(), words.next().unwrap());
        let byte = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
        (lane, kind, (0..hex.len()).step_by(2).map(byte).collect())
    };
    text.lines().map(line).collect()
}

#[test]
fn messages_of_an_earlier_release_mean_the_same() {
    for release in RELEASES {
        let mut kinds = BTreeSet::new();
        for (lane, kind, bytes) in recorded(release) {
            let (read, again) = read(&lane, &bytes)
                .unwrap_or_else(|error| panic!("release {release} sends a {kind} that is not read: {error}"));
            assert_eq!(read, kind, "release {release}");
            assert_eq!(
                again, bytes,
                "release {release}: a process of this one would not send the same {kind}: what that one does not know \
                 must be absent when it has no meaning there, and what it knows must not be dropped"
            );
            kinds.insert(kind);
        }
        assert!(kinds.len() >= 12, "release {release}: only {kinds:?}");
    }
}

/// Records what a release sends, from a running realm of that release in which bots play: `ANNALS_RECORD=FILE
/// ANNALS_RECORD_NATS=URL ANNALS_RECORD_REALM=NAME cargo test -p annals-compat -- --ignored record`. Its backup is made
/// with `annals backup create`, and `states` has what `annals backup verify` prints of it.
#[tokio::test]
#[ignore = "writes the record of this release"]
async fn record() {
    let of = |name: &str| std::env::var(name).unwrap_or_else(|_| panic!("{name} is not set"));
    let bus = Bus::connect(&of("ANNALS_RECORD_NATS"), "record").await.unwrap();
    let realm = of("ANNALS_RECORD_REALM");
    let subjects = Subjects::new(&realm);
    let lanes = [
        ("owner", format!("annals.{realm}.owner.*")),
        ("director", subjects.service("director")),
        ("cursors", subjects.news("cursors")),
    ];
    let mut streams = Vec::new();
    for (lane, subject) in lanes {
        let messages = bus.client().subscribe(subject).await.unwrap();
        streams.push(messages.map(move |message| (lane, message)).boxed());
    }
    let mut all = futures::stream::select_all(streams);
    let mut kinds: BTreeMap<(&str, String), BTreeSet<Vec<u8>>> = BTreeMap::new();
    let until = tokio::time::Instant::now() + Duration::from_secs(20);
    while let Ok(Some((lane, message))) = tokio::time::timeout_at(until, all.next()).await {
        let (kind, _) = read(lane, &message.payload).unwrap();
        let of_kind = kinds.entry((lane, kind)).or_default();
        if of_kind.len() < OF_EACH_KIND {
            of_kind.insert(message.payload.to_vec());
        }
    }
    let mut text = String::new();
    for ((lane, kind), messages) in &kinds {
        for bytes in messages {
            let hex = bytes.iter().fold(String::new(), |mut hex, byte| {
                write!(hex, "{byte:02x}").unwrap();
                hex
            });
            writeln!(text, "{lane} {kind} {hex}").unwrap();
        }
    }
    fs::write(of("ANNALS_RECORD"), text).unwrap();
}
