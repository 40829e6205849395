//! The director and how processes hear of it.

use std::{collections::BTreeMap, time::Duration};

use annals_director::{Beat, Decision, Grant, Grants, Roster, SILENCE, SpacePlan, divide};
use annals_ids::{OwnerId, OwnerKind, ProcessId};
use annals_store::{immediate, layout::owners::OwnerRecord};
use annals_wire::SpaceMap;

use super::{
    Step, World,
    hosting::{Hold, SHARD, Service},
};
use crate::game::{EXTENT, SPACE};

/// Until somebody tries again to lead, microseconds.
const LEAD_AGAIN: u64 = 500_000;

/// A director that leads.
pub struct Directing {
    /// Its transactions.
    pub grants: Grants,
    /// Who lives.
    pub roster: Roster,
    /// Who was granted what in this term.
    granted: BTreeMap<OwnerId, (Grant, ProcessId)>,
    /// Since when a live holder does not hold what it was granted.
    unheld: BTreeMap<OwnerId, u64>,
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
        let held = owners
            .iter()
            .map(|(owner, record)| (*owner, (record.kind, record.process)))
            .collect();
        let roster = Roster::new(now, held);
        let granted = owners.iter().map(|(owner, record)| {
            let grant = Grant {
                owner: *owner,
                kind: record.kind,
                shard: SHARD,
                epoch: record.epoch,
                ids: 0..0,
            };
            (*owner, (grant, record.process))
        });
        self.director = Some(Directing {
            grants,
            roster,
            granted: granted.collect(),
            unheld: BTreeMap::new(),
        });
        self.after(0, Step::Direct);
    }

    fn lead(&self, process: ProcessId) -> Option<(Grants, BTreeMap<OwnerId, OwnerRecord>)> {
        let seen = immediate(Grants::watch(&self.store)).ok()?;
        let grants = immediate(Grants::lead(self.store.clone(), process, seen)).ok()?;
        let owners = immediate(grants.owners()).ok()?;
        Some((grants, owners))
    }

    /// A director that was stopped tries to go on. It may do so only if nobody took the lead meanwhile.
    pub(super) fn resume_director(&mut self) {
        let Some(mut stopped) = self.stopped_director.take() else {
            return;
        };
        match immediate(stopped.grants.beat()) {
            Ok(()) if self.director.is_some() => {
                self.broken
                    .push("a director that had been succeeded went on leading".to_owned());
            }
            Ok(()) => {
                self.director = Some(stopped);
                self.after(0, Step::Direct);
            }
            // It stands by again.
            Err(_) => {}
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
            self.note("the store does not answer the director, which stands back");
            self.after(LEAD_AGAIN, Step::StartDirector);
        }
    }

    /// A beat; whether it could do what it decided.
    fn direct_as(&mut self, director: &mut Directing) -> bool {
        let now = Duration::from_micros(self.now);
        for (process, host) in self.processes.iter().filter(|(_, host)| host.hears_director()) {
            let holds = Some(match host.service {
                Service::Base => OwnerKind::Base,
                Service::Cell => OwnerKind::Cell,
                Service::Ledger => OwnerKind::Ledger,
            });
            let owners: Vec<OwnerId> = host.owners.keys().copied().collect();
            director.roster.hear(
                now,
                Beat {
                    process: *process,
                    holds,
                    address: None,
                    owners,
                    draining: false,
                },
            );
        }
        for decision in director.roster.decide(now) {
            let done = match decision {
                Decision::Found { kind, process } => {
                    immediate(director.grants.found(kind, SHARD, process)).map(|grant| (grant, process))
                }
                Decision::Grant { owner, process } => {
                    immediate(director.grants.grant(owner, process)).map(|grant| (grant, process))
                }
            };
            let Ok((grant, process)) = done else { return false };
            director.roster.granted(grant.owner, grant.kind, process);
            director.granted.insert(grant.owner, (grant, process));
        }
        if !self.regrant(director) {
            return false;
        }
        self.give_orders(director);
        self.draw(director);
        self.spread_map();
        true
    }

    /// What a live process does not hold for too long is granted to it anew.
    fn regrant(&mut self, director: &mut Directing) -> bool {
        let silence = u64::try_from(SILENCE.as_micros()).expect("silence is short");
        for (owner, (grant, process)) in &mut director.granted {
            let Some(host) = self.processes.get(process).filter(|host| host.hears_director()) else {
                continue;
            };
            if host.owners.get(owner).is_some_and(|held| held.epoch == grant.epoch) {
                director.unheld.remove(owner);
                continue;
            }
            let since = *director.unheld.entry(*owner).or_insert(self.now);
            if self.now - since >= silence {
                let Ok(again) = immediate(director.grants.grant(*owner, *process)) else {
                    return false;
                };
                *grant = again;
                director.unheld.remove(owner);
            }
        }
        true
    }

    /// What the answers to beats do: holders begin and end.
    fn give_orders(&mut self, director: &Directing) {
        let (mut begin, mut ended) = (Vec::new(), Vec::new());
        for (process, host) in self.processes.iter_mut().filter(|(_, host)| host.hears_director()) {
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
            self.begin_hold(process, grant.owner, grant.epoch, grant.ids);
        }
    }

    fn draw(&mut self, director: &Directing) {
        let cells: Vec<OwnerId> = director.roster.live_owners(OwnerKind::Cell).collect();
        let drawn: Vec<OwnerId> = self
            .map
            .spaces
            .get(&SPACE)
            .map(|space| space.cells.iter().map(|cell| cell.owner).collect())
            .unwrap_or_default();
        let enough = cells.len() as u64 >= self.plan.shape.cells;
        let bootstrap = self
            .map
            .bootstrap
            .or_else(|| director.roster.first_owner(OwnerKind::Base));
        let is_drawn = cells.iter().all(|owner| drawn.contains(owner)) && bootstrap == self.map.bootstrap;
        if !enough || is_drawn {
            return;
        }
        let mut owners = drawn.clone();
        owners.extend(cells.iter().filter(|owner| !drawn.contains(owner)));
        let plan = SpacePlan {
            space: SPACE,
            extent: EXTENT,
            aoi_radius: self.plan.shape.sight,
            aoi_hysteresis: 5.0,
        };
        self.map = SpaceMap {
            bootstrap,
            ..divide(plan, &owners, &self.map)
        };
    }

    /// The answer to the beat of a process that knows an older map holds the newest one.
    fn spread_map(&mut self) {
        let mut uninformed = Vec::new();
        for host in self.processes.values_mut().filter(|host| host.hears_director()) {
            if host.map.version < self.map.version {
                host.map = self.map.clone();
            }
            uninformed.extend(host.owners.values().map(|held| held.hold));
        }
        for hold in uninformed {
            self.tell_map(hold);
        }
    }

    /// Who holds an owner with a core that has opened its epoch, and is not stopped.
    pub(super) fn holder(&self, owner: OwnerId) -> Option<Hold> {
        let (grant, process) = self.director.as_ref()?.granted.get(&owner)?;
        let host = self.processes.get(process).filter(|host| host.hears_director())?;
        let held = host
            .owners
            .get(&owner)
            .filter(|held| held.epoch == grant.epoch && held.core.is_some())?;
        Some(held.hold)
    }
}
