//! Ghosts of a cell part: the view of their properties, and the callbacks when these change.

use super::{
    Named, about_property,
    changed::{Callbacks, Listener},
};
use crate::codegen::{naming::Scope, text::Text};

/// The callbacks about ghosts.
const LISTENER: Listener = Listener {
    receiver: "&self",
    seen: "ghost",
    seen_type: "&Ghost<'_>",
    of: " of a ghost",
};

/// The ghosted properties with their callbacks; `scope` has the other names in the trait.
pub(super) fn callbacks<'n>(named: &'n Named<'_>, scope: &mut Scope) -> Vec<Callbacks<'n>> {
    let properties = named.entity_type.properties.iter();
    let ghosted = properties.filter(|property| property.distribution.to_ghosts());
    ghosted
        .map(|property| Callbacks::of(property, "ghost_", scope))
        .collect()
}

/// Writes the view of a ghost.
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
    for callbacks in callbacks {
        callbacks.write(text, named, &LISTENER);
    }
}

/// Writes the function that calls them.
pub(super) fn write_dispatch(text: &mut Text, callbacks: &[Callbacks<'_>]) {
    text.gap();
    let all = [
        "game: &G",
        "view: &GhostView<'_>",
        "property: MemberId",
        "replaced: &Replaced",
    ]
    .map(str::to_owned);
    text.function("pub(super) fn dispatch_ghost<G: CellBehaviour>", &all, "", '{');
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
