//! What processes report to the leading director, and what it orders them to do.

use std::{collections::BTreeSet, time::Duration};

use annals_director::{Beat, Definitions, Duplicate, Progress, Stage};
use annals_ids::{OwnerId, OwnerKind, ProcessId, WorldTime};
use annals_wire::{
    control::{
        DrainProcess, DrainStage, HandOver, Holding, ListedProcess, Orders, OwnerAddress, ProcessBeat, ProcessList,
        UpgradeOrder, WireMap,
    },
    load::Load,
};

use super::{Leader, monotonic};
use crate::clock;

/// Maximum difference between two wall clocks that is not reported: longer than a heartbeat takes.
const CLOCK_TOLERANCE: Duration = Duration::from_secs(10);

impl Leader {
    /// Applies a heartbeat, unless another process has the number of its sender.
    pub(super) fn handle_beat(&mut self, beat: &ProcessBeat) -> Result<(), Duplicate> {
        let process = ProcessId(beat.process);
        // While no director led, the processes have counted on.
        self.clock.follow(WorldTime(beat.world));
        let holds = match beat.service.as_str() {
            "base" => Some(OwnerKind::Base),
            "cell" => Some(OwnerKind::Cell),
            "db" => Some(OwnerKind::Ledger),
            _ => None,
        };
        let address = Some(beat.address.clone()).filter(|address| !address.is_empty());
        let owners = beat.holds.iter().map(|held| (OwnerId(held.owner), held.entities));
        let follows: BTreeSet<OwnerId> = beat.follows.iter().copied().map(OwnerId).collect();
        let definitions = match beat.schema.as_slice() {
            schema if schema.is_empty() || *schema == self.realm.schema.0 => Definitions::Present,
            schema if self.upgrade.as_ref().is_some_and(|upgrade| upgrade.to().0 == *schema) => Definitions::Next,
            _ => Definitions::Former,
        };
        let report = Beat {
            process,
            definitions,
            holds,
            address,
            owners: owners.collect(),
            draining: beat.draining,
            connection: beat.connection.clone(),
            follows: follows.clone(),
            behind: beat.behind.iter().copied().map(OwnerId).collect(),
            released: beat.released.iter().copied().map(OwnerId).collect(),
        };
        self.membership.check(&report)?;
        self.compare_clocks(process, beat);
        let begins_to_drain = beat.draining && !self.membership.is_draining(process);
        let is_newly_ready = !follows.is_empty() && !self.membership.has_followed(process, &follows);
        self.membership.receive(monotonic(), report);
        if self.membership.is_alive(process) {
            self.services.insert(process, beat.service.clone());
        }
        // New orders are fetched at once: those of followers that are to begin, and of holders whose followers are ready.
        if begins_to_drain {
            self.summoned.extend(self.membership.idle_followers(process));
        }
        if is_newly_ready {
            self.summoned.extend(self.membership.draining_with_followers());
        }
        let progress = Progress {
            announced: Stage::of_number(beat.announced),
            done: Stage::of_number(beat.done),
            waits: beat.waits.clone(),
        };
        self.lifecycle.receive(monotonic(), process, &beat.service, progress);
        for held in &beat.holds {
            self.weigh(process, held);
        }
        Ok(())
    }

    /// Reports a process whose wall clock differs from this director's, once, and when that has ended.
    fn compare_clocks(&mut self, process: ProcessId, beat: &ProcessBeat) {
        // Earlier releases do not report it.
        if beat.wall == 0 {
            return;
        }
        let (own, service) = (clock::wall().0, &beat.service);
        let apart = Duration::from_millis(own.abs_diff(beat.wall));
        if apart <= CLOCK_TOLERANCE {
            if self.apart.remove(&process) {
                tracing::info!(%process, service, "its wall clock agrees with this director's again");
            }
        } else if self.apart.insert(process) {
            let (apart, direction) = (apart.as_secs(), if beat.wall > own { "ahead of" } else { "behind" });
            tracing::warn!(
                %process,
                service,
                "its wall clock is {apart} s {direction} this director's: nothing is lost and no timer stops, as the realm \
                 uses the director's, but certificates may seem expired and times in what is logged as text differ; \
                 synchronise the clocks of both machines, with NTP for example"
            );
        }
    }

    /// The answer to a heartbeat.
    pub(super) fn orders(&mut self, beat: &ProcessBeat) -> Orders {
        let process = ProcessId(beat.process);
        let mut grants = Vec::new();
        for (owner, (order, _)) in self.orders.iter().filter(|(_, (_, holder))| *holder == process) {
            let held = beat
                .holds
                .iter()
                .any(|held| held.owner == owner.0 && held.epoch == order.epoch);
            if held {
                self.unheld.remove(owner);
            } else {
                self.unheld.entry(*owner).or_insert_with(monotonic);
            }
            grants.push(order.clone());
        }
        let map = (self.map.version > beat.map).then(|| WireMap::from(&self.map));
        let mut orders = Orders {
            grants,
            map,
            stage: self.lifecycle.stage().number(),
            drain: self.drains.contains(&process),
            ..Orders::default()
        };
        orders.upgrade = self.upgrade_order(process).into();
        if orders.upgrade() == UpgradeOrder::Release {
            let released = self.membership.to_release(process);
            orders.release = released
                .map(|(owner, address)| HandOver {
                    owner: owner.0,
                    address: address.to_owned(),
                })
                .collect();
        }
        if self.lifecycle.grants() {
            let followed = self.membership.to_follow(process);
            let followed: BTreeSet<OwnerId> = followed
                .chain(self.membership.to_keep_following(monotonic(), process))
                .collect();
            orders.follow = followed
                .into_iter()
                .filter_map(|owner| self.orders.get(&owner))
                .map(|(order, _)| order.clone())
                .collect();
            let handed = self.membership.to_hand_over(process);
            orders.hand_over = handed
                .map(|(owner, address)| HandOver {
                    owner: owner.0,
                    address: address.to_owned(),
                })
                .collect();
        }
        orders.wall = clock::wall().0;
        orders.leave = beat.draining && (!self.lifecycle.grants() || self.membership.is_alone(process));
        orders
    }

    /// The live processes, for an operator.
    pub(super) fn processes(&self) -> ProcessList {
        let listed = self.services.iter().map(|(process, service)| {
            let owners: Vec<OwnerId> = self.membership.owned(*process).collect();
            ListedProcess {
                process: process.0,
                service: service.clone(),
                entities: owners.iter().map(|owner| self.membership.entities_of(*owner)).sum(),
                owners: owners.iter().map(|owner| owner.0).collect(),
                draining: self.membership.is_draining(*process),
                follows: self.membership.to_follow(*process).map(|owner| owner.0).collect(),
            }
        });
        ProcessList {
            processes: listed.collect(),
        }
    }

    /// An operator's request to drain a process, or for the progress of that.
    pub(super) fn drain(&mut self, ask: &DrainProcess) -> DrainStage {
        let process = ProcessId(ask.process);
        let mut stage = DrainStage {
            service: self.services.get(&process).cloned().unwrap_or_default(),
            owners: u32::try_from(self.membership.owned(process).count()).unwrap_or(u32::MAX),
            refused: String::new(),
            left: self.left.contains(&process),
        };
        if stage.service.is_empty() || !ask.drain {
            return stage;
        }
        let kind = self.membership.kind_of(process);
        let kind = kind.filter(|kind| matches!(kind, OwnerKind::Base | OwnerKind::Cell));
        let is_alone = kind.is_some_and(|kind| !self.membership.has_other(kind, process));
        if kind.is_none() {
            stage.refused = format!(
                "a {} process hands nothing over: stop it with SIGTERM, and start another one",
                stage.service
            );
        } else if !self.grants_now() {
            stage.refused =
                "the realm is starting or stopping, or its definitions change: wait until it runs".to_owned();
        } else if is_alone && !ask.force {
            stage.refused = format!(
                "process {process} is the only {} process: start another one first, or use --force: its entities then \
                 pause until one is started",
                stage.service
            );
        } else {
            if self.drains.insert(process) {
                tracing::info!(%process, service = stage.service, "an operator drains the process");
            }
            self.summoned.insert(process);
        }
        stage
    }

    /// Records the load of an owner and its sessions, if the process that reports it is its holder.
    fn weigh(&mut self, process: ProcessId, held: &Holding) {
        let owner = OwnerId(held.owner);
        let order = self.orders.get(&owner).filter(|(_, holder)| *holder == process);
        if order.is_none_or(|(order, _)| order.epoch != held.epoch) {
            return;
        }
        self.count_sessions(held);
        match held.load.as_ref().map(Load::try_from) {
            Some(Ok(load)) => self.balance.receive(monotonic(), owner, load),
            Some(Err(error)) => tracing::warn!(%owner, %error, "ignored a malformed load report"),
            None => {}
        }
    }

    pub(super) fn locate(&self, owner: Option<OwnerId>) -> OwnerAddress {
        let Some(owner) = owner else {
            return OwnerAddress::default();
        };
        let epoch = self.orders.get(&owner).map_or(0, |(order, _)| order.epoch);
        let held = !self.unheld.contains_key(&owner);
        let address = self
            .membership
            .address(owner)
            .filter(|_| held)
            .unwrap_or_default()
            .to_owned();
        OwnerAddress {
            owner: owner.0,
            epoch,
            address,
            room: None,
        }
    }
}
