//! Avatars: players in the world.

use annals_def::Value;
use annals_event::{Audience, CallError, Outcome};
use annals_ids::{Part, Position};
use annals_node::{Answer, Caller, Context, DEFAULT_TIMEOUT_MS, Denied, Request};

use crate::{called_by, combat, elements, note, signed, text, unknown, unsigned};

/// How often the base part counts what was played, milliseconds. An avatar that nobody plays by then leaves.
const PLAYED_EVERY_MS: u64 = 10_000;

/// How often the cell part recovers, milliseconds.
const RECOVER_EVERY_MS: u64 = 1_000;

/// Most friends.
const MAX_FRIENDS: usize = 100;

/// What the cell part's timers mean; the effects' are [`combat`]'s.
const RECOVER: u32 = 1;

pub(crate) fn base_created(context: &mut Context<'_>) -> Result<(), Denied> {
    context.set_timer(PLAYED_EVERY_MS, PLAYED_EVERY_MS, 0);
    Ok(())
}

pub(crate) fn base_timer(context: &mut Context<'_>) -> Result<(), Denied> {
    if context.client().is_none() {
        return client_lost(context);
    }
    let played = unsigned(context.get("playedSeconds")?) + PLAYED_EVERY_MS / 1_000;
    context.set("playedSeconds", Value::UInt(played.min(u32::MAX.into())))
}

pub(crate) fn client_lost(context: &mut Context<'_>) -> Result<(), Denied> {
    let entity = context.entity();
    context.request(Request::Destroy { entity });
    Ok(())
}

pub(crate) fn destroyed(context: &mut Context<'_>) -> Result<(), Denied> {
    match *context.get("account")? {
        Value::Mailbox(Some(account)) => context.call(account, "avatarLeft", Vec::new()),
        _ => Ok(()),
    }
}

pub(crate) fn base_call(
    context: &mut Context<'_>,
    name: &str,
    args: &[Value],
    caller: &Caller,
) -> Result<Answer, Denied> {
    let cell = context.mailbox(Part::Cell);
    match (name, args) {
        ("setTitle", [title]) => context.call(cell, "showTitle", vec![title.clone()])?,
        ("ping", [number]) => context.call(cell, "pingCell", vec![number.clone()])?,
        ("addFriend", [friend]) => {
            let mut friends = elements(context.get("friends")?);
            if !friends.contains(friend) && friends.len() < MAX_FRIENDS {
                friends.push(friend.clone());
                context.set("friends", Value::Sequence(friends))?;
            }
        }
        ("logOff", []) => return client_lost(context).map(|()| Answer::DONE),
        ("remoteTakeDamage", [damage]) => {
            let then = (0, note::of_caller(caller));
            context.ask(cell, "takeDamage", vec![damage.clone()], DEFAULT_TIMEOUT_MS, then)?;
            return Ok(Answer::Later);
        }
        ("whoIs", []) => {
            let values = vec![context.get("knownAs")?.clone(), context.get("playedSeconds")?.clone()];
            return Ok(Answer::Return(values));
        }
        _ => return Ok(unknown(name)),
    }
    Ok(Answer::DONE)
}

/// The cell part has said how `remoteTakeDamage` ended.
pub(crate) fn replied(context: &mut Context<'_>, note: &[u8], outcome: &Outcome) {
    let Some(caller) = note::caller(note) else { return };
    let outcome = match outcome {
        Ok(values) => match values.first() {
            Some(health) => Ok(vec![health.clone()]),
            None => Err(CallError::Internal("the cell part answered nothing".to_owned())),
        },
        Err(error) => Err(error.clone()),
    };
    context.answer(&caller, outcome);
}

pub(crate) fn cell_created(context: &mut Context<'_>) -> Result<(), Denied> {
    if let Some(place) = context.place() {
        let Position { x, y, z } = place.position;
        let home = vec![Value::UInt(place.space.0.into()), Value::Vector3([x, y, z])];
        context.set("home", Value::Dict(home))?;
    }
    context.set_timer(RECOVER_EVERY_MS, RECOVER_EVERY_MS, RECOVER);
    Ok(())
}

pub(crate) fn cell_timer(context: &mut Context<'_>, tag: u32) -> Result<(), Denied> {
    if tag != RECOVER {
        return combat::effect_ends(context);
    }
    let steps = unsigned(context.get("steps")?);
    context.set("steps", Value::UInt(steps.saturating_add(1)))?;
    combat::recover(context)
}

pub(crate) fn cell_call(
    context: &mut Context<'_>,
    name: &str,
    args: &[Value],
    caller: &Caller,
) -> Result<Answer, Denied> {
    match (name, args) {
        ("say", [text]) => context.invoke(Audience::All, "onSay", vec![text.clone()])?,
        ("emote", [emote]) => context.invoke(Audience::All, "onEmote", vec![emote.clone()])?,
        ("setMood", [mood]) => context.set("mood", mood.clone())?,
        ("wave", []) => context.invoke(Audience::All, "onWave", vec![called_by(caller)])?,
        ("showTitle", [title]) => context.set("title", title.clone())?,
        ("pingCell", [number]) => context.invoke(Audience::Own, "onPong", vec![number.clone()])?,
        ("addGold", [amount]) => {
            let gold = unsigned(context.get("gold")?) + unsigned(amount);
            context.set("gold", Value::UInt(gold.min(u32::MAX.into())))?;
            return Ok(Answer::Return(vec![context.get("gold")?.clone()]));
        }
        ("addEffect", [effect]) => combat::add_effect(context, effect)?,
        ("takeDamage", [damage]) => {
            let (hp, max) = combat::take_damage(context, signed(damage), called_by(caller))?;
            if hp == 0 {
                return_home(context)?;
            }
            return Ok(combat::answer(hp, max));
        }
        _ => return Ok(unknown(name)),
    }
    Ok(Answer::DONE)
}

/// Whoever was beaten wakes at home.
fn return_home(context: &mut Context<'_>) -> Result<(), Denied> {
    let home = match context.get("home")? {
        Value::Dict(fields) => match fields[..] {
            [_, Value::Vector3([x, y, z])] => Some(Position { x, y, z }),
            _ => None,
        },
        _ => None,
    };
    if let (Some(position), Some(place)) = (home, context.place()) {
        let entity = context.entity();
        let place = annals_event::Place { position, ..place };
        context.request(Request::Teleport { entity, place });
    }
    let max = context.get("maxHp")?.clone();
    context.set("hp", max)?;
    context.set("title", text("the beaten"))
}
