//! `annals defs` on the command line: the output, files and exit codes of each command.

mod check;
mod describe;
mod diff;
mod generate;

use std::{
    fs,
    path::Path,
    process::{Command, Output},
};

/// A world of one type.
fn world(definition: &str) -> tempfile::TempDir {
    let dir = tempfile::tempdir().expect("a folder");
    fs::create_dir(dir.path().join("entity_defs")).expect("a folder");
    fs::write(dir.path().join("entities.xml"), "<root> <Avatar/> </root>").expect("a file");
    fs::write(dir.path().join("entity_defs/Avatar.def"), definition).expect("a file");
    dir
}

/// Runs a command in a folder.
fn annals(dir: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_annals"));
    command.arg("defs").args(arguments).current_dir(dir);
    command.output().expect("the program runs")
}

/// Output as text.
fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("text")
}
