//! The generated types match the game's definitions.

use std::{fs, path::Path};

use annals_authoring::codegen::{CodeParts, Model};
use annals_def::Tree;

#[test]
fn the_generated_types_match_the_definitions() {
    let crate_dir = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = crate_dir.join("../../services/play/src/world.ts");
    let model = Model::compile(&Tree::read(&crate_dir.join(".."))).expect("the sample's definitions compile");
    for (file, parts, flags) in [
        ("src/defs.rs", CodeParts::SERVER, "--part base --part cell"),
        ("tests/sample/world/defs.rs", CodeParts::CLIENT, "--part client"),
    ] {
        let written = fs::read_to_string(crate_dir.join(file)).expect("readable");
        assert!(
            written == model.to_rust(parts),
            "run: annals defs generate defs --lang rust {flags} --out defs/game/{file}"
        );
    }
    let written = fs::read_to_string(page).expect("readable");
    assert!(
        written == model.to_typescript(),
        "run: annals defs generate defs --lang typescript --out services/play/src/world.ts"
    );
}
