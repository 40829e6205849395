//! What happens without a rule: the schedule that the rule prevents.

use std::fmt::Write as _;

use crate::explorer::{Model, Schedule, Search, Verdict, Watching, search, search_with_progress};
use crate::invariant::Invariant;
use crate::rule::Rule;

/// What a search with all rules must have found: every state visited, nothing broken, and as many states as `docs/model.md`
/// says in the row of `test` (with the usual faults).
///
/// # Panics
/// When it did not.
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

/// 1234567 as "1,234,567".
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

/// The exhibits of all models, under the titles of their chapters in `docs/schedules.md`.
pub fn chapters() -> Vec<(&'static str, Vec<Exhibit>)> {
    vec![
        ("One owner's log", crate::log::exhibits::exhibits()),
        ("Calls", crate::calls::exhibits::exhibits()),
        ("Hand-over", crate::handover::exhibits::exhibits()),
        ("Teleports", crate::teleport::exhibits::exhibits()),
        ("What others see", crate::view::exhibits::exhibits()),
        ("Data of spaces", crate::space::exhibits::exhibits()),
        ("The order of the archive", crate::order::exhibits::exhibits()),
        ("The ledger", crate::ledger::exhibits::exhibits()),
        ("Trades", crate::trade::exhibits::exhibits()),
        ("Views of accounts", crate::account::exhibits::exhibits()),
        ("Letting go", crate::retention::exhibits::exhibits()),
        ("A restored store", crate::backup::exhibits::exhibits()),
        ("Other definitions", crate::migration::exhibits::exhibits()),
    ]
}

/// A rule taken out, within bounds that are just wide enough, and the invariant that does not hold then.
pub struct Exhibit {
    /// What is taken out.
    pub rule: Rule,
    /// What then fails.
    pub invariant: Invariant,
    look: Box<dyn Fn() -> Search>,
}

impl Exhibit {
    /// `model` is without `rule`. Of all that fails, `invariant` is looked at.
    pub fn new<M: Model + 'static>(rule: Rule, invariant: Invariant, model: M) -> Self {
        let watched = Watching(model, invariant);
        let look: Box<dyn Fn() -> Search> = match invariant {
            Invariant::Progress => Box::new(move || search_with_progress(&watched)),
            _ => Box::new(move || search(&watched)),
        };
        Self { rule, invariant, look }
    }

    /// A shortest schedule in which the invariant fails; `Err` with what the search found if there is none.
    ///
    /// # Errors
    /// When the invariant holds without the rule, within these bounds.
    pub fn schedule(&self) -> Result<Schedule, Search> {
        let found = (self.look)();
        match found.verdict {
            Verdict::Broken(schedule) => Ok(schedule),
            Verdict::Exhausted | Verdict::TooLarge => Err(found),
        }
    }

    /// Runs the search, prints the schedule, and compares it with what `docs/schedules.md` says.
    ///
    /// # Panics
    /// When nothing fails without the rule, or the page says something else.
    pub fn assert_documented(&self) {
        let schedule = match self.schedule() {
            Ok(schedule) => schedule,
            Err(found) => panic!(
                "without {:?} everything holds within these bounds: {found:?}",
                self.rule
            ),
        };
        let section = self.section(&schedule);
        println!("{section}");
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/schedules.md");
        let text = std::fs::read_to_string(page).unwrap_or_default();
        assert!(
            text.contains(&section),
            "write docs/schedules.md anew: cargo run -p annals-model > docs/schedules.md"
        );
    }

    /// The section that `docs/schedules.md` has about it.
    pub fn section(&self, schedule: &Schedule) -> String {
        let mut text = format!("### {}: {}\n\n", self.rule.number(), self.rule.says());
        let _ = writeln!(text, "Without it, it does not hold that {}:\n", self.invariant);
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

    /// Rules without which nothing fails: a test of their own shows it.
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
