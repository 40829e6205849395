//! Exhibits: for a rule, the schedule that fails without it.

use std::fmt::Write as _;

use crate::explorer::{Model, Schedule, Search, Verdict, Watching, search, search_with_progress};
use crate::invariant::Invariant;
use crate::rule::Rule;

/// Asserts the result of a search with all rules: every state visited, no invariant violated, and the number of states
/// that `docs/model.md` gives in the row of `test` (with the default faults).
///
/// # Panics
/// If the result differs.
pub fn assert_exhausted(test: &str, found: &Search) {
    println!(
        "{test}: {} states, {} steps, {} deep",
        found.states, found.steps, found.depth
    );
    assert!(matches!(found.verdict, Verdict::Exhausted), "{test}: {found:#?}");
    if crate::extra_faults() == 0 {
        let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/model.md"));
        let row = page
            .unwrap_or_default()
            .lines()
            .find(|line| line.starts_with(&format!("| {test} |")))
            .map(str::to_owned);
        let end = format!("| {} |", grouped(found.states));
        assert!(
            row.as_deref().is_some_and(|row| row.ends_with(&end)),
            "docs/model.md should have a row that begins with \"| {test} |\" and ends with \"{end}\"; it has {row:?}"
        );
    }
}

/// Formats 1234567 as "1,234,567".
fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// The exhibits of all models, by the chapter titles of `docs/schedules.md`.
pub fn chapters() -> Vec<(&'static str, Vec<Exhibit>)> {
    vec![
        ("One owner's log", crate::log::exhibits::exhibits()),
        ("Calls", crate::calls::exhibits::exhibits()),
        ("Calls on cut logs", crate::cut::exhibits::exhibits()),
        ("Clients given to another owner", crate::giving::exhibits::exhibits()),
        ("Planned hand-over", crate::moving::exhibits::exhibits()),
        ("Hand-over", crate::handover::exhibits::exhibits()),
        ("Teleports", crate::teleport::exhibits::exhibits()),
        ("Ghosts and views", crate::view::exhibits::exhibits()),
        ("Space data", crate::space::exhibits::exhibits()),
        ("The order of the archive", crate::order::exhibits::exhibits()),
        ("The ledger", crate::ledger::exhibits::exhibits()),
        ("Trades", crate::trade::exhibits::exhibits()),
        ("Views of accounts", crate::account::exhibits::exhibits()),
        ("Retention", crate::retention::exhibits::exhibits()),
        ("A restored store", crate::backup::exhibits::exhibits()),
        ("Migration", crate::migration::exhibits::exhibits()),
        ("Several shards", crate::shard::exhibits::exhibits()),
    ]
}

/// A disabled rule, within bounds that are just wide enough, and the invariant that fails without it.
pub struct Exhibit {
    /// The disabled rule.
    pub rule: Rule,
    /// The invariant that fails.
    pub invariant: Invariant,
    look: Box<dyn Fn() -> Search>,
}

impl Exhibit {
    /// `model` has `rule` disabled. Of all violations, only those of `invariant` count.
    pub fn new<M: Model + 'static>(rule: Rule, invariant: Invariant, model: M) -> Self {
        let watched = Watching(model, invariant);
        let look: Box<dyn Fn() -> Search> = match invariant {
            Invariant::Progress => Box::new(move || search_with_progress(&watched)),
            _ => Box::new(move || search(&watched)),
        };
        Self { rule, invariant, look }
    }

    /// A shortest schedule that violates the invariant; `Err` with the search result if there is none.
    ///
    /// # Errors
    /// If the invariant holds without the rule, within these bounds.
    pub fn schedule(&self) -> Result<Schedule, Search> {
        let found = (self.look)();
        match found.verdict {
            Verdict::Broken(schedule) => Ok(schedule),
            Verdict::Exhausted | Verdict::TooLarge => Err(found),
        }
    }

    /// Runs the search, prints the schedule, and compares it with `docs/schedules.md`.
    ///
    /// # Panics
    /// If nothing fails without the rule, or if the page differs.
    pub fn assert_documented(&self) {
        let schedule = match self.schedule() {
            Ok(schedule) => schedule,
            Err(found) => panic!(
                "without {:?}, no invariant fails within these bounds: {found:?}",
                self.rule
            ),
        };
        let section = self.section(&schedule);
        println!("{section}");
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/schedules.md");
        let text = std::fs::read_to_string(page).unwrap_or_default();
        assert!(
            text.contains(&section),
            "docs/schedules.md is out of date: run `cargo run -p annals-model > docs/schedules.md`"
        );
    }

    /// The exhibit's section of `docs/schedules.md`.
    pub fn section(&self, schedule: &Schedule) -> String {
        let mut text = format!("### {}: {}\n\n", self.rule.number(), self.rule.says());
        let _ = writeln!(text, "Without this rule, the invariant \"{}\" fails:\n", self.invariant);
        for (number, step) in (1..).zip(&schedule.steps) {
            let _ = writeln!(text, "{number}. {step}");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::chapters;
    use crate::rule::Rule;

    /// Rules without which no invariant fails; a separate test shows what each is for.
    const SECOND_LINES: [Rule; 1] = [Rule::V3From];

    #[test]
    fn every_rule_has_its_exhibit() {
        let exhibits: Vec<_> = chapters().into_iter().flat_map(|(_, exhibits)| exhibits).collect();
        for rule in Rule::all().filter(|rule| !SECOND_LINES.contains(rule)) {
            assert_eq!(
                exhibits.iter().filter(|exhibit| exhibit.rule == rule).count(),
                1,
                "{rule:?}"
            );
        }
    }
}
