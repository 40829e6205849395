//! One bot, from its first log-in to the last line of its record, over as many sessions as needed.

use std::{
    fs::File,
    io::{BufWriter, Write},
    time::{Duration, Instant},
};

use annals_client::{Client, Config, Credentials};
use annals_def::{Schema, split_mix};
use tokio::time::{sleep, sleep_until};

use super::{
    BotPlan, BotsError, Tally,
    report::{BotReport, Interruption},
    session::{After, Session},
    trader::Trader,
};
use crate::showings::EXTENSION;

/// Delay before a bot logs in again after its session has ended.
const AGAIN_AFTER: Duration = Duration::from_secs(1);

/// How long a bot that is interrupted at the end of its time waits for the interruption to end: longer than any process
/// takes to recover.
pub(super) const BACK_WITHIN: Duration = Duration::from_secs(20);

/// Plays until the time is over, and leaves.
pub(super) async fn play(
    plan: &BotPlan,
    number: usize,
    endpoint: quinn::Endpoint,
    tally: &Tally,
) -> Result<BotReport, BotsError> {
    let path = plan.files.join(format!("{}bot-{number:03}.{EXTENSION}", plan.prefix));
    let mut file = File::create(&path)
        .map(BufWriter::new)
        .map_err(|source| BotsError::Write {
            path: path.clone(),
            source,
        })?;
    let seed = plan.seed.wrapping_add(number as u64);
    let name = format!("bot{number}");
    let config = Config {
        login: plan.login,
        trust: plan.trust.clone(),
        credentials: Credentials::password(name.clone(), plan.password.clone()),
        schema: plan.schema.clone(),
        seed,
        reads: plan.reads,
    };
    let mut bot = Bot {
        schema: &plan.schema,
        tally,
        report: BotReport::new(name, path.clone()),
        dice: Box::new(split_mix(seed)),
        trader: Trader::default(),
        turn: number,
        interrupted: None,
    };
    let mut visit = Instant::now();
    let played = loop {
        let client = Client::start(endpoint.clone(), config.clone());
        let session = Session::new(&mut bot, plan.conduct.habits(), client, &mut file);
        match session.play(&plan.until, &plan.resting).await {
            Ok(After::LogInAnew) if Instant::now() + AGAIN_AFTER < *plan.until.borrow() + BACK_WITHIN => {
                sleep(AGAIN_AFTER).await;
            }
            // All bots visit in turn. A visit that began late does not delay the next.
            Ok(After::VisitAgain) => {
                visit += plan.at_rate(plan.bots);
                if visit >= *plan.until.borrow() {
                    break file.flush();
                }
                sleep_until(visit.into()).await;
            }
            Ok(_) => break file.flush(),
            Err(error) => break Err(error),
        }
    };
    match played {
        Ok(()) => Ok(bot.finished()),
        Err(source) => Err(BotsError::Write { path, source }),
    }
}

/// State that outlives a session.
pub(super) struct Bot<'p> {
    pub(super) schema: &'p Schema,
    pub(super) tally: &'p Tally,
    pub(super) report: BotReport,
    pub(super) dice: Box<dyn FnMut() -> u64 + Send>,
    pub(super) trader: Trader,
    /// Number of calls planned.
    pub(super) turn: usize,
    /// Start of the silence at the end of the last session.
    pub(super) interrupted: Option<Instant>,
}

impl Bot<'_> {
    fn finished(mut self) -> BotReport {
        let endless = self.interrupted.map(|from| Interruption { from, to: None });
        self.report.interruptions.extend(endless);
        self.report.trades = self.trader.ended;
        (self.report.granted, self.report.denied) = (self.trader.granted, self.trader.refused);
        self.report
    }

    /// This duration, plus or minus up to half of it.
    pub(super) fn about(&mut self, time: Duration) -> Duration {
        let share = f64::from(((self.dice)() >> 32) as u32) / f64::from(u32::MAX);
        time.mul_f64(0.5 + share)
    }
}
