//! What is simulated, and what goes wrong in it: all drawn from the seed.

/// A share of chances, in parts of ten thousand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Odds(pub u64);

impl Odds {
    /// Whether it happens this time.
    pub fn hit(self, roll: u64) -> bool {
        roll % 10_000 < self.0
    }
}

/// One realm and its faults.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Base processes.
    pub bases: u64,
    /// Cell processes.
    pub cells: u64,
    /// Clients.
    pub clients: u64,
    /// Milliseconds during which clients play and things go wrong.
    pub play_ms: u64,
    /// Milliseconds without new calls and faults, at the end of which everything must have come to rest.
    pub settle_ms: u64,
    /// Messages that the bus loses.
    pub drop: Odds,
    /// Messages that the bus delivers twice.
    pub duplicate: Odds,
    /// Messages that the bus holds back for long, so that others overtake them.
    pub delay: Odds,
    /// Answers of the log that are lost.
    pub lost_answer: Odds,
    /// Appends that are lost before the log has them.
    pub lost_append: Odds,
    /// Milliseconds between two larger faults; 0 for none.
    pub fault_every_ms: u64,
    /// Which larger faults there are.
    pub faults: Vec<Fault>,
}

/// A larger fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// A cell process dies; another is started in its place a little later.
    CrashCell,
    /// A base process dies.
    CrashBase,
    /// A cell or base process stops for longer than the director waits, and wakes up not knowing it.
    Pause,
    /// The director dies; a standby takes over.
    CrashDirector,
    /// db dies and comes back.
    CrashDb,
    /// The stream loses an acknowledged message from its middle.
    LoseMessage,
    /// The stream loses its newest messages.
    LoseTail,
    /// A client's connection breaks.
    Disconnect,
    /// The log takes and answers nothing for longer than anything stays fresh.
    LogAway,
}

impl Plan {
    /// The plan that a seed stands for. Every fifth seed has no large faults, every seventh a perfect bus: what fails there
    /// is simpler to understand.
    #[must_use]
    pub fn of(seed: u64, roll: &mut dyn FnMut() -> u64) -> Self {
        let mut between = |least: u64, most: u64| least + roll() % (most - least + 1);
        let every = [
            Fault::CrashCell,
            Fault::CrashBase,
            Fault::Pause,
            Fault::CrashDirector,
            Fault::CrashDb,
            Fault::LoseMessage,
            Fault::LoseTail,
            Fault::Disconnect,
            Fault::LogAway,
        ];
        let calm = seed.is_multiple_of(5);
        let perfect = seed.is_multiple_of(7);
        let odds = |value: u64| if perfect { Odds(0) } else { Odds(value) };
        let chosen = between(1, (1 << every.len()) - 1);
        Self {
            bases: between(1, 2),
            cells: between(1, 3),
            clients: between(2, 6),
            play_ms: between(8_000, 20_000),
            settle_ms: 45_000,
            drop: odds(between(0, 300)),
            duplicate: odds(between(0, 300)),
            delay: odds(between(0, 300)),
            lost_answer: odds(between(0, 200)),
            lost_append: odds(between(0, 200)),
            fault_every_ms: if calm { 0 } else { between(1_500, 6_000) },
            faults: every
                .into_iter()
                .enumerate()
                .filter(|(bit, _)| chosen >> bit & 1 == 1)
                .map(|(_, fault)| fault)
                .collect(),
        }
    }
}
