//! The load of an owner, as reported to the director, which places the boundaries of cells by it.
//!
//! The director does not know the positions of entities. To move a boundary by the right distance it needs the
//! distribution of an owner's load along each axis: [`Levels`].

use std::collections::BTreeMap;

use annals_ids::{OwnerId, SpaceId};

use crate::control::ControlError;

/// The load of a real entity (units).
pub const ENTITY_UNITS: f64 = 1.0;

/// Additional load of an entity with a client (units): most of the work of a cell is for witnesses.
pub const WITNESS_UNITS: f64 = 10.0;

/// The shares of the load for which [`Levels`] contain positions, in 2,048ths: dense near both edges, where boundaries
/// are. The boundary of a small share is thus as precise as that of a half.
const SHARES: [u16; 39] = {
    let half = [
        0, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768,
    ];
    let mut shares = [WHOLE / 2; 39];
    let mut at = 0;
    while at < half.len() {
        shares[at] = half[at];
        shares[shares.len() - 1 - at] = WHOLE - half[at];
        at += 1;
    }
    shares
};

const WHOLE: u16 = 2_048;

/// Positions along an axis below which given shares of a load lie.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Levels(Vec<f32>);

/// An owner's report of its load.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Load {
    /// The share of time during which its core works, from 0 to 1.
    pub busy: f64,
    /// The distribution of its load.
    pub survey: Survey,
}

/// The entities on an owner.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Survey {
    /// The version of the map that the survey is based on.
    pub map: u64,
    /// By space.
    pub spaces: BTreeMap<SpaceId, SpaceSurvey>,
}

/// The entities on an owner in one space.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SpaceSurvey {
    /// Number of real entities there.
    pub entities: u64,
    /// Number of those that have a client.
    pub witnesses: u64,
    /// The load that stays there (units).
    pub units: f64,
    /// The load that is to be handed over (units), by receiving owner.
    pub leaving: BTreeMap<OwnerId, f64>,
    /// The distribution of the staying load from west to east.
    pub x: Levels,
    /// The distribution of the staying load from south to north.
    pub z: Levels,
}

impl Levels {
    /// The levels of these positions, each with its load. Positions that are not finite are ignored, and so are those
    /// without load.
    #[must_use]
    pub fn of(mut points: Vec<(f32, f64)>) -> Self {
        points.retain(|(at, load)| at.is_finite() && *load > 0.0);
        points.sort_unstable_by(|one, other| one.0.total_cmp(&other.0));
        let (Some((_, first)), Some((last, _))) = (points.first().copied(), points.last().copied()) else {
            return Self::default();
        };
        let total: f64 = points.iter().map(|(_, load)| load).sum();
        let (mut place, mut upto) = (0, first);
        let level = |share| {
            let wanted = total * f64::from(share) / f64::from(WHOLE);
            while upto < wanted && place + 1 < points.len() {
                place += 1;
                upto += points[place].1;
            }
            points[place].0
        };
        let mut levels: Vec<f32> = SHARES.into_iter().map(level).collect();
        // Rounding may leave the sum of all slightly above the whole.
        levels[SHARES.len() - 1] = last;
        Self(levels)
    }

    /// Decodes received levels; `None` unless they ascend and are as many as there are shares, or none.
    #[must_use]
    pub fn read(levels: &[f32]) -> Option<Self> {
        let complete = levels.is_empty() || levels.len() == SHARES.len();
        let ascend = levels.windows(2).all(|pair| pair[0] <= pair[1]);
        (complete && ascend && levels.iter().all(|level| level.is_finite())).then(|| Self(levels.to_vec()))
    }

    /// The form in which they are sent.
    #[must_use]
    pub fn as_slice(&self) -> &[f32] {
        &self.0
    }

    /// The least and the greatest position; `None` if there are none.
    #[must_use]
    pub fn ends(&self) -> Option<(f32, f32)> {
        Some((*self.0.first()?, *self.0.last()?))
    }

    /// The share of the load below a position.
    #[must_use]
    pub fn below(&self, position: f32) -> f64 {
        let above = self.0.partition_point(|level| *level < position);
        let share = |place: usize| f64::from(SHARES[place]) / f64::from(WHOLE);
        match above {
            0 => 0.0,
            above if above == self.0.len() => 1.0,
            above => {
                let (low, high) = (self.0[above - 1], self.0[above]);
                let part = f64::from(position - low) / f64::from(high - low);
                share(above - 1) + part * (share(above) - share(above - 1))
            }
        }
    }
}

impl SpaceSurvey {
    /// The load that is to be handed over (units).
    #[must_use]
    pub fn leaving_units(&self) -> f64 {
        self.leaving.values().sum()
    }
}

/// See [`Load`].
#[derive(Clone, PartialEq, prost::Message)]
pub struct WireLoad {
    /// [`Load::busy`].
    #[prost(double, tag = "1")]
    pub busy: f64,
    /// [`Survey::map`].
    #[prost(uint64, tag = "2")]
    pub map: u64,
    /// [`Survey::spaces`].
    #[prost(message, repeated, tag = "3")]
    pub spaces: Vec<WireSpaceLoad>,
}

/// See [`SpaceSurvey`].
#[derive(Clone, PartialEq, prost::Message)]
pub struct WireSpaceLoad {
    #[prost(uint32, tag = "1")]
    pub space: u32,
    /// Number of real entities.
    #[prost(uint64, tag = "2")]
    pub entities: u64,
    /// Number of those that have a client.
    #[prost(uint64, tag = "3")]
    pub witnesses: u64,
    /// The load that stays (units).
    #[prost(double, tag = "4")]
    pub units: f64,
    /// The load that leaves.
    #[prost(message, repeated, tag = "5")]
    pub leaving: Vec<WireLeaving>,
    /// [`Levels`] from west to east.
    #[prost(float, repeated, tag = "6")]
    pub x: Vec<f32>,
    /// [`Levels`] from south to north.
    #[prost(float, repeated, tag = "7")]
    pub z: Vec<f32>,
}

/// The load that leaves for one owner.
#[derive(Clone, PartialEq, prost::Message)]
pub struct WireLeaving {
    /// The receiving owner.
    #[prost(uint32, tag = "1")]
    pub owner: u32,
    /// The load (units).
    #[prost(double, tag = "2")]
    pub units: f64,
}

impl From<&Load> for WireLoad {
    fn from(load: &Load) -> Self {
        let leaving = |(owner, units): (&OwnerId, &f64)| WireLeaving {
            owner: owner.0,
            units: *units,
        };
        let spaces = load.survey.spaces.iter().map(|(id, space)| WireSpaceLoad {
            space: id.0,
            entities: space.entities,
            witnesses: space.witnesses,
            units: space.units,
            leaving: space.leaving.iter().map(leaving).collect(),
            x: space.x.0.clone(),
            z: space.z.0.clone(),
        });
        Self {
            busy: load.busy,
            map: load.survey.map,
            spaces: spaces.collect(),
        }
    }
}

impl TryFrom<&WireLoad> for Load {
    type Error = ControlError;

    fn try_from(wire: &WireLoad) -> Result<Self, ControlError> {
        let spaces = wire
            .spaces
            .iter()
            .map(|space| Ok((SpaceId(space.space), space.survey()?)));
        Ok(Self {
            busy: amount(wire.busy)?,
            survey: Survey {
                map: wire.map,
                spaces: spaces.collect::<Result<_, ControlError>>()?,
            },
        })
    }
}

impl WireSpaceLoad {
    fn survey(&self) -> Result<SpaceSurvey, ControlError> {
        let leaving = self.leaving.iter().map(|to| Ok((OwnerId(to.owner), amount(to.units)?)));
        let levels = |levels: &[f32]| Levels::read(levels).ok_or(ControlError::Load("the position"));
        Ok(SpaceSurvey {
            entities: self.entities,
            witnesses: self.witnesses,
            units: amount(self.units)?,
            leaving: leaving.collect::<Result<_, ControlError>>()?,
            x: levels(&self.x)?,
            z: levels(&self.z)?,
        })
    }
}

pub(crate) fn amount(given: f64) -> Result<f64, ControlError> {
    let is_one = given.is_finite() && given >= 0.0;
    is_one.then_some(given).ok_or(ControlError::Load("the amount"))
}
