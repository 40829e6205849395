//! The simulated game: small, and designed so that every call leaves a mark that a checker can count.

mod beasts;
mod couriers;
mod downloads;
mod eggs;
mod market;
mod pets;

use std::{borrow::Cow, sync::Arc};

use annals_def::{Change, Schema, Severity, Tree, Value, compile, generate_change, generate_nested, generate_slice};
use annals_event::{
    Audience, Place,
    ledger::{Booking, Order},
    space_data::FIRST_OWN_KEY,
};
use annals_ids::{MemberId, Part, Position, SpaceId, TimerId, TypeId};
use annals_node::{
    Answer, Behaviour, Bootstrap, Caller, Context, Denied, Request, TeleportFailed,
    inquiry::{Learned, NotLearned},
};
pub use beasts::BEAST;
pub use downloads::{FETCHED, content as downloaded_content};
pub use eggs::EGG;
pub use pets::{FAULTS, NAMES, PET};

/// The main space.
pub const SPACE: SpaceId = SpaceId(1);

/// A second space, in plans with moving borders; one owner has all of it.
pub const ARENA: SpaceId = SpaceId(2);

/// Maximum distance of entities from the origin, east and west, metres.
pub const EXTENT: f32 = 120.0;

/// Game time after which timers stop, so that a run can come to rest, milliseconds.
const LAST_TIMER: u64 = 35_000;

/// Continuation number of a two-way call, passed to [`Behaviour::replied`].
const ECHOED: u32 = 1;

const DEFINITION: &str = r"<root>
  <Volatile> <position/> <yaw/> </Volatile>
  <Properties>
    <hp> <Type> INT32 </Type> <Flags> ALL_CLIENTS </Flags> <Default> 100 </Default> <Persistent> true </Persistent> </hp>
    <gold> <Type> INT32 </Type> <Flags> OWN_CLIENT </Flags> </gold>
    <threat> <Type> INT32 </Type> <Flags> CELL_PUBLIC </Flags> </threat>
    <secret> <Type> INT32 </Type> <Flags> CELL_PRIVATE </Flags> </secret>
    <leaps> <Type> UINT32 </Type> <Flags> CELL_PRIVATE </Flags> </leaps>
    <title> <Type> UINT32 </Type> <Flags> BASE_AND_CLIENT </Flags> <Persistent> true </Persistent> </title>
    <notes> <Type> UINT32 </Type> <Flags> BASE </Flags> </notes>
    <fetched> <Type> UINT32 </Type> <Flags> BASE </Flags> </fetched>
    <bag> <Type> ARRAY <of> ITEM </of> </Type> <Flags> ALL_CLIENTS </Flags> <Persistent> true </Persistent> </bag>
    <journal> <Type> PAGES </Type> <Flags> BASE_AND_CLIENT </Flags> </journal>
    <coins> <Type> UINT64 </Type> <Flags> BASE_AND_CLIENT </Flags> <Account> <Kind> 1 </Kind> </Account> </coins>
    <rings> <Type> ARRAY <of> UINT64 </of> </Type> <Flags> BASE_AND_CLIENT </Flags>
      <Account> <Slot> 1 </Slot> <Kind> 2 </Kind> </Account> </rings>
    <purse> <Type> ARRAY <of> BALANCE </of> </Type> <Flags> BASE_AND_CLIENT </Flags>
      <Account> <Slot> 1 </Slot> </Account> </purse>
    <carried> <Type> ARRAY <of> THING </of> </Type> <Flags> BASE_AND_CLIENT </Flags> <Account/> </carried>
  </Properties>
  <ClientMethods>
    <onMark> <Arg> UINT32 </Arg> </onMark>
    <onNote> <Arg> UINT32 </Arg> </onNote>
    <onNudge> <Arg> UINT32 </Arg> </onNudge>
    <onEcho> <Arg> UINT32 </Arg> </onEcho>
    <onStash> <Arg> UINT32 </Arg> </onStash>
    <onJot> <Arg> UINT32 </Arg> </onJot>
    <onDeal> <Arg> UINT32 </Arg> </onDeal>
    <onLeap> <Arg> UINT32 </Arg> </onLeap>
  </ClientMethods>
  <CellMethods>
    <mark> <Exposed/> <Arg> UINT32 </Arg> <ReturnValues> <id> UINT32 </id> </ReturnValues> </mark>
    <passOn> <Exposed/> <Arg> UINT32 </Arg> </passOn>
    <nudge> <Arg> UINT32 </Arg> </nudge>
    <askBase> <Exposed/> <Arg> UINT32 </Arg> </askBase>
    <stash> <Exposed/> <Arg> UINT32 </Arg> </stash>
    <leap> <Exposed/> <Arg> UINT32 </Arg> </leap>
  </CellMethods>
  <BaseMethods>
    <rename> <Exposed/> <Arg> UINT32 </Arg> <ReturnValues> <id> UINT32 </id> </ReturnValues> </rename>
    <jot> <Exposed/> <Arg> UINT32 </Arg> </jot>
    <deal> <Exposed/> <Arg> UINT32 </Arg> </deal>
    <note> <Arg> UINT32 </Arg> </note>
    <echo> <Args> <id> UINT32 </id> </Args> <ReturnValues> <id> UINT32 </id> </ReturnValues> </echo>
  </BaseMethods>
</root>";

/// The properties that are views of accounts.
pub const VIEWS: [&str; 4] = ["coins", "rings", "purse", "carried"];

/// Types of nested properties: an array of dictionaries, and a dictionary that contains an array.
const ALIASES: &str = r"<root>
  <ITEM> FIXED_DICT <Properties>
    <id> <Type> UINT32 </Type> </id>
    <count> <Type> UINT8 </Type> </count>
    <marks> <Type> ARRAY <of> INT8 </of> </Type> </marks>
  </Properties> </ITEM>
  <BALANCE> FIXED_DICT <Properties>
    <kind> <Type> UINT32 </Type> </kind> <units> <Type> UINT64 </Type> </units>
  </Properties> </BALANCE>
  <THING> FIXED_DICT <Properties>
    <kind> <Type> UINT32 </Type> </kind> <serial> <Type> UINT64 </Type> </serial>
  </Properties> </THING>
  <PAGES> FIXED_DICT <Properties>
    <title> <Type> UNICODE_STRING </Type> </title>
    <lines> <Type> ARRAY <of> UINT16 </of> </Type> </lines>
  </Properties> </PAGES>
</root>";

/// Size above which a nested property is reset, so that it does not grow without bound, bytes.
const LARGE: usize = 2_000;

/// Type name of players.
pub const AVATAR: &str = "Avatar";

/// Type id of players.
const AVATAR_TYPE: TypeId = TypeId(0);

/// The compiled definitions.
///
/// # Panics
/// If they do not compile; they are part of this crate.
#[must_use]
pub fn schema() -> Arc<Schema> {
    let mut files = Tree::new();
    files.insert("entities.xml", "<root><Avatar/><Pet/><Beast/><Egg/></root>");
    files.insert("entity_defs/alias.xml", ALIASES);
    files.insert("entity_defs/Avatar.def", DEFINITION);
    files.insert("entity_defs/Pet.def", pets::DEFINITION);
    files.insert("entity_defs/Beast.def", beasts::DEFINITION);
    files.insert("entity_defs/Egg.def", eggs::DEFINITION);
    files.insert("services.xml", "<root><Courier/></root>");
    files.insert("service_defs/Courier.def", couriers::DEFINITION);
    let compiled = compile(&files);
    let errors: Vec<String> = compiled
        .diagnostics
        .iter()
        .filter(|found| found.severity == Severity::Error)
        .map(|found| found.message.clone())
        .collect();
    Arc::new(
        compiled
            .schema
            .unwrap_or_else(|| panic!("the simulated game does not compile: {errors:?}")),
    )
}

/// The game's behaviour.
#[derive(Debug, Default)]
pub struct Game {
    /// Beasts created around each player.
    pub beasts: u64,
    /// Initial AoI radius of players, if players change it.
    pub squints: Option<f32>,
    /// Whether an avatar is destroyed when its client has left.
    pub visits: bool,
}

impl Game {
    fn number(args: &[Value]) -> u32 {
        match args {
            [Value::UInt(number)] => u32::try_from(*number).unwrap_or(u32::MAX),
            _ => 0,
        }
    }

    fn invoke(context: &mut Context<'_>, audience: Audience, method: &str, id: u32) {
        let invoked = context.invoke(audience, method, vec![Value::UInt(u64::from(id))]);
        invoked.unwrap_or_else(|denied| panic!("{method}: {denied}"));
    }

    fn add(context: &mut Context<'_>, property: &str, amount: i64) {
        let sum = match context.get(property).as_deref() {
            Ok(Value::Int(held)) => Value::Int((held + amount) % 1_000_000),
            Ok(Value::UInt(held)) => Value::UInt((held + amount.unsigned_abs()) % 1_000_000),
            other => panic!("{property} is a number: {other:?}"),
        };
        context.set(property, sum).unwrap_or_else(|denied| panic!("{denied}"));
    }

    /// Counts a teleport outcome of a player, success or failure.
    fn leapt(context: &mut Context<'_>) {
        if !pets::is_pet(context) {
            Self::add(context, "leaps", 1);
        }
    }

    /// Changes a nested property: usually one part or slice of it.
    fn change(context: &mut Context<'_>, property: &str) {
        let data_type = context.entity_type().property_named(property);
        let data_type = data_type.map(|found| found.data_type.clone()).expect("it is ours");
        let held = context
            .get(property)
            .map(Cow::into_owned)
            .unwrap_or_else(|denied| panic!("{denied}"));
        let mut dice = annals_def::split_mix(context.roll());
        let is_large = annals_event::latest::value::value_length(&held) > LARGE;
        let change = match dice() % 4 {
            _ if is_large => None,
            0 | 1 => generate_slice(&data_type, &held, &mut dice),
            2 => generate_nested(&data_type, &held, &mut dice),
            _ => Some(generate_change(&data_type, &held, &mut dice)),
        };
        let change = change.unwrap_or_else(|| Change::whole(data_type.default_value()));
        context
            .change(property, change)
            .unwrap_or_else(|denied| panic!("{denied}"));
    }

    fn cell(&self, context: &mut Context<'_>, method: &str, id: u32) -> Answer {
        let me = context.mailbox(Part::Base);
        let args = vec![Value::UInt(u64::from(id))];
        match method {
            "mark" => {
                Self::add(context, "hp", 1);
                Self::add(context, "threat", 2);
                Self::invoke(context, Audience::All, "onMark", id);
                beasts::growl(context);
                if let Some(sight) = self.squints {
                    squint(context, sight, id);
                }
                return answer(id);
            }
            "passOn" => {
                Self::add(context, "secret", 3);
                if id.is_multiple_of(2) || !couriers::send(context, me, id) {
                    context
                        .call(me, "note", args)
                        .unwrap_or_else(|denied| panic!("{denied}"));
                }
            }
            "nudge" => {
                Self::add(context, "gold", 1);
                Self::invoke(context, Audience::Others, "onNudge", id);
            }
            "stash" => {
                Self::change(context, "bag");
                Self::invoke(context, Audience::All, "onStash", id);
                eggs::write_cell_data(context, id);
                match id % 4 {
                    1 => eggs::lay(context),
                    3 => pets::look(context),
                    _ => {}
                }
            }
            "leap" => {
                let place = context.place().expect("a cell part is somewhere");
                let space = if place.space == SPACE { ARENA } else { SPACE };
                let asked = context.teleport(Place { space, ..place });
                asked.unwrap_or_else(|denied| panic!("{denied}"));
                Self::invoke(context, Audience::Own, "onLeap", id);
            }
            "askBase" => {
                let note = id.to_le_bytes().to_vec();
                // Longer than any fault lasts, so that each call is answered once and never times out.
                context
                    .ask(me, "echo", args, 600_000, (ECHOED, note))
                    .unwrap_or_else(|denied| panic!("{denied}"));
            }
            other => panic!("there is no cell method {other}"),
        }
        Answer::DONE
    }

    fn base(context: &mut Context<'_>, method: &str, id: u32) -> Answer {
        let cell = context.mailbox(Part::Cell);
        match method {
            "rename" => {
                context
                    .set("title", Value::UInt(u64::from(id)))
                    .unwrap_or_else(|denied| panic!("{denied}"));
                context.store().unwrap_or_else(|denied| panic!("{denied}"));
                return answer(id);
            }
            "jot" => {
                Self::change(context, "journal");
                Self::invoke(context, Audience::Own, "onJot", id);
                if id.is_multiple_of(2) {
                    downloads::stream(context, id);
                }
            }
            "deal" => {
                match context.roll() % 8 {
                    0 | 1 => pets::whistle(context),
                    2 => eggs::lay(context),
                    _ => market::deal(context),
                }
                Self::invoke(context, Audience::Own, "onDeal", id);
            }
            "note" => {
                Self::add(context, "notes", 1);
                Self::invoke(context, Audience::Own, "onNote", id);
                context
                    .call(cell, "nudge", vec![Value::UInt(u64::from(id))])
                    .unwrap_or_else(|denied| panic!("{denied}"));
            }
            "echo" => return answer(id),
            other => panic!("there is no base method {other}"),
        }
        Answer::DONE
    }
}

/// The answer with a number.
fn answer(id: u32) -> Answer {
    Answer::Return(vec![Value::UInt(u64::from(id))])
}

/// Writes to the space's data: sets a value, removes one, or sets the time of day.
fn scribble(context: &mut Context<'_>) {
    let dice = context.roll().to_le_bytes();
    let key = FIRST_OWN_KEY + u16::from(dice[0] % 6);
    let done = match dice[1] % 8 {
        0 => context.set_time_of_day(f64::from(dice[2]) * 300.0, f64::from(dice[3])),
        1 | 2 => context.remove_space_data(key),
        _ => context.set_space_data(key, dice.to_vec()),
    };
    done.unwrap_or_else(|denied| panic!("{denied}"));
}

/// Changes a player's AoI radius.
fn squint(context: &mut Context<'_>, sight: f32, id: u32) {
    let done = match id % 4 {
        0 => context.reset_aoi_radius(),
        1 => context.set_aoi_radius(sight / 2.0, 5.0),
        2 => context.set_aoi_radius(sight, 1.0),
        _ => context.set_aoi_radius(sight / 4.0, sight / 2.0),
    };
    // Before its owner has received the map, it does not know how far ghosts reach.
    match done {
        Ok(()) | Err(Denied::NoMap) => {}
        Err(denied) => panic!("{denied}"),
    }
}

impl Behaviour for Game {
    /// An avatar that no client plays; a checker counts it to verify that the realm bootstrapped once.
    fn bootstrap(&self) -> Option<Bootstrap> {
        Some(Bootstrap {
            type_id: AVATAR_TYPE,
            properties: Vec::new(),
        })
    }

    fn call(&self, context: &mut Context<'_>, method: MemberId, args: &[Value], _caller: &Caller) -> Answer {
        if couriers::is_courier(context) {
            return couriers::carry(context, args);
        }
        if pets::is_pet(context) {
            return pets::call(context, args);
        }
        let id = Self::number(args);
        let entity_type = context.entity_type();
        let place = usize::from(method.0);
        match context.part() {
            Part::Cell => {
                let name = entity_type.cell_methods[place].name.clone();
                self.cell(context, &name, id)
            }
            Part::Base => {
                let name = entity_type.base_methods[place].name.clone();
                Self::base(context, &name, id)
            }
        }
    }

    fn replied(&self, context: &mut Context<'_>, then: u32, note: &[u8], outcome: &annals_event::Outcome) {
        if then == downloads::STREAMED {
            return downloads::ended(context, outcome);
        }
        assert_eq!(then, ECHOED);
        let id = u32::from_le_bytes(note.try_into().expect("the note is what askBase wrote"));
        // A process that was paused past its epoch receives, on resuming, answers meant for its successor, whose calls
        // have the same numbers. Nothing that it derives from them is logged. A wrong answer shows in the log as a
        // missing mark.
        if *outcome == Ok(vec![Value::UInt(u64::from(id))]) {
            Self::invoke(context, Audience::Own, "onEcho", id);
        }
    }

    fn client_attached(&self, context: &mut Context<'_>) {
        if eggs::is_egg(context) {
            return;
        }
        let x = (context.roll() % 200) as f32 - 100.0;
        let z = (context.roll() % 40) as f32;
        let place = Place {
            space: SPACE,
            position: Position { x, y: 0.0, z },
            ..Place::default()
        };
        let asked = context.request(Request::CreateCell {
            entity: context.entity(),
            place,
            properties: Vec::new(),
        });
        asked.unwrap_or_else(|denied| panic!("{denied}"));
    }

    fn cell_lost(&self, context: &mut Context<'_>) {
        if pets::is_pet(context) {
            pets::create_cell(context);
        }
    }

    fn client_lost(&self, context: &mut Context<'_>) {
        if self.visits {
            let entity = context.entity();
            // It may already be ending.
            let _ = context.request(Request::Destroy { entity });
        }
    }

    fn teleported(&self, context: &mut Context<'_>, _before: SpaceId) {
        Self::leapt(context);
    }

    fn teleport_failed(&self, context: &mut Context<'_>, _why: &TeleportFailed) {
        Self::leapt(context);
    }

    fn booked(&self, context: &mut Context<'_>, booking: &Booking, _order: Option<&Order>) {
        market::booked(context, booking);
    }

    fn learned(&self, context: &mut Context<'_>, then: u32, _note: &[u8], outcome: &Result<Learned, NotLearned>) {
        match then {
            // A player whose client is lost elsewhere would stay behind.
            eggs::LAID => eggs::learned(context, outcome, !self.visits),
            eggs::NESTED => eggs::nested(context, outcome),
            _ => pets::learned(context, then, outcome),
        }
    }

    fn created(&self, context: &mut Context<'_>) {
        if pets::is_pet(context) {
            pets::created(context);
        } else if eggs::is_egg(context) {
            eggs::created(context);
        } else if beasts::is_beast(context) {
            beasts::created(context);
        } else if context.part() == Part::Cell {
            context.set_timer(1_000, 3_000, 0);
            beasts::gather(context, self.beasts);
        }
    }

    fn timer(&self, context: &mut Context<'_>, timer: TimerId, _tag: u32) {
        if pets::is_pet(context) {
            return pets::timer(context);
        }
        if eggs::is_egg(context) {
            return eggs::timer(context);
        }
        if beasts::is_beast(context) {
            return beasts::wander(context, timer, LAST_TIMER);
        }
        Self::add(context, "hp", -1);
        scribble(context);
        if context.now().0 > LAST_TIMER {
            context.cancel_timer(timer);
        }
    }
}
