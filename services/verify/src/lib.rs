//! The command line of `annals-verify`, for the program and for its man page.

use std::path::PathBuf;

use annals_proof::{VerifierKey, key::KeyError};
use clap::Parser;

/// Check a bundle of evidence or a trade's receipt, and say what is proven and what is not.
///
/// The exit code is 0 if everything in it verifies, 1 if something does not, and 2 if there is nothing to be said: the
/// file cannot be read or is no evidence, or a checkpoint that was kept cannot be connected with it.
#[derive(Debug, Parser)]
#[command(name = "annals-verify", version = version())]
pub struct CommandLine {
    /// Bundle or receipt to check
    pub file: PathBuf,
    /// The log's verifier key, from an independent source: NAME+ID+BASE64; may be given several times
    #[arg(long, value_name = "KEY", value_parser = key)]
    pub key: Vec<VerifierKey>,
    /// A checkpoint of the log, kept by you or by a party that you trust; may be given several times
    #[arg(long, value_name = "FILE")]
    pub checkpoint: Vec<PathBuf>,
    /// The verifier key of a trusted witness; may be given several times
    #[arg(long, value_name = "KEY", value_parser = key)]
    pub witness: Vec<VerifierKey>,
    /// Minimum number of these witnesses that must have cosigned
    #[arg(long, value_name = "COUNT", default_value_t = 0)]
    pub quorum: usize,
}

/// The release, with its commit if the build was given it as `ANNALS_COMMIT`.
fn version() -> String {
    let version = env!("CARGO_PKG_VERSION");
    match option_env!("ANNALS_COMMIT") {
        Some(commit) => format!("{version} (commit {commit})"),
        None => version.to_owned(),
    }
}

fn key(text: &str) -> Result<VerifierKey, KeyError> {
    text.trim().parse()
}
