//! The garden and its bushes.

use annals_game::{
    ids::{ControllerId, Part, TimerId},
    node::{ControllerSignal, Denied},
};

use crate::{
    Rules,
    defs::{avatar, bush, garden},
    somewhere,
};

/// Bushes in a new garden.
const BUSHES: u16 = 12;

/// Distance from the origin within which they are planted, metres.
const GARDEN: f32 = 30.0;

/// Distance at which an avatar picks a berry, metres.
const REACH: f32 = 2.0;

/// Time until a bush bears a berry again, milliseconds.
const RIPENS_MS: u64 = 5_000;

/// Tag of the controller that watches for avatars.
const PICKERS: u32 = 1;

/// The garden has only a base part. It runs once, when the realm is new.
impl garden::BaseBehaviour for Rules {
    fn created(&self, own: &mut garden::Base<'_, '_>) -> Result<(), Denied> {
        own.set_bushes(BUSHES)?;
        for _ in 0..BUSHES {
            let bush = bush::BaseMailbox::create(own.context, bush::NewBase::default())?;
            let place = somewhere(own.context, GARDEN);
            bush.create_cell(own.context, place, bush::NewCell::default())?;
        }
        Ok(())
    }
}

/// Nothing to do here: all that a bush has is in its cell part.
impl bush::BaseBehaviour for Rules {}

impl bush::CellBehaviour for Rules {
    fn created(&self, own: &mut bush::Cell<'_, '_>) -> Result<(), Denied> {
        ripen(own)
    }

    fn timer(&self, own: &mut bush::Cell<'_, '_>, _timer: TimerId, _tag: u32) -> Result<(), Denied> {
        ripen(own)
    }

    /// Runs when something has come near a ripe bush.
    fn controller(
        &self,
        own: &mut bush::Cell<'_, '_>,
        controller: ControllerId,
        _tag: u32,
        signal: ControllerSignal,
    ) -> Result<(), Denied> {
        let ControllerSignal::Entered { who } = signal else {
            return Ok(());
        };
        // Of two that come at once, the first has it.
        let is_ripe = own.ripe()? != 0;
        let near = own.context.look_at(who).map(|near| near.mailbox(Part::Cell));
        let Some(picker) = near.filter(|near| is_ripe && near.type_id == avatar::TYPE) else {
            return Ok(());
        };
        own.set_ripe(0)?;
        own.context.cancel_controller(controller);
        own.context.set_timer(RIPENS_MS, 0, 0);
        avatar::CellMailbox(picker).gain_berry(own.context)
    }
}

/// Makes the bush bear a berry. An avatar that already stands here picks it at once.
fn ripen(own: &mut bush::Cell<'_, '_>) -> Result<(), Denied> {
    own.set_ripe(1)?;
    own.context.add_proximity(REACH, PICKERS)?;
    Ok(())
}
