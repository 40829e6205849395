//! A part as its own behaviour sees it: its properties, and the clients that see it.

use annals_def::{DataType, Property};

use super::{Named, Side, about_property, spelling::editor};
use crate::codegen::{naming::Scope, text::Text};

/// Writes the part's own type, and the initial values of its properties.
pub(super) fn write(text: &mut Text, named: &Named<'_>, side: Side) {
    let name = side.name();
    text.gap();
    text.doc(&format!(
        "The {} part of `{}`, while its behaviour runs.",
        side.word(),
        named.entity_type.name
    ));
    text.open(&format!("pub struct {name}<'c, 'd> {{"));
    text.doc("What every part can do.");
    text.line("pub context: &'c mut Context<'d>,");
    text.close("}");
    text.gap();
    text.open(&format!("impl<'c, 'd> {name}<'c, 'd> {{"));
    text.doc("Wraps the context of such a part.");
    text.function(
        "pub fn of",
        &["context: &'c mut Context<'d>".into()],
        "Result<Self, Denied>",
        '{',
    );
    text.line(&format!("context.expect_part(TYPE, Part::{name})?;"));
    text.line("Ok(Self { context })");
    text.close("}");
    let mut scope = Scope::with(&["of", "to_all_clients", "to_other_clients", "to_own_client"]);
    if named.has_clients() {
        let audiences: &[_] = match side {
            Side::Base => &[("own_client", "Own", "its own client")],
            Side::Cell => &[
                ("own_client", "Own", "its own client"),
                ("other_clients", "Others", "the other clients that see it"),
                ("all_clients", "All", "all clients that see it"),
            ],
        };
        for (audience, variant, people) in audiences {
            text.gap();
            text.doc(&format!("Calls {people}."));
            text.function(
                &format!("pub fn to_{audience}"),
                &["&mut self".into()],
                "Clients<'_, 'd>",
                '{',
            );
            text.line(&format!("Clients::new(self.context, Audience::{variant})"));
            text.close("}");
        }
    }
    for property in named.properties(side) {
        accessors(text, named, property, &mut scope);
    }
    text.close("}");
}

fn accessors(text: &mut Text, named: &Named<'_>, property: &Property, scope: &mut Scope) {
    if let Some(data_type) = &property.personal {
        return personal(text, named, (property, data_type), scope);
    }
    let name = &property.name;
    let spelled = named.spelled(&property.data_type);
    let [get, set, edit] = ["", "set_", "edit_"].map(|verb| scope.snake(&format!("{verb}{name}")));
    text.gap();
    text.doc(&about_property(property));
    text.function(
        &format!("pub fn {get}"),
        &["&self".into()],
        &format!("Result<{spelled}, Denied>"),
        '{',
    );
    text.chain("self.context", &format!(".read({name:?})"));
    text.close("}");
    if property.account.is_some() {
        return;
    }
    text.gap();
    text.doc(&format!("Assigns `{name}`."));
    let parameters = ["&mut self".into(), format!("value: {spelled}")];
    text.function(&format!("pub fn {set}"), &parameters, "Result<(), Denied>", '{');
    text.chain("self.context", &format!(".write({name:?}, value)"));
    text.close("}");
    if let Some(editor) = editor(&property.data_type, named.shapes) {
        text.gap();
        text.doc(&format!("Changes parts of `{name}`."));
        text.function(&format!("pub fn {edit}"), &["&mut self".into()], &editor, '{');
        text.line(&format!("Spot::new(self.context, {name:?}).into()"));
        text.close("}");
    }
}

/// A personal property is read and set as a whole, and may be unreadable.
fn personal(text: &mut Text, named: &Named<'_>, (property, data_type): (&Property, &DataType), scope: &mut Scope) {
    let name = &property.name;
    let spelled = named.spelled(data_type);
    let [get, set] = ["", "set_"].map(|verb| scope.snake(&format!("{verb}{name}")));
    text.gap();
    text.doc(&about_property(property));
    text.doc("`None` if it was never set; an error if its key is gone.");
    let answer = format!("Result<Option<{spelled}>, Denied>");
    text.function(&format!("pub fn {get}"), &["&self".into()], &answer, '{');
    text.chain("self.context", &format!(".read_personal({name:?})"));
    text.close("}");
    text.gap();
    text.doc(&format!("Seals `{name}` and sets it."));
    let parameters = ["&mut self".into(), format!("value: {spelled}")];
    text.function(&format!("pub fn {set}"), &parameters, "Result<(), Denied>", '{');
    text.chain("self.context", &format!(".write_personal({name:?}, value)"));
    text.close("}");
}

/// Writes the initial values of a part's properties.
pub(super) fn beginning(text: &mut Text, named: &Named<'_>, side: Side) {
    let name = side.name();
    let mut scope = Scope::default();
    let properties: Vec<(&Property, String)> = named
        .properties(side)
        .filter(|property| property.account.is_none() && property.personal.is_none())
        .map(|property| (property, scope.snake(&property.name)))
        .collect();
    text.gap();
    text.doc(&format!(
        "With what the {} part begins. What is None has its default.",
        side.word()
    ));
    text.line("#[derive(Clone, Debug, Default, PartialEq)]");
    if properties.is_empty() {
        text.line(&format!("pub struct New{name} {{}}"));
    } else {
        text.open(&format!("pub struct New{name} {{"));
        for (property, field) in &properties {
            text.doc(&about_property(property));
            text.line(&format!("pub {field}: Option<{}>,", named.spelled(&property.data_type)));
        }
        text.close("}");
    }
    text.gap();
    text.open(&format!("impl New{name} {{"));
    text.doc("As creation wants it.");
    text.line("#[must_use]");
    text.function(
        "pub fn into_properties",
        &["self".into()],
        "Vec<(MemberId, Value)>",
        '{',
    );
    if properties.is_empty() {
        text.line("Vec::new()");
    } else {
        let given: Vec<String> = properties
            .iter()
            .map(|(property, field)| format!("node::initial({}, self.{field})", property.index.0))
            .collect();
        text.list("let properties = [", &given, "];");
        text.line("properties.into_iter().flatten().collect()");
    }
    text.close("}");
    text.close("}");
}
