//! Values in `<Default>`.

use super::{
    Dialect, Reading, correction,
    kbengine_default::{self, Made, Origin},
    python::{self, Literal},
};
use crate::{
    check::check,
    data_type::{DataType, FixedDict, Sequence},
    diagnostic::{Finding, Rule, Severity},
    notation,
    source::{Section, Span},
    value::Value,
};

impl<'s> Reading<'s> {
    /// The value that a `<Default>` declares; `own` where it is empty or has no effect. `None` and a finding if it does
    /// not fit.
    pub(super) fn default(&mut self, data_type: &DataType, own: &Value, section: Section<'s>) -> Option<Value> {
        if matches!(data_type, DataType::Mailbox) {
            self.children_mean_nothing(section);
            if !section.is_empty() && section.text() != "None" {
                let finding = Finding::new(Rule::DefaultIgnored, section.name_span(), "a mailbox begins as None")
                    .help("remove the `<Default>`");
                self.report(finding);
            }
            return Some(own.clone());
        }
        if section.is_empty() {
            self.attributes_mean_nothing(section);
            return Some(own.clone());
        }
        self.value(data_type, section)
    }

    /// The value in a section, in the form of the predecessors' data files.
    fn value(&mut self, data_type: &DataType, section: Section<'s>) -> Option<Value> {
        self.attributes_mean_nothing(section);
        if self.dialect == Dialect::KBEngine
            && !section.has_children()
            && let Some(made) = kbengine_default::made(data_type, section.text())
        {
            return Some(self.made_by_kbengine(data_type, made, section));
        }
        match data_type {
            DataType::Array(sequence) | DataType::Tuple(sequence) => {
                let value = if !section.has_children() && section.has_text() {
                    self.noted(data_type, section)?
                } else {
                    self.items(sequence, section)?
                };
                self.fitting(data_type, value, section.name_span())
            }
            DataType::FixedDict(dict) => self.fields_of(dict, section),
            DataType::Python(_) | DataType::UserType(_) => Some(Value::Opaque(as_written(section).into_bytes())),
            _ => {
                for child in section.children() {
                    self.unknown_tag(child, []);
                }
                self.noted(data_type, section)
            }
        }
    }

    /// The value that KBEngine reads from a text; reports if it differs from what is written.
    fn made_by_kbengine(&mut self, data_type: &DataType, made: Made, section: Section<'s>) -> Value {
        let Made { value, from } = made;
        let text = section.text();
        let message = match from {
            Origin::Text => return value,
            Origin::Engine => format!("`{text}` is not a value of type {data_type}: KBEngine uses {value} instead"),
            Origin::Nothing => format!("`{text}` is not a Python literal: {value} is used instead"),
        };
        let help = match (data_type, from_text(data_type, text)) {
            (DataType::Vector2 | DataType::Vector3 | DataType::Vector4, _) => correction::with_commas(text),
            (DataType::Array(_) | DataType::Tuple(_) | DataType::FixedDict(_), _) | (_, Ok(_)) => {
                correction::for_kbengine(data_type)
            }
            (_, Err(Expected { help, .. })) => help,
        };
        let finding = Finding::new(Rule::Default, section.text_span(), message)
            .severity(Severity::Warning)
            .help(help);
        self.report(finding);
        value
    }

    /// Elements as children.
    fn items(&mut self, sequence: &Sequence, section: Section<'s>) -> Option<Value> {
        self.text_means_nothing(section);
        let mut values = Vec::new();
        let mut is_whole = true;
        for child in section.children() {
            if child.name != "item" {
                let message = format!("`<{}>` is read as `<item>`", child.name);
                let finding = Finding::new(Rule::TagCase, child.name_span(), message);
                self.report(finding.write_tag("item"));
            }
            let value = if child.is_empty() {
                self.attributes_mean_nothing(child);
                Some(sequence.element_default.clone())
            } else {
                self.value(&sequence.of, child)
            };
            // A short element can stand for thousands of values.
            if !value.as_ref().is_none_or(|value| self.spend(cost(value), child)) {
                return None;
            }
            is_whole &= value.is_some();
            values.extend(value);
        }
        is_whole.then_some(Value::Sequence(values))
    }

    /// Fields as children; missing ones have their defaults.
    fn fields_of(&mut self, dict: &FixedDict, section: Section<'s>) -> Option<Value> {
        if !section.has_children() {
            if dict.allow_none && (!section.has_text() || section.text() == "None") {
                return Some(Value::None);
            }
            if !section.has_text() {
                return Some(dict.filled());
            }
            let own = if dict.allow_none {
                "None"
            } else {
                "the defaults of its fields"
            };
            let message = format!("the value of a FIXED_DICT is written as its fields; it begins with {own}");
            let finding = Finding::new(Rule::DefaultIgnored, section.text_span(), message)
                .help("write `<field> value </field>` for each field that differs");
            self.report(finding);
            return Some(if dict.allow_none { Value::None } else { dict.filled() });
        }
        self.text_means_nothing(section);
        let mut values: Vec<Value> = dict.fields.iter().map(|field| field.default.clone()).collect();
        let mut is_whole = true;
        for child in section.children() {
            let Some((i, field)) = dict.field(child.name) else {
                let message = format!("the FIXED_DICT has no field `{}`", child.name);
                let finding = Finding::new(Rule::UnknownTag, child.name_span(), message);
                let names = dict.fields.iter().map(|field| field.name.as_str());
                let meant = self.nearest(child.name, names);
                self.report(match meant {
                    Some(meant) => finding.meant_tag(meant),
                    None => finding.help(format!("remove it; {}", correction::fields_of(dict))),
                });
                continue;
            };
            match self.default(&field.data_type, &field.default, child) {
                Some(value) => values[i] = value,
                None => is_whole = false,
            }
        }
        is_whole.then_some(Value::Dict(values))
    }

    /// A value in text notation.
    fn noted(&mut self, data_type: &DataType, section: Section<'s>) -> Option<Value> {
        match from_text(data_type, section.text()) {
            Ok(Noted { value, odd }) => {
                if let Some(odd) = odd {
                    let message = format!("`{}` is read as {odd}", section.text());
                    let finding = Finding::new(Rule::DefaultIgnored, section.text_span(), message).write(&odd);
                    self.report(finding);
                }
                self.fitting(data_type, value, section.text_span())
            }
            Err(Expected { what, help }) => {
                let message = format!("`{}` is not {what}", section.text());
                self.unfitting(data_type, section.text_span(), message, help)
            }
        }
    }

    /// Reports a default that does not fit. In KBEngine's dialect the type's own default replaces it.
    fn unfitting(&mut self, data_type: &DataType, span: Span, message: String, help: String) -> Option<Value> {
        let (message, own) = match self.dialect {
            Dialect::BigWorld => (message, None),
            Dialect::KBEngine => {
                let own = data_type.default_value();
                (format!("{message}: {own} is used instead"), Some(own))
            }
        };
        let finding = Finding::new(Rule::Default, span, message)
            .severity(Rule::Default.severity_in(self.dialect))
            .help(help);
        self.report(finding);
        own
    }

    fn fitting(&mut self, data_type: &DataType, value: Value, span: Span) -> Option<Value> {
        match check(data_type, &value) {
            Ok(()) => Some(value),
            Err(mismatch) => {
                let help = correction::of_problem(&mismatch.problem);
                self.unfitting(data_type, span, mismatch.to_string(), help)
            }
        }
    }
}

/// A value read from text, and its regular spelling if the text has another.
struct Noted {
    value: Value,
    odd: Option<String>,
}

impl From<Value> for Noted {
    fn from(value: Value) -> Self {
        Self { value, odd: None }
    }
}

/// The expected text, and what to write instead.
struct Expected {
    what: String,
    help: String,
}

impl Expected {
    fn new(what: impl Into<String>, help: impl Into<String>) -> Self {
        Self {
            what: what.into(),
            help: help.into(),
        }
    }
}

/// What a value counts in the budget: its values, and long texts by their length.
pub(super) fn cost(value: &Value) -> usize {
    /// Bytes that count like a value.
    const BYTES: usize = 32;
    match value {
        Value::Sequence(values) | Value::Dict(values) => 1 + values.iter().map(cost).sum::<usize>(),
        Value::Bytes(bytes) | Value::Opaque(bytes) => 1 + bytes.len() / BYTES,
        Value::Unicode(text) => 1 + text.len() / BYTES,
        _ => 1,
    }
}

/// A value in text notation; `None` if the text is none of this type.
pub(super) fn of_text(data_type: &DataType, text: &str) -> Option<Value> {
    from_text(data_type, text).ok().map(|noted| noted.value)
}

fn from_text(data_type: &DataType, text: &str) -> Result<Noted, Expected> {
    match data_type {
        DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::Int64 => {
            integer(data_type, text, |number| i64::try_from(number).ok().map(Value::Int))
        }
        DataType::UInt8 | DataType::UInt16 | DataType::UInt32 | DataType::UInt64 => {
            integer(data_type, text, |number| u64::try_from(number).ok().map(Value::UInt))
        }
        DataType::Float32 => number(text).map(|number| Value::Float32(number).into()),
        DataType::Float64 => number(text).map(|number| Value::Float64(number).into()),
        DataType::String => Ok(Value::string(text).into()),
        DataType::Unicode => Ok(Value::Unicode(text.to_owned()).into()),
        DataType::Blob => notation::base64(text)
            .map(|bytes| Value::Bytes(bytes).into())
            .ok_or_else(|| Expected::new("base-64", correction::of_blob(text))),
        DataType::Vector2 => vector(text).map(|parts| Value::Vector2(parts).into()),
        DataType::Vector3 => vector(text).map(|parts| Value::Vector3(parts).into()),
        DataType::Vector4 => vector(text).map(|parts| Value::Vector4(parts).into()),
        DataType::UdoRef => guid(text).map(|guid| Value::UdoRef(guid).into()),
        DataType::Mailbox => Ok(Value::Mailbox(None).into()),
        DataType::Python(_) | DataType::UserType(_) => Ok(Value::Opaque(text.as_bytes().to_vec()).into()),
        DataType::Array(sequence) | DataType::Tuple(sequence) => {
            let expected = || Expected::new("a list", correction::of_list(text));
            match python::parse(text) {
                Some(Literal::List(items)) => {
                    let values = items
                        .iter()
                        .map(|item| from_literal(&sequence.of, item))
                        .collect::<Result<_, _>>()?;
                    Ok(Value::Sequence(values).into())
                }
                _ => Err(expected()),
            }
        }
        DataType::FixedDict(dict) if dict.allow_none && text == "None" => Ok(Value::None.into()),
        DataType::FixedDict(dict) => Err(Expected::new("a FIXED_DICT", correction::of_dict(dict))),
    }
}

fn from_literal(data_type: &DataType, literal: &Literal) -> Result<Value, Expected> {
    match (data_type, literal) {
        (_, Literal::Word(text) | Literal::Text(text)) => from_text(data_type, text).map(|noted| noted.value),
        (DataType::Array(sequence) | DataType::Tuple(sequence), Literal::List(items)) => {
            let values = items.iter().map(|item| from_literal(&sequence.of, item));
            Ok(Value::Sequence(values.collect::<Result<_, _>>()?))
        }
        (DataType::Vector2 | DataType::Vector3 | DataType::Vector4, Literal::List(items)) => {
            let parts: Vec<&str> = items
                .iter()
                .map(|item| match item {
                    Literal::Word(text) => text.as_str(),
                    Literal::Text(_) | Literal::List(_) | Literal::Dict(_) => "",
                })
                .collect();
            from_text(data_type, &parts.join(" ")).map(|noted| noted.value)
        }
        (_, Literal::List(_) | Literal::Dict(_)) => {
            let help = format!("write a value of type {data_type} for each element, without brackets");
            Err(Expected::new(format!("a list of {data_type}"), help))
        }
    }
}

/// An integer, decimal or after `0x`. Irregular spellings: `true` is 1, `false` is 0, and a zero fraction is dropped.
fn integer(data_type: &DataType, text: &str, fit: impl Fn(i128) -> Option<Value>) -> Result<Noted, Expected> {
    let expected = || {
        let help = correction::of_integer(data_type, text);
        Expected::new(format!("an integer that fits {data_type}"), help)
    };
    if let Some(number) = notation::integer(text) {
        return fit(number).map(Noted::from).ok_or_else(expected);
    }
    let odd = match super::as_boolean(text) {
        Some(value) => i128::from(value),
        None => match text.split_once('.') {
            Some((whole, fraction)) if fraction.chars().all(|c| c == '0') => whole.parse().map_err(|_| expected())?,
            _ => return Err(expected()),
        },
    };
    let value = fit(odd).ok_or_else(expected)?;
    Ok(Noted {
        value,
        odd: Some(odd.to_string()),
    })
}

fn number<F: std::str::FromStr + Into<f64> + Copy>(text: &str) -> Result<F, Expected> {
    notation::number(text).ok_or_else(|| Expected::new("a number", correction::of_number(text)))
}

fn vector<const N: usize>(text: &str) -> Result<[f32; N], Expected> {
    notation::vector(text).ok_or_else(|| {
        Expected::new(
            format!("{N} numbers with blanks between them"),
            correction::of_vector(N, text),
        )
    })
}

/// Four groups of eight hexadecimal digits separated by dots, each a little-endian number in the bytes.
fn guid(text: &str) -> Result<[u8; 16], Expected> {
    let expected = || {
        let help = "write four groups of eight hexadecimal digits, as in `00112233.44556677.8899AABB.CCDDEEFF`";
        Expected::new("a GUID", help)
    };
    let mut bytes = [0; 16];
    let mut groups = text.split('.');
    for four in bytes.chunks_exact_mut(4) {
        let group = groups.next().filter(|group| group.len() == 8).ok_or_else(expected)?;
        let number = u32::from_str_radix(group, 16).map_err(|_| expected())?;
        four.copy_from_slice(&number.to_le_bytes());
    }
    if groups.next().is_none() {
        Ok(bytes)
    } else {
        Err(expected())
    }
}

/// The source text of a section, without comments and blanks between elements.
fn as_written(section: Section<'_>) -> String {
    let mut out = section.text().to_owned();
    for child in section.children() {
        let mut tag = child.name.to_owned();
        for attribute in child.attributes() {
            let quote = if attribute.value.contains('"') { '\'' } else { '"' };
            tag.push_str(&format!(" {}={quote}{}{quote}", attribute.name, attribute.value));
        }
        out.push_str(&format!("<{tag}>{}</{}>", as_written(child), child.name));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guid_is_four_little_endian_numbers() {
        let guid = guid("00112233.44556677.8899AABB.CCDDEEFF").ok().expect("well formed");
        assert_eq!(guid[..8], [0x33, 0x22, 0x11, 0x00, 0x77, 0x66, 0x55, 0x44]);
    }
}
