//! The metrics of a process as watched values.

use std::{sync::Arc, time::Duration};

use super::{Nodes, Registration, Unit, Watched};
use crate::telemetry::{Histogram, Metrics, Summary};

/// Adds the metrics that a process of this service has.
pub(crate) fn add(watched: &Watched, service: &str, metrics: Arc<Metrics>) -> Registration {
    let service = service.to_owned();
    watched.add("", move |nodes| put(nodes, &service, &metrics))
}

fn put(nodes: &mut Nodes<'_>, service: &str, metrics: &Metrics) {
    let is = |services: &[&str]| services.contains(&service);
    if is(&["cell"]) {
        nodes.within("tick", |nodes| {
            let overruns = metrics.tick.above(annals_cell::TICK);
            let about = "ticks whose work took longer than the time between two ticks";
            nodes.put("overruns", overruns, Unit::None, about);
            put_histogram(nodes, &metrics.tick, "work of a tick");
        });
    }
    if is(&["base", "cell", "db"]) {
        nodes.within("append", |nodes| {
            put_histogram(
                nodes,
                &metrics.append,
                "time from sending a batch to its acknowledgement",
            );
        });
        let about = "batches acknowledged by the log; at db, also those folded";
        nodes.put("batches", metrics.batches.get(), Unit::None, about);
        let about = "errors of owners that reach no client; the log has the details";
        nodes.put("errors", metrics.troubles.get(), Unit::None, about);
    }
    if is(&["base", "cell"]) {
        nodes.put("inputs", metrics.inputs.get(), Unit::None, "inputs handled");
    }
    if is(&["base"]) {
        nodes.put("clients", metrics.clients.get(), Unit::None, "clients connected");
    }
    if is(&["db"]) {
        nodes.put("events", metrics.events.get(), Unit::None, "events folded");
        nodes.put("bytes", metrics.bytes.get(), Unit::Bytes, "bytes of the batches folded");
        nodes.within("ledger", |nodes| {
            nodes.put(
                "audits",
                metrics.ledger_audits.get(),
                Unit::None,
                "completed audits of the ledger",
            );
            let about = "findings of those audits: any is an alarm";
            nodes.put("findings", metrics.ledger_findings.get(), Unit::None, about);
        });
    }
}

fn put_histogram(nodes: &mut Nodes<'_>, histogram: &Histogram, what: &str) {
    let about = |figure: &str, when: &str| format!("{what}: {figure}, {when}");
    let mut put = |path: &str, summary: Summary, when: &str| {
        nodes.within(path, |nodes| {
            nodes.put("count", summary.count, Unit::None, &about("how often", when));
            nodes.put("p50", summary.p50, Unit::Micros, &about("half take at most this", when));
            nodes.put(
                "p99",
                summary.p99,
                Unit::Micros,
                &about("99 of 100 take at most this", when),
            );
            nodes.put("max", summary.max, Unit::Micros, &about("the longest", when));
        });
    };
    put("", histogram.summary(), "since the start");
    const WINDOW: Duration = Histogram::WINDOW;
    let when = format!("in the last {} to {} s", WINDOW.as_secs(), 2 * WINDOW.as_secs());
    put("recent", histogram.recent(), &when);
}
