//! Man pages and completions are written for all programs.

use std::{fs, process::Command};

use annals_host::release;
use tempfile::TempDir;

#[test]
fn pages_and_completions_are_written_for_all_programs() {
    let folder = TempDir::new().unwrap();
    let run = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_annals"));
        command.args(arguments).current_dir(folder.path()).output().unwrap()
    };
    assert!(run(&["manual", "--out", "share"]).status.success());
    let read = |path: &str| fs::read_to_string(folder.path().join("share").join(path)).unwrap();
    for program in [
        "annals",
        "annals-base",
        "annals-cell",
        "annals-console",
        "annals-db",
        "annals-director",
        "annals-login",
        "annals-signer",
        "annals-verify",
    ] {
        assert!(read(&format!("man/man1/{program}.1")).contains(program), "{program}");
        let completion = folder.path().join(format!("share/completions/{program}.bash"));
        let checked = Command::new("bash").arg("-n").arg(completion).status().unwrap();
        assert!(checked.success(), "{program}");
        for shell in [format!("_{program}"), format!("{program}.fish")] {
            assert!(read(&format!("completions/{shell}")).contains(program), "{shell}");
        }
    }
    let watch = read("man/man1/annals-realm-watch.1");
    assert!(watch.contains("Read values of live processes"), "{watch}");
    assert!(read("man/man1/annals-director.1").contains("Number of base processes"));
    assert!(!read("man/man1/annals.1").contains("manual"), "it is for packages only");

    let version = run(&["--version"]);
    assert_eq!(
        String::from_utf8(version.stdout).unwrap(),
        format!("annals {}\n", release::text())
    );
}
