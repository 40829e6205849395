//! The parts of entities in a past realm, and what they were under the definitions of the time.

use std::{borrow::Cow, collections::BTreeMap};

use annals_def::{EntityType, Property, Schema, Value};
use annals_event::{Image, OwnerState};
use annals_ids::{DatabaseId, EntityId, Hash, OwnerId, Part, SpaceId};
use annals_store::segment::sha256;

use super::Past;

/// Which part of which entity.
pub type PartOf = (EntityId, Part);

/// A part of an entity, as it was.
#[derive(Clone, Copy, Debug)]
pub struct PartAt<'a> {
    /// Who held it.
    pub owner: OwnerId,
    /// To which owner it was under way, if it was.
    pub under_way: Option<OwnerId>,
    /// What it was.
    pub image: &'a Image,
    /// The definitions by whose numbers that is.
    pub schema: Hash,
}

impl Past {
    /// All parts that there were. One that was under way is the sender's until its receiver's log has it.
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
    /// In which space it was, if it is a cell part.
    #[must_use]
    pub fn space(&self) -> Option<SpaceId> {
        self.image.cell().map(|cell| cell.place.space)
    }

    /// The entity of the database that it stands for, if it is a base part of one.
    #[must_use]
    pub fn stored(&self) -> Option<DatabaseId> {
        let database = self.image.base().map(|base| base.database);
        database.filter(|database| database.0 != 0)
    }

    /// A digest of what the state hash of its owner covers of it: all but where it stood.
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

    /// What it held, property by property, in the order of the definitions; what these do not know is left out.
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
