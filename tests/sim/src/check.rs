//! Checkers of every run, one file per promise. A checker returns violations as text.

pub mod accounts;
pub mod bootstrap;
pub mod calls;
pub mod ends;
pub mod ghosts;
pub mod leaps;
pub mod ledger;
pub mod lives;
pub mod numbers;
pub mod one_cell;
pub mod one_real;
pub mod replay;
pub mod shown;
pub mod spaces;
pub mod succession;
pub mod views;
pub mod visits;

use crate::{archive::Archive, world::World};

/// A checker.
pub type Check = fn(&World, &Archive) -> Vec<String>;

/// All checkers, by name.
pub const ALL: [(&str, Check); 17] = [
    ("no shown event is lost", shown::check),
    ("each call takes effect once", calls::check),
    ("numbers are dense", numbers::check),
    ("one real per entity", one_real::check),
    ("ghosts converge", ghosts::check),
    ("views converge", views::check),
    ("everybody sees what one big cell would show", one_cell::check),
    ("data of spaces converges and never gets older", spaces::check),
    ("replay equals live", replay::check),
    ("who leaps arrives or is told", leaps::check),
    ("what ends leaves nothing behind", ends::check),
    ("who was succeeded does no harm", succession::check),
    ("the realm begins once", bootstrap::check),
    ("who is stored lives once", lives::check),
    ("nothing in the ledger is lost or doubled", ledger::check),
    ("views of accounts say what the ledger said", accounts::check),
    ("who comes gets in, and who leaves leaves nothing", visits::check),
];
