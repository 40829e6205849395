//! Haunts: which owners have ghosts of what is real here, and how they are kept alike (rule V2).
//!
//! Nothing of it is kept in the log. A haunt begins by saying how far the entity's history is; whoever lacks something
//! asks. What follows is sent at each tick, and once a second all is named, so that a loss of any of it is found.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use annals_event::{Image, Place};
use annals_ids::{EntityId, HistoryNumber, OwnerId};
use annals_node::{Desk, time::Mono};
use annals_wire::bus::{GhostImage, GhostMessage, GhostMove, Message, Shown};

use crate::{
    ghosts::{Ghost, Ghosts},
    news::News,
    presence::{as_ghosts_see, ghost_properties, real_since},
    sampling::{SECOND, Sampling},
    teleport::is_put,
    territory::Territory,
};

/// Movements per message: 45 bytes each, far below what the bus takes.
const MOVES: usize = 1_000;

/// How long an owner is still told that it has no ghost from here any more: it drops them when it hears so, and several of
/// these messages may be lost.
const FAREWELL: Duration = Duration::from_secs(10);

/// How long an owner still names what it has handed over, unless it went far away, after the next holder has spoken of it:
/// until then others have heard that too, and nobody need lose and regain a ghost.
const LINGERING: Duration = Duration::from_secs(3);

/// The beat of the second at which everything is named; movements are repeated at another.
const NAMING: u64 = SECOND / 2;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Haunts {
    /// Per owner and entity, the history number up to which the owner was told.
    there: BTreeMap<OwnerId, BTreeMap<EntityId, HistoryNumber>>,
    /// When each owner was last told of a ghost it should have, or may have begun to keep one of what is here.
    haunted: BTreeMap<OwnerId, Mono>,
    /// Who asked for what it is not to have, and is to be told at this tick what it is.
    asked: BTreeSet<OwnerId>,
    /// What was handed over a moment ago.
    lingering: BTreeMap<EntityId, Lingering>,
}

#[derive(Clone, Copy, Debug)]
struct Lingering {
    place: Place,
    /// The newest history number that was told from here.
    newest: HistoryNumber,
    until: Mono,
}

impl Haunts {
    /// Which entities have a ghost on an owner.
    pub(crate) fn on(&self, owner: OwnerId) -> impl Iterator<Item = EntityId> {
        self.there.get(&owner).into_iter().flatten().map(|(entity, _)| *entity)
    }

    /// These owners may keep ghosts of what is here, of which this one has not told them: of what has come from there, or
    /// what a former holder told. They are told what they are to have, be they neighbours or not.
    pub(crate) fn may_be_on(&mut self, now: Mono, owners: impl IntoIterator<Item = OwnerId>) {
        self.haunted.extend(owners.into_iter().map(|owner| (owner, now)));
    }

    /// Goes on naming an entity that is about to be forgotten here because it has arrived elsewhere.
    pub(crate) fn linger(&mut self, desk: &Desk, entity: EntityId) {
        if let Some((image, newest)) = presented(desk, entity)
            && let Some(cell) = image.cell()
        {
            let lingering = Lingering {
                place: cell.place,
                newest,
                until: desk.now().mono.after(LINGERING),
            };
            self.lingering.insert(entity, lingering);
        }
    }

    /// Finds out who is to be haunted by what. New ones are told how far the history is, and who has a ghost too many is
    /// told at once.
    pub(crate) fn settle(&mut self, desk: &mut Desk, territory: &Territory, ghosts: &Ghosts) {
        let now = desk.now().mono;
        for (entity, lingering) in &mut self.lingering {
            // The next holder may have died before it spoke up; whoever takes over from it will.
            if ghosts.get(*entity).is_some_and(Ghost::is_unheard_of) {
                lingering.until = now.after(LINGERING);
            }
        }
        self.lingering
            .retain(|entity, lingering| lingering.until > now && presented(desk, *entity).is_none());
        let mut there: BTreeMap<OwnerId, BTreeMap<EntityId, HistoryNumber>> = BTreeMap::new();
        let mut begun = Vec::new();
        for (entity, place) in self.held(desk) {
            let Some(newest) = self.newest(desk, entity) else {
                continue;
            };
            let told = |owner: OwnerId| self.there.get(&owner).and_then(|told| told.get(&entity).copied());
            for owner in territory.haunted(&place, appeal(desk, entity), |owner| told(owner).is_some()) {
                let upto = told(owner).unwrap_or_else(|| {
                    begun.push((owner, entity, newest));
                    newest
                });
                there.entry(owner).or_default().insert(entity, upto);
            }
        }
        let before = std::mem::replace(&mut self.there, there);
        for (owner, entity, after) in begun {
            let events = Vec::new();
            desk.tell(owner, Message::Ghost(GhostMessage::Events { entity, after, events }));
        }
        for (owner, told) in before {
            let there = self.there.get(&owner);
            let ended = |entity: &&EntityId| there.is_none_or(|there| !there.contains_key(*entity));
            let mut ended = told.keys().filter(ended).peekable();
            if ended.peek().is_some() {
                // It may have had a ghost for so short a time that it was not named once.
                self.haunted.insert(owner, now);
            }
            if ended.any(|entity| !self.lingering.contains_key(entity)) {
                self.name_to(desk, owner);
            }
        }
    }

    /// Tells what has happened since the last tick.
    pub(crate) fn follow(&mut self, desk: &mut Desk, news: &News) {
        let mut messages = Vec::new();
        for (&owner, told) in &mut self.there {
            for (&entity, upto) in told {
                if let Some((message, newest)) = missing(desk, news, entity, Some(*upto)) {
                    *upto = newest;
                    messages.push((owner, message));
                }
            }
        }
        for (owner, message) in messages {
            desk.tell(owner, Message::Ghost(message));
        }
    }

    /// Answers an owner that lacks something of a ghost it is to have. One that asks for what it is not to have is told what it is.
    pub(crate) fn answer(
        &mut self,
        desk: &mut Desk,
        news: &News,
        from: OwnerId,
        (entity, have): (EntityId, Option<HistoryNumber>),
    ) {
        let told = self.there.get(&from).is_some_and(|told| told.contains_key(&entity));
        if !told {
            // At the next tick: who was taken over just now does not know before that whom it haunts.
            self.asked.insert(from);
        } else if let Some((message, _)) = missing(desk, news, entity, have) {
            desk.tell(from, Message::Ghost(message));
        }
    }

    /// Tells where the entities are: those that have moved, and once a second all.
    pub(crate) fn locate(&self, desk: &mut Desk, sampling: &Sampling) {
        let (beat, sequence) = (sampling.beat(), sampling.tick().0);
        let all = beat.is_multiple_of(SECOND);
        let mut messages = Vec::new();
        for (&owner, told) in &self.there {
            let moves: Vec<GhostMove> = told
                .keys()
                .filter(|entity| desk.is_acknowledged(**entity))
                .filter_map(|&entity| Some((entity, desk.place(entity).and(sampling.whereabouts(entity))?)))
                .filter(|(_, whereabouts)| all || whereabouts.since == beat)
                .map(|(entity, whereabouts)| GhostMove {
                    entity,
                    sequence,
                    place: whereabouts.place,
                })
                .collect();
            messages.extend(moves.chunks(MOVES).map(|moves| (owner, moves.to_vec())));
        }
        for (owner, moves) in messages {
            if let Some(first) = moves.first() {
                desk.tell_volatile(first.entity, owner, Message::Ghost(GhostMessage::Moves(moves)));
            }
        }
    }

    /// Once a second: names everything to everybody who may have a ghost from here. Who has asked is told at once.
    pub(crate) fn name(&mut self, desk: &mut Desk, territory: &Territory, beat: u64) {
        for owner in std::mem::take(&mut self.asked) {
            self.may_be_on(desk.now().mono, [owner]);
            self.name_to(desk, owner);
        }
        if beat % SECOND != NAMING {
            return;
        }
        let now = desk.now().mono;
        self.haunted.extend(self.there.keys().map(|owner| (*owner, now)));
        self.haunted.retain(|_, last| now.since(*last) <= FAREWELL);
        let owners: BTreeSet<OwnerId> = territory
            .neighbours()
            .iter()
            .chain(self.haunted.keys())
            .copied()
            .collect();
        for owner in owners {
            self.name_to(desk, owner);
        }
    }

    fn name_to(&self, desk: &mut Desk, owner: OwnerId) {
        let heads = self
            .on(owner)
            .filter_map(|entity| Some((entity, self.newest(desk, entity)?)))
            .collect();
        desk.tell(owner, Message::Ghost(GhostMessage::Heads(heads)));
    }

    /// What is real here, and what has left and has not arrived yet, or not long ago: until then nobody else speaks of it.
    fn held(&self, desk: &Desk) -> Vec<(EntityId, Place)> {
        let leaving = walking(desk).filter_map(|(entity, image)| Some((entity, image.cell()?.place)));
        let lingering = self
            .lingering
            .iter()
            .map(|(entity, lingering)| (*entity, lingering.place));
        desk.places().chain(leaving).chain(lingering).collect()
    }

    /// The newest history number that this owner tells of an entity.
    fn newest(&self, desk: &Desk, entity: EntityId) -> Option<HistoryNumber> {
        let lingering = || self.lingering.get(&entity).map(|lingering| lingering.newest);
        presented(desk, entity).map(|(_, newest)| newest).or_else(lingering)
    }
}

/// How much farther away others see an entity than its type's neighbours.
fn appeal(desk: &Desk, entity: EntityId) -> f32 {
    presented(desk, entity)
        .and_then(|(image, _)| desk.type_of(image.type_id))
        .map_or(0.0, |found| found.appeal_radius)
}

/// An entity and the newest history number that this owner tells of. That it has left is for its next holder to tell.
fn presented(desk: &Desk, entity: EntityId) -> Option<(&Image, HistoryNumber)> {
    if let Some(image) = desk.image(entity) {
        return Some((image, image.history));
    }
    let (_, image) = walking(desk).find(|(leaving, _)| *leaving == entity)?;
    Some((image, HistoryNumber(image.history.0.saturating_sub(1))))
}

/// What has left and not arrived yet, but for those that are put somewhere else: they are not here any more.
fn walking(desk: &Desk) -> impl Iterator<Item = (EntityId, &Image)> {
    let leaving = desk.state().departing.iter();
    let walking = leaving.filter(|((to, number), (_, image))| is_put(image, *to, *number).is_none());
    walking.map(|(_, (entity, image))| (*entity, image))
}

/// What an owner that was told up to `have` is to be told, and up to which number it then was; `None` if nothing.
fn missing(
    desk: &Desk,
    news: &News,
    entity: EntityId,
    have: Option<HistoryNumber>,
) -> Option<(GhostMessage, HistoryNumber)> {
    let (image, newest) = presented(desk, entity)?;
    if have.is_some_and(|have| have >= newest) {
        return None;
    }
    let entity_type = desk.type_of(image.type_id)?;
    let after = have.and_then(|have| Some((have, real_since(image, news.of(entity), have)?)));
    let message = match after {
        Some((after, events)) => {
            let told = events.into_iter().filter(|event| event.history <= Some(newest));
            let events: Vec<Shown> = told.map(|event| as_ghosts_see(entity_type, event)).collect();
            for shown in &events {
                if let Shown::Event(event) = shown {
                    desk.tally().add_ghost_event(image.type_id, event);
                }
            }
            GhostMessage::Events { entity, after, events }
        }
        None => {
            let place = desk.place(entity).or(image.cell().map(|cell| cell.place))?;
            let properties: Vec<_> = ghost_properties(entity_type, image).into_iter().collect();
            desk.tally().add_ghost_properties(image.type_id, &properties);
            GhostMessage::Image {
                entity,
                image: Box::new(GhostImage {
                    type_id: image.type_id,
                    home: image.home,
                    session: image.client.map(|client| client.session),
                    history: newest,
                    place,
                    properties,
                }),
            }
        }
    };
    Some((message, newest))
}
