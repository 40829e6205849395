//! Planned hand-overs of owners (rule D9): a process drains, other processes follow its owners, and take them over once
//! it has released them. As the host does it (`services/host/src/holder_set/moving.rs`, `following.rs`), without waiting.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    time::Duration,
};

use annals_event::{Batch, OwnerState};
use annals_ids::{OwnerId, ProcessId};
use annals_node::{
    follow::{Followed, Reading},
    writer::{self, Tip},
};
use annals_store::immediate;
use annals_wire::{
    bus::Envelope,
    client::{Located, ToClient},
};

use super::{
    Directing, Step, World,
    clients::address_of,
    faults::{Dice, pick},
    hosting::{Ending, Given, Hold, Process, Service},
};

/// Interval at which a follower reads on, microseconds.
const READ_EVERY: u64 = 50_000;

/// Pause before a follower reads again after a failure, microseconds.
const READ_AGAIN: u64 = 300_000;

/// For how long a follower keeps messages to its owner, microseconds.
const MESSAGES_KEPT: u64 = 1_000_000;

/// Timeout of handing everything over, and of the end of what is left then, microseconds.
const HAND_OVER_WITHIN: u64 = 10_000_000;
const END_WITHIN: u64 = 4_000_000;

/// Time in which the clients of an owner connect to its next holder, microseconds.
const CLIENTS_WITHIN: (u64, u64) = (20_000, 600_000);

/// Delay until a drained process is replaced, microseconds.
const REPLACED: (u64, u64) = (50_000, 3_000_000);

/// A process that drains.
#[derive(Debug, Default)]
pub struct Draining {
    /// When each owner is released that another process follows.
    due: BTreeMap<OwnerId, u64>,
    /// Whether another process was started in its place.
    is_replaced: bool,
}

impl Draining {
    /// Whether another process was started in its place.
    pub(super) fn is_replaced(&self) -> bool {
        self.is_replaced
    }
}

/// What was read of an owner's archive and log so far.
#[derive(Default)]
pub(super) struct Reader {
    reading: Reading,
    followed: Option<Followed>,
}

/// An owner that a process follows.
pub struct Following {
    /// Steps for an earlier following of the same owner are not taken for this one.
    number: u64,
    pub(super) reader: Reader,
    /// Whether the last reading reached the end of the log.
    pub(super) is_ready: bool,
    /// The last messages to the owner, with their arrival.
    pub(super) kept: VecDeque<(u64, Envelope)>,
}

impl Following {
    pub(super) fn keep(&mut self, now: u64, envelope: Envelope) {
        self.kept.push_back((now, envelope));
    }

    /// The messages that are not too old.
    pub(super) fn into_messages(self, now: u64) -> impl Iterator<Item = Envelope> {
        let kept = self.kept.into_iter();
        kept.filter(move |(at, _)| now - at <= MESSAGES_KEPT)
            .map(|(_, envelope)| envelope)
    }
}

impl World {
    /// A process begins to drain; its replacement is started before or after its end.
    pub(super) fn drain_process(&mut self, dice: &mut Dice<'_>) -> Option<()> {
        let able = |host: &Process| {
            let holds = matches!(host.service, Service::Base | Service::Cell);
            holds && host.paused.is_none() && !host.cut.is_any() && host.draining.is_none()
        };
        let able = self.processes.iter().filter(|(_, host)| able(host));
        let able: Vec<(ProcessId, Service)> = able.map(|(process, host)| (*process, host.service)).collect();
        let (process, service) = pick(&able, dice)?;
        self.note(format_args!("{service:?} process {process} drains"));
        let is_replaced = dice().is_multiple_of(2);
        let draining = Draining {
            is_replaced,
            ..Draining::default()
        };
        self.processes.get_mut(&process)?.draining = Some(draining);
        if is_replaced {
            self.after(0, Step::Start { service });
        }
        self.after(HAND_OVER_WITHIN, Step::ReleaseRest { process });
        Some(())
    }

    /// Has processes follow owners, and draining processes release those that are followed, as the answers to their
    /// beats do.
    pub(super) fn order_hand_overs(&mut self, director: &Directing) {
        let reporting = self.processes.iter().filter(|(_, host)| host.reports_to_director());
        let reporting: Vec<ProcessId> = reporting.map(|(process, _)| *process).collect();
        for process in reporting {
            let followed = director.membership.to_follow(process);
            let kept = director
                .membership
                .to_keep_following(Duration::from_micros(self.now), process);
            self.follow_only(process, &followed.chain(kept).collect());
            let orders = director.membership.to_hand_over(process);
            let orders: Vec<(OwnerId, Option<ProcessId>)> =
                orders.map(|(owner, address)| (owner, process_at(address))).collect();
            self.plan_releases(process, &orders);
        }
    }

    fn follow_only(&mut self, process: ProcessId, wanted: &BTreeSet<OwnerId>) {
        let Some(host) = self.processes.get_mut(&process) else {
            return;
        };
        host.follows.retain(|owner, _| wanted.contains(owner));
        let is_new = |owner: &&OwnerId| !host.follows.contains_key(owner) && !host.owners.contains_key(owner);
        let new: Vec<OwnerId> = wanted.iter().filter(is_new).copied().collect();
        for owner in new {
            self.holds += 1;
            let number = self.holds;
            let following = Following {
                number,
                reader: Reader::default(),
                is_ready: false,
                kept: VecDeque::new(),
            };
            let Some(host) = self.processes.get_mut(&process) else {
                return;
            };
            host.follows.insert(owner, following);
            let delay = self.between(500, 5_000);
            self.after(delay, Step::Follow { process, owner, number });
        }
        self.greet_early(process);
        self.leave_if_empty(process);
    }

    fn plan_releases(&mut self, process: ProcessId, orders: &[(OwnerId, Option<ProcessId>)]) {
        let Some(host) = self.processes.get_mut(&process) else {
            return;
        };
        let Some(draining) = &mut host.draining else { return };
        // A follower may have died since it was ready.
        let is_off = |owner: &OwnerId| orders.iter().all(|(ordered, _)| ordered != owner);
        for (owner, _) in draining.due.extract_if(.., |owner, _| is_off(owner)) {
            host.clients.forget_move(owner);
        }
        for (owner, follower) in orders {
            let Some(host) = self.processes.get(&process) else {
                return;
            };
            let is_known = host
                .draining
                .as_ref()
                .is_none_or(|draining| draining.due.contains_key(owner));
            let Some(held) = host.owners.get(owner).filter(|held| held.ending == Ending::No) else {
                continue;
            };
            if is_known {
                continue;
            }
            let hold = held.hold;
            let wait = match follower {
                Some(follower) => {
                    self.announce_move(hold, *follower);
                    self.between(CLIENTS_WITHIN.0, CLIENTS_WITHIN.1)
                }
                None => 0,
            };
            let at = self.now + wait;
            if let Some(draining) = self.processes.get_mut(&process).and_then(|host| host.draining.as_mut()) {
                draining.due.insert(*owner, at);
            }
            self.after(wait, Step::HandOver { hold });
        }
    }

    /// Notifies the clients of an owner which process is about to hold it.
    fn announce_move(&mut self, hold: Hold, follower: ProcessId) {
        let Some(epoch) = self.held(hold).map(|held| held.epoch) else {
            return;
        };
        let located = Located {
            owner: hold.owner,
            epoch,
            address: address_of(follower),
            certificate: None,
        };
        let mut bytes = Vec::new();
        ToClient::Moving(located).write(&mut bytes);
        let Some(host) = self.processes.get_mut(&hold.process) else {
            return;
        };
        for connection in host.clients.announce(hold.owner, bytes.clone()) {
            self.emit_frame(connection, bytes.clone());
        }
    }

    /// A draining process takes no more input for an owner that another one follows.
    pub(super) fn hand_over(&mut self, hold: Hold) {
        if self.defer(hold.process, |_| Step::HandOver { hold }) {
            return;
        }
        let now = self.now;
        let draining = self
            .processes
            .get_mut(&hold.process)
            .and_then(|host| host.draining.as_mut());
        let is_due = draining.is_some_and(|draining| draining.due.get(&hold.owner).is_some_and(|at| *at <= now));
        if is_due {
            self.finish_hold(hold);
        }
    }

    fn finish_hold(&mut self, hold: Hold) {
        let Some(held) = self.held(hold).filter(|held| held.ending == Ending::No) else {
            return;
        };
        held.ending = Ending::Finishing;
        held.drop_waiting();
        if held.core.is_none() {
            // It is only being taken over.
            return self.release(hold, false);
        }
        self.drain(hold);
    }

    /// The holder is at rest, and everything has left: it records that it has ended (rule E8).
    pub(super) fn release(&mut self, hold: Hold, records: bool) {
        if self.defer(hold.process, |_| Step::Release { hold }) {
            return;
        }
        let Some(epoch) = self.held(hold).map(|held| held.epoch) else {
            return;
        };
        if records && !self.cut_of(hold.process).log {
            // If the store does not answer, the next holder waits.
            let _ = immediate(annals_director::openings::release(&self.store, hold.owner, epoch));
        }
        if let Some(host) = self.processes.get_mut(&hold.process) {
            host.owners.remove(&hold.owner);
            host.released.insert(hold.owner);
        }
        self.released += 1;
        self.send_away(hold.process, hold.owner);
        self.leave_if_empty(hold.process);
    }

    /// What could not be handed over in time is released without a follower.
    pub(super) fn release_rest(&mut self, process: ProcessId) {
        if self.defer(process, |_| Step::ReleaseRest { process }) {
            return;
        }
        let holds = self.processes.get(&process).into_iter();
        let holds: Vec<Hold> = holds
            .flat_map(|host| host.owners.values())
            .map(|held| held.hold)
            .collect();
        for hold in holds {
            let is_left = self.held(hold).is_some_and(|held| held.ending == Ending::No);
            self.unfollowed += u64::from(is_left);
            self.finish_hold(hold);
        }
        self.after(END_WITHIN, Step::EndDrained { process });
        self.leave_if_empty(process);
    }

    pub(super) fn leave_if_empty(&mut self, process: ProcessId) {
        let host = self.processes.get(&process);
        let is_idle = |host: &Process| host.owners.is_empty() && host.follows.is_empty();
        if host.is_some_and(|host| host.draining.is_some() && is_idle(host)) {
            // The director may be giving this process its orders.
            self.after(0, Step::EndDrained { process });
        }
    }

    /// A draining process ends, and says so to the director if it reaches it.
    pub(super) fn end_drained(&mut self, process: ProcessId) {
        if self.defer(process, |_| Step::EndDrained { process }) {
            return;
        }
        let Some(host) = self.processes.get(&process) else {
            return;
        };
        // This is its first report to a new director, if need be.
        let (service, is_reached) = (host.service, host.reaches_director());
        let is_replaced = host.draining.as_ref().is_none_or(|draining| draining.is_replaced);
        self.note(format_args!("{service:?} process {process} has drained"));
        self.remove_process(process);
        if let Some(director) = self.director.as_mut().filter(|_| is_reached) {
            director.membership.leave(process);
        }
        self.report_closed(process);
        if !is_replaced {
            let delay = self.between(REPLACED.0, REPLACED.1);
            self.after(delay, Step::Start { service });
        }
    }

    /// A follower reads on.
    pub(super) fn follow(&mut self, process: ProcessId, owner: OwnerId, number: u64) {
        if self.defer(process, |_| Step::Follow { process, owner, number }) {
            return;
        }
        let is_cut = self.cut_of(process).log;
        let host = self.processes.get_mut(&process);
        let following = host.and_then(|host| host.follows.get_mut(&owner));
        let Some(following) = following.filter(|following| following.number == number) else {
            return;
        };
        let reader = std::mem::take(&mut following.reader);
        let read = if is_cut { None } else { self.read_on(owner, reader) };
        let now = self.now;
        let host = self.processes.get_mut(&process);
        let Some(following) = host.and_then(|host| host.follows.get_mut(&owner)) else {
            return;
        };
        following.is_ready = read.is_some();
        following.reader = read.map(|(reader, _)| reader).unwrap_or_default();
        while following.kept.front().is_some_and(|(at, _)| now - at > MESSAGES_KEPT) {
            following.kept.pop_front();
        }
        let pause = if following.is_ready { READ_EVERY } else { READ_AGAIN };
        self.after(pause, Step::Follow { process, owner, number });
    }

    /// The state at the end of a log and the chain that leads there (rule E1); `None` if it cannot be read now.
    pub(super) fn read_owner(&mut self, owner: OwnerId, reader: Reader) -> Option<(OwnerState, writer::Chain)> {
        let (reader, chain) = self.read_on(owner, reader)?;
        Some((reader.followed?.into_state(), chain))
    }

    /// Reads on to the end of a log, and folds what is new.
    fn read_on(&mut self, owner: OwnerId, reader: Reader) -> Option<(Reader, writer::Chain)> {
        if self.now < self.log_away {
            return None;
        }
        let Reader { mut reading, followed } = reader;
        let mut followed = match followed {
            Some(followed) => followed,
            None => self.recovered(owner)?,
        };
        let openings = self.openings(owner)?;
        let cursor = self.cursor(owner)?;
        self.stream_of(owner).read_on(owner, &mut reading)?;
        let chain = followed.chain(&openings, reading.batches.iter().cloned(), reading.last);
        let mut chain = chain.ok()?;
        for frozen in followed.unfolded(&chain).ok()? {
            let batch = Batch::read(&frozen.bytes).expect("the chain is made of batches");
            if let Err(error) = followed.state_mut().fold(&batch) {
                panic!("seed {}: {error}", self.seed);
            }
            followed.folded(frozen);
        }
        if followed.rebase(&mut chain, cursor) {
            reading.forget(cursor.number);
        }
        let followed = Some(followed);
        Some((Reader { reading, followed }, chain))
    }

    /// The state of an owner in its archive.
    fn recovered(&self, owner: OwnerId) -> Option<Followed> {
        let record = immediate(annals_director::read_owners(&self.store))
            .ok()?
            .get(&owner)
            .copied()?;
        let recovered = match immediate(annals_db::recover(&self.store, record.shard, owner, record.kind)) {
            Ok(recovered) => recovered,
            Err(_) if self.is_store_troubled() => return None,
            Err(error) => panic!("seed {}: owner {owner} cannot be recovered: {error}", self.seed),
        };
        let archived = Tip {
            number: recovered.cursor.batch,
            hash: recovered.cursor.hash,
        };
        Some(Followed::from_archive(archived, recovered.state))
    }

    /// A new holder handles the messages that it kept while it followed the owner.
    pub(super) fn give_kept(&mut self, hold: Hold, following: Following) {
        let messages: Vec<Envelope> = following.into_messages(self.now).collect();
        for envelope in messages {
            self.give(hold, Given::Bus(envelope));
        }
    }
}

/// The process that serves clients at an address.
fn process_at(address: &str) -> Option<ProcessId> {
    let address: std::net::SocketAddr = address.parse().ok()?;
    Some(ProcessId(address.port().into()))
}
