//! What the realm reports of itself: its watched values, and how long this machine lets a thread wait.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use annals_host::{
    config::Realm,
    health::{Instance, discover, values},
    nats::Bus,
    violations::Violation,
    watched::{Value, WatchRequest},
};
use tokio::{sync::watch, time::sleep};

/// Timeout for answers of processes.
const PATIENCE: Duration = Duration::from_secs(5);

/// Interval between readings of the processors' use, which each process measures once a second.
const READ_EVERY: Duration = Duration::from_secs(1);

/// Time that a thread sleeps to measure the scheduler's delay.
const NAP: Duration = Duration::from_millis(2);

/// Reads the watched values of a realm.
pub(super) struct Observer {
    bus: Bus,
    realm: Realm,
    instances: Vec<Instance>,
}

/// Usage of the realm's processes over some time.
#[derive(Debug, Default)]
pub(super) struct Usage {
    /// Cores that all processes used together, on average.
    pub(super) cores: f64,
    /// Of the slowest cell's recent ticks.
    pub(super) tick_p99: Duration,
    /// Resident memory by process at the end, bytes.
    memory: BTreeMap<String, u64>,
}

impl Usage {
    /// Memory that each process has more than `before`.
    pub(super) fn growth(&self, before: &Self) -> impl Iterator<Item = (&str, u64)> {
        let before = |process: &str| before.memory.get(process).copied().unwrap_or(0);
        self.memory
            .iter()
            .map(move |(process, bytes)| (process.as_str(), bytes.saturating_sub(before(process))))
    }
}

impl Observer {
    pub(super) async fn begin(realm: &str, nats: &str) -> Self {
        let bus = Bus::connect(nats, "attacks").await.expect("the bus answers");
        let realm: Realm = realm.parse().expect("the realm's name is one");
        let found = discover(&bus, &realm, Duration::from_secs(1), |_| false).await;
        Self {
            bus,
            realm,
            instances: found.expect("services answer"),
        }
    }

    /// Values by path, of all processes.
    async fn read(&self, patterns: &[&str]) -> BTreeMap<String, Value> {
        let request = WatchRequest {
            patterns: patterns.iter().map(ToString::to_string).collect(),
        };
        let mut all = BTreeMap::new();
        for instance in &self.instances {
            let answer = values(&self.bus, &self.realm, instance, &request, PATIENCE).await;
            let answer = answer.unwrap_or_else(|error| panic!("{} does not answer: {error}", instance.service));
            all.extend(answer.nodes.into_iter().map(|node| (node.path, node.value)));
        }
        all
    }

    /// Usage over this time.
    pub(super) async fn usage(&self, time: Duration) -> Usage {
        let deadline = Instant::now() + time;
        let (mut cores, mut readings) = (0.0, 0_u32);
        while Instant::now() < deadline {
            sleep(READ_EVERY.min(deadline.saturating_duration_since(Instant::now()))).await;
            let used = self.read(&["*/*/cpu"]).await;
            cores += used.values().map(real).sum::<f64>();
            readings += 1;
        }
        let rest = self.read(&["*/*/memory", "*/*/tick/recent/p99"]).await;
        let (mut tick_p99, mut memory) = (Duration::ZERO, BTreeMap::new());
        for (path, value) in rest {
            let Value::Count(value) = value else { continue };
            match path.strip_suffix("/memory") {
                Some(process) => drop(memory.insert(process.to_owned(), value)),
                None => tick_p99 = tick_p99.max(Duration::from_micros(value)),
            }
        }
        Usage {
            cores: cores / f64::from(readings.max(1)),
            tick_p99,
            memory,
        }
    }

    /// What all processes have counted.
    pub(super) async fn violations(&self) -> Vec<(Violation, u64)> {
        let counters = self.read(&["*/*/edge/*"]).await;
        let of = |violation: Violation| {
            let ends = format!("/edge/{}", violation.name());
            let found = counters.iter().filter(|(path, _)| path.ends_with(&ends));
            found.map(|(_, value)| count(value)).sum()
        };
        Violation::ALL.map(|violation| (violation, of(violation))).to_vec()
    }
}

fn real(value: &Value) -> f64 {
    match value {
        Value::Real(value) => *value,
        other => count(other) as f64,
    }
}

fn count(value: &Value) -> u64 {
    match value {
        Value::Count(value) => *value,
        _ => 0,
    }
}

/// Measures until it is stopped how much longer than asked a thread sleeps. Returns the delay that 99 of 100 stay below.
pub(super) fn delay(stopped: &watch::Receiver<bool>) -> Duration {
    let mut delays = Vec::new();
    while !*stopped.borrow() {
        let began = Instant::now();
        std::thread::sleep(NAP);
        delays.push(began.elapsed().saturating_sub(NAP));
    }
    delays.sort_unstable();
    delays.get(delays.len() * 99 / 100).copied().unwrap_or_default()
}
