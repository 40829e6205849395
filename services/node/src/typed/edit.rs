//! Changes within a property: of a field, an element, or a slice of an array. Each records the smallest possible
//! change.

use std::{marker::PhantomData, ops::Range};

use annals_def::{
    Path, Value,
    typed::{Bytes, Dict, Exactly, Opaque, Typed, UdoRef, Vector2, Vector3, Vector4},
};
use annals_ids::Mailbox;

use crate::context::{Context, Denied};

/// A type whose parts can be changed in place, or whose values are replaced as a whole.
pub trait Editable: Typed {
    /// Its editor.
    type Edit<'e, 'd>: From<Spot<'e, 'd>>
    where
        'd: 'e;
}

/// A position in a property.
pub struct Spot<'e, 'd> {
    context: &'e mut Context<'d>,
    member: &'static str,
    path: Path,
}

impl<'e, 'd> Spot<'e, 'd> {
    /// The whole property.
    ///
    /// ```
    /// # use annals_reference::*;
    /// # on_cell(|own| {
    /// let mut spot = node::typed::Spot::new(own.context, "bag");
    /// spot.write(vec![Item { kind: 1, count: 2 }])?;
    /// assert_eq!(spot.part(0).part(1).read::<u8>()?, 2);
    /// # Ok(()) });
    /// ```
    pub fn new(context: &'e mut Context<'d>, member: &'static str) -> Self {
        Self {
            context,
            member,
            path: Path::WHOLE,
        }
    }

    /// The element or field at this index.
    ///
    /// ```
    /// # use annals_reference::*;
    /// # on_cell(|own| {
    /// own.edit_bag().push(Item { kind: 1, count: 2 })?;
    /// let mut bag = node::typed::Spot::new(own.context, "bag");
    /// // Element 0, field 1.
    /// bag.part(0).part(1).write(3_u8)?;
    /// # Ok(()) });
    /// ```
    pub fn part(&mut self, index: usize) -> Spot<'_, 'd> {
        let mut path = self.path.clone();
        // No sequence is that long, so the path does not exist.
        path.0.push(u32::try_from(index).unwrap_or(u32::MAX));
        Spot {
            context: self.context,
            member: self.member,
            path,
        }
    }

    /// Reads the value.
    ///
    /// ```
    /// # use annals_reference::*;
    /// # on_cell(|own| {
    /// let hp: i32 = node::typed::Spot::new(own.context, "hp").read()?;
    /// assert_eq!(hp, 10);
    /// # Ok(()) });
    /// ```
    ///
    /// # Errors
    /// [`Denied::Unknown`] if there is no such position; [`Denied::Mismatch`] if the value has another type.
    pub fn read<T: Typed>(&self) -> Result<T, Denied> {
        T::from_value(self.value()?).map_err(|source| Denied::Mismatch {
            member: self.name(),
            source: Box::new(source),
        })
    }

    /// Writes a value. An equal one changes nothing.
    ///
    /// ```
    /// # use annals_reference::*;
    /// # on_cell(|own| {
    /// node::typed::Spot::new(own.context, "hp").write(7_i32)?;
    /// assert_eq!(own.hp()?, 7);
    /// # Ok(()) });
    /// ```
    ///
    /// # Errors
    /// As [`Context::set_at`].
    pub fn write<T: Typed>(&mut self, value: T) -> Result<(), Denied> {
        self.context.set_at(self.member, &self.path, value.into_value())
    }

    fn value(&self) -> Result<&Value, Denied> {
        let held = self.context.held(self.member)?;
        self.path.find(held).ok_or_else(|| Denied::Unknown {
            entity_type: self.context.entity_type().name.clone(),
            what: format!("{} at {} now", self.member, self.path),
        })
    }

    fn name(&self) -> String {
        format!("{}.{} at {}", self.context.entity_type().name, self.member, self.path)
    }

    fn elements(&self) -> Result<&[Value], Denied> {
        match self.value()? {
            Value::Sequence(values) => Ok(values),
            _ => Err(Denied::Unknown {
                entity_type: self.context.entity_type().name.clone(),
                what: format!("elements of {} at {}", self.member, self.path),
            }),
        }
    }
}

/// Editor of a value without parts.
pub struct ValueEdit<'e, 'd, T> {
    spot: Spot<'e, 'd>,
    value: PhantomData<fn(T)>,
}

impl<'e, 'd, T> From<Spot<'e, 'd>> for ValueEdit<'e, 'd, T> {
    fn from(spot: Spot<'e, 'd>) -> Self {
        let value = PhantomData;
        Self { spot, value }
    }
}

impl<T: Typed> ValueEdit<'_, '_, T> {
    /// Reads the value.
    ///
    /// ```
    /// # use annals_reference::*;
    /// # on_cell(|own| {
    /// let mut hp: node::typed::ValueEdit<'_, '_, i32> = node::typed::Spot::new(own.context, "hp").into();
    /// hp.set(7)?;
    /// assert_eq!(hp.get()?, 7);
    /// # Ok(()) });
    /// ```
    ///
    /// # Errors
    /// [`Denied::Unknown`] if the position no longer exists.
    pub fn get(&self) -> Result<T, Denied> {
        self.spot.read()
    }

    /// Writes a value. An equal one changes nothing.
    ///
    /// ```
    /// # use annals_reference::*;
    /// # on_cell(|own| {
    /// let mut hp: node::typed::ValueEdit<'_, '_, i32> = node::typed::Spot::new(own.context, "hp").into();
    /// hp.set(7)?;
    /// # Ok(()) });
    /// ```
    ///
    /// # Errors
    /// As [`Context::set_at`].
    pub fn set(&mut self, value: T) -> Result<(), Denied> {
        self.spot.write(value)
    }
}

/// Editor of an array: of its elements, and of its length unless that is declared.
pub struct ArrayEdit<'e, 'd, T> {
    spot: Spot<'e, 'd>,
    element: PhantomData<fn(T)>,
}

impl<'e, 'd, T> From<Spot<'e, 'd>> for ArrayEdit<'e, 'd, T> {
    fn from(spot: Spot<'e, 'd>) -> Self {
        Self {
            spot,
            element: PhantomData,
        }
    }
}

impl<'d, T: Editable> ArrayEdit<'_, 'd, T> {
    /// Number of elements.
    ///
    /// ```
    /// # use annals_reference::*;
    /// # on_cell(|own| {
    /// assert_eq!(own.edit_bag().len()?, 0);
    /// # Ok(()) });
    /// ```
    ///
    /// # Errors
    /// [`Denied::Unknown`] if the array no longer exists.
    pub fn len(&self) -> Result<usize, Denied> {
        Ok(self.spot.elements()?.len())
    }

    /// Whether it has no elements.
    ///
    /// ```
    /// # use annals_reference::*;
    /// # on_cell(|own| {
    /// assert!(own.edit_bag().is_empty()?);
    /// # Ok(()) });
    /// ```
    ///
    /// # Errors
    /// [`Denied::Unknown`] if the array no longer exists.
    pub fn is_empty(&self) -> Result<bool, Denied> {
        Ok(self.len()? == 0)
    }

    /// The element at this index.
    ///
    /// ```
    /// # use annals_reference::*;
    /// # on_cell(|own| {
    /// own.edit_bag().push(Item { kind: 3, count: 1 })?;
    /// assert_eq!(own.edit_bag().get(0)?.kind, 3);
    /// # Ok(()) });
    /// ```
    ///
    /// # Errors
    /// [`Denied::Unknown`] when there is none.
    pub fn get(&mut self, index: usize) -> Result<T, Denied> {
        self.spot.part(index).read()
    }

    /// Replaces the element at this index.
    ///
    /// ```
    /// # use annals_reference::*;
    /// # on_cell(|own| {
    /// own.edit_bag().push(Item { kind: 3, count: 1 })?;
    /// own.edit_bag().set(0, Item { kind: 3, count: 2 })?;
    /// # Ok(()) });
    /// ```
    ///
    /// # Errors
    /// [`Denied::Change`] when there is none; [`Denied::Mismatch`] if the new one does not fit.
    pub fn set(&mut self, index: usize, element: T) -> Result<(), Denied> {
        self.spot.part(index).write(element)
    }

    /// Editor of the element at this index.
    ///
    /// ```
    /// # use annals_reference::*;
    /// # on_cell(|own| {
    /// own.edit_bag().push(Item { kind: 3, count: 1 })?;
    /// // Only the count is recorded and sent.
    /// own.edit_bag().at(0).set_count(2)?;
    /// # Ok(()) });
    /// ```
    pub fn at(&mut self, index: usize) -> T::Edit<'_, 'd> {
        self.spot.part(index).into()
    }

    /// Appends an element.
    ///
    /// ```
    /// # use annals_reference::*;
    /// # on_cell(|own| {
    /// own.edit_bag().push(Item { kind: 3, count: 1 })?;
    /// assert_eq!(own.bag()?.len(), 1);
    /// # Ok(()) });
    /// ```
    ///
    /// # Errors
    /// [`Denied::Change`] when the array's length is declared; [`Denied::Mismatch`] if the element does not fit;
    /// [`Denied::TooLarge`] if the property would become too large.
    pub fn push(&mut self, element: T) -> Result<(), Denied> {
        let end = self.len()?;
        self.splice(end..end, vec![element])
    }

    /// Inserts an element before the one at this index.
    ///
    /// ```
    /// # use annals_reference::*;
    /// # on_cell(|own| {
    /// own.edit_bag().insert(0, Item { kind: 3, count: 1 })?;
    /// assert!(matches!(own.edit_bag().insert(9, Item { kind: 4, count: 1 }), Err(Denied::Change { .. })));
    /// # Ok(()) });
    /// ```
    ///
    /// # Errors
    /// [`Denied::Change`] if there are fewer elements, or the array's length is declared; else as [`push`](Self::push).
    pub fn insert(&mut self, index: usize, element: T) -> Result<(), Denied> {
        self.splice(index..index, vec![element])
    }

    /// Removes the element at this index.
    ///
    /// ```
    /// # use annals_reference::*;
    /// # on_cell(|own| {
    /// own.edit_bag().push(Item { kind: 3, count: 1 })?;
    /// own.edit_bag().remove(0)?;
    /// # Ok(()) });
    /// ```
    ///
    /// # Errors
    /// [`Denied::Change`] if there is none, or the array's length is declared.
    pub fn remove(&mut self, index: usize) -> Result<(), Denied> {
        self.splice(index..index.saturating_add(1), Vec::new())
    }

    /// Removes all elements.
    ///
    /// ```
    /// # use annals_reference::*;
    /// # on_cell(|own| {
    /// own.edit_bag().push(Item { kind: 3, count: 1 })?;
    /// own.edit_bag().clear()?;
    /// assert!(own.bag()?.is_empty());
    /// # Ok(()) });
    /// ```
    ///
    /// # Errors
    /// [`Denied::Change`] if the array's length is declared.
    pub fn clear(&mut self) -> Result<(), Denied> {
        let end = self.len()?;
        self.splice(0..end, Vec::new())
    }

    /// Replaces a slice by other elements.
    ///
    /// ```
    /// # use annals_reference::*;
    /// # on_cell(|own| {
    /// own.set_bag(vec![Item { kind: 1, count: 1 }, Item { kind: 2, count: 1 }])?;
    /// own.edit_bag().splice(0..1, vec![Item { kind: 3, count: 1 }])?;
    /// assert_eq!(own.bag()?[0].kind, 3);
    /// # Ok(()) });
    /// ```
    ///
    /// # Errors
    /// [`Denied::Change`] if there is no such slice, or the array's length is declared and would change; else as
    /// [`push`](Self::push).
    pub fn splice(&mut self, slice: Range<usize>, elements: Vec<T>) -> Result<(), Denied> {
        // No array is that long, so there is no such slice.
        let end = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        let values = elements.into_iter().map(T::into_value).collect();
        let Spot { context, member, path } = &mut self.spot;
        context.splice(member, path, end(slice.start)..end(slice.end), values)
    }
}

impl<T: Editable> Editable for Vec<T> {
    type Edit<'e, 'd>
        = ArrayEdit<'e, 'd, T>
    where
        'd: 'e;
}

impl<T: Editable, const N: usize> Editable for [T; N] {
    type Edit<'e, 'd>
        = ArrayEdit<'e, 'd, T>
    where
        'd: 'e;
}

impl<T: Editable, const N: usize> Editable for Exactly<T, N> {
    type Edit<'e, 'd>
        = ArrayEdit<'e, 'd, T>
    where
        'd: 'e;
}

/// A dictionary that is None can only be replaced as a whole.
impl<T: Dict + Editable> Editable for Option<T> {
    type Edit<'e, 'd>
        = T::Edit<'e, 'd>
    where
        'd: 'e;
}

impl Editable for i8 {
    type Edit<'e, 'd>
        = ValueEdit<'e, 'd, Self>
    where
        'd: 'e;
}

impl Editable for i16 {
    type Edit<'e, 'd>
        = ValueEdit<'e, 'd, Self>
    where
        'd: 'e;
}

impl Editable for i32 {
    type Edit<'e, 'd>
        = ValueEdit<'e, 'd, Self>
    where
        'd: 'e;
}

impl Editable for i64 {
    type Edit<'e, 'd>
        = ValueEdit<'e, 'd, Self>
    where
        'd: 'e;
}

impl Editable for u8 {
    type Edit<'e, 'd>
        = ValueEdit<'e, 'd, Self>
    where
        'd: 'e;
}

impl Editable for u16 {
    type Edit<'e, 'd>
        = ValueEdit<'e, 'd, Self>
    where
        'd: 'e;
}

impl Editable for u32 {
    type Edit<'e, 'd>
        = ValueEdit<'e, 'd, Self>
    where
        'd: 'e;
}

impl Editable for u64 {
    type Edit<'e, 'd>
        = ValueEdit<'e, 'd, Self>
    where
        'd: 'e;
}

impl Editable for f32 {
    type Edit<'e, 'd>
        = ValueEdit<'e, 'd, Self>
    where
        'd: 'e;
}

impl Editable for f64 {
    type Edit<'e, 'd>
        = ValueEdit<'e, 'd, Self>
    where
        'd: 'e;
}

impl Editable for String {
    type Edit<'e, 'd>
        = ValueEdit<'e, 'd, Self>
    where
        'd: 'e;
}

impl Editable for Bytes {
    type Edit<'e, 'd>
        = ValueEdit<'e, 'd, Self>
    where
        'd: 'e;
}

impl Editable for Opaque {
    type Edit<'e, 'd>
        = ValueEdit<'e, 'd, Self>
    where
        'd: 'e;
}

impl Editable for Vector2 {
    type Edit<'e, 'd>
        = ValueEdit<'e, 'd, Self>
    where
        'd: 'e;
}

impl Editable for Vector3 {
    type Edit<'e, 'd>
        = ValueEdit<'e, 'd, Self>
    where
        'd: 'e;
}

impl Editable for Vector4 {
    type Edit<'e, 'd>
        = ValueEdit<'e, 'd, Self>
    where
        'd: 'e;
}

impl Editable for Option<Mailbox> {
    type Edit<'e, 'd>
        = ValueEdit<'e, 'd, Self>
    where
        'd: 'e;
}

impl Editable for UdoRef {
    type Edit<'e, 'd>
        = ValueEdit<'e, 'd, Self>
    where
        'd: 'e;
}
