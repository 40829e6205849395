//! A service: cell parts call any of its fragments, which call the base part that they name.

use annals_def::Value;
use annals_ids::Mailbox;
use annals_node::{Answer, Context, Denied};

const COURIER: &str = "Courier";

pub(super) const DEFINITION: &str = r"<root>
  <Methods>
    <carry> <Arg> UINT32 </Arg> <Arg> MAILBOX </Arg> </carry>
  </Methods>
</root>";

pub(super) fn is_courier(context: &Context<'_>) -> bool {
    context.entity().fragment().is_some()
}

/// Sends a note by a fragment. Returns whether one is known.
pub(super) fn send(context: &mut Context<'_>, to: Mailbox, id: u32) -> bool {
    let fragment = match context.service(COURIER) {
        Ok(fragment) => fragment,
        Err(Denied::NoFragment { .. }) => return false,
        Err(denied) => panic!("{denied}"),
    };
    let args = vec![Value::UInt(u64::from(id)), Value::Mailbox(Some(to))];
    let called = context.call(fragment, "carry", args);
    called.unwrap_or_else(|denied| panic!("{denied}"));
    true
}

/// Passes a note on.
pub(super) fn carry(context: &mut Context<'_>, args: &[Value]) -> Answer {
    let [id, Value::Mailbox(Some(to))] = args else {
        panic!("a note has a number and a receiver: {args:?}")
    };
    let called = context.call(*to, "note", vec![id.clone()]);
    called.unwrap_or_else(|denied| panic!("{denied}"));
    Answer::DONE
}
