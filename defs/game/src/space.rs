//! Contents of a space: the entity that manages it, spawn points, chests.

use annals_def::{Value, typed::Bytes};
use annals_event::{GlobalScope, Outcome, Place};
use annals_ids::{Mailbox, Part, Position, TimerId};
use annals_node::{
    Caller, Context, Denied,
    inquiry::{Learned, NotLearned},
    typed::{Failure, Reply, Wait, returned},
};

use crate::{
    PLAZA, Sample, WORLD,
    defs::{almanac, chest, monster, space, spawn_point},
    milliseconds, near,
};

/// Monsters in a new space.
const MONSTERS_AT_FIRST: u16 = 12;

/// Monsters per spawn point.
const PER_SPAWN_POINT: u8 = 3;

/// Chests in a new space.
const CHESTS: usize = 2;

/// Maximum distance of a new monster from its spawn point, metres.
const SPAWN_REACH: f32 = 5.0;

/// Delay before a monster appears, milliseconds: gives a new space time to settle.
const SPAWN_MS: u64 = 500;

/// What was placed by hand.
const ZONE: &str = "plaza";

/// Interval of weather changes, milliseconds.
const WEATHER_EVERY_MS: u64 = 30_000;

/// Time of day in a new space, seconds since midnight, and seconds of its day per second: a day takes an hour.
const FIRST_MORNING: f64 = 8.0 * 3_600.0;
const DAY_RATE: f64 = 24.0;

/// Key of the weather in the global data.
pub const WEATHER: &str = "weather";

/// Key under which the space is registered.
pub const SPACE: &str = "space";

/// Continuation number of the registration, and how long it may take, milliseconds.
const REGISTERED: u32 = 1;
const REGISTRATION_MS: u64 = 30_000;

/// Continuation number of the question for the next weather.
const FORECAST: u32 = 1;

/// Number of kinds of weather.
const WEATHERS: u8 = 4;

/// Number of monster species.
const SPECIES: u8 = 5;

impl space::BaseBehaviour for Sample {
    /// The space's entity is placed at the origin.
    fn created(&self, own: &mut space::Base<'_, '_>) -> Result<(), Denied> {
        register(own)?;
        let place = Place {
            space: WORLD,
            ..Place::default()
        };
        space::BaseMailbox::of(own.context).create_cell(own.context, place, space::NewCell::default())
    }

    fn cell_gained(&self, own: &mut space::Base<'_, '_>) -> Result<(), Denied> {
        populate(own.context, MONSTERS_AT_FIRST)
    }

    fn timer(&self, own: &mut space::Base<'_, '_>, _timer: TimerId, _tag: u32) -> Result<(), Denied> {
        register(own)
    }

    /// Another process may have been lost while it registered.
    fn learned(
        &self,
        own: &mut space::Base<'_, '_>,
        then: u32,
        _note: &[u8],
        outcome: &Result<Learned, NotLearned>,
    ) -> Result<(), Denied> {
        match outcome {
            Err(NotLearned::Late | NotLearned::Refused(_)) if then == REGISTERED => {
                own.context.set_timer(REGISTRATION_MS, 0, 0);
            }
            _ => {}
        }
        Ok(())
    }

    fn populate(&self, own: &mut space::Base<'_, '_>, _caller: &Caller, monsters: u16) -> Result<(), Failure> {
        Ok(populate(own.context, monsters)?)
    }
}

/// Registers the space, so that any part of the realm finds it.
fn register(own: &mut space::Base<'_, '_>) -> Result<(), Denied> {
    let wait = (REGISTERED, Vec::new());
    own.context.register_globally(SPACE, REGISTRATION_MS, wait)
}

/// A random number below `count`.
fn one_of(context: &mut Context<'_>, count: u8) -> u8 {
    u8::try_from(context.roll() % u64::from(count)).unwrap_or(0)
}

/// Creates spawn points for a number of monsters, and chests.
fn populate(context: &mut Context<'_>, monsters: u16) -> Result<(), Denied> {
    let mut left = monsters;
    while left > 0 {
        let wanted = u8::try_from(left).map_or(PER_SPAWN_POINT, |left| left.min(PER_SPAWN_POINT));
        left -= u16::from(wanted);
        let species = one_of(context, SPECIES);
        let point = spawn_point::BaseMailbox::create(context, spawn_point::NewBase::default())?;
        let of_cell = spawn_point::NewCell {
            wanted: Some(wanted),
            species: Some(species.into()),
            ..spawn_point::NewCell::default()
        };
        let place = near(context, Position::default(), PLAZA);
        point.create_cell(context, place, of_cell)?;
    }
    for _ in 0..CHESTS {
        let key = context.roll().to_le_bytes().to_vec();
        let chest = chest::BaseMailbox::create(context, chest::NewBase::default())?;
        let of_cell = chest::NewCell {
            key_hole: Some(Bytes(key)),
            ..chest::NewCell::default()
        };
        let place = near(context, Position::default(), PLAZA);
        chest.create_cell(context, place, of_cell)?;
    }
    Ok(())
}

impl almanac::BaseBehaviour for Sample {
    fn next_weather(
        &self,
        own: &mut almanac::Base<'_, '_>,
        _caller: &Caller,
        weather: u8,
    ) -> Result<Reply<almanac::NextWeatherReply>, Failure> {
        let other = 1 + one_of(own.context, WEATHERS - 1);
        let next = weather.wrapping_add(other) % WEATHERS;
        Ok(Reply::Now(almanac::NextWeatherReply { next }))
    }
}

impl space::CellBehaviour for Sample {
    fn created(&self, own: &mut space::Cell<'_, '_>) -> Result<(), Denied> {
        own.context.set_time_of_day(FIRST_MORNING, DAY_RATE)?;
        own.context.set_timer(WEATHER_EVERY_MS, WEATHER_EVERY_MS, 0);
        // Small enough for one call.
        own.context.load_zone(ZONE, WORLD, 0)?;
        Ok(())
    }

    /// Asks any fragment of the almanac.
    fn timer(&self, own: &mut space::Cell<'_, '_>, _timer: TimerId, _tag: u32) -> Result<(), Denied> {
        let weather = own.weather()?;
        let almanac = almanac::BaseMailbox::any(own.context)?;
        almanac.ask_next_weather(own.context, weather, Wait::then(FORECAST, Vec::new()))
    }

    /// The weather is the same in the whole realm. Without an answer it stays until the next question.
    fn replied(
        &self,
        own: &mut space::Cell<'_, '_>,
        _then: u32,
        _note: &[u8],
        outcome: &Outcome,
    ) -> Result<(), Denied> {
        match returned::<almanac::NextWeatherReply>(outcome) {
            Ok(answer) => {
                let next = Value::UInt(answer.next.into());
                own.context.set_global(GlobalScope::Realm, WEATHER, next)
            }
            Err(_) => Ok(()),
        }
    }

    fn set_weather(&self, own: &mut space::Cell<'_, '_>, _caller: &Caller, weather: u8) -> Result<(), Failure> {
        Ok(own.set_weather(weather)?)
    }

    fn global_changed(&self, own: &mut space::Cell<'_, '_>, scope: GlobalScope, key: &str) -> Result<(), Denied> {
        let weather = match own.context.global(scope, key) {
            Some(Value::UInt(weather)) if (scope, key) == (GlobalScope::Realm, WEATHER) => u8::try_from(*weather),
            _ => return Ok(()),
        };
        weather.map_or(Ok(()), |weather| own.set_weather(weather))
    }
}

impl spawn_point::BaseBehaviour for Sample {}

impl spawn_point::CellBehaviour for Sample {
    fn created(&self, own: &mut spawn_point::Cell<'_, '_>) -> Result<(), Denied> {
        for _ in 0..own.wanted()? {
            own.context.set_timer(SPAWN_MS, 0, 0);
        }
        Ok(())
    }

    /// Creates one monster.
    fn timer(&self, own: &mut spawn_point::Cell<'_, '_>, _timer: TimerId, _tag: u32) -> Result<(), Denied> {
        let Some(place) = own.context.place() else {
            return Ok(());
        };
        let new = monster::NewCell {
            species: Some(own.species()?),
            spawn_point: Some(Some(own.context.mailbox(Part::Cell))),
            ..monster::NewCell::default()
        };
        let place = near(own.context, place.position, SPAWN_REACH);
        monster::CellMailbox::create_alone(own.context, place, new)?;
        Ok(())
    }

    fn on_monster_gone(
        &self,
        own: &mut spawn_point::Cell<'_, '_>,
        _caller: &Caller,
        _monster: Option<Mailbox>,
    ) -> Result<(), Failure> {
        let after = milliseconds(own.respawn_after()?);
        own.context.set_timer(after, 0, 0);
        Ok(())
    }
}

impl chest::BaseBehaviour for Sample {}

impl chest::CellBehaviour for Sample {
    /// Opens or closes the chest, if the key fits.
    fn turn_key(&self, own: &mut chest::Cell<'_, '_>, _caller: &Caller, key: Bytes) -> Result<(), Failure> {
        if own.key_hole()? == key {
            let open = own.open()?;
            own.set_open(1 - open.min(1))?;
        }
        Ok(())
    }
}
