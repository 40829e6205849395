//! Rows of stored entities.

use std::collections::BTreeMap;

use annals_authoring::{Audience, ChangeKind, Class, Diff, Subject};
use annals_def::{DataType, EntityType, MigrationError, Property, Schema, Value, check};
use annals_ids::TypeId;

use crate::diff::{
    TRIES, class_of, numbers,
    oracle::crossed,
    property_now, with_pairs,
    worlds::{Pair, sample},
};

/// Reads a row by name, as the database does (`services/db/src/stored.rs`); `None` if a value does not fit.
fn read_row(schema: &Schema, (name, row): (&str, &BTreeMap<String, Value>)) -> Option<BTreeMap<String, Value>> {
    let entity_type = schema.type_named(name).filter(|found| found.parts.base)?;
    let stored = entity_type.properties.iter().filter(|property| property.is_stored());
    let read = stored.map(|property| {
        let value = row.get(&property.name).unwrap_or(&property.default);
        let fits = check(&property.data_type, value).is_ok();
        fits.then(|| (property.name.clone(), value.clone()))
    });
    read.collect()
}

#[test]
fn a_stored_value_is_read_according_to_the_change_class() {
    with_pairs(|about, pair, found, dice| {
        let numbers = numbers(pair, found);
        for old in pair.old.types().iter().filter(|old| old.parts.base) {
            let new = numbers(old.id).and_then(|id| pair.new.entity_type(id));
            for property in old.properties.iter().filter(|property| property.is_stored()) {
                let about = format!("{}.{}\n{about}", old.name, property.name);
                match new {
                    None => {
                        let result = found.plan.convert_stored(&old.name, &row(property, &property.default));
                        assert_eq!(result, Err(MigrationError::TypeRemoved(old.name.clone())), "{about}");
                    }
                    Some(new) if !new.parts.base => {
                        let result = found.plan.convert_stored(&old.name, &row(property, &property.default));
                        assert!(matches!(result, Err(MigrationError::PartRemoved { .. })), "{about}");
                        assert_eq!(found.verdict(Audience::Stored), Class::Breaking, "{about}");
                    }
                    Some(new) => Reading::of((pair, found), (old, new), property).check(&about, dice),
                }
            }
        }
    });
}

fn row(property: &Property, value: &Value) -> BTreeMap<String, Value> {
    BTreeMap::from([(property.name.clone(), value.clone())])
}

/// A stored property that is read under the new schema.
struct Reading<'a> {
    pair: &'a Pair,
    found: &'a Diff,
    old: &'a EntityType,
    new: &'a EntityType,
    property: &'a Property,
    /// The new property, if it is still stored.
    target: Option<&'a Property>,
    class: Class,
    /// The class of the changes that concern the type and the index, but no value.
    beside: Class,
}

impl<'a> Reading<'a> {
    fn of(
        (pair, found): (&'a Pair, &'a Diff),
        (old, new): (&'a EntityType, &'a EntityType),
        property: &'a Property,
    ) -> Self {
        let numbers = numbers(pair, found);
        let now = property_now(found, new, property);
        let name = now.map_or(&property.name, |now| &now.name);
        let class = class_of(found, Audience::Stored, |subject, _| match subject {
            // Mailboxes of the samples have the first type.
            Subject::Types => {
                numbers(TypeId(0)) != Some(TypeId(0)) && property.data_type.any(&mut |part| *part == DataType::Mailbox)
            }
            Subject::Type(on) => *on == new.name,
            Subject::Property(on, member) => *on == new.name && member == name,
            _ => false,
        });
        let beside = class_of(found, Audience::Stored, |subject, kind| match (subject, kind) {
            (Subject::Type(on), ChangeKind::PartsChanged { .. }) => *on == new.name,
            (Subject::Property(on, member), ChangeKind::IdentifierChanged { .. } | ChangeKind::IndexChanged { .. }) => {
                *on == new.name && member == name
            }
            _ => false,
        });
        Self {
            pair,
            found,
            old,
            new,
            property,
            target: now.filter(|now| now.is_stored()),
            class,
            beside,
        }
    }

    fn check(&self, about: &str, dice: &mut dyn FnMut() -> u64) {
        let (mut differs, mut refused) = (false, false);
        for _ in 0..TRIES {
            match self.read(about, &sample(&self.property.data_type, dice)) {
                Some(is_other) => differs |= is_other,
                None => refused = true,
            }
            if self.class >= Class::NeedsMigration && differs && (self.class != Class::Breaking || refused) {
                break;
            }
        }
        match self.class {
            Class::NeedsMigration => {
                assert!(!refused, "{about}");
                let matters = differs || self.beside == Class::NeedsMigration;
                assert!(matters, "read without a plan: {about}");
            }
            Class::Breaking => assert!(refused || self.beside == Class::Breaking, "no witness: {about}"),
            _ => assert!(!refused, "{about}"),
        }
    }

    /// Whether reading without the plan gives another result than with it; `None` if the plan refuses the value.
    fn read(&self, about: &str, value: &Value) -> Option<bool> {
        let row = row(self.property, value);
        let direct = read_row(&self.pair.new, (&self.old.name, &row));
        let read = direct.as_ref().and_then(|read| read.get(&self.target?.name));
        let (name, converted) = self.found.plan.convert_stored(&self.old.name, &row).ok()?;
        assert_eq!(name, self.new.name, "{about}");
        let became = self.target.and_then(|now| converted.get(&now.name));
        if let Some(now) = self.target {
            let types = (&self.property.data_type, &now.data_type);
            let never_set = (*value == self.property.default).then(|| now.default.clone());
            let wanted = crossed(types, value, &numbers(self.pair, self.found)).or(never_set);
            assert_eq!(became, wanted.as_ref(), "{value}: {about}");
        }
        if self.class <= Class::Compatible {
            assert_eq!((read, became), (Some(value), Some(value)), "{about}");
        }
        Some(self.target.is_none() || read != became || name != self.old.name)
    }
}
