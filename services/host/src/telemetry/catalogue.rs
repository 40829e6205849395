//! The metrics that a process reports: one list, for Prometheus and for OpenTelemetry.

use prometheus_client::registry::Unit;

use super::metrics::{Counter, Gauge, Histogram, Metrics};
use crate::{
    config::Service::{self, Base, Cell, Db, Director, Login},
    violations::Violations,
};

/// The meaning of the metric of a process's certificates, which has a series for each.
pub(super) const CERTIFICATE_END: &str = "When a certificate of the process ends, seconds since 1970";

/// One metric.
pub(super) struct Described {
    /// Its name for Prometheus, without prefix, unit and `_total`.
    pub(super) name: &'static str,
    /// Its name for OpenTelemetry: that of the semantic conventions, where they have one.
    pub(super) otel: &'static str,
    pub(super) what: &'static str,
    pub(super) unit: Option<Unit>,
    /// The services that have it.
    pub(super) of: &'static [Service],
    pub(super) read: Read,
}

/// How it is read.
pub(super) enum Read {
    Counter(fn(&Metrics) -> &Counter),
    /// One that counts microseconds, and is reported in seconds.
    Micros(fn(&Metrics) -> &Counter),
    Gauge(fn(&Metrics) -> &Gauge),
    Histogram(fn(&Metrics) -> &Histogram),
    /// Violations of clients, by kind.
    Violations(fn(&Metrics) -> &Violations),
}

/// The label of a kind of violation.
pub(super) const KIND: &str = "kind";

use Read as R;

const fn described(
    (name, otel): (&'static str, &'static str),
    what: &'static str,
    unit: Option<Unit>,
    of: &'static [Service],
    read: Read,
) -> Described {
    Described {
        name,
        otel,
        what,
        unit,
        of,
        read,
    }
}

/// Services that hold owners.
const HOLDERS: &[Service] = &[Base, Cell, Db];

/// All metrics, beside those that every process has.
pub(super) const METRICS: [Described; 26] = [
    described(
        ("tick_duration", "annals.tick.duration"),
        "Work of a tick, with what was due until the next",
        Some(Unit::Seconds),
        &[Cell],
        R::Histogram(|metrics| &metrics.tick),
    ),
    described(
        ("append_duration", "messaging.client.operation.duration"),
        "From sending a batch to its acknowledgement",
        Some(Unit::Seconds),
        HOLDERS,
        R::Histogram(|metrics| &metrics.append),
    ),
    described(
        ("owner_errors", "annals.owner.errors"),
        "Errors in owners that reach no client",
        None,
        HOLDERS,
        R::Counter(|metrics| &metrics.troubles),
    ),
    described(
        ("batches", "annals.batches"),
        "Batches acknowledged; at db, also those folded",
        None,
        HOLDERS,
        R::Counter(|metrics| &metrics.batches),
    ),
    described(
        ("owners", "annals.owners"),
        "Owners that are held",
        None,
        HOLDERS,
        R::Gauge(|metrics| &metrics.owners),
    ),
    described(
        ("entities", "annals.entities"),
        "Entities with a real part here",
        None,
        &[Base, Cell],
        R::Gauge(|metrics| &metrics.entities),
    ),
    described(
        ("inputs", "annals.inputs"),
        "Inputs handled",
        None,
        &[Base, Cell],
        R::Counter(|metrics| &metrics.inputs),
    ),
    described(
        ("busy", "annals.busy"),
        "Time in which owners worked",
        Some(Unit::Seconds),
        &[Base, Cell],
        R::Micros(|metrics| &metrics.busy),
    ),
    described(
        ("clients", "annals.clients"),
        "Clients connected",
        None,
        &[Base],
        R::Gauge(|metrics| &metrics.clients),
    ),
    described(
        ("client_calls", "annals.client.calls"),
        "Calls of clients that arrived",
        None,
        &[Base],
        R::Counter(|metrics| &metrics.client_calls),
    ),
    described(
        ("client_violations", "annals.client.violations"),
        "What clients did against the protocol or its limits, by kind",
        None,
        &[Base, Login],
        R::Violations(|metrics| &metrics.violations),
    ),
    described(
        ("log_ins", "annals.log_ins"),
        "Clients that were given a ticket",
        None,
        &[Login],
        R::Counter(|metrics| &metrics.log_ins),
    ),
    described(
        ("log_ins_refused", "annals.log_ins.refused"),
        "Log-ins that were refused",
        None,
        &[Login],
        R::Counter(|metrics| &metrics.log_ins_refused),
    ),
    described(
        ("log_ins_waiting", "annals.log_ins.waiting"),
        "Places in the queue of a full realm",
        None,
        &[Login],
        R::Gauge(|metrics| &metrics.log_ins_waiting),
    ),
    described(
        ("players", "annals.players"),
        "Players of the realm, if it has a limit",
        None,
        &[Director],
        R::Gauge(|metrics| &metrics.players),
    ),
    described(
        ("events", "annals.events"),
        "Events folded",
        None,
        &[Db],
        R::Counter(|metrics| &metrics.events),
    ),
    described(
        ("batch", "annals.batch.size"),
        "Bytes of the batches folded",
        Some(Unit::Bytes),
        &[Db],
        R::Counter(|metrics| &metrics.bytes),
    ),
    described(
        ("fold_duration", "messaging.process.duration"),
        "Time of a transaction that folds batches into the store",
        Some(Unit::Seconds),
        &[Db],
        R::Histogram(|metrics| &metrics.fold),
    ),
    described(
        ("fold_behind", "annals.fold.behind"),
        "Messages of the log that are not read yet, up to a second ago",
        None,
        &[Db],
        R::Gauge(|metrics| &metrics.fold_behind),
    ),
    described(
        ("log_holes", "annals.log.holes"),
        "Places where the log lacks batches",
        None,
        &[Db],
        R::Gauge(|metrics| &metrics.log_holes),
    ),
    described(
        ("fold_conflicts", "annals.fold.conflicts"),
        "Transactions that fold batches, conflicted with others and were repeated",
        None,
        &[Db],
        R::Counter(|metrics| &metrics.fold_conflicts),
    ),
    described(
        ("ledger_entries", "annals.ledger.entries"),
        "Entries of the ledger, at its last audit",
        None,
        &[Db],
        R::Gauge(|metrics| &metrics.ledger_entries),
    ),
    described(
        ("ledger_audits", "annals.ledger.audits"),
        "Audits of the ledger",
        None,
        &[Db],
        R::Counter(|metrics| &metrics.ledger_audits),
    ),
    described(
        ("ledger_findings", "annals.ledger.findings"),
        "Findings of audits of the ledger: any is an alarm",
        None,
        &[Db],
        R::Counter(|metrics| &metrics.ledger_findings),
    ),
    described(
        ("spans_exported", "otel.sdk.exporter.span.exported"),
        "Spans of traced calls that the collector has",
        None,
        HOLDERS,
        R::Counter(|metrics| &metrics.spans_exported),
    ),
    described(
        ("spans_dropped", "annals.spans.dropped"),
        "Spans dropped: the collector did not take them, or too many waited",
        None,
        HOLDERS,
        R::Counter(|metrics| &metrics.spans_dropped),
    ),
];
