//! Which changes lead from one value to another.

use crate::{
    change::Change,
    data_type::{DataType, Sequence},
    path::Path,
    stream::stream_length,
    value::Value,
};

/// Bytes that a change takes beside its value, roughly, in the log and on its way to every observer. Without it, many small
/// changes would take the place of one that is shorter.
const AROUND: usize = 8;

/// Bytes that one step of a path takes, roughly.
const STEP: usize = 2;

/// Changes that lead from `old` to `new`, both of this type, when they are made in this order: parts where they differ, one
/// slice per array, or the whole where that takes fewer bytes. None if the values are equal.
#[must_use]
pub fn difference(data_type: &DataType, old: &Value, new: &Value) -> Vec<Change> {
    let mut changes = Vec::new();
    plan(data_type, old, new, 0).list(&Path::WHOLE, new, &mut changes);
    changes
}

/// What to do at one place, and what it costs.
struct Plan {
    bytes: usize,
    what: What,
}

enum What {
    Nothing,
    Whole,
    /// This many elements at the front and at the back stay; `removed` between them give way.
    Splice {
        front: usize,
        back: usize,
        removed: usize,
    },
    Parts(Vec<(usize, Plan)>),
}

impl Plan {
    /// Appends the changes, of which `new` is the outcome at `path`.
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

/// The cheaper of a slice and of changes element by element, so far as they are possible.
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

/// Changes part by part; the first of them has this index.
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

/// A count of parts, of which no value has more than a length can say.
fn count(parts: usize) -> u32 {
    u32::try_from(parts).expect("invariant: no sequence is longer than MAX_LENGTH")
}
