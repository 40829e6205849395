//! Conversion of messages that do not carry their full type: a call to an entity of unknown type, and an answer, which
//! does not name its method. Both are converted if every possible reading has the same result.

use annals_ids::{MemberId, TypeId};

use super::{MethodKind, Plan, Source, written_under};
use crate::{
    schema::{Argument, EntityType, Method},
    value::Value,
};

impl Plan {
    /// [`Plan::convert_call`] for an entity of unknown type; `None` if the result differs between types, or no type has
    /// such a method.
    #[must_use]
    pub fn convert_call_of_any(
        &self,
        kind: MethodKind,
        method: MemberId,
        args: &[Value],
    ) -> Option<(MemberId, Vec<Value>)> {
        let converted = self.old.types().iter().filter(|old| {
            let found = kind.methods(old).get(usize::from(method.0));
            found.is_some_and(|found| fits(old, &found.args, args))
        });
        unanimous(converted.map(|old| self.convert_call(old.id, kind, method, args).ok()))
    }

    /// Converts an answer of an entity of this type; of any type if `None`. `None` if the result differs between
    /// methods, or no method can have returned it.
    #[must_use]
    pub fn convert_answer(&self, of: Option<TypeId>, kind: MethodKind, values: &[Value]) -> Option<Vec<Value>> {
        let types = self.old.all_types().filter(|old| of.is_none_or(|of| of == old.id));
        let methods = types.flat_map(|old| kind.methods(old).iter().map(move |method| (old, method)));
        let givers = methods.filter(|(old, method)| fits(old, &method.returns, values));
        unanimous(givers.map(|(old, method)| self.answer_of(old, kind, method, values)))
    }

    fn answer_of(&self, old: &EntityType, kind: MethodKind, from: &Method, values: &[Value]) -> Option<Vec<Value>> {
        let plan = self.of_type(old.id).methods(kind).get(usize::from(from.index.0))?;
        let to = kind.methods(self.new_type(old.id)?).get(usize::from(plan.new?.0))?;
        let convert = |(source, argument): (&Source, &Argument)| match source {
            Source::Value(value) => Some(value.clone()),
            Source::Field(at, conversion) => {
                let types = (&from.returns[*at].data_type, &argument.data_type);
                conversion.apply(types, &values[*at], &self.numbers).ok()
            }
        };
        plan.returns.sources.iter().zip(&to.returns).map(convert).collect()
    }
}

/// Whether these values fit the declared arguments.
fn fits(old: &EntityType, declared: &[Argument], values: &[Value]) -> bool {
    let fits = |(argument, value): (&Argument, &Value)| {
        written_under(old, || argument.name.clone(), &argument.data_type, value).is_ok()
    };
    declared.len() == values.len() && declared.iter().zip(values).all(fits)
}

/// The common result of all, if they agree.
fn unanimous<T: PartialEq>(mut all: impl Iterator<Item = Option<T>>) -> Option<T> {
    let first = all.next()??;
    all.all(|next| next.as_ref() == Some(&first)).then_some(first)
}
