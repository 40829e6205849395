//! A collector of OpenTelemetry: receives what processes export over HTTP, and keeps it.

use std::{
    collections::{BTreeMap, BTreeSet},
    convert::Infallible,
    sync::{Arc, Mutex},
};

use http_body_util::{BodyExt, Full};
use hyper::{Request, Response, StatusCode, body::Bytes, body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use opentelemetry_proto::tonic::{
    collector::{metrics::v1::ExportMetricsServiceRequest, trace::v1::ExportTraceServiceRequest},
    common::v1::{KeyValue, any_value::Value},
    resource::v1::Resource,
    trace::v1::Span,
};
use prost::Message;
use tokio::net::{TcpListener, TcpStream};

/// A span, and the process that exported it.
#[derive(Clone, Debug)]
pub(crate) struct Stop {
    /// `annals-base` and so on.
    pub(crate) service: String,
    /// The id of the process.
    pub(crate) instance: String,
    pub(crate) span: Span,
}

impl Stop {
    pub(crate) fn text(&self, name: &str) -> Option<String> {
        text(&self.span.attributes, name)
    }

    /// The owner that did this.
    pub(crate) fn owner(&self) -> Option<i64> {
        match value(&self.span.attributes, "annals.owner")? {
            Value::IntValue(owner) => Some(*owner),
            _ => None,
        }
    }
}

/// The spans of a trace.
pub(crate) type Stops = Vec<Stop>;

/// A collector that has an address, and answers once it is switched on.
pub(crate) struct Collector {
    listener: Option<TcpListener>,
    pub(crate) url: String,
    received: Arc<Mutex<Received>>,
}

/// What was exported so far.
#[derive(Default)]
struct Received {
    traces: BTreeMap<Vec<u8>, Stops>,
    /// Names of metrics, by service.
    metrics: BTreeMap<String, BTreeSet<String>>,
}

impl Collector {
    /// One that takes connections and answers nothing yet.
    pub(crate) async fn hanging() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("it is bound");
        Self {
            listener: Some(listener),
            url: format!("http://{address}"),
            received: Arc::default(),
        }
    }

    /// Answers from now on.
    pub(crate) fn answer(&mut self) {
        let listener = self.listener.take().expect("it does not answer yet");
        let received = Arc::clone(&self.received);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, Arc::clone(&received)));
            }
        });
    }

    /// The traces so far, by their ids.
    pub(crate) fn traces(&self) -> BTreeMap<Vec<u8>, Stops> {
        self.received.lock().expect("nothing panics with it").traces.clone()
    }

    /// The names of metrics so far, by service.
    pub(crate) fn metrics(&self) -> BTreeMap<String, BTreeSet<String>> {
        self.received.lock().expect("nothing panics with it").metrics.clone()
    }
}

async fn serve(stream: TcpStream, received: Arc<Mutex<Received>>) {
    let service = service_fn(|request| take(request, Arc::clone(&received)));
    // A client that ends its connection is no concern of the collector's.
    let _ = http1::Builder::new()
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

async fn take(request: Request<Incoming>, received: Arc<Mutex<Received>>) -> Result<Response<Full<Bytes>>, Infallible> {
    let path = request.uri().path().to_owned();
    let body = request.into_body().collect().await;
    let body = body.map(|body| body.to_bytes()).unwrap_or_default();
    let mut received = received.lock().expect("nothing panics with it");
    let is_kept = match path.as_str() {
        "/v1/traces" => ExportTraceServiceRequest::decode(body).map(|export| received.keep_spans(export)),
        "/v1/metrics" => ExportMetricsServiceRequest::decode(body).map(|export| received.keep_metrics(export)),
        _ => panic!("a process exports to {path}"),
    };
    let mut response = Response::new(Full::default());
    if is_kept.is_err() {
        *response.status_mut() = StatusCode::BAD_REQUEST;
    }
    Ok(response)
}

impl Received {
    fn keep_spans(&mut self, export: ExportTraceServiceRequest) {
        for process in export.resource_spans {
            let [service, instance] = names(process.resource);
            for span in process.scope_spans.into_iter().flat_map(|scope| scope.spans) {
                self.traces.entry(span.trace_id.clone()).or_default().push(Stop {
                    service: service.clone(),
                    instance: instance.clone(),
                    span,
                });
            }
        }
    }

    fn keep_metrics(&mut self, export: ExportMetricsServiceRequest) {
        for process in export.resource_metrics {
            let [service, _] = names(process.resource);
            let metrics = process.scope_metrics.into_iter().flat_map(|scope| scope.metrics);
            self.metrics
                .entry(service)
                .or_default()
                .extend(metrics.map(|metric| metric.name));
        }
    }
}

/// The names of service and process.
fn names(resource: Option<Resource>) -> [String; 2] {
    let attributes = resource.map(|resource| resource.attributes).unwrap_or_default();
    ["service.name", "service.instance.id"].map(|name| text(&attributes, name).expect("it is named"))
}

fn text(attributes: &[KeyValue], name: &str) -> Option<String> {
    match value(attributes, name)? {
        Value::StringValue(text) => Some(text.clone()),
        _ => None,
    }
}

fn value<'a>(attributes: &'a [KeyValue], name: &str) -> Option<&'a Value> {
    let found = attributes.iter().find(|attribute| attribute.key == name)?;
    found.value.as_ref()?.value.as_ref()
}

/// The chain of spans from the first one of this name, which ends a path through the trace, up to the root: service and
/// name of each. `None` if there is no such span, or a parent is not known.
pub(crate) fn path(stops: &Stops, name: &str) -> Option<Vec<(String, String)>> {
    let mut stop = stops.iter().find(|stop| stop.span.name == name)?;
    let mut path = Vec::new();
    let mut seen = BTreeSet::new();
    loop {
        assert!(
            seen.insert(&stop.span.span_id),
            "the parents of {name} go round in a circle"
        );
        path.push((stop.service.clone(), stop.span.name.clone()));
        if stop.span.parent_span_id.is_empty() {
            return Some(path);
        }
        stop = stops
            .iter()
            .find(|other| other.span.span_id == stop.span.parent_span_id)?;
    }
}
