//! The trait of a whole game, and the behaviour that calls it.

use super::{Named, Side};
use crate::{codegen::CodeParts, codegen::text::Text, codegen::text::WIDTH};

/// The notifications of behaviour: the method of `annals_node::Behaviour`, its parameters beside the context, and the
/// occasion.
const NEWS: [(&str, &[&str], &str); 22] = [
    ("created", &[], "Created"),
    ("restored", &[], "Restored"),
    ("destroyed", &[], "Destroyed"),
    (
        "replied",
        &["then: u32", "note: &[u8]", "outcome: &Outcome"],
        "replied(then, note, outcome)",
    ),
    (
        "learned",
        &["then: u32", "note: &[u8]", "outcome: &Result<Learned, NotLearned>"],
        "learned(then, note, outcome)",
    ),
    ("timer", &["timer: TimerId", "tag: u32"], "Timer { timer, tag }"),
    (
        "controller",
        &["controller: ControllerId", "tag: u32", "signal: ControllerSignal"],
        "controller(controller, tag, signal)",
    ),
    ("teleported", &["before: SpaceId"], "Teleported { before }"),
    ("teleport_failed", &["why: &TeleportFailed"], "TeleportFailed { why }"),
    ("space_gone", &[], "SpaceGone"),
    ("client_attached", &[], "ClientAttached"),
    ("client_lost", &[], "ClientLost"),
    ("cell_gained", &[], "CellGained"),
    ("cell_lost", &[], "CellLost"),
    (
        "global_changed",
        &["scope: GlobalScope", "key: &str"],
        "GlobalChanged { scope, key }",
    ),
    ("app_ready", &["is_bootstrap: bool"], "AppReady { is_bootstrap }"),
    ("app_shutting_down", &[], "AppShuttingDown"),
    ("app_shut_down", &["stage: u8"], "AppShutDown { stage }"),
    (
        "request_denied",
        &["request: &Request", "why: &Denied"],
        "RequestDenied { request, why }",
    ),
    ("calls_lost", &["to: Address"], "CallsLost { to }"),
    ("holdings_known", &[], "HoldingsKnown"),
    (
        "booked",
        &["booking: &Booking", "order: Option<&Order>"],
        "Booked { booking, order }",
    ),
];

/// Writes the trait and the behaviour.
pub(super) fn write(text: &mut Text, types: &[Named<'_>], parts: CodeParts) {
    let wanted: Vec<(&Named<'_>, Side)> = types
        .iter()
        .flat_map(|named| named.sides().map(move |side| (named, side)))
        .filter(|(_, side)| match side {
            Side::Base => parts.base,
            Side::Cell => parts.cell,
        })
        .collect();
    write_trait(text, &wanted);
    write_dispatcher(text, &wanted);
}

/// The trait of a whole game.
fn write_trait(text: &mut Text, wanted: &[(&Named<'_>, Side)]) {
    text.gap();
    text.doc("A game of this world: what all of its parts do.");
    let bounds: Vec<String> = wanted
        .iter()
        .map(|(named, side)| format!("{}::{}Behaviour", named.module, side.name()))
        .chain(["Send".to_owned(), "Sync".to_owned()])
        .collect();
    let whole = format!("pub trait Game: {} {{", bounds.join(" + "));
    if whole.len() <= WIDTH {
        text.open(&whole);
    } else {
        text.line("pub trait Game:");
        for (at, bound) in bounds.iter().enumerate() {
            let plus = if at == 0 { "" } else { "+ " };
            text.line(&format!("    {plus}{bound}"));
        }
        text.open("{");
    }
    text.doc("What the realm begins with.");
    text.open("fn bootstrap(&self) -> Option<Bootstrap> {");
    text.line("None");
    text.close("}");
    text.gap();
    text.doc("Whether an entity's client, which is fast enough, may move it there.");
    text.open("fn client_moves(&self, _context: &mut Context<'_>, _to: Place) -> bool {");
    text.line("true");
    text.close("}");
    text.gap();
    text.doc("Whether `global_changed` is called for parts of this type: let few entities follow.");
    text.open("fn follows_global_data(&self, _entity_type: TypeId) -> bool {");
    text.line("false");
    text.close("}");
    text.close("}");
}

/// The behaviour that calls it.
fn write_dispatcher(text: &mut Text, wanted: &[(&Named<'_>, Side)]) {
    text.gap();
    text.doc("The game as services run it.");
    text.line("#[derive(Debug)]");
    text.open("pub struct Dispatcher<G> {");
    text.line("game: G,");
    text.close("}");
    text.gap();
    text.open("impl<G: Game> Dispatcher<G> {");
    text.doc("For a realm that runs on this schema, which must be the one that this was generated from.");
    text.function(
        "pub fn new",
        &["schema: &Schema".into(), "game: G".into()],
        "Result<Self, OtherSchema>",
        '{',
    );
    text.line("node::check_schema(SCHEMA, schema)?;");
    text.line("Ok(Self { game })");
    text.close("}");
    text.gap();
    dispatch(text, wanted);
    text.close("}");
    text.gap();
    text.open("impl<G: Game> Behaviour for Dispatcher<G> {");
    text.open("fn bootstrap(&self) -> Option<Bootstrap> {");
    text.line("self.game.bootstrap()");
    text.close("}");
    text.gap();
    text.open("fn client_moves(&self, context: &mut Context<'_>, to: Place) -> bool {");
    text.line("self.game.client_moves(context, to)");
    text.close("}");
    text.gap();
    text.open("fn follows_global_data(&self, entity_type: TypeId) -> bool {");
    text.line("self.game.follows_global_data(entity_type)");
    text.close("}");
    call(text, wanted);
    ghost_changed(text, wanted);
    for (method, parameters, occasion) in NEWS {
        let mut all = vec!["&self".to_owned(), "context: &mut Context<'_>".to_owned()];
        all.extend(parameters.iter().map(|parameter| (*parameter).to_owned()));
        text.gap();
        text.function(&format!("fn {method}"), &all, "", '{');
        if parameters.is_empty() {
            text.line(&format!("self.dispatch(context, Occasion::{occasion});"));
        } else {
            text.line(&format!("let occasion = Occasion::{occasion};"));
            text.line("self.dispatch(context, occasion);");
        }
        text.close("}");
    }
    text.close("}");
}

fn dispatch(text: &mut Text, wanted: &[(&Named<'_>, Side)]) {
    let unused = if wanted.is_empty() { "_" } else { "" };
    text.open(&format!(
        "fn dispatch(&self, context: &mut Context<'_>, {unused}occasion: Occasion<'_>) {{"
    ));
    text.open("let done = match (context.entity_type().id, context.part()) {");
    for (named, side) in wanted {
        let (module, name, word) = (&named.module, side.name(), side.word());
        arm(
            text,
            &format!("({module}::TYPE, Part::{name})"),
            &format!("{module}::dispatch_{word}"),
            &["context", "occasion"],
        );
    }
    text.line("_ => Ok(()),");
    text.close("};");
    text.open("if let Err(denied) = done {");
    text.line("context.report(denied);");
    text.close("}");
    text.close("}");
}

fn call(text: &mut Text, wanted: &[(&Named<'_>, Side)]) {
    text.gap();
    let is_unused = wanted.iter().all(|(named, side)| named.methods(*side).is_empty());
    let parameters = [
        "&self",
        "context: &mut Context<'_>",
        "method: MemberId",
        if is_unused { "_args: &[Value]" } else { "args: &[Value]" },
        "caller: &Caller",
    ]
    .map(str::to_owned);
    text.function("fn call", &parameters, "Answer", '{');
    text.line("let (own_type, part) = (context.entity_type().id, context.part());");
    text.open("let done = match (own_type, part) {");
    for (named, side) in wanted {
        if named.methods(*side).is_empty() {
            continue;
        }
        let (module, name, word) = (&named.module, side.name(), side.word());
        let arguments = ["context", "method", "args", "caller"];
        arm(
            text,
            &format!("({module}::TYPE, Part::{name})"),
            &format!("{module}::call_{word}"),
            &arguments,
        );
    }
    text.line("_ => Err(node::no_method(&context.entity_type().name, part, method)),");
    text.close("};");
    text.line("node::answer(context, caller, done)");
    text.close("}");
}

/// Writes the callbacks about ghosts.
fn ghost_changed(text: &mut Text, wanted: &[(&Named<'_>, Side)]) {
    let has_ghosts = |(named, side): &&(&Named<'_>, Side)| {
        let mut properties = named.entity_type.properties.iter();
        *side == Side::Cell && properties.any(|property| property.distribution.to_ghosts())
    };
    let ghosted: Vec<_> = wanted.iter().filter(has_ghosts).collect();
    if ghosted.is_empty() {
        return;
    }
    text.gap();
    let parameters = [
        "&self",
        "ghost: &GhostView<'_>",
        "property: MemberId",
        "replaced: &Replaced",
    ]
    .map(str::to_owned);
    text.function("fn ghost_changed", &parameters, "", '{');
    text.open("match ghost.entity_type.id {");
    for (named, _) in ghosted {
        let module = &named.module;
        let arguments = ["ghost", "property", "replaced"];
        arm(
            text,
            &format!("{module}::TYPE"),
            &format!("{module}::dispatch_ghost"),
            &arguments,
        );
    }
    text.line("_ => {}");
    text.close("}");
    text.close("}");
}

/// Writes an arm that calls a function of a type's module, formatted as by rustfmt.
fn arm(text: &mut Text, pattern: &str, function: &str, arguments: &[&str]) {
    const INDENT: usize = 12;
    let call = format!("{function}(&self.game, {})", arguments.join(", "));
    if INDENT + pattern.len() + " => ,".len() + call.len() <= WIDTH {
        text.line(&format!("{pattern} => {call},"));
    } else {
        text.open(&format!("{pattern} => {{"));
        text.line(&call);
        text.close("}");
    }
}
