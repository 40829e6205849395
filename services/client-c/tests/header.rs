//! The header is the one that cbindgen writes, compilers of C and C++ accept it, and a program in C can call everything
//! that it declares, in wrong ways, too.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::{
    env::consts::{DLL_PREFIX, DLL_SUFFIX},
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use annals_def::check_dir;

/// Warnings are errors.
const STRICT: [&str; 4] = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"];

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

/// Runs a compiler on a file; `None` if there is no such compiler.
fn compile(compiler: &str, language: &[&str], file: &Path, further: &[&str]) -> Option<Output> {
    let mut command = Command::new(compiler);
    command
        .args(language)
        .args(STRICT)
        .arg("-I")
        .arg(here().join("include"));
    command.arg(file).args(further).output().ok()
}

fn assert_accepted(output: &Output, what: &str) {
    assert!(
        output.status.success(),
        "{what}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn compilers_of_c_and_cpp_accept_the_header() {
    let folder = tempfile::tempdir().unwrap();
    // Twice, as by two headers of a program; and nothing else before it.
    let text = "#include <annals_client.h>\n#include <annals_client.h>\nint main(void) { return 0; }\n";
    for (compiler, name, standards) in [
        ("cc", "a.c", ["-std=c99", "-std=c11"]),
        ("c++", "a.cpp", ["-std=c++11", "-std=c++20"]),
    ] {
        let file = folder.path().join(name);
        fs::write(&file, text).unwrap();
        for standard in standards {
            match compile(compiler, &[standard], &file, &["-fsyntax-only"]) {
                Some(output) => assert_accepted(&output, standard),
                None if compiler == "cc" => panic!("there is no C compiler; `make setup` installs one"),
                None => println!("SKIPPED: {standard}: there is no {compiler}"),
            }
        }
    }
    let example = here().join("examples/walk.c");
    let output = compile("cc", &["-std=c99"], &example, &["-fsyntax-only"]).unwrap();
    assert_accepted(&output, "the example");
}

/// The shared library that cargo has built for this test: beside the test itself.
fn library() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    test.parent().unwrap().join(format!(
        "{DLL_PREFIX}{}{DLL_SUFFIX}",
        env!("CARGO_PKG_NAME").replace('-', "_")
    ))
}

#[test]
fn a_program_in_c_is_refused_what_is_wrong() {
    let folder = tempfile::tempdir().unwrap();
    let world = here().join("../../defs");
    let (schema, _) = check_dir(&world);
    let (stored, program) = (folder.path().join("sample.schema"), folder.path().join("calls"));
    fs::write(&stored, schema.unwrap().encode()).unwrap();
    let library = library();
    let further = ["-pthread", "-o", program.to_str().unwrap(), library.to_str().unwrap()];
    let output = compile("cc", &["-std=c99"], &here().join("tests/c/calls.c"), &further).unwrap();
    assert_accepted(&output, "tests/c/calls.c");
    let output = Command::new(&program).arg(&stored).arg(&world).output().unwrap();
    assert_accepted(&output, "calls");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "all refused\n");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!said.contains("panicked"), "{said}");
}
