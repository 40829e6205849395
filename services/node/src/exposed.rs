//! What clients may call: the client's numbers and bytes in, a method and checked values out. Types before dispatch,
//! exposure before user code.

use annals_def::{EntityType, Exposure, Form, MessageRange, Method, Schema, Value, decode};
use annals_ids::{MemberId, Part};
use annals_wire::client::CallRefusal;

/// Reads a client's call of an entity of `entity_type`. `part` is the part that is called, `own` whether it is the client's
/// own entity.
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
        // A base part is in nobody's view but its own client's.
        Exposure::AllClients => own || part == Part::Cell,
    };
    if !allowed {
        return Err(CallRefusal::NotAllowed);
    }
    let mut rest = args;
    let values = method
        .args
        .iter()
        .map(|argument| decode(&argument.data_type, Form::Whole, &mut rest))
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

/// The method that a client means which knows the entity as its `client_type`, and the bytes of its arguments.
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
