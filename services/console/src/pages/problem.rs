//! Pages that say why there is no answer.

use maud::{Markup, html};

use crate::{casework::NoAnswer, people::Role};

pub(crate) fn missing() -> Markup {
    html! {
        h1 { "No such page" }
        p { "Nothing is at this address. " a href="/" { "Search for it instead" } "." }
    }
}

pub(crate) fn role(role: Role) -> Markup {
    html! {
        h1 { "Not for your role" }
        p {
            "You are logged in as " (role) ". "
            @match role {
                Role::Operator => "Only auditors can see what happened between players.",
                Role::Auditor => "Only operators can see how the realm runs.",
            }
        }
    }
}

/// The realm cannot be watched: its processes do not answer.
pub(crate) fn no_live_answer(why: &str) -> Markup {
    html! {
        div.alarm role="alert" {
            h2 { "The realm does not answer" }
            p { (sentence(why)) }
            p { "Check that a director runs, and that the nats-servers do. The log of the console has details." }
        }
    }
}

/// There is no live realm.
pub(crate) fn offline() -> Markup {
    html! {
        h1 { "No live realm" }
        p { "This console reads the data directory of a realm that does not run: no process can be watched." }
    }
}

pub(crate) fn unlogged() -> Markup {
    html! {
        div.alarm role="alert" {
            h1 { "Nothing can be shown" }
            p {
                "Each view is recorded before it is shown, and this one cannot be recorded. The reason is in the "
                "console's log."
            }
        }
    }
}

/// Whether the page reloads by itself has to be stated.
pub(crate) fn no_answer(why: &NoAnswer, is_repeated: bool) -> Markup {
    match why {
        NoAnswer::Wrong(what) => wrong(what),
        NoAnswer::Verifying { leaves, of } => html! {
            h1 { "Being verified" }
            p role="status" {
                "New batches of the archive are verified before any question is answered: " (leaves) " of " (of)
                " batches. "
                @if is_repeated { "This page reloads automatically." }
                @else { "Your form was not processed: go back, and send it again in a moment." }
            }
            @if *of > 0 { progress value=(leaves) max=(of) aria-label="Batches verified" {} }
        },
        NoAnswer::Nothing(what) => html! {
            h1 { "Nothing found" }
            p { (sentence(what)) }
        },
        NoAnswer::Unclear(what) => html! {
            h1 { "That cannot be asked" }
            p { (sentence(what)) }
            p { "Go back to change it, or " a href="/" { "search for something else" } "." }
        },
        NoAnswer::Slow => html! {
            h1 { "Too slow" }
            p { (sentence(&why.to_string())) " The command line has no such limit: " code { "annals audit" } "." }
        },
        NoAnswer::Unavailable(what) => html! {
            h1 { "No answer at the moment" }
            p { (sentence(what)) }
        },
    }
}

/// Page for an archive that differs from what was verified. No answer is shown beside it.
pub(super) fn wrong(what: &str) -> Markup {
    html! {
        div.alarm role="alert" {
            h1 { "This does not verify" }
            p.first { (sentence(what)) }
            p {
                "This is the first data that was changed. The question is not answered, because the answer would rest "
                "on it."
            }
        }
        section {
            h2 { "What to do" }
            ol {
                li { "Leave everything as it is: the archive, its backups, and this console's folder." }
                li {
                    "Have an operator run " code { "annals log verify" }
                    ", which names all faults, and compare with a checkpoint that was kept elsewhere."
                }
                li { "Ask again from a backup that verifies." }
            }
        }
    }
}

/// Text with a capital and a full stop.
fn sentence(what: &str) -> String {
    let mut letters = what.chars();
    let first = letters.next().map(|first| first.to_uppercase().to_string());
    let end = if what.ends_with(['.', '?']) { "" } else { "." };
    format!("{}{}{end}", first.unwrap_or_default(), letters.as_str())
}
