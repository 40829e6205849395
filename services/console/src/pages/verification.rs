//! Result of the verification, in words, and what a kept checkpoint proves.

use annals_audit::Extent;
use annals_proof::VerifierKey;
use maud::{Markup, html};

use super::pieces;
use crate::casework::{Checked, Kept, Verification};

pub(crate) fn page(found: &Verification, form: &str) -> Markup {
    let Extent { leaves, root, entry } = found.extent;
    html! {
        h1 { "Verification" }
        p.lead { "Before anything is answered, all that has come to the archive is read and checked. This is what was found." }
        ol.checks {
            li.done { h2 { "Each batch is what was written" } p { (pieces::count(leaves)) " batches: the bytes of each against the hashes in its header, and its events against their tree." } }
            li.done { h2 { "Nothing is missing between them" } p { "Each log is whole from its first batch on: every batch has the number that comes next, and names the hash of the one before it." } }
            li.done { h2 { "The ledger's entries follow one another" } p { (pieces::count(entry.0)) " entries, numbered without a gap. What an answer cites is read from the archive again, and held against the log of whoever asked for it." } }
            li.done { h2 { "All of it is one tree" } p { "The hashes of all batches come to one root, which is the one that the realm keeps: " (pieces::hash(root)) } }
            (signed(found.newest.as_ref()))
            (kept(found.kept.as_ref()))
        }
        (ask(form))
        (keys(&found.keys))
    }
}

fn signed(newest: Option<&Checked>) -> Markup {
    let Some(newest) = newest else {
        return html! {
            li.open { h2 { "Nothing is signed" } p { "There is no signed checkpoint in the archive. While the realm's signer runs, it signs what is new every ten seconds." } }
        };
    };
    html! {
        li.done {
            h2 { "It continues what was signed" }
            p {
                "The newest checkpoint is of " (pieces::count(newest.head.size)) " batches of the log " b { (newest.origin) }
                ", signed with " (key_names(&newest.signed)) ". A proof leads from what was verified to its root, "
                (pieces::hash(newest.head.root)) "."
            }
            details {
                summary { "The checkpoint, to be kept elsewhere" }
                p { "Copy it to where nobody of the realm can change it. With it, whatever is changed later shows." }
                div.scroll tabindex="0" role="region" aria-label="The checkpoint" { pre { (newest.note) } }
            }
        }
    }
}

fn kept(kept: Option<&Kept>) -> Markup {
    match kept {
        Some(Kept::Continued(kept)) => html! {
            li.done #kept {
                h2 { "It continues what you have kept" }
                p role="status" {
                    "Your checkpoint is of " (pieces::count(kept.head.size)) " batches, and signed with " (key_names(&kept.signed))
                    ". The archive still begins with exactly these: nothing among them was changed, taken out or put in since you have it."
                }
            }
        },
        Some(Kept::Unbelieved(why)) => html! {
            li.bad #kept {
                h2 { "What you have given shows nothing" }
                p role="alert" { "It is not a checkpoint of this log, signed by one of its keys: " (why) ". Nothing follows from it, neither good nor bad, unless you are sure that it is what was kept: then the log's keys were replaced." }
            }
        },
        None => html! {
            li.open {
                h2 { "What nobody here can know" }
                p { "Whoever has the realm's key and its files can have written all of this anew, from the first batch on. A checkpoint that somebody keeps elsewhere shows whether that has happened: give it below." }
            }
        },
    }
}

fn ask(form: &str) -> Markup {
    html! {
        section aria-labelledby="ask" {
            h2 #ask { "Compare with a checkpoint that was kept" }
            form action="/verification" method="post" enctype="multipart/form-data" {
                (pieces::checkpoint(form))
                button type="submit" { "Compare" }
            }
        }
    }
}

fn key_names(keys: &[VerifierKey]) -> Markup {
    html! {
        @for (place, key) in keys.iter().enumerate() {
            @if place > 0 { " and " }
            "the key " code.hash { (key) }
        }
    }
}

fn keys(keys: &[(u64, VerifierKey)]) -> Markup {
    html! {
        @if !keys.is_empty() {
            section aria-labelledby="keys" {
                h2 #keys { "The log's keys" }
                p { "Compare them with what you have from elsewhere: anybody can make a key." }
                div.scroll tabindex="0" role="region" aria-labelledby="keys" {
                    table {
                        thead { tr { th scope="col" { "From batch" } th scope="col" { "Key" } } }
                        tbody { @for (from, key) in keys { tr { td.number { (pieces::count(*from)) } td { code.hash { (key) } } } } }
                    }
                }
            }
        }
    }
}
