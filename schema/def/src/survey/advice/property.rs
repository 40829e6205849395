//! Advice on properties.

use super::{Advice, PropertyUse, has, is_unbounded, largeness};
use crate::{
    data_type::DataType,
    diagnostic::{Finding, Rule},
    grammar::Dialect,
    schema::{Distribution, INDEXED_BYTES, Index},
};

/// Bytes up to which sending a whole value is as good as sending a part.
const SMALL: usize = 16;

/// Prefixes of names of boolean properties.
const QUESTIONS: [&str; 3] = ["is", "has", "can"];

impl Advice<'_, '_> {
    pub(super) fn property(&mut self, used: &PropertyUse<'_>) {
        self.type_of_property(used);
        self.shown_to_clients(used);
        self.shown_to_others(used);
        self.changes(used);
        self.stored(used);
        self.temporary(used);
    }

    fn type_of_property(&mut self, used: &PropertyUse<'_>) {
        let (property, name) = (used.property, &used.property.name);
        let is_sent = property.distribution.to_clients();
        if !is_sent && has(&property.data_type, |part| matches!(part, DataType::Python(_))) {
            let message = format!("`{name}` can be interpreted by scripts only");
            let finding = Finding::new(Rule::OpaqueValue, used.place("Type"), message)
                .help("declare its content: a FIXED_DICT, an ARRAY, a STRING");
            self.report(finding);
        }
        if is_sent && has(&property.data_type, |part| *part == DataType::Float64) {
            let message = format!("`{name}` is sent to clients with 64 bits");
            let finding = Finding::new(Rule::WideFloat, used.place("Type"), message)
                .help("use FLOAT32: its 7 digits are enough for display");
            self.report(finding);
        }
        let is_wide = integer_bytes(&property.data_type).is_some_and(|bytes| bytes > 1);
        if is_sent && is_wide && is_question(name) {
            let message = format!(
                "the name `{name}` suggests a boolean, but the type is {}",
                property.data_type
            );
            let finding = Finding::new(Rule::WideBoolean, used.place("Type"), message)
                .help("use UINT8: it is enough for a boolean");
            self.report(finding);
        }
        if is_sent && self.dialect == Dialect::BigWorld && has(&property.data_type, |part| *part == DataType::String) {
            let message = format!("`{name}` is sent to clients as bytes");
            let finding = Finding::new(Rule::BytesForText, used.place("Type"), message)
                .help("make it a UNICODE_STRING if it is text for people, else a BLOB");
            self.report(finding);
        }
        let is_inline = used.section.child("Type").is_some_and(|section| section.has_children());
        if let DataType::FixedDict(dict) = &property.data_type
            && is_inline
            && dict.fields.len() == 1
            && dict.implemented_by.is_none()
        {
            let message = format!("`{name}` has one field, `{}`", dict.fields[0].name);
            let finding = Finding::new(Rule::OneField, used.place("Type"), message)
                .help("give the property the type of the field");
            self.report(finding);
        }
    }

    fn shown_to_clients(&mut self, used: &PropertyUse<'_>) {
        let (property, name) = (used.property, &used.property.name);
        if property.distribution.to_clients() && used.all(|heir| !heir.parts.client) {
            let message = format!(
                "`{name}` is {}, but no type with it has a client part",
                property.distribution
            );
            let help = match (property.distribution.on_base(), property.distribution.to_ghosts()) {
                (true, _) => "make it BASE",
                (false, true) => "make it CELL_PUBLIC, or CELL_PRIVATE if no other entity reads it",
                (false, false) => "make it CELL_PRIVATE",
            };
            self.report(Finding::new(Rule::ShownToNobody, used.place("Flags"), message).help(help));
        }
        if property.distribution == Distribution::BaseAndClient
            && let Some(largeness) = largeness(&property.data_type)
        {
            let message = format!("`{name}` {largeness} and is sent when the client gets the entity");
            let finding = Finding::new(Rule::LargeAtCreation, used.place("Flags"), message)
                .help("make it BASE, and let the client ask for what it shows");
            self.report(finding);
        }
    }

    fn shown_to_others(&mut self, used: &PropertyUse<'_>) {
        let (property, name) = (used.property, &used.property.name);
        let Some(largeness) = largeness(&property.data_type) else {
            return;
        };
        if property.distribution.to_other_clients() && used.all(|heir| used.of(heir).detail_level.is_none()) {
            let message = format!("`{name}` {largeness} and is sent to other clients at any distance");
            let finding = Finding::new(Rule::LargeAtAnyDistance, used.place("Flags"), message)
                .help("add a `<DetailLevel>`, or use OWN_CLIENT if others do not show it");
            self.report(finding);
        }
        let better = match property.distribution {
            Distribution::CellPublic => "make it CELL_PRIVATE if only the entity itself uses it",
            Distribution::CellPublicAndOwn => "make it OWN_CLIENT if no other entity uses it",
            _ => return,
        };
        let message = format!("`{name}` {largeness} and is copied to all ghosts");
        self.report(Finding::new(Rule::LargeOnGhosts, used.place("Flags"), message).help(better));
    }

    fn changes(&mut self, used: &PropertyUse<'_>) {
        let (property, name) = (used.property, &used.property.name);
        if !property.distribution.to_clients() {
            return;
        }
        let has_parts = matches!(property.data_type, DataType::Array(_) | DataType::FixedDict(_));
        let is_small = property.data_type.stream_size().is_some_and(|size| size <= SMALL);
        if has_parts && !is_small && (property.latest_only || !property.reliable) {
            let tag = if property.latest_only {
                "SendLatestOnly"
            } else {
                "IsReliable"
            };
            let message = format!("a change of one part of `{name}` sends all of it");
            let finding = Finding::new(Rule::WholeEachTime, used.place(tag), message)
                .help("remove it, or move the parts into separate properties");
            self.report(finding);
        }
        let is_vector = matches!(
            property.data_type,
            DataType::Vector2 | DataType::Vector3 | DataType::Vector4
        );
        if is_vector && property.distribution.to_other_clients() && !property.latest_only {
            let message = format!("each change of `{name}` is sent, even if a later one has replaced it");
            let finding = Finding::new(Rule::EveryStep, used.span, message)
                .help("add `<SendLatestOnly> true </SendLatestOnly>` if it changes often");
            self.report(finding);
        }
    }

    fn stored(&mut self, used: &PropertyUse<'_>) {
        let (property, name) = (used.property, &used.property.name);
        if property.account.is_some() && used.all(|heir| !heir.persistent) {
            let message = format!("`{name}` is a view of an account, but no type with it is stored");
            let finding = Finding::new(Rule::AccountOfNobody, used.place("Account"), message)
                .help("remove it, or the `<Persistent> false </Persistent>` of the type");
            self.report(finding);
        }
        if !property.persistent {
            return;
        }
        if used.all(|heir| !heir.persistent) {
            let message = format!("`{name}` is persistent, but no type with it is stored");
            let finding = Finding::new(Rule::StoredByNobody, used.place("Persistent"), message).help("remove it");
            self.report(finding);
        }
        let is_text = matches!(
            property.data_type,
            DataType::String | DataType::Unicode | DataType::Blob
        );
        let is_bounded = |limit: usize| property.database_length.is_some_and(|length| length as usize <= limit);
        if is_text && property.indexed != Index::None && !is_bounded(INDEXED_BYTES) {
            let tag = ["Identifier", "Indexed", "Index"]
                .into_iter()
                .find(|tag| used.section.child(tag).is_some());
            let message = format!("`{name}` is indexed and can be longer than {INDEXED_BYTES} bytes");
            let finding = Finding::new(Rule::UnboundedName, used.place(tag.unwrap_or("Type")), message).help(format!(
                "add `<DatabaseLength> n </DatabaseLength>` of at most {INDEXED_BYTES}"
            ));
            self.report(finding);
        } else if is_unbounded(&property.data_type) && has_own_length(&property.data_type) && !is_bounded(usize::MAX) {
            let message = format!("`{name}` is stored and can have any size");
            let finding = Finding::new(Rule::UnboundedStored, used.place("Type"), message)
                .help("add a `<DatabaseLength>`, or declare its content");
            self.report(finding);
        }
    }

    fn temporary(&mut self, used: &PropertyUse<'_>) {
        let (property, name) = (used.property, &used.property.name);
        if !used.all(|heir| heir.temp_properties.contains(name)) {
            return;
        }
        let (what, tag) = match (property.persistent, property.distribution.is_shown()) {
            (true, _) => ("stored", "Persistent"),
            (false, true) => ("shown to others", "Flags"),
            (false, false) => return,
        };
        let message = format!("`{name}` is temporary and {what}");
        let finding = Finding::new(Rule::TemporaryYetKept, used.place(tag), message)
            .help("remove it from `<TempProperties>`, or make it private and not persistent");
        self.report(finding);
    }
}

/// Whether a `<DatabaseLength>` bounds values of a type.
fn has_own_length(data_type: &DataType) -> bool {
    match data_type {
        DataType::Blob | DataType::Python(_) | DataType::UserType(_) => true,
        DataType::Array(sequence) | DataType::Tuple(sequence) => has_own_length(&sequence.of),
        _ => false,
    }
}

/// Bytes of an integer type.
fn integer_bytes(data_type: &DataType) -> Option<usize> {
    let is_integer = matches!(
        data_type,
        DataType::Int8
            | DataType::Int16
            | DataType::Int32
            | DataType::Int64
            | DataType::UInt8
            | DataType::UInt16
            | DataType::UInt32
            | DataType::UInt64
    );
    data_type.stream_size().filter(|_| is_integer)
}

/// `isOpen`, `has_key`, `component.canFly`.
fn is_question(name: &str) -> bool {
    let name = name.rsplit('.').next().unwrap_or(name);
    QUESTIONS.iter().any(|question| {
        let rest = name.strip_prefix(question).unwrap_or_default();
        rest.starts_with(|c: char| c.is_ascii_uppercase() || c == '_')
    })
}
