//! Export to an OpenTelemetry collector, by OTLP over HTTP. Nothing of the realm waits for the collector: while it is
//! away, what does not fit into a bounded queue is dropped and counted.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    time::{Duration, Instant},
};

use opentelemetry::{
    Context, KeyValue,
    metrics::{Meter, MeterProvider},
};
use opentelemetry_otlp::{ExporterBuildError, MetricExporter, SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::{
    Resource,
    error::OTelSdkResult,
    metrics::{PeriodicReader, SdkMeterProvider},
    trace::{BatchConfigBuilder, BatchSpanProcessor, Span, SpanData, SpanProcessor},
};
use prometheus_client::registry::Unit;
use thiserror::Error;

use super::{
    catalogue::{CERTIFICATE_END, KIND, METRICS, Read},
    exposition::BOUNDS,
    metrics::Metrics,
    spans::Traces,
};
use crate::{
    certificates::CertificateEnd,
    config::{Realm, Service, Telemetry},
    health::{Health, Readiness},
    process::random,
    waiting::Wait,
};

/// Maximum spans that wait to be exported, those in a request included; about a kilobyte each. Further ones are dropped.
const QUEUE: usize = 4_096;

/// Maximum spans in a request.
const AT_ONCE: usize = 512;

/// Interval between requests. A process that is killed loses the spans of this time.
const EVERY: Duration = Duration::from_millis(500);

/// Interval between exports of metrics.
const METRICS_EVERY: Duration = Duration::from_secs(15);

/// Timeout of a request.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Maximum time that the end of a process waits for its last spans and metrics to be exported.
const LAST_EXPORT: Duration = Duration::from_secs(2);

/// What a process does about a collector that does not take its spans.
const ADVICE: &str = "spans are dropped and counted, and nothing else depends on it; check the collector, and otlp in \
                      the settings";

/// Why nothing can be exported.
#[derive(Debug, Error)]
pub enum OtlpError {
    /// The HTTP client cannot be created.
    #[error("no HTTP client for the collector {endpoint} can be created")]
    Client { endpoint: String, source: reqwest::Error },
    /// The exporter cannot be created.
    #[error("cannot export to the collector {endpoint}")]
    Exporter {
        endpoint: String,
        source: ExporterBuildError,
    },
    /// No thread can be started.
    #[error("no thread can be started for the collector")]
    Thread,
}

/// The export of a process. Its last spans are exported when it is dropped.
#[derive(Debug)]
pub struct Otlp {
    /// The traces that are exported.
    pub traces: Traces,
    processor: Arc<Bounded>,
    meters: SdkMeterProvider,
}

impl Otlp {
    /// Begins to export to the collector of the settings; `None` if there is none.
    ///
    /// # Errors
    /// When no exporter can be created. A collector that does not answer is no error.
    pub fn start(
        settings: &Telemetry,
        (realm, service): (&Realm, Service),
        health: &Health,
    ) -> Result<Option<Self>, OtlpError> {
        let Some(endpoint) = &settings.endpoint else {
            return Ok(None);
        };
        let metrics = &health.metrics;
        let resource = resource(settings, realm, service);
        let client = client(endpoint)?;
        let exporter = SpanExporter::builder()
            .with_http()
            .with_endpoint(format!("{endpoint}/v1/traces"))
            .with_timeout(TIMEOUT)
            .with_http_client(client.clone())
            .build()
            .map_err(|source| failed(endpoint, source))?;
        let waiting = Arc::new(AtomicUsize::new(0));
        let counted = Counted {
            exporter,
            waiting: Arc::clone(&waiting),
            metrics: Arc::clone(metrics),
            wait: Mutex::new(Wait::new(format!("the collector {endpoint}"), ADVICE)),
        };
        let limits = BatchConfigBuilder::default()
            .with_max_queue_size(QUEUE)
            .with_max_export_batch_size(AT_ONCE)
            .with_scheduled_delay(EVERY)
            .build();
        let mut batch = BatchSpanProcessor::builder(counted).with_batch_config(limits).build();
        batch.set_resource(&resource);
        let processor = Arc::new(Bounded {
            batch,
            waiting,
            metrics: Arc::clone(metrics),
        });
        let traces = Traces::new(settings.trace_ratio.share(), Box::new(Shared(Arc::clone(&processor))));
        let meters = meters(endpoint, client, resource)?;
        instruments(&meters, service, health);
        tracing::info!(
            endpoint,
            ratio = settings.trace_ratio.share(),
            "exporting traces and metrics"
        );
        Ok(Some(Self {
            traces,
            processor,
            meters,
        }))
    }
}

impl Drop for Otlp {
    fn drop(&mut self) {
        let (done, both) = mpsc::sync_channel(2);
        let (spans, metrics) = (Arc::clone(&self.processor), self.meters.clone());
        let of_spans = done.clone();
        // Each is in a thread of its own, which ends with the process: a collector may not answer.
        std::thread::spawn(move || of_spans.send(spans.shutdown_with_timeout(LAST_EXPORT)));
        std::thread::spawn(move || done.send(metrics.shutdown_with_timeout(LAST_EXPORT)));
        let deadline = Instant::now() + LAST_EXPORT;
        for _ in 0..2 {
            let left = deadline.saturating_duration_since(Instant::now());
            match both.recv_timeout(left) {
                Ok(Ok(())) => {}
                Ok(Err(error)) => tracing::debug!(%error, "the last spans or metrics were not exported"),
                Err(error) => tracing::debug!(%error, "the collector has not answered in time"),
            }
        }
    }
}

fn failed(endpoint: &str, source: ExporterBuildError) -> OtlpError {
    OtlpError::Exporter {
        endpoint: endpoint.to_owned(),
        source,
    }
}

/// The export of metrics. A request that fails is not repeated: the next one has the newer values.
fn meters(
    endpoint: &str,
    client: reqwest::blocking::Client,
    resource: Resource,
) -> Result<SdkMeterProvider, OtlpError> {
    let exporter = MetricExporter::builder()
        .with_http()
        .with_endpoint(format!("{endpoint}/v1/metrics"))
        .with_timeout(TIMEOUT)
        .with_http_client(client)
        .build()
        .map_err(|source| failed(endpoint, source))?;
    let reader = PeriodicReader::builder(exporter).with_interval(METRICS_EVERY).build();
    Ok(SdkMeterProvider::builder()
        .with_resource(resource)
        .with_reader(reader)
        .build())
}

/// The metrics of a service as instruments, which read what the process counts.
fn instruments(meters: &SdkMeterProvider, service: Service, health: &Health) {
    let meter = meters.meter("annals");
    let readiness = health.readiness.clone();
    meter
        .i64_observable_gauge("annals.ready")
        .with_description("Whether the process does its work: 1, else 0")
        .with_callback(move |observed| observed.observe((*readiness.borrow() == Readiness::Ready).into(), &[]))
        .build();
    certificate_ends(&meter, health);
    for metric in METRICS.iter().filter(|metric| metric.of.contains(&service)) {
        let metrics = Arc::clone(&health.metrics);
        let unit = match metric.unit {
            Some(Unit::Seconds) => "s",
            Some(Unit::Bytes) => "By",
            _ => "1",
        };
        match metric.read {
            Read::Counter(read) => drop(
                meter
                    .u64_observable_counter(metric.otel)
                    .with_description(metric.what)
                    .with_unit(unit)
                    .with_callback(move |observed| observed.observe(read(&metrics).get(), &[]))
                    .build(),
            ),
            Read::Micros(read) => drop(
                meter
                    .f64_observable_counter(metric.otel)
                    .with_description(metric.what)
                    .with_unit(unit)
                    .with_callback(move |observed| observed.observe(read(&metrics).get() as f64 / 1e6, &[]))
                    .build(),
            ),
            Read::Gauge(read) => drop(
                meter
                    .i64_observable_gauge(metric.otel)
                    .with_description(metric.what)
                    .with_unit(unit)
                    .with_callback(move |observed| observed.observe(read(&metrics).get(), &[]))
                    .build(),
            ),
            Read::Violations(read) => drop(
                meter
                    .u64_observable_counter(metric.otel)
                    .with_description(metric.what)
                    .with_unit(unit)
                    .with_callback(move |observed| {
                        for (violation, count) in read(&metrics).all() {
                            observed.observe(count, &[KeyValue::new(KIND, violation.name())]);
                        }
                    })
                    .build(),
            ),
            Read::Histogram(read) => {
                let exported = meter
                    .f64_histogram(metric.otel)
                    .with_description(metric.what)
                    .with_unit(unit)
                    .with_boundaries(BOUNDS.iter().map(|bound| *bound as f64 / 1e6).collect());
                read(&metrics).export(exported.build());
            }
        }
    }
}

/// The ends of certificates, each with the setting that names its file.
fn certificate_ends(meter: &Meter, health: &Health) {
    let certificates = health.certificates.clone();
    meter
        .i64_observable_gauge("annals.certificate.end")
        .with_description(CERTIFICATE_END)
        .with_unit("s")
        .with_callback(move |observed| {
            for CertificateEnd { setting, end } in certificates.ends() {
                observed.observe(end, &[KeyValue::new("setting", setting)]);
            }
        })
        .build();
}

/// A client for the collector. The library's client must be created outside of an async runtime.
fn client(endpoint: &str) -> Result<reqwest::blocking::Client, OtlpError> {
    // Another part of the process may have chosen the same provider before.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let making = std::thread::spawn(|| reqwest::blocking::Client::builder().timeout(TIMEOUT).build());
    let made = making.join().map_err(|_| OtlpError::Thread)?;
    made.map_err(|source| OtlpError::Client {
        endpoint: endpoint.to_owned(),
        source,
    })
}

/// What describes the process, by the semantic conventions. The settings may override it.
fn resource(settings: &Telemetry, realm: &Realm, service: Service) -> Resource {
    let instance: String = random::<16>().iter().map(|byte| format!("{byte:02x}")).collect();
    let ours = [
        ("service.name", format!("annals-{}", service.name())),
        ("service.namespace", realm.to_string()),
        ("service.version", env!("CARGO_PKG_VERSION").to_owned()),
        ("service.instance.id", instance),
        ("process.pid", std::process::id().to_string()),
    ];
    let ours = ours.into_iter().map(|(name, value)| KeyValue::new(name, value));
    let given = settings.attributes.0.iter();
    let given = given.map(|(name, value)| KeyValue::new(name.clone(), value.clone()));
    Resource::builder_empty().with_attributes(ours.chain(given)).build()
}

/// Takes at most [`QUEUE`] spans, and counts what it drops.
#[derive(Debug)]
struct Bounded {
    batch: BatchSpanProcessor,
    waiting: Arc<AtomicUsize>,
    metrics: Arc<Metrics>,
}

impl Bounded {
    fn take(&self, span: SpanData) {
        if self.waiting.fetch_add(1, Ordering::Relaxed) >= QUEUE {
            self.waiting.fetch_sub(1, Ordering::Relaxed);
            self.metrics.spans_dropped.add(1);
        } else {
            self.batch.on_end(span);
        }
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.batch.shutdown_with_timeout(timeout)
    }
}

/// The processor as [`Traces`] holds it.
#[derive(Debug)]
struct Shared(Arc<Bounded>);

impl SpanProcessor for Shared {
    fn on_start(&self, _: &mut Span, _: &Context) {}

    fn on_end(&self, span: SpanData) {
        self.0.take(span);
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.0.batch.force_flush()
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.0.shutdown_with_timeout(timeout)
    }
}

/// Counts what was exported and what was not, and reports a collector that is away.
#[derive(Debug)]
struct Counted {
    exporter: SpanExporter,
    waiting: Arc<AtomicUsize>,
    metrics: Arc<Metrics>,
    wait: Mutex<Wait>,
}

impl opentelemetry_sdk::trace::SpanExporter for Counted {
    async fn export(&self, spans: Vec<SpanData>) -> OTelSdkResult {
        let count = spans.len();
        let exported = self.exporter.export(spans).await;
        self.waiting.fetch_sub(count, Ordering::Relaxed);
        let mut wait = self.wait.lock().unwrap_or_else(PoisonError::into_inner);
        match &exported {
            Ok(()) => {
                self.metrics.spans_exported.add(count as u64);
                wait.ends();
            }
            Err(error) => {
                self.metrics.spans_dropped.add(count as u64);
                wait.lasts(error);
            }
        }
        exported
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.exporter.shutdown_with_timeout(timeout)
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.exporter.set_resource(resource);
    }
}
