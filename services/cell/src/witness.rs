//! Witnesses: for each entity with a client, what that client is sent and how it moves its entity (rule V3).
//!
//! A witness is not in the log: the client knows what it has, and reports it to the current holder of its entity.

use std::{borrow::Cow, time::Duration};

use annals_event::{Body, ClientLink, Place};
use annals_ids::{EntityId, OwnerId, Part, Position, SessionId};
use annals_node::{OwnerContext, time::Mono};
use annals_space::{Interest, Observer};
use annals_wire::{
    bus::{Message, ViewMessage},
    client::{Known, Movements, ToClient, ViewItem, volatile::Heard},
};

use crate::{
    budget::Budget,
    entity_view::{Own, Sights},
    presence::{Cast, Scene},
    role::CellRole,
    spatial_query::{SpatialQuery, spot},
    view::View,
};

/// Interval at which a client is asked for its stamps until it sends them; the client repeats them at the same
/// interval.
const ASKING: Duration = Duration::from_secs(2);

/// Positions within this distance (m) acknowledge a correction.
const NEAR: f32 = 20.0;

/// The witness of one client.
#[derive(Debug)]
pub(crate) struct Witness {
    client: ClientLink,
    budget: Budget,
    view: Option<View>,
    /// What the client reported that it has; the next tick begins a view with it.
    said: Option<Said>,
    /// When to ask for the report.
    ask: Mono,
    /// Sequence number of the client's newest movement.
    moved: u64,
    /// The place of the entity on which the client and this owner agree.
    agreed: Option<Place>,
    /// A placement that was sent to the client and is not yet acknowledged by a position near it.
    put: Option<Put>,
    /// Whether the entity came here by a teleport from another space.
    is_put_here: bool,
}

/// A client's report: the number of the view that it begins, what it has, and how it reads movements in that view.
#[derive(Debug)]
struct Said {
    view: u64,
    known: Known,
    movements: Movements,
}

#[derive(Clone, Copy, Debug)]
struct Put {
    to: Position,
    /// The place before, as far as it is known here.
    from: Option<Position>,
}

/// Frames and datagrams for one client.
pub(crate) struct Outgoing {
    client: ClientLink,
    frames: Vec<Vec<u8>>,
    datagrams: Vec<Vec<u8>>,
}

impl Witness {
    pub(crate) fn new(client: ClientLink, budget: Budget, now: Mono, place: Option<Place>) -> Self {
        Self {
            client,
            budget,
            view: None,
            said: None,
            ask: now,
            moved: 0,
            agreed: place,
            put: None,
            is_put_here: false,
        }
    }

    /// Records that the entity came from another space.
    pub(crate) fn put_here(&mut self) {
        self.is_put_here = true;
    }

    pub(crate) fn client(&self) -> ClientLink {
        self.client
    }

    /// Sets the client's budget.
    pub(crate) fn limit(&mut self, budget: Budget) {
        self.budget = budget;
    }

    /// Asks the client for its report at the next tick.
    pub(crate) fn ask_again(&mut self) {
        self.ask = Mono(0);
    }

    fn take_stamps(&mut self, said: Said) {
        let newest = [
            self.view.as_ref().map(View::number),
            self.said.as_ref().map(|said| said.view),
        ];
        if newest.into_iter().flatten().all(|newest| newest < said.view) {
            self.said = Some(said);
        }
    }

    /// Makes the frames and datagrams with everything that is new to the client.
    pub(crate) fn show(
        &mut self,
        scene: &Scene<'_>,
        cast: &Cast<'_>,
        interest: &mut Interest,
        entity: EntityId,
    ) -> Outgoing {
        let now = scene.cx.now().mono;
        if let Some(said) = self.said.take() {
            let mut view = View::begin(said.view, entity, said.known, said.movements, now);
            // An entity that came from another space left behind every entity that its client knows.
            if std::mem::take(&mut self.is_put_here) {
                view.settle();
            }
            self.view = Some(view);
        }
        let own = self.own(scene, entity);
        let Some(view) = &mut self.view else {
            return self.ask(now);
        };
        if view.is_settling(scene) {
            // What the client had before the view began stays in view within the hysteresis.
            view.known().for_each(|known| {
                interest.keep(entity, known);
            });
        }
        let named = named(scene, cast, entity);
        named.iter().for_each(|known| {
            // When such an entity is no longer named, it stays in view within the hysteresis, like any other.
            interest.keep(entity, *known);
        });
        let around = joined(interest.seen(entity), &named);
        self.budget.refill();
        let Sights { items, moves } = view.show(scene, cast, own, &around, &self.budget);
        let mut outgoing = self.outgoing(scene, entity, items);
        if let Some(view) = &mut self.view {
            let observer = own.position.unwrap_or_default();
            outgoing.datagrams = view.tell(scene.sampling.tick(), observer, &moves, self.budget.left());
        }
        self.budget.spend(outgoing.datagrams.iter().map(Vec::len).sum());
        outgoing
    }

    /// An entity that the client has and that was unknown here at the last tick, while it may still arrive.
    pub(crate) fn missed(&self) -> Option<EntityId> {
        self.view.as_ref()?.missed()
    }

    /// Makes the frames with what has just happened to the client's own entity.
    pub(crate) fn show_own(&mut self, scene: &Scene<'_>, entity: EntityId) -> Option<Outgoing> {
        let own = self.own(scene, entity);
        let (view, actor) = (self.view.as_mut()?, scene.actor(entity)?);
        let mut sights = Sights::default();
        view.show_own(scene, own, &actor, &mut sights);
        (!sights.items.is_empty()).then(|| self.outgoing(scene, entity, sights.items))
    }

    fn own(&self, scene: &Scene<'_>, entity: EntityId) -> Own {
        let place = scene.cx.place(entity);
        Own {
            entity,
            displaced: self.agreed != place,
            position: place.map(|place| place.position),
        }
    }

    fn outgoing(&mut self, scene: &Scene<'_>, entity: EntityId, items: Vec<ViewItem>) -> Outgoing {
        let placed = |item: &ViewItem| matches!(item, ViewItem::Placed { entity: placed, .. } if *placed == entity);
        if items.iter().any(placed) {
            self.put(scene.cx.place(entity));
        }
        let (now, tick) = (scene.cx.now().mono, scene.sampling.tick());
        let frames = self
            .view
            .as_mut()
            .map_or_else(Vec::new, |view| view.frames(now, tick, items));
        self.budget.spend(frames.iter().map(Vec::len).sum());
        Outgoing {
            client: self.client,
            frames,
            datagrams: Vec::new(),
        }
    }

    /// Records that a placement of the entity is sent to its client.
    fn put(&mut self, place: Option<Place>) {
        let Some(place) = place else { return };
        let from = self
            .agreed
            .filter(|before| *before != place)
            .map(|before| before.position);
        self.agreed = Some(place);
        self.put = Some(Put {
            to: place.position,
            from,
        });
    }

    fn ask(&mut self, now: Mono) -> Outgoing {
        let mut frames = Vec::new();
        if now >= self.ask {
            self.ask = now.after(ASKING);
            let mut body = Vec::new();
            ToClient::StampsWanted { source: Part::Cell }.write(&mut body);
            frames.push(body);
        }
        Outgoing {
            client: self.client,
            frames,
            datagrams: Vec::new(),
        }
    }

    /// Whether to accept a position from the client. After a placement, positions are rejected as long as they are
    /// nearer to the place before: the client sent them before it received the placement.
    fn believes(&mut self, position: Position) -> bool {
        let Some(put) = &mut self.put else { return true };
        let from_there = position.distance(put.to);
        let believed = from_there <= NEAR || put.from.is_some_and(|from| from_there < position.distance(from));
        put.from.get_or_insert(position);
        if believed {
            self.put = None;
        }
        believed
    }
}

impl Outgoing {
    /// Sends them to the owner of the client's proxy.
    pub(crate) fn send(self, cx: &mut OwnerContext, entity: EntityId) {
        let ClientLink { session, proxy } = self.client;
        for bytes in self.datagrams {
            cx.tell_volatile(entity, proxy, Message::View(ViewMessage::Datagram { session, bytes }));
        }
        for frame in self.frames {
            let frames = vec![frame];
            cx.tell(proxy, Message::View(ViewMessage::Frames { session, frames }));
        }
    }
}

impl CellRole {
    /// Creates, replaces or removes the witness of an entity, so that it matches the entity's client.
    pub(crate) fn settle_witness(&mut self, cx: &OwnerContext, entity: EntityId) {
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

    /// Takes a client's report of what it has; the next tick begins a view with it.
    pub(crate) fn stamps(
        &mut self,
        client: ClientLink,
        entity: EntityId,
        (view, known): (u64, Known),
        movements: Movements,
    ) {
        if let Some(witness) = self.witnesses.get_mut(&entity).filter(|found| found.client == client) {
            witness.take_stamps(Said { view, known, movements });
        }
    }

    /// Takes a client's acknowledgement of movement datagrams of a view.
    pub(crate) fn client_heard(&mut self, client: ClientLink, entity: EntityId, view: u64, heard: Heard) {
        let witness = self.witnesses.get_mut(&entity).filter(|found| found.client == client);
        let found = witness.and_then(|witness| witness.view.as_mut());
        if let Some(found) = found.filter(|found| found.number() == view) {
            found.heard(heard);
        }
    }

    /// Takes a movement of a client's entity.
    pub(crate) fn client_moved(
        &mut self,
        cx: &mut OwnerContext,
        client: ClientLink,
        entity: EntityId,
        moved: (u64, Place),
    ) {
        let (sequence, place) = moved;
        let around = SpatialQuery {
            ghosts: &self.ghosts,
            territory: &self.territory,
            spatial_index: &self.spatial_index,
        };
        let (Some(witness), Some(before)) = (self.witnesses.get_mut(&entity), cx.place(entity)) else {
            return;
        };
        if witness.client != client || sequence <= witness.moved {
            return;
        }
        let place = Place {
            space: before.space,
            ..place
        };
        // If the entity was placed elsewhere before this owner held it, its client may not know it yet.
        let jumped = witness.view.is_none() && cx.image(entity).is_some_and(has_jumped);
        if !place.is_sound() || jumped || self.territory.owner_at(&place).is_none() || !witness.believes(place.position)
        {
            self.counters.disbelieved += 1;
            return;
        }
        witness.moved = sequence;
        if !self.physics.allows(cx, around, entity, (before, place)) {
            self.counters.disbelieved += 1;
            if self.physics.puts_back(cx.now().mono, entity) {
                // The next tick sends the client its entity's place.
                witness.agreed = None;
            }
            return;
        }
        witness.agreed = Some(place);
        cx.move_to(entity, place);
    }

    /// Updates which entities are in which areas of interest.
    pub(crate) fn look(&mut self, cx: &OwnerContext) {
        let visible = |type_id| {
            let found = cx.type_of(type_id)?;
            (found.parts.client && !found.manual_aoi).then_some(found.appeal_radius)
        };
        let real = cx
            .places()
            .filter_map(|(entity, place)| Some((entity, visible(cx.image(entity)?.type_id)?, place)));
        let elsewhere = self.ghosts.iter().filter(|(entity, _)| cx.image(*entity).is_none());
        let ghosts = elsewhere.filter_map(|(entity, ghost)| Some((entity, visible(ghost.type_id())?, ghost.place())));
        let mut bodies: Vec<annals_space::Body> = real
            .chain(ghosts)
            .map(|(entity, appeal, place)| annals_space::Body {
                entity,
                spot: spot(&place),
                appeal,
            })
            .collect();
        bodies.sort_unstable_by_key(|body| body.entity);
        let observers = self.witnesses.keys().filter_map(|&entity| {
            let place = cx.place(entity)?;
            Some(Observer {
                entity,
                spot: spot(&place),
                reach: self
                    .territory
                    .reach(place.space, cx.image(entity)?.cell()?.sight.area)?,
            })
        });
        // What clients are sent depends on what they have, not on who came and went since the last tick.
        self.interest.update(&bodies, &observers.collect::<Vec<_>>(), |_| ());
    }

    /// Sends every client what is new to it.
    pub(crate) fn show_views(&mut self, cx: &mut OwnerContext) {
        let scene = Scene {
            cx,
            ghosts: &self.ghosts,
            recent_events: &self.recent_events,
            sampling: &self.sampling,
            property_history: &self.property_history,
            spaces: &self.spaces,
            territory: &self.territory,
        };
        let mut outgoing = Vec::new();
        if !self.witnesses.is_empty() {
            let cast = Cast::of(&scene);
            for (entity, witness) in &mut self.witnesses {
                outgoing.push((*entity, witness.show(&scene, &cast, &mut self.interest, *entity)));
            }
        }
        for (entity, outgoing) in outgoing {
            outgoing.send(cx, entity);
        }
    }

    /// Sends an entity's own client at once what has happened to the entity: after a call, the client waits for that.
    pub(crate) fn show_own(&mut self, cx: &mut OwnerContext, entity: EntityId) {
        let scene = Scene {
            cx,
            ghosts: &self.ghosts,
            recent_events: &self.recent_events,
            sampling: &self.sampling,
            property_history: &self.property_history,
            spaces: &self.spaces,
            territory: &self.territory,
        };
        let witness = self.witnesses.get_mut(&entity);
        if let Some(outgoing) = witness.and_then(|witness| witness.show_own(&scene, entity)) {
            outgoing.send(cx, entity);
        }
    }
}

/// The client link of a message from a proxy.
pub(crate) fn client(session: SessionId, proxy: OwnerId) -> ClientLink {
    ClientLink { session, proxy }
}

/// Whether the entity's recent history contains a placement.
fn has_jumped(image: &annals_event::Image) -> bool {
    image.recent.iter().any(|event| matches!(event.body, Body::Moved(_)))
}

/// Entities that a client sees at any distance, as far as they are known here, ascending.
fn named(scene: &Scene<'_>, cast: &Cast<'_>, own: EntityId) -> Vec<EntityId> {
    let cell = scene.cx.image(own).and_then(|image| image.cell());
    let Some((manual, place)) = cell.map(|cell| &cell.sight.manual).zip(scene.cx.place(own)) else {
        return Vec::new();
    };
    let is_shown = |entity: &&EntityId| {
        cast.get(**entity)
            .is_some_and(|actor| actor.entity_type.parts.client && actor.whereabouts.place.space == place.space)
    };
    manual.iter().filter(is_shown).copied().collect()
}

/// The union of two ascending lists.
fn joined<'a>(seen: &'a [EntityId], named: &[EntityId]) -> Cow<'a, [EntityId]> {
    if named.is_empty() {
        return Cow::Borrowed(seen);
    }
    let mut all = [seen, named].concat();
    all.sort_unstable();
    all.dedup();
    Cow::Owned(all)
}
