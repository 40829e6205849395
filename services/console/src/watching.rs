//! Watching: what a page shows live, made once per period for all who watch it, and not at all while nobody does.

mod logs;
mod map;

pub(crate) use logs::{ArchiveFigures, LogReport, OwnerLog, StreamFigures};
pub(crate) use map::{Edges, MapCell, MapFrame, Watched};

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use annals_host::health::Instance;
use annals_wire::control::ProcessList;
use serde_json::json;
use tokio::{
    sync::watch,
    time::{Instant, sleep_until},
};

use crate::{
    alarms::{self, Alarm},
    casework::Casework,
    live::{Live, LiveError},
    pages::{logs as log_page, processes},
};
use annals_host::telemetry::Chain;

/// Interval between frames of a map: cells learn of it as the number of requests per second.
const MAP_PERIOD: Duration = Duration::from_secs(1);

/// Interval between updates of a page of figures.
const PAGE_PERIOD: Duration = Duration::from_secs(5);

/// Maximum regions watched at the same time: each costs every cell in it a request per period, and a cell answers four.
const MAPS: usize = 4;

/// Text of a server-sent event; none before the first.
pub(crate) type Frame = Option<Arc<str>>;

/// What can be watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Topic {
    Map(Watched),
    Processes,
    Logs,
}

/// More regions are watched than a cell answers for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooMany;

/// Everything that is watched at the moment.
pub(crate) struct Watching {
    casework: Arc<Casework>,
    topics: Mutex<BTreeMap<Topic, watch::Sender<Frame>>>,
    names: map::Names,
    alarms: tokio::sync::Mutex<RecentAlarms>,
}

/// What was last found to need attention, and when.
#[derive(Default)]
struct RecentAlarms {
    found: Option<Instant>,
    what: Vec<String>,
}

/// State of the processes of a realm.
pub(crate) struct ProcessReport {
    pub(crate) instances: Vec<Instance>,
    pub(crate) listed: Result<ProcessList, LiveError>,
    pub(crate) alarms: Vec<Alarm>,
}

impl Watching {
    pub(crate) fn new(casework: Arc<Casework>) -> Arc<Self> {
        Arc::new(Self {
            casework,
            topics: Mutex::default(),
            names: map::Names::default(),
            alarms: tokio::sync::Mutex::default(),
        })
    }

    /// Watches a topic of a live realm: frames follow until the receiver is dropped.
    pub(crate) fn watch(self: &Arc<Self>, live: &Live, topic: Topic) -> Result<watch::Receiver<Frame>, TooMany> {
        let mut topics = self.topics();
        if let Some(sender) = topics.get(&topic) {
            return Ok(sender.subscribe());
        }
        let is_map = |topic: &Topic| matches!(topic, Topic::Map(_));
        if is_map(&topic) && topics.keys().filter(|topic| is_map(topic)).count() >= MAPS {
            return Err(TooMany);
        }
        let (sender, receiver) = watch::channel(None);
        topics.insert(topic, sender);
        drop(topics);
        tokio::spawn(Arc::clone(self).run(live.clone(), topic));
        Ok(receiver)
    }

    /// Makes frames of a topic for as long as somebody watches it.
    async fn run(self: Arc<Self>, live: Live, topic: Topic) {
        let period = match topic {
            Topic::Map(_) => MAP_PERIOD,
            Topic::Processes | Topic::Logs => PAGE_PERIOD,
        };
        let mut due = Instant::now();
        loop {
            let frame = self.frame(&live, topic).await;
            due = (due + period).max(Instant::now());
            if !self.send(topic, frame) {
                return;
            }
            sleep_until(due).await;
        }
    }

    /// Sends a frame; `false` if nobody watches, and then the topic is no longer watched.
    fn send(&self, topic: Topic, frame: Arc<str>) -> bool {
        let mut topics = self.topics();
        let sent = topics
            .get(&topic)
            .is_some_and(|sender| sender.send(Some(frame)).is_ok());
        if !sent {
            topics.remove(&topic);
        }
        sent
    }

    async fn frame(&self, live: &Live, topic: Topic) -> Arc<str> {
        let frame = match topic {
            Topic::Map(watched) => match self.map(live, watched).await {
                Ok(frame) => serde_json::to_string(&frame).unwrap_or_default(),
                Err(error) => json!({ "problem": Chain(&error).to_string() }).to_string(),
            },
            Topic::Processes => {
                let body = match self.processes(live).await {
                    Ok(report) => processes::figures(&report),
                    Err(error) => crate::pages::problem::no_live_answer(&Chain(&error).to_string()),
                };
                json!({ "html": body.into_string() }).to_string()
            }
            Topic::Logs => {
                let report = self.logs(live).await;
                json!({ "html": log_page::figures(&report).into_string() }).to_string()
            }
        };
        frame.into()
    }

    /// The state of the processes.
    pub(crate) async fn processes(&self, live: &Live) -> Result<ProcessReport, LiveError> {
        let (instances, listed) = tokio::join!(live.instances(), live.processes());
        let instances = instances?;
        Ok(ProcessReport {
            alarms: alarms::of_realm(&instances),
            instances,
            listed,
        })
    }

    /// The state of the logs.
    pub(crate) async fn logs(&self, live: &Live) -> LogReport {
        logs::report(&self.casework, live).await
    }

    /// A frame of a map.
    pub(crate) async fn map(&self, live: &Live, watched: Watched) -> Result<MapFrame, LiveError> {
        let (frame, alarms) = tokio::join!(
            map::frame((live, &self.casework), &self.names, watched),
            self.recent_alarms(live)
        );
        Ok(MapFrame { alarms, ..frame? })
    }

    /// What needs attention, as of at most a period ago: maps have frames more often than processes have to be asked.
    async fn recent_alarms(&self, live: &Live) -> Vec<String> {
        let mut recent = self.alarms.lock().await;
        if recent.found.is_none_or(|found| found.elapsed() >= PAGE_PERIOD) {
            recent.what = match live.instances().await {
                Ok(instances) => alarms::of_realm(&instances)
                    .into_iter()
                    .map(|alarm| alarm.what)
                    .collect(),
                Err(error) => vec![format!("{}.", Chain(&error))],
            };
            recent.found = Some(Instant::now());
        }
        recent.what.clone()
    }

    fn topics(&self) -> MutexGuard<'_, BTreeMap<Topic, watch::Sender<Frame>>> {
        self.topics.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
