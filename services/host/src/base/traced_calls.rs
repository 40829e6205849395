//! The root spans of traced calls of clients: from the arrival of the call at its base to the answer that confirms it.

use std::{
    collections::{BTreeMap, VecDeque},
    ops::RangeInclusive,
};

use annals_event::Trace;
use annals_ids::{CallNumber, EntityId, Part, SessionId};
use annals_node::ConnectionId;
use annals_wire::client::{Call, Hello, ToClient, ToServer};

use crate::telemetry::{Span, Traces, trace::call_trace};

/// Maximum calls whose answers are awaited. Beyond it, the oldest are abandoned.
const OPEN: usize = 1_024;

/// A call of a session.
type Key = (SessionId, EntityId, Part, CallNumber);

/// The calls that wait for their answers.
pub(super) struct TracedCalls {
    traces: Traces,
    realm: String,
    sessions: BTreeMap<ConnectionId, SessionId>,
    open: BTreeMap<Key, Span>,
    /// The open calls, oldest first, and some that are no longer open.
    order: VecDeque<Key>,
}

impl TracedCalls {
    pub(super) fn new(traces: Traces, realm: String) -> Self {
        Self {
            traces,
            realm,
            sessions: BTreeMap::new(),
            open: BTreeMap::new(),
            order: VecDeque::new(),
        }
    }

    /// A connection names its session.
    pub(super) fn greet(&mut self, connection: ConnectionId, hello: &Hello) {
        self.sessions.insert(connection, hello.session);
    }

    /// The trace of a frame; none if it is no call.
    pub(super) fn arrive(&mut self, connection: ConnectionId, frame: &ToServer) -> Trace {
        let (ToServer::Call(call), Some(session)) = (frame, self.sessions.get(&connection).copied()) else {
            return Trace::default();
        };
        let trace = call_trace(&self.realm, session, call);
        let key = (session, call.entity, call.part, call.number);
        // A call that is sent again is still the same.
        if !self.open.contains_key(&key)
            && let Some(span) = self.traces.root("client call", trace)
        {
            self.open(key, of_call(span, session, call));
        }
        trace
    }

    /// A frame leaves for a client: it may answer calls.
    pub(super) fn answer(&mut self, connection: ConnectionId, frame: &[u8]) {
        if self.open.is_empty() {
            return;
        }
        let Some(session) = self.sessions.get(&connection).copied() else {
            return;
        };
        match ToClient::read(frame) {
            Ok(ToClient::Took { entity, part, upto }) => {
                for span in self.take(session, (entity, part), CallNumber(0)..=upto) {
                    span.end();
                }
            }
            Ok(ToClient::Refused {
                entity,
                part,
                number,
                reason,
            }) => {
                for span in self.take(session, (entity, part), number..=number) {
                    span.fail(reason.to_string());
                }
            }
            Ok(ToClient::Gone { entity, part }) => {
                for span in self.take(session, (entity, part), CallNumber(0)..=CallNumber(u64::MAX)) {
                    span.fail("the receiver no longer exists");
                }
            }
            _ => {}
        }
    }

    /// A connection is closed. Its open calls are abandoned: the client sends them again, and the base that confirms
    /// them then reports the root of the same trace.
    pub(super) fn close(&mut self, connection: ConnectionId) {
        if let Some(session) = self.sessions.remove(&connection)
            && !self.sessions.values().any(|other| *other == session)
        {
            self.open.retain(|(of, ..), _| *of != session);
        }
    }

    fn open(&mut self, key: Key, span: Span) {
        if self.order.len() >= OPEN {
            self.order.retain(|key| self.open.contains_key(key));
            if self.order.len() >= OPEN
                && let Some(oldest) = self.order.pop_front()
            {
                self.open.remove(&oldest);
            }
        }
        self.order.push_back(key);
        self.open.insert(key, span);
    }

    fn take(
        &mut self,
        session: SessionId,
        (entity, part): (EntityId, Part),
        numbers: RangeInclusive<CallNumber>,
    ) -> Vec<Span> {
        let key = |number: &CallNumber| (session, entity, part, *number);
        let keys = key(numbers.start())..=key(numbers.end());
        let keys: Vec<Key> = self.open.range(keys).map(|(key, _)| *key).collect();
        keys.iter().filter_map(|key| self.open.remove(key)).collect()
    }
}

fn of_call(span: Span, session: SessionId, call: &Call) -> Span {
    span.with("annals.session", session.to_string())
        .with("annals.entity", call.entity.to_string())
        .with("annals.part", call.part.to_string())
        .with("annals.call.number", i64::try_from(call.number.0).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use opentelemetry::trace::Status;

    use super::*;
    use crate::telemetry::testing::Ended;

    const ME: ConnectionId = ConnectionId(1);
    const AVATAR: EntityId = EntityId(9);

    fn calls(ratio: f64) -> (TracedCalls, Ended) {
        let ended = Ended::default();
        let mut calls = TracedCalls::new(Traces::new(ratio, Box::new(ended.clone())), "aldmoor".to_owned());
        calls.sessions.insert(ME, SessionId(7));
        (calls, ended)
    }

    fn call(number: u64) -> ToServer {
        ToServer::Call(Call {
            entity: AVATAR,
            part: Part::Cell,
            number: CallNumber(number),
            is_oldest: false,
            message: Vec::new(),
        })
    }

    fn frame(frame: &ToClient) -> Vec<u8> {
        let mut bytes = Vec::new();
        frame.write(&mut bytes);
        bytes
    }

    fn took(upto: u64) -> Vec<u8> {
        frame(&ToClient::Took {
            entity: AVATAR,
            part: Part::Cell,
            upto: CallNumber(upto),
        })
    }

    #[test]
    fn a_root_ends_with_the_answer_and_is_the_same_after_a_reconnection() {
        let (mut calls, ended) = calls(1.0);
        let traces: Vec<Trace> = (1..=3).map(|number| calls.arrive(ME, &call(number))).collect();
        assert_eq!(calls.arrive(ME, &call(2)), traces[1], "it is sent again");
        calls.answer(ME, &took(2));
        let roots = ended.take();
        let ids: Vec<Trace> = roots
            .iter()
            .map(|root| root.span_context.trace_id().to_bytes())
            .collect();
        assert_eq!(ids, traces[..2]);
        calls.close(ME);
        assert!(
            ended.take().is_empty() && calls.open.is_empty(),
            "what is abandoned is not reported"
        );
        let next = ConnectionId(2);
        calls.sessions.insert(next, SessionId(7));
        assert_eq!(calls.arrive(next, &call(3)), traces[2]);
        calls.answer(
            next,
            &frame(&ToClient::Gone {
                entity: AVATAR,
                part: Part::Cell,
            }),
        );
        let [root] = &ended.take()[..] else { panic!() };
        assert!(matches!(root.status, Status::Error { .. }));
    }

    #[test]
    fn few_calls_are_open_and_unchosen_ones_cost_nothing() {
        let (mut calls, ended) = calls(1.0);
        for number in 1..=2 * OPEN as u64 {
            calls.arrive(ME, &call(number));
        }
        assert_eq!((calls.open.len(), calls.order.len()), (OPEN, OPEN));
        calls.answer(ME, &took(2 * OPEN as u64));
        assert_eq!(ended.take().len(), OPEN);
        let (mut none, _) = self::calls(0.0);
        assert_ne!(
            none.arrive(ME, &call(1)),
            Trace::default(),
            "the log has the trace all the same"
        );
        assert!(none.open.is_empty());
    }
}
