//! Random types, valid values and changes: for tests, and for driving a world without its game code.
//!
//! The same dice give the same value. Values are small, and contain the bounds of each type more often than a uniform
//! choice would.

use std::sync::Arc;

use annals_ids::{EntityId, Mailbox, OwnerId, Part, TypeId};

use crate::{
    change::{Change, Edit},
    data_type::{DataType, Field, FixedDict, PythonKind, Sequence},
    path::Path,
    value::Value,
};

/// A source of 64 random bits; the caller owns its state.
pub type Dice<'a> = dyn FnMut() -> u64 + 'a;

/// Maximum elements given to a sequence without a size.
const MAX_ELEMENTS: u64 = 5;

/// Maximum characters or bytes given to a string or blob, with rare exceptions.
const MAX_TEXT: u64 = 12;

/// One value in this many is a bound of its type.
const EDGE_ODDS: u64 = 8;

/// One string in this many has a length around 255, where the short form of a length ends.
const LONG_ODDS: u64 = 64;

/// A walk into a value stops at each step with a chance of one in this many.
const STOP_ODDS: u64 = 4;

/// Letters of generated strings: one, two, three and four bytes of UTF-8.
const LETTERS: [char; 8] = ['a', 'k', 'Z', '7', ' ', 'é', '龙', '🐉'];

/// The SplitMix64 generator: random enough for tests and demonstrations.
pub fn split_mix(seed: u64) -> impl FnMut() -> u64 {
    let mut state = seed;
    move || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

/// A random type at most `depth` levels deep, with random sizes, defaults and storage options.
pub fn generate_type(depth: usize, dice: &mut Dice<'_>) -> DataType {
    let mut simple = DataType::SIMPLE.to_vec();
    simple.extend([
        DataType::Python(PythonKind::Any),
        DataType::Python(PythonKind::Dict),
        DataType::UserType("module.instance".to_owned()),
    ]);
    if depth <= 1 || below(2, dice) == 0 {
        return simple[dice() as usize % simple.len()].clone();
    }
    match dice() % 3 {
        0 => DataType::Array(Arc::new(type_of_elements(depth, dice))),
        1 => DataType::Tuple(Arc::new(type_of_elements(depth, dice))),
        _ => DataType::FixedDict(Arc::new(FixedDict {
            fields: (0..=dice() % 4).map(|i| field(i, depth, dice)).collect(),
            allow_none: below(2, dice) == 0,
            implemented_by: (below(4, dice) == 0).then(|| "wrapper".to_owned()),
        })),
    }
}

fn type_of_elements(depth: usize, dice: &mut Dice<'_>) -> Sequence {
    let of = generate_type(depth - 1, dice);
    let size = (below(3, dice) == 0).then(|| 1 + (dice() % 3) as u32);
    let element_default = generate(&of, dice);
    Sequence {
        of,
        size,
        element_default,
        persist_as_blob: below(3, dice) == 0,
    }
}

fn field(i: u64, depth: usize, dice: &mut Dice<'_>) -> Field {
    let data_type = generate_type(depth - 1, dice);
    Field {
        name: format!("field{i}"),
        default: generate(&data_type, dice),
        data_type,
        persistent: !below(3, dice) == 0,
        database_length: (below(3, dice) == 0).then(|| (dice() % 300) as u32),
    }
}

/// A value that fits the type.
pub fn generate(data_type: &DataType, dice: &mut Dice<'_>) -> Value {
    match data_type {
        DataType::Int8 => signed(i8::MIN.into(), i8::MAX.into(), dice),
        DataType::Int16 => signed(i16::MIN.into(), i16::MAX.into(), dice),
        DataType::Int32 => signed(i32::MIN.into(), i32::MAX.into(), dice),
        DataType::Int64 => signed(i64::MIN, i64::MAX, dice),
        DataType::UInt8 => unsigned(u8::MAX.into(), dice),
        DataType::UInt16 => unsigned(u16::MAX.into(), dice),
        DataType::UInt32 => unsigned(u32::MAX.into(), dice),
        DataType::UInt64 => unsigned(u64::MAX, dice),
        DataType::Float32 => Value::Float32(float(dice)),
        DataType::Float64 => Value::Float64(f64::from(float(dice)) / 3.0),
        DataType::String => Value::Bytes(text(dice).into_bytes()),
        DataType::Unicode => Value::Unicode(text(dice)),
        DataType::Blob => Value::Bytes(bytes(dice)),
        DataType::Vector2 => Value::Vector2([float(dice), float(dice)]),
        DataType::Vector3 => Value::Vector3([float(dice), float(dice), float(dice)]),
        DataType::Vector4 => Value::Vector4([float(dice), float(dice), float(dice), float(dice)]),
        DataType::Mailbox => Value::Mailbox(mailbox(dice)),
        DataType::UdoRef => {
            let (high, low) = (dice().to_le_bytes(), dice().to_le_bytes());
            Value::UdoRef(std::array::from_fn(|i| if i < 8 { high[i] } else { low[i - 8] }))
        }
        DataType::Python(_) | DataType::UserType(_) => Value::Opaque(bytes(dice)),
        DataType::Array(sequence) | DataType::Tuple(sequence) => elements(sequence, dice),
        DataType::FixedDict(dict) if dict.allow_none && below(4, dice) == 0 => Value::None,
        DataType::FixedDict(dict) => Value::Dict(
            dict.fields
                .iter()
                .map(|field| generate(&field.data_type, dice))
                .collect(),
        ),
    }
}

/// A change that can be applied to the value, which fits the type: of the whole value, of a part, or of a slice of an
/// array.
pub fn generate_change(data_type: &DataType, value: &Value, dice: &mut Dice<'_>) -> Change {
    let (mut data_type, mut place, mut path) = (data_type, value, Path::WHOLE);
    loop {
        let (part_types, parts): (Vec<&DataType>, _) = match (data_type, place) {
            (DataType::Array(sequence), Value::Sequence(values)) => {
                if below(2, dice) == 0 {
                    return splice(sequence, values, path, dice);
                }
                (vec![&sequence.of; values.len()], values)
            }
            (DataType::FixedDict(dict), Value::Dict(values)) => {
                (dict.fields.iter().map(|field| &field.data_type).collect(), values)
            }
            _ => break,
        };
        if parts.is_empty() || below(STOP_ODDS, dice) == 0 {
            break;
        }
        let index = below(parts.len() as u64, dice);
        path.0
            .push(u32::try_from(index).expect("invariant: no sequence is that long"));
        (data_type, place) = (part_types[index as usize], &parts[index as usize]);
    }
    Change::part(path, generate(data_type, dice))
}

/// The value as a client reads it: without addresses of mailboxes.
#[must_use]
pub fn as_shown(value: Value) -> Value {
    let each = |values: Vec<Value>| values.into_iter().map(as_shown).collect();
    match value {
        Value::Mailbox(_) => Value::Mailbox(None),
        Value::Sequence(values) => Value::Sequence(each(values)),
        Value::Dict(values) => Value::Dict(each(values)),
        other => other,
    }
}

/// The change as a client reads it.
#[must_use]
pub fn change_as_shown(change: Change) -> Change {
    let edit = match change.edit {
        Edit::Set(value) => Edit::Set(as_shown(value)),
        Edit::Splice { at, removed, inserted } => Edit::Splice {
            at,
            removed,
            inserted: inserted.into_iter().map(as_shown).collect(),
        },
    };
    Change { edit, ..change }
}

/// A value that has parts and slices that can change, if the type allows it.
pub fn generate_with_parts(data_type: &DataType, dice: &mut Dice<'_>) -> Value {
    /// After so many tries any value is taken: one in two has parts.
    const TRIES: usize = 64;
    let does = |value: &Value| {
        let places = places(data_type, value);
        (places.iter().any(ValuePart::is_part) || !data_type.has_parts())
            && (places.iter().any(ValuePart::is_sliced) || !data_type.has_slices())
    };
    let mut value = generate(data_type, dice);
    for _ in 0..TRIES {
        if does(&value) {
            break;
        }
        value = generate(data_type, dice);
    }
    value
}

/// A change of a part of the value, if it has any.
pub fn generate_nested(data_type: &DataType, value: &Value, dice: &mut Dice<'_>) -> Option<Change> {
    let mut places = places(data_type, value);
    places.retain(ValuePart::is_part);
    let chosen = below(places.len().max(1) as u64, dice);
    let place = places.into_iter().nth(usize::try_from(chosen).ok()?)?;
    let new = generate(place.data_type, dice);
    Some(Change::part(place.path, new))
}

/// A change of a slice of an array in the value, if it has any: elements are added unless its size is fixed.
pub fn generate_slice(data_type: &DataType, value: &Value, dice: &mut Dice<'_>) -> Option<Change> {
    let mut places = places(data_type, value);
    places.retain(ValuePart::is_sliced);
    let chosen = below(places.len().max(1) as u64, dice);
    let place = places.into_iter().nth(usize::try_from(chosen).ok()?)?;
    let (DataType::Array(sequence), Value::Sequence(values)) = (place.data_type, place.value) else {
        return None;
    };
    let length = u32::try_from(values.len()).ok()?;
    let new = generate(&sequence.of, dice);
    let removed = u32::from(sequence.size.is_some());
    Some(Change::splice(place.path, length - removed, removed, vec![new]))
}

/// A place in a value.
struct ValuePart<'a> {
    path: Path,
    data_type: &'a DataType,
    value: &'a Value,
}

impl ValuePart<'_> {
    fn is_part(&self) -> bool {
        !self.path.0.is_empty()
    }

    fn is_sliced(&self) -> bool {
        matches!((self.data_type, self.value), (DataType::Array(_), Value::Sequence(_)))
    }
}

/// All places in a value that can be changed.
fn places<'a>(data_type: &'a DataType, value: &'a Value) -> Vec<ValuePart<'a>> {
    let mut places = vec![ValuePart {
        path: Path::WHOLE,
        data_type,
        value,
    }];
    let mut next = 0;
    while let Some(ValuePart { path, data_type, value }) = places.get(next) {
        let parts: Vec<(&DataType, &Value)> = match (*data_type, *value) {
            (DataType::Array(sequence), Value::Sequence(values)) => {
                values.iter().map(|value| (&sequence.of, value)).collect()
            }
            (DataType::FixedDict(dict), Value::Dict(values)) => {
                dict.fields.iter().map(|field| &field.data_type).zip(values).collect()
            }
            _ => Vec::new(),
        };
        let inside = |index, (data_type, value)| {
            let mut path = path.clone();
            path.0.push(index);
            ValuePart { path, data_type, value }
        };
        let inside: Vec<ValuePart<'_>> = (0..).zip(parts).map(|(index, part)| inside(index, part)).collect();
        places.extend(inside);
        next += 1;
    }
    places
}

/// A change of some neighbouring elements; sometimes an empty one.
fn splice(sequence: &Sequence, values: &[Value], path: Path, dice: &mut Dice<'_>) -> Change {
    let at = below(values.len() as u64 + 1, dice);
    let removed = below((values.len() as u64 - at + 1).min(MAX_ELEMENTS), dice);
    let inserted = if sequence.size.is_some() {
        removed
    } else {
        below(MAX_ELEMENTS, dice)
    };
    let inserted = (0..inserted).map(|_| generate(&sequence.of, dice)).collect();
    let narrow = |number| u32::try_from(number).expect("invariant: no sequence is that long");
    Change::splice(path, narrow(at), narrow(removed), inserted)
}

fn elements(sequence: &Sequence, dice: &mut Dice<'_>) -> Value {
    let count = sequence.size.map_or_else(|| below(MAX_ELEMENTS + 1, dice), u64::from);
    Value::Sequence((0..count).map(|_| generate(&sequence.of, dice)).collect())
}

/// A number below `bound`; the slight bias does not matter here.
fn below(bound: u64, dice: &mut Dice<'_>) -> u64 {
    dice() % bound
}

fn signed(low: i64, high: i64, dice: &mut Dice<'_>) -> Value {
    if below(EDGE_ODDS, dice) == 0 {
        let edges = [low, high, 0, -1];
        return Value::Int(edges[dice() as usize % edges.len()]);
    }
    let width = low.abs_diff(high).wrapping_add(1);
    let offset = if width == 0 { dice() } else { dice() % width };
    Value::Int(low.wrapping_add_unsigned(offset))
}

fn unsigned(high: u64, dice: &mut Dice<'_>) -> Value {
    if below(EDGE_ODDS, dice) == 0 {
        let edges = [0, 1, high];
        return Value::UInt(edges[dice() as usize % edges.len()]);
    }
    Value::UInt(if high == u64::MAX { dice() } else { dice() % (high + 1) })
}

/// A finite number that 32 bits represent exactly.
fn float(dice: &mut Dice<'_>) -> f32 {
    if below(EDGE_ODDS, dice) == 0 {
        let edges = [0.0, -0.0, 1.0, f32::MAX, f32::MIN, f32::MIN_POSITIVE];
        return edges[dice() as usize % edges.len()];
    }
    let thousandths = i32::try_from(below(2_000_001, dice)).expect("invariant: below two million and one");
    (thousandths - 1_000_000) as f32 / 1_000.0
}

fn length(dice: &mut Dice<'_>) -> u64 {
    if below(LONG_ODDS, dice) == 0 {
        253 + below(5, dice)
    } else {
        below(MAX_TEXT + 1, dice)
    }
}

fn text(dice: &mut Dice<'_>) -> String {
    (0..length(dice))
        .map(|_| LETTERS[dice() as usize % LETTERS.len()])
        .collect()
}

fn bytes(dice: &mut Dice<'_>) -> Vec<u8> {
    (0..length(dice)).map(|_| dice().to_le_bytes()[0]).collect()
}

fn mailbox(dice: &mut Dice<'_>) -> Option<Mailbox> {
    if below(4, dice) == 0 {
        return None;
    }
    let number = dice();
    let [a, b, c, d, e, f, part, _] = dice().to_le_bytes();
    Some(Mailbox {
        entity: EntityId(number),
        home: OwnerId(u32::from_le_bytes([a, b, c, d])),
        type_id: TypeId(u16::from_le_bytes([e, f])),
        part: if part % 2 == 0 { Part::Base } else { Part::Cell },
    })
}
