//! What all that can be hurt have in common: the `Combat` interface.

use annals_def::Value;
use annals_event::Audience;
use annals_node::{Answer, Context, Denied};

use crate::{elements, signed};

/// Most effects that work on somebody at once.
const MAX_EFFECTS: usize = 8;

/// Most milliseconds that an effect works: a day.
const MAX_EFFECT_MS: f32 = 86_400_000.0;

/// What the timer of an effect's end is tagged with.
const EFFECT_ENDS: u32 = 100;

/// Takes health away, or gives some back. Returns what is left, and what there can be at most.
pub(crate) fn take_damage(context: &mut Context<'_>, damage: i64, from: Value) -> Result<(i64, i64), Denied> {
    let max = signed(context.get("maxHp")?).max(0);
    let hp = (signed(context.get("hp")?) - damage).clamp(0, max);
    context.set("hp", Value::Int(hp))?;
    context.invoke(Audience::All, "onDamage", vec![Value::Int(damage), from])?;
    Ok((hp, max))
}

/// The answer of `takeDamage`.
pub(crate) fn answer(hp: i64, max: i64) -> Answer {
    Answer::Return(vec![Value::Int(hp), Value::Int(max)])
}

/// Gives a little health back.
pub(crate) fn recover(context: &mut Context<'_>) -> Result<(), Denied> {
    let (hp, max) = (signed(context.get("hp")?), signed(context.get("maxHp")?));
    if hp < max {
        context.set("hp", Value::Int(hp + 1))?;
    }
    Ok(())
}

/// Has an effect work for as long as it says.
pub(crate) fn add_effect(context: &mut Context<'_>, effect: &Value) -> Result<(), Denied> {
    let mut effects = elements(context.get("effects")?);
    let left = match effect {
        Value::Dict(fields) => match fields.last() {
            Some(Value::Float32(seconds)) if seconds.is_finite() => seconds * 1_000.0,
            _ => 0.0,
        },
        _ => 0.0,
    };
    if effects.len() < MAX_EFFECTS {
        effects.push(effect.clone());
        context.set("effects", Value::Sequence(effects))?;
        context.set_timer(milliseconds(left), 0, EFFECT_ENDS);
    }
    Ok(())
}

/// The oldest effect has worked long enough.
pub(crate) fn effect_ends(context: &mut Context<'_>) -> Result<(), Denied> {
    let mut effects = elements(context.get("effects")?);
    if !effects.is_empty() {
        effects.remove(0);
        context.set("effects", Value::Sequence(effects))?;
    }
    Ok(())
}

fn milliseconds(left: f32) -> u64 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it was just brought between 1 and 86,400,000"
    )]
    let whole = left.clamp(1.0, MAX_EFFECT_MS) as u64;
    whole
}
