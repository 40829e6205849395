//! The evidence verifier is small enough to be read by those who trust nobody, and has no network access.

use std::{collections::BTreeSet, process::Command};

use crate::Violation;

/// The crate that checks evidence.
const VERIFIER: &str = "annals-verify";

/// Maximum crates in its build, including ours and build dependencies.
const MOST: usize = 50;

/// Crates that bring sockets, runtimes or stores.
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

/// Names of all crates in the build of a crate, without those for tests, on the system on which everything is tested.
///
/// # Panics
/// If cargo fails, or does not know the crate.
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

/// Checks that the verifier has no I/O crates and is small enough to read.
pub fn check() -> Vec<Violation> {
    let crates = consists_of(VERIFIER);
    let reaching = REACHES_OUT.iter().filter(|name| crates.contains(**name));
    let mut found: Vec<Violation> = reaching
        .map(|name| Violation::of(VERIFIER, format!("depends on {name}, which has network access")))
        .collect();
    if crates.len() > MOST {
        let count = crates.len();
        found.push(Violation::of(
            VERIFIER,
            format!("depends on {count} crates; the limit is {MOST}: auditors read them all"),
        ));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn server_dependencies_have_network_access() {
        let host = consists_of("annals-host");
        for name in ["tokio", "async-nats", "annals-store", "quinn"] {
            assert!(host.contains(name), "{name}");
        }
    }
}
