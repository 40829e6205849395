//! Generated code compiles, without a warning, whatever the schema.

mod worlds;

use std::{
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use annals_def::codegen::CodeParts;

/// What the scratch crate depends on.
const CRATES: [(&str, &str); 5] = [
    ("annals-client", "services/client"),
    ("annals-def", "schema/def"),
    ("annals-event", "schema/event"),
    ("annals-ids", "schema/ids"),
    ("annals-node", "services/node"),
];

/// A folder for generated code below the target folder.
fn scratch(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::create_dir_all(folder.join("src")).expect("a folder");
    folder
}

#[test]
fn rust_compiles_without_warnings() {
    let repository = worlds::repository().canonicalize().expect("the repository");
    let folder = scratch("generated-rust");
    let mut manifest =
        "[package]\nname = \"generated\"\nedition = \"2024\"\n\n[workspace]\n\n[dependencies]\n".to_owned();
    for (name, path) in CRATES {
        let path = repository.join(path);
        writeln!(manifest, "{name} = {{ path = {path:?} }}").expect("to memory");
    }
    fs::write(folder.join("Cargo.toml"), manifest).expect("written");
    fs::copy(repository.join("Cargo.lock"), folder.join("Cargo.lock")).expect("copied");
    let mut modules = "//! Generated code of several worlds.\n#![deny(warnings, missing_docs)]\n\n".to_owned();
    let kinds = [
        ("", CodeParts::ALL),
        ("_server", CodeParts::SERVER),
        ("_client", CodeParts::CLIENT),
    ];
    for (world, model) in worlds::all() {
        // Once is enough where the parts have nothing to do with what is unusual about a world.
        let every = if matches!(world.as_str(), "sample" | "names") {
            kinds.len()
        } else {
            1
        };
        for (suffix, parts) in kinds.into_iter().take(every) {
            let code = model.to_rust(parts);
            println!("{world}{suffix}: {} lines", code.lines().count());
            writeln!(modules, "pub mod {world}{suffix};").expect("to memory");
            fs::write(folder.join(format!("src/{world}{suffix}.rs")), code).expect("written");
        }
    }
    fs::write(folder.join("src/lib.rs"), modules).expect("written");
    let target = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .parent()
        .expect("the target folder");
    let output = Command::new(env!("CARGO"))
        .args(["check", "--offline", "--quiet"])
        .current_dir(&folder)
        .env("CARGO_TARGET_DIR", target)
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
