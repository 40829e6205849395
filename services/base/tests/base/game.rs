//! A small game: accounts that count and list the calls they get, and avatars with a cell part.

use std::num::NonZeroU32;
use std::sync::Arc;

use annals_def::{
    AccountView, Argument, DataType, Distribution, EntityType, Exposure, Holding, Index, Method, Path, Property,
    Schema, Sequence, Value,
};
use annals_event::{
    Audience, CallError, GlobalScope, Outcome, Place,
    ledger::{Assets, Booking, Order},
};
use annals_ids::{
    AssetKind, DatabaseId, EntityId, MemberId, Part, Position, Slot, SpaceId, TimerId, TransferId, TypeId,
};
use annals_node::{
    Answer, Behaviour, Bootstrap, Caller, Context, Denied, Request,
    inquiry::{Learned, NotLearned, Wanted},
    outbound::read_answer,
    typed::{Later, Returned},
};

pub(crate) const ACCOUNT: TypeId = TypeId(0);
pub(crate) const AVATAR: TypeId = TypeId(1);
/// Like an avatar, but its definition says that it is not stored.
pub(crate) const TORCH: TypeId = TypeId(2);

/// The type that clients know an account as; of an account's exposed methods, it does not expose `note`.
pub(crate) const ENVOY: TypeId = TypeId(3);

/// The motto of an entity that requests a cell part as soon as it is created.
pub(crate) const ROOTED: &str = "rooted";

/// The receiver of what a call has an entity bestow, and the kinds of asset.
pub(crate) const FRIEND: DatabaseId = DatabaseId(99);
pub(crate) const COIN: AssetKind = AssetKind(1);
pub(crate) const SPOON: AssetKind = AssetKind(2);

/// How long entities wait for the database.
pub(crate) const TIMEOUT_MS: u64 = 10_000;

/// Continuation of downloads.
pub(crate) const FETCHED: u32 = 13;

/// The entity that "summon" activates.
pub(crate) const SUMMONED: DatabaseId = DatabaseId(77);

pub(crate) const NOTE: &[u8] = b"for later";

/// Tags of an entity's requests: the answers come back with these.
const KEPT: u32 = 1;
const LOOKED: u32 = 2;
const CALLED: u32 = 3;
pub(crate) const MADE: u32 = 4;

/// Where avatars appear.
pub(crate) const PLACE: Place = Place {
    space: SpaceId(1),
    position: Position { x: 1.0, y: 0.0, z: 2.0 },
    direction: annals_ids::Direction {
        yaw: 0.0,
        pitch: 0.0,
        roll: 0.0,
    },
};

pub(crate) fn schema() -> Arc<Schema> {
    let mut account = EntityType::new("Account");
    account.parts.cell = false;
    let mut avatar = EntityType::new("Avatar");
    for entity_type in [&mut account, &mut avatar] {
        entity_type.properties = vec![
            Property::new("notes", numbers(), Distribution::BaseAndClient),
            Property::new("trail", DataType::Unicode, Distribution::Base),
            Property::new("motto", DataType::Unicode, Distribution::BaseAndClient),
        ];
        entity_type.properties[2].persistent = true;
        let mut email = Property::new("email", DataType::Blob, Distribution::Base);
        email.persistent = true;
        entity_type.properties.extend(email.sealed(DataType::Unicode));
        entity_type.properties[2].indexed = Index::Plain;
        entity_type.base_methods = vec![
            exposed("note", vec![Argument::new("number", DataType::UInt32)]),
            exposed("say", vec![Argument::new("text", DataType::Unicode)]),
            exposed("become", vec![Argument::new("times", DataType::UInt8)]),
            exposed("leave", Vec::new()),
            exposed("shed", Vec::new()),
            exposed("quit", Vec::new()),
            exposed("grow", Vec::new()),
            Method::new("secret", vec![Argument::new("number", DataType::UInt32)]),
            Method::new("keep", Vec::new()),
            exposed("bestow", vec![Argument::new("units", DataType::UInt32)]),
            Method::new("keep_surely", Vec::new()),
            Method::new("look", Vec::new()),
            Method::new("summon", Vec::new()),
            Method::new("cheat", Vec::new()),
            exposed("confide", vec![Argument::new("email", DataType::Unicode)]),
            exposed("recall", vec![Argument::new("email", DataType::Unicode)]),
            exposed("pry", Vec::new()),
            Method::new("run_errand", Vec::new()),
            exposed("shout", vec![Argument::new("number", DataType::UInt32)]),
        ];
        let shout = entity_type.base_methods.last_mut();
        shout.expect("it has methods").calls_per_minute = Some(30);
        entity_type.base_methods.push(price_method());
        entity_type.client_methods = vec![Method::new("show_text", vec![Argument::new("text", DataType::Unicode)])];
    }
    account.properties.extend([
        view(
            "coins",
            DataType::UInt64,
            Distribution::BaseAndClient,
            Holding::Units(COIN),
        ),
        view(
            "spoons",
            DataType::UInt64,
            Distribution::BaseAndClient,
            Holding::Units(SPOON),
        ),
        view("hidden", DataType::UInt64, Distribution::Base, Holding::Units(COIN)),
    ]);
    avatar
        .properties
        .push(Property::new("hp", DataType::Int32, Distribution::AllClients));
    avatar.cell_methods = vec![exposed("hit", vec![Argument::new("number", DataType::UInt32)])];
    let mut torch = avatar.clone();
    torch.name = "Torch".into();
    torch.persistent = false;
    let mut envoy = account.clone();
    envoy.name = "Envoy".into();
    envoy.client_type = Some(ACCOUNT);
    envoy.base_methods[0].exposed = Exposure::No;
    Arc::new(Schema::new(vec![account, avatar, torch, envoy], Vec::new(), Vec::new()))
}

/// The values of "price".
pub(crate) struct Price(pub(crate) u64);

impl Returned for Price {
    fn into_values(self) -> Vec<Value> {
        vec![Value::UInt(self.0), Value::Unicode("Ann".into())]
    }

    fn from_values(_values: &[Value]) -> Result<Self, CallError> {
        unreachable!("nobody here asks")
    }
}

/// Kinds of which the price is known later, the values are not as declared, or there is no price.
pub(crate) const LATER: u64 = 200;
pub(crate) const WRONG: u64 = 201;
pub(crate) const POOR: u64 = 202;
/// Kinds with an answer that is for the game's programmers, that is too large, or with which the entity ends.
pub(crate) const BROKEN: u64 = 203;
pub(crate) const HUGE: u64 = 204;
pub(crate) const LAST: u64 = 205;

fn price(context: &mut Context<'_>, kind: u64, caller: &Caller) -> Answer {
    match kind {
        LATER => {
            // In a property that is kept, as a game would.
            let note = Later::<Price>::new(caller).to_note();
            let text: String = note.iter().map(|byte| char::from(*byte)).collect();
            context.set("motto", Value::Unicode(text)).unwrap();
            Answer::Later
        }
        WRONG => Answer::Return(vec![Value::UInt(1)]),
        POOR => Answer::Fail(poor()),
        BROKEN => Answer::Fail(CallError::Internal("table prices is missing".into())),
        HUGE => Answer::Return(vec![Value::UInt(1), Value::Unicode("x".repeat(3 << 20))]),
        LAST => {
            let entity = context.entity();
            context.request(Request::Destroy { entity }).unwrap();
            Answer::Return(Price(1).into_values())
        }
        kind => Answer::Return(Price(kind).into_values()),
    }
}

pub(crate) fn poor() -> CallError {
    CallError::Custom("Poor".into(), "70 are missing".into())
}

/// Answers the call for which "price" had no answer yet.
pub(crate) fn answer_later(context: &mut Context<'_>) {
    let note = text(&context.get("motto").unwrap());
    let note: Vec<u8> = note.chars().map(|byte| u8::try_from(byte).unwrap()).collect();
    let later = Later::<Price>::from_note(&note).expect("it is a note");
    later.answer(context, Ok(Price(99)));
}

/// A method that answers.
fn price_method() -> Method {
    let mut price = exposed("price", vec![Argument::new("kind", DataType::UInt8)]);
    price.returns = vec![
        Argument::new("gold", DataType::UInt32),
        Argument::new("seller", DataType::Unicode),
    ];
    price
}

/// A property that is a view of an account of the first slot.
fn view(name: &str, data_type: DataType, distribution: Distribution, shows: Holding) -> Property {
    let account = Some(AccountView { slot: Slot(0), shows });
    Property {
        account,
        ..Property::new(name, data_type, distribution)
    }
}

fn numbers() -> DataType {
    DataType::Array(std::sync::Arc::new(Sequence {
        of: DataType::UInt32,
        size: None,
        element_default: Value::UInt(0),
        persist_as_blob: false,
    }))
}

fn exposed(name: &str, args: Vec<Argument>) -> Method {
    let mut method = Method::new(name, args);
    method.exposed = Exposure::OwnClient;
    method
}

/// The game's behaviour. It writes what happens to an entity to the entity's `trail`, one letter each.
#[derive(Clone, Debug, Default)]
pub(crate) struct Game {
    pub(crate) bootstrap: Option<Bootstrap>,
    /// What "run_errand" does.
    pub(crate) errand: Option<fn(&mut Context<'_>)>,
    /// Whether all entities follow global data.
    pub(crate) follows: bool,
    /// The limit of the rate of downloads, bits per second.
    pub(crate) download_bits: Option<NonZeroU32>,
}

impl Game {
    fn mark(context: &mut Context<'_>, letter: char) {
        let has_trail = context.entity_type().property_named("trail").is_some();
        if context.part() == Part::Base && has_trail {
            let mut trail = text(&context.get("trail").unwrap());
            trail.push(letter);
            context.set("trail", Value::Unicode(trail)).unwrap();
        }
    }
}

impl Behaviour for Game {
    fn bootstrap(&self) -> Option<Bootstrap> {
        self.bootstrap.clone()
    }

    fn created(&self, context: &mut Context<'_>) {
        Self::mark(context, 'b');
        if context.entity_type().name == "Mint" {
            let adviser = context.service("Adviser").unwrap();
            context.call(adviser, "advise", vec![Value::UInt(5)]).unwrap();
        }
        if context.entity_type().property_named("motto").is_some() && text(&context.get("motto").unwrap()) == ROOTED {
            context.request(create_cell(context.entity())).unwrap();
        }
    }

    fn restored(&self, context: &mut Context<'_>) {
        Self::mark(context, 'r');
    }

    fn destroyed(&self, context: &mut Context<'_>) {
        Self::mark(context, 'd');
    }

    fn client_attached(&self, context: &mut Context<'_>) {
        Self::mark(context, 'A');
        let text = Value::Unicode("welcome".into());
        context.invoke(Audience::Own, "show_text", vec![text]).unwrap();
    }

    fn client_lost(&self, context: &mut Context<'_>) {
        Self::mark(context, 'L');
    }

    fn cell_gained(&self, context: &mut Context<'_>) {
        Self::mark(context, 'g');
    }

    fn cell_lost(&self, context: &mut Context<'_>) {
        Self::mark(context, 'l');
    }

    fn request_denied(&self, context: &mut Context<'_>, _request: &Request, why: &Denied) {
        let letter = match why {
            Denied::ClientKept { .. } => 'K',
            Denied::HasCell { .. } => 'C',
            Denied::CellEnding { .. } => 'E',
            Denied::NoCellPart { .. } => 'P',
            Denied::NoSpace(_) => 'N',
            Denied::NotLocated { .. } => 'F',
            Denied::NoFreeSpace { .. } => 'S',
            Denied::ClaimsSpace { .. } => 'W',
            Denied::NotClaimed { .. } => 'X',
            other => panic!("{other}"),
        };
        Self::mark(context, letter);
    }

    fn app_ready(&self, context: &mut Context<'_>, is_bootstrap: bool) {
        Self::mark(context, if is_bootstrap { 'B' } else { 'R' });
    }

    fn app_shutting_down(&self, context: &mut Context<'_>) {
        Self::mark(context, 'S');
    }

    fn app_shut_down(&self, context: &mut Context<'_>, stage: u8) {
        Self::mark(context, char::from(b'0' + stage));
    }

    fn holdings_known(&self, context: &mut Context<'_>) {
        Self::mark(context, 'H');
    }

    fn booked(&self, context: &mut Context<'_>, _booking: &Booking, _order: Option<&Order>) {
        Self::mark(context, 'T');
    }

    fn replied(&self, context: &mut Context<'_>, then: u32, note: &[u8], outcome: &Outcome) {
        assert_eq!(note, NOTE);
        if then == FETCHED {
            let letter = match outcome {
                Ok(values) if values.is_empty() => 'd',
                Err(CallError::NoReply) => 'x',
                Err(CallError::Internal(_)) => 'i',
                other => panic!("{other:?}"),
            };
            return Self::mark(context, letter);
        }
        let letter = match read_answer(outcome) {
            Ok(answer) => {
                assert_eq!(answer, (200, &b"done"[..]));
                'o'
            }
            Err(CallError::NoReply) => 'x',
            Err(other) => panic!("{other}"),
        };
        Self::mark(context, letter);
    }

    fn learned(&self, context: &mut Context<'_>, then: u32, note: &[u8], outcome: &Result<Learned, NotLearned>) {
        assert_eq!(note, NOTE);
        let letter = match (then, outcome) {
            (_, Err(NotLearned::Late)) => 't',
            (_, Err(NotLearned::Taken(_))) => 'X',
            (_, Ok(Learned::Registered { .. })) => 'G',
            (_, Err(_)) => 'n',
            (KEPT, Ok(Learned::Written { .. })) => 'w',
            (LOOKED, Ok(Learned::Found(_))) => 'f',
            (CALLED, Ok(Learned::Begun { .. })) => 's',
            (MADE, Ok(Learned::Created { .. })) => 'e',
            other => panic!("unexpected {other:?}"),
        };
        Self::mark(context, letter);
    }

    fn follows_global_data(&self, _entity_type: TypeId) -> bool {
        self.follows
    }

    fn global_changed(&self, context: &mut Context<'_>, _scope: GlobalScope, _key: &str) {
        Self::mark(context, 'v');
    }

    fn timer(&self, _context: &mut Context<'_>, _timer: TimerId, _tag: u32) {}

    fn call(&self, context: &mut Context<'_>, method: MemberId, args: &[Value], caller: &Caller) -> Answer {
        let entity = context.entity();
        let name = context.entity_type().base_methods[usize::from(method.0)].name.clone();
        match (name.as_str(), args) {
            ("advise", [number]) => {
                let advised = context.set_global(GlobalScope::Bases, "advised", number.clone());
                advised.unwrap();
            }
            ("note" | "shout", [number]) => {
                let mut notes = context.get("notes").unwrap().into_owned();
                let Value::Sequence(numbers) = &mut notes else {
                    unreachable!()
                };
                numbers.push(number.clone());
                context.set("notes", notes).unwrap();
            }
            ("say", [text]) => {
                context.set("motto", text.clone()).unwrap();
                context.invoke(Audience::Own, "show_text", vec![text.clone()]).unwrap();
            }
            ("price", [Value::UInt(kind)]) => return price(context, *kind, caller),
            ("become", [Value::UInt(times)]) => become_avatar(context, *times),
            ("bestow", [Value::UInt(units)]) => {
                let given = context.give(Slot(0), FRIEND, Assets::units(COIN, *units), 60_000);
                Self::mark(context, refusal(&given));
            }
            ("run_errand", []) => self.errand.expect("a test has one")(context),
            ("leave", []) => context.request(Request::Destroy { entity }).unwrap(),
            ("shed", []) => context.request(Request::DestroyCell { entity }).unwrap(),
            ("keep", []) => {
                let letter = if context.store().is_ok() { 'k' } else { 'x' };
                Self::mark(context, letter);
            }
            ("keep_surely", []) => drop(context.store_then(TIMEOUT_MS, (KEPT, NOTE.to_vec())).unwrap()),
            ("look", []) => {
                let motto = Value::Unicode("gone".into());
                let asked = (motto, DatabaseId(0));
                let looked = context.find_stored(("Avatar", "motto"), asked, TIMEOUT_MS, (LOOKED, NOTE.to_vec()));
                looked.unwrap();
            }
            ("summon", []) => {
                let wanted = Wanted::Id(SUMMONED);
                context
                    .begin_stored(wanted, TIMEOUT_MS, (CALLED, NOTE.to_vec()))
                    .unwrap();
            }
            ("cheat", []) => {
                let set = context.set("coins", Value::UInt(1_000));
                let appended = context.append("coins", &Path::WHOLE, Value::UInt(1));
                let coins = context.entity_type().property_named("coins").unwrap().index;
                let made = context
                    .create_base("Account", vec![(coins, Value::UInt(1_000))])
                    .map(drop);
                for denied in [set, appended, made] {
                    assert!(matches!(denied, Err(Denied::Account { .. })), "{denied:?}");
                    Self::mark(context, 'c');
                }
                let forged = context.order(crate::operators::grant(1, "grace"));
                assert!(matches!(forged, Err(Denied::OperatorsOrder)), "{forged:?}");
            }
            ("confide" | "recall" | "pry", _) => confidential(context, &name, args),
            ("grow", []) => context.request(create_cell(entity)).unwrap(),
            ("quit", []) => {
                let reason = annals_wire::client::CloseReason::Ended;
                context.request(Request::CloseClient { entity, reason }).unwrap();
            }
            _ => panic!("{name} was called with {args:?}"),
        }
        Answer::DONE
    }
}

/// The methods that use personal members.
fn confidential(context: &mut Context<'_>, name: &str, args: &[Value]) {
    match (name, args) {
        ("confide", [email]) => {
            let letter = match context.set_personal("email", email) {
                Ok(()) => 'p',
                Err(Denied::NoKey { .. }) => 'n',
                Err(other) => panic!("{other}"),
            };
            Game::mark(context, letter);
        }
        ("recall", [email]) => {
            let letter = match context.personal("email") {
                Ok(None) => '0',
                Ok(Some(held)) if held == *email => '=',
                Ok(Some(_)) => '#',
                Err(Denied::Sealed { .. }) => '!',
                Err(other) => panic!("{other}"),
            };
            Game::mark(context, letter);
        }
        ("pry", []) => {
            let email = context.entity_type().property_named("email").unwrap().index;
            let plain = Value::Bytes(b"plain".to_vec());
            let read = context.get("email").map(drop);
            let set = context.set("email", plain.clone());
            let made = context.create_base("Account", vec![(email, plain)]).map(drop);
            for denied in [read, set, made] {
                assert!(matches!(denied, Err(Denied::Personal { .. })), "{denied:?}");
                Game::mark(context, 'x');
            }
            let wrong = context.set_personal("email", &Value::UInt(1));
            assert!(matches!(wrong, Err(Denied::Mismatch { .. })), "{wrong:?}");
            assert!(context.personal("motto").is_err() && context.set_personal("motto", &Value::UInt(1)).is_err());
        }
        _ => panic!("{name} was called with {args:?}"),
    }
}

/// The outcome of an order, as a letter of the trail.
fn refusal(ordered: &Result<TransferId, Denied>) -> char {
    match ordered {
        Ok(_) => 'o',
        Err(Denied::NotStored) => 's',
        Err(Denied::HoldingsUnknown) => 'u',
        Err(Denied::TooManyOrders) => 'm',
        Err(Denied::Order(_)) => 'n',
        Err(other) => panic!("{other}"),
    }
}

/// Creates an avatar with a cell part and gives it the client; requests the cell part this many times.
fn become_avatar(context: &mut Context<'_>, times: u64) {
    let avatar = context.create_base("Avatar", Vec::new()).unwrap();
    let (entity, place) = (avatar.entity, PLACE);
    context.request(Request::OpenSpace { entity, place }).unwrap();
    for _ in 0..times {
        context.request(create_cell(entity)).unwrap();
    }
    let from = context.entity();
    context.request(Request::GiveClient { from, to: avatar }).unwrap();
}

pub(crate) fn create_cell(entity: EntityId) -> Request {
    Request::CreateCell {
        entity,
        place: PLACE,
        properties: Vec::new(),
    }
}

pub(crate) fn text(value: &Value) -> String {
    match value {
        Value::Unicode(text) => text.clone(),
        _ => panic!("{value:?} is no text"),
    }
}
