//! Values as Rust types: the base of generated code.
//!
//! Each type of the language has one Rust type: integers and floats their own, `UNICODE_STRING` is a [`String`],
//! `MAILBOX` an `Option<Mailbox>`, a sequence a [`Vec`], an array or [`Exactly`], a `FIXED_DICT` a generated struct,
//! and an [`Option`] of it where the type allows None. The others have a newtype here, because several types share
//! their Rust shape and a value must convert back to the one variant that fits it. Both conversions are lossless;
//! floats keep their bits.

use annals_ids::Mailbox;

use crate::{
    check::{Mismatch, Problem, Step},
    value::Value,
};

/// The Rust type of a type of the language.
pub trait Typed: Sized {
    /// Converts a value.
    ///
    /// # Errors
    /// If the value is not of the type.
    fn from_value(value: &Value) -> Result<Self, Mismatch>;

    /// Converts back to a value. [`crate::check`] finds a value that is longer than its type allows, as in every
    /// assignment.
    fn into_value(self) -> Value;
}

/// The generated struct of a `FIXED_DICT`; an [`Option`] of it is one that allows None.
pub trait Dict: Typed {}

/// `STRING` and `BLOB`: bytes in no particular encoding.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bytes(pub Vec<u8>);

/// `PYTHON` and similar types, `USER_TYPE`: bytes that only the script host interprets.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Opaque(pub Vec<u8>);

/// `UDO_REF`: the GUID of a user data object; all zeroes are a null reference.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UdoRef(pub [u8; 16]);

/// `VECTOR2`
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Vector2(pub [f32; 2]);

/// `VECTOR3`
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Vector3(pub [f32; 3]);

/// `VECTOR4`
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Vector4(pub [f32; 4]);

/// A sequence of fixed length that is too long for a Rust array. Its elements can be changed, but not their number.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Exactly<T, const N: usize>(Vec<T>);

impl<T, const N: usize> Exactly<T, N> {
    /// A sequence of these elements.
    ///
    /// # Errors
    /// If their number is not `N`.
    pub fn new(elements: Vec<T>) -> Result<Self, Mismatch> {
        if elements.len() == N {
            Ok(Self(elements))
        } else {
            Err(wrong_size::<N>(elements.len()))
        }
    }

    /// `N` copies of one element.
    #[must_use]
    pub fn all(element: &T) -> Self
    where
        T: Clone,
    {
        Self(vec![element.clone(); N])
    }

    /// The elements.
    #[must_use]
    pub fn as_slice(&self) -> &[T] {
        &self.0
    }
}

impl<T: Clone + Default, const N: usize> Default for Exactly<T, N> {
    fn default() -> Self {
        Self::all(&T::default())
    }
}

impl<T, const N: usize> From<[T; N]> for Exactly<T, N> {
    fn from(elements: [T; N]) -> Self {
        Self(elements.into())
    }
}

/// The values of a dictionary's fields.
///
/// # Errors
/// If the value is not a dictionary, or has another number of fields.
pub fn fields<const N: usize>(value: &Value) -> Result<&[Value; N], Mismatch> {
    match value {
        Value::Dict(values) => values.as_slice().try_into().map_err(|_| {
            let (wanted, found) = (N, values.len());
            Problem::FieldCount { wanted, found }.here()
        }),
        Value::None => Err(Problem::NoneNotAllowed.here()),
        _ => Err(kind(value, "FIXED_DICT")),
    }
}

/// The values of a component's members.
///
/// # Errors
/// If their number is not `N`.
pub fn members<'v, const N: usize>(values: &[&'v Value]) -> Result<[&'v Value; N], Mismatch> {
    values.try_into().map_err(|_| {
        let (wanted, found) = (N, values.len());
        Problem::FieldCount { wanted, found }.here()
    })
}

/// The values in a list of declared length.
///
/// # Errors
/// If their number is not `N`.
pub fn members_of<const N: usize>(values: &[Value]) -> Result<&[Value; N], Mismatch> {
    values.try_into().map_err(|_| {
        let (wanted, found) = (N, values.len());
        Problem::FieldCount { wanted, found }.here()
    })
}

/// One field of a dictionary.
///
/// # Errors
/// If the value is not of the field's type.
pub fn field<T: Typed>(name: &str, value: &Value) -> Result<T, Mismatch> {
    T::from_value(value).map_err(|mismatch| mismatch.inside(Step::Field(name.to_owned())))
}

fn kind(value: &Value, wanted: &str) -> Mismatch {
    let (wanted, found) = (wanted.to_owned(), value.kind());
    Problem::Kind { wanted, found }.here()
}

fn wrong_size<const N: usize>(found: usize) -> Mismatch {
    // No declared size exceeds 32 bits.
    let wanted = u32::try_from(N).unwrap_or(u32::MAX);
    Problem::Size { wanted, found }.here()
}

fn signed<T: TryFrom<i64>>(value: &Value, wanted: &str, (low, high): (i64, i64)) -> Result<T, Mismatch> {
    let Value::Int(found) = *value else {
        return Err(kind(value, wanted));
    };
    T::try_from(found).map_err(|_| out_of_range(wanted, found.into(), (low.into(), high.into())))
}

fn unsigned<T: TryFrom<u64>>(value: &Value, wanted: &str, high: u64) -> Result<T, Mismatch> {
    let Value::UInt(found) = *value else {
        return Err(kind(value, wanted));
    };
    T::try_from(found).map_err(|_| out_of_range(wanted, found.into(), (0, high.into())))
}

fn out_of_range(wanted: &str, found: i128, (low, high): (i128, i128)) -> Mismatch {
    let wanted = wanted.to_owned();
    Problem::Range {
        wanted,
        found,
        low,
        high,
    }
    .here()
}

impl Typed for i8 {
    fn from_value(value: &Value) -> Result<Self, Mismatch> {
        signed(value, "INT8", (Self::MIN.into(), Self::MAX.into()))
    }

    fn into_value(self) -> Value {
        Value::Int(self.into())
    }
}

impl Typed for i16 {
    fn from_value(value: &Value) -> Result<Self, Mismatch> {
        signed(value, "INT16", (Self::MIN.into(), Self::MAX.into()))
    }

    fn into_value(self) -> Value {
        Value::Int(self.into())
    }
}

impl Typed for i32 {
    fn from_value(value: &Value) -> Result<Self, Mismatch> {
        signed(value, "INT32", (Self::MIN.into(), Self::MAX.into()))
    }

    fn into_value(self) -> Value {
        Value::Int(self.into())
    }
}

impl Typed for i64 {
    fn from_value(value: &Value) -> Result<Self, Mismatch> {
        signed(value, "INT64", (Self::MIN, Self::MAX))
    }

    fn into_value(self) -> Value {
        Value::Int(self)
    }
}

impl Typed for u8 {
    fn from_value(value: &Value) -> Result<Self, Mismatch> {
        unsigned(value, "UINT8", Self::MAX.into())
    }

    fn into_value(self) -> Value {
        Value::UInt(self.into())
    }
}

impl Typed for u16 {
    fn from_value(value: &Value) -> Result<Self, Mismatch> {
        unsigned(value, "UINT16", Self::MAX.into())
    }

    fn into_value(self) -> Value {
        Value::UInt(self.into())
    }
}

impl Typed for u32 {
    fn from_value(value: &Value) -> Result<Self, Mismatch> {
        unsigned(value, "UINT32", Self::MAX.into())
    }

    fn into_value(self) -> Value {
        Value::UInt(self.into())
    }
}

impl Typed for u64 {
    fn from_value(value: &Value) -> Result<Self, Mismatch> {
        unsigned(value, "UINT64", Self::MAX)
    }

    fn into_value(self) -> Value {
        Value::UInt(self)
    }
}

impl Typed for f32 {
    fn from_value(value: &Value) -> Result<Self, Mismatch> {
        match value {
            Value::Float32(number) => Ok(*number),
            _ => Err(kind(value, "FLOAT32")),
        }
    }

    fn into_value(self) -> Value {
        Value::Float32(self)
    }
}

impl Typed for f64 {
    fn from_value(value: &Value) -> Result<Self, Mismatch> {
        match value {
            Value::Float64(number) => Ok(*number),
            _ => Err(kind(value, "FLOAT64")),
        }
    }

    fn into_value(self) -> Value {
        Value::Float64(self)
    }
}

impl Typed for String {
    fn from_value(value: &Value) -> Result<Self, Mismatch> {
        match value {
            Value::Unicode(text) => Ok(text.clone()),
            _ => Err(kind(value, "UNICODE_STRING")),
        }
    }

    fn into_value(self) -> Value {
        Value::Unicode(self)
    }
}

impl Typed for Bytes {
    fn from_value(value: &Value) -> Result<Self, Mismatch> {
        match value {
            Value::Bytes(bytes) => Ok(Self(bytes.clone())),
            _ => Err(kind(value, "STRING or BLOB")),
        }
    }

    fn into_value(self) -> Value {
        Value::Bytes(self.0)
    }
}

impl Typed for Opaque {
    fn from_value(value: &Value) -> Result<Self, Mismatch> {
        match value {
            Value::Opaque(bytes) => Ok(Self(bytes.clone())),
            _ => Err(kind(value, "PYTHON or USER_TYPE")),
        }
    }

    fn into_value(self) -> Value {
        Value::Opaque(self.0)
    }
}

impl Typed for Vector2 {
    fn from_value(value: &Value) -> Result<Self, Mismatch> {
        match value {
            Value::Vector2(parts) => Ok(Self(*parts)),
            _ => Err(kind(value, "VECTOR2")),
        }
    }

    fn into_value(self) -> Value {
        Value::Vector2(self.0)
    }
}

impl Typed for Vector3 {
    fn from_value(value: &Value) -> Result<Self, Mismatch> {
        match value {
            Value::Vector3(parts) => Ok(Self(*parts)),
            _ => Err(kind(value, "VECTOR3")),
        }
    }

    fn into_value(self) -> Value {
        Value::Vector3(self.0)
    }
}

impl Typed for Vector4 {
    fn from_value(value: &Value) -> Result<Self, Mismatch> {
        match value {
            Value::Vector4(parts) => Ok(Self(*parts)),
            _ => Err(kind(value, "VECTOR4")),
        }
    }

    fn into_value(self) -> Value {
        Value::Vector4(self.0)
    }
}

impl Typed for Option<Mailbox> {
    fn from_value(value: &Value) -> Result<Self, Mismatch> {
        match value {
            Value::Mailbox(mailbox) => Ok(*mailbox),
            _ => Err(kind(value, "MAILBOX")),
        }
    }

    fn into_value(self) -> Value {
        Value::Mailbox(self)
    }
}

impl Typed for UdoRef {
    fn from_value(value: &Value) -> Result<Self, Mismatch> {
        match value {
            Value::UdoRef(guid) => Ok(Self(*guid)),
            _ => Err(kind(value, "UDO_REF")),
        }
    }

    fn into_value(self) -> Value {
        Value::UdoRef(self.0)
    }
}

impl<T: Typed> Typed for Vec<T> {
    fn from_value(value: &Value) -> Result<Self, Mismatch> {
        let Value::Sequence(values) = value else {
            return Err(kind(value, "ARRAY or TUPLE"));
        };
        let element = |(at, value)| T::from_value(value).map_err(|mismatch| mismatch.inside(Step::Element(at)));
        values.iter().enumerate().map(element).collect()
    }

    fn into_value(self) -> Value {
        Value::Sequence(self.into_iter().map(T::into_value).collect())
    }
}

impl<T: Typed, const N: usize> Typed for [T; N] {
    fn from_value(value: &Value) -> Result<Self, Mismatch> {
        let elements: Vec<T> = Vec::from_value(value)?;
        elements
            .try_into()
            .map_err(|elements: Vec<T>| wrong_size::<N>(elements.len()))
    }

    fn into_value(self) -> Value {
        Value::Sequence(self.into_iter().map(T::into_value).collect())
    }
}

impl<T: Typed, const N: usize> Typed for Exactly<T, N> {
    fn from_value(value: &Value) -> Result<Self, Mismatch> {
        Self::new(Vec::from_value(value)?)
    }

    fn into_value(self) -> Value {
        self.0.into_value()
    }
}

impl<T: Dict> Typed for Option<T> {
    fn from_value(value: &Value) -> Result<Self, Mismatch> {
        match value {
            Value::None => Ok(None),
            _ => T::from_value(value).map(Some),
        }
    }

    fn into_value(self) -> Value {
        self.map_or(Value::None, T::into_value)
    }
}
