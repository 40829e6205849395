//! Advice on types as a whole, and on their shared declarations: levels, positions, ids, aliases.

use std::collections::{BTreeMap, BTreeSet};

use annals_ids::Part;

use super::{Advice, listed};
use crate::{
    data_type::DataType,
    diagnostic::{Finding, Rule},
    member_ids::Ids,
    names::Name,
    read::{Definition, Named},
    schema::{EntityType, Reach},
    source::{FileId, Section},
};

/// Names of aliases for booleans.
const BOOLEANS: [&str; 2] = ["BOOL", "BOOLEAN"];

impl<'w> Advice<'w, '_> {
    /// The definitions of listed entity types, each with the types that use it.
    fn definitions(&self) -> Vec<(&'w Definition<'w>, Vec<&'w EntityType>)> {
        let mut heirs: BTreeMap<FileId, (&Definition<'_>, Vec<&EntityType>)> = BTreeMap::new();
        for (one, declared) in listed(self.texts) {
            for definition in declared.definitions() {
                let entry = heirs.entry(definition.span.file).or_insert((definition, Vec::new()));
                entry.1.push(one);
            }
        }
        heirs.into_values().collect()
    }

    /// Levels of detail.
    pub(super) fn levels(&mut self) {
        for (definition, heirs) in self.definitions() {
            for declared in &definition.levels {
                let label = &declared.level.label;
                if declared.level.hysteresis == 0.0 {
                    let message = format!("the level `{label}` has no hysteresis");
                    let finding = Finding::new(Rule::NoHysteresis, declared.span, message)
                        .help("remove the `<hyst>` for the default of 10 metres, or set a distance");
                    self.report(finding);
                }
                let is_used = heirs.iter().any(|heir| {
                    let mut properties = heir.properties.iter();
                    let level = |at: u8| heir.lod_levels.get(usize::from(at));
                    properties.any(|property| {
                        property
                            .detail_level
                            .and_then(level)
                            .is_some_and(|one| one.label == *label)
                    })
                });
                // The three bands of `<DetailLevels>` can only be declared together.
                let is_band = self
                    .texts
                    .section(declared.span)
                    .is_some_and(|section| section.has_text());
                if !is_used && is_band {
                    let message = format!("no property has the level `{label}`");
                    let finding = Finding::new(Rule::UnusedLevel, declared.span, message).help("remove the level");
                    self.report(finding);
                }
            }
        }
    }

    /// How positions are sent.
    pub(super) fn places(&mut self) {
        for (definition, heirs) in self.definitions() {
            let Some(root) = self.texts.root(definition.span.file) else {
                continue;
            };
            let precise = root.child("DetailedPosition");
            let is_volatile = |heir: &&EntityType| heir.volatile.position != Reach::Never && heir.appeal_radius == 0.0;
            if let Some(section) = precise.filter(|_| heirs.iter().all(is_volatile)) {
                let finding = Finding::new(
                    Rule::ExactPosition,
                    section.name_span(),
                    "each movement is sent with the exact position, in more bytes",
                )
                .help("remove it, unless clients need more than a position that is rounded the more the farther away it is");
                self.report(finding);
            }
            let volatile = root.child("Volatile");
            let is_unseen = |heir: &&EntityType| heir.volatile.is_any() && !heir.parts.client;
            if let Some(section) = volatile.filter(|_| heirs.iter().all(is_unseen)) {
                let finding = Finding::new(
                    Rule::VolatileUnseen,
                    section.name_span(),
                    "no type with this section has a client part",
                )
                .help("remove the section");
                self.report(finding);
            }
        }
    }

    /// Ids of more than one byte.
    pub(super) fn ids(&mut self) {
        for (one, declared) in listed(self.texts) {
            let Some(own) = declared.own else { continue };
            let (properties, methods) = Ids::shown(one);
            let lists = [
                ("properties that clients see", properties),
                ("client methods", methods),
                ("exposed base methods", Ids::called(one, Part::Base)),
                ("exposed cell methods", Ids::called(one, Part::Cell)),
            ];
            for (what, ids) in lists {
                if ids.overflowing() > 0 {
                    let (count, over) = (ids.members.len(), ids.overflowing());
                    let message = format!(
                        "of the {count} {what} of `{}`, {over} have an id of more than one byte",
                        one.name
                    );
                    let finding = Finding::new(Rule::LongIds, own.span, message)
                        .help("merge properties that change together into a FIXED_DICT, and similar methods into one");
                    self.report(finding);
                }
            }
        }
    }

    /// Unused aliases, and aliases with a wider type than needed.
    pub(super) fn aliases(&mut self) {
        let known = &self.texts.world.reading.aliases;
        let sections: Vec<Section<'_>> = self.texts.alias_sections().collect();
        let used = self.used_words();
        let mut findings = Vec::new();
        for section in sections {
            let Named { name, span } = Named {
                name: section.name,
                span: section.name_span(),
            };
            let Some(Some(typed)) = known.get(&Name(name)) else {
                continue;
            };
            if !used.contains(name) {
                let message = format!("nothing uses the alias `{name}`");
                findings.push(Finding::new(Rule::UnusedAlias, span, message).help("remove it"));
            }
            let is_boolean = BOOLEANS.iter().any(|known| known.eq_ignore_ascii_case(name));
            if is_boolean && typed.data_type.stream_size().is_some_and(|size| size > 1) {
                let message = format!("`{name}` is of type {}", typed.data_type);
                findings.push(Finding::new(Rule::WideBoolean, span, message).help("make it a UINT8"));
            }
            if let DataType::FixedDict(dict) = &typed.data_type
                && section.has_children()
                && dict.fields.len() == 1
                && dict.implemented_by.is_none()
            {
                let message = format!("`{name}` has one field, `{}`", dict.fields[0].name);
                let finding = Finding::new(Rule::OneField, span, message).help("use the type of the field");
                findings.push(finding);
            }
        }
        findings.into_iter().for_each(|finding| self.report(finding));
    }

    /// All texts of all files that could name a type. An alias that names itself denotes the built-in type.
    fn used_words(&self) -> BTreeSet<&'w str> {
        let mut words = BTreeSet::new();
        for document in self.texts.documents() {
            let mut open: Vec<Section<'w>> = document.root().into_iter().collect();
            while let Some(section) = open.pop() {
                let word = section.text();
                if word != section.name {
                    words.insert(word);
                }
                open.extend(section.children());
            }
        }
        words
    }
}
