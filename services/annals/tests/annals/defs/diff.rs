//! `annals defs diff` and `annals defs compile` on the command line: their output and exit codes.

use std::{fs, path::Path, process::Output};

use serde_json::Value as Json;

use crate::defs::text;

/// A world of one type with these properties.
fn world(properties: &str) -> tempfile::TempDir {
    crate::defs::world(&format!("<root> <Properties> {properties} </Properties> </root>"))
}

fn property(name: &str, data_type: &str, flags: &str) -> String {
    format!("<{name}> <Type> {data_type} </Type> <Flags> {flags} </Flags> <Persistent> true </Persistent> </{name}>")
}

fn annals(arguments: &[&str]) -> Output {
    crate::defs::annals(Path::new("."), arguments)
}

fn path(dir: &tempfile::TempDir) -> &str {
    dir.path().to_str().expect("a path of letters")
}

#[test]
fn the_exit_code_reports_changes_above_the_allowed_class() {
    let old = world(&property("gold", "UINT32", "BASE"));
    let code = |new: &tempfile::TempDir, more: &[&str]| {
        let arguments = [&["diff", path(&old), path(new)], more].concat();
        annals(&arguments).status.code()
    };
    assert_eq!(code(&old, &[]), Some(0));

    // Stored values and live entities are unaffected; processes are restarted together.
    let wider = world(&property("gold", "UINT64", "BASE"));
    assert_eq!(code(&wider, &[]), Some(1));
    assert_eq!(code(&wider, &["--allow", "peers=migration"]), Some(0));
    assert_eq!(code(&wider, &["--allow", "migration"]), Some(0));

    let narrower = world(&property("gold", "UINT8", "BASE"));
    assert_eq!(code(&narrower, &["--allow", "migration"]), Some(1));
    let stored = ["--allow", "migration", "--allow", "stored=breaking"];
    assert_eq!(code(&narrower, &stored), Some(1), "the log");
    assert_eq!(code(&narrower, &["--allow", "breaking"]), Some(0));

    let seen = world(&property("gold", "UINT32", "BASE_AND_CLIENT"));
    assert_eq!(code(&seen, &["--allow", "migration"]), Some(1));
    assert_eq!(
        code(&seen, &["--allow", "migration", "--allow", "clients=breaking"]),
        Some(0)
    );
}

#[test]
fn incomparable_definitions_differ_from_breaking_changes() {
    let good = world(&property("gold", "UINT32", "BASE"));
    let bad = world(&property("gold", "UINT9", "BASE"));
    let output = annals(&["diff", path(&good), path(&bad)]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        text(&output.stderr).contains("error[D0201]"),
        "{}",
        text(&output.stderr)
    );
    assert_eq!(annals(&["diff", path(&good), "no/such/folder"]).status.code(), Some(2));
    let rename = ["diff", path(&good), path(&good), "--rename", "Avatar.silver=gold"];
    let output = annals(&rename);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("the old definitions have no Avatar.silver"));
    for wrong in [
        ["--rename", "gold"],
        ["--allow", "everything"],
        ["--allow", "friends=migration"],
    ] {
        let output = annals(&[&["diff", path(&good), path(&good)], &wrong[..]].concat());
        assert_eq!(output.status.code(), Some(2), "{wrong:?}");
    }
}

#[test]
fn a_rename_is_suggested_and_applied_only_when_stated() {
    let old = world(&property("gold", "UINT32", "BASE"));
    let new = world(&property("coins", "UINT32", "BASE"));
    let guessed = text(&annals(&["diff", path(&old), path(&new)]).stdout);
    assert!(guessed.contains("Avatar.gold removed"), "{guessed}");
    assert!(guessed.contains("--rename Avatar.gold=coins"), "{guessed}");
    assert!(guessed.contains("stored Avatar: drop gold"), "{guessed}");
    let output = text(&annals(&["diff", path(&old), path(&new), "--rename", "Avatar.gold=coins"]).stdout);
    assert!(output.contains("Avatar.coins renamed, was gold"), "{output}");
    assert!(output.contains("stored Avatar: gold goes under coins"), "{output}");
    assert!(!output.contains("drop"), "{output}");
}

#[test]
fn a_stored_schema_compares_like_its_folder() {
    let old = world(&property("gold", "UINT32", "BASE"));
    let new = world(&property("gold", "UINT8", "BASE"));
    let file = old.path().join("released.schema");
    let file: &Path = &file;
    let file = file.to_str().expect("a path of letters");
    let output = annals(&["compile", path(&old), "--out", file]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert_eq!(annals(&["diff", file, path(&old)]).status.code(), Some(0));
    let [from_file, from_folder] = [file, path(&old)].map(|old| annals(&["diff", old, path(&new)]));
    assert_eq!(text(&from_file.stdout), text(&from_folder.stdout));
    fs::write(file, b"no schema").expect("a file");
    let output = annals(&["diff", file, path(&new)]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("annals defs compile"));
    let output = annals(&["compile", "no/such/folder", "--out", file]);
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn the_json_report_matches_the_text_report() {
    let old = world(&property("gold", "UINT32", "BASE"));
    let new = world(&property("gold", "UINT8", "BASE"));
    let output = annals(&["diff", path(&old), path(&new), "--format", "json"]);
    assert_eq!(output.status.code(), Some(1));
    let report: Json = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(report["verdict"]["stored"], "breaking");
    assert_eq!(report["verdict"]["peers"], "migration");
    assert_eq!(report["verdict"]["clients"], "unaffected");
    let change = &report["changes"][0];
    assert_eq!(change["place"], "Avatar.gold");
    assert_eq!(
        [&change["about"], &change["type"], &change["member"]],
        ["property", "Avatar", "gold"]
    );
    assert_eq!(change["path"], Json::Null);
    assert_eq!(change["change"], "property-type");
    assert_eq!(change["text"], "UINT32 narrowed to UINT8");
    assert_eq!(change["effects"]["log"]["class"], "breaking");
    assert!(
        change["effects"]["log"]["reason"]
            .as_str()
            .expect("text")
            .contains("UINT8")
    );
    let steps: Vec<&str> = report["plan"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|step| step["step"].as_str())
        .collect();
    assert_eq!(steps, ["stop", "convert", "living", "histories", "start"]);
}

#[test]
fn a_change_by_an_alias_is_reported_once_with_all_places() {
    let world = |amount: &str| {
        let bag = "ARRAY <of> FIXED_DICT <Properties> <n> <Type> AMOUNT </Type> </n> </Properties> </of>";
        let of = |name: &str| {
            format!(
                "{}{}",
                property(name, "AMOUNT", "BASE"),
                property(&format!("{name}Bag"), bag, "BASE")
            )
        };
        let dir = world(&format!("{}{}", of("gold"), of("silver")));
        let alias = format!("<root> <AMOUNT> {amount} </AMOUNT> </root>");
        fs::write(dir.path().join("entity_defs/alias.xml"), alias).expect("a file");
        dir
    };
    let (old, new) = (world("UINT16"), world("UINT8"));
    let text = text(&annals(&["diff", path(&old), path(&new)]).stdout);
    let line = "  UINT16 narrowed to UINT8 in 4 places: Avatar.gold, Avatar.goldBag[].n, Avatar.silver, Avatar.silverBag[].n\n";
    assert!(text.contains(line), "{text}");
    assert_eq!(
        text.matches("a number that is not one of UINT8 has no place: ").count(),
        1,
        "{text}"
    );
    let json = annals(&["diff", path(&old), path(&new), "--format", "json"]).stdout;
    let report: Json = serde_json::from_slice(&json).expect("JSON");
    let changes = report["changes"].as_array().expect("a list");
    assert_eq!(changes.len(), 4);
    assert_eq!(
        [&changes[1]["place"], &changes[1]["member"], &changes[1]["path"]],
        ["Avatar.goldBag[].n", "goldBag", "[].n"]
    );
}
