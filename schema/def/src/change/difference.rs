//! The changes that turn one value into another.

use crate::{
    change::Change,
    data_type::{DataType, Sequence},
    path::Path,
    stream::stream_length,
    value::Value,
};

/// Approximate bytes that a change takes beside its value, in the log and to each observer. It keeps many small changes
/// from being preferred to one shorter change.
const AROUND: usize = 8;

/// Approximate bytes of one step of a path.
const STEP: usize = 2;

/// Changes that turn `old` into `new`, both of this type, applied in this order: the parts that differ, one slice per
/// array, or the whole value where that takes fewer bytes. Empty if the values are equal.
#[must_use]
pub fn difference(data_type: &DataType, old: &Value, new: &Value) -> Vec<Change> {
    let mut changes = Vec::new();
    plan(data_type, old, new, 0).list(&Path::WHOLE, new, &mut changes);
    changes
}

/// The edit at one place, and its cost.
struct Plan {
    bytes: usize,
    what: What,
}

enum What {
    Nothing,
    Whole,
    /// Keeps this many elements at the front and at the back; replaces the `removed` elements between them.
    Splice {
        front: usize,
        back: usize,
        removed: usize,
    },
    Parts(Vec<(usize, Plan)>),
}

impl Plan {
    /// Appends the changes of this plan; `new` is the value at `path` after them.
    fn list(self, path: &Path, new: &Value, out: &mut Vec<Change>) {
        match (self.what, new) {
            (What::Nothing, _) => {}
            (What::Splice { front, back, removed }, Value::Sequence(values)) => {
                let inserted = values[front..values.len() - back].to_vec();
                out.push(Change::splice(path.clone(), count(front), count(removed), inserted));
            }
            (What::Parts(plans), Value::Sequence(values) | Value::Dict(values)) => {
                for (index, plan) in plans {
                    let mut path = path.clone();
                    path.0.push(count(index));
                    plan.list(&path, &values[index], out);
                }
            }
            _ => out.push(Change::part(path.clone(), new.clone())),
        }
    }
}

fn plan(data_type: &DataType, old: &Value, new: &Value, depth: usize) -> Plan {
    if old == new {
        return Plan {
            bytes: 0,
            what: What::Nothing,
        };
    }
    let whole = Plan {
        bytes: AROUND + STEP * depth + stream_length(data_type, new),
        what: What::Whole,
    };
    let parts = match (data_type, old, new) {
        (DataType::Array(sequence), Value::Sequence(old), Value::Sequence(new)) => elements(sequence, old, new, depth),
        (DataType::FixedDict(dict), Value::Dict(old), Value::Dict(new)) if old.len() == new.len() => {
            let types = dict.fields.iter().map(|field| &field.data_type);
            Some(each(0, types.zip(old.iter().zip(new)), depth))
        }
        _ => None,
    };
    parts.filter(|plan| plan.bytes < whole.bytes).unwrap_or(whole)
}

/// The cheaper of a slice and of changes element by element, where these are possible.
fn elements(sequence: &Sequence, old: &[Value], new: &[Value], depth: usize) -> Option<Plan> {
    let shorter = old.len().min(new.len());
    let front = old.iter().zip(new).take_while(|(old, new)| old == new).count();
    let pairs = old.iter().rev().zip(new.iter().rev()).take(shorter - front);
    let back = pairs.take_while(|(old, new)| old == new).count();
    let (removed, inserted) = (&old[front..old.len() - back], &new[front..new.len() - back]);
    let same_length = removed.len() == inserted.len();
    let splice = (sequence.size.is_none() || same_length).then(|| Plan {
        bytes: AROUND + STEP * (depth + 1) + elements_length(sequence, inserted),
        what: What::Splice {
            front,
            back,
            removed: removed.len(),
        },
    });
    let single = same_length.then(|| {
        let pairs = removed.iter().zip(inserted);
        each(front, pairs.map(|pair| (&sequence.of, pair)), depth)
    });
    match (splice, single) {
        (Some(splice), Some(single)) if splice.bytes < single.bytes => Some(splice),
        (splice, single) => single.or(splice),
    }
}

/// Changes part by part; `first` is the index of the first part.
fn each<'v>(first: usize, parts: impl Iterator<Item = (&'v DataType, (&'v Value, &'v Value))>, depth: usize) -> Plan {
    let plans = parts
        .enumerate()
        .map(|(i, (data_type, (old, new)))| (first + i, plan(data_type, old, new, depth + 1)));
    let plans: Vec<(usize, Plan)> = plans.filter(|(_, plan)| plan.bytes > 0).collect();
    Plan {
        bytes: plans.iter().map(|(_, plan)| plan.bytes).sum(),
        what: What::Parts(plans),
    }
}

fn elements_length(sequence: &Sequence, values: &[Value]) -> usize {
    1 + values
        .iter()
        .map(|value| stream_length(&sequence.of, value))
        .sum::<usize>()
}

/// A number of parts as `u32`; no value has more parts than a length can encode.
fn count(parts: usize) -> u32 {
    u32::try_from(parts).expect("invariant: no sequence is longer than MAX_LENGTH")
}
