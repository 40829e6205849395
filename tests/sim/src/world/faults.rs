//! Blows: enough to break everything, but never two together that would destroy what no process could restore.

use annals_ids::{OwnerId, ProcessId};
use annals_wire::client::CloseReason;

use super::{
    Step, World,
    draining::Draining,
    hosting::{Process, Service},
    partitions::Cut,
};
use crate::{
    fault::{Blow, Kind},
    stream::Stream,
};

/// Length of a pause of a process, microseconds: longer than the director's timeout and the gate's freshness.
const PAUSE: (u64, u64) = (3_500_000, 8_000_000);

/// Length of a partition, microseconds: from unnoticeable to longer than the director's timeout.
const CUT: (u64, u64) = (300_000, 9_000_000);

/// Length of a log outage, microseconds, unless all faults end before: longer than a client waits for its connection.
const OUTAGE: (u64, u64) = (2_000_000, 20_000_000);

/// Length of a store outage and of a slow log disk, microseconds.
const SPELL: (u64, u64) = (200_000, 6_000_000);

/// Outage of log and store after a power cut, microseconds.
const RESTART: (u64, u64) = (50_000, 2_000_000);

/// Maximum clock jump, milliseconds: two days.
const FAR: i64 = 2 * 86_400_000;

/// Time to restore lost data, microseconds; blows that could prevent it are postponed.
const HEALING: u64 = 5_000_000;

/// Interval between checks for an entity in transit, microseconds.
const LURKING: u64 = 1_000;

/// The random generator of one blow.
pub(super) type Dice<'d> = dyn FnMut() -> u64 + 'd;

pub(super) fn between((least, most): (u64, u64), dice: &mut Dice<'_>) -> u64 {
    least + dice() % (most - least + 1)
}

pub(super) fn pick<T: Copy>(from: &[T], dice: &mut Dice<'_>) -> Option<T> {
    let choice = dice() % (from.len().max(1) as u64);
    from.get(usize::try_from(choice).ok()?).copied()
}

impl World {
    pub(super) fn strike(&mut self, blow: Blow, seed: u64) {
        if !self.is_playing() {
            return;
        }
        if self.now < self.healing && blow != Blow::Disconnect {
            self.after(self.healing - self.now, Step::Strike { blow, dice: seed });
            return;
        }
        if blow == Blow::CrashMidway && self.under_way().is_empty() {
            self.after(LURKING, Step::Strike { blow, dice: seed });
            return;
        }
        let mut dice = annals_def::split_mix(seed);
        if self.hit(blow, &mut dice).is_some() {
            self.count(Kind::Blow(blow));
        }
    }

    /// Strikes; `None` if there is no target.
    fn hit(&mut self, blow: Blow, dice: &mut Dice<'_>) -> Option<()> {
        match blow {
            Blow::CrashCell => self.crash(Service::Cell, dice),
            Blow::CrashBase => self.crash(Service::Base, dice),
            Blow::CrashLedger => self.crash(Service::Ledger, dice),
            Blow::Pause => self.pause(dice),
            Blow::CutOff => self.cut_one(Cut::OFF, "everything", dice),
            Blow::CutFromPeers => self.cut_one(Cut::FROM_PEERS, "its peers", dice),
            Blow::CutFromDirector => self.cut_one(Cut::FROM_DIRECTOR, "the director", dice),
            Blow::ClockJump => self.jump(dice),
            Blow::CrashDirector => {
                self.director.take()?;
                self.note("the director crashes");
                self.after(between((100_000, 4_000_000), dice), Step::StartDirector);
                Some(())
            }
            Blow::ReplaceDirector => {
                self.director.take()?;
                self.note("the director is replaced");
                self.after(between((20_000, 300_000), dice), Step::StartDirector);
                Some(())
            }
            Blow::PauseDirector => self.pause_director(dice),
            Blow::CrashDb => {
                let shard = pick(&self.running_dbs(), dice)?;
                self.dbs[shard].take()?;
                self.note(format_args!("the db of shard {shard} crashes"));
                self.after(between((100_000, 3_000_000), dice), Step::StartDb { shard });
                Some(())
            }
            Blow::PauseDb => self.pause_db(dice),
            Blow::LoseMessage => self.lose_message(dice),
            Blow::LoseTail => self.lose_tail(dice),
            Blow::TornWrite => self.tear(dice),
            Blow::SlowDisk => {
                let length = between(SPELL, dice);
                self.note(format_args!("the log's disk is slow for {} ms", length / 1_000));
                self.disk_slow = self.disk_slow.max(self.ending(length));
                Some(())
            }
            Blow::LogAway => {
                let length = between(OUTAGE, dice);
                self.note(format_args!("the log is unavailable for {} ms", length / 1_000));
                self.log_away = self.log_away.max(self.ending(length));
                Some(())
            }
            Blow::StoreAway => {
                let length = between(SPELL, dice);
                self.note(format_args!("the store is unavailable for {} ms", length / 1_000));
                self.send_store_away(self.ending(length));
                Some(())
            }
            Blow::Disconnect => self.disconnect(dice),
            Blow::CrashMidway => self.crash_midway(dice),
            Blow::Drain => self.drain_process(dice),
        }
    }

    /// End of a lasting fault: at the latest the end of play.
    fn ending(&self, length: u64) -> u64 {
        (self.now + length).min(self.play_us())
    }

    /// A running process without a partition.
    fn any_process(&self, service: Option<Service>, dice: &mut Dice<'_>) -> Option<ProcessId> {
        let able: Vec<ProcessId> = self
            .processes
            .iter()
            .filter(|(_, host)| host.paused.is_none() && !host.cut.is_any())
            .filter(|(_, host)| service.is_none_or(|service| service == host.service))
            .map(|(process, _)| *process)
            .collect();
        pick(&able, dice)
    }

    pub(super) fn crash(&mut self, service: Service, dice: &mut Dice<'_>) -> Option<()> {
        let process = self.any_process(Some(service), dice)?;
        self.end(process, service, dice)
    }

    fn end(&mut self, process: ProcessId, service: Service, dice: &mut Dice<'_>) -> Option<()> {
        self.note(format_args!("{service:?} process {process} crashes"));
        let draining = self.processes.get(&process)?.draining.as_ref();
        let is_replaced = draining.is_some_and(Draining::is_replaced);
        self.remove_process(process);
        // Every other one vanishes with its machine: no server closes its connection.
        if process.0.is_multiple_of(2) {
            self.report_closed(process);
        }
        let delay = between((50_000, 5_000_000), dice);
        if !is_replaced {
            self.after(delay, Step::Start { service });
        }
        Some(())
    }

    /// A process is gone, and its connections with it.
    pub(super) fn remove_process(&mut self, process: ProcessId) {
        self.processes.remove(&process);
        let broken: Vec<_> = self
            .connections
            .iter()
            .filter(|(_, found)| found.process == process)
            .map(|(id, _)| *id)
            .collect();
        for connection in broken {
            self.close(connection, CloseReason::Lost);
        }
    }

    /// Processes with entities in transit, and the receiving owners.
    pub(super) fn under_way(&self) -> Vec<(ProcessId, OwnerId)> {
        let able = |host: &Process| host.paused.is_none() && !host.cut.is_any() && host.service == Service::Cell;
        let cells = self.processes.iter().filter(|(_, host)| able(host));
        let held = cells.flat_map(|(process, host)| host.owners.values().map(move |held| (*process, held)));
        let cores = held.filter_map(|(process, held)| Some((process, held.core.as_ref()?)));
        cores
            .flat_map(|(process, core)| core.state().departing.keys().map(move |(to, _)| (process, *to)))
            .collect()
    }

    /// Crashes the sender or the receiver of an entity in transit, before both have completed the hand-over.
    pub(super) fn crash_midway(&mut self, dice: &mut Dice<'_>) -> Option<()> {
        let (sender, to) = pick(&self.under_way(), dice)?;
        let receiver = self.processes.iter().find(|(_, host)| host.owners.contains_key(&to));
        let receiver = receiver.filter(|(_, host)| host.paused.is_none() && !host.cut.is_any());
        let victim = match receiver {
            Some((receiver, _)) if dice().is_multiple_of(2) => *receiver,
            _ => sender,
        };
        self.end(victim, Service::Cell, dice)
    }

    fn pause(&mut self, dice: &mut Dice<'_>) -> Option<()> {
        let process = self.any_process(None, dice)?;
        let length = between(PAUSE, dice);
        self.note(format_args!("process {process} is paused for {} ms", length / 1_000));
        let until = self.now + length;
        self.processes.get_mut(&process)?.paused = Some(until);
        self.after(length, Step::Resume { process });
        Some(())
    }

    fn cut_one(&mut self, cut: Cut, from: &str, dice: &mut Dice<'_>) -> Option<()> {
        let process = self.any_process(None, dice)?;
        let length = between(CUT, dice);
        self.note(format_args!(
            "process {process} is partitioned from {from} for {} ms",
            length / 1_000
        ));
        self.cut(process, cut, length);
        Some(())
    }

    fn jump(&mut self, dice: &mut Dice<'_>) -> Option<()> {
        let process = self.any_process(None, dice)?;
        let reach = [1_000, 60_000, FAR][(dice() % 3) as usize];
        let wrong_ms = (dice() % (2 * reach as u64)).cast_signed() - reach;
        self.note(format_args!(
            "the wall clock of process {process} is {wrong_ms} ms wrong"
        ));
        self.processes.get_mut(&process)?.wrong_ms = wrong_ms;
        Some(())
    }

    fn pause_director(&mut self, dice: &mut Dice<'_>) -> Option<()> {
        if self.stopped_director.is_some() {
            return None;
        }
        self.stopped_director = Some(self.director.take()?);
        let (length, successor) = (between(PAUSE, dice), between((100_000, 3_000_000), dice));
        self.note(format_args!("the director is paused for {} ms", length / 1_000));
        self.after(successor, Step::StartDirector);
        self.after(length, Step::ResumeDirector);
        Some(())
    }

    fn pause_db(&mut self, dice: &mut Dice<'_>) -> Option<()> {
        let shard = pick(&self.running_dbs(), dice)?;
        if self.stopped_dbs[shard].is_some() {
            return None;
        }
        self.stopped_dbs[shard] = Some(self.dbs[shard].take()?);
        let (length, successor) = (between(PAUSE, dice), between((100_000, 3_000_000), dice));
        self.note(format_args!(
            "the db of shard {shard} is paused for {} ms",
            length / 1_000
        ));
        self.after(successor, Step::StartDb { shard });
        self.after(length, Step::ResumeDb { shard });
        Some(())
    }

    fn running_dbs(&self) -> Vec<usize> {
        (0..self.dbs.len()).filter(|shard| self.dbs[*shard].is_some()).collect()
    }

    /// A shard whose stream loses something.
    fn pick_stream(&self, dice: &mut Dice<'_>) -> usize {
        match self.streams.len() {
            1 => 0,
            shards => usize::try_from(dice() % shards as u64).expect("few shards"),
        }
    }

    /// The fault budget: whether a running process keeps what an owner's log may lose.
    fn is_kept(&self, owner: OwnerId) -> bool {
        let live = self
            .processes
            .values()
            .filter(|host| host.paused.is_none() && !host.cut.is_any());
        let mut cores = live.filter_map(|host| host.owners.get(&owner)?.core.as_ref());
        cores.any(|core| core.stopped().is_none() && core.writer().opening().is_some())
    }

    /// A loss is within the budget while the writer of the lost batch runs, or once db has archived it. Writers crash
    /// in this world, so nothing is lost while there is a batch that only a crashed writer could replace, and no
    /// process crashes while lost batches are being restored.
    fn may_lose(&self) -> bool {
        let settled = self.director.is_some() && self.dbs.iter().all(Option::is_some);
        let reached = self.log_away <= self.now && self.disk_slow <= self.now && !self.is_store_away();
        let owners = annals_store::immediate(annals_director::read_owners(&self.truth()));
        settled && reached && owners.is_ok_and(|owners| owners.keys().all(|owner| self.is_kept(*owner)))
    }

    /// Reserves time to restore lost data; none if holes are not filled.
    fn heal(&mut self) {
        if self.plan.fills {
            self.healing = self.now + HEALING;
        }
    }

    fn lose_message(&mut self, dice: &mut Dice<'_>) -> Option<()> {
        if !self.may_lose() {
            return None;
        }
        let shard = self.pick_stream(dice);
        let owner = self.streams[shard].lose_one(dice())?;
        self.note(format_args!(
            "the stream loses a batch from the middle of owner {owner}'s log"
        ));
        self.heal();
        Some(())
    }

    fn lose_tail(&mut self, dice: &mut Dice<'_>) -> Option<()> {
        if !self.may_lose() {
            return None;
        }
        let count = between((1, 4), dice);
        let shard = self.pick_stream(dice);
        let lost = self.streams[shard].lose_tail(usize::try_from(count).ok()?);
        self.note(format_args!("the stream loses its newest messages, of owners {lost:?}"));
        self.heal();
        Some(())
    }

    fn tear(&mut self, dice: &mut Dice<'_>) -> Option<()> {
        let (length, unsynced) = (between(RESTART, dice), between((0, 3), dice));
        self.note(format_args!(
            "power fails; log and store are back in {} ms",
            length / 1_000
        ));
        if self.may_lose() && unsynced > 0 {
            let shard = self.pick_stream(dice);
            let lost = self.streams[shard].lose_tail(usize::try_from(unsynced).ok()?);
            self.note(format_args!("unsynced messages of owners {lost:?} are lost"));
            self.heal();
        }
        self.streams.iter_mut().for_each(Stream::tear);
        self.tear_commits(1);
        self.log_away = self.log_away.max(self.ending(length));
        self.send_store_away(self.ending(length));
        Some(())
    }

    fn disconnect(&mut self, dice: &mut Dice<'_>) -> Option<()> {
        let open: Vec<_> = self.connections.keys().copied().collect();
        let connection = pick(&open, dice)?;
        let found = self.connections.get(&connection).copied()?;
        self.note(format_args!("client {}'s connection breaks", found.client));
        self.break_off(connection, between((1_000, 2_000_000), dice));
        Some(())
    }
}
