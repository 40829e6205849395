//! The acknowledgement of predicted movements, which waits to leave in one packet with what the client sends next: a packet
//! of its own costs the base about as much as a movement. An acknowledgement contains those before it. What the server does
//! not know to be read costs it some bytes, and nothing else.

use annals_wire::client::{ToServerDatagram, volatile::MovementAck};

use crate::event::Millis;

/// Maximum time that an acknowledgement waits, milliseconds: a client that moves sends something ten times a second.
const HELD_FOR: u64 = 150;

#[derive(Debug, Default)]
pub(crate) struct HeldAck(Option<Waiting>);

#[derive(Debug)]
struct Waiting {
    until: Millis,
    view: u64,
    ack: MovementAck,
}

impl HeldAck {
    /// Holds the acknowledgement of movements that were read from a view, instead of an earlier one of the same view.
    pub(crate) fn hold(&mut self, now: Millis, view: u64, ack: MovementAck) {
        let until = self.deadline().unwrap_or_else(|| now.after(HELD_FOR));
        self.0 = Some(Waiting { until, view, ack });
    }

    /// Takes it, as a datagram.
    pub(crate) fn take(&mut self) -> Option<Vec<u8>> {
        let Waiting { view, ack, .. } = self.0.take()?;
        let mut bytes = Vec::new();
        ToServerDatagram::MovementAck { view, ack }.write(&mut bytes);
        Some(bytes)
    }

    /// Takes it if it has waited long enough.
    pub(crate) fn take_overdue(&mut self, now: Millis) -> Option<Vec<u8>> {
        self.deadline().filter(|until| *until <= now)?;
        self.take()
    }

    /// Discards it: the view is not continued.
    pub(crate) fn discard(&mut self) {
        self.0 = None;
    }

    pub(crate) fn deadline(&self) -> Option<Millis> {
        self.0.as_ref().map(|waiting| waiting.until)
    }
}
