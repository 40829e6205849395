//! Personal members: sealed when they are set, opened when they are read (rule P5).

use annals_def::{DataType, Located, Property, Value, check};
use annals_event::{
    Body, Reader,
    latest::value::{put_value, take_value},
};
use annals_personal::open;

use super::{Context, Denied, properties::fits};

impl Context<'_> {
    /// Reads a personal member of this base part; `None` if it was never set.
    ///
    /// ```
    /// # use annals_reference::*;
    /// # on_account(|own| {
    /// own.context.set_personal("email", &Value::Unicode("ann@example.org".to_owned()))?;
    /// assert_eq!(own.context.personal("email")?, Some(Value::Unicode("ann@example.org".to_owned())));
    /// # Ok(()) });
    /// ```
    ///
    /// # Errors
    /// [`Denied::Unknown`] without such a personal member; [`Denied::OtherPart`] on the cell part; [`Denied::Sealed`]
    /// if the sealed value cannot be read: its key was deleted, or was not restored.
    pub fn personal(&self, name: &str) -> Result<Option<Value>, Denied> {
        let (property, data_type) = self.personal_property(name)?;
        let Some(Value::Bytes(sealed)) = self.image().properties.get(&property.index) else {
            return Err(self.other_part(property));
        };
        if sealed.is_empty() {
            return Ok(None);
        }
        let unread = |why: String| Denied::Sealed {
            member: self.member(name),
            why,
        };
        let person = self
            .database()
            .ok_or_else(|| unread("its entity is not stored".to_owned()))?;
        let key = self.cx.key(person);
        let key = key.ok_or_else(|| unread("its entity has no personal key".to_owned()))?;
        let plain = open(key, person, sealed).map_err(|error| unread(error.to_string()))?;
        let mut reader = Reader::new(&plain);
        let value = take_value(&mut reader).and_then(|value| reader.finish("end of value").map(|()| value));
        let value = value.map_err(|error| unread(error.to_string()))?;
        check(data_type, &value).map_err(|error| unread(error.to_string()))?;
        Ok(Some(value))
    }

    /// Seals a personal member and sets it. An equal value changes nothing.
    ///
    /// ```
    /// # use annals_reference::*;
    /// # on_account(|own| {
    /// own.context.set_personal("email", &Value::Unicode("ann@example.org".to_owned()))?;
    /// // The same, by generated code:
    /// own.set_email("ann@example.org".to_owned())?;
    /// assert_eq!(own.email()?.as_deref(), Some("ann@example.org"));
    /// # Ok(()) });
    /// ```
    ///
    /// # Errors
    /// [`Denied::Unknown`] without such a personal member; [`Denied::Mismatch`] or [`Denied::TooLarge`] if the value
    /// does not fit; [`Denied::NoKey`] if the entity is not stored, or has no personal key. The member is unchanged
    /// then.
    pub fn set_personal(&mut self, name: &str, value: &Value) -> Result<(), Denied> {
        let (property, data_type) = self.personal_property(name)?;
        let (member, index) = (self.member(name), property.index);
        check(data_type, value).map_err(|source| Denied::Mismatch {
            member: member.clone(),
            source: Box::new(source),
        })?;
        if self.personal(name).is_ok_and(|held| held.as_ref() == Some(value)) {
            return Ok(());
        }
        let mut plain = Vec::new();
        put_value(&mut plain, value);
        let sealed = self.database().and_then(|person| self.cx.seal(person, &plain));
        let Some(sealed) = sealed else {
            return Err(Denied::NoKey { member });
        };
        let sealed = Value::Bytes(sealed);
        let bytes = fits(&sealed).map_err(|bytes| Denied::TooLarge { member, bytes })?;
        self.cx.needs(bytes)?;
        let body = Body::Changed {
            member: index,
            change: Located::whole(sealed),
        };
        self.cx.record_for(self.entity, false, body);
        Ok(())
    }

    fn personal_property(&self, name: &str) -> Result<(&Property, &DataType), Denied> {
        let property = self.property(name)?;
        let data_type = property.personal.as_ref();
        let data_type = data_type.ok_or_else(|| self.unknown(format!("personal member {name}")))?;
        Ok((property, data_type))
    }
}
