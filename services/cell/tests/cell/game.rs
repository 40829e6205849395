//! The game of these tests: schema and behaviour.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{
    Arc, Mutex,
    atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering},
};

use annals_def::{
    Argument, DataType, Distribution, EntityType, Exposure, LodLevel, Method, Parts, Path, Property, Reach, Replaced,
    Schema, Sequence, Value, Volatile, generate_change,
};
use annals_event::{Audience, CallError, GlobalScope, Outcome, Place, space_data::FIRST_OWN_KEY};
use annals_ids::{Address, ControllerId, EntityId, Mailbox, MemberId, Part, SpaceId, TimerId, TypeId};
use annals_node::{Answer, Behaviour, Caller, Context, ControllerSignal, Denied, GhostView, Request, TeleportFailed};

/// A player: has a base, may have a client, moves as its client says.
pub(crate) const AVATAR: TypeId = TypeId(0);
/// Has no base, wanders about by itself.
pub(crate) const CREATURE: TypeId = TypeId(1);
/// Like an avatar, but its movements are not volatile, and it does nothing by itself.
pub(crate) const STATUE: TypeId = TypeId(2);
/// Has no cell part.
pub(crate) const ACCOUNT: TypeId = TypeId(3);

/// Seen only by clients for which behaviour names it.
pub(crate) const SIGN: TypeId = TypeId(4);

/// The message of a panic that a test asked for.
pub(crate) const DEFECT: &str = "a defect of the game";

/// Milliseconds between two actions of an entity by itself.
const BEAT: u64 = 150;

/// Length of one step of a creature, metres.
const STEP: f32 = 6.0;

/// Where creatures turn back, metres.
pub(crate) const EDGE: f32 = 150.0;

pub(crate) fn schema() -> Arc<Schema> {
    schema_with(&[])
}

/// The schema, with these additional properties of avatars.
pub(crate) fn schema_with(more: &[Property]) -> Arc<Schema> {
    let mut avatar = being("Avatar", Reach::Always);
    avatar.properties.extend_from_slice(more);
    let mut creature = being("Creature", Reach::Always);
    creature.parts.base = false;
    let statue = being("Statue", Reach::Never);
    let mut account = EntityType::new("Account");
    account.parts = Parts {
        base: true,
        cell: false,
        client: true,
    };
    let mut sign = being("Sign", Reach::Always);
    sign.manual_aoi = true;
    Arc::new(Schema::new(
        vec![avatar, creature, statue, account, sign],
        Vec::new(),
        Vec::new(),
    ))
}

/// The schema, with additional properties of avatars that others receive only within 5 and 15 m.
pub(crate) fn detailed_schema() -> Arc<Schema> {
    let of_level = |name: &str, data_type, level| Property {
        detail_level: Some(level),
        ..Property::new(name, data_type, Distribution::OtherClients)
    };
    let wounds = DataType::Array(std::sync::Arc::new(Sequence::of(DataType::Int16)));
    let more = [
        of_level("scar", DataType::Int32, 0),
        of_level("badge", DataType::Int32, 1),
        of_level("wounds", wounds.clone(), 0),
        of_level("bruises", wounds, 1),
    ];
    let mut types = schema_with(&more).types().to_vec();
    let level = |label: &str, radius, hysteresis| LodLevel {
        label: label.to_owned(),
        radius,
        hysteresis,
    };
    types[0].lod_levels = vec![level("NEAR", 5.0, 2.0), level("MEDIUM", 15.0, 3.0)];
    Arc::new(Schema::new(types, Vec::new(), Vec::new()))
}

fn being(name: &str, reach: Reach) -> EntityType {
    let numbers = || DataType::Array(std::sync::Arc::new(Sequence::of(DataType::Int16)));
    let mut being = EntityType::new(name);
    being.properties = vec![
        Property::new("strength", DataType::Int32, Distribution::AllClients),
        Property::new("secret", DataType::Int32, Distribution::OwnClient),
        Property::new("title", DataType::Unicode, Distribution::OtherClients),
        Property::new("mood", DataType::Int8, Distribution::CellPublic),
        Property::new("marks", numbers(), Distribution::AllClients),
        Property::new("notes", numbers(), Distribution::CellPrivate),
        Property::new("motto", DataType::Unicode, Distribution::CellPublicAndOwn),
    ];
    being.cell_methods = vec![
        Method::new("note", vec![Argument::new("number", DataType::Int16)]),
        Method::new("act", vec![Argument::new("what", DataType::UInt8)]),
        Method::new("jump", vec![Argument::new("x", DataType::Float32)]),
        Method::new("die", Vec::new()),
        inspect(),
    ];
    being.base_methods = vec![Method::new("greet", Vec::new())];
    being.client_methods = vec![Method::new("say", vec![Argument::new("text", DataType::Unicode)])];
    being.volatile = Volatile {
        position: reach,
        ..Volatile::default()
    };
    being
}

/// A method that clients call, and that answers.
fn inspect() -> Method {
    let mut inspect = Method::new("inspect", Vec::new());
    inspect.exposed = Exposure::AllClients;
    inspect.returns = vec![Argument::new("mood", DataType::Int32)];
    inspect
}

pub(crate) const NOTE: MemberId = MemberId(0);
pub(crate) const ACT: MemberId = MemberId(1);
pub(crate) const JUMP: MemberId = MemberId(2);
pub(crate) const DIE: MemberId = MemberId(3);

/// Number of actions of `act` and timers.
pub(crate) const ACTS: u64 = 10;

/// Argument of `act`: write something into the data of its space, or remove it.
pub(crate) const SCRIBBLE: u64 = 199;

/// Argument of `act`: make this many calls at once.
pub(crate) const CHATTER: u64 = 200;

/// Argument of `act`: do the same again, without end.
pub(crate) const CIRCLE: u64 = 201;

/// Argument of `act`: set a timer that fires at once, and then after an extremely long time.
pub(crate) const EONS: u64 = 202;

/// Argument of `act`: change some property in one way or another.
pub(crate) const ALTER: u64 = 203;

/// Argument of `act`: run the test's errand.
pub(crate) const ERRAND: u64 = 204;

/// Argument of `act`: teleport to the destination set by the test.
pub(crate) const LEAP: u64 = 205;

/// Argument of `act`: count a call to the first receiver, and make it; the next number is for the second one.
pub(crate) const POST: u64 = 206;

/// Arguments of `act`: answer with the game's own error, with "not allowed", or never.
pub(crate) const FAIL: u64 = 210;
pub(crate) const FORBID: u64 = 211;
pub(crate) const DELAY: u64 = 212;

/// Argument of `act`: write something into a property, say it, and panic with [`DEFECT`].
pub(crate) const PANIC: u64 = 213;

/// Argument of `act`: panic as a core does when its own state is wrong.
pub(crate) const BREAK: u64 = 214;

/// The tag of a trap that ends each entity that enters it.
pub(crate) const KILL: u32 = 900;

/// An error with which the game answers.
pub(crate) fn poor() -> CallError {
    CallError::Custom("Poor".to_owned(), "3 coins are missing".to_owned())
}

pub(crate) fn forbidden() -> CallError {
    CallError::Authenticate("only friends may".to_owned())
}

/// A closure that a test runs once as behaviour of an entity.
pub(crate) type Errand = Box<dyn FnOnce(&mut Context<'_>) + Send>;

/// A change of a ghost as notified to behaviour: the entity, the property, the old value, the new value.
pub(crate) type GhostChange = (EntityId, MemberId, Replaced, Value);

/// Behaviour of all types.
#[derive(Default)]
pub(crate) struct Game {
    /// Whether entities act by themselves.
    pub(crate) lively: AtomicBool,
    /// Whether some of their hooks panic at their end.
    pub(crate) panicky: AtomicBool,
    /// Whether the question which entities follow global data panics: cores ask it while they record.
    pub(crate) undecided: AtomicBool,
    /// The entity to which each avatar sends a number when its timer fires (0 for none), and the last number.
    pub(crate) pestered: AtomicU64,
    pub(crate) last: AtomicU64,
    /// How many texts of how many bytes each avatar writes whenever its timer fires.
    pub(crate) texts: AtomicU64,
    pub(crate) length: AtomicU64,
    /// How many of them were denied.
    pub(crate) denied: AtomicU64,
    /// How far east clients may move their entities, metres; 0 for anywhere.
    pub(crate) fence: AtomicI32,
    pub(crate) errand: Mutex<Option<Errand>>,
    /// Destinations of `LEAP`.
    pub(crate) destinations: Mutex<BTreeMap<EntityId, Place>>,
    /// Receivers of `POST`.
    pub(crate) receivers: Mutex<Vec<Mailbox>>,
    /// Notifications of teleports.
    pub(crate) teleports: Mutex<Vec<(EntityId, Result<SpaceId, TeleportFailed>)>>,
    /// Entities that were notified that their space is gone, and the space.
    pub(crate) gone: Mutex<Vec<(EntityId, SpaceId)>>,
    /// Place to which entities ask to be teleported when their space is gone.
    pub(crate) refuge: Mutex<Option<Place>>,
    /// Notifications of ghost changes.
    pub(crate) ghost_changes: Mutex<Vec<GhostChange>>,
    /// Requests that were denied after they were made: by which entity, and why.
    pub(crate) requests_denied: Mutex<Vec<(EntityId, Denied)>>,
    /// Whether avatars follow global data, and their notifications: entity, key, value.
    pub(crate) follows: AtomicBool,
    pub(crate) notices: Mutex<Vec<(EntityId, String, Option<Value>)>>,
    /// Receivers of one-way calls that are gone, and the caller.
    pub(crate) lost: Mutex<Vec<(EntityId, Address)>>,
    /// Answers: which entity waited, for what, and how it ended.
    pub(crate) replies: Mutex<Vec<(EntityId, u32, Outcome)>>,
}

impl Behaviour for Game {
    fn created(&self, context: &mut Context<'_>) {
        if context.part() == Part::Cell && context.entity_type().name != "Statue" {
            context.set_timer(BEAT, BEAT, 0);
        }
        self.panic("created");
    }

    fn timer(&self, context: &mut Context<'_>, _timer: TimerId, _tag: u32) {
        let pestered = EntityId(self.pestered.load(Ordering::Relaxed));
        if pestered != EntityId(0) && pestered != context.entity() {
            let number = self.last.fetch_add(1, Ordering::Relaxed) + 1;
            let to = Mailbox {
                entity: pestered,
                home: crate::world::HOME,
                type_id: AVATAR,
                part: Part::Cell,
            };
            let number = Value::Int(i64::try_from(number).expect("there are few"));
            context.call(to, "note", vec![number]).expect("it has this method");
        }
        self.write(context);
        if !self.lively.load(Ordering::Relaxed) {
            return;
        }
        let what = context.roll() % ACTS;
        act(context, what);
        if context.entity_type().name == "Creature" {
            wander(context);
        }
        self.panic("timer");
    }

    fn client_moves(&self, _context: &mut Context<'_>, to: Place) -> bool {
        self.panic("client_moves");
        let fence = self.fence.load(Ordering::Relaxed);
        fence == 0 || to.position.x <= fence as f32
    }

    fn controller(&self, context: &mut Context<'_>, _controller: ControllerId, tag: u32, signal: ControllerSignal) {
        match signal {
            ControllerSignal::Entered { who } if tag == KILL => {
                let request = Request::Destroy { entity: who };
                context
                    .request(request)
                    .expect("an entity in a trap is real or a ghost here");
            }
            _ if tag == KILL => {}
            _ => crate::controllers::report(context, tag, signal),
        }
    }

    fn request_denied(&self, context: &mut Context<'_>, _request: &Request, why: &Denied) {
        let denied = (context.entity(), why.clone());
        self.requests_denied
            .lock()
            .expect("the lock is not poisoned")
            .push(denied);
    }

    fn follows_global_data(&self, entity_type: TypeId) -> bool {
        assert!(!self.undecided.load(Ordering::Relaxed), "{DEFECT}");
        entity_type == AVATAR && self.follows.load(Ordering::Relaxed)
    }

    fn global_changed(&self, context: &mut Context<'_>, scope: GlobalScope, key: &str) {
        let notice = (context.entity(), key.to_owned(), context.global(scope, key).cloned());
        self.notices.lock().expect("the lock is not poisoned").push(notice);
    }

    fn calls_lost(&self, context: &mut Context<'_>, to: Address) {
        let lost = (context.entity(), to);
        self.lost.lock().expect("the lock is not poisoned").push(lost);
    }

    fn replied(&self, context: &mut Context<'_>, then: u32, _note: &[u8], outcome: &Outcome) {
        let replied = (context.entity(), then, outcome.clone());
        self.replies.lock().expect("the lock is not poisoned").push(replied);
        append(context, "notes", Value::Int(then.into()));
    }

    fn teleported(&self, context: &mut Context<'_>, before: SpaceId) {
        let outcome = (context.entity(), Ok(before));
        self.teleports.lock().expect("the lock is not poisoned").push(outcome);
    }

    fn teleport_failed(&self, context: &mut Context<'_>, why: &TeleportFailed) {
        let outcome = (context.entity(), Err(why.clone()));
        self.teleports.lock().expect("the lock is not poisoned").push(outcome);
    }

    fn space_gone(&self, context: &mut Context<'_>) {
        let place = context.place().expect("a cell part is somewhere");
        let notified = (context.entity(), place.space);
        self.gone.lock().expect("the lock is not poisoned").push(notified);
        let refuge = *self.refuge.lock().expect("the lock is not poisoned");
        if let Some(refuge) = refuge {
            context.teleport(refuge).expect("a cell part can teleport");
        }
    }

    fn ghost_changed(&self, ghost: &GhostView<'_>, property: MemberId, replaced: &Replaced) {
        let name = &ghost.entity_type.property(property).expect("it exists").name;
        let new = ghost.get(name).expect("ghosts have it").clone();
        let change = (ghost.entity, property, replaced.clone(), new);
        self.ghost_changes
            .lock()
            .expect("the lock is not poisoned")
            .push(change);
        self.panic("ghost_changed");
    }

    fn call(&self, context: &mut Context<'_>, method: MemberId, args: &[Value], _caller: &Caller) -> Answer {
        if context.part() == Part::Base {
            return Answer::DONE;
        }
        match (method, args) {
            (NOTE, [number]) => append(context, "notes", number.clone()),
            (ACT, [Value::UInt(ERRAND)]) => {
                let errand = self.errand.lock().expect("the lock is not poisoned").take();
                errand.expect("a test has one")(context);
            }
            (ACT, [Value::UInt(LEAP)]) => {
                let to = self.destinations.lock().expect("the lock is not poisoned");
                let to = to.get(&context.entity()).copied();
                context
                    .teleport(to.expect("a test says where"))
                    .expect("a cell part can teleport");
            }
            (ACT, [Value::UInt(FAIL)]) => return Answer::Fail(poor()),
            (ACT, [Value::UInt(FORBID)]) => return Answer::Fail(forbidden()),
            (ACT, [Value::UInt(DELAY)]) => return Answer::Later,
            (ACT, [Value::UInt(PANIC)]) => {
                (2..=6).for_each(|what| act(context, what));
                panic!("{DEFECT}");
            }
            (ACT, [Value::UInt(BREAK)]) => panic!("invariant: it never breaks"),
            (ACT, [Value::UInt(what)]) if *what >= POST => self.post(context, *what - POST),
            (ACT, [Value::UInt(what)]) => act(context, *what),
            (JUMP, [Value::Float32(x)]) => jump(context, *x),
            _ => {
                let entity = context.entity();
                context.request(Request::Destroy { entity }).expect("it is real here");
            }
        }
        Answer::DONE
    }
}

impl Game {
    fn panic(&self, hook: &str) {
        assert!(!self.panicky.load(Ordering::Relaxed), "{DEFECT} in {hook}");
    }

    /// Sends a receiver the next number, which also identifies the sender.
    fn post(&self, context: &mut Context<'_>, to: u64) {
        let to = usize::try_from(to).expect("there are two");
        let name = ["strength", "secret"][to];
        let receiver = self.receivers.lock().expect("the lock is not poisoned")[to];
        let Ok(Value::Int(sent)) = context.get(name).map(Cow::into_owned) else {
            panic!("{name} is a number");
        };
        let of = i64::try_from(context.entity().0 % 30).expect("it is small");
        context.set(name, Value::Int(sent + 1)).expect("the value fits");
        let number = Value::Int(of * 1_000 + sent + 1);
        context
            .call(receiver, "note", vec![number])
            .expect("it has this method");
    }

    fn write(&self, context: &mut Context<'_>) {
        let length = usize::try_from(self.length.load(Ordering::Relaxed)).expect("it is short");
        for nth in 0..self.texts.load(Ordering::Relaxed) {
            let number = format!("{:020}", context.roll().wrapping_add(nth));
            let text = "x".repeat(length - number.len()) + &number;
            if let Err(denied) = context.set("motto", Value::Unicode(text)) {
                assert!(matches!(denied, Denied::Spent { .. }), "{denied}");
                self.denied.fetch_add(1, Ordering::Relaxed);
                context.report(denied);
            }
        }
    }
}

fn act(context: &mut Context<'_>, what: u64) {
    if what == CHATTER {
        return (0..CHATTER).for_each(|_| act(context, 6));
    }
    if what == CIRCLE {
        let own = context.mailbox(Part::Cell);
        return context
            .call(own, "act", vec![Value::UInt(what)])
            .expect("it has this method");
    }
    if what == EONS {
        context.set_timer(0, u64::MAX, 0);
        return;
    }
    if what == ALTER {
        return alter(context);
    }
    if what == SCRIBBLE {
        return scribble(context);
    }
    let dice = context.roll();
    let number = i16::try_from(dice % 30_000).expect("it is below 30,000");
    let text = Value::Unicode(format!("text {number}"));
    let done = match what {
        0 => context.set("strength", Value::Int(number.into())),
        1 => context.set("secret", Value::Int(number.into())),
        2 => context.set("title", text),
        3 => context.set("mood", Value::Int((number % 100).into())),
        4 => {
            append(context, "marks", Value::Int(number.into()));
            Ok(())
        }
        5 => match &*context.get("marks").expect("it is held here") {
            Value::Sequence(marks) if !marks.is_empty() => {
                let at = u32::try_from(dice % marks.len() as u64).expect("there are few");
                context.set_at("marks", &Path(vec![at]), Value::Int((-number).into()))
            }
            _ => Ok(()),
        },
        6 => context.invoke(Audience::All, "say", vec![text]),
        7 => context.invoke(Audience::Others, "say", vec![text]),
        8 => context.invoke(Audience::Own, "say", vec![text]),
        _ => context.set("motto", text),
    };
    done.expect("the values fit");
}

/// Changes a property of the cell part, except the one that counts calls.
fn alter(context: &mut Context<'_>) {
    let properties = &context.entity_type().properties;
    let held = properties.iter().filter(|property| property.name != "notes");
    let held: Vec<String> = held.map(|property| property.name.clone()).collect();
    let name = &held[usize::try_from(context.roll() % held.len() as u64).expect("there are few")];
    let property = context.entity_type().property_named(name).expect("it exists");
    let data_type = property.data_type.clone();
    let value = context.get(name).expect("it is held here").into_owned();
    let change = generate_change(&data_type, &value, &mut || context.roll());
    context.change(name, change).expect("what was generated fits");
}

fn scribble(context: &mut Context<'_>) {
    let dice = context.roll().to_le_bytes();
    let key = FIRST_OWN_KEY + u16::from(dice[0] % 5);
    let value = if dice[1].is_multiple_of(4) {
        &[][..]
    } else {
        &dice[2..4]
    };
    match context.set_space_data(key, value.to_vec()) {
        Ok(()) | Err(Denied::SpaceGone) => {}
        Err(denied) => panic!("{denied}"),
    }
}

fn append(context: &mut Context<'_>, property: &str, value: Value) {
    let Ok(Value::Sequence(mut values)) = context.get(property).map(Cow::into_owned) else {
        panic!("{property} is a sequence");
    };
    if property == "marks" && values.len() > 5 {
        values.clear();
    }
    values.push(value);
    context.set(property, Value::Sequence(values)).expect("the value fits");
}

fn wander(context: &mut Context<'_>) {
    let way = context.roll() % 4;
    let mut place = context.place().expect("a cell part is somewhere");
    let position = &mut place.position;
    let (axis, step) = match way {
        0 => (&mut position.x, STEP),
        1 => (&mut position.x, -STEP),
        2 => (&mut position.z, STEP),
        _ => (&mut position.z, -STEP),
    };
    *axis = (*axis + step).clamp(-EDGE, EDGE);
    context.move_to(place).expect("it is a place of its space");
}

fn jump(context: &mut Context<'_>, x: f32) {
    let entity = context.entity();
    let mut place: Place = context.place().expect("a cell part is somewhere");
    place.position.x = x;
    context
        .request(Request::Teleport { entity, place })
        .expect("it is real here");
}
