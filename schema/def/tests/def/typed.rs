//! Values as Rust types and back: lossless, and a value of another type is rejected with its path.

use std::{fmt::Debug, sync::Arc};

use annals_def::{
    DataType, Field, FixedDict, Mismatch, PythonKind, Sequence, Value, generate, split_mix,
    typed::{self, Bytes, Dict, Exactly, Opaque, Typed, UdoRef, Vector2, Vector3, Vector4},
};
use annals_ids::Mailbox;

/// Values of each type.
const ROUNDS: u64 = 200;

/// Converts generated values of a type to Rust and back. Returns them.
fn returns<T: Typed + Debug>(data_type: &DataType) -> Vec<Value> {
    let mut dice = split_mix(7);
    let values = (0..ROUNDS).map(|round| {
        let value = generate(data_type, &mut dice);
        let typed = T::from_value(&value).unwrap_or_else(|error| panic!("round {round}, {data_type}: {error}"));
        assert_eq!(typed.into_value(), value, "round {round}, {data_type}");
        value
    });
    values.collect()
}

/// A dictionary with a sequence and a dictionary that may be None.
#[derive(Debug, PartialEq)]
struct Outer {
    list: Vec<u16>,
    inner: Option<Inner>,
}

#[derive(Debug, PartialEq)]
struct Inner {
    name: String,
}

impl Dict for Outer {}

impl Dict for Inner {}

impl Typed for Outer {
    fn from_value(value: &Value) -> Result<Self, Mismatch> {
        let [list, inner] = typed::fields(value)?;
        Ok(Self {
            list: typed::field("list", list)?,
            inner: typed::field("inner", inner)?,
        })
    }

    fn into_value(self) -> Value {
        Value::Dict(vec![self.list.into_value(), self.inner.into_value()])
    }
}

impl Typed for Inner {
    fn from_value(value: &Value) -> Result<Self, Mismatch> {
        let [name] = typed::fields(value)?;
        Ok(Self {
            name: typed::field("name", name)?,
        })
    }

    fn into_value(self) -> Value {
        Value::Dict(vec![self.name.into_value()])
    }
}

fn outer() -> DataType {
    let inner = FixedDict {
        allow_none: true,
        ..FixedDict::of(vec![Field::of("name", DataType::Unicode)])
    };
    let list = DataType::Array(Arc::new(Sequence::of(DataType::UInt16)));
    let fields = vec![
        Field::of("list", list),
        Field::of("inner", DataType::FixedDict(Arc::new(inner))),
    ];
    DataType::FixedDict(Arc::new(FixedDict::of(fields)))
}

#[test]
fn every_type_round_trips() {
    returns::<i8>(&DataType::Int8);
    returns::<i16>(&DataType::Int16);
    returns::<i32>(&DataType::Int32);
    returns::<i64>(&DataType::Int64);
    returns::<u8>(&DataType::UInt8);
    returns::<u16>(&DataType::UInt16);
    returns::<u32>(&DataType::UInt32);
    returns::<u64>(&DataType::UInt64);
    returns::<f32>(&DataType::Float32);
    returns::<f64>(&DataType::Float64);
    returns::<Bytes>(&DataType::String);
    returns::<Bytes>(&DataType::Blob);
    returns::<String>(&DataType::Unicode);
    returns::<Vector2>(&DataType::Vector2);
    returns::<Vector3>(&DataType::Vector3);
    returns::<Vector4>(&DataType::Vector4);
    returns::<Option<Mailbox>>(&DataType::Mailbox);
    returns::<UdoRef>(&DataType::UdoRef);
    returns::<Opaque>(&DataType::Python(PythonKind::Any));
    let sized = |size| DataType::Tuple(Arc::new(Sequence::sized(DataType::Unicode, size)));
    returns::<[String; 3]>(&sized(3));
    returns::<Exactly<String, 40>>(&sized(40));
    let outers = returns::<Vec<Outer>>(&DataType::Array(Arc::new(Sequence::of(outer()))));
    assert!(outers.iter().any(|value| value.value_count() > 10));
}

#[test]
fn floats_keep_their_bits() {
    for bits in [0x7fc0_0001_u32, 0xffc0_dead, 0x8000_0000, 1] {
        let value = Value::Float32(f32::from_bits(bits));
        assert_eq!(f32::from_value(&value).map(f32::into_value), Ok(value));
    }
    let value = Value::Vector3([f32::NAN, -0.0, f32::INFINITY]);
    assert_eq!(Vector3::from_value(&value).map(Vector3::into_value), Ok(value));
}

#[test]
fn a_value_that_does_not_fit_is_refused_with_its_path() {
    let refused = |value: Value| Vec::<Outer>::from_value(&value).unwrap_err().to_string();
    let dict = |list: Vec<Value>, inner: Value| Value::Sequence(vec![Value::Dict(vec![Value::Sequence(list), inner])]);
    let cases = [
        (Value::None, "expected ARRAY or TUPLE, found None"),
        (
            dict(vec![Value::UInt(70_000)], Value::None),
            "at [0].list[0]: 70000 does not fit UINT16",
        ),
        (
            dict(vec![Value::Int(7)], Value::None),
            "at [0].list[0]: expected UINT16, found a signed integer",
        ),
        (
            dict(vec![], Value::Dict(vec![])),
            "at [0].inner: expected 1 fields, found 0",
        ),
        (
            dict(vec![], Value::Dict(vec![Value::UInt(1)])),
            "at [0].inner.name: expected UNICODE_STRING, found an unsigned integer",
        ),
        (Value::Sequence(vec![Value::None]), "at [0]: found None, but"),
    ];
    for (value, begins) in cases {
        let said = refused(value);
        assert!(said.starts_with(begins), "{said}");
    }
    let three = Value::Sequence(vec![Value::UInt(1); 3]);
    assert!(<[u8; 4]>::from_value(&three).is_err());
    assert!(Exactly::<u8, 4>::from_value(&three).is_err());
    assert!(Exactly::<u8, 3>::from_value(&three).is_ok());
}
