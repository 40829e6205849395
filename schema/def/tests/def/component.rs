//! Both ways of synchronising a component give the same changes: random types, random edits.

use annals_def::{
    Change, Component, DataType, FieldChange, Mismatch, Shadowed, Synchronised, Tracked, Value, apply, difference,
    generate, generate_change, generate_type, split_mix,
};

/// Rounds of the property test.
const ROUNDS: u64 = 600;

/// Depth of the random types.
const DEPTH: usize = 4;

/// A component of four fields of any type.
#[derive(Clone, Debug, PartialEq)]
struct Four([Value; 4]);

impl Component for Four {
    const MEMBERS: &'static [&'static str] = &["a", "b", "c", "d"];

    fn from_values(values: &[&Value]) -> Result<Self, Mismatch> {
        annals_def::typed::members(values).map(|values| Self(values.map(Clone::clone)))
    }

    fn value(&self, field: usize) -> Option<Value> {
        self.0.get(field).cloned()
    }
}

/// The changes as distinct bytes.
fn bytes(changes: &[FieldChange]) -> Vec<u8> {
    format!("{changes:?}").into_bytes()
}

#[test]
fn change_marks_and_comparison_give_the_same_changes() {
    let mut changes_seen = 0;
    for seed in 0..ROUNDS {
        let mut dice = split_mix(seed);
        let dice = &mut dice;
        let types: [DataType; 4] = std::array::from_fn(|_| generate_type(DEPTH, dice));
        let begun = Four(std::array::from_fn(|field| generate(&types[field], dice)));
        let (mut shadowed, mut tracked) = (Shadowed::new(begun.clone()), Tracked::new(begun.clone()));
        let mut copy = begun.clone();
        for _ in 0..3 {
            for _ in 0..dice() % 6 {
                let field = dice() as usize % types.len();
                edit(&types[field], &mut shadowed.now.0[field], dice);
                let new = shadowed.now.0[field].clone();
                tracked.mark(field).0[field] = new;
            }
            let (by_shadow, by_marks) = (shadowed.changes(&types), tracked.changes(&types));
            assert_eq!(bytes(&by_shadow), bytes(&by_marks), "seed {seed}");
            for FieldChange { field, change } in &by_marks {
                apply(&types[*field], &mut copy.0[*field], change)
                    .unwrap_or_else(|error| panic!("seed {seed}: {error}"));
            }
            assert_eq!(copy, shadowed.now, "seed {seed}");
            assert_eq!(&copy, tracked.now(), "seed {seed}");
            changes_seen += by_marks.len();
            shadowed.recorded();
            tracked.recorded();
            assert_eq!(
                (shadowed.changes(&types), tracked.changes(&types)),
                (vec![], vec![]),
                "seed {seed}"
            );
        }
    }
    assert!(changes_seen > 1_000, "{changes_seen}");
}

/// Changes a value, sometimes to the same value.
fn edit(data_type: &DataType, value: &mut Value, dice: &mut annals_def::Dice<'_>) {
    if dice().is_multiple_of(3) {
        *value = generate(data_type, dice);
    } else {
        let change = generate_change(data_type, value, dice);
        apply(data_type, value, &change).expect("what is generated fits");
    }
}

#[test]
fn a_restored_field_is_not_recorded() {
    let types = [const { DataType::UInt8 }; 4];
    let mut tracked = Tracked::new(Four([const { Value::UInt(1) }; 4]));
    tracked.mark(2).0[2] = Value::UInt(9);
    tracked.mark(2).0[2] = Value::UInt(1);
    assert_eq!(tracked.changes(&types), []);
    tracked.mark(1).0[1] = Value::UInt(3);
    let change = Change::whole(Value::UInt(3));
    assert_eq!(tracked.changes(&types), [FieldChange { field: 1, change }]);
}

#[test]
fn partially_recorded_changes_are_completed_by_the_next_record() {
    for seed in 0..100 {
        let mut dice = split_mix(seed);
        let dice = &mut dice;
        let types: [DataType; 4] = std::array::from_fn(|_| generate_type(DEPTH, dice));
        let [old, half, new] = std::array::from_fn(|_| Four(std::array::from_fn(|at| generate(&types[at], dice))));
        let mut shadowed = Shadowed::new(old.clone());
        let mut tracked = Tracked::new(old);
        shadowed.now = new.clone();
        for field in 0..4 {
            tracked.mark(field).0[field] = new.0[field].clone();
        }
        shadowed.resume(half.0.to_vec());
        tracked.resume(half.0.to_vec());
        let mut expected = Vec::new();
        for (field, data_type) in types.iter().enumerate() {
            let changes = difference(data_type, &half.0[field], &new.0[field]);
            expected.extend(changes.into_iter().map(|change| FieldChange { field, change }));
        }
        assert_eq!(shadowed.changes(&types), expected, "seed {seed}");
        assert_eq!(tracked.changes(&types), expected, "seed {seed}");
    }
}
