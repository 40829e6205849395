//! Avatars: what players control in the world. Their clients move them; behaviour does the rest.

use annals_game::{
    ids::TimerId,
    node::{Caller, Denied, Request, typed::Failure},
};

use crate::{
    Rules,
    defs::{
        account,
        avatar::{Base, BaseBehaviour, BaseMailbox, Cell, CellBehaviour},
    },
};

/// Interval at which an avatar without a client leaves, milliseconds.
const LEAVE_EVERY_MS: u64 = 10_000;

/// Maximum length of a name, characters.
const MAX_NAME: usize = 32;

/// Maximum length of what is said, characters.
const MAX_TEXT: usize = 200;

/// The base part is on a base process. It knows the account and the client's connection, and has no place.
impl BaseBehaviour for Rules {
    fn created(&self, own: &mut Base<'_, '_>) -> Result<(), Denied> {
        own.context.set_timer(LEAVE_EVERY_MS, LEAVE_EVERY_MS, 0);
        Ok(())
    }

    /// Finds avatars whose player was lost before the avatar had the client.
    fn timer(&self, own: &mut Base<'_, '_>, _timer: TimerId, _tag: u32) -> Result<(), Denied> {
        match own.context.client() {
            Some(_) => Ok(()),
            None => leave(own),
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

    fn berries_changed(&self, own: &mut Base<'_, '_>, _caller: &Caller, berries: u32) -> Result<(), Failure> {
        match own.account()? {
            Some(account) => Ok(account::BaseMailbox(account).keep_berries(own.context, berries)?),
            None => Ok(()),
        }
    }
}

/// Ends the avatar, its cell part first.
fn leave(own: &mut Base<'_, '_>) -> Result<(), Denied> {
    let entity = own.context.entity();
    own.context.request(Request::Destroy { entity })
}

/// The cell part is on a cell process. It has a place, and is what others see.
impl CellBehaviour for Rules {
    /// Called by a client, which may send anything: the name is shortened.
    fn introduce(&self, own: &mut Cell<'_, '_>, _caller: &Caller, name: String) -> Result<(), Failure> {
        Ok(own.set_name(name.chars().take(MAX_NAME).collect())?)
    }

    fn say(&self, own: &mut Cell<'_, '_>, _caller: &Caller, text: String) -> Result<(), Failure> {
        let text = text.chars().take(MAX_TEXT).collect();
        Ok(own.to_all_clients().on_say(text)?)
    }

    fn gain_berry(&self, own: &mut Cell<'_, '_>, _caller: &Caller) -> Result<(), Failure> {
        let berries = own.berries()?.saturating_add(1);
        own.set_berries(berries)?;
        Ok(BaseMailbox::of(own.context).berries_changed(own.context, berries)?)
    }
}
