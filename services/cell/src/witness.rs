//! Witnesses: for each entity with a client, what that client is shown and what it does with its entity (rule V3).
//!
//! A witness is nothing that is kept in the log: the client knows what it has, and says so to whoever holds its entity.

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

/// How often a client that has not said what it has is asked for it: as often as it repeats what it says itself.
const ASKING: Duration = Duration::from_secs(2);

/// Who is so near to where it was put, metres, must have been told.
const NEAR: f32 = 20.0;

/// One witness.
#[derive(Debug)]
pub(crate) struct Witness {
    client: ClientLink,
    budget: Budget,
    view: Option<View>,
    /// What the client said it has, to begin a view with at the next tick.
    said: Option<Said>,
    /// When to ask for that.
    ask: Mono,
    /// The newest of the client's movements.
    moved: u64,
    /// Where both the client and this owner hold the entity to be.
    agreed: Option<Place>,
    /// Where the client was told that its entity was put, until it is heard from there.
    put: Option<Put>,
    /// Whether the entity came here from another space.
    is_put_here: bool,
}

/// What a client said it has, the number of the view that it begins with it, and how it is told of movements in it.
#[derive(Debug)]
struct Said {
    view: u64,
    known: Known,
    movements: Movements,
}

#[derive(Clone, Copy, Debug)]
struct Put {
    to: Position,
    /// Where from, as far as is known here.
    from: Option<Position>,
}

/// What a witness has for its client.
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

    /// The entity came from another space.
    pub(crate) fn put_here(&mut self) {
        self.is_put_here = true;
    }

    pub(crate) fn client(&self) -> ClientLink {
        self.client
    }

    /// Shows no more than that.
    pub(crate) fn limit(&mut self, budget: Budget) {
        self.budget = budget;
    }

    /// Asks the client what it has, at once.
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

    /// Shows the client everything that is new to it.
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
            // Whoever was put here from another space has left those behind whom its client knows.
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
            // What the client saw before stays in view as long as the hysteresis holds it.
            view.known().for_each(|known| {
                interest.keep(entity, known);
            });
        }
        let named = named(scene, cast, entity);
        named.iter().for_each(|known| {
            // Who is to be seen no more then stays in view as long as anybody would that was.
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

    /// Somebody whom the client knows, and of whom nothing was known here at the last tick although that may still come.
    pub(crate) fn missed(&self) -> Option<EntityId> {
        self.view.as_ref()?.missed()
    }

    /// Shows the client what has just happened to its own entity.
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

    /// The client is told that its entity was put somewhere.
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

    /// Whether the client can mean it: once its entity was put somewhere, what it says of where it was before is of no
    /// interest.
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
    /// Makes the witness of an entity be that of its client, if it has one.
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

    /// A client says what it has; a view begins with it at the next tick.
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

    /// A client says what it has read of the movements of a view.
    pub(crate) fn client_heard(&mut self, client: ClientLink, entity: EntityId, view: u64, heard: Heard) {
        let witness = self.witnesses.get_mut(&entity).filter(|found| found.client == client);
        let found = witness.and_then(|witness| witness.view.as_mut());
        if let Some(found) = found.filter(|found| found.number() == view) {
            found.heard(heard);
        }
    }

    /// A client has moved its entity.
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
        // What was put elsewhere before this owner held it, its client may not know yet.
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
                // The client is told where it is at the next tick.
                witness.agreed = None;
            }
            return;
        }
        witness.agreed = Some(place);
        cx.move_to(entity, place);
    }

    /// Who is in whose area of interest now.
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
        // What clients are told follows from what they have been told, not from who came and went since the last tick.
        self.interest.update(&bodies, &observers.collect::<Vec<_>>(), |_| ());
    }

    /// Shows every client what is new to it.
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

    /// Shows an entity's own client at once what has happened to it: that is what the client waits for after a call.
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

/// The client link that a message from a proxy speaks for.
pub(crate) fn client(session: SessionId, proxy: OwnerId) -> ClientLink {
    ClientLink { session, proxy }
}

/// Whether the history that is kept of an entity says that it was put somewhere.
fn has_jumped(image: &annals_event::Image) -> bool {
    image.recent.iter().any(|event| matches!(event.body, Body::Moved(_)))
}

/// Whom a client sees wherever they are, as far as they are known here, ascending.
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

/// All that are in either; both ascend.
fn joined<'a>(seen: &'a [EntityId], named: &[EntityId]) -> Cow<'a, [EntityId]> {
    if named.is_empty() {
        return Cow::Borrowed(seen);
    }
    let mut all = [seen, named].concat();
    all.sort_unstable();
    all.dedup();
    Cow::Owned(all)
}
