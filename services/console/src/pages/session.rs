//! Identities behind a session.

use annals_audit::CameIn;
use annals_evidence::Terms;
use annals_ids::SessionId;
use maud::{Markup, html};

use super::pieces;

pub(crate) fn page(session: SessionId, came: &[CameIn]) -> Markup {
    html! {
        h1 { "Client session " (session) }
        p.lead {
            "A session is one client's, from its log-in on. The address of each connection is recorded, sealed under "
            "a key of the player."
        }
        section aria-labelledby="came" {
            h2 #came { "Client of the session" }
            div.scroll tabindex="0" role="region" aria-labelledby="came" {
                table {
                    thead { tr { th scope="col" { "When" } th scope="col" { "Who, and from where" } th scope="col" { "Account" } th scope="col" { "Event" } } }
                    tbody {
                        @for came in came {
                            tr {
                                td { (pieces::moment(came.wall)) }
                                td { (pieces::came_in(came)) }
                                td { (pieces::stored(came.person, Terms::default())) }
                                td.number { (came.at) " #" (came.event) }
                            }
                        }
                    }
                }
            }
        }
    }
}
