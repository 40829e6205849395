//! Watched values of an owner that is held.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use annals_ids::{Epoch, OwnerId};
use annals_wire::load::Load;
use tokio::sync::watch;

use crate::{
    holder::Stage,
    watched::{Nodes, Registration, Unit, Watched},
};

/// What a holder reports.
pub(super) struct Figures {
    pub(super) entities: Arc<AtomicU64>,
    pub(super) load: watch::Receiver<Option<Load>>,
    pub(super) stage: watch::Receiver<Stage>,
}

/// Adds the values of an owner that is held in an epoch.
pub(super) fn add(watched: &Watched, (owner, epoch): (OwnerId, Epoch), figures: Figures) -> Registration {
    watched.add(format!("owners/{owner}"), move |nodes| figures.put(epoch, nodes))
}

impl Figures {
    fn put(&self, epoch: Epoch, nodes: &mut Nodes<'_>) {
        let state = match *self.stage.borrow() {
            Stage::Taking => "being taken over",
            Stage::Open => "open",
            Stage::Stuck => "blocked: the log does not acknowledge",
        };
        nodes.put(
            "state",
            state,
            Unit::None,
            "whether the owner is held and its log works",
        );
        nodes.put(
            "epoch",
            epoch.0,
            Unit::None,
            "epoch in which this process holds the owner",
        );
        let entities = self.entities.load(Ordering::Relaxed);
        nodes.put("entities", entities, Unit::None, "entities of the owner");
        if let Some(load) = self.load.borrow().as_ref() {
            nodes.put("busy", load.busy, Unit::Cores, "share of time in which the owner works");
            for (space, survey) in &load.survey.spaces {
                nodes.within(&format!("spaces/{space}"), |nodes| {
                    nodes.put("entities", survey.entities, Unit::None, "real entities in the space");
                    nodes.put(
                        "clients",
                        survey.witnesses,
                        Unit::None,
                        "real entities there with a client",
                    );
                });
            }
        }
    }
}
