//! A minimal core: it takes an owner, accepts numbered calls as they come, and shows each through the gate.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use annals_event::{Gathering, Imprint, Tail};
use annals_host::clock;
use annals_host::log::{Driver, History, Reading, Registry};
use annals_ids::{Address, BatchNumber, CallNumber, Epoch, EventNumber, Hash, SessionId, Tick, WallTime};
use annals_node::chain::assemble;
use annals_node::gate::Gate;
use annals_node::writer::{Durability, Opening, Stop, Wanted, Writer};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::rig::{Book, NOTHING_ARCHIVED, OWNER};

/// Interval of the calls.
const PACE: Duration = Duration::from_millis(2);

/// Upper bound for anything here on a slow machine.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(60);

/// An output that passed a gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shown {
    /// A numbered call was accepted: must be in the log.
    Taken(u64),
    /// A volatile output.
    Volatile,
}

/// Outputs that one actor has shown, in order.
#[derive(Clone, Default)]
pub(crate) struct Screen(Arc<Mutex<Vec<Shown>>>);

impl Screen {
    pub(crate) fn show(&self, shown: Shown) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(shown);
    }

    pub(crate) fn taken(&self) -> Vec<u64> {
        let shown = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        shown
            .iter()
            .filter_map(|shown| {
                if let Shown::Taken(number) = shown {
                    Some(*number)
                } else {
                    None
                }
            })
            .collect()
    }

    pub(crate) fn length(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).len()
    }
}

/// A command to an actor.
pub(crate) enum Order {
    /// Refill a hole with this batch, if it is kept.
    Fill(BatchNumber),
}

/// A running actor.
pub(crate) struct Actor {
    pub(crate) screen: Screen,
    talks: Arc<AtomicBool>,
    orders: mpsc::Sender<Order>,
    task: JoinHandle<Stop>,
}

impl Actor {
    /// Grants the next epoch to a new actor, which takes the owner and starts to accept calls.
    pub(crate) fn take_over(history: History, book: &Book) -> Self {
        let epoch = book.grant();
        let screen = Screen::default();
        let talks = Arc::new(AtomicBool::new(true));
        let (orders, inbox) = mpsc::channel(16);
        let core = Core {
            history,
            book: book.clone(),
            epoch,
            talks: Arc::clone(&talks),
            inbox,
        };
        let shows = screen.clone();
        let task = tokio::spawn(async move { core.live(move |shown| shows.show(shown)).await });
        Self {
            screen,
            talks,
            orders,
            task,
        }
    }

    /// Accepts no more calls; those accepted are still logged.
    pub(crate) fn hush(&self) {
        self.talks.store(false, Ordering::Relaxed);
    }

    pub(crate) fn talk(&self) {
        self.talks.store(true, Ordering::Relaxed);
    }

    pub(crate) async fn order(&self, order: Order) {
        self.orders.send(order).await.expect("the actor lives");
    }

    /// Waits until it has shown `more` than it has now.
    pub(crate) async fn shows(&self, more: usize) {
        let goal = self.screen.taken().len() + more;
        eventually("the actor shows something", || self.screen.taken().len() >= goal).await;
    }

    /// Waits until it stops, and returns the reason.
    pub(crate) async fn stops(self) -> Stop {
        tokio::time::timeout(TIMEOUT, self.task)
            .await
            .expect("the actor stops")
            .expect("it does not panic")
    }
}

/// Waits until `holds`.
pub(crate) async fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let patience = tokio::time::Instant::now() + TIMEOUT;
    while !holds() {
        assert!(tokio::time::Instant::now() < patience, "{what}: not within {TIMEOUT:?}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// The source of a core's data from the store.
pub(crate) trait Openings: Registry + Clone + 'static {
    fn openings(&self) -> Vec<Opening>;
}

impl Openings for Book {
    fn openings(&self) -> Vec<Opening> {
        Book::openings(self)
    }
}

/// The core: gathering, writer, gate.
pub(crate) struct Core<B> {
    pub(crate) history: History,
    pub(crate) book: B,
    pub(crate) epoch: Epoch,
    pub(crate) talks: Arc<AtomicBool>,
    pub(crate) inbox: mpsc::Receiver<Order>,
}

impl<B: Openings> Core<B> {
    /// Takes the owner (E1), again whenever its log grows meanwhile, and serves it until it is stopped for good.
    pub(crate) async fn live(mut self, show: impl Fn(Shown)) -> Stop {
        let mut reading = Reading::default();
        loop {
            if self.history.read(OWNER, &mut reading).await.is_err() {
                continue;
            }
            let openings = self.book.openings();
            let chain = assemble(
                OWNER,
                NOTHING_ARCHIVED,
                &openings,
                reading.batches.clone(),
                reading.last,
            );
            let chain = chain.expect("nothing is missing when an owner is taken");
            let tail = chain
                .beyond
                .last()
                .map_or(NOTHING_ARCHIVED, |batch| annals_node::writer::Tip {
                    number: batch.number,
                    hash: batch.hash,
                });
            let writer = Writer::take_over(OWNER, self.epoch, Durability::Log, chain);
            let tail = Tail {
                batch: tail.number,
                hash: tail.hash,
                event: EventNumber(0),
            };
            let stop = self.serve(writer, tail, &show).await;
            if !matches!(stop, Stop::ReadAgain { .. }) {
                return stop;
            }
        }
    }

    async fn serve(&mut self, writer: Writer, mut tail: Tail, show: &impl Fn(Shown)) -> Stop {
        let imprint = Imprint {
            realm: "test".to_owned(),
            owner: OWNER,
            epoch: self.epoch,
            schema: Hash::ZERO,
        };
        let mut driver = Driver::new(writer, self.history.clone(), Arc::new(self.book.clone()));
        let mut gathering = Gathering::default();
        let mut gate = Gate::new();
        let mut calls = tokio::time::interval(PACE);
        loop {
            let (opens, wanted) = match driver.writer().wanted(clock::mono()) {
                Wanted::Nothing => (false, false),
                Wanted::Opening => (true, true),
                Wanted::Filled => (false, !gathering.is_empty()),
                Wanted::Heartbeat => (false, true),
            };
            if wanted {
                driver.offer(gathering.freeze(&imprint, &mut tail, Tick(0), WallTime(0), opens));
            }
            if let Some(stop) = driver.writer().stopped() {
                return stop.clone();
            }
            let acknowledged = driver.writer().acknowledged();
            while let Some(shown) = gate.release(acknowledged, driver.writer().is_fresh(clock::mono())) {
                show(shown);
            }
            tokio::select! {
                () = driver.step() => {}
                _ = calls.tick(), if self.talks.load(Ordering::Relaxed) && driver.writer().opening().is_some() => {
                    let number = next_call();
                    let (from, to) = (Address::Client(SessionId(1)), Address::Owner(OWNER));
                    gathering.consume(from, to, CallNumber(number), [0; 16]);
                    gate.push(tail.batch.next(), Shown::Taken(number));
                    gate.push_volatile(acknowledged, Shown::Volatile);
                }
                Some(Order::Fill(number)) = self.inbox.recv() => {
                    let kept = driver.writer().kept(number).expect("the hole is ours to fill");
                    self.history.fill(OWNER, kept.bytes.clone().into()).await;
                }
            }
        }
    }
}

/// A call number that no other actor of any process uses.
fn next_call() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    u64::from(std::process::id()) << 32 | NEXT.fetch_add(1, Ordering::Relaxed)
}
