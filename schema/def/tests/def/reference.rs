//! `docs/def-language.md` describes what the compiler does.

use std::path::Path;

use annals_def::{Rule, Severity, Tree, compile, grammar::Dialect};

fn reference() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/def-language.md");
    std::fs::read_to_string(path).expect("readable")
}

#[test]
fn the_reference_world_compiles_without_diagnostics() {
    let text = reference();
    let mut tree = Tree::new();
    for block in text.split("```xml\n").collect::<Vec<_>>().windows(2) {
        let path = block[0]
            .lines()
            .last()
            .and_then(|line| line.strip_prefix('`')?.strip_suffix("`:"));
        let content = block[1].split("```").next().expect("the block");
        tree.insert(path.expect("a line with the path"), content);
    }
    assert_eq!(tree.files().count(), 6);
    let compiled = compile(&tree);
    assert_eq!(compiled.diagnostics, []);
    assert!(compiled.schema.is_some());
}

#[test]
fn the_reference_lists_every_rule() {
    let text = reference();
    let listed: Vec<&str> = text.lines().filter(|line| line.starts_with("| D0")).collect();
    let rules: Vec<String> = Rule::ALL
        .iter()
        .map(|rule| {
            let [severity, forgiven] = [Dialect::BigWorld, Dialect::KBEngine].map(|dialect| rule.severity_in(dialect));
            let note = match severity == forgiven {
                true => String::new(),
                false => format!("; in KBEngine's dialect {} {forgiven}", article(forgiven)),
            };
            format!("| {rule} | {severity}{note} | {} |", rule.text().title)
        })
        .collect();
    assert_eq!(listed, rules);
}

fn article(severity: Severity) -> &'static str {
    if severity == Severity::Error { "an" } else { "a" }
}

#[test]
fn the_reference_mentions_every_tag() {
    let text = reference();
    for tag in [
        "Parent",
        "Implements",
        "Interfaces",
        "ClientName",
        "Volatile",
        "LoDLevels",
        "LODLevels",
        "DetailLevels",
        "TempProperties",
        "DetailedPosition",
        "AppealRadius",
        "IsManualAoI",
        "Distribution",
        "Persistent",
        "Properties",
        "BaseMethods",
        "CellMethods",
        "ClientMethods",
        "Components",
        "Methods",
        "Domain",
        "Type",
        "Flags",
        "Default",
        "Editable",
        "DetailLevel",
        "Indexed",
        "Unique",
        "Index",
        "Identifier",
        "Personal",
        "DatabaseLength",
        "SendLatestOnly",
        "IsReliable",
        "Utype",
        "Exposed",
        "Args",
        "Arg",
        "ReturnValues",
        "DetailDistance",
        "CallsPerMinute",
        "AllowNone",
        "persistAsBlob",
        "implementedBy",
        "hyst",
        "label",
        "optimized",
        "radius",
    ] {
        assert!(text.contains(tag), "{tag}");
    }
}
