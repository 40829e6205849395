//! Golden cases: two worlds, and the report on the changes between them.
//!
//! `test_data/diff` holds a case for every kind of change. A case begins with the kind and a title, then a line for
//! each rename, then sections, each begun by `=== side/path`, where the side is `old`, `new` or `both`. The expected
//! report is in a file next to it. The table in `docs/changing-definitions.md` is generated from the cases.
//! `UPDATE_EXPECT=1 cargo test -p annals-authoring --test authoring diff_golden` rewrites both; review the difference.

use std::{
    collections::BTreeSet,
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
};

use annals_authoring::{Audience, ChangeKind, Class, Diff, SchemaChange, diff};
use annals_def::{
    DataType, Distribution, EntityType, Property, Rename, Renames, Schema, Severity, Style, Tree, compile, render,
};

/// A parsed case.
struct Case {
    path: PathBuf,
    /// The kind of change that it is an example of, as in the table.
    kind: String,
    title: String,
    diff: Diff,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn cases() -> Vec<Case> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("test_data/diff");
    let entries = folder.read_dir().expect("readable");
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("readable").path()).collect();
    paths.retain(|path| path.extension().is_some_and(|ending| ending == "case"));
    paths.sort();
    assert!(!paths.is_empty());
    paths.into_iter().map(read).collect()
}

fn read(path: PathBuf) -> Case {
    let text = fs::read_to_string(&path).expect("readable");
    let mut sections = text.split("=== ");
    let mut head = sections.next().expect("a title").lines();
    let (kind, title) = head.next().and_then(|line| line.split_once(": ")).expect("kind: title");
    let (mut old, mut new) = (Tree::new(), Tree::new());
    for section in sections {
        let (place, content) = section.split_once('\n').expect("a line with the path");
        let (side, path) = place.split_once('/').expect("a side");
        for (tree, is_meant) in [(&mut old, side != "new"), (&mut new, side != "old")] {
            if is_meant {
                tree.insert(path, content);
            }
        }
    }
    let [old, new] = [old, new].map(|tree| schema(&path, &tree));
    let renames = head.map(|line| {
        line.strip_prefix("rename ")
            .expect("a rename")
            .parse()
            .expect("a rename")
    });
    let renames = Renames::new(&old, &new, renames).expect("renames that say something");
    Case {
        kind: kind.to_owned(),
        title: title.to_owned(),
        diff: diff(&old, &new, &renames),
        path,
    }
}

fn schema(path: &Path, tree: &Tree) -> Schema {
    let compiled = compile(tree);
    let said = render(&compiled.diagnostics, Style::Plain);
    let is_wrong = compiled.diagnostics.iter().any(|d| d.severity == Severity::Error);
    assert!(!is_wrong, "{}\n{said}", path.display());
    compiled.schema.expect("nothing is wrong")
}

/// A change's kind, as named in the table.
fn kind_of(change: &SchemaChange) -> String {
    match &change.kind {
        ChangeKind::PropertyType(difference) => format!("property-type/{}", difference.change.word()),
        kind => kind.word().to_owned(),
    }
}

fn is_updating() -> bool {
    #[expect(clippy::disallowed_methods, reason = "a test may look at its environment")]
    std::env::var("UPDATE_EXPECT").is_ok()
}

#[test]
fn each_case_has_the_expected_report() {
    let mut differences = Vec::new();
    for case in cases() {
        let said = case.diff.to_text();
        let beside = case.path.with_extension("expected");
        if is_updating() {
            fs::write(&beside, &said).expect("writable");
        }
        let expected = fs::read_to_string(&beside).unwrap_or_default();
        if expected != said {
            differences.push(format!("{}\nexpected:\n{expected}\nsaid:\n{said}", case.path.display()));
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n\n"));
}

/// Kinds of cases that are not kinds of changes: no change, or several.
const OTHERS: [&str; 2] = ["nothing", "a-release"];

#[test]
fn every_kind_of_change_has_a_case() {
    let cases = cases();
    for case in cases.iter().filter(|case| !OTHERS.contains(&&*case.kind)) {
        let shows = case.diff.changes.iter().any(|change| kind_of(change) == case.kind);
        assert!(shows, "{} has no {}", case.path.display(), case.kind);
    }
    let shown: BTreeSet<String> = cases
        .iter()
        .flat_map(|case| case.diff.changes.iter().map(kind_of))
        .collect();
    let listed: BTreeSet<String> = kinds().map(str::to_owned).collect();
    assert_eq!(shown, listed);
}

/// The kinds, in the order of the table.
fn kinds() -> impl Iterator<Item = &'static str> {
    ChangeKind::WORDS.into_iter().flat_map(|word| match word {
        "property-type" => TYPE_KINDS.to_vec(),
        word => vec![word],
    })
}

/// Kinds of differences between types of a property.
const TYPE_KINDS: [&str; 24] = [
    "property-type/widened",
    "property-type/narrowed",
    "property-type/string-blob",
    "property-type/bytes-to-text",
    "property-type/text-to-bytes",
    "property-type/opaque-widened",
    "property-type/array-tuple",
    "property-type/size-dropped",
    "property-type/size-given",
    "property-type/size-raised",
    "property-type/size-lowered",
    "property-type/limit-lowered",
    "property-type/element-default",
    "property-type/persist-as-blob",
    "property-type/none-allowed",
    "property-type/none-refused",
    "property-type/implemented-by",
    "property-type/field-added",
    "property-type/field-removed",
    "property-type/fields-reordered",
    "property-type/field-default",
    "property-type/field-persistent",
    "property-type/field-database-length",
    "property-type/replaced",
];

/// A row for each case: its kind, its title, and the class of the change for each audience.
fn table(cases: &[Case]) -> String {
    let mut table =
        String::from("| kind | of which | stored data | log | running peers | clients |\n|---|---|---|---|---|---|\n");
    for kind in kinds() {
        for case in cases.iter().filter(|case| case.kind == kind) {
            let of_kind = || case.diff.changes.iter().filter(|change| kind_of(change) == kind);
            let _ = write!(table, "| {kind} | {} |", case.title);
            for audience in Audience::ALL {
                let classes = of_kind().map(|change| change.effects.of(audience).class);
                let class = classes.max().unwrap_or(Class::Unaffected);
                let _ = write!(
                    table,
                    " {} |",
                    if class == Class::Unaffected {
                        String::new()
                    } else {
                        class.to_string()
                    }
                );
            }
            table.push('\n');
        }
    }
    table.replace("|  |", "| |").replace("|  |", "| |")
}

/// Markers around the table in the page.
const MARKS: [&str; 2] = ["<!-- the table begins -->\n", "<!-- the table ends -->"];

#[test]
fn the_documented_table_matches_the_cases() {
    let page = root().join("docs/changing-definitions.md");
    let text = fs::read_to_string(&page).expect("readable");
    let (before, rest) = text.split_once(MARKS[0]).expect("a mark before the table");
    let (written, after) = rest.split_once(MARKS[1]).expect("a mark behind the table");
    let table = table(&cases());
    if is_updating() {
        fs::write(&page, format!("{before}{}{table}{}{after}", MARKS[0], MARKS[1])).expect("writable");
    } else {
        assert_eq!(written, table);
    }
}

#[test]
fn a_suggested_rename_can_be_copied_to_the_command_line() {
    let world = |entity_type: &str, property: &str| {
        let mut one = EntityType::new(entity_type);
        let property = Property::new(property, DataType::UInt8, Distribution::Base);
        one.properties.push(property);
        Schema::new(vec![one], Vec::new(), Vec::new())
    };
    let (old, new) = (world("Avatar", "gold"), world("Hero", "coins"));
    let renames = |words: &[&str]| {
        let words = words.iter().map(|word| word.parse::<Rename>().expect("a rename"));
        Renames::new(&old, &new, words)
    };
    let renamed = renames(&["Avatar=Hero"]).expect("both are there");
    let said = diff(&old, &new, &renamed).to_text();
    assert!(said.contains("--rename Avatar.gold=coins"), "{said}");
    assert!(renames(&["Avatar=Hero", "Avatar.gold=coins"]).is_ok());
}
