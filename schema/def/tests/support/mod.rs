//! What several tests need.
#![allow(dead_code, reason = "each test file uses a part of it")]

use annals_def::{DataType, Dice, Field, FixedDict, PythonKind, Sequence, generate};

/// A random type at most `depth` levels deep, with random sizes, defaults and storage options.
pub(crate) fn random_type(depth: usize, dice: &mut Dice<'_>) -> DataType {
    let simple = [
        DataType::Int8,
        DataType::Int16,
        DataType::Int32,
        DataType::Int64,
        DataType::UInt8,
        DataType::UInt16,
        DataType::UInt32,
        DataType::UInt64,
        DataType::Float32,
        DataType::Float64,
        DataType::String,
        DataType::Unicode,
        DataType::Blob,
        DataType::Vector2,
        DataType::Vector3,
        DataType::Vector4,
        DataType::Mailbox,
        DataType::UdoRef,
        DataType::Python(PythonKind::Any),
        DataType::Python(PythonKind::Dict),
        DataType::UserType("module.instance".to_owned()),
    ];
    if depth <= 1 || one_in(2, dice) {
        return simple[dice() as usize % simple.len()].clone();
    }
    match dice() % 3 {
        0 => DataType::Array(Box::new(random_sequence(depth, dice))),
        1 => DataType::Tuple(Box::new(random_sequence(depth, dice))),
        _ => DataType::FixedDict(Box::new(FixedDict {
            fields: (0..dice() % 5).map(|i| random_field(i, depth, dice)).collect(),
            allow_none: one_in(2, dice),
            implemented_by: (one_in(4, dice)).then(|| "wrapper".to_owned()),
        })),
    }
}

fn random_sequence(depth: usize, dice: &mut Dice<'_>) -> Sequence {
    let of = random_type(depth - 1, dice);
    let size = (one_in(3, dice)).then(|| (dice() % 4) as u32);
    let element_default = generate(&of, dice);
    Sequence {
        of,
        size,
        element_default,
        persist_as_blob: one_in(3, dice),
    }
}

fn random_field(i: u64, depth: usize, dice: &mut Dice<'_>) -> Field {
    let data_type = random_type(depth - 1, dice);
    Field {
        name: format!("field{i}"),
        default: generate(&data_type, dice),
        data_type,
        persistent: !one_in(3, dice),
        database_length: (one_in(3, dice)).then(|| (dice() % 300) as u32),
    }
}

fn one_in(odds: u64, dice: &mut Dice<'_>) -> bool {
    dice().is_multiple_of(odds)
}
