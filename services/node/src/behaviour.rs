//! Game code: the trait behind which every host of game code sits.

use annals_def::{Replaced, Value};
use annals_event::{
    CallError, GlobalScope, Link, Outcome, Place,
    ledger::{Booking, Order},
};
use annals_ids::{Address, CallNumber, ControllerId, EntityId, MemberId, OwnerId, SessionId, SpaceId, TimerId, TypeId};

use crate::{
    context::{Context, Denied},
    ghost_view::GhostView,
    inquiry::{Learned, NotLearned},
    output::Request,
    teleport::TeleportFailed,
};

/// The caller of a method, and the address for an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caller {
    /// The link on which the call came.
    pub link: Link,
    /// The caller's home.
    pub home: OwnerId,
    /// The call's number; 0 for a call within one owner, which needs none.
    pub number: CallNumber,
    /// Whether the caller waits for an answer.
    pub wants_reply: bool,
    /// The called method, by its index among those of the part; `None` for a call within one owner, and if no method is
    /// called.
    pub method: Option<MemberId>,
}

impl Caller {
    /// The client session, if a client called.
    ///
    /// ```
    /// # use annals_reference::*;
    /// /// Whether a client called, and not an entity.
    /// fn is_from_client(caller: &Caller) -> bool {
    ///     caller.client().is_some()
    /// }
    /// ```
    #[must_use]
    pub fn client(&self) -> Option<SessionId> {
        match self.link.from {
            Address::Client(session) => Some(session),
            _ => None,
        }
    }
}

/// Result of a method call. One-way calls ignore it.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// These values, in the order of the definition.
    Return(Vec<Value>),
    /// An error, returned to the caller.
    Fail(CallError),
    /// No answer yet: the game calls [`Context::answer`] later, with the same [`Caller`].
    Later,
}

impl Answer {
    /// The answer of a method without return values.
    pub const DONE: Answer = Answer::Return(Vec::new());

    pub(crate) fn outcome(self) -> Option<Outcome> {
        match self {
            Answer::Return(values) => Some(Ok(values)),
            Answer::Fail(error) => Some(Err(error)),
            Answer::Later => None,
        }
    }
}

/// An event of a controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ControllerSignal {
    /// The entity has arrived, and the controller has ended (`onMove`).
    Arrived,
    /// The entity has passed a waypoint, and goes on (`onMove` of a patrol).
    Passed {
        /// Index of the waypoint.
        waypoint: u32,
    },
    /// The entity cannot go on, and the controller has ended (`onMoveFailure`): the target entity is not known here any
    /// more, or is in another space; no cell is responsible for the next position; or the steps are lost in rounding,
    /// because the entity is too slow for its distance from the origin.
    Failed,
    /// The entity looks in the wanted direction, and the controller has ended (`onTurn`).
    Turned,
    /// An entity has entered the trap (`onEnterTrap`).
    Entered {
        /// The entity in the trap.
        who: EntityId,
    },
    /// An entity has left the trap, or has ceased to exist (`onLeaveTrap`).
    Left {
        /// The entity that left.
        who: EntityId,
    },
    /// The vehicle has ceased to exist or is in another space, and the controller has ended.
    Unseated,
}

/// The first base entity of a realm.
#[derive(Clone, Debug, PartialEq)]
pub struct Bootstrap {
    pub type_id: TypeId,
    /// Properties of the base part that differ from their defaults.
    pub properties: Vec<(MemberId, Value)>,
}

/// Behaviour of all entity types of a game, on bases and cells alike; [`Context`] names the entity and part.
///
/// It need not be deterministic: its effects are in the log, and replay never runs it again. It must keep no state of
/// its own between calls, because that would be lost with the process; lasting state belongs in properties, timers and
/// the notes of awaited replies.
pub trait Behaviour: Send + Sync {
    /// The first entity of the realm (`onBaseAppReady(isBootstrap)`): once it is [created](Behaviour::created), it
    /// creates everything that must exist before the first player connects. It is created once in the realm's life,
    /// when the world has its first cells, so that its `created` can request cell parts. A realm whose game had none
    /// gets it when a newer game has one.
    ///
    /// ```
    /// # use annals_reference::*;
    /// # struct MyGame;
    /// impl Game for MyGame {
    ///     fn bootstrap(&self) -> Option<Bootstrap> {
    ///         Some(Bootstrap { type_id: avatar::TYPE, properties: Vec::new() })
    ///     }
    /// }
    /// # hooks!(MyGame: game);
    /// # let (realm, _, _) = enter(MyGame);
    /// # assert_eq!(realm.count(&[BASE], "Avatar"), 1);
    /// ```
    fn bootstrap(&self) -> Option<Bootstrap> {
        None
    }

    /// The part was created. Its properties have their initial values. The base part of an entity is created before its
    /// cell part; a stored entity's base part at each activation.
    ///
    /// ```
    /// # use annals_reference::*;
    /// # struct MyGame;
    /// impl hero::CellBehaviour for MyGame {
    ///     fn created(&self, own: &mut hero::Cell<'_, '_>) -> Result<(), Denied> {
    ///         own.context.add_proximity(10.0, 0)?;
    ///         own.set_hp(20)
    ///     }
    /// }
    /// # hooks!(MyGame: cell);
    /// # let (realm, player, hero) = enter(MyGame);
    /// # assert_eq!(realm.read(player, hero, "hp"), Some(20));
    /// ```
    fn created(&self, _context: &mut Context<'_>) {}

    /// The part was recovered by a process that took its owner over (`onRestore`), after a loss or as planned, with its
    /// properties, timers, controllers and awaited replies.
    ///
    /// ```
    /// # use annals_reference::*;
    /// # struct MyGame;
    /// impl hero::CellBehaviour for MyGame {
    ///     fn restored(&self, own: &mut hero::Cell<'_, '_>) -> Result<(), Denied> {
    ///         own.set_hp(1)
    ///     }
    /// }
    /// # hooks!(MyGame: cell);
    /// # let (mut realm, player, hero) = enter(MyGame);
    /// # realm.crash(EAST);
    /// # realm.until("it is restored", |realm| realm.read(player, hero, "hp") == Some(1));
    /// ```
    fn restored(&self, _context: &mut Context<'_>) {}

    /// The part is about to be destroyed (`onDestroy`). It can still call others and clients.
    ///
    /// ```
    /// # use annals_reference::*;
    /// # struct MyGame;
    /// impl hero::CellBehaviour for MyGame {
    ///     fn destroyed(&self, own: &mut hero::Cell<'_, '_>) -> Result<(), Denied> {
    ///         own.to_all_clients().on_say("Farewell".to_owned())
    ///     }
    /// }
    /// # impl hero::BaseBehaviour for MyGame {
    /// #     fn client_lost(&self, own: &mut hero::Base<'_, '_>) -> Result<(), Denied> {
    /// #         let entity = own.context.entity();
    /// #         own.context.request(Request::Destroy { entity })
    /// #     }
    /// # }
    /// # hooks!(MyGame: both);
    /// # let (mut realm, player, hero) = enter(MyGame);
    /// # let other = realm.join();
    /// # realm.entered(other, "Hero");
    /// # realm.lose(player);
    /// # realm.pass(30_000);
    /// # realm.until("it ends", |realm| realm.count(&[WEST, EAST], "Hero") == 1);
    /// ```
    fn destroyed(&self, _context: &mut Context<'_>) {}

    /// A method is called. Number and types of the arguments match the definition, and a client's right to call was
    /// checked.
    ///
    /// ```
    /// # use annals_reference::*;
    /// /// Answers every call with an error. Generated code calls the method's own function instead.
    /// struct Deaf;
    ///
    /// impl Behaviour for Deaf {
    ///     fn call(&self, _: &mut Context<'_>, _method: ids::MemberId, _: &[Value], _: &Caller) -> Answer {
    ///         Answer::Fail(CallError::Internal("nobody listens".to_owned()))
    ///     }
    /// }
    /// # let mut realm = TestRealm::new(schema(), std::sync::Arc::new(Deaf), account::TYPE);
    /// # realm.join();
    /// # realm.pass(200);
    /// ```
    fn call(&self, context: &mut Context<'_>, method: MemberId, args: &[Value], caller: &Caller) -> Answer;

    /// The call with this `then` and `note` was answered, or has failed: [`Context::ask`], [`Context::call_outside`]
    /// and [`Context::stream_to_client`] name them. After the deadline, the outcome is
    /// [`CallError::NoReply`](annals_event::CallError::NoReply).
    ///
    /// ```
    /// # use annals_reference::*;
    /// # struct MyGame;
    /// /// What to do with an answer.
    /// const PRICE: u32 = 1;
    ///
    /// impl hero::BaseBehaviour for MyGame {
    ///     fn replied(&self, own: &mut hero::Base<'_, '_>, then: u32, _note: &[u8], outcome: &Outcome) -> Result<(), Denied> {
    ///         match (then, node::typed::returned::<avatar::PriceReply>(outcome)) {
    ///             (PRICE, Ok(price)) => own.set_title(format!("pays {}", price.gold)),
    ///             (_, Ok(_)) => Ok(()),
    ///             (_, Err(error)) => own.set_title(format!("gets no price: {error}")),
    ///         }
    ///     }
    /// #     fn client_attached(&self, own: &mut hero::Base<'_, '_>) -> Result<(), Denied> {
    /// #         let nobody = avatar::CellMailbox(own.context.mailbox(Part::Cell));
    /// #         let place = Mailbox { type_id: avatar::TYPE, ..nobody.0 };
    /// #         avatar::CellMailbox(place).ask_price(own.context, 3, Wait { timeout_ms: 500, then: PRICE, note: Vec::new() })
    /// #     }
    /// }
    /// # hooks!(MyGame: base);
    /// # let (mut realm, player, hero) = enter(MyGame);
    /// # realm.until("it knows", |realm| {
    /// #     realm.read::<String>(player, hero, "title").is_some_and(|title| title.starts_with("gets no price"))
    /// # });
    /// ```
    fn replied(&self, _context: &mut Context<'_>, _then: u32, _note: &[u8], _outcome: &Outcome) {}

    /// The database query with this `then` and `note` was answered, or has failed (base part).
    ///
    /// ```
    /// # use annals_reference::*;
    /// # struct MyGame;
    /// const PET: u32 = 1;
    ///
    /// impl hero::BaseBehaviour for MyGame {
    ///     fn client_attached(&self, own: &mut hero::Base<'_, '_>) -> Result<(), Denied> {
    ///         hero::BaseMailbox::create_anywhere(own.context, hero::NewBase::default(), Wait::then(PET, Vec::new()))
    ///     }
    ///
    ///     fn learned(
    ///         &self,
    ///         own: &mut hero::Base<'_, '_>,
    ///         then: u32,
    ///         _note: &[u8],
    ///         outcome: &Result<Learned, NotLearned>,
    ///     ) -> Result<(), Denied> {
    ///         match (then, outcome) {
    ///             (PET, Ok(Learned::Created { .. })) => own.set_title("has a pet".to_owned()),
    ///             _ => Ok(()),
    ///         }
    ///     }
    /// }
    /// # hooks!(MyGame: base);
    /// # let (mut realm, player, hero) = enter(MyGame);
    /// # realm.until("it knows", |realm| realm.read::<String>(player, hero, "title").as_deref() == Some("has a pet"));
    /// ```
    fn learned(&self, _context: &mut Context<'_>, _then: u32, _note: &[u8], _outcome: &Result<Learned, NotLearned>) {}

    /// A timer of [`Context::set_timer`] fired. One that was due while its process was being replaced fires afterwards,
    /// once, whatever its interval.
    ///
    /// ```
    /// # use annals_reference::*;
    /// # struct MyGame;
    /// const HEAL: u32 = 1;
    ///
    /// impl hero::CellBehaviour for MyGame {
    ///     fn created(&self, own: &mut hero::Cell<'_, '_>) -> Result<(), Denied> {
    ///         own.context.set_timer(1_000, 1_000, HEAL);
    ///         Ok(())
    ///     }
    ///
    ///     fn timer(&self, own: &mut hero::Cell<'_, '_>, _timer: TimerId, tag: u32) -> Result<(), Denied> {
    ///         match tag {
    ///             HEAL => own.set_hp(own.hp()?.saturating_add(1)),
    ///             _ => Ok(()),
    ///         }
    ///     }
    /// }
    /// # hooks!(MyGame: cell);
    /// # let (mut realm, player, hero) = enter(MyGame);
    /// # realm.until("it is healed", |realm| realm.read(player, hero, "hp") == Some(12));
    /// ```
    fn timer(&self, _context: &mut Context<'_>, _timer: TimerId, _tag: u32) {}

    /// An event of a controller with that tag (cell part): `onMove`, `onMoveFailure`, `onTurn`, `onEnterTrap`,
    /// `onLeaveTrap` and the like.
    ///
    /// ```
    /// # use annals_reference::*;
    /// # struct MyGame;
    /// const WALK: u32 = 1;
    ///
    /// impl hero::CellBehaviour for MyGame {
    ///     fn created(&self, own: &mut hero::Cell<'_, '_>) -> Result<(), Denied> {
    ///         own.context.set_driver(Driver::Server)?;
    ///         own.context.move_to_point(Position { x: 4.0, y: 0.0, z: 0.0 }, Gait::at(4.0), WALK)?;
    ///         Ok(())
    ///     }
    ///
    ///     fn controller(
    ///         &self,
    ///         own: &mut hero::Cell<'_, '_>,
    ///         _controller: ControllerId,
    ///         tag: u32,
    ///         signal: ControllerSignal,
    ///     ) -> Result<(), Denied> {
    ///         match (tag, signal) {
    ///             (WALK, ControllerSignal::Arrived) => own.to_all_clients().on_say("Here I am".to_owned()),
    ///             _ => Ok(()),
    ///         }
    ///     }
    /// }
    /// # hooks!(MyGame: cell);
    /// # let (mut realm, player, hero) = enter(MyGame);
    /// # realm.until("it arrives", |realm| !realm.received(player, hero, "onSay").is_empty());
    /// ```
    fn controller(&self, _context: &mut Context<'_>, _controller: ControllerId, _tag: u32, _signal: ControllerSignal) {}

    /// The client that drives the entity wants to move it there, within its top speed (cell part; the custom physics
    /// validator). Returns whether to accept the move. If not, the client is moved back to the entity's place, which this
    /// method may change.
    ///
    /// ```
    /// # use annals_reference::*;
    /// # struct MyGame;
    /// impl Game for MyGame {
    ///     /// Nobody leaves the garden.
    ///     fn client_moves(&self, _context: &mut Context<'_>, to: Place) -> bool {
    ///         to.position.x.abs() <= 10.0
    ///     }
    /// }
    /// # hooks!(MyGame: game);
    /// # let (mut realm, player, hero) = enter(MyGame);
    /// # realm.stand(player, Position { x: 30.0, y: 0.0, z: 0.0 });
    /// # realm.until("it is put back", |realm| realm.position(player, hero) == Some(Position::default()));
    /// ```
    fn client_moves(&self, _context: &mut Context<'_>, _to: Place) -> bool {
        true
    }

    /// A client controls the entity from now on (base part): its player logged in, or another entity
    /// [gave](Request::GiveClient) it the client. A client that resumes its session within 30 s after it lost its
    /// connection attaches no second time.
    ///
    /// ```
    /// # use annals_reference::*;
    /// # struct MyGame;
    /// impl hero::BaseBehaviour for MyGame {
    ///     fn client_attached(&self, own: &mut hero::Base<'_, '_>) -> Result<(), Denied> {
    ///         own.to_own_client().on_say("Welcome".to_owned())
    ///     }
    /// }
    /// # hooks!(MyGame: base);
    /// # let (mut realm, player, hero) = enter(MyGame);
    /// # realm.until("it is welcome", |realm| !realm.received(player, hero, "onSay").is_empty());
    /// ```
    fn client_attached(&self, _context: &mut Context<'_>) {}

    /// The client is gone for good (`onClientDeath`, base part): it logged out, did not come back within 30 s, was
    /// closed by [`Request::CloseClient`], was replaced by another log-in, or its account was banned.
    ///
    /// ```
    /// # use annals_reference::*;
    /// # struct MyGame;
    /// impl hero::BaseBehaviour for MyGame {
    ///     fn client_lost(&self, own: &mut hero::Base<'_, '_>) -> Result<(), Denied> {
    ///         let entity = own.context.entity();
    ///         own.context.request(Request::Destroy { entity })
    ///     }
    /// }
    /// # hooks!(MyGame: base);
    /// # let (mut realm, player, _) = enter(MyGame);
    /// # realm.lose(player);
    /// # realm.pass(30_000);
    /// # realm.until("its hero is gone", |realm| realm.count(&[BASE, EAST], "Hero") == 0);
    /// ```
    fn client_lost(&self, _context: &mut Context<'_>) {}

    /// The entity has got a cell part (`onGetCell`, base part).
    ///
    /// ```
    /// # use annals_reference::*;
    /// # struct MyGame;
    /// impl hero::BaseBehaviour for MyGame {
    ///     fn cell_gained(&self, own: &mut hero::Base<'_, '_>) -> Result<(), Denied> {
    ///         own.set_title("in the world".to_owned())
    ///     }
    /// }
    /// # hooks!(MyGame: base);
    /// # let (mut realm, player, hero) = enter(MyGame);
    /// # realm.until("it knows", |realm| realm.read::<String>(player, hero, "title").as_deref() == Some("in the world"));
    /// ```
    fn cell_gained(&self, _context: &mut Context<'_>) {}

    /// The entity has no cell part any more (`onLoseCell`, base part): it has ended, and all its calls are delivered;
    /// or the cell has denied its creation. From here on the next one may be requested.
    ///
    /// ```
    /// # use annals_reference::*;
    /// # struct MyGame;
    /// impl hero::BaseBehaviour for MyGame {
    /// #     fn client_lost(&self, own: &mut hero::Base<'_, '_>) -> Result<(), Denied> {
    /// #         let entity = own.context.entity();
    /// #         own.context.request(Request::DestroyCell { entity })
    /// #     }
    ///     fn cell_lost(&self, own: &mut hero::Base<'_, '_>) -> Result<(), Denied> {
    ///         // There is no reason to keep the base part.
    ///         let entity = own.context.entity();
    ///         own.context.request(Request::Destroy { entity })
    ///     }
    /// }
    /// # hooks!(MyGame: base);
    /// # let (mut realm, player, _) = enter(MyGame);
    /// # realm.lose(player);
    /// # realm.pass(30_000);
    /// # realm.until("its hero is gone", |realm| realm.count(&[BASE, EAST], "Hero") == 0);
    /// ```
    fn cell_lost(&self, _context: &mut Context<'_>) {}

    /// The entity's holdings in the ledger are known from now on, with its open trades and its reservations for others
    /// (base part of a stored entity, once in each activation). [`Context::ledger`] returns all of it.
    ///
    /// ```
    /// # use annals_reference::*;
    /// # struct MyGame;
    /// impl account::BaseBehaviour for MyGame {
    ///     fn holdings_known(&self, own: &mut account::Base<'_, '_>) -> Result<(), Denied> {
    ///         let is_new = own.context.ledger().is_some_and(|view| view.last.0 == 0);
    ///         if is_new {
    ///             let goods = event::ledger::Goods { units: [(kinds::COIN, 5)].into(), ..Default::default() };
    ///             let reason = "what everybody begins with".to_owned();
    ///             own.context.order(Order::Mint { slot: slots::CARRIED, goods, reason })?;
    ///         }
    ///         Ok(())
    ///     }
    ///
    ///     fn booked(&self, own: &mut account::Base<'_, '_>, booking: &Booking, _: Option<&Order>) -> Result<(), Denied> {
    ///         own.set_town(format!("{:?}", booking.outcome))
    ///     }
    /// #
    /// #     fn client_attached(&self, own: &mut account::Base<'_, '_>) -> Result<(), Denied> {
    /// #         begin(own)
    /// #     }
    /// #
    /// #     fn act(&self, _: &mut account::Base<'_, '_>, _: &Caller) -> Result<(), Failure> {
    /// #         Ok(())
    /// #     }
    /// }
    /// # impl Game for MyGame {}
    /// # impl hero::BaseBehaviour for MyGame {}
    /// # impl hero::CellBehaviour for MyGame {}
    /// # hooks!(MyGame: without accounts);
    /// # let (mut realm, _, _) = enter(MyGame);
    /// # let booked = |realm: &TestRealm| {
    /// #     let mut accounts = realm.state(BASE).entities.values().filter(|image| image.type_id == account::TYPE);
    /// #     accounts.any(|account| account.properties.values().any(|it| *it == Value::Unicode("Posted".to_owned())))
    /// # };
    /// # realm.until("the coins are booked", booked);
    /// ```
    fn holdings_known(&self, _context: &mut Context<'_>) {}

    /// The ledger processed something that concerns the entity: one of its orders was executed or refused, it received
    /// a gift, one of its trades changed, or a deadline passed (base part). [`Context::ledger`] already includes the
    /// change; `order` is the order of this activation that it answers. [`holdings_known`](Self::holdings_known) shows
    /// a whole game with it.
    ///
    /// ```
    /// # use annals_reference::*;
    /// # use annals_reference::event::ledger::Outcome;
    /// /// The text that a player is shown.
    /// fn shown(booking: &Booking, order: Option<&Order>) -> Option<String> {
    ///     match (&booking.outcome, order) {
    ///         (Outcome::Refused(why), Some(_)) => Some(format!("not done: {why}")),
    ///         (Outcome::Posted, Some(Order::Offer { .. })) => Some("your offer is on the table".to_owned()),
    ///         (Outcome::Posted, None) => Some("you received something".to_owned()),
    ///         _ => None,
    ///     }
    /// }
    /// ```
    fn booked(&self, _context: &mut Context<'_>, _booking: &Booking, _order: Option<&Order>) {}

    /// The cell part's space was destroyed (`onSpaceGone`). The cell part is destroyed after this call, unless it
    /// requests a teleport into another space: then it stays until that has succeeded, or is destroyed when it has
    /// failed.
    ///
    /// ```
    /// # use annals_reference::*;
    /// # struct MyGame;
    /// impl hero::CellBehaviour for MyGame {
    ///     fn space_gone(&self, own: &mut hero::Cell<'_, '_>) -> Result<(), Denied> {
    ///         // Back to the town. Without this, the cell part ends.
    ///         let town = Place { space: SpaceId(7), ..at(0.0, 0.0) };
    ///         own.context.teleport(town)
    ///     }
    /// #
    /// #     fn created(&self, own: &mut hero::Cell<'_, '_>) -> Result<(), Denied> {
    /// #         own.context.destroy_space()
    /// #     }
    /// }
    /// # hooks!(MyGame: cell);
    /// # let mut realm = TestRealm::new(schema(), std::sync::Arc::new(Dispatcher::new(&schema(), MyGame)?), account::TYPE);
    /// # realm.join();
    /// # realm.pass(1_000);
    /// # assert_eq!(realm.count(&[EAST], "Hero"), 0, "the realm of tests has one space");
    /// # Ok::<(), node::typed::OtherSchema>(())
    /// ```
    fn space_gone(&self, _context: &mut Context<'_>) {}

    /// A property of a ghost has changed; the ghost holds the new value already (`callableOnGhost`). `replaced`
    /// distinguishes the whole property (`set_x`), a part (`setNested_x`) and a slice (`setSlice_x`), and holds the old
    /// value. It is called on every cell that has a ghost of the entity and never for the real one. For a ghost that
    /// has missed events, the difference is reported as a change of the whole property.
    ///
    /// ```
    /// # use annals_reference::*;
    /// # struct MyGame;
    /// impl hero::CellBehaviour for MyGame {
    ///     /// Called on each cell that has a ghost of the hero, so it changes nothing: there is no context.
    ///     fn ghost_set_hp(&self, ghost: &hero::Ghost<'_>, old: Option<i32>) {
    ///         assert!(ghost.hp() != old);
    ///     }
    /// }
    /// # hooks!(MyGame: cell);
    /// # let (mut realm, _, _) = enter(MyGame);
    /// # realm.pass(200);
    /// ```
    fn ghost_changed(&self, _ghost: &GhostView<'_>, _property: MemberId, _replaced: &Replaced) {}

    /// Whether [`global_changed`](Self::global_changed) is called for parts of this type. Let few entities follow, such
    /// as managers: each change calls each of them.
    ///
    /// ```
    /// # use annals_reference::*;
    /// # struct MyGame;
    /// impl Game for MyGame {
    ///     fn follows_global_data(&self, entity_type: TypeId) -> bool {
    ///         entity_type == hero::TYPE
    ///     }
    /// }
    /// # hooks!(MyGame: game);
    /// # enter(MyGame);
    /// ```
    fn follows_global_data(&self, _entity_type: TypeId) -> bool {
        false
    }

    /// A value of the global data, or a registration, was set or removed, here or on another owner (`onGlobalData`,
    /// `onDelGlobalData`, `onBaseAppData`, `onCellAppData` and the like): read it from the context. Called for the
    /// parts of types that [follow](Self::follows_global_data), in the input that records the change. Of several
    /// changes to a key in a short time, other owners may receive only the last.
    ///
    /// ```
    /// # use annals_reference::*;
    /// # struct MyGame;
    /// # impl Game for MyGame {
    /// #     fn follows_global_data(&self, entity_type: TypeId) -> bool {
    /// #         entity_type == hero::TYPE
    /// #     }
    /// # }
    /// impl hero::CellBehaviour for MyGame {
    ///     fn global_changed(&self, own: &mut hero::Cell<'_, '_>, scope: GlobalScope, key: &str) -> Result<(), Denied> {
    ///         let value = own.context.global(scope, key).cloned();
    ///         match value {
    ///             Some(Value::Unicode(weather)) if key == "weather" => own.to_all_clients().on_say(weather),
    ///             _ => Ok(()),
    ///         }
    ///     }
    /// }
    /// # impl hero::BaseBehaviour for MyGame {
    /// #     fn client_attached(&self, own: &mut hero::Base<'_, '_>) -> Result<(), Denied> {
    /// #         own.context.set_timer(2_000, 0, 0);
    /// #         Ok(())
    /// #     }
    /// #     fn timer(&self, own: &mut hero::Base<'_, '_>, _: TimerId, _: u32) -> Result<(), Denied> {
    /// #         own.context.set_global(GlobalScope::Realm, "weather", Value::Unicode("rain".to_owned()))
    /// #     }
    /// # }
    /// # hooks!(MyGame: others);
    /// # let (mut realm, player, hero) = enter(MyGame);
    /// # realm.until("it says so", |realm| !realm.received(player, hero, "onSay").is_empty());
    /// ```
    fn global_changed(&self, _context: &mut Context<'_>, _scope: GlobalScope, _key: &str) {}

    /// The part is ready to serve (`onAppReady(isBootstrap)`): its owner has just received the division of the spaces,
    /// after the realm's start as after a take-over. Called for every part present at that time, with `is_bootstrap` on
    /// the base owner that runs the realm's bootstrap.
    ///
    /// ```
    /// # use annals_reference::*;
    /// # struct MyGame;
    /// impl hero::BaseBehaviour for MyGame {
    ///     fn app_ready(&self, own: &mut hero::Base<'_, '_>, _is_bootstrap: bool) -> Result<(), Denied> {
    ///         own.set_title("ready".to_owned())
    ///     }
    /// }
    /// # hooks!(MyGame: base);
    /// # let (mut realm, player, _) = enter(MyGame);
    /// # realm.crash(BASE);
    /// # let hero = realm.entered(player, "Hero");
    /// # realm.until("it is ready again", |realm| realm.read::<String>(player, hero, "title").as_deref() == Some("ready"));
    /// ```
    fn app_ready(&self, _context: &mut Context<'_>, _is_bootstrap: bool) {}

    /// The realm is about to stop (`onAppShuttingDown`): notify players, finish long work, and start none.
    ///
    /// ```
    /// # use annals_reference::*;
    /// # struct MyGame;
    /// impl hero::CellBehaviour for MyGame {
    ///     fn app_shutting_down(&self, own: &mut hero::Cell<'_, '_>) -> Result<(), Denied> {
    ///         own.to_all_clients().on_say("The realm stops".to_owned())
    ///     }
    /// }
    /// # hooks!(MyGame: cell);
    /// # let (mut realm, player, hero) = enter(MyGame);
    /// # realm.announce(node::LifecycleEvent::ShuttingDown);
    /// # realm.pass(500);
    /// # assert_eq!(realm.received(player, hero, "onSay").len(), 1);
    /// ```
    fn app_shutting_down(&self, _context: &mut Context<'_>) {}

    /// The realm stops (`onAppShutDown(stage)`): 0 before clients are disconnected, 1 before stored entities are
    /// written, 2 after that and for the last time. Changes at stage 2 are in the log, but not in the database.
    ///
    /// ```
    /// # use annals_reference::*;
    /// # struct MyGame;
    /// impl hero::BaseBehaviour for MyGame {
    ///     fn app_shut_down(&self, own: &mut hero::Base<'_, '_>, stage: u8) -> Result<(), Denied> {
    ///         own.set_title(format!("stopped at stage {stage}"))
    ///     }
    /// }
    /// # hooks!(MyGame: base);
    /// # let (mut realm, player, hero) = enter(MyGame);
    /// # realm.announce(node::LifecycleEvent::ShutDown(node::ShutDown::Parting));
    /// # realm.pass(500);
    /// # let stopped = Value::Unicode("stopped at stage 0".to_owned());
    /// # assert!(realm.state(BASE).entities[&hero].properties.values().any(|title| *title == stopped));
    /// ```
    fn app_shut_down(&self, _context: &mut Context<'_>, _stage: u8) {}

    /// The cell part was teleported and stands at its destination (`onTeleport`, `onTeleportSuccess`); before, it was
    /// in space `before`, which may be another (`onEnteringSpace`). This is called on the cell that holds it after the
    /// teleport.
    ///
    /// ```
    /// # use annals_reference::*;
    /// # struct MyGame;
    /// impl hero::CellBehaviour for MyGame {
    /// #     fn created(&self, own: &mut hero::Cell<'_, '_>) -> Result<(), Denied> {
    /// #         own.context.teleport(at(-50.0, 0.0))
    /// #     }
    ///     fn teleported(&self, own: &mut hero::Cell<'_, '_>, _before: SpaceId) -> Result<(), Denied> {
    ///         own.set_hp(1)
    ///     }
    /// }
    /// # hooks!(MyGame: cell);
    /// # let (mut realm, player, hero) = enter(MyGame);
    /// # realm.until("it is there", |realm| realm.read(player, hero, "hp") == Some(1));
    /// ```
    fn teleported(&self, _context: &mut Context<'_>, _before: SpaceId) {}

    /// A teleport failed (`onTeleportFailure`). The cell part stands where it stood, with its state unchanged.
    ///
    /// ```
    /// # use annals_reference::*;
    /// # struct MyGame;
    /// impl hero::CellBehaviour for MyGame {
    /// #     fn created(&self, own: &mut hero::Cell<'_, '_>) -> Result<(), Denied> {
    /// #         own.context.teleport(Place { space: SpaceId(7), ..at(0.0, 0.0) })
    /// #     }
    ///     fn teleport_failed(&self, own: &mut hero::Cell<'_, '_>, why: &TeleportFailed) -> Result<(), Denied> {
    ///         match why {
    ///             TeleportFailed::NoSpace(_) => own.set_hp(1),
    ///             other => own.to_own_client().on_say(other.to_string()),
    ///         }
    ///     }
    /// }
    /// # hooks!(MyGame: cell);
    /// # let (mut realm, player, hero) = enter(MyGame);
    /// # realm.until("it knows", |realm| realm.read(player, hero, "hp") == Some(1));
    /// ```
    fn teleport_failed(&self, _context: &mut Context<'_>, _why: &TeleportFailed) {}

    /// A request that the part made with [`Context::request`] was denied, because of a change since it was made, or of
    /// something that only its owner knows (`onGiveClientToFailure`). By default, this is written to the process log.
    ///
    /// ```
    /// # use annals_reference::*;
    /// # struct MyGame;
    /// impl hero::BaseBehaviour for MyGame {
    /// #     fn cell_gained(&self, own: &mut hero::Base<'_, '_>) -> Result<(), Denied> {
    /// #         hero::BaseMailbox::of(own.context).create_cell(own.context, at(0.0, 0.0), hero::NewCell::default())
    /// #     }
    ///     fn request_denied(&self, own: &mut hero::Base<'_, '_>, _request: &Request, why: &Denied) -> Result<(), Denied> {
    ///         match why {
    ///             Denied::HasCell { .. } => own.set_title("is there already".to_owned()),
    ///             _ => Err(why.clone()),
    ///         }
    ///     }
    /// }
    /// # hooks!(MyGame: base);
    /// # let (mut realm, player, hero) = enter(MyGame);
    /// # realm.until("it knows", |realm| {
    /// #     realm.read::<String>(player, hero, "title").as_deref() == Some("is there already")
    /// # });
    /// ```
    fn request_denied(&self, context: &mut Context<'_>, _request: &Request, why: &Denied) {
        context.report(why.clone());
    }

    /// The receiver of one-way calls is gone; the newest of them may not have been consumed.
    ///
    /// ```
    /// # use annals_reference::*;
    /// # struct MyGame;
    /// impl hero::CellBehaviour for MyGame {
    /// #     fn created(&self, own: &mut hero::Cell<'_, '_>) -> Result<(), Denied> {
    /// #         let nobody = Mailbox { entity: EntityId(1 << 50), type_id: avatar::TYPE, ..own.context.mailbox(Part::Cell) };
    /// #         avatar::CellMailbox(nobody).heal(own.context, 1)
    /// #     }
    ///     fn calls_lost(&self, own: &mut hero::Cell<'_, '_>, _to: Address) -> Result<(), Denied> {
    ///         own.set_hp(1)
    ///     }
    /// }
    /// # hooks!(MyGame: cell);
    /// # let (mut realm, player, hero) = enter(MyGame);
    /// # realm.until("it knows", |realm| realm.read(player, hero, "hp") == Some(1));
    /// ```
    fn calls_lost(&self, _context: &mut Context<'_>, _to: Address) {}
}
