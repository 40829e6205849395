//! Spans of traced calls. A span is exported when it ends; one that is dropped before was abandoned, and nothing of it
//! is exported.

use std::{borrow::Cow, fmt, sync::Arc, time::SystemTime};

use annals_event::Trace;
use opentelemetry::{
    InstrumentationScope, KeyValue, SpanId, TraceFlags, TraceId, Value,
    trace::{SpanContext, SpanKind, Status, TraceState},
};
use opentelemetry_sdk::trace::{
    IdGenerator, RandomIdGenerator, Sampler, SamplingDecision, ShouldSample, SpanData, SpanEvents, SpanLinks,
    SpanProcessor,
};

use super::trace::root_context;

/// The traces of a process: decides which calls are traced, and exports their spans. Clones are of the same process.
#[derive(Clone, Default)]
pub struct Traces(Option<Arc<Exporting>>);

struct Exporting {
    sampler: Sampler,
    scope: InstrumentationScope,
    processor: Box<dyn SpanProcessor>,
}

impl Traces {
    /// Traces a share of all calls (0 to 1), chosen by their traces' ids, so that all processes choose the same ones;
    /// `processor` takes the spans that have ended.
    pub fn new(ratio: f64, processor: Box<dyn SpanProcessor>) -> Self {
        let scope = InstrumentationScope::builder("annals").with_version(env!("CARGO_PKG_VERSION"));
        Self(Some(Arc::new(Exporting {
            sampler: Sampler::TraceIdRatioBased(ratio),
            scope: scope.build(),
            processor,
        })))
    }

    /// Whether anything is traced. If not, nothing needs to be looked up.
    pub fn are_on(&self) -> bool {
        self.0.is_some()
    }

    /// Whether a call is traced, by the ratio.
    pub fn choose(&self, trace: Trace) -> bool {
        let Some(exporting) = self.0.as_ref().filter(|_| trace != Trace::default()) else {
            return false;
        };
        let id = TraceId::from_bytes(trace);
        let sampled = exporting
            .sampler
            .should_sample(None, id, "", &SpanKind::Server, &[], &[]);
        sampled.decision == SamplingDecision::RecordAndSample
    }

    /// Begins the root span of a trace, if the trace is chosen.
    pub fn root(&self, name: &'static str, trace: Trace) -> Option<Span> {
        let exporting = self.0.as_ref().filter(|_| self.choose(trace))?;
        let context = root_context(trace);
        Some(Span::begin(exporting, (name, SpanKind::Server), context, None))
    }

    /// Begins a span within a sampled trace. `None` if nothing is traced.
    pub fn child(&self, name: &'static str, kind: SpanKind, parent: &SpanContext) -> Option<Span> {
        let exporting = self.0.as_ref()?;
        let context = SpanContext::new(
            parent.trace_id(),
            RandomIdGenerator::default().new_span_id(),
            TraceFlags::SAMPLED,
            false,
            TraceState::default(),
        );
        Some(Span::begin(exporting, (name, kind), context, Some(parent)))
    }
}

impl fmt::Debug for Traces {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Traces").field("are_on", &self.are_on()).finish()
    }
}

/// A span that has not ended.
pub struct Span {
    exporting: Arc<Exporting>,
    data: Box<SpanData>,
}

impl Span {
    fn begin(
        exporting: &Arc<Exporting>,
        (name, span_kind): (&'static str, SpanKind),
        span_context: SpanContext,
        parent: Option<&SpanContext>,
    ) -> Self {
        let start_time = SystemTime::now();
        let data = SpanData {
            span_context,
            parent_span_id: parent.map_or(SpanId::INVALID, SpanContext::span_id),
            parent_span_is_remote: parent.is_some_and(SpanContext::is_remote),
            span_kind,
            name: Cow::Borrowed(name),
            start_time,
            end_time: start_time,
            attributes: Vec::new(),
            dropped_attributes_count: 0,
            events: SpanEvents::default(),
            links: SpanLinks::default(),
            status: Status::Unset,
            instrumentation_scope: exporting.scope.clone(),
        };
        Self {
            exporting: Arc::clone(exporting),
            data: Box::new(data),
        }
    }

    /// Adds an attribute. Its names are constants: few, whatever happens.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: impl Into<Value>) -> Self {
        self.data.attributes.push(KeyValue::new(name, value));
        self
    }

    /// Its context, for its children.
    pub fn context(&self) -> &SpanContext {
        &self.data.span_context
    }

    /// A span of the log with its ids as fields. What is logged in it is found by the trace, and the other way round.
    pub fn of_log(&self) -> tracing::Span {
        let (what, context) = (&*self.data.name, &self.data.span_context);
        tracing::info_span!("work", what, trace_id = %context.trace_id(), span_id = %context.span_id())
    }

    /// Ends it, successfully.
    pub fn end(mut self) {
        self.data.end_time = SystemTime::now();
        self.exporting.processor.on_end(*self.data);
    }

    /// Ends it with an error.
    pub fn fail(mut self, why: impl Into<Cow<'static, str>>) {
        self.data.status = Status::error(why);
        self.end();
    }
}

impl fmt::Debug for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let context = &self.data.span_context;
        write!(f, "{} {} {}", self.data.name, context.trace_id(), context.span_id())
    }
}

#[cfg(test)]
pub(crate) mod testing {
    use std::{
        sync::{Arc, Mutex},
        time::Duration,
    };

    use opentelemetry::Context;
    use opentelemetry_sdk::{
        error::OTelSdkResult,
        trace::{Span, SpanData, SpanProcessor},
    };

    /// Keeps the spans that have ended.
    #[derive(Clone, Debug, Default)]
    pub(crate) struct Ended(Arc<Mutex<Vec<SpanData>>>);

    impl Ended {
        pub(crate) fn take(&self) -> Vec<SpanData> {
            std::mem::take(&mut self.0.lock().unwrap())
        }
    }

    impl SpanProcessor for Ended {
        fn on_start(&self, _: &mut Span, _: &Context) {}

        fn on_end(&self, span: SpanData) {
            self.0.lock().unwrap().push(span);
        }

        fn force_flush(&self) -> OTelSdkResult {
            Ok(())
        }

        fn shutdown_with_timeout(&self, _: Duration) -> OTelSdkResult {
            Ok(())
        }
    }
}
