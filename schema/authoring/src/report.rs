//! Diagnostics for programs: as our own JSON, and as SARIF 2.1.0, which code hosts and editors read.

use annals_def::{Compiled, Diagnostic, Rule, Severity, SourceSpan};
use serde_json::{Value as Json, json};

use crate::explanation::Explanation;

/// The result of compiling as one JSON object: `problems`, each with its code, severity, file, line, columns, message,
/// why, help and related places; and `counts` by severity. Lines and columns count from 1, columns in characters;
/// `endColumn` is the first behind the place. A problem of the whole folder has `null` for its place. `dialect` is the
/// dialect of the files, `because` the sign that decided it; `compiles` is true or false, and `verdict` says why;
/// `schema`, if there is one, has its fingerprint and the number of types of each kind.
#[must_use]
pub fn to_json(found: &Compiled) -> String {
    let diagnostics = &found.diagnostics;
    let count = |severity| diagnostics.iter().filter(|d| d.severity == severity).count();
    let report = json!({
        "problems": diagnostics.iter().map(problem).collect::<Vec<_>>(),
        "counts": {
            "error": count(Severity::Error),
            "warning": count(Severity::Warning),
            "lint": count(Severity::Lint),
            "note": count(Severity::Note),
        },
        "dialect": found.dialect.dialect.name(),
        "because": found.dialect.because.as_ref().map(ToString::to_string),
        "compiles": found.schema.is_some(),
        "verdict": found.verdict(),
        "schema": found.schema.as_ref().map(|schema| json!({
            "fingerprint": schema.fingerprint().to_string(),
            "entityTypes": schema.types().len(),
            "services": schema.services().len(),
            "userDataObjects": schema.user_data_objects().len(),
        })),
    });
    format!("{report:#}\n")
}

fn problem(diagnostic: &Diagnostic) -> Json {
    let text = diagnostic.rule.text();
    let mut problem = place(&diagnostic.place);
    problem["code"] = json!(diagnostic.rule.to_string());
    problem["severity"] = json!(diagnostic.severity.to_string());
    problem["rule"] = json!(text.title);
    problem["why"] = json!(text.why);
    problem["message"] = json!(diagnostic.message);
    problem["help"] = json!(diagnostic.help);
    problem["related"] = diagnostic
        .related
        .iter()
        .map(|(at, what)| {
            let mut related = place(at);
            related["message"] = json!(what);
            related
        })
        .collect();
    problem
}

fn place(place: &SourceSpan) -> Json {
    if place.file.is_empty() {
        // The folder itself has no lines.
        return json!({ "file": null, "line": null, "column": null, "endColumn": null, "text": null });
    }
    json!({
        "file": place.file,
        "line": place.line,
        "column": place.column,
        "endColumn": place.column + place.width,
        "text": place.text,
    })
}

/// All diagnostics as a SARIF 2.1.0 log with one run. `folder` is the game's folder in the log: a path below the root
/// of the sources, or a `file:` URI; empty if it is that root.
#[must_use]
pub fn to_sarif(diagnostics: &[Diagnostic], folder: &str) -> String {
    let log = json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": "annals",
                "version": env!("CARGO_PKG_VERSION"),
                "rules": Rule::ALL.iter().map(sarif_rule).collect::<Vec<_>>(),
            } },
            "columnKind": "unicodeCodePoints",
            "results": diagnostics.iter().map(|diagnostic| sarif_result(diagnostic, folder)).collect::<Vec<_>>(),
        }],
    });
    format!("{log:#}\n")
}

fn sarif_rule(rule: &Rule) -> Json {
    let text = rule.text();
    json!({
        "id": rule.to_string(),
        "name": format!("{rule:?}"),
        "shortDescription": { "text": text.title },
        "fullDescription": { "text": format!("{}: {}", text.title, text.why) },
        "help": { "text": Explanation::of(*rule).text },
        "defaultConfiguration": { "level": level(text.severity) },
    })
}

/// The SARIF term for a severity.
fn level(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Lint | Severity::Note => "note",
    }
}

fn sarif_result(diagnostic: &Diagnostic, folder: &str) -> Json {
    let message = match &diagnostic.help {
        Some(help) => format!("{}\nhelp: {help}", diagnostic.message),
        None => diagnostic.message.clone(),
    };
    let mut result = json!({
        "ruleId": diagnostic.rule.to_string(),
        "ruleIndex": Rule::ALL.iter().position(|rule| *rule == diagnostic.rule),
        "level": level(diagnostic.severity),
        "message": { "text": message },
        "locations": [{ "physicalLocation": location(&diagnostic.place, folder) }],
    });
    if !diagnostic.related.is_empty() {
        let related = diagnostic.related.iter().zip(1..).map(|((at, what), id)| {
            json!({
                "id": id,
                "message": { "text": what },
                "physicalLocation": location(at, folder),
            })
        });
        result["relatedLocations"] = related.collect();
    }
    result
}

fn location(place: &SourceSpan, folder: &str) -> Json {
    let folder = folder.trim_end_matches('/');
    let path = match (folder, place.file.as_str()) {
        ("" | ".", "") => ".".to_owned(),
        ("" | ".", file) => escaped(file),
        (folder, "") => format!("{}/", escaped(folder)),
        (folder, file) => format!("{}/{}", escaped(folder), escaped(file)),
    };
    let mut location = json!({ "artifactLocation": { "uri": path } });
    if !place.text.is_empty() {
        location["region"] = json!({
            "startLine": place.line,
            "startColumn": place.column,
            "endColumn": place.column + place.width,
            "snippet": { "text": place.text },
        });
    }
    location
}

/// A path in a URI: all characters except letters, digits and unreserved marks become `%` and two hexadecimal digits.
/// The scheme of a URI is kept.
fn escaped(path: &str) -> String {
    let (scheme, path) = match path.strip_prefix("file://") {
        Some(path) => ("file://", path),
        None => ("", path),
    };
    let mut out = scheme.to_owned();
    for byte in path.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => out.push(byte.into()),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}
