//! Answers to calls.

use annals_def::{EntityType, Exposure, Method, Value};
use annals_event::{
    Body, Call, CallError, Outcome,
    latest::{
        call::put_outcome,
        value::{MAX_DEPTH, value_depth},
    },
};
use annals_ids::{Address, MemberId, Part, SessionId};
use annals_wire::client::MAX_CALL_ERROR_BYTES;

use super::{Denied, measure};
use crate::{behaviour::Caller, owner_context::OwnerContext, trouble::OwnerError};

impl OwnerContext {
    /// Answers a call, if its caller waits for it; sends an error in place of an answer that is too large.
    pub fn reply(&mut self, caller: &Caller, outcome: Outcome) {
        if !caller.wants_reply {
            return;
        }
        if let Some(session) = caller.client() {
            return self.reply_to_client(session, caller, outcome);
        }
        let outcome = self.recordable(outcome);
        let of = caller.number;
        let call = Call::Reply { of, outcome };
        if self.is_here(caller.link.to) {
            self.call(caller.link.to, caller.link.from, caller.home, call);
        } else {
            let owner = Address::Owner(self.owner());
            self.call(owner, caller.link.from, caller.home, call);
        }
    }

    /// An outcome that may be recorded: this one, or an error.
    fn recordable(&self, outcome: Outcome) -> Outcome {
        self.needs(size(&outcome))
            .map_err(|spent| CallError::Internal(format!("the reply is too large: {spent}")))?;
        // The log cannot be read with a value that is nested deeper.
        let is_too_deep = |values: &Vec<Value>| values.iter().any(|value| value_depth(value) > MAX_DEPTH);
        if outcome.as_ref().is_ok_and(is_too_deep) {
            let why = format!("the reply is nested deeper than {MAX_DEPTH}");
            return Err(CallError::Internal(why));
        }
        outcome
    }

    /// Answers a call of a client: an event of the called part, which is shown to that client alone. There is no answer if
    /// the part is not real here any more, or does not have such a method, as after a change of definitions.
    fn reply_to_client(&mut self, session: SessionId, caller: &Caller, outcome: Outcome) {
        let (Some(method), Some((entity, part))) = (caller.method, caller.link.to.entity()) else {
            return;
        };
        let Some(entity_type) = self.entity_type(entity).filter(|_| self.is_here(caller.link.to)) else {
            return;
        };
        let is_answering = entity_type.method_of(part, method).is_some_and(is_answering);
        let outcome = outcome.map_err(for_clients);
        let checked = check_reply(entity_type, (part, method), &outcome).and_then(|()| self.needs(size(&outcome)));
        let entity_type = entity_type.name.clone();
        let outcome = match checked {
            Ok(()) => outcome,
            Err(denied) => {
                self.report(OwnerError::Denied {
                    entity,
                    part,
                    entity_type,
                    denied,
                });
                Err(CallError::Internal(HIDDEN.to_owned()))
            }
        };
        if is_answering {
            let body = Body::Replied {
                to: session,
                number: caller.number,
                method,
                outcome,
            };
            self.record_for(entity, true, body);
        }
    }
}

/// Text of an internal error for clients: its own is for the game's programmers.
const HIDDEN: &str = "the reason is not sent to clients";

/// Bytes of an answer in the log.
fn size(outcome: &Outcome) -> usize {
    let mut bytes = Vec::new();
    put_outcome(&mut bytes, outcome);
    bytes.len()
}

/// Whether clients can call a method and are answered.
fn is_answering(method: &Method) -> bool {
    method.exposed != Exposure::No && method.is_two_way()
}

/// Checks an answer to a client against the method.
///
/// # Errors
/// When there is no such method, or the number or a type of the values does not fit, or they are too large.
pub fn check_reply(
    entity_type: &EntityType,
    (part, method): (Part, MemberId),
    outcome: &Outcome,
) -> Result<(), Denied> {
    let found = entity_type
        .method_of(part, method)
        .filter(|method| is_answering(method));
    let method = found.ok_or_else(|| Denied::Unknown {
        entity_type: entity_type.name.clone(),
        what: format!("{part} method {method} that answers clients"),
    })?;
    let Ok(values) = outcome else { return Ok(()) };
    measure(entity_type, method, &method.returns, values).map(|_| ())
}

/// An error as a client is sent it: without the text of one that is for the game's programmers, and with others cut.
fn for_clients(error: CallError) -> CallError {
    let short = |text: String| text[..text.floor_char_boundary(MAX_CALL_ERROR_BYTES)].to_owned();
    match error {
        CallError::Authenticate(text) => CallError::Authenticate(short(text)),
        CallError::Internal(_) => CallError::Internal(HIDDEN.to_owned()),
        CallError::InvalidArgs(text) => CallError::InvalidArgs(short(text)),
        CallError::Custom(name, text) => CallError::Custom(short(name), short(text)),
        CallError::NoReply | CallError::NoSuchEntity | CallError::NoSuchCellEntity => error,
    }
}
