//! The way from one type to another: what differs between them, and how a value crosses over.
//!
//! Both come out of one walk over the two types, so that what is said of a change is what happens to a value.

use std::fmt;

use annals_ids::TypeId;

use super::number;
use crate::{
    check::{Step, check, longest},
    data_type::{DataType, Field, FixedDict, Sequence},
    value::Value,
};

/// What a difference between two types means for a value that was written under the old one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fit {
    /// Every value is one of the new type, and means the same.
    Same,
    /// Every value can be converted; as it is, it would be refused or misread.
    Converted,
    /// Some values have a counterpart, the others have none.
    Some,
    /// No value has a counterpart.
    None,
}

/// One difference between two types, at one place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The way there from the whole value: fields by name, elements as `[]`. Empty for the value itself.
    pub at: String,
    /// What differs.
    pub change: TypeChange,
    /// What it means for a value.
    pub fit: Fit,
}

/// A place in a value as designers write it: where a way from the value leads to. `bag` and `[].count` are `bag[].count`.
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
    /// A number type that holds all that the old one held.
    Widened {
        /// The old type.
        from: DataType,
        /// The new type.
        to: DataType,
    },
    /// A number type that does not hold all that the old one held.
    Narrowed {
        /// The old type.
        from: DataType,
        /// The new type.
        to: DataType,
    },
    /// `STRING` and `BLOB`, which hold the same bytes.
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
    /// An opaque type became `PYTHON`, which is anything.
    OpaqueWidened,
    /// `ARRAY` became `TUPLE`, or the other way round.
    SequenceKind,
    /// A sequence of one length can have any.
    SizeDropped {
        /// The length it had.
        from: u32,
    },
    /// A sequence of any length has one length.
    SizeGiven {
        /// The length it has.
        to: u32,
    },
    /// A sequence of one length has a greater one.
    SizeGrown {
        /// The length it had.
        from: u32,
        /// The length it has.
        to: u32,
    },
    /// A sequence of one length has a smaller one.
    SizeCut {
        /// The length it had.
        from: u32,
        /// The length it has.
        to: u32,
    },
    /// A sequence whose elements can take no bytes any more, and which can therefore be less long.
    LimitLowered,
    /// What a new element holds.
    ElementDefault,
    /// Whether a sequence is stored as one blob.
    PersistAsBlob,
    /// A `FIXED_DICT` can be None.
    NoneAllowed,
    /// A `FIXED_DICT` cannot be None any more.
    NoneRefused,
    /// The converter of a `FIXED_DICT` for scripts.
    ImplementedBy,
    /// A field was added.
    FieldAdded {
        /// Its name.
        name: String,
    },
    /// A field was removed.
    FieldRemoved {
        /// Its name.
        name: String,
    },
    /// The fields that stay come in another order.
    FieldsReordered,
    /// What a field holds at first.
    FieldDefault,
    /// Whether a field is stored.
    FieldPersistent,
    /// The room that a database makes for a field.
    FieldDatabaseLength,
    /// Another type altogether.
    Replaced {
        /// The old type.
        from: DataType,
        /// The new type.
        to: DataType,
    },
}

impl TypeChange {
    /// One word for programs, and for the table in the documentation.
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

    /// Whether a value has other bytes in a stream, or other names: whether clients can tell.
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
            Self::LimitLowered => f.write_str("greatest length lowered, as an element can be stored in no bytes"),
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

/// The numbers of the entity types under the new schema, by those under the old: mailboxes hold them.
pub(crate) type TypeNumbers = Vec<Option<TypeId>>;

/// How a value crosses over.
#[derive(Clone, Debug)]
pub(crate) enum Conversion {
    /// As it is. It fits if the new type takes it.
    Keep,
    /// A number as one of another kind.
    Number,
    /// Text as its bytes.
    Bytes,
    /// Bytes as the text they spell.
    Text,
    /// A mailbox, whose type may have another number.
    Address,
    /// Each element by itself; up to a greater length with the new default.
    Elements(Box<Conversion>),
    /// Each new field from an old one, or with a value of its own.
    Fields(Vec<Source>),
    /// Not at all.
    Never,
}

/// Where the value of a new field comes from.
#[derive(Clone, Debug)]
pub(crate) enum Source {
    /// From the old field at this place.
    Field(usize, Conversion),
    /// From nowhere: it is this.
    Value(Value),
}

/// A value that does not cross over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Misfit {
    /// Where in the value, from the outside in.
    pub(crate) at: Vec<Step>,
    /// What is there.
    pub(crate) value: Value,
    /// Why it does not.
    pub(crate) why: String,
}

/// The walk over two types.
pub(crate) struct Bridge<'n> {
    /// The numbers of entity types, if any has changed.
    pub(crate) renumbered: Option<&'n TypeNumbers>,
    /// What differs so far.
    pub(crate) differences: Vec<Difference>,
    at: String,
    /// Whether there is no value here to cross over: below a sequence without elements.
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

    /// Finds what differs, and how a value crosses over.
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
    /// Whether mailboxes in a value get other numbers of types.
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

    /// Takes a value of type `from` over to type `to`; `numbers` are those of the entity types.
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
        let unsaid = || misfit(format!("nothing says how {from} becomes {to}"));
        match (self, value) {
            (Self::Keep, _) | (Self::Fields(_), Value::None) => Ok(value.clone()),
            (Self::Number, _) => number::convert(value, to).ok_or_else(|| misfit(format!("no {to} is equal to it"))),
            (Self::Bytes, Value::Unicode(text)) => Ok(Value::Bytes(text.clone().into_bytes())),
            (Self::Text, Value::Bytes(bytes)) => match std::str::from_utf8(bytes) {
                Ok(text) => Ok(Value::Unicode(text.to_owned())),
                Err(_) => Err(misfit("it is not UTF-8".to_owned())),
            },
            (Self::Address, Value::Mailbox(mailbox)) => Ok(Value::Mailbox(mailbox.and_then(|mailbox| {
                // Of a type that is gone nobody can be called.
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
                why: format!("only {wanted} elements have a place, and it is not the default of an element"),
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
