//! A process's part in planned hand-overs of owners (rule D9): it follows those that it is to hold next, and releases
//! those that others follow; and in a change of definitions, for which all owners are released (rule M7).

use std::collections::{BTreeMap, BTreeSet};
use std::pin::Pin;
use std::time::Duration;

use annals_ids::{Epoch, OwnerId};
use annals_node::Role;
use annals_wire::control::{GrantOrder, UpgradeOrder};
use futures::StreamExt;
use tokio::time::Instant;

use super::{DRAIN_WITHIN, HolderSet, Notifications};
use crate::following::{Following, OwnerLog};
use crate::holder::{Command, Notice, Stage};
use crate::move_pace::notification_time;
use crate::nats::Subscription;
use crate::process::Presence;

/// Timeout of handing everything over. What is left is released then.
const HAND_OVER_WITHIN: Duration = Duration::from_secs(10);

/// Timeout of all that together, if owners are granted to this process meanwhile, which it has announced to take over.
const HAND_OVER_AT_MOST: Duration = Duration::from_secs(30);

/// Time for clients to connect to the next holder, while this one still serves them.
const CLIENTS_WITHIN: Duration = Duration::from_millis(300);

/// Time without an answer of a director after which the rest is released without a follower. Another director leads
/// within this time, if there is one.
const DIRECTOR_WITHIN: Duration = Duration::from_secs(2);

/// Interval of heartbeats while owners are handed over.
const BEAT_EVERY: Duration = Duration::from_millis(100);

impl<R> HolderSet<R>
where
    R: Role + Send + 'static,
    R::Input: Clone + Send + 'static,
{
    /// Follows these owners, and no others.
    pub(super) fn follow(&mut self, orders: &[GrantOrder]) {
        let wanted: BTreeMap<OwnerId, OwnerLog> = orders
            .iter()
            .filter_map(GrantOrder::terms)
            .filter(|(_, kind, ..)| *kind == R::KIND)
            .map(|(owner, kind, shard, _)| (owner, OwnerLog { owner, kind, shard }))
            .collect();
        let past: Vec<OwnerId> = self
            .follows
            .keys()
            .filter(|owner| !wanted.contains_key(owner))
            .copied()
            .collect();
        for owner in past {
            if let Some(following) = self.follows.remove(&owner) {
                following.cancel();
            }
            self.holders.set_next(owner, false);
            // A full queue, or no service: clients that wait for the owner give up by themselves.
            let _ = self.notices.try_send(Notice::Ended(owner));
        }
        for (owner, log) in wanted {
            if self.held.contains_key(&owner) || self.follows.contains_key(&owner) {
                continue;
            }
            let (process, changed) = (self.process.clone(), self.changed.clone());
            self.follows.insert(owner, Following::start(process, log, changed));
            self.holders.set_next(owner, true);
        }
    }

    /// Releases each owner once another process follows it and its clients had time to connect there, those included
    /// that this process was about to take over. Returns when nothing is held any more, or the rest cannot be handed
    /// over.
    pub(super) async fn hand_over_all(&mut self, notifications: &mut Notifications, mut summons: Subscription) {
        let mut timeout = Instant::now() + HAND_OVER_WITHIN;
        let limit = Instant::now() + HAND_OVER_AT_MOST;
        let mut known: BTreeSet<OwnerId> = self.held.keys().copied().collect();
        let changed = self.changed.clone();
        let mut link = self.process.bus.state();
        let mut director_at = Instant::now();
        let mut due: BTreeMap<OwnerId, Instant> = BTreeMap::new();
        let mut beat = tokio::time::interval(BEAT_EVERY);
        while !(self.held.is_empty() && self.follows.is_empty()) && Instant::now() < timeout {
            let next = due.values().min().copied();
            tokio::select! {
                _ = beat.tick() => {
                    // Over a log that is blocked nothing can be handed over.
                    if self.held.values().any(|held| *held.stage.borrow() == Stage::Stuck) {
                        return;
                    }
                    let Some(orders) = self.beat(Presence::Drains).await else {
                        // Another director may be about to lead.
                        if director_at.elapsed() > DIRECTOR_WITHIN {
                            return;
                        }
                        continue;
                    };
                    director_at = Instant::now();
                    if self.held.keys().any(|owner| !known.contains(owner)) {
                        timeout = limit.min(Instant::now() + HAND_OVER_WITHIN);
                        known.extend(self.held.keys());
                    }
                    // A follower may have died since it was ready.
                    let is_off = |owner: &OwnerId| orders.hand_over.iter().all(|order| order.owner != owner.0);
                    let off: Vec<OwnerId> = due.extract_if(.., |owner, _| is_off(owner)).map(|(owner, _)| owner).collect();
                    self.withdraw_moves(off).await;
                    if orders.leave {
                        return;
                    }
                    for order in orders.hand_over {
                        let owner = OwnerId(order.owner);
                        if due.contains_key(&owner) || self.released.contains(&owner) {
                            continue;
                        }
                        let clients = u64::try_from(self.process.metrics.clients.get()).unwrap_or(0);
                        let spread = notification_time(clients);
                        let wait = if order.address.is_empty() { Duration::ZERO } else { spread + CLIENTS_WITHIN };
                        due.insert(owner, Instant::now() + wait);
                        self.announce_move(owner, order.address, spread).await;
                    }
                }
                Some(_) = summons.next() => beat.reset_immediately(),
                () = changed.notified() => beat.reset_immediately(),
                Ok(()) = link.changed() => beat.reset_immediately(),
                item = notifications.next() => self.spread(item),
                () = tokio::time::sleep_until(next.unwrap_or(timeout)) => {
                    let now_due = take_due(&mut due);
                    for owner in &now_due {
                        // One with a full queue is named in a later order again.
                        self.release(*owner, Command::Finish);
                    }
                    // Each release renews it, and not its end: what cannot finish would keep this process for ever.
                    if !now_due.is_empty() && self.held.keys().all(|owner| self.released.contains(owner)) {
                        timeout = Instant::now() + DRAIN_WITHIN;
                    }
                }
            }
        }
    }

    /// Sends the clients of an owner, over this time, the address of its next holder.
    async fn announce_move(&self, owner: OwnerId, address: String, spread: Duration) {
        let epoch = self.held.get(&owner).map_or(Epoch(0), |held| held.epoch);
        // If the service has ended, there are no clients.
        let _ = self.notices.send(Notice::Moving(owner, epoch, address, spread)).await;
    }

    /// Withdraws announced moves: clients that connect from now on do not receive them.
    async fn withdraw_moves(&self, owners: impl IntoIterator<Item = OwnerId>) {
        for owner in owners {
            // If the service has ended, there are no clients.
            let _ = self.notices.send(Notice::Staying(owner)).await;
        }
    }

    /// Has an owner released. Returns whether its holder will do so, or has ended.
    fn release(&mut self, owner: OwnerId, command: Command<R::Input>) -> bool {
        let Some(held) = self.held.get(&owner) else { return true };
        tracing::info!(%owner, "handing the owner over");
        let is_sent = held.commands.try_send(command).is_ok();
        if is_sent {
            self.released.insert(owner);
        }
        is_sent
    }

    /// Ends the holders that are about to release their owners for a change that was abandoned: they may wait for what
    /// does not come. The director grants again what is reported as released.
    async fn take_back(&mut self, announced: BTreeSet<OwnerId>) {
        tracing::warn!("the change of the realm's definitions was abandoned");
        let closing: Vec<(OwnerId, Epoch)> = self
            .held
            .iter()
            .filter(|(owner, _)| self.released.contains(owner))
            .map(|(owner, held)| (*owner, held.epoch))
            .collect();
        for (owner, epoch) in closing {
            self.ended.insert((owner, epoch));
            self.end(owner).await;
        }
        self.withdraw_moves(announced).await;
        if self.beat(Presence::Stays).await.is_none() {
            tracing::warn!("the director does not answer; it grants the owners of this process when it does");
        }
        self.released.clear();
    }

    /// Releases all owners for a change of the realm's definitions, once their clients had time to connect to the next
    /// holders, and waits for the outcome (rule M7). Returns whether this process is to end; if not, the change was
    /// abandoned.
    pub(super) async fn release_for_change(
        &mut self,
        notifications: &mut Notifications,
        summons: &mut Subscription,
        mut stopped: Pin<&mut impl Future<Output = ()>>,
    ) -> bool {
        tracing::info!(
            owners = self.held.len(),
            "releasing all owners: the realm's definitions change"
        );
        let changed = self.changed.clone();
        let mut link = self.process.bus.state();
        let mut due: BTreeMap<OwnerId, Instant> = BTreeMap::new();
        let mut announced = BTreeSet::new();
        let mut beat = tokio::time::interval(BEAT_EVERY);
        loop {
            let next = due.values().min().copied();
            tokio::select! {
                () = &mut stopped => return true,
                _ = beat.tick() => {
                    // The outcome comes from another director, if this one has died.
                    let Some(orders) = self.beat(Presence::Stays).await else { continue };
                    match orders.upgrade() {
                        UpgradeOrder::End => return true,
                        UpgradeOrder::None | UpgradeOrder::Wait => {
                            self.take_back(announced).await;
                            return false;
                        }
                        UpgradeOrder::Release => {}
                    }
                    for order in orders.release {
                        let owner = OwnerId(order.owner);
                        if announced.insert(owner) {
                            // Owners without clients wait as long: none is without the others for longer than necessary.
                            due.insert(owner, Instant::now() + CLIENTS_WITHIN);
                            self.announce_move(owner, order.address, Duration::ZERO).await;
                        }
                    }
                }
                Some(_) = summons.next() => beat.reset_immediately(),
                () = changed.notified() => beat.reset_immediately(),
                Ok(()) = link.changed() => beat.reset_immediately(),
                item = notifications.next() => self.spread(item),
                () = tokio::time::sleep_until(next.unwrap_or_else(Instant::now)), if next.is_some() => {
                    for owner in take_due(&mut due) {
                        if !self.release(owner, Command::Close) {
                            // Its queue is full: it is asked again.
                            due.insert(owner, Instant::now() + BEAT_EVERY);
                        }
                    }
                }
            }
        }
    }
}

/// Removes the owners whose time has come.
fn take_due(due: &mut BTreeMap<OwnerId, Instant>) -> Vec<OwnerId> {
    let now = Instant::now();
    due.extract_if(.., |_, at| *at <= now).map(|(owner, _)| owner).collect()
}
