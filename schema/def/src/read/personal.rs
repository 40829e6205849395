//! Personal members, and the tags that they cannot have.

use super::{Fields, Reading};
use crate::{
    data_type::DataType,
    diagnostic::{Finding, Rule},
    schema::{Distribution, Index, Property},
    source::Section,
};

impl<'s> Reading<'s> {
    /// The property, sealed if it is personal. Conflicting tags are reported, and the property is then returned
    /// unchanged.
    pub(super) fn personal(&mut self, section: Section<'s>, fields: &Fields<'s>, property: Property) -> Property {
        if !self.boolean(fields.get("Personal"), false) {
            return property;
        }
        let against = against(&property);
        for (tag, because, help) in &against {
            let span = fields.get(tag).map_or(section.name_span(), |given| given.name_span());
            let message = format!("`{}` is personal: {because}", section.name);
            self.report(Finding::new(Rule::Personal, span, message).help(*help));
        }
        let data_type = property.data_type.clone();
        match property.clone().sealed(data_type) {
            Some(sealed) if against.is_empty() => sealed,
            _ => property,
        }
    }
}

type Against = (&'static str, &'static str, &'static str);

/// The declarations of a property that a personal one cannot have: the tag, the reason, and what to do.
fn against(property: &Property) -> Vec<Against> {
    let of_its_own = property.default != property.data_type.default_value();
    let is_mailbox = property.data_type == DataType::Mailbox;
    let all = [
        (
            property.distribution != Distribution::Base,
            "Flags",
            "only the base part has the key",
            "make it BASE, and send it to the own client with a method call",
        ),
        (
            !property.persistent,
            "Persistent",
            "the key belongs to a stored entity",
            "add `<Persistent> true </Persistent>`",
        ),
        (
            is_mailbox,
            "Type",
            "a mailbox is not personal data",
            "remove the `<Personal>`",
        ),
        (
            of_its_own,
            "Default",
            "a new entity has no personal data",
            "remove the `<Default>`, or use a type without a default",
        ),
        (
            property.account.is_some(),
            "Account",
            "an account view has no value that could be sealed",
            "remove one of the two",
        ),
        (
            property.identifier,
            "Identifier",
            "a sealed value cannot be searched",
            "remove the `<Identifier>`",
        ),
        (
            property.indexed != Index::None && !property.identifier,
            "Indexed",
            "a sealed value cannot be searched",
            "remove the index",
        ),
        (
            property.editable,
            "Editable",
            "world editors have no key",
            "remove the `<Editable>`",
        ),
        (
            property.latest_only,
            "SendLatestOnly",
            "it is not sent to clients",
            "remove the `<SendLatestOnly>`",
        ),
    ];
    let found = all.into_iter().filter(|(is, ..)| *is);
    found.map(|(_, tag, because, help)| (tag, because, help)).collect()
}
