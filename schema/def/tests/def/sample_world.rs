//! The sample world in `defs/` is an example for designers: it must have no diagnostics.

use std::{fs, path::Path};

use crate::support::describe;
use annals_def::{Exposure, Reach, Schema, Style, check_dir, render, survey_dir};

#[test]
fn ignored_advice_is_allowed_with_a_reason() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../defs");
    let diagnostics = survey_dir(&folder).diagnostics;
    assert!(diagnostics.is_empty(), "{}", render(&diagnostics, Style::Plain));
}

fn sample() -> Schema {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../defs");
    let (schema, diagnostics) = check_dir(&folder);
    assert!(diagnostics.is_empty(), "{}", render(&diagnostics, Style::Plain));
    schema.expect("nothing is wrong")
}

/// `UPDATE_EXPECT=1 cargo test -p annals-def --test def sample_world` updates the expectation.
#[test]
fn the_sample_world_compiles_cleanly_to_the_expected_schema() {
    let said = describe(&sample());
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("test_data/sample_world.expected");
    #[expect(clippy::disallowed_methods, reason = "a test may look at its environment")]
    if std::env::var("UPDATE_EXPECT").is_ok() {
        fs::write(&beside, &said).expect("writable");
    }
    assert_eq!(said, fs::read_to_string(&beside).expect("readable"));
}

#[test]
fn the_avatar_has_the_members_of_the_demonstration() {
    let schema = sample();
    let avatar = schema.type_named("Avatar").expect("listed");
    assert!(avatar.parts.base && avatar.parts.cell && avatar.parts.client);
    assert_eq!(
        (avatar.volatile.position, avatar.volatile.yaw),
        (Reach::Always, Reach::Always)
    );
    assert_eq!(avatar.identifier().map(|name| name.name.as_str()), Some("name"));
    let say = avatar.cell_method_named("say").expect("declared");
    assert_eq!(say.exposed, Exposure::OwnClient);
    assert_eq!(
        avatar.base_method_named("setTitle").expect("declared").exposed,
        Exposure::OwnClient
    );
    assert!(avatar.cell_method_named("takeDamage").expect("declared").is_two_way());
    assert!(
        avatar
            .base_method_named("remoteTakeDamage")
            .expect("declared")
            .is_two_way()
    );
    let account = schema.type_named("Account").expect("listed");
    assert!(account.parts.base && !account.parts.cell && account.parts.client);
    assert!(!schema.type_named("Space").expect("listed").parts.client);
}
