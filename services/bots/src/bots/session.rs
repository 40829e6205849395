//! A bot's session: what it does in each step, and what it records.

use std::{
    collections::{BTreeMap, VecDeque},
    fs::File,
    io::{self, BufWriter, Write},
    sync::atomic::Ordering,
    time::{Duration, Instant},
};

use annals_client::{CallError, Client, EndReason, Event, SILENCE, Showing, What, walk::Walk};
use annals_def::Value;
use annals_ids::{CallNumber, EntityId, Part, Position, TypeId};
use annals_wire::client::{CallRefusal, LoginRefusal};
use tokio::{
    sync::watch,
    time::{MissedTickBehavior, interval, timeout_at},
};

use super::{
    bot::{BACK_WITHIN, Bot},
    conduct::{Habits, Moves},
    repertoire::{Planned, Repertoire},
    report::{Driven, Interruption},
    trader::{TRADER, Trader},
};
use crate::showings::Line;

/// Interval at which a bot moves and checks for due actions.
const STEP: Duration = Duration::from_millis(100);

/// Maximum time walked in one step, seconds: a bot that was delayed does not jump.
const LONGEST_STRIDE: f32 = 0.5;

/// One call in this many is made on another entity.
pub(super) const OTHERS_EVERY: usize = 8;

/// Number of recent calls that are kept, to name a refused one.
const RECENT_CALLS: usize = 256;

/// Maximum size of the arguments of a trader's wish, in bytes.
const WISH_BYTES: usize = 64;

/// Maximum number of pending echoes.
const MAX_ECHOES: usize = 64;

/// Bytes per second that a bot sends of its own accord: half of the limit at which a client is warned. The other half
/// is left for the client's resends.
const BYTES_PER_SECOND: f64 = 10_240.0;

/// Bytes that it may send at once after sending less: the longest call that it plans, and a reserve.
const BURST: f64 = 40_960.0;

/// Bytes of a frame or datagram around its content, with a reserve.
const OVERHEAD: usize = 48;

/// How long a bot waits for its last calls to be taken before it leaves.
const GOODBYE_WITHIN: Duration = Duration::from_secs(3);

/// What follows a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum After {
    /// Another session, since the realm ended this one.
    LogInAnew,
    /// Another session: the bot stayed as long as it was to stay.
    VisitAgain,
    /// Nothing: the time is over, or logging in is useless.
    Nothing,
}

/// One session of a bot. [`Session::play`] runs it to its end.
pub(super) struct Session<'b, 'p> {
    bot: &'b mut Bot<'p>,
    client: Client,
    file: &'b mut BufWriter<File>,
    habits: Habits,
    began: Instant,
    logged_in: Option<Instant>,
    role: Option<Role<'p>>,
    budget: Budget,
    /// A call that is waiting for send budget.
    waiting: Option<(EntityId, TypeId, Planned<'p>)>,
    /// When the bot does what; `None`: never.
    next_call: Option<Instant>,
    next_saying: Option<Instant>,
    next_trade: Option<Instant>,
    next_echo: Instant,
    echoes: BTreeMap<u32, Instant>,
    recent_calls: VecDeque<((EntityId, Part, CallNumber), Driven)>,
    /// Since when there has been no connection.
    away: Option<Instant>,
    /// Whether it is counted as interrupted.
    is_interrupted: bool,
    /// Whether the bot waits in the queue of a full realm.
    is_queued: bool,
    interruptions: Vec<Interruption>,
}

/// The entity that the bot controls.
struct Role<'p> {
    entity: EntityId,
    type_id: TypeId,
    repertoire: Repertoire<'p>,
    walk: Option<Walk>,
    walked: Instant,
}

/// The remaining send budget.
struct Budget {
    bytes: f64,
    at: Instant,
}

impl<'b, 'p> Session<'b, 'p> {
    pub(super) fn new(bot: &'b mut Bot<'p>, habits: Habits, client: Client, file: &'b mut BufWriter<File>) -> Self {
        let now = Instant::now();
        let mut after = |interval: Option<Duration>| Some(now + bot.about(interval?));
        Self {
            next_call: after(habits.calls),
            next_echo: after(Some(habits.echoes)).unwrap_or(now),
            next_saying: after(habits.speaks),
            next_trade: after(habits.trades),
            habits,
            began: now,
            logged_in: None,
            bot,
            client,
            file,
            role: None,
            budget: Budget { bytes: BURST, at: now },
            waiting: None,
            echoes: BTreeMap::new(),
            recent_calls: VecDeque::new(),
            away: None,
            is_interrupted: false,
            is_queued: false,
            interruptions: Vec::new(),
        }
    }

    /// Plays until the session ends or the time is over, then leaves. A bot that is interrupted at that moment waits
    /// for the interruption to end, for up to [`BACK_WITHIN`].
    pub(super) async fn play(
        mut self,
        until: &watch::Receiver<Instant>,
        resting: &watch::Receiver<bool>,
    ) -> io::Result<After> {
        let mut step = interval(STEP);
        step.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut after = After::Nothing;
        loop {
            tokio::select! {
                event = self.client.next() => match event {
                    Some(Event::Ended(reason)) => {
                        after = self.ended(reason)?;
                        break;
                    }
                    Some(event) => self.take(&event)?,
                    None => break,
                },
                _ = step.tick() => {
                    let now = Instant::now();
                    let leaves = self.leaves().filter(|leaves| *leaves < *until.borrow());
                    let until = leaves.unwrap_or(*until.borrow());
                    let silent = self.away.is_none() && self.interrupted_since(now).is_some();
                    self.publish_interrupted(silent);
                    if now < until {
                        if !*resting.borrow() {
                            self.act(now);
                        }
                    } else if now >= until + BACK_WITHIN || self.interrupted_since(now).is_none() {
                        after = leaves.map_or(After::Nothing, |_| After::VisitAgain);
                        break;
                    }
                }
            }
        }
        self.close_interruptions(Instant::now(), after);
        if self.is_queued {
            self.bot.tally.queued.fetch_sub(1, Ordering::Relaxed);
        }
        if !self.client.core().has_ended() {
            self.say_goodbye().await?;
        }
        self.settle();
        Ok(after)
    }

    /// When the bot leaves, if it does not stay until the end.
    fn leaves(&self) -> Option<Instant> {
        Some(self.logged_in? + self.habits.stays?)
    }

    /// Makes the farewell call, waits until its calls are taken, and leaves.
    async fn say_goodbye(&mut self) -> io::Result<()> {
        let farewell = self
            .role
            .as_ref()
            .and_then(|role| Some((role.entity, role.type_id, role.repertoire.farewell(&mut self.bot.dice)?)));
        if let Some((entity, type_id, planned)) = farewell
            && self.client.core().is_playing()
        {
            self.call(entity, type_id, &planned);
        }
        let within = (Instant::now() + GOODBYE_WITHIN).into();
        while self.client.core().unconfirmed_calls() > 0 {
            match timeout_at(within, self.client.next()).await {
                Ok(Some(event)) => self.take(&event)?,
                Ok(None) | Err(_) => break,
            }
        }
        self.client.leave();
        // Processes what has arrived, without waiting for more.
        while let Some(event) = self.client.next().await {
            self.take(&event)?;
        }
        Ok(())
    }

    /// Adds the client's counters to the report.
    fn settle(&mut self) {
        self.publish_interrupted(false);
        let core = self.client.core();
        let (counters, unconfirmed) = (core.counters(), core.unconfirmed_calls() as u64);
        let report = &mut self.bot.report;
        report.received += counters.received;
        report.received_bytes += counters.received_bytes;
        report.moves_bytes += counters.moves_bytes;
        report.view_gaps += counters.view_gaps;
        report.malformed += counters.malformed;
        report.resent += counters.resent;
        report.moved += counters.moved;
        report.lost_calls += unconfirmed;
        report.confirmed = report.calls - report.lost_calls;
        report.interruptions.append(&mut self.interruptions);
        report.played += self.logged_in.map_or(Duration::ZERO, |at| at.elapsed());
        if self.role.is_some() && self.away.is_none() {
            self.bot.tally.connected.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Ends the session. A bot that receives nothing now stays interrupted until the next session begins, or for good.
    fn close_interruptions(&mut self, now: Instant, after: After) {
        let core = self.client.core();
        let silences = core.silences().map(|silence| Interruption {
            from: self.client.instant(silence.from),
            to: Some(self.client.instant(silence.to)),
        });
        self.interruptions.extend(silences);
        let gaps = core.gaps().map(|gap| Interruption {
            from: self.client.instant(gap.from),
            to: Some(self.client.instant(gap.to)),
        });
        self.bot.report.gaps.extend(gaps);
        let since = self.interrupted_since(now);
        self.bot.interrupted = match after {
            After::LogInAnew => Some(since.unwrap_or(now)),
            After::VisitAgain | After::Nothing => since,
        };
    }

    /// Publishes whether it is connected and receives nothing.
    fn publish_interrupted(&mut self, silent: bool) {
        let count = &self.bot.tally.interrupted;
        match (self.is_interrupted, silent) {
            (false, true) => drop(count.fetch_add(1, Ordering::Relaxed)),
            (true, false) => drop(count.fetch_sub(1, Ordering::Relaxed)),
            _ => {}
        }
        self.is_interrupted = silent;
    }

    /// Start of the current interruption, if there is one.
    fn interrupted_since(&self, now: Instant) -> Option<Instant> {
        let last = self.client.core().last_received_at().map(|at| self.client.instant(at));
        let silent_since = last.filter(|last| now.saturating_duration_since(*last) >= Duration::from_millis(SILENCE));
        [silent_since, self.away, self.bot.interrupted]
            .into_iter()
            .flatten()
            .min()
    }

    fn ended(&mut self, reason: EndReason) -> io::Result<After> {
        self.write(&Event::Ended(reason), 0)?;
        self.bot.report.ended.push(reason);
        Ok(match reason {
            // Two runs of bots on the same accounts would displace each other endlessly.
            _ if reason.is_elsewhere() => After::Nothing,
            EndReason::LoginRefused(
                LoginRefusal::WrongPassword | LoginRefusal::WrongProtocol | LoginRefusal::UnfitName,
            )
            | EndReason::Banned
            | EndReason::Left => After::Nothing,
            EndReason::LoginRefused(_) | EndReason::Rejected(_) | EndReason::Closed(_) => After::LogInAnew,
        })
    }

    fn take(&mut self, event: &Event) -> io::Result<()> {
        let now = Instant::now();
        let away = self.away.map_or(0, |since| (now - since).as_millis());
        self.write(event, u64::try_from(away).unwrap_or(u64::MAX))?;
        let report = &mut self.bot.report;
        match event {
            &Event::Connected { entity, type_id, .. } => {
                report.log_ins += 1;
                self.logged_in = Some(now);
                if self.is_queued {
                    self.is_queued = false;
                    self.bot.tally.queued.fetch_sub(1, Ordering::Relaxed);
                } else {
                    report.log_in_times.saturating_record(microseconds(now - self.began));
                }
                if let Some(from) = self.bot.interrupted.take() {
                    self.interruptions.push(Interruption { from, to: Some(now) });
                }
                self.bot.tally.connected.fetch_add(1, Ordering::Relaxed);
                self.bot.trader.forget();
                self.controls(entity, type_id, now);
            }
            Event::Queued { .. } if !self.is_queued => {
                self.is_queued = true;
                report.queued += 1;
                self.bot.tally.queued.fetch_add(1, Ordering::Relaxed);
            }
            &Event::Controls { entity, type_id } => self.controls(entity, type_id, now),
            Event::Resumed { .. } => {
                report.resumed += 1;
                self.bot.tally.resumed.fetch_add(1, Ordering::Relaxed);
                self.bot.tally.connected.fetch_add(1, Ordering::Relaxed);
                if let Some(from) = self.away.take() {
                    self.interruptions.push(Interruption { from, to: Some(now) });
                }
            }
            Event::Lost(reason) => {
                report.disconnected.push(*reason);
                self.bot.tally.connected.fetch_sub(1, Ordering::Relaxed);
                self.away = Some(now);
            }
            Event::Refreshed { .. } => report.refreshes += 1,
            Event::Shown(showing) => self.shown(showing, now),
            Event::Placed { entity, position, .. } => self.placed(*entity, *position),
            &Event::CallRefused {
                entity,
                part,
                number,
                reason,
            } => self.refused((entity, part, number), reason),
            Event::CallsLost { numbers, .. } => report.lost_calls += numbers.len() as u64,
            Event::RateWarned => report.rate_warnings += 1,
            Event::Entered { .. }
            | Event::Left { .. }
            | Event::SpaceEntered { .. }
            | Event::Drives { .. }
            | Event::SpaceDataChanged { .. }
            | Event::Queued { .. }
            | Event::Banned(_)
            | Event::DownloadProgressed { .. }
            | Event::Downloaded { .. }
            | Event::DownloadEnded(_)
            | Event::Ended(_) => {}
        }
        Ok(())
    }

    fn refused(&mut self, call: (EntityId, Part, CallNumber), reason: CallRefusal) {
        let called = self.recent_calls.iter().rev().find(|(recent, _)| *recent == call);
        let driven = called.map(|(_, driven)| *driven);
        *self.bot.report.refused.entry((driven, reason)).or_default() += 1;
    }

    fn write(&mut self, event: &Event, away: u64) -> io::Result<()> {
        match Line::of(event, away) {
            Some(line) => writeln!(self.file, "{line}"),
            None => Ok(()),
        }
    }

    fn controls(&mut self, entity: EntityId, type_id: TypeId, now: Instant) {
        self.echoes.clear();
        self.waiting = None;
        self.role = Some(Role {
            entity,
            type_id,
            repertoire: Repertoire::new(self.bot.schema, type_id),
            walk: None,
            walked: now,
        });
    }

    fn placed(&mut self, entity: EntityId, position: Position) {
        let own = self.role.as_mut().filter(|role| role.entity == entity);
        if let Some(walk) = own.and_then(|role| role.walk.as_mut()) {
            walk.put(position);
        }
    }

    fn shown(&mut self, showing: &Showing, now: Instant) {
        self.bot.tally.shown.fetch_add(1, Ordering::Relaxed);
        let seen = self.client.core().view(showing.part).entities().get(&showing.entity);
        let type_id = seen.map(|seen| seen.type_id);
        let report = &mut self.bot.report;
        match &showing.what {
            What::Changed { property, .. } => {
                report.changes += 1;
                report
                    .properties_seen
                    .extend(type_id.map(|type_id| (type_id, *property)));
            }
            What::Replied { .. } => report.replies += 1,
            What::Called { method, args } => {
                report.invocations += 1;
                report.methods_seen.extend(type_id.map(|type_id| (type_id, *method)));
                let own = self.role.as_ref().filter(|role| role.entity == showing.entity);
                if own.is_some()
                    && let Some(entity_type) = type_id.and_then(|type_id| self.bot.schema.entity_type(type_id))
                    && let Some(called) = entity_type.client_methods.get(usize::from(method.0))
                {
                    self.bot.trader.take(&called.name, args);
                }
                let echoed = own.and_then(|role| role.repertoire.echoed(*method, args));
                if let Some(asked) = echoed.and_then(|number| self.echoes.remove(&number)) {
                    report.round_trips.saturating_record(microseconds(now - asked));
                }
            }
        }
    }

    /// Does what is due.
    fn act(&mut self, now: Instant) {
        if !self.client.core().is_playing() {
            return;
        }
        self.budget.refill(now);
        self.walk(now);
        if let Some((entity, type_id, planned)) = self.waiting.take() {
            self.try_call(entity, type_id, planned);
        }
        let is_due = |at: Option<Instant>| at.is_some_and(|at| now >= at);
        if self.waiting.is_none() && is_due(self.next_call) {
            self.next_call = self.about(now, self.habits.calls);
            self.call_in_turn();
        }
        if is_due(self.next_saying) {
            self.next_saying = self.about(now, self.habits.speaks);
            self.say();
        }
        if is_due(self.next_trade) {
            self.next_trade = self.about(now, self.habits.trades);
            self.trade();
        }
        if now >= self.next_echo {
            self.next_echo = now + self.habits.echoes;
            self.ask_for_echo(now);
            let around = self.client.core().view(Part::Cell).entities().len();
            self.bot.report.looks += 1;
            self.bot.report.in_view += around.saturating_sub(1) as u64;
        }
    }

    /// About so long after now.
    fn about(&mut self, now: Instant, interval: Option<Duration>) -> Option<Instant> {
        Some(now + self.bot.about(interval?))
    }

    fn walk(&mut self, now: Instant) {
        let (Some(role), Some(moves)) = (&mut self.role, self.habits.moves) else {
            return;
        };
        let seconds = (now - role.walked).as_secs_f32().min(LONGEST_STRIDE);
        role.walked = now;
        let place = self.client.core().entity(role.entity).and_then(|own| own.place);
        let Some((position, _)) = place else {
            role.walk = None;
            return;
        };
        let dice = &mut self.bot.dice;
        let walk = role.walk.get_or_insert_with(|| match moves {
            Moves::Anywhere => Walk::new(position, dice),
            Moves::To(gathering) => Walk::to(gathering, position, dice),
        });
        let (position, direction) = walk.step(seconds, dice);
        if self.client.move_to(position, direction) {
            self.bot.report.moves += 1;
            self.budget.spend(OVERHEAD);
        }
    }

    fn call_in_turn(&mut self) {
        let turn = self.bot.turn;
        self.bot.turn += 1;
        let on_other = if is_for_others(turn) {
            self.call_on_other(turn)
        } else {
            None
        };
        // If no other entity is there, the turn is used for the bot's own.
        let planned = on_other.or_else(|| self.call_on_own(turn));
        if let Some((entity, type_id, planned)) = planned {
            self.try_call(entity, type_id, planned);
        }
    }

    fn call_on_own(&mut self, turn: usize) -> Option<(EntityId, TypeId, Planned<'p>)> {
        let role = self.role.as_ref()?;
        let core = self.client.core();
        let seen = |part| core.view(part).entities().contains_key(&role.entity);
        let coverage = &self.bot.tally.coverage;
        let planned = role.repertoire.on_own(coverage, seen, turn, &mut self.bot.dice)?;
        Some((role.entity, role.type_id, planned))
    }

    /// A call on another entity in view: the least called of all methods that can be called there.
    fn call_on_other(&mut self, turn: usize) -> Option<(EntityId, TypeId, Planned<'p>)> {
        let own = self.role.as_ref()?.entity;
        let mut by_type: BTreeMap<TypeId, Vec<EntityId>> = BTreeMap::new();
        for (&entity, seen) in self.client.core().view(Part::Cell).entities() {
            if entity != own {
                by_type.entry(seen.type_id).or_default().push(entity);
            }
        }
        let repertoires: Vec<_> = by_type
            .into_iter()
            .map(|(type_id, entities)| (type_id, entities, Repertoire::new(self.bot.schema, type_id)))
            .collect();
        let of_all = repertoires.iter().enumerate();
        let (places, methods): (Vec<(usize, usize)>, Vec<Driven>) = of_all
            .flat_map(|(place, (_, _, repertoire))| {
                let methods = repertoire.for_others().iter().enumerate();
                methods.map(move |(number, method)| ((place, number), *method))
            })
            .unzip();
        let (place, number) = places[self.bot.tally.coverage.least_called(&methods, turn / OTHERS_EVERY)?];
        let (type_id, entities, repertoire) = &repertoires[place];
        let dice = &mut self.bot.dice;
        let entity = entities[dice() as usize % entities.len()];
        Some((entity, *type_id, repertoire.on_other(number, dice)?))
    }

    fn say(&mut self) {
        let Some(role) = &self.role else { return };
        if let Some(planned) = role.repertoire.saying(&mut self.bot.dice) {
            let (entity, type_id) = (role.entity, role.type_id);
            self.call(entity, type_id, &planned);
        }
    }

    fn ask_for_echo(&mut self, now: Instant) {
        let Some(role) = &self.role else { return };
        let number = ((self.bot.dice)() >> 32) as u32;
        let Some(planned) = role.repertoire.echo(number).filter(|_| self.echoes.len() < MAX_ECHOES) else {
            return;
        };
        let (entity, type_id) = (role.entity, role.type_id);
        if self.call(entity, type_id, &planned) {
            self.echoes.insert(number, now);
        }
    }

    /// Takes a trader's next action. Trades are proposed to other bots only.
    fn trade(&mut self) {
        let Some(role) = &self.role else { return };
        let (own, type_id, schema) = (role.entity, role.type_id, self.bot.schema);
        let Some(entity_type) = schema.entity_type(type_id).filter(|found| Trader::can(found)) else {
            return;
        };
        let Some(&Value::UInt(number)) = self.client.core().property(own, TRADER) else {
            return;
        };
        let partners = self.bot.tally.traders_beside(number);
        let (trader, dice) = (&mut self.bot.trader, &mut self.bot.dice);
        let wish = match self.habits.is_steady {
            true => trader.steady_turn(&partners, dice),
            false => trader.turn(&partners, dice),
        };
        let Some(wish) = wish else {
            return;
        };
        if let Some(method) = entity_type.base_method_named(wish.method) {
            let planned = Planned {
                part: Part::Base,
                method,
                args: wish.args,
                bytes: WISH_BYTES,
            };
            self.try_call(own, type_id, planned);
        }
    }

    /// Calls now, or as soon as the send budget allows.
    fn try_call(&mut self, entity: EntityId, type_id: TypeId, planned: Planned<'p>) {
        if self.budget.allows(planned.bytes) {
            self.call(entity, type_id, &planned);
        } else {
            self.waiting = Some((entity, type_id, planned));
        }
    }

    fn call(&mut self, entity: EntityId, type_id: TypeId, planned: &Planned<'p>) -> bool {
        let Planned {
            part,
            method,
            args,
            bytes,
        } = planned;
        match self.client.call(entity, *part, &method.name, args) {
            Ok(number) => {
                self.budget.spend(bytes + OVERHEAD);
                self.bot.tally.calls.fetch_add(1, Ordering::Relaxed);
                let report = &mut self.bot.report;
                report.calls += 1;
                let driven = Driven {
                    entity_type: type_id,
                    part: *part,
                    method: method.index,
                };
                report.driven.insert(driven);
                if self.recent_calls.len() == RECENT_CALLS {
                    self.recent_calls.pop_front();
                }
                self.recent_calls.push_back(((entity, *part, number), driven));
                self.bot.tally.coverage.count(driven);
                true
            }
            // It has left the view, or the realm is behind with earlier calls.
            Err(CallError::NotInView(_) | CallError::TooManyKept | CallError::NoSession) => false,
            Err(error) => {
                tracing::warn!(bot = self.bot.report.name, %error, "a bot cannot send its call");
                false
            }
        }
    }
}

/// At least one, since a histogram has no 0.
fn microseconds(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX).max(1)
}

/// Whether a turn is for a call on another entity.
pub(super) fn is_for_others(turn: usize) -> bool {
    turn % OTHERS_EVERY == OTHERS_EVERY - 1
}

impl Budget {
    fn refill(&mut self, now: Instant) {
        let seconds = (now - self.at).as_secs_f64();
        self.at = now;
        self.bytes = (self.bytes + seconds * BYTES_PER_SECOND).min(BURST);
    }

    fn allows(&self, bytes: usize) -> bool {
        (bytes + OVERHEAD) as f64 <= self.bytes
    }

    fn spend(&mut self, bytes: usize) {
        self.bytes -= bytes as f64;
    }
}

#[cfg(test)]
mod tests {
    use annals_wire::client::MAX_UPSTREAM_FRAME;

    use super::*;

    #[test]
    fn a_budget_admits_the_longest_call_and_enforces_its_rate() {
        let began = Instant::now();
        let mut budget = Budget {
            bytes: BURST,
            at: began,
        };
        let longest = MAX_UPSTREAM_FRAME / 2;
        let (mut sent, seconds) = (0, 60);
        for step in 1..=seconds * 10 {
            budget.refill(began + STEP * step);
            if budget.allows(longest) {
                budget.spend(longest + OVERHEAD);
                sent += longest + OVERHEAD;
            }
        }
        let most = BURST + f64::from(seconds) * BYTES_PER_SECOND;
        assert!(
            sent > 0 && (sent as f64) <= most,
            "{sent} bytes in {seconds} s, at most {most}"
        );
    }
}
