//! Generated code uses the client numbers of the schema, including those that a header size reorders.

use annals_authoring::codegen::{CodeParts, Model};
use annals_def::Tree;

const AVATAR: &str = "<root>
    <Properties>
        <log> <Type> BLOB </Type> <Flags> OWN_CLIENT </Flags>
            <VariableLengthHeaderSize> 2 </VariableLengthHeaderSize> </log>
        <note> <Type> STRING </Type> <Flags> OWN_CLIENT </Flags> </note>
    </Properties>
    <ClientMethods>
        <onBig> <VariableLengthHeaderSize> 2 </VariableLengthHeaderSize> <Arg> BLOB </Arg> </onBig>
        <onSmall> <Arg> BLOB </Arg> </onSmall>
    </ClientMethods>
    </root>";

fn model() -> Model {
    let mut tree = Tree::new();
    tree.insert(
        "entities.xml",
        "<root> <ClientServerEntities> <Avatar/> </ClientServerEntities> </root>",
    );
    tree.insert("entity_defs/Avatar.def", AVATAR);
    Model::compile(&tree).unwrap_or_else(|problems| panic!("{problems:?}"))
}

/// The text between `begin` and the next `end`.
fn block<'t>(text: &'t str, begin: &str, end: &str) -> &'t str {
    let (_, behind) = text
        .split_once(begin)
        .unwrap_or_else(|| panic!("no `{begin}` in\n{text}"));
    behind.split(end).next().unwrap_or_default()
}

#[test]
fn generated_rust_uses_the_client_numbers() {
    let code = model().to_rust(CodeParts::CLIENT);
    for (number, name) in [(0, "on_small"), (1, "on_big")] {
        let arm = block(
            &code,
            &format!("EntityEvent::Called {{ method: {number}, args }} => {{"),
            "EntityEvent::",
        );
        assert!(arm.contains(&format!("game.{name}(")), "{number}: {arm}");
    }
    for (number, name) in [(0, "set_note"), (1, "set_log")] {
        let arm = block(&code, &format!("property: {number},"), "EntityEvent::");
        assert!(arm.contains(&format!("game.{name}(")), "{number}: {arm}");
    }
}

#[test]
fn generated_typescript_uses_the_client_numbers() {
    let code = model().to_typescript();
    let at = |text: &str, name: &str| {
        let place = text.find(&format!("name: {name:?}"));
        place.unwrap_or_else(|| panic!("no {name} in\n{text}"))
    };
    let methods = block(&code, "methods: [", "],\n    baseCalls");
    assert!(at(methods, "onSmall") < at(methods, "onBig"), "{methods}");
    let properties = block(&code, "properties: [", "methods: [");
    assert!(at(properties, "note") < at(properties, "log"), "{properties}");
}
