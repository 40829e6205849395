//! Hand-over: an entity that has crossed into another owner's area becomes real there (rules H1 to H7).

use std::{collections::BTreeMap, time::Duration};

use annals_event::{Body, Call, CellImage, Image, Place, SpaceEntry, Subject};
use annals_ids::{Address, CallNumber, EntityId, OwnerId, Part};
use annals_node::{Caller, OwnerContext, OwnerError, journal::INPUT_LIMIT, time::Mono};
use annals_wire::HANDOVER_DEPTH;

use crate::{
    existence::{is_based, notify_home},
    role::CellRole,
    sampling::log_place,
    spaces::notify_gone,
    teleport::{has_arrived, has_returned, put_at},
};

/// Minimum stay of an entity after it has arrived, so that owners whose maps differ for a moment do not pass it back
/// and forth.
const STAY: Duration = Duration::from_secs(1);

/// Maximum stay of an entity that owners with different maps pass back and forth: the stay doubles each time, until a
/// newer map comes.
const LONGEST_STAY: Duration = Duration::from_secs(32);

/// How long the returns of an entity are remembered: longer than any of its stays, there and here.
const REMEMBERED: Duration = Duration::from_secs(120);

/// Maximum number of entities whose returns are remembered; others only stay for a shorter time.
const MOST_REMEMBERED: usize = 10_000;

/// How long an entity that was refused stays before it is offered again.
const REFUSED_STAY: Duration = Duration::from_secs(5);

/// Maximum number of entities handed over in one tick. Their images share a batch, which may have room for fewer.
const AT_ONCE: usize = 32;

/// Largest image that is handed over, bytes: it must fit what one input may record, on both owners. A larger entity
/// stays real where it is.
const LARGEST: usize = 4 << 20;
const _: () = assert!(LARGEST < INPUT_LIMIT);

/// State of hand-overs outside the log.
#[derive(Debug, Default)]
pub(crate) struct Handover {
    /// Until when entities stay although they are in another owner's area.
    stays: BTreeMap<EntityId, Mono>,
    /// Entities that came from the same owner in whose area they are, by the map that is known here: the length of
    /// their last stay, and when they last came.
    bounced: BTreeMap<EntityId, (Duration, Mono)>,
}

impl Handover {
    /// A newer map is known: entities kept because maps differed stay no longer than others.
    pub(crate) fn redrawn(&mut self, now: Mono) {
        for entity in std::mem::take(&mut self.bounced).into_keys() {
            if let Some(until) = self.stays.get_mut(&entity) {
                *until = (*until).min(now.after(STAY));
            }
        }
    }

    fn forget(&mut self, now: Mono) {
        self.stays.retain(|_, until| *until > now);
        self.bounced.retain(|_, (_, came)| now.since(*came) < REMEMBERED);
    }

    /// Records that an entity has arrived and stays for a while; `is_bounced` says that it is to go back to where it
    /// came from.
    fn note_arrival(&mut self, now: Mono, entity: EntityId, is_bounced: bool) {
        let stay = match self.bounced.get(&entity) {
            _ if !is_bounced => STAY,
            Some((stay, _)) => (*stay * 2).min(LONGEST_STAY),
            None => STAY * 2,
        };
        let is_known = self.bounced.contains_key(&entity);
        if is_bounced && (is_known || self.bounced.len() < MOST_REMEMBERED) {
            self.bounced.insert(entity, (stay, now));
        }
        self.stays.insert(entity, now.after(stay));
    }
}

impl CellRole {
    /// Hands over entities that are in other owners' areas. Call only while no call or request of
    /// this input is queued.
    pub(crate) fn hand_over(&mut self, cx: &mut OwnerContext) {
        if !cx.is_idle() {
            return;
        }
        let now = cx.now().mono;
        self.handover.forget(now);
        let gone: Vec<(EntityId, OwnerId)> = cx
            .places()
            .filter(|(entity, place)| {
                self.known.territory.outside(place) > HANDOVER_DEPTH && !self.handover.stays.contains_key(entity)
            })
            .filter_map(|(entity, place)| Some((entity, self.known.territory.owner_at(&place)?)))
            .filter(|(_, to)| *to != cx.owner())
            .take(AT_ONCE)
            .collect();
        if !gone.is_empty() {
            // Calls known to be confirmed need not be in the image.
            cx.log_confirmations();
        }
        for (entity, to) in gone {
            log_place(cx, entity);
            self.controllers.log_course(cx, entity);
            let Some(size) = cx.image(entity).map(size) else {
                continue;
            };
            if size > LARGEST {
                self.handover.stays.insert(entity, now.after(REFUSED_STAY));
            } else if cx.needs(size).is_ok() {
                self.offload(cx, entity, to, None);
            }
        }
    }

    /// H1: the commit point. `put` is the place where the entity is to arrive, if it is teleported (H9).
    pub(crate) fn offload(&mut self, cx: &mut OwnerContext, entity: EntityId, to: OwnerId, put: Option<Place>) {
        let (from, receiver) = (Address::Owner(cx.owner()), Address::Owner(to));
        let number = cx.next_call(from, receiver);
        // Leaving takes a history number, so that everything the next holder sends is newer than anything sent from
        // here.
        cx.record_for(entity, true, Body::Offloaded { to, number });
        let (_, image) = cx.state().departing[&(to, number)].clone();
        if image.home == cx.owner() && !is_based(&image) {
            // The home must never consider an entity destroyed that is leaving, or has arrived without having reported
            // yet.
            cx.record(Subject::Entity(entity, Part::Cell), false, Body::Placed(Some(to)));
        }
        let image = match put {
            Some(place) => put_at(image, place),
            None => {
                self.keep_ghost(cx, (entity, &image), to);
                image
            }
        };
        let image = Box::new(image);
        let carried = cx.call(from, receiver, to, Call::Onload { entity, image });
        debug_assert_eq!(carried, number, "the event names the call that carries the entity");
        self.counters.offloaded += 1;
    }

    fn keep_ghost(&mut self, cx: &OwnerContext, (entity, image): (EntityId, &Image), holder: OwnerId) {
        if image
            .cell()
            .is_some_and(|cell| self.known.territory.has_ghosts(&cell.place))
        {
            let at = self.known.moment(cx);
            self.known.ghosts.leave(at, cx.schema(), (entity, image), holder);
        }
    }

    /// H3: takes over an entity, or refuses it.
    pub(crate) fn onload(&mut self, cx: &mut OwnerContext, caller: &Caller, entity: EntityId, image: Box<Image>) {
        let (Address::Owner(from), own, number) = (caller.link.from, Address::Owner(cx.owner()), caller.number) else {
            return;
        };
        if cx.image(entity).is_some() {
            self.alarm(cx, entity, "an entity was handed over that is already real here");
        }
        if let Err(reason) = self.admits(cx, entity, &image) {
            self.counters.refused += 1;
            if let Some(cell) = image.cell().filter(|cell| is_gone_for(cx, cell)) {
                notify_gone(cx, from, cell.place.space);
            }
            cx.record(Subject::Owner, false, Body::Refused { from, number });
            let reason = reason.to_owned();
            cx.call(own, caller.link.from, from, Call::Refused { of: number, reason });
            return;
        }
        self.counters.onloaded += 1;
        let place = image.cell().map(|cell| cell.place);
        if let Some((space, life)) = image.cell().and_then(|cell| Some((cell.place.space, cell.life?)))
            && life > cx.state().life(space)
        {
            cx.record_space_data(space, SpaceEntry::of_life(life, from));
        }
        let is_bounced = place.and_then(|place| self.known.territory.owner_at(&place)) == Some(from);
        cx.record_for(entity, false, Body::Onloaded { from, number, image });
        cx.call(own, caller.link.from, from, Call::Arrived { of: number });
        notify_home(cx, entity, Some(cx.owner()));
        self.handover.note_arrival(cx.now().mono, entity, is_bounced);
        self.ghost_sender.may_hold_ghosts(cx.now().mono, [from]);
        let of = (cx.owner(), number);
        has_arrived(cx, &self.known, entity, of);
    }

    fn alarm(&mut self, cx: &mut OwnerContext, entity: EntityId, what: &'static str) {
        self.counters.alarms += 1;
        cx.report(OwnerError::Impossible { entity, what });
    }

    fn admits(&self, cx: &OwnerContext, entity: EntityId, image: &Image) -> Result<(), &'static str> {
        if cx.image(entity).is_some() {
            return Err("the entity is real here already");
        }
        let cell = image.cell().ok_or("it is no cell part")?;
        let place = cell.place;
        if self.known.territory.is_known() && !self.known.territory.has(place.space) {
            return Err("there is no such space");
        }
        if is_gone_for(cx, cell) {
            return Err("the space was destroyed");
        }
        if !place.is_sound() {
            return Err("its position is not finite");
        }
        if !cx.type_of(image.type_id).is_some_and(|found| found.parts.cell) {
            return Err("the schema has no such type, or the type has no cell part");
        }
        if cx.needs(size(image)).is_err() {
            return Err("it is too large");
        }
        if self.closing {
            return Err("the process is shutting down");
        }
        Ok(())
    }

    /// H4: the entity is real at the other owner, irrevocably.
    pub(crate) fn arrived(&mut self, cx: &mut OwnerContext, caller: &Caller, of: CallNumber) {
        if let Some((entity, to)) = departing(cx, caller, of) {
            self.ghost_sender.linger(cx, entity);
            self.known.ghosts.arrive(cx.now().mono, entity, to);
            cx.record_for(entity, false, Body::Departed { to, number: of });
        }
    }

    /// H4: the entity was refused, and is real here again.
    pub(crate) fn refused(&mut self, cx: &mut OwnerContext, caller: &Caller, of: CallNumber, reason: String) {
        let Some((entity, to)) = departing(cx, caller, of) else {
            return;
        };
        if cx.image(entity).is_some() {
            return self.alarm(cx, entity, "a refused entity is already real here again");
        }
        self.counters.returned += 1;
        cx.record_for(entity, false, Body::Returned { to, number: of });
        let space = cx.place(entity).map(|place| place.space);
        space.into_iter().for_each(|space| self.known.spaces.is_back_in(space));
        self.handover.stays.insert(entity, cx.now().mono.after(REFUSED_STAY));
        has_returned(cx, &self.known, entity, ((to, of), reason));
    }
}

fn departing(cx: &OwnerContext, caller: &Caller, of: CallNumber) -> Option<(EntityId, OwnerId)> {
    let Address::Owner(to) = caller.link.from else {
        return None;
    };
    let (entity, _) = cx.state().departing.get(&(to, of))?;
    Some((*entity, to))
}

/// Whether the space is gone for an arriving part: altogether, or because the part entered it in an earlier life.
fn is_gone_for(cx: &OwnerContext, cell: &CellImage) -> bool {
    let space = cell.place.space;
    match cell.life {
        // A part of a later life than is known here proves that the space exists.
        Some(life) => life < cx.state().life(space),
        None => cx.is_gone(space),
    }
}

/// Whether an entity can be handed over in this input.
pub(crate) fn fits(cx: &OwnerContext, image: &Image) -> bool {
    let size = size(image);
    size <= LARGEST && cx.needs(size).is_ok()
}

fn size(image: &Image) -> usize {
    let mut bytes = Vec::new();
    image.write(&mut bytes);
    bytes.len()
}
