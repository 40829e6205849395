//! Why something ended or was refused, as one enumeration.

use annals_client::EndReason;
use annals_wire::client::{CallRefusal, CloseReason, LoginRefusal, Rejection};

/// Why something ended or was refused: LOGIN by the login service, BASE by the base, CLOSED with the connection, CALL by
/// the entity that was called, ANSWER by its method. Later versions may have more.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnnalsReason {
    /// None is given.
    None = 0,
    /// The game has left.
    Left = 1,
    /// The account is banned.
    Banned = 2,
    /// The name or the password is wrong.
    LoginWrongPassword = 100,
    /// Too many attempts; wait a minute.
    LoginThrottled = 101,
    /// The realm is busy.
    LoginBusy = 102,
    /// The client speaks another version of the protocol.
    LoginWrongProtocol = 103,
    /// The base is being taken over.
    LoginNotHeld = 104,
    /// The session is unknown.
    LoginUnknownSession = 105,
    /// The realm is shutting down.
    LoginShuttingDown = 106,
    /// No account can have this name.
    LoginUnfitName = 107,
    /// The account is logged in elsewhere, and the realm admits no second client.
    LoginLoggedIn = 108,
    /// The token is invalid or has expired.
    LoginWrongToken = 109,
    /// The realm takes other credentials.
    LoginOtherCredentials = 110,
    /// A registration, and the name is taken.
    LoginNameTaken = 111,
    /// A registration, and the realm takes none.
    LoginNoRegistration = 112,
    /// There is no account of this name.
    LoginNoAccount = 113,
    /// The client speaks another version of the protocol.
    BaseWrongProtocol = 200,
    /// The client has other definitions than the realm.
    BaseWrongSchema = 201,
    /// The session is unknown.
    BaseUnknownSession = 202,
    /// The base is held by another process.
    BaseElsewhere = 203,
    /// The base is busy.
    BaseBusy = 204,
    /// The account logged in elsewhere.
    BaseLoggedInElsewhere = 205,
    /// The connection has served its purpose.
    ClosedFinished = 300,
    /// The connection was lost.
    ClosedLost = 301,
    /// The session was resumed over another connection.
    ClosedReplaced = 302,
    /// The base is held by another process now.
    ClosedMoved = 303,
    /// The process is shutting down.
    ClosedShuttingDown = 304,
    /// The session was ended by the realm.
    ClosedEnded = 305,
    /// The client did not read what was sent to it.
    ClosedTooSlow = 306,
    /// The client sent too much in too short a time.
    ClosedTooFast = 307,
    /// The client sent bytes that are not of the protocol.
    ClosedMalformed = 308,
    /// The client sent too large a frame.
    ClosedTooLarge = 309,
    /// No first frame arrived in time.
    ClosedSilent = 310,
    /// The process has reached its limit of connections.
    ClosedFull = 311,
    /// The account logged in elsewhere.
    ClosedLoggedInElsewhere = 312,
    /// The account was banned.
    ClosedBanned = 313,
    /// The part has no such method: the realm has other definitions.
    CallNoSuchMethod = 400,
    /// This client may not call that method of that entity.
    CallNotAllowed = 401,
    /// The arguments do not fit: the realm has other definitions.
    CallBadArguments = 402,
    /// The client calls the method more often than its definition allows.
    CallTooOften = 403,
    /// The method does not allow it.
    AnswerNotAllowed = 500,
    /// The receiver failed.
    AnswerInternal = 501,
    /// The arguments do not fit.
    AnswerInvalidArgs = 502,
    /// What the method called did not answer.
    AnswerNoReply = 503,
    /// What the method called does not exist.
    AnswerNoSuchEntity = 504,
    /// What the method called has no cell part.
    AnswerNoSuchCellEntity = 505,
    /// An error of the game.
    AnswerCustom = 506,
}

impl From<&annals_client::AnswerError> for AnnalsReason {
    fn from(error: &annals_client::AnswerError) -> Self {
        use annals_client::AnswerError as Error;
        match error {
            Error::Authenticate(_) => Self::AnswerNotAllowed,
            Error::Internal(_) => Self::AnswerInternal,
            Error::InvalidArgs(_) => Self::AnswerInvalidArgs,
            Error::NoReply => Self::AnswerNoReply,
            Error::NoSuchEntity => Self::AnswerNoSuchEntity,
            Error::NoSuchCellEntity => Self::AnswerNoSuchCellEntity,
            Error::Custom(..) => Self::AnswerCustom,
        }
    }
}

impl From<EndReason> for AnnalsReason {
    fn from(reason: EndReason) -> Self {
        match reason {
            EndReason::LoginRefused(reason) => reason.into(),
            EndReason::Rejected(reason) => reason.into(),
            EndReason::Closed(reason) => reason.into(),
            EndReason::Banned => Self::Banned,
            EndReason::Left => Self::Left,
        }
    }
}

impl From<LoginRefusal> for AnnalsReason {
    fn from(reason: LoginRefusal) -> Self {
        match reason {
            LoginRefusal::WrongPassword => Self::LoginWrongPassword,
            LoginRefusal::Throttled => Self::LoginThrottled,
            LoginRefusal::Busy => Self::LoginBusy,
            LoginRefusal::WrongProtocol => Self::LoginWrongProtocol,
            LoginRefusal::NotHeld => Self::LoginNotHeld,
            LoginRefusal::UnknownSession => Self::LoginUnknownSession,
            LoginRefusal::ShuttingDown => Self::LoginShuttingDown,
            LoginRefusal::UnfitName => Self::LoginUnfitName,
            LoginRefusal::LoggedIn => Self::LoginLoggedIn,
            LoginRefusal::WrongToken => Self::LoginWrongToken,
            LoginRefusal::OtherCredentials => Self::LoginOtherCredentials,
            LoginRefusal::NameTaken => Self::LoginNameTaken,
            LoginRefusal::NoRegistration => Self::LoginNoRegistration,
            LoginRefusal::NoAccount => Self::LoginNoAccount,
        }
    }
}

impl From<Rejection> for AnnalsReason {
    fn from(reason: Rejection) -> Self {
        match reason {
            Rejection::WrongProtocol => Self::BaseWrongProtocol,
            Rejection::WrongSchema => Self::BaseWrongSchema,
            Rejection::UnknownSession => Self::BaseUnknownSession,
            Rejection::Elsewhere => Self::BaseElsewhere,
            Rejection::Busy => Self::BaseBusy,
            Rejection::LoggedInElsewhere => Self::BaseLoggedInElsewhere,
        }
    }
}

impl From<CloseReason> for AnnalsReason {
    fn from(reason: CloseReason) -> Self {
        match reason {
            CloseReason::Finished => Self::ClosedFinished,
            CloseReason::Lost => Self::ClosedLost,
            CloseReason::Replaced => Self::ClosedReplaced,
            CloseReason::Moved => Self::ClosedMoved,
            CloseReason::ShuttingDown => Self::ClosedShuttingDown,
            CloseReason::Ended => Self::ClosedEnded,
            CloseReason::TooSlow => Self::ClosedTooSlow,
            CloseReason::TooFast => Self::ClosedTooFast,
            CloseReason::Malformed => Self::ClosedMalformed,
            CloseReason::TooLarge => Self::ClosedTooLarge,
            CloseReason::Silent => Self::ClosedSilent,
            CloseReason::Full => Self::ClosedFull,
            CloseReason::LoggedInElsewhere => Self::ClosedLoggedInElsewhere,
            CloseReason::Banned => Self::ClosedBanned,
        }
    }
}

impl From<CallRefusal> for AnnalsReason {
    fn from(reason: CallRefusal) -> Self {
        match reason {
            CallRefusal::NoSuchMethod => Self::CallNoSuchMethod,
            CallRefusal::NotAllowed => Self::CallNotAllowed,
            CallRefusal::BadArguments => Self::CallBadArguments,
            CallRefusal::TooOften => Self::CallTooOften,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers are part of the interface: a program in C may have been compiled against an earlier header.
    #[test]
    fn each_reason_has_a_number_of_its_group() {
        let number = |reason: AnnalsReason| reason as usize;
        for (index, reason) in LoginRefusal::ALL.into_iter().enumerate() {
            assert_eq!(number(EndReason::LoginRefused(reason).into()), 100 + index);
        }
        for (index, reason) in Rejection::ALL.into_iter().enumerate() {
            assert_eq!(number(EndReason::Rejected(reason).into()), 200 + index);
        }
        for (index, reason) in CloseReason::ALL.into_iter().enumerate() {
            assert_eq!(number(EndReason::Closed(reason).into()), 300 + index);
        }
        for (index, reason) in CallRefusal::ALL.into_iter().enumerate() {
            assert_eq!(number(reason.into()), 400 + index);
        }
        assert_eq!(number(EndReason::Left.into()), 1);
        assert_eq!(number(EndReason::Banned.into()), 2);
    }
}
