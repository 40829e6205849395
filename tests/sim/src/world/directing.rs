//! The director, and the notification of processes.

use std::{collections::BTreeMap, time::Duration};

use annals_def::split_mix;
use annals_director::{Balance, Beat, Decision, Definitions, Grant, Grants, Membership, Pace, SILENCE, SpacePlan};
use annals_ids::{OwnerId, OwnerKind, ProcessId, Shard, WorldTime};
use annals_store::{
    immediate,
    layout::{owners::OwnerRecord, shards},
};
use annals_wire::{
    SpaceMap,
    control::{self, WireMap},
    load::Load,
};

use super::{
    Step, World,
    clients::address_of,
    hosting::{Core, Held, Hold, Service},
};
use crate::game::{EXTENT, SPACE};

/// Interval between attempts to lead, microseconds.
const LEAD_AGAIN: u64 = 500_000;

/// Cost of a unit of load: large enough that the few players make boundaries move and cells come and go.
const COST: f64 = 0.02;

/// Pace of cell scaling: many changes in a run.
const PACE: Pace = Pace {
    between: Duration::from_secs(2),
    life: Duration::from_secs(5),
};

/// A leading director.
pub struct Directing {
    /// Its transactions.
    pub grants: Grants,
    /// The live processes.
    pub membership: Membership,
    /// Grants of this term.
    granted: BTreeMap<OwnerId, (Grant, ProcessId)>,
    /// Since when a live process has not held an owner that it was granted.
    unheld: BTreeMap<OwnerId, u64>,
    /// The division of the space.
    balance: Balance,
}

/// Time in which the processes report to a new director, microseconds: one after the other.
const FOUND_WITHIN: u64 = 600_000;

/// The name of a process's connection to the bus.
pub(super) fn connection(process: ProcessId) -> String {
    format!("server:{process}")
}

impl World {
    pub(super) fn start_director(&mut self) {
        if self.director.is_some() {
            return;
        }
        let process = ProcessId(1 << 63 | self.now);
        let now = Duration::from_micros(self.now);
        let Some((grants, owners)) = self.lead(process) else {
            self.after(LEAD_AGAIN, Step::StartDirector);
            return;
        };
        let Some(balance) = self.resume_balance(&grants) else {
            self.after(LEAD_AGAIN, Step::StartDirector);
            return;
        };
        let held = owners
            .iter()
            .map(|(owner, record)| (*owner, (record.kind, record.process)))
            .collect();
        let Ok(connections) = immediate(grants.connections()) else {
            self.after(LEAD_AGAIN, Step::StartDirector);
            return;
        };
        self.shards = owners.iter().map(|(owner, record)| (*owner, record.shard)).collect();
        let membership = Membership::new(now, held).knowing(self.closed.clone(), connections);
        let granted = owners.iter().map(|(owner, record)| {
            let grant = Grant {
                owner: *owner,
                kind: record.kind,
                shard: record.shard,
                epoch: record.epoch,
                ids: 0..0,
                former_ended: false,
            };
            (*owner, (grant, record.process))
        });
        self.director = Some(Directing {
            grants,
            membership,
            granted: granted.collect(),
            unheld: BTreeMap::new(),
            balance,
        });
        let mut delays = split_mix(self.now);
        let processes: Vec<ProcessId> = self.processes.keys().copied().collect();
        for process in processes {
            let delay = delays() % FOUND_WITHIN;
            self.after(delay, Step::FindDirector { process });
            if let Some(host) = self.processes.get_mut(&process) {
                host.has_found_director = false;
            }
        }
        self.after(0, Step::Direct);
    }

    pub(super) fn find_director(&mut self, process: ProcessId) {
        if let Some(host) = self.processes.get_mut(&process) {
            host.has_found_director = true;
        }
    }

    /// Continues from the stored map, which may be newer than any that a process has received. `None` if the store does
    /// not answer.
    fn resume_balance(&mut self, grants: &Grants) -> Option<Balance> {
        let plan = SpacePlan {
            space: SPACE,
            extent: EXTENT,
            aoi_radius: self.plan.shape.sight,
            aoi_hysteresis: 5.0,
            horizon: 0.0,
            cells: usize::try_from(self.plan.shape.cells).expect("few cells"),
        };
        let mut balance = Balance::new(vec![plan], PACE);
        let stored = immediate(grants.read_map()).ok()?;
        if let Some(bytes) = stored {
            let wire: WireMap = control::decode(&bytes).expect("a director wrote it");
            let map = SpaceMap::try_from(&wire).expect("a director wrote it");
            let now = Duration::from_micros(self.now);
            balance.resume(now, &wire, &map).expect("a director wrote it");
            self.map = map;
        }
        Some(balance)
    }

    fn lead(&self, process: ProcessId) -> Option<(Grants, BTreeMap<OwnerId, OwnerRecord>)> {
        let seen = immediate(Grants::watch(&self.store)).ok()?;
        let grants = immediate(Grants::lead(self.store.clone(), process, seen, Duration::ZERO)).ok()?;
        let owners = immediate(grants.owners()).ok()?;
        Some((grants, owners))
    }

    /// Resumes a paused director. It may continue only if no other took the lead meanwhile.
    pub(super) fn resume_director(&mut self) {
        let Some(mut stopped) = self.stopped_director.take() else {
            return;
        };
        let world = WorldTime(self.now / 1_000);
        match immediate(stopped.grants.beat(world)) {
            Ok(()) if self.director.is_some() => {
                self.broken.push("a superseded director continued to lead".to_owned());
            }
            Ok(()) => {
                self.director = Some(stopped);
                self.after(0, Step::Direct);
            }
            // It becomes a standby.
            Err(_) => {}
        }
    }

    /// A server reports that it has closed a process's connection.
    pub(super) fn report_closed(&mut self, process: ProcessId) {
        self.closed.add(connection(process));
        if let Some(director) = &mut self.director {
            let now = Duration::from_micros(self.now);
            director.membership.disconnected(now, connection(process));
        }
    }

    pub(super) fn direct(&mut self) {
        let Some(mut director) = self.director.take() else {
            return;
        };
        if self.direct_as(&mut director) {
            self.director = Some(director);
            self.after(self.plan.shape.beat_us, Step::Direct);
        } else {
            self.note("the store does not answer the director, which steps down");
            self.after(LEAD_AGAIN, Step::StartDirector);
        }
    }

    /// One beat; returns whether its decisions could be carried out.
    fn direct_as(&mut self, director: &mut Directing) -> bool {
        let now = Duration::from_micros(self.now);
        for (process, host) in self.processes.iter().filter(|(_, host)| host.reports_to_director()) {
            let holds = Some(match host.service {
                Service::Base => OwnerKind::Base,
                Service::Cell => OwnerKind::Cell,
                Service::Ledger => OwnerKind::Ledger,
            });
            let entities = |held: &Held| held.core.as_ref().map_or(0, |core| core.state().entities.len() as u64);
            let owners = host.owners.iter().map(|(owner, held)| (*owner, entities(held)));
            let (ready, behind) = host.follows.keys().partition(|owner| host.follows[*owner].is_ready);
            director.membership.receive(
                now,
                Beat {
                    process: *process,
                    definitions: Definitions::Present,
                    holds,
                    address: (host.service == Service::Base).then(|| address_of(*process).to_string()),
                    owners: owners.collect(),
                    draining: host.draining.is_some(),
                    connection: connection(*process),
                    follows: ready,
                    behind,
                    released: host.released.clone(),
                },
            );
        }
        for decision in director.membership.decide(now) {
            let is_closed = |connection: &str| director.membership.closed().contains(connection);
            let done = match decision {
                Decision::CreateOwner { kind, process } => {
                    let shard = self.emptiest_shard(kind);
                    immediate(director.grants.found(kind, shard, process)).map(|grant| (grant, process))
                }
                Decision::Grant { owner, process } => {
                    immediate(director.grants.grant(owner, process, is_closed)).map(|grant| (grant, process))
                }
            };
            let Ok((grant, process)) = done else { return false };
            self.shards.insert(grant.owner, grant.shard);
            director.membership.granted(grant.owner, grant.kind, process);
            director.granted.insert(grant.owner, (grant, process));
        }
        if !self.regrant(director) {
            return false;
        }
        self.give_orders(director);
        self.order_hand_overs(director);
        self.weigh(director);
        let is_drawn = self.draw(director);
        self.move_borders();
        self.spread_map();
        is_drawn
    }

    /// The shard with the fewest owners; the ledger's owner is on the first.
    fn emptiest_shard(&self, kind: OwnerKind) -> Shard {
        if kind == OwnerKind::Ledger {
            return Shard(0);
        }
        let owners = |shard: &Shard| self.shards.values().filter(|held| *held == shard).count();
        shards::all(self.plan.shards).min_by_key(owners).unwrap_or(Shard(0))
    }

    /// Grants an owner again if its live holder has not held it for too long.
    fn regrant(&mut self, director: &mut Directing) -> bool {
        let silence = u64::try_from(SILENCE.as_micros()).expect("silence is short");
        for (owner, (grant, process)) in &mut director.granted {
            let Some(host) = self.processes.get(process).filter(|host| host.reports_to_director()) else {
                continue;
            };
            let is_held = host.owners.get(owner).is_some_and(|held| held.epoch == grant.epoch);
            if is_held || host.released.contains(owner) {
                director.unheld.remove(owner);
                continue;
            }
            let since = *director.unheld.entry(*owner).or_insert(self.now);
            if self.now - since >= silence {
                let Ok(again) = immediate(director.grants.grant(*owner, *process, |_| false)) else {
                    return false;
                };
                *grant = again;
                director.unheld.remove(owner);
            }
        }
        true
    }

    /// Acts on the answers to beats: processes begin and stop holding owners.
    fn give_orders(&mut self, director: &Directing) {
        let (mut begin, mut ended) = (Vec::new(), Vec::new());
        for (process, host) in self.processes.iter_mut().filter(|(_, host)| host.reports_to_director()) {
            host.owners.retain(|owner, held| {
                let granted = director.granted.get(owner);
                let keep = granted.is_some_and(|(grant, holder)| holder == process && grant.epoch == held.epoch);
                if !keep {
                    ended.push((*process, *owner));
                }
                keep
            });
            for (owner, (grant, _)) in director.granted.iter().filter(|(_, (_, holder))| holder == process) {
                let fresh = grant.ids.end > grant.ids.start;
                if fresh
                    && !host.owners.contains_key(owner)
                    && !host.released.contains(owner)
                    && director.unheld.get(owner).is_none_or(|since| *since == self.now)
                {
                    begin.push((*process, grant.clone()));
                }
            }
        }
        for (process, owner) in ended {
            self.send_away(process, owner);
        }
        for (process, grant) in begin {
            self.begin_hold(process, grant);
        }
    }

    /// Reports the load of each cell.
    fn weigh(&mut self, director: &mut Directing) {
        let now = Duration::from_micros(self.now);
        for (process, host) in self.processes.iter().filter(|(_, host)| host.reports_to_director()) {
            for (owner, held) in &host.owners {
                let Some(Core::Cell(core)) = &held.core else { continue };
                let granted = director.granted.get(owner);
                let is_holder = granted.is_some_and(|(grant, holder)| holder == process && grant.epoch == held.epoch);
                if let Some(survey) = core.survey().filter(|_| is_holder) {
                    let units: f64 = survey.spaces.values().map(|space| space.units).sum();
                    let busy = units * COST;
                    director.balance.receive(now, *owner, Load { busy, survey });
                }
            }
        }
    }

    /// Draws and stores the map. Once play has ended boundaries stay in place, so that the realm comes to rest. Returns
    /// whether the store accepted it.
    fn draw(&mut self, director: &mut Directing) -> bool {
        let cells: Vec<OwnerId> = director.membership.live_owners(OwnerKind::Cell).collect();
        let enough = usize::try_from(self.plan.shape.cells).expect("few cells");
        let now = Duration::from_micros(self.now);
        let moves = self.is_playing() || self.map.version == 0;
        let drawn = moves
            .then(|| director.balance.next_map(now, &cells, enough, &self.map))
            .flatten();
        let is_drawn = drawn.is_some();
        let mut map = drawn.unwrap_or_else(|| self.map.clone());
        let is_named = director.membership.name_owners(&mut map);
        if !is_drawn {
            if !is_named || map.version == 0 {
                return true;
            }
            map.version += 1;
        }
        let stored = WireMap {
            trees: director.balance.trees(),
            ..WireMap::from(&map)
        };
        if immediate(director.grants.write_map(&control::encode(&stored))).is_err() {
            return false;
        }
        let before = self.map.spaces.get(&SPACE);
        self.redrawn += u64::from(before.is_some() && before != map.spaces.get(&SPACE));
        self.map = map;
        true
    }

    /// Sends the newest map to processes that have an older one, as the answer to a beat does.
    fn spread_map(&mut self) {
        let mut uninformed = Vec::new();
        for host in self.processes.values_mut().filter(|host| host.reports_to_director()) {
            if host.map.version < self.map.version {
                host.map = self.map.clone();
            }
            uninformed.extend(host.owners.values().map(|held| held.hold));
        }
        for hold in uninformed {
            self.send_map(hold);
        }
    }

    /// The holder of an owner whose core has opened its epoch and is not stopped.
    pub(super) fn holder(&self, owner: OwnerId) -> Option<Hold> {
        let (grant, process) = self.director.as_ref()?.granted.get(&owner)?;
        let host = self.processes.get(process).filter(|host| host.reports_to_director())?;
        let held = host
            .owners
            .get(&owner)
            .filter(|held| held.epoch == grant.epoch && held.core.is_some())?;
        Some(held.hold)
    }
}
