//! No test is switched off: a target whose `Cargo.toml` builds no tests for it, to save the time that linking takes, has
//! none.

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
