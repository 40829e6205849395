//! What bots do during a run.

use std::{fmt, time::Duration};

use annals_client::walk::Gathering;

/// Average interval between the calls of a walking bot.
pub(super) const CALL_EVERY: Duration = Duration::from_secs(1);

/// Interval between a walking bot's checks for something to trade.
const TRADE_EVERY: Duration = Duration::from_millis(300);

/// The same at a trade fair: one step of a bot.
const TRADE_EVERY_AT_A_FAIR: Duration = Duration::from_millis(100);

/// Average interval between chat messages: about that of people.
const SAY_EVERY: Duration = Duration::from_secs(10);

/// Interval between round-trip measurements.
const ECHO_EVERY: Duration = Duration::from_secs(1);

/// The same of an idle bot, which is to cost as little as possible.
const ECHO_EVERY_IF_IDLE: Duration = Duration::from_secs(10);

/// What all bots of a run do.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Conduct {
    /// They move as people do, speak, call every exposed method in turn, and trade.
    #[default]
    Walk,
    /// They go to one place, move about there, and speak.
    Crowd(Gathering),
    /// The same, and each trades with the others as often as the realm settles.
    TradeFair(Gathering),
    /// The same at the pace of people, and with everybody who proposes a trade: each trade that begins is completed.
    Market(Gathering),
    /// Each logs in, stays, logs off, and begins anew.
    LogInStorm(Visits),
    /// They stay where they are and do nothing.
    Idle,
}

/// The visits of a storm of log-ins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Visits {
    /// Log-ins per second, of all bots together.
    pub rate: u32,
    /// How long each bot stays.
    pub stay: Duration,
}

/// How often a bot does what; `None`: never.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Habits {
    pub(super) moves: Option<Moves>,
    pub(super) calls: Option<Duration>,
    pub(super) speaks: Option<Duration>,
    pub(super) trades: Option<Duration>,
    /// Whether it completes each trade, instead of changing its mind.
    pub(super) is_steady: bool,
    pub(super) echoes: Duration,
    /// How long a session lasts, if it does not last until the end.
    pub(super) stays: Option<Duration>,
}

/// Where a bot moves.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Moves {
    Anywhere,
    To(Gathering),
}

impl Conduct {
    /// The names of all kinds, as scenarios have them.
    pub const NAMES: [&str; 6] = ["walk", "crowd", "trade-fair", "market", "log-in-storm", "idle"];

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        let index = match self {
            Self::Walk => 0,
            Self::Crowd(_) => 1,
            Self::TradeFair(_) => 2,
            Self::Market(_) => 3,
            Self::LogInStorm(_) => 4,
            Self::Idle => 5,
        };
        Self::NAMES[index]
    }

    pub(super) fn habits(&self) -> Habits {
        let idle = Habits {
            moves: None,
            calls: None,
            speaks: None,
            trades: None,
            is_steady: false,
            echoes: ECHO_EVERY_IF_IDLE,
            stays: None,
        };
        let together = |gathering| Habits {
            moves: Some(Moves::To(gathering)),
            speaks: Some(SAY_EVERY),
            echoes: ECHO_EVERY,
            ..idle
        };
        match *self {
            Self::Walk => Habits {
                moves: Some(Moves::Anywhere),
                calls: Some(CALL_EVERY),
                speaks: Some(SAY_EVERY),
                trades: Some(TRADE_EVERY),
                echoes: ECHO_EVERY,
                ..idle
            },
            Self::Crowd(gathering) => together(gathering),
            Self::TradeFair(gathering) => Habits {
                trades: Some(TRADE_EVERY_AT_A_FAIR),
                ..together(gathering)
            },
            Self::Market(gathering) => Habits {
                trades: Some(TRADE_EVERY),
                is_steady: true,
                ..together(gathering)
            },
            Self::LogInStorm(visits) => Habits {
                echoes: ECHO_EVERY,
                stays: Some(visits.stay),
                ..idle
            },
            Self::Idle => idle,
        }
    }
}

impl fmt::Display for Conduct {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
