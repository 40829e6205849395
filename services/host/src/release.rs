//! Which release a program is.

/// The version.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The commit that it was built from, if the build was given it as `ANNALS_COMMIT`.
pub const COMMIT: Option<&str> = option_env!("ANNALS_COMMIT");

/// The fingerprint of the definitions that it was built for, if the build was given it as `ANNALS_SCHEMA`.
pub const SCHEMA: Option<&str> = option_env!("ANNALS_SCHEMA");

/// All of it, as programs print it with `--version`.
#[must_use]
pub fn text() -> String {
    let commit = COMMIT.map(|commit| format!("commit {commit}"));
    let schema = SCHEMA.map(|schema| format!("schema {schema}"));
    let known: Vec<String> = commit.into_iter().chain(schema).collect();
    if known.is_empty() {
        VERSION.to_owned()
    } else {
        format!("{VERSION} ({})", known.join(", "))
    }
}
