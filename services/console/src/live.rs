//! Questions to the processes of a live realm, over its bus: for the operators' pages.

use std::time::Duration;

use annals_host::{
    config::Realm,
    health::{DiscoveryError, Instance, discover},
    log_source::Source,
    nats::Bus,
    process::{AskError, request},
};
use annals_ids::OwnerId;
use annals_wire::{
    Subjects,
    cells::{CellList, WireCellList},
    control::{ControlError, DirectorAsk, DirectorRequest, ListCells, ListProcesses, ProcessList},
    overview::{Overview, OverviewRequest, WireOverview},
};
use thiserror::Error;
use tokio::time::timeout;

/// How long processes may take to report their status.
const REPORTED_WITHIN: Duration = Duration::from_millis(700);

/// How long a cell may take to answer, before a map is shown without its entities.
const OVERVIEW_WITHIN: Duration = Duration::from_millis(500);

/// A live realm.
#[derive(Clone, Debug)]
pub(crate) struct Live {
    bus: Bus,
    subjects: Subjects,
    realm: Realm,
}

/// Why a live realm did not answer.
#[derive(Debug, Error)]
pub(crate) enum LiveError {
    #[error("the director does not answer")]
    Director(#[from] AskError),
    #[error("the director's answer cannot be decoded")]
    Odd(#[from] ControlError),
    #[error("the processes cannot be asked for their status")]
    Discovery(#[from] DiscoveryError),
}

impl Live {
    /// The realm of a source, if it is live.
    pub(crate) fn of(source: &Source) -> Option<Self> {
        let (bus, subjects) = source.live.clone()?;
        let realm = subjects.realm().parse();
        Some(Self {
            realm: realm.expect("invariant: the subjects are of a valid realm name"),
            bus,
            subjects,
        })
    }

    /// Its name.
    pub(crate) fn realm(&self) -> &Realm {
        &self.realm
    }

    /// The cells of all spaces, as the director has them.
    pub(crate) async fn cells(&self) -> Result<CellList, LiveError> {
        let ask = DirectorRequest {
            ask: Some(DirectorAsk::Cells(ListCells {})),
        };
        let cells: WireCellList = request(&self.bus, "director", self.subjects.listing(), &ask).await?;
        Ok(CellList::try_from(&cells)?)
    }

    /// The processes that report to the director.
    pub(crate) async fn processes(&self) -> Result<ProcessList, LiveError> {
        let ask = DirectorRequest {
            ask: Some(DirectorAsk::Processes(ListProcesses {})),
        };
        Ok(request(&self.bus, "director", self.subjects.listing(), &ask).await?)
    }

    /// The health reports of all processes that answer in time.
    pub(crate) async fn instances(&self) -> Result<Vec<Instance>, LiveError> {
        Ok(discover(&self.bus, &self.realm, REPORTED_WITHIN, |_| false).await?)
    }

    /// An overview of a cell's entities; `None` if its holder does not answer in time.
    pub(crate) async fn overview(&self, owner: OwnerId, asked: &OverviewRequest) -> Option<Overview> {
        let subject = self.subjects.overview(owner);
        let asking = request::<WireOverview>(&self.bus, "cell", subject, asked);
        let answer = timeout(OVERVIEW_WITHIN, asking).await.ok()?.ok()?;
        Overview::try_from(&answer)
            .map_err(|error| tracing::warn!(%owner, %error, "an overview cannot be used"))
            .ok()
    }
}
