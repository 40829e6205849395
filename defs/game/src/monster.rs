//! Monsters: they walk about, growl, and can be struck.

use annals_def::Value;
use annals_event::{Audience, Place};
use annals_ids::{Direction, Part, Position};
use annals_node::{Answer, Caller, Context, Denied, Request};

use crate::{called_by, combat, rolled, signed, unknown};

/// How often a monster takes a step, milliseconds.
const STEP_MS: u16 = 500;

/// How far from the origin a monster turns back, metres.
const TURN_BACK: f32 = 80.0;

/// One step in so many it growls.
const GROWL_ODDS: u64 = 20;

/// What a player's blow costs.
const BLOW: i64 = 10;

/// How long a dead monster lies there, milliseconds: long enough for all to see the blow that killed it.
const LIES_MS: u64 = 1_000;

/// What the timers mean; the effects' are [`combat`]'s.
const STEP: u32 = 1;
const GONE: u32 = 2;

pub(crate) fn created(context: &mut Context<'_>) -> Result<(), Denied> {
    let first = context.roll() % u64::from(STEP_MS);
    context.set_timer(first, STEP_MS.into(), STEP);
    Ok(())
}

pub(crate) fn timer(context: &mut Context<'_>, tag: u32) -> Result<(), Denied> {
    match tag {
        STEP if signed(context.get("hp")?) > 0 => {}
        STEP => return Ok(()),
        GONE => return leave(context),
        _ => return combat::effect_ends(context),
    }
    step(context)?;
    combat::recover(context)?;
    if context.roll().is_multiple_of(GROWL_ODDS) {
        context.invoke(Audience::All, "onGrowl", Vec::new())?;
    }
    Ok(())
}

fn step(context: &mut Context<'_>) -> Result<(), Denied> {
    let pace = match context.get("pace")? {
        Value::Float32(pace) => *pace,
        _ => 0.0,
    };
    let Some(Place {
        space,
        position: Position { x, y, z },
        direction,
    }) = context.place()
    else {
        return Ok(());
    };
    let yaw = if x.abs().max(z.abs()) > TURN_BACK {
        (-x).atan2(-z)
    } else {
        direction.yaw + rolled(context, -0.5, 0.5)
    };
    let length = pace * f32::from(STEP_MS) / 1_000.0;
    let position = Position {
        x: x + yaw.sin() * length,
        y,
        z: z + yaw.cos() * length,
    };
    let direction = Direction { yaw, ..direction };
    context.move_to(Place {
        space,
        position,
        direction,
    });
    Ok(())
}

pub(crate) fn call(context: &mut Context<'_>, name: &str, args: &[Value], caller: &Caller) -> Result<Answer, Denied> {
    match (name, args) {
        ("strike", []) => {
            hurt(context, BLOW, caller)?;
        }
        ("takeDamage", [damage]) => {
            let (hp, max) = hurt(context, signed(damage), caller)?;
            return Ok(combat::answer(hp, max));
        }
        ("addEffect", [effect]) => combat::add_effect(context, effect)?,
        ("call", [target]) => context.set("target", target.clone())?,
        _ => return Ok(unknown(name)),
    }
    Ok(Answer::DONE)
}

/// Takes health away. A monster that has none left will soon be gone.
fn hurt(context: &mut Context<'_>, damage: i64, caller: &Caller) -> Result<(i64, i64), Denied> {
    let was_alive = signed(context.get("hp")?) > 0;
    let (hp, max) = combat::take_damage(context, damage, called_by(caller))?;
    if hp == 0 && was_alive {
        context.set_timer(LIES_MS, 0, GONE);
    }
    Ok((hp, max))
}

/// A dead monster is gone, and its spawn point is told.
fn leave(context: &mut Context<'_>) -> Result<(), Denied> {
    if let Value::Mailbox(Some(spawn_point)) = *context.get("spawnPoint")? {
        let own = Value::Mailbox(Some(context.mailbox(Part::Cell)));
        context.call(spawn_point, "onMonsterGone", vec![own])?;
    }
    let entity = context.entity();
    context.request(Request::Destroy { entity });
    Ok(())
}
