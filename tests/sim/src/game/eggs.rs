//! Creation on other owners: players lay eggs anywhere, and beside eggs that were created. An egg writes global data,
//! registers under one of a few keys, and breaks after a moment.

use annals_def::Value;
use annals_event::GlobalScope;
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

/// Continuation number of registrations.
pub(super) const NESTED: u32 = 6;

/// Keys under which eggs register.
const NESTS: [&str; 2] = ["nest", "other nest"];

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
    let number = context.entity().0;
    for (scope, key) in [
        (GlobalScope::Realm, "newest egg"),
        (GlobalScope::Bases, "newest egg of bases"),
    ] {
        let written = context.set_global(scope, key, Value::UInt(number));
        written.unwrap_or_else(|denied| panic!("{denied}"));
    }
    let nest = NESTS[usize::try_from(number % 2).expect("a bit")];
    let asked = context.register_globally(nest, TIMEOUT, (NESTED, Vec::new()));
    asked.unwrap_or_else(|denied| panic!("{denied}"));
    if number.is_multiple_of(5) {
        // Before there is an answer.
        leave(context, nest);
    }
}

/// The answer to a registration. An egg that got its nest finds itself there, and sometimes leaves it.
pub(super) fn nested(context: &mut Context<'_>, outcome: &Result<Learned, NotLearned>) {
    match outcome {
        Ok(Learned::Registered { key }) => {
            let holder = context.global_base(key).map(|holder| holder.entity);
            let left_before = context.entity().0.is_multiple_of(5);
            assert!(
                left_before || holder == Some(context.entity()),
                "{key} is held by {holder:?}"
            );
            if context.roll().is_multiple_of(3) {
                leave(context, key);
            }
        }
        Err(NotLearned::Taken(by)) => assert_ne!(by.entity, context.entity()),
        Err(NotLearned::Late | NotLearned::Refused(_)) => {}
        other => panic!("{other:?}"),
    }
}

fn leave(context: &mut Context<'_>, nest: &str) {
    let left = context.deregister_globally(nest);
    left.unwrap_or_else(|denied| panic!("{denied}"));
}

/// A player writes data that all owners have, and data of cells.
pub(super) fn write_cell_data(context: &mut Context<'_>, number: u32) {
    for (scope, key) in [(GlobalScope::Realm, "newest stash"), (GlobalScope::Cells, "stash")] {
        let written = context.set_global(scope, key, Value::UInt(u64::from(number)));
        written.unwrap_or_else(|denied| panic!("{denied}"));
    }
    if number.is_multiple_of(5) {
        let removed = context.remove_global(GlobalScope::Cells, "stash");
        removed.unwrap_or_else(|denied| panic!("{denied}"));
    }
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
