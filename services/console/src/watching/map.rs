//! Frames of the map: the cells of a space, and the entities of a region of it.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use annals_def::Schema;
use annals_ids::{Hash, SpaceId, TypeId};
use annals_wire::{
    cells::CellReport,
    overview::{OVERVIEW_ENTITIES, Overview, OverviewRequest},
};
use futures::{StreamExt, stream};
use serde::Serialize;

use crate::{
    casework::Casework,
    live::{Live, LiveError},
};

/// Maximum entities in a frame, of all cells: some 150 kB.
const FRAME_ENTITIES: usize = 4_000;

/// Cells asked at the same time.
const ASKED_AT_ONCE: usize = 16;

/// Definitions of which type names are kept: those of the realm and of a migration.
const SCHEMAS: usize = 4;

/// A region of a space that is watched. Its edges are whole metres, so that pages that show the same share frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Watched {
    pub(crate) space: SpaceId,
    /// The whole space if there are none.
    pub(crate) edges: Option<Edges>,
}

/// Edges of a region, metres.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Edges {
    pub(crate) west: i32,
    pub(crate) east: i32,
    pub(crate) south: i32,
    pub(crate) north: i32,
}

/// What the map shows at a moment.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct MapFrame {
    pub(crate) realm: String,
    pub(crate) space: u32,
    /// Version of the division.
    pub(crate) map: u64,
    /// All spaces of the realm.
    pub(crate) spaces: Vec<u32>,
    pub(crate) cells: Vec<MapCell>,
    /// Names of entity types, to which entities refer by their place in this list.
    pub(crate) types: Vec<String>,
    pub(crate) entities: Vec<MapEntity>,
    /// What needs attention.
    pub(crate) alarms: Vec<String>,
}

/// A cell on the map.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct MapCell {
    pub(crate) owner: u32,
    /// Its edges; none where it is unbounded.
    pub(crate) west: Option<f32>,
    pub(crate) east: Option<f32>,
    pub(crate) south: Option<f32>,
    pub(crate) north: Option<f32>,
    pub(crate) load: f64,
    pub(crate) entities: u64,
    pub(crate) clients: u64,
    pub(crate) moved_seconds_ago: Option<u64>,
    pub(crate) is_retiring: bool,
    /// Number of its entities in the region; none if the cell has not answered.
    pub(crate) in_region: Option<u64>,
}

/// An entity on the map: its id, which exceeds what a script's numbers hold, the place of its type in the list of names,
/// its position, and whether it has a client.
#[derive(Debug, Serialize)]
pub(crate) struct MapEntity(pub(crate) String, usize, f64, f64, u8);

/// Definitions, for the names of entity types.
#[derive(Default)]
pub(crate) struct Names(Mutex<BTreeMap<Hash, Arc<Schema>>>);

impl Edges {
    fn is_valid(self) -> bool {
        self.west < self.east && self.south < self.north
    }
}

impl Watched {
    pub(crate) fn new(space: SpaceId, edges: Option<Edges>) -> Self {
        Self {
            space,
            edges: edges.filter(|edges| edges.is_valid()),
        }
    }

    fn request(self, limit: usize) -> OverviewRequest {
        let whole = OverviewRequest::of_space(self.space);
        let limit = u32::try_from(limit).unwrap_or(u32::MAX);
        match self.edges {
            None => OverviewRequest { limit, ..whole },
            Some(edges) => OverviewRequest {
                west: edges.west as f32,
                east: edges.east as f32,
                south: edges.south as f32,
                north: edges.north as f32,
                limit,
                ..whole
            },
        }
    }
}

impl Names {
    /// The definitions with this fingerprint, if the store has them.
    async fn schema(&self, casework: &Casework, fingerprint: Hash) -> Option<Arc<Schema>> {
        let known = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(schema) = known().get(&fingerprint) {
            return Some(Arc::clone(schema));
        }
        let (_, mut schemas) = casework.about().await.ok()?;
        let schema = Arc::new(schemas.remove(&fingerprint)?);
        let mut known = known();
        if known.len() >= SCHEMAS {
            known.clear();
        }
        known.insert(fingerprint, Arc::clone(&schema));
        Some(schema)
    }
}

/// Makes a frame.
pub(super) async fn frame(
    (live, casework): (&Live, &Casework),
    names: &Names,
    watched: Watched,
) -> Result<MapFrame, LiveError> {
    let list = live.cells().await?;
    let mut spaces: Vec<u32> = list.cells.iter().map(|cell| cell.space.0).collect();
    spaces.dedup();
    let cells: Vec<CellReport> = list
        .cells
        .into_iter()
        .filter(|cell| cell.space == watched.space)
        .collect();
    let asked = watched.request((FRAME_ENTITIES / cells.len().max(1)).clamp(1, OVERVIEW_ENTITIES));
    let mut frame = MapFrame {
        realm: live.realm().to_string(),
        space: watched.space.0,
        map: list.map,
        spaces,
        cells: Vec::new(),
        types: Vec::new(),
        entities: Vec::new(),
        alarms: Vec::new(),
    };
    let overviews: Vec<Option<Overview>> = stream::iter(cells.clone())
        .map(|cell| async move {
            match overlaps(&cell, &asked) {
                true => live.overview(cell.area.owner, &asked).await,
                false => Some(Overview::default()),
            }
        })
        .buffered(ASKED_AT_ONCE)
        .collect()
        .await;
    let mut places: BTreeMap<(Hash, TypeId), usize> = BTreeMap::new();
    for (cell, overview) in cells.iter().zip(overviews) {
        frame.cells.push(of_cell(cell, overview.as_ref()));
        for seen in overview.iter().flat_map(|overview| &overview.sample) {
            let fingerprint = overview.as_ref().map_or(Hash::ZERO, |overview| overview.schema);
            let type_place = match places.get(&(fingerprint, seen.type_id)) {
                Some(place) => *place,
                None => {
                    let schema = names.schema(casework, fingerprint).await;
                    let name = schema.as_ref().and_then(|schema| schema.entity_type(seen.type_id));
                    let name = name.map_or_else(|| format!("type {}", seen.type_id), |found| found.name.clone());
                    frame.types.push(name);
                    places.insert((fingerprint, seen.type_id), frame.types.len() - 1);
                    frame.types.len() - 1
                }
            };
            frame.entities.push(MapEntity(
                seen.entity.to_string(),
                type_place,
                centimetres(seen.x),
                centimetres(seen.z),
                u8::from(seen.has_client),
            ));
        }
    }
    Ok(frame)
}

fn overlaps(cell: &CellReport, region: &OverviewRequest) -> bool {
    let area = &cell.area;
    area.west < region.east && region.west < area.east && area.south < region.north && region.south < area.north
}

fn of_cell(cell: &CellReport, overview: Option<&Overview>) -> MapCell {
    let edge = |at: f32| at.is_finite().then_some(at);
    MapCell {
        owner: cell.area.owner.0,
        west: edge(cell.area.west),
        east: edge(cell.area.east),
        south: edge(cell.area.south),
        north: edge(cell.area.north),
        load: (cell.load * 1_000.0).round() / 1_000.0,
        entities: cell.entities,
        clients: cell.witnesses,
        moved_seconds_ago: cell.unmoved.map(|unmoved| unmoved.as_secs()),
        is_retiring: cell.retires,
        in_region: overview.map(|overview| overview.entities),
    }
}

/// Rounded to centimetres, which need fewer bytes.
fn centimetres(at: f32) -> f64 {
    (f64::from(at) * 100.0).round() / 100.0
}
