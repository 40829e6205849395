//! Metrics in the text format of OpenMetrics, which Prometheus reads.

use std::fmt;

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric, NoLabelSet, text::encode},
    metrics::{MetricType, counter::ConstCounter, gauge::ConstGauge, info::Info},
    registry::{Registry, Unit},
};

use super::metrics::Histogram;
use crate::{
    config::{Realm, Service},
    health::{Health, Readiness},
};

/// Content type of the text.
pub(crate) const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Upper bounds of histogram buckets, microseconds. Between them a quantile is interpolated: they are closest where
/// goals lie, from 10 ms of work in a tick to a take-over of 1 s.
const BOUNDS: [u64; 16] = [
    250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 75_000, 100_000, 250_000, 500_000, 1_000_000, 2_500_000,
    5_000_000, 10_000_000,
];

/// The metrics of a process, as text.
#[derive(Debug)]
pub(crate) struct Exposition(Registry);

impl Exposition {
    /// Those of a process of a service. Each line is labelled with realm and service; metrics that the service does not
    /// have are left out.
    pub(crate) fn new(realm: &Realm, service: Service, health: Health) -> Self {
        let labels = [("realm", realm.to_string()), ("service", service.name().to_owned())];
        let labels = labels.map(|(name, value)| (name.into(), value.into()));
        let mut registry = Registry::with_prefix_and_labels("annals", labels.into_iter());
        let build = Info::new(vec![("version", env!("CARGO_PKG_VERSION"))]);
        registry.register("build", "The release", build);
        registry.register_collector(Box::new(Metrics { service, health }));
        Self(registry)
    }

    /// The text.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        encode(&mut text, &self.0).expect("invariant: a string takes any text");
        text
    }
}

/// Reads the metrics at each scrape.
#[derive(Debug)]
struct Metrics {
    service: Service,
    health: Health,
}

impl Collector for Metrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        use Service::{Base, Cell, Db};
        let metrics = &self.health.metrics;
        let is_ready = *self.health.readiness.borrow() == Readiness::Ready;
        let what = "Whether the process does its work: 1, else 0";
        gauge(&mut encoder, ("ready", what), is_ready.into())?;
        let has = |services: &[Service]| services.contains(&self.service);
        if has(&[Cell]) {
            let what = "Work of a tick, with what was due until the next";
            histogram(&mut encoder, ("tick_duration", what), &metrics.tick)?;
        }
        if has(&[Base, Cell, Db]) {
            let what = "From sending a batch to its acknowledgement";
            histogram(&mut encoder, ("append_duration", what), &metrics.append)?;
            let (errors, batches) = (&metrics.troubles, &metrics.batches);
            let what = "Errors in owners that reach no client";
            total(&mut encoder, ("owner_errors", what), None, errors.get())?;
            let what = "Batches acknowledged; at db, also those folded";
            total(&mut encoder, ("batches", what), None, batches.get())?;
        }
        if has(&[Base, Cell]) {
            total(&mut encoder, ("inputs", "Inputs handled"), None, metrics.inputs.get())?;
        }
        if has(&[Base]) {
            gauge(&mut encoder, ("clients", "Clients connected"), metrics.clients.get())?;
        }
        if has(&[Db]) {
            total(&mut encoder, ("events", "Events folded"), None, metrics.events.get())?;
            let what = "Bytes of the batches folded";
            total(&mut encoder, ("batch", what), Some(&Unit::Bytes), metrics.bytes.get())?;
            let (audits, findings) = (&metrics.ledger_audits, &metrics.ledger_findings);
            total(
                &mut encoder,
                ("ledger_audits", "Audits of the ledger"),
                None,
                audits.get(),
            )?;
            let what = "Findings of audits of the ledger: any is an alarm";
            total(&mut encoder, ("ledger_findings", what), None, findings.get())?;
        }
        Ok(())
    }
}

fn gauge(encoder: &mut DescriptorEncoder<'_>, (name, what): (&str, &str), value: i64) -> fmt::Result {
    let encoder = encoder.encode_descriptor(name, what, None, MetricType::Gauge)?;
    ConstGauge::new(value).encode(encoder)
}

fn total(
    encoder: &mut DescriptorEncoder<'_>,
    (name, what): (&str, &str),
    unit: Option<&Unit>,
    value: u64,
) -> fmt::Result {
    let encoder = encoder.encode_descriptor(name, what, unit, MetricType::Counter)?;
    ConstCounter::new(value).encode(encoder)
}

fn histogram(encoder: &mut DescriptorEncoder<'_>, (name, what): (&str, &str), values: &Histogram) -> fmt::Result {
    let found = values.buckets(&BOUNDS);
    let bounds = BOUNDS.iter().map(|bound| *bound as f64 / 1e6).chain([f64::INFINITY]);
    let buckets: Vec<(f64, u64)> = bounds.zip(found.counts).collect();
    let count = buckets.iter().map(|(_, count)| count).sum();
    let mut encoder = encoder.encode_descriptor(name, what, Some(&Unit::Seconds), MetricType::Histogram)?;
    encoder.encode_histogram::<NoLabelSet>(found.sum / 1e6, count, &buckets, None)
}
