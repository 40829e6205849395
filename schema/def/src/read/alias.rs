//! `alias.xml` and `types.xml`: names for types, each with an optional default.

use std::collections::BTreeMap;

use super::{Dialect, Reading, Typed};
use crate::{
    diagnostic::{Finding, Rule},
    names::Name,
    source::{Section, Span},
};

/// Longest chain of aliases that are used before their declaration.
const MAX_FORWARD: usize = 32;

/// The aliases that have not been read yet, and the path to the current one.
pub(super) struct Pending<'s> {
    sections: BTreeMap<&'s str, Section<'s>>,
    /// Every name in the spelling that must be unique, with its declaration.
    names: BTreeMap<String, Span>,
    /// The aliases being read, from the outside in.
    path: Vec<(&'s str, Span)>,
}

/// Reads the files of aliases into `reading`; if two files declare a name, the first counts.
pub(crate) fn read_aliases<'s>(reading: &mut Reading<'s>, roots: &[Section<'s>]) {
    let mut pending = Pending::none();
    for root in roots {
        reading.attributes_mean_nothing(*root);
        reading.text_means_nothing(*root);
    }
    let sections = || roots.iter().flat_map(|root| root.children());
    for section in sections() {
        reading.alias_extents.push((section.extent(), section.name));
        if reading.is_alias_name(section, &mut pending) {
            pending.sections.insert(section.name, section);
        }
    }
    for section in sections() {
        if pending
            .sections
            .get(section.name)
            .is_some_and(|first| first.is(section))
        {
            reading.read_alias(section, &mut pending);
        } else if !super::is_identifier(section.name) && !section.name.contains(':') {
            // The alias cannot be used, but its other mistakes are reported.
            reading.declared_type_with(section, &mut pending);
        }
    }
}

impl<'s> Reading<'s> {
    /// Whether this section declares an alias; reports invalid and repeated names.
    fn is_alias_name(&mut self, section: Section<'s>, pending: &mut Pending<'s>) -> bool {
        let name = section.name;
        if name.contains(':') {
            self.unknown_tag(section, []);
            return false;
        }
        if !self.is_identifier(section) {
            return false;
        }
        let unique = match self.dialect {
            Dialect::BigWorld => name.to_owned(),
            Dialect::KBEngine => name.to_ascii_uppercase(),
        };
        if let Some(&first) = pending.names.get(&unique) {
            let message = format!("the alias `{name}` is declared twice; the first declaration takes effect");
            let finding = Finding::new(Rule::RepeatedAlias, section.name_span(), message)
                .help("remove one of the two")
                .related(first, "declared here first");
            self.report(finding);
            return false;
        }
        pending.names.insert(unique, section.name_span());
        if self.dialect == Dialect::KBEngine && name.starts_with('_') {
            let message = format!("the alias `{name}` begins with `_`, which KBEngine reserves");
            self.report(Finding::new(Rule::AliasName, section.name_span(), message).help("choose another name"));
        }
        if super::declared_type::is_built_in(name) {
            self.has_hiding_alias = true;
            let message = format!("the alias `{name}` hides the type of that name");
            self.report(Finding::new(Rule::AliasName, section.name_span(), message).help("choose another name"));
        }
        true
    }

    fn read_alias(&mut self, section: Section<'s>, pending: &mut Pending<'s>) {
        pending.sections.remove(section.name);
        pending.path.push((section.name, section.name_span()));
        let typed = self.declared_type_with(section, pending);
        pending.path.pop();
        self.aliases.insert(Name(section.name), typed);
    }

    /// The alias of this name while aliases are being read: known, read now, or part of a cycle. `None` if there is no
    /// alias of this name; `Some(None)` if there is one that cannot be used, which has been reported.
    pub(super) fn pending_alias(
        &mut self,
        name: &'s str,
        used_at: Span,
        pending: &mut Pending<'s>,
    ) -> Option<Option<Typed>> {
        self.used_types
            .note(pending.path.last().map(|(open, _)| *open), used_at.file, name);
        if let Some(known) = self.aliases.get(&Name(name)) {
            return Some(known.clone());
        }
        if let Some(at) = pending.path.iter().position(|(open, _)| *open == name) {
            // An alias may have the name of the built-in type that it denotes.
            if at + 1 == pending.path.len() && super::declared_type::is_built_in(name) {
                return None;
            }
            let names: Vec<&str> = pending.path[at..].iter().map(|(open, _)| *open).collect();
            let message = format!("the alias `{name}` contains itself: {} → {name}", names.join(" → "));
            let finding = Finding::new(Rule::AliasCycle, used_at, message)
                .help("an alias cannot contain itself; for a structure of unknown depth use ids")
                .related(pending.path[at].1, "declared here");
            self.report(finding);
            return Some(None);
        }
        let section = *pending.sections.get(name)?;
        if pending.path.len() > MAX_FORWARD {
            let message = format!("more than {MAX_FORWARD} aliases each use one declared later");
            let finding = Finding::new(Rule::TypeTooLarge, used_at, message).help("declare an alias before it is used");
            self.report(finding);
            return Some(None);
        }
        let message = format!("`{name}` is declared below");
        let finding = Finding::new(Rule::AliasOrder, used_at, message)
            .help(format!("move the declaration of `{name}` above this one"))
            .related(section.name_span(), "declared here");
        self.report(finding);
        self.read_alias(section, pending);
        self.aliases.get(&Name(name)).cloned()
    }
}

impl Pending<'_> {
    /// No pending aliases: all have been read.
    pub(super) fn none() -> Self {
        Self {
            sections: BTreeMap::new(),
            names: BTreeMap::new(),
            path: Vec::new(),
        }
    }
}
