//! Generated code compiles without a warning, whatever the schema.

mod worlds;

use std::{
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use annals_authoring::codegen::{CodeParts, Model};
use annals_def::Tree;

/// Dependencies of the scratch crate.
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
        // Once is enough for worlds whose peculiarities do not depend on the parts.
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
    write_example(&folder);
    modules += "pub mod example;\n";
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

/// The example of the documentation: its world's code, and the game that uses it.
fn write_example(folder: &Path) {
    let page = fs::read_to_string(worlds::repository().join("docs/generated-code.md")).expect("the page");
    let block = |language: &str| {
        let (_, rest) = page
            .split_once(&format!("\n```{language}\n"))
            .expect("there is such a block");
        let (block, _) = rest.split_once("\n```\n").expect("it has an end");
        block.to_owned()
    };
    let mut tree = Tree::new();
    tree.insert("entities.xml", "<root> <Avatar/> </root>");
    tree.insert("entity_defs/Avatar.def", block("xml"));
    let model = Model::compile(&tree).unwrap_or_else(|problems| panic!("{problems:?}"));
    fs::create_dir_all(folder.join("src/example")).expect("a folder");
    let game = format!(
        "//! The example of the documentation.\n\npub mod defs;\n\n{}\n",
        block("rust")
    );
    fs::write(folder.join("src/example/mod.rs"), game).expect("written");
    fs::write(folder.join("src/example/defs.rs"), model.to_rust(CodeParts::SERVER)).expect("written");
}

/// The TypeScript compiler: the one that `TSC` names, that of `make setup`, or the one on PATH.
fn typescript() -> Option<PathBuf> {
    let private = worlds::repository().join("target/tools/node_modules/.bin/tsc");
    let named = std::env::var("TSC").ok().map(PathBuf::from);
    let candidates = named.into_iter().chain([private, PathBuf::from("tsc")]);
    let runs = |tsc: &PathBuf| {
        let version = Command::new(tsc).arg("--version").output();
        version.is_ok_and(|output| output.status.success())
    };
    candidates.into_iter().find(runs)
}

#[test]
fn typescript_compiles_strictly() {
    let Some(tsc) = typescript() else {
        println!("SKIPPED: no tsc; `make setup` installs one where there is npm, or name one in TSC");
        return;
    };
    let folder = scratch("generated-typescript");
    let mut files = Vec::new();
    for (world, model) in worlds::all() {
        let code = model.to_typescript();
        println!("{world}: {} lines", code.lines().count());
        let file = folder.join(format!("{world}.ts"));
        fs::write(&file, code).expect("written");
        files.push(file);
    }
    let output = Command::new(tsc)
        .args([
            "--strict",
            "--noEmit",
            "--target",
            "es2020",
            "--noUnusedLocals",
            "--isolatedModules",
        ])
        .args(&files)
        .output()
        .expect("tsc runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

/// What a client written in TypeScript must derive itself: the rules of `docs/client-protocol.md` on space data.
const SPACE_DATA: &str = r#"
import { SpaceData } from "./sample.js";
const entry = (key, since, by, value, life = 0) =>
  ({ key, version: { life: BigInt(life), since: BigInt(since), by }, value: Uint8Array.from(value) });
const same = (what, found, wanted) => {
  if (JSON.stringify(found) !== JSON.stringify(wanted)) throw new Error(`${what}: ${JSON.stringify(found)}`);
};
const data = new SpaceData();
const changed = [];
data.onChange = (key) => changed.push(key);
same("new", data.take(entry(300, 10, 3, [1])), true);
same("older", data.take(entry(300, 9, 9, [2])), false);
same("the same", data.take(entry(300, 10, 3, [3])), false);
same("of a higher owner", data.take(entry(300, 10, 4, [4])), true);
same("held", [...data.get(300)], [4]);
const day = new DataView(new ArrayBuffer(24));
day.setFloat64(0, 3600, true);
day.setFloat64(8, 60, true);
day.setBigUint64(16, 1000n, true);
same("time", data.take(entry(0, 20, 1, new Uint8Array(day.buffer))), true);
same("time goes on", data.timeOfDay(2000), 3660);
same("over midnight", data.timeOfDay(1000 - 61 * 60 * 1000 / 60 * 1), 3600 - 61 * 60 + 86400);
same("removed", [data.take(entry(301, 30, 1, [])), data.get(301) === undefined], [true, true]);
changed.length = 0;
same("written while it is gone", data.take(entry(300, 99, 1, [9], 1)), false);
same("opened", data.take(entry(1, 0, 1, [], 2)), true);
same("void", [data.get(300) === undefined, data.timeOfDay(0) === undefined], [true, true]);
same("told", changed, [0, 1, 300, 301]);
same("void stays away", data.take(entry(300, 99, 1, [5])), false);
same("again", data.take(entry(1, 0, 2, [], 2)), false);
same("written since", data.take(entry(301, 5, 1, [6], 2)), true);
changed.length = 0;
same("in a later life", data.take(entry(302, 1, 1, [7], 4)), true);
same("told of that", changed, [1, 301, 302]);
const found = data.versions().map(([key, { life, since, by }]) => [key, Number(life), Number(since), by]);
same("versions", found, [[1, 4, 0, 0], [302, 4, 1, 1]]);
"#;

#[test]
fn typescript_keeps_space_data_as_the_protocol_specifies() {
    let Some(tsc) = typescript() else {
        println!("SKIPPED: no tsc; `make setup` installs one where there is npm, or name one in TSC");
        return;
    };
    let folder = scratch("generated-space-data");
    let (_, model) = worlds::all()
        .into_iter()
        .find(|(world, _)| world == "sample")
        .expect("there is a sample");
    fs::write(folder.join("sample.ts"), model.to_typescript()).expect("written");
    fs::write(folder.join("package.json"), r#"{ "type": "module" }"#).expect("written");
    fs::write(folder.join("check.js"), SPACE_DATA).expect("written");
    let made = Command::new(tsc)
        .args(["--strict", "--target", "es2020", "--module", "es2020"])
        .arg(folder.join("sample.ts"))
        .output()
        .expect("tsc runs");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stdout));
    let ran = Command::new("node").arg(folder.join("check.js")).output();
    match ran {
        Ok(ran) => assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr)),
        Err(error) => println!("SKIPPED: no node: {error}"),
    }
}

#[test]
fn generated_rust_is_formatted() {
    let folder = scratch("generated-format");
    for (world, model) in worlds::all() {
        // Only where no name is so long that line breaks are ambiguous.
        if !matches!(
            world.as_str(),
            "sample" | "bigworld_simple" | "kbengine_getting_started" | "empty" | "nobody"
        ) {
            continue;
        }
        let file = folder.join(format!("{world}.rs"));
        fs::write(&file, model.to_rust(CodeParts::ALL)).expect("written");
        // Uses rustfmt's defaults, not the settings of this repository.
        fs::write(folder.join("rustfmt.toml"), "").expect("written");
        let output = Command::new("rustfmt")
            .args(["--edition", "2024", "--check", "--config-path"])
            .arg(&folder)
            .arg(&file)
            .output();
        match output {
            Ok(output) => assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout)),
            Err(error) => println!("SKIPPED: no rustfmt: {error}"),
        }
    }
}
