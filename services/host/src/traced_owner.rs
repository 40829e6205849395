//! The stops of traced calls at one owner: a call arrives, its batch is appended, and what follows from it leaves.

use std::collections::VecDeque;

use annals_event::{FrozenBatch, Header, Link, Trace};
use annals_ids::{CallNumber, OwnerId};
use annals_wire::bus::{CallMessage, Message};
use async_nats::HeaderMap;
use opentelemetry::trace::{SpanContext, SpanKind};

use crate::telemetry::{
    Span, Traces,
    trace::{MAX_CONTEXTS, extract, inject, root_context, trace_of},
};

/// Maximum calls of which is known where they were handled, so that what follows is attached there. What follows from
/// older ones is attached to the root of the trace.
const KNOWN: usize = 1_024;

/// Maximum calls that are reported as recovered at a take-over.
const RECOVERED: usize = 64;

/// The traced calls of an owner.
pub(crate) struct TracedOwner {
    traces: Traces,
    owner: OwnerId,
    known: VecDeque<Known>,
}

/// A call that was handled here and is not confirmed.
struct Known {
    link: Link,
    number: CallNumber,
    /// The span in which it was handled.
    context: SpanContext,
}

/// What a message that leaves carries.
#[derive(Default)]
pub(crate) struct Leaving {
    pub(crate) headers: HeaderMap,
    /// They end when the message was sent.
    pub(crate) spans: Vec<Span>,
}

impl TracedOwner {
    pub(crate) fn new(traces: Traces, owner: OwnerId) -> Self {
        Self {
            traces,
            owner,
            known: VecDeque::new(),
        }
    }

    /// A message arrives. Returns the spans in which it is handled.
    pub(crate) fn arrive(&mut self, message: &Message, headers: Option<&HeaderMap>) -> Vec<Span> {
        if !self.traces.are_on() {
            return Vec::new();
        }
        match message {
            Message::Call(call) => self.call(call, headers).into_iter().collect(),
            Message::Took { .. } | Message::Refused { .. } => {
                let handled = extract(headers).into_iter();
                let span = |context: SpanContext| self.child("process confirmation", SpanKind::Consumer, &context);
                handled.filter_map(span).collect()
            }
            _ => Vec::new(),
        }
    }

    fn call(&mut self, call: &CallMessage, headers: Option<&HeaderMap>) -> Option<Span> {
        let sent = extract(headers)
            .into_iter()
            .find(|context| trace_of(context) == call.trace);
        let parent = sent.or_else(|| self.root(call.trace))?;
        let span = self.child("process call", SpanKind::Consumer, &parent)?;
        let span = span.with("annals.call.number", i64::try_from(call.number.0).unwrap_or(i64::MAX));
        if self.known.len() >= KNOWN {
            self.known.pop_front();
        }
        self.known.push_back(Known {
            link: call.link,
            number: call.number,
            context: span.context().clone(),
        });
        Some(span)
    }

    /// A message is about to leave. `None` if nothing in it is traced.
    pub(crate) fn leave(&mut self, message: &Message) -> Option<Leaving> {
        if !self.traces.are_on() {
            return None;
        }
        let (name, parents) = match message {
            Message::Call(call) => ("send call", self.place(call.trace).into_iter().collect()),
            Message::Took { link, upto } => ("send confirmation", self.confirm(*link, CallNumber(0), *upto)),
            Message::Refused { link, number, .. } => ("send confirmation", self.confirm(*link, *number, *number)),
            _ => return None,
        };
        let parents: Vec<SpanContext> = parents;
        let spans = parents.iter().take(MAX_CONTEXTS);
        let spans: Vec<Span> = spans
            .filter_map(|parent| self.child(name, SpanKind::Producer, parent))
            .collect();
        if spans.is_empty() {
            return None;
        }
        let mut headers = HeaderMap::new();
        inject(spans.iter().map(Span::context), &mut headers);
        Some(Leaving { headers, spans })
    }

    /// A batch is about to be appended. Returns a span for each traced call in it.
    pub(crate) fn append(&self, batch: &[u8]) -> Vec<Span> {
        let traced = self.taken(batch, |trace| self.place(trace));
        let traced = traced.into_iter().take(MAX_CONTEXTS);
        traced
            .filter_map(|(parent, header)| {
                Some(of_batch(
                    self.child("append batch", SpanKind::Producer, &parent)?,
                    &header,
                ))
            })
            .collect()
    }

    /// The owner is taken over, and its log has these batches, which may not have been shown. Returns a span for each
    /// traced call in them.
    pub(crate) fn recover(&self, batches: &[FrozenBatch]) -> Vec<Span> {
        let traced = batches
            .iter()
            .flat_map(|batch| self.taken(&batch.bytes, |trace| self.root(trace)))
            .take(RECOVERED);
        traced
            .filter_map(|(parent, header)| {
                Some(of_batch(
                    self.child("recover call", SpanKind::Internal, &parent)?,
                    &header,
                ))
            })
            .collect()
    }

    /// The traced calls that a batch has taken, with the contexts that `place` finds for them.
    fn taken(&self, batch: &[u8], place: impl Fn(Trace) -> Option<SpanContext>) -> Vec<(SpanContext, Header)> {
        if !self.traces.are_on() {
            return Vec::new();
        }
        let Ok((header, _)) = Header::read(batch) else {
            return Vec::new();
        };
        let contexts = header.consumed.iter().filter_map(|consumed| place(consumed.trace));
        contexts.map(|context| (context, header.clone())).collect()
    }

    /// Where the work of a trace was done here; else its root, if it is traced.
    fn place(&self, trace: Trace) -> Option<SpanContext> {
        let known = self.known.iter().rev();
        let handled = known
            .map(|known| &known.context)
            .find(|context| trace_of(context) == trace);
        handled.cloned().or_else(|| self.root(trace))
    }

    fn root(&self, trace: Trace) -> Option<SpanContext> {
        self.traces.choose(trace).then(|| root_context(trace))
    }

    /// The calls of a link that are confirmed now.
    fn confirm(&mut self, link: Link, from: CallNumber, upto: CallNumber) -> Vec<SpanContext> {
        let mut confirmed = Vec::new();
        self.known.retain(|known| {
            let is_it = known.link == link && (from..=upto).contains(&known.number);
            if is_it {
                confirmed.push(known.context.clone());
            }
            !is_it
        });
        confirmed
    }

    fn child(&self, name: &'static str, kind: SpanKind, parent: &SpanContext) -> Option<Span> {
        let operation = match kind {
            SpanKind::Consumer => "process",
            _ => "send",
        };
        let is_message = !matches!(kind, SpanKind::Internal);
        let span = self.traces.child(name, kind, parent)?;
        let span = span.with("annals.owner", i64::from(self.owner.0));
        Some(match is_message {
            true => span
                .with("messaging.system", "nats")
                .with("messaging.operation.type", operation),
            false => span,
        })
    }
}

fn of_batch(span: Span, header: &Header) -> Span {
    let number = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    span.with("annals.batch", number(header.number.0))
        .with("annals.epoch", number(header.epoch.0))
}

#[cfg(test)]
mod tests {
    use annals_event::{Call, Gathering, Imprint, Tail};
    use annals_ids::{Address, EntityId, Epoch, Hash, SessionId, Tick, WallTime};

    use super::*;
    use crate::telemetry::testing::Ended;

    const OWNER: OwnerId = OwnerId(3);
    const TRACE: Trace = [7; 16];
    const LINK: Link = Link {
        from: Address::Client(SessionId(5)),
        to: Address::Cell(EntityId(9)),
    };

    fn owner(ratio: f64) -> (TracedOwner, Ended) {
        let ended = Ended::default();
        let traces = Traces::new(ratio, Box::new(ended.clone()));
        (TracedOwner::new(traces, OWNER), ended)
    }

    fn call(number: u64, trace: Trace) -> Message {
        Message::Call(CallMessage {
            link: LINK,
            from_home: OwnerId(1),
            to_home: OWNER,
            number: CallNumber(number),
            is_oldest: false,
            trace,
            call: Call::Exposed { message: Vec::new() },
        })
    }

    fn took(upto: u64) -> Message {
        Message::Took {
            link: LINK,
            upto: CallNumber(upto),
        }
    }

    /// A batch that has taken a call of that trace.
    fn batch(trace: Trace) -> FrozenBatch {
        let mut gathering = Gathering::default();
        gathering.consume(LINK.from, LINK.to, CallNumber(1), trace);
        let imprint = Imprint {
            realm: "aldmoor".to_owned(),
            owner: OWNER,
            epoch: Epoch(2),
            schema: Hash::ZERO,
        };
        gathering.freeze(&imprint, &mut Tail::default(), Tick(0), WallTime(0), false)
    }

    #[test]
    fn what_follows_from_a_call_is_attached_where_it_was_handled() {
        let (mut owner, ended) = owner(0.0);
        // The sender has sampled it, whatever the ratio is here.
        let mut headers = HeaderMap::new();
        inject([&root_context(TRACE)], &mut headers);
        let spans = owner.arrive(&call(1, TRACE), Some(&headers));
        let [span] = &spans[..] else { panic!("{spans:?}") };
        let handled = span.context().clone();
        spans.into_iter().for_each(Span::end);
        for (following, name) in [(call(4, TRACE), "send call"), (took(1), "send confirmation")] {
            let left = owner.leave(&following).unwrap();
            assert_eq!(
                extract(Some(&left.headers))[0].span_id(),
                left.spans[0].context().span_id()
            );
            left.spans.into_iter().for_each(Span::end);
            let last = ended.take().pop().unwrap();
            assert_eq!((&*last.name, last.parent_span_id), (name, handled.span_id()));
        }
        assert!(owner.leave(&took(1)).is_none(), "it is confirmed once");
        assert!(owner.leave(&call(2, [8; 16])).is_none(), "others are not traced");
    }

    #[test]
    fn without_a_header_the_ratio_decides_and_the_root_is_the_parent() {
        let (mut all, ended) = owner(1.0);
        all.arrive(&call(1, TRACE), None).into_iter().for_each(Span::end);
        let [handled] = &ended.take()[..] else {
            panic!("one span")
        };
        assert_eq!(handled.parent_span_id, root_context(TRACE).span_id());
        assert!(
            all.arrive(&call(1, Trace::default()), None).is_empty(),
            "it has no trace"
        );
        let (mut none, _) = owner(0.0);
        assert!(none.arrive(&call(1, TRACE), None).is_empty());
        assert!(none.append(&batch(TRACE).bytes).is_empty());
    }

    #[test]
    fn the_log_continues_a_trace_after_a_take_over() {
        let (mut before, ended) = owner(1.0);
        let handled = before.arrive(&call(1, TRACE), None);
        let appended = before.append(&batch(TRACE).bytes);
        assert_eq!(appended.len(), 1);
        appended.into_iter().for_each(Span::end);
        let append = ended.take().pop().unwrap();
        assert_eq!(append.parent_span_id, handled[0].context().span_id());
        // The next holder knows nothing but the log.
        let (next, ended) = owner(1.0);
        let recovered = next.recover(&[batch(TRACE), batch([0; 16])]);
        recovered.into_iter().for_each(Span::end);
        let [recovered] = &ended.take()[..] else {
            panic!("one span")
        };
        assert_eq!(trace_of(&recovered.span_context), TRACE);
        assert_eq!(recovered.parent_span_id, root_context(TRACE).span_id());
        assert_eq!(next.recover(&vec![batch(TRACE); 2 * RECOVERED]).len(), RECOVERED);
    }

    #[test]
    fn few_calls_are_remembered() {
        let (mut owner, _) = owner(1.0);
        for number in 0..2 * KNOWN as u64 {
            owner.arrive(&call(number, TRACE), None);
        }
        assert_eq!(owner.known.len(), KNOWN);
        let left = owner.leave(&took(u64::MAX)).unwrap();
        assert_eq!((left.spans.len(), owner.known.len()), (MAX_CONTEXTS, 0));
    }
}
