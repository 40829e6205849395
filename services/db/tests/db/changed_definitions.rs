//! Entities that are stored under one schema and read under another: the classification of a change to stored data
//! holds for what this crate writes and reads. The schemas and their edits are those of the comparison's own tests.

use std::collections::BTreeMap;

use crate::renamed::property_now;
use crate::worlds::{Pair, pair, sample};
use annals_authoring::{ChangeKind, Class, Diff, Subject, diff};
use annals_db::StoredEntity;
use annals_def::{DataType, EntityType, Property, Schema, Value, split_mix};
use annals_event::{BaseImage, Image, PartImage};
use annals_ids::{OwnerId, Part};

/// Pairs of schemas tried.
const PAIRS: u64 = 300;

/// Maximum edits between them.
const EDITS: u64 = 6;

/// Values tried to find one that a class promises to exist.
const TRIES: usize = 400;

#[test]
fn stored_properties_load_by_their_change_class() {
    let mut seen = BTreeMap::new();
    for seed in 0..PAIRS {
        let dice = &mut split_mix(seed);
        let pair = pair(EDITS, dice);
        let found = diff(&pair.old, &pair.new, &pair.renames);
        for old in pair.old.types().iter().filter(|old| old.parts.base) {
            // A type that is removed, or has no base any more, has no new row: the plan refuses all of them.
            let Ok((name, _)) = found.plan.convert_stored(&old.name, &BTreeMap::new()) else {
                continue;
            };
            let new = pair.new.type_named(&name).expect("the plan's member");
            for property in old.properties.iter().filter(|property| property.is_stored()) {
                let about = format!("seed {seed}, {}.{}\n{}", old.name, property.name, found.to_text());
                let reading = Reading::of((&pair, &found), (old, new), property);
                *seen.entry(reading.class.word()).or_insert(0) += 1;
                reading.check(&about, dice);
            }
        }
    }
    let classes: Vec<&str> = seen.keys().copied().collect();
    assert_eq!(
        classes,
        ["breaking", "compatible", "migration", "unaffected"],
        "{seen:?}"
    );
}

/// The stored form of an entity with one property set, after a write and a read.
fn written(entity_type: &EntityType, property: &Property, value: Value) -> StoredEntity {
    let part = PartImage::Base(BaseImage::default());
    let image = Image::new(entity_type.id, OwnerId(1), &[(property.index, value)], part);
    let mut stored = StoredEntity::default();
    stored.take_in(entity_type, &image);
    again(&stored)
}

fn again(stored: &StoredEntity) -> StoredEntity {
    let (generation, read) = StoredEntity::decode(&stored.encode(1)).expect("what was encoded");
    assert_eq!((generation, &read), (1, stored));
    read
}

/// Initial properties of an entity when it is loaded, both parts together; `None` if it is not loaded.
fn loaded(schema: &Schema, stored: &StoredEntity) -> Option<BTreeMap<String, Value>> {
    let entity_type = schema.type_named(&stored.entity_type)?;
    stored.fits(entity_type).ok()?;
    let parts = [Part::Base, Part::Cell].map(|part| stored.properties_of(entity_type, part));
    let named = parts.into_iter().flatten().map(|(member, value)| {
        let property = entity_type.property(member).expect("one of the type");
        (property.name.clone(), value)
    });
    Some(named.collect())
}

/// A stored property that is read under the new schema.
struct Reading<'a> {
    pair: &'a Pair,
    found: &'a Diff,
    old: &'a EntityType,
    property: &'a Property,
    /// The property in the new schema, if it is still stored.
    target: Option<&'a Property>,
    /// The gravest class among the changes that concern its values.
    class: Class,
    /// Whether the class promises a value of it that needs the plan, or is refused by it.
    has_witness: bool,
}

impl<'a> Reading<'a> {
    fn of(
        (pair, found): (&'a Pair, &'a Diff),
        (old, new): (&'a EntityType, &'a EntityType),
        property: &'a Property,
    ) -> Self {
        let now = property_now(found, new, property);
        let name = now.map_or(&property.name, |now| &now.name);
        let concerns = |subject: &Subject, kind: &ChangeKind| match (subject, kind) {
            // The index is not part of the loaded properties.
            (
                _,
                ChangeKind::IdentifierChanged { .. }
                | ChangeKind::IndexChanged { .. }
                | ChangeKind::PartsChanged { .. },
            ) => false,
            // Mailboxes of the samples are of the first type.
            (Subject::Types, _) => {
                let moved = pair.new.types().first().map(|first| &first.name)
                    != pair.old.types().first().map(|first| &first.name);
                moved && has(&property.data_type, &|part| *part == DataType::Mailbox)
            }
            (Subject::Type(on), _) => *on == new.name,
            (Subject::Property(on, member), _) => *on == new.name && member == name,
            _ => false,
        };
        let changes = found
            .changes
            .iter()
            .filter(|change| concerns(&change.subject, &change.kind));
        let class = changes
            .map(|change| change.effects.stored.class)
            .max()
            .unwrap_or(Class::Unaffected);
        // Fields that are not persistent are stored as their defaults, which need not show the effect on other values.
        let has_unstored_field = has(&property.data_type, &|part| match part {
            DataType::FixedDict(dict) => dict.fields.iter().any(|field| !field.persistent),
            _ => false,
        });
        Self {
            pair,
            found,
            old,
            property,
            target: now.filter(|now| now.is_stored()),
            class,
            has_witness: class >= Class::NeedsMigration && !has_unstored_field,
        }
    }

    fn check(&self, about: &str, dice: &mut dyn FnMut() -> u64) {
        let (mut differs, mut refused) = (false, false);
        for _ in 0..TRIES {
            match self.read(about, sample(&self.property.data_type, dice)) {
                Some(is_other) => differs |= is_other,
                None => refused = true,
            }
            let is_shown = match self.class {
                Class::Breaking => refused,
                Class::NeedsMigration => differs,
                Class::Unaffected | Class::Compatible => false,
            };
            if is_shown {
                break;
            }
        }
        assert!(!refused || self.class == Class::Breaking, "refused: {about}");
        if self.has_witness {
            let is_shown = if self.class == Class::Breaking {
                refused
            } else {
                differs
            };
            assert!(is_shown, "no value shows the class: {about}");
        }
    }

    /// Whether a value is loaded as a different one without the plan, or not at all; `None` if the plan refuses it.
    fn read(&self, about: &str, value: Value) -> Option<bool> {
        let stored = written(self.old, self.property, value);
        let value = &stored.properties[&self.property.name];
        let direct = loaded(&self.pair.new, &stored);
        if self.class <= Class::Compatible {
            let read = direct.as_ref().and_then(|read| read.get(&self.property.name));
            assert_eq!(read, Some(value), "{about}");
        }
        let (entity_type, properties) = match self.found.plan.convert_stored(&self.old.name, &stored.properties) {
            Ok(converted) => converted,
            Err(_) => {
                // What the plan refuses is not loaded without it either, except opaque values, which are not examined.
                let is_opaque = has(&self.property.data_type, &|part| matches!(part, DataType::Python(_)));
                let is_named_so = self.pair.new.type_named(&self.old.name).is_some()
                    && self.target.is_some_and(|now| now.name == self.property.name);
                assert!(
                    is_opaque || !is_named_so || direct.is_none(),
                    "{value} is loaded: {about}"
                );
                return None;
            }
        };
        let migrated = again(&StoredEntity {
            entity_type,
            properties,
        });
        let became = loaded(&self.pair.new, &migrated);
        assert!(became.is_some(), "{value} does not fit after the plan: {about}");
        assert_eq!(became.as_ref(), Some(&migrated.properties), "{about}");
        Some(self.target.is_none() || direct != became)
    }
}

/// Whether a type, or one nested in it, satisfies `is`.
fn has(data_type: &DataType, is: &dyn Fn(&DataType) -> bool) -> bool {
    data_type.any(&mut |part| is(part))
}
