//! Sends the ghosts of this owner's real entities to the owners that need them (rule V2).
//!
//! Nothing of this is logged. A new ghost begins with the entity's history number; a receiver that lacks events or the
//! image asks for them. Later events are sent at each tick. Once a second the newest history number of every ghost is
//! sent as well, so that any lost message is detected.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use annals_event::{Image, Place};
use annals_ids::{EntityId, HistoryNumber, OwnerId};
use annals_node::{OwnerContext, time::Mono};
use annals_wire::bus::{GhostImage, GhostMessage, GhostMove, Message, Shown};

use crate::{
    ghost_receiver::{Ghost, GhostReceiver},
    history::RecentEvents,
    known_entity::{as_ghosts_see, driver, ghost_properties, real_since},
    sampling::{SECOND, Sampling},
    teleport::teleport_origin,
    territory::Territory,
};

/// Movements per message: 45 bytes each, far below what the bus takes.
const MOVES: usize = 1_000;

/// How long an owner without a ghost from here still receives an empty list: it drops its ghosts on receipt, and
/// several of these messages may be lost.
const EMPTY_LIST_PERIOD: Duration = Duration::from_secs(10);

/// How long an entity that was handed over is still listed after its next holder has sent it: by then other owners have
/// received that message too, and none of them drops the ghost and creates it again. Does not apply to an entity that
/// was teleported into another owner's space.
const LIST_AFTER_HANDOVER: Duration = Duration::from_secs(3);

/// The tick of each second at which all history numbers are sent; movements are repeated at another tick.
const LIST_TICK: u64 = SECOND / 2;

/// State of the sending side; soft, rebuilt after a take-over.
#[derive(Debug, Default)]
pub(crate) struct GhostSender {
    /// Per receiver and entity, the history number up to which events were sent.
    sent_upto: BTreeMap<OwnerId, BTreeMap<EntityId, HistoryNumber>>,
    /// When each owner last had, or may have had, a ghost from here.
    recent_receivers: BTreeMap<OwnerId, Mono>,
    /// Owners that asked for a ghost they do not need; answered at this tick with the list of those they do.
    asked: BTreeSet<OwnerId>,
    /// Entities that were handed over within [`LIST_AFTER_HANDOVER`].
    lingering: BTreeMap<EntityId, Lingering>,
}

#[derive(Clone, Copy, Debug)]
struct Lingering {
    place: Place,
    /// The newest history number that this owner sent.
    newest: HistoryNumber,
    until: Mono,
}

impl GhostSender {
    /// Entities with a ghost on `owner`.
    pub(crate) fn on(&self, owner: OwnerId) -> impl Iterator<Item = EntityId> {
        self.sent_upto
            .get(&owner)
            .into_iter()
            .flatten()
            .map(|(entity, _)| *entity)
    }

    /// Records owners that may keep ghosts that this holder did not send: of entities handed over from there, or sent
    /// by a former holder. They receive the list of their ghosts even if they are no neighbours.
    pub(crate) fn may_hold_ghosts(&mut self, now: Mono, owners: impl IntoIterator<Item = OwnerId>) {
        self.recent_receivers
            .extend(owners.into_iter().map(|owner| (owner, now)));
    }

    /// Keeps an entity listed that has arrived elsewhere and is about to be removed here.
    pub(crate) fn linger(&mut self, cx: &OwnerContext, entity: EntityId) {
        if let Some((image, newest)) = sendable_image(cx, entity)
            && let Some(cell) = image.cell()
        {
            let lingering = Lingering {
                place: cell.place,
                newest,
                until: cx.now().mono.after(LIST_AFTER_HANDOVER),
            };
            self.lingering.insert(entity, lingering);
        }
    }

    /// Determines which owner needs which ghost. A new ghost begins with the entity's history number; an owner with a
    /// ghost that it no longer needs is sent its list at once.
    pub(crate) fn update_receivers(&mut self, cx: &mut OwnerContext, territory: &Territory, ghosts: &GhostReceiver) {
        let now = cx.now().mono;
        for (entity, lingering) in &mut self.lingering {
            // The next holder may have died before it sent anything; its successor will.
            if ghosts.get(*entity).is_some_and(Ghost::awaits_first_message) {
                lingering.until = now.after(LIST_AFTER_HANDOVER);
            }
        }
        self.lingering
            .retain(|entity, lingering| lingering.until > now && sendable_image(cx, *entity).is_none());
        let mut there: BTreeMap<OwnerId, BTreeMap<EntityId, HistoryNumber>> = BTreeMap::new();
        let mut begun = Vec::new();
        for (entity, place) in self.held(cx) {
            let Some(newest) = self.newest(cx, entity) else {
                continue;
            };
            let sent = |owner: OwnerId| self.sent_upto.get(&owner).and_then(|sent| sent.get(&entity).copied());
            for owner in territory.ghost_owners(&place, appeal(cx, entity), |owner| sent(owner).is_some()) {
                let upto = sent(owner).unwrap_or_else(|| {
                    begun.push((owner, entity, newest));
                    newest
                });
                there.entry(owner).or_default().insert(entity, upto);
            }
        }
        let before = std::mem::replace(&mut self.sent_upto, there);
        for (owner, entity, after) in begun {
            let events = Vec::new();
            cx.send(owner, Message::Ghost(GhostMessage::Events { entity, after, events }));
        }
        for (owner, sent) in before {
            let there = self.sent_upto.get(&owner);
            let ended = |entity: &&EntityId| there.is_none_or(|there| !there.contains_key(*entity));
            let mut ended = sent.keys().filter(ended).peekable();
            if ended.peek().is_some() {
                // The ghost may have existed for too short a time to be in any list.
                self.recent_receivers.insert(owner, now);
            }
            if ended.any(|entity| !self.lingering.contains_key(entity)) {
                self.send_list(cx, owner);
            }
        }
    }

    /// Sends the events since the last tick.
    pub(crate) fn send_events(&mut self, cx: &mut OwnerContext, recent: &RecentEvents) {
        let mut messages = Vec::new();
        for (&owner, sent) in &mut self.sent_upto {
            for (&entity, upto) in sent {
                if let Some((message, newest)) = missing(cx, recent, entity, Some(*upto)) {
                    *upto = newest;
                    messages.push((owner, message));
                }
            }
        }
        for (owner, message) in messages {
            cx.send(owner, Message::Ghost(message));
        }
    }

    /// Answers a receiver that lacks events or an image. One that asks for a ghost it does not need receives its list
    /// instead.
    pub(crate) fn answer(
        &mut self,
        cx: &mut OwnerContext,
        recent: &RecentEvents,
        from: OwnerId,
        (entity, have): (EntityId, Option<HistoryNumber>),
    ) {
        let sent = self.sent_upto.get(&from).is_some_and(|sent| sent.contains_key(&entity));
        if !sent {
            // At the next tick: an owner that was just taken over has not determined its receivers before that.
            self.asked.insert(from);
        } else if let Some((message, _)) = missing(cx, recent, entity, have) {
            cx.send(from, Message::Ghost(message));
        }
    }

    /// Sends positions: of entities that moved, and once a second of all.
    pub(crate) fn send_positions(&self, cx: &mut OwnerContext, sampling: &Sampling) {
        let (local_tick, sequence) = (sampling.local_tick(), sampling.tick().0);
        let all = local_tick.is_multiple_of(SECOND);
        let mut messages = Vec::new();
        for (&owner, sent) in &self.sent_upto {
            let moves: Vec<GhostMove> = sent
                .keys()
                .filter(|entity| cx.is_acknowledged(**entity))
                .filter_map(|&entity| Some((entity, cx.place(entity).and(sampling.whereabouts(entity))?)))
                .filter(|(_, whereabouts)| all || whereabouts.since == local_tick)
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
                cx.send_volatile(first.entity, owner, Message::Ghost(GhostMessage::Moves(moves)));
            }
        }
    }

    /// Once a second: sends each owner that may have ghosts from here the list of them. Owners that asked receive it at
    /// once.
    pub(crate) fn send_lists(&mut self, cx: &mut OwnerContext, territory: &Territory, local_tick: u64) {
        for owner in std::mem::take(&mut self.asked) {
            self.may_hold_ghosts(cx.now().mono, [owner]);
            self.send_list(cx, owner);
        }
        if local_tick % SECOND != LIST_TICK {
            return;
        }
        let now = cx.now().mono;
        self.recent_receivers
            .extend(self.sent_upto.keys().map(|owner| (*owner, now)));
        self.recent_receivers
            .retain(|_, last| now.since(*last) <= EMPTY_LIST_PERIOD);
        let owners: BTreeSet<OwnerId> = territory
            .neighbours()
            .iter()
            .chain(self.recent_receivers.keys())
            .copied()
            .collect();
        for owner in owners {
            self.send_list(cx, owner);
        }
    }

    fn send_list(&self, cx: &mut OwnerContext, owner: OwnerId) {
        let heads = self
            .on(owner)
            .filter_map(|entity| Some((entity, self.newest(cx, entity)?)))
            .collect();
        cx.send(owner, Message::Ghost(GhostMessage::Heads(heads)));
    }

    /// Entities that are real here, and those that left and have not arrived, or arrived within
    /// [`LIST_AFTER_HANDOVER`]: until then no other owner sends them.
    fn held(&self, cx: &OwnerContext) -> Vec<(EntityId, Place)> {
        let leaving = departing_by_handover(cx).filter_map(|(entity, image)| Some((entity, image.cell()?.place)));
        let lingering = self
            .lingering
            .iter()
            .map(|(entity, lingering)| (*entity, lingering.place));
        cx.places().chain(leaving).chain(lingering).collect()
    }

    /// The newest history number of an entity that this owner sends.
    fn newest(&self, cx: &OwnerContext, entity: EntityId) -> Option<HistoryNumber> {
        let lingering = || self.lingering.get(&entity).map(|lingering| lingering.newest);
        sendable_image(cx, entity).map(|(_, newest)| newest).or_else(lingering)
    }
}

/// The appeal radius of its type: others see it from this many metres further away.
fn appeal(cx: &OwnerContext, entity: EntityId) -> f32 {
    sendable_image(cx, entity)
        .and_then(|(image, _)| cx.type_of(image.type_id))
        .map_or(0.0, |found| found.appeal_radius)
}

/// An entity and its newest history number that this owner sends. The number of its departure is sent by its next
/// holder.
fn sendable_image(cx: &OwnerContext, entity: EntityId) -> Option<(&Image, HistoryNumber)> {
    if let Some(image) = cx.image(entity) {
        return Some((image, image.history));
    }
    let (_, image) = departing_by_handover(cx).find(|(leaving, _)| *leaving == entity)?;
    Some((image, HistoryNumber(image.history.0.saturating_sub(1))))
}

/// Entities that have left and not yet arrived, without teleported ones: those are not here any more.
fn departing_by_handover(cx: &OwnerContext) -> impl Iterator<Item = (EntityId, &Image)> {
    let leaving = cx.state().departing.iter();
    let departing_by_handover =
        leaving.filter(|((to, number), (_, image))| teleport_origin(image, *to, *number).is_none());
    departing_by_handover.map(|(_, (entity, image))| (*entity, image))
}

/// The message for an owner that has an entity up to `have`, and the history number that it has then; `None` if there
/// is nothing to send.
fn missing(
    cx: &OwnerContext,
    recent: &RecentEvents,
    entity: EntityId,
    have: Option<HistoryNumber>,
) -> Option<(GhostMessage, HistoryNumber)> {
    let (image, newest) = sendable_image(cx, entity)?;
    if have.is_some_and(|have| have >= newest) {
        return None;
    }
    let entity_type = cx.type_of(image.type_id)?;
    let after = have.and_then(|have| Some((have, real_since(image, recent.of(entity), have)?)));
    let message = match after {
        Some((after, events)) => {
            let sent = events.into_iter().filter(|event| event.history <= Some(newest));
            let events: Vec<Shown> = sent
                .map(|event| as_ghosts_see(entity_type, image.client, event))
                .collect();
            for shown in &events {
                if let Shown::Event(event) = shown {
                    cx.tally().add_ghost_event(image.type_id, event);
                }
            }
            GhostMessage::Events { entity, after, events }
        }
        None => {
            let place = cx.place(entity).or(image.cell().map(|cell| cell.place))?;
            let properties: Vec<_> = ghost_properties(entity_type, image).into_iter().collect();
            cx.tally().add_ghost_properties(image.type_id, &properties);
            GhostMessage::Image {
                entity,
                image: Box::new(GhostImage {
                    type_id: image.type_id,
                    home: image.home,
                    session: image.client.map(|client| client.session),
                    history: newest,
                    place,
                    driver: driver(image),
                    properties,
                }),
            }
        }
    };
    Some((message, newest))
}
