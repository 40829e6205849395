//! Comparison of entity types.

use std::collections::BTreeSet;

use annals_def::{DataType, EntityType, Plan, Schema};
use annals_ids::TypeId;

use super::{
    SchemaChange,
    change::{ChangeKind, Shift},
    effects::{Facts, effects},
    method,
    place::Subject,
    property,
};

/// A pair of types, with the facts needed to compare its members.
pub(super) struct Pair<'a> {
    pub(super) plan: &'a Plan,
    pub(super) old: &'a EntityType,
    pub(super) new: &'a EntityType,
    /// Whether clients could meet it before.
    pub(super) was_shown: bool,
    /// Whether clients can meet it now.
    pub(super) is_shown: bool,
}

impl Pair<'_> {
    pub(super) fn is_seen(&self) -> bool {
        self.was_shown || self.is_shown
    }

    pub(super) fn on_type(&self) -> Subject {
        Subject::Type(self.new.name.clone())
    }
}

/// Records all differences of the entity types.
pub(super) fn compare_types(plan: &Plan, changes: &mut Vec<SchemaChange>) {
    let shown = [plan.old().shown_types(), plan.new_schema().shown_types()];
    renumbered(plan, &shown, changes);
    for old in plan.old().types() {
        if plan.new_type(old.id).is_none() {
            let facts = Facts {
                was_stored: old.parts.base,
                is_seen: shown[0].contains(&old.id),
                ..Facts::default()
            };
            let perhaps = likely(plan, old);
            note(
                changes,
                Subject::Type(old.name.clone()),
                ChangeKind::TypeRemoved { perhaps },
                facts,
            );
        }
    }
    for new in plan.new_schema().types() {
        let is_shown = shown[1].contains(&new.id);
        let Some(old) = plan.old_of(new.id) else {
            let facts = Facts {
                is_stored: new.parts.base,
                is_seen: is_shown,
                ..Facts::default()
            };
            note(changes, Subject::Type(new.name.clone()), ChangeKind::TypeAdded, facts);
            continue;
        };
        let pair = Pair {
            plan,
            old,
            new,
            was_shown: shown[0].contains(&old.id),
            is_shown,
        };
        compare_type(&pair, changes);
        property::compare(&pair, changes);
        method::compare(&pair, changes);
    }
}

/// Unchanged types with other numbers.
fn renumbered(plan: &Plan, shown: &[BTreeSet<TypeId>; 2], changes: &mut Vec<SchemaChange>) {
    let mut is_seen = false;
    let mut shifts = Vec::new();
    for old in plan.old().types() {
        if let Some(new) = plan.new_type(old.id).filter(|new| new.id != old.id) {
            is_seen |= shown[0].contains(&old.id) || shown[1].contains(&new.id);
            let (from, to) = (old.id.0, new.id.0);
            shifts.push(Shift {
                name: new.name.clone(),
                from,
                to,
            });
        }
    }
    let Some(first) = shifts.first() else { return };
    let added = plan.new_schema().types().iter().take(first.to.into());
    let added = added
        .filter(|new| plan.old_of(new.id).is_none())
        .map(|new| new.name.as_str());
    let removed = plan.old().types().iter().take(first.from.into());
    let removed = removed
        .filter(|old| plan.new_type(old.id).is_none())
        .map(|old| old.name.as_str());
    let because = cause(&added.collect::<Vec<_>>(), &removed.collect::<Vec<_>>());
    let facts = Facts {
        was_stored: plan.old().types().iter().any(names_types),
        is_seen,
        ..Facts::default()
    };
    note(
        changes,
        Subject::Types,
        ChangeKind::TypesRenumbered { shifts, because },
        facts,
    );
}

/// Whether rows of stored entities contain numbers of types.
fn names_types(entity_type: &EntityType) -> bool {
    let has_mailbox = |data_type: &DataType| data_type.any(&mut |part| matches!(part, DataType::Mailbox));
    let mut stored = entity_type.properties.iter().filter(|property| property.is_stored());
    entity_type.parts.base && stored.any(|property| has_mailbox(&property.data_type))
}

/// What was added or removed before the first that moved.
pub(super) fn cause(added: &[&str], removed: &[&str]) -> String {
    let is = |names: &[&str]| if names.len() == 1 { "was" } else { "were" };
    let mut causes = Vec::new();
    if !added.is_empty() {
        causes.push(format!("{} {} added before them", list(added), is(added)));
    }
    if !removed.is_empty() {
        causes.push(format!("{} {} removed before them", list(removed), is(removed)));
    }
    if causes.is_empty() {
        "their order changed".to_owned()
    } else {
        causes.join(" and ")
    }
}

/// Maximum names shown of a cause.
const SHOWN_NAMES: usize = 3;

fn list(names: &[&str]) -> String {
    match names.len().saturating_sub(SHOWN_NAMES) {
        0 => names.join(", "),
        more => format!("{} and {more} more", names[..SHOWN_NAMES].join(", ")),
    }
}

/// A new type with more than half of the members of a removed one.
fn likely(plan: &Plan, old: &EntityType) -> Option<String> {
    let shared = |new: &EntityType| {
        let properties = old.properties.iter();
        let same = properties.filter(|property| new.property_named(&property.name).is_some());
        same.count()
    };
    let added = plan
        .new_schema()
        .types()
        .iter()
        .filter(|new| plan.old_of(new.id).is_none());
    let best = added.max_by_key(|new| (shared(new), std::cmp::Reverse(new.id)))?;
    (shared(best) * 2 > old.properties.len()).then(|| best.name.clone())
}

fn compare_type(pair: &Pair<'_>, changes: &mut Vec<SchemaChange>) {
    let Pair { old, new, .. } = pair;
    let facts = Facts {
        was_stored: old.parts.base,
        is_stored: new.parts.base,
        is_seen: pair.is_seen(),
        ..Facts::default()
    };
    let mut differs = |is: bool, kind: ChangeKind| {
        if is {
            note(changes, pair.on_type(), kind, facts);
        }
    };
    let from = old.name.clone();
    differs(old.name != new.name, ChangeKind::TypeRenamed { from });
    let (from, to) = (old.parts, new.parts);
    differs(from != to, ChangeKind::PartsChanged { from, to });
    let to = pair.is_shown;
    differs(pair.was_shown != to, ChangeKind::ShownChanged { to });
    let to = new.persistent;
    differs(old.persistent != to, ChangeKind::TypePersistentChanged { to });
    let name =
        |schema: &Schema, id: Option<TypeId>| id.and_then(|id| schema.entity_type(id)).map(|found| found.name.clone());
    let renumbered = old
        .client_type
        .and_then(|id| pair.plan.new_type(id))
        .map(|found| found.id);
    let (from, to) = (
        name(pair.plan.old(), old.client_type),
        name(pair.plan.new_schema(), new.client_type),
    );
    let is_other = renumbered != new.client_type || old.client_type.is_some() != new.client_type.is_some();
    differs(is_other, ChangeKind::ClientNameChanged { from, to });
    differs(old.volatile != new.volatile, ChangeKind::VolatileChanged);
    differs(old.lod_levels != new.lod_levels, ChangeKind::LevelsChanged);
    differs(
        old.temp_properties != new.temp_properties,
        ChangeKind::TempPropertiesChanged,
    );
    differs(
        old.detailed_position != new.detailed_position,
        ChangeKind::DetailedPositionChanged,
    );
    let (from, to) = (old.appeal_radius, new.appeal_radius);
    differs(
        from.to_bits() != to.to_bits(),
        ChangeKind::AppealRadiusChanged { from, to },
    );
    let to = new.manual_aoi;
    differs(old.manual_aoi != to, ChangeKind::ManualAoiChanged { to });
}

/// Records a change with its effects.
pub(super) fn note(changes: &mut Vec<SchemaChange>, subject: Subject, kind: ChangeKind, facts: Facts) {
    let effects = effects(&kind, facts);
    changes.push(SchemaChange { subject, kind, effects });
}
