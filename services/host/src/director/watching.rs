//! Watched values of the director that leads.

use std::sync::{Arc, Mutex, PoisonError};

use annals_wire::cells::CellReport;

use super::{Leader, monotonic};
use crate::watched::{Nodes, Registration, Unit, Watched};

/// What the director reports, as of its last beat.
#[derive(Debug, Default)]
struct Figures {
    stage: String,
    processes: u64,
    owners: u64,
    map: u64,
    cells: Vec<CellReport>,
}

/// The watched values of a director, for as long as it leads.
#[derive(Debug)]
pub(super) struct Watching {
    figures: Arc<Mutex<Figures>>,
    _registration: Registration,
}

impl Watching {
    /// Adds the values.
    pub(super) fn begin(watched: &Watched) -> Self {
        let figures: Arc<Mutex<Figures>> = Arc::default();
        let read = Arc::clone(&figures);
        let registration = watched.add("", move |nodes| {
            read.lock().unwrap_or_else(PoisonError::into_inner).put(nodes);
        });
        Self {
            figures,
            _registration: registration,
        }
    }

    /// Takes the figures of the leader.
    pub(super) fn set(&self, leader: &Leader) {
        *self.figures.lock().unwrap_or_else(PoisonError::into_inner) = leader.figures();
    }
}

impl Leader {
    fn figures(&self) -> Figures {
        Figures {
            stage: self.lifecycle.stage().to_string(),
            processes: self.services.len() as u64,
            owners: self.orders.len() as u64,
            map: self.map.version,
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
