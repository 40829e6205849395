//! Exactly-once calls: numbered, kept until they are confirmed, and resent (rules C2, C3, C4, C8).

use std::collections::BTreeMap;

use annals_def::{EntityType, Exposure, Form, MessageRange, Method, Value, encode};
use annals_ids::{CallNumber, EntityId, Part};
use annals_wire::client::{Call, ClientMember, MAX_UPSTREAM_FRAME};
use thiserror::Error;

use crate::event::Millis;

/// Maximum unconfirmed calls. When resent all at once, they stay below the rate at which a server warns.
pub const MAX_KEPT_CALLS: usize = 240;

/// Maximum bytes of arguments that are unconfirmed, unless a single call takes more.
pub const MAX_KEPT_BYTES: usize = 64 << 10;

/// Bytes per second of all resent calls together: half the rate at which a server warns.
const RESEND_RATE: usize = 10_240;

/// Maximum bytes of a frame around the arguments.
const CALL_OVERHEAD: usize = 32;

/// Maximum entity parts that a session can call: their numbering is kept, since a part that has ended may be followed by
/// another one of the same entity, which continues it (rule C17).
pub const MAX_LINKS: usize = 10_000;

/// Maximum calls in flight to one part.
const WINDOW: usize = 32;

/// Milliseconds until an unconfirmed call is first resent; doubled each time.
const FIRST_RESEND: u64 = 500;

/// Maximum interval between two resends, milliseconds.
const LAST_RESEND: u64 = 8_000;

/// Why a call was not made.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CallError {
    /// The client has ended, or no session was opened yet.
    #[error("there is no session; wait for Event::Connected")]
    NoSession,
    /// The entity is not in view, so its type is not known.
    #[error("entity {0} is not in view")]
    NotInView(EntityId),
    /// Its type has no exposed method of this name.
    #[error("{entity_type} has no exposed {part} method {method}")]
    NoSuchMethod {
        /// The entity's type.
        entity_type: String,
        /// The part that was to be called.
        part: Part,
        /// The name given.
        method: String,
    },
    /// Too few arguments, or too many.
    #[error("{method} takes {wanted} arguments, {given} were given")]
    ArgumentCount {
        method: String,
        /// How many it takes.
        wanted: usize,
        /// How many were given.
        given: usize,
    },
    /// An argument is not of its type.
    #[error("argument {argument} of {method} does not fit")]
    Argument {
        method: String,
        /// The argument's name.
        argument: String,
        /// The cause.
        source: Box<annals_def::EncodeError>,
    },
    /// The arguments take too many bytes for one frame.
    #[error("the arguments of {method} take {bytes} bytes, more than fit a frame")]
    TooLong {
        method: String,
        /// The number of bytes.
        bytes: usize,
    },
    /// Too many calls are unconfirmed.
    #[error("{MAX_KEPT_CALLS} calls or {MAX_KEPT_BYTES} bytes of calls are unconfirmed; wait for confirmations")]
    TooManyKept,
    /// Too many different entities were called.
    #[error("{MAX_LINKS} entity parts were called in this session; log in again")]
    TooManyLinks,
}

/// The sending ends of a session's call links.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    links: BTreeMap<(Part, EntityId), Link>,
    kept: usize,
    bytes: usize,
    resent: u64,
}

/// The sending end of one call link.
#[derive(Debug, Default)]
struct Link {
    /// The highest number used.
    last: CallNumber,
    /// The highest number that was sent on this connection.
    sent: CallNumber,
    /// Unconfirmed calls.
    kept: BTreeMap<CallNumber, KeptCall>,
    /// When the calls in flight are resent; meaningful only while there are any.
    due: Millis,
    /// Milliseconds until the resend after that.
    wait: u64,
    /// The last gap that was answered, and until when it is not answered again: every call behind a gap causes a
    /// request.
    answered: (CallNumber, Millis),
}

#[derive(Debug)]
struct KeptCall {
    message: Vec<u8>,
}

impl Calls {
    /// Numbers and keeps a call. [`Calls::sendable`] returns it once it may be sent.
    pub(crate) fn make(&mut self, entity: EntityId, part: Part, message: Vec<u8>) -> Result<CallNumber, CallError> {
        let bytes = message.len() + CALL_OVERHEAD;
        if self.kept >= MAX_KEPT_CALLS || (self.kept > 0 && self.bytes + bytes > MAX_KEPT_BYTES) {
            return Err(CallError::TooManyKept);
        }
        if self.links.len() >= MAX_LINKS && !self.links.contains_key(&(part, entity)) {
            return Err(CallError::TooManyLinks);
        }
        let link = self.links.entry((part, entity)).or_default();
        link.last = link.last.next();
        link.kept.insert(link.last, KeptCall { message });
        self.kept += 1;
        self.bytes += bytes;
        Ok(link.last)
    }

    /// The calls to a part that may be sent now and were not yet sent on this connection.
    pub(crate) fn sendable(&mut self, now: Millis, entity: EntityId, part: Part) -> Vec<Call> {
        let pace = self.pace();
        self.links
            .get_mut(&(part, entity))
            .map(|link| link.sendable(now, pace, entity, part))
            .unwrap_or_default()
    }

    /// The calls to send on a new connection: of each part the unconfirmed ones, from the oldest.
    pub(crate) fn reconnected(&mut self, now: Millis) -> Vec<Call> {
        let pace = self.pace();
        let mut calls = Vec::new();
        for (&(part, entity), link) in &mut self.links {
            let highest_before = link.sent;
            link.sent = link.confirmed();
            link.wait = FIRST_RESEND;
            let again = link.sendable(now, pace, entity, part);
            self.resent += again.iter().filter(|call| call.number <= highest_before).count() as u64;
            calls.extend(again);
        }
        calls
    }

    /// Confirms calls up to this number. A number above the last used one confirms that one only.
    pub(crate) fn took(&mut self, now: Millis, entity: EntityId, part: Part, upto: CallNumber) {
        let pace = self.pace();
        let Some(link) = self.links.get_mut(&(part, entity)) else {
            return;
        };
        let mut taken = 0;
        while let Some(first) = link.kept.first_entry().filter(|first| *first.key() <= upto) {
            let kept = first.remove();
            taken += 1;
            self.kept -= 1;
            self.bytes -= kept.bytes();
        }
        if taken > 0 {
            link.sent = link.sent.max(link.confirmed());
            link.wait = FIRST_RESEND;
            link.due = now.after(link.wait.max(pace));
        }
    }

    /// Answers a part that asks for the calls after this number.
    pub(crate) fn gap(&mut self, now: Millis, entity: EntityId, part: Part, have: CallNumber) -> Vec<Call> {
        self.took(now, entity, part, have);
        let pace = self.pace();
        let Some(link) = self.links.get_mut(&(part, entity)) else {
            return Vec::new();
        };
        let (answered, until) = link.answered;
        if answered == have && now < until {
            return Vec::new();
        }
        link.due = now.after(link.wait.max(pace));
        link.answered = (have, link.due);
        let again = link.under_way(entity, part);
        self.resent += again.len() as u64;
        again
    }

    /// The part does not exist at the moment: returns the unconfirmed calls and forgets them. Numbers continue.
    pub(crate) fn gone(&mut self, entity: EntityId, part: Part) -> Vec<CallNumber> {
        let Some(link) = self.links.get_mut(&(part, entity)) else {
            return Vec::new();
        };
        let kept = std::mem::take(&mut link.kept);
        self.kept -= kept.len();
        self.bytes -= kept.values().map(KeptCall::bytes).sum::<usize>();
        kept.into_keys().collect()
    }

    /// The calls that have been in flight for too long without being confirmed.
    pub(crate) fn due(&mut self, now: Millis) -> Vec<Call> {
        let pace = self.pace();
        let mut calls = Vec::new();
        for (&(part, entity), link) in &mut self.links {
            let again = link.under_way(entity, part);
            if !again.is_empty() && link.due <= now {
                link.wait = (link.wait * 2).min(LAST_RESEND);
                link.due = now.after(link.wait.max(pace));
                self.resent += again.len() as u64;
                calls.extend(again);
            }
        }
        calls
    }

    /// When [`Calls::due`] next has calls.
    pub(crate) fn deadline(&self) -> Option<Millis> {
        self.links
            .values()
            .filter(|link| link.is_under_way())
            .map(|link| link.due)
            .min()
    }

    /// Number of unconfirmed calls.
    pub(crate) fn kept(&self) -> usize {
        self.kept
    }

    /// Number of resent calls.
    pub(crate) fn resent(&self) -> u64 {
        self.resent
    }

    /// Minimum milliseconds between two resends of all kept calls.
    fn pace(&self) -> u64 {
        (self.bytes * 1_000 / RESEND_RATE) as u64
    }
}

impl Link {
    /// The highest number that need not be sent any more.
    fn confirmed(&self) -> CallNumber {
        self.kept
            .first_key_value()
            .map_or(self.last, |(first, _)| CallNumber(first.0 - 1))
    }

    fn is_under_way(&self) -> bool {
        self.kept
            .first_key_value()
            .is_some_and(|(first, _)| *first <= self.sent)
    }

    fn under_way(&self, entity: EntityId, part: Part) -> Vec<Call> {
        self.kept
            .range(..=self.sent)
            .map(|(&number, kept)| self.message(entity, part, number, kept))
            .collect()
    }

    fn sendable(&mut self, now: Millis, pace: u64, entity: EntityId, part: Part) -> Vec<Call> {
        if !self.is_under_way() {
            self.wait = FIRST_RESEND;
            self.due = now.after(self.wait.max(pace));
        }
        let end = CallNumber(self.confirmed().0 + WINDOW as u64);
        let from = self.sent.next();
        if from > end {
            return Vec::new();
        }
        let calls: Vec<Call> = self
            .kept
            .range(from..=end)
            .map(|(&number, kept)| self.message(entity, part, number, kept))
            .collect();
        self.sent = calls.last().map_or(self.sent, |call| call.number);
        calls
    }

    fn message(&self, entity: EntityId, part: Part, number: CallNumber, call: &KeptCall) -> Call {
        Call {
            entity,
            part,
            number,
            is_oldest: number == self.confirmed().next(),
            message: call.message.clone(),
        }
    }
}

impl KeptCall {
    fn bytes(&self) -> usize {
        self.message.len() + CALL_OVERHEAD
    }
}

/// The exposed method of this name and its client number.
pub(crate) fn exposed_method<'a>(
    entity_type: &'a EntityType,
    part: Part,
    name: &str,
) -> Result<(&'a Method, ClientMember), CallError> {
    let method = match part {
        Part::Base => entity_type.base_method_named(name),
        Part::Cell => entity_type.cell_method_named(name),
    };
    method
        .filter(|method| method.exposed != Exposure::No)
        .and_then(|method| Some((method, ClientMember(method.client_id?))))
        .ok_or_else(|| CallError::NoSuchMethod {
            entity_type: entity_type.name.clone(),
            part,
            method: name.to_owned(),
        })
}

/// The message that calls the exposed method with this number.
pub(crate) fn encode_call(
    range: MessageRange,
    (method, member): (&Method, ClientMember),
    args: &[Value],
) -> Result<Vec<u8>, CallError> {
    if args.len() != method.args.len() {
        return Err(CallError::ArgumentCount {
            method: method.name.clone(),
            wanted: method.args.len(),
            given: args.len(),
        });
    }
    let mut bytes = Vec::new();
    range.put(member.0, &mut bytes);
    for (arg, value) in method.args.iter().zip(args) {
        encode(&arg.data_type, value, Form::Shown, &mut bytes).map_err(|source| CallError::Argument {
            method: method.name.clone(),
            argument: arg.name.clone(),
            source: Box::new(source),
        })?;
    }
    if bytes.len() > MAX_UPSTREAM_FRAME - CALL_OVERHEAD {
        return Err(CallError::TooLong {
            method: method.name.clone(),
            bytes: bytes.len(),
        });
    }
    Ok(bytes)
}
