//! The stops of traced calls at db: from the arrival of a batch to the commit of the transaction that folds it.

use std::collections::VecDeque;

use annals_event::Header;
use annals_ids::{BatchNumber, OwnerId};
use annals_store::layout::owners::Cursor;
use opentelemetry::trace::SpanKind;

use crate::{
    log::Entry,
    telemetry::{Span, Traces},
};

/// Maximum traced calls in batches that are not folded. Older ones are abandoned.
const OPEN: usize = 1_024;

/// The traced calls that are being folded.
pub(super) struct TracedFolds {
    traces: Traces,
    open: VecDeque<(OwnerId, BatchNumber, Span)>,
}

impl TracedFolds {
    pub(super) fn new(traces: Traces) -> Self {
        Self {
            traces,
            open: VecDeque::new(),
        }
    }

    /// A message of the stream has arrived.
    pub(super) fn arrive(&mut self, entry: &Entry) {
        if entry.contexts.is_empty() || !self.traces.are_on() {
            return;
        }
        let Ok((header, _)) = Header::read(&entry.bytes) else {
            return;
        };
        for context in &entry.contexts {
            let span = self.traces.child("fold batch", SpanKind::Consumer, context);
            let Some(span) = span else { continue };
            let span = span
                .with("annals.owner", i64::from(entry.owner.0))
                .with("annals.batch", i64::try_from(header.number.0).unwrap_or(i64::MAX))
                .with("messaging.system", "nats")
                .with("messaging.operation.type", "process");
            if self.open.len() >= OPEN {
                self.open.pop_front();
            }
            self.open.push_back((entry.owner, header.number, span));
        }
    }

    /// The logs are folded up to these cursors.
    pub(super) fn fold(&mut self, cursors: &[(OwnerId, Cursor)]) {
        for _ in 0..self.open.len() {
            let Some((owner, batch, span)) = self.open.pop_front() else {
                return;
            };
            let is_folded = |(of, cursor): &(OwnerId, Cursor)| *of == owner && cursor.batch >= batch;
            if cursors.iter().any(is_folded) {
                span.end();
            } else {
                self.open.push_back((owner, batch, span));
            }
        }
    }
}
