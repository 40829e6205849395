//! Lineage of an entity: its parents, interfaces and components in merge order.

use std::collections::BTreeSet;

use super::library::{Library, Lookup};
use crate::{
    diagnostic::{Finding, Findings, Rule},
    grammar::{Dialect, Family, Kind},
    read::{ComponentUse, Definition, Named},
};

/// Longest chain of parents and interfaces. The longest in a published game so far is 6.
const MAX_CHAIN: usize = 64;

/// Maximum definitions in one lineage.
const MAX_STEPS: usize = 4_096;

/// One step of the merge.
#[derive(Clone)]
pub(crate) enum Step<'l> {
    /// The members of a definition.
    Own(&'l Definition<'l>),
    /// The members of a component, from each of its definitions in turn.
    Component(&'l ComponentUse<'l>, Vec<&'l Definition<'l>>),
}

/// The merge order of definitions.
///
/// BigWorld: the parent, then each interface with its own interfaces first, then own members, then components.
/// KBEngine: own members, then each interface followed by its own, then components, then the parent. Each definition is
/// merged once.
pub(super) struct Lineage<'l> {
    library: &'l Library<'l>,
    family: Family,
    dialect: Dialect,
    steps: Vec<Step<'l>>,
    done: BTreeSet<(Kind, &'l str)>,
    /// The definitions on the current path, from the outside in.
    path: Vec<(Kind, &'l str)>,
    /// The lineage is that of a component, which cannot have components.
    is_component: bool,
}

impl<'l> Lineage<'l> {
    /// The lineage of a definition.
    pub(super) fn of(
        library: &'l Library<'l>,
        family: Family,
        dialect: Dialect,
        definition: &'l Definition<'l>,
        findings: &mut Findings,
    ) -> Self {
        let mut lineage = Self {
            is_component: definition.kind == Kind::Component,
            ..Self::none(library, family, dialect)
        };
        lineage.follow(definition, findings);
        lineage
    }

    /// An empty lineage.
    pub(super) fn none(library: &'l Library<'l>, family: Family, dialect: Dialect) -> Self {
        Self {
            library,
            family,
            dialect,
            steps: Vec::new(),
            done: BTreeSet::new(),
            path: Vec::new(),
            is_component: false,
        }
    }

    pub(super) fn steps(&self) -> &[Step<'l>] {
        &self.steps
    }

    /// Returns the steps.
    pub(super) fn into_steps(self) -> Vec<Step<'l>> {
        self.steps
    }

    /// The definitions without components, ordered so that a later one's settings override an earlier one's.
    pub(super) fn by_precedence(&self) -> Vec<&'l Definition<'l>> {
        let mut own = self.in_order();
        if self.dialect == Dialect::KBEngine {
            own.reverse();
        }
        own
    }

    /// The definitions used, by kind and name, including missing and unreadable ones.
    pub(super) fn used(&self) -> impl Iterator<Item = (Kind, &'l str)> {
        self.done.iter().copied()
    }

    fn follow(&mut self, definition: &'l Definition<'l>, findings: &mut Findings) {
        let key = (definition.kind, definition.name);
        self.done.insert(key);
        self.path.push(key);
        match self.dialect {
            Dialect::BigWorld => {
                self.parent(definition, findings);
                self.interfaces(definition, findings);
                self.steps.push(Step::Own(definition));
                self.components(definition, findings);
            }
            Dialect::KBEngine => {
                self.steps.push(Step::Own(definition));
                self.interfaces(definition, findings);
                self.components(definition, findings);
                self.parent(definition, findings);
            }
        }
        self.path.pop();
    }

    fn parent(&mut self, definition: &'l Definition<'l>, findings: &mut Findings) {
        if let Some(parent) = definition.parent {
            self.ancestor(definition.kind, parent, Rule::MissingParent, findings);
        }
    }

    fn interfaces(&mut self, definition: &'l Definition<'l>, findings: &mut Findings) {
        for &interface in &definition.interfaces {
            self.ancestor(Kind::Interface, interface, Rule::MissingInterface, findings);
        }
    }

    fn ancestor(&mut self, kind: Kind, named: Named<'l>, missing: Rule, findings: &mut Findings) {
        let key = (self.family, kind, named.name);
        let definition = match self.library.find(key, named.span, missing, findings) {
            Lookup::Found(definition) => definition,
            Lookup::Broken(name) | Lookup::Missing(name) => {
                self.done.insert((kind, name));
                return;
            }
        };
        let key = (kind, definition.name);
        if let Some(at) = self.path.iter().position(|open| *open == key) {
            let names: Vec<&str> = self.path[at..].iter().map(|(_, name)| *name).collect();
            let message = format!("`{0}` inherits from itself: {1} → {0}", key.1, names.join(" → "));
            findings.push(Finding::new(Rule::Cycle, named.span, message).help("remove one of these references"));
        } else if self.path.len() >= MAX_CHAIN || self.steps.len() >= MAX_STEPS {
            let message =
                format!("the inheritance chain has more than {MAX_CHAIN} definitions, or more than {MAX_STEPS} in all");
            findings.push(Finding::new(Rule::Cycle, named.span, message).help("merge some of them"));
        } else if self.done.contains(&key) {
            let message = format!("`{}` is already inherited in another way", key.1);
            let finding =
                Finding::new(Rule::RepeatedInterface, named.span, message).help("remove it here or at the other place");
            findings.push(finding);
        } else {
            self.follow(definition, findings);
        }
    }

    fn components(&mut self, definition: &'l Definition<'l>, findings: &mut Findings) {
        for used in &definition.components {
            if self.is_component {
                let message = "a component cannot have components";
                let finding = Finding::new(Rule::MissingComponent, used.name.span, message)
                    .help("add both components to the entity");
                findings.push(finding);
                continue;
            }
            let named = used.definition;
            let key = (self.family, Kind::Component, named.name);
            let component = match self.library.find(key, named.span, Rule::MissingComponent, findings) {
                Lookup::Found(component) => component,
                Lookup::Broken(name) | Lookup::Missing(name) => {
                    self.done.insert((Kind::Component, name));
                    continue;
                }
            };
            let whole = Lineage::of(self.library, self.family, self.dialect, component, findings);
            let definitions = whole.in_order();
            self.done.extend(whole.done);
            self.steps.push(Step::Component(used, definitions));
        }
    }

    /// The definitions without components, in merge order.
    fn in_order(&self) -> Vec<&'l Definition<'l>> {
        let own = self.steps.iter().filter_map(|step| match step {
            Step::Own(definition) => Some(*definition),
            Step::Component(..) => None,
        });
        own.collect()
    }
}
