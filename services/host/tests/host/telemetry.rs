//! The log of a process, as it is written.

use std::{net::TcpListener, process::Command};

use annals_host::{
    config::{Service, Telemetry},
    health::Health,
    telemetry::{self, Traces, otlp::Otlp, trace::root_context},
};
use opentelemetry::{Context, trace::SpanKind};
use opentelemetry_sdk::{
    error::OTelSdkResult,
    trace::{Span, SpanData, SpanProcessor},
};
use serde_json::Value;

/// Set when this test program is the process that logs: the format to log in.
const FORMAT: &str = "ANNALS_TEST_LOG_FORMAT";

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";

/// Drops what has ended.
#[derive(Debug)]
struct Nowhere;

impl SpanProcessor for Nowhere {
    fn on_start(&self, _: &mut Span, _: &Context) {}

    fn on_end(&self, _: SpanData) {}

    fn force_flush(&self) -> OTelSdkResult {
        Ok(())
    }

    fn shutdown_with_timeout(&self, _: std::time::Duration) -> OTelSdkResult {
        Ok(())
    }
}

/// Is the process that logs, when the variable is set.
#[test]
fn logging_process() {
    let Ok(format) = std::env::var(FORMAT) else { return };
    telemetry::init(&"info".parse().unwrap(), format.parse().unwrap()).unwrap();
    let trace = u128::from_str_radix(TRACE, 16).unwrap().to_be_bytes();
    let span = Traces::new(1.0, Box::new(Nowhere)).child("hand-over", SpanKind::Internal, &root_context(trace));
    let span = span.unwrap();
    assert_eq!(span.context().trace_id().to_string(), TRACE);
    let span = span.of_log();
    let _inside = span.enter();
    tracing::info!(entity = 7, "offloaded");
    tracing::debug!("too fine");
    let again = telemetry::init(&"info".parse().unwrap(), format.parse().unwrap());
    assert!(again.is_err(), "logging is set up once");
}

/// The standard error of such a process.
fn logged(format: &str) -> String {
    let mut process = Command::new(std::env::current_exe().unwrap());
    process
        .args(["--exact", "telemetry::logging_process", "--nocapture"])
        .env(FORMAT, format);
    let output = process.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn json_is_an_object_a_line_with_the_trace() {
    let lines: Vec<Value> = logged("json")
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(
        lines.len(),
        1,
        "what the filter does not let through is not there: {lines:?}"
    );
    assert_eq!(lines[0]["message"], "offloaded");
    assert_eq!(lines[0]["entity"], 7);
    assert_eq!(lines[0]["level"], "INFO");
    assert_eq!(lines[0]["span"]["what"], "hand-over");
    assert_eq!(lines[0]["span"]["trace_id"], TRACE);
    assert_eq!(lines[0]["span"]["span_id"].as_str().unwrap().len(), 16);
}

#[test]
fn text_is_one_line_without_colours_outside_a_terminal() {
    let text = logged("text");
    assert_eq!(text.lines().count(), 1, "{text}");
    for part in [
        "INFO",
        "offloaded",
        "entity=7",
        &format!("trace_id={TRACE}"),
        "what=\"hand-over\"",
    ] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
    assert!(!text.contains('\u{1b}'), "{text:?}");
}

/// No process depends on its log: when the log fills the disk, the process goes on.
#[test]
fn an_unwritable_log_does_not_stop_the_process() {
    for format in ["text", "json"] {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let mut process = Command::new(std::env::current_exe().unwrap());
        process
            .args(["--exact", "telemetry::logging_process", "--nocapture"])
            .env(FORMAT, format)
            .stderr(full);
        let output = process.output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && said.contains("1 passed"), "{format}: {said}");
    }
}

/// A collector that accepts connections and answers nothing costs bounded memory, and what is dropped is counted.
#[test]
fn spans_that_a_silent_collector_leaves_waiting_are_bounded() {
    // As `docs/telemetry.md` says.
    const WAITING: u64 = 4_096;
    let collector = TcpListener::bind("127.0.0.1:0").unwrap();
    let settings = Telemetry {
        endpoint: Some(format!("http://{}", collector.local_addr().unwrap())),
        trace_ratio: "1".parse().unwrap(),
        attributes: "region=eu".parse().unwrap(),
    };
    let health = Health::default();
    let realm = "bounded".parse().unwrap();
    let otlp = Otlp::start(&settings, (&realm, Service::Cell), &health)
        .unwrap()
        .unwrap();
    for call in 0..WAITING + 1_000 {
        let trace = u128::from(call + 1).to_be_bytes();
        let span = otlp.traces.child("call", SpanKind::Internal, &root_context(trace));
        span.expect("each call is traced").end();
    }
    let dropped = health.metrics.spans_dropped.get();
    assert!(dropped >= 1_000, "{dropped} of {} were dropped", WAITING + 1_000);
    assert_eq!(health.metrics.spans_exported.get(), 0);
}
