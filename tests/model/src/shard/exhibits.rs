//! What the rules of several shards prevent.

use super::{ShardBounds, ShardModel};
use crate::exhibit::Exhibit;
use crate::faults::Faults;
use crate::invariant::Invariant::BegunAsEnded;
use crate::rule::{Rule, Rules};

/// One exhibit for each rule of this model.
pub fn exhibits() -> Vec<Exhibit> {
    let bounds = ShardBounds { faults: Faults::NONE };
    let rules = [
        Rule::T3FoldedFirst,
        Rule::T4Asked,
        Rule::T4LastReturns,
        Rule::T4LaterStays,
    ];
    let exhibit = |rule| {
        let rules = Rules::ALL.without(rule);
        Exhibit::new(rule, BegunAsEnded, ShardModel { rules, bounds })
    };
    rules.map(exhibit).into()
}
