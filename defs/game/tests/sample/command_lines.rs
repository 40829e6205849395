//! The command lines of a game's own binaries.

use std::process::Command;

/// Output and exit code of a binary with these arguments.
fn said(program: &str, arguments: &[&str]) -> (Option<i32>, String) {
    let output = Command::new(program).args(arguments).output().expect("it runs");
    let text = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8_lossy(&text).into_owned())
}

#[test]
fn each_binary_has_its_own_heading_and_only_the_flags_it_uses() {
    let (base, cell) = (env!("CARGO_BIN_EXE_annals-base"), env!("CARGO_BIN_EXE_annals-cell"));
    for (program, heading, own, others) in [
        (base, "A base process of a realm: ", "--listen", "--client-bandwidth"),
        (cell, "A cell process of a realm: ", "--client-bandwidth", "--listen"),
    ] {
        let (code, help) = said(program, &["--help"]);
        assert_eq!(code, Some(0), "{help}");
        assert!(help.starts_with(heading), "{help}");
        assert!(
            help.contains(own) && !help.contains(others) && !help.contains("--store"),
            "{help}"
        );
        let (code, refused) = said(program, &["--store", "embedded"]);
        assert_eq!(code, Some(2), "{refused}");
        assert!(refused.contains("--store is a setting of db"), "{refused}");
    }
}

#[test]
fn a_missing_world_is_reported_as_a_wrong_path() {
    let (code, text) = said(env!("CARGO_BIN_EXE_annals-cell"), &["--world", "no/such/world"]);
    assert_eq!(code, Some(2), "{text}");
    assert!(
        text.starts_with("the world's folder no/such/world does not exist (/"),
        "{text}"
    );
    assert!(!text.contains("error["), "{text}");
}
