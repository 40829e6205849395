//! The file about tokens.
//!
//! ```toml
//! keys = "/etc/annals/keys.json"        # public keys of the issuer, a JWK set; read again when it changes
//! issuer = "https://id.example.org/"    # the claim iss must be this
//! audience = "aldmoor"                  # the claim aud must be this, or have it
//! algorithms = ["RS256", "ES256"]       # no others are accepted
//! name = "sub"                          # the claim with the account's name; default: sub
//! clock_skew_seconds = 60               # default: 60
//! ```

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use jsonwebtoken::{Algorithm, AlgorithmFamily};
use serde::Deserialize;
use thiserror::Error;

/// Default and maximum of `clock_skew_seconds`.
const CLOCK_SKEW: u64 = 60;
const MAX_CLOCK_SKEW: u64 = 300;

/// The claim that is the account's name by default.
const NAME_CLAIM: &str = "sub";

/// What tokens are accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenRules {
    /// File of the issuer's public keys.
    pub keys: PathBuf,
    pub issuer: String,
    pub audience: String,
    pub algorithms: Vec<Algorithm>,
    /// The claim with the account's name.
    pub name: String,
    /// By how much the clocks of issuer and realm may differ, seconds.
    pub clock_skew: u64,
}

/// What is wrong with the file.
#[derive(Debug, Error)]
pub enum TokenFileError {
    #[error("{} with the rules for tokens cannot be read", path.display())]
    Unreadable {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("{} with the rules for tokens is invalid: {problem}", path.display())]
    Invalid { path: PathBuf, problem: String },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entries {
    keys: PathBuf,
    issuer: String,
    audience: String,
    algorithms: Vec<String>,
    name: Option<String>,
    clock_skew_seconds: Option<u64>,
}

/// Reads the rules.
///
/// # Errors
/// When the file cannot be read, or has errors: all of them are named.
pub(super) fn read(path: &Path) -> Result<TokenRules, TokenFileError> {
    let text = fs::read_to_string(path).map_err(|source| TokenFileError::Unreadable {
        path: path.to_owned(),
        source,
    })?;
    parse(&text).map_err(|problem| TokenFileError::Invalid {
        path: path.to_owned(),
        problem,
    })
}

fn parse(text: &str) -> Result<TokenRules, String> {
    let entries: Entries = toml::from_str(text).map_err(|error| error.to_string())?;
    let mut problems = Vec::new();
    let mut algorithms = Vec::new();
    for name in &entries.algorithms {
        match name.parse::<Algorithm>() {
            // The key that checks such a signature also creates one.
            Ok(algorithm) if algorithm.family() == AlgorithmFamily::Hmac => {
                problems.push(format!(
                    "algorithms: {name} has no public key; use one that has, such as ES256"
                ));
            }
            Ok(algorithm) => algorithms.push(algorithm),
            Err(_) => problems.push(format!(
                "algorithms: {name:?} is none of RS256, RS384, RS512, PS256, PS384, PS512, ES256, ES384 and EdDSA"
            )),
        }
    }
    if entries.algorithms.is_empty() {
        problems.push("algorithms: name at least one".to_owned());
    }
    let name = entries.name.unwrap_or_else(|| NAME_CLAIM.to_owned());
    for (key, value) in [
        ("issuer", &entries.issuer),
        ("audience", &entries.audience),
        ("name", &name),
    ] {
        if value.is_empty() {
            problems.push(format!("{key}: it is empty"));
        }
    }
    let clock_skew = entries.clock_skew_seconds.unwrap_or(CLOCK_SKEW);
    if clock_skew > MAX_CLOCK_SKEW {
        problems.push(format!("clock_skew_seconds: it is above {MAX_CLOCK_SKEW}"));
    }
    if !problems.is_empty() {
        return Err(problems.join("; "));
    }
    Ok(TokenRules {
        keys: entries.keys,
        issuer: entries.issuer,
        audience: entries.audience,
        algorithms,
        name,
        clock_skew,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_errors_are_named_at_once() {
        let text = r#"
            keys = "keys.json"
            issuer = ""
            audience = "aldmoor"
            algorithms = ["HS256", "none", "ES256"]
            clock_skew_seconds = 3600
        "#;
        let problem = parse(text).unwrap_err();
        for part in [
            "HS256 has no public key",
            "\"none\" is none of",
            "issuer: it is empty",
            "is above 300",
        ] {
            assert!(problem.contains(part), "{part}: {problem}");
        }
        assert!(parse("keys = \"keys.json\"").unwrap_err().contains("issuer"));
        let unknown = "keys = \"k\"\nissuer = \"i\"\naudience = \"a\"\nalgorithms = [\"ES256\"]\nleeway = 1";
        assert!(parse(unknown).unwrap_err().contains("leeway"));
    }
}
