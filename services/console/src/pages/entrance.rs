//! The log-in page.

use maud::{Markup, html};

pub(crate) fn form(token: &str, next: &str, name: &str, said: Option<&str>) -> Markup {
    html! {
        div.narrow {
            h1 { "Log in" }
            p.quiet { "For auditors: what happened in a realm, answered from its verified archive. For operators: how it runs." }
            @if let Some(said) = said { p.alert role="alert" { (said) } }
            form action="/login" method="post" {
                input type="hidden" name="form" value=(token);
                input type="hidden" name="next" value=(next);
                div.field {
                    label for="name" { "Name" }
                    input #name name="name" value=(name) required maxlength="64" autocomplete="username" autocapitalize="none" spellcheck="false" autofocus;
                }
                div.field {
                    label for="password" { "Password" }
                    input #password type="password" name="password" required maxlength="1024" autocomplete="current-password";
                }
                button type="submit" { "Log in" }
            }
        }
    }
}

/// The page of a one-time link.
pub(crate) fn link(form: &str, token: &str) -> Markup {
    html! {
        div.narrow {
            h1 { "Log in" }
            p.quiet { "This link works once, and for a few minutes after it was made." }
            form action="/enter" method="post" {
                input type="hidden" name="form" value=(form);
                input type="hidden" name="token" value=(token);
                button type="submit" autofocus { "Log in" }
            }
        }
    }
}
