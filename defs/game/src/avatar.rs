//! Avatars: the entities that players control in the world.

use annals_def::typed::Vector3;
use annals_event::{Driver, Outcome, Place};
use annals_ids::{EntityId, Position, SpaceId, TimerId};
use annals_node::{
    Caller, Denied, Request, TeleportFailed,
    typed::{Failure, Later, Reply, Wait, returned},
};

use crate::{
    Sample, called_by, combat,
    defs::{
        Assets, Deal, Effect, Holdings, Home, Table, Wish, account,
        avatar::{
            AddGoldReply, Base, BaseBehaviour, Cell, CellBehaviour, CellMailbox, InspectReply, RemoteTakeDamageReply,
            TYPE, TakeDamageReply, WhoIsReply,
        },
    },
    wishes,
};

/// Interval at which the base part adds to the played time, milliseconds. An avatar without a client at that time
/// leaves.
const PLAYED_EVERY_MS: u64 = 10_000;

/// The same interval, seconds.
const PLAYED_EVERY: u32 = 10;

/// Interval at which the cell part recovers health, milliseconds.
const RECOVER_EVERY_MS: u64 = 1_000;

/// Kind of the effect of being waved at, and how long it lasts, seconds.
const CHEERED: u16 = 1;
const CHEERED_S: f32 = 20.0;

/// Maximum friends.
const MAX_FRIENDS: usize = 100;

/// Tag of the cell part's timer; [`combat`] has the tags of effects.
const RECOVER: u32 = 1;

/// Tag of the base part's pending call: the cell part's answer about damage that was requested here.
const TOOK_DAMAGE: u32 = 0;

impl BaseBehaviour for Sample {
    fn created(&self, own: &mut Base<'_, '_>) -> Result<(), Denied> {
        own.context.set_timer(PLAYED_EVERY_MS, PLAYED_EVERY_MS, 0);
        Ok(())
    }

    fn timer(&self, own: &mut Base<'_, '_>, _timer: TimerId, _tag: u32) -> Result<(), Denied> {
        if own.context.client().is_none() {
            return leave(own);
        }
        let played = own.played_seconds()?;
        own.set_played_seconds(played.saturating_add(PLAYED_EVERY))
    }

    /// The account knows the holdings, and a new client does not.
    fn client_attached(&self, own: &mut Base<'_, '_>) -> Result<(), Denied> {
        match own.account()? {
            Some(account) => account::BaseMailbox(account).show_purse(own.context),
            None => Ok(()),
        }
    }

    fn client_lost(&self, own: &mut Base<'_, '_>) -> Result<(), Denied> {
        leave(own)
    }

    fn destroyed(&self, own: &mut Base<'_, '_>) -> Result<(), Denied> {
        match own.account()? {
            Some(account) => account::BaseMailbox(account).avatar_left(own.context),
            None => Ok(()),
        }
    }

    fn replied(&self, own: &mut Base<'_, '_>, then: u32, note: &[u8], outcome: &Outcome) -> Result<(), Denied> {
        if let (TOOK_DAMAGE, Some(later)) = (then, Later::from_note(note)) {
            let took = returned::<TakeDamageReply>(outcome);
            let reply = took.map(|TakeDamageReply { health, .. }| RemoteTakeDamageReply { health });
            later.answer(own.context, reply);
        }
        Ok(())
    }

    fn set_title(&self, own: &mut Base<'_, '_>, _caller: &Caller, title: String) -> Result<(), Failure> {
        Ok(CellMailbox::of(own.context).show_title(own.context, title)?)
    }

    fn ping(&self, own: &mut Base<'_, '_>, _caller: &Caller, number: u32) -> Result<(), Failure> {
        Ok(CellMailbox::of(own.context).ping_cell(own.context, number)?)
    }

    fn add_friend(&self, own: &mut Base<'_, '_>, _caller: &Caller, name: String) -> Result<(), Failure> {
        let friends = own.friends()?;
        if !friends.contains(&name) && friends.len() < MAX_FRIENDS {
            own.edit_friends().push(name)?;
        }
        Ok(())
    }

    fn propose_trade(&self, own: &mut Base<'_, '_>, _caller: &Caller, partner: u64) -> Result<(), Failure> {
        wish(own, wishes::PROPOSE, |wish| wish.partner = partner)
    }

    fn offer(&self, own: &mut Base<'_, '_>, _caller: &Caller, trade: Deal, assets: Assets) -> Result<(), Failure> {
        wish(own, wishes::OFFER, |wish| (wish.trade, wish.assets) = (trade, assets))
    }

    fn withdraw(&self, own: &mut Base<'_, '_>, _caller: &Caller, trade: Deal, assets: Assets) -> Result<(), Failure> {
        wish(own, wishes::WITHDRAW, |wish| {
            (wish.trade, wish.assets) = (trade, assets);
        })
    }

    fn accept_trade(&self, own: &mut Base<'_, '_>, _caller: &Caller, trade: Deal, version: u64) -> Result<(), Failure> {
        wish(own, wishes::ACCEPT, |wish| {
            (wish.trade, wish.version) = (trade, version);
        })
    }

    fn cancel_trade(&self, own: &mut Base<'_, '_>, _caller: &Caller, trade: Deal) -> Result<(), Failure> {
        wish(own, wishes::CANCEL, |wish| wish.trade = trade)
    }

    fn give(&self, own: &mut Base<'_, '_>, _caller: &Caller, partner: u64, assets: Assets) -> Result<(), Failure> {
        wish(own, wishes::GIVE, |wish| {
            (wish.partner, wish.assets) = (partner, assets);
        })
    }

    fn wear(&self, own: &mut Base<'_, '_>, _caller: &Caller, assets: Assets) -> Result<(), Failure> {
        wish(own, wishes::WEAR, |wish| wish.assets = assets)
    }

    fn take_off(&self, own: &mut Base<'_, '_>, _caller: &Caller, assets: Assets) -> Result<(), Failure> {
        wish(own, wishes::TAKE_OFF, |wish| wish.assets = assets)
    }

    fn show_holdings(&self, own: &mut Base<'_, '_>, _caller: &Caller, holdings: Holdings) -> Result<(), Failure> {
        Ok(own.to_own_client().on_holdings(holdings)?)
    }

    fn show_trade(&self, own: &mut Base<'_, '_>, _caller: &Caller, table: Table) -> Result<(), Failure> {
        Ok(own.to_own_client().on_trade(table)?)
    }

    fn show_outcome(
        &self,
        own: &mut Base<'_, '_>,
        _caller: &Caller,
        what: u8,
        done: u8,
        said: String,
    ) -> Result<(), Failure> {
        Ok(own.to_own_client().on_outcome(what, done, said)?)
    }

    fn log_off(&self, own: &mut Base<'_, '_>, _caller: &Caller) -> Result<(), Failure> {
        Ok(leave(own)?)
    }

    fn remote_take_damage(
        &self,
        own: &mut Base<'_, '_>,
        caller: &Caller,
        damage: i32,
    ) -> Result<Reply<RemoteTakeDamageReply>, Failure> {
        let later = Later::<RemoteTakeDamageReply>::new(caller);
        let wait = Wait::then(TOOK_DAMAGE, later.to_note());
        CellMailbox::of(own.context).ask_take_damage(own.context, damage, wait)?;
        Ok(Reply::Later)
    }

    fn who_is(&self, own: &mut Base<'_, '_>, _caller: &Caller) -> Result<Reply<WhoIsReply>, Failure> {
        let (name, played_seconds) = (own.known_as()?, own.played_seconds()?);
        Ok(Reply::Now(WhoIsReply { name, played_seconds }))
    }
}

/// Forwards a request of the player, one of [`wishes`] with its arguments, to the account.
fn wish(own: &mut Base<'_, '_>, what: u8, complete: impl FnOnce(&mut Wish)) -> Result<(), Failure> {
    let mut wish = Wish {
        what,
        ..Wish::default()
    };
    complete(&mut wish);
    match own.account()? {
        Some(account) => Ok(account::BaseMailbox(account).wish(own.context, wish)?),
        None => Ok(()),
    }
}

fn leave(own: &mut Base<'_, '_>) -> Result<(), Denied> {
    let entity = own.context.entity();
    own.context.request(Request::Destroy { entity })
}

impl CellBehaviour for Sample {
    fn created(&self, own: &mut Cell<'_, '_>) -> Result<(), Denied> {
        if let Some(Place { space, position, .. }) = own.context.place() {
            let Position { x, y, z } = position;
            own.set_home(Some(Home {
                space: space.0,
                place: Vector3([x, y, z]),
            }))?;
        }
        own.context.set_timer(RECOVER_EVERY_MS, RECOVER_EVERY_MS, RECOVER);
        Ok(())
    }

    fn timer(&self, own: &mut Cell<'_, '_>, _timer: TimerId, tag: u32) -> Result<(), Denied> {
        if tag != RECOVER {
            return combat::effect_ends(own.edit_effects());
        }
        let steps = own.steps()?;
        own.set_steps(steps.saturating_add(1))?;
        combat::recover(own.context)
    }

    fn teleported(&self, own: &mut Cell<'_, '_>, _before: SpaceId) -> Result<(), Denied> {
        wake(own)
    }

    fn teleport_failed(&self, own: &mut Cell<'_, '_>, _why: &TeleportFailed) -> Result<(), Denied> {
        wake(own)
    }

    fn take_damage(
        &self,
        own: &mut Cell<'_, '_>,
        caller: &Caller,
        damage: i32,
    ) -> Result<Reply<TakeDamageReply>, Failure> {
        let (health, max_health) = combat::hurt(own.context, damage)?;
        own.to_all_clients().on_damage(damage, called_by(caller))?;
        if health == 0 {
            return_home(own)?;
        }
        Ok(Reply::Now(TakeDamageReply { health, max_health }))
    }

    fn add_effect(&self, own: &mut Cell<'_, '_>, _caller: &Caller, effect: Effect) -> Result<(), Failure> {
        if let Some(until) = combat::add_effect(own.edit_effects(), effect)? {
            until.begin(own.context);
        }
        Ok(())
    }

    fn say(&self, own: &mut Cell<'_, '_>, _caller: &Caller, text: String) -> Result<(), Failure> {
        Ok(own.to_all_clients().on_say(text)?)
    }

    fn emote(&self, own: &mut Cell<'_, '_>, _caller: &Caller, emote: u8) -> Result<(), Failure> {
        Ok(own.to_all_clients().on_emote(emote)?)
    }

    fn set_mood(&self, own: &mut Cell<'_, '_>, _caller: &Caller, mood: u8) -> Result<(), Failure> {
        Ok(own.set_mood(mood)?)
    }

    fn follow(&self, own: &mut Cell<'_, '_>, _caller: &Caller, leader: u64) -> Result<(), Failure> {
        let leader = EntityId(leader);
        if leader.0 == 0 {
            own.context.set_driver(Driver::Client)?;
        } else if own
            .context
            .look_at(leader)
            .is_some_and(|seen| seen.entity_type.id == TYPE)
        {
            own.context.set_driver(Driver::ClientOf(leader))?;
        }
        Ok(())
    }

    fn wave(&self, own: &mut Cell<'_, '_>, caller: &Caller) -> Result<(), Failure> {
        cheer(own)?;
        Ok(own.to_all_clients().on_wave(called_by(caller))?)
    }

    fn inspect(&self, own: &mut Cell<'_, '_>, _caller: &Caller) -> Result<Reply<InspectReply>, Failure> {
        let (health, mood) = (own.hp()?, own.mood()?);
        Ok(Reply::Now(InspectReply { health, mood }))
    }

    fn show_title(&self, own: &mut Cell<'_, '_>, _caller: &Caller, title: String) -> Result<(), Failure> {
        Ok(own.set_title(title)?)
    }

    fn ping_cell(&self, own: &mut Cell<'_, '_>, _caller: &Caller, number: u32) -> Result<(), Failure> {
        Ok(own.to_own_client().on_pong(number)?)
    }

    fn add_gold(&self, own: &mut Cell<'_, '_>, _caller: &Caller, amount: u32) -> Result<Reply<AddGoldReply>, Failure> {
        let gold = own.gold()?.saturating_add(amount);
        own.set_gold(gold)?;
        Ok(Reply::Now(AddGoldReply { gold }))
    }
}

/// A wave cheers an avatar up, and further ones do so more.
fn cheer(own: &mut Cell<'_, '_>) -> Result<(), Denied> {
    if combat::strengthen(own.edit_effects(), CHEERED)? {
        return Ok(());
    }
    let effect = Effect {
        kind: CHEERED,
        strength: 1,
        left: CHEERED_S,
    };
    if let Some(until) = combat::add_effect(own.edit_effects(), effect)? {
        until.begin(own.context);
    }
    Ok(())
}

/// Moves a defeated avatar to its home, or revives it in place if it has none.
fn return_home(own: &mut Cell<'_, '_>) -> Result<(), Denied> {
    let (Some(home), Some(place)) = (own.home()?, own.context.place()) else {
        return wake(own);
    };
    let Vector3([x, y, z]) = home.place;
    let position = Position { x, y, z };
    own.context.teleport(Place { position, ..place })
}

/// Revives a defeated avatar.
fn wake(own: &mut Cell<'_, '_>) -> Result<(), Denied> {
    if combat::is_alive(own.context)? {
        return Ok(());
    }
    combat::heal(own.context)?;
    own.set_title("the beaten".to_owned())
}
