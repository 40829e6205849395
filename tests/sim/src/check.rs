//! Checkers of every run, one file per promise. A checker returns violations as text.

pub mod accounts;
pub mod answers;
pub mod bootstrap;
pub mod calls;
pub mod creations;
pub mod downloads;
pub mod drains;
pub mod ends;
pub mod further_cells;
pub mod ghosts;
pub mod given;
pub mod globals;
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
pub const ALL: [(&str, Check); 24] = [
    ("no shown event is lost", shown::check),
    ("each call takes effect once", calls::check),
    ("a client is shown the answers to its calls", answers::check),
    ("numbers are dense", numbers::check),
    ("one real per entity", one_real::check),
    ("ghosts converge", ghosts::check),
    ("views converge", views::check),
    ("views equal those of one large cell", one_cell::check),
    ("space data converges and never regresses", spaces::check),
    ("replay equals live", replay::check),
    ("every teleport succeeds or is reported as failed", leaps::check),
    ("ended entities leave no state", ends::check),
    ("further cell parts continue the former ones", further_cells::check),
    ("superseded processes change nothing", succession::check),
    ("the realm begins once", bootstrap::check),
    ("stored entities have at most one activation", lives::check),
    ("entities are created on other owners once", creations::check),
    ("a client that is given away is at one entity", given::check),
    ("global data converges, and each key has one holder", globals::check),
    ("nothing in the ledger is lost or duplicated", ledger::check),
    ("account views agree with the ledger", accounts::check),
    ("downloads arrive as they were sent, and end once", downloads::check),
    ("drains interrupt nobody", drains::check),
    ("clients are admitted, and leave no state", visits::check),
];
