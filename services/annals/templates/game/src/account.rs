//! Accounts: a player logs in to one, and it creates the player's avatar.

use annals_game::{
    ids::Part,
    node::{Caller, Denied, Request, typed::Failure},
};

use crate::{
    Rules,
    defs::{
        account::{Base, BaseBehaviour},
        avatar,
    },
    somewhere,
};

/// Distance from the origin at which avatars appear, metres.
const ARRIVAL: f32 = 5.0;

impl BaseBehaviour for Rules {
    /// Runs when a player has logged in. If the avatar is still in the world, it gets the client.
    fn client_attached(&self, own: &mut Base<'_, '_>) -> Result<(), Denied> {
        let Some(to) = own.avatar()? else {
            return enter(own);
        };
        let from = own.context.entity();
        own.context.request(Request::GiveClient { from, to })
    }

    fn client_lost(&self, own: &mut Base<'_, '_>) -> Result<(), Denied> {
        end_unless_played(own)
    }

    fn keep_berries(&self, own: &mut Base<'_, '_>, _caller: &Caller, berries: u32) -> Result<(), Failure> {
        Ok(own.set_berries(berries)?)
    }

    fn avatar_left(&self, own: &mut Base<'_, '_>, _caller: &Caller) -> Result<(), Failure> {
        own.set_avatar(None)?;
        match own.context.client() {
            Some(_) => Ok(enter(own)?),
            None => Ok(end_unless_played(own)?),
        }
    }
}

/// Creates the avatar, and gives it the client.
fn enter(own: &mut Base<'_, '_>) -> Result<(), Denied> {
    let berries = own.berries()?;
    let of_base = avatar::NewBase {
        account: Some(Some(own.context.mailbox(Part::Base))),
    };
    let avatar = avatar::BaseMailbox::create(own.context, of_base)?;
    own.set_avatar(Some(avatar.0))?;
    let of_cell = avatar::NewCell {
        berries: Some(berries),
        ..avatar::NewCell::default()
    };
    let (from, to) = (own.context.entity(), avatar.0);
    // The order matters: the cell part must begin with its client.
    own.context.request(Request::GiveClient { from, to })?;
    let place = somewhere(own.context, ARRIVAL);
    avatar.create_cell(own.context, place, of_cell)
}

/// Ends an account without a client and without an avatar. What is persistent is in the database.
fn end_unless_played(own: &mut Base<'_, '_>) -> Result<(), Denied> {
    if own.avatar()?.is_none() {
        let entity = own.context.entity();
        own.context.request(Request::Destroy { entity })?;
    }
    Ok(())
}
