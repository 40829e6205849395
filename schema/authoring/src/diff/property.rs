//! Comparison of properties.

use annals_def::{EntityType, Property, PropertyPlan, Schema};
use annals_ids::MemberId;

use super::{
    SchemaChange,
    change::{ChangeKind, Shift},
    effects::Facts,
    entity::{Pair, cause, note},
    place::Subject,
};

/// Records all differences of the properties of a type.
pub(super) fn compare(pair: &Pair<'_>, changes: &mut Vec<SchemaChange>) {
    let plans = &pair.plan.of_type(pair.old.id).properties;
    renumbered(pair, plans, changes);
    renumbered_for_clients(pair, plans, changes);
    for (old, plan) in pair.old.properties.iter().zip(plans) {
        if plan.new.is_none() {
            let facts = facts(pair, Some(old), None);
            let perhaps = likely(pair, plans, old);
            let subject = Subject::Property(pair.new.name.clone(), old.name.clone());
            note(changes, subject, ChangeKind::PropertyRemoved { perhaps }, facts);
        }
    }
    for new in &pair.new.properties {
        let subject = Subject::Property(pair.new.name.clone(), new.name.clone());
        match old_of(plans, new.index) {
            Some(at) => compare_property(pair, (&pair.old.properties[at], new), &plans[at], changes),
            None => note(
                changes,
                subject,
                ChangeKind::PropertyAdded,
                facts(pair, None, Some(new)),
            ),
        }
    }
}

/// The old position of a new property.
fn old_of(plans: &[PropertyPlan], new: MemberId) -> Option<usize> {
    plans.iter().position(|plan| plan.new == Some(new))
}

fn facts(pair: &Pair<'_>, old: Option<&Property>, new: Option<&Property>) -> Facts {
    let seen = |property: &Property| property.distribution.to_clients();
    Facts {
        was_stored: old.is_some_and(Property::is_stored) && pair.old.parts.base,
        is_stored: new.is_some_and(Property::is_stored) && pair.new.parts.base,
        was_held: old.is_some_and(Property::is_held),
        is_held: new.is_some_and(Property::is_held),
        is_moved: old.map(|old| old.distribution.on_base()) != new.map(|new| new.distribution.on_base()),
        is_seen: pair.was_shown && old.is_some_and(seen) || pair.is_shown && new.is_some_and(seen),
        is_history: false,
    }
}

fn compare_property(
    pair: &Pair<'_>,
    (old, new): (&Property, &Property),
    plan: &PropertyPlan,
    changes: &mut Vec<SchemaChange>,
) {
    let facts = facts(pair, Some(old), Some(new));
    let subject = || Subject::Property(pair.new.name.clone(), new.name.clone());
    let mut differs = |is: bool, kind: ChangeKind, is_seen: bool| {
        if is {
            note(changes, subject(), kind, Facts { is_seen, ..facts });
        }
    };
    let seen = facts.is_seen;
    let from = old.name.clone();
    differs(old.name != new.name, ChangeKind::PropertyRenamed { from }, seen);
    for difference in &plan.differences {
        let is_seen = seen && difference.change.is_seen();
        differs(true, ChangeKind::PropertyType(difference.clone()), is_seen);
    }
    let (from, to) = (old.distribution, new.distribution);
    differs(
        from != to,
        ChangeKind::FlagsChanged { from, to },
        viewer(pair, old, new),
    );
    let crossed = pair.plan.cross_default(plan, old, new);
    let is_other = crossed.is_some_and(|default| default != new.default);
    let (from, to) = (old.default.clone(), new.default.clone());
    differs(is_other, ChangeKind::DefaultChanged { from, to }, seen);
    let (from, to) = (old.account, new.account);
    differs(from != to, ChangeKind::AccountChanged { from, to }, seen);
    let (from, to) = (old.personal.clone(), new.personal.clone());
    differs(from != to, ChangeKind::PersonalChanged { from, to }, false);
    let to = new.persistent;
    differs(old.persistent != to, ChangeKind::PersistentChanged { to }, false);
    let (from, to) = (old.indexed, new.indexed);
    differs(from != to, ChangeKind::IndexChanged { from, to }, false);
    let to = new.identifier;
    differs(old.identifier != to, ChangeKind::IdentifierChanged { to }, false);
    let (from, to) = (old.database_length, new.database_length);
    differs(from != to, ChangeKind::DatabaseLengthChanged { from, to }, false);
    let (from, to) = (label(pair.old, old), label(pair.new, new));
    let is_other = from != to || old.detail_level != new.detail_level && pair.old.lod_levels == pair.new.lod_levels;
    differs(is_other, ChangeKind::DetailLevelChanged { from, to }, seen);
    let to = new.latest_only;
    differs(old.latest_only != to, ChangeKind::LatestOnlyChanged { to }, seen);
    let to = new.reliable;
    differs(old.reliable != to, ChangeKind::ReliableChanged { to }, seen);
    let to = new.editable;
    differs(old.editable != to, ChangeKind::EditableChanged { to }, false);
    let (from, to) = (old.header_size, new.header_size);
    differs(from != to, ChangeKind::HeaderSizeChanged { from, to }, false);
    differs(old.protocol_id != new.protocol_id, ChangeKind::ProtocolIdChanged, false);
}

/// Whether the clients that see it changed, or the part from which they see it.
fn viewer(pair: &Pair<'_>, old: &Property, new: &Property) -> bool {
    let seen = |is_shown: bool, property: &Property| {
        let flags = property.distribution;
        (is_shown && flags.to_clients()).then(|| (flags.to_own_client(), flags.to_other_clients(), flags.on_base()))
    };
    seen(pair.was_shown, old) != seen(pair.is_shown, new)
}

fn label(entity_type: &EntityType, property: &Property) -> Option<String> {
    let level = usize::from(property.detail_level?);
    entity_type.lod_levels.get(level).map(|level| level.label.clone())
}

fn renumbered(pair: &Pair<'_>, plans: &[PropertyPlan], changes: &mut Vec<SchemaChange>) {
    let mut facts = Facts::default();
    let mut shifts = Vec::new();
    for (old, plan) in pair.old.properties.iter().zip(plans) {
        if let Some(id) = plan.new.filter(|id| *id != old.index)
            && let Some(new) = pair.new.property(id)
        {
            let held = self::facts(pair, Some(old), Some(new));
            facts.was_held |= held.was_held;
            facts.is_held |= held.is_held;
            let name = new.name.clone();
            shifts.push(Shift {
                name,
                from: old.index.0,
                to: id.0,
            });
        }
    }
    let Some(first) = shifts.first() else { return };
    let added = pair.new.properties.iter().take(first.to.into());
    let added = added
        .filter(|new| old_of(plans, new.index).is_none())
        .map(|new| new.name.as_str());
    let removed = pair.old.properties.iter().zip(plans).take(first.from.into());
    let removed = removed
        .filter(|(_, plan)| plan.new.is_none())
        .map(|(old, _)| old.name.as_str());
    let because = cause(&added.collect::<Vec<_>>(), &removed.collect::<Vec<_>>());
    note(
        changes,
        pair.on_type(),
        ChangeKind::PropertiesRenumbered { shifts, because },
        facts,
    );
}

fn renumbered_for_clients(pair: &Pair<'_>, plans: &[PropertyPlan], changes: &mut Vec<SchemaChange>) {
    let mut shifts = Vec::new();
    for (old, plan) in pair.old.properties.iter().zip(plans) {
        let new = plan.new.and_then(|id| pair.new.property(id));
        shifts.extend(new.and_then(|new| Shift::for_clients(&new.name, old.client_id, new.client_id)));
    }
    let Some(first) = shifts.first() else { return };
    let (mut added, mut removed, mut resized) = (Vec::new(), Vec::new(), Vec::new());
    for new in &pair.new.properties {
        let Some(to) = new.client_id else { continue };
        let old = old_of(plans, new.index).map(|at| &pair.old.properties[at]);
        match old.map(|old| (old.client_id, old)) {
            Some((Some(_), old)) if size(old) != size(new) => resized.push(new.name.as_str()),
            None | Some((None, _)) if to < first.from.max(first.to) => added.push(new.name.as_str()),
            _ => {}
        }
    }
    for (old, plan) in pair.old.properties.iter().zip(plans) {
        let is_seen = plan
            .new
            .and_then(|id| pair.new.property(id))
            .is_some_and(|new| new.client_id.is_some());
        if old.client_id.is_some_and(|id| id < first.from.max(first.to)) && !is_seen {
            removed.push(old.name.as_str());
        }
    }
    let because = client_cause((&added, &removed), &resized);
    let facts = Facts {
        is_seen: pair.is_seen(),
        ..Facts::default()
    };
    note(
        changes,
        pair.on_type(),
        ChangeKind::ClientPropertiesRenumbered { shifts, because },
        facts,
    );
}

/// The sort key of client numbers.
fn size(property: &Property) -> (Option<usize>, u8) {
    (property.data_type.stream_size(), property.header_size)
}

/// Why client numbers changed: they are ordered by size.
pub(super) fn client_cause((added, removed): (&[&str], &[&str]), resized: &[&str]) -> String {
    let is_clear = added.is_empty() && removed.is_empty();
    match resized {
        [] => cause(added, removed),
        [one] if is_clear => format!("{one} has another size"),
        many if is_clear => format!("{} have another size", many.join(", ")),
        many => format!("{}, and {} changed in size", cause(added, removed), many.join(", ")),
    }
}

/// A new property that resembles a removed one: same type and flags, nearest position.
fn likely(pair: &Pair<'_>, plans: &[PropertyPlan], old: &Property) -> Option<String> {
    let added = pair
        .new
        .properties
        .iter()
        .filter(|new| old_of(plans, new.index).is_none());
    let alike = added.filter(|new| {
        new.data_type == old.data_type && new.distribution == old.distribution && new.persistent == old.persistent
    });
    let nearest = alike.min_by_key(|new| (new.index.0.abs_diff(old.index.0), new.index))?;
    Some(nearest.name.clone())
}

/// Records all differences of the user data object types. Nothing about them is stored, logged or shown.
pub(super) fn compare_objects(old: &Schema, new: &Schema, changes: &mut Vec<SchemaChange>) {
    let mut differs = |subject: Subject, kind: ChangeKind| note(changes, subject, kind, Facts::default());
    let on = |name: &str| Subject::Object(name.to_owned());
    let (old_objects, new_objects) = (old.user_data_objects(), new.user_data_objects());
    for object in old_objects
        .iter()
        .filter(|old| !new_objects.iter().any(|new| new.name == old.name))
    {
        differs(on(&object.name), ChangeKind::ObjectRemoved);
    }
    let mut order = Vec::new();
    for object in new_objects {
        let Some(at) = old_objects.iter().position(|old| old.name == object.name) else {
            differs(on(&object.name), ChangeKind::ObjectAdded);
            continue;
        };
        order.push(at);
        let (from, to) = (old_objects[at].domain, object.domain);
        if from != to {
            differs(on(&object.name), ChangeKind::DomainChanged { from, to });
        }
        let (from, to) = (&old_objects[at].properties, &object.properties);
        let gone = from
            .iter()
            .filter(|field| !to.iter().any(|kept| kept.name == field.name));
        for field in gone.chain(to.iter().filter(|field| !from.contains(field))) {
            let name = field.name.clone();
            differs(on(&object.name), ChangeKind::ObjectProperty { name });
        }
        let kept = to
            .iter()
            .filter_map(|field| from.iter().position(|old| old.name == field.name));
        if !kept.is_sorted() {
            differs(on(&object.name), ChangeKind::ObjectsReordered);
        }
    }
    if !order.is_sorted() {
        differs(Subject::Objects, ChangeKind::ObjectsReordered);
    }
}
