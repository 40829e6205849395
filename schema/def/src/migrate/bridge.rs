//! Conversion from one type to another: the differences, and how values are converted.
//!
//! Both come from one walk over the two types, so that the reported differences are those that conversion applies.

use std::fmt;

use annals_ids::TypeId;

use super::number;
use crate::{
    check::{Step, check, longest},
    data_type::{DataType, Field, FixedDict, Sequence},
    value::Value,
};

/// Effect of a difference between two types on a value written under the old one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fit {
    /// Every value fits the new type and means the same.
    Same,
    /// Every value can be converted; unconverted, it would be rejected or misread.
    Converted,
    /// Some values can be converted, others cannot.
    Some,
    /// No value can be converted.
    None,
}

/// One difference between two types, at one place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The path from the whole value: fields by name, elements as `[]`. Empty for the value itself.
    pub at: String,
    /// The difference.
    pub change: TypeChange,
    /// Its effect on a value.
    pub fit: Fit,
}

/// A path as designers write it, after the name of the value: `bag` and `[].count` are `bag[].count`.
#[must_use]
pub fn place_below(value: &str, way: &str) -> String {
    let dot = if way.is_empty() || way.starts_with('[') {
        ""
    } else {
        "."
    };
    format!("{value}{dot}{way}")
}

/// How two types differ at one place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TypeChange {
    /// A number type whose range contains that of the old one.
    Widened {
        /// The old type.
        from: DataType,
        /// The new type.
        to: DataType,
    },
    /// A number type whose range does not contain that of the old one.
    Narrowed {
        /// The old type.
        from: DataType,
        /// The new type.
        to: DataType,
    },
    /// `STRING` and `BLOB`, which have the same bytes.
    BytesRenamed {
        /// The old type.
        from: DataType,
        /// The new type.
        to: DataType,
    },
    /// Bytes became `UNICODE_STRING`.
    BytesToText,
    /// `UNICODE_STRING` became bytes.
    TextToBytes,
    /// An opaque type became `PYTHON`, which accepts any object.
    OpaqueWidened,
    /// `ARRAY` became `TUPLE`, or the reverse.
    SequenceKind,
    /// A sequence of fixed size became variable.
    SizeDropped {
        /// The old size.
        from: u32,
    },
    /// A sequence of variable size became fixed.
    SizeGiven {
        /// The new size.
        to: u32,
    },
    /// The size of a sequence of fixed size grew.
    SizeGrown {
        /// The old size.
        from: u32,
        /// The new size.
        to: u32,
    },
    /// The size of a sequence of fixed size shrank.
    SizeCut {
        /// The old size.
        from: u32,
        /// The new size.
        to: u32,
    },
    /// The elements of a sequence can now be stored in zero bytes, which lowers its maximum length.
    LimitLowered,
    /// The value of a new element.
    ElementDefault,
    /// Whether a sequence is stored as one blob.
    PersistAsBlob,
    /// A `FIXED_DICT` can be None.
    NoneAllowed,
    /// A `FIXED_DICT` can no longer be None.
    NoneRefused,
    /// The script converter of a `FIXED_DICT`.
    ImplementedBy,
    /// A field was added.
    FieldAdded { name: String },
    /// A field was removed.
    FieldRemoved { name: String },
    /// The remaining fields changed their order.
    FieldsReordered,
    /// The initial value of a field.
    FieldDefault,
    /// Whether a field is stored.
    FieldPersistent,
    /// The length reserved for a field in the database.
    FieldDatabaseLength,
    /// An unrelated type.
    Replaced {
        /// The old type.
        from: DataType,
        /// The new type.
        to: DataType,
    },
}

impl TypeChange {
    /// One word, for programs and the table in the documentation.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Self::Widened { .. } => "widened",
            Self::Narrowed { .. } => "narrowed",
            Self::BytesRenamed { .. } => "string-blob",
            Self::BytesToText => "bytes-to-text",
            Self::TextToBytes => "text-to-bytes",
            Self::OpaqueWidened => "opaque-widened",
            Self::SequenceKind => "array-tuple",
            Self::SizeDropped { .. } => "size-dropped",
            Self::SizeGiven { .. } => "size-given",
            Self::SizeGrown { .. } => "size-raised",
            Self::SizeCut { .. } => "size-lowered",
            Self::LimitLowered => "limit-lowered",
            Self::ElementDefault => "element-default",
            Self::PersistAsBlob => "persist-as-blob",
            Self::NoneAllowed => "none-allowed",
            Self::NoneRefused => "none-refused",
            Self::ImplementedBy => "implemented-by",
            Self::FieldAdded { .. } => "field-added",
            Self::FieldRemoved { .. } => "field-removed",
            Self::FieldsReordered => "fields-reordered",
            Self::FieldDefault => "field-default",
            Self::FieldPersistent => "field-persistent",
            Self::FieldDatabaseLength => "field-database-length",
            Self::Replaced { .. } => "replaced",
        }
    }

    /// Whether a value has other bytes in a stream or other names, so that clients notice.
    #[must_use]
    pub fn is_seen(&self) -> bool {
        !matches!(
            self,
            Self::LimitLowered
                | Self::ElementDefault
                | Self::PersistAsBlob
                | Self::ImplementedBy
                | Self::FieldDefault
                | Self::FieldPersistent
                | Self::FieldDatabaseLength
        )
    }

    fn fit(&self) -> Fit {
        match self {
            Self::Widened { from, to } if !number::is_same_kind(from, to) => Fit::Converted,
            Self::TextToBytes
            | Self::SizeGrown { .. }
            | Self::FieldAdded { .. }
            | Self::FieldRemoved { .. }
            | Self::FieldsReordered => Fit::Converted,
            Self::Narrowed { .. }
            | Self::BytesToText
            | Self::SizeGiven { .. }
            | Self::SizeCut { .. }
            | Self::LimitLowered
            | Self::NoneRefused => Fit::Some,
            Self::Replaced { .. } => Fit::None,
            Self::Widened { .. }
            | Self::BytesRenamed { .. }
            | Self::OpaqueWidened
            | Self::SequenceKind
            | Self::SizeDropped { .. }
            | Self::NoneAllowed
            | Self::ElementDefault
            | Self::PersistAsBlob
            | Self::ImplementedBy
            | Self::FieldDefault
            | Self::FieldPersistent
            | Self::FieldDatabaseLength => Fit::Same,
        }
    }
}

impl fmt::Display for TypeChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Widened { from, to } => write!(f, "{from} widened to {to}"),
            Self::Narrowed { from, to } => write!(f, "{from} narrowed to {to}"),
            Self::BytesRenamed { from, to } | Self::Replaced { from, to } => write!(f, "{from} became {to}"),
            Self::BytesToText => f.write_str("bytes became UNICODE_STRING"),
            Self::TextToBytes => f.write_str("UNICODE_STRING became bytes"),
            Self::OpaqueWidened => f.write_str("became PYTHON"),
            Self::SequenceKind => f.write_str("ARRAY and TUPLE exchanged"),
            Self::SizeDropped { from } => write!(f, "size {from} dropped"),
            Self::SizeGiven { to } => write!(f, "size {to} given"),
            Self::SizeGrown { from, to } => write!(f, "size {from} raised to {to}"),
            Self::SizeCut { from, to } => write!(f, "size {from} lowered to {to}"),
            Self::LimitLowered => f.write_str("maximum length lowered, as an element can be stored without bytes"),
            Self::ElementDefault => f.write_str("default of new elements changed"),
            Self::PersistAsBlob => f.write_str("persistAsBlob changed"),
            Self::NoneAllowed => f.write_str("None allowed"),
            Self::NoneRefused => f.write_str("None no longer allowed"),
            Self::ImplementedBy => f.write_str("implementedBy changed"),
            Self::FieldAdded { name } => write!(f, "field {name} added"),
            Self::FieldRemoved { name } => write!(f, "field {name} removed"),
            Self::FieldsReordered => f.write_str("fields reordered"),
            Self::FieldDefault => f.write_str("default of the field changed"),
            Self::FieldPersistent => f.write_str("Persistent of the field changed"),
            Self::FieldDatabaseLength => f.write_str("DatabaseLength of the field changed"),
        }
    }
}

/// The new number of each old entity type: mailboxes contain these numbers.
pub(crate) type TypeNumbers = Vec<Option<TypeId>>;

/// How a value is converted.
#[derive(Clone, Debug)]
pub(crate) enum Conversion {
    /// Unchanged, if the new type accepts it.
    Keep,
    /// A number to a number of another kind.
    Number,
    /// Text to its bytes.
    Bytes,
    /// Bytes to the text they encode.
    Text,
    /// A mailbox, whose entity type may have another number.
    Address,
    /// Each element; filled to a greater size with the new default.
    Elements(Box<Conversion>),
    /// Each new field from an old one, or from a constant.
    Fields(Vec<Source>),
    /// Not convertible.
    Never,
}

/// The source of a new field's value.
#[derive(Clone, Debug)]
pub(crate) enum Source {
    /// The old field at this position.
    Field(usize, Conversion),
    /// A constant.
    Value(Value),
}

/// A value that cannot be converted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Misfit {
    /// Its path, from the outside in.
    pub(crate) at: Vec<Step>,
    pub(crate) value: Value,
    /// The reason.
    pub(crate) why: String,
}

/// The walk over two types.
pub(crate) struct Bridge<'n> {
    /// The numbers of entity types, if any has changed.
    pub(crate) renumbered: Option<&'n TypeNumbers>,
    /// The differences so far.
    pub(crate) differences: Vec<Difference>,
    at: String,
    /// Whether there are no values here to convert: inside a sequence without elements.
    empty: bool,
}

impl<'n> Bridge<'n> {
    pub(crate) fn new(renumbered: Option<&'n TypeNumbers>) -> Self {
        Self {
            renumbered,
            differences: Vec::new(),
            at: String::new(),
            empty: false,
        }
    }

    /// Records the differences, and returns the conversion.
    pub(crate) fn walk(&mut self, from: &DataType, to: &DataType) -> Conversion {
        match (from, to) {
            (DataType::Mailbox, DataType::Mailbox) if self.renumbered.is_some() => Conversion::Address,
            (DataType::Array(old) | DataType::Tuple(old), DataType::Array(new) | DataType::Tuple(new)) => {
                if std::mem::discriminant(from) != std::mem::discriminant(to) {
                    self.note(TypeChange::SequenceKind);
                }
                self.sequence(old, new)
            }
            (DataType::FixedDict(old), DataType::FixedDict(new)) => self.dict(old, new),
            _ if from == to => Conversion::Keep,
            (DataType::String, DataType::Blob) | (DataType::Blob, DataType::String) => {
                let (from, to) = (from.clone(), to.clone());
                self.note(TypeChange::BytesRenamed { from, to });
                Conversion::Keep
            }
            (DataType::String | DataType::Blob, DataType::Unicode) => {
                self.note(TypeChange::BytesToText);
                Conversion::Text
            }
            (DataType::Unicode, DataType::String | DataType::Blob) => {
                self.note(TypeChange::TextToBytes);
                Conversion::Bytes
            }
            (DataType::Python(_), DataType::Python(crate::data_type::PythonKind::Any)) => {
                self.note(TypeChange::OpaqueWidened);
                Conversion::Keep
            }
            _ => self.number(from, to),
        }
    }

    fn number(&mut self, from: &DataType, to: &DataType) -> Conversion {
        let (old, new) = (from.clone(), to.clone());
        let Some(widens) = number::widens(from, to) else {
            self.note(TypeChange::Replaced { from: old, to: new });
            return Conversion::Never;
        };
        self.note(if widens {
            TypeChange::Widened { from: old, to: new }
        } else {
            TypeChange::Narrowed { from: old, to: new }
        });
        if number::is_same_kind(from, to) {
            Conversion::Keep
        } else {
            Conversion::Number
        }
    }

    fn sequence(&mut self, from: &Sequence, to: &Sequence) -> Conversion {
        match (from.size, to.size) {
            (Some(from), None) => self.note(TypeChange::SizeDropped { from }),
            (None, Some(to)) => self.note(TypeChange::SizeGiven { to }),
            (Some(from), Some(to)) if from < to => self.note(TypeChange::SizeGrown { from, to }),
            (Some(from), Some(to)) if from > to => self.note(TypeChange::SizeCut { from, to }),
            _ => {}
        }
        if to.size.is_none() && longest(to) < longest(from).min(from.size.map_or(usize::MAX, |size| size as usize)) {
            self.note(TypeChange::LimitLowered);
        }
        if from.element_default != to.element_default && from.of == to.of {
            self.note(TypeChange::ElementDefault);
        }
        if from.persist_as_blob != to.persist_as_blob {
            self.note(TypeChange::PersistAsBlob);
        }
        let above = (self.at.len(), self.empty);
        self.at.push_str("[]");
        self.empty |= from.size == Some(0);
        let each = self.walk(&from.of, &to.of);
        self.at.truncate(above.0);
        self.empty = above.1;
        match (each, from.size, to.size) {
            (Conversion::Keep, None, _) | (Conversion::Keep, _, None) => Conversion::Keep,
            (Conversion::Keep, old, new) if old == new => Conversion::Keep,
            (each, ..) => Conversion::Elements(Box::new(each)),
        }
    }

    fn dict(&mut self, from: &FixedDict, to: &FixedDict) -> Conversion {
        if from.allow_none != to.allow_none {
            self.note(if to.allow_none {
                TypeChange::NoneAllowed
            } else {
                TypeChange::NoneRefused
            });
        }
        if from.implemented_by != to.implemented_by {
            self.note(TypeChange::ImplementedBy);
        }
        let mut gone: Vec<&Field> = from.fields.iter().collect();
        let mut sources = Vec::with_capacity(to.fields.len());
        let mut before = None;
        let (mut is_reordered, mut is_kept) = (false, from.fields.len() == to.fields.len());
        for (place, field) in to.fields.iter().enumerate() {
            let Some((at, old)) = from.field(&field.name) else {
                let name = field.name.clone();
                self.note(TypeChange::FieldAdded { name });
                sources.push(Source::Value(field.default.clone()));
                is_kept = false;
                continue;
            };
            gone.retain(|gone| gone.name != field.name);
            is_reordered |= before > Some(at);
            before = Some(at);
            let conversion = self.field(old, field);
            is_kept &= at == place && matches!(conversion, Conversion::Keep);
            sources.push(Source::Field(at, conversion));
        }
        for field in gone {
            let name = field.name.clone();
            self.note(TypeChange::FieldRemoved { name });
        }
        if is_reordered {
            self.note(TypeChange::FieldsReordered);
        }
        if is_kept {
            Conversion::Keep
        } else {
            Conversion::Fields(sources)
        }
    }

    fn field(&mut self, from: &Field, to: &Field) -> Conversion {
        let above = self.at.len();
        if above > 0 {
            self.at.push('.');
        }
        self.at.push_str(&to.name);
        if from.default != to.default && from.data_type == to.data_type {
            self.note(TypeChange::FieldDefault);
        }
        if from.persistent != to.persistent {
            self.note(TypeChange::FieldPersistent);
        }
        if from.database_length != to.database_length {
            self.note(TypeChange::FieldDatabaseLength);
        }
        let conversion = self.walk(&from.data_type, &to.data_type);
        self.at.truncate(above);
        conversion
    }

    fn note(&mut self, change: TypeChange) {
        let fit = if self.empty { Fit::Same } else { change.fit() };
        self.differences.push(Difference {
            at: self.at.clone(),
            change,
            fit,
        });
    }
}

impl Conversion {
    /// Whether the type numbers in a value's mailboxes change.
    pub(crate) fn is_of_mailboxes(&self) -> bool {
        match self {
            Self::Address => true,
            Self::Elements(each) => each.is_of_mailboxes(),
            Self::Fields(sources) => sources.iter().any(|source| match source {
                Source::Field(_, conversion) => conversion.is_of_mailboxes(),
                Source::Value(_) => false,
            }),
            _ => false,
        }
    }

    /// Converts a value of type `from` to type `to`; `numbers` are the new numbers of the entity types.
    pub(crate) fn apply(
        &self,
        (from, to): (&DataType, &DataType),
        value: &Value,
        numbers: &TypeNumbers,
    ) -> Result<Value, Misfit> {
        let converted = self.cross((from, to), value, numbers)?;
        check(to, &converted).map_err(|mismatch| Misfit {
            at: mismatch.at,
            value: value.clone(),
            why: mismatch.problem.to_string(),
        })?;
        Ok(converted)
    }

    fn cross(&self, (from, to): (&DataType, &DataType), value: &Value, numbers: &TypeNumbers) -> Result<Value, Misfit> {
        let misfit = |why: String| Misfit {
            at: Vec::new(),
            value: value.clone(),
            why,
        };
        let unsaid = || misfit(format!("no conversion from {from} to {to} is known"));
        match (self, value) {
            (Self::Keep, _) | (Self::Fields(_), Value::None) => Ok(value.clone()),
            (Self::Number, _) => {
                number::convert(value, to).ok_or_else(|| misfit(format!("no {to} has the same value")))
            }
            (Self::Bytes, Value::Unicode(text)) => Ok(Value::Bytes(text.clone().into_bytes())),
            (Self::Text, Value::Bytes(bytes)) => match std::str::from_utf8(bytes) {
                Ok(text) => Ok(Value::Unicode(text.to_owned())),
                Err(_) => Err(misfit("it is not UTF-8".to_owned())),
            },
            (Self::Address, Value::Mailbox(mailbox)) => Ok(Value::Mailbox(mailbox.and_then(|mailbox| {
                // An entity of a removed type cannot be called.
                let type_id = (*numbers.get(usize::from(mailbox.type_id.0))?)?;
                Some(annals_ids::Mailbox { type_id, ..mailbox })
            }))),
            (Self::Elements(each), Value::Sequence(values)) => match (from, to) {
                (DataType::Array(from) | DataType::Tuple(from), DataType::Array(to) | DataType::Tuple(to)) => {
                    cross_elements(each, (from, to), values, numbers)
                }
                _ => Err(unsaid()),
            },
            (Self::Fields(sources), Value::Dict(values)) => match (from, to) {
                (DataType::FixedDict(from), DataType::FixedDict(to)) => {
                    cross_fields(sources, (from, to), values, numbers)
                }
                _ => Err(unsaid()),
            },
            _ => Err(unsaid()),
        }
    }
}

fn cross_elements(
    each: &Conversion,
    (from, to): (&Sequence, &Sequence),
    values: &[Value],
    numbers: &TypeNumbers,
) -> Result<Value, Misfit> {
    let wanted = to.size.map_or(values.len(), |size| size as usize);
    let mut crossed = Vec::with_capacity(wanted);
    for (i, value) in values.iter().enumerate() {
        if i < wanted || from.size.is_none() {
            let element = each.cross((&from.of, &to.of), value, numbers);
            crossed.push(element.map_err(|misfit| misfit.inside(Step::Element(i)))?);
        } else if *value != from.element_default {
            return Err(Misfit {
                at: vec![Step::Element(i)],
                value: value.clone(),
                why: format!("only {wanted} elements fit, and this one is not the default of an element"),
            });
        }
    }
    if from.size.is_some() && crossed.len() < wanted {
        crossed.resize(wanted, to.element_default.clone());
    }
    Ok(Value::Sequence(crossed))
}

fn cross_fields(
    sources: &[Source],
    (from, to): (&FixedDict, &FixedDict),
    values: &[Value],
    numbers: &TypeNumbers,
) -> Result<Value, Misfit> {
    let mut crossed = Vec::with_capacity(sources.len());
    for (source, field) in sources.iter().zip(&to.fields) {
        crossed.push(match source {
            Source::Value(value) => value.clone(),
            Source::Field(at, conversion) => {
                let old = &from.fields[*at];
                let value = values.get(*at).ok_or_else(|| Misfit {
                    at: Vec::new(),
                    value: Value::Dict(values.to_vec()),
                    why: format!("it has no field {}", old.name),
                })?;
                let part = conversion.cross((&old.data_type, &field.data_type), value, numbers);
                part.map_err(|misfit| misfit.inside(Step::Field(field.name.clone())))?
            }
        });
    }
    Ok(Value::Dict(crossed))
}

impl Misfit {
    fn inside(mut self, step: Step) -> Self {
        self.at.insert(0, step);
        self
    }
}
