//! Messages of a WebSocket, which carries frames and datagrams in one order.

/// A binary message in either direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WebSocketMessage<'m> {
    /// One frame, without its length.
    Frame(&'m [u8]),
    /// One datagram.
    Datagram(&'m [u8]),
    /// The client asks for the same message back, which measures the time of a round trip.
    Echo,
}

impl<'m> WebSocketMessage<'m> {
    const FRAME: u8 = 0;
    const DATAGRAM: u8 = 1;
    const ECHO: u8 = 2;

    /// Reads a message; `None` if it is malformed.
    #[must_use]
    pub fn read(bytes: &'m [u8]) -> Option<Self> {
        match bytes.split_first()? {
            (&Self::FRAME, body) => Some(Self::Frame(body)),
            (&Self::DATAGRAM, datagram) => Some(Self::Datagram(datagram)),
            (&Self::ECHO, []) => Some(Self::Echo),
            _ => None,
        }
    }

    /// The message's one encoding.
    #[must_use]
    pub fn bytes(self) -> Vec<u8> {
        let (kind, body): (u8, &[u8]) = match self {
            Self::Frame(body) => (Self::FRAME, body),
            Self::Datagram(datagram) => (Self::DATAGRAM, datagram),
            Self::Echo => (Self::ECHO, &[]),
        };
        [&[kind], body].concat()
    }
}
