//! The results of a run of bots.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    path::PathBuf,
    time::{Duration, Instant},
};

use annals_client::EndReason;
use annals_def::Schema;
use annals_ids::{MemberId, Part, TypeId};
use annals_wire::client::{CallRefusal, CloseReason};
use hdrhistogram::Histogram;

use super::repertoire::exposed;

/// An interruption is noticed within this time after its cause, by the timeout of a connection at the latest.
const NOTICED_WITHIN: Duration = Duration::from_secs(4);

/// An interruption that begins within this time after the end of another is part of it.
const BELONGS_WITHIN: Duration = Duration::from_secs(1);

/// Longest time that is distinguished, microseconds.
const LONGEST_TIME: u64 = 60_000_000;

/// An exposed method that was called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Driven {
    /// Its type, as clients know it.
    pub entity_type: TypeId,
    pub part: Part,
    /// The method of that part.
    pub method: MemberId,
}

/// A time in which a bot received nothing about the world around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interruption {
    /// When it last received something.
    pub from: Instant,
    /// When it received something again; `None` if it never did.
    pub to: Option<Instant>,
}

/// The effect of an incident on a bot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gap {
    /// Nothing.
    None,
    /// It played on after this time.
    Of(Duration),
    /// It never played on.
    Endless,
}

/// How a trade ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TradeEnd {
    /// Each party received what the other had offered.
    Settled,
    /// A party cancelled it.
    Cancelled,
    /// It expired.
    Expired,
}

/// The results of one bot.
#[derive(Clone, Debug)]
pub struct BotReport {
    /// Its account.
    pub name: String,
    /// Its record of what it was shown.
    pub file: PathBuf,
    /// Sessions that were opened.
    pub log_ins: u64,
    /// Time in sessions.
    pub played: Duration,
    /// Positions that were sent.
    pub moves: u64,
    /// Calls made.
    pub calls: u64,
    /// Calls that were taken.
    pub confirmed: u64,
    /// Calls that were taken and rejected: the method, if the call was recent, and the reason.
    pub refused: BTreeMap<(Option<Driven>, CallRefusal), u64>,
    /// Calls that may not have been taken, because the part was destroyed.
    pub lost_calls: u64,
    /// Property changes shown.
    pub changes: u64,
    /// Calls of client methods shown.
    pub invocations: u64,
    /// Answers to calls shown.
    pub replies: u64,
    /// Full states received.
    pub refreshes: u64,
    /// Exposed methods that were called.
    pub driven: BTreeSet<Driven>,
    /// Properties of which a change was shown, by the type as which clients know the entity.
    pub properties_seen: BTreeSet<(TypeId, MemberId)>,
    /// Client methods of which a call was shown.
    pub methods_seen: BTreeSet<(TypeId, MemberId)>,
    /// Frames and datagrams received.
    pub received: u64,
    /// Their size in bytes.
    pub received_bytes: u64,
    /// Size in bytes of the datagrams, which carry movements.
    pub moves_bytes: u64,
    /// Number of samples of the view, one per second.
    pub looks: u64,
    /// Sum over these samples (`looks`) of the number of others in view.
    pub in_view: u64,
    /// View restarts because of a gap.
    pub view_gaps: u64,
    /// Frames and datagrams that could not be decoded: must be 0.
    pub malformed: u64,
    /// Calls that were resent.
    pub resent: u64,
    /// Number of session resumptions.
    pub resumed: u64,
    /// Log-ins that waited in the queue of a full realm.
    pub queued: u64,
    /// Number of times another process continued the session without an interruption.
    pub moved: u64,
    /// Warnings of sending too much: must be 0.
    pub rate_warnings: u64,
    /// The outcomes of the trades whose end it was shown, by proposer and the number of the proposer's wish.
    pub trades: BTreeMap<(u64, u64), TradeEnd>,
    /// Wishes about its holdings that were granted.
    pub granted: u64,
    /// Such wishes that were refused.
    pub denied: u64,
    /// Sessions that ended before the bot left.
    pub ended: Vec<EndReason>,
    /// The times in which it received nothing.
    pub interruptions: Vec<Interruption>,
    /// The times of at least [`annals_client::GAP`] milliseconds without an update of its view.
    pub gaps: Vec<Interruption>,
    /// Connections that were lost, and resumed or not.
    pub disconnected: Vec<CloseReason>,
    /// Microseconds from a call to its echo, through base and cell and back.
    pub round_trips: Histogram<u64>,
    /// Microseconds from the beginning of a log-in to the open session.
    pub log_in_times: Histogram<u64>,
}

/// The results of all bots.
#[derive(Clone, Debug)]
pub struct BotsReport {
    /// Each bot.
    pub bots: Vec<BotReport>,
    /// Time from the first log-in attempt to the last file closed.
    pub elapsed: Duration,
}

/// The effect of an incident on all bots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recovery {
    /// Bots that were interrupted.
    pub interrupted: u64,
    /// Interrupted bots that never played on.
    pub endless: u64,
    /// The median recovery time of the others.
    pub p50: Duration,
    /// The longest recovery time.
    pub longest: Duration,
}

impl BotReport {
    pub(super) fn new(name: String, file: PathBuf) -> Self {
        Self {
            name,
            file,
            log_ins: 0,
            played: Duration::ZERO,
            moves: 0,
            calls: 0,
            confirmed: 0,
            refused: BTreeMap::new(),
            lost_calls: 0,
            changes: 0,
            invocations: 0,
            replies: 0,
            refreshes: 0,
            driven: BTreeSet::new(),
            properties_seen: BTreeSet::new(),
            methods_seen: BTreeSet::new(),
            received: 0,
            received_bytes: 0,
            moves_bytes: 0,
            looks: 0,
            in_view: 0,
            view_gaps: 0,
            malformed: 0,
            resent: 0,
            resumed: 0,
            queued: 0,
            moved: 0,
            gaps: Vec::new(),
            rate_warnings: 0,
            trades: BTreeMap::new(),
            granted: 0,
            denied: 0,
            ended: Vec::new(),
            interruptions: Vec::new(),
            disconnected: Vec::new(),
            round_trips: times(),
            log_in_times: times(),
        }
    }

    /// The effect of an incident at `moment`: the time from then until the bot received updates again and was not
    /// interrupted anew.
    #[must_use]
    pub fn gap_after(&self, moment: Instant) -> Gap {
        let mut sorted = self.interruptions.clone();
        sorted.sort_by_key(|interruption| interruption.from);
        let mut until = None;
        for interruption in sorted {
            let latest = until.map_or(moment + NOTICED_WITHIN, |until| until + BELONGS_WITHIN);
            let belongs = interruption.from <= latest;
            match interruption.to {
                Some(to) if to <= moment => {}
                _ if !belongs => break,
                Some(to) => until = until.max(Some(to)),
                None => return Gap::Endless,
            }
        }
        until.map_or(Gap::None, |until| Gap::Of(until - moment))
    }
}

impl BotsReport {
    /// Number of trades with this outcome, as shown to their parties.
    #[must_use]
    pub fn trades(&self, end: TradeEnd) -> usize {
        let seen = self.bots.iter().flat_map(|bot| &bot.trades);
        let all: BTreeMap<_, _> = seen.collect();
        all.values().filter(|found| ***found == end).count()
    }

    /// The sum of one figure over all bots.
    pub fn total(&self, figure: impl Fn(&BotReport) -> u64) -> u64 {
        self.bots.iter().map(figure).sum()
    }

    /// Bytes per second sent to a client, on average over those that played: in total, and for movements.
    #[must_use]
    pub fn bytes_per_second(&self) -> (f64, f64) {
        let played: f64 = self.bots.iter().map(|bot| bot.played.as_secs_f64()).sum();
        let rate = |bytes: u64| if played > 0.0 { bytes as f64 / played } else { 0.0 };
        (
            rate(self.total(|bot| bot.received_bytes)),
            rate(self.total(|bot| bot.moves_bytes)),
        )
    }

    /// Average number of others in a bot's view.
    #[must_use]
    pub fn in_view(&self) -> f64 {
        self.total(|bot| bot.in_view) as f64 / self.total(|bot| bot.looks).max(1) as f64
    }

    /// Whether each bot logged in and kept its session, and none received malformed data or sent too much.
    #[must_use]
    pub fn has_played(&self) -> bool {
        self.bots
            .iter()
            .all(|bot| bot.log_ins > 0 && bot.ended.is_empty() && bot.malformed == 0 && bot.rate_warnings == 0)
    }

    /// The round trips of all bots, microseconds.
    #[must_use]
    pub fn round_trips(&self) -> Histogram<u64> {
        self.all(|bot| &bot.round_trips)
    }

    /// The times that the log-ins of all bots took, microseconds.
    #[must_use]
    pub fn log_in_times(&self) -> Histogram<u64> {
        self.all(|bot| &bot.log_in_times)
    }

    fn all(&self, of_bot: impl Fn(&BotReport) -> &Histogram<u64>) -> Histogram<u64> {
        let mut all = times();
        for bot in &self.bots {
            all.add(of_bot(bot))
                .expect("invariant: all histograms have the same bounds");
        }
        all
    }

    /// The effect on the bots of an incident at `moment`.
    #[must_use]
    pub fn recovery_after(&self, moment: Instant) -> Recovery {
        let gaps = self.bots.iter().map(|bot| bot.gap_after(moment));
        let (mut times, mut endless) = (Vec::new(), 0);
        for gap in gaps {
            match gap {
                Gap::None => {}
                Gap::Of(time) => times.push(time),
                Gap::Endless => endless += 1,
            }
        }
        times.sort();
        Recovery {
            interrupted: times.len() as u64 + endless,
            endless,
            p50: times.get(times.len() / 2).copied().unwrap_or_default(),
            longest: times.last().copied().unwrap_or_default(),
        }
    }

    /// The longest time without an update of its view, of each bot, that began between two moments; sorted. A bot without
    /// one of at least [`annals_client::GAP`] milliseconds counts as 0.
    #[must_use]
    pub fn pauses(&self, from: Instant, to: Instant) -> Vec<Duration> {
        let longest = |bot: &BotReport| {
            let within = bot
                .gaps
                .iter()
                .filter(|gap| gap.to.is_some_and(|end| end >= from) && gap.from <= to);
            let lengths = within.filter_map(|gap| Some(gap.to?.saturating_duration_since(gap.from)));
            lengths.max().unwrap_or_default()
        };
        let mut pauses: Vec<Duration> = self.bots.iter().map(longest).collect();
        pauses.sort_unstable();
        pauses
    }

    /// Every exposed method that some bot called.
    #[must_use]
    pub fn driven(&self) -> BTreeSet<Driven> {
        self.bots.iter().flat_map(|bot| bot.driven.iter().copied()).collect()
    }

    /// The refused calls: each method with the reason, and how often.
    #[must_use]
    pub fn refusals(&self, schema: &Schema) -> BTreeMap<String, u64> {
        let mut refusals = BTreeMap::new();
        for ((driven, reason), count) in self.bots.iter().flat_map(|bot| &bot.refused) {
            let name = driven.and_then(|driven| {
                let entity_type = schema.entity_type(driven.entity_type)?;
                let found = exposed(entity_type)
                    .into_iter()
                    .find(|(part, method)| (*part, method.index) == (driven.part, driven.method));
                found.map(|(part, method)| format!("{}.{} ({part})", entity_type.name, method.name))
            });
            let name = name.unwrap_or_else(|| "an earlier call".to_owned());
            *refusals.entry(format!("{name}: {reason}")).or_default() += count;
        }
        refusals
    }

    /// The exposed methods that no bot called, as `Type.method`.
    #[must_use]
    pub fn undriven(&self, schema: &Schema) -> Vec<String> {
        let driven = self.driven();
        let mut missing = Vec::new();
        for entity_type in schema.types() {
            for (part, method) in exposed(entity_type) {
                let wanted = Driven {
                    entity_type: entity_type.id,
                    part,
                    method: method.index,
                };
                if !driven.contains(&wanted) {
                    missing.push(format!("{}.{}", entity_type.name, method.name));
                }
            }
        }
        missing
    }
}

fn times() -> Histogram<u64> {
    Histogram::new_with_bounds(1, LONGEST_TIME, 3).expect("invariant: the bounds are ascending")
}

impl fmt::Display for BotsReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let total = |figure: fn(&BotReport) -> u64| self.total(figure);
        writeln!(
            f,
            "bots: {} with {} log-ins, {} sessions resumed, {} ended early",
            self.bots.len(),
            total(|bot| bot.log_ins),
            total(|bot| bot.resumed),
            total(|bot| bot.ended.len() as u64)
        )?;
        let queued = total(|bot| bot.queued);
        if queued > 0 {
            writeln!(f, "queue of a full realm: {queued} log-ins waited in it")?;
        }
        writeln!(
            f,
            "calls: {} made, {} accepted, {} refused, {} lost with their target, {} sent again; {} methods driven; \
             {} moves",
            total(|bot| bot.calls),
            total(|bot| bot.confirmed),
            total(|bot| bot.refused.values().sum()),
            total(|bot| bot.lost_calls),
            total(|bot| bot.resent),
            self.driven().len(),
            total(|bot| bot.moves)
        )?;
        let (bytes, moves) = self.bytes_per_second();
        writeln!(
            f,
            "shown: {} changes, {} client calls, {} answers, {} whole states; {:.0} bytes/s per client, {:.0} of them \
             movements; {} views restarted, {} unreadable",
            total(|bot| bot.changes),
            total(|bot| bot.invocations),
            total(|bot| bot.replies),
            total(|bot| bot.refreshes),
            bytes,
            moves,
            total(|bot| bot.view_gaps),
            total(|bot| bot.malformed)
        )?;
        let round_trips = self.round_trips();
        if round_trips.is_empty() {
            return write!(f, "round trips: none, this world has no echo method");
        }
        let milliseconds = |quantile| round_trips.value_at_quantile(quantile) as f64 / 1_000.0;
        write!(
            f,
            "round trips: {} by base, cell and back, p50 {:.1} ms, p99 {:.1} ms",
            round_trips.len(),
            milliseconds(0.5),
            milliseconds(0.99)
        )
    }
}

impl fmt::Display for Recovery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = |time: Duration| time.as_secs_f64();
        write!(
            f,
            "{} bots interrupted, p50 {:.2} s, longest {:.2} s",
            self.interrupted,
            seconds(self.p50),
            seconds(self.longest)
        )?;
        if self.endless > 0 {
            write!(f, ", {} never resumed", self.endless)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Begin and end of each silence, milliseconds.
    type Silences<'a> = &'a [(u64, Option<u64>)];

    fn bot(began: Instant, interruptions: Silences<'_>) -> BotReport {
        let at = |milliseconds| began + Duration::from_millis(milliseconds);
        let mut report = BotReport::new("bot0".into(), PathBuf::new());
        report.interruptions = interruptions
            .iter()
            .map(|&(from, to)| Interruption {
                from: at(from),
                to: to.map(at),
            })
            .collect();
        report
    }

    #[test]
    fn interruptions_start_near_the_kill_and_include_immediate_repeats() {
        let began = Instant::now();
        let moment = began + Duration::from_secs(10);
        let of = |milliseconds| Gap::Of(Duration::from_millis(milliseconds));
        let cases: [(Silences<'_>, Gap); 9] = [
            (&[], Gap::None),
            (&[(2_000, Some(9_000))], Gap::None),
            (&[(9_950, Some(13_200))], of(3_200)),
            (&[(10_900, Some(14_000))], of(4_000)),
            (&[(13_500, Some(15_000))], of(5_000)),
            (&[(14_500, Some(15_000))], Gap::None),
            (
                &[(13_500, Some(15_000)), (9_900, Some(13_000)), (17_000, Some(18_000))],
                of(5_000),
            ),
            (&[(9_900, Some(13_000)), (10_000, Some(13_100))], of(3_100)),
            (&[(9_900, Some(13_000)), (13_100, None)], Gap::Endless),
        ];
        for (interruptions, expected) in cases {
            assert_eq!(
                bot(began, interruptions).gap_after(moment),
                expected,
                "{interruptions:?}"
            );
        }
    }

    #[test]
    fn recovery_counts_bots_that_never_resumed_separately() {
        let began = Instant::now();
        let report = BotsReport {
            bots: vec![
                bot(began, &[(1_000, Some(2_000))]),
                bot(began, &[(1_000, Some(4_000))]),
                bot(began, &[(1_000, Some(3_000))]),
                bot(began, &[(1_000, None)]),
                bot(began, &[]),
            ],
            elapsed: Duration::from_secs(9),
        };
        let recovery = report.recovery_after(began + Duration::from_secs(1));
        assert_eq!(
            recovery.to_string(),
            "4 bots interrupted, p50 2.00 s, longest 3.00 s, 1 never resumed"
        );
    }
}
