//! Generated code compiles without a warning, whatever the schema.

mod worlds;

use std::{
    ffi::OsStr,
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
    let client = client_library();
    // What the compiler accepts and refuses of the typed interface.
    let file = folder.join("typed_sample.ts");
    fs::copy(client.join("test/typed_sample.ts"), &file).expect("copied");
    files.push(file);
    let config = serde_json::json!({
        "compilerOptions": {
            "strict": true, "noEmit": true, "target": "es2020", "module": "esnext", "moduleResolution": "bundler",
            "noUnusedLocals": true, "isolatedModules": true, "types": [], "lib": ["es2023", "dom"],
            "paths": { "annals-client": [client.join("src/index.ts")] },
        },
        "files": files,
    });
    let project = folder.join("tsconfig.json");
    fs::write(&project, config.to_string()).expect("written");
    compile(&tsc, &project, &[]);
}

/// The folder of the client library.
fn client_library() -> PathBuf {
    worlds::repository().join("services/client-ts")
}

fn compile(tsc: &Path, project: &Path, arguments: &[&OsStr]) {
    let output = Command::new(tsc)
        .arg("--project")
        .arg(project)
        .args(arguments)
        .output()
        .expect("tsc runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

/// Compiles a TypeScript project of this repository, and runs its tests with the folder of the result in this variable.
fn pass_tests(project: &Path, built_in: &str) {
    let Some(tsc) = typescript() else {
        println!("SKIPPED: no tsc; `make setup` installs one where there is npm, or name one in TSC");
        return;
    };
    let built = scratch(built_in);
    fs::write(built.join("package.json"), r#"{ "type": "module" }"#).expect("written");
    compile(
        &tsc,
        &project.join("tsconfig.json"),
        &["--outDir".as_ref(), built.as_os_str()],
    );
    let tests = fs::read_dir(project.join("test")).expect("there are tests");
    let tests = tests.map(|entry| entry.expect("it can be read").path());
    let tests = tests.filter(|path| path.to_string_lossy().ends_with(".test.mjs"));
    let ran = Command::new("node")
        .arg("--test")
        .args(tests)
        .env(built_in, built)
        .env(
            "ANNALS_VECTORS",
            worlds::repository().join("schema/wire/test_data/client"),
        )
        .output();
    match ran {
        Ok(ran) => assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stdout)),
        Err(error) => println!("SKIPPED: no node: {error}"),
    }
}

#[test]
fn the_client_library_passes_its_tests() {
    pass_tests(&client_library(), "ANNALS_CLIENT");
}

#[test]
fn the_page_of_annals_play_passes_its_tests() {
    pass_tests(&worlds::repository().join("services/play"), "ANNALS_PAGE");
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
