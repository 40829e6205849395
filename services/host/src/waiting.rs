//! Waits for what this process does not control: another process, a server, a disk. Each is reported in the process's
//! log in the same way, so that no process waits in silence, and none fills its log by waiting.

use std::fmt::Display;
use std::future::Future;
use std::time::Duration;

use annals_node::time::Mono;

use crate::clock;

/// Report interval of a wait that lasts.
pub const REPORT_EVERY: Duration = Duration::from_secs(10);

/// Normal time to an answer.
const ANSWERED_WITHIN: Duration = Duration::from_secs(1);

/// A wait, reported when it begins, every [`REPORT_EVERY`] while it lasts, and when it ends. A wait that has ended may
/// begin again.
///
/// Call [`lasts`](Self::lasts) after each failed try and [`ends`](Self::ends) after each that succeeded; a try that may
/// take long goes through [`during`](Self::during).
#[derive(Debug)]
pub struct Wait {
    awaited: String,
    advice: String,
    grace: Duration,
    since: Option<Mono>,
    reported: Option<Mono>,
}

impl Wait {
    /// A wait for `awaited`, which includes its address. `advice` says what the process does meanwhile, and what an
    /// operator can do.
    #[must_use]
    pub fn new(awaited: impl Into<String>, advice: impl Into<String>) -> Self {
        Self {
            awaited: awaited.into(),
            advice: advice.into(),
            grace: Duration::ZERO,
            since: None,
            reported: None,
        }
    }

    /// Reports nothing before the wait has lasted for `grace`: short waits are ordinary.
    #[must_use]
    pub fn after(self, grace: Duration) -> Self {
        Self { grace, ..self }
    }

    /// The wait goes on, for this reason. Warns once it has lasted a second: processes that start together wait for one
    /// another.
    pub fn lasts(&mut self, why: impl Display) {
        let now = clock::mono();
        let is_brief = self.since.is_none_or(|since| now.since(since) < ANSWERED_WITHIN);
        match self.lasts_at(now, why) {
            Some(line) if is_brief => tracing::info!("{line}"),
            Some(line) => tracing::warn!("{line}"),
            None => {}
        }
    }

    /// The wait is over.
    pub fn ends(&mut self) {
        if let Some(line) = self.ends_at(clock::mono()) {
            tracing::info!("{line}");
        }
    }

    /// Whether it was reported and has not ended.
    #[must_use]
    pub fn is_reported(&self) -> bool {
        self.reported.is_some()
    }

    /// Waits for `future`, which retries by itself and returns only its final result.
    pub async fn during<T>(&mut self, future: impl Future<Output = T>) -> T {
        self.since.get_or_insert_with(clock::mono);
        let mut future = std::pin::pin!(future);
        loop {
            tokio::select! {
                done = &mut future => return done,
                () = tokio::time::sleep(ANSWERED_WITHIN) => self.lasts("no answer yet"),
            }
        }
    }

    fn lasts_at(&mut self, now: Mono, why: impl Display) -> Option<String> {
        let since = *self.since.get_or_insert(now);
        let (lasted, is_first) = (now.since(since), self.reported.is_none());
        let is_due = match self.reported {
            Some(reported) => now.since(reported) >= REPORT_EVERY,
            None => lasted >= self.grace,
        };
        if !is_due {
            return None;
        }
        self.reported = Some(now);
        let Self { awaited, advice, .. } = self;
        Some(if is_first {
            format!("waiting for {awaited}: {why}; {advice}")
        } else {
            format!(
                "still waiting for {awaited} after {} s: {why}; {advice}",
                lasted.as_secs()
            )
        })
    }

    fn ends_at(&mut self, now: Mono) -> Option<String> {
        let since = self.since.take()?;
        self.reported.take()?;
        let lasted = now.since(since).as_secs_f64();
        Some(format!("no longer waiting for {}, after {lasted:.1} s", self.awaited))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(milliseconds: u64) -> Mono {
        Mono(milliseconds * 1_000)
    }

    /// The times, in milliseconds, at which a wait that is tried every 300 ms for a minute is reported.
    fn reports(wait: &mut Wait) -> Vec<u64> {
        let moments = (0..200).map(|turn| turn * 300);
        moments
            .filter(|moment| wait.lasts_at(at(*moment), "silence").is_some())
            .collect()
    }

    #[test]
    fn a_wait_is_reported_at_once_then_every_ten_seconds_and_when_it_ends() {
        let mut wait = Wait::new("the director on nats://a:1", "nothing is held; start it");
        assert_eq!(
            wait.lasts_at(at(0), "no process answers").as_deref(),
            Some("waiting for the director on nats://a:1: no process answers; nothing is held; start it")
        );
        assert_eq!(reports(&mut wait), [10_200, 20_400, 30_600, 40_800, 51_000]);
        assert_eq!(
            wait.lasts_at(at(61_200), "no answer").as_deref(),
            Some("still waiting for the director on nats://a:1 after 61 s: no answer; nothing is held; start it")
        );
        assert_eq!(
            wait.ends_at(at(61_500)).as_deref(),
            Some("no longer waiting for the director on nats://a:1, after 61.5 s")
        );
        assert_eq!(wait.ends_at(at(61_600)), None, "once");
        assert!(
            wait.lasts_at(at(70_000), "again")
                .is_some_and(|line| line.starts_with("waiting for"))
        );
    }

    #[test]
    fn a_usually_short_wait_is_reported_only_when_it_is_long() {
        let mut wait = Wait::new("an answer", "").after(Duration::from_secs(2));
        assert_eq!(wait.lasts_at(at(0), "none"), None);
        assert_eq!(wait.ends_at(at(1_900)), None, "a wait that was not reported");
        assert_eq!(reports(&mut wait), [2_100, 12_300, 22_500, 32_700, 42_900, 53_100]);
        assert!(wait.is_reported());
    }

    #[tokio::test]
    async fn a_slow_retry_loop_is_reported() {
        let mut wait = Wait::new("a sum", "");
        assert_eq!(wait.during(async { 3 }).await, 3);
        wait.ends();
        assert!(!wait.is_reported());
        let late = async {
            tokio::time::sleep(ANSWERED_WITHIN + Duration::from_millis(200)).await;
            4
        };
        assert_eq!(wait.during(late).await, 4);
        assert!(wait.is_reported());
    }
}
