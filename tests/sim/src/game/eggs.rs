//! Creation on other owners: players lay eggs anywhere, and beside eggs that were created. An egg writes global data,
//! registers under one of a few keys, and breaks after a moment. Some players give their client to an egg of theirs, on
//! whichever owner that is. An egg that breaks gives its client back.

use annals_def::Value;
use annals_event::GlobalScope;
use annals_ids::{Mailbox, MemberId, Part, TypeId};
use annals_node::{
    Context, Request,
    inquiry::{Learned, NotLearned},
};

/// The type of eggs.
pub const EGG: &str = "Egg";

const TYPE: TypeId = TypeId(3);

/// The player that laid an egg.
const LAYER: MemberId = MemberId(1);

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
    <layer> <Type> MAILBOX </Type> <Flags> BASE </Flags> </layer>
  </Properties>
</root>";

/// A player lays an egg anywhere.
pub(super) fn lay(context: &mut Context<'_>) {
    if context.now().0 <= LAST_EGG {
        let laid = context.create_base_anywhere(EGG, laid_by(context), TIMEOUT, (LAID, Vec::new()));
        laid.unwrap_or_else(|denied| panic!("{denied}"));
    }
}

/// The answer to a request: sometimes another egg is laid beside the new one, or the client becomes the egg if the plan
/// has that.
pub(super) fn learned(context: &mut Context<'_>, outcome: &Result<Learned, NotLearned>, gives: bool) {
    match outcome {
        Ok(Learned::Created { mailbox }) if gives && context.roll().is_multiple_of(3) => become_egg(context, *mailbox),
        Ok(Learned::Created { mailbox }) if context.roll().is_multiple_of(2) => lay_beside(context, *mailbox),
        Ok(Learned::Created { .. }) | Err(NotLearned::Late) => {}
        other => panic!("{other:?}"),
    }
}

/// The properties of an egg that a player lays.
fn laid_by(context: &Context<'_>) -> Vec<(MemberId, Value)> {
    let layer = context.mailbox(Part::Base);
    vec![(LAYER, Value::Mailbox(Some(layer)))]
}

/// A player gives its client to an egg, if it has one. The egg may have broken by then.
fn become_egg(context: &mut Context<'_>, to: Mailbox) {
    if context.part() == Part::Base && context.client().is_some() {
        let from = context.entity();
        let _ = context.request(Request::GiveClient { from, to });
    }
}

fn lay_beside(context: &mut Context<'_>, other: Mailbox) {
    if context.now().0 <= LAST_EGG {
        let laid = context.create_base_beside(other, EGG, laid_by(context), TIMEOUT, (LAID, Vec::new()));
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

/// An egg breaks. Its client goes back to the player that laid it, if that is there.
pub(super) fn timer(context: &mut Context<'_>) {
    let entity = context.entity();
    if let (Some(_), Ok(Value::Mailbox(Some(to)))) =
        (context.client(), context.get("layer").map(std::borrow::Cow::into_owned))
    {
        let _ = context.request(Request::GiveClient { from: entity, to });
    }
    let asked = context.request(Request::Destroy { entity });
    asked.unwrap_or_else(|denied| panic!("{denied}"));
}

/// Whether the entity is an egg.
pub(super) fn is_egg(context: &Context<'_>) -> bool {
    context.entity_type().id == TYPE
}
