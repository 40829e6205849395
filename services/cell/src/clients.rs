//! The clients of this owner's entities: which entities each of them sees, and what each is sent (rule V3).

use std::{collections::BTreeMap, num::NonZeroU32, time::Duration};

use annals_event::{ClientLink, OwnerState, Place};
use annals_ids::EntityId;
use annals_node::{OwnerContext, time::Mono};
use annals_space::{Body, Interest, Observer};
use annals_wire::{
    bus::{GhostMessage, Message},
    client::{Known, Movements, volatile::MovementAck},
};

use crate::{
    budget::Budget,
    knowledge::{Knowledge, spot},
    known_entity::KnownEntities,
    sampling::SECOND,
    witness::{Witness, send},
};

/// Tick of each second at which other owners are asked for entities that a client has and that are unknown here.
const SEARCHING: u64 = 3;
const _: () = assert!(SEARCHING < SECOND);

/// Time from the first report of a client without a view to its first frame: clients that report together, as after a
/// take-over, are shown theirs together.
const VIEW_DELAY: Duration = Duration::from_millis(5);

/// For how long after a take-over clients are shown their first frame before the next tick. It costs the work of a tick
/// beside the client's own.
const HURRY: Duration = Duration::from_secs(3);

/// The witnesses of all clients whose entities are real here.
#[derive(Debug, Default)]
pub(crate) struct Clients {
    witnesses: BTreeMap<EntityId, Witness>,
    /// Which entities are in which areas of interest.
    interest: Interest,
    /// Maximum rate at which a client is sent data, bits per second.
    downstream: Option<NonZeroU32>,
    /// When clients that have no view here are shown their first frame, if that is before the next tick.
    view_due: Option<Mono>,
    /// Until then, after a take-over, clients do not wait for the next tick.
    hurried_until: Mono,
}

impl Clients {
    /// The clients of an owner that is taken over.
    pub(crate) fn take_over(state: &OwnerState, now: Mono) -> Self {
        let witnesses = state.entities.iter().filter_map(|(entity, image)| {
            let place = image.cell().map(|cell| cell.place);
            Some((*entity, Witness::new(image.client?, Budget::new(None), now, place)))
        });
        Self {
            witnesses: witnesses.collect(),
            hurried_until: now.after(HURRY),
            ..Self::default()
        }
    }

    /// Limits what each client is sent to so many bits per second.
    pub(crate) fn limit(&mut self, bits: NonZeroU32) {
        self.downstream = Some(bits);
        let witnesses = self.witnesses.values_mut();
        witnesses.for_each(|witness| witness.limit(Budget::new(self.downstream)));
    }

    /// Number of clients.
    pub(crate) fn count(&self) -> usize {
        self.witnesses.len()
    }

    /// The entities that have a client, ascending.
    pub(crate) fn entities(&self) -> impl Iterator<Item = EntityId> {
        self.witnesses.keys().copied()
    }

    /// Whether an entity has a client.
    pub(crate) fn has(&self, entity: EntityId) -> bool {
        self.witnesses.contains_key(&entity)
    }

    /// Whether the client of an entity has another one in view.
    pub(crate) fn sees(&self, viewer: EntityId, entity: EntityId) -> bool {
        let witness = self.witnesses.get(&viewer);
        witness.is_some_and(|witness| witness.shows(entity))
    }

    /// The witness of an entity, if its client is this one.
    pub(crate) fn witness(&mut self, entity: EntityId, client: ClientLink) -> Option<&mut Witness> {
        let witness = self.witnesses.get_mut(&entity);
        witness.filter(|witness| witness.client() == client)
    }

    /// Asks all clients for their reports at the next tick.
    pub(crate) fn ask_again(&mut self) {
        self.witnesses.values_mut().for_each(Witness::ask_again);
    }

    /// Creates, replaces or removes the witness of an entity, so that it matches the entity's client.
    pub(crate) fn sync_witness(&mut self, cx: &OwnerContext, entity: EntityId) {
        let client = cx.image(entity).and_then(|image| image.client);
        let known = self.witnesses.get(&entity).map(Witness::client);
        match client {
            Some(client) if known != Some(client) => {
                let budget = Budget::new(self.downstream);
                let witness = Witness::new(client, budget, cx.now().mono, cx.place(entity));
                self.witnesses.insert(entity, witness);
            }
            Some(_) => {}
            None => {
                self.witnesses.remove(&entity);
            }
        }
    }

    /// Records that an entity came from another space.
    pub(crate) fn mark_teleported_in(&mut self, entity: EntityId) {
        self.witnesses
            .get_mut(&entity)
            .into_iter()
            .for_each(Witness::mark_teleported_in);
    }

    /// Takes a client's report of what it has; the next tick begins a view with it. After a take-over, clients do not
    /// wait for the tick: they have seen nothing since the former holder ended.
    pub(crate) fn stamps(
        &mut self,
        now: Mono,
        client: ClientLink,
        entity: EntityId,
        (view, known): (u64, Known),
        movements: Movements,
    ) {
        if let Some(witness) = self.witness(entity, client) {
            witness.take_stamps(view, known, movements);
            if witness.awaits_view() && now < self.hurried_until {
                self.view_due.get_or_insert(now.after(VIEW_DELAY));
            }
        }
    }

    /// When clients are due to be shown their first frame, between two ticks.
    pub(crate) fn view_due(&self) -> Option<Mono> {
        self.view_due
    }

    /// Whether clients are due to be shown their first frame.
    pub(crate) fn is_view_due(&self, now: Mono) -> bool {
        self.view_due.is_some_and(|due| due <= now)
    }

    /// Begins the views of the clients that have none.
    pub(crate) fn begin_views(&mut self, cx: &mut OwnerContext, known: &Knowledge, may_show: bool) {
        self.view_due = None;
        if !may_show || !known.territory.is_known() {
            return;
        }
        self.update_interest(cx, known);
        let view = known.view(cx);
        let entities = KnownEntities::of(&view);
        let mut outgoing = Vec::new();
        let waiting = self.witnesses.iter_mut().filter(|(_, witness)| witness.can_begin());
        for (entity, witness) in waiting {
            outgoing.push(witness.show(&view, &entities, &mut self.interest, *entity));
        }
        drop(entities);
        outgoing.into_iter().for_each(|outgoing| send(cx, outgoing));
    }

    /// Takes a client's acknowledgement of movement datagrams of a view.
    pub(crate) fn acknowledged(&mut self, client: ClientLink, entity: EntityId, view: u64, ack: MovementAck) {
        if let Some(witness) = self.witness(entity, client) {
            witness.acknowledge(view, ack);
        }
    }

    /// Updates which entities are in which areas of interest.
    pub(crate) fn update_interest(&mut self, cx: &OwnerContext, known: &Knowledge) {
        let visible = |type_id| {
            let found = cx.type_of(type_id)?;
            (found.parts.client && !found.manual_aoi).then_some(found.appeal_radius)
        };
        let real = cx
            .places()
            .filter_map(|(entity, place)| Some((entity, visible(cx.image(entity)?.type_id)?, place)));
        let elsewhere = known.ghosts.iter().filter(|(entity, _)| cx.image(*entity).is_none());
        let ghosts = elsewhere.filter_map(|(entity, ghost)| Some((entity, visible(ghost.type_id())?, ghost.place())));
        let body = |(entity, appeal, place): (EntityId, f32, Place)| Body {
            entity,
            spot: spot(&place),
            appeal,
        };
        let mut bodies: Vec<Body> = real.chain(ghosts).map(body).collect();
        bodies.sort_unstable_by_key(|body| body.entity);
        let observers = self.witnesses.keys().filter_map(|&entity| {
            let place = cx.place(entity)?;
            Some(Observer {
                entity,
                spot: spot(&place),
                reach: known
                    .territory
                    .reach(place.space, cx.image(entity)?.cell()?.sight.area)?,
            })
        });
        // What clients are sent depends on what they have, not on who came and went since the last tick.
        self.interest.update(&bodies, &observers.collect::<Vec<_>>(), |_| ());
    }

    /// Sends every client what is new to it.
    pub(crate) fn show_all(&mut self, cx: &mut OwnerContext, known: &Knowledge) {
        if self.witnesses.is_empty() {
            return;
        }
        let view = known.view(cx);
        let entities = KnownEntities::of(&view);
        let mut outgoing = Vec::new();
        for (entity, witness) in &mut self.witnesses {
            outgoing.push(witness.show(&view, &entities, &mut self.interest, *entity));
        }
        drop(entities);
        outgoing.into_iter().for_each(|outgoing| send(cx, outgoing));
    }

    /// Sends an entity's own client at once what has happened to the entity: after a call, the client waits for that.
    pub(crate) fn show_own(&mut self, cx: &mut OwnerContext, known: &Knowledge, entity: EntityId) {
        let witness = self.witnesses.get_mut(&entity);
        let outgoing = witness.and_then(|witness| witness.show_own(&known.view(cx), entity));
        outgoing.into_iter().for_each(|outgoing| send(cx, outgoing));
    }

    /// Once a second, if a client has an entity that is unknown here: asks all owners with an area in a space of this
    /// owner. They answer with the list of their ghosts here.
    ///
    /// A cell receives ghosts of what is near from its neighbours. But an entity that is being handed over is for a
    /// moment held by an owner that, by the newest map, need not be near any more; and that owner may be taken over
    /// just then.
    pub(crate) fn search(&self, cx: &mut OwnerContext, known: &Knowledge) {
        if known.sampling.local_tick() % SECOND != SEARCHING {
            return;
        }
        let unknown_here: Option<EntityId> = self.witnesses.values().find_map(Witness::unknown_here);
        let Some(entity) = unknown_here else { return };
        for owner in known.territory.space_peers() {
            let have = None;
            cx.send(*owner, Message::Ghost(GhostMessage::Ask { entity, have }));
        }
    }
}
