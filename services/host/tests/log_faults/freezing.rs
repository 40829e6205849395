//! A writer that is frozen in the middle of its work, replaced, and resumed.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use annals_host::child::{Child, command};
use annals_host::log::{Holding, Recording, Registry};
use annals_ids::{BatchNumber, Epoch, OwnerId};
use annals_node::writer::{FRESHNESS, Opening, OpeningRefused};
use futures::future::BoxFuture;
use tokio::sync::mpsc;

use crate::actor::{Actor, Core, Openings, Screen, Shown, eventually};
use crate::rig::{Book, OWNER, Rig};
use crate::{check, one_node, three_nodes};

/// Arguments of the child process.
const URL: &str = "ANNALS_TEST_URL";
const REALM: &str = "ANNALS_TEST_REALM";
const REPLICAS: &str = "ANNALS_TEST_REPLICAS";
const FOLDER: &str = "ANNALS_TEST_FOLDER";

/// The parts of a store that parent and child share, in a folder: the granted epoch, and the child's opening.
#[derive(Clone)]
struct Grant(PathBuf);

impl Grant {
    fn grant(&self, epoch: u64) {
        fs::write(self.0.join("granted"), epoch.to_string()).unwrap();
    }

    fn holds(&self, epoch: Epoch) -> bool {
        fs::read_to_string(self.0.join("granted")).unwrap() == epoch.to_string()
    }

    fn opening(&self) -> Opening {
        let text = fs::read_to_string(self.0.join("opening")).unwrap();
        let (number, hash) = text.split_once(' ').unwrap();
        Opening {
            epoch: Epoch(1),
            number: BatchNumber(number.parse().unwrap()),
            hash: hash.parse().unwrap(),
        }
    }
}

impl Registry for Grant {
    fn record(&self, _: OwnerId, opening: Opening, _: String) -> BoxFuture<'static, Recording> {
        let recording = if self.holds(opening.epoch) {
            fs::write(self.0.join("opening"), format!("{} {}", opening.number, opening.hash)).unwrap();
            Recording::Recorded
        } else {
            Recording::Refused(OpeningRefused::Superseded)
        };
        Box::pin(std::future::ready(recording))
    }

    fn confirm(&self, _: OwnerId, epoch: Epoch, _: String) -> BoxFuture<'static, Holding> {
        let holding = if self.holds(epoch) {
            Holding::Granted
        } else {
            Holding::Lost
        };
        Box::pin(std::future::ready(holding))
    }
}

impl Openings for Grant {
    fn openings(&self) -> Vec<Opening> {
        Vec::new()
    }
}

/// Not a test: what [`frozen`] runs as a separate process. It takes the owner in epoch 1 and prints what it shows, one
/// line each, and finally why it stopped.
#[tokio::test]
#[ignore = "the child process of the frozen-writer tests"]
async fn child() {
    let Ok(url) = std::env::var(URL) else { return };
    let realm = std::env::var(REALM).unwrap();
    let folder = PathBuf::from(std::env::var(FOLDER).unwrap());
    let replicas = std::env::var(REPLICAS).unwrap().parse().unwrap();
    let bus = annals_host::nats::Bus::connect(&url, "frozen").await.unwrap();
    let history = annals_host::log::History::ensure(&bus, &realm, annals_ids::Shard(0), replicas)
        .await
        .unwrap();
    let (_orders, inbox) = mpsc::channel(1);
    let core = Core {
        history,
        book: Grant(folder.clone()),
        epoch: Epoch(1),
        talks: Arc::new(AtomicBool::new(true)),
        inbox,
    };
    let output = std::cell::RefCell::new(fs::File::create(folder.join("shown")).unwrap());
    let print = |line: String| output.borrow_mut().write_all(line.as_bytes()).unwrap();
    let stop = core
        .live(|shown| match shown {
            Shown::Taken(number) => print(format!("taken {number}\n")),
            Shown::Volatile => print("volatile\n".to_owned()),
        })
        .await;
    print(format!("stopped: {stop}\n"));
}

fn printed(folder: &Path) -> Vec<String> {
    let text = fs::read_to_string(folder.join("shown")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

async fn frozen(rig: &mut Rig) {
    let (realm, book) = (rig.new_realm(), Book::default());
    let folder = rig.dir().join(&realm);
    fs::create_dir_all(&folder).unwrap();
    assert_eq!(book.grant(), Epoch(1));
    let shared = Grant(folder.clone());
    shared.grant(1);
    let mut program = command(std::env::current_exe().unwrap());
    program
        .args(["--exact", "freezing::child", "--ignored"])
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    program.env(URL, rig.url()).env(REALM, &realm).env(FOLDER, &folder);
    program.env(REPLICAS, rig.replicas().to_string());
    let mut child = Child::spawn(program).unwrap();
    eventually("the child shows something", || printed(&folder).len() > 50).await;

    // Past its lease: by the bus it is considered dead.
    child.pause().unwrap();
    tokio::time::sleep(FRESHNESS).await;
    let before = printed(&folder);
    shared.grant(2);
    book.note(shared.opening());
    let successor = Actor::take_over(rig.history(&realm).await, &book);
    successor.shows(20).await;

    child.resume().unwrap();
    let ended = || printed(&folder).last().is_some_and(|line| line.starts_with("stopped"));
    eventually("the child stops", ended).await;
    let after = printed(&folder)[before.len()..].to_vec();
    let (stop, shown) = after.split_last().unwrap();
    assert!(stop.contains("was taken over from epoch 1"), "{stop}");
    // It may have been frozen between deciding to show one thing and showing it.
    assert!(shown.len() <= 1, "shown after it was woken: {shown:?}");
    eventually("the child ends", || child.ended().unwrap().is_some()).await;

    successor.shows(20).await;
    let screen = Screen::default();
    let taken = before
        .iter()
        .chain(shown)
        .filter_map(|line| line.strip_prefix("taken "));
    taken.for_each(|number| screen.show(Shown::Taken(number.parse().unwrap())));
    let history = rig.history(&realm).await;
    let chain = check(&history, &book, &[&screen, &successor.screen]).await.beyond;
    assert!(
        chain.is_sorted_by_key(|batch| batch.epoch),
        "it appended nothing after it was woken"
    );
    let last = history.last(OWNER).await.unwrap().unwrap();
    assert_eq!(annals_event::Header::read(&last.bytes).unwrap().0.epoch, Epoch(2));
}

#[tokio::test]
async fn frozen_writer_on_one_node() {
    frozen(&mut *one_node().await).await;
}

#[tokio::test]
async fn frozen_writer_on_three_nodes() {
    frozen(&mut *three_nodes().await).await;
}
