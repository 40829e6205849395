//! Accounts: log-in, the list of avatars, and the choice of one to play.

use annals_event::ledger::{Booking, Order};
use annals_ids::{Position, TimerId};
use annals_node::{Caller, Denied, Request, typed::Failure};

use crate::{
    PLAZA, Sample,
    defs::{
        Appearance, Wish,
        account::{Base, BaseBehaviour},
        avatar,
    },
    near, trade,
};

/// Time after which a client that has not chosen an avatar is given one, milliseconds.
pub const CHOICE_MS: u64 = 1_000;

/// Maximum avatars per account.
const MAX_AVATARS: usize = 8;

/// Maximum length of an avatar's name, characters.
const MAX_NAME: usize = 32;

impl BaseBehaviour for Sample {
    /// Runs when the client has had its time to choose.
    fn timer(&self, own: &mut Base<'_, '_>, _timer: TimerId, _tag: u32) -> Result<(), Denied> {
        if own.avatar()?.is_some() || own.context.client().is_none() {
            return Ok(());
        }
        let name = match own.avatar_names()?.into_iter().next() {
            Some(known) => known,
            None => {
                let name = own_name(own)?;
                own.edit_avatar_names().push(name.clone())?;
                name
            }
        };
        enter(own, name, None)
    }

    fn client_attached(&self, own: &mut Base<'_, '_>) -> Result<(), Denied> {
        let log_ins = own.log_ins()?;
        own.set_log_ins(log_ins.wrapping_add(1))?;
        let Some(avatar) = own.avatar()? else {
            return offer(own);
        };
        // A connection on which the avatar was played before is closed.
        let (from, to) = (own.context.entity(), avatar);
        own.context.request(Request::GiveClient { from, to })
    }

    fn client_lost(&self, own: &mut Base<'_, '_>) -> Result<(), Denied> {
        cease_unless_played(own)
    }

    fn create_avatar(
        &self,
        own: &mut Base<'_, '_>,
        _caller: &Caller,
        name: String,
        appearance: Appearance,
    ) -> Result<(), Failure> {
        let known = own.avatar_names()?;
        let reason = if name.trim().is_empty() || name.chars().count() > MAX_NAME {
            "a name has 1 to 32 characters"
        } else if known.contains(&name) {
            "you have an avatar of this name"
        } else if known.len() >= MAX_AVATARS {
            "you have as many avatars as one can have"
        } else {
            own.edit_avatar_names().push(name.clone())?;
            return Ok(enter(own, name, Some(appearance))?);
        };
        Ok(refuse(own, reason)?)
    }

    fn enter_world(&self, own: &mut Base<'_, '_>, _caller: &Caller, name: String) -> Result<(), Failure> {
        if own.avatar_names()?.contains(&name) {
            Ok(enter(own, name, None)?)
        } else {
            Ok(refuse(own, "you have no avatar of this name")?)
        }
    }

    fn holdings_known(&self, own: &mut Base<'_, '_>) -> Result<(), Denied> {
        trade::endow(own)?;
        trade::show_all(own)
    }

    fn booked(&self, own: &mut Base<'_, '_>, booking: &Booking, order: Option<&Order>) -> Result<(), Denied> {
        trade::show(own, booking, order)?;
        // The account may have been activated only for the operator's order.
        if order.and_then(Order::warrant).is_some() && own.context.client().is_none() {
            cease_unless_played(own)?;
        }
        Ok(())
    }

    fn wish(&self, own: &mut Base<'_, '_>, _caller: &Caller, wish: Wish) -> Result<(), Failure> {
        trade::grant(own, &wish)
    }

    fn show_purse(&self, own: &mut Base<'_, '_>, _caller: &Caller) -> Result<(), Failure> {
        Ok(trade::show_all(own)?)
    }

    fn avatar_left(&self, own: &mut Base<'_, '_>, _caller: &Caller) -> Result<(), Failure> {
        own.set_avatar(None)?;
        match own.context.client() {
            Some(_) => offer(own)?,
            None => cease_unless_played(own)?,
        }
        Ok(())
    }
}

/// Sends the client its avatars, from which it may choose.
fn offer(own: &mut Base<'_, '_>) -> Result<(), Denied> {
    let names = own.avatar_names()?;
    own.to_own_client().on_avatars(names)?;
    own.context.set_timer(CHOICE_MS, 0, 0);
    Ok(())
}

/// Destroys an account without a client and without an avatar.
fn cease_unless_played(own: &mut Base<'_, '_>) -> Result<(), Denied> {
    if own.avatar()?.is_none() {
        let entity = own.context.entity();
        own.context.request(Request::Destroy { entity })?;
    }
    Ok(())
}

fn refuse(own: &mut Base<'_, '_>, reason: &str) -> Result<(), Denied> {
    own.to_own_client().on_refused(reason.to_owned())
}

/// Creates the avatar and gives it the client. If an avatar is already in the world, it gets the client instead.
fn enter(own: &mut Base<'_, '_>, name: String, appearance: Option<Appearance>) -> Result<(), Denied> {
    let from = own.context.entity();
    if let Some(to) = own.avatar()? {
        return own.context.request(Request::GiveClient { from, to });
    }
    let of_base = avatar::NewBase {
        account: Some(Some(own.context.mailbox(annals_ids::Part::Base))),
        known_as: Some(name.clone()),
        ..avatar::NewBase::default()
    };
    let avatar = avatar::BaseMailbox::create(own.context, of_base)?;
    own.set_avatar(Some(avatar.0))?;
    let of_cell = avatar::NewCell {
        name: Some(name),
        appearance,
        trader: own.context.database().map(|database| database.0),
        ..avatar::NewCell::default()
    };
    let place = near(own.context, Position::default(), PLAZA);
    let to = avatar.0;
    // The order matters: the cell part must start with its client.
    own.context.request(Request::GiveClient { from, to })?;
    avatar.create_cell(own.context, place, of_cell)
}

/// Name of an avatar whose player gave none.
fn own_name(own: &Base<'_, '_>) -> Result<String, Denied> {
    let name = own.account_name()?;
    Ok(if name.is_empty() {
        format!("Wanderer {}", own.context.entity())
    } else {
        name.chars().take(MAX_NAME).collect()
    })
}
