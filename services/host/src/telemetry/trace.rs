//! Identity of traces, and their context on the bus.
//!
//! A client's call has one trace for as long as it exists, whatever processes handle it: its id is a hash of what
//! identifies the call. So a call that a client sends again after the death of a process continues its trace.
//!
//! ```text
//! trace = SHA-256("annals call" realm:bytes 0 session:u64 entity:u64 part:u8 number:u64)[..16]
//! root  = trace[..8]                 ; the id of the span that covers the whole call
//! ```
//! Integers are big-endian; the part is 0 for the base and 1 for the cell.

use annals_event::Trace;
use annals_ids::{Part, SessionId};
use annals_wire::client::Call;
use async_nats::HeaderMap;
use opentelemetry::{
    Context, SpanId, TraceFlags, TraceId,
    propagation::{Extractor, Injector, TextMapPropagator},
    trace::{SpanContext, TraceContextExt, TraceState},
};
use opentelemetry_sdk::propagation::TraceContextPropagator;
use sha2::{Digest, Sha256};

/// The header of W3C trace context.
const HEADER: &str = "traceparent";

/// Maximum contexts in the headers of one message. A batch has more only if many calls of one tick are sampled; the
/// others lack the stops behind it. Headers count towards the size limit of a message, which leaves 4 kB for them.
pub const MAX_CONTEXTS: usize = 16;

/// The trace of a client's call.
pub fn call_trace(realm: &str, session: SessionId, call: &Call) -> Trace {
    let part = match call.part {
        Part::Base => 0,
        Part::Cell => 1,
    };
    let hash = Sha256::new()
        .chain_update("annals call")
        .chain_update(realm)
        .chain_update([0])
        .chain_update(session.0.to_be_bytes())
        .chain_update(call.entity.0.to_be_bytes())
        .chain_update([part])
        .chain_update(call.number.0.to_be_bytes())
        .finalize();
    let mut trace = Trace::default();
    trace.copy_from_slice(&hash[..16]);
    trace
}

/// The context of a trace's root span, for work whose parent is not known.
pub fn root_context(trace: Trace) -> SpanContext {
    let id = TraceId::from_bytes(trace);
    let mut root = [0; 8];
    root.copy_from_slice(&trace[..8]);
    SpanContext::new(
        id,
        SpanId::from_bytes(root),
        TraceFlags::SAMPLED,
        true,
        TraceState::default(),
    )
}

/// Adds contexts to a message's headers: one for each traced call that it carries.
pub fn inject<'a>(contexts: impl IntoIterator<Item = &'a SpanContext>, headers: &mut HeaderMap) {
    for context in contexts.into_iter().take(MAX_CONTEXTS) {
        let context = Context::new().with_remote_span_context(context.clone());
        TraceContextPropagator::new().inject_context(&context, &mut Headers(headers));
    }
}

/// The sampled contexts in a message's headers. What cannot be parsed is ignored: tracing is an aid, and never a reason
/// to refuse a message.
pub fn extract(headers: Option<&HeaderMap>) -> Vec<SpanContext> {
    let Some(headers) = headers else { return Vec::new() };
    let contexts = headers.get_all(HEADER).take(MAX_CONTEXTS).map(|value| {
        let context = TraceContextPropagator::new().extract_with_context(&Context::new(), &Value(value.as_str()));
        context.span().span_context().clone()
    });
    contexts
        .filter(|context| context.is_valid() && context.is_sampled())
        .collect()
}

/// The trace of a context, as in calls and the log.
pub fn trace_of(context: &SpanContext) -> Trace {
    context.trace_id().to_bytes()
}

struct Headers<'a>(&'a mut HeaderMap);

impl Injector for Headers<'_> {
    fn set(&mut self, key: &str, value: String) {
        // `tracestate` is always empty: no vendor adds to it on the bus.
        if key == HEADER {
            self.0.append(HEADER, value);
        }
    }
}

struct Value<'a>(&'a str);

impl Extractor for Value<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        (key == HEADER).then_some(self.0)
    }

    fn keys(&self) -> Vec<&str> {
        vec![HEADER]
    }
}

#[cfg(test)]
mod tests {
    use annals_ids::{CallNumber, EntityId};

    use super::*;

    const EXAMPLE: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    fn call(entity: u64, part: Part, number: u64) -> Call {
        Call {
            entity: EntityId(entity),
            part,
            number: CallNumber(number),
            is_oldest: false,
            message: vec![1],
        }
    }

    #[test]
    fn a_repeated_call_has_the_same_trace_and_no_other_has_it() {
        let first = call_trace("aldmoor", SessionId(7), &call(9, Part::Cell, 3));
        let again = Call {
            is_oldest: true,
            ..call(9, Part::Cell, 3)
        };
        assert_eq!(call_trace("aldmoor", SessionId(7), &again), first);
        for other in [
            call_trace("other", SessionId(7), &again),
            call_trace("aldmoor", SessionId(8), &again),
            call_trace("aldmoor", SessionId(7), &call(8, Part::Cell, 3)),
            call_trace("aldmoor", SessionId(7), &call(9, Part::Base, 3)),
            call_trace("aldmoor", SessionId(7), &call(9, Part::Cell, 4)),
        ] {
            assert_ne!(other, first);
        }
        assert_eq!(trace_of(&root_context(first)), first);
    }

    #[test]
    fn headers_carry_all_contexts_of_a_message() {
        let contexts = [root_context([3; 16]), root_context([4; 16])];
        let mut headers = HeaderMap::new();
        assert_eq!(extract(Some(&headers)), []);
        inject(&contexts, &mut headers);
        let read = extract(Some(&headers));
        assert_eq!(read.iter().map(trace_of).collect::<Vec<_>>(), [[3; 16], [4; 16]]);
        assert_eq!(read[0].span_id(), contexts[0].span_id());
        assert!(headers.get("tracestate").is_none());
    }

    #[test]
    fn what_is_not_sampled_or_not_a_context_is_ignored() {
        let read = |text: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(HEADER, text);
            extract(Some(&headers)).len()
        };
        assert_eq!(read(EXAMPLE), 1);
        let zero_trace = format!("00-{}-b7ad6b7169203331-01", "0".repeat(32));
        for ignored in [
            "",
            "nonsense",
            &EXAMPLE[..54],
            &EXAMPLE.replace("-01", "-00"),
            &zero_trace,
        ] {
            assert_eq!(read(ignored), 0, "{ignored}");
        }
        assert_eq!(extract(None), []);
    }

    #[test]
    fn a_message_has_few_contexts() {
        let mut headers = HeaderMap::new();
        inject(&vec![root_context([5; 16]); 100], &mut headers);
        assert_eq!(extract(Some(&headers)).len(), MAX_CONTEXTS);
        let bytes: usize = headers
            .iter()
            .flat_map(|(_, values)| values)
            .map(|value| value.as_str().len() + 16)
            .sum();
        assert!(bytes < 4 << 10, "{bytes}");
    }
}
