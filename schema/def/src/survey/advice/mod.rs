//! Advice: what is declared as it was meant, and could be said with fewer bytes, less work or less to go wrong.
//!
//! Each declaration is judged once, however many types inherit it: a rule that concerns the types that have a member is
//! broken only if all of them break it.

mod kinds;
mod method;
mod property;

use std::collections::BTreeMap;

use super::texts::Texts;
use crate::{
    compile::Declared,
    data_type::DataType,
    diagnostic::{Finding, Findings},
    grammar::Dialect,
    read::MethodPart,
    schema::{EntityType, Method, Property},
    source::{Section, Span},
};

/// Bytes above which something is large: as many as a few strings, and about a third of what a client is sent in a tick
/// of a slow connection.
const LARGE: usize = 64;

/// A declared property and the types that have it.
struct PropertyUse<'w> {
    span: Span,
    section: Section<'w>,
    property: &'w Property,
    heirs: Vec<&'w EntityType>,
}

/// A declared method and the types that have it.
struct MethodUse<'w> {
    span: Span,
    section: Section<'w>,
    part: MethodPart,
    method: &'w Method,
    heirs: Vec<&'w EntityType>,
}

/// The game, and what is found in it.
struct Advice<'w, 'f> {
    texts: &'f Texts<'w>,
    dialect: Dialect,
    findings: &'f mut Findings,
}

/// Reports what is against a rule of advice.
pub(super) fn advise(texts: &Texts<'_>, findings: &mut Findings) {
    let world = texts.world;
    let mut advice = Advice {
        texts,
        dialect: world.reading.dialect,
        findings,
    };
    for used in properties(texts) {
        advice.property(&used);
    }
    for used in methods(texts) {
        advice.method(&used);
    }
    advice.levels();
    advice.places();
    advice.ids();
    advice.aliases();
}

impl Advice<'_, '_> {
    fn report(&mut self, finding: Finding) {
        self.findings.push(finding);
    }
}

impl<'w> PropertyUse<'w> {
    /// Where a tag of the declaration has its text; of the name if there is no such tag.
    fn place(&self, tag: &str) -> Span {
        place(self.section, tag)
    }

    /// Whether all types that have it satisfy the predicate.
    fn all(&self, predicate: impl Fn(&'w EntityType) -> bool) -> bool {
        self.heirs.iter().all(|heir| predicate(heir))
    }

    /// The property as a type has it.
    fn of(&self, heir: &'w EntityType) -> &'w Property {
        heir.property_named(&self.property.name).unwrap_or(self.property)
    }
}

fn place(section: Section<'_>, tag: &str) -> Span {
    match section.child(tag) {
        Some(child) if child.has_text() => child.text_span(),
        Some(child) => child.name_span(),
        None => section.name_span(),
    }
}

/// The properties of all types by their declarations.
fn properties<'w>(texts: &Texts<'w>) -> Vec<PropertyUse<'w>> {
    let mut uses: BTreeMap<Span, PropertyUse<'w>> = BTreeMap::new();
    for (one, declared) in listed(texts) {
        for (property, span) in one.properties.iter().zip(&declared.properties) {
            if let Some(used) = uses.get_mut(span) {
                used.heirs.push(one);
            } else if let Some(section) = texts.section(*span) {
                let used = PropertyUse {
                    span: *span,
                    section,
                    property,
                    heirs: vec![one],
                };
                uses.insert(*span, used);
            }
        }
    }
    uses.into_values().collect()
}

/// The methods of all types by their declarations.
fn methods<'w>(texts: &Texts<'w>) -> Vec<MethodUse<'w>> {
    let mut uses: BTreeMap<Span, MethodUse<'w>> = BTreeMap::new();
    for (one, declared) in listed(texts) {
        let parts = [
            (MethodPart::Base, &one.base_methods, &declared.base_methods),
            (MethodPart::Cell, &one.cell_methods, &declared.cell_methods),
            (MethodPart::Client, &one.client_methods, &declared.client_methods),
        ];
        for (part, methods, spans) in parts {
            for (method, span) in methods.iter().zip(spans) {
                if let Some(used) = uses.get_mut(span) {
                    used.heirs.push(one);
                } else if let Some(section) = texts.section(*span) {
                    let used = MethodUse {
                        span: *span,
                        section,
                        part,
                        method,
                        heirs: vec![one],
                    };
                    uses.insert(*span, used);
                }
            }
        }
    }
    uses.into_values().collect()
}

/// The listed entity types, each with where it is declared.
fn listed<'w>(texts: &Texts<'w>) -> impl Iterator<Item = (&'w EntityType, &'w Declared<'w>)> {
    let world = texts.world;
    world.schema.types().iter().zip(world.declared.types.iter())
}

/// Whether values of a type can have any size, text aside: nobody writes a book into a name.
fn is_unbounded(data_type: &DataType) -> bool {
    data_type.any(&mut |part| match part {
        DataType::Blob | DataType::Python(_) | DataType::UserType(_) => true,
        DataType::Array(sequence) | DataType::Tuple(sequence) => sequence.size.is_none(),
        _ => false,
    })
}

/// How large values of a type are, in words, if they are or can be large.
fn largeness(data_type: &DataType) -> Option<String> {
    if is_unbounded(data_type) {
        return Some("can have any size".to_owned());
    }
    let fixed = data_type.stream_size().filter(|size| *size > LARGE);
    fixed.map(|size| format!("takes {size} bytes"))
}

/// Whether a type has a part of this kind.
fn has(data_type: &DataType, wanted: fn(&DataType) -> bool) -> bool {
    data_type.any(&mut |part| wanted(part))
}
