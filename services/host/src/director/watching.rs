//! Watched values of the director that leads.

use std::sync::{Arc, Mutex, PoisonError};

use annals_wire::cells::CellReport;

use super::{Leader, monotonic};
use crate::{
    health::Health,
    telemetry::Metrics,
    watched::{Nodes, Registration, Unit},
};

/// What the director reports, as of its last beat.
#[derive(Debug, Default)]
struct Figures {
    stage: String,
    processes: u64,
    owners: u64,
    map: u64,
    /// Players and those who wait, in a realm with a limit.
    room: Option<Room>,
    cells: Vec<CellReport>,
}

#[derive(Debug)]
struct Room {
    limit: u64,
    players: u64,
    waiting: u64,
}

/// The watched values of a director, for as long as it leads.
#[derive(Debug)]
pub(super) struct Watching {
    figures: Arc<Mutex<Figures>>,
    metrics: Arc<Metrics>,
    _registration: Registration,
}

impl Watching {
    /// Adds the values.
    pub(super) fn begin(health: &Health) -> Self {
        let figures: Arc<Mutex<Figures>> = Arc::default();
        let read = Arc::clone(&figures);
        let registration = health.watched.add("", move |nodes| {
            read.lock().unwrap_or_else(PoisonError::into_inner).put(nodes);
        });
        Self {
            figures,
            metrics: Arc::clone(&health.metrics),
            _registration: registration,
        }
    }

    /// Takes the figures of the leader.
    pub(super) fn set(&self, leader: &Leader) {
        let figures = leader.figures();
        let players = figures.room.as_ref().map_or(0, |room| room.players);
        self.metrics.players.set(i64::try_from(players).unwrap_or(i64::MAX));
        *self.figures.lock().unwrap_or_else(PoisonError::into_inner) = figures;
    }
}

impl Leader {
    fn figures(&self) -> Figures {
        Figures {
            stage: self.lifecycle.stage().to_string(),
            processes: self.services.len() as u64,
            owners: self.orders.len() as u64,
            map: self.map.version,
            room: self.admission.limit().map(|limit| Room {
                limit,
                players: self.admission.players(),
                waiting: self.admission.waiting(),
            }),
            cells: self.balance.report(monotonic()),
        }
    }
}

impl Figures {
    fn put(&self, nodes: &mut Nodes<'_>) {
        nodes.put(
            "stage",
            self.stage.as_str(),
            Unit::None,
            "stage of the realm: running, or of its stop",
        );
        nodes.put(
            "processes",
            self.processes,
            Unit::None,
            "live processes that have registered",
        );
        nodes.put("owners", self.owners, Unit::None, "owners of the realm");
        nodes.put("map", self.map, Unit::None, "version of the map of spaces");
        if let Some(room) = &self.room {
            let mut put = |path: &str, value: u64, about: &str| nodes.put(path, value, Unit::None, about);
            put("players/limit", room.limit, "maximum players of the realm");
            put(
                "players/now",
                room.players,
                "sessions at all bases, and log-ins that were given room and are in progress",
            );
            put(
                "players/waiting",
                room.waiting,
                "places in the queues of all login processes",
            );
        }
        for cell in &self.cells {
            nodes.within(&format!("cells/{}/{}", cell.space, cell.area.owner), |nodes| {
                nodes.put(
                    "load",
                    cell.load,
                    Unit::Cores,
                    "load of the cell's owner, over all spaces",
                );
                nodes.put("entities", cell.entities, Unit::None, "real entities in the cell");
                nodes.put(
                    "clients",
                    cell.witnesses,
                    Unit::None,
                    "real entities there with a client",
                );
                nodes.put("retires", cell.retires, Unit::None, "whether the cell is being retired");
            });
        }
    }
}
