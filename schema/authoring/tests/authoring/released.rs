//! The sample world against its last release: stored data and running entities of a realm of that release can be
//! converted to the current definitions in `defs/`.

use std::{fs, path::Path};

use annals_authoring::{Audience, Class, diff};
use annals_def::{Renames, Schema, Style, check_dir, render};

/// `annals defs compile defs --out defs/released.schema` rewrites the file for a new release.
#[test]
fn data_of_the_last_release_can_be_migrated_to_this_one() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../defs");
    let released = fs::read(folder.join("released.schema")).expect("there is a release");
    let stored = released;
    let released = Schema::decode(&stored).expect("a stored schema");
    // The release names no kind and no slot: its bytes, and so its fingerprint, are those from before names were added.
    assert!(released.ledger_names().is_empty() && released.encode() == stored);
    let (schema, diagnostics) = check_dir(&folder);
    let schema = schema.unwrap_or_else(|| panic!("{}", render(&diagnostics, Style::Plain)));
    let found = diff(&released, &schema, &Renames::default());
    for audience in [Audience::Stored, Audience::Log] {
        assert!(found.verdict(audience) < Class::Breaking, "{}", found.to_text());
    }
}
