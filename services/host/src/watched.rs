//! Values of a process that operators read by path while it runs, and a few that they set: the watchers of BigWorld.
//!
//! Parts of the process register [sources](Watched::add), which are read only when somebody asks, and
//! [settings](Watched::add_setting). The paths here are those within the process; operators see them below
//! `SERVICE/PROCESS/`. Not responsible for recording what is set: [`changing`] does.

pub mod changing;
mod metrics;
mod node;
mod patterns;
mod system;

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
};

use annals_ids::ProcessId;
use serde::{Deserialize, Serialize};

pub(crate) use metrics::add as add_metrics;
pub use node::{Node, Nodes, Unit, Value};
pub use patterns::{BadPattern, MAX_PATTERNS, Patterns};
pub(crate) use system::{Load, add as add_system};

use crate::config::Advice;

/// Maximum nodes of an answer: some hundred kB.
pub const MAX_NODES: usize = 4_000;

/// Characters of an instance's id that name a process without a number: the last ones differ.
const NAME_CHARS: usize = 6;

/// The watched values of a process. Clones are of the same process.
#[derive(Clone, Default)]
pub struct Watched(Arc<Inner>);

#[derive(Default)]
struct Inner {
    /// The number that the director gave the process.
    number: OnceLock<ProcessId>,
    parts: Mutex<Parts>,
    /// Settings are changed one after the other, so that their records are in the order of the changes.
    changing: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct Parts {
    next: u64,
    sources: BTreeMap<u64, Source>,
    settings: BTreeMap<u64, Arc<Setting>>,
}

/// A part of the process with values below a path.
#[derive(Clone)]
struct Source {
    path: String,
    put: Arc<dyn Fn(&mut Nodes<'_>) + Send + Sync>,
}

/// Carries out a change that was checked.
pub type Apply = Box<dyn FnOnce() + Send>;

/// A value that operators may set.
pub struct Setting {
    pub path: &'static str,
    pub unit: Unit,
    /// What it does, in one line.
    pub about: &'static str,
    /// The values that it takes, for readers.
    pub allowed: &'static str,
    /// The value at present.
    pub read: Box<dyn Fn() -> Value + Send + Sync>,
    pub check: Box<Check>,
}

/// Checks a new value. Returns it as it will be read, and how to set it; or why it is refused.
pub type Check = dyn Fn(&str) -> Result<(Value, Apply), Advice> + Send + Sync;

/// A registration, which ends when this is dropped.
#[must_use = "the values are removed when this is dropped"]
pub struct Registration {
    watched: Watched,
    id: u64,
}

/// Request for values.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct WatchRequest {
    /// Patterns of whole paths; see [`Patterns`].
    pub patterns: Vec<String>,
}

/// The answer of one process.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct WatchAnswer {
    /// Values whose path matches, by path.
    pub nodes: Vec<Node>,
    /// How many matching values were left out, because the answer would be too large.
    pub left_out: usize,
    /// Why the request was refused; else empty.
    pub refused: String,
}

impl Watched {
    /// Adds values under a path, `a/b`, or at the top if it is empty. `source` is called when somebody asks.
    pub fn add(
        &self,
        path: impl Into<String>,
        source: impl Fn(&mut Nodes<'_>) + Send + Sync + 'static,
    ) -> Registration {
        let mut parts = self.parts();
        let id = parts.take_id();
        let (path, put) = (path.into(), Arc::new(source));
        parts.sources.insert(id, Source { path, put });
        self.registration(id)
    }

    /// Adds a value that operators may set.
    pub fn add_setting(&self, setting: Setting) -> Registration {
        let mut parts = self.parts();
        let id = parts.take_id();
        parts.settings.insert(id, Arc::new(setting));
        self.registration(id)
    }

    /// Records the number that the director gave the process.
    pub fn set_number(&self, number: ProcessId) {
        // A process registers once.
        let _ = self.0.number.set(number);
    }

    /// The number that the director gave the process, if it gives numbers to its service and has done so.
    pub fn number(&self) -> Option<ProcessId> {
        self.0.number.get().copied()
    }

    /// The process's name among those of its service: its number, or the end of its id in service discovery.
    #[must_use]
    pub fn name(&self, instance: &str) -> String {
        name_of(self.number(), instance)
    }

    /// The values whose whole path, which begins with `process`, matches.
    #[must_use]
    pub fn read(&self, process: &str, patterns: &Patterns) -> WatchAnswer {
        let (sources, settings) = self.parts().all();
        let mut nodes = Nodes::new(process, patterns);
        for source in &sources {
            nodes.within(&source.path, |nodes| (source.put)(nodes));
        }
        for setting in settings {
            nodes.put_setting(&setting);
        }
        let mut nodes = nodes.finish();
        nodes.sort_by(|one, other| one.path.cmp(&other.path));
        let left_out = nodes.len().saturating_sub(MAX_NODES);
        nodes.truncate(MAX_NODES);
        WatchAnswer {
            nodes,
            left_out,
            refused: String::new(),
        }
    }

    fn setting(&self, path: &str) -> Option<Arc<Setting>> {
        let (_, settings) = self.parts().all();
        settings.into_iter().find(|setting| setting.path == path)
    }

    fn registration(&self, id: u64) -> Registration {
        let watched = self.clone();
        Registration { watched, id }
    }

    fn parts(&self) -> MutexGuard<'_, Parts> {
        // The maps are consistent after any panic: each change of them is one call.
        self.0.parts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Watched {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watched").field("number", &self.number()).finish()
    }
}

impl std::fmt::Debug for Registration {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Registration").field("id", &self.id).finish()
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        let removed = {
            let mut parts = self.watched.parts();
            (parts.sources.remove(&self.id), parts.settings.remove(&self.id))
        };
        // What they own may register values itself.
        drop(removed);
    }
}

impl Parts {
    fn take_id(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// Everything, to be called without the lock.
    fn all(&self) -> (Vec<Source>, Vec<Arc<Setting>>) {
        (
            self.sources.values().cloned().collect(),
            self.settings.values().cloned().collect(),
        )
    }
}

/// Name of a process among those of its service.
#[must_use]
pub fn name_of(number: Option<ProcessId>, instance: &str) -> String {
    match number {
        Some(number) => number.to_string(),
        None => {
            let skipped = instance.chars().count().saturating_sub(NAME_CHARS);
            instance.chars().skip(skipped).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(watched: &Watched, patterns: &[&str]) -> Vec<String> {
        let patterns = Patterns::new(patterns).unwrap();
        let answer = watched.read("cell/3", &patterns);
        answer.nodes.into_iter().map(|node| node.path).collect()
    }

    #[test]
    fn values_are_there_until_their_registration_ends() {
        let watched = Watched::default();
        let owner = watched.add("owners/12", |nodes| {
            nodes.put("entities", 7_u64, Unit::None, "entities here");
            nodes.put("busy", 0.25, Unit::Cores, "share of a core");
        });
        let _top = watched.add("", |nodes| nodes.put("ready", true, Unit::None, "whether it is ready"));
        assert_eq!(
            paths(&watched, &["**"]),
            ["cell/3/owners/12/busy", "cell/3/owners/12/entities", "cell/3/ready"]
        );
        assert_eq!(paths(&watched, &["cell/*/owners/*/busy"]), ["cell/3/owners/12/busy"]);
        assert_eq!(
            paths(&watched, &["cell/3/owners"]).len(),
            2,
            "a path stands for what is below it"
        );
        assert_eq!(paths(&watched, &["base", "cell/4"]), [""; 0]);
        drop(owner);
        assert_eq!(paths(&watched, &["**"]), ["cell/3/ready"]);
    }

    #[test]
    fn an_answer_is_bounded() {
        let watched = Watched::default();
        let _many = watched.add("many", |nodes| {
            for number in 0..MAX_NODES + 5 {
                nodes.put(format!("{number:05}"), 1_u64, Unit::None, "one of many");
            }
            nodes.put("long", "ü".repeat(5_000), Unit::None, "a long text");
        });
        let answer = watched.read("cell/3", &Patterns::new(["**"]).unwrap());
        assert_eq!((answer.nodes.len(), answer.left_out), (MAX_NODES, 6));
        let long = watched.read("cell/3", &Patterns::new(["**/long"]).unwrap());
        let Value::Text(text) = &long.nodes[0].value else {
            panic!("{long:?}")
        };
        assert!(text.len() <= 1_003 && text.ends_with('…'), "{} bytes", text.len());
    }

    #[test]
    fn values_of_all_kinds_cross_the_bus() {
        for value in [
            Value::Flag(true),
            Value::Count(u64::MAX),
            Value::Change(-3),
            Value::Real(0.5),
            Value::Text("starting".to_owned()),
        ] {
            let json = serde_json::to_string(&value).unwrap();
            assert_eq!(serde_json::from_str::<Value>(&json).unwrap(), value, "{json}");
        }
    }
}
