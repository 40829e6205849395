//! Creatures without base part and client: they wander by themselves, are visible farther than players, and send their
//! movements reliably.

use annals_def::Value;
use annals_event::{Driver, Place};
use annals_ids::{Position, TimerId, TypeId};
use annals_node::{Context, Denied};

use super::EXTENT;

/// The type of beasts.
pub const BEAST: &str = "Beast";

const TYPE: TypeId = TypeId(2);

/// Time between two steps, milliseconds of game time, and length of a step, metres.
const PAUSE: u64 = 700;
const STEP: u64 = 9;

/// Distance within which growls of beasts reach players, metres.
const REACH: f32 = 20.0;

pub(super) const DEFINITION: &str = r"<root>
  <AppealRadius> 15 </AppealRadius>
  <Properties>
    <rage> <Type> UINT32 </Type> <Flags> ALL_CLIENTS </Flags> </rage>
    <scent> <Type> UINT32 </Type> <Flags> CELL_PUBLIC </Flags> </scent>
    <hunger> <Type> UINT32 </Type> <Flags> CELL_PRIVATE </Flags> </hunger>
  </Properties>
  <ClientMethods> <onGrowl> <Arg> UINT32 </Arg> </onGrowl> </ClientMethods>
</root>";

/// Creates beasts around a player.
pub(super) fn gather(context: &mut Context<'_>, count: u64) {
    let Some(place) = context.place() else { return };
    for _ in 0..count {
        let mut around = |at: f32| at + (context.roll() % 60) as f32 - 30.0;
        let position = Position {
            x: around(place.position.x),
            y: 0.0,
            z: around(place.position.z),
        };
        let place = Place { position, ..place };
        let made = context.create_cell_only(TYPE, place, Vec::new());
        made.unwrap_or_else(|denied| panic!("{denied}"));
    }
}

/// Sends the own client alone a growl of a beast nearby, real on this cell or a ghost.
pub(super) fn growl(context: &mut Context<'_>) {
    let near = match context.entities_in_range(REACH, Some(BEAST)) {
        Ok(found) => found.first().copied(),
        // The range is not covered, or the map is not known.
        Err(Denied::Beyond { .. } | Denied::NoMap) => None,
        Err(denied) => panic!("{denied}"),
    };
    if let Some(beast) = near {
        let invoked = context.invoke_in_view(beast, "onGrowl", vec![Value::UInt(0)]);
        invoked.unwrap_or_else(|denied| panic!("{denied}"));
    }
}

/// Lets the client of a player nearby drive the own beast; without one, only the beast moves itself.
fn choose_driver(context: &mut Context<'_>) {
    let near = match context.entities_in_range(REACH, Some(super::AVATAR)) {
        Ok(found) => found.first().copied(),
        Err(Denied::Beyond { .. } | Denied::NoMap) => None,
        Err(denied) => panic!("{denied}"),
    };
    let set = context.set_driver(near.map_or(Driver::Server, Driver::ClientOf));
    set.unwrap_or_else(|denied| panic!("{denied}"));
}

/// Whether the entity is a beast.
pub(super) fn is_beast(context: &Context<'_>) -> bool {
    context.entity_type().id == TYPE
}

/// Starts the timer of a new beast.
pub(super) fn created(context: &mut Context<'_>) {
    context.set_timer(PAUSE, PAUSE, 0);
}

/// Moves a step, and changes a visible property.
pub(super) fn wander(context: &mut Context<'_>, timer: TimerId, last: u64) {
    if context.now().0 > last {
        return context.cancel_timer(timer);
    }
    let Some(mut place) = context.place() else { return };
    let mut step = |at: f32| {
        let step = (context.roll() % (2 * STEP + 1)) as f32 - STEP as f32;
        (at + step).clamp(-EXTENT, EXTENT)
    };
    (place.position.x, place.position.z) = (step(place.position.x), step(place.position.z));
    let moved = context.move_to(place);
    moved.unwrap_or_else(|denied| panic!("{denied}"));
    if context.roll().is_multiple_of(6) {
        choose_driver(context);
    }
    let (property, value) = match context.roll() % 4 {
        0 => ("rage", context.roll() % 1_000),
        1 => ("scent", context.roll() % 1_000),
        2 => ("hunger", context.roll() % 1_000),
        _ => return super::Game::invoke(context, annals_event::Audience::Others, "onGrowl", 0),
    };
    let set = context.set(property, Value::UInt(value));
    set.unwrap_or_else(|denied| panic!("{denied}"));
}
