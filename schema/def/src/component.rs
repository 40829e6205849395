//! Components: plain structs for some of an entity's properties, and two ways to detect their changes (P8).
//!
//! [`Shadowed`] keeps a copy of what was last recorded and compares: code that changes the struct has no duty, at the
//! cost of the copy and of comparing every field. [`Tracked`] must be given the field that is about to change, and
//! keeps only the old value of that field: untouched fields cost nothing, but all changes must use its setters. Both
//! give the same changes in the same order, by field and then as [`difference`] orders them; a field that was changed
//! back gives none.

use std::collections::BTreeMap;

use crate::{
    change::{Change, difference},
    check::Mismatch,
    data_type::DataType,
    value::Value,
};

/// A plain struct, each field of which is the value of a property.
pub trait Component: Sized {
    /// The names of the properties, in field order.
    const MEMBERS: &'static [&'static str];

    /// Builds the struct from the values of the properties, one per member, in member order.
    ///
    /// # Errors
    /// If a value is of another type.
    fn from_values(values: &[&Value]) -> Result<Self, Mismatch>;

    /// The value of a field, by its position among the members; `None` if there is no such field.
    fn value(&self, field: usize) -> Option<Value>;
}

/// A change of one field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldChange {
    /// The field's position among the members.
    pub field: usize,
    /// The change of its value.
    pub change: Change,
}

/// A component whose changes can be recorded.
pub trait Synchronised {
    /// The component type.
    type Of: Component;

    /// The changes since the last recorded state. `types` are the types of the members, in order.
    fn changes(&self, types: &[DataType]) -> Vec<FieldChange>;

    /// Marks all changes as recorded.
    fn recorded(&mut self);

    /// Sets the recorded values, by field; a difference from them is a change.
    fn resume(&mut self, recorded: Vec<Value>);
}

/// A component compared with a copy of its last recorded state.
#[derive(Clone, Debug)]
pub struct Shadowed<T> {
    /// The component; may be changed freely.
    pub now: T,
    shadow: Vec<Value>,
}

impl<T: Component> Shadowed<T> {
    /// A component in its recorded state.
    #[must_use]
    pub fn new(now: T) -> Self {
        let shadow = values(&now);
        Self { now, shadow }
    }
}

impl<T: Component> Synchronised for Shadowed<T> {
    type Of = T;

    fn changes(&self, types: &[DataType]) -> Vec<FieldChange> {
        let old = self.shadow.iter().enumerate();
        changes(&self.now, old, types)
    }

    fn recorded(&mut self) {
        self.shadow = values(&self.now);
    }

    fn resume(&mut self, recorded: Vec<Value>) {
        self.shadow = recorded;
    }
}

/// A component whose setters mark the fields they change.
#[derive(Clone, Debug)]
pub struct Tracked<T> {
    now: T,
    /// The last recorded values of the marked fields.
    marked: BTreeMap<usize, Value>,
}

impl<T: Component> Tracked<T> {
    /// A component in its recorded state.
    #[must_use]
    pub fn new(now: T) -> Self {
        let marked = BTreeMap::new();
        Self { now, marked }
    }

    /// The current component.
    #[must_use]
    pub fn now(&self) -> &T {
        &self.now
    }

    /// Marks a field, and returns the component so that the caller changes this field: the base of setters.
    pub fn mark(&mut self, field: usize) -> &mut T {
        if let Some(value) = self.now.value(field) {
            self.marked.entry(field).or_insert(value);
        }
        &mut self.now
    }
}

impl<T: Component> Synchronised for Tracked<T> {
    type Of = T;

    fn changes(&self, types: &[DataType]) -> Vec<FieldChange> {
        let old = self.marked.iter().map(|(field, value)| (*field, value));
        changes(&self.now, old, types)
    }

    fn recorded(&mut self) {
        self.marked.clear();
    }

    fn resume(&mut self, recorded: Vec<Value>) {
        let differs = |(field, value): &(usize, Value)| self.now.value(*field).as_ref() != Some(value);
        self.marked = recorded.into_iter().enumerate().filter(differs).collect();
    }
}

fn values<T: Component>(component: &T) -> Vec<Value> {
    (0..T::MEMBERS.len())
        .map_while(|field| component.value(field))
        .collect()
}

/// The changes from the old values of some fields, in order, to their current values.
fn changes<'v, T: Component>(
    now: &T,
    old: impl Iterator<Item = (usize, &'v Value)>,
    types: &[DataType],
) -> Vec<FieldChange> {
    let of_field = |(field, old): (usize, &Value)| {
        let change = match (types.get(field), now.value(field)) {
            (Some(data_type), Some(new)) => difference(data_type, old, &new),
            _ => Vec::new(),
        };
        change.into_iter().map(move |change| FieldChange { field, change })
    };
    old.flat_map(of_field).collect()
}
