//! Structs for `FIXED_DICT`s: fields, conversion, and editing in place.

use annals_def::Field;

use super::{
    shortened,
    spelling::{editor, is_rust_default, literal, spelled},
};
use crate::{codegen::naming::Scope, codegen::shapes::Shape, codegen::shapes::Shapes, codegen::text::Text};

/// Writes a struct and its related code.
pub(super) fn write(text: &mut Text, shape: &Shape, shapes: &Shapes, is_editable: bool) {
    write_struct(text, shape, shapes);
    write_typed(text, shape);
    if is_editable {
        write_edit(text, shape, shapes);
    }
}

/// The fields with their names in code.
fn fields(shape: &Shape) -> impl Iterator<Item = (&Field, &String)> {
    shape.dict.fields.iter().zip(&shape.field_names)
}

fn write_struct(text: &mut Text, shape: &Shape, shapes: &Shapes) {
    let name = &shape.name;
    let is_derived = fields(shape).all(|(field, _)| is_rust_default(&field.data_type, &field.default));
    text.gap();
    text.doc(&format!("`{}`", shape.origin));
    let default = if is_derived { "Default, " } else { "" };
    text.line(&format!("#[derive(Clone, Debug, {default}PartialEq)]"));
    if shape.dict.fields.is_empty() {
        text.line(&format!("pub struct {name} {{}}"));
    } else {
        text.open(&format!("pub struct {name} {{"));
        for (field, field_name) in fields(shape) {
            text.doc(&format!("`{}`: {}", field.name, shortened(&field.data_type)));
            text.line(&format!("pub {field_name}: {},", spelled(&field.data_type, shapes)));
        }
        text.close("}");
    }
    if is_derived {
        return;
    }
    text.gap();
    let has_floats = shape.dict.fields.iter().any(|field| {
        let is_float =
            |inner: &annals_def::DataType| inner.stream_size().is_some() && inner.to_string().starts_with("FLOAT");
        field
            .data_type
            .any(&mut |inner| is_float(inner) || inner.to_string().starts_with("VECTOR"))
    });
    if has_floats {
        text.line("#[allow(clippy::approx_constant, reason = \"as declared\")]");
    }
    text.open(&format!("impl Default for {name} {{"));
    text.open("fn default() -> Self {");
    text.open("Self {");
    for (field, field_name) in fields(shape) {
        text.line(&format!(
            "{field_name}: {},",
            literal(&field.data_type, &field.default, shapes)
        ));
    }
    text.close("}");
    text.close("}");
    text.close("}");
}

fn write_typed(text: &mut Text, shape: &Shape) {
    let name = &shape.name;
    text.gap();
    text.open(&format!("impl Typed for {name} {{"));
    text.open("fn from_value(value: &Value) -> Result<Self, Mismatch> {");
    let names: Vec<String> = shape.field_names.clone();
    text.list("let [", &names, "] = typed::fields(value)?;");
    if names.is_empty() {
        text.line("Ok(Self {})");
    } else {
        text.open("Ok(Self {");
        for (field, name) in fields(shape) {
            text.line(&format!("{name}: typed::field({:?}, {name})?,", field.name));
        }
        text.close("})");
    }
    text.close("}");
    text.gap();
    text.open("fn into_value(self) -> Value {");
    if names.is_empty() {
        text.line("Value::Dict(Vec::new())");
    } else {
        let values = names.iter().map(|name| format!("self.{name}.into_value()"));
        text.list("Value::Dict(vec![", &values.collect::<Vec<_>>(), "])");
    }
    text.close("}");
    text.close("}");
    text.gap();
    text.line(&format!("impl Dict for {name} {{}}"));
}

fn write_edit(text: &mut Text, shape: &Shape, shapes: &Shapes) {
    let (name, edit_name) = (&shape.name, &shape.edit_name);
    text.gap();
    text.doc(&format!("Changes parts of a [`{name}`] where it stands."));
    text.line(&format!("pub struct {edit_name}<'e, 'd>(Spot<'e, 'd>);"));
    text.gap();
    text.open(&format!("impl<'e, 'd> From<Spot<'e, 'd>> for {edit_name}<'e, 'd> {{"));
    text.open("fn from(spot: Spot<'e, 'd>) -> Self {");
    text.line("Self(spot)");
    text.close("}");
    text.close("}");
    text.gap();
    text.open(&format!("impl Editable for {name} {{"));
    text.line("type Edit<'e, 'd>");
    text.line(&format!("    = {edit_name}<'e, 'd>"));
    text.line("where");
    text.line("    'd: 'e;");
    text.close("}");
    text.gap();
    let lifetimes = if shape
        .dict
        .fields
        .iter()
        .any(|field| editor(&field.data_type, shapes).is_some())
    {
        ("<'d>", "<'_, 'd>")
    } else {
        ("", "<'_, '_>")
    };
    text.open(&format!("impl{} {edit_name}{} {{", lifetimes.0, lifetimes.1));
    text.doc("Replaces all of it.");
    text.function(
        "pub fn replace",
        &["&mut self".into(), format!("value: {name}")],
        "Result<(), Denied>",
        '{',
    );
    text.line("self.0.write(value)");
    text.close("}");
    let mut scope = Scope::with(&["replace"]);
    for (at, field) in shape.dict.fields.iter().enumerate() {
        let field_type = spelled(&field.data_type, shapes);
        let [get, set, edit] = ["", "set_", "edit_"].map(|verb| scope.snake(&format!("{verb}{}", field.name)));
        text.gap();
        text.doc(&format!("`{}`: {}", field.name, shortened(&field.data_type)));
        text.function(
            &format!("pub fn {get}"),
            &["&mut self".into()],
            &format!("Result<{field_type}, Denied>"),
            '{',
        );
        text.line(&format!("self.0.part({at}).read()"));
        text.close("}");
        text.gap();
        text.doc(&format!("Assigns `{}`.", field.name));
        let parameters = ["&mut self".into(), format!("value: {field_type}")];
        text.function(&format!("pub fn {set}"), &parameters, "Result<(), Denied>", '{');
        text.line(&format!("self.0.part({at}).write(value)"));
        text.close("}");
        if let Some(editor) = editor(&field.data_type, shapes) {
            text.gap();
            text.doc(&format!("Changes parts of `{}`.", field.name));
            text.function(&format!("pub fn {edit}"), &["&mut self".into()], &editor, '{');
            text.line(&format!("self.0.part({at}).into()"));
            text.close("}");
        }
    }
    text.close("}");
}
