//! Answers to calls of a client, as events of the called entity.
//!
//! ```text
//! reply   = called:u8 call:number exposed outcome     exposed: the id of the method, as in calls
//! outcome = 0:u8 value* | 1:u8 text | 2:u8 text | 3:u8 text | 4:u8 | 5:u8 | 6:u8 | 7:u8 text text
//! ```

use annals_def::{EntityType, MessageRange, Method};
use annals_event::{CallError, Malformed, Outcome, Reader, put_bytes, put_number};
use annals_ids::{CallNumber, Hash, MemberId, Part};

use super::{
    ClientMember,
    fields::{put_part, take_part, take_text},
    shown::{ShowError, put_values, take_value, take_with},
    value_hash,
};

/// Maximum size of each text of an error that a client is sent (bytes).
pub const MAX_CALL_ERROR_BYTES: usize = 1 << 10;

/// The answer to a client's call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// The part that was called.
    pub part: Part,
    /// The number that the client gave its call.
    pub call: CallNumber,
    /// The method, by its index among the exposed methods of the part.
    pub member: ClientMember,
    /// Values that fit the method, or the error.
    pub outcome: Outcome,
}

impl Reply {
    /// Appends the reply, for a client that knows the entity as one of this type.
    pub(super) fn write(&self, entity_type: &EntityType, out: &mut Vec<u8>) -> Result<(), ShowError> {
        let method = exposed(entity_type, self.part, self.member).ok_or_else(|| ShowError::UnknownMethod {
            entity_type: entity_type.name.clone(),
            member: self.member.0,
        })?;
        put_part(out, self.part);
        put_number(out, self.call.0);
        MessageRange::of_calls(entity_type, self.part).put(self.member.0, out);
        put_outcome(method, &self.outcome, out)
    }

    pub(super) fn read(entity_type: &EntityType, reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let part = take_part(reader)?;
        let call = CallNumber(reader.ordinal("call number")?);
        let wrong = reader.malformed("message id");
        let range = MessageRange::of_calls(entity_type, part);
        let member = take_with(reader, "message id", |bytes| {
            let (member, rest) = range.take(bytes)?;
            *bytes = rest;
            Some(ClientMember(member))
        })?;
        let method = exposed(entity_type, part, member).ok_or(wrong)?;
        Ok(Self {
            part,
            call,
            member,
            outcome: take_outcome(method, reader)?,
        })
    }
}

/// The index of a client's exposed method among the methods of its part. `None` if the type has no such method.
#[must_use]
pub fn exposed_method(entity_type: &EntityType, part: Part, member: ClientMember) -> Option<MemberId> {
    entity_type.exposed_methods_of(part).get(usize::from(member.0)).copied()
}

fn exposed(entity_type: &EntityType, part: Part, member: ClientMember) -> Option<&Method> {
    entity_type.method_of(part, exposed_method(entity_type, part, member)?)
}

/// The fingerprint of an answer as a client was shown it, for comparison with the log: of the call's number, the index of
/// the method among those of its part, and the outcome. `None` if that does not fit the method.
#[must_use]
pub fn reply_hash(method: &Method, (call, index): (CallNumber, MemberId), outcome: &Outcome) -> Option<Hash> {
    let mut bytes = Vec::new();
    put_number(&mut bytes, call.0);
    put_number(&mut bytes, index.0.into());
    put_outcome(method, outcome, &mut bytes).ok()?;
    Some(value_hash(&bytes))
}

fn put_outcome(method: &Method, outcome: &Outcome, out: &mut Vec<u8>) -> Result<(), ShowError> {
    let (tag, texts): (u8, &[&String]) = match outcome {
        Ok(values) => {
            out.push(0);
            return put_values(method, &method.returns, values, out);
        }
        Err(CallError::Authenticate(text)) => (1, &[text]),
        Err(CallError::Internal(text)) => (2, &[text]),
        Err(CallError::InvalidArgs(text)) => (3, &[text]),
        Err(CallError::NoReply) => (4, &[]),
        Err(CallError::NoSuchEntity) => (5, &[]),
        Err(CallError::NoSuchCellEntity) => (6, &[]),
        Err(CallError::Custom(name, text)) => (7, &[name, text]),
    };
    out.push(tag);
    for text in texts {
        put_bytes(out, text.as_bytes());
    }
    Ok(())
}

fn take_outcome(method: &Method, reader: &mut Reader<'_>) -> Result<Outcome, Malformed> {
    let wrong = reader.malformed("outcome");
    let text = |reader: &mut Reader<'_>| take_text(reader, MAX_CALL_ERROR_BYTES, "error");
    Ok(match reader.byte("outcome")? {
        0 => {
            let types = method.returns.iter().map(|argument| &argument.data_type);
            let values = types.map(|data_type| take_value(reader, data_type));
            Ok(values.collect::<Result<_, _>>()?)
        }
        1 => Err(CallError::Authenticate(text(reader)?)),
        2 => Err(CallError::Internal(text(reader)?)),
        3 => Err(CallError::InvalidArgs(text(reader)?)),
        4 => Err(CallError::NoReply),
        5 => Err(CallError::NoSuchEntity),
        6 => Err(CallError::NoSuchCellEntity),
        7 => Err(CallError::Custom(text(reader)?, text(reader)?)),
        _ => return Err(wrong),
    })
}
