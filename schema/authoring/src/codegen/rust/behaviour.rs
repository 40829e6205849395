//! The trait that a game implements for a part, and the functions that call it.

use super::{Named, Side, about_method, allow_many, changed::Callbacks, ghost, mailbox::parameters};
use crate::codegen::{naming::Scope, text::Text};

/// A callback: its name, the variant of `Occasion`, its fields with their types, and the documentation.
type Callback = (
    &'static str,
    &'static str,
    &'static [(&'static str, &'static str)],
    &'static str,
);

/// The callback whose default returns the denial as an error, so that it is logged.
const REPORTED: &str = "request_denied";

const CALLBACKS: [Callback; 12] = [
    ("created", "Created", &[], "The part has begun to exist."),
    (
        "restored",
        "Restored",
        &[],
        "The part is back after its process was lost.",
    ),
    ("destroyed", "Destroyed", &[], "The part is about to cease."),
    (
        "replied",
        "Replied",
        &[("then", "u32"), ("note", "&[u8]"), ("outcome", "&Outcome")],
        "An awaited reply has come, or will not.",
    ),
    (
        "timer",
        "Timer",
        &[("timer", "TimerId"), ("tag", "u32")],
        "A timer fired.",
    ),
    (
        "global_changed",
        "GlobalChanged",
        &[("scope", "GlobalScope"), ("key", "&str")],
        "Global data or a registration changed, and the game follows it for this type.",
    ),
    (
        "app_ready",
        "AppReady",
        &[("is_bootstrap", "bool")],
        "The part is ready to serve, after the realm's start as after a take-over.",
    ),
    (
        "app_shutting_down",
        "AppShuttingDown",
        &[],
        "The realm is about to stop: begin nothing that takes long.",
    ),
    (
        "app_shut_down",
        "AppShutDown",
        &[("stage", "u8")],
        "The realm stops: 0 before clients are sent away, 1 before entities are written, 2 for the last time.",
    ),
    (
        REPORTED,
        "RequestDenied",
        &[("request", "&Request"), ("why", "&Denied")],
        "Something that it asked its owner for was not done; the process's log says so unless the game does something else.",
    ),
    (
        "calls_lost",
        "CallsLost",
        &[("to", "Address")],
        "The receiver of one-way calls is gone; the newest of them may not have been taken.",
    ),
    (
        "learned",
        "Learned",
        &[
            ("then", "u32"),
            ("note", "&[u8]"),
            ("outcome", "&Result<Learned, NotLearned>"),
        ],
        "The answer of the database, the director or another owner has come, or will not.",
    ),
];

const BASE_CALLBACKS: [Callback; 6] = [
    (
        "client_attached",
        "ClientAttached",
        &[],
        "A client controls the entity from now on.",
    ),
    ("client_lost", "ClientLost", &[], "The client is gone for good."),
    ("cell_gained", "CellGained", &[], "The entity has a cell part now."),
    ("cell_lost", "CellLost", &[], "The entity has no cell part any more."),
    (
        "holdings_known",
        "HoldingsKnown",
        &[],
        "What the entity holds in the ledger is known from now on.",
    ),
    (
        "booked",
        "Booked",
        &[("booking", "&Booking"), ("order", "Option<&Order>")],
        "The ledger did something that concerns the entity.",
    ),
];

const CELL_CALLBACKS: [Callback; 4] = [
    (
        "controller",
        "Controller",
        &[
            ("controller", "ControllerId"),
            ("tag", "u32"),
            ("signal", "ControllerSignal"),
        ],
        "Something became of a controller: it arrived, somebody is in a trap, and the like.",
    ),
    (
        "teleported",
        "Teleported",
        &[("before", "SpaceId")],
        "It was put somewhere and stands there now; before, it was in that space.",
    ),
    (
        "teleport_failed",
        "TeleportFailed",
        &[("why", "&TeleportFailed")],
        "It was not put where it was wanted, and stands where it stood.",
    ),
    (
        "space_gone",
        "SpaceGone",
        &[],
        "Its space was destroyed, and it ceases unless it asks to be put elsewhere.",
    ),
];

/// Callbacks that a fragment never gets: it has no client, no cell part and no assets, and exists as long as its owner.
const NOT_OF_FRAGMENTS: [&str; 7] = [
    "destroyed",
    "client_attached",
    "client_lost",
    "cell_gained",
    "cell_lost",
    "holdings_known",
    "booked",
];

/// Whether a part gets this callback.
fn is_wanted(named: &Named<'_>, side: Side, callback: &Callback) -> bool {
    let other: &[Callback] = match side {
        Side::Base => &CELL_CALLBACKS,
        Side::Cell => &BASE_CALLBACKS,
    };
    let is_others = other.iter().any(|(name, ..)| *name == callback.0);
    let is_without = named.is_service && NOT_OF_FRAGMENTS.contains(&callback.0);
    !is_others && !is_without
}

fn all_callbacks() -> impl Iterator<Item = &'static Callback> {
    CALLBACKS.iter().chain(&BASE_CALLBACKS).chain(&CELL_CALLBACKS)
}

fn callbacks(named: &Named<'_>, side: Side) -> impl Iterator<Item = &'static Callback> {
    all_callbacks().filter(move |callback| is_wanted(named, side, callback))
}

/// The names of the methods in the trait, and of the callbacks about ghosts.
fn method_names<'n>(named: &'n Named<'_>, side: Side) -> (Vec<String>, Vec<Callbacks<'n>>) {
    let taken: Vec<&str> = callbacks(named, side).map(|(name, ..)| *name).collect();
    let mut scope = Scope::with(&taken);
    let methods = named.methods(side).iter();
    let names = methods.map(|method| scope.snake(&method.name)).collect();
    let callbacks = match side {
        Side::Base => Vec::new(),
        Side::Cell => ghost::callbacks(named, &mut scope),
    };
    (names, callbacks)
}

/// Writes the trait, and the functions that call it.
pub(super) fn write(text: &mut Text, named: &Named<'_>, side: Side) {
    let (names, ghosts) = method_names(named, side);
    if !ghosts.is_empty() {
        ghost::write_view(text, named, &ghosts);
    }
    write_trait(text, named, (side, &names), &ghosts);
    write_dispatch(text, named, side);
    if !ghosts.is_empty() {
        ghost::write_dispatch(text, &ghosts);
    }
    if !names.is_empty() {
        write_call(text, named, side, &names);
    }
}

fn write_trait(text: &mut Text, named: &Named<'_>, (side, names): (Side, &[String]), ghosts: &[Callbacks<'_>]) {
    let name = side.name();
    text.gap();
    text.doc(&format!(
        "What the {} part of `{}` does.",
        side.word(),
        named.entity_type.name
    ));
    text.open(&format!("pub trait {name}Behaviour {{"));
    for (callback, _, fields, about) in callbacks(named, side) {
        text.gap();
        text.doc(about);
        let mut parameters = vec!["&self".to_owned(), format!("_own: &mut {name}<'_, '_>")];
        let (used, body) = match *callback {
            REPORTED => ("why", "Err(why.clone())"),
            _ => ("", "Ok(())"),
        };
        parameters.extend(fields.iter().map(|(field, spelled)| {
            let unused = if *field == used { "" } else { "_" };
            format!("{unused}{field}: {spelled}")
        }));
        text.function(&format!("fn {callback}"), &parameters, "Result<(), Denied>", '{');
        text.line(body);
        text.close("}");
    }
    for ((method, reply), name_in_code) in named.methods(side).iter().zip(named.replies(side)).zip(names) {
        let mut parameters_in_code = vec![
            "&self".to_owned(),
            format!("own: &mut {name}<'_, '_>"),
            "caller: &Caller".to_owned(),
        ];
        let arguments = parameters(named, &method.args);
        parameters_in_code.extend(arguments.iter().map(|(name, spelled)| format!("{name}: {spelled}")));
        let returns = match reply {
            Some(reply) => format!("Result<Reply<{reply}>, Failure>"),
            None => "Result<(), Failure>".to_owned(),
        };
        text.gap();
        text.doc(&about_method(method, side.word()));
        allow_many(text, parameters_in_code.len());
        text.function(&format!("fn {name_in_code}"), &parameters_in_code, &returns, ';');
    }
    ghost::write_callbacks(text, named, ghosts);
    text.close("}");
}

fn write_dispatch(text: &mut Text, named: &Named<'_>, side: Side) {
    let (name, word) = (side.name(), side.word());
    text.gap();
    let parameters = ["game: &G", "context: &mut Context<'_>", "occasion: Occasion<'_>"].map(str::to_owned);
    let head = format!("pub(super) fn dispatch_{word}<G: {name}Behaviour>");
    text.function(&head, &parameters, "Result<(), Denied>", '{');
    text.line(&format!("let own = &mut {name} {{ context }};"));
    text.open("match occasion {");
    for (callback, variant, fields, _) in callbacks(named, side) {
        let fields: Vec<&str> = fields.iter().map(|(field, _)| *field).collect();
        let list = fields.join(", ");
        let pattern = if fields.is_empty() {
            String::new()
        } else {
            format!(" {{ {list} }}")
        };
        let rest = if fields.is_empty() {
            String::new()
        } else {
            format!(", {list}")
        };
        let call = format!("game.{callback}(own{rest})");
        if fields.len() > 2 {
            text.open(&format!("Occasion::{variant} {{"));
            for field in &fields {
                text.line(&format!("{field},"));
            }
            text.close(&format!("}} => {call},"));
        } else {
            text.line(&format!("Occasion::{variant}{pattern} => {call},"));
        }
    }
    let never = all_callbacks().filter(|callback| !is_wanted(named, side, callback));
    let never: Vec<&Callback> = never.collect();
    for (at, (_, variant, fields, _)) in never.iter().enumerate() {
        let fields = if fields.is_empty() { "" } else { " { .. }" };
        let begin = if at == 0 { "" } else { "| " };
        let end = if at + 1 == never.len() { " => Ok(())," } else { "" };
        text.line(&format!("{begin}Occasion::{variant}{fields}{end}"));
    }
    text.close("}");
    text.close("}");
}

fn write_call(text: &mut Text, named: &Named<'_>, side: Side, names: &[String]) {
    let (name, word) = (side.name(), side.word());
    text.gap();
    let parameters_in_code = [
        "game: &G",
        "context: &mut Context<'_>",
        "method: MemberId",
        "args: &[Value]",
        "caller: &Caller",
    ]
    .map(str::to_owned);
    let head = format!("pub(super) fn call_{word}<G: {name}Behaviour>");
    text.function(&head, &parameters_in_code, "Result<Answer, Failure>", '{');
    text.line(&format!("let own = &mut {name} {{ context }};"));
    text.open("match method.0 {");
    for (method, name_in_code) in named.methods(side).iter().zip(names) {
        let arguments: Vec<String> = parameters(named, &method.args)
            .into_iter()
            .map(|(name, _)| name)
            .collect();
        text.open(&format!("{} => {{", method.index.0));
        text.list("let [", &arguments, "] = node::arguments(args)?;");
        for (argument, declared) in arguments.iter().zip(&method.args) {
            text.line(&format!(
                "let {argument} = node::argument({:?}, {argument})?;",
                declared.name
            ));
        }
        let mut given = vec!["own".to_owned(), "caller".to_owned()];
        given.extend(arguments);
        if method.is_two_way() {
            text.list(&format!("let reply = game.{name_in_code}("), &given, ")?;");
            text.line("Ok(reply.into())");
        } else {
            text.list(&format!("game.{name_in_code}("), &given, ")?;");
            text.line("Ok(Answer::DONE)");
        }
        text.close("}");
    }
    let owner = &named.entity_type.name;
    text.line(&format!("_ => Err(node::no_method({owner:?}, Part::{name}, method)),"));
    text.close("}");
    text.close("}");
}
