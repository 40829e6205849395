//! The logs of a realm: what was logged, what db has folded of it, and what is signed.

use maud::{Markup, html};

use super::pieces;
use crate::watching::{ArchiveFigures, LogReport, OwnerLog, StreamFigures};

pub(crate) fn page(report: &LogReport) -> Markup {
    html! {
        h1 { "Logs" }
        (pieces::live_state())
        div #figures { (figures(report)) }
    }
}

/// The part of the page that changes.
pub(crate) fn figures(report: &LogReport) -> Markup {
    html! {
        section aria-labelledby="alarms" {
            h2 #alarms { "Alarms" }
            @if report.alarms.is_empty() { p.quiet { "None: no log is blocked, db keeps up, and no log is known to have a hole." } }
            @else { (pieces::alarms(&report.alarms)) }
            @for unknown in &report.unknown { p.notice { "Unknown: " (unknown) "." } }
        }
        section aria-labelledby="archive" {
            h2 #archive { "Archive" }
            dl.gave {
                @for archive in &report.archives { (archive_figures(archive, report.archives.len() > 1)) }
                @for stream in &report.streams { (stream_figures(stream)) }
            }
        }
        section aria-labelledby="owners" {
            h2 #owners { "Owners" }
            div.scroll tabindex="0" role="region" aria-labelledby="owners" {
                table.figures {
                    thead {
                        tr {
                            @for heading in ["Owner", "Kind", "Held by process", "Newest batch", "Stored", "Folded", "Behind"] {
                                th scope="col" { (heading) }
                            }
                        }
                    }
                    tbody { @for log in &report.owners { (row(log)) } }
                }
            }
            @if report.omitted > 0 { p.quiet { "and " (report.omitted) " owners more" } }
            p.quiet { "Behind: batches that db has not folded yet. Some are normal while players play." }
        }
    }
}

fn known(number: Option<u64>) -> String {
    number.map_or_else(|| "unknown".to_owned(), pieces::count)
}

fn archive_figures(archive: &ArchiveFigures, is_one_of_several: bool) -> Markup {
    let of_shard = match is_one_of_several {
        true => format!(" of shard {}", archive.shard),
        false => String::new(),
    };
    html! {
        div { dt { "Archived" (of_shard) } dd { (known(archive.archived)) " batches" } }
        div { dt { "Signed" (of_shard) } dd { (signed(archive)) } }
    }
}

fn signed(archive: &ArchiveFigures) -> String {
    match (archive.signed, archive.archived) {
        (Some(0), _) => "nothing".to_owned(),
        (Some(signed), Some(archived)) => {
            let rest = pieces::count(archived.saturating_sub(signed));
            format!("{} batches; {rest} are not signed yet", pieces::count(signed))
        }
        (signed, _) => format!("{} batches", known(signed)),
    }
}

fn stream_figures(stream: &StreamFigures) -> Markup {
    html! {
        div {
            dt { "Stream " (stream.name) }
            dd { (pieces::count(stream.messages)) " messages, " (pieces::count(stream.bytes / 1_024)) " KiB" }
        }
        @if let Some(leader) = &stream.leader {
            div {
                dt { "Nats-servers" }
                dd {
                    (leader) " leads"
                    @for (name, is_current) in &stream.replicas { ", " (name) @if *is_current { " is current" } @else { " lags" } }
                }
            }
        }
    }
}

fn row(log: &OwnerLog) -> Markup {
    let age = log
        .age
        .map_or_else(|| "–".to_owned(), |age| format!("{:.1} s ago", age.as_secs_f64()));
    html! {
        tr {
            th scope="row" { (log.owner) }
            td { (log.kind) }
            td.number { @match log.process { Some(process) => (process), None => "–" } }
            td.number { @match log.last { Some(last) => (last), None => "–" } }
            td.number { (age) }
            td.number { (log.folded) }
            td.number { @match log.behind() { Some(behind) => (pieces::count(behind)), None => "–" } }
        }
    }
}

#[cfg(test)]
mod tests {
    use annals_ids::Shard;

    use super::*;

    fn archive(shard: u16, archived: u64, signed: Option<u64>) -> ArchiveFigures {
        ArchiveFigures {
            shard: Shard(shard),
            archived: Some(archived),
            signed,
        }
    }

    fn shown(archives: Vec<ArchiveFigures>) -> String {
        let report = LogReport {
            archives,
            ..LogReport::default()
        };
        figures(&report).into_string()
    }

    #[test]
    fn the_archive_of_each_shard_is_shown() {
        let one = shown(vec![archive(0, 40, Some(30))]);
        assert!(one.contains("<dt>Archived</dt><dd>40 batches</dd>"), "{one}");
        assert!(
            one.contains("<dt>Signed</dt><dd>30 batches; 10 are not signed yet</dd>"),
            "{one}"
        );
        let several = shown(vec![
            archive(0, 40, Some(30)),
            archive(1, 7, Some(0)),
            archive(2, 5, None),
        ]);
        for said in [
            "<dt>Archived of shard 0</dt><dd>40 batches</dd>",
            "<dt>Archived of shard 1</dt><dd>7 batches</dd>",
            "<dt>Signed of shard 1</dt><dd>nothing</dd>",
            "<dt>Signed of shard 2</dt><dd>unknown batches</dd>",
        ] {
            assert!(several.contains(said), "{said}: {several}");
        }
    }
}
