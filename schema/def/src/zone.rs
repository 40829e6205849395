//! Zones: what authors have placed in a world. Entities that are created when behaviour loads a zone, and user data objects,
//! which behaviour reads.
//!
//! Zones are read with the definitions, from `zones/NAME.xml`, and checked against them. They are constant while a
//! process runs. They are not part of what a schema means: neither its fingerprint nor its bytes contain them.

use std::collections::BTreeMap;

use annals_ids::{Direction, MemberId, Position, TypeId};

use crate::{data_type::UDO_REF_SIZE, typed::UdoRef, value::Value};

/// All zones of a world.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Zones {
    /// Ordered by name.
    zones: Vec<(String, Zone)>,
    /// The position of each object: of its zone, and in it.
    objects: BTreeMap<[u8; UDO_REF_SIZE], (usize, usize)>,
}

/// What was placed in one zone, each in the order of its file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Zone {
    pub entities: Vec<PlacedEntity>,
    pub objects: Vec<PlacedObject>,
}

/// An entity that is created when a zone is loaded.
#[derive(Clone, Debug, PartialEq)]
pub struct PlacedEntity {
    pub type_id: TypeId,
    pub position: Position,
    pub direction: Direction,
    /// Whether it has a base part. One without is created by a cell part.
    pub based: bool,
    /// The values that the author gave, of base and cell properties; the others have their defaults.
    pub properties: Vec<(MemberId, Value)>,
}

/// A user data object.
#[derive(Clone, Debug, PartialEq)]
pub struct PlacedObject {
    pub guid: UdoRef,
    /// The position of its type among [`Schema::user_data_objects`](crate::Schema::user_data_objects).
    pub kind: usize,
    pub position: Position,
    pub direction: Direction,
    /// The values of all properties, in the order of its type.
    pub properties: Vec<Value>,
}

impl Zones {
    /// Zones by name. Of two objects with the same GUID the first one is found by it.
    #[must_use]
    pub fn new(zones: BTreeMap<String, Zone>) -> Self {
        let zones: Vec<(String, Zone)> = zones.into_iter().collect();
        let mut objects = BTreeMap::new();
        for (zone, (_, placed)) in zones.iter().enumerate() {
            for (position, object) in placed.objects.iter().enumerate() {
                objects.entry(object.guid.0).or_insert((zone, position));
            }
        }
        Self { zones, objects }
    }

    /// The zones, ordered by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Zone)> {
        self.zones.iter().map(|(name, zone)| (name.as_str(), zone))
    }

    /// The zone of this name: that of its file, without `.xml`.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Zone> {
        let position = self
            .zones
            .binary_search_by(|(known, _)| known.as_str().cmp(name))
            .ok()?;
        Some(&self.zones[position].1)
    }

    /// The object to which a reference refers; `None` for a null reference, and for one to an object that is in no zone.
    #[must_use]
    pub fn object(&self, reference: UdoRef) -> Option<&PlacedObject> {
        let (zone, position) = *self.objects.get(&reference.0)?;
        self.zones[zone].1.objects.get(position)
    }
}
