//! Creation on other owners: players lay eggs anywhere, and beside eggs that were created. An egg breaks after a moment.

use annals_ids::{Mailbox, TypeId};
use annals_node::{
    Context, Request,
    inquiry::{Learned, NotLearned},
};

/// The type of eggs.
pub const EGG: &str = "Egg";

const TYPE: TypeId = TypeId(3);

/// Game time after which no more eggs are laid, milliseconds.
const LAST_EGG: u64 = 30_000;

/// Timeout of a request, milliseconds.
const TIMEOUT: u64 = 4_000;

/// Continuation number of requests.
pub(super) const LAID: u32 = 5;

pub(super) const DEFINITION: &str = r"<root>
  <Properties>
    <cracks> <Type> UINT32 </Type> <Flags> BASE </Flags> </cracks>
  </Properties>
</root>";

/// A player lays an egg anywhere.
pub(super) fn lay(context: &mut Context<'_>) {
    if context.now().0 <= LAST_EGG {
        let laid = context.create_base_anywhere(EGG, Vec::new(), TIMEOUT, (LAID, Vec::new()));
        laid.unwrap_or_else(|denied| panic!("{denied}"));
    }
}

/// The answer to a request: sometimes another egg is laid beside the new one.
pub(super) fn learned(context: &mut Context<'_>, outcome: &Result<Learned, NotLearned>) {
    match outcome {
        Ok(Learned::Created { mailbox }) if context.roll().is_multiple_of(2) => lay_beside(context, *mailbox),
        Ok(Learned::Created { .. }) | Err(NotLearned::Late) => {}
        other => panic!("{other:?}"),
    }
}

fn lay_beside(context: &mut Context<'_>, other: Mailbox) {
    if context.now().0 <= LAST_EGG {
        let laid = context.create_base_beside(other, EGG, Vec::new(), TIMEOUT, (LAID, Vec::new()));
        laid.unwrap_or_else(|denied| panic!("{denied}"));
    }
}

/// An egg was created.
pub(super) fn created(context: &mut Context<'_>) {
    let length = 200 + context.roll() % 2_000;
    context.set_timer(length, 0, 0);
}

/// An egg breaks.
pub(super) fn timer(context: &mut Context<'_>) {
    let entity = context.entity();
    let asked = context.request(Request::Destroy { entity });
    asked.unwrap_or_else(|denied| panic!("{denied}"));
}

/// Whether the entity is an egg.
pub(super) fn is_egg(context: &Context<'_>) -> bool {
    context.entity_type().id == TYPE
}
