//! The processes of a realm: releases, readiness, what each holds, and its figures.

use annals_host::{
    health::{Instance, Readiness},
    telemetry::Chain,
};
use annals_wire::control::ListedProcess;
use maud::{Markup, html};

use super::pieces;
use crate::{alarms::milliseconds, watching::ProcessReport};

pub(crate) fn page(report: &ProcessReport) -> Markup {
    html! {
        h1 { "Processes" }
        (pieces::live_state())
        div #figures { (figures(report)) }
    }
}

/// The part of the page that changes.
pub(crate) fn figures(report: &ProcessReport) -> Markup {
    let mut releases: Vec<&str> = report
        .instances
        .iter()
        .map(|instance| instance.version.as_str())
        .collect();
    releases.sort_unstable();
    releases.dedup();
    html! {
        section aria-labelledby="alarms" {
            h2 #alarms { "Alarms" }
            @if report.alarms.is_empty() { p.quiet { "None: every service has a process that is ready." } }
            @else { (pieces::alarms(&report.alarms)) }
        }
        section aria-labelledby="answering" {
            h2 #answering { "Processes that answer" }
            p {
                (report.instances.len()) " processes, of "
                @match releases.as_slice() {
                    [one] => { "release " (one) "." },
                    _ => { "releases " (releases.join(", ")) "." },
                }
            }
            div.scroll tabindex="0" role="region" aria-labelledby="answering" {
                table.figures {
                    thead {
                        tr {
                            @for heading in ["Service", "Process", "Release", "State", "Clients", "Tick p50, p99", "Append p50, p99", "Batches", "Errors"] {
                                th scope="col" { (heading) }
                            }
                        }
                    }
                    tbody { @for instance in &report.instances { (row(instance)) } }
                }
            }
            p.quiet { "Figures since each process started. The process is its number on its machine." }
        }
        section aria-labelledby="held" {
            h2 #held { "What they hold" }
            @match &report.listed {
                Err(error) => p.notice { "Unknown: " (Chain(error).to_string()) "." },
                Ok(list) => div.scroll tabindex="0" role="region" aria-labelledby="held" {
                    table.figures {
                        thead {
                            tr { @for heading in ["Number", "Service", "Owners", "Entities", "State"] { th scope="col" { (heading) } } }
                        }
                        tbody { @for process in &list.processes { (held(process)) } }
                    }
                },
            }
            p.quiet { "Numbers are the director's: " code { "annals realm drain NUMBER" } " takes them." }
        }
    }
}

fn row(instance: &Instance) -> Markup {
    let metrics = &instance.report.metrics;
    let (class, state) = match &instance.report.readiness {
        Readiness::Ready => ("good", "ready".to_owned()),
        // Of directors, one leads.
        other if instance.service == "director" => ("ended", other.to_string()),
        other => ("bad", other.to_string()),
    };
    let pair = |summary: annals_host::telemetry::Summary| match summary.count {
        0 => "–".to_owned(),
        _ => format!("{}, {}", milliseconds(summary.p50), milliseconds(summary.p99)),
    };
    html! {
        tr {
            th scope="row" { (instance.service) }
            td.number { (instance.report.pid) }
            td.number { (instance.version) }
            td { span.badge.(class) { (state) } }
            td.number { @if instance.service == "base" { (metrics.clients) } @else { "–" } }
            td.number { (pair(metrics.tick)) }
            td.number { (pair(metrics.append)) }
            td.number { @if metrics.batches == 0 { "–" } @else { (pieces::count(metrics.batches)) } }
            td.number { (metrics.troubles) }
        }
    }
}

fn held(process: &ListedProcess) -> Markup {
    let numbers = |owners: &[u32]| {
        let owners: Vec<String> = owners.iter().map(u32::to_string).collect();
        if owners.is_empty() {
            "–".to_owned()
        } else {
            owners.join(", ")
        }
    };
    html! {
        tr {
            th scope="row" { (process.process) }
            td { (process.service) }
            td { (numbers(&process.owners)) }
            td.number { (pieces::count(process.entities)) }
            td {
                @if process.draining { "drains" } @else { "serves" }
                @if !process.follows.is_empty() { ", follows " (numbers(&process.follows)) }
            }
        }
    }
}
