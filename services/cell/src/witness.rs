//! Witnesses: for each entity with a client, what that client is sent and how it moves its entity (rule V3).
//!
//! A witness is not in the log: the client knows what it has, and reports it to the current holder of its entity.

use std::time::Duration;

use annals_event::{ClientLink, Place};
use annals_ids::{EntityId, OwnerId, Part, Position, SessionId};
use annals_node::{OwnerContext, time::Mono};
use annals_space::Interest;
use annals_wire::{
    bus::{Message, ViewMessage},
    client::{Known, Movements, ToClient, volatile::MovementAck},
};

use crate::{
    budget::Budget,
    entity_view::Own,
    known_entity::{KnowledgeView, KnownEntities},
    view::{View, ViewOutput},
};

/// Interval at which a client is asked for its stamps until it sends them: a request or its answer may be lost.
const ASKING: Duration = Duration::from_secs(1);

/// Positions within this distance (m) acknowledge a correction.
const NEAR: f32 = 20.0;

/// The witness of one client.
#[derive(Debug)]
pub(crate) struct Witness {
    client: ClientLink,
    budget: Budget,
    view: Option<View>,
    /// What the client reported that it has; the next tick begins a view with it.
    report: Option<ClientReport>,
    /// When to ask for the report.
    ask: Mono,
    /// Sequence number of the client's newest movement.
    moved: u64,
    /// The place of the entity on which the client and this owner agree.
    agreed: Option<Place>,
    /// A placement that was sent to the client and is not yet acknowledged by a position near it.
    pending_placement: Option<PendingPlacement>,
    /// Whether the entity came here by a teleport from another space.
    is_teleported_here: bool,
}

/// A client's report: the number of the view that it begins, what it has, and how it reads movements in that view.
#[derive(Debug)]
struct ClientReport {
    view: u64,
    known: Known,
    movements: Movements,
}

#[derive(Clone, Copy, Debug)]
struct PendingPlacement {
    to: Position,
    /// The place before, as far as it is known here.
    from: Option<Position>,
}

/// Frames and datagrams for one client.
pub(crate) struct Outgoing {
    client: ClientLink,
    entity: EntityId,
    frames: Vec<Vec<u8>>,
    datagrams: Vec<Vec<u8>>,
}

impl Witness {
    pub(crate) fn new(client: ClientLink, budget: Budget, now: Mono, place: Option<Place>) -> Self {
        Self {
            client,
            budget,
            view: None,
            report: None,
            ask: now,
            moved: 0,
            agreed: place,
            pending_placement: None,
            is_teleported_here: false,
        }
    }

    /// Records that the entity came from another space.
    pub(crate) fn mark_teleported_in(&mut self) {
        self.is_teleported_here = true;
    }

    pub(crate) fn client(&self) -> ClientLink {
        self.client
    }

    /// Whether the client has an entity in view.
    pub(crate) fn shows(&self, entity: EntityId) -> bool {
        self.view.as_ref().is_some_and(|view| view.shows(entity))
    }

    /// Whether the client was sent that it moves another entity than its own.
    pub(crate) fn drives(&self, entity: EntityId) -> bool {
        self.view.as_ref().is_some_and(|view| view.drives(entity))
    }

    /// Records that the client has moved another entity than its own there.
    pub(crate) fn record_movement(&mut self, entity: EntityId, place: Place, now: Mono) {
        self.view
            .iter_mut()
            .for_each(|view| view.record_movement(entity, place, now));
    }

    /// Sets the client's budget.
    pub(crate) fn limit(&mut self, budget: Budget) {
        self.budget = budget;
    }

    /// Asks the client for its report at the next tick.
    pub(crate) fn ask_again(&mut self) {
        self.ask = Mono(0);
    }

    /// Takes the client's report of what it has; the next tick begins a view with it.
    pub(crate) fn take_stamps(&mut self, view: u64, known: Known, movements: Movements) {
        let newest = [
            self.view.as_ref().map(View::number),
            self.report.as_ref().map(|report| report.view),
        ];
        if newest.into_iter().flatten().all(|newest| newest < view) {
            self.report = Some(ClientReport { view, known, movements });
        }
    }

    /// Takes the client's acknowledgement of movement datagrams of a view.
    pub(crate) fn acknowledge(&mut self, view: u64, ack: MovementAck) {
        if let Some(found) = self.view.as_mut().filter(|found| found.number() == view) {
            found.acknowledge(ack);
        }
    }

    /// Makes the frames and datagrams with everything that is new to the client.
    pub(crate) fn show(
        &mut self,
        knowledge: &KnowledgeView<'_>,
        entities: &KnownEntities<'_>,
        interest: &mut Interest,
        entity: EntityId,
    ) -> Outgoing {
        let now = knowledge.cx.now().mono;
        if let Some(report) = self.report.take() {
            let mut view = View::begin(report.view, entity, report.known, report.movements, now);
            // An entity that came from another space left behind every entity that its client knows.
            if std::mem::take(&mut self.is_teleported_here) {
                view.end_warmup();
            }
            self.view = Some(view);
        }
        let own = self.own(knowledge, entity);
        let output = match &mut self.view {
            Some(view) => view.update(knowledge, entities, own, interest, &mut self.budget),
            None => self.ask(now),
        };
        self.outgoing(knowledge, entity, output)
    }

    /// An entity that the client has and that was unknown here at the last tick, while it may still arrive.
    pub(crate) fn unknown_here(&self) -> Option<EntityId> {
        self.view.as_ref()?.unknown_here()
    }

    /// Makes the frames with what has just happened to the client's own entity.
    pub(crate) fn show_own(&mut self, knowledge: &KnowledgeView<'_>, entity: EntityId) -> Option<Outgoing> {
        let own = self.own(knowledge, entity);
        let output = self.view.as_mut()?.update_own(knowledge, own, &mut self.budget)?;
        Some(self.outgoing(knowledge, entity, output))
    }

    fn own(&self, knowledge: &KnowledgeView<'_>, entity: EntityId) -> Own {
        let place = knowledge.cx.place(entity);
        Own {
            entity,
            session: self.client.session,
            displaced: self.agreed != place,
            position: place.map(|place| place.position),
        }
    }

    fn outgoing(&mut self, knowledge: &KnowledgeView<'_>, entity: EntityId, output: ViewOutput) -> Outgoing {
        if output.is_placed {
            self.placement_sent(knowledge.cx.place(entity));
        }
        let ViewOutput { frames, datagrams, .. } = output;
        let client = self.client;
        Outgoing {
            client,
            entity,
            frames,
            datagrams,
        }
    }

    /// Records that a placement of the entity is sent to its client.
    fn placement_sent(&mut self, place: Option<Place>) {
        let Some(place) = place else { return };
        let from = self
            .agreed
            .filter(|before| *before != place)
            .map(|before| before.position);
        self.agreed = Some(place);
        self.pending_placement = Some(PendingPlacement {
            to: place.position,
            from,
        });
    }

    fn ask(&mut self, now: Mono) -> ViewOutput {
        let mut output = ViewOutput::default();
        if now >= self.ask {
            self.ask = now.after(ASKING);
            let mut body = Vec::new();
            ToClient::StampsWanted { source: Part::Cell }.write(&mut body);
            output.frames.push(body);
        }
        output
    }

    /// Whether a movement with this sequence number is newer than all that were accepted.
    pub(crate) fn is_newer(&self, sequence: u64) -> bool {
        sequence > self.moved
    }

    /// Whether the client has begun no view here yet.
    pub(crate) fn awaits_view(&self) -> bool {
        self.view.is_none()
    }

    /// Whether the client has begun no view here, and has said what it has.
    pub(crate) fn can_begin(&self) -> bool {
        self.view.is_none() && self.report.is_some()
    }

    /// Records that a movement of the client was read.
    pub(crate) fn has_moved(&mut self, sequence: u64) {
        self.moved = sequence;
    }

    /// Records the place on which the client and this owner agree; with `None`, the next tick sends the client its
    /// entity's place.
    pub(crate) fn agree(&mut self, place: Option<Place>) {
        self.agreed = place;
    }

    /// Whether to accept a position from the client. After a placement, positions are rejected as long as they are
    /// nearer to the place before: the client sent them before it received the placement.
    pub(crate) fn accepts(&mut self, position: Position) -> bool {
        let Some(placement) = &mut self.pending_placement else {
            return true;
        };
        let from_there = position.distance(placement.to);
        let accepted = from_there <= NEAR || placement.from.is_some_and(|from| from_there < position.distance(from));
        placement.from.get_or_insert(position);
        if accepted {
            self.pending_placement = None;
        }
        accepted
    }
}

/// Sends frames and datagrams to the owner of the client's proxy.
pub(crate) fn send(cx: &mut OwnerContext, outgoing: Outgoing) {
    let Outgoing {
        client: ClientLink { session, proxy },
        entity,
        frames,
        datagrams,
    } = outgoing;
    for bytes in datagrams {
        cx.send_volatile(entity, proxy, Message::View(ViewMessage::Datagram { session, bytes }));
    }
    for frame in frames {
        let frames = vec![frame];
        cx.send(proxy, Message::View(ViewMessage::Frames { session, frames }));
    }
}

/// The client link of a message from a proxy.
pub(crate) fn client(session: SessionId, proxy: OwnerId) -> ClientLink {
    ClientLink { session, proxy }
}
