//! Published games, if present on this machine: each must load.

use std::path::{Path, PathBuf};

use annals_def::{Schema, Severity, Style, check_dir, render};

/// The folder of games beside the repository, or the one that `ANNALS_CORPUS` names.
fn corpus() -> Option<PathBuf> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus");
    #[expect(clippy::disallowed_methods, reason = "a test may look at its environment")]
    let folder = std::env::var("ANNALS_CORPUS").map_or(beside, PathBuf::from);
    folder.is_dir().then_some(folder)
}

#[test]
fn every_game_loads_without_errors() {
    let Some(folder) = corpus() else {
        println!("skipped: no games beside the repository, and ANNALS_CORPUS names no folder");
        return;
    };
    let entries = folder
        .read_dir()
        .expect("readable")
        .map(|entry| entry.expect("readable").path());
    let mut games: Vec<PathBuf> = entries.filter(|path| path.is_dir()).collect();
    games.sort();
    assert!(!games.is_empty());
    for game in games {
        let (schema, diagnostics) = check_dir(&game);
        println!("{}\n{}", game.display(), render(&diagnostics, Style::Plain));
        assert!(
            diagnostics
                .iter()
                .all(|diagnostic| diagnostic.severity != Severity::Error)
        );
        let schema = schema.expect("no errors, so there is a schema");
        assert!(!schema.types().is_empty());
        let loaded = Schema::decode(&schema.encode()).expect("own bytes");
        assert_eq!(loaded.types(), schema.types());
    }
}

#[test]
fn the_largest_game_has_the_declared_members() {
    let Some(game) = corpus()
        .map(|folder| folder.join("kbengine-demo"))
        .filter(|game| game.is_dir())
    else {
        println!("skipped: no games beside the repository, and ANNALS_CORPUS names no folder");
        return;
    };
    let schema = check_dir(&game).0.expect("loads");
    let names: Vec<_> = schema
        .types()
        .iter()
        .map(|entity_type| entity_type.name.as_str())
        .collect();
    assert_eq!(
        names,
        [
            "Account",
            "Avatar",
            "Monster",
            "NPC",
            "Gate",
            "Spaces",
            "Space",
            "SpaceDuplicate",
            "SpawnPoint"
        ]
    );
    let avatar = schema.type_named("Avatar").expect("listed");
    // Own members first, then interfaces, then components.
    assert_eq!(avatar.properties[0].name, "roleType");
    assert_eq!(avatar.property_named("HP").map(|hp| hp.protocol_id), Some(Some(47_001)));
    let persistent = |name: &str| avatar.property_named(name).map(|property| property.persistent);
    assert_eq!(persistent("component1.state"), Some(true));
    assert_eq!(
        persistent("component2.state"),
        Some(false),
        "its component says Persistent false"
    );
    assert!(avatar.cell_method_named("component1.hello").is_some());
    let monster = schema.type_named("Monster").expect("listed");
    assert!(monster.parts.client);
    assert!(!schema.type_named("SpawnPoint").expect("listed").parts.client);
}
