//! Metrics in the text format of OpenMetrics, which Prometheus reads.

use std::fmt;

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeCounterValue, EncodeMetric, NoLabelSet, text::encode},
    metrics::{MetricType, counter::ConstCounter, gauge::ConstGauge, info::Info},
    registry::{Registry, Unit},
};

use super::{
    catalogue::{CERTIFICATE_END, KIND, METRICS, Read},
    metrics::Histogram,
    resources::{Used, used},
};
use crate::{
    certificates::CertificateEnd,
    config::{Realm, Service},
    health::{Health, Readiness},
    release,
    violations::Violations,
};

/// Content type of the text.
pub(crate) const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Upper bounds of histogram buckets, microseconds. Between them a quantile is interpolated: they are closest where
/// goals lie, from 10 ms of work in a tick to a take-over of 1 s.
pub(super) const BOUNDS: [u64; 16] = [
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
        let mut registry = Registry::with_labels(labels.into_iter());
        let commit = release::COMMIT.map(|commit| ("commit", commit));
        let build = Info::new(
            [("version", release::VERSION)]
                .into_iter()
                .chain(commit)
                .collect::<Vec<_>>(),
        );
        let ours = registry.sub_registry_with_prefix("annals");
        ours.register("build", "The release", build);
        ours.register_collector(Box::new(Metrics { service, health }));
        registry
            .sub_registry_with_prefix("process")
            .register_collector(Box::new(Process));
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
        let is_ready = *self.health.readiness.borrow() == Readiness::Ready;
        let what = "Whether the process does its work: 1, else 0";
        gauge(&mut encoder, ("ready", what, None), is_ready.into())?;
        certificates(&mut encoder, &self.health.certificates.ends())?;
        for metric in METRICS.iter().filter(|metric| metric.of.contains(&self.service)) {
            let (metrics, about) = (&self.health.metrics, (metric.name, metric.what, metric.unit.as_ref()));
            match metric.read {
                Read::Counter(read) => total(&mut encoder, about, read(metrics).get())?,
                Read::Micros(read) => total(&mut encoder, about, read(metrics).get() as f64 / 1e6)?,
                Read::Gauge(read) => gauge(&mut encoder, about, read(metrics).get())?,
                Read::Histogram(read) => histogram(&mut encoder, about, read(metrics))?,
                Read::Violations(read) => violations(&mut encoder, about, read(metrics))?,
            }
        }
        Ok(())
    }
}

/// The ends of certificates, each with the setting that names its file.
fn certificates(encoder: &mut DescriptorEncoder<'_>, ends: &[CertificateEnd]) -> fmt::Result {
    if ends.is_empty() {
        return Ok(());
    }
    let unit = Some(&Unit::Seconds);
    let mut encoder =
        encoder.encode_descriptor("certificate_end_timestamp", CERTIFICATE_END, unit, MetricType::Gauge)?;
    for CertificateEnd { setting, end } in ends {
        let labels = [("setting", *setting)];
        ConstGauge::new(*end).encode(encoder.encode_family(&labels)?)?;
    }
    Ok(())
}

/// The resources that the process uses, by the names that are usual for them.
#[derive(Debug)]
struct Process;

impl Collector for Process {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let Some(Used { processor, memory }) = used() else {
            return Ok(());
        };
        let what = "Time of the processors that was used";
        total(
            &mut encoder,
            ("cpu", what, Some(&Unit::Seconds)),
            processor.as_secs_f64(),
        )?;
        let what = "Memory in use";
        gauge(&mut encoder, ("resident_memory", what, Some(&Unit::Bytes)), memory)
    }
}

/// Name, meaning and unit.
type About<'a> = (&'a str, &'a str, Option<&'a Unit>);

fn gauge(encoder: &mut DescriptorEncoder<'_>, (name, what, unit): About<'_>, value: i64) -> fmt::Result {
    let encoder = encoder.encode_descriptor(name, what, unit, MetricType::Gauge)?;
    ConstGauge::new(value).encode(encoder)
}

fn total<N: EncodeCounterValue + fmt::Debug>(
    encoder: &mut DescriptorEncoder<'_>,
    (name, what, unit): About<'_>,
    value: N,
) -> fmt::Result {
    let encoder = encoder.encode_descriptor(name, what, unit, MetricType::Counter)?;
    ConstCounter::new(value).encode(encoder)
}

fn violations(encoder: &mut DescriptorEncoder<'_>, (name, what, unit): About<'_>, counted: &Violations) -> fmt::Result {
    let mut encoder = encoder.encode_descriptor(name, what, unit, MetricType::Counter)?;
    for (violation, count) in counted.all() {
        let labels = [(KIND, violation.name())];
        ConstCounter::new(count).encode(encoder.encode_family(&labels)?)?;
    }
    Ok(())
}

fn histogram(encoder: &mut DescriptorEncoder<'_>, (name, what, unit): About<'_>, values: &Histogram) -> fmt::Result {
    let found = values.buckets(&BOUNDS);
    let bounds = BOUNDS.iter().map(|bound| *bound as f64 / 1e6).chain([f64::INFINITY]);
    let buckets: Vec<(f64, u64)> = bounds.zip(found.counts).collect();
    let count = buckets.iter().map(|(_, count)| count).sum();
    let mut encoder = encoder.encode_descriptor(name, what, unit, MetricType::Histogram)?;
    encoder.encode_histogram::<NoLabelSet>(found.sum / 1e6, count, &buckets, None)
}
