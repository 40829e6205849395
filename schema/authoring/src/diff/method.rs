//! Comparison of methods.

use annals_def::{Arguments, EntityType, Method, MethodKind, MethodPlan, Plan};
use annals_ids::MemberId;

use super::{
    SchemaChange,
    change::{ChangeKind, Shift},
    effects::Facts,
    entity::{Pair, cause, note},
    place::Subject,
    property::client_cause,
};

/// The old and new methods of one kind, and their plans.
struct Lists<'a> {
    kind: MethodKind,
    old: &'a [Method],
    new: &'a [Method],
    plans: &'a [MethodPlan],
}

impl Lists<'_> {
    /// The old position of a new method.
    fn old_of(&self, new: MemberId) -> Option<usize> {
        self.plans.iter().position(|plan| plan.new == Some(new))
    }

    fn new_of(&self, plan: &MethodPlan) -> Option<&Method> {
        self.new.get(usize::from(plan.new?.0))
    }
}

/// Records all differences of the methods of a type.
pub(super) fn compare(pair: &Pair<'_>, changes: &mut Vec<SchemaChange>) {
    for kind in MethodKind::ALL {
        let lists = Lists {
            kind,
            old: kind.methods(pair.old),
            new: kind.methods(pair.new),
            plans: pair.plan.of_type(pair.old.id).methods(kind),
        };
        compare_lists(pair, &lists, changes);
    }
}

fn compare_lists(pair: &Pair<'_>, lists: &Lists<'_>, changes: &mut Vec<SchemaChange>) {
    let facts = Facts {
        was_held: true,
        is_held: true,
        is_history: lists.kind == MethodKind::Client,
        ..Facts::default()
    };
    let seen = |old: Option<&Method>, new: Option<&Method>| Facts {
        is_seen: pair.was_shown && old.is_some_and(|old| old.client_id.is_some())
            || pair.is_shown && new.is_some_and(|new| new.client_id.is_some()),
        ..facts
    };
    let on = |method: &Method| Subject::Method(pair.new.name.clone(), lists.kind, method.name.clone());
    renumbered(pair, lists, facts, changes);
    renumbered_for_clients(pair, lists, changes);
    for (old, plan) in lists.old.iter().zip(lists.plans) {
        if plan.new.is_none() {
            let perhaps = likely(lists, old);
            note(
                changes,
                on(old),
                ChangeKind::MethodRemoved { perhaps },
                seen(Some(old), None),
            );
        }
    }
    for new in lists.new {
        match lists.old_of(new.index) {
            None => note(changes, on(new), ChangeKind::MethodAdded, seen(None, Some(new))),
            Some(at) => {
                let (old, plan) = (&lists.old[at], &lists.plans[at]);
                let facts = seen(Some(old), Some(new));
                compare_method((old, new), (&plan.args, &plan.returns), facts, &mut |kind, facts| {
                    note(changes, on(new), kind, facts);
                });
            }
        }
    }
}

fn compare_method(
    (old, new): (&Method, &Method),
    (args, returns): (&Arguments, &Arguments),
    facts: Facts,
    note: &mut dyn FnMut(ChangeKind, Facts),
) {
    let unseen = Facts {
        is_seen: false,
        ..facts
    };
    if old.name != new.name {
        let from = old.name.clone();
        note(ChangeKind::MethodRenamed { from }, facts);
    }
    compare_arguments(args, facts, note);
    let has_other_returns =
        !returns.added.is_empty() || !returns.removed.is_empty() || !returns.renamed.is_empty() || returns.is_reordered;
    if has_other_returns || !returns.differences.is_empty() {
        let is_seen = has_other_returns || returns.differences.iter().any(|difference| difference.change.is_seen());
        // Client methods return nothing.
        let is_seen = facts.is_seen && !facts.is_history && is_seen;
        note(ChangeKind::ReturnsChanged, Facts { is_seen, ..facts });
    }
    let (from, to) = (old.exposed, new.exposed);
    if from != to {
        note(ChangeKind::ExposureChanged { from, to }, facts);
    }
    let (from, to) = (old.calls_per_minute, new.calls_per_minute);
    if from != to {
        note(ChangeKind::CallLimitChanged { from, to }, unseen);
    }
    let (from, to) = (old.detail_distance, new.detail_distance);
    if from.map(f32::to_bits) != to.map(f32::to_bits) {
        note(ChangeKind::DetailDistanceChanged { from, to }, facts);
    }
    let to = new.latest_only;
    if old.latest_only != to {
        note(ChangeKind::MethodLatestOnlyChanged { to }, facts);
    }
    let to = new.reliable;
    if old.reliable != to {
        note(ChangeKind::MethodReliableChanged { to }, facts);
    }
    let (from, to) = (old.header_size, new.header_size);
    if from != to {
        note(ChangeKind::MethodHeaderSizeChanged { from, to }, unseen);
    }
    if old.protocol_id != new.protocol_id {
        note(ChangeKind::MethodProtocolIdChanged, unseen);
    }
}

fn compare_arguments(args: &Arguments, facts: Facts, note: &mut dyn FnMut(ChangeKind, Facts)) {
    for name in args.removed.iter().cloned() {
        note(ChangeKind::ArgumentRemoved { name }, facts);
    }
    for name in args.added.iter().cloned() {
        note(ChangeKind::ArgumentAdded { name }, facts);
    }
    for (from, to) in args.renamed.iter().cloned() {
        note(ChangeKind::ArgumentRenamed { from, to }, facts);
    }
    if args.is_reordered {
        note(ChangeKind::ArgumentsReordered, facts);
    }
    for difference in &args.differences {
        let is_seen = facts.is_seen && difference.change.is_seen();
        note(ChangeKind::ArgumentType(difference.clone()), Facts { is_seen, ..facts });
    }
}

fn renumbered(pair: &Pair<'_>, lists: &Lists<'_>, facts: Facts, changes: &mut Vec<SchemaChange>) {
    let mut shifts = Vec::new();
    for (old, plan) in lists.old.iter().zip(lists.plans) {
        if let Some(new) = lists.new_of(plan).filter(|new| new.index != old.index) {
            let (from, to) = (old.index.0, new.index.0);
            shifts.push(Shift {
                name: new.name.clone(),
                from,
                to,
            });
        }
    }
    let Some(first) = shifts.first() else { return };
    let added = lists.new.iter().take(first.to.into());
    let added = added
        .filter(|new| lists.old_of(new.index).is_none())
        .map(|new| new.name.as_str());
    let removed = lists.old.iter().zip(lists.plans).take(first.from.into());
    let removed = removed
        .filter(|(_, plan)| plan.new.is_none())
        .map(|(old, _)| old.name.as_str());
    let because = cause(&added.collect::<Vec<_>>(), &removed.collect::<Vec<_>>());
    let kind = ChangeKind::MethodsRenumbered {
        kind: lists.kind,
        shifts,
        because,
    };
    note(changes, pair.on_type(), kind, facts);
}

fn renumbered_for_clients(pair: &Pair<'_>, lists: &Lists<'_>, changes: &mut Vec<SchemaChange>) {
    let mut shifts = Vec::new();
    for (old, plan) in lists.old.iter().zip(lists.plans) {
        let new = lists.new_of(plan);
        shifts.extend(new.and_then(|new| Shift::for_clients(&new.name, old.client_id, new.client_id)));
    }
    let Some(first) = shifts.first() else { return };
    let before = first.from.max(first.to);
    let (mut added, mut removed, mut resized) = (Vec::new(), Vec::new(), Vec::new());
    for new in lists.new.iter().filter(|new| new.client_id.is_some()) {
        let old = lists
            .old_of(new.index)
            .map(|at| &lists.old[at])
            .filter(|old| old.client_id.is_some());
        match old {
            Some(old) if size(old) != size(new) => resized.push(new.name.as_str()),
            None if new.client_id < Some(before) => added.push(new.name.as_str()),
            _ => {}
        }
    }
    for (old, plan) in lists.old.iter().zip(lists.plans) {
        let is_kept = lists.new_of(plan).is_some_and(|new| new.client_id.is_some());
        if old.client_id.is_some_and(|id| id < before) && !is_kept {
            removed.push(old.name.as_str());
        }
    }
    let because = client_cause((&added, &removed), &resized);
    let facts = Facts {
        is_seen: pair.is_seen(),
        ..Facts::default()
    };
    let kind = ChangeKind::ClientMethodsRenumbered {
        kind: lists.kind,
        shifts,
        because,
    };
    note(changes, pair.on_type(), kind, facts);
}

/// The sort key of client numbers.
fn size(method: &Method) -> (Option<usize>, u8) {
    (method.stream_size(), method.header_size)
}

/// A new method that resembles a removed one: same arguments, nearest position.
fn likely(lists: &Lists<'_>, old: &Method) -> Option<String> {
    let added = lists.new.iter().filter(|new| lists.old_of(new.index).is_none());
    let alike = added.filter(|new| new.args == old.args && new.returns == old.returns && new.exposed == old.exposed);
    let nearest = alike.min_by_key(|new| (new.index.0.abs_diff(old.index.0), new.index))?;
    Some(nearest.name.clone())
}

/// What all changes of services concern: fragments, and calls under way to them.
const OF_SERVICES: Facts = Facts {
    was_stored: false,
    is_stored: false,
    was_held: true,
    is_held: true,
    is_moved: false,
    is_seen: false,
    is_history: false,
};

/// Records all differences of the services.
pub(super) fn compare_services(plan: &Plan, changes: &mut Vec<SchemaChange>) {
    let on = |service: &EntityType| Subject::Service(service.name.clone());
    for (_, service) in plan.old().fragment_types() {
        if plan.ends_fragments(service.id) {
            note(changes, on(service), ChangeKind::ServiceRemoved, OF_SERVICES);
        }
    }
    let mut is_renumbered = false;
    for (_, service) in plan.new_schema().fragment_types() {
        let Some(old) = plan.old_of(service.id) else {
            note(changes, on(service), ChangeKind::ServiceAdded, OF_SERVICES);
            continue;
        };
        is_renumbered |= old.id != service.id;
        compare_service((old, service), plan, changes);
    }
    if is_renumbered {
        note(changes, Subject::Services, ChangeKind::ServicesRenumbered, OF_SERVICES);
    }
}

fn compare_service((old, new): (&EntityType, &EntityType), plan: &Plan, changes: &mut Vec<SchemaChange>) {
    let on = |method: &Method| Subject::ServiceMethod(new.name.clone(), method.name.clone());
    let plans = plan.of_type(old.id).methods(MethodKind::Base);
    for (method, plan) in old.base_methods.iter().zip(plans) {
        if plan.new.is_none() {
            let kind = ChangeKind::MethodRemoved { perhaps: None };
            note(changes, on(method), kind, OF_SERVICES);
        }
    }
    let mut is_renumbered = false;
    for method in &new.base_methods {
        let Some(at) = plans.iter().position(|plan| plan.new == Some(method.index)) else {
            note(changes, on(method), ChangeKind::MethodAdded, OF_SERVICES);
            continue;
        };
        is_renumbered |= at != usize::from(method.index.0);
        let (before, plan) = (&old.base_methods[at], &plans[at]);
        let arguments = (&plan.args, &plan.returns);
        compare_method((before, method), arguments, OF_SERVICES, &mut |kind, facts| {
            note(changes, on(method), kind, facts);
        });
    }
    if is_renumbered {
        let subject = Subject::Service(new.name.clone());
        note(changes, subject, ChangeKind::ServicesRenumbered, OF_SERVICES);
    }
}
