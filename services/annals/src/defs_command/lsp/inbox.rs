//! The queue of an editor's messages: bounded in number and in bytes.
//!
//! One thread puts, another takes. Putting blocks while the queue is full, which blocks the editor in turn.

use std::{
    collections::VecDeque,
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
};

use lsp_server::{Message, Notification, RequestId};
use lsp_types::notification::{Cancel, Notification as _};

use super::frame::{MAX_MESSAGE, Malformed};

/// Maximum queued events: enough for a fast typist while a large world is checked.
const MAX_WAITING: usize = 256;

/// Maximum queued bytes, as received: one message of maximum size, or many short ones.
const MAX_WAITING_BYTES: u64 = MAX_MESSAGE;

/// An input of the server.
#[derive(Debug)]
pub(super) enum Event {
    /// A message of the editor.
    Message(Message),
    /// The answer to this request is no longer wanted.
    Cancelled(RequestId),
    /// Malformed input.
    Malformed(Malformed),
    /// The end of the input.
    Closed,
}

/// A bounded queue of events, in order.
#[derive(Debug, Default)]
pub(super) struct Inbox {
    waiting: Mutex<Waiting>,
    /// Signals a put or a take.
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Waiting {
    /// Each with its size in bytes, as received.
    events: VecDeque<(Event, u64)>,
    bytes: u64,
}

impl Waiting {
    /// Whether this many more bytes may be queued. An empty queue accepts any event.
    fn has_room(&self, bytes: u64) -> bool {
        self.events.is_empty() || (self.events.len() < MAX_WAITING && self.bytes + bytes <= MAX_WAITING_BYTES)
    }

    fn take(&mut self) -> Option<Event> {
        let (event, bytes) = self.events.pop_front()?;
        self.bytes -= bytes;
        Some(event)
    }

    /// Cancels a queued request. The id of an answered or unknown request is ignored.
    fn cancel(&mut self, id: &RequestId) {
        let request = self
            .events
            .iter_mut()
            .find(|(event, _)| matches!(event, Event::Message(Message::Request(request)) if request.id == *id));
        if let Some((event, _)) = request {
            *event = Event::Cancelled(id.clone());
        }
    }
}

impl Inbox {
    /// Puts an event of this many bytes, as soon as there is room.
    pub(super) fn put(&self, event: Event, bytes: u64) {
        let mut waiting = self.lock();
        // Before waiting for room: the request to cancel may be what fills the queue.
        if let Some(id) = cancelled_by(&event) {
            waiting.cancel(&id);
        }
        let mut waiting = self
            .changed
            .wait_while(waiting, |waiting| !waiting.has_room(bytes))
            .unwrap_or_else(PoisonError::into_inner);
        waiting.bytes += bytes;
        waiting.events.push_back((event, bytes));
        self.changed.notify_all();
    }

    /// The next event, if there is one.
    pub(super) fn try_take(&self) -> Option<Event> {
        let event = self.lock().take();
        self.changed.notify_all();
        event
    }

    /// The next event; blocks until there is one.
    pub(super) fn take(&self) -> Event {
        let waiting = self.lock();
        let mut waiting = self
            .changed
            .wait_while(waiting, |waiting| waiting.events.is_empty())
            .unwrap_or_else(PoisonError::into_inner);
        let event = waiting.take().expect("invariant: waited until there is one");
        self.changed.notify_all();
        event
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        // The queue is consistent after every operation, so a poisoned lock is safe to use.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn cancelled_by(event: &Event) -> Option<RequestId> {
    let Event::Message(Message::Notification(Notification { method, params })) = event else {
        return None;
    };
    let id = params.get("id").filter(|_| method == Cancel::METHOD)?;
    serde_json::from_value(id.clone()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    use std::{sync::mpsc::sync_channel, thread};

    use lsp_server::Request;
    use serde_json::json;

    fn ask(id: i32) -> Event {
        Event::Message(Request::new(RequestId::from(id), "ask".to_owned(), json!({})).into())
    }

    fn cancel(id: i32) -> Event {
        Event::Message(Notification::new(Cancel::METHOD.to_owned(), json!({ "id": id })).into())
    }

    #[test]
    fn the_inbox_is_bounded_in_messages_and_bytes() {
        let mut waiting = Waiting::default();
        assert!(waiting.has_room(u64::MAX), "a single event always fits");
        waiting.events.push_back((Event::Closed, 10));
        waiting.bytes = 10;
        assert!(waiting.has_room(MAX_WAITING_BYTES - 10));
        assert!(!waiting.has_room(MAX_WAITING_BYTES - 9));
        waiting.events.extend((1..MAX_WAITING - 1).map(|_| (Event::Closed, 0)));
        assert!(waiting.has_room(0));
        waiting.events.push_back((Event::Closed, 0));
        assert!(!waiting.has_room(0));
    }

    #[test]
    fn a_sender_waits_until_there_is_capacity() {
        let inbox = Inbox::default();
        inbox.put(ask(1), MAX_WAITING_BYTES);
        let (sender, is_in) = sync_channel(1);
        thread::scope(|scope| {
            scope.spawn(|| {
                inbox.put(ask(2), 1);
                sender.send(()).expect("the receiver is alive");
            });
            assert!(
                is_in.try_recv().is_err(),
                "no capacity before the first message is taken"
            );
            assert!(matches!(inbox.take(), Event::Message(Message::Request(request)) if request.id == 1.into()));
            assert!(is_in.recv().is_ok());
            assert!(matches!(inbox.take(), Event::Message(Message::Request(request)) if request.id == 2.into()));
        });
        assert_eq!(inbox.lock().bytes, 0);
        assert!(inbox.try_take().is_none());
    }

    #[test]
    fn only_a_queued_request_is_cancelled() {
        let inbox = Inbox::default();
        inbox.put(ask(1), 1);
        inbox.put(ask(2), 1);
        inbox.put(cancel(1), 1);
        assert!(matches!(inbox.take(), Event::Cancelled(id) if id == 1.into()));
        inbox.put(cancel(3), 1);
        for id in [1, 3] {
            inbox.put(ask(id), 1);
        }
        let asked = std::iter::from_fn(|| inbox.try_take()).filter_map(|event| match event {
            Event::Message(Message::Request(request)) => Some(request.id),
            Event::Cancelled(id) => panic!("request {id} was sent again after it was cancelled"),
            _ => None,
        });
        assert_eq!(asked.collect::<Vec<_>>(), [2.into(), 1.into(), 3.into()]);
    }
}
