//! Monsters: they wander, or walk from one patrol node to the next; they growl, and can be attacked.

use annals_event::{Gait, Place};
use annals_ids::{ControllerId, Mailbox, Part, Position, TimerId};
use annals_node::{
    Caller, ControllerSignal, Denied, Request,
    typed::{Failure, Reply},
};

use crate::{
    Sample, called_by, combat,
    defs::{
        Effect,
        monster::{BaseBehaviour, Cell, CellBehaviour, TakeDamageReply},
        patrol_node::PatrolNode,
        spawn_point,
    },
    milliseconds, rolled,
};

/// Interval of a monster's periodic timer, milliseconds.
const BREATH_MS: u16 = 500;

/// Duration of a walk in one direction, seconds, and the factor on its speed while it hunts.
const WALK_S: f32 = 3.0;
const HASTE: f32 = 2.0;

/// Distance from the origin at which a monster turns back, metres.
const TURN_BACK: f32 = 80.0;

/// Distance within which a monster may growl at an entity, metres; it does so at one in so many.
const EARSHOT: f32 = 4.0;
const GROWL_ODDS: u64 = 5;

/// Distance to its target at which a hunting monster stops, metres.
const REACH: f32 = 2.0;

/// Damage of a player's blow.
const BLOW: i32 = 10;

/// How long a dead monster stays, milliseconds: long enough for all to see the blow that killed it.
const LIES_MS: u64 = 1_000;

/// Timer tags; [`combat`] has the tags of effects.
const BREATH: u32 = 1;
const GONE: u32 = 2;
const ONWARD: u32 = 3;

/// Controller tags.
const WALK: u32 = 1;
const HUNT: u32 = 2;
const GUARD: u32 = 3;
const ROUND: u32 = 4;

/// Monsters have no base part: spawn points create them without one.
impl BaseBehaviour for Sample {}

impl CellBehaviour for Sample {
    fn created(&self, own: &mut Cell<'_, '_>) -> Result<(), Denied> {
        let first = own.context.roll() % u64::from(BREATH_MS);
        own.context.set_timer(first, BREATH_MS.into(), BREATH);
        own.context.add_proximity(EARSHOT, GUARD)?;
        walk(own)
    }

    fn timer(&self, own: &mut Cell<'_, '_>, _timer: TimerId, tag: u32) -> Result<(), Denied> {
        match tag {
            BREATH if combat::is_alive(own.context)? => combat::recover(own.context),
            BREATH => Ok(()),
            GONE => leave(own),
            ONWARD if combat::is_alive(own.context)? => walk(own),
            ONWARD => Ok(()),
            _ => combat::effect_ends(own.edit_effects()),
        }
    }

    fn controller(
        &self,
        own: &mut Cell<'_, '_>,
        _controller: ControllerId,
        tag: u32,
        signal: ControllerSignal,
    ) -> Result<(), Denied> {
        if !combat::is_alive(own.context)? {
            return Ok(());
        }
        match (tag, signal) {
            (GUARD, ControllerSignal::Entered { .. }) if own.context.roll().is_multiple_of(GROWL_ODDS) => {
                own.to_all_clients().on_growl()
            }
            (HUNT, _) => {
                own.set_target(None)?;
                walk(own)
            }
            (WALK, _) => walk(own),
            (ROUND, ControllerSignal::Arrived) => rest(own),
            _ => Ok(()),
        }
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
        own.set_target(target)?;
        let Some(target) = target.filter(|target| target.entity != own.context.entity()) else {
            return Ok(());
        };
        let gait = Gait::at(own.pace()? * HASTE);
        own.context.move_to_entity(target.entity, REACH, gait, HUNT)?;
        Ok(())
    }
}

/// Walks to its node, if it has one. Otherwise on in more or less the same direction, or back towards the origin when far
/// out.
fn walk(own: &mut Cell<'_, '_>) -> Result<(), Denied> {
    let pace = own.pace()?;
    if let Some(node) = PatrolNode::find(&own.context.zones(), own.next_node()?) {
        own.context.move_to_point(node.position, Gait::at(pace), ROUND)?;
        return Ok(());
    }
    let Some(Place {
        position: Position { x, y, z },
        direction,
        ..
    }) = own.context.place()
    else {
        return Ok(());
    };
    let yaw = if x.abs().max(z.abs()) > TURN_BACK {
        (-x).atan2(-z)
    } else {
        direction.yaw + rolled(own.context, -1.5, 1.5)
    };
    let length = pace * WALK_S;
    let to = Position {
        x: x + yaw.sin() * length,
        y,
        z: z + yaw.cos() * length,
    };
    own.context.move_to_point(to, Gait::at(pace), WALK)?;
    Ok(())
}

/// Waits at its node, and chooses the next one. If the node has been removed, it wanders.
fn rest(own: &mut Cell<'_, '_>) -> Result<(), Denied> {
    let Some(node) = PatrolNode::find(&own.context.zones(), own.next_node()?) else {
        return walk(own);
    };
    if !node.next.is_empty() {
        let choice = own.context.roll() % node.next.len() as u64;
        let next = usize::try_from(choice).ok().and_then(|choice| node.next.get(choice));
        own.set_next_node(next.copied().unwrap_or(node.guid))?;
    }
    own.context.set_timer(milliseconds(node.wait), 0, ONWARD);
    Ok(())
}

/// Subtracts damage. A monster without health left is removed soon after.
fn hurt(own: &mut Cell<'_, '_>, damage: i32, caller: &Caller) -> Result<(i32, i32), Denied> {
    let was_alive = combat::is_alive(own.context)?;
    let (hp, max) = combat::hurt(own.context, damage)?;
    own.to_all_clients().on_damage(damage, called_by(caller))?;
    if hp == 0 && was_alive {
        own.context.stop_moving();
        own.context.set_timer(LIES_MS, 0, GONE);
    }
    Ok((hp, max))
}

/// Removes a dead monster, and notifies its spawn point.
fn leave(own: &mut Cell<'_, '_>) -> Result<(), Denied> {
    if let Some(spawn_point) = own.spawn_point()? {
        let gone = own.context.mailbox(Part::Cell);
        spawn_point::CellMailbox(spawn_point).on_monster_gone(own.context, Some(gone))?;
    }
    let entity = own.context.entity();
    own.context.request(Request::Destroy { entity })
}
