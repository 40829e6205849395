//! The schemas for XML tools agree with the compiler: with them, a real validator accepts every file that compiles
//! without diagnostics, and rejects wrong files as far as the schema language can express the rules.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use crate::support::tree_of;
use annals_authoring::{Explanation, SchemaFile, relax_ng_files, xsd_files};
use annals_def::{
    Rule, Tree, compile, dialect_of,
    grammar::{Dialect, FileKind},
};

/// A schema language.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Notation {
    Xsd,
    RelaxNg,
}

const NOTATIONS: [Notation; 2] = [Notation::Xsd, Notation::RelaxNg];

impl Notation {
    fn files(self, dialect: Dialect) -> Vec<SchemaFile> {
        match self {
            Self::Xsd => xsd_files(dialect),
            Self::RelaxNg => relax_ng_files(dialect),
        }
    }

    fn option(self) -> &'static str {
        match self {
            Self::Xsd => "--schema",
            Self::RelaxNg => "--relaxng",
        }
    }
}

/// A file to validate.
struct Sample {
    /// Its origin.
    name: String,
    dialect: Dialect,
    kind: FileKind,
    text: String,
    /// The rules that the compiler reports for it.
    rules: BTreeSet<Rule>,
}

/// Whether the validator is installed; prints a message if it is not.
fn can_validate() -> bool {
    let is_there = Command::new("xmllint").arg("--version").output().is_ok();
    if !is_there {
        eprintln!("SKIPPED: no xmllint (libxml2-utils) to validate with");
    }
    is_there
}

/// The names of the samples that the validator accepts, and its messages about the others.
fn validated(notation: Notation, samples: &[Sample], folder: &str) -> (BTreeSet<String>, BTreeMap<String, String>) {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(folder);
    let mut accepted = BTreeSet::new();
    let mut refused = BTreeMap::new();
    for dialect in [Dialect::BigWorld, Dialect::KBEngine] {
        for schema in notation.files(dialect) {
            let folder = folder.join(format!("{notation:?}-{}", dialect.name()));
            fs::create_dir_all(&folder).expect("a folder");
            let path = folder.join(&schema.name);
            fs::write(&path, &schema.text).expect("a file");
            let of_kind = samples.iter().enumerate();
            let of_kind = of_kind.filter(|(_, sample)| sample.kind == schema.kind && sample.dialect == dialect);
            let named: Vec<(PathBuf, &Sample)> = of_kind
                .map(|(i, sample)| {
                    let file = folder.join(format!("{i}.xml"));
                    fs::write(&file, &sample.text).expect("a file");
                    (file, sample)
                })
                .collect();
            for some in named.chunks(200) {
                let mut validator = Command::new("xmllint");
                validator.args(["--noout", notation.option()]).arg(&path);
                let output = validator
                    .args(some.iter().map(|(file, _)| file))
                    .output()
                    .expect("it runs");
                let said = String::from_utf8_lossy(&output.stderr).into_owned();
                assert!(!said.contains("failed to compile"), "{}: {said}", path.display());
                for (file, sample) in some {
                    let file = file.display().to_string();
                    if said.contains(&format!("{file} validates\n")) {
                        accepted.insert(sample.name.clone());
                    } else {
                        let lines = said.lines().filter(|line| line.starts_with(&file));
                        let lines: Vec<&str> = lines.collect();
                        refused.insert(sample.name.clone(), lines.join("\n"));
                    }
                }
            }
        }
    }
    (accepted, refused)
}

/// The files of a game for which a schema exists, as text.
fn samples_of(name: &str, tree: &Tree) -> Vec<Sample> {
    let dialect = dialect_of(tree);
    let diagnostics = compile(tree).diagnostics;
    let mut samples = Vec::new();
    for (path, bytes) in tree.files() {
        let below = ["res/scripts/", "scripts/"]
            .iter()
            .find_map(|root| path.strip_prefix(root));
        let Some(kind) = FileKind::of(below.unwrap_or(path)) else {
            continue;
        };
        let Ok(text) = std::str::from_utf8(bytes) else { continue };
        let here = diagnostics.iter().filter(|d| d.place.file == path);
        samples.push(Sample {
            name: format!("{name}: {path}"),
            dialect,
            kind,
            text: text.to_owned(),
            rules: here.map(|d| d.rule).collect(),
        });
    }
    samples
}

/// Every file of every golden case and of every explanation.
fn golden() -> Vec<Sample> {
    let mut samples = Vec::new();
    for folder in ["ok", "err"] {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../def/test_data")
            .join(folder);
        let mut cases: Vec<PathBuf> = folder
            .read_dir()
            .expect("readable")
            .map(|entry| entry.expect("readable").path())
            .filter(|path| path.is_dir() || path.extension().is_some_and(|ending| ending == "case"))
            .collect();
        cases.sort();
        for case in cases {
            let name = case.file_name().unwrap_or_default().to_string_lossy().into_owned();
            samples.extend(samples_of(&name, &tree_of(&case)));
        }
    }
    for rule in Rule::ALL {
        samples.extend(samples_of(
            &format!("{rule} right"),
            &Explanation::of(*rule).right.tree(),
        ));
        samples.extend(samples_of(
            &format!("{rule} wrong"),
            &Explanation::of(*rule).wrong.tree(),
        ));
    }
    samples
}

/// The files of the published games, if they are available.
fn corpus() -> Vec<Sample> {
    let folder = std::env::var_os("ANNALS_CORPUS").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus"),
        PathBuf::from,
    );
    let Ok(entries) = folder.read_dir() else {
        eprintln!("SKIPPED: {} is not there", folder.display());
        return Vec::new();
    };
    let mut games: Vec<PathBuf> = entries.map(|entry| entry.expect("readable").path()).collect();
    games.sort();
    games.retain(|game| game.is_dir());
    let sample = |game: &PathBuf| samples_of(&game.display().to_string(), &Tree::read(game));
    games.iter().flat_map(sample).collect()
}

/// Whether XSD can describe the file: it must list the names of root elements.
fn has_listed_root(sample: &Sample) -> bool {
    sample.text.contains("<root")
}

#[test]
fn files_without_diagnostics_validate() {
    if !can_validate() {
        return;
    }
    let mut samples = golden();
    samples.extend(corpus());
    samples.retain(|sample| sample.rules.is_empty());
    assert!(samples.len() > 600, "{}", samples.len());
    for notation in NOTATIONS {
        let (accepted, mut refused) = validated(notation, &samples, "good");
        if notation == Notation::Xsd {
            let cannot = samples.iter().filter(|sample| !has_listed_root(sample));
            for sample in cannot {
                refused.remove(&sample.name);
            }
        }
        assert!(accepted.len() > 600, "{notation:?}: {}", accepted.len());
        assert!(refused.is_empty(), "{notation:?}: {refused:#?}");
    }
}

/// Rules that RELAX NG can express: names of tags, their places and counts, and the text of an element without child
/// elements.
const SAID_BY_RELAX_NG: [Rule; 12] = [
    Rule::UnknownTag,
    Rule::TagCase,
    Rule::RepeatedTag,
    Rule::StrayText,
    Rule::Attribute,
    Rule::Boolean,
    Rule::UnknownFlags,
    Rule::FlagCase,
    Rule::MissingFlags,
    Rule::OtherDialect,
    Rule::ExposedValue,
    Rule::Domain,
];

/// Rules that XSD can express too: not which tags a member has, but the content of the known ones.
const SAID_BY_XSD: [Rule; 6] = [
    Rule::Boolean,
    Rule::UnknownFlags,
    Rule::FlagCase,
    Rule::OtherDialect,
    Rule::Domain,
    Rule::StrayText,
];

#[test]
fn wrong_files_do_not_validate() {
    if !can_validate() {
        return;
    }
    let samples = golden();
    for (notation, rules) in [
        (Notation::Xsd, SAID_BY_XSD.as_slice()),
        (Notation::RelaxNg, SAID_BY_RELAX_NG.as_slice()),
    ] {
        let (accepted, _) = validated(notation, &samples, "wrong");
        for rule in rules {
            let mut broken = samples.iter().filter(|sample| sample.rules.contains(rule)).peekable();
            assert!(broken.peek().is_some(), "no case breaks {rule}");
            for sample in broken {
                assert!(!accepted.contains(&sample.name), "{notation:?} {rule}: {}", sample.name);
            }
        }
    }
}
