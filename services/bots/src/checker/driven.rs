//! How much of a world was driven, according to an archive.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use annals_def::{Edit, Schema};
use annals_event::Body;
use annals_ids::{EntityId, MemberId, Part, TypeId};

/// Maximum names of undriven members that are printed; the rest are counted.
const MAX_PRINTED: usize = 5;

/// Collects the events of each entity until its type is known.
#[derive(Clone, Debug, Default)]
pub(super) struct Deeds {
    types: BTreeMap<EntityId, TypeId>,
    parts: BTreeSet<(EntityId, Part)>,
    changed: BTreeSet<(EntityId, MemberId)>,
    nested: BTreeSet<(EntityId, MemberId)>,
    sliced: BTreeSet<(EntityId, MemberId)>,
    invoked: BTreeSet<(EntityId, MemberId)>,
}

/// A part of a total.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Share {
    /// Number driven.
    pub driven: u64,
    /// Total number.
    pub all: u64,
}

/// How much of a world was driven.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Driven {
    /// Parts of entity types of which there was an entity.
    pub parts: Share,
    /// Properties held by a part that changed.
    pub properties: Share,
    /// Those that can change in a nested part, and did.
    pub nested: Share,
    /// Those that can change in a slice of an array, and did.
    pub slices: Share,
    /// Client methods that were invoked.
    pub client_methods: Share,
    /// Names of what was not driven.
    pub missing: Vec<String>,
}

impl Deeds {
    /// Takes a part whose creation was deleted by retention.
    pub(super) fn begin(&mut self, part: (EntityId, Part), type_id: TypeId) {
        self.types.insert(part.0, type_id);
        self.parts.insert(part);
    }

    pub(super) fn take(&mut self, entity: EntityId, part: Part, body: &Body) {
        let made = match body {
            Body::BaseCreated(creation) => creation.type_id,
            Body::CellCreated(creation) => creation.type_id,
            Body::Changed { member, change } => {
                self.changed.insert((entity, *member));
                match change.change().edit {
                    Edit::Splice { .. } => self.sliced.insert((entity, *member)),
                    Edit::Set(_) => !change.change().is_whole() && self.nested.insert((entity, *member)),
                };
                return;
            }
            Body::Invoked { method, .. } => {
                self.invoked.insert((entity, *method));
                return;
            }
            _ => return,
        };
        self.types.insert(entity, made);
        self.parts.insert((entity, part));
    }

    /// Compares what happened with what the schema has.
    pub(super) fn finish(&self, schema: &Schema) -> Driven {
        let by_type = |deeds: &BTreeSet<(EntityId, MemberId)>| -> BTreeSet<(TypeId, MemberId)> {
            let typed = |(entity, member): &(EntityId, MemberId)| Some((*self.types.get(entity)?, *member));
            deeds.iter().filter_map(typed).collect()
        };
        let made = |(entity, part): &(EntityId, Part)| Some((*self.types.get(entity)?, *part));
        let made: BTreeSet<(TypeId, Part)> = self.parts.iter().filter_map(made).collect();
        let (changed, invoked) = (by_type(&self.changed), by_type(&self.invoked));
        let (nested, sliced) = (by_type(&self.nested), by_type(&self.sliced));
        let mut driven = Driven::default();
        for found in schema.types() {
            let name = &found.name;
            for (has, part) in [(found.parts.base, Part::Base), (found.parts.cell, Part::Cell)] {
                if has {
                    let is_made = made.contains(&(found.id, part));
                    count(&mut driven.parts, &mut driven.missing, is_made, || {
                        format!("{name} ({part})")
                    });
                }
            }
            // What the ledger reports is not driven by a player; puppets do not know personal data.
            let driven_by =
                |property: &&annals_def::Property| property.account.is_none() && property.personal.is_none();
            for property in found.properties.iter().filter(driven_by) {
                let (on_base, on_cell) = (property.distribution.on_base(), property.distribution.on_cell());
                if (on_base && found.parts.base) || (on_cell && found.parts.cell) {
                    let is_changed = changed.contains(&(found.id, property.index));
                    let title = || format!("{name}.{}", property.name);
                    count(&mut driven.properties, &mut driven.missing, is_changed, title);
                    // A SendLatestOnly property is recorded as a whole however it changes.
                    let (data_type, in_parts) = (&property.data_type, !property.latest_only);
                    let key = (found.id, property.index);
                    if in_parts && data_type.has_parts() {
                        let title = || format!("a part of {}", title());
                        count(&mut driven.nested, &mut driven.missing, nested.contains(&key), title);
                    }
                    if in_parts && data_type.has_slices() {
                        let title = || format!("a slice of {}", title());
                        count(&mut driven.slices, &mut driven.missing, sliced.contains(&key), title);
                    }
                }
            }
            for method in &found.client_methods {
                let is_invoked = invoked.contains(&(found.id, method.index));
                let title = || format!("{name}.{}()", method.name);
                count(&mut driven.client_methods, &mut driven.missing, is_invoked, title);
            }
        }
        driven
    }
}

fn count(share: &mut Share, missing: &mut Vec<String>, is_driven: bool, title: impl FnOnce() -> String) {
    share.all += 1;
    if is_driven {
        share.driven += 1;
    } else {
        missing.push(title());
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}", self.driven, self.all)
    }
}

impl fmt::Display for Driven {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            parts,
            properties,
            nested,
            slices,
            client_methods,
            missing,
        } = self;
        write!(
            f,
            "driven: {parts} parts of entity types, {properties} properties ({nested} by parts, {slices} by slices), \
             {client_methods} client methods"
        )?;
        if !missing.is_empty() {
            let named = &missing[..missing.len().min(MAX_PRINTED)];
            write!(f, "; not driven: {}", named.join(", "))?;
            if missing.len() > MAX_PRINTED {
                write!(f, " and {} more", missing.len() - MAX_PRINTED)?;
            }
        }
        Ok(())
    }
}
