//! Deferred answers.

use std::marker::PhantomData;

use annals_event::{
    CallError, Link, Reader,
    latest::batch::{put_address, take_address},
    put_number,
};
use annals_ids::{CallNumber, MemberId, OwnerId};

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
    ///
    /// ```
    /// # use annals_reference::*;
    /// # let mut scene = Scene::new();
    /// # scene.on_cell(|own| {
    /// # let link = event::Link { from: own.context.mailbox(Part::Base).address(), to: own.context.mailbox(Part::Cell).address() };
    /// # let caller = &Caller { link, home: BASE, number: ids::CallNumber(1), wants_reply: true, method: None };
    /// // In a method that cannot answer at once and returns `Reply::Later`:
    /// let note = Later::<avatar::PriceReply>::new(caller).to_note();
    /// own.context.set_timer(5_000, 0, 1);
    /// # assert!(Later::<avatar::PriceReply>::from_note(&note).is_some());
    /// # Ok(()) });
    /// ```
    #[must_use]
    pub fn new(caller: &Caller) -> Self {
        Self {
            caller: *caller,
            reply: PhantomData,
        }
    }

    /// Encodes it, to be stored.
    ///
    /// ```
    /// # use annals_reference::*;
    /// # let mut scene = Scene::new();
    /// # let link = event::Link { from: Address::Base(EntityId(1)), to: Address::Base(EntityId(2)) };
    /// # let caller = &Caller { link, home: BASE, number: ids::CallNumber(1), wants_reply: true, method: None };
    /// let later = Later::<avatar::PriceReply>::new(caller);
    /// let note: Vec<u8> = later.to_note();
    /// assert_eq!(Later::from_note(&note), Some(later));
    /// ```
    #[must_use]
    pub fn to_note(&self) -> Vec<u8> {
        let Caller {
            link,
            home,
            number,
            wants_reply,
            method,
        } = self.caller;
        let mut note = vec![u8::from(wants_reply) | u8::from(method.is_some()) << 1];
        put_address(&mut note, link.from);
        put_address(&mut note, link.to);
        put_number(&mut note, home.0.into());
        put_number(&mut note, number.0);
        if let Some(method) = method {
            put_number(&mut note, method.0.into());
        }
        note
    }

    /// Decodes it; `None` if the bytes are invalid.
    ///
    /// ```
    /// # use annals_reference::*;
    /// assert_eq!(Later::<avatar::PriceReply>::from_note(b"not a note"), None);
    /// ```
    #[must_use]
    pub fn from_note(note: &[u8]) -> Option<Self> {
        let reader = &mut Reader::new(note);
        // Notes of earlier releases have no method.
        let (wants_reply, has_method) = match reader.byte("wants a reply").ok()? {
            flags @ 0..=3 => (flags & 1 != 0, flags & 2 != 0),
            _ => return None,
        };
        let from = take_address(reader).ok()?;
        let to = take_address(reader).ok()?;
        let caller = Caller {
            link: Link { from, to },
            home: OwnerId(reader.narrow("owner").ok()?),
            number: CallNumber(reader.number("call number").ok()?),
            wants_reply,
            method: match has_method {
                true => Some(MemberId(reader.narrow("method").ok()?)),
                false => None,
            },
        };
        (reader.remaining() == 0).then(|| Self::new(&caller))
    }

    /// Answers the call. The caller's `replied` is called, unless its deadline has passed; a client is shown the answer.
    ///
    /// ```
    /// # use annals_reference::*;
    /// # let mut scene = Scene::new();
    /// # let note = scene.on_cell(|own| {
    /// # let link = event::Link { from: own.context.mailbox(Part::Base).address(), to: own.context.mailbox(Part::Cell).address() };
    /// # let caller = &Caller { link, home: BASE, number: ids::CallNumber(1), wants_reply: true, method: None };
    /// # Ok(Later::<avatar::PriceReply>::new(caller).to_note()) });
    /// # scene.on_cell(move |own| {
    /// if let Some(later) = Later::<avatar::PriceReply>::from_note(&note) {
    ///     later.answer(own.context, Ok(avatar::PriceReply { gold: 30 }));
    /// }
    /// # Ok(()) });
    /// ```
    pub fn answer(self, context: &mut Context<'_>, reply: Result<R, CallError>) {
        context.answer(&self.caller, reply.map(R::into_values));
    }
}
