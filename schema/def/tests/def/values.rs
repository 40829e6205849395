//! Values against types: what fits, the encoding, and hostile bytes.

use std::sync::Arc;

use annals_def::{
    DataType, DecodeError, Field, FixedDict, Form, Problem, Sequence, Step, Value, check, decode, decode_all, encode,
    generate, generate_type, split_mix,
};

const SEEDS: u64 = 2_000;

fn bytes_of(data_type: &DataType, value: &Value, form: Form) -> Vec<u8> {
    let mut out = Vec::new();
    encode(data_type, value, form, &mut out).expect("the value fits");
    out
}

#[test]
fn generated_values_fit_and_round_trip() {
    for seed in 0..SEEDS {
        let mut dice = split_mix(seed);
        let data_type = generate_type(4, &mut dice);
        let value = generate(&data_type, &mut dice);
        assert_eq!(check(&data_type, &value), Ok(()), "seed {seed}: {data_type}");
        let bytes = bytes_of(&data_type, &value, Form::Whole);
        assert_eq!(
            decode_all(&data_type, Form::Whole, &bytes),
            Ok(value),
            "seed {seed}: {data_type}"
        );
        if let Some(size) = data_type.stream_size() {
            assert_eq!(bytes.len(), size, "seed {seed}: {data_type}");
        }
    }
}

#[test]
fn the_stored_form_keeps_persistent_members() {
    for seed in 0..SEEDS {
        let mut dice = split_mix(seed);
        let data_type = generate_type(4, &mut dice);
        let value = generate(&data_type, &mut dice);
        let bytes = bytes_of(&data_type, &value, Form::Stored);
        let loaded = decode_all(&data_type, Form::Stored, &bytes).expect("own bytes");
        assert_eq!(check(&data_type, &loaded), Ok(()), "seed {seed}: {data_type}");
        assert_eq!(
            bytes_of(&data_type, &loaded, Form::Stored),
            bytes,
            "seed {seed}: {data_type}"
        );
        assert_eq!(data_type.stored_value(&value), loaded, "seed {seed}: {data_type}");
    }
}

#[test]
fn the_default_of_every_type_fits_it() {
    for seed in 0..SEEDS {
        let mut dice = split_mix(seed);
        let data_type = generate_type(4, &mut dice);
        let default = data_type.default_value();
        assert_eq!(check(&data_type, &default), Ok(()), "seed {seed}: {data_type}");
        assert_eq!(
            data_type.default_count(),
            Some(default.value_count()),
            "seed {seed}: {data_type}"
        );
    }
}

#[test]
fn damaged_bytes_are_refused_or_canonical() {
    for seed in 0..SEEDS {
        let mut dice = split_mix(seed);
        let data_type = generate_type(4, &mut dice);
        let value = generate(&data_type, &mut dice);
        for form in [Form::Whole, Form::Stored] {
            let mut bytes = bytes_of(&data_type, &value, form);
            match dice() % 3 {
                0 => bytes.truncate(dice() as usize % (bytes.len() + 1)),
                1 if !bytes.is_empty() => {
                    let at = dice() as usize % bytes.len();
                    bytes[at] ^= 1 << (dice() % 8);
                }
                _ => bytes = (0..dice() % 40).map(|_| dice() as u8).collect(),
            }
            let mut rest = bytes.as_slice();
            if let Ok(decoded) = decode(&data_type, form, &mut rest) {
                let taken = &bytes[..bytes.len() - rest.len()];
                assert_eq!(bytes_of(&data_type, &decoded, form), taken, "seed {seed}: {data_type}");
            }
        }
    }
}

#[test]
fn a_false_length_allocates_nothing() {
    let huge = [0xff, 0xff, 0xff, 0xff];
    let strings = DataType::Array(Arc::new(Sequence::of(DataType::String)));
    assert_eq!(
        decode_all(&strings, Form::Whole, &huge),
        Err(DecodeError::Truncated {
            wanted: 0xff_ffff,
            left: 0
        })
    );
    let nothing = DataType::FixedDict(Arc::new(FixedDict::of(Vec::new())));
    let nothings = DataType::Array(Arc::new(Sequence::of(nothing)));
    assert_eq!(
        decode_all(&nothings, Form::Whole, &huge),
        Err(DecodeError::TooManyEmpty(0xff_ffff))
    );
}

#[test]
fn each_length_has_one_encoding() {
    assert_eq!(
        decode_all(&DataType::Blob, Form::Whole, &[0xff, 3, 0, 0, 1, 2, 3]),
        Err(DecodeError::LongForm(3))
    );
    for length in [0, 1, 254, 255, 256, 65_535, 65_536] {
        let value = Value::Bytes(vec![7; length]);
        let bytes = bytes_of(&DataType::Blob, &value, Form::Whole);
        assert_eq!(bytes.len(), length + if length < 255 { 1 } else { 4 });
        assert_eq!(decode_all(&DataType::Blob, Form::Whole, &bytes), Ok(value));
    }
}

#[test]
fn a_mismatch_reports_path_and_reason() {
    let item = FixedDict::of(vec![
        Field::of("id", DataType::UInt32),
        Field::of("marks", DataType::Array(Arc::new(Sequence::of(DataType::Int8)))),
    ]);
    let items = DataType::Array(Arc::new(Sequence::of(DataType::FixedDict(Arc::new(item)))));
    let value = Value::Sequence(vec![Value::Dict(vec![
        Value::UInt(1),
        Value::Sequence(vec![Value::Int(3), Value::Int(200)]),
    ])]);
    let mismatch = check(&items, &value).expect_err("200 is too large");
    assert_eq!(
        mismatch.at,
        [Step::Element(0), Step::Field("marks".into()), Step::Element(1)]
    );
    assert_eq!(
        mismatch.to_string(),
        "at [0].marks[1]: 200 does not fit INT8, which holds -128 to 127"
    );
    let mismatch = check(&DataType::UInt8, &Value::Int(3)).expect_err("one variant fits a type");
    assert!(matches!(mismatch.problem, Problem::Kind { .. }));
}

#[test]
fn floats_are_compared_by_their_bits() {
    assert_eq!(Value::Float32(f32::NAN), Value::Float32(f32::NAN));
    assert_ne!(Value::Float64(0.0), Value::Float64(-0.0));
    let nan = Value::Vector2([f32::from_bits(0x7fc0_0001), 1.0]);
    let bytes = bytes_of(&DataType::Vector2, &nan, Form::Whole);
    assert_eq!(decode_all(&DataType::Vector2, Form::Whole, &bytes), Ok(nan));
}
