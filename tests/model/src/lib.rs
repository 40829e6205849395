//! Explicit-state models of the log protocol, and the schedules that each rule prevents.
//!
//! Each model is a small system of its own: the rules of `docs/protocol.md` as steps over a state that is small enough to
//! visit all of them, with faults among the steps. [`explorer`] visits them; [`rule`] names the rules that can be taken out;
//! [`exhibit`] ties a rule to what fails without it. What is modelled, and how far, stands in `docs/model.md`.
//!
//! Not here: code of the services. A model that shared code with them would share its mistakes.

pub mod account;
pub mod backup;
pub mod calls;
pub mod exhibit;
pub mod explorer;
pub mod faults;
pub mod handover;
pub mod invariant;
pub mod ledger;
pub mod log;
pub mod migration;
pub mod order;
pub mod retention;
pub mod rule;
pub mod space;
pub mod teleport;
pub mod trade;
pub mod view;

/// How many more faults of each kind than usual: the environment variable `ANNALS_MODEL_DEPTH`, 0 by default.
///
/// # Panics
/// When it is set and not a small number.
pub fn extra_faults() -> u8 {
    std::env::var("ANNALS_MODEL_DEPTH").map_or(0, |text| {
        text.parse()
            .expect("ANNALS_MODEL_DEPTH is how many faults to add to each kind: 0 to 3")
    })
}
