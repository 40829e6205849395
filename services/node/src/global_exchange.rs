//! Exchange of global data among owners: each sends what it writes to the others at once, and compares its copy with
//! one of them every second (rule R2). It also ends registrations of entities that are gone (rule R4).
//!
//! All state here is soft: the data is in the log.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use annals_event::{Body, Event, GlobalData, GlobalEntry, GlobalScope, GlobalVersion};
use annals_ids::{OwnerId, Part};
use annals_wire::{
    SpaceMap,
    bus::{GLOBAL_MESSAGE_BYTES, GlobalMessage, Message, runs},
};

use crate::{owner_context::OwnerContext, time::Mono};

/// Interval of the comparisons.
const INTERVAL: Duration = Duration::from_secs(1);

/// State of the exchange.
#[derive(Debug, Default)]
pub(crate) struct GlobalExchange {
    /// When the next comparison is due.
    due: Mono,
    /// Number of comparisons so far.
    turn: usize,
    /// Version of the map that the peers are from.
    map: u64,
    /// The other owners of each scope.
    peers: BTreeMap<GlobalScope, BTreeSet<OwnerId>>,
    /// The registrations that were asked to end.
    ending: BTreeMap<String, GlobalVersion>,
}

impl GlobalExchange {
    /// When the next comparison is due; `None` while there is no global data.
    pub(crate) fn deadline(&self, cx: &OwnerContext) -> Option<Mono> {
        let holds_any = !cx.state().globals.is_empty();
        holds_any.then_some(self.due)
    }

    /// Applies a newer map: owners that it adds receive the digests of all data at once.
    pub(crate) fn learn(&mut self, cx: &mut OwnerContext, map: Option<&SpaceMap>) {
        let Some(map) = map.filter(|map| map.version > self.map) else {
            return;
        };
        self.map = map.version;
        cx.learn_bases(map);
        let mut known = std::mem::take(&mut self.peers);
        for scope in scopes(cx) {
            let peers = peers(map, scope, cx.owner());
            let before = known.remove(&scope).unwrap_or_default();
            for owner in peers.difference(&before) {
                compare(cx, scope, *owner);
            }
            self.peers.insert(scope, peers);
        }
    }

    /// Sends what this owner wrote to the others, and ends registrations of entities that are gone.
    pub(crate) fn note(&mut self, cx: &mut OwnerContext, changes: Vec<(GlobalScope, GlobalEntry)>, recorded: &[Event]) {
        let destroys = recorded.iter().any(|event| event.body == Body::Destroyed);
        let may_be_gone = destroys || !changes.is_empty();
        let mut written: BTreeMap<GlobalScope, Vec<GlobalEntry>> = BTreeMap::new();
        for (scope, entry) in changes {
            if entry.version.by == cx.owner() {
                written.entry(scope).or_default().push(entry);
            }
        }
        for (scope, entries) in written {
            for owner in self.peers_of(scope) {
                send(cx, owner, scope, &entries);
            }
        }
        if may_be_gone {
            self.end_registrations(cx);
        }
    }

    /// Handles another owner's message.
    pub(crate) fn take(&self, cx: &mut OwnerContext, from: OwnerId, (scope, message): (GlobalScope, GlobalMessage)) {
        if !scope.includes(cx.state().kind) {
            return;
        }
        let none = GlobalData::default();
        let data = cx.global_data(scope).unwrap_or(&none);
        match message {
            GlobalMessage::Digest(digest) => {
                if digest != data.digest() {
                    let (have, is_answer) = (data.versions(), false);
                    cx.send(
                        from,
                        Message::Global(scope, GlobalMessage::Versions { have, is_answer }),
                    );
                }
            }
            GlobalMessage::Versions { have, is_answer } => {
                let lacks = have.iter().any(|(key, version)| data.is_news(key, version));
                let own = (lacks && !is_answer).then(|| data.versions());
                send(cx, from, scope, &data.newer_than(&have));
                if let Some(have) = own {
                    let is_answer = true;
                    cx.send(
                        from,
                        Message::Global(scope, GlobalMessage::Versions { have, is_answer }),
                    );
                }
            }
            GlobalMessage::Entries(entries) => {
                for entry in entries {
                    cx.take_global(scope, entry);
                }
            }
        }
    }

    /// Whether the next comparison is due.
    pub(crate) fn is_due(&self, cx: &OwnerContext) -> bool {
        self.deadline(cx).is_some_and(|due| due <= cx.now().mono)
    }

    /// Compares the data of each scope with one other owner, in turn.
    pub(crate) fn tick(&mut self, cx: &mut OwnerContext) {
        self.due = cx.now().mono.after(INTERVAL);
        self.turn += 1;
        let held: Vec<GlobalScope> = cx.state().globals.keys().copied().collect();
        for scope in held {
            let peers: Vec<OwnerId> = self.peers_of(scope).into_iter().collect();
            // Each owner starts with the one after it, so that no two compare with the same one in the same second.
            let first = peers.partition_point(|peer| *peer < cx.owner());
            let turn = (first + self.turn).checked_rem(peers.len());
            if let Some(peer) = turn.and_then(|turn| peers.get(turn)) {
                compare(cx, scope, *peer);
            }
        }
        self.end_registrations(cx);
    }

    fn peers_of(&self, scope: GlobalScope) -> BTreeSet<OwnerId> {
        self.peers.get(&scope).cloned().unwrap_or_default()
    }

    /// Calls the keeper of the registry to end the registrations of entities whose home this owner is and that are gone.
    /// If this owner is the keeper, the call is executed with the next input.
    fn end_registrations(&mut self, cx: &mut OwnerContext) {
        let state = cx.state();
        let Some(data) = state
            .globals
            .get(&GlobalScope::Registry)
            .filter(|_| state.part() == Some(Part::Base))
        else {
            return;
        };
        let mut gone = BTreeMap::new();
        for (key, _) in data.values() {
            let holder = data.mailbox(key).filter(|holder| holder.home == state.owner);
            if let Some((holder, version)) = holder.zip(data.version(key))
                && !state.entities.contains_key(&holder.entity)
            {
                gone.insert(key.to_owned(), (holder.entity, version));
            }
        }
        self.ending.retain(|key, _| gone.contains_key(key));
        for (key, (entity, version)) in gone {
            if self.ending.get(&key) != Some(&version) && cx.needs(key.len()).is_ok() {
                // The writer of a registration is the owner that keeps the registry.
                cx.deregister(entity, key.clone(), version.by);
                self.ending.insert(key, version);
            }
        }
    }
}

fn scopes(cx: &OwnerContext) -> impl Iterator<Item = GlobalScope> + use<> {
    let kind = cx.state().kind;
    GlobalScope::ALL.into_iter().filter(move |scope| scope.includes(kind))
}

/// All other owners of a scope.
fn peers(map: &SpaceMap, scope: GlobalScope, owner: OwnerId) -> BTreeSet<OwnerId> {
    let bases = map.bases.iter().filter(|_| scope != GlobalScope::Cells);
    let cells = map.cells.iter().filter(|_| scope != GlobalScope::Bases);
    bases.chain(cells).copied().filter(|other| *other != owner).collect()
}

/// Sends an owner the digest of what is held here, if there is anything.
fn compare(cx: &mut OwnerContext, scope: GlobalScope, owner: OwnerId) {
    if let Some(digest) = cx.global_data(scope).map(GlobalData::digest) {
        cx.send(owner, Message::Global(scope, GlobalMessage::Digest(digest)));
    }
}

/// Sends entries to an owner, in as many messages as needed.
fn send(cx: &mut OwnerContext, owner: OwnerId, scope: GlobalScope, entries: &[GlobalEntry]) {
    for run in runs(entries, GLOBAL_MESSAGE_BYTES, GlobalEntry::length) {
        cx.send(owner, Message::Global(scope, GlobalMessage::Entries(run.to_vec())));
    }
}
