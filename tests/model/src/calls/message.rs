//! Messages on the bus, which is the set of everything sent.

use super::{E, F};

/// A message. There are few enough to number them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Message {
    /// The call with this number from this entity to the other.
    Call {
        /// The caller.
        from: u8,
        /// Its number on the link.
        number: u8,
        body: u8,
    },
    /// The confirmation of the other entity's calls that this one has taken.
    Took {
        /// The entity that took them.
        by: u8,
        /// The highest number taken.
        upto: u8,
    },
    /// The receiver no longer exists.
    Gone,
}

/// A message as its receiver sees it.
pub(crate) enum ToReceiver {
    Call { to: u8, number: u8, body: u8 },
    Took { caller: u8, upto: u8 },
    Gone,
}

/// Maximum number and body.
const MOST: u8 = 3;

impl Message {
    pub(crate) fn receiver(self) -> ToReceiver {
        match self {
            Self::Call { from, number, body } => ToReceiver::Call {
                to: 1 - from,
                number,
                body,
            },
            Self::Took { by, upto } => ToReceiver::Took { caller: 1 - by, upto },
            Self::Gone => ToReceiver::Gone,
        }
    }

    fn bit(self) -> u32 {
        let index = match self {
            Self::Call { from, number, body } => from * MOST * MOST + (number - 1) * MOST + body,
            Self::Took { by, upto } => 2 * MOST * MOST + by * MOST + (upto - 1),
            Self::Gone => 2 * MOST * MOST + 2 * MOST,
        };
        1 << index
    }

    fn all() -> impl Iterator<Item = Self> {
        let calls = [E, F].into_iter().flat_map(|from| {
            (1..=MOST).flat_map(move |number| (0..MOST).map(move |body| Self::Call { from, number, body }))
        });
        let took = [E, F]
            .into_iter()
            .flat_map(|by| (1..=MOST).map(move |upto| Self::Took { by, upto }));
        calls.chain(took).chain([Self::Gone])
    }
}

/// A set of messages.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct Bus(u32);

impl Bus {
    pub(crate) fn has(self, message: Message) -> bool {
        self.0 & message.bit() != 0
    }

    pub(crate) fn add(&mut self, message: Message) {
        self.0 |= message.bit();
    }

    pub(crate) fn remove(&mut self, message: Message) {
        self.0 &= !message.bit();
    }

    pub(crate) fn messages(self) -> impl Iterator<Item = Message> {
        Message::all().filter(move |message| self.has(*message))
    }
}
