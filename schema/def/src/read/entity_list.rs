//! `entities.xml`: the entity types and their order.

use std::collections::BTreeMap;

use super::{Dialect, Reading, as_boolean};
use crate::{
    diagnostic::{Finding, Rule},
    grammar::{GROUPED_LIST, GROUPS},
    source::{Section, Span},
};

/// The entity types of a game, in order.
#[derive(Debug, Default)]
pub(crate) struct EntityList<'s> {
    pub(crate) entities: Vec<Listed<'s>>,
}

/// One entry of the list.
#[derive(Debug)]
pub(crate) struct Listed<'s> {
    pub(crate) name: &'s str,
    pub(crate) span: Span,
    /// The parts that the list declares.
    pub(crate) base: Option<bool>,
    pub(crate) cell: Option<bool>,
    pub(crate) client: Option<bool>,
}

impl<'s> Reading<'s> {
    /// Reads the list in either form: flat, or in groups of types with and without a client part.
    pub(crate) fn entity_list(&mut self, root: Section<'s>) -> EntityList<'s> {
        let mut list = EntityList::default();
        self.attributes_mean_nothing(root);
        self.text_means_nothing(root);
        if GROUPS.iter().any(|group| root.child(group).is_some()) {
            let fields = self.fields(root, &GROUPED_LIST);
            for (group, client) in GROUPS.into_iter().zip([true, false]) {
                if let Some(group) = fields.get(group) {
                    self.attributes_mean_nothing(group);
                    self.text_means_nothing(group);
                    list.entities
                        .extend(group.children().filter_map(|child| self.listed(child, Some(client))));
                }
            }
        } else {
            list.entities
                .extend(root.children().filter_map(|child| self.listed(child, None)));
        }
        self.without_repetitions(&mut list);
        list
    }

    /// A list of names only: services, user data objects.
    pub(crate) fn name_list(&mut self, root: Section<'s>) -> EntityList<'s> {
        self.attributes_mean_nothing(root);
        self.text_means_nothing(root);
        let entities = root.children().filter_map(|child| self.listed(child, None)).collect();
        let mut list = EntityList { entities };
        self.without_repetitions(&mut list);
        list
    }

    fn listed(&mut self, section: Section<'s>, client: Option<bool>) -> Option<Listed<'s>> {
        if section.name.contains(':') {
            self.unknown_tag(section, []);
            return None;
        }
        if !self.is_identifier(section) {
            return None;
        }
        self.text_means_nothing(section);
        for child in section.children() {
            self.unknown_tag(child, []);
        }
        let (name, span) = (section.name, section.name_span());
        let mut listed = Listed {
            name,
            span,
            base: None,
            cell: None,
            client,
        };
        for attribute in section.attributes() {
            let part = match attribute.name {
                "hasBase" => &mut listed.base,
                "hasCell" => &mut listed.cell,
                "hasClient" => &mut listed.client,
                _ => {
                    let message = format!("the attribute `{}` has no effect", attribute.name);
                    let finding = Finding::new(Rule::Attribute, attribute.span, message)
                        .help("`hasBase`, `hasCell` and `hasClient` are understood here");
                    self.report(finding);
                    continue;
                }
            };
            *part = Some(as_boolean(attribute.value).unwrap_or_else(|| {
                let message = format!("`{}` is neither true nor false; it is read as false", attribute.value);
                self.findings.push(Finding::new(Rule::Boolean, attribute.span, message));
                false
            }));
        }
        Some(listed)
    }

    /// Keeps one entry of each name: in BigWorld the last, by which the engine finds the type; in KBEngine the first,
    /// as that engine rejects the others.
    fn without_repetitions(&mut self, list: &mut EntityList<'s>) {
        let is_last = self.dialect == Dialect::BigWorld;
        if is_last {
            list.entities.reverse();
        }
        let mut seen: BTreeMap<&str, Span> = BTreeMap::new();
        let mut repeated: Vec<(&str, Span, Span)> = Vec::new();
        list.entities.retain(|listed| match seen.get(listed.name) {
            Some(&counts) => {
                repeated.push((listed.name, listed.span, counts));
                false
            }
            None => {
                seen.insert(listed.name, listed.span);
                true
            }
        });
        if is_last {
            list.entities.reverse();
        }
        for (name, span, counts) in repeated {
            self.listed_again(list, name, span, counts);
        }
    }

    /// Reports an entry that has no effect.
    fn listed_again(&mut self, list: &EntityList<'s>, name: &str, span: Span, counts: Span) {
        let message = match self.dialect {
            Dialect::BigWorld => {
                let place = list.entities.iter().position(|listed| listed.span == counts);
                let number = place.map_or(String::new(), |place| format!(": it is number {place}"));
                format!("`{name}` is listed again below, and the later place takes effect{number}")
            }
            Dialect::KBEngine => format!("`{name}` is listed twice"),
        };
        let finding = Finding::new(Rule::RepeatedEntity, span, message)
            .severity(Rule::RepeatedEntity.severity_in(self.dialect))
            .help("remove one of the two")
            .related(counts, "this place takes effect");
        self.findings.push(finding);
    }
}
