//! The long life of a realm in fast motion: whether a batch costs db more when the realm is old.
//!
//! Players trade, proposals expire, an account logs in again, the outbox is emptied, the archive is sealed and tiled:
//! the same work batch after batch. The last tenth of one life is compared with the first tenth of another, alternating
//! between the two, since a machine's speed varies over time. Processor time is compared on the embedded store; keys
//! read and bytes written are compared on the in-memory store. That store keeps deleted keys while its time stands
//! still, so a scan that begins at the wrong end of a queue costs the most there.

use std::time::Duration;

use annals_db::{Sealer, Tiler};
use annals_store::{MemoryStore, Store, embedded::EmbeddedStore};
use rustix::time::{ClockId, clock_gettime};

use crate::{
    Figure,
    trade::{market::Market, recording::Recording},
};

/// Batches of the base in a tenth of a life, for processor time and for keys and bytes.
const LONG: usize = 800;
const SHORT: usize = 320;

/// Batches before keys are counted: at first there are no tiles, no segments and nothing that expires.
const WARM_UP: usize = 320;

/// Batches before processor time is measured: in the first 2,000 the memory table of a new store fills, and lookups in
/// it become more and more expensive.
const LONG_WARM_UP: usize = 2_400;

/// Alternations in which a tenth is measured.
const TURNS: usize = 20;

/// Trades that begin with each batch.
const PAIRS: usize = 4;

/// Batches between two log-ins of an account, between two rounds of sealing and tiling, and until a proposal expires.
const LOG_IN: usize = 4;
const ARCHIVE: usize = 32;
const EXPIRES: u64 = 3;

/// Leaves of a segment: few, so that each round seals some.
const LEAVES: usize = 32;

/// Maximum cost of the last tenth relative to the first.
const TARGET: f64 = 1.05;

/// Measures both.
///
/// # Panics
/// If store or fold fail.
#[must_use]
pub fn run() -> Vec<Figure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let mut figures = runtime.block_on(times());
    figures.extend(runtime.block_on(counts()));
    figures
}

/// Processor time per batch, of db and its store.
async fn times() -> Vec<Figure> {
    let directory = crate::scratch();
    let open = |name: &str| EmbeddedStore::open(&directory.path().join(name)).expect("a new store");
    let (for_young, for_old) = (open("young"), open("old"));
    let mut old = Realm::begin(for_old.store()).await;
    old.live(LONG_WARM_UP + 9 * LONG).await;
    let mut young = Realm::begin(for_young.store()).await;
    young.live(LONG_WARM_UP).await;
    let (mut of_young, mut of_old) = (Spent::default(), Spent::default());
    let mut ratios = Vec::new();
    for _ in 0..TURNS {
        let (first, last) = (young.spend(LONG / TURNS).await, old.spend(LONG / TURNS).await);
        ratios.push(last.all.as_secs_f64() / first.all.as_secs_f64());
        of_young.add(first);
        of_old.add(last);
    }
    ratios.sort_unstable_by(f64::total_cmp);
    let microseconds = |time: Duration| time.as_secs_f64() * 1e6 / LONG as f64;
    let note = format!(
        "db's processor time for a batch, of which {PAIRS} trades are settled, in the last tenth of {} batches, store included; \
         median of {TURNS} turns {:.2}, from {:.2} to {:.2}; baseline: the first tenth; target {TARGET}",
        10 * LONG,
        ratios[TURNS / 2],
        ratios[0],
        ratios[TURNS - 1],
    );
    let fold = "the same without the threads of the store".to_owned();
    vec![
        Figure::against(
            "cost_over_age",
            microseconds(of_old.all),
            microseconds(of_young.all),
            "us",
            note,
        ),
        Figure::against(
            "fold_over_age",
            microseconds(of_old.fold),
            microseconds(of_young.fold),
            "us",
            fold,
        ),
    ]
}

/// Keys that a batch reads, including deleted ones, and bytes that it writes: the same in each run.
async fn counts() -> Vec<Figure> {
    let memory = MemoryStore::new();
    let recording = Recording::of(&memory.store());
    let mut realm = Realm::begin(recording.store()).await;
    realm.live(WARM_UP).await;
    let mut tenths = Vec::new();
    for _ in 0..10 {
        recording.begin();
        let (walked, gets) = (memory.walked(), recording.gets());
        realm.live(SHORT).await;
        let keys = memory.walked() - walked + recording.gets() - gets;
        tenths.push((keys, recording.recorded_writes().bytes));
    }
    let per_batch = |count: u64| count as f64 / SHORT as f64;
    let ((first_keys, first_bytes), (last_keys, last_bytes)) = (tenths[0], tenths[9]);
    let note = |what: &str| {
        let batches = 10 * SHORT;
        format!("{what} by a batch in the last tenth of {batches} batches; baseline: the first tenth; target {TARGET}")
    };
    vec![
        Figure::against(
            "keys_over_age",
            per_batch(last_keys),
            per_batch(first_keys),
            "keys",
            note("read or skipped, including deleted ones,"),
        ),
        Figure::against(
            "bytes_over_age",
            per_batch(last_bytes),
            per_batch(first_bytes),
            "B",
            note("written"),
        ),
    ]
}

/// Processor time of some batches, without the time for making them.
#[derive(Clone, Copy, Debug, Default)]
struct Spent {
    /// Of db and its store.
    all: Duration,
    /// Of the thread that folds.
    fold: Duration,
}

impl Spent {
    fn add(&mut self, other: Self) {
        self.all += other.all;
        self.fold += other.fold;
    }
}

/// A market, and the work of db besides folding.
struct Realm {
    market: Market,
    sealer: Sealer,
    tiler: Tiler,
    batches: usize,
}

impl Realm {
    async fn begin(store: Store) -> Self {
        let market = Market::open(store, PAIRS, false, 3).await;
        Self {
            sealer: market.folder.sealer().of_leaves(LEAVES),
            tiler: market.folder.tiler(),
            market,
            batches: 0,
        }
    }

    async fn live(&mut self, batches: usize) {
        for _ in 0..batches {
            self.batches += 1;
            let others = self.market.others();
            let (proposer, partner, guest) = (others.start, others.start + 1, others.start + 2);
            self.market.propose(proposer, partner, EXPIRES);
            if self.batches.is_multiple_of(LOG_IN) {
                self.market.live(guest);
            }
            self.market.step().await;
            if self.batches.is_multiple_of(ARCHIVE) {
                while self.sealer.seal_next().await.expect("it is sealed").is_some() {}
                while self.tiler.tile_next().await.expect("it is tiled").is_some() {}
            }
        }
    }

    async fn spend(&mut self, batches: usize) -> Spent {
        let (process, thread, making) = (process_time(), crate::busy(), self.market.making());
        self.live(batches).await;
        let making = self.market.making() - making;
        Spent {
            all: (process_time() - process).saturating_sub(making),
            fold: (crate::busy() - thread).saturating_sub(making),
        }
    }
}

/// Processor time of this process, including the store's threads.
fn process_time() -> Duration {
    clock_gettime(ClockId::ProcessCPUTime)
        .try_into()
        .expect("process CPU time is not negative")
}
