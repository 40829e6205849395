//! What a process takes of its machine, and what it is.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use annals_node::time::Mono;
use rustix::time::{ClockId, clock_gettime};

use super::{Registration, Unit, Watched};
use crate::{clock, health::Health, release};

/// Period over which the use of the processor is measured.
const PERIOD: Duration = Duration::from_secs(1);

/// The use of the processor in the last period.
#[derive(Clone, Debug, Default)]
pub(crate) struct Load(Arc<AtomicU64>);

impl Load {
    /// Measures, until it is dropped.
    pub(crate) async fn measure(self) {
        let mut before = (clock::mono(), processor_time());
        loop {
            tokio::time::sleep(PERIOD).await;
            let now = (clock::mono(), processor_time());
            let share = now.1.saturating_sub(before.1).as_secs_f64() / now.0.since(before.0).as_secs_f64();
            self.0.store(share.to_bits(), Ordering::Relaxed);
            before = now;
        }
    }

    /// Cores in use.
    fn cores(&self) -> f64 {
        f64::from_bits(self.0.load(Ordering::Relaxed))
    }
}

/// Adds what every process has.
pub(crate) fn add(watched: &Watched, health: &Health, load: Load) -> Registration {
    let (readiness, schema, started) = (health.readiness.clone(), health.schema, clock::mono());
    watched.add("", move |nodes| {
        let state = readiness.borrow().to_string();
        nodes.put(
            "state",
            state,
            Unit::None,
            "whether it does its work, and else what it waits for",
        );
        nodes.put(
            "version",
            release::text(),
            Unit::None,
            "the release, and its commit if the build was given it",
        );
        if let Some(schema) = schema {
            let about = "fingerprint of the definitions that it was started with";
            nodes.put("schema", schema.to_string(), Unit::None, about);
        }
        nodes.put(
            "pid",
            u64::from(std::process::id()),
            Unit::None,
            "its process id on its machine",
        );
        nodes.put("uptime", since(started), Unit::Seconds, "time since it was announced");
        nodes.put(
            "cpu",
            load.cores(),
            Unit::Cores,
            "use of the processor in the last second",
        );
        if let Some(bytes) = memory() {
            nodes.put("memory", bytes, Unit::Bytes, "resident memory");
        }
    })
}

fn since(started: Mono) -> u64 {
    clock::mono().since(started).as_secs()
}

/// Processor time that all threads of this process have used.
fn processor_time() -> Duration {
    let used = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(
        u64::try_from(used.tv_sec).unwrap_or_default(),
        u32::try_from(used.tv_nsec).unwrap_or_default(),
    )
}

/// Resident memory, where the kernel reports it.
fn memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kilobytes: u64 = line.trim().strip_suffix(" kB")?.trim().parse().ok()?;
    Some(kilobytes * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_reports_what_the_process_takes() {
        assert!(memory().is_some_and(|bytes| bytes > 1 << 20), "{:?}", memory());
        assert!(processor_time() > Duration::ZERO);
    }
}
