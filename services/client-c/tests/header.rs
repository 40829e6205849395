//! The header is the one that cbindgen writes, and compilers of C and C++ accept it.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

fn here() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// `UPDATE_EXPECT=1 cargo test -p annals-client-c --test header` rewrites the header.
#[test]
fn the_header_is_written_from_the_source() {
    let config = cbindgen::Config::from_file(here().join("cbindgen.toml")).unwrap();
    let bindings = cbindgen::Builder::new()
        .with_src(here().join("src/lib.rs"))
        .with_config(config)
        .generate()
        .unwrap();
    let mut written = Vec::new();
    bindings.write(&mut written);
    let written = String::from_utf8(written).unwrap();
    let path = here().join("include/annals_client.h");
    #[expect(clippy::disallowed_methods, reason = "a test may look at its environment")]
    if std::env::var("UPDATE_EXPECT").is_ok() {
        fs::write(&path, &written).unwrap();
    }
    let expected = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        written == expected,
        "{} is not what cbindgen writes: run this test with UPDATE_EXPECT=1",
        path.display()
    );
}
