//! Parts of active entities, as their images are stored in logs and snapshots: by number.

use std::collections::BTreeMap;

use annals_authoring::{Audience, ChangeKind, Class, Diff, Subject};
use annals_def::{DataType, EntityType, MigrationError, Property, TypeChange, Value, check};
use annals_ids::{MemberId, Part};

use crate::diff::{
    TRIES, class_of, numbers,
    oracle::crossed,
    property_now, with_pairs,
    worlds::{Pair, sample},
};

/// Images tried where no image may be refused.
const SAMPLES: usize = 8;

/// Values of a part, by member.
type Image = BTreeMap<MemberId, Value>;

#[test]
fn an_active_part_is_read_according_to_the_change_class() {
    with_pairs(|about, pair, found, dice| {
        for old in pair.old.types() {
            let about = format!("{}\n{about}", old.name);
            match numbers(pair, found)(old.id).and_then(|id| pair.new.entity_type(id)) {
                None => {
                    let image = image(old, Part::Base, dice);
                    let result = found.plan.convert_held(old.id, Part::Base, &image);
                    assert_eq!(result, Err(MigrationError::TypeRemoved(old.name.clone())), "{about}");
                }
                Some(new) => Reading::of((pair, found), (old, new)).check(&about, dice),
            }
        }
    });
}

/// The properties that a part holds.
pub(crate) fn held(entity_type: &EntityType, part: Part) -> Vec<&Property> {
    let held = |property: &&Property| property.is_held_by(part);
    entity_type.properties.iter().filter(held).collect()
}

fn image(entity_type: &EntityType, part: Part, dice: &mut dyn FnMut() -> u64) -> Image {
    let all = held(entity_type, part).into_iter();
    all.map(|property| (property.index, sample(&property.data_type, dice)))
        .collect()
}

/// Parts of a type that are read under the new schema.
struct Reading<'a> {
    pair: &'a Pair,
    found: &'a Diff,
    old: &'a EntityType,
    new: &'a EntityType,
    class: Class,
    /// The class without changes that concern only histories.
    of_values: Class,
}

impl<'a> Reading<'a> {
    fn of((pair, found): (&'a Pair, &'a Diff), (old, new): (&'a EntityType, &'a EntityType)) -> Self {
        let numbers = numbers(pair, found);
        let moved = pair.old.types().iter().any(|other| numbers(other.id) != Some(other.id));
        let has_mailbox = |property: &Property| property.data_type.any(&mut |part| *part == DataType::Mailbox);
        let is_renumbered = numbers(old.id) != Some(old.id) || moved && old.properties.iter().any(has_mailbox);
        let concerns = |subject: &Subject, kind: &ChangeKind| match subject {
            Subject::Types => is_renumbered,
            Subject::Type(name) => *name == new.name && matches!(kind, ChangeKind::PropertiesRenumbered { .. }),
            Subject::Property(on, _) => *on == new.name,
            _ => false,
        };
        let of_history = |kind: &ChangeKind| match kind {
            ChangeKind::PropertyType(difference) => difference.change == TypeChange::SequenceKind,
            _ => false,
        };
        Self {
            pair,
            found,
            old,
            new,
            class: class_of(found, Audience::Log, concerns),
            of_values: class_of(found, Audience::Log, |subject, kind| {
                concerns(subject, kind) && !of_history(kind)
            }),
        }
    }

    fn check(&self, about: &str, dice: &mut dyn FnMut() -> u64) {
        let tries = if self.class == Class::Breaking { TRIES } else { SAMPLES };
        let parts = |entity_type: &EntityType| [entity_type.parts.base, entity_type.parts.cell];
        let [before, after] = [self.old, self.new].map(parts);
        let (mut differs, mut refused) = (false, false);
        for _ in 0..tries {
            for (at, part) in [Part::Base, Part::Cell].into_iter().enumerate() {
                if before[at] && !after[at] {
                    let result = self
                        .found
                        .plan
                        .convert_held(self.old.id, part, &image(self.old, part, dice));
                    assert!(matches!(result, Err(MigrationError::PartRemoved { .. })), "{about}");
                    assert_eq!(self.found.verdict(Audience::Log), Class::Breaking, "{about}");
                    return;
                }
                match self.read(about, part, &image(self.old, part, dice)) {
                    Some(is_other) => differs |= is_other,
                    None => refused = true,
                }
            }
            if refused {
                break;
            }
        }
        assert_eq!(refused, self.class == Class::Breaking, "{about}");
        // A mailbox changes only if its entity type does.
        let is_own = self.class == Class::NeedsMigration && self.of_values == self.class;
        let has_mailbox = |property: &Property| property.data_type.any(&mut |part| *part == DataType::Mailbox);
        let is_sure = is_own && !self.old.properties.iter().any(has_mailbox);
        assert!(differs || !is_sure, "read without a plan: {about}");
    }

    /// Whether the plan changes the image; `None` if the plan refuses it.
    fn read(&self, about: &str, part: Part, before: &Image) -> Option<bool> {
        let (type_id, after) = self.found.plan.convert_held(self.old.id, part, before).ok()?;
        assert_eq!(type_id, self.new.id, "{about}");
        let keys = held(self.new, part).into_iter().map(|property| property.index);
        assert!(after.keys().copied().eq(keys), "{about}");
        for (member, value) in &after {
            let property = self.new.property(*member).expect("held");
            assert_eq!(check(&property.data_type, value), Ok(()), "{about}");
            let mut from = held(self.old, part).into_iter();
            let Some(from) = from.find(|from| property_now(self.found, self.new, from) == Some(property)) else {
                assert_eq!(*value, property.default, "{about}");
                continue;
            };
            let types = (&from.data_type, &property.data_type);
            let kept = crossed(types, &before[&from.index], &numbers(self.pair, self.found));
            assert_eq!(*value, kept.unwrap_or_else(|| property.default.clone()), "{about}");
        }
        let differs = (type_id, &after) != (self.old.id, before);
        assert!(!differs || self.of_values >= Class::NeedsMigration, "{about}");
        Some(differs)
    }
}
