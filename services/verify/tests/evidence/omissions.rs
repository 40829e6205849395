//! What an attacker who has all entries with their orders can leave out of a bundle undetected, and what not.

use std::collections::{BTreeMap, BTreeSet};

use annals_event::{
    Body,
    ledger::{Entry, Holder, Order, Outcome, Stage},
};
use annals_evidence::{Answer, Bundle, Question, TradeStage, check};
use annals_ids::DatabaseId;

use crate::archive::Archive;

const SEEDS: u64 = 4;

/// A complete bundle, from which steps can be left out.
struct Whole {
    bundle: Bundle,
    /// The entries, each with the number of the event that records it.
    steps: Vec<(usize, Entry)>,
}

impl Whole {
    async fn of(archive: &Archive, question: Question) -> Self {
        let bundle = Bundle::read(&archive.bundle(question).await).expect("a bundle").0;
        let events = bundle.events.iter().enumerate();
        let steps = events.filter_map(|(at, event)| match &event.excerpt.event().body {
            Body::Entered { entry: Some(entry), .. } => Some((at, (**entry).clone())),
            _ => None,
        });
        let steps = steps.collect();
        Self { bundle, steps }
    }

    fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.steps.iter().map(|(_, entry)| entry)
    }

    /// The bundle without some steps.
    fn without(&self, is_left_out: impl Fn(usize) -> bool) -> Bundle {
        let mut fewer = self.bundle.clone();
        fewer.events.clear();
        for (number, (at, entry)) in self.steps.iter().enumerate() {
            if !is_left_out(number) {
                let events = 1 + usize::from(entry.order.is_some());
                fewer.events.extend_from_slice(&self.bundle.events[*at..at + events]);
            }
        }
        let needed: BTreeSet<_> = fewer.events.iter().map(|event| event.excerpt.header().schema).collect();
        fewer.schemas.retain(|fingerprint, _| needed.contains(fingerprint));
        fewer
    }
}

/// Counts of detected and undetected omissions.
#[derive(Debug, Default)]
struct Gaps {
    noticed: usize,
    unnoticed: usize,
}

impl Gaps {
    /// Checks whether an omission is detected, against the expectation.
    fn leave_out(&mut self, archive: &Archive, fewer: &Bundle, is_unnoticed: bool, what: &str) {
        let answer = fewer.answer();
        assert_eq!(answer.is_ok(), is_unnoticed, "{what}: {answer:?}");
        if !is_unnoticed {
            self.noticed += 1;
            return;
        }
        self.unnoticed += 1;
        // Some of them are checked in full, with all proofs.
        if self.unnoticed % 16 == 1 {
            let bytes = fewer.write().expect("it fits together");
            let verdict = check(&bytes, &archive.anchors()).expect("it was the log's");
            assert!(
                verdict.open().join("\n").contains("That nothing was left out."),
                "{what}"
            );
        }
    }
}

#[tokio::test]
async fn an_item_bundle_can_omit_only_a_departure_and_return() {
    let mut gaps = Gaps::default();
    for seed in 0..SEEDS {
        let archive = Archive::play(900 + seed, 150).await;
        for question in archive.questions() {
            let Question::Item(serial) = question else { continue };
            let whole = Whole::of(&archive, question).await;
            let moves: Vec<_> = whole
                .entries()
                .flat_map(|entry| entry.passages.iter().filter(|passage| passage.serial == serial))
                .collect();
            for (first, last) in (0..moves.len()).flat_map(|first| (first..moves.len()).map(move |last| (first, last)))
            {
                let fewer = whole.without(|step| (first..=last).contains(&step));
                let (before, after) = (moves[first].from, moves[last].to);
                let is_back = before == after || first == 0 && after.holder == Holder::World;
                let is_end = last + 1 == moves.len() && first > 0;
                let what = format!("seed {seed}, {question} without {first} to {last}");
                gaps.leave_out(&archive, &fewer, is_back && first > 0 || is_end, &what);
            }
        }
    }
    assert!(gaps.noticed > 50 && gaps.unnoticed > 50, "{gaps:?}");
}

/// Whether the holder gives only what they have, and receives only items that they do not have.
fn is_covered<'a>(holder: DatabaseId, entries: impl Iterator<Item = &'a Entry>) -> bool {
    let (mut units, mut items) = (BTreeMap::new(), BTreeSet::new());
    for entry in entries {
        let own = |other: Holder| other == Holder::Stored(holder);
        for posting in entry
            .postings
            .iter()
            .filter(|posting| own(posting.account.place.holder))
        {
            let held: &mut i64 = units.entry(posting.account).or_default();
            *held += posting.amount;
            if *held < 0 {
                return false;
            }
        }
        for passage in &entry.passages {
            if own(passage.from.holder) && !items.remove(&passage.serial) {
                return false;
            }
            if own(passage.to.holder) && !items.insert(passage.serial) {
                return false;
            }
        }
    }
    true
}

#[tokio::test]
async fn an_account_bundle_can_omit_only_unneeded_entries() {
    let mut gaps = Gaps::default();
    for seed in 0..SEEDS {
        let archive = Archive::play(920 + seed, 150).await;
        for question in archive.questions() {
            let Question::Account(holder) = question else { continue };
            let whole = Whole::of(&archive, question).await;
            assert!(is_covered(holder, whole.entries()), "seed {seed}, {question}");
            for gap in 0..whole.steps.len() {
                let fewer = whole.without(|step| step == gap);
                let rest = whole.entries().enumerate().filter(|(step, _)| *step != gap);
                let is_unnoticed = is_covered(holder, rest.map(|(_, entry)| entry));
                let what = format!("seed {seed}, {question} without {gap}");
                gaps.leave_out(&archive, &fewer, is_unnoticed, &what);
            }
        }
    }
    assert!(gaps.noticed > 50 && gaps.unnoticed > 50, "{gaps:?}");
}

#[tokio::test]
async fn a_settled_trade_bundle_can_omit_no_change_of_an_offer() {
    let mut gaps = Gaps::default();
    for seed in 0..SEEDS {
        let archive = Archive::play(940 + seed, 150).await;
        for id in archive.settled() {
            let whole = Whole::of(&archive, Question::Trade(id)).await;
            let Ok(Answer::Trade(trade)) = whole.bundle.answer() else {
                panic!("a trade")
            };
            let steps = trade.steps.iter();
            let settled = steps
                .clone()
                .position(|step| step.stage == TradeStage::Begun(Stage::Settled))
                .expect("it was settled");
            let version = trade.steps[settled].version;
            // The first acceptance of each side of an exchange.
            let mut accepted = BTreeSet::new();
            let needed: Vec<bool> = steps
                .map(|step| match (&step.cited.entry.order, step.cited.entry.outcome) {
                    (_, Outcome::Refused(_)) => false,
                    (Some(Order::Accept { version: of, .. }), _) if *of == version => {
                        accepted.insert(step.cited.entry.holder)
                    }
                    (Some(Order::Accept { .. }), _) => false,
                    _ => true,
                })
                .collect();
            // Each step alone, and each pair, which covers what was offered and withdrawn again.
            for (one, two) in (0..settled).flat_map(|one| (one..settled).map(move |two| (one, two))) {
                let fewer = whole.without(|step| step == one || step == two);
                let is_repeated = |step: usize| {
                    let entry = &trade.steps[step].cited.entry;
                    let again = trade.steps[..settled].iter().enumerate().skip(step + 1);
                    let again = again.filter(|(other, _)| *other != one && *other != two);
                    matches!(entry.order, Some(Order::Accept { .. }))
                        && again.map(|(_, step)| &step.cited.entry).any(|other| {
                            other.outcome == Outcome::Posted
                                && (&other.order, other.holder) == (&entry.order, entry.holder)
                        })
                };
                let is_needed = [one, two].into_iter().any(|step| needed[step] && !is_repeated(step));
                let what = format!("seed {seed}, trade {id} without {one} and {two}");
                gaps.leave_out(&archive, &fewer, !is_needed, &what);
            }
        }
    }
    assert!(gaps.noticed > 50 && gaps.unnoticed > 0, "{gaps:?}");
}
