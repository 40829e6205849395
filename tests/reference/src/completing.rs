//! Games of which an example shows a few hooks.

use std::sync::Arc;

use crate::{Denied, EntityId, Game, Request, TestRealm, account, at, defs::Dispatcher, hero, schema};

/// Plays a game in a realm: a player logs in and gets a hero at the origin. Returns the player and the hero.
///
/// # Panics
/// If the player does not enter.
pub fn enter(game: impl Game + 'static) -> (TestRealm, usize, EntityId) {
    let schema = schema();
    let game = Dispatcher::new(&schema, game).expect("the game is of this world");
    let mut realm = TestRealm::new(schema, Arc::new(game), account::TYPE);
    let player = realm.join();
    let hero = realm.entered(player, "Hero");
    (realm, player, hero)
}

/// Creates the hero of a player that logs in, and gives it the client.
///
/// # Errors
/// If that is denied.
pub fn begin(own: &mut account::Base<'_, '_>) -> Result<(), Denied> {
    let from = own.context.entity();
    if let Some(to) = own.avatar()? {
        return own.context.request(Request::GiveClient { from, to });
    }
    let hero = hero::BaseMailbox::create(own.context, hero::NewBase::default())?;
    own.set_avatar(Some(hero.0))?;
    let to = hero.0;
    own.context.request(Request::GiveClient { from, to })?;
    hero.create_cell(own.context, at(0.0, 0.0), hero::NewCell::default())
}

/// Completes a game with what an example does not show: `hooks!(MyGame: cell)` if it implements the hooks of the hero's
/// cell part, `base` for those of its base part, `both`, or `game` for those of the game as a whole.
#[macro_export]
macro_rules! hooks {
    ($game:ident: cell) => {
        impl $crate::hero::BaseBehaviour for $game {}
        $crate::hooks!($game: both);
    };
    ($game:ident: base) => {
        impl $crate::hero::CellBehaviour for $game {}
        $crate::hooks!($game: both);
    };
    ($game:ident: both) => {
        impl $crate::Game for $game {}
        $crate::hooks!($game: others);
    };
    ($game:ident: game) => {
        impl $crate::hero::BaseBehaviour for $game {}
        impl $crate::hero::CellBehaviour for $game {}
        $crate::hooks!($game: others);
    };
    ($game:ident: others) => {
        impl $crate::account::BaseBehaviour for $game {
            fn client_attached(&self, own: &mut $crate::account::Base<'_, '_>) -> Result<(), $crate::Denied> {
                $crate::begin(own)
            }

            fn act(
                &self,
                _own: &mut $crate::account::Base<'_, '_>,
                _caller: &$crate::Caller,
            ) -> Result<(), $crate::Failure> {
                Ok(())
            }
        }
        $crate::hooks!($game: without accounts);
    };
    ($game:ident: without accounts) => {
        impl $crate::avatar::BaseBehaviour for $game {
            fn act(
                &self,
                _own: &mut $crate::avatar::Base<'_, '_>,
                _caller: &$crate::Caller,
            ) -> Result<(), $crate::Failure> {
                Ok(())
            }
        }
        impl $crate::avatar::CellBehaviour for $game {
            fn act(
                &self,
                _own: &mut $crate::avatar::Cell<'_, '_>,
                _caller: &$crate::Caller,
            ) -> Result<(), $crate::Failure> {
                Ok(())
            }

            fn heal(
                &self,
                _own: &mut $crate::avatar::Cell<'_, '_>,
                _caller: &$crate::Caller,
                _points: i32,
            ) -> Result<(), $crate::Failure> {
                Ok(())
            }

            fn price(
                &self,
                _own: &mut $crate::avatar::Cell<'_, '_>,
                _caller: &$crate::Caller,
                _kind: u16,
            ) -> Result<$crate::Reply<$crate::avatar::PriceReply>, $crate::Failure> {
                Ok($crate::Reply::Later)
            }
        }
        impl $crate::monster::BaseBehaviour for $game {}
        impl $crate::monster::CellBehaviour for $game {
            fn take_damage(
                &self,
                _own: &mut $crate::monster::Cell<'_, '_>,
                _caller: &$crate::Caller,
                _points: i32,
            ) -> Result<$crate::Reply<$crate::monster::TakeDamageReply>, $crate::Failure> {
                Ok($crate::Reply::Later)
            }
        }
        impl $crate::note_store::BaseBehaviour for $game {
            fn add_note(
                &self,
                _own: &mut $crate::note_store::Base<'_, '_>,
                _caller: &$crate::Caller,
                _text: String,
            ) -> Result<(), $crate::Failure> {
                Ok(())
            }
        }
    };
}
