//! Changes of values against a brute-force model: their result, what is rejected, and differences between values.

use std::sync::Arc;

use annals_def::{
    Change, ChangeError, DataType, Dice, Edit, Field, FixedDict, Form, Located, MAX_LENGTH, Path, Replaced, Sequence,
    Step, Value, apply, check, difference, encode, generate, generate_change, generate_type, split_mix, unpack_path,
};

const SEEDS: u64 = 3_000;

/// A random type whose values have changeable parts.
fn type_with_parts(dice: &mut Dice<'_>) -> DataType {
    loop {
        let data_type = generate_type(4, dice);
        if matches!(data_type, DataType::Array(_) | DataType::FixedDict(_)) {
            return data_type;
        }
    }
}

/// The expected result of a change: built from the value's parts, independent of the production code.
fn expected(data_type: &DataType, value: &Value, path: &[u32], edit: &Edit) -> Option<Value> {
    let [first, rest @ ..] = path else {
        let new = match (edit, value, data_type) {
            (Edit::Set(new), ..) => new.clone(),
            (Edit::Splice { at, removed, inserted }, Value::Sequence(values), DataType::Array(_)) => {
                let (at, end) = (*at as usize, (*at as usize).checked_add(*removed as usize)?);
                if end > values.len() {
                    return None;
                }
                Value::Sequence([&values[..at], inserted, &values[end..]].concat())
            }
            _ => return None,
        };
        return check(data_type, &new).is_ok().then_some(new);
    };
    let index = *first as usize;
    match (data_type, value) {
        (DataType::Array(sequence), Value::Sequence(values)) => {
            let mut values = values.clone();
            values[..].get(index)?;
            values[index] = expected(&sequence.of, &values[index], rest, edit)?;
            Some(Value::Sequence(values))
        }
        (DataType::FixedDict(dict), Value::Dict(values)) => {
            let mut values = values.clone();
            values[index.min(values.len())..].first()?;
            values[index] = expected(&dict.fields[index].data_type, &values[index], rest, edit)?;
            Some(Value::Dict(values))
        }
        _ => None,
    }
}

/// The expected replaced value of a change.
fn replaced(value: &Value, change: &Change) -> Replaced {
    let path = change.path.clone();
    let there = path.find(value).expect("there").clone();
    match (&change.edit, there) {
        (Edit::Set(_), old) if path.0.is_empty() => Replaced::Whole { old },
        (Edit::Set(_), old) => Replaced::Nested { path, old },
        (Edit::Splice { at, removed, inserted }, Value::Sequence(values)) => Replaced::Slice {
            path,
            range: *at..at + inserted.len() as u32,
            old: values[*at as usize..(at + removed) as usize].to_vec(),
        },
        _ => panic!("a slice of what is no sequence"),
    }
}

/// Turns a valid change into a possibly invalid one.
fn spoil(change: &mut Change, dice: &mut Dice<'_>) {
    let other = generate_type(2, dice);
    match (dice() % 6, &mut change.edit) {
        (0, _) => change.path.0.push(dice() as u32 % 3),
        (1, _) => drop(change.path.0.pop()),
        (2, _) if !change.path.0.is_empty() => {
            let at = dice() as usize % change.path.0.len();
            change.path.0[at] = [change.path.0[at] + 1, u32::MAX, 0][dice() as usize % 3];
        }
        (3, Edit::Splice { at, .. }) => *at = at.wrapping_add([1, 3, u32::MAX][dice() as usize % 3]),
        (4, Edit::Splice { removed, .. }) => *removed = removed.wrapping_add([1, 3, u32::MAX][dice() as usize % 3]),
        (5, Edit::Splice { inserted, .. }) => inserted.push(generate(&other, dice)),
        (_, Edit::Set(value)) => *value = generate(&other, dice),
        _ => change.edit = Edit::Set(generate(&other, dice)),
    }
}

#[test]
fn changes_equal_the_brute_force_model() {
    let (mut slices, mut nested) = (0, 0);
    for seed in 0..SEEDS {
        let mut dice = split_mix(seed);
        let data_type = type_with_parts(&mut dice);
        let mut value = generate(&data_type, &mut dice);
        for _ in 0..8 {
            let change = generate_change(&data_type, &value, &mut dice);
            slices += usize::from(matches!(change.edit, Edit::Splice { .. }));
            nested += usize::from(change.path.0.len() > 1);
            let wanted = expected(&data_type, &value, &change.path.0, &change.edit);
            let replaced_part = replaced(&value, &change);
            let vain = change.is_vain(&value);
            let before = value.clone();
            assert_eq!(
                apply(&data_type, &mut value, &change),
                Ok(replaced_part),
                "seed {seed}: {data_type}"
            );
            assert_eq!(Some(&value), wanted.as_ref(), "seed {seed}: {data_type}");
            assert!(!vain || value == before, "seed {seed}: {data_type}");
            assert!(vain || value != before || matches!(change.edit, Edit::Splice { .. }));
        }
    }
    assert!(
        slices > SEEDS as usize && nested > SEEDS as usize / 4,
        "{slices} {nested}"
    );
}

#[test]
fn an_invalid_change_is_refused_and_changes_nothing() {
    let mut refused = 0;
    for seed in 0..SEEDS {
        let mut dice = split_mix(seed);
        let data_type = type_with_parts(&mut dice);
        let value = generate(&data_type, &mut dice);
        for _ in 0..4 {
            let mut change = generate_change(&data_type, &value, &mut dice);
            spoil(&mut change, &mut dice);
            let wanted = expected(&data_type, &value, &change.path.0, &change.edit);
            let mut held = value.clone();
            let outcome = apply(&data_type, &mut held, &change);
            assert_eq!(
                outcome.is_ok(),
                wanted.is_some(),
                "seed {seed}: {data_type} {change:?}: {outcome:?}"
            );
            assert_eq!(
                held,
                wanted.unwrap_or_else(|| value.clone()),
                "seed {seed}: {data_type}"
            );
            // Without the type only the path is checked; a change without a place changes nothing either.
            let mut held = value.clone();
            if change.make(&mut held).is_err() {
                assert_eq!(held, value, "seed {seed}: {data_type}");
                refused += 1;
            }
        }
    }
    assert!(refused > SEEDS / 2, "{refused}");
}

fn whole_length(data_type: &DataType, value: &Value) -> usize {
    let mut bytes = Vec::new();
    encode(data_type, value, Form::Whole, &mut bytes).expect("it fits");
    bytes.len()
}

#[test]
fn applying_a_difference_gives_the_other_value() {
    for seed in 0..SEEDS {
        let mut dice = split_mix(seed);
        let data_type = type_with_parts(&mut dice);
        let old = generate(&data_type, &mut dice);
        let mut new = old.clone();
        for _ in 0..dice() % 4 {
            let change = generate_change(&data_type, &new, &mut dice);
            apply(&data_type, &mut new, &change).expect("it fits");
        }
        if dice().is_multiple_of(4) {
            new = generate(&data_type, &mut dice);
        }
        let changes = difference(&data_type, &old, &new);
        assert_eq!(changes.is_empty(), old == new, "seed {seed}: {data_type}");
        let mut held = old.clone();
        for change in &changes {
            assert!(!change.is_vain(&held), "seed {seed}: {data_type}");
            apply(&data_type, &mut held, change).expect("a difference fits");
        }
        assert_eq!(held, new, "seed {seed}: {data_type}");
        let length: usize = changes
            .iter()
            .map(|change| match &change.edit {
                Edit::Set(value) => whole_length(change.path.find_type(&data_type).expect("there"), value),
                Edit::Splice { inserted, .. } => {
                    let Some(DataType::Array(sequence)) = change.path.find_type(&data_type) else {
                        panic!("seed {seed}: a slice of what is no array")
                    };
                    inserted.iter().map(|value| whole_length(&sequence.of, value)).sum()
                }
            })
            .sum();
        assert!(length <= whole_length(&data_type, &new), "seed {seed}: {data_type}");
    }
}

/// `ARRAY <of> FIXED_DICT a: ARRAY <of> INT32, b: STRING, pair: TUPLE of 2 INT32`, as in the guide.
fn sample() -> (DataType, Value) {
    let array = DataType::Array(Arc::new(Sequence::of(DataType::Int32)));
    let pair = DataType::Tuple(Arc::new(Sequence::sized(DataType::Int32, 2)));
    let item = FixedDict::of(vec![
        Field::of("a", array),
        Field::of("b", DataType::String),
        Field::of("pair", pair),
    ]);
    let item = Arc::new(item);
    let data_type = DataType::Array(Arc::new(Sequence::of(DataType::FixedDict(item))));
    let value = (0..6).map(|i| {
        let a = (0..6).map(|n| Value::Int(10 * i + n)).collect();
        let pair = Value::Sequence(vec![Value::Int(1), Value::Int(2)]);
        Value::Dict(vec![
            Value::Sequence(a),
            Value::string("a longer text, to weigh something"),
            pair,
        ])
    });
    let value = Value::Sequence(value.collect());
    (data_type, value)
}

#[test]
fn differences_are_minimal() {
    let (data_type, value) = sample();
    let ints = |numbers: &[i64]| numbers.iter().copied().map(Value::Int).collect::<Vec<_>>();
    let cases = [
        Change::part(Path(vec![3, 0, 5]), Value::Int(8)),
        Change::part(Path(vec![1, 1]), Value::string("other")),
        Change::part(Path(vec![0, 2]), Value::Sequence(ints(&[1, 3]))),
        Change::splice(Path(vec![3, 0]), 6, 0, ints(&[10])),
        Change::splice(Path(vec![3, 0]), 0, 2, Vec::new()),
        Change::splice(Path(vec![2, 0]), 1, 4, ints(&[7])),
        Change::splice(Path::WHOLE, 5, 1, Vec::new()),
        Change::splice(Path::WHOLE, 2, 2, Vec::new()),
        Change::whole(Value::Sequence(Vec::new())),
    ];
    for change in cases {
        let mut new = value.clone();
        apply(&data_type, &mut new, &change).expect("it fits");
        let found = difference(&data_type, &value, &new);
        let cleared = change.is_whole();
        assert!(
            found == [change.clone()] || cleared && found.len() == 1,
            "{change:?}: {found:?}"
        );
    }
    // Two places of one element cost less than a slice that spans them.
    let mut new = value.clone();
    for (path, to) in [(vec![4, 0, 0], Value::Int(1)), (vec![4, 1], Value::string("x"))] {
        apply(&data_type, &mut new, &Change::part(Path(path), to)).expect("it fits");
    }
    assert_eq!(difference(&data_type, &value, &new).len(), 2);
    // Replacing all of a short array costs less than element by element.
    let (short, old) = (
        DataType::Array(Arc::new(Sequence::of(DataType::Int8))),
        Value::Sequence(ints(&[1, 2, 3])),
    );
    let new = Value::Sequence(ints(&[4, 5, 6]));
    assert_eq!(difference(&short, &old, &new), [Change::whole(new.clone())]);
}

#[test]
fn differences_compare_floats_by_their_bits() {
    let floats = DataType::Array(Arc::new(Sequence::of(DataType::Float64)));
    let nan = |bits: u64| Value::Float64(f64::from_bits(0x7ff8_0000_0000_0000 | bits));
    let old = Value::Sequence(vec![Value::Float64(0.0), nan(0), nan(1), Value::Float64(1.0)]);
    assert_eq!(difference(&floats, &old, &old.clone()), []);
    let mut held = old.clone();
    let new = Value::Sequence(vec![Value::Float64(-0.0), nan(0), nan(2), Value::Float64(1.0)]);
    for change in difference(&floats, &old, &new) {
        apply(&floats, &mut held, &change).expect("it fits");
    }
    assert_eq!(held, new);
}

#[test]
fn an_array_of_fixed_size_keeps_its_length_and_a_tuple_has_no_slices() {
    let sized = DataType::Array(Arc::new(Sequence::sized(DataType::Int8, 3)));
    let mut value = sized.default_value();
    let two = vec![Value::Int(1), Value::Int(2)];
    apply(&sized, &mut value, &Change::splice(Path::WHOLE, 1, 2, two.clone())).expect("as long as before");
    let before = value.clone();
    for (at, removed) in [(0, 1), (0, 3), (3, 0), (2, 2)] {
        let change = Change::splice(Path::WHOLE, at, removed, two.clone());
        let error = apply(&sized, &mut value, &change).expect_err("another length");
        assert_eq!(
            matches!(error, ChangeError::NoSlice { .. }),
            at + removed > 3,
            "{error}"
        );
        assert_eq!(value, before);
    }
    let tuple = DataType::Tuple(Arc::new(Sequence::of(DataType::Int8)));
    let mut value = Value::Sequence(two.clone());
    let error = apply(&tuple, &mut value, &Change::splice(Path::WHOLE, 0, 2, two)).expect_err("a tuple");
    assert!(matches!(error, ChangeError::NotAnArray { .. }), "{error}");
    let error = apply(&tuple, &mut value, &Change::part(Path(vec![0]), Value::Int(0))).expect_err("a tuple");
    assert!(matches!(error, ChangeError::NoParts { .. }), "{error}");
}

#[test]
fn a_refused_change_reports_path_and_reason() {
    let (data_type, value) = sample();
    let cases = [
        (
            Change::part(Path(vec![3, 0, 6]), Value::Int(0)),
            "invalid path [3, 0, 6]: step 2 is beyond the 6 parts there",
        ),
        (
            Change::part(Path(vec![3, 1, 0]), Value::Int(0)),
            "invalid path [3, 1, 0]: at step 2, STRING has no parts that can be assigned",
        ),
        (
            Change::splice(Path(vec![3, 0]), 5, 2, Vec::new()),
            "invalid slice from 5 to 7: the array at [3, 0] has 6 elements",
        ),
        (
            Change::splice(Path(vec![3, 1]), 0, 0, Vec::new()),
            "invalid path [3, 1] for a slice: found STRING, but only elements of an ARRAY can be inserted, removed or \
             replaced",
        ),
        (
            Change::splice(Path(vec![3, 0]), 6, 0, vec![Value::Int(1), Value::Unicode("x".into())]),
            "the value does not fit the type declared at [3, 0]: at [7]: expected INT32, found a unicode string",
        ),
    ];
    for (change, wanted) in cases {
        let error = change.check(&data_type, &value).expect_err("refused");
        let source = std::error::Error::source(&error).map(|source| format!(": {source}"));
        assert_eq!(format!("{error}{}", source.unwrap_or_default()), wanted);
    }
    let steps = Path(vec![3, 0, 5]).steps(&data_type);
    assert_eq!(
        steps,
        Some(vec![Step::Element(3), Step::Field("a".into()), Step::Element(5)])
    );
    assert_eq!(
        Path(vec![3, 2, 0]).steps(&data_type),
        None,
        "a tuple has no parts that change"
    );
}

#[test]
fn packed_paths_round_trip() {
    for seed in 0..SEEDS {
        let mut dice = split_mix(seed);
        let data_type = type_with_parts(&mut dice);
        let value = generate(&data_type, &mut dice);
        let change = generate_change(&data_type, &value, &mut dice);
        let located = Located::new(change.clone(), &value).expect("it fits");
        assert_eq!(
            Located::with_parts(change.clone(), located.parts().to_vec()).as_ref(),
            Some(&located)
        );
        let mut held = value.clone();
        assert_eq!(located.make(&mut held), Ok(replaced(&value, &change)), "seed {seed}");
        let properties = 1 + dice() as u32 % 300;
        let property = dice() as u32 % properties;
        let mut bytes = Vec::new();
        located.pack((property, properties), &mut bytes);
        bytes.extend([1, 2, 3]);
        let mut rest = bytes.as_slice();
        let slice = match change.edit {
            Edit::Set(_) => None,
            Edit::Splice { at, removed, .. } => Some(at..at + removed),
        };
        let held = |asked| (asked == property).then_some(&value);
        let read = unpack_path(&mut rest, slice.is_some(), properties, held).expect("own bits");
        assert_eq!(
            (read.property, &read.path, &read.slice),
            (property, &change.path, &slice),
            "seed {seed}"
        );
        assert_eq!(rest, [1, 2, 3], "seed {seed}");
    }
}

#[test]
fn damaged_paths_are_refused_or_valid() {
    for seed in 0..SEEDS {
        let mut dice = split_mix(seed);
        let data_type = type_with_parts(&mut dice);
        let value = generate(&data_type, &mut dice);
        let bytes: Vec<u8> = (0..dice() % 6).map(|_| dice() as u8).collect();
        let properties = 1 + dice() as u32 % 6;
        let is_slice = dice().is_multiple_of(2);
        let mut rest = bytes.as_slice();
        let Some(read) = unpack_path(&mut rest, is_slice, properties, |_| Some(&value)) else {
            assert_eq!(rest, bytes, "seed {seed}");
            continue;
        };
        let change = match &read.slice {
            None => Change::part(read.path, Value::None),
            Some(slice) => Change::splice(read.path, slice.start, slice.end - slice.start, Vec::new()),
        };
        let mut again = Vec::new();
        Located::new(change, &value)
            .expect("it leads somewhere")
            .pack((read.property, properties), &mut again);
        assert_eq!(again, bytes[..bytes.len() - rest.len()], "seed {seed}");
    }
}

#[test]
fn a_change_to_a_value_of_another_type_is_refused() {
    let (_, value) = sample();
    let append = Change::splice(Path(vec![3, 0]), 6, 0, vec![Value::Int(0)]);
    let located = Located::new(append, &value).expect("it fits");
    assert_eq!(located.parts(), [6, 3, 6]);
    let mut other = value.clone();
    located.make(&mut other).expect("the same shape");
    let before = other.clone();
    assert!(located.make(&mut other).is_err(), "it is longer now");
    assert_eq!(other, before);
    let change = located.change().clone();
    for parts in [vec![6, 3], vec![3, 3, 6], vec![6, 3, 5], vec![6, 3, 6, 1]] {
        assert_eq!(Located::with_parts(change.clone(), parts), None);
    }
}

#[test]
fn a_change_with_too_many_parts_is_refused() {
    let most = u32::try_from(MAX_LENGTH).expect("a length");
    let append = |length| Change::splice(Path(vec![most - 1]), length, 0, Vec::new());
    let located = Located::with_parts(append(most), vec![most, most]).expect("the greatest lengths");
    let mut packed = Vec::new();
    located.pack((0, 1), &mut packed);
    // 1 (the property), 1 and 24 bits, 0, and twice the length, for which 24 bits are enough.
    let bits = 1 + (1 + 24) + 1 + 24 + 24_usize;
    assert_eq!(packed.len(), bits.div_ceil(8));
    for parts in [
        vec![most, most + 1],
        vec![most + 1, most],
        vec![most, u32::MAX],
        vec![u32::MAX, most],
    ] {
        assert_eq!(Located::with_parts(append(most), parts), None);
    }
    assert_eq!(Located::with_parts(append(u32::MAX), vec![most, u32::MAX]), None);
}
