//! The path of a change inside a value.

use std::fmt;

use crate::{check::Step, data_type::DataType, value::Value};

/// The path from a member's value to a part of it: the element of a sequence or the field of a dictionary at each
/// level. Empty for the whole value.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Path(pub Vec<u32>);

impl Path {
    /// The path to the whole value.
    pub const WHOLE: Path = Path(Vec::new());

    /// The part of the value at the path.
    #[must_use]
    pub fn find<'a>(&self, value: &'a Value) -> Option<&'a Value> {
        self.0.iter().try_fold(value, |value, &step| match value {
            Value::Sequence(values) | Value::Dict(values) => values.get(usize::try_from(step).ok()?),
            _ => None,
        })
    }

    /// The type of the part at the path; indices of elements are not checked.
    #[must_use]
    pub fn find_type<'a>(&self, data_type: &'a DataType) -> Option<&'a DataType> {
        self.0.iter().try_fold(data_type, |data_type, &step| match data_type {
            DataType::Array(sequence) => Some(&sequence.of),
            DataType::FixedDict(dict) => dict
                .fields
                .get(usize::try_from(step).ok()?)
                .map(|field| &field.data_type),
            _ => None,
        })
    }

    /// The steps as scripts write them: elements by index, fields by name (`[3, 'a', 5]`). `None` if the type does not
    /// have the path.
    #[must_use]
    pub fn steps(&self, mut data_type: &DataType) -> Option<Vec<Step>> {
        let mut steps = Vec::with_capacity(self.0.len());
        for &index in &self.0 {
            let index = usize::try_from(index).ok()?;
            match data_type {
                DataType::Array(sequence) => {
                    steps.push(Step::Element(index));
                    data_type = &sequence.of;
                }
                DataType::FixedDict(dict) => {
                    let field = dict.fields.get(index)?;
                    steps.push(Step::Field(field.name.clone()));
                    data_type = &field.data_type;
                }
                _ => return None,
            }
        }
        Some(steps)
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[")?;
        for (i, step) in self.0.iter().enumerate() {
            let separator = if i == 0 { "" } else { ", " };
            write!(f, "{separator}{step}")?;
        }
        f.write_str("]")
    }
}
