//! Plays worlds on the production cores, with the client SDK as clients.
#![allow(clippy::unwrap_used, reason = "what is missing in a test has failed it")]

#[rustfmt::skip]
#[allow(dead_code, unreachable_pub, reason = "it is made for crates, and a test uses a part of it")]
mod defs;
mod downloads;
mod puppet;
mod rounds;
mod sample;
mod typed;
mod visits;
mod zones;

use std::{path::Path, sync::Arc};

use annals_def::{Schema, Style, check_dir, render};

/// Compiles the definitions in a folder.
fn schema(folder: &Path) -> Arc<Schema> {
    let (schema, diagnostics) = check_dir(folder);
    let problems = || format!("{}: {}", folder.display(), render(&diagnostics, Style::Plain));
    Arc::new(schema.unwrap_or_else(|| panic!("{}", problems())))
}
