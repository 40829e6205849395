//! The kinds of faults.

use std::fmt;

/// A kind of fault: a blow, which strikes once, or a trouble, which affects a share of all traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A large fault, once.
    Blow(Blow),
    /// A small fault, for a share of the traffic while it lasts.
    Trouble(Trouble),
}

/// A large fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Blow {
    /// A cell process crashes; another is started a little later.
    CrashCell,
    /// A base process crashes.
    CrashBase,
    /// The process that holds the ledger's owner crashes.
    CrashLedger,
    /// A cell or base process pauses for longer than the director's timeout, and resumes without knowing it.
    Pause,
    /// A cell or base process reaches neither log, store, director nor other processes for a while; its clients still
    /// reach it.
    CutOff,
    /// A cell or base process and the other processes do not reach each other for a while; it reaches everything else.
    CutFromPeers,
    /// The director receives no reports of a cell or base process for a while; the process keeps working.
    CutFromDirector,
    /// The wall clock of a process jumps, by up to two days, in either direction.
    ClockJump,
    /// The director crashes; a standby takes over.
    CrashDirector,
    /// The director is replaced by its operators: a standby leads within moments.
    ReplaceDirector,
    /// The director pauses; a standby takes over; the first resumes and still believes that it leads.
    PauseDirector,
    /// db crashes and restarts.
    CrashDb,
    /// db pauses; a standby takes over; the first resumes and still believes that it folds.
    PauseDb,
    /// The stream loses an acknowledged message from the middle of a log.
    LoseMessage,
    /// The stream loses its newest messages, although they were acknowledged.
    LoseTail,
    /// Power fails during a log write: the record being written is truncated and dropped at the restart, and so is
    /// everything that was not synced.
    TornWrite,
    /// The disk of the log is slow for a while: appends take effect late, many of them after their writer has given up.
    SlowDisk,
    /// The log accepts and answers nothing for longer than any owner stays fresh.
    LogAway,
    /// The store accepts and answers nothing for a while.
    StoreAway,
    /// A client's connection breaks.
    Disconnect,
    /// A cell process crashes while an entity is in transit from it or to it.
    CrashMidway,
    /// A cell or base process drains: others take over its owners (rule D9).
    Drain,
}

impl Blow {
    /// All blows.
    pub const ALL: [Blow; 22] = [
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
        Self::Drain,
        Self::ReplaceDirector,
    ];

    /// The blows that are faults: processes are drained and replaced by operators.
    pub fn faults() -> impl Iterator<Item = Self> {
        let is_fault = |blow: &Self| !matches!(blow, Self::Drain | Self::ReplaceDirector);
        Self::ALL.into_iter().filter(is_fault)
    }

    fn word(self) -> &'static str {
        match self {
            Self::CrashCell => "a cell process crashes",
            Self::CrashBase => "a base process crashes",
            Self::CrashLedger => "the ledger's holder crashes",
            Self::Pause => "a process is paused",
            Self::CutOff => "a process is partitioned",
            Self::CutFromPeers => "a process is partitioned from its peers",
            Self::CutFromDirector => "a process is partitioned from the director",
            Self::ClockJump => "a clock jumps",
            Self::CrashDirector => "the director crashes",
            Self::ReplaceDirector => "the director is replaced",
            Self::PauseDirector => "the director is paused",
            Self::CrashDb => "db crashes",
            Self::PauseDb => "db is paused",
            Self::LoseMessage => "the log loses a message in its middle",
            Self::LoseTail => "the log loses its tail",
            Self::TornWrite => "a write is torn",
            Self::SlowDisk => "the disk is slow",
            Self::LogAway => "the log is unavailable",
            Self::StoreAway => "the store is unavailable",
            Self::Disconnect => "a connection breaks",
            Self::CrashMidway => "a cell crashes in a hand-over",
            Self::Drain => "a process drains",
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
    /// The bus delays a message for long, so that others overtake it.
    Delay,
    /// An append is lost before it reaches the log.
    LostAppend,
    /// An append reaches the log after its writer has given up.
    LateAppend,
    /// An answer of log or store to a holder is lost.
    LostAnswer,
    /// A transaction of the store conflicts with another.
    Conflict,
    /// A transaction is committed, but its outcome is reported as unknown.
    UnknownDone,
    /// A transaction is lost, and its outcome is reported as unknown.
    UnknownLost,
    /// A transaction is committed later, after its caller has continued, before or after the next one; its outcome is
    /// reported as unknown.
    UnknownLate,
}

impl Trouble {
    /// All troubles.
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
            Self::Delay => "the bus delays a message",
            Self::LostAppend => "an append is lost",
            Self::LateAppend => "an append is late",
            Self::LostAnswer => "an answer is lost",
            Self::Conflict => "a transaction conflicts",
            Self::UnknownDone => "a commit's answer is lost",
            Self::UnknownLost => "a commit is lost",
            Self::UnknownLate => "a commit is late",
        }
    }
}

impl Kind {
    /// All kinds.
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
