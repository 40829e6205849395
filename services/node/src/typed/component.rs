//! Components of an entity: loaded as plain structs, and saved as the changes made to them.

use std::borrow::Cow;

use annals_def::{Component, DataType, Synchronised, Value};

use crate::context::{Context, Denied};

impl Context<'_> {
    /// Loads some of this part's properties as a struct.
    ///
    /// ```
    /// # use annals_reference::*;
    /// # on_cell(|own| {
    /// /// The hit points of anything that has them, of whichever type.
    /// #[derive(Clone, Debug, PartialEq)]
    /// struct Health {
    ///     hp: i32,
    /// }
    ///
    /// impl def::Component for Health {
    ///     const MEMBERS: &'static [&'static str] = &["hp"];
    ///
    ///     fn from_values(values: &[&Value]) -> Result<Self, def::Mismatch> {
    ///         let [hp] = def::typed::members(values)?;
    ///         Ok(Self { hp: def::typed::field("hp", hp)? })
    ///     }
    ///
    ///     fn value(&self, field: usize) -> Option<Value> {
    ///         (field == 0).then(|| Value::Int(self.hp.into()))
    ///     }
    /// }
    ///
    /// assert_eq!(own.context.load::<Health>()?, Health { hp: 10 });
    /// # Ok(()) });
    /// ```
    ///
    /// # Errors
    /// As [`Context::get`], and [`Denied::Mismatch`] if a property has another type.
    pub fn load<T: Component>(&self) -> Result<T, Denied> {
        let values = self.values_of::<T>()?;
        let values: Vec<&Value> = values.iter().map(AsRef::as_ref).collect();
        T::from_values(&values).map_err(|source| Denied::Mismatch {
            member: format!("{}.{}", self.entity_type().name, T::MEMBERS.join(", ")),
            source: Box::new(source),
        })
    }

    /// Records the changes of a component: the same changes, and as small, as if they had been made one by one.
    ///
    /// ```
    /// # use annals_reference::*;
    /// # on_cell(|own| {
    /// # #[derive(Clone, Debug, PartialEq)]
    /// # struct Health { hp: i32 }
    /// # impl def::Component for Health {
    /// #     const MEMBERS: &'static [&'static str] = &["hp"];
    /// #     fn from_values(values: &[&Value]) -> Result<Self, def::Mismatch> {
    /// #         let [hp] = def::typed::members(values)?;
    /// #         Ok(Self { hp: def::typed::field("hp", hp)? })
    /// #     }
    /// #     fn value(&self, field: usize) -> Option<Value> {
    /// #         (field == 0).then(|| Value::Int(self.hp.into()))
    /// #     }
    /// # }
    /// // `Health` as in the example of `load`.
    /// let mut health = def::Shadowed::new(own.context.load::<Health>()?);
    /// health.now.hp -= 3;
    /// own.context.save(&mut health)?;
    /// assert_eq!(own.hp()?, 7);
    /// # Ok(()) });
    /// ```
    ///
    /// # Errors
    /// As [`Context::change`]. Earlier changes stay recorded then, and the component keeps track of the others.
    pub fn save<S: Synchronised>(&mut self, component: &mut S) -> Result<(), Denied> {
        let members = <S::Of as Component>::MEMBERS;
        let types = members.iter().map(|name| self.type_of_property(name));
        let types = types.collect::<Result<Vec<DataType>, Denied>>()?;
        for change in component.changes(&types) {
            let Some(name) = members.get(change.field) else {
                continue;
            };
            if let Err(denied) = self.change(name, change.change) {
                let recorded = self.values_of::<S::Of>()?.into_iter().map(Cow::into_owned).collect();
                component.resume(recorded);
                return Err(denied);
            }
        }
        component.recorded();
        Ok(())
    }

    fn values_of<T: Component>(&self) -> Result<Vec<Cow<'_, Value>>, Denied> {
        T::MEMBERS.iter().map(|name| self.get(name)).collect()
    }

    fn type_of_property(&self, name: &str) -> Result<DataType, Denied> {
        let entity_type = self.entity_type();
        let property = entity_type.property_named(name).ok_or_else(|| Denied::Unknown {
            entity_type: entity_type.name.clone(),
            what: format!("property {name}"),
        })?;
        Ok(property.data_type.clone())
    }
}
