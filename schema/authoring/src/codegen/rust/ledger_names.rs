//! Constants for named kinds of assets and slots of accounts. Their types are written as full paths, so that a module
//! with nothing else needs no imports.

use annals_def::LedgerNames;

use super::super::{CodeParts, naming::Scope, text::Text};

/// Writes a module of constants for kinds and one for slots, if any have names. Clients have no types for these numbers
/// and get plain integers.
pub(super) fn write(text: &mut Text, names: &LedgerNames, parts: CodeParts) {
    let (kind, slot) = match parts.is_server() {
        true => (("annals_ids::AssetKind", true), ("annals_ids::Slot", true)),
        false => (("u32", false), ("u16", false)),
    };
    let kinds: Vec<_> = names
        .kinds()
        .iter()
        .map(|(kind, name)| (kind.0, name.as_str()))
        .collect();
    let slots = names.slots().iter();
    let slots: Vec<_> = slots.map(|(slot, name)| (u32::from(slot.0), name.as_str())).collect();
    for (module, what, (of, is_wrapped), named) in [
        ("kinds", "Kinds of assets", kind, kinds),
        ("slots", "Slots of accounts", slot, slots),
    ] {
        if named.is_empty() {
            continue;
        }
        text.gap();
        text.doc(&format!("{what} that have a name."));
        text.open(&format!("pub mod {module} {{"));
        let mut scope = Scope::with(&[]);
        for (number, name) in named {
            let value = match is_wrapped {
                true => format!("{of}({number})"),
                false => number.to_string(),
            };
            text.doc(&format!("`{name}`"));
            text.line(&format!("pub const {}: {of} = {value};", scope.constant(name)));
        }
        text.close("}");
    }
}
