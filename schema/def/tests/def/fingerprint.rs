//! The fingerprint depends on the meaning of files, not on their spelling.

use annals_def::{Schema, Tree, compile};

fn schema(files: &[(&str, &str)]) -> Schema {
    let mut tree = Tree::new();
    for (path, text) in files {
        tree.insert(*path, *text);
    }
    let compiled = compile(&tree);
    compiled.schema.unwrap_or_else(|| panic!("{:?}", compiled.diagnostics))
}

const LIST: (&str, &str) = ("entities.xml", "<root> <Avatar/> <Monster/> </root>");
const MONSTER: (&str, &str) = ("entity_defs/Monster.def", "<root> </root>");
const AVATAR: &str = "<root> <Implements> <Interface> Named </Interface> </Implements> <Properties>
    <level> <Type> LEVEL </Type> <Flags> ALL_CLIENTS </Flags> <Default> 1 </Default> </level>
    </Properties> <CellMethods> <say> <Exposed> OWN_CLIENT </Exposed> <Arg> UNICODE_STRING </Arg> </say>
    </CellMethods> </root>";
const REORDERED: &str = "<root> <CellMethods> <say> <Arg> UNICODE_STRING </Arg> <Exposed> OWN_CLIENT </Exposed> </say>
    </CellMethods> <Properties>
    <level> <Default> 1 </Default> <Flags> ALL_CLIENTS </Flags> <Type> LEVEL </Type> </level>
    </Properties> <Implements> <Interface> Named </Interface> </Implements> </root>";
const NAMED: (&str, &str) = (
    "entity_defs/interfaces/Named.def",
    "<root> <Properties> <name> <Type> STRING </Type> <Flags> BASE </Flags> </name> </Properties> </root>",
);
const ALIAS: (&str, &str) = ("entity_defs/alias.xml", "<root> <LEVEL> UINT8 </LEVEL> </root>");

fn original() -> Schema {
    schema(&[LIST, MONSTER, NAMED, ALIAS, ("entity_defs/Avatar.def", AVATAR)])
}

#[test]
fn spelling_does_not_change_the_fingerprint() {
    let fingerprint = original().fingerprint();
    let commented = AVATAR
        .replace("<level>", "<!-- how far --> <level>\n\n\t")
        .replace("LEVEL", "<!-- -->\n\tLEVEL");
    for files in [
        // Comments and white space.
        [LIST, MONSTER, NAMED, ALIAS, ("entity_defs/Avatar.def", &commented)],
        // An alias written out.
        [
            LIST,
            MONSTER,
            NAMED,
            ALIAS,
            ("entity_defs/Avatar.def", &AVATAR.replace("LEVEL", "UINT8")),
        ],
        // Tags and sections in another order.
        [LIST, MONSTER, NAMED, ALIAS, ("entity_defs/Avatar.def", REORDERED)],
        // Below another folder. The order of files does not matter: a tree keeps them by path.
        [
            ("scripts/entity_defs/Avatar.def", AVATAR),
            ("scripts/entity_defs/alias.xml", ALIAS.1),
            ("scripts/entity_defs/interfaces/Named.def", NAMED.1),
            ("scripts/entity_defs/Monster.def", MONSTER.1),
            ("scripts/entities.xml", LIST.1),
        ],
        // Unused declarations.
        [
            LIST,
            MONSTER,
            NAMED,
            (
                "entity_defs/alias.xml",
                "<root> <LEVEL> UINT8 </LEVEL> <X> INT8 </X> </root>",
            ),
            ("entity_defs/Avatar.def", AVATAR),
        ],
    ] {
        assert_eq!(schema(&files).fingerprint(), fingerprint, "{files:?}");
    }
}

#[test]
fn meaning_changes_the_fingerprint() {
    let fingerprint = original().fingerprint();
    for (from, to) in [
        ("LEVEL", "UINT16"),
        ("ALL_CLIENTS", "CELL_PUBLIC"),
        ("<Default> 1 </Default>", "<Default> 2 </Default>"),
        (
            "<Default> 1 </Default>",
            "<Default> 1 </Default> <Persistent> true </Persistent>",
        ),
        ("level", "rank"),
        ("<Arg>", "<Arg> INT8 </Arg> <Arg>"),
        ("OWN_CLIENT", "ALL_CLIENTS"),
        ("<Properties>", "<Volatile> <position/> </Volatile> <Properties>"),
    ] {
        let changed = AVATAR.replace(from, to);
        let schema = schema(&[LIST, MONSTER, NAMED, ALIAS, ("entity_defs/Avatar.def", &changed)]);
        assert_ne!(schema.fingerprint(), fingerprint, "{from} -> {to}");
    }
    let other_order = ("entities.xml", "<root> <Monster/> <Avatar/> </root>");
    let reordered = schema(&[other_order, MONSTER, NAMED, ALIAS, ("entity_defs/Avatar.def", AVATAR)]);
    assert_ne!(
        reordered.fingerprint(),
        fingerprint,
        "the order of the list is the type ids"
    );
}

/// Names of kinds are for people: nothing is stored or sent by them, and clients need not know them.
#[test]
fn ledger_names_change_the_schema_but_not_the_client_fingerprint() {
    let named = |text: &str| {
        let ledger = ("ledger.xml", text);
        schema(&[LIST, MONSTER, NAMED, ALIAS, ("entity_defs/Avatar.def", AVATAR), ledger])
    };
    for nothing in ["<root/>", "<root> <Kinds/> <Slots> </Slots> </root>"] {
        assert_eq!(named(nothing).fingerprint(), original().fingerprint(), "{nothing}");
    }
    let gold = named("<root> <Kinds> <gold> 1 </gold> </Kinds> </root>");
    let coin = named("<root> <Kinds> <coin> 1 </coin> </Kinds> </root>");
    assert_ne!(gold.fingerprint(), original().fingerprint());
    assert_ne!(gold.fingerprint(), coin.fingerprint());
    assert_eq!(gold.client_fingerprint(), original().client_fingerprint());
}
