//! Components of a definition as plain structs, with setters that mark what they change.

use annals_def::{EntityType, Property};

use super::{Components, Named, Side, about_property};
use crate::codegen::{naming::Scope, text::Text};

/// The components of a type, in the order in which their members are declared.
pub(super) fn find(entity_type: &EntityType, scope: &mut Scope) -> Vec<Components> {
    let mut found: Vec<Components> = Vec::new();
    for property in entity_type.properties.iter().filter(is_plain) {
        let Some((slot, _)) = property.name.split_once('.') else {
            continue;
        };
        for side in [Side::Base, Side::Cell] {
            let is_known = found.iter().any(|known| known.side == side && known.slot == slot);
            if property.distribution.on(side.part()) && !is_known {
                found.push(Components {
                    side,
                    slot: slot.to_owned(),
                    name: scope.pascal(slot),
                    tracked: scope.pascal(&format!("tracked_{slot}")),
                });
            }
        }
    }
    found
}

/// Whether a struct can have the property as a field: personal properties are accessed separately.
fn is_plain(property: &&Property) -> bool {
    property.personal.is_none()
}

/// Writes the components of a part.
pub(super) fn write(text: &mut Text, named: &Named<'_>, side: Side) {
    for component in named.components.iter().filter(|component| component.side == side) {
        let mut scope = Scope::default();
        let fields: Vec<(&Property, &str, String)> = named
            .properties(side)
            .filter(is_plain)
            .filter_map(|property| {
                let (slot, member) = property.name.split_once('.')?;
                (slot == component.slot).then(|| (property, member, scope.snake(member)))
            })
            .collect();
        write_struct(text, named, component, &fields);
        write_tracked(text, named, component, &fields);
    }
}

fn write_struct(text: &mut Text, named: &Named<'_>, component: &Components, fields: &[(&Property, &str, String)]) {
    let Components { side, slot, name, .. } = component;
    text.gap();
    text.doc(&format!(
        "The component `{slot}` of the {} part: `load` and `save` of its context.",
        side.word()
    ));
    text.line("#[derive(Clone, Debug, PartialEq)]");
    text.open(&format!("pub struct {name} {{"));
    for (property, _, field) in fields {
        text.doc(&about_property(property));
        text.line(&format!("pub {field}: {},", named.spelled(&property.data_type)));
    }
    text.close("}");
    text.gap();
    text.open(&format!("impl Component for {name} {{"));
    let members: Vec<String> = fields
        .iter()
        .map(|(property, ..)| format!("{:?}", property.name))
        .collect();
    text.list("const MEMBERS: &'static [&'static str] = &[", &members, "];");
    text.gap();
    text.open("fn from_values(values: &[&Value]) -> Result<Self, Mismatch> {");
    let names: Vec<String> = fields.iter().map(|(.., field)| field.clone()).collect();
    text.list("let [", &names, "] = typed::members(values)?;");
    text.open("Ok(Self {");
    for (property, _, field) in fields {
        text.line(&format!("{field}: typed::field({:?}, {field})?,", property.name));
    }
    text.close("})");
    text.close("}");
    text.gap();
    text.open("fn value(&self, field: usize) -> Option<Value> {");
    text.open("match field {");
    for (at, (.., field)) in fields.iter().enumerate() {
        text.line(&format!("{at} => Some(self.{field}.clone().into_value()),"));
    }
    text.line("_ => None,");
    text.close("}");
    text.close("}");
    text.close("}");
}

fn write_tracked(text: &mut Text, named: &Named<'_>, component: &Components, fields: &[(&Property, &str, String)]) {
    let Components { name, tracked, .. } = component;
    text.gap();
    text.doc(&format!(
        "A [`{name}`] whose setters mark what they change: `save` looks at nothing else."
    ));
    text.line("#[derive(Clone, Debug)]");
    text.line(&format!("pub struct {tracked}(pub Tracked<{name}>);"));
    text.gap();
    text.open(&format!("impl {tracked} {{"));
    text.doc("Reads it from the entity.");
    text.function(
        "pub fn load",
        &["context: &Context<'_>".into()],
        "Result<Self, Denied>",
        '{',
    );
    text.line("Ok(Self(Tracked::new(context.load()?)))");
    text.close("}");
    text.gap();
    text.doc("Records what was marked and has changed.");
    let parameters = ["&mut self".into(), "context: &mut Context<'_>".into()];
    text.function("pub fn save", &parameters, "Result<(), Denied>", '{');
    text.line("context.save(&mut self.0)");
    text.close("}");
    let mut scope = Scope::with(&["load", "save"]);
    let settable = |(_, (property, ..)): &(usize, &(&Property, &str, String))| property.account.is_none();
    for (at, (property, member, field)) in fields.iter().enumerate().filter(settable) {
        text.gap();
        text.doc(&format!("Assigns `{}`.", property.name));
        let setter = scope.snake(&format!("set_{member}"));
        let parameters = [
            "&mut self".into(),
            format!("value: {}", named.spelled(&property.data_type)),
        ];
        text.function(&format!("pub fn {setter}"), &parameters, "", '{');
        text.line(&format!("self.0.mark({at}).{field} = value;"));
        text.close("}");
    }
    text.close("}");
}
