//! Whoever trusts nobody reads what checks evidence: it consists of little, and reaches nobody.

use std::{collections::BTreeSet, process::Command};

use crate::Violation;

/// What checks evidence.
const VERIFIER: &str = "annals-verify";

/// Crates that it may consist of, ours among them, with those that are only there while it is built.
const MOST: usize = 50;

/// What sockets, runtimes and stores come with.
const REACHES_OUT: &[&str] = &[
    "annals-host",
    "annals-store",
    "async-nats",
    "fjall",
    "futures",
    "h2",
    "hyper",
    "libc",
    "mio",
    "quinn",
    "reqwest",
    "ring",
    "rustix",
    "rustls",
    "socket2",
    "tokio",
];

/// The names of all crates that one is built of, tests aside, on the system on which all of it is tested.
///
/// # Panics
/// When cargo does not answer, or does not know the crate: then nothing here means anything.
pub fn consists_of(name: &str) -> BTreeSet<String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args([
            "tree",
            "--locked",
            "--offline",
            "--edges",
            "normal,build",
            "--prefix",
            "none",
        ])
        .args([
            "--target",
            "x86_64-unknown-linux-gnu",
            "--format",
            "{p}",
            "--package",
            name,
        ])
        .current_dir(crate::repository::root())
        .output()
        .expect("cargo tree answers");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let lines = String::from_utf8_lossy(&output.stdout);
    let names = lines.lines().filter_map(|line| line.split(' ').next());
    names.filter(|name| !name.is_empty()).map(ToOwned::to_owned).collect()
}

/// A verifier that could reach somebody, or that nobody reads through.
pub fn check() -> Vec<Violation> {
    let crates = consists_of(VERIFIER);
    let reaching = REACHES_OUT.iter().filter(|name| crates.contains(**name));
    let mut found: Vec<Violation> = reaching
        .map(|name| Violation::of(VERIFIER, format!("consists of {name} too: it is to reach nobody")))
        .collect();
    if crates.len() > MOST {
        let count = crates.len();
        found.push(Violation::of(
            VERIFIER,
            format!("consists of {count} crates; at most {MOST}: whoever trusts nobody reads them"),
        ));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_server_consists_of_reaches_out() {
        let host = consists_of("annals-host");
        for name in ["tokio", "async-nats", "annals-store", "quinn"] {
            assert!(host.contains(name), "{name}");
        }
    }
}
