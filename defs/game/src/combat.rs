//! Behaviour shared by all types with the `Combat` interface.
//!
//! Types that implement one interface share its members and nothing else, so their health is a component: a plain
//! struct that any of them can be read as. Its changes are recorded by comparison.

use annals_def::{Component, Mismatch, Shadowed, Value, typed::Typed};
use annals_node::{Context, Denied, typed::ArrayEdit};

use crate::defs::Effect;

/// Maximum concurrent effects on an entity.
const MAX_EFFECTS: usize = 8;

/// Maximum duration of an effect, milliseconds: a day.
const MAX_EFFECT_MS: f32 = 86_400_000.0;

/// Tag of the timer that ends an effect.
const EFFECT_ENDS: u32 = 100;

/// Health of an entity.
#[derive(Clone, Debug, PartialEq)]
struct Vitals {
    hp: i32,
    max_hp: i32,
}

impl Component for Vitals {
    const MEMBERS: &'static [&'static str] = &["hp", "maxHp"];

    fn from_values(values: &[&Value]) -> Result<Self, Mismatch> {
        let [hp, max_hp] = annals_def::typed::members(values)?;
        Ok(Self {
            hp: i32::from_value(hp)?,
            max_hp: i32::from_value(max_hp)?,
        })
    }

    fn value(&self, field: usize) -> Option<Value> {
        match field {
            0 => Some(self.hp.into_value()),
            1 => Some(self.max_hp.into_value()),
            _ => None,
        }
    }
}

/// Changes the health, and records the differences.
fn change(context: &mut Context<'_>, change: impl FnOnce(&mut Vitals)) -> Result<Vitals, Denied> {
    let mut vitals = Shadowed::new(context.load::<Vitals>()?);
    change(&mut vitals.now);
    context.save(&mut vitals)?;
    Ok(vitals.now)
}

/// Whether the entity has any health left.
pub(crate) fn is_alive(context: &Context<'_>) -> Result<bool, Denied> {
    Ok(context.load::<Vitals>()?.hp > 0)
}

/// Subtracts damage from the health; negative damage heals. Returns the health left, and the maximum.
pub(crate) fn hurt(context: &mut Context<'_>, damage: i32) -> Result<(i32, i32), Denied> {
    let Vitals { hp, max_hp } = change(context, |vitals| {
        let left = i64::from(vitals.hp) - i64::from(damage);
        let most = vitals.max_hp.max(0);
        vitals.hp = i32::try_from(left.clamp(0, most.into())).unwrap_or(most);
    })?;
    Ok((hp, max_hp.max(0)))
}

/// Restores a little health.
pub(crate) fn recover(context: &mut Context<'_>) -> Result<(), Denied> {
    change(context, |vitals| {
        if vitals.hp < vitals.max_hp {
            vitals.hp += 1;
        }
    })?;
    Ok(())
}

/// Restores full health.
pub(crate) fn heal(context: &mut Context<'_>) -> Result<(), Denied> {
    change(context, |vitals| vitals.hp = vitals.max_hp)?;
    Ok(())
}

/// Duration of an effect, for which a timer is to be set.
pub(crate) struct Until {
    milliseconds: u64,
}

impl Until {
    /// Sets the timer for the end of the effect.
    pub(crate) fn begin(self, context: &mut Context<'_>) {
        context.set_timer(self.milliseconds, 0, EFFECT_ENDS);
    }
}

/// Adds an effect for its duration; `None` if the maximum is reached.
pub(crate) fn add_effect(mut effects: ArrayEdit<'_, '_, Effect>, effect: Effect) -> Result<Option<Until>, Denied> {
    let left = if effect.left.is_finite() {
        effect.left * 1_000.0
    } else {
        0.0
    };
    if effects.len()? >= MAX_EFFECTS {
        return Ok(None);
    }
    effects.push(effect)?;
    let milliseconds = milliseconds(left);
    Ok(Some(Until { milliseconds }))
}

/// Strengthens the effect of this kind; returns whether there is one.
pub(crate) fn strengthen(mut effects: ArrayEdit<'_, '_, Effect>, kind: u16) -> Result<bool, Denied> {
    for index in 0..effects.len()? {
        let mut effect = effects.at(index);
        if effect.kind()? == kind {
            let stronger = effect.strength()?.saturating_add(1);
            effect.set_strength(stronger)?;
            return Ok(true);
        }
    }
    Ok(false)
}

/// Removes the oldest effect.
pub(crate) fn effect_ends(mut effects: ArrayEdit<'_, '_, Effect>) -> Result<(), Denied> {
    if effects.is_empty()? {
        return Ok(());
    }
    effects.remove(0)
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
