//! Validation of calls from clients: the client's numbers and bytes in, a method and checked values out. Types are
//! checked before dispatch, exposure before user code.

use annals_def::{EntityType, Exposure, Form, MessageRange, Method, Schema, Value, decode};
use annals_ids::{MemberId, Part};
use annals_wire::client::CallRefusal;

/// Reads a client's call of an entity of `entity_type`. `part` is the called part, `own` whether it is the client's own
/// entity.
pub(crate) fn read(
    schema: &Schema,
    entity_type: &EntityType,
    (part, own): (Part, bool),
    message: &[u8],
) -> Result<(MemberId, Vec<Value>), CallRefusal> {
    let (method, args) = find(schema, entity_type, part, message).ok_or(CallRefusal::NoSuchMethod)?;
    let allowed = match method.exposed {
        Exposure::No => return Err(CallRefusal::NoSuchMethod),
        Exposure::OwnClient => own,
        // A base part is only in the view of its own client.
        Exposure::AllClients => own || part == Part::Cell,
    };
    if !allowed {
        return Err(CallRefusal::NotAllowed);
    }
    let mut rest = args;
    let values = method
        .args
        .iter()
        .map(|argument| decode(&argument.data_type, Form::Shown, &mut rest))
        .collect::<Result<Vec<Value>, _>>()
        .map_err(|_| CallRefusal::BadArguments)?;
    if rest.is_empty() {
        Ok((method.index, values))
    } else {
        Err(CallRefusal::BadArguments)
    }
}

/// The method that a client means, whether or not it may call it.
pub(crate) fn method(schema: &Schema, entity_type: &EntityType, part: Part, message: &[u8]) -> Option<MemberId> {
    find(schema, entity_type, part, message).map(|(method, _)| method.index)
}

/// The method meant by a client that knows the entity as its `client_type`, and the bytes of the arguments.
fn find<'a, 'm>(
    schema: &'a Schema,
    entity_type: &'a EntityType,
    part: Part,
    message: &'m [u8],
) -> Option<(&'a Method, &'m [u8])> {
    let seen_as = match entity_type.client_type {
        Some(other) => schema.entity_type(other)?,
        None => entity_type,
    };
    let exposed = match part {
        Part::Base => seen_as.exposed_base_methods(),
        Part::Cell => seen_as.exposed_cell_methods(),
    };
    let (member, args) = MessageRange::of_calls(seen_as, part).take(message)?;
    let index = *exposed.get(usize::from(member))?;
    let method = match part {
        Part::Base => entity_type.base_method_named(&seen_as.base_methods.get(usize::from(index.0))?.name),
        Part::Cell => entity_type.cell_method_named(&seen_as.cell_methods.get(usize::from(index.0))?.name),
    };
    Some((method?, args))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use annals_def::{Argument, DataType, Sequence, encode};
    use annals_ids::{EntityId, Mailbox, OwnerId, TypeId};

    use super::*;

    const KNOWN: TypeId = TypeId(0);
    const REAL: TypeId = TypeId(1);

    /// A type with one method of each exposure in either part, and another type under which clients know it, with the
    /// exposures reversed.
    fn schema() -> Schema {
        let exposures = [Exposure::No, Exposure::OwnClient, Exposure::AllClients];
        let methods = |exposures: &[Exposure]| {
            let method = |(name, exposed): (&&str, &Exposure)| {
                let mut method = Method::new(*name, vec![Argument::new("number", DataType::UInt8)]);
                method.exposed = *exposed;
                method
            };
            ["first", "second", "third"]
                .iter()
                .zip(exposures)
                .map(method)
                .collect::<Vec<_>>()
        };
        let [mut known, mut real] = ["Known", "Real"].map(EntityType::new);
        known.base_methods = methods(&[Exposure::AllClients; 3]);
        known.cell_methods = known.base_methods.clone();
        real.base_methods = methods(&exposures);
        real.cell_methods = real.base_methods.clone();
        real.client_type = Some(KNOWN);
        Schema::new(vec![known, real], Vec::new(), Vec::new())
    }

    /// Outcome of a call of each method of the known type, on the real one.
    fn called(part: Part, own: bool) -> [Result<u16, CallRefusal>; 3] {
        let schema = schema();
        let known = schema.entity_type(KNOWN).expect("it is defined");
        let real = schema.entity_type(REAL).expect("it is defined");
        let range = MessageRange::of_calls(known, part);
        [0, 1, 2].map(|member| {
            let mut message = Vec::new();
            range.put(member, &mut message);
            message.push(7);
            let found = read(&schema, real, (part, own), &message);
            found.map(|(method, args)| {
                assert_eq!(args, [Value::UInt(7)]);
                method.0
            })
        })
    }

    #[test]
    fn exposed_methods_do_not_depend_on_the_client_name() {
        use CallRefusal::{NoSuchMethod, NotAllowed};
        let own = [Err(NoSuchMethod), Ok(1), Ok(2)];
        assert_eq!(called(Part::Base, true), own);
        assert_eq!(called(Part::Cell, true), own);
        let others = [Err(NoSuchMethod), Err(NotAllowed), Ok(2)];
        assert_eq!(called(Part::Cell, false), others);
        let nobody = [Err(NoSuchMethod), Err(NotAllowed), Err(NotAllowed)];
        assert_eq!(
            called(Part::Base, false),
            nobody,
            "a base part is seen by its own client alone"
        );
    }

    #[test]
    fn invalid_arguments_are_rejected() {
        let schema = schema();
        let real = schema.entity_type(REAL).expect("it is defined");
        let known = schema.entity_type(KNOWN).expect("it is defined");
        let mut message = Vec::new();
        MessageRange::of_calls(known, Part::Cell).put(2, &mut message);
        for (args, expected) in [
            (&[][..], Err(CallRefusal::BadArguments)),
            (&[1, 2], Err(CallRefusal::BadArguments)),
            (&[1], Ok(MemberId(2))),
        ] {
            let message = [&message, args].concat();
            let found = read(&schema, real, (Part::Cell, true), &message);
            assert_eq!(found.map(|(method, _)| method), expected, "{args:?}");
        }
        for message in [&[][..], &[u8::MAX, 1]] {
            let found = read(&schema, real, (Part::Cell, true), message);
            assert_eq!(found, Err(CallRefusal::NoSuchMethod));
        }
    }

    #[test]
    fn mailbox_arguments_from_clients_are_rejected() {
        let mailbox = Mailbox {
            entity: EntityId(4),
            home: OwnerId(3),
            type_id: TypeId(0),
            part: Part::Base,
        };
        let list = DataType::Array(Arc::new(Sequence::of(DataType::Mailbox)));
        let args = vec![Argument::new("who", DataType::Mailbox), Argument::new("all", list)];
        let mut takes = Method::new("takes", args);
        takes.exposed = Exposure::AllClients;
        let mut entity_type = EntityType::new("Known");
        entity_type.base_methods = vec![takes];
        let schema = Schema::new(vec![entity_type], Vec::new(), Vec::new());
        let known = schema.entity_type(KNOWN).expect("it is defined");
        let called = |who: Option<Mailbox>, all: &[Option<Mailbox>]| {
            let args = [
                Value::Mailbox(who),
                Value::Sequence(all.iter().copied().map(Value::Mailbox).collect()),
            ];
            let mut message = Vec::new();
            MessageRange::of_calls(known, Part::Base).put(0, &mut message);
            for (argument, value) in known.base_methods[0].args.iter().zip(&args) {
                encode(&argument.data_type, value, Form::Whole, &mut message).expect("it fits");
            }
            read(&schema, known, (Part::Base, true), &message).map(|(_, values)| values == args)
        };
        assert_eq!(called(None, &[None, None]), Ok(true));
        assert_eq!(called(Some(mailbox), &[]), Err(CallRefusal::BadArguments));
        assert_eq!(called(None, &[None, Some(mailbox)]), Err(CallRefusal::BadArguments));
    }
}
