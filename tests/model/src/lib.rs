//! Explicit-state models of the log protocol, and the schedules that each rule prevents.
//!
//! Each model is a small system of its own: the rules of `docs/protocol.md` as steps over a state space that is small
//! enough to visit in full, with faults among the steps. [`explorer`] visits the states; [`rule`] names the rules that
//! can be disabled; [`exhibit`] ties a rule to what fails without it. `docs/model.md` describes what is modelled, and
//! in how much detail.
//!
//! Not here: code of the services. A model that shared code with them would share its bugs.

pub mod account;
pub mod backup;
pub mod calls;
pub mod cut;
pub mod exhibit;
pub mod explorer;
pub mod faults;
pub mod giving;
pub mod handover;
pub mod invariant;
pub mod ledger;
pub mod log;
pub mod migration;
pub mod moving;
pub mod order;
pub mod retention;
pub mod rule;
pub mod shard;
pub mod space;
pub mod teleport;
pub mod trade;
pub mod view;

/// Number of faults of each kind above the default: the environment variable `ANNALS_MODEL_DEPTH`, 0 by default.
///
/// # Panics
/// If the variable is set and is not a small number.
pub fn extra_faults() -> u8 {
    std::env::var("ANNALS_MODEL_DEPTH").map_or(0, |text| {
        text.parse()
            .expect("ANNALS_MODEL_DEPTH is how many faults to add to each kind: 0 to 3")
    })
}
