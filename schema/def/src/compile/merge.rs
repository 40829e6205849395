//! Merges the members of all definitions of an entity.

use std::{borrow::Cow, collections::BTreeMap};

use super::lineage::{Lineage, Step};
use crate::{
    diagnostic::{Finding, Findings, Rule, Severity},
    grammar::Dialect,
    names::by_length,
    read::{ComponentUse, DeclaredArgument, DeclaredMethod, DeclaredProperty, Definition, MethodPart, Named},
    schema::{Argument, MAX_MEMBERS, Method, Property},
    source::Span,
};

/// The merged members of an entity, each with the place of its declaration.
#[derive(Default)]
pub(super) struct Members<'l> {
    pub(super) properties: Merged<Property>,
    pub(super) base_methods: Merged<Method>,
    pub(super) cell_methods: Merged<Method>,
    pub(super) client_methods: Merged<Method>,
    pub(super) methods: Merged<Method>,
    /// The detail level labels of properties, by the property's position.
    pub(super) levels: BTreeMap<usize, Named<'l>>,
    /// The labels of properties that were dropped because of another mistake.
    pub(super) other_levels: Vec<Named<'l>>,
}

/// Merged members of one kind, in order.
pub(super) struct Merged<M> {
    members: Vec<M>,
    /// The place of each declaration.
    spans: Vec<Span>,
    /// Positions, ordered by name.
    by_name: Vec<usize>,
}

/// A member with a name.
pub(super) trait Member {
    fn name(&self) -> &str;
}

impl Member for Property {
    fn name(&self) -> &str {
        &self.name
    }
}

impl Member for Method {
    fn name(&self) -> &str {
        &self.name
    }
}

impl<M> Default for Merged<M> {
    fn default() -> Self {
        Self {
            members: Vec::new(),
            spans: Vec::new(),
            by_name: Vec::new(),
        }
    }
}

impl<M: Member> Merged<M> {
    /// The members, each with the place of its declaration.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&M, Span)> {
        self.members.iter().zip(self.spans.iter().copied())
    }

    /// Whether there are no members.
    pub(super) fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// Returns the members and the places of their declarations.
    pub(super) fn into_parts(self) -> (Vec<M>, Vec<Span>) {
        (self.members, self.spans)
    }

    fn reserve(&mut self, more: usize) {
        self.members.reserve(more);
        self.spans.reserve(more);
        self.by_name.reserve(more);
    }

    /// The position of the member of this name, or where it would be inserted in name order.
    fn position(&self, name: &str) -> Result<usize, usize> {
        let found = self
            .by_name
            .binary_search_by(|&at| by_length(self.members[at].name(), name));
        found.map(|found| self.by_name[found])
    }

    /// Adds a member whose name is inserted at `order`.
    fn push(&mut self, order: usize, member: M, span: Span, findings: &mut Findings) -> Option<usize> {
        if self.members.len() == MAX_MEMBERS {
            let message = format!("there are more than {MAX_MEMBERS} members of a kind");
            findings.push(Finding::new(Rule::TooMany, span, message));
            return None;
        }
        self.by_name.insert(order, self.members.len());
        self.members.push(member);
        self.spans.push(span);
        Some(self.members.len() - 1)
    }
}

impl<'l> Members<'l> {
    /// Merges the members along a lineage.
    pub(super) fn merge(lineage: &Lineage<'l>, dialect: Dialect, findings: &mut Findings) -> Self {
        let mut members = Self::default();
        let mut components: BTreeMap<&str, Span> = BTreeMap::new();
        for step in lineage.steps() {
            match step {
                Step::Own(definition) => members.add(definition, None, dialect, findings),
                Step::Component(used, definitions) => {
                    if let Some(first) = components.insert(used.name.name, used.name.span) {
                        let message = format!("the component name `{}` is used twice", used.name.name);
                        let finding = Finding::new(Rule::RepeatedComponent, used.name.span, message)
                            .help("give each its own name")
                            .related(first, "the first one");
                        findings.push(finding);
                        continue;
                    }
                    for definition in definitions {
                        members.add(definition, Some(used), dialect, findings);
                    }
                }
            }
        }
        if dialect == Dialect::BigWorld && !components.is_empty() {
            component_methods_agree(lineage, findings);
        }
        members.names_differ(findings);
        members
    }

    /// Approximate memory of the members, in nodes of types and values of defaults.
    pub(super) fn cost(&self) -> usize {
        let properties = self
            .properties
            .iter()
            .map(|(property, _)| property.data_type.cost() + property.default.cost());
        let methods = [
            &self.base_methods,
            &self.cell_methods,
            &self.client_methods,
            &self.methods,
        ];
        let methods = methods.into_iter().flat_map(|methods| methods.iter());
        let arguments = methods.flat_map(|(method, _)| method.args.iter().chain(&method.returns));
        properties.sum::<usize>() + arguments.map(|argument| argument.data_type.cost()).sum::<usize>()
    }

    fn add(
        &mut self,
        definition: &'l Definition<'l>,
        component: Option<&ComponentUse<'_>>,
        dialect: Dialect,
        findings: &mut Findings,
    ) {
        self.properties.reserve(definition.properties.len());
        self.base_methods.reserve(definition.base_methods.len());
        self.cell_methods.reserve(definition.cell_methods.len());
        self.client_methods.reserve(definition.client_methods.len());
        for property in &definition.properties {
            self.add_property(property, component, dialect, findings);
        }
        for (part, declared) in methods_of(definition) {
            let merged = match part {
                MethodPart::Base => &mut self.base_methods,
                MethodPart::Cell => &mut self.cell_methods,
                MethodPart::Client => &mut self.client_methods,
                MethodPart::Service => &mut self.methods,
            };
            add_method(merged, declared, component, findings);
        }
    }

    /// Adds a property. A redefinition replaces the property and keeps its position. BigWorld merges inherited members
    /// first, so the later one wins; KBEngine merges them last, so the earlier one wins.
    fn add_property(
        &mut self,
        declared: &DeclaredProperty<'l>,
        component: Option<&ComponentUse<'_>>,
        dialect: Dialect,
        findings: &mut Findings,
    ) {
        let Some(property) = &declared.property else {
            self.other_levels.extend(declared.level);
            return;
        };
        let name = full_name(component, declared.name);
        let persistent = property.persistent && component.is_none_or(|component| component.persistent);
        let whole = || Property {
            name: name.clone().into_owned(),
            persistent,
            ..property.clone()
        };
        let place = match (self.properties.position(&name), dialect) {
            (Err(order), _) => {
                let property = whole();
                self.properties.push(order, property, declared.span, findings)
            }
            (Ok(at), Dialect::BigWorld) => {
                (self.properties.members[at], self.properties.spans[at]) = (whole(), declared.span);
                self.levels.remove(&at);
                Some(at)
            }
            (Ok(at), Dialect::KBEngine) => {
                let first = self.properties.spans[at];
                if first != declared.span {
                    let message = format!("`{name}` is also declared by a descendant, whose declaration takes effect");
                    let finding = Finding::new(Rule::RepeatedProperty, declared.span, message)
                        .help("KBEngine rejects this: rename one of the two")
                        .related(first, "this one takes effect");
                    findings.push(finding);
                }
                None
            }
        };
        if let (Some(place), Some(level)) = (place, declared.level) {
            self.levels.insert(place, level);
        }
    }

    /// Reports a property and a method of the same name on the same part, which hide each other.
    fn names_differ(&self, findings: &mut Findings) {
        type OnPart = fn(&Property) -> bool;
        let parts: [(&Merged<Method>, OnPart); 3] = [
            (&self.base_methods, |property| property.distribution.on_base()),
            (&self.cell_methods, |property| property.distribution.on_cell()),
            (&self.client_methods, |property| property.distribution.to_clients()),
        ];
        for (methods, is_there) in parts {
            for (method, span) in methods.iter() {
                let Ok(at) = self.properties.position(&method.name) else {
                    continue;
                };
                let (property, property_span) = (&self.properties.members[at], self.properties.spans[at]);
                if is_there(property) {
                    let message = format!("`{}` is both a property and a method", method.name);
                    let finding = Finding::new(Rule::NameClash, span, message)
                        .help("rename one of the two")
                        .related(property_span, "the property");
                    findings.push(finding);
                }
            }
        }
    }
}

fn methods_of<'l>(definition: &'l Definition<'l>) -> impl Iterator<Item = (MethodPart, &'l DeclaredMethod<'l>)> {
    let parts = [
        (MethodPart::Base, &definition.base_methods),
        (MethodPart::Cell, &definition.cell_methods),
        (MethodPart::Client, &definition.client_methods),
        (MethodPart::Service, &definition.methods),
    ];
    parts
        .into_iter()
        .flat_map(|(part, methods)| methods.iter().map(move |method| (part, method)))
}

fn full_name<'l>(component: Option<&ComponentUse<'_>>, name: &'l str) -> Cow<'l, str> {
    match component {
        None => Cow::Borrowed(name),
        Some(component) => Cow::Owned(format!("{}.{name}", component.name.name)),
    }
}

/// Adds a method. Unlike a property it cannot be redefined; an identical declaration has no effect.
fn add_method<'l>(
    merged: &mut Merged<Method>,
    declared: &DeclaredMethod<'l>,
    component: Option<&ComponentUse<'_>>,
    findings: &mut Findings,
) {
    let name = full_name(component, declared.name);
    let position = merged.position(&name);
    if let Ok(at) = position {
        findings.push(declared_again(&name, declared, (&merged.members[at], merged.spans[at])));
        return;
    }
    if let (Some(method), Err(order)) = (&declared.method, position) {
        let method = Method {
            name: name.into_owned(),
            args: arguments(&declared.args),
            returns: arguments(&declared.returns),
            ..method.clone()
        };
        merged.push(order, method, declared.span, findings);
    }
}

/// The finding about a method that is declared again. Published games contain duplicate declarations, which newer
/// engines reject.
fn declared_again(name: &str, again: &DeclaredMethod<'_>, (first, span): (&Method, Span)) -> Finding {
    let is_same = |declared: &[DeclaredArgument<'_>], known: &[Argument]| {
        let pairs = || declared.iter().zip(known);
        declared.len() == known.len()
            && pairs().all(|(one, other)| one.name == other.name && one.data_type == other.data_type)
    };
    let is_identical = again.method.as_ref().is_some_and(|method| {
        method.exposed == first.exposed && is_same(&again.args, &first.args) && is_same(&again.returns, &first.returns)
    });
    let finding = |message: String| Finding::new(Rule::RepeatedMethod, again.span, message);
    let finding = match is_identical {
        true => finding(format!(
            "the method `{name}` is declared twice identically; the first declaration takes effect"
        ))
        .severity(Severity::Warning)
        .help("remove one of the two: BigWorld 14.4 and KBEngine reject this"),
        false => finding(format!("the method `{name}` is declared twice, with differences"))
            .help("remove one of the two; only properties can be redefined"),
    };
    finding.related(span, "declared here first")
}

/// BigWorld calls a component's method by its bare name. The same name in two components must therefore have one
/// meaning, and must not be the name of one of the entity's own methods.
fn component_methods_agree(lineage: &Lineage<'_>, findings: &mut Findings) {
    let mut known: BTreeMap<(MethodPart, &str), (&DeclaredMethod<'_>, bool)> = BTreeMap::new();
    let own = lineage.steps().iter().filter_map(|step| match step {
        Step::Own(definition) => Some((*definition, false)),
        Step::Component(..) => None,
    });
    let components = lineage.steps().iter().flat_map(|step| match step {
        Step::Own(_) => Vec::new(),
        Step::Component(_, definitions) => definitions.iter().map(|definition| (*definition, true)).collect(),
    });
    for (definition, is_component) in own.chain(components) {
        for (part, declared) in methods_of(definition) {
            let Some((first, first_is_component)) = known.get(&(part, declared.name)) else {
                known.insert((part, declared.name), (declared, is_component));
                continue;
            };
            let (what, help) = match (&first.method, &declared.method) {
                _ if !is_component || first.span == declared.span => continue,
                _ if !first_is_component => ("the entity itself has a method of this name", "rename one of the two"),
                (Some(a), Some(b))
                    if a.exposed == b.exposed && first.args == declared.args && first.returns == declared.returns =>
                {
                    continue;
                }
                (Some(_), Some(_)) => (
                    "another component has a different method of this name",
                    "rename one of the two, or give both the same arguments and exposure",
                ),
                _ => continue,
            };
            let finding = Finding::new(
                Rule::ComponentMethod,
                declared.span,
                format!("`{}`: {what}", declared.name),
            )
            .help(help)
            .related(first.span, "the other one");
            findings.push(finding);
        }
    }
}

fn arguments(declared: &[DeclaredArgument<'_>]) -> Vec<Argument> {
    let argument = |declared: &DeclaredArgument<'_>| Argument::new(&*declared.name, declared.data_type.clone());
    declared.iter().map(argument).collect()
}
