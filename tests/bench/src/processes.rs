//! Resource usage of processes, as Linux reports it.

use std::{collections::BTreeMap, fs, iter::Sum};

use rustix::process::{Pid, Signal, kill_process};

/// Ticks per second in which Linux reports processor time.
const TICKS: f64 = 100.0;

/// A running process.
#[derive(Clone, Debug)]
pub(crate) struct Process {
    id: u32,
    pub(crate) name: String,
}

/// Seconds, in total or per second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Load {
    /// Running on a core.
    pub(crate) busy: f64,
    /// Ready, waiting for a core.
    pub(crate) waited: f64,
}

/// A process and its descendants.
pub(crate) fn below(id: u32) -> Vec<Process> {
    let mut children: BTreeMap<u32, Vec<Process>> = BTreeMap::new();
    let mut found = Vec::new();
    let entries = fs::read_dir("/proc").expect("/proc describes processes");
    let ids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    for (process, parent) in ids.filter_map(read) {
        if process.id == id {
            found.push(process);
        } else {
            children.entry(parent).or_default().push(process);
        }
    }
    let mut looked = 0;
    while let Some(Process { id, .. }) = found.get(looked) {
        let below = children.remove(id).unwrap_or_default();
        found.extend(below);
        looked += 1;
    }
    found
}

/// A process and its parent.
fn read(id: u32) -> Option<(Process, u32)> {
    let (name, rest) = stat(id)?;
    let parent = rest.get(1)?.parse().ok()?;
    Some((Process { id, name }, parent))
}

/// Its name, and the fields after the name in its `stat`.
fn stat(id: u32) -> Option<(String, Vec<String>)> {
    let text = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    let (head, rest) = text.rsplit_once(')')?;
    let (_, name) = head.split_once('(')?;
    Some((name.to_owned(), rest.split_whitespace().map(str::to_owned).collect()))
}

impl Process {
    /// Usage since it started; zero if it has ended.
    pub(crate) fn load(&self) -> Load {
        let ticks = stat(self.id).map_or(0.0, |(_, rest)| {
            let of = |at: usize| rest.get(at).and_then(|text| text.parse::<f64>().ok()).unwrap_or(0.0);
            of(11) + of(12)
        });
        Load {
            busy: ticks / TICKS,
            waited: self.waited().unwrap_or(0.0),
        }
    }

    /// Kills it with SIGKILL, as a crash would.
    pub(crate) fn kill(&self) {
        let process = i32::try_from(self.id).ok().and_then(Pid::from_raw);
        // It may have ended already.
        let _ = kill_process(process.expect("a process has an id"), Signal::KILL);
    }

    /// Current and peak resident memory, MB; `None` if it has ended.
    pub(crate) fn held(&self) -> Option<(f64, f64)> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.id)).ok()?;
        let of = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            line.split_whitespace().next()?.parse::<f64>().ok()
        };
        // Linux writes kB and means KiB.
        let megabytes = |name: &str| Some(of(name)? * 1.024e-3);
        Some((megabytes("VmRSS:")?, megabytes("VmHWM:")?))
    }

    fn waited(&self) -> Option<f64> {
        let threads = fs::read_dir(format!("/proc/{}/task", self.id)).ok()?;
        let waits = threads.filter_map(|thread| {
            let text = fs::read_to_string(thread.ok()?.path().join("schedstat")).ok()?;
            text.split_whitespace().nth(1)?.parse::<f64>().ok()
        });
        Some(waits.sum::<f64>() * 1e-9)
    }
}

impl Load {
    /// Usage per second since `before`.
    pub(crate) fn since(self, before: Self, seconds: f64) -> Self {
        Self {
            busy: (self.busy - before.busy).max(0.0) / seconds,
            waited: (self.waited - before.waited).max(0.0) / seconds,
        }
    }
}

impl Sum for Load {
    fn sum<I: Iterator<Item = Self>>(loads: I) -> Self {
        loads.fold(Self::default(), |all, load| Self {
            busy: all.busy + load.busy,
            waited: all.waited + load.waited,
        })
    }
}
