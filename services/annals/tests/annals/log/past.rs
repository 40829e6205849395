//! Past states, the difference between two of them, and the events of an entity: compared with all batches of generated
//! realms, folded and searched one by one.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    process::Command,
};

use annals_audit::{
    EntityLog, Index,
    past::{Change, Difference, Past, PastError},
};
use annals_db::read_horizon;
use annals_def::{Schema, Value, split_mix};
use annals_event::{Batch, Event, FrozenBatch, OwnerState, Subject};
use annals_evidence::{Cut, Span, Until};
use annals_ids::{Address, EntityId, Hash, LogPosition, OwnerId, Part, WallTime};
use annals_store::{MemoryStore, embedded::EmbeddedStore};
use tempfile::TempDir;

use super::world::{SHARD, World};

const STEPS: usize = 150;

/// Moments tried per realm.
const MOMENTS: usize = 12;

/// A realm, partly sealed, with an index of its archive.
struct Asked {
    world: World,
    index: Index,
    _folder: TempDir,
}

impl Asked {
    async fn about(world: World) -> Self {
        let folder = TempDir::new().unwrap();
        let mut index = Index::open(folder.path()).await.unwrap();
        let extent = index.catch_up(&world.store, |_| {}).await.unwrap();
        assert_eq!(extent.leaves(), world.frozen.len() as u64);
        for (leaf, batch) in (0..).zip(&world.frozen) {
            assert_eq!(world.leaf(batch).await.0, leaf, "the archive has the order of the log");
        }
        Self {
            world,
            index,
            _folder: folder,
        }
    }

    async fn generate(seed: u64) -> Self {
        let world = World::generate(MemoryStore::new().store(), seed, STEPS).await;
        world.seal(64).await;
        Self::about(world).await
    }

    async fn at(&self, leaves: usize) -> Past {
        Past::at(&self.index, &self.world.store, &cut(leaves)).await.unwrap()
    }

    fn schemas(&self) -> BTreeMap<Hash, Schema> {
        BTreeMap::from([(self.world.schema.fingerprint(), (*self.world.schema).clone())])
    }

    /// The states to which the first batches fold.
    fn folded(&self, leaves: usize) -> BTreeMap<OwnerId, OwnerState> {
        let mut states = BTreeMap::new();
        for frozen in &self.world.frozen[..leaves] {
            let new = || OwnerState::new(frozen.owner, Part::Cell);
            let state = states.entry(frozen.owner).or_insert_with(new);
            state.fold(&Batch::read(&frozen.bytes).unwrap()).unwrap();
        }
        states
    }
}

/// The first leaves of the archive.
fn cut(leaves: usize) -> Cut {
    Cut::from_iter([(SHARD, leaves as u64)])
}

fn at(batch: &FrozenBatch) -> LogPosition {
    LogPosition {
        owner: batch.owner,
        batch: batch.number,
    }
}

fn wall(batch: &FrozenBatch) -> WallTime {
    Batch::read(&batch.bytes).unwrap().header.wall
}

fn hashes(states: &BTreeMap<OwnerId, OwnerState>) -> BTreeMap<OwnerId, Hash> {
    states.iter().map(|(owner, state)| (*owner, state.hash())).collect()
}

#[tokio::test]
async fn past_states_equal_those_of_their_owners() {
    for seed in 0..8 {
        let asked = Asked::generate(seed).await;
        let all = asked.world.frozen.len();
        let mut dice = split_mix(seed);
        let mut moved = asked.at(0).await;
        let mut moments: Vec<usize> = (0..MOMENTS).map(|_| dice() as usize % (all + 1)).collect();
        moments.extend([0, 1, all]);
        moments.sort_unstable();
        for leaves in moments {
            let expected = hashes(&asked.folded(leaves));
            let past = asked.at(leaves).await;
            assert_eq!(hashes(past.owners()), expected, "seed {seed}, {leaves} leaves");
            moved
                .advance(&asked.index, &asked.world.store, &cut(leaves))
                .await
                .unwrap();
            assert_eq!(
                hashes(moved.owners()),
                expected,
                "seed {seed}, moved on to {leaves} leaves"
            );
        }
        let live = asked.world.logs.iter().map(|log| (log.owner, log.state.hash()));
        assert_eq!(
            hashes(moved.owners()),
            live.collect(),
            "seed {seed}: as the cores have it"
        );
    }
}

#[tokio::test]
async fn a_moment_excludes_batches_closed_after_it() {
    for seed in 20..24 {
        let asked = Asked::generate(seed).await;
        let batches = &asked.world.frozen;
        let walls: Vec<WallTime> = batches.iter().map(wall).collect();
        let mut moments: BTreeSet<u64> = walls.iter().flat_map(|wall| [wall.0 - 1, wall.0, wall.0 + 1]).collect();
        moments.extend([0, u64::MAX]);
        for moment in moments {
            let first = walls.iter().position(|wall| wall.0 > moment);
            let expected = cut(first.unwrap_or(batches.len()));
            let found = asked.index.cut(Some(&Until::Wall(WallTime(moment)))).await;
            assert_eq!(found.unwrap(), expected, "seed {seed}, {moment} ms");
        }
        for (leaf, batch) in (1..).zip(batches) {
            let until = asked.index.until(at(batch)).await.unwrap();
            assert_eq!(asked.index.cut(Some(&until)).await.unwrap(), cut(leaf));
        }
    }
}

/// An event in its log: the batch, its number, and the caller.
type Noted = (LogPosition, u64, Event, Option<Address>);

/// The parts, found by searching all owners.
fn parts(states: &BTreeMap<OwnerId, OwnerState>) -> BTreeMap<EntityId, (OwnerId, BTreeMap<String, Value>)> {
    let mut found = BTreeMap::new();
    for state in states.values() {
        let departing = state.departing.values().map(|(entity, image)| (entity, image));
        for (entity, image) in departing {
            found.insert(*entity, (state.owner, image.properties.clone()));
        }
    }
    for state in states.values() {
        for (entity, image) in &state.entities {
            found.insert(*entity, (state.owner, image.properties.clone()));
        }
    }
    let named = |properties: BTreeMap<_, Value>| {
        let name = |(member, value)| (format!("{member:?}"), value);
        properties.into_iter().map(name).collect()
    };
    let parts = found.into_iter();
    parts
        .map(|(entity, (owner, properties))| (entity, (owner, named(properties))))
        .collect()
}

/// The difference in words.
fn expected(asked: &Asked, from: usize, to: usize) -> BTreeSet<String> {
    let (old, new) = (parts(&asked.folded(from)), parts(&asked.folded(to)));
    let avatar = asked.world.schema.type_named("Avatar").unwrap();
    let mut found = BTreeSet::new();
    for (entity, (owner, _)) in &new {
        if !old.contains_key(entity) {
            found.insert(format!("{entity} made at {owner}"));
        }
    }
    for (entity, (owner, before)) in &old {
        let Some((now, after)) = new.get(entity) else {
            found.insert(format!("{entity} ended at {owner}"));
            continue;
        };
        if owner != now {
            found.insert(format!("{entity} from {owner} to {now}"));
        }
        for property in &avatar.properties {
            let member = format!("{:?}", property.index);
            let (before, after) = (before.get(&member), after.get(&member));
            if before != after {
                found.insert(format!("{entity} {} from {before:?} to {after:?}", property.name));
            }
        }
    }
    found
}

fn said(change: &Change) -> String {
    match change {
        Change::Made { of, owner } => format!("{} made at {owner}", of.0),
        Change::Ended { of, owner } => format!("{} ended at {owner}", of.0),
        Change::HandedOver { of, before, after } => format!("{} from {before} to {after}", of.0),
        Change::Property {
            of,
            name,
            before,
            after,
        } => format!("{} {name} from {:?} to {:?}", of.0, before.as_ref(), after.as_ref()),
        other => panic!("nothing of the sort happens here: {other:?}"),
    }
}

#[tokio::test]
async fn a_difference_equals_that_of_two_replays() {
    let mut kinds = BTreeSet::new();
    for seed in 40..46 {
        let asked = Asked::generate(seed).await;
        let schemas = asked.schemas();
        let all = asked.world.frozen.len();
        let mut dice = split_mix(seed);
        for _ in 0..MOMENTS {
            let (one, other) = (dice() as usize % (all + 1), dice() as usize % (all + 1));
            let (from, to) = (one.min(other), one.max(other));
            let before = asked.at(from).await;
            let mut after = before.clone();
            after.advance(&asked.index, &asked.world.store, &cut(to)).await.unwrap();
            let found = Difference::between(&before, &after, &schemas).changes;
            kinds.extend(
                found
                    .iter()
                    .map(|change| format!("{change:?}").split(' ').next().map(str::to_owned)),
            );
            let found: Vec<String> = found.iter().map(said).collect();
            let as_set: BTreeSet<String> = found.iter().cloned().collect();
            assert_eq!(as_set.len(), found.len(), "each is said once");
            assert_eq!(as_set, expected(&asked, from, to), "seed {seed}, from {from} to {to}");
        }
    }
    assert_eq!(
        kinds.len(),
        3,
        "entities were made, changed, and handed over: {kinds:?}"
    );
}

#[tokio::test]
async fn all_events_of_an_entity_in_the_logs_are_listed() {
    let mut followed = 0;
    for seed in 60..64 {
        let asked = Asked::generate(seed).await;
        let mut expected: BTreeMap<EntityId, Vec<Noted>> = BTreeMap::new();
        for frozen in &asked.world.frozen {
            let batch = Batch::read(&frozen.bytes).unwrap();
            for (number, event) in (batch.header.first_event.0..).zip(&batch.events) {
                if let Subject::Entity(entity, _) = event.subject {
                    let cause = (event.cause.0 as usize).checked_sub(1);
                    let call = cause.map(|index| batch.header.consumed[index].from);
                    let events = expected.entry(entity).or_default();
                    events.push((at(frozen), number, event.clone(), call));
                }
            }
        }
        for (entity, expected) in expected {
            let log = EntityLog::find(&asked.index, &asked.world.store, entity).await.unwrap();
            assert!(log.deleted.is_empty());
            let found = log.events.iter().map(|found| {
                let call = found.calls.first().map(|call| call.from);
                followed += usize::from(call.is_some());
                (found.at, found.number.0, found.event.clone(), call)
            });
            assert_eq!(found.collect::<Vec<_>>(), expected, "seed {seed}, entity {entity}");
            let middle = &log.events[log.events.len() / 2];
            let span = Span {
                since: Some(middle.wall),
                until: Some(asked.index.until(middle.at).await.unwrap()),
            };
            let within = log
                .within(&span)
                .all(|found| found.wall >= middle.wall && found.leaf <= middle.leaf);
            assert!(within && log.within(&span).any(|found| found == middle));
        }
        let nobody = EntityLog::find(&asked.index, &asked.world.store, EntityId(7)).await;
        assert!(nobody.is_err_and(|error| !error.is_finding()));
    }
    assert!(followed > 100, "{followed} events came from calls");
}

#[tokio::test]
async fn no_state_is_rebuilt_from_a_changed_archive() {
    for seed in 80..84 {
        let asked = Asked::about(World::generate(MemoryStore::new().store(), seed, STEPS).await).await;
        let all = asked.world.frozen.len();
        let mut dice = split_mix(seed);
        for _ in 0..10 {
            let place = dice() as usize % all;
            let batch = &asked.world.frozen[place];
            let leaf = asked.world.leaf(batch).await;
            let mut bytes = batch.bytes.clone();
            let byte = dice() as usize % bytes.len();
            bytes[byte] ^= 1 << (dice() % 8);
            asked.world.replace(leaf, &bytes).await;
            let found = Past::at(&asked.index, &asked.world.store, &cut(all)).await;
            let error = found
                .err()
                .unwrap_or_else(|| panic!("seed {seed}: byte {byte} of leaf {leaf}"));
            assert!(error.is_finding(), "seed {seed}: {error:?}");
            assert!(
                *asked.at(place).await.cut() == cut(place),
                "what lies before it is as it was"
            );
            asked.world.replace(leaf, &batch.bytes).await;
        }
        // The last batch of a log has no successor that names its hash.
        for log in &asked.world.logs {
            let batch = asked
                .world
                .frozen
                .iter()
                .rfind(|batch| batch.owner == log.owner)
                .unwrap();
            let read = Batch::read(&batch.bytes).unwrap();
            let wall = read.header.wall.0.to_le_bytes();
            let byte = batch.bytes.windows(8).position(|bytes| bytes == wall).unwrap();
            let mut bytes = batch.bytes.clone();
            bytes[byte] ^= 1;
            assert_eq!(
                Batch::read(&bytes).unwrap().events,
                read.events,
                "it is as good a batch"
            );
            let leaf = asked.world.leaf(batch).await;
            asked.world.replace(leaf, &bytes).await;
            let found = Past::at(&asked.index, &asked.world.store, &cut(all))
                .await
                .err()
                .unwrap();
            assert!(
                matches!(found, PastError::Replaced(place) if place == at(batch)),
                "seed {seed}: {found:?}"
            );
            asked.world.replace(leaf, &batch.bytes).await;
        }
    }
}

#[tokio::test]
async fn only_states_within_retention_are_rebuilt() {
    let world = World::generate(MemoryStore::new().store(), 90, STEPS).await;
    assert!(world.seal(30).await > 2);
    let asked = Asked::about(world).await;
    asked.world.apply_retention().await;
    let horizon = read_horizon(&asked.world.store, SHARD).await.unwrap().unwrap();
    let horizon = usize::try_from(horizon.leaf.0).unwrap() + 1;
    let all = asked.world.frozen.len();
    assert!(horizon > 60 && horizon < all);
    for leaves in [horizon, horizon + (all - horizon) / 2, all] {
        assert_eq!(
            hashes(asked.at(leaves).await.owners()),
            hashes(&asked.folded(leaves)),
            "{leaves} of {all} leaves, {horizon} of them let go"
        );
    }
    let found = Past::at(&asked.index, &asked.world.store, &cut(horizon / 2)).await;
    let error = found.err().unwrap();
    assert!(
        !error.is_finding() && error.to_string().contains("deleted by retention"),
        "{error}"
    );
    let entity = *asked.world.logs[0].state.entities.keys().next().unwrap();
    let log = EntityLog::find(&asked.index, &asked.world.store, entity).await.unwrap();
    assert!(!log.deleted.is_empty());
    assert!(matches!(error, PastError::Replay(_)));
}

fn audit(data: &Path, index: &Path, line: &[&str]) -> (Option<i32>, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_annals"))
        .arg("audit")
        .args(line)
        .arg("--data")
        .arg(data)
        .arg("--index")
        .arg(index)
        .env_remove("ANNALS_REALM")
        .output()
        .unwrap();
    let [out, error] = [output.stdout, output.stderr].map(|said| String::from_utf8_lossy(&said).into_owned());
    println!("{out}{error}");
    (output.status.code(), out, error)
}

#[tokio::test]
async fn the_command_works_on_a_stopped_realm() {
    let folder = TempDir::new().unwrap();
    let (data, index) = (folder.path().join("realm"), folder.path().join("index"));
    std::fs::create_dir_all(&data).unwrap();
    let (states, entity, middle, last) = {
        let store = EmbeddedStore::open(&data.join("store")).unwrap().store();
        let mut world = World::new(store).await;
        world.play(7, 40).await;
        let entity = world.change_somebody(1);
        let middle = world.frozen.last().unwrap().clone();
        world.change(1, entity, 77);
        let last = world.frozen.last().unwrap().clone();
        world.archive().await;
        let states: Vec<_> = world.logs.iter().map(|log| (log.owner, log.state.hash())).collect();
        (states, entity, at(&middle).to_string(), at(&last).to_string())
    };
    let ask = |line: &[&str]| audit(&data, &index, line);
    let (code, said, _) = ask(&["replay", "--format", "json"]);
    assert_eq!(code, Some(0));
    let answer: serde_json::Value = serde_json::from_str(&said).unwrap();
    for ((owner, state), found) in states.iter().zip(answer["owners"].as_array().unwrap()) {
        assert_eq!(
            (found["owner"].as_u64(), found["state"].as_str()),
            (Some(u64::from(owner.0)), Some(&*state.to_string()))
        );
    }
    let who = entity.to_string();
    let (code, said, _) = ask(&["replay", "--entity", &who, "--at", &middle, "--format", "json"]);
    assert_eq!(code, Some(0));
    let answer: serde_json::Value = serde_json::from_str(&said).unwrap();
    assert_eq!(answer["parts"][0]["properties"]["level"], 42, "{said}");
    let (code, said, _) = ask(&["replay", "--space", "0"]);
    assert!(
        code == Some(0) && said.contains("Avatar") && said.contains("level = 77"),
        "{said}"
    );
    let (code, said, _) = ask(&["diff", &middle, &last, "--format", "csv"]);
    assert_eq!(code, Some(0));
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(
        lines,
        [
            "what,of,property,before,after,\"of, named\",\"property, named\",\"before, named\",\"after, named\"",
            &format!("changed,Avatar {who} cell,level,42,77,Avatar {who} cell,level,42,77")
        ]
    );
    let (code, said, _) = ask(&["entity", &who, "--at", &middle]);
    assert!(
        code == Some(0) && said.contains("level = 42") && !said.contains("level = 77"),
        "{said}"
    );
    assert!(said.contains(&format!("{middle} #")), "{said}");
    for wrong in [
        &["diff", &last, &middle][..],
        &["diff", &middle, &last, "--at", &last],
        &["replay", "--since", "00:00:00"],
        &["entity", "7"],
        &["replay", "--at", "1@100000"],
    ] {
        let (code, _, error) = ask(wrong);
        assert!(code == Some(2) && !error.is_empty(), "{wrong:?}");
    }
}
