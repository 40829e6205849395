//! Golden cases: definitions and their diagnostics.
//!
//! `test_data/ok` has cases that load, `test_data/err` cases that must not, `test_data/lint` cases that load and could
//! be better. A case is a file of sections, each begun by `=== path`, or a folder where the bytes matter. Beside it is
//! the expectation: the diagnostics, and the schema if it loads. `UPDATE_EXPECT=1 cargo test -p annals-def golden`
//! updates the expectations; review the difference.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use crate::support::{describe, tree_of};
use annals_def::{Compiled, Diagnostic, Rule, Severity, Style, compile, render, survey};

fn cases(kind: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("test_data").join(kind);
    let entries = folder
        .read_dir()
        .expect("readable")
        .map(|entry| entry.expect("readable").path());
    let mut cases: Vec<_> = entries
        .filter(|path| path.is_dir() || path.extension().is_some_and(|ending| ending == "case"))
        .collect();
    cases.sort();
    assert!(!cases.is_empty());
    cases
}

fn compiled(case: &Path) -> (Compiled, String) {
    let compiled = compile(&tree_of(case));
    let mut said = render(&compiled.diagnostics, Style::Plain);
    if let Some(schema) = &compiled.schema {
        said.push_str(&describe(schema));
    }
    (compiled, said)
}

/// Every diagnostic must say what to write instead.
fn everything_has_help(case: &Path, diagnostics: &[Diagnostic]) {
    for found in diagnostics {
        let help = found.help.as_deref().unwrap_or_default();
        assert!(!help.is_empty(), "{}: no help: {}", case.display(), found.message);
    }
}

/// Compares the output with the expectation; returns the case's name if they differ.
fn compare(case: &Path, said: &str) -> Option<String> {
    let beside = case.with_extension("expected");
    #[expect(clippy::disallowed_methods, reason = "a test may look at its environment")]
    if std::env::var("UPDATE_EXPECT").is_ok() {
        fs::write(&beside, said).expect("writable");
        return None;
    }
    let expected = fs::read_to_string(&beside).unwrap_or_default();
    (expected != said).then(|| format!("{}\nexpected:\n{expected}\nsaid:\n{said}", case.display()))
}

/// The rule at the start of a case's name, if there is one.
fn rule_of(case: &Path) -> Option<Rule> {
    let name = case.file_name()?.to_str()?;
    name.get(..4).and_then(|digits| Rule::with_code(&format!("D{digits}")))
}

#[test]
fn errors_match_the_golden_files() {
    let mut differences = Vec::new();
    for case in cases("err") {
        let (compiled, said) = compiled(&case);
        if compiled.schema.is_some() {
            differences.push(format!("{} loads", case.display()));
            continue;
        }
        if let Some(rule) = rule_of(&case) {
            let mut errors = compiled.diagnostics.iter().filter(|d| d.severity == Severity::Error);
            assert!(
                errors.any(|d| d.rule == rule),
                "{}: no error {rule}\n{said}",
                case.display()
            );
        }
        everything_has_help(&case, &compiled.diagnostics);
        differences.extend(compare(&case, &said));
    }
    assert!(differences.is_empty(), "{}", differences.join("\n\n"));
}

#[test]
fn warnings_match_the_golden_files_and_do_not_prevent_loading() {
    let mut differences = Vec::new();
    for case in cases("ok") {
        let (compiled, said) = compiled(&case);
        if compiled.schema.is_none() {
            differences.push(format!("{} does not load\n{said}", case.display()));
            continue;
        }
        if let Some(rule) = rule_of(&case) {
            assert!(
                compiled.diagnostics.iter().any(|d| d.rule == rule),
                "{}: no {rule}\n{said}",
                case.display()
            );
        }
        everything_has_help(&case, &compiled.diagnostics);
        differences.extend(compare(&case, &said));
    }
    assert!(differences.is_empty(), "{}", differences.join("\n\n"));
}

#[test]
fn advice_is_given_on_request() {
    let mut differences = Vec::new();
    for case in cases("lint") {
        let tree = tree_of(&case);
        let diagnostics = survey(&tree).diagnostics;
        let said = render(&diagnostics, Style::Plain);
        let rule = rule_of(&case);
        let is_reported = rule.is_none_or(|rule| diagnostics.iter().any(|d| d.rule == rule));
        let is_quiet = case.to_string_lossy().contains("_quiet_");
        assert!(is_reported != is_quiet, "{}: {rule:?}\n{said}", case.display());
        let unasked = compile(&tree);
        assert!(unasked.schema.is_some(), "{} does not load", case.display());
        assert!(
            unasked.diagnostics.iter().all(|d| d.severity != Severity::Lint),
            "{}: advice that nobody asked for",
            case.display()
        );
        everything_has_help(&case, &diagnostics);
        differences.extend(compare(&case, &said));
    }
    assert!(differences.is_empty(), "{}", differences.join("\n\n"));
}

/// Rules whose cases would be too large; `hostile.rs` breaks them.
const LARGE: [Rule; 4] = [Rule::Unreadable, Rule::TooLarge, Rule::TooMany, Rule::MoreFindings];

#[test]
fn every_rule_has_a_case() {
    let kinds = ["err", "ok", "lint"].into_iter().flat_map(cases);
    let broken: BTreeSet<Rule> = kinds
        .flat_map(|case| survey(&tree_of(&case)).diagnostics)
        .map(|diagnostic| diagnostic.rule)
        .collect();
    let missing: Vec<_> = Rule::ALL
        .iter()
        .filter(|rule| !broken.contains(rule) && !LARGE.contains(rule))
        .collect();
    assert!(missing.is_empty(), "no case for {missing:?}");
}

#[test]
fn codes_are_unique_and_map_to_their_rules() {
    let numbers: BTreeSet<u16> = Rule::ALL.iter().map(|rule| rule.text().number).collect();
    assert_eq!(numbers.len(), Rule::ALL.len());
    for rule in Rule::ALL {
        assert_eq!(Rule::with_code(&rule.to_string()), Some(*rule));
        let text = rule.text();
        assert!(!text.title.ends_with('.') && !text.why.ends_with('.'), "{rule}");
    }
}
