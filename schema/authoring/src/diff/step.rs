//! The plan as steps for an operator.

use std::fmt;

use annals_def::{Difference, EntityType, Fit, Index, MethodKind, Plan, Property, PropertyPlan, Value, place_below};
use annals_ids::Part;

use super::Class;

/// One step of a plan. Fields are what the variant names: types and members by their new names, if they have one.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Stop all processes.
    StopAll,
    /// No entity of this type may exist, stored or live.
    MakeSureOfNone { entity_type: String },
    /// No such part of this type may exist.
    MakeSureOfNoPart { entity_type: String, part: Part },
    /// Stored entities get another type name.
    RenameType { from: String, to: String },
    /// Stored values get another name.
    Rename {
        entity_type: String,
        from: String,
        to: String,
    },
    /// Stored values are converted; `stops` at one that cannot be converted.
    Convert {
        entity_type: String,
        property: String,
        how: String,
        stops: bool,
    },
    /// Stored values are dropped.
    Drop { entity_type: String, property: String },
    /// Stored entities have no value, and start with the default.
    Begin {
        entity_type: String,
        property: String,
        value: Value,
    },
    /// The index, and mailboxes in stored values, are rewritten.
    WriteIndex,
    /// Live parts of a type are converted at the end of their logs.
    Living {
        entity_type: String,
        renumbered: bool,
        filled: Vec<(String, Value)>,
        dropped: Vec<String>,
        converted: Vec<String>,
        stops: bool,
    },
    /// Calls under way are converted.
    Calls {
        entity_type: String,
        methods: Vec<String>,
        stops: bool,
    },
    /// Histories are cleared.
    ClearHistories,
    /// Clients are rebuilt and released.
    ReleaseClients,
    /// Start all processes.
    StartAll,
}

/// The steps of a plan, in order, given its class for the log and for clients.
pub(super) fn steps(plan: &Plan, log: Class, clients: Class) -> Vec<Step> {
    Steps(plan).all(log, clients)
}

/// Builds the steps of a plan.
struct Steps<'p>(&'p Plan);

impl Steps<'_> {
    fn all(&self, log: Class, clients: Class) -> Vec<Step> {
        let mut steps = vec![Step::StopAll];
        for old in self.0.old().types() {
            match self.0.new_type(old.id) {
                None => steps.push(Step::MakeSureOfNone {
                    entity_type: old.name.clone(),
                }),
                Some(new) => {
                    for (part, was, is) in [
                        (Part::Base, old.parts.base, new.parts.base),
                        (Part::Cell, old.parts.cell, new.parts.cell),
                    ] {
                        if was && !is {
                            let entity_type = new.name.clone();
                            steps.push(Step::MakeSureOfNoPart { entity_type, part });
                        }
                    }
                    if old.parts.base && new.parts.base {
                        self.stored_steps(old, new, &mut steps);
                    }
                }
            }
        }
        if self.changes_index() {
            steps.push(Step::WriteIndex);
        }
        if log >= Class::NeedsMigration {
            for old in self.0.old().all_types() {
                if let Some(new) = self.0.new_type(old.id) {
                    steps.extend(self.living_step(old, new));
                    steps.extend(self.call_step(old, new));
                }
            }
            steps.push(Step::ClearHistories);
        }
        if clients == Class::Breaking {
            steps.push(Step::ReleaseClients);
        }
        steps.push(Step::StartAll);
        steps
    }

    fn stored_steps(&self, old: &EntityType, new: &EntityType, steps: &mut Vec<Step>) {
        let entity_type = || new.name.clone();
        if old.name != new.name {
            let (from, to) = (old.name.clone(), new.name.clone());
            steps.push(Step::RenameType { from, to });
        }
        let plans = &self.0.of_type(old.id).properties;
        for (property, plan) in old
            .properties
            .iter()
            .zip(plans)
            .filter(|(property, _)| property.is_stored())
        {
            let target = plan.new.and_then(|id| new.property(id)).filter(|new| new.is_stored());
            let Some(target) = target else {
                let property = property.name.clone();
                steps.push(Step::Drop {
                    entity_type: entity_type(),
                    property,
                });
                continue;
            };
            if target.name != property.name {
                let (from, to) = (property.name.clone(), target.name.clone());
                steps.push(Step::Rename {
                    entity_type: entity_type(),
                    from,
                    to,
                });
            }
            if let Some((how, stops)) = conversion(plan, &target.name) {
                let property = target.name.clone();
                steps.push(Step::Convert {
                    entity_type: entity_type(),
                    property,
                    how,
                    stops,
                });
            }
        }
        for property in new.properties.iter().filter(|property| property.is_stored()) {
            let from = plans.iter().position(|plan| plan.new == Some(property.index));
            if !from.is_some_and(|at| old.properties[at].is_stored()) {
                let (property, value) = (property.name.clone(), property.default.clone());
                steps.push(Step::Begin {
                    entity_type: entity_type(),
                    property,
                    value,
                });
            }
        }
    }

    /// Whether a mailbox gets another number, or the index another name or property.
    fn changes_index(&self) -> bool {
        let indexed = |entity_type: &EntityType| -> Vec<(String, Index, bool)> {
            let kept = entity_type.properties.iter().filter(|property| property.is_stored());
            let kept = kept.filter(|property| property.indexed != Index::None);
            kept.map(|property| (property.name.clone(), property.indexed, property.identifier))
                .collect()
        };
        self.0.old().types().iter().any(|old| {
            let Some(new) = self.0.new_type(old.id).filter(|_| old.parts.base) else {
                return false;
            };
            let (mut before, mut now) = (indexed(old), indexed(new));
            before.sort_unstable();
            now.sort_unstable();
            let is_named_so = old.name == new.name || now.is_empty();
            let plans = &self.0.of_type(old.id).properties;
            let stored = old
                .properties
                .iter()
                .zip(plans)
                .filter(|(property, _)| property.is_stored());
            let mut addresses = stored.map(|(_, plan)| plan.renumbers_mailboxes());
            before != now || !is_named_so || addresses.any(|has| has)
        })
    }

    fn living_step(&self, old: &EntityType, new: &EntityType) -> Option<Step> {
        let plans = &self.0.of_type(old.id).properties;
        let held = Property::is_held;
        let (mut dropped, mut converted) = (Vec::new(), Vec::new());
        let (mut renumbered, mut stops) = (old.id != new.id, false);
        for (property, plan) in old.properties.iter().zip(plans).filter(|(property, _)| held(property)) {
            let target = plan.new.and_then(|id| new.property(id)).filter(|new| held(new));
            let Some(target) = target else {
                dropped.push(property.name.clone());
                continue;
            };
            renumbered |= target.index != property.index;
            stops |= target.distribution.on_base() != property.distribution.on_base();
            if let Some((_, may_stop)) = conversion(plan, &target.name) {
                converted.push(target.name.clone());
                stops |= may_stop;
            }
        }
        let old_of = |new: &Property| plans.iter().position(|plan| plan.new == Some(new.index));
        let is_new =
            |property: &&Property| held(property) && !old_of(property).is_some_and(|at| held(&old.properties[at]));
        let filled = new.properties.iter().filter(is_new);
        let filled: Vec<_> = filled
            .map(|property| (property.name.clone(), property.default.clone()))
            .collect();
        let nothing = !renumbered && !stops && filled.is_empty() && dropped.is_empty() && converted.is_empty();
        (!nothing).then(|| Step::Living {
            entity_type: new.name.clone(),
            renumbered,
            filled,
            dropped,
            converted,
            stops,
        })
    }

    fn call_step(&self, old: &EntityType, new: &EntityType) -> Option<Step> {
        let mut found = Vec::new();
        let mut stops = false;
        for kind in MethodKind::ALL {
            let plans = self.0.of_type(old.id).methods(kind);
            for (method, plan) in kind.methods(old).iter().zip(plans) {
                let args = &plan.args;
                let differs = !args.added.is_empty() || !args.removed.is_empty() || args.is_reordered;
                let changes = args.differences.iter().any(|difference| difference.fit != Fit::Same);
                if plan.new != Some(method.index) || differs || changes {
                    found.push(method.name.clone());
                }
                stops |= args.differences.iter().any(|difference| difference.fit >= Fit::Some);
            }
        }
        (!found.is_empty()).then(|| Step::Calls {
            entity_type: new.name.clone(),
            methods: found,
            stops,
        })
    }
}

/// The conversion of a property's values in words, and whether some cannot be converted.
fn conversion(plan: &PropertyPlan, name: &str) -> Option<(String, bool)> {
    let matters = |difference: &&Difference| difference.fit != Fit::Same;
    let differences = plan.differences.iter().filter(matters);
    let how: Vec<String> = differences
        .map(|difference| match &*difference.at {
            "" => difference.change.to_string(),
            at => format!("{}: {}", place_below(name, at), difference.change),
        })
        .collect();
    let stops = plan.differences.iter().any(|difference| difference.fit >= Fit::Some);
    (!how.is_empty()).then(|| (how.join("; "), stops))
}

impl Step {
    /// One word for programs.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Self::StopAll => "stop",
            Self::MakeSureOfNone { .. } => "none-left",
            Self::MakeSureOfNoPart { .. } => "no-part-left",
            Self::RenameType { .. } => "rename-type",
            Self::Rename { .. } => "rename",
            Self::Convert { .. } => "convert",
            Self::Drop { .. } => "drop",
            Self::Begin { .. } => "default",
            Self::WriteIndex => "index",
            Self::Living { .. } => "living",
            Self::Calls { .. } => "calls",
            Self::ClearHistories => "histories",
            Self::ReleaseClients => "clients",
            Self::StartAll => "start",
        }
    }
}

impl Step {
    /// The conversion of live parts, in words.
    fn living_parts(&self) -> String {
        let Self::Living {
            renumbered,
            filled,
            dropped,
            converted,
            ..
        } = self
        else {
            return String::new();
        };
        let mut parts = Vec::new();
        if *renumbered {
            parts.push("give new numbers".to_owned());
        }
        if !filled.is_empty() {
            let filled: Vec<_> = filled.iter().map(|(name, value)| format!("{name} = {value}")).collect();
            parts.push(format!("fill in {}", filled.join(", ")));
        }
        if !converted.is_empty() {
            parts.push(format!("convert {}", converted.join(", ")));
        }
        if !dropped.is_empty() {
            parts.push(format!("drop {}", dropped.join(", ")));
        }
        if parts.is_empty() {
            parts.push("look through".to_owned());
        }
        parts.join("; ")
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::StopAll => f.write_str("stop all processes of the realm"),
            Self::MakeSureOfNone { entity_type } => {
                write!(
                    f,
                    "make sure that no {entity_type} is left, stored or alive: the plan stops at one"
                )
            }
            Self::MakeSureOfNoPart { entity_type, part } => {
                write!(
                    f,
                    "make sure that no {part} part of {entity_type} is left: the plan stops at one"
                )
            }
            Self::RenameType { from, to } => write!(f, "stored {from}: is called {to}"),
            Self::Rename { entity_type, from, to } => write!(f, "stored {entity_type}: {from} goes under {to}"),
            Self::Convert {
                entity_type,
                property,
                how,
                stops,
            } => {
                write!(
                    f,
                    "stored {entity_type}: convert {property} ({how}){}",
                    stopping(*stops)
                )
            }
            Self::Drop { entity_type, property } => write!(f, "stored {entity_type}: drop {property}"),
            Self::Begin {
                entity_type,
                property,
                value,
            } => {
                write!(f, "stored {entity_type}: {property} begins as {value}, by itself")
            }
            Self::WriteIndex => f.write_str("write the index anew, and mailboxes in stored values"),
            Self::Living { entity_type, stops, .. } => {
                write!(f, "living {entity_type}: {}{}", self.living_parts(), stopping(*stops))
            }
            Self::Calls {
                entity_type,
                methods,
                stops,
            } => {
                let methods = methods.join(", ");
                write!(
                    f,
                    "calls of {entity_type} under way: convert {methods}{}",
                    stopping(*stops)
                )
            }
            Self::ClearHistories => {
                f.write_str("clear the histories of living entities; observers are sent the whole state")
            }
            Self::ReleaseClients => f.write_str("release clients that were built with the new definitions"),
            Self::StartAll => f.write_str("start all processes with the new definitions"),
        }
    }
}

fn stopping(stops: bool) -> &'static str {
    if stops {
        "; stops at a value without a counterpart"
    } else {
        ""
    }
}
