//! What the client of a cell part is shown of other entities, where it differs from the defaults of its space.
//!
//! ```text
//! sight  = area list(entity:number)
//! area   = 0:u8  |  1:u8 radius:f32 hysteresis:f32
//! change = 0:u8 area  |  1:u8 entity:number  |  2:u8 entity:number
//! ```
//! Entities ascend. Floats are 4 bytes, little-endian, finite and not negative.

use std::collections::BTreeSet;

use annals_ids::EntityId;

use crate::encoding::{Malformed, Reader, put_number};

/// Maximum number of entities shown by id: each is looked up at every tick.
pub const MANUAL_LIMIT: usize = 256;

/// The area of interest of one part.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AreaOfInterest {
    /// Half the side of the square within which others enter the view (m).
    pub radius: f32,
    /// Additional distance at which they leave it (m).
    pub hysteresis: f32,
}

/// Which other entities the client of a cell part is shown.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sight {
    /// The area of interest; `None` for the default of the space.
    pub area: Option<AreaOfInterest>,
    /// Entities that are shown wherever in the space they are (manual AoI).
    pub manual: BTreeSet<EntityId>,
}

/// A change of [`Sight`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SightChange {
    /// Sets the area of interest.
    Area(Option<AreaOfInterest>),
    /// Shows this entity wherever it is.
    Added(EntityId),
    /// Shows this entity only by the usual rules.
    Removed(EntityId),
}

impl AreaOfInterest {
    /// Whether the distances are finite and not negative.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        let distances = [self.radius, self.hysteresis];
        distances
            .iter()
            .all(|metres| metres.is_finite() && metres.is_sign_positive())
    }

    /// Maximum distance at which an entity can be in view because of this area (m).
    #[must_use]
    pub fn reach(&self) -> f32 {
        self.radius + self.hysteresis
    }
}

impl Sight {
    pub(crate) fn apply(&mut self, change: &SightChange) -> Result<(), &'static str> {
        match change {
            SightChange::Area(area) => self.area = *area,
            SightChange::Added(_) if self.manual.len() >= MANUAL_LIMIT => return Err("the manual view is full"),
            SightChange::Added(entity) if !self.manual.insert(*entity) => {
                return Err("the entity is already in the \
             manual view");
            }
            SightChange::Removed(entity) if !self.manual.remove(entity) => {
                return Err("the entity is not in the manual \
             view");
            }
            SightChange::Added(_) | SightChange::Removed(_) => {}
        }
        Ok(())
    }

    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        put_area(out, self.area.as_ref());
        put_number(out, self.manual.len() as u64);
        self.manual.iter().for_each(|entity| put_number(out, entity.0));
    }

    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let area = take_area(reader)?;
        let wrong = reader.malformed("entities in view");
        let count = reader.count(1, "entities in view")?;
        let manual = (0..count).map(|_| take_entity(reader)).collect::<Result<Vec<_>, _>>()?;
        if count > MANUAL_LIMIT || !manual.is_sorted_by(|one, next| one < next) {
            return Err(wrong);
        }
        Ok(Self {
            area,
            manual: manual.into_iter().collect(),
        })
    }
}

impl SightChange {
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Area(area) => {
                out.push(0);
                put_area(out, area.as_ref());
            }
            Self::Added(entity) => {
                out.push(1);
                put_number(out, entity.0);
            }
            Self::Removed(entity) => {
                out.push(2);
                put_number(out, entity.0);
            }
        }
    }

    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let wrong = reader.malformed("change of sight");
        Ok(match reader.byte("change of sight")? {
            0 => Self::Area(take_area(reader)?),
            1 => Self::Added(take_entity(reader)?),
            2 => Self::Removed(take_entity(reader)?),
            _ => return Err(wrong),
        })
    }
}

fn put_area(out: &mut Vec<u8>, area: Option<&AreaOfInterest>) {
    super::call::put_option(out, area, |out, area| {
        out.extend(area.radius.to_bits().to_le_bytes());
        out.extend(area.hysteresis.to_bits().to_le_bytes());
    });
}

fn take_area(reader: &mut Reader<'_>) -> Result<Option<AreaOfInterest>, Malformed> {
    let wrong = reader.malformed("area of interest");
    let area = super::call::take_option(reader, |reader| {
        let mut metres = || Ok(f32::from_bits(u32::from_le_bytes(reader.array("distance")?)));
        Ok(AreaOfInterest {
            radius: metres()?,
            hysteresis: metres()?,
        })
    })?;
    if area.is_none_or(|area| area.is_sound()) {
        Ok(area)
    } else {
        Err(wrong)
    }
}

fn take_entity(reader: &mut Reader<'_>) -> Result<EntityId, Malformed> {
    Ok(EntityId(reader.number("entity")?))
}
