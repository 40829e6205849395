//! Reading and changing the entity's properties.

use std::{borrow::Cow, ops::Range};

use annals_def::{Change, ChangeError, Edit, Located, Path, Property, Value};
use annals_event::{Body, latest::value::value_length};

use super::{Context, Denied, MAX_VALUE_BYTES};

impl Context<'_> {
    /// A property of this part, or the view of a ledger account as known to the part.
    ///
    /// ```
    /// # use annals_reference::*;
    /// # on_cell(|own| {
    /// assert_eq!(*own.context.get("hp")?, Value::Int(10));
    /// // The same, by generated code:
    /// assert_eq!(own.hp()?, 10);
    /// // The base part has the title:
    /// assert!(matches!(own.context.get("title"), Err(Denied::OtherPart { .. })));
    /// # Ok(()) });
    /// ```
    ///
    /// # Errors
    /// [`Denied::Unknown`] without such a property; [`Denied::OtherPart`] if the other part holds it;
    /// [`Denied::Personal`] if it is personal.
    pub fn get(&self, name: &str) -> Result<Cow<'_, Value>, Denied> {
        let property = self.property(name)?;
        self.is_open(property)?;
        if let Some(value) = self.cx.temporaries.get(self.entity, property.index) {
            return Ok(Cow::Borrowed(value));
        }
        self.image().value(property).ok_or_else(|| self.other_part(property))
    }

    /// The value of a property with which the next cell part begins, unless its creation gives another one (`cellData`,
    /// base part): the stored value, or the last one of the cell part that has ended. `None` while there is a cell
    /// part, and where the default applies.
    ///
    /// ```
    /// # use annals_reference::*;
    /// # let mut scene = Scene::new();
    /// # scene.on_base(|own| {
    /// let entity = own.context.entity();
    /// own.context.request(Request::DestroyCell { entity })?;
    /// # Ok(()) });
    /// # scene.pass(1_000);
    /// # assert!(scene.called().contains(&"cell_lost".to_owned()));
    /// // Later, after `cell_lost`:
    /// # scene.realm.until("the client controls the base part", |realm| realm.players[0].core.controls().is_some());
    /// # scene.on_base(|own| {
    /// assert_eq!(own.context.cell_data("hp")?, Some(&Value::Int(10)));
    /// # Ok(()) });
    /// ```
    ///
    /// # Errors
    /// [`Denied::Unknown`] without such a property; [`Denied::NotOfCell`] if it is not a property of the cell part;
    /// [`Denied::BaseOnly`] on a cell part; [`Denied::Personal`] if it is personal.
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
    /// ```
    /// # use annals_reference::*;
    /// # on_cell(|own| {
    /// own.context.set("hp", Value::Int(7))?;
    /// // The same, by generated code:
    /// own.set_hp(7)?;
    /// assert!(matches!(own.context.set("hp", Value::Unicode("7".into())), Err(Denied::Mismatch { .. })));
    /// # Ok(()) });
    /// ```
    ///
    /// # Errors
    /// As [`Context::change`].
    pub fn set(&mut self, name: &str, value: Value) -> Result<(), Denied> {
        self.change(name, Change::whole(value))
    }

    /// Assigns an element or field within a property. An equal value changes nothing.
    ///
    /// ```
    /// # use annals_reference::*;
    /// # on_cell(|own| {
    /// own.edit_bag().push(Item { kind: 3, count: 1 })?;
    /// // Field 1 of element 0: the count.
    /// own.context.set_at("bag", &def::Path(vec![0, 1]), Value::UInt(2))?;
    /// // The same, by generated code:
    /// own.edit_bag().at(0).set_count(2)?;
    /// # Ok(()) });
    /// ```
    ///
    /// # Errors
    /// As [`Context::change`].
    pub fn set_at(&mut self, name: &str, path: &Path, value: Value) -> Result<(), Denied> {
        self.change(name, Change::part(path.clone(), value))
    }

    /// Replaces a range of elements of the array at `path`: deletes if `values` is empty, inserts if the range is
    /// empty. Replacing elements by as many equal ones changes nothing.
    ///
    /// ```
    /// # use annals_reference::*;
    /// # on_cell(|own| {
    /// # own.set_bag(vec![Item { kind: 1, count: 1 }, Item { kind: 2, count: 1 }])?;
    /// // Removes the first element.
    /// own.context.splice("bag", &def::Path::WHOLE, 0..1, Vec::new())?;
    /// // Replaces all by none, by generated code:
    /// own.edit_bag().splice(0..1, Vec::new())?;
    /// assert!(own.bag()?.is_empty());
    /// # Ok(()) });
    /// ```
    ///
    /// # Errors
    /// As [`Context::change`]; also [`Denied::Change`] if the range ends before it starts.
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
    /// ```
    /// # use annals_reference::*;
    /// # on_cell(|own| {
    /// own.context.append("bag", &def::Path::WHOLE, Value::Dict(vec![Value::UInt(3), Value::UInt(1)]))?;
    /// // The same, by generated code:
    /// own.edit_bag().push(Item { kind: 3, count: 1 })?;
    /// assert_eq!(own.bag()?.len(), 2);
    /// # Ok(()) });
    /// ```
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
    /// is recorded as a change of the whole, so that each of its events is complete by itself. No change of a
    /// [temporary](annals_def::EntityType::is_temporary) property is recorded.
    ///
    /// ```
    /// # use annals_reference::*;
    /// # on_cell(|own| {
    /// own.context.change("hp", Change::whole(Value::Int(7)))?;
    /// assert_eq!(own.hp()?, 7);
    /// # Ok(()) });
    /// ```
    ///
    /// # Errors
    /// [`Denied::Unknown`] without such a property; [`Denied::OtherPart`] if the other part holds it;
    /// [`Denied::Account`] if it is the view of a ledger account; [`Denied::Personal`] if it is personal;
    /// [`Denied::Change`] if the path does not exist in it; [`Denied::Mismatch`] if the value does not fit;
    /// [`Denied::TooLarge`] if the property would exceed [`MAX_VALUE_BYTES`](crate::MAX_VALUE_BYTES). The property is
    /// unchanged then.
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
        if self.entity_type().is_temporary(property) {
            let (index, mut value) = (property.index, held.clone());
            change
                .make(&mut value)
                .expect("invariant: a change that was checked can be made");
            self.cx.temporaries.set(self.entity, index, value);
            return Ok(());
        }
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
        let temporary = self.cx.temporaries.get(self.entity, property.index);
        let held = temporary.or_else(|| self.image().properties.get(&property.index));
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
