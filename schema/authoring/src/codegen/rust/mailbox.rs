//! A part as seen by others: its mailbox with typed calls, their answers, and the methods of its clients.

use annals_def::{Argument, Method};

use super::{Named, Side, about_method, allow_many, own};
use crate::codegen::{naming::Scope, text::Text};

/// Parameter names of generated functions, beside the declared ones.
const PARAMETERS: [&str; 12] = [
    "args", "caller", "context", "core", "game", "ghost", "method", "signal", "now", "own", "seen", "wait",
];

/// The arguments of a method with their names and types in code.
pub(super) fn parameters(named: &Named<'_>, arguments: &[Argument]) -> Vec<(String, String)> {
    let mut scope = Scope::with(&PARAMETERS);
    arguments
        .iter()
        .map(|argument| (scope.snake(&argument.name), named.spelled(&argument.data_type)))
        .collect()
}

/// Writes a struct for the return values of each two-way method of a part.
pub(super) fn replies(text: &mut Text, named: &Named<'_>, side: Side) {
    for (method, reply) in named.methods(side).iter().zip(named.replies(side)) {
        if let Some(reply) = reply {
            write_reply(text, named, method, reply);
        }
    }
}

fn write_reply(text: &mut Text, named: &Named<'_>, method: &Method, reply: &str) {
    let mut scope = Scope::default();
    let values: Vec<(&Argument, String)> = method
        .returns
        .iter()
        .map(|value| (value, scope.snake(&value.name)))
        .collect();
    text.gap();
    text.doc(&format!("What `{}` returns.", method.name));
    text.line("#[derive(Clone, Debug, PartialEq)]");
    text.open(&format!("pub struct {reply} {{"));
    for (value, name) in &values {
        text.doc(&format!("`{}`", value.name));
        text.line(&format!("pub {name}: {},", named.spelled(&value.data_type)));
    }
    text.close("}");
    text.gap();
    let names: Vec<String> = values.iter().map(|(_, name)| name.clone()).collect();
    text.open(&format!("impl Returned for {reply} {{"));
    text.open("fn into_values(self) -> Vec<Value> {");
    let of = |name: &String| format!("self.{name}.into_value()");
    text.list("vec![", &names.iter().map(of).collect::<Vec<_>>(), "]");
    text.close("}");
    text.gap();
    text.open("fn from_values(values: &[Value]) -> Result<Self, CallError> {");
    text.list("let [", &names, "] = node::arguments(values)?;");
    text.open("Ok(Self {");
    for (value, name) in &values {
        text.line(&format!("{name}: node::argument({:?}, {name})?,", value.name));
    }
    text.close("})");
    text.close("}");
    text.close("}");
}

/// Writes the mailbox of a part, and the start of the part's code.
pub(super) fn write(text: &mut Text, named: &Named<'_>, side: Side) {
    if !named.is_service {
        own::beginning(text, named, side);
    }
    let name = side.name();
    text.gap();
    text.doc(&format!(
        "The {} part of a `{}` wherever it is.",
        side.word(),
        named.entity_type.name
    ));
    text.line("#[derive(Clone, Copy, Debug, PartialEq, Eq)]");
    text.line(&format!("pub struct {name}Mailbox(pub Mailbox);"));
    text.gap();
    text.open(&format!("impl {name}Mailbox {{"));
    text.doc("The part of the same entity.");
    text.line("#[must_use]");
    text.function("pub fn of", &["context: &Context<'_>".into()], "Self", '{');
    text.line(&format!("Self(context.mailbox(Part::{name}))"));
    text.close("}");
    match named.is_service {
        true => fragment(text, named),
        false => {
            other_part(text, named, side);
            creation(text, named, side);
        }
    }
    let mut scope = Scope::with(&[
        "any",
        "of",
        "create",
        "create_alone",
        "create_anywhere",
        "create_beside",
        "create_cell",
        "create_cell_near",
        "create_cell_in_new_space",
        "to_base",
        "to_cell",
    ]);
    for method in named.methods(side) {
        call(text, named, method, &mut scope, side);
    }
    text.close("}");
}

/// Writes the function that finds a fragment.
fn fragment(text: &mut Text, named: &Named<'_>) {
    text.gap();
    text.doc("A fragment of the service: on a base, that of its owner; on a cell, one of those that answer.");
    let parameters = ["context: &mut Context<'_>".to_owned()];
    text.function("pub fn any", &parameters, "Result<Self, Denied>", '{');
    text.line(&format!("Ok(Self(context.service({:?})?))", named.entity_type.name));
    text.close("}");
}

/// Writes the function that gives the mailbox of the other part.
fn other_part(text: &mut Text, named: &Named<'_>, side: Side) {
    let parts = named.entity_type.parts;
    if !(parts.base && parts.cell) {
        return;
    }
    let (word, other) = match side {
        Side::Base => ("cell", "Cell"),
        Side::Cell => ("base", "Base"),
    };
    text.gap();
    text.doc(&format!("The {word} part of the same entity, wherever it is."));
    text.line("#[must_use]");
    let name = format!("pub fn to_{word}");
    text.function(&name, &["self".to_owned()], &format!("{other}Mailbox"), '{');
    text.line(&format!("{other}Mailbox(self.0.to_part(Part::{other}))"));
    text.close("}");
}

/// Writes the functions that create such parts.
fn creation(text: &mut Text, named: &Named<'_>, side: Side) {
    text.gap();
    match side {
        Side::Base => {
            text.doc("Makes an entity on this owner.");
            let parameters = ["context: &mut Context<'_>".into(), "new: NewBase".into()];
            text.function("pub fn create", &parameters, "Result<Self, Denied>", '{');
            text.line(&format!(
                "let made = context.create_base({:?}, new.into_properties())?;",
                named.entity_type.name
            ));
            text.line("Ok(Self(made))");
            text.close("}");
            creation_elsewhere(text, named);
            if named.entity_type.parts.cell {
                text.gap();
                text.doc("Asks for the entity's cell part, once this call is over.");
                let parameters =
                    ["self", "context: &mut Context<'_>", "place: Place", "new: NewCell"].map(str::to_owned);
                text.function("pub fn create_cell", &parameters, "Result<(), Denied>", '{');
                text.open("context.request(Request::CreateCell {");
                text.line("entity: self.0.entity,");
                text.line("place,");
                text.line("properties: new.into_properties(),");
                text.close("})");
                text.close("}");
                creation_near(text);
                creation_in_new_space(text);
            }
        }
        Side::Cell => {
            text.doc("Makes an entity that has only a cell part, on this owner.");
            let parameters = ["context: &mut Context<'_>", "place: Place", "new: NewCell"].map(str::to_owned);
            text.function("pub fn create_alone", &parameters, "Result<Self, Denied>", '{');
            text.line("let made = context.create_cell_only(TYPE, place, new.into_properties())?;");
            text.line("Ok(Self(made))");
            text.close("}");
        }
    }
}

/// Writes the function that creates a cell part near another entity.
fn creation_near(text: &mut Text) {
    text.gap();
    text.doc(
        "Asks for the entity's cell part at an offset from another entity, in its space, once this call is over and that \
         entity was found.",
    );
    let parameters = [
        "self",
        "context: &mut Context<'_>",
        "beside: Mailbox",
        "offset: Position",
        "new: NewCell",
    ]
    .map(str::to_owned);
    text.function("pub fn create_cell_near", &parameters, "Result<(), Denied>", '{');
    text.open("context.request(Request::CreateCellNear {");
    text.line("entity: self.0.entity,");
    text.line("beside,");
    text.line("offset,");
    text.line("properties: new.into_properties(),");
    text.close("})");
    text.close("}");
}

/// Writes the function that creates a cell part in a space of its own.
fn creation_in_new_space(text: &mut Text) {
    text.gap();
    text.doc("Asks for the entity's cell part in the lowest of these spaces that no entity has claimed, once this call is over.");
    let parameters = [
        "self",
        "context: &mut Context<'_>",
        "spaces: RangeInclusive<SpaceId>",
        "position: Position",
        "direction: Direction",
        "new: NewCell",
    ]
    .map(str::to_owned);
    text.function(
        "pub fn create_cell_in_new_space",
        &parameters,
        "Result<(), Denied>",
        '{',
    );
    text.open("context.request(Request::CreateCellInNewSpace {");
    text.line("entity: self.0.entity,");
    text.line("spaces,");
    text.line("position,");
    text.line("direction,");
    text.line("properties: new.into_properties(),");
    text.close("})");
    text.close("}");
}

/// Writes the functions that create base parts on other owners.
fn creation_elsewhere(text: &mut Text, named: &Named<'_>) {
    let functions = [
        (
            "create_anywhere",
            "Makes an entity on the owner that the director names; `learned` gets its mailbox.",
            None,
        ),
        (
            "create_beside",
            "Makes an entity on the home of another one; `learned` gets its mailbox.",
            Some("other"),
        ),
    ];
    for (name, about, other) in functions {
        text.gap();
        text.doc(about);
        let other_parameter = other.map(|name| format!("{name}: Mailbox"));
        let parameters: Vec<String> = std::iter::once("context: &mut Context<'_>".to_owned())
            .chain(other_parameter)
            .chain(["new: NewBase", "wait: Wait"].map(str::to_owned))
            .collect();
        text.function(&format!("pub fn {name}"), &parameters, "Result<(), Denied>", '{');
        text.line("let properties = new.into_properties();");
        let of = named.entity_type.name.as_str();
        let other = other.map_or_else(String::new, |name| format!("{name}, "));
        text.line(&format!("wait.{name}(context, {other}{of:?}, properties)"));
        text.close("}");
    }
}

fn call(text: &mut Text, named: &Named<'_>, method: &Method, scope: &mut Scope, side: Side) {
    let arguments = parameters(named, &method.args);
    let [one_way, two_way] = ["", "ask_"].map(|verb| scope.snake(&format!("{verb}{}", method.name)));
    let mut parameters = vec!["self".to_owned(), "context: &mut Context<'_>".to_owned()];
    parameters.extend(arguments.iter().map(|(name, spelled)| format!("{name}: {spelled}")));
    text.gap();
    text.doc(&about_method(method, side.word()));
    allow_many(text, parameters.len());
    text.function(&format!("pub fn {one_way}"), &parameters, "Result<(), Denied>", '{');
    write_args(text, &arguments);
    text.line(&format!("context.call(self.0, {:?}, args)", method.name));
    text.close("}");
    if method.is_two_way() {
        parameters.push("wait: Wait".to_owned());
        text.gap();
        text.doc(&format!("The same, and waits for what `{}` returns.", method.name));
        allow_many(text, parameters.len());
        text.function(&format!("pub fn {two_way}"), &parameters, "Result<(), Denied>", '{');
        write_args(text, &arguments);
        text.line(&format!("wait.ask(context, self.0, {:?}, args)", method.name));
        text.close("}");
    }
}

fn write_args(text: &mut Text, arguments: &[(String, String)]) {
    if arguments.is_empty() {
        text.line("let args = Vec::new();");
    } else {
        let values = arguments.iter().map(|(name, _)| format!("{name}.into_value()"));
        text.list("let args = vec![", &values.collect::<Vec<_>>(), "];");
    }
}

/// Writes the typed calls to the clients of a type.
pub(super) fn clients(text: &mut Text, named: &Named<'_>) {
    text.gap();
    text.doc(&format!("Clients that see a `{}`.", named.entity_type.name));
    text.open("pub struct Clients<'e, 'd> {");
    text.line("context: &'e mut Context<'d>,");
    text.line("to: node::Recipients,");
    text.close("}");
    text.gap();
    text.open("impl<'e, 'd> Clients<'e, 'd> {");
    text.doc("These of them.");
    let parameters = ["context: &'e mut Context<'d>".into(), "audience: Audience".into()];
    text.function("pub fn new", &parameters, "Self", '{');
    text.line("let to = node::Recipients::Audience(audience);");
    text.line("Self { context, to }");
    text.close("}");
    if named.entity_type.parts.cell {
        text.gap();
        text.doc("The own client of the calling part alone, for an entity that it has in view.");
        let parameters = ["context: &'e mut Context<'d>".into(), "entity: EntityId".into()];
        text.function("pub fn in_view", &parameters, "Self", '{');
        text.line("let to = node::Recipients::InView(entity);");
        text.line("Self { context, to }");
        text.close("}");
    }
    let mut scope = Scope::with(&["in_view", "new"]);
    for method in &named.entity_type.client_methods {
        let arguments = parameters_of(named, method);
        let mut parameters = vec!["&mut self".to_owned()];
        parameters.extend(arguments.iter().map(|(name, spelled)| format!("{name}: {spelled}")));
        text.gap();
        text.doc(&about_method(method, "client"));
        allow_many(text, parameters.len());
        let name = scope.snake(&method.name);
        text.function(&format!("pub fn {name}"), &parameters, "Result<(), Denied>", '{');
        write_args(text, &arguments);
        text.line(&format!("self.to.invoke(self.context, {:?}, args)", method.name));
        text.close("}");
    }
    text.close("}");
}

fn parameters_of(named: &Named<'_>, method: &Method) -> Vec<(String, String)> {
    parameters(named, &method.args)
}
