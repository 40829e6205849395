//! A cell part as other cells have it: what can be read of it, and what a game does when something of it changes.

use annals_def::Property;

use super::{Named, about_property, client::changes};
use crate::{codegen::naming::Scope, codegen::text::Text};

/// A ghosted property with the names of its callbacks.
pub(super) struct Callbacks<'p> {
    property: &'p Property,
    set: String,
    nested: Option<String>,
    slice: Option<String>,
}

/// The ghosted properties with their callbacks; `scope` has the other names in the trait.
pub(super) fn callbacks<'n>(named: &'n Named<'_>, scope: &mut Scope) -> Vec<Callbacks<'n>> {
    let properties = named.entity_type.properties.iter();
    let ghosted = properties.filter(|property| property.distribution.to_ghosts());
    let callbacks = ghosted.map(|property| {
        let (nested, slice) = changes(&property.data_type);
        let mut name = |verb: &str| scope.snake(&format!("ghost_{verb}_{}", property.name));
        Callbacks {
            property,
            set: name("set"),
            nested: nested.then(|| name("set_nested")),
            slice: slice.then(|| name("set_slice")),
        }
    });
    callbacks.collect()
}

/// Writes what can be read of a ghost.
pub(super) fn write_view(text: &mut Text, named: &Named<'_>, callbacks: &[Callbacks<'_>]) {
    text.gap();
    text.doc(&format!(
        "A `{}` that is real on another cell. A property that it does not have is None.",
        named.entity_type.name
    ));
    text.open("pub struct Ghost<'v> {");
    text.doc("What is known of it.");
    text.line("pub view: &'v GhostView<'v>,");
    text.close("}");
    text.gap();
    text.open("impl Ghost<'_> {");
    let mut scope = Scope::default();
    for Callbacks { property, .. } in callbacks {
        text.gap();
        text.doc(&about_property(property));
        text.line("#[must_use]");
        let returns = format!("Option<{}>", named.spelled(&property.data_type));
        let name = scope.snake(&property.name);
        text.function(&format!("pub fn {name}"), &["&self".into()], &returns, '{');
        text.line(&format!("node::ghost_read(self.view, {:?})", property.name));
        text.close("}");
    }
    text.close("}");
}

/// Writes the callbacks into the trait.
pub(super) fn write_callbacks(text: &mut Text, named: &Named<'_>, callbacks: &[Callbacks<'_>]) {
    for Callbacks {
        property,
        set,
        nested,
        slice,
    } in callbacks
    {
        let name = &property.name;
        text.gap();
        text.doc(&format!(
            "`{name}` of a ghost has changed; the old value is None if only a part of it has."
        ));
        let old = format!("_old: Option<{}>", named.spelled(&property.data_type));
        text.function(
            &format!("fn {set}"),
            &["&self".into(), "_ghost: &Ghost<'_>".into(), old],
            "",
            '{',
        );
        text.undo_open("{}");
        if let Some(nested) = nested {
            text.gap();
            text.doc(&format!("A part of `{name}` of a ghost has changed."));
            let all = ["&self", "ghost: &Ghost<'_>", "_path: &[Step]", "_old: &Value"].map(str::to_owned);
            text.function(&format!("fn {nested}"), &all, "", '{');
            text.line(&format!("self.{set}(ghost, None);"));
            text.close("}");
        }
        if let Some(slice) = slice {
            text.gap();
            text.doc(&format!(
                "Elements of an array in `{name}` of a ghost have changed; the new ones are in the range."
            ));
            let all = [
                "&self",
                "ghost: &Ghost<'_>",
                "_path: &[Step]",
                "_range: Range<u32>",
                "_old: &[Value]",
            ];
            text.function(&format!("fn {slice}"), &all.map(str::to_owned), "", '{');
            text.line(&format!("self.{set}(ghost, None);"));
            text.close("}");
        }
    }
}

/// Writes the function that calls them.
pub(super) fn write_tell(text: &mut Text, callbacks: &[Callbacks<'_>]) {
    text.gap();
    let all = [
        "game: &G",
        "view: &GhostView<'_>",
        "property: MemberId",
        "replaced: &Replaced",
    ]
    .map(str::to_owned);
    text.function("pub(super) fn tell_ghost<G: CellBehaviour>", &all, "", '{');
    text.line("let ghost = &Ghost { view };");
    text.open("match (property.0, replaced) {");
    for Callbacks {
        property,
        set,
        nested,
        slice,
    } in callbacks
    {
        let id = property.index.0;
        text.open(&format!("({id}, Replaced::Whole {{ old }}) => {{"));
        text.line(&format!(
            "game.{set}(ghost, typed::field({:?}, old).ok());",
            property.name
        ));
        text.close("}");
        if let Some(nested) = nested {
            text.open(&format!("({id}, Replaced::Nested {{ path, old }}) => {{"));
            text.line("let path = node::ghost_steps(view, property, path);");
            text.line(&format!("game.{nested}(ghost, &path, old);"));
            text.close("}");
        }
        if let Some(slice) = slice {
            text.open(&format!("({id}, Replaced::Slice {{ path, range, old }}) => {{"));
            text.line("let path = node::ghost_steps(view, property, path);");
            text.line(&format!("game.{slice}(ghost, &path, range.clone(), old);"));
            text.close("}");
        }
        if nested.is_none() || slice.is_none() {
            text.line(&format!("({id}, _) => game.{set}(ghost, None),"));
        }
    }
    text.line("_ => {}");
    text.close("}");
    text.close("}");
}
