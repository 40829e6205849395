//! No test is left out: a target whose `Cargo.toml` builds no tests for it, to save the time that linking takes, has none;
//! and each file of a test program is one of its modules.

use std::collections::BTreeSet;

use toml::{Table, Value};

use crate::{Violation, repository::SourceFile};

/// Markers of unit tests.
const TESTS: [&str; 2] = ["#[test]", "#[cfg(test)]"];

/// Checks the targets of a crate against its files; those of other crates are ignored.
pub fn check(manifest: &SourceFile, files: &[SourceFile]) -> Vec<Violation> {
    let Some(folder) = manifest.path.strip_suffix("Cargo.toml") else {
        return Vec::new();
    };
    let Ok(table) = manifest.text.parse::<Table>() else {
        return vec![Violation::of(&manifest.path, "is not TOML")];
    };
    let source = format!("{folder}src/");
    let sources = files
        .iter()
        .filter(|file| file.path.starts_with(&source) && file.has_extension("rs"));
    // The library has all other files, for its own modules and those of programs.
    let is_of_program = |file: &&SourceFile| {
        let path = &file.path[source.len()..];
        path == "main.rs" || path.starts_with("bin/")
    };
    let (programs, library): (Vec<_>, Vec<_>) = sources.partition(is_of_program);
    let mut found = Vec::new();
    if let Some(lib) = table.get("lib") {
        if is_off(lib, "test") {
            found.extend(
                library
                    .iter()
                    .filter(|file| has_test(&file.text))
                    .map(|file| off(file, "test")),
            );
        }
        if is_off(lib, "doctest") {
            let with_examples = library.iter().filter(|file| has_example(&file.text));
            found.extend(with_examples.map(|file| off(file, "doctest")));
        }
    }
    for bin in table.get("bin").and_then(Value::as_array).into_iter().flatten() {
        let name = bin.get("name").and_then(Value::as_str).unwrap_or_default();
        let path = match bin.get("path").and_then(Value::as_str) {
            Some(path) => format!("{folder}{path}"),
            None => format!("{source}bin/{name}.rs"),
        };
        let own = programs.iter().filter(|file| file.path == path && has_test(&file.text));
        if is_off(bin, "test") {
            found.extend(own.map(|file| off(file, "test")));
        }
    }
    found
}

/// Finds files below the `tests` folders of crates that no other file declares as a module, so that nothing compiles
/// them.
pub fn left_out(files: &[SourceFile]) -> Vec<Violation> {
    let sources = files
        .iter()
        .filter(|file| file.has_extension("rs") && file.path.contains("/tests/") && !file.path.contains("/templates/"));
    let (mut by_name, mut by_path) = (BTreeSet::new(), Vec::new());
    for file in sources.clone() {
        by_name.extend(
            file.text
                .lines()
                .filter_map(declared)
                .map(|name| (module_folder(&file.path), name)),
        );
        by_path.extend(paths(&file.text));
    }
    let is_declared = |path: &str| {
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
        let declaration = match (name, folder.rsplit_once('/')) {
            ("mod.rs", Some((above, folder))) => (above, folder),
            _ => (folder, name.trim_end_matches(".rs")),
        };
        by_name.contains(&declaration) || by_path.iter().any(|end| path.ends_with(end))
    };
    let is_module = |file: &&SourceFile| {
        let is_program = file.path.ends_with("/main.rs") || module_folder(&file.path).ends_with("/tests");
        !is_program
    };
    let left_out = sources.filter(is_module).filter(|file| !is_declared(&file.path));
    left_out
        .map(|file| Violation::of(&file.path, "is no module of a test program: declare it with `mod`"))
        .collect()
}

/// The folder in which the modules of a file are.
fn module_folder(path: &str) -> &str {
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    let has_them_beside = matches!(name, "main.rs" | "mod.rs") || folder.ends_with("/tests");
    if has_them_beside {
        folder
    } else {
        path.trim_end_matches(".rs")
    }
}

/// The module that a line declares.
fn declared(line: &str) -> Option<&str> {
    let line = line.trim().trim_start_matches("pub(crate) ").trim_start_matches("pub ");
    line.strip_prefix("mod ")?.strip_suffix(';')
}

/// The paths of modules in other folders, without the steps upwards.
fn paths(text: &str) -> impl Iterator<Item = &str> {
    let lines = text.lines().map(str::trim);
    lines
        .filter_map(|line| line.strip_prefix("#[path = \"")?.strip_suffix("\"]"))
        .map(|path| path.trim_start_matches("../"))
}

fn is_off(target: &Value, key: &str) -> bool {
    target.get(key).and_then(Value::as_bool) == Some(false)
}

fn off(file: &SourceFile, key: &str) -> Violation {
    Violation::of(
        &file.path,
        format!("has tests that never run: remove {key} = false from Cargo.toml"),
    )
}

fn has_test(text: &str) -> bool {
    text.lines()
        .any(|line| TESTS.contains(&line.trim()) || line.trim().starts_with("#[tokio::test"))
}

/// Whether a documentation comment has an example that would run.
fn has_example(text: &str) -> bool {
    let mut is_open = false;
    text.lines().any(|line| {
        let line = line.trim_start();
        let comment = line.strip_prefix("///").or_else(|| line.strip_prefix("//!"));
        let Some(fence) = comment.and_then(|comment| comment.trim_start().strip_prefix("```")) else {
            return false;
        };
        is_open = !is_open;
        is_open && !matches!(fence.trim(), "text" | "ignore" | "toml" | "json" | "xml" | "sh")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(manifest: &str, path: &str, text: &str) -> usize {
        let manifest = SourceFile::new("services/a/Cargo.toml", manifest);
        check(&manifest, &[SourceFile::new(path, text)]).len()
    }

    #[test]
    fn tests_that_never_run_are_found() {
        let (lib, bin) = ("[lib]\ntest = false\n", "[[bin]]\nname = \"b\"\ntest = false\n");
        let unit = "#[cfg(test)]\nmod tests {}\n";
        for (count, manifest, path, text) in [
            (1, lib, "services/a/src/lib.rs", unit),
            (1, lib, "services/a/src/deep/module.rs", "    #[tokio::test]\n"),
            (0, lib, "services/a/src/lib.rs", "fn main() {}\n"),
            (0, lib, "services/a/src/main.rs", unit),
            (0, lib, "services/b/src/lib.rs", unit),
            (0, "[lib]\ntest = true\n", "services/a/src/lib.rs", unit),
            (1, bin, "services/a/src/bin/b.rs", unit),
            (0, bin, "services/a/src/bin/c.rs", unit),
            (
                1,
                "[[bin]]\nname = \"b\"\npath = \"src/main.rs\"\ntest = false\n",
                "services/a/src/main.rs",
                unit,
            ),
        ] {
            assert_eq!(found(manifest, path, text), count, "{manifest:?}, {path}");
        }
    }

    #[test]
    fn files_that_no_program_has_are_found() {
        let files = [
            (
                "services/a/tests/a/main.rs",
                "mod one;\nmod three;\n\n#[path = \"../../../b/tests/b/world.rs\"]\nmod world;\n",
            ),
            ("services/a/tests/a/one.rs", "mod deep;\n"),
            ("services/a/tests/a/one/deep.rs", ""),
            ("services/a/tests/a/one/lost.rs", ""),
            ("services/a/tests/a/two.rs", "// mod two;\n"),
            ("services/a/tests/a/three/mod.rs", ""),
            ("services/a/tests/alone.rs", ""),
            ("services/b/tests/b/world.rs", ""),
            ("services/a/templates/game/tests/x/game.rs", ""),
            ("services/a/src/lost.rs", ""),
        ];
        let files = files.map(|(path, text)| SourceFile::new(path, text));
        let found: Vec<String> = left_out(&files).iter().map(ToString::to_string).collect();
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(
            found[0].starts_with("services/a/tests/a/one/lost.rs") && found[1].starts_with("services/a/tests/a/two.rs")
        );
    }

    #[test]
    fn examples_that_never_run_are_found() {
        let manifest = "[lib]\ndoctest = false\n";
        let path = "services/a/src/lib.rs";
        for (count, text) in [
            (1, "/// ```\n/// it();\n/// ```\n"),
            (1, "//! ```text\n//! a\n//! ```\n//! ```should_panic\n//! ```\n"),
            (0, "/// ```text\n/// it\n/// ```\n"),
            (0, "let text = \"/// ```\";\n"),
        ] {
            assert_eq!(found(manifest, path, text), count, "{text:?}");
        }
        assert_eq!(found("[package]\n", path, "/// ```\n/// it();\n/// ```\n"), 0);
    }
}
