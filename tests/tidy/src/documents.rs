//! References in documents resolve: links between Markdown files, and paths of this repository in back-quotes, in
//! Markdown and in comments.

use std::collections::BTreeSet;

use crate::Violation;
use crate::repository::SourceFile;

/// Top-level folders that make a back-quoted word a path of this repository.
const ROOTS: &[&str] = &[".ci/", "defs/", "docs/", "ops/", "schema/", "services/", "tests/"];

/// The existing paths: files, and all folders that contain one.
#[derive(Debug, Default)]
pub struct Existing(BTreeSet<String>);

impl Existing {
    /// From the paths of all files.
    pub fn of<'a>(files: impl Iterator<Item = &'a str>) -> Self {
        let mut paths = BTreeSet::new();
        for file in files {
            let mut path = file;
            while paths.insert(path.to_owned()) {
                match path.rfind('/') {
                    Some(slash) => path = &path[..slash],
                    None => break,
                }
            }
        }
        Self(paths)
    }

    fn has(&self, path: &str) -> bool {
        path.is_empty() || self.0.contains(path)
    }
}

/// Links and paths in `file` that do not resolve.
pub fn check(file: &SourceFile, existing: &Existing) -> Vec<Violation> {
    let markdown = file.has_extension("md");
    let mut found = Vec::new();
    let mut in_code = false;
    for (number, line) in file.text.lines().enumerate() {
        if markdown && line.trim_start().starts_with("```") {
            in_code = !in_code;
        }
        if in_code || !(markdown || is_comment(file, line)) {
            continue;
        }
        let links = if markdown { links(line) } else { Vec::new() };
        for target in links
            .into_iter()
            .filter(|target| !existing.has(&resolve(&file.path, target)))
        {
            found.push(Violation::at(&file.path, number + 1, format!("broken link {target:?}")));
        }
        for path in quoted_paths(line).filter(|path| !stands(path, file, existing)) {
            found.push(Violation::at(
                &file.path,
                number + 1,
                format!("{path:?} does not exist in this repository"),
            ));
        }
    }
    found
}

/// Whether a path exists relative to the root of the repository, or to the folder of the crate that mentions it.
fn stands(path: &str, file: &SourceFile, existing: &Existing) -> bool {
    let own: Vec<_> = file.path.splitn(3, '/').collect();
    existing.has(path) || (own.len() == 3 && existing.has(&format!("{}/{}/{path}", own[0], own[1])))
}

fn is_comment(file: &SourceFile, line: &str) -> bool {
    let line = line.trim_start();
    match file.path.rsplit_once('.').map(|(_, extension)| extension) {
        Some("rs" | "ts") => line.starts_with("//"),
        Some("toml" | "sh") => line.starts_with('#'),
        _ => line.starts_with('#') && (file.path.ends_with("Makefile") || file.path.starts_with(".ci/")),
    }
}

/// The targets of `[text](target)` that are paths.
fn links(line: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (at, _) in line.match_indices("](") {
        let rest = &line[at + 2..];
        let target = rest.split([')', ' ']).next().unwrap_or_default();
        let target = target.split('#').next().unwrap_or_default();
        if !target.is_empty() && !target.contains("://") && !target.starts_with("mailto:") {
            found.push(target.to_owned());
        }
    }
    found
}

/// Resolves `target`, relative to the file `from`, to a path from the root.
fn resolve(from: &str, target: &str) -> String {
    let mut parts: Vec<&str> = if target.starts_with('/') {
        Vec::new()
    } else {
        from.split('/').collect()
    };
    parts.pop();
    for part in target.split('/').filter(|part| !part.is_empty() && *part != ".") {
        if part == ".." {
            parts.pop();
        } else {
            parts.push(part);
        }
    }
    parts.join("/")
}

/// Back-quoted words that name a path below one of [`ROOTS`], except patterns.
fn quoted_paths(line: &str) -> impl Iterator<Item = String> {
    line.split('`')
        .skip(1)
        .step_by(2)
        .filter(|word| ROOTS.iter().any(|root| word.starts_with(root)))
        .filter(|word| !word.contains(['*', '<', '{', ' ', '…']) && !word.contains("NNNN"))
        .map(|word| {
            word.split(':')
                .next()
                .unwrap_or_default()
                .trim_end_matches('/')
                .to_owned()
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> Vec<String> {
        let files = [
            "README.md",
            "docs/protocol.md",
            "schema/def/src/lib.rs",
            "schema/def/tests/def/values.rs",
            ".ci/run",
        ];
        let existing = Existing::of(files.into_iter());
        check(&SourceFile::new(path, text), &existing)
            .iter()
            .map(Violation::to_string)
            .collect()
    }

    #[test]
    fn broken_links_and_paths_are_found() {
        assert_eq!(
            found("docs/a.md", "see [b](b.md) and [c](../protocol.md#top), `schema/gone/`"),
            [
                "docs/a.md:1: broken link \"b.md\"",
                "docs/a.md:1: broken link \"../protocol.md\"",
                "docs/a.md:1: \"schema/gone\" does not exist in this repository",
            ]
        );
        assert_eq!(
            found(
                "schema/def/src/lib.rs",
                "//! See `docs/gone.md`.\nlet a = \"`docs/b`\";"
            )
            .len(),
            1
        );
    }

    #[test]
    fn existing_paths_are_accepted_in_every_notation() {
        let text = "[p](protocol.md) [r](../README.md#first) [w](https://example.org/a) `schema/def/` `schema/*/src` `.ci/run`\n\
                    ```sh\ncat `docs/gone`\n```\n";
        assert_eq!(found("docs/a.md", text), Vec::<String>::new());
        assert_eq!(
            found(
                "schema/def/src/lib.rs",
                "// as `tests/def/values.rs` shows, `docs/protocol.md:12` too"
            )
            .len(),
            0
        );
        assert_eq!(
            found("docs/decisions/README.md", "`docs/decisions/NNNN-title.md`").len(),
            0
        );
    }
}
