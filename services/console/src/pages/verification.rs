//! Result of the verification, in words, and what a kept checkpoint proves.

use annals_proof::VerifierKey;
use maud::{Markup, html};

use super::pieces;
use crate::casework::{Kept, ShardVerification, Verification};

pub(crate) fn page(found: &Verification, form: &str) -> Markup {
    html! {
        h1 { "Verification" }
        p.lead {
            "Before a question is answered, all new batches of the archive are read and checked. This is the result."
        }
        ol.checks {
            li.done {
                h2 { "Each batch is unchanged" }
                p {
                    (pieces::count(found.extent.leaves())) " batches: the bytes of each against the hashes in its header, and its "
                    "events against their tree."
                }
            }
            li.done {
                h2 { "Nothing is missing between them" }
                p {
                    "Each log is complete from its first batch on: every batch has the next number, and names the hash "
                    "of the one before it."
                }
            }
            li.done {
                h2 { "The ledger's entries follow one another" }
                p {
                    (pieces::count(found.extent.entry.0)) " entries, numbered without a gap. Each entry that an answer cites is "
                    "read from the archive again, and compared with the log of the owner that ordered it."
                }
            }
            li.done {
                @match &found.shards[..] {
                    [one] => {
                        h2 { "All of it is one tree" }
                        p {
                            "The hashes of all batches have one root, which is the one that the realm stores: "
                            (pieces::hash(one.verified.root))
                        }
                    }
                    several => {
                        h2 { "All of each shard is one tree" }
                        p { "The hashes of all batches of a shard have one root, which is the one that the realm stores:" }
                        @for shard in several {
                            p {
                                "Shard " (shard.shard) ", " (pieces::count(shard.verified.size)) " batches: "
                                (pieces::hash(shard.verified.root))
                            }
                        }
                    }
                }
            }
            @for shard in &found.shards { (signed(shard, found.shards.len() > 1)) }
            (kept(found.kept.as_ref()))
        }
        (ask(form))
        @for shard in &found.shards { (keys(shard, found.shards.len() > 1)) }
    }
}

/// The name of a shard before a heading, where there are several.
fn of_shard(found: &ShardVerification, is_one_of_several: bool) -> Markup {
    html! { @if is_one_of_several { "Shard " (found.shard) ": " } }
}

fn signed(found: &ShardVerification, is_one_of_several: bool) -> Markup {
    let shard = of_shard(found, is_one_of_several);
    let Some(newest) = &found.newest else {
        return html! {
            li.open { h2 { (shard) "Nothing is signed" } p { "There is no signed checkpoint in the archive. While the realm's signer runs, it signs what is new every ten seconds." } }
        };
    };
    html! {
        li.done {
            h2 { (shard) "It continues what was signed" }
            p {
                "The newest checkpoint is of " (pieces::count(newest.head.size)) " batches of the log " b { (newest.origin) }
                ", signed with " (key_names(&newest.signed)) ". A proof leads from what was verified to its root, "
                (pieces::hash(newest.head.root)) "."
            }
            details {
                summary { "The checkpoint, to be kept elsewhere" }
                p { "Copy it to a place outside the realm. With it, any later change can be detected." }
                div.scroll tabindex="0" role="region" aria-label="The checkpoint" { pre { (newest.note) } }
            }
        }
    }
}

fn kept(kept: Option<&Kept>) -> Markup {
    match kept {
        Some(Kept::Continued(kept)) => html! {
            li.done #kept {
                h2 { "It continues the checkpoint that you kept" }
                p role="status" {
                    "Your checkpoint is of " (pieces::count(kept.head.size)) " batches, and signed with " (key_names(&kept.signed))
                    ". The archive still begins with exactly these: nothing among them was changed, taken out or put in since you have it."
                }
            }
        },
        Some(Kept::Lost(what)) => html! {
            li.bad #kept {
                h2 { "The checkpoint that you kept was given up" }
                p role="alert" { "The signature is valid, but " (what) "." }
            }
        },
        Some(Kept::Unbelieved(why)) => html! {
            li.bad #kept {
                h2 { "The given checkpoint proves nothing" }
                p role="alert" {
                    "It is not a checkpoint signed by one of this log's keys: " (why)
                    ". It proves nothing, unless you are sure that it is the kept checkpoint: then the log's keys were "
                    "replaced."
                }
            }
        },
        None => html! {
            li.open {
                h2 { "What this check cannot show" }
                p {
                    "A person with the realm's key and its files can have rewritten all of this, from the first batch "
                    "on. A checkpoint kept elsewhere shows whether that has happened: give it below."
                }
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

fn keys(found: &ShardVerification, is_one_of_several: bool) -> Markup {
    let id = format!("keys-{}", found.shard);
    html! {
        @if !found.keys.is_empty() {
            section aria-labelledby=(id) {
                h2 id=(id) { (of_shard(found, is_one_of_several)) "The log's keys" }
                p { "Compare them with keys from an independent source: anyone can create a key." }
                div.scroll tabindex="0" role="region" aria-labelledby=(id) {
                    table {
                        thead { tr { th scope="col" { "From batch" } th scope="col" { "Key" } } }
                        tbody { @for (from, key) in &found.keys { tr { td.number { (pieces::count(*from)) } td { code.hash { (key) } } } } }
                    }
                }
            }
        }
    }
}
