//! Entity parts in a past realm, with the definitions of the time.

use std::{borrow::Cow, collections::BTreeMap};

use annals_def::{EntityType, Property, Schema, Value};
use annals_event::{Image, OwnerState};
use annals_ids::{DatabaseId, EntityId, Hash, OwnerId, Part, SpaceId};
use annals_store::segment::sha256;

use super::Past;

/// An entity and which part of it.
pub type PartOf = (EntityId, Part);

/// A part of an entity in a past realm.
#[derive(Clone, Copy, Debug)]
pub struct PartAt<'a> {
    /// The owner that held it.
    pub owner: OwnerId,
    /// The owner to which it was being handed over, if any.
    pub under_way: Option<OwnerId>,
    /// Its state.
    pub image: &'a Image,
    /// The definitions that the image conforms to.
    pub schema: Hash,
}

impl Past {
    /// All parts. A part in hand-over belongs to the sender until the receiver's log has it.
    #[must_use]
    pub fn parts(&self) -> BTreeMap<PartOf, PartAt<'_>> {
        let mut found = BTreeMap::new();
        for state in self.owners().values() {
            for (&(to, _), (entity, image)) in &state.departing {
                found.insert((*entity, part_of(image)), part(state, image, Some(to)));
            }
        }
        for state in self.owners().values() {
            for (entity, image) in &state.entities {
                found.insert((*entity, part_of(image)), part(state, image, None));
            }
        }
        found
    }
}

fn part<'a>(state: &OwnerState, image: &'a Image, under_way: Option<OwnerId>) -> PartAt<'a> {
    PartAt {
        owner: state.owner,
        under_way,
        image,
        schema: state.schema,
    }
}

fn part_of(image: &Image) -> Part {
    if image.base().is_some() { Part::Base } else { Part::Cell }
}

impl<'a> PartAt<'a> {
    /// The space it was in, for a cell part.
    #[must_use]
    pub fn space(&self) -> Option<SpaceId> {
        self.image.cell().map(|cell| cell.place.space)
    }

    /// The stored entity, for a base part that has one.
    #[must_use]
    pub fn stored(&self) -> Option<DatabaseId> {
        let database = self.image.base().map(|base| base.database);
        database.filter(|database| database.0 != 0)
    }

    /// A digest of what its owner's state hash covers of it: everything but its position.
    #[must_use]
    pub fn hash(&self) -> Hash {
        let mut bytes = Vec::new();
        self.image.write_stable(&mut bytes);
        sha256(&bytes)
    }

    /// Its type.
    #[must_use]
    pub fn entity_type<'s>(&self, schemas: &'s BTreeMap<Hash, Schema>) -> Option<&'s EntityType> {
        schemas.get(&self.schema)?.entity_type(self.image.type_id)
    }

    /// Its property values, in the order of the definitions; values of properties unknown to them are omitted.
    pub fn properties<'s>(
        &self,
        schemas: &'s BTreeMap<Hash, Schema>,
    ) -> impl Iterator<Item = (&'s Property, Cow<'a, Value>)> {
        let image = self.image;
        let known = self
            .entity_type(schemas)
            .into_iter()
            .flat_map(|found| &found.properties);
        known.filter_map(move |property| Some((property, image.value(property)?)))
    }
}
