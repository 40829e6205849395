//! An overview of a region of a space: the number of a cell's entities there, and the positions of some of them. For
//! operators who watch a realm.

use annals_ids::{EntityId, Hash, SpaceId, TypeId};

use crate::control::ControlError;

/// Maximum entities in an overview: some 15 kB, and as many as a map can show apart.
pub const OVERVIEW_ENTITIES: usize = 1_000;

/// Asks the holder of a cell owner for an overview. Answer: [`WireOverview`].
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct OverviewRequest {
    #[prost(uint32, tag = "1")]
    pub space: u32,
    /// The edges of the region, metres; they may be infinite.
    #[prost(float, tag = "2")]
    pub west: f32,
    #[prost(float, tag = "3")]
    pub east: f32,
    #[prost(float, tag = "4")]
    pub south: f32,
    #[prost(float, tag = "5")]
    pub north: f32,
    /// Maximum entities in the answer, up to [`OVERVIEW_ENTITIES`].
    #[prost(uint32, tag = "6")]
    pub limit: u32,
}

/// Real entities of one cell in a region.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Overview {
    /// The definitions that type ids are of.
    pub schema: Hash,
    /// Number of entities.
    pub entities: u64,
    /// Number of those that have a client.
    pub clients: u64,
    /// As many of them as were requested, ascending. From one overview to the next they are the same ones, as far as
    /// they are still there.
    pub sample: Vec<OverviewEntity>,
}

/// An entity in an overview.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OverviewEntity {
    pub entity: EntityId,
    pub type_id: TypeId,
    pub x: f32,
    pub z: f32,
    pub has_client: bool,
}

/// See [`Overview`]; the sample is in columns, which need the fewest bytes.
#[derive(Clone, PartialEq, prost::Message)]
pub struct WireOverview {
    /// [`Overview::schema`].
    #[prost(bytes = "vec", tag = "1")]
    pub schema: Vec<u8>,
    /// [`Overview::entities`].
    #[prost(uint64, tag = "2")]
    pub entities: u64,
    /// [`Overview::clients`].
    #[prost(uint64, tag = "3")]
    pub clients: u64,
    /// Ids of the sample.
    #[prost(uint64, repeated, tag = "4")]
    pub ids: Vec<u64>,
    /// Its types.
    #[prost(uint32, repeated, tag = "5")]
    pub types: Vec<u32>,
    /// Its positions.
    #[prost(float, repeated, tag = "6")]
    pub x: Vec<f32>,
    /// See `x`.
    #[prost(float, repeated, tag = "7")]
    pub z: Vec<f32>,
    /// Which of it have a client.
    #[prost(bool, repeated, tag = "8")]
    pub has_client: Vec<bool>,
}

impl OverviewRequest {
    /// For a whole space.
    #[must_use]
    pub fn of_space(space: SpaceId) -> Self {
        Self {
            space: space.0,
            west: f32::NEG_INFINITY,
            east: f32::INFINITY,
            south: f32::NEG_INFINITY,
            north: f32::INFINITY,
            limit: u32::try_from(OVERVIEW_ENTITIES).unwrap_or(u32::MAX),
        }
    }

    /// Whether a position in the space is in the region. With an edge that is NaN none is.
    #[must_use]
    pub fn contains(&self, x: f32, z: f32) -> bool {
        self.west <= x && x < self.east && self.south <= z && z < self.north
    }

    /// Maximum entities in the answer.
    #[must_use]
    pub fn limit(&self) -> usize {
        usize::try_from(self.limit).map_or(OVERVIEW_ENTITIES, |limit| limit.min(OVERVIEW_ENTITIES))
    }
}

impl From<&Overview> for WireOverview {
    fn from(overview: &Overview) -> Self {
        let sample = &overview.sample;
        Self {
            schema: overview.schema.0.to_vec(),
            entities: overview.entities,
            clients: overview.clients,
            ids: sample.iter().map(|seen| seen.entity.0).collect(),
            types: sample.iter().map(|seen| u32::from(seen.type_id.0)).collect(),
            x: sample.iter().map(|seen| seen.x).collect(),
            z: sample.iter().map(|seen| seen.z).collect(),
            has_client: sample.iter().map(|seen| seen.has_client).collect(),
        }
    }
}

impl TryFrom<&WireOverview> for Overview {
    type Error = ControlError;

    fn try_from(wire: &WireOverview) -> Result<Self, ControlError> {
        let count = wire.ids.len();
        let columns = [wire.types.len(), wire.x.len(), wire.z.len(), wire.has_client.len()];
        if columns != [count; 4] {
            return Err(ControlError::Overview("its columns differ in length"));
        }
        if count > OVERVIEW_ENTITIES || count as u64 > wire.entities || wire.clients > wire.entities {
            return Err(ControlError::Overview("it has more entities than it may"));
        }
        let schema = wire.schema.as_slice().try_into().map(Hash);
        let schema = schema.map_err(|_| ControlError::Overview("the fingerprint is not a hash"))?;
        let seen = |nth: usize| {
            let (x, z) = (wire.x[nth], wire.z[nth]);
            if !x.is_finite() || !z.is_finite() {
                return Err(ControlError::Overview("a position is not finite"));
            }
            let type_id = wire.types[nth].try_into().map(TypeId);
            Ok(OverviewEntity {
                entity: EntityId(wire.ids[nth]),
                type_id: type_id.map_err(|_| ControlError::Overview("a type is not an id"))?,
                x,
                z,
                has_client: wire.has_client[nth],
            })
        };
        Ok(Self {
            schema,
            entities: wire.entities,
            clients: wire.clients,
            sample: (0..count).map(seen).collect::<Result<_, _>>()?,
        })
    }
}
