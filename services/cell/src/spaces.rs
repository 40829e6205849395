//! Data of spaces: each owner of a space holds all of it, and what one writes the others learn (rules S1 to S4).
//!
//! What is held is in the log. Nothing of what is here is: whom an owner asks next, and who was told that a space is gone.

use std::{
    collections::{BTreeMap, BTreeSet},
    iter::once,
};

use annals_event::{Body, Call, Event, Place, SpaceData, SpaceEntry, SpaceVersions};
use annals_ids::{Address, EntityId, OwnerId, SpaceId};
use annals_node::{Denied, OwnerContext};
use annals_wire::bus::{Message, SPACE_MESSAGE_BYTES, SpaceMessage};

use crate::{role::CellRole, sampling::SECOND, territory::Territory};

/// The beat of the second at which owners tell which versions they have.
const ASKING: u64 = 7;
const _: () = assert!(ASKING < SECOND);

/// Most entities whose space is gone whose cell parts end at one tick: each may do something about it.
const GONE_AT_ONCE: usize = 100;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Spaces {
    /// Spaces of which another one of their owners has all that is held here. Where this owner has no area any more, nothing is
    /// left to do.
    settled: BTreeSet<SpaceId>,
    /// How often something was written here into a space's data since the take-over.
    revisions: BTreeMap<SpaceId, u64>,
    /// Of which life each space was when nobody was left in it of an earlier one.
    cleared: BTreeMap<SpaceId, u64>,
    /// Who was told that its space is gone, and is still there.
    told: BTreeSet<EntityId>,
}

impl Spaces {
    /// Somebody is back in a space, perhaps of an earlier life of it.
    pub(crate) fn is_back_in(&mut self, space: SpaceId) {
        self.cleared.remove(&space);
    }

    /// Changes with every change of a space's data.
    pub(crate) fn revision(&self, space: SpaceId) -> u64 {
        self.revisions.get(&space).copied().unwrap_or_default()
    }
}

impl CellRole {
    /// Takes note of what was written, and tells what was written by this owner to the others of the space.
    pub(crate) fn note_spaces(&mut self, cx: &mut OwnerContext, recorded: &[Event]) {
        let mut written: BTreeMap<SpaceId, Vec<SpaceEntry>> = BTreeMap::new();
        for event in recorded {
            let Body::SpaceData { space, entry } = &event.body else {
                continue;
            };
            *self.spaces.revisions.entry(*space).or_default() += 1;
            self.spaces.settled.remove(space);
            if entry.version.by == cx.owner() {
                written.entry(*space).or_default().push(entry.clone());
            }
        }
        for (space, entries) in written {
            for owner in self.others(cx, space) {
                tell(cx, owner, space, &entries);
            }
        }
    }

    /// Hears what another owner says of a space's data. Of spaces that the map does not have nothing is taken.
    pub(crate) fn hear_of_space(
        &mut self,
        cx: &mut OwnerContext,
        from: OwnerId,
        space: SpaceId,
        message: SpaceMessage,
    ) {
        if !self.territory.has(space) {
            return;
        }
        match message {
            SpaceMessage::Entries(entries) => {
                for entry in entries {
                    let is_news = cx
                        .space_data(space)
                        .is_none_or(|data| data.is_news(entry.key, entry.version));
                    // What this input has no room for is sent again.
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
                let has_area = self.territory.owners(space).contains(&from);
                if newer.is_empty() && has_area {
                    self.spaces.settled.insert(space);
                }
                tell(cx, from, space, &newer);
                // Whoever has no area there wants to know whether it is done with the space.
                if !is_answer && (lacks || !has_area) {
                    ask(cx, from, space, true);
                }
            }
        }
    }

    /// Asks all others of spaces in which this owner has an area now and had none before. Of those in which it has none any more
    /// it does not count on what was heard while it had one: whoever had all of it may have no area there either.
    pub(crate) fn learn_spaces(&mut self, cx: &mut OwnerContext, before: &BTreeSet<SpaceId>) {
        let own = self.territory.own_spaces();
        before.difference(&own).for_each(|space| {
            self.spaces.settled.remove(space);
        });
        for space in own.difference(before) {
            for owner in self.others(cx, *space) {
                ask(cx, owner, *space, false);
            }
        }
    }

    /// Once a second: tells one other owner of each space, in turn, which versions are held here.
    pub(crate) fn exchange_spaces(&mut self, cx: &mut OwnerContext) {
        let beat = self.sampling.beat();
        if beat % SECOND != ASKING {
            return;
        }
        let own = self.territory.own_spaces();
        let held = cx.state().spaces.keys();
        let unsettled = held.filter(|space| !self.spaces.settled.contains(space)).copied();
        // Who is still here of a space in which this owner has no area has to hear that it is gone.
        let around = cx.places().map(|(_, place)| place.space);
        let others = unsettled.chain(around).filter(|space| !own.contains(space));
        let spaces: BTreeSet<SpaceId> = own.iter().copied().chain(others).collect();
        for space in spaces {
            // Everybody begins with whoever comes after it, so that no two ask the same one in the same second.
            let others = self.others(cx, space);
            let mut turns = others.range(cx.owner()..).chain(others.range(..cx.owner()));
            let turn = (beat / SECOND).checked_rem(others.len() as u64);
            let turn = turn.and_then(|turn| usize::try_from(turn).ok());
            if let Some(owner) = turn.and_then(|turn| turns.nth(turn)) {
                ask(cx, *owner, space, false);
            }
        }
    }

    /// Has a space be open anew.
    pub(crate) fn open_space(&mut self, cx: &mut OwnerContext, space: SpaceId) {
        if cx.open_space(space).is_err() {
            self.counters.denied += 1;
        }
    }

    /// Asks the owner that is responsible at a place to open its space.
    ///
    /// # Errors
    /// When nobody is, or the entity on whose behalf it is asked is not here any more.
    pub(crate) fn ask_to_open(&mut self, cx: &mut OwnerContext, entity: EntityId, place: &Place) -> Result<(), Denied> {
        let what = "have a space opened";
        cx.image(entity).ok_or(Denied::Elsewhere { entity, what })?;
        let owner = self.territory.owner_at(place).ok_or(Denied::NoSpace(place.space))?;
        let (from, to) = (Address::Owner(cx.owner()), Address::Owner(owner));
        cx.call(from, to, owner, Call::OpenSpace(place.space));
        Ok(())
    }

    /// Tells who is of an earlier life of its space that the space is gone, and ends their cell parts. Who asks to be put into
    /// another space has until that is done, or has failed.
    pub(crate) fn leave_gone(&mut self, cx: &mut OwnerContext) {
        let cleared = |space| self.spaces.cleared.get(space).copied().unwrap_or_default();
        let spaces = cx.state().spaces.iter();
        let spaces = spaces.filter(|(space, data)| data.life() > cleared(space));
        let spaces: BTreeMap<SpaceId, u64> = spaces.map(|(space, data)| (*space, data.life())).collect();
        if spaces.is_empty() && self.spaces.told.is_empty() {
            return;
        }
        let there = cx.places().filter(|(_, place)| spaces.contains_key(&place.space));
        let there: BTreeMap<EntityId, SpaceId> = there
            .filter(|(entity, _)| cx.is_left_over(*entity))
            .map(|(entity, place)| (entity, place.space))
            .collect();
        let left: BTreeSet<SpaceId> = there.values().copied().collect();
        let empty = spaces.into_iter().filter(|(space, _)| !left.contains(space));
        self.spaces.cleared.extend(empty);
        // Who is on its way may be refused and come back: it is not told again.
        let leaving: BTreeSet<EntityId> = cx.state().departing.values().map(|(entity, _)| *entity).collect();
        self.spaces
            .told
            .retain(|entity| there.contains_key(entity) || leaving.contains(entity));
        for entity in there.into_keys().take(GONE_AT_ONCE) {
            if cx.needs(0).is_err() {
                return;
            }
            if self.spaces.told.insert(entity) {
                cx.run(entity, &self.spatial_query(), |behaviour, context| {
                    behaviour.space_gone(context);
                });
                if cx.has_requests(entity) {
                    continue;
                }
            }
            self.destroy(cx, entity);
        }
    }

    /// An owner sends somebody into a space that is gone, as it seems not to know.
    pub(crate) fn tell_gone(&self, cx: &mut OwnerContext, owner: OwnerId, space: SpaceId) {
        let entry = SpaceEntry::of_life(cx.state().life(space), cx.owner());
        tell(cx, owner, space, &[entry]);
    }

    /// Everybody but this owner who has an area in a space.
    fn others(&self, cx: &OwnerContext, space: SpaceId) -> BTreeSet<OwnerId> {
        let mut owners = self.territory.owners(space);
        owners.remove(&cx.owner());
        owners
    }
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

    /// Everybody who has an area in a space.
    pub(crate) fn owners(&self, space: SpaceId) -> BTreeSet<OwnerId> {
        let found = self.spaces().filter(|(id, _)| *id == space);
        found
            .flat_map(|(_, space)| space.cells.iter().map(|area| area.owner))
            .collect()
    }
}

/// Tells an owner which versions are held here, so that it sends what is newer.
fn ask(cx: &mut OwnerContext, owner: OwnerId, space: SpaceId, is_answer: bool) {
    let have = cx
        .space_data(space)
        .map_or_else(SpaceVersions::default, SpaceData::versions);
    cx.tell(owner, Message::Space(space, SpaceMessage::Versions { have, is_answer }));
}

/// Sends an owner entries, in as many messages as it takes.
fn tell(cx: &mut OwnerContext, owner: OwnerId, space: SpaceId, entries: &[SpaceEntry]) {
    let (mut start, mut bytes) = (0, 0);
    let lengths = entries.iter().map(|entry| Some(entry.value.len()));
    for (end, length) in lengths.chain(once(None)).enumerate() {
        let is_full = length.is_none_or(|length| bytes + length > SPACE_MESSAGE_BYTES);
        if is_full && start < end {
            let some = entries[start..end].to_vec();
            cx.tell(owner, Message::Space(space, SpaceMessage::Entries(some)));
            (start, bytes) = (end, 0);
        }
        bytes += length.unwrap_or_default();
    }
}
