//! Who is to be answered, as bytes: what an entity has to remember while it waits for somebody else's answer.

use annals_event::{
    Link, Reader,
    latest::batch::{put_address, take_address},
    put_number,
};
use annals_ids::{CallNumber, OwnerId};
use annals_node::Caller;

/// A caller that waits for an answer, as a note.
pub(crate) fn of_caller(caller: &Caller) -> Vec<u8> {
    let mut note = vec![u8::from(caller.wants_reply)];
    put_address(&mut note, caller.link.from);
    put_address(&mut note, caller.link.to);
    put_number(&mut note, caller.home.0.into());
    put_number(&mut note, caller.number.0);
    note
}

/// The caller in a note.
pub(crate) fn caller(note: &[u8]) -> Option<Caller> {
    let reader = &mut Reader::new(note);
    let wants_reply = reader.byte("wants a reply").ok()? == 1;
    let link = Link {
        from: take_address(reader).ok()?,
        to: take_address(reader).ok()?,
    };
    Some(Caller {
        link,
        home: OwnerId(reader.narrow("owner").ok()?),
        number: CallNumber(reader.number("call number").ok()?),
        wants_reply,
    })
}
