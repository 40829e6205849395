//! Applies the rules to this repository.

use std::fs;

use annals_tidy::documents::Existing;
use annals_tidy::layering::{Nature, crates, nature};
use annals_tidy::repository::{SourceFile, files, root, stray_at_top};
use annals_tidy::{
    Violation, attributes, citations, docs, documents, layering, manifests, outsiders, purity, reference, sizes,
    targets, words,
};

/// Fails with one line per violation.
fn none(violations: impl IntoIterator<Item = Violation>) {
    let lines: Vec<_> = violations.into_iter().map(|violation| violation.to_string()).collect();
    assert!(lines.is_empty(), "{} in all:\n{}", lines.len(), lines.join("\n"));
}

fn rust() -> impl Iterator<Item = SourceFile> {
    files().into_iter().filter(|file| file.has_extension("rs"))
}

#[test]
fn dependencies_point_one_way() {
    none(layering::check(&crates()));
}

#[test]
fn the_evidence_verifier_has_few_dependencies() {
    none(outsiders::check());
}

#[test]
fn files_and_functions_are_within_the_size_limits() {
    none(files().iter().flat_map(sizes::check));
}

#[test]
fn cited_rules_exist() {
    let protocol = fs::read_to_string(root().join("docs/protocol.md")).expect("the protocol can be read");
    let rules = citations::rules(&protocol);
    assert!(rules.len() > 50, "the rules were found: {rules:?}");
    none(files().iter().flat_map(|file| citations::check(file, &rules)));
}

#[test]
fn no_banned_words_are_used() {
    none(files().iter().flat_map(words::check));
}

#[test]
fn suppressed_lints_have_a_reason() {
    none(rust().flat_map(|file| attributes::check(&file)));
}

#[test]
fn the_behaviour_reference_is_complete() {
    none(reference::check(&files()));
}

#[test]
fn public_items_are_documented() {
    none(
        rust()
            .filter(|file| file.path.contains("/src/"))
            .flat_map(|file| docs::check(&file)),
    );
}

#[test]
fn pure_crates_are_pure() {
    let sources: Vec<_> = crates()
        .into_iter()
        .filter(|member| nature(&member.name) == Some(Nature::Pure))
        .map(|member| format!("{}/src/", member.folder))
        .collect();
    assert!(sources.len() > 5, "the pure crates were found");
    let pure = |file: &SourceFile| sources.iter().any(|folder| file.path.starts_with(folder.as_str()));
    none(rust().filter(pure).flat_map(|file| purity::check(&file)));
}

#[test]
fn pure_crates_share_the_stricter_bans() {
    let bans = fs::read_to_string(root().join("schema/clippy.toml")).expect("the bans of pure crates can be read");
    let differs = |folder: &str| {
        // Clippy takes the nearest file at or above the crate.
        let nearest = [folder, "schema"].map(|folder| root().join(folder).join("clippy.toml"));
        let nearest = nearest
            .iter()
            .find(|path| path.exists() && (folder.starts_with("schema/") || path.starts_with(root().join(folder))));
        nearest.and_then(|path| fs::read_to_string(path).ok()).as_ref() != Some(&bans)
    };
    let pure = crates()
        .into_iter()
        .filter(|member| nature(&member.name) == Some(Nature::Pure));
    none(pure.filter(|member| differs(&member.folder)).map(|member| {
        Violation::of(
            &member.folder,
            "keeps other bans: ln -s ../../schema/clippy.toml into its folder",
        )
    }));
}

#[test]
fn crates_inherit_the_workspace_settings() {
    none(
        files()
            .iter()
            .filter(|file| file.path.ends_with("Cargo.toml"))
            .flat_map(|file| manifests::check(&file.path, &file.text)),
    );
}

#[test]
fn every_test_runs() {
    let files = files();
    let manifests = files.iter().filter(|file| file.path.ends_with("Cargo.toml"));
    none(manifests.flat_map(|manifest| targets::check(manifest, &files)));
    none(targets::left_out(&files));
}

#[test]
fn the_architecture_document_names_every_crate() {
    let map = fs::read_to_string(root().join("ARCHITECTURE.md")).expect("the map can be read");
    let absent = |folder: &str| !map.contains(&format!("| `{folder}` |"));
    let unnamed = crates().into_iter().filter(|member| absent(&member.folder));
    none(unnamed.map(|member| Violation::of(&member.folder, "has no line in ARCHITECTURE.md")));
}

#[test]
fn references_in_documents_resolve() {
    let files = files();
    let existing = Existing::of(files.iter().map(|file| file.path.as_str()));
    none(files.iter().flat_map(|file| documents::check(file, &existing)));
}

#[test]
fn the_top_level_has_only_the_agreed_entries() {
    let files = files();
    let strays = stray_at_top(files.iter().map(|file| file.path.as_str()));
    none(
        strays
            .iter()
            .map(|stray| Violation::of(stray, "was not agreed upon at the top level: it belongs below a folder")),
    );
}
