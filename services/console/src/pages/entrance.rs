//! The log-in page.

use maud::{Markup, html};

pub(crate) fn form(token: &str, next: &str, name: &str, said: Option<&str>) -> Markup {
    html! {
        div.narrow {
            h1 { "Log in" }
            p.quiet { "The auditor's casework: what happened in a realm, answered from its verified archive." }
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
