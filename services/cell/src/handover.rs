//! Hand-over: an entity that has walked into another cell's area becomes real there (rules H1 to H7).

use std::{collections::BTreeMap, time::Duration};

use annals_event::{Body, Call, Image, Subject};
use annals_ids::{Address, CallNumber, EntityId, OwnerId, Part};
use annals_node::{Caller, Desk, time::Mono};

use crate::{haunts::ghost_image, role::CellRole};

/// How far an entity must be inside another area before it is handed over, metres: one that stands on the boundary is not
/// passed to and fro.
const MARGIN: f32 = 2.0;

/// How long an entity that was refused elsewhere stays before it is tried again.
const REFUSED_PAUSE: Duration = Duration::from_secs(2);

/// Entities that were refused, and when they are tried again.
pub(crate) type Refusals = BTreeMap<EntityId, Mono>;

impl CellRole {
    /// Hands over whatever stands in another owner's area.
    pub(crate) fn hand_over_strays(&mut self, desk: &mut Desk) {
        let now = desk.now().mono;
        self.refusals.retain(|_, until| *until > now);
        let me = desk.owner();
        let mut strays = Vec::new();
        for (entity, place) in desk.places() {
            let Some(space) = self.map.spaces.get(&place.space) else {
                continue;
            };
            let Some(there) = space.cells.iter().find(|cell| cell.contains(place.position)) else {
                continue;
            };
            let own = space.cells.iter().filter(|cell| cell.owner == me);
            let outside = own
                .map(|cell| cell.distance(place.position))
                .fold(f32::INFINITY, f32::min);
            if there.owner != me && outside > MARGIN && !self.refusals.contains_key(&entity) {
                strays.push((entity, there.owner));
            }
        }
        for (entity, to) in strays {
            self.hand_over(desk, entity, to);
        }
    }

    fn hand_over(&mut self, desk: &mut Desk, entity: EntityId, to: OwnerId) {
        // What is confirmed need not travel, and the place that travels is the one that is true.
        desk.log_confirmations();
        if let Some(place) = desk.place(entity) {
            desk.record_for(entity, false, Body::Moved(place));
        }
        let Some(image) = desk.image(entity).cloned() else {
            return;
        };
        let ghost = ghost_image(desk, entity, &image);
        let (from, address) = (Address::Owner(desk.owner()), Address::Owner(to));
        let sent = desk.state().links.sent.get(&address);
        let number = sent.map_or(CallNumber(1), |sent| sent.last.next());
        desk.record_for(entity, false, Body::Offloaded { to, number });
        let made = desk.call(
            from,
            address,
            to,
            Call::Onload {
                entity,
                image: Box::new(image),
            },
        );
        assert_eq!(made, number, "the call that carries an entity is the next on its link");
        // Whoever sees it goes on seeing it: its ghost stands where it stood.
        if let Some(ghost) = ghost {
            self.ghosts.take_image(to, entity, ghost);
        }
    }

    /// Rule H3: takes an entity, or says no.
    pub(crate) fn take_entity(&mut self, desk: &mut Desk, caller: &Caller, entity: EntityId, image: Box<Image>) {
        let Address::Owner(from) = caller.link.from else { return };
        let (number, home, based) = (caller.number, image.home, image.cell().is_some_and(|cell| cell.based));
        let refusal = self.refuses(desk, entity, &image);
        let answer = match refusal {
            Some(reason) => {
                desk.record(Subject::Owner, false, Body::Refused { from, number });
                Call::Refused {
                    of: number,
                    reason: reason.to_owned(),
                }
            }
            None => {
                desk.record(
                    Subject::Entity(entity, Part::Cell),
                    false,
                    Body::Onloaded { from, number, image },
                );
                self.ghosts.remove(entity);
                self.tell_home(desk, entity, home, based);
                Call::Arrived { of: number }
            }
        };
        desk.call(caller.link.to, caller.link.from, from, answer);
    }

    fn refuses(&self, desk: &Desk, entity: EntityId, image: &Image) -> Option<&'static str> {
        if desk.image(entity).is_some() {
            Some("the entity is real here already")
        } else if image.cell().is_none() {
            Some("a cell takes cell parts only")
        } else if desk.type_of(image.type_id).is_none() {
            Some("the entity's type is not known here")
        } else {
            None
        }
    }

    /// Rule H4: the entity is there for good.
    pub(crate) fn arrived(desk: &mut Desk, caller: &Caller, of: CallNumber) {
        let Address::Owner(to) = caller.link.from else { return };
        if let Some((entity, _)) = desk.state().departing.get(&(to, of)) {
            let subject = Subject::Entity(*entity, Part::Cell);
            desk.record(subject, false, Body::Departed { to, number: of });
        }
    }

    /// Rule H4: the entity is real here again.
    pub(crate) fn refused(&mut self, desk: &mut Desk, caller: &Caller, of: CallNumber) {
        let Address::Owner(to) = caller.link.from else { return };
        if let Some((entity, _)) = desk.state().departing.get(&(to, of)) {
            let entity = *entity;
            desk.record(
                Subject::Entity(entity, Part::Cell),
                false,
                Body::Returned { to, number: of },
            );
            self.ghosts.remove(entity);
            self.refusals.insert(entity, desk.now().mono.after(REFUSED_PAUSE));
        }
    }

    /// Rule H6: the home knows where the entity is.
    pub(crate) fn tell_home(&self, desk: &mut Desk, entity: EntityId, home: OwnerId, based: bool) {
        let to = if based {
            Address::Base(entity)
        } else {
            Address::Owner(home)
        };
        let me = desk.owner();
        // An owner that is the home of a part without a base knows by itself that it has it.
        if based || home != me {
            desk.call(Address::Cell(entity), to, home, Call::Placed(Some(me)));
        }
    }
}
