//! Requirements on each crate's own files: it inherits the workspace's lints, describes itself, and, if it is pure, has
//! the stricter bans.

use toml::{Table, Value};

use crate::Violation;

/// Checks that a crate's `Cargo.toml` inherits the shared settings.
pub fn check(path: &str, text: &str) -> Vec<Violation> {
    let Ok(manifest) = text.parse::<Table>() else {
        return vec![Violation::of(path, "is not TOML")];
    };
    let Some(package) = manifest.get("package").and_then(Value::as_table) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    if !inherits(manifest.get("lints")) {
        found.push(Violation::of(
            path,
            "does not inherit the workspace's lints: add [lints] workspace = true",
        ));
    }
    for field in ["version", "edition", "rust-version", "license", "publish"] {
        if !inherits(package.get(field)) {
            found.push(Violation::of(
                path,
                format!("does not inherit {field}: write {field}.workspace = true"),
            ));
        }
    }
    if !package.get("description").is_some_and(Value::is_str) {
        found.push(Violation::of(path, "has no description: say what the crate is for"));
    }
    found
}

fn inherits(value: Option<&Value>) -> bool {
    value.and_then(Value::as_table).and_then(|table| table.get("workspace")) == Some(&Value::Boolean(true))
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "[package]\nname = \"a\"\ndescription = \"B.\"\nversion.workspace = true\nedition.workspace = true\n\
        rust-version.workspace = true\nlicense.workspace = true\npublish.workspace = true\n[lints]\nworkspace = true\n";

    #[test]
    fn settings_that_are_not_inherited_are_found() {
        assert_eq!(check("Cargo.toml", GOOD), []);
        for (line, instead) in [
            ("[lints]\nworkspace = true\n", ""),
            ("workspace = true\n", "workspace = false\n"),
            ("edition.workspace = true\n", "edition = \"2021\"\n"),
            ("description = \"B.\"\n", ""),
        ] {
            assert_eq!(
                check("Cargo.toml", &GOOD.replacen(line, instead, 1)).len(),
                1,
                "{line:?} as {instead:?}"
            );
        }
    }

    #[test]
    fn the_workspace_root_is_not_a_crate() {
        assert_eq!(check("Cargo.toml", "[workspace]\nmembers = []\n"), []);
    }
}
