//! `annals defs check`, `explain` and `schema`, and what all commands have in common.

use std::{fs, process::Output};

use serde_json::Value as Json;

use crate::defs::{annals, text, world};

const CLEAN: &str =
    "<root> <Properties> <hp> <Type> UINT8 </Type> <Flags> ALL_CLIENTS </Flags> </hp> </Properties> </root>";
/// The output without problems; nothing in such a world distinguishes the dialects.
const NO_PROBLEMS: &str = ".: no problems in 1 entity type, read as BigWorld, since nothing speaks for a dialect\n\
                           compiles: yes, because nothing is wrong\n";
const ODD: &str = "<root> <Propertis/> </root>";
const WRONG: &str =
    "<root>\n\t<Properties>\n\t\t<hp> <Type> UINT9 </Type> <Flags> ALL_CLIENT </Flags> </hp>\n\t</Properties>\n</root>";

fn said(output: &Output) -> String {
    text(&output.stdout)
}

#[test]
fn exit_codes_distinguish_clean_invalid_and_missing_definitions() {
    let clean = world(CLEAN);
    let output = annals(clean.path(), &["check", "."]);
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(said(&output), NO_PROBLEMS);
    let odd = world(ODD);
    assert_eq!(annals(odd.path(), &["check", "."]).status.code(), Some(0));
    assert_eq!(annals(odd.path(), &["check", "--strict", "."]).status.code(), Some(1));
    let wrong = world(WRONG);
    assert_eq!(annals(wrong.path(), &["check", "."]).status.code(), Some(1));
    let nothing = annals(clean.path(), &["check", "no/such/folder"]);
    assert_eq!(nothing.status.code(), Some(2));
    assert_eq!(said(&nothing), "", "it is a mistake in a path, and not in definitions");
    let file = annals(clean.path(), &["check", "./entities.xml"]);
    assert_eq!(file.status.code(), Some(2));
    let why = String::from_utf8_lossy(&file.stderr).into_owned();
    assert_eq!(why, "./entities.xml is a file; name its folder, .\n");
    assert_eq!(annals(clean.path(), &["check"]).status.code(), Some(2));
}

#[test]
fn the_check_reports_the_dialect_and_its_reason() {
    let dir = world(CLEAN);
    let list = "<root>\n<Avatar hasCell=\"true\"/>\n</root>";
    fs::write(dir.path().join("entities.xml"), list).expect("written");
    let read = "read as KBEngine, because of entities.xml:2 `hasCell`\n";
    let clean = said(&annals(dir.path(), &["check", "."]));
    let verdict = "compiles: yes, because nothing is wrong\n";
    assert_eq!(clean, format!(".: no problems in 1 entity type, {read}{verdict}"));
    let json = annals(dir.path(), &["check", ".", "--lints", "--format", "json"]);
    let json: Json = serde_json::from_slice(&json.stdout).expect("JSON");
    assert_eq!(
        (&json["dialect"], &json["because"]),
        (&"KBEngine".into(), &"entities.xml:2 `hasCell`".into())
    );
    assert_eq!(json["schema"]["entityTypes"], 1);
    fs::write(dir.path().join("entity_defs/Avatar.def"), WRONG).expect("written");
    let wrong = said(&annals(dir.path(), &["check", "."]));
    assert!(wrong.contains(&format!("\n.: {read}")), "{wrong}");
}

#[test]
fn the_check_reports_whether_the_definitions_compile_and_why() {
    let verdict_of = |definitions: &str| {
        let dir = world(definitions);
        let json = annals(dir.path(), &["check", ".", "--format", "json"]);
        let json: Json = serde_json::from_slice(&json.stdout).expect("JSON");
        let verdict = json["verdict"].as_str().expect("a verdict").to_owned();
        let text = said(&annals(dir.path(), &["check", "."]));
        assert!(text.contains(&format!("\ncompiles: {verdict}\n")), "{text}");
        assert_eq!(json["compiles"], verdict.starts_with("yes, because "));
        verdict
    };
    assert_eq!(verdict_of(CLEAN), "yes, because nothing is wrong");
    assert_eq!(verdict_of(ODD), "yes, because nothing is worse than a warning");
    assert_eq!(verdict_of(WRONG), "no, because of 2 errors: D0201, D0302");
    let twice = "<root> <Properties> <a> <Type> UINT9 </Type> <Flags> BASE </Flags> </a> \
                 <b> <Type> UINT9 </Type> <Flags> BASE </Flags> </b> </Properties> </root>";
    assert_eq!(verdict_of(twice), "no, because of 2 errors: 2 times D0201");
    assert_eq!(verdict_of("<root> <Properties>"), "no, because of one error: D0005");
}

#[test]
fn a_strict_check_says_why_it_fails_although_the_definitions_compile() {
    for (definitions, expected) in [
        (CLEAN, None),
        (ODD, Some("\nstrict: no, because of one finding\n")),
        (WRONG, None),
    ] {
        let dir = world(definitions);
        let strict = said(&annals(dir.path(), &["check", ".", "--strict"]));
        match expected {
            Some(expected) => assert!(strict.contains(expected), "{strict}"),
            None => assert!(!strict.contains("strict:"), "{strict}"),
        }
        let plain = said(&annals(dir.path(), &["check", "."]));
        assert!(!plain.contains("strict:"), "{plain}");
    }
    let noted = world(CLEAN);
    fs::write(noted.path().join("entity_defs/Unlisted.def"), "<root/>").expect("a file");
    let strict = annals(noted.path(), &["check", ".", "--strict"]);
    assert!(strict.status.success() && said(&strict).contains("note[D0603]") && !said(&strict).contains("strict:"));
}

#[test]
fn an_error_behind_thousands_of_warnings_fails_the_check() {
    let dir = tempfile::tempdir().expect("a folder");
    fs::create_dir(dir.path().join("entity_defs")).expect("a folder");
    let mut list = String::new();
    for i in 0..60 {
        list.push_str(&format!("<T{i:02}/>"));
        // Each tag is different: equal findings would be merged.
        let odd: String = (0..100).map(|j| format!("<odd{i}x{j}/>")).collect();
        let slip = if i == 59 { "INTT" } else { "INT8" };
        let properties = format!("<Properties> <p> <Type> {slip} </Type> <Flags> BASE </Flags> </p> </Properties>");
        let path = dir.path().join(format!("entity_defs/T{i:02}.def"));
        fs::write(path, format!("<root> {odd} {properties} </root>")).expect("a file");
    }
    fs::write(dir.path().join("entities.xml"), format!("<root> {list} </root>")).expect("a file");
    for format in ["text", "json", "sarif"] {
        let output = annals(dir.path(), &["check", ".", "--format", format]);
        assert_eq!(output.status.code(), Some(1), "{format}");
        assert!(said(&output).contains("there is no type `INTT`"), "{format}");
    }
    let text = said(&annals(dir.path(), &["check", "."]));
    assert!(text.contains("1000 more warnings are not shown"));
}

#[test]
fn every_problem_is_shown_with_its_position_and_a_fix() {
    let output = annals(world(WRONG).path(), &["check", "."]);
    let said = said(&output);
    for part in [
        "error[D0201]: there is no type `UINT9`\n --> entity_defs/Avatar.def:3:15\n",
        "help: did you mean `UINT8`?",
        "error[D0302]: there are no flags `ALL_CLIENT`\n --> entity_defs/Avatar.def:3:37\n",
        "help: did you mean `ALL_CLIENTS`?",
        "2 errors\n.: read as BigWorld",
        "\n`annals defs explain D0201` says more",
    ] {
        assert!(said.contains(part), "no {part} in\n{said}");
    }
}

#[test]
fn json_output_matches_the_text() {
    let output = annals(world(WRONG).path(), &["check", ".", "--format", "json"]);
    assert_eq!(output.status.code(), Some(1));
    let report: Json = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(report["counts"]["error"], 2);
    let first = &report["problems"][0];
    assert_eq!(first["code"], "D0201");
    assert_eq!(first["file"], "entity_defs/Avatar.def");
    assert_eq!(
        (&first["line"], &first["column"], &first["endColumn"]),
        (&3.into(), &15.into(), &20.into())
    );
    assert_eq!(first["help"], "did you mean `UINT8`?");
}

#[test]
fn sarif_output_conforms_to_the_standard() {
    let dir = world(WRONG);
    for (folder, prefix) in [
        (".", String::new()),
        (
            dir.path().to_str().expect("text"),
            format!("file://{}/", dir.path().display()),
        ),
    ] {
        let output = annals(dir.path(), &["check", folder, "--format", "sarif"]);
        let log: Json = serde_json::from_slice(&output.stdout).expect("JSON");
        assert_eq!(log["version"], "2.1.0");
        let run = &log["runs"][0];
        let rules = run["tool"]["driver"]["rules"].as_array().expect("rules");
        let results = run["results"].as_array().expect("results");
        assert_eq!(results.len(), 2);
        for result in results {
            let rule = &rules[usize::try_from(result["ruleIndex"].as_u64().expect("a number")).expect("small")];
            assert_eq!(rule["id"], result["ruleId"]);
            assert_eq!(result["level"], "error");
            assert!(result["message"]["text"].is_string());
            let location = &result["locations"][0]["physicalLocation"];
            assert_eq!(
                location["artifactLocation"]["uri"],
                format!("{prefix}entity_defs/Avatar.def")
            );
            let region = &location["region"];
            assert_eq!(region["startLine"], 3);
            assert!(region["endColumn"].as_u64() > region["startColumn"].as_u64());
        }
    }
}

#[test]
fn advice_is_shown_on_request_and_fails_only_in_strict_mode() {
    let wasteful =
        "<root> <Properties> <share> <Type> FLOAT64 </Type> <Flags> OWN_CLIENT </Flags> </share> </Properties> </root>";
    let dir = world(wasteful);
    let plain = annals(dir.path(), &["check", ".", "--strict"]);
    assert_eq!((plain.status.code(), said(&plain).as_str()), (Some(0), NO_PROBLEMS));
    let advice = annals(dir.path(), &["check", ".", "--lints"]);
    assert_eq!(advice.status.code(), Some(0));
    assert!(said(&advice).contains("lint[D0702]: `share` is sent to clients with 64 bits"));
    assert!(said(&advice).contains("1 lint\n"));
    let strict = annals(dir.path(), &["check", ".", "--lints", "--strict"]);
    assert_eq!(strict.status.code(), Some(1));
    let json = annals(dir.path(), &["check", ".", "--lints", "--format", "json"]);
    let json: Json = serde_json::from_slice(&json.stdout).expect("JSON");
    assert_eq!(
        (&json["counts"]["lint"], &json["problems"][0]["severity"]),
        (&1.into(), &"lint".into())
    );
    let sarif = annals(dir.path(), &["check", ".", "--lints", "--format", "sarif"]);
    let sarif: Json = serde_json::from_slice(&sarif.stdout).expect("JSON");
    assert_eq!(
        sarif["runs"][0]["results"][0]["level"], "note",
        "the standard has no lints"
    );
    let allowed = wasteful.replace("<share>", "<share> <!-- allow D0702: exact shares are shown -->");
    let dir = world(&allowed);
    let output = annals(dir.path(), &["check", ".", "--lints", "--strict"]);
    assert_eq!(said(&output), NO_PROBLEMS);
}

#[test]
fn a_rule_is_explained_and_a_mistyped_code_is_recognised() {
    let dir = world(CLEAN);
    let output = annals(dir.path(), &["explain", "D0201"]);
    assert_eq!(output.status.code(), Some(0));
    assert!(said(&output).starts_with("D0201: unknown type (error)\n"));
    let slip = annals(dir.path(), &["explain", "D9201"]);
    assert_eq!(slip.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&slip.stderr).contains("did you mean"));
    let all = said(&annals(dir.path(), &["explain"]));
    assert!(all.lines().count() > 80, "{all}");
}

#[test]
fn schemas_are_written_for_each_kind_of_file() {
    let dir = tempfile::tempdir().expect("a folder");
    for (format, dialect, own_word) in [("xsd", "bigworld", "Implements"), ("rng", "kbengine", "Interfaces")] {
        let arguments = ["schema", "--format", format, "--dialect", dialect, "--out", "schemas"];
        let output = annals(dir.path(), &arguments);
        assert_eq!(output.status.code(), Some(0));
        assert_eq!(said(&output).lines().count(), 10);
        let path = dir.path().join(format!("schemas/definition.{format}"));
        let schema = fs::read_to_string(path).expect("a file");
        assert!(schema.contains(&format!("name=\"{own_word}\"")), "{schema}");
        assert!(schema.contains("It is on the base") || format == "rng");
    }
    fs::write(dir.path().join("taken"), "").expect("a file");
    assert_eq!(
        annals(dir.path(), &["schema", "--out", "taken/schemas"]).status.code(),
        Some(2)
    );
}

/// All commands that take a world.
fn readers(world: &str) -> Vec<Vec<&str>> {
    vec![
        vec!["compile", world, "--out", "out.schema"],
        vec!["describe", world],
        vec!["docs", world],
        vec!["diff", world, world],
        vec!["generate", world, "--lang", "rust"],
    ]
}

#[test]
fn all_commands_report_the_same_diagnostics() {
    let errors = |output: Output| String::from_utf8(output.stderr).expect("text");
    let wrong = WRONG.replace("</root>", "<Propertis/></root>");
    for (definition, code) in [(CLEAN, 0), (ODD, 0), (&wrong, 1)] {
        let dir = world(definition);
        let check = annals(dir.path(), &["check", "."]);
        assert_eq!(check.status.code(), Some(code));
        let checked = said(&check);
        for command in readers(".") {
            let output = annals(dir.path(), &command);
            assert_eq!(output.status.code(), Some(code), "{command:?}");
            if code == 0 {
                continue;
            }
            assert!(output.stdout.is_empty(), "{command:?}");
            let text = errors(output);
            // Warnings are printed by `check` only.
            let mistake = checked.split("\n\n").find(|one| one.starts_with("error[D0201]"));
            assert!(text.contains(mistake.expect("found")), "{command:?}\n{text}");
            assert!(!text.contains("warning"), "{command:?}\n{text}");
            let end = ". does not compile; `annals defs explain D0201` says more about a code\n";
            assert!(text.ends_with(end), "{command:?}\n{text}");
        }
    }
    let empty = tempfile::tempdir().expect("a folder");
    for (folder, why) in [
        (".", "error[D0010]"),
        ("no/such/folder", "the world's folder no/such/folder does not exist (/"),
    ] {
        for command in readers(folder).into_iter().chain([vec!["check", folder]]) {
            let output = annals(empty.path(), &command);
            assert_eq!(output.status.code(), Some(2), "{command:?}");
            let text = said(&output) + &errors(output);
            assert!(text.contains(why), "{command:?}\n{text}");
            assert_eq!(text.contains("error["), folder == ".", "{command:?}\n{text}");
        }
    }
}

#[test]
fn no_command_creates_parent_folders_of_its_output() {
    let dir = world(CLEAN);
    for (command, file) in [
        (&["compile", "."][..], "nope/a.schema"),
        (&["docs", "."], "nope/a.html"),
        (&["docs", "."], "nope/deeper/"),
        (&["generate", ".", "--lang", "rust"], "nope/a.rs"),
        (&["schema"], "nope/deeper"),
    ] {
        let output = annals(dir.path(), &[command, &["--out", file]].concat());
        assert_eq!(output.status.code(), Some(2), "{command:?}");
        let text = String::from_utf8(output.stderr).expect("text");
        let end = "cannot be written: folder nope does not exist; create it first\n";
        assert!(text.starts_with(file) && text.ends_with(end), "{command:?}: {text}");
        assert!(!dir.path().join("nope").exists(), "{command:?}");
    }
    for (command, made) in [(&["docs", "."][..], "page/"), (&["schema"], "schemas")] {
        let output = annals(dir.path(), &[command, &["--out", made]].concat());
        assert_eq!(output.status.code(), Some(0), "{command:?}");
        assert!(dir.path().join(made).is_dir(), "{command:?}");
    }
}
