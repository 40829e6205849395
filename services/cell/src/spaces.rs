//! Data of spaces: each owner of a space holds all of it, and receives what the others write (rules S1 to S4).
//!
//! The data is in the log. The state here is not: which owner to ask next, and which entities were notified that their
//! space is gone.

use std::collections::{BTreeMap, BTreeSet};

use annals_event::{Body, Call, Event, Place, SpaceData, SpaceEntry, SpaceVersions};
use annals_ids::{Address, EntityId, OwnerId, SpaceId};
use annals_node::{Denied, OwnerContext};
use annals_wire::bus::{Message, SPACE_MESSAGE_BYTES, SpaceMessage, runs};

use crate::{sampling::SECOND, territory::Territory};

/// Tick of each second at which owners send the versions that they have.
const ASKING: u64 = 7;
const _: () = assert!(ASKING < SECOND);

/// Maximum number of cell parts per tick that end because their space is gone: each runs behaviour.
const GONE_AT_ONCE: usize = 100;

/// State of the exchange of space data, and of leaving spaces that are gone.
#[derive(Debug, Default)]
pub(crate) struct Spaces {
    /// Spaces of which another owner has all the data that is held here. If this owner has no area there any more,
    /// nothing is left to do.
    fully_replicated: BTreeSet<SpaceId>,
    /// Number of writes to a space's data here since the take-over.
    revisions: BTreeMap<SpaceId, u64>,
    /// The life of each space in which no entity of an earlier life was left.
    cleared: BTreeMap<SpaceId, u64>,
    /// Entities that were notified that their space is gone, and are still there.
    notified_gone: BTreeSet<EntityId>,
}

impl Spaces {
    /// Records that an entity returned to a space, perhaps from an earlier life of it.
    pub(crate) fn is_back_in(&mut self, space: SpaceId) {
        self.cleared.remove(&space);
    }

    /// Changes with every change of a space's data.
    pub(crate) fn revision(&self, space: SpaceId) -> u64 {
        self.revisions.get(&space).copied().unwrap_or_default()
    }

    /// Records writes, and sends those of this owner to the other owners of the space.
    pub(crate) fn note(&mut self, cx: &mut OwnerContext, territory: &Territory, recorded: &[Event]) {
        let mut written: BTreeMap<SpaceId, Vec<SpaceEntry>> = BTreeMap::new();
        for event in recorded {
            let Body::SpaceData { space, entry } = &event.body else {
                continue;
            };
            *self.revisions.entry(*space).or_default() += 1;
            self.fully_replicated.remove(space);
            if entry.version.by == cx.owner() {
                written.entry(*space).or_default().push(entry.clone());
            }
        }
        for (space, entries) in written {
            for owner in territory.other_owners(space) {
                send_entries(cx, owner, space, &entries);
            }
        }
    }

    /// Handles another owner's message about a space's data. Messages about spaces that the map does not have are
    /// dropped.
    pub(crate) fn take(
        &mut self,
        cx: &mut OwnerContext,
        territory: &Territory,
        from: OwnerId,
        (space, message): (SpaceId, SpaceMessage),
    ) {
        if !territory.has(space) {
            return;
        }
        match message {
            SpaceMessage::Entries(entries) => {
                for entry in entries {
                    let is_news = cx
                        .space_data(space)
                        .is_none_or(|data| data.is_news(entry.key, entry.version));
                    // Entries for which this input has no room are sent again.
                    if is_news && cx.needs(entry.value.len()).is_ok() {
                        cx.record_space_data(space, entry);
                    }
                }
            }
            SpaceMessage::Versions { have, is_answer } => {
                let data = cx.space_data(space);
                let is_news = |(key, version)| data.is_none_or(|data| data.is_news(key, version));
                let lacks = have.iter().any(is_news);
                let newer = data.map(|data| data.newer_than(&have)).unwrap_or_default();
                let has_area = territory.owners(space).contains(&from);
                if newer.is_empty() && has_area {
                    self.fully_replicated.insert(space);
                }
                send_entries(cx, from, space, &newer);
                // An owner without an area there needs to know whether it is done with the space.
                if !is_answer && (lacks || !has_area) {
                    ask(cx, from, space, true);
                }
            }
        }
    }

    /// Asks all other owners of spaces in which this owner has gained an area. For spaces in which it has lost its last
    /// area, it drops what it learned before: an owner that had all the data may have no area there either.
    pub(crate) fn learn(&mut self, cx: &mut OwnerContext, territory: &Territory, before: &BTreeSet<SpaceId>) {
        let own = territory.own_spaces();
        before.difference(&own).for_each(|space| {
            self.fully_replicated.remove(space);
        });
        for space in own.difference(before) {
            for owner in territory.other_owners(*space) {
                ask(cx, owner, *space, false);
            }
        }
    }

    /// Once a second: sends one other owner of each space, in turn, the versions that are held here.
    pub(crate) fn exchange(&self, cx: &mut OwnerContext, territory: &Territory, local_tick: u64) {
        if local_tick % SECOND != ASKING {
            return;
        }
        let own = territory.own_spaces();
        let held = cx.state().spaces.keys();
        let unsettled = held.filter(|space| !self.fully_replicated.contains(space)).copied();
        // An entity left in a space in which this owner has no area must learn that the space is gone.
        let around = cx.places().map(|(_, place)| place.space);
        let others = unsettled.chain(around).filter(|space| !own.contains(space));
        let spaces: BTreeSet<SpaceId> = own.iter().copied().chain(others).collect();
        for space in spaces {
            // Each owner starts with the one after it, so that no two ask the same one in the same second.
            let others = territory.other_owners(space);
            let mut turns = others.range(cx.owner()..).chain(others.range(..cx.owner()));
            let turn = (local_tick / SECOND).checked_rem(others.len() as u64);
            let turn = turn.and_then(|turn| usize::try_from(turn).ok());
            if let Some(owner) = turn.and_then(|turn| turns.nth(turn)) {
                ask(cx, *owner, space, false);
            }
        }
    }

    /// Entities that are left over from an earlier life of their space, ascending, at most [`GONE_AT_ONCE`].
    pub(crate) fn left_over(&mut self, cx: &OwnerContext) -> Vec<EntityId> {
        let cleared = |space| self.cleared.get(space).copied().unwrap_or_default();
        let spaces = cx.state().spaces.iter();
        let spaces = spaces.filter(|(space, data)| data.life() > cleared(space));
        let spaces: BTreeMap<SpaceId, u64> = spaces.map(|(space, data)| (*space, data.life())).collect();
        if spaces.is_empty() && self.notified_gone.is_empty() {
            return Vec::new();
        }
        let there = cx.places().filter(|(_, place)| spaces.contains_key(&place.space));
        let there: BTreeMap<EntityId, SpaceId> = there
            .filter(|(entity, _)| cx.is_left_over(*entity))
            .map(|(entity, place)| (entity, place.space))
            .collect();
        let left: BTreeSet<SpaceId> = there.values().copied().collect();
        let empty = spaces.into_iter().filter(|(space, _)| !left.contains(space));
        self.cleared.extend(empty);
        // An entity that is leaving may be refused and return: it is not notified again.
        let leaving: BTreeSet<EntityId> = cx.state().departing.values().map(|(entity, _)| *entity).collect();
        self.notified_gone
            .retain(|entity| there.contains_key(entity) || leaving.contains(entity));
        there.into_keys().take(GONE_AT_ONCE).collect()
    }

    /// Records that an entity is notified that its space is gone; returns whether it was not notified before.
    pub(crate) fn notify(&mut self, entity: EntityId) -> bool {
        self.notified_gone.insert(entity)
    }
}

/// Asks the owner that is responsible for a place to open its space.
///
/// # Errors
/// When there is no such owner, or the entity that asks is not here any more.
pub(crate) fn ask_to_open(
    cx: &mut OwnerContext,
    territory: &Territory,
    entity: EntityId,
    place: &Place,
) -> Result<(), Denied> {
    let what = "open a space";
    cx.image(entity).ok_or(Denied::Elsewhere { entity, what })?;
    let owner = territory.owner_at(place).ok_or(Denied::NoSpace(place.space))?;
    let (from, to) = (Address::Owner(cx.owner()), Address::Owner(owner));
    cx.call(from, to, owner, Call::OpenSpace(place.space));
    Ok(())
}

/// Notifies an owner that sent an entity into a space that is gone.
pub(crate) fn notify_gone(cx: &mut OwnerContext, owner: OwnerId, space: SpaceId) {
    let entry = SpaceEntry::of_life(cx.state().life(space), cx.owner());
    send_entries(cx, owner, space, &[entry]);
}

impl Territory {
    /// The spaces in which this owner has an area.
    pub(crate) fn own_spaces(&self) -> BTreeSet<SpaceId> {
        let own = self.spaces().filter(|(_, space)| {
            let mut owners = space.cells.iter().map(|area| area.owner);
            owners.any(|owner| owner == self.owner())
        });
        own.map(|(id, _)| id).collect()
    }

    /// All other owners with an area in a space.
    fn other_owners(&self, space: SpaceId) -> BTreeSet<OwnerId> {
        let mut owners = self.owners(space);
        owners.remove(&self.owner());
        owners
    }

    /// All owners with an area in a space.
    pub(crate) fn owners(&self, space: SpaceId) -> BTreeSet<OwnerId> {
        let found = self.spaces().filter(|(id, _)| *id == space);
        found
            .flat_map(|(_, space)| space.cells.iter().map(|area| area.owner))
            .collect()
    }
}

/// Sends an owner the versions that are held here, so that it sends newer ones.
fn ask(cx: &mut OwnerContext, owner: OwnerId, space: SpaceId, is_answer: bool) {
    let have = cx
        .space_data(space)
        .map_or_else(SpaceVersions::default, SpaceData::versions);
    cx.send(owner, Message::Space(space, SpaceMessage::Versions { have, is_answer }));
}

/// Sends entries to an owner, in as many messages as needed.
fn send_entries(cx: &mut OwnerContext, owner: OwnerId, space: SpaceId, entries: &[SpaceEntry]) {
    for run in runs(entries, SPACE_MESSAGE_BYTES, |entry| entry.value.len()) {
        cx.send(owner, Message::Space(space, SpaceMessage::Entries(run.to_vec())));
    }
}
