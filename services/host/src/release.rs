//! Which release a program is.

/// The version.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The commit that it was built from, if the build was given it as `ANNALS_COMMIT`.
pub const COMMIT: Option<&str> = option_env!("ANNALS_COMMIT");

/// Both, as programs print them with `--version`.
#[must_use]
pub fn text() -> String {
    match COMMIT {
        Some(commit) => format!("{VERSION} (commit {commit})"),
        None => VERSION.to_owned(),
    }
}
