//! Why a connection was closed. The reason is sent as the transport's own close code, because a stream that is blocked
//! or corrupt could not carry it.

use thiserror::Error;

/// Why a connection was closed. Display is an instruction to the player's side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Error)]
pub enum CloseReason {
    /// It has served its purpose: logged in, logged out.
    #[error("finished")]
    Finished,
    /// The transport failed, or nothing was received for too long.
    #[error("the connection was lost; resume the session")]
    Lost,
    /// The session continues over another connection.
    #[error("the session was resumed over another connection")]
    Replaced,
    /// The base is held by another process now.
    #[error("the base has moved; ask the login service where it is and resume there")]
    Moved,
    /// The process is shutting down.
    #[error("the server is shutting down; resume the session in a moment")]
    ShuttingDown,
    /// The account or session was ended by the realm.
    #[error("the session was ended by the realm; log in again")]
    Ended,
    /// The client did not read what was sent to it.
    #[error("the client was too slow to receive; resume the session")]
    TooSlow,
    /// The client sent more than is allowed.
    #[error("the client sent too much in too short a time; send less")]
    TooFast,
    /// The client sent bytes that are not a frame of the protocol.
    #[error("a frame or datagram was malformed; check the client's protocol version")]
    Malformed,
    /// The client sent a frame that is larger than allowed.
    #[error("a frame was too large; send less in one frame")]
    TooLarge,
    /// No first frame arrived in time.
    #[error("no first frame came in time; send it at once after connecting")]
    Silent,
    /// The process has reached its limit of connections.
    #[error("the server is full; try again in a moment")]
    Full,
    /// A later log-in of the account has replaced the session.
    #[error("the account logged in elsewhere")]
    LoggedInElsewhere,
    /// An operator has banned the account.
    #[error("the account was banned")]
    Banned,
}

impl CloseReason {
    /// Every reason, in the order of the codes, from 0.
    pub const ALL: [CloseReason; 14] = [
        Self::Finished,
        Self::Lost,
        Self::Replaced,
        Self::Moved,
        Self::ShuttingDown,
        Self::Ended,
        Self::TooSlow,
        Self::TooFast,
        Self::Malformed,
        Self::TooLarge,
        Self::Silent,
        Self::Full,
        Self::LoggedInElsewhere,
        Self::Banned,
    ];

    /// The close code: in QUIC the application error code, in WebSocket added to 4,000.
    #[must_use]
    pub fn code(self) -> u8 {
        match self {
            Self::Finished => 0,
            Self::Lost => 1,
            Self::Replaced => 2,
            Self::Moved => 3,
            Self::ShuttingDown => 4,
            Self::Ended => 5,
            Self::TooSlow => 6,
            Self::TooFast => 7,
            Self::Malformed => 8,
            Self::TooLarge => 9,
            Self::Silent => 10,
            Self::Full => 11,
            Self::LoggedInElsewhere => 12,
            Self::Banned => 13,
        }
    }

    /// The reason for a code. Unknown codes of newer servers count as lost.
    #[must_use]
    pub fn from_code(code: u64) -> Self {
        usize::try_from(code)
            .ok()
            .and_then(|code| Self::ALL.get(code))
            .copied()
            .unwrap_or(Self::Lost)
    }
}
