//! Outbound calls: requests of behaviour to services outside the realm, such as a payment provider.
//!
//! An outbound call is a call on the link from the part to [`OUTSIDE`], so it is an event in the log before it is sent,
//! is part of the state that a take-over or a hand-over carries, and is sent again until it is settled. The shell
//! performs it, possibly several times, with the same idempotency key each time. The answer is an input like any other;
//! the first one settles the call, and so does its deadline.

use annals_def::Value;
use annals_event::{Call, CallError, Link, Outcome};
use annals_ids::{Address, CallNumber, MemberId, OwnerId};

use crate::{download::DOWNLOADS, owner_context::OwnerContext};

/// The address of everything outside the realm.
pub const OUTSIDE: Address = Address::Owner(OwnerId::OUTSIDE);

/// Maximum size of a request's body, and of an answer's, bytes.
pub const MAX_OUTBOUND_BYTES: usize = 256 << 10;

/// Maximum length of a service's name, bytes.
pub const MAX_SERVICE_NAME: usize = 64;

/// Whether calls to this address are performed by the holder of the caller, instead of being sent to a receiver.
pub(crate) fn is_performed(to: Address) -> bool {
    to == OUTSIDE || to == DOWNLOADS
}

/// An outbound call, to be performed by the shell. It comes again until it is answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutboundCall {
    /// The part that calls.
    pub from: Address,
    /// Its number. Together they name the call, in all holders of the part.
    pub number: CallNumber,
    /// The service, as the realm's operators have configured it.
    pub service: String,
    pub body: Vec<u8>,
}

/// The answer to an [`OutboundCall`].
#[derive(Clone, Debug, PartialEq)]
pub struct OutboundAnswer {
    pub from: Address,
    pub number: CallNumber,
    /// See [`answered`].
    pub outcome: Outcome,
}

/// Outcome of a call that was answered: the status, and the body. A service over HTTP answers with its status code, one
/// over NATS with 200.
pub fn answered(status: u16, body: Vec<u8>) -> Outcome {
    Ok(vec![Value::Int(status.into()), Value::Bytes(body)])
}

/// Status and body of an outcome, for [`Behaviour::replied`](crate::Behaviour::replied).
///
/// ```
/// # use annals_reference::*;
/// use annals_reference::node::outbound::{answered, read_answer};
///
/// // In `replied`:
/// let outcome: Outcome = answered(200, b"paid".to_vec());
/// match read_answer(&outcome) {
///     Ok((200, body)) => assert_eq!(body, b"paid"),
///     Ok((status, _)) => panic!("the service refused with {status}"),
///     Err(CallError::NoReply) => panic!("it is not known whether the service has acted"),
///     Err(error) => panic!("{error}"),
/// }
/// ```
///
/// # Errors
/// [`CallError::NoReply`] after the deadline: whether the service has done what was asked is not known. Other errors if
/// the call cannot be made.
pub fn read_answer(outcome: &Outcome) -> Result<(u16, &[u8]), CallError> {
    let values = outcome.as_ref().map_err(Clone::clone)?;
    match values.as_slice() {
        [Value::Int(status), Value::Bytes(body)] if u16::try_from(*status).is_ok() => {
            Ok((u16::try_from(*status).unwrap_or_default(), body))
        }
        _ => Err(CallError::Internal("this is no answer to an outbound call".to_owned())),
    }
}

/// The call as it is recorded.
pub(crate) fn recorded(service: &str, body: Vec<u8>) -> Call {
    Call::Method {
        method: MemberId(0),
        args: vec![Value::Unicode(service.to_owned()), Value::Bytes(body)],
        wants_reply: true,
    }
}

/// The call that was recorded.
pub(crate) fn read(link: Link, number: CallNumber, call: Call) -> Option<OutboundCall> {
    let Call::Method { args, .. } = call else { return None };
    let [Value::Unicode(service), Value::Bytes(body)] = <[Value; 2]>::try_from(args).ok()? else {
        return None;
    };
    Some(OutboundCall {
        from: link.from,
        number,
        service,
        body,
    })
}

impl OwnerContext {
    /// Confirms the outbound calls, or the downloads, of a part that nothing waits for any more. Calls are confirmed in
    /// order, so an earlier one that is not answered keeps later ones in the state. They are not sent again.
    pub(crate) fn settle_performed(&mut self, from: Address, to: Address) {
        debug_assert!(is_performed(to));
        let Some(links) = self.state().links(from) else { return };
        let Some(sent) = links.sent.get(&to) else { return };
        let mut waiting = links.awaiting.range((to, CallNumber(0))..);
        let first = waiting.next().filter(|((waits_for, _), _)| *waits_for == to);
        let upto = first.map_or(sent.last, |((_, number), _)| CallNumber(number.0.saturating_sub(1)));
        self.confirm(Link { from, to }, upto);
    }

    /// Confirms an outbound call of a part that has ended, once all before it are confirmed: nothing waits for it, so
    /// nothing else shows which calls are answered.
    pub(crate) fn settle_outbound_of_ended(&mut self, from: Address, number: CallNumber) {
        let link = Link { from, to: OUTSIDE };
        if self.oldest_unconfirmed(link) == Some(number) {
            self.confirm(link, number);
        }
    }
}
