//! Constants for kinds of assets and slots of accounts that have a name. Their types are written with their paths, so that a
//! module in which there is nothing else imports nothing.

use annals_def::LedgerNames;

use super::super::{CodeParts, naming::Scope, text::Text};

/// Writes a module of constants for kinds, and one for slots, each if one has a name. A client has numbers, and no types for them.
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
