//! Callbacks of a game or a client for changed properties: three per property in a trait, two of which call the third
//! by default.

use annals_def::{DataType, Property};

use super::Named;
use crate::codegen::{naming::Scope, text::Text};

/// A property with the names of its callbacks.
pub(super) struct Callbacks<'p> {
    pub(super) property: &'p Property,
    pub(super) set: String,
    pub(super) nested: Option<String>,
    pub(super) slice: Option<String>,
}

/// The form of the callbacks of a kind of listener.
pub(super) struct Listener {
    /// The receiver of the callbacks.
    pub(super) receiver: &'static str,
    /// The name of the parameter that gives access to more.
    pub(super) seen: &'static str,
    pub(super) seen_type: &'static str,
    /// The subject of the change, behind the name of the property.
    pub(super) of: &'static str,
}

impl<'p> Callbacks<'p> {
    /// The callbacks of a property: their names begin with `prefix` and are unique in `scope`.
    pub(super) fn of(property: &'p Property, prefix: &str, scope: &mut Scope) -> Self {
        let (nested, slice) = changes(&property.data_type);
        let mut name = |verb: &str| scope.snake(&format!("{prefix}{verb}_{}", property.name));
        Self {
            property,
            set: name("set"),
            nested: nested.then(|| name("set_nested")),
            slice: slice.then(|| name("set_slice")),
        }
    }

    /// Writes the callbacks into their trait.
    pub(super) fn write(&self, text: &mut Text, named: &Named<'_>, listener: &Listener) {
        let (name, set) = (&self.property.name, &self.set);
        let Listener {
            receiver,
            seen,
            seen_type,
            of,
        } = listener;
        text.gap();
        text.doc(&format!(
            "`{name}`{of} has changed; the old value is None if only a part of it has."
        ));
        let old = format!("_old: Option<{}>", named.spelled(&self.property.data_type));
        let all = [(*receiver).to_owned(), format!("_{seen}: {seen_type}"), old];
        text.function(&format!("fn {set}"), &all, "", '{');
        text.undo_open("{}");
        let mut passes_on = |doc: &str, callback: &str, more: &[&str]| {
            text.gap();
            text.doc(doc);
            let mut all = vec![(*receiver).to_owned(), format!("{seen}: {seen_type}")];
            all.extend(more.iter().map(ToString::to_string));
            text.function(&format!("fn {callback}"), &all, "", '{');
            text.line(&format!("self.{set}({seen}, None);"));
            text.close("}");
        };
        if let Some(nested) = &self.nested {
            let doc = format!("A part of `{name}`{of} has changed.");
            passes_on(&doc, nested, &["_path: &[Step]", "_old: &Value"]);
        }
        if let Some(slice) = &self.slice {
            let doc = format!("Elements of an array in `{name}`{of} have changed; the new ones are in the range.");
            passes_on(&doc, slice, &["_path: &[Step]", "_range: Range<u32>", "_old: &[Value]"]);
        }
    }
}

/// Whether parts of the property can change separately, and whether slices can.
fn changes(data_type: &DataType) -> (bool, bool) {
    match data_type {
        DataType::Array(_) => (true, true),
        // It may contain an array.
        DataType::FixedDict(_) => (true, data_type.any(&mut |inner| matches!(inner, DataType::Array(_)))),
        _ => (false, false),
    }
}
