//! Database inquiries: players look up pets by name and activate them. A pet is active for a moment, is written with
//! its activation count increased, and is destroyed once the database confirms the write.
//!
//! Meanwhile its cell part teleports from space to space, so that many are destroyed in mid-teleport, and destroys
//! beasts near it, whether they are real on its cell or ghosts. At times it ends, and its base part requests another one.
//! The numbers in the calls between the two parts continue from one cell part to the next.

use annals_def::Value;
use annals_event::Place;
use annals_ids::{DatabaseId, Part, Position, TypeId};
use annals_node::{
    Answer, Context, Denied, Request,
    inquiry::{Learned, Life, NotLearned, Wanted},
};

use super::{ARENA, SPACE};

/// The type of pets.
pub const PET: &str = "Pet";

const TYPE: TypeId = TypeId(1);

/// Names of all pets.
pub const NAMES: [&str; 3] = ["Argos", "Bran", "Cerberus"];

/// Game time after which no more pets are activated, milliseconds.
const LAST_WHISTLE: u64 = 30_000;

/// Time between two actions of its cell part, milliseconds of game time, and their range, metres.
const PROWL: u64 = 170;
const REACH: f32 = 12.0;

/// Timeout of an inquiry, milliseconds.
const TIMEOUT: u64 = 4_000;

/// Continuation numbers of inquiries: lookup by name, activation, write of a pet.
const FOUND: u32 = 2;
const BEGUN: u32 = 3;
const WRITTEN: u32 = 4;
const SEEN: u32 = 7;

pub(super) const DEFINITION: &str = r"<root>
  <Properties>
    <name> <Type> UNICODE_STRING </Type> <Flags> BASE </Flags> <Persistent> true </Persistent> <Identifier> true </Identifier> </name>
    <lives> <Type> UINT32 </Type> <Flags> BASE </Flags> <Persistent> true </Persistent> </lives>
    <hunger> <Type> UINT32 </Type> <Flags> CELL_PRIVATE </Flags> </hunger>
    <barks> <Type> UINT32 </Type> <Flags> CELL_PRIVATE </Flags> </barks>
    <received> <Type> UINT32 </Type> <Flags> BASE </Flags> </received>
    <strokes> <Type> UINT32 </Type> <Flags> BASE </Flags> </strokes>
    <felt> <Type> UINT32 </Type> <Flags> CELL_PRIVATE </Flags> </felt>
    <missed> <Type> UINT32 </Type> <Flags> BASE </Flags> </missed>
    <repeated> <Type> UINT32 </Type> <Flags> CELL_PRIVATE </Flags> </repeated>
  </Properties>
  <BaseMethods> <bark> <Arg> UINT32 </Arg> </bark> </BaseMethods>
  <CellMethods> <stroke> <Arg> UINT32 </Arg> </stroke> </CellMethods>
</root>";

/// The properties that count the calls that were not the next, or were taken before. Never changed.
pub const FAULTS: [&str; 2] = ["missed", "repeated"];

/// A player activates a pet, either directly by name or after a lookup.
pub(super) fn whistle(context: &mut Context<'_>) {
    if context.now().0 > LAST_WHISTLE {
        return;
    }
    let roll = context.roll();
    let name = NAMES[usize::try_from(roll % NAMES.len() as u64).expect("few names")];
    let name = Value::Unicode(name.to_owned());
    let asked = if roll >> 8 & 1 == 0 {
        let (type_id, identifier) = (TYPE, name);
        context.begin_stored(Wanted::Named { type_id, identifier }, TIMEOUT, (BEGUN, Vec::new()))
    } else {
        let value = (name, DatabaseId(0));
        context.find_stored((PET, "name"), value, TIMEOUT, (FOUND, Vec::new()))
    };
    asked.unwrap_or_else(|denied| panic!("{denied}"));
}

/// A cell part looks a pet up.
pub(super) fn look(context: &mut Context<'_>) {
    let value = Value::Unicode(NAMES[0].to_owned());
    let looked = context.find_stored((PET, "name"), (value, DatabaseId(0)), TIMEOUT, (SEEN, Vec::new()));
    looked.unwrap_or_else(|denied| panic!("{denied}"));
}

/// The database has answered, or the inquiry failed.
pub(super) fn learned(context: &mut Context<'_>, then: u32, outcome: &Result<Learned, NotLearned>) {
    match (then, outcome) {
        (FOUND, Ok(Learned::Found(found))) => {
            let wanted = found.iter().find(|known| !matches!(known.life, Life::Active(_)));
            if let Some(known) = wanted {
                let begun = context.begin_stored(Wanted::Id(known.database), TIMEOUT, (BEGUN, Vec::new()));
                begun.unwrap_or_else(|denied| panic!("{denied}"));
            }
        }
        (WRITTEN, Ok(_)) => {
            let entity = context.entity();
            let asked = context.request(Request::Destroy { entity });
            asked.unwrap_or_else(|denied| panic!("{denied}"));
        }
        (SEEN, Ok(Learned::Found(found))) => assert_eq!((context.part(), found.len()), (Part::Cell, 1)),
        (SEEN, outcome) => assert_eq!(outcome, &Err(NotLearned::Late)),
        // The inquiries of a crashed process are lost with it.
        (WRITTEN, Err(_)) => write(context),
        _ => {}
    }
}

/// A pet's base or cell part was created.
pub(super) fn created(context: &mut Context<'_>) {
    if context.part() == Part::Cell {
        context.set_timer(PROWL, PROWL, 0);
        return;
    }
    let length = 200 + context.roll() % 2_000;
    context.set_timer(length, 0, 0);
    create_cell(context);
}

/// The base part requests a cell part: its first, or the next one after that has ended.
pub(super) fn create_cell(context: &mut Context<'_>) {
    let x = (context.roll() % 200) as f32 - 100.0;
    let place = Place {
        space: SPACE,
        position: Position { x, y: 0.0, z: 5.0 },
        ..Place::default()
    };
    let (entity, properties) = (context.entity(), Vec::new());
    let asked = context.request(Request::CreateCell {
        entity,
        place,
        properties,
    });
    asked.unwrap_or_else(|denied| panic!("{denied}"));
}

/// One more than the number in a property, which is set to it.
fn count(context: &mut Context<'_>, property: &str) -> u64 {
    let next = match context.get(property).as_deref() {
        Ok(Value::UInt(held)) => held + 1,
        other => panic!("{property} is a number: {other:?}"),
    };
    context
        .set(property, Value::UInt(next))
        .unwrap_or_else(|denied| panic!("{denied}"));
    next
}

/// A call from the other part: its number follows the one before, unless calls of the base part found no cell part.
pub(super) fn call(context: &mut Context<'_>, args: &[Value]) -> Answer {
    let [Value::UInt(number)] = args else {
        panic!("a number: {args:?}");
    };
    let number = Value::UInt(*number);
    if context.part() == Part::Base {
        let is_next = number == Value::UInt(count(context, "received"));
        if !is_next {
            count(context, "missed");
        }
        let (strokes, cell) = (count(context, "strokes"), context.mailbox(Part::Cell));
        let called = context.call(cell, "stroke", vec![Value::UInt(strokes)]);
        called.unwrap_or_else(|denied| panic!("{denied}"));
    } else {
        let is_new = match (context.get("felt").as_deref(), &number) {
            (Ok(Value::UInt(felt)), Value::UInt(number)) => number > felt,
            other => panic!("numbers: {other:?}"),
        };
        if !is_new {
            count(context, "repeated");
        }
        context.set("felt", number).unwrap_or_else(|denied| panic!("{denied}"));
    }
    Answer::DONE
}

/// Its cell part calls the base part. Then it destroys a beast near it, ends, or teleports to the other space.
fn prowl(context: &mut Context<'_>) {
    let place = context.place().expect("a cell part is somewhere");
    let (barks, base) = (count(context, "barks"), context.mailbox(Part::Base));
    let called = context.call(base, "bark", vec![Value::UInt(barks)]);
    called.unwrap_or_else(|denied| panic!("{denied}"));
    if context.roll().is_multiple_of(8) {
        let entity = context.entity();
        let asked = context.request(Request::Destroy { entity });
        return asked.unwrap_or_else(|denied| panic!("{denied}"));
    }
    if context.roll().is_multiple_of(2) {
        let space = if place.space == SPACE { ARENA } else { SPACE };
        let asked = context.teleport(Place { space, ..place });
        return asked.unwrap_or_else(|denied| panic!("{denied}"));
    }
    let prey = match context.entities_in_range(REACH, Some(super::BEAST)) {
        Ok(found) => found.first().copied(),
        // The range is not covered, or the map is not known.
        Err(Denied::Beyond { .. } | Denied::NoMap) => None,
        Err(denied) => panic!("{denied}"),
    };
    if let Some(entity) = prey {
        let asked = context.request(Request::Destroy { entity });
        asked.unwrap_or_else(|denied| panic!("{denied}"));
    }
}

/// A timer fired: the cell part prowls, or the base part's time is over.
pub(super) fn timer(context: &mut Context<'_>) {
    if context.part() == Part::Cell {
        return prowl(context);
    }
    let lives = match context.get("lives").as_deref() {
        Ok(Value::UInt(lives)) => *lives,
        other => panic!("lives are counted: {other:?}"),
    };
    context
        .set("lives", Value::UInt(lives + 1))
        .unwrap_or_else(|denied| panic!("{denied}"));
    write(context);
}

fn write(context: &mut Context<'_>) {
    let written = context.store_then(TIMEOUT, (WRITTEN, Vec::new()));
    written.unwrap_or_else(|denied| panic!("{denied}"));
}

/// Whether the entity is a part of a pet.
pub(super) fn is_pet(context: &Context<'_>) -> bool {
    context.entity_type().id == TYPE
}
