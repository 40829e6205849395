//! Every rule has an explanation, and its examples behave as the explanation says.

use std::{collections::BTreeSet, fs, path::Path};

use annals_authoring::{Explanation, explain};
use annals_def::{Compiled, Rule, Severity, Style, Survey, Tree, compile, render, survey};

/// Rules from this number on are advice, or about advice.
const FIRST_ADVICE: u16 = 700;

fn with_advice(tree: &Tree) -> Compiled {
    let Survey {
        schema,
        diagnostics,
        dialect,
        ..
    } = survey(tree);
    Compiled {
        schema,
        diagnostics,
        dialect,
    }
}

#[test]
fn the_wrong_example_breaks_its_rule_and_the_right_one_none() {
    let mut wrong = Vec::new();
    for rule in Rule::ALL {
        let explanation = Explanation::of(*rule);
        // Advice is reported on request only; the right example of another rule may be wasteful.
        let look = if rule.text().number >= FIRST_ADVICE {
            with_advice
        } else {
            compile
        };
        let broken = look(&explanation.wrong.tree());
        if !broken.diagnostics.iter().any(|diagnostic| diagnostic.rule == *rule) {
            wrong.push(format!(
                "{rule} {rule:?}: the wrong example does not break it:\n{}",
                said(&broken)
            ));
        }
        let right = look(&explanation.right.tree());
        if right.schema.is_none() || !right.diagnostics.is_empty() {
            wrong.push(format!(
                "{rule} {rule:?}: the right example is not clean:\n{}",
                said(&right)
            ));
        }
        let is_error = rule.text().severity == Severity::Error;
        if is_error != broken.schema.is_none() {
            wrong.push(format!(
                "{rule} {rule:?}: the wrong example has another gravity:\n{}",
                said(&broken)
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn said(compiled: &Compiled) -> String {
    render(&compiled.diagnostics, Style::Plain)
        .chars()
        .take(2_000)
        .collect()
}

#[test]
fn an_explanation_shows_both_examples_and_the_diagnostic() {
    for rule in Rule::ALL {
        let text = explain(*rule, Style::Plain);
        for part in [
            rule.text().title,
            rule.text().why,
            "This breaks it:",
            &format!("[{rule}]: "),
            "This does not:",
        ] {
            assert!(text.contains(part), "{rule}: no {part} in\n{text}");
        }
        assert!(Explanation::of(*rule).text.len() > 60, "{rule} is not explained");
        assert!(text.lines().all(|line| line.chars().count() <= 170), "{text}");
    }
    let flags = explain(Rule::UnknownFlags, Style::Plain);
    assert!(flags.contains("help: did you mean `ALL_CLIENTS`?"), "{flags}");
}

#[test]
fn an_unknown_rule_has_no_explanation() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("explain");
    let files: BTreeSet<String> = fs::read_dir(folder)
        .expect("readable")
        .map(|entry| entry.expect("readable").file_name().to_string_lossy().into_owned())
        .collect();
    let rules: BTreeSet<String> = Rule::ALL.iter().map(|rule| format!("{rule:?}.md")).collect();
    assert_eq!(files, rules);
}
