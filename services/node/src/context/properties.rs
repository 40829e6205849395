//! Reading and changing the entity's properties.

use std::{borrow::Cow, ops::Range};

use annals_def::{Change, ChangeError, Edit, Located, Path, Property, Value};
use annals_event::{Body, latest::value::value_length};

use super::{Context, Denied, MAX_VALUE_BYTES};

impl Context<'_> {
    /// A property of this part, or the view of a ledger account as known to the part.
    ///
    /// # Errors
    /// If the type has none of this name, or the other part holds it.
    pub fn get(&self, name: &str) -> Result<Cow<'_, Value>, Denied> {
        let property = self.property(name)?;
        self.is_open(property)?;
        self.image().value(property).ok_or_else(|| self.other_part(property))
    }

    /// The value of a property with which the next cell part begins, unless its creation gives another one (`cellData`,
    /// base part): the stored value, or the last one of the cell part that has ended. `None` while there is a cell part,
    /// and where the default applies.
    ///
    /// # Errors
    /// If the type has none of this name, it is not a property of the cell part, or this is a cell part.
    pub fn cell_data(&self, name: &str) -> Result<Option<&Value>, Denied> {
        let property = self.property(name)?;
        self.is_open(property)?;
        let base = self.image().base().ok_or(Denied::BaseOnly { what: "cell data" })?;
        if property.distribution.on_cell() {
            Ok(base.cell_properties.get(&property.index))
        } else {
            Err(Denied::NotOfCell {
                entity_type: self.entity_type().name.clone(),
                property: property.name.clone(),
            })
        }
    }

    /// Assigns a property. An equal value changes nothing.
    ///
    /// # Errors
    /// As [`Context::change`].
    pub fn set(&mut self, name: &str, value: Value) -> Result<(), Denied> {
        self.change(name, Change::whole(value))
    }

    /// Assigns an element or field within a property. An equal value changes nothing.
    ///
    /// # Errors
    /// As [`Context::change`].
    pub fn set_at(&mut self, name: &str, path: &Path, value: Value) -> Result<(), Denied> {
        self.change(name, Change::part(path.clone(), value))
    }

    /// Replaces a range of elements of the array at `path`: deletes if `values` is empty, inserts if the range is
    /// empty. Replacing elements by as many equal ones changes nothing.
    ///
    /// # Errors
    /// As [`Context::change`]; also if the range ends before it starts.
    pub fn splice(&mut self, name: &str, path: &Path, range: Range<u32>, values: Vec<Value>) -> Result<(), Denied> {
        let Some(removed) = range.end.checked_sub(range.start) else {
            let length = match path.find(self.held(name)?) {
                Some(Value::Sequence(values)) => values.len(),
                _ => 0,
            };
            let error = ChangeError::NoSlice {
                path: path.clone(),
                at: range.start,
                end: range.end.into(),
                length,
            };
            return Err(Denied::change(self.member(name), error));
        };
        self.change(name, Change::splice(path.clone(), range.start, removed, values))
    }

    /// Appends an element to the array at `path`.
    ///
    /// # Errors
    /// As [`Context::change`].
    pub fn append(&mut self, name: &str, path: &Path, value: Value) -> Result<(), Denied> {
        let end = match path.find(self.held(name)?) {
            Some(Value::Sequence(values)) => u32::try_from(values.len()).unwrap_or(u32::MAX),
            _ => 0,
        };
        self.splice(name, path, end..end, vec![value])
    }

    /// Changes a property. A change without effect is not recorded. A change within a property that is `SendLatestOnly`
    /// is recorded as a change of the whole, so that each of its events is complete by itself.
    ///
    /// # Errors
    /// If the property is not held here or is the view of an account, the path does not exist in it, the value does not
    /// fit, or the property would exceed the maximum size; it is unchanged.
    pub fn change(&mut self, name: &str, change: Change) -> Result<(), Denied> {
        let property = self.property(name)?;
        let held = self.held(name)?;
        change
            .check(&property.data_type, held)
            .map_err(|error| Denied::change(self.member(name), error))?;
        if change.is_vain(held) {
            return Ok(());
        }
        let bytes = room_for(&change, held).map_err(|bytes| Denied::TooLarge {
            member: self.member(name),
            bytes,
        })?;
        // A receiver that gets only the newest change may lack the value that the change was applied to.
        let is_skipped = property.latest_only || !property.reliable;
        let (located, bytes) = if is_skipped && !change.is_whole() {
            let mut value = held.clone();
            change
                .make(&mut value)
                .expect("invariant: a change that was checked can be made");
            let bytes = value_length(&value);
            (Located::whole(value), bytes)
        } else {
            let located = Located::new(change, held);
            (
                located.expect("invariant: a change that was checked has its place"),
                bytes,
            )
        };
        let (index, shown) = (property.index, property.distribution.is_shown());
        self.cx.needs(bytes)?;
        let body = Body::Changed {
            member: index,
            change: located,
        };
        self.cx.record_for(self.entity, shown, body);
        Ok(())
    }

    /// The value of a property that this part holds and may change.
    pub(crate) fn held(&self, name: &str) -> Result<&Value, Denied> {
        let property = self.property(name)?;
        if let Some(account) = property.account {
            let member = self.member(name);
            return Err(Denied::Account { member, account });
        }
        self.is_open(property)?;
        let held = self.image().properties.get(&property.index);
        held.ok_or_else(|| self.other_part(property))
    }

    /// Checks that a property is not personal: read and set as it is stored.
    fn is_open(&self, property: &Property) -> Result<(), Denied> {
        match property.personal {
            None => Ok(()),
            Some(_) => Err(Denied::Personal {
                member: self.member(&property.name),
            }),
        }
    }

    pub(super) fn member(&self, name: &str) -> String {
        format!("{}.{name}", self.entity_type().name)
    }
}

/// The bytes that a change records, if the changed property stays within [`MAX_VALUE_BYTES`]; else the size it would
/// have.
fn room_for(change: &Change, held: &Value) -> Result<usize, usize> {
    let lengths = |values: &[Value]| values.iter().map(value_length).sum::<usize>();
    let (new, old) = match (&change.edit, change.path.find(held)) {
        (Edit::Set(value), Some(old)) => (value_length(value), value_length(old)),
        (Edit::Splice { at, removed, inserted }, Some(Value::Sequence(values))) => {
            let start = *at as usize;
            let old = values.get(start..start + *removed as usize).unwrap_or_default();
            (lengths(inserted), lengths(old))
        }
        _ => return Ok(0),
    };
    // A value that does not grow need not be measured as a whole.
    let whole = if change.is_whole() {
        new
    } else if new > old {
        value_length(held) - old + new
    } else {
        0
    };
    if whole.max(new) > MAX_VALUE_BYTES {
        Err(whole.max(new))
    } else {
        Ok(new)
    }
}

/// The size of a value; an `Err` with the size if it is too large.
pub(super) fn fits(value: &Value) -> Result<usize, usize> {
    let bytes = value_length(value);
    if bytes > MAX_VALUE_BYTES { Err(bytes) } else { Ok(bytes) }
}
