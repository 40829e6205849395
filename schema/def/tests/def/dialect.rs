//! Detection of a game's dialect, and the reported reason.

use std::path::{Path, PathBuf};

use annals_def::{Rule, Tree, check_dir, compile, grammar::Dialect};

fn read_as(files: &[(&str, &str)]) -> String {
    let mut tree = Tree::new();
    if files.iter().all(|(path, _)| !path.starts_with("scripts/")) {
        tree.insert("entity_defs/Avatar.def", "<root/>");
    }
    for (path, text) in files {
        tree.insert(*path, *text);
    }
    compile(&tree).dialect.to_string()
}

#[test]
fn the_reason_for_the_dialect_is_reported() {
    let alias = ("entity_defs/alias.xml", "<root/>");
    let list = (
        "entities.xml",
        "<root>\n\t<Avatar/>\n\t<Npc hasCell=\"true\"/>\n</root>",
    );
    let groups = ("entities.xml", "<root>\n<ClientServerEntities/>\n</root>");
    let interfaces = ("entity_defs/Npc.def", "<root>\n\n<Interfaces/>\n</root>");
    let cases: [(&[_], _); 7] = [
        (&[], "read as BigWorld, since nothing speaks for a dialect"),
        (&[alias], "read as BigWorld, because of entity_defs/alias.xml"),
        (
            &[alias, interfaces],
            "read as KBEngine, because of entity_defs/Npc.def:3 `Interfaces`",
        ),
        (&[alias, list], "read as KBEngine, because of entities.xml:3 `hasCell`"),
        (
            &[interfaces, groups],
            "read as BigWorld, because of entities.xml:2 `ClientServerEntities`",
        ),
        (
            &[("entity_defs/types.xml", "<root/>"), alias],
            "read as KBEngine, because of entity_defs/types.xml",
        ),
        (
            &[
                ("scripts/services.xml", "<root/>"),
                ("scripts/entity_defs/A.def", "<root/>"),
            ],
            "read as BigWorld, because of scripts/services.xml",
        ),
    ];
    for (files, said) in cases {
        let paths: Vec<&str> = files.iter().map(|(path, _)| *path).collect();
        assert_eq!(read_as(files), said, "{paths:?}");
    }
}

#[test]
fn published_games_keep_their_dialect() {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus");
    #[expect(clippy::disallowed_methods, reason = "a test may look at its environment")]
    let folder = std::env::var("ANNALS_CORPUS").map_or(beside, PathBuf::from);
    if !folder.is_dir() {
        println!("skipped: no games beside the repository, and ANNALS_CORPUS names no folder");
        return;
    }
    for entry in folder.read_dir().expect("readable") {
        let game = entry.expect("readable").path();
        let name = game.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let dialect = match name.split_once('-') {
            Some(("bigworld", _)) => Dialect::BigWorld,
            Some(("kbengine", _)) => Dialect::KBEngine,
            _ => continue,
        };
        let choice = compile(&Tree::read(&game)).dialect;
        println!("{name}: {choice}");
        assert_eq!(choice.dialect, dialect, "{name}: {choice}");
        let signs = |rule| check_dir(&game).1.iter().any(|d| d.rule == rule);
        assert!(!signs(Rule::DialectSigns), "{name}");
    }
}
