//! Advice: declarations that mean what was intended, but could use fewer bytes, less work or be less error-prone.
//!
//! Each declaration is judged once, however many types inherit it: a rule about the types that have a member is broken
//! only if all of them break it.

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

/// Bytes above which something is large: a few strings, and about a third of what a client receives in a tick on a slow
/// connection.
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

/// The game, and its findings.
struct Advice<'w, 'f> {
    texts: &'f Texts<'w>,
    dialect: Dialect,
    findings: &'f mut Findings,
}

/// Reports violations of the advice rules.
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
    /// The place of a tag's text in the declaration; that of the name if there is no such tag.
    fn place(&self, tag: &str) -> Span {
        place(self.section, tag)
    }

    /// Whether all types with the member satisfy the predicate.
    fn all(&self, predicate: impl Fn(&'w EntityType) -> bool) -> bool {
        self.heirs.iter().all(|heir| predicate(heir))
    }

    /// The property in a type.
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

/// The properties of all types, by declaration.
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

/// The methods of all types, by declaration.
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

/// The listed entity types with their declarations.
fn listed<'w>(texts: &Texts<'w>) -> impl Iterator<Item = (&'w EntityType, &'w Declared<'w>)> {
    let world = texts.world;
    world.schema.types().iter().zip(world.declared.types.iter())
}

/// Whether values of a type can have any size. Text does not count, as names are short in practice.
fn is_unbounded(data_type: &DataType) -> bool {
    data_type.any(&mut |part| match part {
        DataType::Blob | DataType::Python(_) | DataType::UserType(_) => true,
        DataType::Array(sequence) | DataType::Tuple(sequence) => sequence.size.is_none(),
        _ => false,
    })
}

/// The size of values of a type, in words, if they are or can be large.
fn largeness(data_type: &DataType) -> Option<String> {
    if is_unbounded(data_type) {
        return Some("can have any size".to_owned());
    }
    let fixed = data_type.stream_size().filter(|size| *size > LARGE);
    fixed.map(|size| format!("takes {size} bytes"))
}

/// Whether a type contains a part of this kind.
fn has(data_type: &DataType, wanted: fn(&DataType) -> bool) -> bool {
    data_type.any(&mut |part| wanted(part))
}
