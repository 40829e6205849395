//! Personal members: their schema, their restrictions, and that no member becomes or ceases to be personal.

use std::collections::BTreeMap;

use annals_def::{DataType, Plan, Renames, Rule, Schema, Tree, Value, compile};

const TYPE: &str = "<Type> UNICODE_STRING </Type>";
const FLAGS: &str = "<Flags> BASE </Flags>";
const STORED: &str = "<Persistent> true </Persistent>";
const PERSONAL: &str = "<Personal> true </Personal>";

fn compiled(tags: &[&str]) -> (Option<Schema>, Vec<Rule>) {
    let mut tree = Tree::new();
    tree.insert("entities.xml", "<root> <Avatar/> </root>");
    let text = format!(
        "<root> <Properties> <email> {} </email> </Properties> </root>",
        tags.concat()
    );
    tree.insert("entity_defs/Avatar.def", text.as_str());
    let compiled = compile(&tree);
    let rules = compiled.diagnostics.iter().map(|found| found.rule).collect();
    (compiled.schema, rules)
}

fn schema(tags: &[&str]) -> Schema {
    let (schema, rules) = compiled(tags);
    schema.unwrap_or_else(|| panic!("{rules:?}"))
}

#[test]
fn a_personal_member_is_stored_as_sealed_bytes() {
    let schema = schema(&[TYPE, FLAGS, STORED, PERSONAL]);
    let email = schema
        .type_named("Avatar")
        .and_then(|avatar| avatar.property_named("email"));
    let email = email.expect("declared");
    assert_eq!(email.personal, Some(DataType::Unicode));
    assert_eq!(
        (&email.data_type, &email.default),
        (&DataType::Blob, &Value::Bytes(Vec::new()))
    );
    let read = Schema::decode(&schema.encode()).expect("readable");
    assert_eq!(read, schema);
    let plain = self::schema(&[TYPE, FLAGS, STORED]);
    assert_ne!(plain.fingerprint(), schema.fingerprint());
    assert_eq!(
        self::schema(&[TYPE, FLAGS, STORED, "<Personal> false </Personal>"]).fingerprint(),
        plain.fingerprint()
    );
}

#[test]
fn members_that_cannot_be_sealed_are_named() {
    let wrong: [&[&str]; 9] = [
        &[TYPE, "<Flags> BASE_AND_CLIENT </Flags>", STORED, PERSONAL],
        &[TYPE, "<Flags> CELL_PRIVATE </Flags>", STORED, PERSONAL],
        &[TYPE, FLAGS, PERSONAL],
        &[TYPE, FLAGS, STORED, PERSONAL, "<Default> nobody </Default>"],
        &[TYPE, FLAGS, STORED, PERSONAL, "<Identifier> true </Identifier>"],
        &[TYPE, FLAGS, STORED, PERSONAL, "<Indexed> true </Indexed>"],
        &[TYPE, FLAGS, STORED, PERSONAL, "<Editable> true </Editable>"],
        &[TYPE, FLAGS, STORED, PERSONAL, "<SendLatestOnly> true </SendLatestOnly>"],
        &[
            "<Type> UINT64 </Type>",
            FLAGS,
            STORED,
            PERSONAL,
            "<Account> <Kind> 1 </Kind> </Account>",
        ],
    ];
    for tags in wrong {
        let (schema, rules) = compiled(tags);
        assert!(rules.contains(&Rule::Personal), "{tags:?}: {rules:?}");
        assert!(schema.is_none(), "{tags:?}");
    }
}

#[test]
fn an_existing_member_cannot_change_whether_it_is_personal() {
    let plain = schema(&["<Type> BLOB </Type>", FLAGS, STORED]);
    let sealed = schema(&["<Type> BLOB </Type>", FLAGS, STORED, PERSONAL]);
    let other = schema(&[TYPE, FLAGS, STORED, PERSONAL]);
    let row = |bytes: &[u8]| BTreeMap::from([("email".to_owned(), Value::Bytes(bytes.to_vec()))]);
    for (old, new) in [(&plain, &sealed), (&sealed, &plain), (&sealed, &other)] {
        let plan = Plan::new(old, new, &Renames::default());
        assert!(plan.convert_stored("Avatar", &row(b"merlin@example.org")).is_err());
        assert!(plan.convert_stored("Avatar", &row(b"")).is_ok(), "nobody ever set it");
    }
    let plan = Plan::new(&sealed, &sealed, &Renames::default());
    assert!(plan.convert_stored("Avatar", &row(b"sealed")).is_ok());
}
