//! Folders on disk: links, loops, and special files.
#![cfg(unix)]
#![allow(
    clippy::disallowed_methods,
    reason = "a test makes folders, and waits no longer than it must"
)]

use std::{fs, os::unix::fs::symlink, path::Path, process::Command, sync::mpsc, thread, time::Duration};

use annals_def::{Compiled, Diagnostic, Rule, Severity, Tree, compile};

/// Time limit for a small folder, far more than it needs.
const TIMEOUT: Duration = Duration::from_secs(60);

const CLEAN: &str =
    "<root> <Properties> <hp> <Type> UINT8 </Type> <Flags> ALL_CLIENTS </Flags> </hp> </Properties> </root>";

/// A world of one type.
fn world() -> tempfile::TempDir {
    let dir = tempfile::tempdir().expect("a folder");
    fs::create_dir(dir.path().join("entity_defs")).expect("a folder");
    fs::write(dir.path().join("entities.xml"), "<root> <Avatar/> </root>").expect("a file");
    fs::write(dir.path().join("entity_defs/Avatar.def"), CLEAN).expect("a file");
    dir
}

/// Compiles a folder, which must terminate.
fn compiled(dir: &Path) -> Compiled {
    let (done, result) = mpsc::channel();
    let dir = dir.to_owned();
    thread::spawn(move || {
        let _ = done.send(compile(&Tree::read(&dir)));
    });
    result.recv_timeout(TIMEOUT).expect("reading a folder comes to an end")
}

/// The only problem of a folder, as its file and its message; an error if there is no schema.
fn problem(dir: &Path, severity: Severity) -> (String, String) {
    let compiled = compiled(dir);
    assert_eq!(compiled.schema.is_none(), severity == Severity::Error);
    let [problem] = compiled.diagnostics.as_slice() else {
        panic!("{:?}", compiled.diagnostics);
    };
    assert_eq!((problem.rule, problem.severity), (Rule::Unreadable, severity));
    (problem.place.file.clone(), problem.message.clone())
}

/// Whether there is no schema once an unreadable type is listed.
fn stops_if_listed(dir: &Path, name: &str) -> bool {
    let list = format!("<root> <Avatar/> <{name}/> </root>");
    fs::write(dir.join("entities.xml"), list).expect("a file");
    let compiled = compiled(dir);
    let is_error = |one: &Diagnostic| one.rule == Rule::Unreadable && one.severity == Severity::Error;
    compiled.schema.is_none() && compiled.diagnostics.iter().any(is_error)
}

#[test]
fn special_files_are_not_opened() {
    let dir = world();
    let pipe = dir.path().join("entity_defs/Pipe.def");
    let made = Command::new("mkfifo").arg(&pipe).status().expect("mkfifo runs");
    assert!(made.success());
    let (file, message) = problem(dir.path(), Severity::Warning);
    assert_eq!(file, "entity_defs/Pipe.def");
    assert!(message.contains("not a regular file"), "{message}");
    assert!(stops_if_listed(dir.path(), "Pipe"));
}

#[test]
fn a_loop_of_links_is_reported_and_skipped() {
    for target in [".", "..", "interfaces"] {
        let dir = world();
        fs::create_dir(dir.path().join("entity_defs/interfaces")).expect("a folder");
        symlink(target, dir.path().join("entity_defs/again")).expect("a link");
        let (file, message) = problem(dir.path(), Severity::Error);
        assert_eq!(file, "entity_defs/again");
        assert!(message.contains("a folder that was already read"), "{message}");
    }
}

#[test]
fn a_file_outside_the_world_is_not_shown() {
    let secret = tempfile::tempdir().expect("a folder");
    let path = secret.path().join("secret.xml");
    fs::write(&path, "root:x:0").expect("a file");
    let dir = world();
    symlink(&path, dir.path().join("entity_defs/Secret.def")).expect("a link");
    let (file, message) = problem(dir.path(), Severity::Warning);
    assert_eq!(file, "entity_defs/Secret.def");
    assert!(message.contains("leads out of the folder"), "{message}");
    assert!(stops_if_listed(dir.path(), "Secret"));
}

#[test]
fn a_broken_link_is_reported() {
    let dir = world();
    symlink("nothing", dir.path().join("entity_defs/Nothing.def")).expect("a link");
    assert_eq!(problem(dir.path(), Severity::Warning).0, "entity_defs/Nothing.def");
    assert!(stops_if_listed(dir.path(), "Nothing"));
}

#[test]
fn definitions_can_be_shared_by_a_link() {
    let (shared, dir) = (world(), tempfile::tempdir().expect("a folder"));
    fs::write(dir.path().join("entities.xml"), "<root> <Avatar/> <Twin/> </root>").expect("a file");
    symlink(shared.path().join("entity_defs"), dir.path().join("entity_defs")).expect("a link");
    // A link within the shared folder.
    symlink("Avatar.def", shared.path().join("entity_defs/Twin.def")).expect("a link");
    let compiled = compiled(dir.path());
    assert_eq!(compiled.diagnostics, []);
    let schema = compiled.schema.expect("a schema");
    assert_eq!(schema.types().len(), 2);
    assert!(schema.types().iter().all(|one| one.properties.len() == 1));
}
