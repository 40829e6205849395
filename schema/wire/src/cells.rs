//! The director's report to operators on the cells of a realm.

use std::time::Duration;

use annals_ids::SpaceId;

use crate::{
    CellArea,
    control::{ControlError, WireCell},
    load::amount,
};

/// All cells of a realm.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CellList {
    /// The version of the map; 0 before spaces are divided.
    pub map: u64,
    /// By space; within a space from west and south on.
    pub cells: Vec<CellReport>,
}

/// A cell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CellReport {
    pub space: SpaceId,
    /// The owner, and its area.
    pub area: CellArea,
    /// The load of its owner, in all spaces; 1 is the capacity of a core.
    pub load: f64,
    /// Number of real entities.
    pub entities: u64,
    /// Number of those that have a client.
    pub witnesses: u64,
    /// Whether it is being retired.
    pub retires: bool,
    /// Time since its boundaries last moved; `None` if they have not moved since this director became leader.
    pub unmoved: Option<Duration>,
}

/// See [`CellList`].
#[derive(Clone, PartialEq, prost::Message)]
pub struct WireCellList {
    /// [`CellList::map`].
    #[prost(uint64, tag = "1")]
    pub map: u64,
    #[prost(message, repeated, tag = "2")]
    pub cells: Vec<WireCellReport>,
}

/// See [`CellReport`].
#[derive(Clone, PartialEq, prost::Message)]
pub struct WireCellReport {
    #[prost(uint32, tag = "1")]
    pub space: u32,
    /// The owner, and its area.
    #[prost(message, optional, tag = "2")]
    pub area: Option<WireCell>,
    /// [`CellReport::load`].
    #[prost(double, tag = "3")]
    pub load: f64,
    /// [`CellReport::entities`].
    #[prost(uint64, tag = "4")]
    pub entities: u64,
    /// [`CellReport::witnesses`].
    #[prost(uint64, tag = "5")]
    pub witnesses: u64,
    /// [`CellReport::retires`].
    #[prost(bool, tag = "6")]
    pub retires: bool,
    /// [`CellReport::unmoved`] (ms).
    #[prost(uint64, optional, tag = "7")]
    pub unmoved: Option<u64>,
}

impl From<&CellList> for WireCellList {
    fn from(list: &CellList) -> Self {
        let cell = |cell: &CellReport| WireCellReport {
            space: cell.space.0,
            area: Some(WireCell::from(&cell.area)),
            load: cell.load,
            entities: cell.entities,
            witnesses: cell.witnesses,
            retires: cell.retires,
            unmoved: cell
                .unmoved
                .map(|unmoved| u64::try_from(unmoved.as_millis()).unwrap_or(u64::MAX)),
        };
        Self {
            map: list.map,
            cells: list.cells.iter().map(cell).collect(),
        }
    }
}

impl TryFrom<&WireCellList> for CellList {
    type Error = ControlError;

    fn try_from(wire: &WireCellList) -> Result<Self, ControlError> {
        let cells = wire.cells.iter().map(WireCellReport::report);
        Ok(Self {
            map: wire.map,
            cells: cells.collect::<Result<_, _>>()?,
        })
    }
}

impl WireCellReport {
    fn report(&self) -> Result<CellReport, ControlError> {
        let space = SpaceId(self.space);
        Ok(CellReport {
            space,
            area: self.area.unwrap_or_default().read(space)?,
            load: amount(self.load)?,
            entities: self.entities,
            witnesses: self.witnesses,
            retires: self.retires,
            unmoved: self.unmoved.map(Duration::from_millis),
        })
    }
}
