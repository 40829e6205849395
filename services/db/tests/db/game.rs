//! One entity type with every kind of property that db handles differently.

use std::sync::{Arc, LazyLock};

use annals_def::{EntityType, Property, Schema, Severity, Tree, Value, compile};
use annals_ids::{MemberId, Part};

const AVATAR: &str = r"<root>
  <Volatile> <position/> </Volatile>
  <Properties>
    <name> <Type> UNICODE_STRING </Type> <Flags> BASE </Flags> <Persistent> true </Persistent> <Identifier> true </Identifier> <DatabaseLength> 255 </DatabaseLength> </name>
    <gold> <Type> INT64 </Type> <Flags> BASE </Flags> <Persistent> true </Persistent> </gold>
    <kit> <Type> FIXED_DICT <Properties> <worn> <Type> INT64 </Type> </worn> <wet> <Type> INT64 </Type> <Persistent> false </Persistent> </wet> </Properties> </Type> <Flags> BASE </Flags> <Persistent> true </Persistent> </kit>
    <level> <Type> INT16 </Type> <Flags> BASE </Flags> <Persistent> true </Persistent> <Indexed> true </Indexed> </level>
    <motto> <Type> STRING </Type> <Flags> BASE </Flags> <Persistent> true </Persistent> <Indexed> true </Indexed> <DatabaseLength> 255 </DatabaseLength> </motto>
    <notes> <Type> INT64 </Type> <Flags> BASE </Flags> </notes>
    <hp> <Type> INT64 </Type> <Flags> ALL_CLIENTS </Flags> <Persistent> true </Persistent> </hp>
    <threat> <Type> INT64 </Type> <Flags> CELL_PUBLIC </Flags> </threat>
    <baggage> <Type> BLOB </Type> <Flags> CELL_PRIVATE </Flags> <Persistent> true </Persistent> </baggage>
  </Properties>
</root>";

static SCHEMA: LazyLock<Arc<Schema>> = LazyLock::new(|| {
    let mut files = Tree::new();
    files.insert("entities.xml", "<root><Avatar/></root>");
    files.insert("entity_defs/alias.xml", "<root></root>");
    files.insert("entity_defs/Avatar.def", AVATAR);
    let compiled = compile(&files);
    let errors = compiled
        .diagnostics
        .iter()
        .filter(|one| one.severity == Severity::Error);
    let errors: Vec<String> = errors.map(|one| format!("{one:?}")).collect();
    Arc::new(
        compiled
            .schema
            .unwrap_or_else(|| panic!("the test's definitions: {errors:?}")),
    )
});

/// The compiled definitions.
pub(crate) fn schema() -> Arc<Schema> {
    Arc::clone(&SCHEMA)
}

/// The only type.
pub(crate) fn avatar() -> &'static EntityType {
    SCHEMA.type_named("Avatar").expect("it is defined")
}

/// A property by name.
pub(crate) fn member(name: &str) -> MemberId {
    let found = avatar().properties.iter().find(|property| property.name == name);
    found.expect("it is defined").index
}

fn is_held(property: &Property, part: Part) -> bool {
    match part {
        Part::Base => property.distribution.on_base(),
        Part::Cell => property.distribution.on_cell(),
    }
}

/// Initial properties of a part: all that it has, at their defaults except those given.
pub(crate) fn properties(part: Part, given: &[(&str, Value)]) -> Vec<(MemberId, Value)> {
    let held = avatar().properties.iter().filter(|property| is_held(property, part));
    let value = |property: &Property| {
        let given = given.iter().find(|(name, _)| *name == property.name);
        given.map_or_else(|| property.default.clone(), |(_, value)| value.clone())
    };
    held.map(|property| (property.index, value(property))).collect()
}
