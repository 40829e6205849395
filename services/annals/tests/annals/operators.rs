//! `annals realm grant` and `take` on the command line: arguments that are refused before a request is sent.

use std::process::Command;

/// The exit code, and the output. No realm runs.
fn ends(line: &[&str]) -> (Option<i32>, String) {
    let word = ["--by", "olga", "--reason", "case 7", "--data", "nowhere"];
    let mut command = Command::new(env!("CARGO_BIN_EXE_annals"));
    let output = command.arg("realm").args(line).args(word).output();
    let output = output.expect("the program runs");
    let said = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8(said).expect("text"))
}

#[test]
fn duplicate_arguments_are_refused() {
    let kind = "kind 1 is named more than once with ";
    for (line, expected) in [
        (
            ["take", "mallory", "--units", "1=50", "--units", "1=50"],
            format!("{kind}--units"),
        ),
        (
            ["grant", "mallory", "--units", "1=50", "--units", "1=7"],
            format!("{kind}--units"),
        ),
        (
            ["grant", "mallory", "--new", "1=2", "--new", "1=2"],
            format!("{kind}--new"),
        ),
        (
            ["take", "mallory", "--item", "7", "--item", "7"],
            "item 7 is named more than once".to_owned(),
        ),
        (
            ["grant", "mallory", "--item", "7", "--item", "7"],
            "item 7 is named more than once".to_owned(),
        ),
    ] {
        let (code, said) = ends(&line);
        assert!(code == Some(2) && said.starts_with(&expected), "{line:?}: {said}");
    }
    // Different assets are accepted; the command then fails because no realm runs.
    for line in [
        ["take", "mallory", "--units", "1=50", "--units", "2=50"],
        ["grant", "mallory", "--units", "1=50", "--new", "1=50"],
        ["take", "mallory", "--item", "7", "--item", "8"],
    ] {
        let (code, said) = ends(&line);
        assert!(
            code == Some(2) && said.starts_with("the realm must be live"),
            "{line:?}: {said}"
        );
    }
}
