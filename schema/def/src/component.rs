//! Components: plain structs that stand for some of an entity's properties, and two ways to find what changed in them (P8).
//!
//! [`Shadowed`] keeps a copy of what was last recorded and compares: nothing has to be remembered by whoever changes the
//! struct, at the price of the copy and of looking at every field. [`Tracked`] is told which field is about to change and
//! keeps only what that one held: it costs nothing for what nobody touches, and its setters must be used. Both give the
//! same changes in the same order, by field and then as [`difference`] orders them; a field that was changed back gives
//! none.

use std::collections::BTreeMap;

use crate::{
    change::{Change, difference},
    check::Mismatch,
    data_type::DataType,
    value::Value,
};

/// A plain struct, each field of which stands for a property.
pub trait Component: Sized {
    /// The properties' names in the order of the fields.
    const MEMBERS: &'static [&'static str];

    /// The struct from the properties' values, as many as there are members and in their order.
    ///
    /// # Errors
    /// Where a value is of another type.
    fn from_values(values: &[&Value]) -> Result<Self, Mismatch>;

    /// What a field holds, by its position among the members; None where there is no such field.
    fn value(&self, field: usize) -> Option<Value>;
}

/// A change of one field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldChange {
    /// The field's position among the component's members.
    pub field: usize,
    /// What changes in it.
    pub change: Change,
}

/// A component whose changes are recorded some way or other.
pub trait Synchronised {
    /// What it synchronises.
    type Of: Component;

    /// What has changed since it was last recorded. `types` are those of the members, in their order.
    fn changes(&self, types: &[DataType]) -> Vec<FieldChange>;

    /// All that has changed is recorded.
    fn recorded(&mut self);

    /// These values are recorded, by field: what differs from them is to be.
    fn resume(&mut self, recorded: Vec<Value>);
}

/// A component that is compared with what was last recorded of it.
#[derive(Clone, Debug)]
pub struct Shadowed<T> {
    /// The component, to be changed at will.
    pub now: T,
    shadow: Vec<Value>,
}

impl<T: Component> Shadowed<T> {
    /// A component as it is recorded now.
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

/// A component whose setters mark what they change.
#[derive(Clone, Debug)]
pub struct Tracked<T> {
    now: T,
    /// What the marked fields held when they were last recorded.
    marked: BTreeMap<usize, Value>,
}

impl<T: Component> Tracked<T> {
    /// A component as it is recorded now.
    #[must_use]
    pub fn new(now: T) -> Self {
        let marked = BTreeMap::new();
        Self { now, marked }
    }

    /// The component as it is.
    #[must_use]
    pub fn now(&self) -> &T {
        &self.now
    }

    /// Marks a field, and gives the component to change that one: what setters are made of.
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

/// What leads from the old values of some fields, in their order, to what they hold now.
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
