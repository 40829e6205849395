//! An avatar that does what an example says, and a monster beside it.

use std::{
    mem,
    sync::{Arc, Mutex, PoisonError},
};

use crate::{
    Address, Booking, Bootstrap, Caller, Context, ControllerId, ControllerSignal, DatabaseId, Denied, EntityId,
    Failure, GlobalScope, Learned, Mailbox, NotLearned, Order, Outcome, Part, Reply, Request, SpaceId, TeleportFailed,
    TestRealm, TimerId, TypeId, account, at, avatar,
    defs::{Dispatcher, Game},
    event::ledger::Goods,
    hero, kinds, monster, note_store, schema, slots,
};

/// Part of an example, to be run as behaviour.
type Act = Box<dyn FnOnce(&mut Context<'_>) + Send>;

/// What the game and the example share.
#[derive(Default)]
struct Shared {
    act: Mutex<Option<Act>>,
    /// Hooks that were called, oldest first.
    called: Mutex<Vec<String>>,
}

impl Shared {
    fn note(&self, hook: String) -> Result<(), Denied> {
        self.called.lock().unwrap_or_else(PoisonError::into_inner).push(hook);
        Ok(())
    }

    fn act(&self, context: &mut Context<'_>) {
        let act = self.act.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(act) = act {
            act(context);
        }
    }
}

/// The game of scenes: the player's avatar acts and notes which hooks are called; the rest is as simple as can be.
struct Stage(Arc<Shared>);

/// A realm in which a player has an avatar, at (5, 0, 0), with a monster 3 m east of it.
pub struct Scene {
    pub realm: TestRealm,
    pub player: usize,
    pub avatar: EntityId,
    pub account: Mailbox,
    pub monster: Mailbox,
    shared: Arc<Shared>,
}

impl Default for Scene {
    fn default() -> Self {
        Self::new()
    }
}

impl Scene {
    /// A realm with a player.
    ///
    /// # Panics
    /// If the player does not enter it.
    #[must_use]
    pub fn new() -> Self {
        let schema = schema();
        let shared = Arc::new(Shared::default());
        let game = Dispatcher::new(&schema, Stage(Arc::clone(&shared))).expect("the game is of this world");
        let mut realm = TestRealm::new(schema, Arc::new(game), account::TYPE);
        let player = realm.join();
        let avatar = realm.entered(player, "Avatar");
        realm.until("the monster is seen", |realm| !realm.seen(player, "Monster").is_empty());
        let monster = Mailbox {
            entity: realm.seen(player, "Monster")[0],
            home: crate::EAST,
            type_id: monster::TYPE,
            part: Part::Cell,
        };
        realm.until("the account has its holdings", |_| {
            let called = shared.called.lock().unwrap_or_else(PoisonError::into_inner);
            called.contains(&"holdings_known".to_owned())
        });
        let accounts = realm.state(crate::BASE).entities.iter();
        let mut accounts = accounts.filter(|(_, image)| image.type_id == account::TYPE);
        let account = accounts.next().map(|(entity, _)| Mailbox {
            entity: *entity,
            home: crate::BASE,
            type_id: account::TYPE,
            part: Part::Base,
        });
        let account = account.expect("the player has one");
        shared.called.lock().unwrap_or_else(PoisonError::into_inner).clear();
        Self {
            realm,
            player,
            avatar,
            account,
            monster,
            shared,
        }
    }

    /// Runs a function as behaviour of the avatar's cell part, and returns what it returns.
    ///
    /// # Panics
    /// If it is not run or fails.
    pub fn on_cell<T: Send + 'static>(
        &mut self,
        act: impl FnOnce(&mut avatar::Cell<'_, '_>) -> Result<T, Denied> + Send + 'static,
    ) -> T {
        let act = move |context: &mut Context<'_>| act(&mut avatar::Cell::of(context)?);
        self.run(Some((self.avatar, Part::Cell)), act)
    }

    /// Runs a function as behaviour of the avatar's base part, and returns what it returns.
    ///
    /// # Panics
    /// If it is not run or fails.
    pub fn on_base<T: Send + 'static>(
        &mut self,
        act: impl FnOnce(&mut avatar::Base<'_, '_>) -> Result<T, Denied> + Send + 'static,
    ) -> T {
        let act = move |context: &mut Context<'_>| act(&mut avatar::Base::of(context)?);
        self.run(Some((self.avatar, Part::Base)), act)
    }

    /// Runs a function as behaviour of the player's account, a stored entity, and returns what it returns.
    ///
    /// # Panics
    /// If it is not run or fails.
    pub fn on_account<T: Send + 'static>(
        &mut self,
        act: impl FnOnce(&mut account::Base<'_, '_>) -> Result<T, Denied> + Send + 'static,
    ) -> T {
        let act = move |context: &mut Context<'_>| act(&mut account::Base::of(context)?);
        self.run(None, act)
    }

    /// The client calls the avatar. The account has no client by then, so another owner's entity calls it.
    fn run<T: Send + 'static>(
        &mut self,
        on: Option<(EntityId, Part)>,
        act: impl FnOnce(&mut Context<'_>) -> Result<T, Denied> + Send + 'static,
    ) -> T {
        let result = Arc::new(Mutex::new(None));
        let written = Arc::clone(&result);
        let act: Act = Box::new(move |context| {
            let done = act(context);
            *written.lock().unwrap_or_else(PoisonError::into_inner) = Some(done);
        });
        *self.shared.act.lock().unwrap_or_else(PoisonError::into_inner) = Some(act);
        match on {
            Some((entity, part)) => {
                self.realm.call(self.player, entity, part, "act", &[]);
                let shared = Arc::clone(&self.shared);
                self.realm.until("the example has run", |_| {
                    shared.act.lock().unwrap_or_else(PoisonError::into_inner).is_none()
                });
            }
            None => drop(self.realm.ask_base(self.account.entity, "act", Vec::new())),
        }
        let done = result.lock().unwrap_or_else(PoisonError::into_inner).take();
        done.expect("the example has run")
            .unwrap_or_else(|denied| panic!("{denied}"))
    }

    /// Gives the account ten coins, and lets another player enter, whose account is returned.
    ///
    /// # Panics
    /// If the ledger does not book that.
    pub fn rich_friend(&mut self) -> DatabaseId {
        let friend = self.realm.join();
        self.realm.entered(friend, "Avatar");
        self.pass(500);
        self.on_account(|own| {
            let goods = Goods {
                units: [(kinds::COIN, 10)].into(),
                ..Goods::default()
            };
            let (slot, reason) = (slots::CARRIED, "for the example".to_owned());
            own.context.order(Order::Mint { slot, goods, reason })
        });
        self.pass(1_000);
        assert!(self.called().contains(&"booked Posted".to_owned()));
        let mut stored = self.realm.state(crate::BASE).databases.iter();
        let friend = stored.find(|(_, entity)| **entity != self.account.entity);
        *friend.expect("both accounts are stored").0
    }

    /// Advances time.
    pub fn pass(&mut self, milliseconds: u64) {
        self.realm.pass(milliseconds);
    }

    /// The hooks of the avatar and the account that were called since the last time, oldest first, with their arguments:
    /// `timer 7`.
    #[must_use]
    pub fn called(&self) -> Vec<String> {
        mem::take(&mut *self.shared.called.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Runs a function as behaviour of an avatar's cell part.
///
/// # Panics
/// If it fails.
pub fn on_cell<T: Send + 'static>(
    act: impl FnOnce(&mut avatar::Cell<'_, '_>) -> Result<T, Denied> + Send + 'static,
) -> T {
    Scene::new().on_cell(act)
}

/// Runs a function as behaviour of an avatar's base part.
///
/// # Panics
/// If it fails.
pub fn on_base<T: Send + 'static>(
    act: impl FnOnce(&mut avatar::Base<'_, '_>) -> Result<T, Denied> + Send + 'static,
) -> T {
    Scene::new().on_base(act)
}

/// Runs a function as behaviour of an account, which is a stored entity.
///
/// # Panics
/// If it fails.
pub fn on_account<T: Send + 'static>(
    act: impl FnOnce(&mut account::Base<'_, '_>) -> Result<T, Denied> + Send + 'static,
) -> T {
    Scene::new().on_account(act)
}

impl Game for Stage {
    fn bootstrap(&self) -> Option<Bootstrap> {
        None
    }

    fn follows_global_data(&self, entity_type: TypeId) -> bool {
        entity_type == avatar::TYPE
    }
}

impl account::BaseBehaviour for Stage {
    fn client_attached(&self, own: &mut account::Base<'_, '_>) -> Result<(), Denied> {
        let from = own.context.entity();
        let avatar = match own.avatar()? {
            Some(avatar) => avatar,
            None => {
                let avatar = avatar::BaseMailbox::create(own.context, avatar::NewBase::default())?;
                own.set_avatar(Some(avatar.0))?;
                avatar.create_cell(own.context, at(5.0, 0.0), avatar::NewCell::default())?;
                avatar.0
            }
        };
        own.context.request(Request::GiveClient { from, to: avatar })
    }

    fn learned(
        &self,
        _own: &mut account::Base<'_, '_>,
        then: u32,
        _note: &[u8],
        outcome: &Result<Learned, NotLearned>,
    ) -> Result<(), Denied> {
        self.0.note(format!("learned {then} {outcome:?}"))
    }

    fn holdings_known(&self, _own: &mut account::Base<'_, '_>) -> Result<(), Denied> {
        self.0.note("holdings_known".to_owned())
    }

    fn booked(
        &self,
        _own: &mut account::Base<'_, '_>,
        booking: &Booking,
        _order: Option<&Order>,
    ) -> Result<(), Denied> {
        self.0.note(format!("booked {:?}", booking.outcome))
    }

    fn request_denied(&self, _own: &mut account::Base<'_, '_>, _request: &Request, why: &Denied) -> Result<(), Denied> {
        self.0.note(format!("request_denied {why}"))
    }

    fn destroyed(&self, _own: &mut account::Base<'_, '_>) -> Result<(), Denied> {
        self.0.note("destroyed".to_owned())
    }

    fn act(&self, own: &mut account::Base<'_, '_>, _caller: &Caller) -> Result<(), Failure> {
        self.0.act(own.context);
        Ok(())
    }
}

/// An outcome, without the mailbox of an entity that was created.
fn briefly(outcome: &Result<Learned, NotLearned>) -> String {
    match outcome {
        Ok(Learned::Created { .. }) => "Created".to_owned(),
        other => format!("{other:?}"),
    }
}

impl avatar::BaseBehaviour for Stage {
    fn replied(
        &self,
        _own: &mut avatar::Base<'_, '_>,
        then: u32,
        _note: &[u8],
        outcome: &Outcome,
    ) -> Result<(), Denied> {
        self.0.note(format!("replied {then} {outcome:?}"))
    }

    fn learned(
        &self,
        _own: &mut avatar::Base<'_, '_>,
        then: u32,
        _note: &[u8],
        outcome: &Result<Learned, NotLearned>,
    ) -> Result<(), Denied> {
        self.0.note(format!("learned {then} {}", briefly(outcome)))
    }

    fn timer(&self, _own: &mut avatar::Base<'_, '_>, _timer: TimerId, tag: u32) -> Result<(), Denied> {
        self.0.note(format!("timer {tag}"))
    }

    fn global_changed(&self, _own: &mut avatar::Base<'_, '_>, scope: GlobalScope, key: &str) -> Result<(), Denied> {
        self.0.note(format!("global_changed {scope:?} {key}"))
    }

    fn request_denied(&self, _own: &mut avatar::Base<'_, '_>, _request: &Request, why: &Denied) -> Result<(), Denied> {
        self.0.note(format!("request_denied {why}"))
    }

    fn client_attached(&self, _own: &mut avatar::Base<'_, '_>) -> Result<(), Denied> {
        self.0.note("client_attached".to_owned())
    }

    fn client_lost(&self, _own: &mut avatar::Base<'_, '_>) -> Result<(), Denied> {
        self.0.note("client_lost".to_owned())
    }

    fn cell_gained(&self, _own: &mut avatar::Base<'_, '_>) -> Result<(), Denied> {
        self.0.note("cell_gained".to_owned())
    }

    fn cell_lost(&self, _own: &mut avatar::Base<'_, '_>) -> Result<(), Denied> {
        self.0.note("cell_lost".to_owned())
    }

    fn act(&self, own: &mut avatar::Base<'_, '_>, _caller: &Caller) -> Result<(), Failure> {
        self.0.act(own.context);
        Ok(())
    }
}

impl avatar::CellBehaviour for Stage {
    fn created(&self, own: &mut avatar::Cell<'_, '_>) -> Result<(), Denied> {
        monster::CellMailbox::create_alone(own.context, at(8.0, 0.0), monster::NewCell::default())?;
        Ok(())
    }

    fn replied(
        &self,
        _own: &mut avatar::Cell<'_, '_>,
        then: u32,
        _note: &[u8],
        outcome: &Outcome,
    ) -> Result<(), Denied> {
        self.0.note(format!("replied {then} {outcome:?}"))
    }

    fn learned(
        &self,
        _own: &mut avatar::Cell<'_, '_>,
        then: u32,
        _note: &[u8],
        outcome: &Result<Learned, NotLearned>,
    ) -> Result<(), Denied> {
        self.0.note(format!("learned {then} {}", briefly(outcome)))
    }

    fn timer(&self, _own: &mut avatar::Cell<'_, '_>, _timer: TimerId, tag: u32) -> Result<(), Denied> {
        self.0.note(format!("timer {tag}"))
    }

    fn calls_lost(&self, _own: &mut avatar::Cell<'_, '_>, _to: Address) -> Result<(), Denied> {
        self.0.note("calls_lost".to_owned())
    }

    fn controller(
        &self,
        _own: &mut avatar::Cell<'_, '_>,
        _controller: ControllerId,
        tag: u32,
        signal: ControllerSignal,
    ) -> Result<(), Denied> {
        let signal = match signal {
            ControllerSignal::Entered { .. } => "Entered".to_owned(),
            ControllerSignal::Left { .. } => "Left".to_owned(),
            other => format!("{other:?}"),
        };
        self.0.note(format!("controller {tag} {signal}"))
    }

    fn teleported(&self, _own: &mut avatar::Cell<'_, '_>, _before: SpaceId) -> Result<(), Denied> {
        self.0.note("teleported".to_owned())
    }

    fn teleport_failed(&self, _own: &mut avatar::Cell<'_, '_>, why: &TeleportFailed) -> Result<(), Denied> {
        self.0.note(format!("teleport_failed {why}"))
    }

    fn space_gone(&self, _own: &mut avatar::Cell<'_, '_>) -> Result<(), Denied> {
        self.0.note("space_gone".to_owned())
    }

    fn act(&self, own: &mut avatar::Cell<'_, '_>, _caller: &Caller) -> Result<(), Failure> {
        self.0.act(own.context);
        Ok(())
    }

    fn heal(&self, own: &mut avatar::Cell<'_, '_>, _caller: &Caller, points: i32) -> Result<(), Failure> {
        Ok(own.set_hp(own.hp()?.saturating_add(points))?)
    }

    fn price(
        &self,
        _own: &mut avatar::Cell<'_, '_>,
        _caller: &Caller,
        kind: u16,
    ) -> Result<Reply<avatar::PriceReply>, Failure> {
        let gold = u32::from(kind) * 10;
        Ok(Reply::Now(avatar::PriceReply { gold }))
    }
}

impl hero::BaseBehaviour for Stage {}

impl hero::CellBehaviour for Stage {}

impl monster::BaseBehaviour for Stage {}

impl monster::CellBehaviour for Stage {
    fn take_damage(
        &self,
        own: &mut monster::Cell<'_, '_>,
        _caller: &Caller,
        points: i32,
    ) -> Result<Reply<monster::TakeDamageReply>, Failure> {
        let hp = own.hp()?.saturating_sub(points);
        own.set_hp(hp)?;
        Ok(Reply::Now(monster::TakeDamageReply { hp }))
    }
}

impl note_store::BaseBehaviour for Stage {
    fn add_note(&self, _own: &mut note_store::Base<'_, '_>, _caller: &Caller, text: String) -> Result<(), Failure> {
        Ok(self.0.note(format!("add_note {text}"))?)
    }
}
