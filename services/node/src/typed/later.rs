//! Deferred answers.

use std::marker::PhantomData;

use annals_event::{
    CallError, Link, Reader,
    latest::batch::{put_address, take_address},
    put_number,
};
use annals_ids::{CallNumber, OwnerId};

use crate::{behaviour::Caller, context::Context, typed::Returned};

/// A caller that waits for an answer of type `R`. It is kept as a note, in a property or with the awaited reply on
/// which the answer depends, so that it survives the process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Later<R> {
    caller: Caller,
    reply: PhantomData<fn(R)>,
}

impl<R: Returned> Later<R> {
    /// For a call whose method answers [`Reply::Later`](crate::typed::Reply::Later).
    #[must_use]
    pub fn new(caller: &Caller) -> Self {
        Self {
            caller: *caller,
            reply: PhantomData,
        }
    }

    /// Encodes it, to be stored.
    #[must_use]
    pub fn to_note(&self) -> Vec<u8> {
        let Caller {
            link,
            home,
            number,
            wants_reply,
        } = self.caller;
        let mut note = vec![u8::from(wants_reply)];
        put_address(&mut note, link.from);
        put_address(&mut note, link.to);
        put_number(&mut note, home.0.into());
        put_number(&mut note, number.0);
        note
    }

    /// Decodes it; `None` if the bytes are invalid.
    #[must_use]
    pub fn from_note(note: &[u8]) -> Option<Self> {
        let reader = &mut Reader::new(note);
        let wants_reply = match reader.byte("wants a reply").ok()? {
            0 => false,
            1 => true,
            _ => return None,
        };
        let from = take_address(reader).ok()?;
        let to = take_address(reader).ok()?;
        let caller = Caller {
            link: Link { from, to },
            home: OwnerId(reader.narrow("owner").ok()?),
            number: CallNumber(reader.number("call number").ok()?),
            wants_reply,
        };
        (reader.remaining() == 0).then(|| Self::new(&caller))
    }

    /// Answers the call.
    pub fn answer(self, context: &mut Context<'_>, reply: Result<R, CallError>) {
        context.answer(&self.caller, reply.map(R::into_values));
    }
}
