//! A part as clients see it: its properties, its exposed methods, and the callbacks of a client.

use annals_def::{Method, Property};

use super::{
    Named, Side, about_method, about_property, allow_many,
    changed::{Callbacks, Listener},
    mailbox::parameters,
};
use crate::codegen::{naming::Scope, text::Text};

/// The callbacks of clients.
const LISTENER: Listener = Listener {
    receiver: "&mut self",
    seen: "seen",
    seen_type: "&Client<'_>",
    of: "",
};

/// Whether clients ever see an entity as this type.
pub(super) fn is_seen(named: &Named<'_>) -> bool {
    named.entity_type.parts.client && named.entity_type.client_type.is_none()
}

/// The properties that clients see.
fn properties<'n>(named: &'n Named<'_>) -> Vec<&'n Property> {
    let properties = named.entity_type.properties.iter();
    properties.filter(|property| property.client_id.is_some()).collect()
}

/// Writes everything for the client part.
pub(super) fn write(text: &mut Text, named: &Named<'_>) {
    view(text, named);
    for side in named.sides() {
        calls(text, named, side);
    }
    behaviour(text, named);
    dispatch(text, named);
}

fn view(text: &mut Text, named: &Named<'_>) {
    text.gap();
    text.doc(&format!(
        "A `{}` in view. A property that no view shows is None.",
        named.entity_type.name
    ));
    text.open("pub struct Client<'v> {");
    text.doc("Who sees it.");
    text.line("pub core: &'v ClientCore,");
    text.doc("Which entity.");
    text.line("pub entity: EntityId,");
    text.close("}");
    text.gap();
    text.open("impl<'v> Client<'v> {");
    text.doc("The entity, if it is in view and of this type.");
    text.line("#[must_use]");
    let wanted = ["core: &'v ClientCore".to_owned(), "entity: EntityId".to_owned()];
    text.function("pub fn of", &wanted, "Option<Self>", '{');
    text.line("client::is_of(core, entity, TYPE).then_some(Self { core, entity })");
    text.close("}");
    let mut scope = Scope::with(&["of"]);
    for property in properties(named) {
        text.gap();
        text.doc(&about_property(property));
        text.line("#[must_use]");
        let name = scope.snake(&property.name);
        let returns = format!("Option<{}>", named.spelled(&property.data_type));
        text.function(&format!("pub fn {name}"), &["&self".into()], &returns, '{');
        text.line(&format!("client::read(self.core, self.entity, {:?})", property.name));
        text.close("}");
    }
    text.close("}");
}

fn calls(text: &mut Text, named: &Named<'_>, side: Side) {
    let exposed: Vec<&Method> = named
        .methods(side)
        .iter()
        .filter(|method| method.client_id.is_some())
        .collect();
    if exposed.is_empty() {
        return;
    }
    let name = side.name();
    text.gap();
    text.doc(&format!(
        "What clients can call of the {} part of a `{}`.",
        side.word(),
        named.entity_type.name
    ));
    text.line("#[derive(Clone, Copy, Debug, PartialEq, Eq)]");
    text.line(&format!("pub struct {name}Calls(pub EntityId);"));
    text.gap();
    text.open(&format!("impl {name}Calls {{"));
    let mut scope = Scope::default();
    for method in exposed {
        let arguments = parameters(named, &method.args);
        let mut all = ["self", "core: &mut ClientCore", "now: Millis"]
            .map(str::to_owned)
            .to_vec();
        all.extend(arguments.iter().map(|(name, spelled)| format!("{name}: {spelled}")));
        text.gap();
        text.doc(&about_method(method, side.word()));
        allow_many(text, all.len());
        text.function(&format!("pub fn {}", scope.snake(&method.name)), &all, "Called", '{');
        let values: Vec<String> = arguments
            .iter()
            .map(|(name, _)| format!("{name}.into_value()"))
            .collect();
        text.list("let args = [", &values, "];");
        text.line(&format!(
            "core.call(now, self.0, Part::{name}, {:?}, &args)",
            method.name
        ));
        text.close("}");
    }
    text.close("}");
}

/// A callback for the answers to calls of an exposed method that returns values.
struct Answered<'n> {
    name: String,
    side: Side,
    /// The method's number among the exposed ones of the part.
    id: u16,
    method: &'n Method,
}

impl Answered<'_> {
    /// The type of what the method returns: a value, or a tuple of several.
    fn returned(&self, named: &Named<'_>) -> String {
        let types: Vec<String> = parameters(named, &self.method.returns)
            .into_iter()
            .map(|(_, spelled)| spelled)
            .collect();
        tuple(&types)
    }
}

/// A single item by itself, several as a tuple.
fn tuple(items: &[String]) -> String {
    match items {
        [one] => one.clone(),
        several => format!("({})", several.join(", ")),
    }
}

/// The callbacks for answers, with names that are free in `scope`.
fn answered<'n>(named: &'n Named<'_>, scope: &mut Scope) -> Vec<Answered<'n>> {
    let mut all = Vec::new();
    for side in named.sides() {
        for method in named.methods(side).iter().filter(|method| method.is_two_way()) {
            let Some(id) = method.client_id else { continue };
            let name = scope.snake(&format!("{}_answered", method.name));
            all.push(Answered { name, side, id, method });
        }
    }
    all
}

/// The names in the trait: of the methods, of the properties' callbacks, and of those for answers.
fn names<'n>(named: &'n Named<'_>) -> (Vec<String>, Vec<Callbacks<'n>>, Vec<Answered<'n>>) {
    let mut scope = Scope::with(&["entered"]);
    let methods = &named.entity_type.client_methods;
    let methods = methods.iter().map(|method| scope.snake(&method.name)).collect();
    let callbacks = properties(named).into_iter();
    let callbacks = callbacks
        .map(|property| Callbacks::of(property, "", &mut scope))
        .collect();
    let answered = answered(named, &mut scope);
    (methods, callbacks, answered)
}

fn behaviour(text: &mut Text, named: &Named<'_>) {
    let (method_names, callbacks, answered) = names(named);
    text.gap();
    text.doc(&format!(
        "What a client does with events of a `{}`.",
        named.entity_type.name
    ));
    text.open("pub trait ClientBehaviour {");
    text.doc("It came into a view.");
    let parameters_of_entered = ["&mut self", "_seen: &Client<'_>", "_part: Part"].map(str::to_owned);
    text.function("fn entered", &parameters_of_entered, "", '{');
    text.undo_open("{}");
    for (method, name) in named.entity_type.client_methods.iter().zip(method_names) {
        let mut all = ["&mut self", "seen: &Client<'_>"].map(str::to_owned).to_vec();
        let arguments = parameters(named, &method.args);
        all.extend(arguments.iter().map(|(name, spelled)| format!("{name}: {spelled}")));
        text.gap();
        text.doc(&about_method(method, "client"));
        allow_many(text, all.len());
        text.function(&format!("fn {name}"), &all, "", ';');
    }
    for callbacks in callbacks {
        callbacks.write(text, named, &LISTENER);
    }
    for answered in answered {
        let outcome = format!("_outcome: Result<{}, CallError>", answered.returned(named));
        let all = ["&mut self", "_seen: &Client<'_>", "_call: CallNumber", outcome.as_str()];
        let (method, part) = (&answered.method.name, answered.side.word());
        text.gap();
        text.doc(&format!("A call of `{method}` of the {part} part was answered."));
        text.function(&format!("fn {}", answered.name), &all.map(str::to_owned), "", '{');
        text.close("}");
    }
    text.close("}");
}

/// The function that calls the trait.
fn dispatch(text: &mut Text, named: &Named<'_>) {
    let (method_names, callbacks, answered) = names(named);
    let methods = &named.entity_type.client_methods;
    text.gap();
    let all = ["game: &mut G", "seen: &Client<'_>", "event: &EntityEvent<'_>"].map(str::to_owned);
    text.function(
        "pub(super) fn dispatch_client<G: ClientBehaviour>",
        &all,
        "Result<(), Mismatch>",
        '{',
    );
    text.open("match event {");
    text.line("EntityEvent::Entered { part } => game.entered(seen, *part),");
    for (method, name) in methods.iter().zip(method_names) {
        let Some(id) = method.client_id else { continue };
        text.open(&format!("EntityEvent::Called {{ method: {id}, args }} => {{"));
        let arguments: Vec<String> = parameters(named, &method.args)
            .into_iter()
            .map(|(name, _)| name)
            .collect();
        text.list("let [", &arguments, "] = client::arguments(args)?;");
        for (argument, declared) in arguments.iter().zip(&method.args) {
            text.line(&format!(
                "let {argument} = typed::field({:?}, {argument})?;",
                declared.name
            ));
        }
        let mut given = vec!["seen".to_owned()];
        given.extend(arguments);
        text.list(&format!("game.{name}("), &given, ");");
        text.close("}");
    }
    for callbacks in callbacks {
        dispatch_changed(text, &callbacks);
    }
    for answered in answered {
        dispatch_answered(text, named, &answered);
    }
    text.line("EntityEvent::Called { .. }");
    text.line("| EntityEvent::Changed { .. }");
    text.line("| EntityEvent::Answered { .. } => {}");
    text.close("}");
    text.line("Ok(())");
    text.close("}");
}

fn dispatch_answered(text: &mut Text, named: &Named<'_>, answered: &Answered<'_>) {
    let Answered { name, side, id, method } = answered;
    text.open("EntityEvent::Answered {");
    text.line(&format!("part: Part::{},", side.name()));
    text.line(&format!("method: {id},"));
    text.line("call,");
    text.line("outcome,");
    text.close("} => {");
    text.indent();
    text.open("let outcome = match outcome {");
    text.open("Ok(values) => {");
    let names: Vec<String> = parameters(named, &method.returns)
        .into_iter()
        .map(|(name, _)| name)
        .collect();
    text.list("let [", &names, "] = client::arguments(values)?;");
    for (name, declared) in names.iter().zip(&method.returns) {
        text.line(&format!("let {name} = typed::field({:?}, {name})?;", declared.name));
    }
    text.line(&format!("Ok({})", tuple(&names)));
    text.close("}");
    text.line("Err(error) => Err(error.clone()),");
    text.close("};");
    text.line(&format!("game.{name}(seen, *call, outcome);"));
    text.close("}");
}

fn dispatch_changed(text: &mut Text, callbacks: &Callbacks<'_>) {
    let Callbacks {
        property,
        set,
        nested,
        slice,
    } = callbacks;
    let Some(id) = property.client_id else { return };
    text.open("EntityEvent::Changed {");
    text.line(&format!("property: {id},"));
    text.line("change,");
    text.line("..");
    text.close("} => match change {");
    text.indent();
    text.open("Replaced::Whole { old } => {");
    text.line(&format!("let old = typed::field({:?}, old)?;", property.name));
    text.line(&format!("game.{set}(seen, Some(old));"));
    text.close("}");
    if let Some(nested) = nested {
        text.open("Replaced::Nested { path, old } => {");
        text.line("let path = event.steps(seen.core, path);");
        text.line(&format!("game.{nested}(seen, &path, old);"));
        text.close("}");
    }
    if let Some(slice) = slice {
        text.open("Replaced::Slice { path, range, old } => {");
        text.line("let path = event.steps(seen.core, path);");
        text.line(&format!("game.{slice}(seen, &path, range.clone(), old);"));
        text.close("}");
    }
    match (nested, slice) {
        (Some(_), Some(_)) => {}
        (Some(_), None) => text.line(&format!("Replaced::Slice {{ .. }} => game.{set}(seen, None),")),
        _ => {
            text.open("Replaced::Nested { .. } | Replaced::Slice { .. } => {");
            text.line(&format!("game.{set}(seen, None);"));
            text.close("}");
        }
    }
    text.close("},");
}

/// Writes the code that combines the client parts.
pub(super) fn write_game(text: &mut Text, types: &[Named<'_>]) {
    let seen: Vec<&Named<'_>> = types.iter().filter(|named| is_seen(named)).collect();
    text.gap();
    text.doc("A client of this world: what it does with events.");
    match &seen[..] {
        [] => text.line("pub trait ClientGame {}"),
        [one] => text.line(&format!("pub trait ClientGame: {}::ClientBehaviour {{}}", one.module)),
        [first, rest @ ..] => {
            text.line("pub trait ClientGame:");
            text.line(&format!("    {}::ClientBehaviour", first.module));
            for named in rest {
                text.line(&format!("    + {}::ClientBehaviour", named.module));
            }
            text.line("{");
            text.line("}");
        }
    }
    text.gap();
    text.doc("Dispatches events to a client's game.");
    text.line("#[derive(Debug)]");
    text.open("pub struct ClientDispatcher<G> {");
    text.doc("The game.");
    text.line("pub game: G,");
    text.close("}");
    text.gap();
    text.open("impl<G: ClientGame> ClientDispatcher<G> {");
    text.doc(
        "For a client with this schema, which must show clients the same as the one that this was generated from.",
    );
    text.function(
        "pub fn new",
        &["schema: &Schema".into(), "game: G".into()],
        "Result<Self, InterfaceMismatch>",
        '{',
    );
    text.line("client::check_schema(CLIENT_SCHEMA, schema)?;");
    text.line("Ok(Self { game })");
    text.close("}");
    text.gap();
    text.doc("Dispatches an event to the game, if it is one of an entity in view.");
    let all = ["&mut self", "core: &ClientCore", "event: &Event"].map(str::to_owned);
    text.function("pub fn handle", &all, "Result<(), Mismatch>", '{');
    if seen.is_empty() {
        text.line("let _ = (core, event);");
        text.line("Ok(())");
    } else {
        text.open("for (type_id, entity, event) in client::entity_events(core, event) {");
        text.open("match type_id {");
        for named in seen {
            let module = &named.module;
            text.open(&format!("{module}::TYPE => {{"));
            text.line(&format!("let seen = {module}::Client {{ core, entity }};"));
            text.line(&format!("{module}::dispatch_client(&mut self.game, &seen, &event)?;"));
            text.close("}");
        }
        text.line("_ => {}");
        text.close("}");
        text.close("}");
        text.line("Ok(())");
    }
    text.close("}");
    text.close("}");
}
