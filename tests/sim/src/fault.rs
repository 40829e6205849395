//! What can go wrong.

use std::fmt;

/// Whatever can go wrong: blows, which strike once, and troubles, which befall a share of all that passes by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Something large, once.
    Blow(Blow),
    /// Something small, to a share of what passes by while it lasts.
    Trouble(Trouble),
}

/// A large fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Blow {
    /// A cell process dies; another is started in its place a little later.
    CrashCell,
    /// A base process dies.
    CrashBase,
    /// The process that holds the ledger's owner dies.
    CrashLedger,
    /// A cell or base process stops for longer than the director waits, and wakes up not knowing it.
    Pause,
    /// A cell or base process reaches neither log, store, director nor other processes for a while; its clients reach it.
    CutOff,
    /// A cell or base process and the other processes do not reach each other for a while; it reaches everything else.
    CutFromPeers,
    /// The director does not hear a cell or base process for a while, which goes on working.
    CutFromDirector,
    /// The wall clock of a process jumps, by up to two days, in either direction.
    ClockJump,
    /// The director dies; a standby takes over.
    CrashDirector,
    /// The director stops; a standby takes over; the first wakes up and believes that it leads.
    PauseDirector,
    /// db dies and comes back.
    CrashDb,
    /// db stops; a standby takes over; the first wakes up and believes that it folds.
    PauseDb,
    /// The stream loses an acknowledged message from the middle of a log.
    LoseMessage,
    /// The stream loses its newest messages, acknowledged as they were.
    LoseTail,
    /// Power fails while the log writes: the record that is being written is cut off and dropped at the restart, and what was
    /// not synced before it.
    TornWrite,
    /// The disk of the log is slow for a while: appends take effect late, many of them after their writer has given up.
    SlowDisk,
    /// The log takes and answers nothing for longer than anything stays fresh.
    LogAway,
    /// The store takes and answers nothing for a while.
    StoreAway,
    /// A client's connection breaks.
    Disconnect,
    /// A cell process dies while an entity is on its way from it or to it.
    CrashMidway,
}

impl Blow {
    /// All of them.
    pub const ALL: [Blow; 20] = [
        Self::CrashCell,
        Self::CrashBase,
        Self::CrashLedger,
        Self::Pause,
        Self::CutOff,
        Self::CutFromPeers,
        Self::CutFromDirector,
        Self::ClockJump,
        Self::CrashDirector,
        Self::PauseDirector,
        Self::CrashDb,
        Self::PauseDb,
        Self::LoseMessage,
        Self::LoseTail,
        Self::TornWrite,
        Self::SlowDisk,
        Self::LogAway,
        Self::StoreAway,
        Self::Disconnect,
        Self::CrashMidway,
    ];

    fn word(self) -> &'static str {
        match self {
            Self::CrashCell => "a cell process dies",
            Self::CrashBase => "a base process dies",
            Self::CrashLedger => "the ledger's holder dies",
            Self::Pause => "a process stops and wakes",
            Self::CutOff => "a process is cut off",
            Self::CutFromPeers => "a process is cut off from its peers",
            Self::CutFromDirector => "a process is cut off from the director",
            Self::ClockJump => "a clock jumps",
            Self::CrashDirector => "the director dies",
            Self::PauseDirector => "the director stops and wakes",
            Self::CrashDb => "db dies",
            Self::PauseDb => "db stops and wakes",
            Self::LoseMessage => "the log loses a message in its middle",
            Self::LoseTail => "the log loses its tail",
            Self::TornWrite => "a write is torn",
            Self::SlowDisk => "the disk is slow",
            Self::LogAway => "the log is away",
            Self::StoreAway => "the store is away",
            Self::Disconnect => "a connection breaks",
            Self::CrashMidway => "a cell dies in a hand-over",
        }
    }
}

/// A small fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Trouble {
    /// The bus loses a message.
    Drop,
    /// The bus delivers a message twice.
    Duplicate,
    /// The bus holds a message back for long, so that others overtake it.
    Delay,
    /// An append is lost before the log has it.
    LostAppend,
    /// An append reaches the log after its writer has given up.
    LateAppend,
    /// An answer of log or store to a holder is lost.
    LostAnswer,
    /// A transaction of the store conflicts with another.
    Conflict,
    /// A transaction is committed, and nobody hears of it.
    UnknownDone,
    /// A transaction is lost, and nobody hears of it.
    UnknownLost,
    /// A transaction is committed later, when its asker has gone on, before or after what comes next; nobody hears of it.
    UnknownLate,
}

impl Trouble {
    /// All of them.
    pub const ALL: [Trouble; 10] = [
        Self::Drop,
        Self::Duplicate,
        Self::Delay,
        Self::LostAppend,
        Self::LateAppend,
        Self::LostAnswer,
        Self::Conflict,
        Self::UnknownDone,
        Self::UnknownLost,
        Self::UnknownLate,
    ];

    fn word(self) -> &'static str {
        match self {
            Self::Drop => "the bus loses a message",
            Self::Duplicate => "the bus repeats a message",
            Self::Delay => "the bus holds a message back",
            Self::LostAppend => "an append is lost",
            Self::LateAppend => "an append comes late",
            Self::LostAnswer => "an answer is lost",
            Self::Conflict => "a transaction conflicts",
            Self::UnknownDone => "a commit's answer is lost",
            Self::UnknownLost => "a commit is lost",
            Self::UnknownLate => "a commit comes late",
        }
    }
}

impl Kind {
    /// All of them.
    pub fn all() -> impl Iterator<Item = Self> {
        let blows = Blow::ALL.into_iter().map(Self::Blow);
        blows.chain(Trouble::ALL.into_iter().map(Self::Trouble))
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Blow(blow) => blow.word(),
            Self::Trouble(trouble) => trouble.word(),
        })
    }
}
