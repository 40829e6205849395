//! Monsters: they walk about, growl, and can be struck.

use annals_event::Place;
use annals_ids::{Direction, Mailbox, Part, Position, TimerId};
use annals_node::{
    Caller, Denied, Request,
    typed::{Failure, Reply},
};

use crate::{
    Sample, called_by, combat,
    defs::{
        Effect,
        monster::{BaseBehaviour, Cell, CellBehaviour, TakeDamageReply},
        spawn_point,
    },
    rolled,
};

/// How often a monster takes a step, milliseconds.
const STEP_MS: u16 = 500;

/// How far from the origin a monster turns back, metres.
const TURN_BACK: f32 = 80.0;

/// One step in so many it growls.
const GROWL_ODDS: u64 = 20;

/// What a player's blow costs.
const BLOW: i32 = 10;

/// How long a dead monster lies there, milliseconds: long enough for all to see the blow that killed it.
const LIES_MS: u64 = 1_000;

/// What the timers mean; the effects' are [`combat`]'s.
const STEP: u32 = 1;
const GONE: u32 = 2;

/// Monsters have no base part: spawn points make them without.
impl BaseBehaviour for Sample {}

impl CellBehaviour for Sample {
    fn created(&self, own: &mut Cell<'_, '_>) -> Result<(), Denied> {
        let first = own.context.roll() % u64::from(STEP_MS);
        own.context.set_timer(first, STEP_MS.into(), STEP);
        Ok(())
    }

    fn timer(&self, own: &mut Cell<'_, '_>, _timer: TimerId, tag: u32) -> Result<(), Denied> {
        match tag {
            STEP if combat::is_alive(own.context)? => {}
            STEP => return Ok(()),
            GONE => return leave(own),
            _ => return combat::effect_ends(own.edit_effects()),
        }
        step(own)?;
        combat::recover(own.context)?;
        if own.context.roll().is_multiple_of(GROWL_ODDS) {
            own.to_all_clients().on_growl()?;
        }
        Ok(())
    }

    fn take_damage(
        &self,
        own: &mut Cell<'_, '_>,
        caller: &Caller,
        damage: i32,
    ) -> Result<Reply<TakeDamageReply>, Failure> {
        let (health, max_health) = hurt(own, damage, caller)?;
        Ok(Reply::Now(TakeDamageReply { health, max_health }))
    }

    fn add_effect(&self, own: &mut Cell<'_, '_>, _caller: &Caller, effect: Effect) -> Result<(), Failure> {
        if let Some(until) = combat::add_effect(own.edit_effects(), effect)? {
            until.begin(own.context);
        }
        Ok(())
    }

    fn strike(&self, own: &mut Cell<'_, '_>, caller: &Caller) -> Result<(), Failure> {
        hurt(own, BLOW, caller)?;
        Ok(())
    }

    fn call(&self, own: &mut Cell<'_, '_>, _caller: &Caller, target: Option<Mailbox>) -> Result<(), Failure> {
        Ok(own.set_target(target)?)
    }
}

fn step(own: &mut Cell<'_, '_>) -> Result<(), Denied> {
    let pace = own.pace()?;
    let Some(Place {
        space,
        position: Position { x, y, z },
        direction,
    }) = own.context.place()
    else {
        return Ok(());
    };
    let yaw = if x.abs().max(z.abs()) > TURN_BACK {
        (-x).atan2(-z)
    } else {
        direction.yaw + rolled(own.context, -0.5, 0.5)
    };
    let length = pace * f32::from(STEP_MS) / 1_000.0;
    let position = Position {
        x: x + yaw.sin() * length,
        y,
        z: z + yaw.cos() * length,
    };
    let direction = Direction { yaw, ..direction };
    own.context.move_to(Place {
        space,
        position,
        direction,
    });
    Ok(())
}

/// Takes health away. A monster that has none left will soon be gone.
fn hurt(own: &mut Cell<'_, '_>, damage: i32, caller: &Caller) -> Result<(i32, i32), Denied> {
    let was_alive = combat::is_alive(own.context)?;
    let (hp, max) = combat::hurt(own.context, damage)?;
    own.to_all_clients().on_damage(damage, called_by(caller))?;
    if hp == 0 && was_alive {
        own.context.set_timer(LIES_MS, 0, GONE);
    }
    Ok((hp, max))
}

/// A dead monster is gone, and its spawn point is told.
fn leave(own: &mut Cell<'_, '_>) -> Result<(), Denied> {
    if let Some(spawn_point) = own.spawn_point()? {
        let gone = own.context.mailbox(Part::Cell);
        spawn_point::CellMailbox(spawn_point).on_monster_gone(own.context, Some(gone))?;
    }
    let entity = own.context.entity();
    own.context.request(Request::Destroy { entity });
    Ok(())
}
