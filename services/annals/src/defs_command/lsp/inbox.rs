//! What an editor has said and nobody has heard yet: bounded in number and in bytes.
//!
//! One thread puts in, another takes out. What is put in waits while there is no room, and then so does the editor.

use std::{
    collections::VecDeque,
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
};

use lsp_server::{Message, Notification, RequestId};
use lsp_types::notification::{Cancel, Notification as _};

use super::frame::{MAX_MESSAGE, Malformed};

/// Most events read ahead: enough for a fast typist while a large world is checked.
const MAX_WAITING: usize = 256;

/// Most bytes read ahead, as they came: one message of the greatest length, or many short ones.
const MAX_WAITING_BYTES: u64 = MAX_MESSAGE;

/// What can happen.
#[derive(Debug)]
pub(super) enum Event {
    /// The editor says something.
    Message(Message),
    /// The answer to this request is not wanted any more.
    Cancelled(RequestId),
    /// It says something that is no message.
    Malformed(Malformed),
    /// It says nothing more.
    Closed,
}

/// Events in their order.
#[derive(Debug, Default)]
pub(super) struct Inbox {
    waiting: Mutex<Waiting>,
    /// Something was put in, or taken out.
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Waiting {
    /// Each with the bytes that it came as.
    events: VecDeque<(Event, u64)>,
    bytes: u64,
}

impl Waiting {
    /// Whether as many bytes more may be read ahead. A single event always may.
    fn has_room(&self, bytes: u64) -> bool {
        self.events.is_empty() || (self.events.len() < MAX_WAITING && self.bytes + bytes <= MAX_WAITING_BYTES)
    }

    fn take(&mut self) -> Option<Event> {
        let (event, bytes) = self.events.pop_front()?;
        self.bytes -= bytes;
        Some(event)
    }

    /// Gives up a request that still waits. One that was answered, or never came, is nobody's any more.
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
    /// Puts in an event that came as so many bytes, as soon as there is room.
    pub(super) fn put(&self, event: Event, bytes: u64) {
        let mut waiting = self.lock();
        // Before it waits for room: what it cancels is what there is no room for.
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

    /// The next event, once there is one.
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
        // No state in between is ever left behind: what is in it is sound even if a thread died.
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
    fn room_is_bounded_in_number_and_in_bytes() {
        let mut waiting = Waiting::default();
        assert!(waiting.has_room(u64::MAX), "a single event is never stuck");
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
    fn who_puts_in_waits_until_there_is_room() {
        let inbox = Inbox::default();
        inbox.put(ask(1), MAX_WAITING_BYTES);
        let (sender, is_in) = sync_channel(1);
        thread::scope(|scope| {
            scope.spawn(|| {
                inbox.put(ask(2), 1);
                sender.send(()).expect("somebody hears it");
            });
            assert!(is_in.try_recv().is_err(), "there is no room before the first is taken");
            assert!(matches!(inbox.take(), Event::Message(Message::Request(request)) if request.id == 1.into()));
            assert!(is_in.recv().is_ok());
            assert!(matches!(inbox.take(), Event::Message(Message::Request(request)) if request.id == 2.into()));
        });
        assert_eq!(inbox.lock().bytes, 0);
        assert!(inbox.try_take().is_none());
    }

    #[test]
    fn only_a_request_that_waits_is_cancelled() {
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
            Event::Cancelled(id) => panic!("{id} was asked again after it was cancelled"),
            _ => None,
        });
        assert_eq!(asked.collect::<Vec<_>>(), [2.into(), 1.into(), 3.into()]);
    }
}
